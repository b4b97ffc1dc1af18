//! The store on a PostgreSQL server: any number of processes on any number of machines.

mod address;
mod connection;
mod fault;
mod listen;
mod pool;
mod schema;
mod sweep;
mod tls;
mod value;
#[cfg(test)]
mod tests;

pub(super) use address::Address;
pub(super) use connection::Connection;
pub(super) use listen::{ANNOUNCE, listen};
pub(super) use pool::{For, Pool};
