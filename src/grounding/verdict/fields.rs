//! Relations between the fields of one claim: where one is likelier stated because of the evidence of another, and
//! the order of their evidence.

use super::{
    ClaimSupport, EVIDENCE_PER_STRING_MAX, EvidenceWindow, Favour, Grounder, WordSupport,
    without_speaker,
};
use crate::domain::{Attempt, Claim, Decision, EntryKind, Evidence, Match, Part, Speaker};
use crate::grounding::literal::literals;
use crate::grounding::negation::negations;
use crate::grounding::preference::{ClaimWords, sentences};
use crate::text::tokens::folded;
use crate::text::wording::begins_with_consent;
use std::ops::Range;

/// Weight of the choice in an answer that gives its reason.
const ANSWER_WEIGHT: f64 = 6.0;
/// Minimum share of the reason's words in such an answer, in percent.
const REASON_PERCENT_MIN: f64 = 40.0;
/// Weight of the reason in the message of a person that chooses.
const REASON_WEIGHT: f64 = 2.0;
/// Minimum share of the words of a choice in what states it.
const CHOICE_SHARE_MIN: f64 = 0.25;
/// Minimum share of the summary's words that its own evidence has more than that of the intent, to stay first.
const BETTER_SHARE_MIN: f64 = 0.15;
/// Minimum share that the evidence of the intent must add to it then.
const NEW_SHARE_MIN: f64 = 0.05;
/// Minimum share of a field's words in the call or the output that belongs to what is quoted.
const PAIRED_SHARE_MIN: f64 = 0.3;
/// Minimum share of the words of a path or an identifier in what names it.
const NAMED_SHARE_MIN: f64 = 0.9;
/// Weight of an action between the last words of a person and its result, and of a result between the call and the
/// next words of a person.
const TURN_WEIGHT: f64 = 3.0;

