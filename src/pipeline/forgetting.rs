//! Forgets by source: erases everything derived from a session or a record, then proves that no words are left.

use super::blocking;
use super::consolidating::Consolidator;
use crate::consolidate::forget;
use crate::domain::{Change, MemoryId, MemoryMap, Plan, Record, RecordId, RecordState, SessionId};
use crate::memory_dir::record_tag;
use crate::store::{
    Erased, Erasure, PrefixLookup, RecordFilter, StoreResult, StoredText, place_in_words,
};
use crate::text::phrase::count;
use aho_corasick::AhoCorasick;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Minimum length of a passage, in characters; shorter ones occur everywhere.
const PASSAGE_LETTERS_MIN: usize = 16;
/// Maximum length of a passage; longer ones are truncated.
const PASSAGE_LETTERS_MAX: usize = 120;
const PASSAGES_MAX: usize = 50_000;
/// Entries per read.
const PAGE_ENTRIES: u32 = 1_000;

/// Maximum total size of a namespace's plans that a preview reads, in bytes.
const PREVIEW_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Minimum length of an id prefix, because forgetting cannot be undone.
const ID_LETTERS_MIN: usize = 4;

/// Rejects an id prefix that is too short to be deliberate; the whole id always passes.
pub(crate) fn check_meant(given: &str, whole: &str) -> Result<(), String> {
    match given == whole || given.chars().count() >= ID_LETTERS_MIN {
        true => Ok(()),
        false => Err(format!(
            "`{given}`: expected an ID prefix of at least {ID_LETTERS_MIN} characters, because \
             forgetting is permanent"
        )),
    }
}

#[derive(Clone, Debug)]
pub(crate) enum ForgetTarget {
    Session(SessionId),
    /// One record. The conversation that it comes from stays.
    Record(RecordId),
    Namespace,
}

#[derive(Clone, Debug)]
pub(crate) struct ForgetPlan {
    pub namespace: String,
    pub erasure: Erasure,
    /// Numbers of what would be erased.
    pub erasable: Erased,
    /// True if the changes include what follows for memories that do not rest on the records themselves.
    pub is_whole: bool,
}

impl ForgetPlan {
    pub(crate) fn is_empty(&self) -> bool {
        self.erasure.sessions.is_empty() && self.erasure.records.is_empty()
    }
}

/// Sessions and records of a [`ForgetTarget`], and passages of their text, to search for once they are erased.
#[derive(Default)]
struct Sources {
    sessions: Vec<SessionId>,
    records: BTreeSet<RecordId>,
    passages: BTreeSet<String>,
}

impl Sources {
    fn add(&mut self, record: &Record) {
        let fields = record.claim.strings().into_iter().map(|(_, text)| text);
        let quotes = record.evidence.iter().map(|it| it.words.as_str());
        fields.chain(quotes).for_each(|text| collect_passages(text, &mut self.passages));
        // Retrospectives rephrase records but cite their tags.
        self.passages.insert(record_tag(record.id));
        self.records.insert(record.id);
    }

    fn erasure(self, state: &MemoryMap, plans: &[Plan]) -> Erasure {
        let forgotten = forget(&self.records, state, plans);
        let (changes, plans) = (forgotten.changes, forgotten.plans);
        let records = self.records.into_iter().collect();
        Erasure { sessions: self.sessions, records, changes, plans }
    }
}

/// Counts, changes and passages of an erasure, before the search for the passages.
pub(super) struct ErasedSources {
    pub(super) erased: Erased,
    pub(super) changes: Vec<Change>,
    pub(super) passages: BTreeSet<String>,
}

#[derive(Debug)]
pub(crate) enum Forgotten<T> {
    Done(T),
    Busy,
    /// These memories changed meanwhile; nothing was erased.
    Moved(Vec<MemoryId>),
}

/// A search for what was erased.
#[derive(schemars::JsonSchema, Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[schemars(rename = "Proof")]
pub(crate) struct ErasureProof {
    /// Passages that were looked for.
    pub passages: usize,
    /// Texts that were looked at.
    pub texts: u64,
    /// Number of remaining texts with such a passage, by table: others said the same.
    pub left: BTreeMap<&'static str, u64>,
    /// The store's file still contains erased text, because other processes read it.
    pub unscrubbed: bool,
    /// The files of directories among them: a person's words, or what they hid, stay.
    pub files: Vec<String>,
}

impl Consolidator {
    /// Finds everything that [`Consolidator::forget`] would erase; changes nothing. With many plans, only memories that
    /// rest on the records, their successors and predecessors.
    pub(crate) async fn preview_forgetting(
        &self,
        namespace: &str,
        target: &ForgetTarget,
    ) -> StoreResult<ForgetPlan> {
        let store = &self.store;
        let sources = self.sources(namespace, target).await?;
        let is_whole = store.plan_bytes(namespace).await? <= PREVIEW_BYTES_MAX;
        let erasure = match is_whole {
            true => self.erasure(namespace, sources).await?,
            false => {
                let near = store.memories_near(sources.records.clone()).await?;
                sources.erasure(&near, &[])
            }
        };
        let erasable = store.count_erasable(erasure.clone()).await?;
        Ok(ForgetPlan { namespace: namespace.to_owned(), erasure, erasable, is_whole })
    }

