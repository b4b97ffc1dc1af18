//! Full-text index of records and memories, and search candidates. It stores digests of words, not words.

use super::record::{RECORD_COLUMNS, RECORD_TABLES};
use super::{
    Db, IdPrefix, Insert, Result, Store, StoreResult, StoredRecord, Value, literal, query, values,
};
use crate::domain::{ClaimKind, Digest, Format, Memory, MemoryId, Record, RecordId, Timestamp};
use crate::search::{Frequencies, TermReader, WEIGHTS, fields_of_memory, fields_of_record, keys};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

/// Maximum number of texts to score. A query's commonest words are not looked up if the rarer ones
/// reach it, but they still count in the ranking.
const MATCHES_MAX: u64 = 20_000;
/// The same per requested candidate, for small limits.
const MATCHES_PER_CANDIDATE: u64 = 100;
/// Number of best matches, per requested candidate, that are filtered first. Most filters leave enough of them.
const BEST_PER_CANDIDATE: u64 = 10;
/// Number of texts migrated in one transaction.
const ENTERED_AT_ONCE: u32 = 500;

/// Match of records without a time in a search with a time range.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Undated {
    #[default]
    LeftOut,
    /// By the time at which they were read.
    ByReading,
    Included,
    /// Nothing else matches.
    Only,
}

/// Search filter; absent criteria match everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SearchFilter {
    pub namespace: Option<String>,
    pub kind: Option<ClaimKind>,
    /// Session id or its prefix, ours or the client's.
    pub session: Option<String>,
    /// Transcript format.
    pub client: Option<Format>,
    /// Time range, inclusive; see [`RecordFilter`](super::RecordFilter).
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Records that mention this path, or whose session is in this file.
    pub path: Option<String>,
    /// Match of records without a time, if there is a time range.
    pub undated: Undated,
    /// Open requests, questions and failures only.
    pub open: bool,
    /// Without words, the oldest instead of the newest.
    pub oldest_first: bool,
    /// Failed attempts only.
    pub failed: bool,
}

impl SearchFilter {
    /// True if memories without a record can match.
    pub(super) fn is_of_memories(&self) -> bool {
        self.session.is_none() && self.client.is_none() && self.path.is_none()
    }

    /// True if every session and time matches.
    fn is_of_all(&self) -> bool {
        self.is_of_memories() && self.since.is_none() && self.until.is_none()
    }
}

/// Condition for open memories. Matches a partial index.
const IS_OPEN: &str = "m.section IN ('request', 'question', 'failure')";
/// Condition for records that may become open memories. Matches a partial index.
const WAITS_OPEN: &str =
    "c.settled = 0 AND c.state = 'staged' AND c.kind IN ('request', 'discussion')";
/// Joins the memory that rests on record `c`, as `m`.
const MEMORY_OF_RECORD: &str = "LEFT JOIN dispositions d ON d.record = c.id
    AND d.withdrawn_no IS NULL AND d.undone_no IS NULL LEFT JOIN memories m ON m.id = d.memory";

/// Candidates of a search, latest first.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    pub frequencies: Frequencies,
    /// Current records, each with the memory that rests on it.
    pub records: Vec<(StoredRecord, Option<Memory>)>,
    /// Memories with words of their own.
    pub memories: Vec<Memory>,
}

impl Candidates {
    /// Appends the candidates of another search, without duplicates.
    pub(crate) fn add(&mut self, other: Candidates) {
        let here: HashSet<RecordId> = self.records.iter().map(|(it, _)| it.record.id).collect();
        let memories: HashSet<MemoryId> = self.memories.iter().map(|it| it.id).collect();
        let new = other.records.into_iter().filter(|(it, _)| !here.contains(&it.record.id));
        self.records.extend(new);
        self.memories.extend(other.memories.into_iter().filter(|it| !memories.contains(&it.id)));
        self.frequencies.with.extend(other.frequencies.with);
    }
}

const INTO_FILE: Insert = Insert {
    head: "INSERT OR REPLACE INTO search (rowid, subject, reason, evidence)",
    width: 4,
    tail: "",
};
const INTO_SERVER: Insert = Insert {
    head: "INSERT INTO search (rowid, keys)",
    width: 2,
    tail: "ON CONFLICT (rowid) DO UPDATE SET keys = excluded.keys",
};