impl Grounder<'_> {
    /// The choice of a decision in a person's answer that gives the reason, and the action of an attempt in the turn
    /// that led to its result.
    pub(super) fn favoured(
        &self,
        claim: &Claim,
        words: &ClaimWords,
    ) -> Option<(&'static str, Favour)> {
        let part = |it: &EvidenceWindow| self.slice.part_at(it.span.start);
        let support = |field: &str, text: &str| -> WordSupport {
            let preference = self.preference(claim.kind(), field, text, words);
            let verbatim = self.verbatim(text).map(|(span, _)| span);
            self.index.support(without_speaker(text), &preference, verbatim.as_ref())
        };
        match claim {
            Claim::Decision(it) => {
                let reason = support("rationale", &it.rationale);
                let least = reason.weight * REASON_PERCENT_MIN / 100.0;
                let states = |it: &&EvidenceWindow| it.weight >= least;
                let parts = reason.windows.iter().filter(states).filter_map(part);
                let answers = parts.filter(|it| it.speaker == Speaker::Person);
                let spans = answers.map(|it| it.span.clone()).collect();
                Some(("chosen", Favour { spans, weight: ANSWER_WEIGHT }))
            }
            Claim::Attempt(it) => {
                let result = support("result", &it.result);
                let mut results = result.windows.iter().filter_map(part);
                let result = results.find(|it| it.kind != EntryKind::ToolCall)?.span.start;
                let is_asked = |it: &&Part| it.speaker == Speaker::Person && it.span.end <= result;
                let asked = self.slice.parts.iter().rfind(is_asked).map_or(0, |it| it.span.end);
                let spans = std::iter::once(asked..result).collect();
                Some(("action", Favour { spans, weight: TURN_WEIGHT }))
            }
            Claim::Discussion(_) | Claim::Request(_) => None,
        }
    }

    /// The result of an attempt behind the call that is quoted as its action, up to the answer of a person.
    pub(super) fn favoured_result(&self, evidence: &[Evidence]) -> Option<(&'static str, Favour)> {
        let actions = evidence.iter().filter(|it| it.field == "action");
        let calls = actions.filter_map(|it| self.part_of(it));
        let calls = calls.filter(|it| it.kind == EntryKind::ToolCall);
        let start = calls.map(|it| it.span.end).max()?;
        let mut behind = self.slice.parts.iter().filter(|it| start <= it.span.start);
        let answer = behind.find(|it| it.speaker == Speaker::Person);
        let end = answer.or(self.slice.parts.last())?.span.end;
        let spans = std::iter::once(start..end).collect();
        Some(("result", Favour { spans, weight: TURN_WEIGHT }))
    }

    /// The reason of a decision in the message of a person that chooses.
    pub(super) fn favoured_reason(&self, evidence: &[Evidence]) -> Option<(&'static str, Favour)> {
        let chosen = evidence.iter().find(|it| it.field == "chosen")?;
        let part = self.part_of(chosen).filter(|it| it.speaker == Speaker::Person)?;
        let spans = std::iter::once(part.span.clone()).collect();
        Some(("rationale", Favour { spans, weight: REASON_WEIGHT }))
    }

    /// Quotes the reason of a choice for the choice itself if its first quote hardly states it.
    pub(super) fn choose_by_reason(&self, claim: &Decision, evidence: &mut [Evidence]) {
        let first = |field| evidence.iter().position(|it| it.field == field);
        let Some((chosen, reason)) = first("chosen").zip(first("rationale")) else { return };
        let share =
            |text, at: usize| self.index.share(text, std::iter::once(evidence[at].words.as_str()));
        let states = share(&claim.rationale, reason) * 100.0 >= REASON_PERCENT_MIN
            && evidence[reason].ordinal != evidence[chosen].ordinal;
        if share(&claim.chosen, chosen) < CHOICE_SHARE_MIN
            && states
            && self.part_of(&evidence[reason]).is_some_and(is_said)
        {
            let stated = Evidence { field: "chosen".to_owned(), ..evidence[reason].clone() };
            evidence[chosen] = stated;
        }
    }

    fn part_of(&self, evidence: &Evidence) -> Option<&Part> {
        self.slice.parts.iter().find(|part| part.ordinal == evidence.ordinal)
    }

    /// Adds the answer that accepts a proposal to the evidence of a choice that is quoted from the proposal.
    pub(super) fn add_consent(&self, proof: &mut ClaimSupport) {
        let is_choice = |it: &Evidence| it.field == "chosen";
        let Some(first) = proof.evidence.iter().position(is_choice) else { return };
        let ordinal = proof.evidence[first].ordinal;
        let parts = &self.slice.parts;
        let Some(at) = parts.iter().rposition(|it| it.ordinal == ordinal) else { return };
        let is_proposal = parts[at].speaker == Speaker::Assistant && is_said(&parts[at]);
        let next = parts.get(at + 1).filter(|it| is_proposal && it.speaker == Speaker::Person);
        let quoted =
            |it: &Part| proof.evidence.iter().any(|of| is_choice(of) && of.ordinal == it.ordinal);
        let Some(answer) = next.filter(|it| !quoted(it)) else { return };
        let text = self.slice.text.as_str().get(answer.span.clone()).unwrap_or_default();
        let Some(said) = sentences(text).next() else { return };
        let words = &text[said.clone()];
        let denies = words.ends_with('?') || negations(words).next().is_some();
        if denies || !begins_with_consent(&folded(words)) {
            return;
        }
        let start = answer.span.start;
        self.add("chosen", start + said.start..start + said.end, Match::Overlap, 0.0, proof);
        proof.evidence[first + 1..].rotate_right(1);
        drop_last(&mut proof.evidence, "chosen");
    }

    /// Quotes the call whose output is quoted as the result of an attempt, and the output of the call that is quoted
    /// as its action, where they state that field.
    pub(super) fn complete_calls(&self, claim: &Attempt, proof: &mut ClaimSupport) {
        let parts = &self.slice.parts;
        let pairs = parts.windows(2).filter_map(|pair| match pair {
            [call, output]
                if call.kind == EntryKind::ToolCall && output.kind == EntryKind::ToolResult =>
            {
                Some((call, output))
            }
            _ => None,
        });
        let pairs: Vec<_> = pairs.collect();
        let is_quoted = |field: &str, part: &Part, proof: &ClaimSupport| {
            proof.evidence.iter().any(|it| it.field == field && it.ordinal == part.ordinal)
        };
        let has_output = pairs.iter().any(|(_, output)| is_quoted("result", output, proof));
        for (call, output) in pairs {
            let by_call = is_quoted("action", call, proof);
            if is_quoted("result", output, proof) && !by_call {
                self.add_best("action", &claim.action, call, proof);
            } else if by_call && !has_output {
                self.add_best("result", &claim.result, output, proof);
            }
        }
    }

    /// Quotes the sentence of `part` that states most of a field, if it states enough of it.
    fn add_best(&self, field: &str, text: &str, part: &Part, proof: &mut ClaimSupport) {
        let whole = self.slice.text.as_str().get(part.span.clone()).unwrap_or_default();
        let share = |it: &Range<usize>| self.index.share(text, std::iter::once(&whole[it.clone()]));
        let shares = sentences(whole).map(|it| (share(&it), it));
        let best = shares.reduce(|best, it| if it.0 > best.0 { it } else { best });
        let Some((_, said)) = best.filter(|(share, _)| *share >= PAIRED_SHARE_MIN) else { return };
        let ours = proof.evidence.iter().filter(|it| it.field == field).count();
        let Some(first) = proof.evidence.iter().position(|it| it.field == field) else { return };
        if ours == EVIDENCE_PER_STRING_MAX {
            return;
        }
        let start = part.span.start;
        self.add(field, start + said.start..start + said.end, Match::Overlap, 0.0, proof);
        proof.evidence[first + ours..].rotate_right(1);
    }

    /// Orders evidence: a person's wish and the intent first in a request; an action, call by call, before its result.
    pub(super) fn arrange(&self, claim: &Claim, evidence: &mut Vec<Evidence>) {
        match claim {
            Claim::Request(it) => {
                wish_first(evidence);
                self.intent_first(&it.summary, evidence);
                if let Some(target) = &it.target {
                    self.target_in_wish(target, evidence);
                }
            }
            Claim::Attempt(_) => {
                let is_call = |it: &Evidence| {
                    self.part_of(it).is_some_and(|part| part.kind == EntryKind::ToolCall)
                };
                let speaks =
                    |it: &Evidence| matches!(it.speaker, Speaker::Person | Speaker::Assistant);
                // What was run is no result of it, and an output is no deed.
                keep(evidence, "result", |it| !is_call(it));
                keep(evidence, "action", speaks);
                let of = |evidence: &[Evidence], field: &str| -> Vec<u32> {
                    let ours = evidence.iter().filter(|it| it.field == field);
                    ours.map(|it| it.ordinal).collect()
                };
                let firsts = (
                    of(evidence, "action").first().copied(),
                    of(evidence, "result").first().copied(),
                );
                if let (Some(action), Some(result)) = firsts {
                    let is_asked =
                        |it: &&Part| it.speaker == Speaker::Person && it.ordinal < result;
                    let asked = self.slice.parts.iter().rfind(is_asked).map_or(0, |it| it.ordinal);
                    // What was done before the person asked is another deed.
                    keep(evidence, "action", |it| action <= asked || asked <= it.ordinal);
                }
                if let Some(begin) = of(evidence, "action").into_iter().min() {
                    keep(evidence, "result", |it| begin <= it.ordinal);
                }
                if let Some(end) = of(evidence, "result").into_iter().max() {
                    keep(evidence, "action", |it| it.ordinal <= end);
                }
                let actions = of_field(evidence, "action");
                if actions.first().is_some_and(&is_call) {
                    actions.sort_by_key(|it| if is_call(it) { it.ordinal } else { u32::MAX });
                }
                // An output goes before the words about it.
                of_field(evidence, "result").sort_by_key(speaks);
            }
            Claim::Decision(_) | Claim::Discussion(_) => {}
        }
    }

    /// Quotes the target from the wish: a name that stands elsewhere, too, is that of another matter there, unless it
    /// is a path or an identifier.
    fn target_in_wish(&self, target: &str, evidence: &mut Vec<Evidence>) {
        let share = |it: &Evidence| self.index.share(target, std::iter::once(it.words.as_str()));
        let wish: Vec<Evidence> =
            evidence.iter().filter(|it| it.field != "target").cloned().collect();
        let is_there = |it: &Evidence| wish.iter().any(|of| of.ordinal == it.ordinal);
        let is_literal = !literals(target).is_empty();
        let is_named = |it: &Evidence| is_literal && share(it) >= NAMED_SHARE_MIN;
        let ours = of_field(evidence, "target");
        let is_elsewhere = !ours.iter().any(|it| is_there(it) || is_named(it));
        if let Some(first) = ours.first_mut().filter(|_| is_elsewhere)
            && let Some(wish) = wish.iter().find(|it| share(it) >= share(first))
        {
            *first = Evidence { field: "target".to_owned(), ..wish.clone() };
        }
        keep(evidence, "target", |it| is_there(it) || is_named(it));
    }

    /// Puts the first evidence of the intent first in the summary, too, unless a person's words state the summary
    /// better and it adds nothing to them.
    fn intent_first(&self, summary: &str, evidence: &mut Vec<Evidence>) {
        let of = |field| evidence.iter().filter(move |it| it.field == field);
        let intents: Vec<Evidence> = of("intent").cloned().collect();
        let first = evidence.iter().position(|it| it.field == "summary");
        let Some((intent, first)) = intents.first().zip(first) else { return };
        let share =
            |of: &[&Evidence]| self.index.share(summary, of.iter().map(|it| it.words.as_str()));
        let best = &evidence[first];
        let is_better = best.speaker == Speaker::Person
            && share(&[best]) - share(&[intent]) >= BETTER_SHARE_MIN;
        let ours: Vec<&Evidence> = of("summary").collect();
        let both: Vec<&Evidence> = ours.iter().copied().chain([intent]).collect();
        let adds = share(&both) - share(&ours) >= NEW_SHARE_MIN;
        let states = |it: &Evidence, intent: &Evidence| {
            let meets = it.bytes.start < intent.bytes.end && intent.bytes.start < it.bytes.end;
            it.field == "summary" && it.ordinal == intent.ordinal && meets
        };
        let place = |intent| evidence.iter().position(|it| states(it, intent));
        let stated = match intents.iter().find_map(place) {
            Some(at) if at == first => return,
            Some(at) => evidence.remove(at),
            None if is_better && !adds => return,
            None => Evidence { field: "summary".to_owned(), ..intent.clone() },
        };
        evidence.insert(first, stated);
        drop_last(evidence, "summary");
    }
}

