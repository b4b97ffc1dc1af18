//! Finds the answer in a reply, and its claims.

use super::spec::TOOL_NAME;
use super::validate::{Checked, decode, validate};
use crate::domain::{CLAIMS_MAX, Call, Claim, Finding, Finish, OutputMode, Reply, Severity};
use crate::text::lenient_json::Repair;

/// Maximum number of calls read from one reply; 64 were seen in one.
const CALLS_MAX: usize = 64;

/// The answer in a reply.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Valid claims, each once.
    pub(super) claims: Vec<Claim>,
    /// Problems of the others.
    pub(super) problems: Vec<String>,
    /// Corrections.
    pub(super) findings: Vec<Finding>,
    /// True if it has the requested object.
    pub(super) shaped: bool,
    /// True if it was truncated.
    pub(super) cut: bool,
    /// True if the model refused.
    pub(super) refused: bool,
    /// True if any part looks like an attempt to answer.
    pub(super) tried: bool,
}

/// Reads `reply`: tool calls, else JSON in the text; without a tool in the mode, the text first.
pub(super) fn read(reply: &Reply, rung: OutputMode) -> Answer {
    let mut answer = Answer::default();
    if rung.is_tool() {
        read_calls(&reply.calls, &mut answer);
        if !answer.shaped {
            read_words(reply, &mut answer);
            if answer.shaped {
                answer.note("found-in-text", "the answer stood in the words, not in a call");
            }
        }
    } else {
        read_words(reply, &mut answer);
        if !answer.shaped {
            read_calls(&reply.calls, &mut answer);
        }
    }
    answer.cut |= !answer.shaped && reply.finish == Finish::Length;
    let words_of_refusal = reply.refusal.as_ref().is_some_and(|words| !words.is_empty());
    let filtered = reply.finish == Finish::ContentFilter;
    answer.refused = !answer.shaped && (words_of_refusal || filtered);
    answer
}

fn read_calls(calls: &[Call], answer: &mut Answer) {
    let mut used = 0_usize;
    for call in calls.iter().take(CALLS_MAX) {
        let ours = call.name == TOOL_NAME;
        let (value, repairs) = decode(call.arguments.as_str());
        if value.is_null() {
            // Some models call a tool without arguments to say nothing.
            answer.tried |= ours && !call.arguments.as_str().trim().is_empty();
            continue;
        }
        let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty);
        if ours && is_empty {
            // Models that leave out empty lists mean four of them.
            answer.note("empty-arguments", "an empty object, taken for four empty lists");
            (answer.tried, answer.shaped) = (true, true);
            continue;
        }
        let checked = validate(value);
        if !ours {
            // Servers and models confuse names; arguments that fit can only be meant for ours.
            if !checked.shaped || !checked.problems.is_empty() {
                continue;
            }
            answer.note("wrong-tool", "the answer came under another tool's name");
        }
        used += usize::from(checked.shaped);
        answer.add(checked, &repairs);
    }
    if used > 1 {
        answer.note("several-calls", "more than one call of the tool, joined");
    }
    if calls.len() > CALLS_MAX {
        answer.note("too-many-calls", "more calls than are read");
    }
}

fn read_words(reply: &Reply, answer: &mut Answer) {
    let (value, repairs) = decode(reply.content.as_str());
    if value.is_null() {
        return;
    }
    let checked = validate(value);
    // Other JSON in the middle of text is not the answer.
    let meant = checked.shaped || reply.content.as_str().trim_start().starts_with('{');
    if meant && (checked.shaped || answer.problems.is_empty()) {
        answer.add(checked, &repairs);
    }
}

impl Answer {
    fn add(&mut self, checked: Checked, repairs: &[Repair]) {
        self.tried = true;
        if checked.shaped && !self.shaped {
            // Problems of parts that were not the answer no longer matter.
            self.problems.clear();
        }
        if checked.shaped || !self.shaped {
            self.problems.extend(checked.problems);
        }
        self.shaped |= checked.shaped;
        self.cut |= repairs.iter().any(|it| matches!(it, Repair::Cut | Repair::Broken));
        let repairs = repairs.iter().map(|repair| repair.finding());
        for finding in repairs.chain(checked.findings) {
            if !self.findings.contains(&finding) {
                self.findings.push(finding);
            }
        }
        let dropped = join(&mut self.claims, checked.claims);
        if dropped > 0 {
            self.note("too-many-claims", "claims beyond the most that are kept, dropped");
        }
    }

    fn note(&mut self, rule: &'static str, detail: &str) {
        if !self.findings.iter().any(|finding| finding.rule == rule) {
            self.findings.push(Finding::new(Severity::Warning, rule, 0, detail));
        }
    }
}

/// Adds new claims, up to [`CLAIMS_MAX`]; returns the number of claims beyond it.
pub(super) fn join(claims: &mut Vec<Claim>, more: Vec<Claim>) -> usize {
    let mut dropped = 0;
    for claim in more {
        if claims.contains(&claim) {
            continue;
        }
        if claims.len() == CLAIMS_MAX {
            dropped += 1;
        } else {
            claims.push(claim);
        }
    }
    dropped
}
