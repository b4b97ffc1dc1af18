//! The prompt block and its limits. The oldest turns are evicted; if the last turn alone exceeds the budget, its
//! pending items are shortened first, then the action, then the intent.

use super::cut::{Size, within};
use super::turn::{CompactSummary, INDENT, ours};
use crate::domain::Tokens;
use crate::privacy::{Gate, Redacted, Woven};

const HEADER: &str = "DIALOG_SUMMARY (last few turns):";
const TOKENS_MAX: Tokens = 500;
const TURNS_MAX: u32 = 5;
/// Minimum budget in tokens; the header and the shortest line always fit.
pub(crate) const DIALOG_TOKENS_MIN: Tokens = 20;

/// Limits of a dialog summary.
#[derive(serde::Deserialize, Clone, Copy, Debug, Eq, PartialEq)]
pub struct DialogLimits {
    /// Maximum tokens of the block, including the header. Tokens are the words, or a quarter of the characters if
    /// that is more.
    #[serde(rename = "tokens")]
    pub tokens_max: Tokens,
    /// Maximum number of turns.
    #[serde(rename = "turns")]
    pub turns_max: u32,
}

impl DialogLimits {
    pub(crate) const NONE: DialogLimits =
        DialogLimits { tokens_max: Tokens::MAX, turns_max: u32::MAX };
}

impl Default for DialogLimits {
    fn default() -> DialogLimits {
        DialogLimits { tokens_max: TOKENS_MAX, turns_max: TURNS_MAX }
    }
}

/// Redactor and limits of a dialog summary.
#[derive(Clone, Copy, Debug)]
pub struct DialogRules<'g> {
    /// Redacts text after joining or cutting, since either may reveal new matches.
    pub gate: &'g Gate,
    /// Limits.
    pub limits: DialogLimits,
}
/// Maximum attempts to fit a block, since a placeholder may be longer than the masked text.
const ROUNDS_MAX: usize = 4;
/// Size of ` Pending: `, before the first item.
const PENDING: Size = Size { chars: 10, words: 1 };
/// Size of `, `, before the other items.
const NEXT: Size = Size { chars: 2, words: 0 };
/// Minimum length of a shortened pending item, in characters.
const ITEM_CHARS_MIN: usize = 8;

/// Turns and words omitted to fit the limits.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Omitted {
    /// Number of evicted turns.
    pub evicted: u32,
    /// True if the only remaining turn was shortened.
    pub shortened: bool,
}

/// The block for a prompt, and the turns in it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Block {
    /// The block; empty if there are no turns or no room for one.
    pub text: Redacted,
    /// Tokens of the block.
    pub tokens: Tokens,
    /// Turns in the block, oldest first.
    pub turns: Vec<CompactSummary>,
    /// Turns and words omitted from the block.
    pub fit: Omitted,
}

impl Block {
    pub(super) fn of(turns: &[CompactSummary], rules: DialogRules<'_>) -> Block {
        let most = rules.limits.tokens_max;
        let mut room = most;
        for _ in 0..ROUNDS_MAX {
            let mut kept = turns.to_vec();
            let limits = DialogLimits { tokens_max: room, ..rules.limits };
            let fit = fit(&mut kept, DialogRules { limits, ..rules });
            if kept.is_empty() {
                break;
            }
            let text = text(&kept, rules.gate);
            let tokens = Size::of(text.as_str()).tokens();
            if tokens <= most {
                return Block { text, tokens, turns: kept, fit };
            }
            room = room.saturating_sub(tokens - most);
        }
        let evicted = u32::try_from(turns.len()).unwrap_or(u32::MAX);
        Block { fit: Omitted { evicted, shortened: false }, ..Block::default() }
    }
}

/// Joins the lines under the header and redacts them together, since each was only redacted alone.
fn text(turns: &[CompactSummary], gate: &Gate) -> Redacted {
    let lines: Vec<Redacted> = turns.iter().map(CompactSummary::line).collect();
    let lines = lines.iter().flat_map(|line| [Woven::Ours(INDENT), Woven::Passed(line)]);
    let whole: Vec<Woven<'_>> = [Woven::Ours(HEADER)].into_iter().chain(lines).collect();
    gate.redact(Redacted::weave(&whole).as_str())
}

/// Evicts the oldest turns until the rest fits the limits or one is left; returns the number evicted.
pub(super) fn evict(turns: &mut Vec<CompactSummary>, limits: DialogLimits) -> u32 {
    // Without limits, skips measuring: doing so after each turn would take quadratic time.
    if limits == DialogLimits::NONE {
        return 0;
    }
    let (mut whole, mut kept) = (Size::of(HEADER), 0);
    for turn in turns.iter().rev().take(limits.turns_max as usize) {
        whole = whole + turn.size();
        if kept > 0 && whole.tokens() > limits.tokens_max {
            break;
        }
        kept += 1;
    }
    let evicted = turns.len() - kept;
    turns.drain(..evicted);
    u32::try_from(evicted).unwrap_or(u32::MAX)
}

/// Evicts turns, and shortens the last one; clears all if the budget does not hold a line.
fn fit(turns: &mut Vec<CompactSummary>, rules: DialogRules<'_>) -> Omitted {
    let evicted = evict(turns, rules.limits);
    let whole = Omitted { evicted, shortened: false };
    let [last] = turns.as_mut_slice() else { return whole };
    let most = Size::of_tokens(rules.limits.tokens_max);
    let room = most.less(Size::of(HEADER));
    if room.is_some_and(|room| room.less(last.size()).is_some()) {
        return whole;
    }
    if room.is_some_and(|room| shorten(last, room, rules.gate)) {
        return Omitted { evicted, shortened: true };
    }
    turns.clear();
    Omitted { evicted: evicted.saturating_add(1), shortened: false }
}

/// Shortens a turn until its line fits `room`; false if it cannot.
fn shorten(turn: &mut CompactSummary, room: Size, gate: &Gate) -> bool {
    let pending = std::mem::take(&mut turn.pending_items);
    if let Some(left) = room.less(turn.size()) {
        turn.pending_items = shorten_items(&pending, left, gate);
        return true;
    }
    let (mark, mark_size) = (ours("…"), Size { chars: 1, words: 1 });
    let action = std::mem::replace(&mut turn.action_taken, mark.clone());
    if let Some(left) = room.less(turn.size()) {
        turn.action_taken = within(&action, left + mark_size, gate);
        return true;
    }
    let intent = std::mem::replace(&mut turn.user_intent, mark);
    let Some(left) = room.less(turn.size()) else { return false };
    turn.user_intent = within(&intent, left + mark_size, gate);
    true
}

/// As many items as fit in `left`, the last one truncated if too long.
fn shorten_items(items: &[Redacted], mut left: Size, gate: &Gate) -> Vec<Redacted> {
    let mut kept: Vec<Redacted> = Vec::new();
    for item in items {
        let before = if kept.is_empty() { PENDING } else { NEXT };
        let Some(room) = left.less(before) else { break };
        let short = within(item, room, gate);
        let is_cut = short != *item;
        if short.is_empty() || (is_cut && short.as_str().chars().count() < ITEM_CHARS_MIN) {
            break;
        }
        left = room.less(Size::of(short.as_str())).unwrap_or_default();
        kept.push(short);
        if is_cut {
            break;
        }
    }
    kept
}
