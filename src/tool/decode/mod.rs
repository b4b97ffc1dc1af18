//! Reads JSON as models write it. Whatever is bent straight leaves a [`Repair`]; what was cut off is
//! dropped, never guessed at.

mod find;
mod join;
mod parser;
mod repair;
mod text;

pub use find::decode;
pub use repair::Repair;

#[cfg(test)]
mod laws;
#[cfg(test)]
pub(crate) use laws::answers;