/// Indexes texts under their numbers.
fn enter(db: &mut Db, texts: &BTreeMap<i64, [String; 3]>) -> Result<()> {
    let mut reader = TermReader::default();
    let is_file = matches!(db, Db::Sqlite(_));
    let mut digests = |text: &String| {
        let mut digests = String::new();
        for key in keys(text, &mut reader) {
            let gap = if digests.is_empty() { "" } else { " " };
            // Writing to a string never fails.
            let _ = write!(digests, "{gap}{key:x}");
        }
        digests
    };
    let mut row = |(no, fields): (&i64, &[String; 3])| {
        let mut columns: Vec<String> = fields.iter().map(&mut digests).collect();
        if !is_file {
            columns.retain(|it| !it.is_empty());
            columns = vec![columns.join(" ")];
        }
        (*no, columns)
    };
    let rows: Vec<(i64, Vec<String>)> = texts.iter().map(&mut row).collect();
    let cells = rows.iter().flat_map(|(no, columns)| {
        std::iter::once(Value::from(*no)).chain(columns.iter().map(Value::from))
    });
    let cells: Vec<Value<'_>> = cells.collect();
    db.insert(if is_file { INTO_FILE } else { INTO_SERVER }, &cells).map(drop)
}

/// Indexes the records of a run. They must be stored already.
pub(super) fn enter_run(db: &mut Db, run_no: i64, records: &[Record]) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    let sql = "SELECT id, no FROM records WHERE run_no = ?1";
    let numbers: HashMap<RecordId, i64> = db.all(sql, values![run_no])?.into_iter().collect();
    let text = |record: &Record| Some((*numbers.get(&record.id)?, fields_of_record(record)));
    enter(db, &records.iter().filter_map(text).collect())
}

/// Indexes a memory if a person wrote or edited it. It must be stored already.
pub(super) fn enter_memory(db: &mut Db, memory: &Memory) -> Result<()> {
    if !has_own_words(memory) {
        return Ok(());
    }
    let no = db.one(MEMORY, values![&memory.id.0])?;
    enter(db, &BTreeMap::from([(no, fields_of_memory(memory))]))
}

pub(super) fn has_own_words(memory: &Memory) -> bool {
    memory.edited.is_some() || memory.sources.is_empty()
}

/// Number of the record `?1` in the index.
pub(super) const RECORD: &str = "SELECT no FROM records WHERE id = ?1";
/// Number of the memory `?1` in the index.
pub(super) const MEMORY: &str = "SELECT -no FROM memories WHERE id = ?1";

/// Removes the text with this `number` from the index. Its row must still exist.
pub(super) fn forget(db: &mut Db, number: &str, id: &Digest) -> Result<()> {
    for (table, key) in [("search", "rowid"), ("unsearched", "no"), ("vectors", "no")] {
        db.run(&format!("DELETE FROM {table} WHERE {key} IN ({number})"), values![id])?;
    }
    Ok(())
}

/// Also removes deleted data from the index's internal segments.
pub(super) fn scrub(db: &mut Db) -> Result<()> {
    match db {
        Db::Sqlite(_) => db.batch("INSERT INTO search (search) VALUES ('optimize')"),
        Db::Postgres(_) => Ok(()),
    }
}

/// Indexes texts written by an older version; returns false if none is left.
fn enter_older(db: &mut Db) -> Result<bool> {
    let sql = "SELECT no FROM unsearched ORDER BY no LIMIT ?1";
    let numbers: Vec<i64> = db.all(sql, values![ENTERED_AT_ONCE])?;
    let Some((first, last)) = numbers.first().zip(numbers.last()) else { return Ok(false) };
    let between = values![*first, *last];
    let sql = format!(
        "SELECT c.no, {RECORD_COLUMNS} FROM {RECORD_TABLES} JOIN unsearched u ON u.no = c.no
        WHERE u.no BETWEEN ?1 AND ?2"
    );
    let text = |(no, stored): (i64, StoredRecord)| (no, fields_of_record(&stored.record));
    let records = db.all(&sql, between)?;
    let mut texts: BTreeMap<i64, [String; 3]> = records.into_iter().map(text).collect();
    let sql = "SELECT -m.no, m.body FROM unsearched u JOIN memories m ON m.no = -u.no
        WHERE u.no BETWEEN ?1 AND ?2";
    let memories: Vec<(i64, Memory)> = db.all(sql, between)?;
    let with_words = memories.iter().filter(|(_, memory)| has_own_words(memory));
    texts.extend(with_words.map(|(no, memory)| (*no, fields_of_memory(memory))));
    enter(db, &texts)?;
    db.run("DELETE FROM unsearched WHERE no BETWEEN ?1 AND ?2", between)?;
    Ok(true)
}