    async fn sources(&self, namespace: &str, target: &ForgetTarget) -> StoreResult<Sources> {
        let store = &self.store;
        let mut sources = Sources::default();
        match target {
            ForgetTarget::Session(session) => sources.sessions.push(*session),
            ForgetTarget::Namespace => sources.sessions = store.sessions_of(namespace).await?,
            ForgetTarget::Record(record) => {
                if let PrefixLookup::One(page) = store.record(record.0.into()).await? {
                    sources.add(&page.stored.record);
                }
            }
        }
        for session in sources.sessions.clone() {
            let filter = RecordFilter {
                session: Some(session.0.into()),
                states: RecordState::ALL.to_vec(),
                ..RecordFilter::default()
            };
            store.records(filter).await?.iter().for_each(|it| sources.add(&it.record));
        }
        Ok(sources)
    }

    async fn erasure(&self, namespace: &str, sources: Sources) -> StoreResult<Erasure> {
        let state = self.store.memories(Some(namespace)).await?;
        let plans = self.standing_plans(namespace).await?;
        Ok(blocking(move || sources.erasure(&state, &plans)).await)
    }

    /// Erases `target`. The caller then syncs the directories of the namespace and calls [`Consolidator::prove`].
    pub(super) async fn forget(
        &self,
        namespace: &str,
        target: &ForgetTarget,
    ) -> StoreResult<Forgotten<ErasedSources>> {
        let Some(held) = self.hold(namespace).await? else { return Ok(Forgotten::Busy) };
        let erased = async {
            let mut sources = self.sources(namespace, target).await?;
            for session in sources.sessions.clone() {
                self.note_entries(session, &mut sources.passages).await?;
            }
            let passages = std::mem::take(&mut sources.passages);
            let erasure = self.erasure(namespace, sources).await?;
            let changes = erasure.changes.clone();
            Ok(match self.store.erase(&held.lease, erasure, (self.clock)()).await? {
                Ok(erased) => Forgotten::Done(ErasedSources { erased, changes, passages }),
                Err(moved) => Forgotten::Moved(moved),
            })
        };
        let erased = erased.await;
        held.release(None).await?;
        erased
    }

    /// Scrubs erased text from the store's file, then searches every text of the store and `files` (path, text) for
    /// its passages.
    pub(crate) async fn prove(
        &self,
        passages: BTreeSet<String>,
        files: &[(String, Arc<str>)],
    ) -> StoreResult<ErasureProof> {
        let unscrubbed = !self.store.scrub().await?;
        let mut proof =
            ErasureProof { passages: passages.len(), unscrubbed, ..ErasureProof::default() };
        let finder = AhoCorasick::new(&passages);
        let is_left = move |text: &str| match &finder {
            Ok(finder) => finder.is_match(text),
            // Too many passages for one automaton.
            Err(_) => passages.iter().any(|it| text.contains(it.as_str())),
        };
        for (path, text) in files {
            let is_left = is_left(text);
            proof.count("files", is_left);
            if is_left {
                proof.files.push(path.clone());
            }
        }
        let count = move |proof: &mut ErasureProof, text: StoredText<'_>| {
            proof.count(text.place, is_left(text.text));
        };
        self.store.each_text(proof, count).await
    }

    async fn note_entries(
        &self,
        session: SessionId,
        passages: &mut BTreeSet<String>,
    ) -> StoreResult<()> {
        let mut from = 0_u32;
        // Terminates: ordinals have no gaps, so an empty page is the end.
        loop {
            let to = from.saturating_add(PAGE_ENTRIES);
            let entries = self.store.entries_of(session, from..to).await?;
            if entries.is_empty() {
                return Ok(());
            }
            for entry in &entries {
                collect_passages(entry.text.as_str(), passages);
            }
            from = to;
        }
    }
}

impl ErasureProof {
    /// Numbers of remaining texts, each with its place.
    pub(crate) fn left_in_words(&self) -> impl Iterator<Item = String> + '_ {
        let words = |(place, number): (&&'static str, &u64)| {
            format!("{} in {}", count(*number), place_in_words(place))
        };
        self.left.iter().map(words)
    }

    fn count(&mut self, place: &'static str, is_left: bool) {
        self.texts += 1;
        if is_left {
            *self.left.entry(place).or_default() += 1;
        }
    }
}

/// Consequence for a memory, in words.
pub(crate) fn becomes(change: &Change) -> &'static str {
    match (&change.before, &change.after) {
        (_, None) => "is erased",
        (Some(before), Some(after)) if before.state != after.state => "is active again",
        (_, Some(_)) => "is rebuilt",
    }
}

/// Collects the longest stretch of `text` that needs no JSON escape, if it is long enough.
fn collect_passages(text: &str, passages: &mut BTreeSet<String>) {
    let plain = |c: char| c == '"' || c == '\\' || c.is_control();
    let longest = text.split(plain).map(str::trim).max_by_key(|piece| piece.len());
    let Some(piece) = longest else { return };
    let letters: String = piece.chars().take(PASSAGE_LETTERS_MAX).collect();
    if PASSAGE_LETTERS_MIN <= letters.chars().count() && passages.len() < PASSAGES_MAX {
        passages.insert(letters);
    }
}
