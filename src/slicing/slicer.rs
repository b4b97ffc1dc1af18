//! The slicer: entries in, slices out. Holds no more than two slices and the entries that wait for tool results.

use super::bound::{MARK_TOKENS_MAX, bound, split};
use super::{Cutting, LABEL_TOKENS_MAX, Stretch, assemble, label};
use crate::domain::{Entry, EntryKind, Outcome, SessionId, Speaker, Tokens, estimate_tokens};
use crate::privacy::Redacted;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Minimum budget of a slice, in tokens; below it a pair of call and result would not fit.
pub const SLICE_TOKENS_MIN: u32 = 400;
/// Minimum bound of tool output, in tokens.
pub const TOOL_TOKENS_MIN: u32 = 40;

/// Maximum bound of tool output for slices of `tokens`: a call and its result, both at the
/// bound, with labels and marks, fit in one slice.
pub fn tool_tokens_max(tokens: u32) -> u32 {
    (tokens / 2).saturating_sub(LABEL_TOKENS_MAX + MARK_TOKENS_MAX)
}

const _: () = assert!(SLICE_TOKENS_MIN / 2 > LABEL_TOKENS_MAX + MARK_TOKENS_MAX + TOOL_TOKENS_MIN);

/// Minimum fill of a slice before it is cut at a better place than its end, in percent of its budget.
const FILL_PERCENT_MIN: u64 = 50;
/// Fill below which the last slice of a session takes entries from the one before, in percent of its budget.
const TAIL_PERCENT_MIN: u64 = 25;
/// Factor of the bound for a failed tool: how it failed is worth more than what it did.
const FAILED_FACTOR: u32 = 2;

/// Settings of slices.
#[derive(serde::Deserialize, Clone, Copy, Debug, Eq, PartialEq)]
pub struct SliceSettings {
    /// Maximum length of a slice, in estimated tokens.
    pub tokens: Tokens,
    /// Maximum length of a tool call or tool output that is shown whole, in estimated tokens; one that
    /// is longer by no more than a mark takes is shown whole too.
    pub tool_tokens: Tokens,
}

/// Cuts one session into slices.
#[derive(Debug)]
pub struct Slicer {
    session: SessionId,
    settings: SliceSettings,
    ends: BTreeSet<u32>,
    grouper: Grouper,
    /// The slice before the current one.
    held: Vec<Piece>,
    /// The slice that is being filled.
    current: Vec<Piece>,
    index: u32,
    ready: Vec<Cutting>,
}

/// An entry of a slice, or a part of one.
#[derive(Debug)]
struct Piece {
    entry: Entry,
    stretch: Stretch,
    tokens: Tokens,
    /// Quality of a cut before it.
    cut: CutQuality,
}

/// Quality of a cut, best last.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum CutQuality {
    /// Inside an entry or a unit of entries that belong together.
    Never,
    /// Between a question and its answer, or between an announcement and its action.
    Poor,
    /// Between two actions.
    Fair,
    /// Before an assistant's text that follows an action.
    Good,
    /// Before a person's turn.
    Best,
}

impl Slicer {
    /// Creates a slicer for `session`. `ends` are its numbers of entries at earlier readings: a session
    /// that grew is cut there again, so that slices that were paid for are found again.
    pub fn new(session: SessionId, settings: SliceSettings, ends: BTreeSet<u32>) -> Slicer {
        Slicer {
            session,
            settings,
            ends,
            grouper: Grouper::default(),
            held: Vec::new(),
            current: Vec::new(),
            index: 0,
            ready: Vec::new(),
        }
    }

    /// Continues a session after its first `index` slices: the slicer gets the entries after them, and
    /// its first slice has this index.
    pub fn starting_at(mut self, index: u32) -> Slicer {
        self.index = index;
        self
    }

    /// Adds the next entry of the session; returns the slices that are complete.
    pub fn push(&mut self, mut entry: Entry) -> Vec<Cutting> {
        if self.ends.first().is_some_and(|end| *end <= entry.ordinal) {
            self.end();
            self.ends = self.ends.split_off(&(entry.ordinal + 1));
        }
        if is_tool(&entry)
            && let Some(bounded) = bound(&entry.text, self.tool_tokens(&entry))
        {
            entry.text = bounded;
        }
        if let Some(unit) = self.grouper.push(entry) {
            self.place(unit);
        }
        std::mem::take(&mut self.ready)
    }

    /// Ends the session; returns the remaining slices.
    pub fn finish(&mut self) -> Vec<Cutting> {
        self.end();
        std::mem::take(&mut self.ready)
    }

    /// Bound of a tool's text, within the room for a pair of call and result.
    fn tool_tokens(&self, entry: &Entry) -> Tokens {
        let SliceSettings { tokens, tool_tokens } = self.settings;
        if entry.outcome != Some(Outcome::Failed) {
            return tool_tokens;
        }
        let most = tool_tokens_max(tokens).max(tool_tokens);
        tool_tokens.saturating_mul(FAILED_FACTOR).min(most)
    }

