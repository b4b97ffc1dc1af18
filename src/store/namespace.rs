//! Lists and renames namespaces. Tokens, with which other machines and agents access one namespace;
//! only their digests are stored.

use super::lease::check_namespace;
use super::memory_index::write_memories;
use super::session::{id_everywhere, is_forgotten};
use super::{
    Columns, Db, NamespaceLease, Result, Row, Store, StoreResult, json, query, row_of, values,
};
use crate::domain::{Change, Digest, Memory, Plan, Session, SessionId, Timestamp, named};

/// Tables that hold a namespace only in their `namespace` column.
const NAMED: [&str; 7] =
    ["sessions", "open_pairs", "contradictions", "ledger", "bills", "memory_dirs", "tokens"];

/// Contents of a namespace.
#[derive(schemars::JsonSchema, Clone, Debug, Eq, PartialEq, serde::Serialize)]
pub(crate) struct NamespaceTotals {
    /// Its name.
    pub namespace: String,
    /// Conversations.
    pub sessions: u64,
    /// Memories, also those that do not hold any more.
    pub memories: u64,
    /// Folders that its conversations were held in.
    pub folders: Vec<String>,
}

impl Store {
    pub(crate) async fn namespaces(&self) -> StoreResult<Vec<String>> {
        let sql = "SELECT DISTINCT namespace FROM sessions ORDER BY namespace";
        self.all("reading which namespaces there are", sql, &[]).await
    }

    /// Returns a namespace from which `name`, which has no sessions, differs only by case.
    pub(crate) async fn namespace_twin(&self, name: &str) -> StoreResult<Option<String>> {
        let sql = "SELECT namespace FROM sessions WHERE lower(namespace) = lower(?1)
            AND NOT EXISTS (SELECT 1 FROM sessions WHERE namespace = ?1) LIMIT 1";
        self.first("looking for a namespace in other case", sql, values![name]).await
    }

    /// Returns the only namespace of the sessions that did not come over HTTP, if it is one.
    pub(crate) async fn only_namespace(&self) -> StoreResult<Option<String>> {
        let sql = "SELECT DISTINCT namespace FROM sessions WHERE path NOT LIKE 'http:%' LIMIT 2";
        let mut all = self.all("reading which namespaces there are", sql, &[]).await?;
        Ok(all.pop().filter(|_| all.is_empty()))
    }

    /// Returns all namespaces by name with their totals and up to `folders_max` folders each.
    pub(crate) async fn namespace_totals(
        &self,
        folders_max: u32,
    ) -> StoreResult<Vec<NamespaceTotals>> {
        self.read("counting what namespaces hold", move |from| {
            let sql = "SELECT n.namespace,
                    (SELECT count(*) FROM sessions s WHERE s.namespace = n.namespace),
                    (SELECT count(*) FROM memories m WHERE m.namespace = n.namespace)
                FROM (SELECT namespace FROM sessions UNION SELECT namespace FROM memories) n
                ORDER BY n.namespace";
            let mut all = Vec::new();
            for (namespace, sessions, memories) in from.all::<(String, u64, u64)>(sql, &[])? {
                let sql = "SELECT DISTINCT cwd FROM sessions
                    WHERE namespace = ?1 AND cwd IS NOT NULL ORDER BY cwd LIMIT ?2";
                let folders = from.all(sql, values![&namespace, folders_max])?;
                all.push(NamespaceTotals { namespace, sessions, memories, folders });
            }
            Ok(all)
        })
        .await
    }

    /// Returns true if `namespace` has sessions or memories.
    pub(crate) async fn has_namespace(&self, namespace: &str) -> StoreResult<bool> {
        let sql = "SELECT 1 FROM sessions WHERE namespace = ?1
            UNION ALL SELECT 1 FROM memories WHERE namespace = ?1 LIMIT 1";
        self.read("looking for a namespace", query(sql, values![namespace], Db::exists)).await
    }

