//! Forgets by source: finds out what rests on a session or a record, erases it, and looks whether any of its
//! words are left.

use super::consolidating::Consolidator;
use crate::consolidate::forget;
use crate::domain::{Change, MemoryId, Plan, Record, RecordId, RecordState, SessionId};
use crate::edge::store::{Erased, Erasure, Found, Looked, RecordFilter, StoreError, Tenure};
use crate::memory_dir::record_tag;
use aho_corasick::AhoCorasick;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The shortest passage that is looked for, in letters: shorter ones stand everywhere.
const PASSAGE_LETTERS_MIN: usize = 16;
/// Of a longer one so many are looked for.
const PASSAGE_LETTERS_MAX: usize = 120;
/// Passages that are looked for.
const PASSAGES_MAX: usize = 50_000;
/// Stored entries that are read at once.
const PAGE_ENTRIES: u32 = 1_000;

/// What is to be forgotten.
#[derive(Clone, Debug)]
pub enum What {
    /// One conversation.
    Session(SessionId),
    /// One record. The conversation that it comes from stays.
    Record(RecordId),
    /// All conversations of the namespace.
    Namespace,
}

/// What forgetting comes to.
#[derive(Clone, Debug)]
pub struct Forgetting {
    /// Whose memory it was.
    pub namespace: String,
    /// Conversations that go.
    pub sessions: Vec<SessionId>,
    /// Records that go.
    pub records: Vec<RecordId>,
    /// What becomes of memories.
    pub changes: Vec<Change>,
    plans: Vec<Plan>,
    /// Words of what goes, to look for afterwards.
    passages: BTreeSet<String>,
}

/// How forgetting ended.
#[derive(Debug)]
pub enum Forgot {
    /// It is gone; these are words of it to look for, once directories are in step.
    Done(Erased, Passages),
    /// Somebody else changes the memory of the namespace.
    Busy,
    /// These memories changed meanwhile; nothing was erased.
    Moved(Vec<MemoryId>),
}

/// Words of what was erased.
#[derive(Clone, Debug, Default)]
pub struct Passages(BTreeSet<String>);

/// A search for what was erased.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Proof {
    /// Passages that were looked for.
    pub passages: usize,
    /// Texts that were looked at.
    pub texts: u64,
    /// Texts that hold such a passage, by where they stand: others said the same.
    pub left: BTreeMap<&'static str, u64>,
    /// The files of directories among them: a person's words, or what they hid, stay.
    pub files: Vec<String>,
}

impl Consolidator {
    /// Finds out what goes with `what` in `namespace`; changes nothing.
    ///
    /// # Errors
    /// The store's.
    pub async fn forgetting(&self, namespace: &str, what: &What) -> Result<Forgetting, StoreError> {
        let store = &self.store;
        let sessions = match what {
            What::Session(session) => vec![*session],
            What::Record(_) => Vec::new(),
            What::Namespace => store.sessions_of(namespace).await?,
        };
        let (mut records, mut passages) = (BTreeSet::new(), BTreeSet::new());
        for session in &sessions {
            self.heard(*session, &mut passages).await?;
            let filter = RecordFilter {
                session: Some(session.0.into()),
                states: RecordState::ALL.to_vec(),
                ..RecordFilter::default()
            };
            for stored in store.records(filter).await? {
                claimed(&stored.record, &mut passages);
                records.insert(stored.record.id);
            }
        }
        if let What::Record(record) = what {
            if let Found::One(page) = store.record(record.0.into()).await? {
                claimed(&page.stored.record, &mut passages);
            }
            records.insert(*record);
        }
        // A retrospective says in other words what they said.
        passages.extend(records.iter().map(|record: &RecordId| record_tag(*record)));
        let state = store.memories(Some(namespace)).await?;
        let plans = store.plans(Some(namespace)).await?.into_iter();
        let standing: Vec<Plan> =
            plans.filter(|it| it.undone_at.is_none()).map(|it| it.plan).collect();
        let forgotten = forget(&records, &state, &standing);
        Ok(Forgetting {
            namespace: namespace.to_owned(),
            sessions,
            records: records.into_iter().collect(),
            changes: forgotten.changes,
            plans: forgotten.plans,
            passages,
        })
    }

