//! A conversation about a pump and stores to keep it in, for the tests of `store`.

pub(super) mod server;

use super::db::Db;
use super::*;
use crate::domain::*;
use crate::domain::{
    Attempt, Branch, Claim, CoverageState, EntryKind, Evidence, Format, Match, Provenance, Record,
    RecordState, RunState, SliceId, Speaker, Usage,
};
use crate::privacy::{Redacted, Report};

/// Runs a test on each available kind of store.
#[expect(clippy::print_stdout, reason = "shown where the rule does not hold")]
pub(super) async fn on_each_store(rule: impl AsyncFn(Kind)) {
    let mut kinds = vec![Kind::Sqlite];
    kinds.extend(server::url().map(|_| Kind::Postgres));
    for kind in kinds {
        println!("on {kind:?}");
        rule(kind).await;
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    /// Creates a location for an isolated store.
    pub(super) fn place(self) -> Place {
        match self {
            Kind::Sqlite => Place::Folder(tempfile::tempdir().unwrap()),
            Kind::Postgres => Place::Schema(server::Schema::new(server::url().unwrap())),
        }
    }

    /// Creates an isolated store with one session.
    pub(super) async fn begun(self) -> (Place, Store, Session) {
        let place = self.place();
        let store = Store::open(&place.url(), OpenMode::Create).unwrap();
        let session = conversation("one");
        begin(&store, &session).await.unwrap();
        (place, store, session)
    }
}

/// Location of a store, deleted on drop.
pub(super) enum Place {
    Folder(tempfile::TempDir),
    Schema(server::Schema),
}

impl Place {
    pub(super) fn url(&self) -> String {
        match self {
            Place::Folder(folder) => format!("sqlite:{}", folder.path().join("s.db").display()),
            Place::Schema(schema) => schema.url(),
        }
    }
}

/// Creates a store in a temporary folder with one session, for tests that need a file.
pub(super) async fn begun() -> (tempfile::TempDir, Store, Session) {
    let (place, store, session) = Kind::Sqlite.begun().await;
    let Place::Folder(folder) = place else { unreachable!() };
    (folder, store, session)
}

/// Adds a session, as the first part of a batch does.
pub(super) async fn begin(store: &Store, session: &Session) -> Result<(), StoreError> {
    let session = session.clone();
    store.write("beginning a session", move |db| session::begin(db, &session).map(drop)).await
}

/// Stages a run and writes its entries, which are normally stored before the job is claimed.
pub(super) async fn stage(store: &Store, staging: Staging) -> Result<Staged, StoreError> {
    let stage = move |db: &mut Db| {
        let no = session::number(db, staging.run.session)?;
        entry::write_texts(db, no, staging.entries.iter().map(|it| &it.entry))?;
        staging::stage(db, &staging)
    };
    store.write("staging a slice", stage).await
}

/// Stores an entry that belongs to no slice.
pub(super) async fn skip(store: &Store, session: &Session, ordinal: u32) {
    let id = session.id;
    let skip = move |db: &mut Db| {
        let no = session::number(db, id)?;
        entry::write(db, no, &[Entry { skip: Some(Skip::Empty), ..entry(ordinal) }])
    };
    store.write("skipping an entry", skip).await.unwrap();
}

pub(super) async fn spent(
    store: &Store,
    since: Timestamp,
    namespace: Option<&str>,
    session: Option<SessionId>,
) -> Result<Spent, StoreError> {
    let namespace = namespace.map(str::to_owned);
    let read = move |db: &mut Db| run::spent(db, since, namespace.as_deref(), session);
    store.read("adding up what was spent", read).await
}

pub(super) fn words(text: &str) -> Redacted {
    Redacted::reopened(text.to_owned())
}

pub(super) fn conversation(name: &str) -> Session {
    Session {
        id: Session::id_of("project", Format::Codex, name),
        namespace: "project".to_owned(),
        format: Format::Codex,
        native_id: words(name),
        path: format!("{name}.jsonl"),
        title: Some(words("Mending the pump")),
        cwd: None,
        parent: None,
        branches: None,
        started_at: Some(Timestamp(1_000)),
    }
}

pub(super) fn entry(ordinal: u32) -> Entry {
    Entry {
        ordinal,
        line: ordinal + 1,
        native_id: Some(words(&format!("n{ordinal}"))),
        speaker: Speaker::Tool,
        kind: EntryKind::ToolResult,
        branch: Branch::Active,
        text: words(&format!("the pump of line {ordinal} runs")),
        tool: Some(crate::domain::Tool { name: words("shell"), call_id: Some(words("c1")) }),
        outcome: Some(crate::domain::Outcome::Failed),
        exit_code: Some(-1),
        at: Some(Timestamp(2_000 + i64::from(ordinal))),
        skip: None,
    }
}

pub(super) fn covered(ordinal: u32, state: CoverageState) -> CoveredEntry {
    CoveredEntry { entry: entry(ordinal), state, reason: None }
}

/// Returns a run of ten entries starting at `first`, with one record per claim.
pub(super) fn staging(session: &Session, name: &str, first: u32, claims: &[&str]) -> Staging {
    let slice = SliceId(Digest::of(&[name, "slice"]));
    let id = RunId(Digest::of(&[name]));
    let last = first + 9;
    let record = |claim: &&str| {
        let action = (*claim).to_owned();
        let claim =
            Claim::Attempt(Attempt { action, result: "it ran".to_owned(), succeeded: true });
        let proof = Evidence {
            field: "action".to_owned(),
            ordinal: first,
            line: first + 1,
            bytes: 4..8,
            speaker: Speaker::Person,
            name: None,
            found: Match::Folded,
            words: words("pu\"mp"),
        };
        Record {
            id: Record::id_of(id, &claim),
            claim,
            provenance: Provenance {
                namespace: session.namespace.clone(),
                session: session.id,
                slice,
                run: id,
                entries: (first, last),
                at: Some(Timestamp(2_000 + i64::from(first))),
            },
            evidence: vec![proof],
            score: 0.75,
            state: RecordState::Staged,
            reason: None,
        }
    };
    let run = Run {
        id,
        session: session.id,
        slice,
        index: first / 10,
        first: (first, 0),
        last: (last, 0),
        asking: Digest::of(&["asking"]),
        model: "small".to_owned(),
        prompt_id: "extract".to_owned(),
        prompt_version: 3,
        prompt_digest: None,
        schema_version: 1,
        rung: OutputMode::ForcedTool,
        generation: 0,
        asks: 2,
        calls: 1,
        usage: Usage { prompt_tokens: 100, cached_tokens: 50, completion_tokens: 10 },
        cost_micros: 7,
        state: RunState::Done,
        failure: None,
        findings: vec![],
        started_at: Timestamp(5_000),
        finished_at: Timestamp(6_000),
    };
    let entries = (first..=last).map(|ordinal| covered(ordinal, CoverageState::Nothing)).collect();
    Staging { run, entries, records: claims.iter().map(record).collect() }
}

pub(super) fn failed(mut staging: Staging) -> Staging {
    staging.run.state = RunState::Failed;
    staging.run.failure =
        Some(RunFailure { kind: "too-long".to_owned(), detail: "cut it".to_owned() });
    staging.records.clear();
    staging.entries.iter_mut().for_each(|covered| covered.state = CoverageState::Failed);
    staging
}

pub(super) fn ended(entries: u32, runs: &[&Staging]) -> SessionEnd {
    SessionEnd {
        entries,
        findings: vec![],
        masked: Report::default(),
        is_copy: false,
        runs: runs.iter().map(|staging| staging.run.id).collect(),
        at: Timestamp(9_000),
    }
}