    /// Returns true if anything was ever decided in a namespace, also if all of it was forgotten.
    pub(crate) async fn had_namespace(&self, namespace: &str) -> StoreResult<bool> {
        let sql = "SELECT 1 FROM ledger WHERE namespace = ?1 LIMIT 1";
        self.read("looking for what a namespace had", query(sql, values![namespace], Db::exists))
            .await
    }

    /// Returns the new name of a namespace that was renamed.
    pub(crate) async fn namespace_moved(&self, namespace: &str) -> StoreResult<Option<String>> {
        let sql = "SELECT moved_to FROM namespace_moves WHERE namespace = ?1";
        self.first("looking for the name of a namespace", sql, values![namespace]).await
    }

    /// Returns the folders of a namespace's sessions and its memory directories on `host`. Sessions that came over HTTP
    /// are left out: their folders are of another machine.
    pub(crate) async fn folders_of(&self, namespace: &str, host: &str) -> StoreResult<Vec<String>> {
        let sql = "SELECT cwd FROM sessions
            WHERE namespace = ?1 AND cwd IS NOT NULL AND path NOT LIKE 'http:%'
            UNION SELECT dir FROM memory_dirs WHERE namespace = ?1 AND host = ?2";
        self.all("reading the folders of a namespace", sql, values![namespace, host]).await
    }

    /// Returns the id and namespace under which a conversation with this client, client id and
    /// folder is stored; with `is_named`, only within the session's namespace, and one that came over HTTP is always
    /// looked for there alone. Otherwise returns the first id under which it was forgotten, among
    /// them those in `forgotten`, without a namespace.
    pub(crate) async fn known_session(
        &self,
        session: &Session,
        is_named: bool,
        forgotten: Vec<SessionId>,
    ) -> StoreResult<Option<(SessionId, Option<String>)>> {
        let session = session.clone();
        self.read("looking for a session by its client's id", move |from| {
            let sql = "SELECT id, namespace FROM sessions
                WHERE native_id = ?1 AND format = ?2 AND (cwd IS NULL OR cwd = ?3)
                    AND (namespace = ?4 OR ?6 = 0 AND path NOT LIKE 'http:%')
                ORDER BY id <> ?5, no LIMIT 1";
            let cwd = session.cwd.as_ref().map(|it| it.as_str());
            let folder = cwd.unwrap_or_default();
            let Session { id, native_id, format, namespace, .. } = &session;
            let row = values![native_id, *format, folder, namespace, id, is_named];
            let known = from.first(sql, row)?;
            if known.is_some() || is_forgotten(from, session.id)? {
                return Ok(known);
            }
            let native_id = session.native_id.as_str();
            let everywhere = id_everywhere(session.format.name(), native_id, cwd);
            for id in forgotten.iter().copied().chain([everywhere]) {
                if is_forgotten(from, id)? {
                    return Ok(Some((id, None)));
                }
            }
            Ok(None)
        })
        .await
    }

    /// Renames the namespace of the first lease to that of the second in one transaction, merging
    /// the two if both exist. Ids do not change.
    pub(crate) async fn move_namespace(
        &self,
        from: &NamespaceLease,
        to: &NamespaceLease,
    ) -> StoreResult<()> {
        let (from, to) = (from.clone(), to.clone());
        self.write("moving a namespace", move |db| {
            check_namespace(db, &from)?;
            check_namespace(db, &to)?;
            rename(db, &from.subject, &to.subject)
        })
        .await
    }