fn is_said(part: &Part) -> bool {
    matches!(part.speaker, Speaker::Person | Speaker::Assistant) && part.kind != EntryKind::ToolCall
}

/// Puts the words of a person first in the summary of a request, and quotes them for an intent that no person states.
fn wish_first(evidence: &mut Vec<Evidence>) {
    let is_persons = |it: &Evidence| it.speaker == Speaker::Person;
    if evidence.iter().any(|it| it.field == "intent" && is_persons(it)) {
        return;
    }
    let summary = of_field(evidence, "summary");
    summary.sort_by_key(|it| !is_persons(it));
    let Some(wish) = summary.first().filter(|it| is_persons(it)).cloned() else { return };
    evidence.retain(|it| it.field != "intent");
    evidence.insert(0, Evidence { field: "intent".to_owned(), ..wish });
}

/// The evidence of a field, which is consecutive.
fn of_field<'e>(evidence: &'e mut [Evidence], field: &str) -> &'e mut [Evidence] {
    let start = evidence.iter().position(|it| it.field == field).unwrap_or(evidence.len());
    let ours = evidence[start..].iter().take_while(|it| it.field == field).count();
    &mut evidence[start..start + ours]
}

/// Keeps the evidence of a field that `fits`, unless none would be left.
fn keep(evidence: &mut Vec<Evidence>, field: &str, fits: impl Fn(&Evidence) -> bool) {
    if evidence.iter().any(|it| it.field == field && fits(it)) {
        evidence.retain(|it| it.field != field || fits(it));
    }
}

/// Removes the last evidence of a field that has too much.
fn drop_last(evidence: &mut Vec<Evidence>, field: &str) {
    let ours = evidence.iter().filter(|it| it.field == field).count();
    if ours > EVIDENCE_PER_STRING_MAX
        && let Some(last) = evidence.iter().rposition(|it| it.field == field)
    {
        evidence.remove(last);
    }
}
