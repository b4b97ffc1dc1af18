//! The router as a fuzz target asks it; no part of the program.

use super::{Composition, server};
use crate::adapters::clock;
use crate::cli::settings;
use crate::server::token_digest;
use crate::store::{OpenMode, Token, TokenRight};
use axum::Router;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Router of `annalist serve --mcp` with the settings in `file`, for the fuzz target `http`. Its token and the page
/// secret are `fuzz`.
///
/// # Panics
/// If the settings or the store cannot be opened.
#[expect(clippy::unwrap_used, reason = "a fuzz target that cannot be set up ends")]
pub async fn router_for_fuzzing(file: &Path) -> Router {
    let config = settings::load(Some(file)).map_err(|it| it.line).unwrap();
    let store = settings::open_store(&config, OpenMode::Create).unwrap();
    let token = Token {
        name: "fuzz".to_owned(),
        namespace: "fuzz".to_owned(),
        rights: TokenRight::ALL.to_vec(),
        created_at: clock::now(),
        expires_at: None,
        revoked_at: None,
        used_at: None,
    };
    store.keep_token(token, token_digest(b"fuzz")).await.unwrap();
    let mcp = server(Some(file)).map_err(|it| it.line).unwrap();
    let (page_secret, hosts) = (Some("fuzz".to_owned()), Vec::new());
    Composition { config, store, embedder: None, page_secret, mcp: Some(mcp), hosts }
        .router(CancellationToken::new())
}