/// SQL fragments of a lookup for the current database.
pub(super) struct Lookup {
    from: String,
    /// Condition on `?1`, which is bound to [`Lookup::keys`].
    condition: String,
    score: String,
    keys: String,
    /// True if every text matches.
    is_of_all: bool,
}

impl Lookup {
    /// Looks up texts by `condition` alone, regardless of words.
    pub(super) fn numbered(from: &'static str, condition: String) -> Lookup {
        let (score, keys) = ("c.no".to_owned(), String::new());
        Lookup { from: from.to_owned(), condition, score, keys, is_of_all: false }
    }

    /// Looks up only the `most` best texts, before any filter.
    fn best(&self, most: u64) -> Lookup {
        let Lookup { condition, score, keys, .. } = self;
        let from = format!(
            "(SELECT search.rowid AS no, {score} AS score FROM search WHERE {condition}
                ORDER BY score DESC, no DESC LIMIT {most}) best JOIN records c ON c.no = best.no"
        );
        let (condition, score) = ("1 = 1".to_owned(), "best.score".to_owned());
        Lookup { from, condition, score, keys: keys.clone(), is_of_all: false }
    }

    /// Looks up texts with any of `keys`, given with their rarity; without keys all texts, newest first.
    fn of(db: &Db, keys: &[(u64, f64)]) -> Lookup {
        let from = "search JOIN records c ON c.no = search.rowid".to_owned();
        let listed = |mark: char, or: &str| {
            let each = keys.iter().map(|(key, _)| format!("{mark}{key:x}{mark}"));
            each.collect::<Vec<_>>().join(or)
        };
        if keys.is_empty() {
            return Lookup {
                is_of_all: true,
                ..Lookup::numbered("records c", "?1 = ''".to_owned())
            };
        }
        let [subject, reason, evidence] = WEIGHTS;
        match db {
            Db::Sqlite(_) => Lookup {
                from,
                condition: "search MATCH ?1".to_owned(),
                score: format!("-bm25(search, {subject:?}, {reason:?}, {evidence:?})"),
                keys: listed('"', " OR "),
                is_of_all: false,
            },
            Db::Postgres(_) => {
                let each = keys.iter().map(|(key, rarity)| {
                    format!("CASE WHEN search.words @@ '''{key:x}'''::tsquery THEN {rarity:?} ELSE 0 END")
                });
                Lookup {
                    from,
                    condition: "search.words @@ CAST(CAST(?1 AS text) AS tsquery)".to_owned(),
                    score: each.collect::<Vec<_>>().join(" + "),
                    keys: listed('\'', " | "),
                    is_of_all: false,
                }
            }
        }
    }
}

/// Returns the number of texts, and the number with each key, up to `most`.
fn frequencies(db: &mut Db, keys: &[u64], most: u64) -> Result<Frequencies> {
    let texts = db.one("SELECT coalesce(max(no), 0) FROM records", &[])?;
    let mut with = HashMap::with_capacity(keys.len());
    for key in keys {
        let lookup = Lookup::of(db, &[(*key, 1.0)]);
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM search WHERE {} LIMIT ?2) found",
            lookup.condition
        );
        let number = db.one(&sql, values![&lookup.keys, most])?;
        with.insert(*key, number);
    }
    Ok(Frequencies { texts, with })
}

/// Returns the rarest keys, with their rarity, that together match at most `most` texts.
fn rarest(frequencies: &Frequencies, most: u64) -> Vec<(u64, f64)> {
    let known = frequencies.with.iter().filter(|(_, with)| **with > 0);
    let mut found: Vec<(u64, u64)> = known.map(|(key, with)| (*with, *key)).collect();
    found.sort_unstable();
    let mut total = 0;
    let fits = |it: &(u64, u64)| {
        total += it.0;
        total == it.0 || total <= most
    };
    let rarity = |with: u64| (1.0 + frequencies.texts as f64 / with as f64).ln();
    found.into_iter().take_while(fits).map(|(with, key)| (key, rarity(with))).collect()
}

