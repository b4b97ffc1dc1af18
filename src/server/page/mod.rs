//! The local page.

use super::state::ServerState;
use axum::Router;
use std::sync::Arc;

/// The pages, for the router that serves everything else as well.
pub(crate) fn router(state: Arc<ServerState>) -> Router {
    Router::new().with_state(state)
}
