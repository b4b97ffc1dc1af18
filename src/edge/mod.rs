//! The world: clock, disk, models, NATS, store. Only here and in `cli` is anything read or written; the
//! rooms below know nothing of it, and `worker` joins them.

pub mod case_names;
pub mod cases;
pub mod clock;
pub mod disk;
pub mod hooks;
pub mod memory_dir;
pub mod metrics;
pub mod model;
pub mod nats;
pub mod process;
pub mod prompts;
pub mod store;
pub mod telemetry;
pub mod walk;
pub mod watch;
