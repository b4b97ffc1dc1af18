//! Test helpers for intake: a conversation in a growing file, a store, a worker, and their invariants.

use super::batch::BATCH_BYTES_MAX;
use super::{
    DocumentError, EnqueueOptions, Enqueuer, Gather, IntakeReport, IntakeSource, SessionIntake,
};
use crate::config::Config;
use crate::domain::{Entry, Timestamp};
use crate::slicing::{Cutting, SliceCut, rebuild};
use crate::store::{ClaimRequest, JobEnding, OpenMode, Store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Time at which everything is handed over, and time at which all waits are over.
const HANDED_AT: Timestamp = Timestamp(1_000);
const MUCH_LATER: Timestamp = Timestamp(1_000_000);
/// Slices shorter than this wait.
const GATHER_TOKENS: u32 = 150;
const IDLE: Duration = Duration::from_secs(120);

/// A store in its own folder, an enqueuer, and a worker that asks no model.
pub(crate) struct IntakeFixture {
    folder: Arc<tempfile::TempDir>,
    pub(crate) store: Store,
    pub(crate) enqueuer: Arc<Enqueuer>,
    /// Slices that the worker got.
    pub(crate) worked: Vec<Cutting>,
}

/// Settings with short slices.
pub(crate) fn config() -> Config {
    let set = |name: &str, value: &str| (format!("ANNALIST__SLICE__{name}"), value.to_owned());
    Config::load(None, &[set("TOKENS", "400"), set("TOOL_TOKENS", "60")]).unwrap()
}

impl IntakeFixture {
    pub(crate) fn new() -> IntakeFixture {
        IntakeFixture::with_batches_of(BATCH_BYTES_MAX)
    }

    pub(crate) fn with_batches_of(batch_bytes_max: usize) -> IntakeFixture {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("s.db").display());
        let store = Store::open(&url, OpenMode::Create).unwrap();
        IntakeFixture::of(Arc::new(folder), store, batch_bytes_max)
    }

    /// The same folder, with another connection to the store.
    pub(crate) fn with_store(&self, store: Store) -> IntakeFixture {
        IntakeFixture::of(Arc::clone(&self.folder), store, self.enqueuer.batch_bytes_max)
    }

    fn of(folder: Arc<tempfile::TempDir>, store: Store, batch_bytes_max: usize) -> IntakeFixture {
        let gather = Gather { tokens: GATHER_TOKENS, idle: IDLE };
        let clock = || HANDED_AT;
        let mut enqueuer = Enqueuer::new(&config(), "small", gather, store.clone(), clock);
        enqueuer.batch_bytes_max = batch_bytes_max;
        IntakeFixture { folder, store, enqueuer: Arc::new(enqueuer), worked: Vec::new() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        #[expect(clippy::disallowed_methods, reason = "an input of a test need not be atomic")]
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// Enqueues a file or a folder.
    pub(crate) async fn take_in(&self, name: &str, flush: bool) -> IntakeReport {
        let how = EnqueueOptions { flush, ..EnqueueOptions::default() };
        let cancel = CancellationToken::new();
        let paths = IntakeSource::Paths(vec![self.path(name)]);
        Arc::clone(&self.enqueuer).enqueue_files(paths, how, cancel).await.unwrap()
    }

    /// Claims and finishes everything that is ready, with all waits over; returns the number of jobs.
    pub(crate) async fn work(&mut self) -> usize {
        let claim = ClaimRequest {
            batch: None,
            holder: "w".to_owned(),
            jobs_max: 10_000,
            until: Timestamp(MUCH_LATER.0 + 1),
            attempts_max: 3,
            now: MUCH_LATER,
        };
        let jobs = self.store.claim(claim).await.unwrap().jobs;
        let count = jobs.len();
        for claimed in jobs {
            let (session, entries) =
                self.store.work_of(claimed.session, &claimed.job).await.unwrap();
            let cut: SliceCut = serde_json::from_str(&claimed.job.cut).unwrap();
            let cutting = rebuild(session.id, &cut, &entries).unwrap();
            assert_eq!(cutting.slice.id, claimed.job.slice, "the slice is the one that was cut");
            self.worked.push(cutting);
            let done = self.store.finish(claimed.lease, None, JobEnding::Done, MUCH_LATER).await;
            assert_eq!(done.unwrap().staged, 0);
        }
        count
    }

    /// The entries of the only session.
    pub(crate) async fn entries(&self) -> Vec<Entry> {
        let status = self.store.status().await.unwrap();
        let [session] = status.sessions.as_slice() else { panic!("{:?}", status.sessions) };
        self.store.entries_of(session.session.id, 0..u32::MAX).await.unwrap()
    }

    /// Checks that the jobs cover every entry that a model reads, whole and once, and no other entry.
    #[track_caller]
    pub(crate) fn check_covered(&self, entries: &[Entry]) {
        let mut words: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
        for part in self.worked.iter().flat_map(|cutting| &cutting.slice.parts) {
            let end = part.entry_offset + part.span.len();
            words.entry(part.ordinal).or_default().push((part.entry_offset, end));
        }
        for entry in entries {
            let mut pieces = words.remove(&entry.ordinal).unwrap_or_default();
            pieces.sort_unstable();
            let mut reached = 0;
            for (start, end) in pieces {
                assert_eq!(
                    start, reached,
                    "entry {} stands there twice or not at all",
                    entry.ordinal
                );
                reached = end;
            }
            let expected = if entry.skip.is_some() { 0 } else { entry.text.len() };
            assert_eq!(reached, expected, "entry {}", entry.ordinal);
        }
        assert_eq!(words, BTreeMap::new(), "no job is about entries that are not there");
    }
}

/// One line of a conversation.
#[derive(Clone, Debug)]
pub(crate) enum TestEntry {
    Person(usize),
    Assistant(usize),
    Call,
    /// The result of the oldest open call.
    Result(usize),
    Context,
}

/// The conversation as Claude Code writes it, a line for each of `said`.
pub(crate) fn lines(session: &str, said: &[TestEntry]) -> Vec<String> {
    let mut calls = 0..0;
    let line = |(n, said): (usize, &TestEntry)| {
        let text = |words: usize| {
            let words: Vec<String> = (0..=words).map(|w| format!("word{n}-{w}")).collect();
            words.join(" ")
        };
        let (role, meta, content) = match said {
            TestEntry::Person(words) => ("user", false, json!(text(*words))),
            TestEntry::Context => ("user", true, json!(text(3))),
            TestEntry::Assistant(words) => {
                ("assistant", false, json!([{"type": "text", "text": text(*words)}]))
            }
            TestEntry::Call => {
                calls.end += 1;
                let (id, input) = (format!("call-{}", calls.end), json!({"command": text(2)}));
                let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": input});
                ("assistant", false, json!([call]))
            }
            TestEntry::Result(words) => {
                calls.start += 1;
                let id = format!("call-{}", calls.start);
                let result =
                    json!({"type": "tool_result", "tool_use_id": id, "content": text(*words)});
                ("user", false, json!([result]))
            }
        };
        record(session, n, (role, meta, content)).to_string() + "\n"
    };
    said.iter().enumerate().map(line).collect()
}

fn record(session: &str, n: usize, (role, meta, content): (&str, bool, Value)) -> Value {
    let uuid = |n: usize| format!("{session}-{n:06}");
    let parent = if n == 0 { Value::Null } else { json!(uuid(n - 1)) };
    json!({
        "parentUuid": parent, "isSidechain": false, "userType": "external", "isMeta": meta,
        "cwd": "/home/dev/roofs", "sessionId": session, "version": "2.1.0", "type": role,
        "message": {"id": format!("m{n}"), "type": "message", "role": role, "model": "none",
            "content": content},
        "uuid": uuid(n),
        "timestamp": format!("2026-05-04T{:02}:{:02}:{:02}.000Z", 6 + n / 3600, n / 60 % 60, n % 60),
    })
}

/// The same conversation as entries of documents.
pub(crate) fn entries(said: &[TestEntry]) -> Vec<Value> {
    let mut calls = 0..0;
    let entry = |(n, said): (usize, &TestEntry)| {
        let text = |words: usize| {
            let words: Vec<String> = (0..=words).map(|w| format!("word{n}-{w}")).collect();
            words.join(" ")
        };
        match said {
            TestEntry::Person(words) => json!({"speaker": "person", "text": text(*words)}),
            // Nothing that a model would read.
            TestEntry::Context => json!({"speaker": "client", "text": ""}),
            TestEntry::Assistant(words) => json!({"speaker": "assistant", "text": text(*words)}),
            TestEntry::Call => {
                calls.end += 1;
                json!({"speaker": "assistant", "kind": "tool_call", "text": text(2), "tool": "Bash",
                    "call_id": format!("call-{}", calls.end)})
            }
            TestEntry::Result(words) => {
                calls.start += 1;
                json!({"speaker": "tool", "kind": "tool_result", "text": text(*words),
                    "tool": "Bash", "call_id": format!("call-{}", calls.start)})
            }
        }
    };
    said.iter().enumerate().map(entry).collect()
}

/// A document of the session `one`.
pub(crate) fn document(from: Option<usize>, entries: &[Value], closed: bool) -> Vec<u8> {
    let mut document = json!({"session": "one", "closed": closed, "entries": entries});
    if let Some(from) = from {
        document["from"] = json!(from);
    }
    document.to_string().into_bytes()
}

impl IntakeFixture {
    /// Enqueues a document.
    pub(crate) async fn hand(&self, document: &[u8]) -> Result<SessionIntake, DocumentError> {
        let how = EnqueueOptions::default();
        let document = self.enqueuer.open(document, "here", &how).unwrap();
        self.enqueuer.document(document, &how).await
    }
}