fn candidates(db: &mut Db, keys: &[u64], filter: &SearchFilter, limit: u32) -> Result<Candidates> {
    let most = MATCHES_MAX.min(u64::from(limit) * MATCHES_PER_CANDIDATE);
    let frequencies = frequencies(db, keys, most)?;
    let looked_up = rarest(&frequencies, most);
    if looked_up.is_empty() && !keys.is_empty() {
        return Ok(Candidates { frequencies, ..Candidates::default() });
    }
    let lookup = Lookup::of(db, &looked_up);
    let matches: u64 = looked_up.iter().filter_map(|(key, _)| frequencies.with.get(key)).sum();
    let best = u64::from(limit) * BEST_PER_CANDIDATE;
    let mut found = Vec::new();
    if best < matches {
        found = records(db, &lookup.best(best), filter, limit)?;
    }
    if found.len() < limit as usize {
        found = records(db, &lookup, filter, limit)?;
    }
    let records = found.into_iter().map(|(_, memory, stored)| (stored, memory)).collect();
    let memories = match filter.is_of_memories() {
        true => memories(db, &lookup, filter, limit)?,
        false => Vec::new(),
    };
    let memories = memories.into_iter().map(|(_, memory)| memory).collect();
    Ok(Candidates { frequencies, records, memories })
}

/// Condition for records of open memories, of which `enough` takes the first, and for those that may become some.
fn of_open(enough: &str) -> String {
    let of = |since: &str| {
        format!(
            "SELECT id FROM (SELECT m.id FROM memories m WHERE {IS_OPEN} AND {since}
                AND (m.namespace = ?3 OR ?3 IS NULL) {enough}) part"
        )
    };
    let [dated, undated] = ["m.since > 0", "m.since = 0"].map(of);
    format!(
        "c.no IN (SELECT c.no FROM ({dated} UNION ALL {undated}) m
                CROSS JOIN dispositions d CROSS JOIN records c
            WHERE d.memory = m.id AND d.withdrawn_no IS NULL AND d.undone_no IS NULL
                AND c.id = d.record
            UNION ALL SELECT c.no FROM records c WHERE {WAITS_OPEN})"
    )
}

