//! Authentication by API token: the caller, its namespace and its rights.

use super::error::ApiError;
use super::state::ServerState;
use crate::domain::Digest;
use crate::store::TokenRight;
use crate::text::phrase::with_causes;
use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use std::sync::Arc;

/// Digest under which the store keeps a token.
pub(crate) fn token_digest(token: &[u8]) -> Digest {
    Digest::of_bytes(token)
}

/// Authenticated holder of a token.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// Name of the token.
    pub name: String,
    pub namespace: String,
    rights: Vec<TokenRight>,
}

impl Caller {
    /// # Errors
    /// If the token lacks the right.
    pub(super) fn may(&self, right: TokenRight) -> Result<(), ApiError> {
        if self.rights.contains(&right) {
            return Ok(());
        }
        let (what, name) =
            (format!("token `{}` may not {}", self.name, right.name()), right.name());
        let expected = format!("a token created with `annalist token new NAME --can {name}`");
        Err(ApiError::new(StatusCode::FORBIDDEN, &what, "Authorization", &expected))
    }
}

/// Returns the token of an `Authorization` header. The scheme is case-insensitive.
fn bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

impl FromRequestParts<Arc<ServerState>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &Arc<ServerState>,
    ) -> Result<Caller, ApiError> {
        let sent = parts.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let sent = sent.and_then(bearer);
        let now = (state.clock)();
        let token = match sent {
            // Digests are compared, so timing reveals nothing about the token.
            Some(secret) => state.store.token(token_digest(secret)).await?,
            None => None,
        };
        let Some(token) = token.filter(|token| token.is_valid(now)) else {
            let (what, expected) = ("no valid token", "Bearer TOKEN, from `annalist token new`");
            return Err(ApiError::new(StatusCode::UNAUTHORIZED, what, "Authorization", expected));
        };
        let today = now.midnight();
        if token.used_at != Some(today)
            && let Err(error) = state.store.use_token(token.name.clone(), today).await
        {
            // A read-only store still serves readers.
            tracing::warn!(error = with_causes(&error), "the use of a token cannot be recorded");
        }
        tracing::info!(token = token.name, "caller");
        Ok(Caller { name: token.name, namespace: token.namespace, rights: token.rights })
    }
}
