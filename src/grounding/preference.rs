//! Preference among sentences for a field: near the claim's other words, by who states such a field, or by a
//! person whom it names.

use super::sentence::Sentence;
use crate::domain::{Branch, ClaimKind, EntryKind, Part, Speaker};
use std::ops::Range;

/// Number of sentences before and after one in which a claim's other words support it.
const CONTEXT_SENTENCES: usize = 3;
/// Same, as the maximum distance of their first bytes.
const CONTEXT_BYTES: usize = 300;
/// Weight of the words of a person whom the field names.
const NAMED_WEIGHT: f64 = 1.0;

/// Sentences with the words of a whole claim.
#[derive(Debug, Default)]
pub(super) struct ClaimWords {
    /// Index of a sentence and of a word in `weights`, in text order.
    places: Vec<(u32, u32)>,
    weights: Vec<f64>,
    total: f64,
}

impl ClaimWords {
    pub(super) fn new(mut places: Vec<(u32, u32)>, weights: Vec<f64>) -> ClaimWords {
        places.sort_unstable();
        let total = weights.iter().sum::<f64>().max(1.0);
        ClaimWords { places, weights, total }
    }

    /// Share of the claim's weight in and around one of `sentences`, 0 to 1.
    pub(super) fn around(&self, sentences: &[Sentence], at: usize) -> f64 {
        let start = sentences[at].span.start;
        let is_near = |other: &usize| sentences[*other].span.start.abs_diff(start) < CONTEXT_BYTES;
        let near =
            at.saturating_sub(CONTEXT_SENTENCES)..(at + CONTEXT_SENTENCES + 1).min(sentences.len());
        let (first, last) = (near.clone().find(is_near), near.rev().find(is_near));
        self.share(&(first.unwrap_or(at)..last.unwrap_or(at) + 1))
    }

    /// Share of the claim's weight in a range of sentences, 0 to 1.
    pub(super) fn share(&self, sentences: &Range<usize>) -> f64 {
        let first = self.places.partition_point(|(at, _)| (*at as usize) < sentences.start);
        let here = self.places[first..].iter();
        let here = here.take_while(|(at, _)| (*at as usize) < sentences.end);
        let mut held: Vec<u32> = here.map(|(_, word)| *word).collect();
        held.sort_unstable();
        held.dedup();
        held.iter().map(|word| self.weights[*word as usize]).sum::<f64>() / self.total
    }
}

/// Weights of the sentences of a person, the assistant, a tool call and others for a field.
#[derive(Clone, Copy, Debug)]
struct SourceWeights {
    person: f64,
    assistant: f64,
    call: f64,
    other: f64,
}

const WISH: SourceWeights = SourceWeights { person: 2.4, assistant: -1.4, call: -3.3, other: -2.5 };
// Calls and outputs alone make no decision.
const CHOSEN: SourceWeights =
    SourceWeights { person: 0.7, assistant: -0.2, call: -3.0, other: -3.0 };
const RATIONALE: SourceWeights =
    SourceWeights { person: 1.0, assistant: 0.7, call: -0.6, other: 0.5 };
const DISCUSSION: SourceWeights =
    SourceWeights { person: 1.1, assistant: 0.2, call: -0.9, other: -0.4 };
const ACTION: SourceWeights =
    SourceWeights { person: -0.5, assistant: 0.3, call: 1.2, other: -0.2 };
const RESULT: SourceWeights = SourceWeights { person: 1.3, assistant: 1.3, call: -0.7, other: 1.7 };

/// Preference among the sentences for one field.
#[derive(Debug)]
pub(super) struct Preference<'c> {
    /// Words of the whole claim.
    pub(super) claim: &'c ClaimWords,
    /// True if the field is the choice of a decision.
    pub(super) is_choice: bool,
    /// Turns of the people whom the field names.
    turns: Vec<Range<usize>>,
    sources: SourceWeights,
}

impl<'c> Preference<'c> {
    pub(super) fn new(
        kind: ClaimKind,
        field: &str,
        claim: &'c ClaimWords,
        turns: Vec<Range<usize>>,
    ) -> Preference<'c> {
        let sources = match kind {
            ClaimKind::Request => WISH,
            ClaimKind::Decision if field == "rationale" => RATIONALE,
            ClaimKind::Decision => CHOSEN,
            ClaimKind::Discussion => DISCUSSION,
            ClaimKind::Attempt if field == "action" => ACTION,
            ClaimKind::Attempt => RESULT,
        };
        Preference { claim, is_choice: field == "chosen", turns, sources }
    }

    /// True if the field is a choice, and `part` may make one.
    pub(super) fn is_choice_by(&self, part: &Part) -> bool {
        let speaks = part.speaker == Speaker::Assistant && part.kind != EntryKind::ToolCall;
        self.is_choice && (speaks || part.speaker == Speaker::Person)
    }

    /// Weight of a sentence of `part` by its source.
    pub(super) fn of_source(&self, part: &Part, sentence: &Sentence) -> f64 {
        let weight = match part.speaker {
            Speaker::Person => self.sources.person,
            Speaker::Assistant if part.branch != Branch::Active => self.sources.other,
            Speaker::Assistant if part.kind == EntryKind::ToolCall => self.sources.call,
            Speaker::Assistant => self.sources.assistant,
            Speaker::Tool | Speaker::Web | Speaker::Client => self.sources.other,
        };
        let is_named = self.turns.iter().any(|turn| turn.contains(&sentence.span.start));
        if is_named { weight + NAMED_WEIGHT } else { weight }
    }
}