    /// Erases it. A directory that shows memories of the namespace is brought in step by its keeper, and then
    /// [`Consolidator::prove`] looks for what is left.
    ///
    /// # Errors
    /// The store's.
    pub async fn forget(&self, namespace: &str, what: &What) -> Result<Forgot, StoreError> {
        let Some(held) = self.hold(namespace).await? else { return Ok(Forgot::Busy) };
        let erased = self.erase(&held.tenure, what).await;
        held.leave(None).await?;
        let (erased, passages) = match erased? {
            Ok(erased) => erased,
            Err(moved) => return Ok(Forgot::Moved(moved)),
        };
        Ok(Forgot::Done(erased, Passages(passages)))
    }

    /// Takes what was erased out of the store's file, and looks for words of it in every text of the store
    /// and in `files`, which are paths and what stands there.
    ///
    /// # Errors
    /// The store's.
    pub async fn prove(
        &self,
        passages: Passages,
        files: &[(String, String)],
    ) -> Result<Proof, StoreError> {
        self.store.scrub().await?;
        let mut proof = Proof { passages: passages.0.len(), ..Proof::default() };
        let finder = Finder::new(passages);
        for (path, text) in files {
            if proof.look(&finder, Looked { place: "files", text }) {
                proof.files.push(path.clone());
            }
        }
        let look = move |proof: &mut Proof, looked: Looked<'_>| {
            proof.look(&finder, looked);
        };
        self.store.each_text(proof, look).await
    }

    async fn erase(
        &self,
        tenure: &Tenure,
        what: &What,
    ) -> Result<Result<(Erased, BTreeSet<String>), Vec<MemoryId>>, StoreError> {
        let found = self.forgetting(&tenure.namespace, what).await?;
        let Forgetting { sessions, records, changes, plans, passages, .. } = found;
        let erasure = Erasure { sessions, records, changes, plans };
        let erased = self.store.erase(tenure, erasure, (self.clock)()).await?;
        Ok(erased.map(|erased| (erased, passages)))
    }

    /// Words of the entries of a session.
    async fn heard(
        &self,
        session: SessionId,
        passages: &mut BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let mut from = 0_u32;
        // Ends with the session: ordinals have no gaps.
        loop {
            let to = from.saturating_add(PAGE_ENTRIES);
            let entries = self.store.entries_of(session, from..to).await?;
            if entries.is_empty() {
                return Ok(());
            }
            for entry in &entries {
                note(entry.text.as_str(), passages);
            }
            from = to;
        }
    }
}

/// Looks for passages: at once, or where they are too many for that one after another.
enum Finder {
    AtOnce(AhoCorasick),
    OneByOne(Passages),
}

impl Finder {
    fn new(passages: Passages) -> Finder {
        AhoCorasick::new(&passages.0).map_or(Finder::OneByOne(passages), Finder::AtOnce)
    }

    fn is_in(&self, text: &str) -> bool {
        match self {
            Finder::AtOnce(finder) => finder.is_match(text),
            Finder::OneByOne(passages) => passages.0.iter().any(|it| text.contains(it.as_str())),
        }
    }
}

impl Proof {
    /// Says whether something is left there.
    fn look(&mut self, finder: &Finder, looked: Looked<'_>) -> bool {
        self.texts += 1;
        let is_left = finder.is_in(looked.text);
        if is_left {
            *self.left.entry(looked.place).or_default() += 1;
        }
        is_left
    }
}

/// Words of a record: its claim and what it rests on.
fn claimed(record: &Record, passages: &mut BTreeSet<String>) {
    for (_, text) in record.claim.strings() {
        note(text, passages);
    }
    for evidence in &record.evidence {
        note(evidence.words.as_str(), passages);
    }
}

/// Notes the longest stretch of `text` that is the same in JSON, if it is long enough to be of one's own.
fn note(text: &str, passages: &mut BTreeSet<String>) {
    let plain = |c: char| c == '"' || c == '\\' || c.is_control();
    let longest = text.split(plain).map(str::trim).max_by_key(|piece| piece.len());
    let Some(piece) = longest else { return };
    let letters: String = piece.chars().take(PASSAGE_LETTERS_MAX).collect();
    if PASSAGE_LETTERS_MIN <= letters.chars().count() && passages.len() < PASSAGES_MAX {
        passages.insert(letters);
    }
}
