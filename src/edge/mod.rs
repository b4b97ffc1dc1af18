//! The world: clock, disk, models, store. The rooms below know nothing of it; `worker` joins them.

pub mod model;
