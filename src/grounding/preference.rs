//! Preference among windows that hold words of a field: a window beside the claim's other words, near the window that
//! leads, after the action whose result it is, or by the person whom the field names.

use crate::domain::{Branch, EntryKind, Part, Slice, Speaker};
use std::ops::Range;

/// Reach in which the other words of a claim speak for a window, in bytes: a long paragraph, or a few short turns.
const CONTEXT_BYTES: usize = 800;
/// The same of the sentence that a window stands in.
const SENTENCE_BYTES: usize = 100;
/// Windows that are no further apart than this tell of one thing.
const NEAR_BYTES: usize = 1_500;
/// Factor of a further window near the one that leads.
const NEAR_FACTOR: f64 = 1.25;
/// The same of an action before it.
const EARLIER_FACTOR: f64 = 1.2;
/// Number of entries after an action in which its result is expected.
const RESULT_ENTRIES: usize = 4;
/// Factor of a result in them.
const AFTER_FACTOR: f64 = 1.15;
/// Factor of a result that stands before its action.
const BEFORE_FACTOR: f64 = 0.6;
/// Factor of a call for an action.
const CALL_FACTOR: f64 = 1.1;
/// Factor of the words of a person whom the field names.
const NAMED_FACTOR: f64 = 1.3;
/// A window far from the one that leads is shown only if it holds this share of the field's weight.
const FAR_SHARE_MIN: f64 = 0.25;
/// The same of a result before its action.
const BEFORE_SHARE_MIN: f64 = 0.5;

/// Places of the words of a whole claim, in the order of the slice's text.
#[derive(Debug, Default)]
pub(super) struct ClaimWords {
    /// The first byte of each, and the number of its word.
    places: Vec<(u32, u32)>,
    /// Weight of each word.
    weights: Vec<f64>,
}

impl ClaimWords {
    pub(super) fn new(mut places: Vec<(u32, u32)>, weights: Vec<f64>) -> ClaimWords {
        places.sort_unstable();
        ClaimWords { places, weights }
    }

    /// The share of the claim's weight in `span`, 0 to 1.
    pub(super) fn share(&self, span: &Range<usize>) -> f64 {
        let first = self.places.partition_point(|(start, _)| (*start as usize) < span.start);
        let mut held = vec![false; self.weights.len()];
        for (_, word) in
            self.places[first..].iter().take_while(|(start, _)| (*start as usize) < span.end)
        {
            held[*word as usize] = true;
        }
        let weight: f64 =
            self.weights.iter().zip(held).filter(|(_, held)| *held).map(|(it, _)| it).sum();
        weight / self.weights.iter().sum::<f64>().max(1.0)
    }
}

/// Preference of one field.
#[derive(Debug)]
pub(super) struct Preference<'c> {
    /// Speakers whose best window leads, if they say enough.
    pub(super) first: &'c [Speaker],
    /// Words of the whole claim.
    pub(super) claim: &'c ClaimWords,
    /// True if the claim is an attempt.
    pub(super) of_attempt: bool,
    /// True if the field tells what was done.
    pub(super) is_action: bool,
    /// Position of the action whose result the field tells.
    pub(super) action: Option<usize>,
    /// Turns of the people whom the field names.
    pub(super) turns: Vec<Range<usize>>,
}

impl Preference<'_> {
    /// The most that [`Preference::in_context`] adds.
    pub(super) const CONTEXT_FACTOR_MAX: f64 = 3.0;

    /// Factor of a window by the words of the claim around it.
    pub(super) fn in_context(&self, span: &Range<usize>) -> f64 {
        let within =
            |reach: usize| self.claim.share(&(span.start.saturating_sub(reach)..span.end + reach));
        // What was done and what came of it are told in one breath, and often done again.
        let sentence = if self.of_attempt { within(SENTENCE_BYTES) } else { 0.0 };
        1.0 + within(CONTEXT_BYTES) + sentence
    }

    /// Factor of a window of `part` by its position and its speaker; `lead` is the window that leads.
    pub(super) fn in_place(
        &self,
        slice: &Slice,
        part: u32,
        span: &Range<usize>,
        lead: Option<&Range<usize>>,
    ) -> f64 {
        let mut factor = trust(&slice.parts[part as usize], self);
        if let Some(lead) = lead.filter(|lead| is_near(span, lead)) {
            // What is run after an edit belongs to it, and not what was run before.
            let is_earlier = self.is_action && span.start < lead.start;
            factor *= if is_earlier { EARLIER_FACTOR } else { NEAR_FACTOR };
        }
        if let Some(action) = self.action {
            let action = slice.parts.partition_point(|part| part.span.end <= action);
            factor *= match (part as usize).checked_sub(action) {
                None => BEFORE_FACTOR,
                Some(after) if after <= RESULT_ENTRIES => AFTER_FACTOR,
                Some(_) => 1.0,
            };
        }
        let is_named = self.turns.iter().any(|turn| turn.contains(&span.start));
        if is_named { factor * NAMED_FACTOR } else { factor }
    }

    /// Returns whether a further window is evidence, or counts only in the score.
    pub(super) fn shows(
        &self,
        part: &Part,
        span: &Range<usize>,
        lead: &Range<usize>,
        share: f64,
    ) -> bool {
        if self.action.is_some_and(|action| part.span.end <= action) {
            return BEFORE_SHARE_MIN <= share;
        }
        let is_first = self.first.first() == Some(&part.speaker);
        is_first || is_near(span, lead) || FAR_SHARE_MIN <= share
    }
}

fn is_near(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end + NEAR_BYTES && other.start < one.end + NEAR_BYTES
}

/// Of two entries that say the same, a person's is the better evidence; and what is said to the person
/// is better than what is written into a tool or said to a helper. What was done and what came of it stand in calls
/// and outputs.
fn trust(part: &Part, of: &Preference<'_>) -> f64 {
    let is_call = part.kind == EntryKind::ToolCall;
    let is_active = part.branch == Branch::Active;
    match part.speaker {
        Speaker::Person => 1.2,
        Speaker::Assistant if is_call && is_active && of.is_action => CALL_FACTOR,
        Speaker::Assistant if is_call || !is_active => 0.9,
        Speaker::Assistant => 1.0,
        Speaker::Tool if of.action.is_some() => 1.0,
        Speaker::Tool => 0.95,
        Speaker::Web | Speaker::Client => 0.9,
    }
}
