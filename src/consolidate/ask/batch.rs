//! What a model is shown at once: records that were left open with the memories they may touch, under short ids that
//! mean nothing outside of the batch.

use super::super::{Memories, OpenPair};
use crate::domain::{
    Claim, Digest, LeftOpen, Memory, MemoryId, MemoryMap, Plan, Record, RecordId, Speaker,
    Timestamp, Tokens, estimate_tokens,
};
use crate::privacy::Redacted;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Tokens of records and memories in one batch: an answer to more of them loses some.
pub const BATCH_TOKENS_MAX: Tokens = 6_000;
/// Records in one batch.
pub const BATCH_RECORDS_MAX: usize = 20;
/// The longest record or memory that is shown, in bytes; a longer one is judged by nobody and stays open.
const SHOWN_BYTES_MAX: usize = 6_000;

/// Records under a memory that are named with an answer about it. The first ones gave it its words; a stored memory
/// that loses any of them changes, and the answer goes with that.
const SOURCES_MAX: usize = 64;

// One record with its memories always fits, in ASCII; in other scripts a batch may be a record.
const _: () = assert!(SHOWN_BYTES_MAX / 4 < BATCH_TOKENS_MAX as usize);

/// A record as it is offered.
#[derive(Clone, Debug)]
pub(super) struct Offered {
    pub(super) record: RecordId,
    /// The memories that it may touch, by their short ids.
    pub(super) targets: Vec<(String, MemoryId)>,
    /// The words of its evidence.
    pub(super) words: Vec<Redacted>,
}

/// Records and memories that are shown together.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The short ids are the places, from `R1`.
    pub(super) records: Vec<Offered>,
    about: BTreeSet<Digest>,
    pub(super) text: Redacted,
    /// What it was made of.
    pieces: Vec<(Record, Vec<Memory>)>,
}

impl Batch {
    /// The same records in two batches, for a model that reads no more; none of a single record.
    pub fn halves(&self) -> Option<[Batch; 2]> {
        let (first, second) = self.pieces.split_at(self.pieces.len() / 2);
        let half = |pieces: &[(Record, Vec<Memory>)]| {
            let mut draft = Draft::default();
            for (record, targets) in pieces {
                draft.add(record, &targets.iter().collect::<Vec<_>>());
            }
            draft.finish()
        };
        Some([half(first)?, half(second)?])
    }

    /// How many records it holds.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The ids of all records and memories that it shows words of, and of the records under those memories, which may
    /// not be stored yet.
    pub fn about(&self) -> Vec<Digest> {
        self.about.iter().copied().collect()
    }

    /// The pairs that are asked about.
    pub fn pairs(&self) -> impl Iterator<Item = (RecordId, MemoryId)> + '_ {
        let of = |it: &Offered| {
            let record = it.record;
            it.targets.iter().map(move |(_, memory)| (record, *memory)).collect::<Vec<_>>()
        };
        self.records.iter().flat_map(of)
    }
}

/// One line of a batch.
#[derive(Serialize)]
struct Shown<'a> {
    id: &'a str,
    kind: &'static str,
    by: Speaker,
    day: Option<String>,
    claim: &'a Claim,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    words: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    may_touch: Vec<&'a str>,
}

/// What `plan` left open, in batches; empty if nothing was. `records` and `memories` are those it was made of.
pub fn batches(plan: &Plan, records: &[Record], memories: &Memories) -> Vec<Batch> {
    offer((plan, records), &[], memories, &BTreeSet::new())
}

/// As [`batches`], after the pairs that earlier plans left `open`; leaves out those that were `asked` about already.
pub fn offer(
    (plan, records): (&Plan, &[Record]),
    earlier: &[OpenPair],
    memories: &Memories,
    asked: &BTreeSet<(RecordId, MemoryId)>,
) -> Vec<Batch> {
    let by_id: BTreeMap<RecordId, &Record> = records.iter().map(|it| (it.id, it)).collect();
    let after = plan.after();
    let mut open: BTreeMap<RecordId, Vec<&Memory>> = BTreeMap::new();
    let fresh = |left: &&LeftOpen| !asked.contains(&(left.record, left.memory));
    for left in plan.left_open.iter().filter(fresh) {
        if let Some(memory) = find(left.memory, &after, memories) {
            open.entry(left.record).or_default().push(memory);
        }
    }
    let mut again: Vec<(&Record, Vec<&Memory>)> = Vec::new();
    for pair in earlier.iter().filter(|it| !asked.contains(&(it.record.id, it.memory))) {
        let Some(memory) = find(pair.memory, &after, memories) else { continue };
        match again.last_mut().filter(|(record, _)| record.id == pair.record.id) {
            Some((_, targets)) => targets.push(memory),
            None => again.push((&pair.record, vec![memory])),
        }
    }
    let mut now = Vec::new();
    for operation in &plan.operations {
        let Some(record) = by_id.get(&operation.record) else { continue };
        now.extend(open.remove(&operation.record).map(|targets| (*record, targets)));
    }
    let mut batches = Vec::new();
    let mut draft = Draft::default();
    for (record, targets) in again.into_iter().chain(now) {
        if draft.is_full() {
            batches.extend(std::mem::take(&mut draft).finish());
        }
        draft.add(record, &targets);
    }
    batches.extend(draft.finish());
    batches
}

