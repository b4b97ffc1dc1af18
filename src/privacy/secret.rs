//! Secrets by shape and by name.
