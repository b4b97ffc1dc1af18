//! Names in what was said, told by rule: no model, no list of the world. A memory card counts them a
//! session, an entity memory a conversation; both ask here, so that they agree on what a name is.
//!
//! A name is a word that begins with a capital. Where a sentence begins every word does, so a word
//! that is only ever seen there, and has no capital or digit inside, is a beginning and no name:
//! [`names`] says which sightings are sure, [`Mentions`] counts a word once one of them is. What the
//! gate put in place of something, and addresses, name nothing.

mod mentions;
mod name;
mod piece;
mod sentence;

pub use mentions::{Mentions, NAMES_MAX};
pub use name::{NAME_LETTERS_MAX, NAME_LETTERS_MIN, Name, names};
pub(crate) use piece::{is_blank, is_word, pieces, word_end, word_start};
pub(crate) use sentence::sentences;