    fn end(&mut self) {
        if let Some(unit) = self.grouper.take() {
            self.place(unit);
        }
        self.balance();
        for pieces in [std::mem::take(&mut self.held), std::mem::take(&mut self.current)] {
            self.emit(pieces);
        }
    }

    fn place(&mut self, unit: Unit) {
        let weights: Vec<Tokens> = unit.iter().map(weight).collect();
        let tokens = total(weights.iter().copied());
        if tokens <= self.settings.tokens {
            let mut cut = self.quality(&unit);
            self.make_room(tokens, cut);
            for (entry, tokens) in unit.into_iter().zip(weights) {
                let stretch = Stretch { range: 0..entry.text.len(), part: 0, parts: 1 };
                self.current.push(Piece { entry, stretch, tokens, cut });
                cut = CutQuality::Never;
            }
        } else if unit.len() == 1 {
            unit.into_iter().for_each(|entry| self.add_parts(entry));
        } else {
            // A pair that is still too long has a result that outgrew its call. Placing its entries one by
            // one terminates.
            for unit in pairs(unit) {
                if unit.len() > 1 && total(unit.iter().map(weight)) > self.settings.tokens {
                    unit.into_iter().for_each(|entry| self.place(vec![entry]));
                } else {
                    self.place(unit);
                }
            }
        }
    }

    fn add_parts(&mut self, entry: Entry) {
        let label_tokens = LABEL_TOKENS_MAX + SEPARATOR_TOKENS;
        let tokens_max = self.settings.tokens.saturating_sub(label_tokens).max(1);
        let ranges = split(entry.text.as_str(), tokens_max);
        let parts = u32::try_from(ranges.len()).unwrap_or(u32::MAX);
        for (part, range) in (0..).zip(ranges) {
            let words = entry.text.as_str().get(range.clone()).unwrap_or_default();
            let tokens = estimate_tokens(words).saturating_add(label_tokens);
            self.make_room(tokens, CutQuality::Fair);
            let stretch = Stretch { range, part, parts };
            let cut = CutQuality::Fair;
            self.current.push(Piece { entry: entry.clone(), stretch, tokens, cut });
        }
    }

    /// Quality of a cut before `unit`.
    fn quality(&self, unit: &Unit) -> CutQuality {
        use EntryKind::{Answer, Command, Prompt, Rejection, Steering, Text, ToolCall};
        let before = self.current.last().or(self.held.last()).map(|piece| &piece.entry);
        let (Some(before), Some(next)) = (before, unit.first()) else { return CutQuality::Best };
        let is_question = before.text.as_str().trim_end().ends_with(['?', '？']);
        let asked = before.speaker == Speaker::Assistant && is_question;
        let is_turn = matches!(next.kind, Prompt | Steering | Command | Text);
        if is_turn && next.speaker == Speaker::Person {
            return if asked { CutQuality::Poor } else { CutQuality::Best };
        }
        if next.kind == Text && is_tool(before) {
            return CutQuality::Good;
        }
        let is_poor = matches!(next.kind, Answer | Rejection)
            || (next.kind == ToolCall && before.kind == Text)
            || (next.kind == Text && before.speaker == Speaker::Person);
        if is_poor { CutQuality::Poor } else { CutQuality::Fair }
    }

    /// Makes room for `tokens` more: ends the slice at the best place after its first half. A cut at its
    /// end has the quality `at_end`.
    fn make_room(&mut self, tokens: Tokens, at_end: CutQuality) {
        while !self.current.is_empty()
            && self.settings.tokens < sum(&self.current).saturating_add(tokens)
        {
            let least = percent(self.settings.tokens, FILL_PERCENT_MIN);
            let end = self.current.len();
            let at = best_cut(&self.current, least..=Tokens::MAX);
            let at = at.filter(|at| at_end < self.current[*at].cut).unwrap_or(end);
            let rest = self.current.split_off(at);
            let whole = std::mem::replace(&mut self.current, rest);
            let before = std::mem::replace(&mut self.held, whole);
            self.emit(before);
        }
    }

    /// Avoids a call for a small last slice: joins it with the one before if both fit in one, else moves
    /// entries of that one to it.
    fn balance(&mut self) {
        let (budget, tail) = (self.settings.tokens, sum(&self.current));
        let all = sum(&self.held).saturating_add(tail);
        let least = percent(budget, TAIL_PERCENT_MIN);
        if self.held.is_empty() || tail == 0 || least <= tail {
            return;
        }
        self.held.append(&mut self.current);
        if all <= budget {
            return;
        }
        let from = all.saturating_sub(budget).max(percent(budget, FILL_PERCENT_MIN));
        let at = best_cut(&self.held, from..=budget.min(all.saturating_sub(least)));
        let joint = || {
            self.held.iter().scan(0, |before, piece| {
                *before += piece.tokens;
                Some(*before)
            })
        };
        let at = at.or_else(|| joint().position(|before| all - tail <= before).map(|at| at + 1));
        self.current = self.held.split_off(at.unwrap_or(self.held.len()));
    }

