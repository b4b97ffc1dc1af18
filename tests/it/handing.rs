//! Slices in the queue of a place, handed over through the library, and the queue looked at.

use super::input::talk;
use super::place::Place;
use annalist::{Branch, Digest, Entry, EntryKind, Format, Job, JobId, Session, Speaker, Timestamp};
use annalist::{Cutting, SliceSettings, Slicer};
use annalist::{Gate, Redacted, RedactionReport};
use annalist::{Intake, OpenMode, SessionProgress, Store};
use std::collections::BTreeSet;
use std::future::Future;
use std::ops::Range;

/// A session that is handed over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handed<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) priority: i32,
    /// Longest slice, in tokens.
    pub(crate) slice: u32,
}

/// A session of short slices.
pub(crate) const ONE: Handed<'static> =
    Handed { namespace: "roofs", name: "one", priority: 0, slice: 400 };

impl Handed<'_> {
    /// Puts the slices of `talks` into the queue; gives how many there are.
    pub(crate) fn enqueue(self, place: &Place, talks: Range<usize>) -> usize {
        let gate = Gate::new(&[]);
        let native_id = gate.redact(self.name);
        let id = Session::id_of(self.namespace, Format::Plain, self.name);
        let session = Session {
            id,
            namespace: self.namespace.to_owned(),
            format: Format::Plain,
            native_id,
            path: format!("{}.txt", self.name),
            title: None,
            cwd: None,
            parent: None,
            branches: None,
            started_at: Some(Timestamp(1_000)),
        };
        let words = talks.flat_map(talk);
        let entries: Vec<Entry> =
            (0..).zip(words).map(|(at, words)| entry(at, gate.redact(&words))).collect();
        let settings = SliceSettings { tokens: self.slice, tool_tokens: 100 };
        let mut slicer = Slicer::new(id, settings, BTreeSet::new());
        let mut cut: Vec<Cutting> =
            entries.iter().flat_map(|entry| slicer.push(entry.clone())).collect();
        cut.extend(slicer.finish());
        let intake = Intake {
            session,
            growth: SessionProgress::default(),
            anew: None,
            goes_on: false,
            known: entries.len() as u32,
            entries,
            jobs: cut.iter().map(job).collect(),
            gathering: None,
            priority: self.priority,
            document: None,
            findings: vec![],
            masked: RedactionReport::default(),
            remembered: None,
            at: Timestamp(1_000),
        };
        let jobs = intake.jobs.len();
        in_store(place, |store| async move { store.enqueue(intake).await.unwrap() });
        jobs
    }
}

/// Does `work` on the store of a place, and closes it.
pub(crate) fn in_store<F: Future>(place: &Place, work: impl FnOnce(Store) -> F) -> F::Output {
    let url = format!("sqlite:{}", place.database().display());
    let store = Store::open(&url, OpenMode::Create).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work(store))
}

fn entry(ordinal: u32, text: Redacted) -> Entry {
    let person = ordinal.is_multiple_of(2);
    Entry {
        ordinal,
        line: ordinal + 1,
        native_id: None,
        speaker: if person { Speaker::Person } else { Speaker::Assistant },
        kind: if person { EntryKind::Prompt } else { EntryKind::Text },
        branch: Branch::Active,
        text,
        tool: None,
        outcome: None,
        exit_code: None,
        at: None,
        skip: None,
    }
}

fn job(cutting: &Cutting) -> Job {
    let slice = &cutting.slice;
    let place = |part: Option<&annalist::Part>| part.map(|it| (it.ordinal, it.part)).unwrap();
    let (first, last) = (place(slice.parts.first()), place(slice.parts.last()));
    assert_eq!((first.1, last.1), (0, 0), "whole entries");
    Job {
        id: JobId(Digest::of(&["job", &slice.id.to_string()])),
        slice: slice.id,
        index: slice.index,
        first,
        last,
        tokens: slice.tokens,
        cut: format!("[{},[[{},{}]]]", slice.index, first.0, last.0),
        context: None,
    }
}

impl Place {
    /// SliceSettings for a worker at an endpoint, with short leases.
    pub(crate) fn with_worker(url: &str) -> Place {
        let mut place = Place::with_endpoint(url);
        place.set("ANNALIST__QUEUE__LEASE_SECS", "2");
        place
    }

    /// How many jobs are in `state`.
    pub(crate) fn jobs_in(&self, state: &str) -> i64 {
        self.number(&format!("SELECT count(*) FROM jobs WHERE state = '{state}'"))
    }

    /// Every entry is accounted for, and each record is there once: one for each talk.
    #[track_caller]
    pub(crate) fn is_whole(&self, talks: usize) {
        let status = self.json(&["status", "--json"]);
        for session in status["sessions"].as_array().unwrap() {
            super::place::balanced(session);
        }
        let pending = "SELECT count(*) FROM entries WHERE NOT EXISTS (
            SELECT 1 FROM coverage c WHERE (c.session_no << 32) | c.ordinal = entries.place)";
        assert_eq!(self.number(pending), 0, "entries that nothing is said of");
        let records = self.export();
        let staged = records.iter().filter(|line| line.contains(r#""state":"staged""#)).count();
        assert_eq!(staged, talks, "{records:?}");
    }
}