    /// Stores a new token with the digest of its secret; returns false if a live token has the name. A revoked one
    /// gives its name up: a blank, which no name contains, and its end time are appended.
    pub(crate) async fn keep_token(&self, token: Token, digest: Digest) -> StoreResult<bool> {
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
    pub(crate) async fn tokens(&self) -> StoreResult<Vec<Token>> {
        let sql = format!("SELECT {COLUMNS} ORDER BY name");
        self.all("reading tokens", &sql, &[]).await
    }

    /// Returns the token whose secret has this digest.
    pub(crate) async fn token(&self, digest: Digest) -> StoreResult<Option<Token>> {
        let sql = format!("SELECT {COLUMNS} WHERE digest = ?1");
        self.first("looking for a token", &sql, values![&digest]).await
    }

    /// Revokes a token; returns false if no unrevoked token has this name.
    pub(crate) async fn revoke_token(&self, name: String, at: Timestamp) -> StoreResult<bool> {
        let sql = "UPDATE tokens SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL";
        Ok(self.write("revoking a token", query(sql, values![&name, at], Db::execute)).await? == 1)
    }

    /// Records the day on which a token was used.
    pub(crate) async fn use_token(&self, name: String, day: Timestamp) -> StoreResult<()> {
        let sql = "UPDATE tokens SET used_at = ?2 WHERE name = ?1";
        self.write("noting the use of a token", query(sql, values![&name, day], Db::run)).await
    }
}

fn rename(db: &mut Db, from: &str, to: &str) -> Result<()> {
    let memories: Vec<Memory> =
        db.all("SELECT body FROM memories WHERE namespace = ?1", values![from])?;
    let renamed = |it: &Memory| Memory { namespace: to.to_owned(), ..it.clone() };
    // The index is by namespace, so memories are removed from one and inserted into the other.
    let gone = |it: &Memory| Change { memory: it.id, before: Some(it.clone()), after: None };
    let new = |it: &Memory| Change { memory: it.id, before: None, after: Some(renamed(it)) };
    write_memories(db, from, &memories.iter().map(gone).collect::<Vec<_>>())?;
    write_memories(db, to, &memories.iter().map(new).collect::<Vec<_>>())?;
    db.run("DELETE FROM memory_indexes WHERE namespace = ?1", values![from])?;
    let sql = "SELECT no FROM plans WHERE namespace = ?1 ORDER BY no";
    for no in db.all::<i64>(sql, values![from])? {
        let sql = "SELECT body FROM plans WHERE no = ?1";
        let plan: Plan = db.one(sql, values![no])?;
        let before = plan.before.iter().map(renamed).collect();
        let plan = Plan { namespace: to.to_owned(), before, ..plan };
        let sql = "UPDATE plans SET namespace = ?2, body = ?3 WHERE no = ?1";
        db.run(sql, values![no, to, &json(&plan)?])?;
    }
    for table in NAMED {
        let sql = format!("UPDATE {table} SET namespace = ?2 WHERE namespace = ?1");
        db.run(&sql, values![from, to])?;
    }
    let lane = "INSERT INTO lanes (namespace, served) SELECT ?2, served FROM lanes
        WHERE namespace = ?1 ON CONFLICT (namespace) DO NOTHING";
    db.run(lane, values![from, to])?;
    let jobs = "UPDATE jobs SET lane = (SELECT no FROM lanes WHERE namespace = ?2)
        WHERE lane = (SELECT no FROM lanes WHERE namespace = ?1)";
    db.run(jobs, values![from, to])?;
    // The next check against a daily cap recomputes their combined spending.
    let caps = "DELETE FROM allowances WHERE scope LIKE 'namespace-day %'
        AND substr(scope, length('namespace-day 2026-11-23 ') + 1) IN (?1, ?2)";
    db.run(caps, values![from, to])?;
    db.run("UPDATE namespace_moves SET moved_to = ?2 WHERE moved_to = ?1", values![from, to])?;
    db.run("DELETE FROM namespace_moves WHERE namespace = ?1", values![to])?;
    let sql = "INSERT INTO namespace_moves (namespace, moved_to) VALUES (?1, ?2)
        ON CONFLICT (namespace) DO UPDATE SET moved_to = excluded.moved_to";
    db.run(sql, values![from, to])
}

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

/// Columns of a [`Token`]. A revoked one has given its name up by an appendix to it.
const COLUMNS: &str = "coalesce(replace(name, ' ' || revoked_at, ''), name), namespace, rights, \
     created_at, expires_at, revoked_at, used_at FROM tokens";

row_of! { Token { name, namespace, rights, created_at, expires_at, revoked_at, used_at } }

impl Row for Vec<TokenRight> {
    fn read(row: &mut Columns<'_>) -> Result<Vec<TokenRight>> {
        row.text(|rights| Some(rights.split(' ').filter_map(TokenRight::of_name).collect()))
    }
}