    fn emit(&mut self, pieces: Vec<Piece>) {
        if pieces.is_empty() {
            return;
        }
        let (entries, stretches) = pieces.into_iter().map(|it| (it.entry, it.stretch)).unzip();
        self.ready.push(assemble(self.session, self.index, entries, stretches));
        self.index += 1;
    }
}

fn sum(pieces: &[Piece]) -> Tokens {
    total(pieces.iter().map(|piece| piece.tokens))
}

fn total(tokens: impl Iterator<Item = Tokens>) -> Tokens {
    tokens.fold(0, Tokens::saturating_add)
}

/// Best place for a cut with `before` tokens before it, the last among equals.
fn best_cut(pieces: &[Piece], before: RangeInclusive<Tokens>) -> Option<usize> {
    let mut tokens: Tokens = 0;
    let mut best: Option<(CutQuality, usize)> = None;
    for (at, piece) in pieces.iter().enumerate() {
        let better = best.is_none_or(|(quality, _)| quality <= piece.cut);
        if 0 < at && before.contains(&tokens) && better && piece.cut != CutQuality::Never {
            best = Some((piece.cut, at));
        }
        tokens = tokens.saturating_add(piece.tokens);
    }
    best.map(|(_, at)| at)
}

fn percent(tokens: Tokens, share: u64) -> Tokens {
    Tokens::try_from(u64::from(tokens) * share / 100).unwrap_or(tokens)
}

fn is_tool(entry: &Entry) -> bool {
    let tool = matches!(entry.speaker, Speaker::Tool | Speaker::Web);
    tool || matches!(entry.kind, EntryKind::ToolCall | EntryKind::ToolResult)
}

/// Tokens of the blank line after an entry.
const SEPARATOR_TOKENS: Tokens = 1;

/// Tokens of an entry in a slice, its label included.
fn weight(entry: &Entry) -> Tokens {
    let label = estimate_tokens(&label(entry, 0, 1)) + SEPARATOR_TOKENS;
    estimate_tokens(entry.text.as_str()).saturating_add(label)
}

/// Maximum number of entries that wait for results; a call without one by then never ended.
const WAITING_ENTRIES_MAX: usize = 256;

/// Entries that belong together, in the order of the transcript.
type Unit = Vec<Entry>;

/// Groups a stream of entries into units.
#[derive(Debug, Default)]
struct Grouper {
    waiting: Unit,
    open: Vec<Option<Redacted>>,
}

impl Grouper {
    /// Adds the next entry; returns a unit once one is complete.
    fn push(&mut self, entry: Entry) -> Option<Unit> {
        if entry.kind == EntryKind::ToolCall {
            self.open.push(call_id(&entry).cloned());
        } else if entry.kind == EntryKind::ToolResult {
            // A result without an id answers the call before it.
            let answered = match call_id(&entry) {
                Some(id) => self.open.iter().position(|open| open.as_ref() == Some(id)),
                None => self.open.len().checked_sub(1),
            };
            answered.map(|at| self.open.remove(at));
        }
        self.waiting.push(entry);
        let whole = self.open.is_empty() || self.waiting.len() >= WAITING_ENTRIES_MAX;
        whole.then(|| self.take()).flatten()
    }

    /// Takes all waiting entries; `None` if there are none.
    fn take(&mut self) -> Option<Unit> {
        self.open.clear();
        (!self.waiting.is_empty()).then(|| std::mem::take(&mut self.waiting))
    }
}

/// Breaks a unit that is too long for a slice into smaller ones: each call with its result, every
/// other entry alone, in the order in which they begin.
fn pairs(unit: Unit) -> Vec<Unit> {
    let mut pairs: Vec<Unit> = Vec::new();
    for entry in unit {
        let answers = entry.kind == EntryKind::ToolResult && entry.tool.is_some();
        // A call without a result so far.
        let is_open = |pair: &&mut Unit| match pair.as_slice() {
            [call] => call.kind == EntryKind::ToolCall && call_id(call) == call_id(&entry),
            _ => false,
        };
        match pairs.iter_mut().find(is_open).filter(|_| answers) {
            Some(pair) => pair.push(entry),
            None => pairs.push(vec![entry]),
        }
    }
    pairs
}

fn call_id(entry: &Entry) -> Option<&Redacted> {
    entry.tool.as_ref()?.call_id.as_ref()
}

#[cfg(test)]
mod tests;
