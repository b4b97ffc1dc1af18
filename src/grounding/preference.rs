//! Preference among windows for a field: near the claim's other words, near the leading window,
//! after the action of a result, or by a person whom the field names.

use crate::domain::{Branch, EntryKind, Part, Slice, Speaker};
use std::ops::Range;

/// Distance at which a claim's other words support a window, in bytes: a long paragraph or a few turns.
const CONTEXT_BYTES: usize = 800;
/// Same for the sentence around a window.
const SENTENCE_BYTES: usize = 100;
/// Maximum distance between windows about the same thing, in bytes.
const NEAR_BYTES: usize = 1_500;
/// Factor for a further window near the leading one.
const NEAR_FACTOR: f64 = 1.25;
/// Number of entries after an action within which its result is expected.
const RESULT_ENTRIES: usize = 4;
/// Factor for a result within these entries.
const AFTER_FACTOR: f64 = 1.15;
/// Factor for a result before its action.
const BEFORE_FACTOR: f64 = 0.6;
/// Factor for a tool call as evidence of an action.
const CALL_FACTOR: f64 = 1.1;
/// Same for a result, which no call shows.
const RESULT_CALL_FACTOR: f64 = 0.5;
/// Factor for the words of a person whom the field names.
const NAMED_FACTOR: f64 = 1.3;
/// Minimum share of the field's weight for a window far from the leading one to be shown.
const FAR_SHARE_MIN: f64 = 0.25;

/// Positions of the words of a whole claim, in text order.
#[derive(Debug, Default)]
pub(super) struct ClaimWords {
    /// First byte of each word, and the word's index in `weights`.
    places: Vec<(u32, u32)>,
    weights: Vec<f64>,
}

impl ClaimWords {
    pub(super) fn new(mut places: Vec<(u32, u32)>, weights: Vec<f64>) -> ClaimWords {
        places.sort_unstable();
        ClaimWords { places, weights }
    }

    /// Share of the claim's weight in `span`, 0 to 1.
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

/// Preference among the windows of one field.
#[derive(Debug)]
pub(super) struct Preference<'c> {
    /// Speakers whose best window leads if it covers enough.
    pub(super) first: &'c [Speaker],
    /// Share of the best window's weight that a window of theirs needs to lead.
    pub(super) lead_share_min: f64,
    /// Words of the whole claim.
    pub(super) claim: &'c ClaimWords,
    /// True if the claim is an attempt.
    pub(super) of_attempt: bool,
    /// True if the field describes an action.
    pub(super) is_action: bool,
    /// Position of the action whose result the field describes.
    pub(super) action: Option<usize>,
    /// Turns of the people whom the field names.
    pub(super) turns: Vec<Range<usize>>,
}

impl Preference<'_> {
    /// Maximum of [`Preference::in_context`].
    pub(super) const CONTEXT_FACTOR_MAX: f64 = 3.0;

    /// Factor for the claim's words around a window.
    pub(super) fn in_context(&self, span: &Range<usize>) -> f64 {
        let within =
            |reach: usize| self.claim.share(&(span.start.saturating_sub(reach)..span.end + reach));
        // Action and result of an attempt are told together, and attempts are often repeated.
        let sentence = if self.of_attempt { within(SENTENCE_BYTES) } else { 0.0 };
        1.0 + within(CONTEXT_BYTES) + sentence
    }

    /// Factor for the position and speaker of a window of `part`; `lead` is the leading window.
    pub(super) fn in_place(
        &self,
        slice: &Slice,
        part: u32,
        span: &Range<usize>,
        lead: Option<&Range<usize>>,
    ) -> f64 {
        let mut factor = trust(&slice.parts[part as usize], self);
        if lead.is_some_and(|lead| is_near(span, lead)) {
            factor *= NEAR_FACTOR;
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

    /// True if the field states a wish, which a person's words prove.
    pub(super) fn is_wish(&self) -> bool {
        !self.first.is_empty() && self.lead_share_min == 0.0
    }

    /// True if a further window is evidence; otherwise it counts only in the score.
    pub(super) fn shows(
        &self,
        part: &Part,
        span: &Range<usize>,
        lead: &Range<usize>,
        share: f64,
    ) -> bool {
        let is_first = self.first.first() == Some(&part.speaker);
        // What answers a wish shares its words, calls and outputs most of all.
        let is_near = !self.is_wish() && is_near(span, lead);
        let is_talk = !self.is_wish() || part.kind == EntryKind::Text;
        is_first || is_near || is_talk && FAR_SHARE_MIN <= share
    }
}

fn is_near(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end + NEAR_BYTES && other.start < one.end + NEAR_BYTES
}

/// Factor for the source of a window. A person's words are the best evidence; text addressed to the
/// person beats tool input and text for a subagent. Calls and outputs show actions and results.
fn trust(part: &Part, of: &Preference<'_>) -> f64 {
    let is_call = part.kind == EntryKind::ToolCall;
    let is_active = part.branch == Branch::Active;
    match part.speaker {
        Speaker::Person => 1.2,
        Speaker::Assistant if is_call && is_active && of.is_action => CALL_FACTOR,
        Speaker::Assistant if is_call && of.of_attempt && !of.is_action => RESULT_CALL_FACTOR,
        Speaker::Assistant if is_call || !is_active => 0.9,
        Speaker::Assistant => 1.0,
        Speaker::Tool if of.action.is_some() => 1.0,
        Speaker::Tool => 0.95,
        Speaker::Web | Speaker::Client => 0.9,
    }
}
