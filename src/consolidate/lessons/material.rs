//! What a model is shown to look back at: records, conversation by conversation, under short ids that mean nothing
//! outside of the batch.

use super::ground::Ground;
use crate::domain::{
    Claim, Digest, Record, RecordId, RecordState, SessionId, Speaker, Timestamp, Tokens,
    estimate_tokens,
};
use crate::privacy::{Gate, Redacted};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Tokens of records in one batch: lessons of more of them are lessons of the first ones.
pub const MATERIAL_TOKENS_MAX: Tokens = 6_000;
/// Records in one batch.
pub const MATERIAL_RECORDS_MAX: usize = 60;
/// Batches of one retrospective; of more the latest are shown. That bounds what a look back at years of work costs.
pub const MATERIALS_MAX: usize = 20;
/// The longest record that is shown, in bytes.
const SHOWN_BYTES_MAX: usize = 6_000;

// A record always fits, in ASCII; in other scripts a batch may be a record.
const _: () = assert!(SHOWN_BYTES_MAX / 4 < MATERIAL_TOKENS_MAX as usize);

/// A record behind what is shown.
#[derive(Clone, Debug)]
pub(super) struct Behind {
    pub(super) id: RecordId,
    pub(super) at: Option<Timestamp>,
    pub(super) failed: bool,
    pub(super) ground: Ground,
}

/// Records that are shown together.
#[derive(Clone, Debug)]
pub struct Material {
    /// The short ids are the places, from `R1`.
    pub(super) records: Vec<Behind>,
    pub(super) text: Redacted,
}

impl Material {
    /// How many records it shows.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether it shows none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The ids of all records that it shows words of.
    pub fn about(&self) -> Vec<Digest> {
        let about: BTreeSet<Digest> = self.records.iter().map(|it| it.id.0).collect();
        about.into_iter().collect()
    }
}

/// One line of a batch.
#[derive(Serialize)]
struct Shown<'a> {
    id: String,
    talk: usize,
    kind: &'static str,
    by: Speaker,
    day: Option<String>,
    claim: &'a Claim,
}

/// Staged `records` in batches, and how many of them are in none: too long, or earlier than what is looked back at.
/// The order does not matter; where records come later, the batches before them stay the same.
pub fn materials(records: &[Record], gate: &Gate) -> (Vec<Material>, usize) {
    let mut talks: BTreeMap<SessionId, Vec<&Record>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for record in records {
        if record.state == RecordState::Staged && seen.insert(record.id) {
            talks.entry(record.provenance.session).or_default().push(record);
        }
    }
    let mut talks: Vec<Vec<&Record>> = talks.into_values().collect();
    for talk in &mut talks {
        talk.sort_by_key(|record| (record.provenance.at, record.id));
    }
    let first = |talk: &Vec<&Record>| talk.first().map(|it| (it.provenance.at, it.id));
    talks.sort_by_key(first);
    let mut all = Vec::new();
    let mut draft = Draft::default();
    for talk in talks {
        draft.talks += 1;
        for record in talk {
            let claim = record.claim.clone().map(&|text| gate.redact(text).as_str().to_owned());
            if draft.add(record, &claim) == Fits::InTheNext {
                all.extend(std::mem::take(&mut draft).finish(gate));
                draft.talks = 1;
                draft.add(record, &claim);
            }
        }
    }
    all.extend(draft.finish(gate));
    let latest = all.split_off(all.len().saturating_sub(MATERIALS_MAX));
    let shown: usize = latest.iter().map(Material::len).sum();
    (latest, seen.len() - shown)
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Fits {
    Here,
    InTheNext,
    Nowhere,
}

#[derive(Default)]
struct Draft {
    records: Vec<Behind>,
    talks: usize,
    text: String,
    tokens: Tokens,
}

impl Draft {
    fn add(&mut self, record: &Record, claim: &Claim) -> Fits {
        let shown = Shown {
            id: format!("R{}", self.records.len() + 1),
            talk: self.talks,
            kind: claim.kind().name(),
            by: record.evidence.iter().map(|it| it.speaker).min().unwrap_or(Speaker::Web),
            day: record.provenance.at.map(Timestamp::day),
            claim,
        };
        // One line of JSON, so that no text can begin a line that looks like another record.
        let line = serde_json::to_string(&shown).ok();
        let Some(line) = line.filter(|line| line.len() <= SHOWN_BYTES_MAX) else {
            return Fits::Nowhere;
        };
        let tokens = self.tokens.saturating_add(estimate_tokens(&line));
        let full = self.records.len() == MATERIAL_RECORDS_MAX || tokens > MATERIAL_TOKENS_MAX;
        if full && !self.records.is_empty() {
            return Fits::InTheNext;
        }
        self.tokens = tokens;
        self.text.push_str(&line);
        self.text.push('\n');
        self.records.push(Behind {
            id: record.id,
            at: record.provenance.at,
            failed: matches!(claim, Claim::Attempt(attempt) if !attempt.succeeded),
            ground: Ground::of(record, claim),
        });
        Fits::Here
    }

    fn finish(self, gate: &Gate) -> Option<Material> {
        // Texts side by side may show what none of them showed alone.
        let text = gate.redact(self.text.trim_end());
        (!self.records.is_empty()).then_some(Material { records: self.records, text })
    }
}