fn find<'a>(id: MemoryId, after: &'a MemoryMap, memories: &'a Memories) -> Option<&'a Memory> {
    after.get(&id).or_else(|| memories.get(id))
}

#[derive(Default)]
struct Draft {
    records: Vec<Offered>,
    /// Memories that are shown already, by their short ids.
    shown: BTreeMap<MemoryId, String>,
    about: BTreeSet<Digest>,
    text: String,
    tokens: Tokens,
    pieces: Vec<(Record, Vec<Memory>)>,
}

impl Draft {
    fn is_full(&self) -> bool {
        // A record and its memories come to a third of a batch at most, as a rule.
        self.records.len() == BATCH_RECORDS_MAX || self.tokens > BATCH_TOKENS_MAX / 3 * 2
    }

    fn add(&mut self, record: &Record, memories: &[&Memory]) {
        let short = format!("R{}", self.records.len() + 1);
        let (mut lines, mut fresh, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        for memory in memories {
            let (id, known) = match self.shown.get(&memory.id) {
                Some(id) => (id.clone(), true),
                None => (format!("M{}", self.shown.len() + fresh.len() + 1), false),
            };
            if !known {
                let Some(line) = line(&id, memory.said_by, memory.valid_from, memory) else {
                    continue;
                };
                lines.push(line);
                fresh.push((memory.id, id.clone()));
            }
            targets.push((id, memory.id));
        }
        let words: Vec<Redacted> = record.evidence.iter().map(|it| it.words.clone()).collect();
        let by = record.evidence.iter().map(|it| it.speaker).min().unwrap_or(Speaker::Web);
        let shown = Shown {
            id: &short,
            kind: record.claim.kind().name(),
            by,
            day: record.provenance.at.map(Timestamp::day),
            claim: &record.claim,
            stage: None,
            words: words.iter().map(Redacted::as_str).collect(),
            may_touch: targets.iter().map(|(id, _)| id.as_str()).collect(),
        };
        let Some(own) = render(&shown).filter(|_| !targets.is_empty()) else { return };
        lines.push(own);
        for line in lines {
            self.tokens = self.tokens.saturating_add(estimate_tokens(&line));
            self.text.push_str(&line);
            self.text.push('\n');
        }
        self.shown.extend(fresh);
        self.about.insert(record.id.0);
        for memory in memories {
            self.about.insert(memory.id.0);
            let rests_on = memory.sources.iter().take(SOURCES_MAX).map(|source| source.0);
            self.about.extend(rests_on);
        }
        self.records.push(Offered { record: record.id, targets, words });
        let memories = memories.iter().map(|memory| (*memory).clone());
        self.pieces.push((record.clone(), memories.collect()));
    }

    fn finish(self) -> Option<Batch> {
        // Claims and evidence come out of the store, where only what passed the gate is kept.
        let text = Redacted::reopened(self.text.trim_end().to_owned());
        (!self.records.is_empty()).then_some(Batch {
            records: self.records,
            about: self.about,
            text,
            pieces: self.pieces,
        })
    }
}

fn line(id: &str, by: Speaker, since: Option<Timestamp>, memory: &Memory) -> Option<String> {
    render(&Shown {
        id,
        kind: memory.claim.kind().name(),
        by,
        day: since.map(Timestamp::day),
        claim: &memory.claim,
        stage: Some(memory.stage.name()),
        words: Vec::new(),
        may_touch: Vec::new(),
    })
}

/// One line of JSON, so that no text can begin a line that looks like another record.
fn render(shown: &Shown<'_>) -> Option<String> {
    serde_json::to_string(shown).ok().filter(|line| line.len() <= SHOWN_BYTES_MAX)
}
