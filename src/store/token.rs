//! Tokens with which other machines and agents access one namespace. Only their digests are stored.

use super::error::Fault;
use super::error::StoreError;
use super::handle::Store;
use super::value::{Columns, Row, values};
use crate::domain::{Digest, Timestamp, named};

named! {
    /// Right of a token's holder in its namespace.
    #[derive(schemars::JsonSchema)]
    pub(crate) TokenRight {
        /// Asks for records and memories.
        Read = "read",
        /// Hands over conversations.
        Write = "write",
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Token {
    pub name: String,
    pub namespace: String,
    pub rights: Vec<TokenRight>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// Start of the last day on which it was used.
    pub used_at: Option<Timestamp>,
}

impl Token {
    pub(crate) fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// Columns of a [`Token`].
const COLUMNS: &str =
    "name, namespace, rights, created_at, expires_at, revoked_at, used_at FROM tokens";

impl Store {
    /// Stores a new token with the digest of its secret; returns false if a live token has the name. A revoked one
    /// gives its name up: a blank, which no name contains, and its end time are appended.
    pub(crate) async fn keep_token(
        &self,
        token: Token,
        digest: Digest,
    ) -> Result<bool, StoreError> {
        let rights: Vec<&str> = token.rights.iter().map(|right| right.name()).collect();
        let rights = rights.join(" ");
        self.write("keeping a token", move |db| {
            let sql = "UPDATE tokens SET name = name || ' ' || revoked_at
                WHERE name = ?1 AND revoked_at IS NOT NULL";
            db.run(sql, values![&token.name])?;
            let sql = "INSERT INTO tokens (name, digest, namespace, rights, created_at, expires_at)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (name) DO NOTHING";
            let Token { name, namespace, created_at, expires_at, .. } = &token;
            let row = values![name, &digest, namespace, &rights, *created_at, *expires_at];
            Ok(db.execute(sql, row)? == 1)
        })
        .await
    }

    /// Returns all tokens, by name.
    pub(crate) async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let sql = format!("SELECT {COLUMNS} ORDER BY name");
        self.all("reading tokens", &sql, &[]).await
    }

    /// Returns the token whose secret has this digest.
    pub(crate) async fn token(&self, digest: Digest) -> Result<Option<Token>, StoreError> {
        let sql = format!("SELECT {COLUMNS} WHERE digest = ?1");
        self.first("looking for a token", &sql, values![&digest]).await
    }

    /// Revokes a token; returns false if no unrevoked token has this name.
    pub(crate) async fn revoke_token(
        &self,
        name: String,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let sql = "UPDATE tokens SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL";
        Ok(self.execute("revoking a token", sql, values![&name, at]).await? == 1)
    }

    /// Records the day on which a token was used.
    pub(crate) async fn use_token(&self, name: String, day: Timestamp) -> Result<(), StoreError> {
        let sql = "UPDATE tokens SET used_at = ?2 WHERE name = ?1";
        self.execute("noting the use of a token", sql, values![&name, day]).await.map(drop)
    }
}

impl Row for Token {
    fn read(row: &mut Columns<'_>) -> Result<Token, Fault> {
        Ok(Token {
            name: row.text(|name| name.split(' ').next().map(str::to_owned))?,
            namespace: row.next()?,
            rights: row
                .text(|rights| Some(rights.split(' ').filter_map(TokenRight::of_name).collect()))?,
            created_at: row.next()?,
            expires_at: row.next()?,
            revoked_at: row.next()?,
            used_at: row.next()?,
        })
    }
}