pub(super) fn records(
    db: &mut Db,
    lookup: &Lookup,
    filter: &SearchFilter,
    limit: u32,
) -> Result<Vec<(i64, Option<Memory>, StoredRecord)>> {
    let at = match filter.undated {
        Undated::LeftOut => "coalesce(c.at, s.started_at)",
        Undated::ByReading => "coalesce(c.at, s.started_at, r.finished_at)",
        Undated::Included => "coalesce(c.at, s.started_at, ?5, ?6)",
        Undated::Only => {
            "CASE WHEN coalesce(c.at, s.started_at) IS NULL THEN coalesce(?5, ?6, c.at) END"
        }
    };
    let Lookup { from, condition, score, keys, is_of_all } = lookup;
    // Finds records of a time range by the index on their time.
    let of_days = match keys.is_empty() && filter.since.is_some() && filter.until.is_some() {
        true => "AND ((?5 <= c.at AND c.at <= ?6) OR c.at IS NULL)",
        false => "",
    };
    let is_oldest_first = filter.oldest_first && keys.is_empty();
    let (sign, direction) = if is_oldest_first { ("-", "ASC") } else { ("", "DESC") };
    // What has no time comes last.
    let no_time = if is_oldest_first { i64::MAX } else { 0 };
    let (joined, is_wanted) = match (filter.open, filter.failed) {
        (true, _) if *is_of_all => {
            // As many as are enough, if nothing else is asked of them.
            let is_any = filter.is_of_all() && filter.kind.is_none();
            let order = format!("ORDER BY m.since {direction}, m.no {direction} LIMIT ?11");
            ("", of_open(if is_any { &order } else { "" }))
        }
        (true, _) => (MEMORY_OF_RECORD, format!("({IS_OPEN} OR m.id IS NULL AND {WAITS_OPEN})")),
        (false, true) => ("", r#"c.body LIKE '%"succeeded":false%'"#.to_owned()),
        (false, false) => ("", "1 = 1".to_owned()),
    };
    let score = match *is_of_all {
        true => format!("coalesce(c.at, s.started_at, {no_time})"),
        false => score.clone(),
    };
    let found = |condition: &str, order: &str| {
        format!(
            r"SELECT c.no AS no, {sign}({score}) AS score FROM {from} JOIN runs r ON r.no = c.run_no
                JOIN sessions s ON s.no = r.session_no {joined}
            WHERE {condition} AND {is_wanted} AND r.current = 1 AND c.state <> 'replaced'
                AND (c.kind = ?2 OR ?2 IS NULL) AND (s.namespace = ?3 OR ?3 IS NULL)
                AND (s.format = ?4 OR ?4 IS NULL)
                AND (?5 <= {at} OR ?5 IS NULL) AND ({at} <= ?6 OR ?6 IS NULL) {of_days}
                AND (lower(s.native_id) LIKE ?7 ESCAPE '\' OR s.id BETWEEN ?8 AND ?9 OR ?7 IS NULL)
                AND (lower(s.path) LIKE ?10 ESCAPE '\' OR lower(c.body) LIKE ?10 ESCAPE '\'
                    OR lower(c.evidence) LIKE ?10 ESCAPE '\' OR ?10 IS NULL)
            ORDER BY {order} LIMIT ?11"
        )
    };
    let best = "score DESC, no DESC";
    let is_of_all = *is_of_all && filter.is_of_all() && filter.namespace.is_none();
    let found = if is_of_all && !filter.open && !is_oldest_first {
        // The index on their time leads to the latest; those without a time are few.
        let dated = found(&format!("{condition} AND c.at IS NOT NULL"), "c.at DESC, c.no DESC");
        let undated = found(&format!("{condition} AND c.at IS NULL"), best);
        format!(
            "SELECT no, score FROM (SELECT * FROM ({dated}) dated
                UNION ALL SELECT * FROM ({undated}) undated) either ORDER BY {best} LIMIT ?11"
        )
    } else {
        found(condition, best)
    };
    let sql = format!(
        "SELECT c.no, m.body, {RECORD_COLUMNS} FROM ({found}) f JOIN records c ON c.no = f.no
            JOIN runs r ON r.no = c.run_no
            JOIN sessions s ON s.no = r.session_no {MEMORY_OF_RECORD}
        ORDER BY coalesce(c.at, s.started_at, {no_time}) {direction}, c.no DESC"
    );
    let session = filter.session.as_deref();
    let named = session.map(|session| format!("{}%", literal(&session.to_lowercase())));
    let id: Option<IdPrefix> = session.and_then(|session| session.parse().ok());
    let (low, high) = id.as_ref().map(IdPrefix::bounds).unzip();
    let path = filter.path.as_deref().map(|path| format!("%{}%", literal(&path.to_lowercase())));
    let values = values![
        keys, filter.kind, &filter.namespace, filter.client, filter.since, filter.until, &named,
        low, high, &path, limit,
    ];
    db.all(&sql, values)
}

pub(super) fn memories(
    db: &mut Db,
    lookup: &Lookup,
    filter: &SearchFilter,
    limit: u32,
) -> Result<Vec<(i64, Memory)>> {
    let Lookup { condition, score, keys, .. } = lookup;
    let score = match (keys.is_empty(), filter.oldest_first) {
        (true, true) => "-m.no",
        (true, false) => "m.no",
        (false, _) => score,
    };
    let is_wanted = if filter.open { IS_OPEN } else { "1 = 1" };
    let sql = format!(
        "SELECT -m.no, m.body FROM search JOIN memories m ON m.no = -search.rowid
        WHERE {condition} AND {is_wanted} AND search.rowid < 0
            AND (m.namespace = ?2 OR ?2 IS NULL)
        ORDER BY {score} DESC, m.no DESC LIMIT ?3"
    );
    db.all(&sql, values![keys, &filter.namespace, limit])
}

impl Store {
    /// Returns the `limit` best matches of `keys` under a filter; without keys the newest.
    pub(crate) async fn candidates(
        &self,
        keys: Vec<u64>,
        filter: SearchFilter,
        limit: u32,
    ) -> StoreResult<Candidates> {
        let any = "SELECT no FROM unsearched LIMIT 1";
        if self.read("looking for texts of an older version", query(any, &[], Db::exists)).await? {
            while self.write("indexing words", enter_older).await? {}
        }
        if filter.open {
            self.enter_all().await?;
        }
        self.read("searching", move |from| candidates(from, &keys, &filter, limit)).await
    }
}
