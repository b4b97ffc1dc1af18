//! The world: clock, disk, store. Only here and in `cli` is anything read or written.

pub mod clock;
pub mod disk;
pub mod store;
