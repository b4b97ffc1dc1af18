//! The block that a session starts with: the memory directory and what is remembered of the
//! conversation, within a budget. Pure; it reads no file.
//!
//! The block repeats what people, tools and web pages said in earlier sessions, so it is fenced: it is between
//! `<memory …>` and `</memory>`, which nothing inside can close, after one sentence that explains the fence. The same
//! material gives the same bytes, and the conversation does not move what the directory says, so that prompt caches
//! hit.
//!
//! One fence holds the directory: rules, the project, decisions, contradictions, current focus, open requests, open
//! questions, blockers, lessons, answers to a query, terms. After it, each part of the conversation has its own fence:
//! recent turns, known entities, summary, card.

mod budget;
mod directory;
#[cfg(test)]
mod directory_tests;
mod fence;
mod fit;
#[cfg(test)]
mod laws;
mod material;
mod publish;
#[cfg(test)]
mod tests;

use crate::domain::Tokens;
use crate::privacy::{Gate, Redacted, Woven};
use budget::Size;
pub use budget::{Budget, Kind};
pub(crate) use directory::{material, shown_files};
use fence::OPENED;
pub(crate) use fence::{CLOSE, OPEN, PREAMBLE};
use fit::{fit, whole};
pub use material::{Entry, Group, Material, Section};
pub(crate) use publish::{for_agents, with_block};
use serde::Serialize;
use std::ops::Add;

/// Maximum length of the mark for omitted parts, in characters, with its line ends.
const MARK_CHARS_MAX: usize = 40;
/// Name of the fence around the directory.
const PROJECT: &str = "project";
/// Mark of a heading in it.
const HEADING: &str = "## ";
/// Line ends around a heading in it.
const HEADING_ENDS: usize = 2;

/// Block that a session starts with.
#[derive(schemars::JsonSchema, Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Block {
    /// Text, ending with a line end; empty if nothing is known or nothing fits.
    pub text: Redacted,
    /// Length in tokens: a quarter of its characters.
    pub tokens: Tokens,
    /// Maximum length.
    pub tokens_max: Tokens,
    /// Parts in order, omitted ones included.
    pub parts: Vec<Part>,
}

/// A part of a block.
#[derive(schemars::JsonSchema, Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Part {
    /// Kind.
    pub kind: Kind,
    /// Heading in the block, or the name of its fence.
    pub name: &'static str,
    /// Length with its heading or fence; 0 if omitted.
    pub tokens: Tokens,
    /// Shown entries.
    pub entries: usize,
    /// Omitted entries.
    pub omitted: usize,
}

/// Assembles the block.
///
/// Entries are shown whole or left out with a mark. Room is reserved for the parts of the conversation by their
/// presence alone, so that their length moves nothing before them.
pub fn assemble(material: &Material, budget: &Budget, gate: &Gate) -> Block {
    let mut block = Assembly::new(budget, gate);
    let conversation = material.conversation();
    let each = Size::of_tokens(budget.conversation_tokens());
    let each = Size { units: each.chars, ..each };
    let kept = conversation.iter().fold(Size::default(), |kept, _| kept + each);
    let all = block.left;
    // If they would take all the room, they get what the directory leaves.
    block.left = all.less(kept).unwrap_or(all);
    let kept = if block.left == all { Size::default() } else { kept };
    block.directory(&material.groups);
    block.left += kept;
    for (kind, sections) in &conversation {
        let fence = fence_size(kind.name());
        let room = block.left.less(fence).map(|room| room.min(each));
        block.push(*kind, sections, room, fence);
    }
    block.finish(budget)
}

/// Fences `sections` as one part; entries that do not fit into `tokens` are omitted with a mark. Empty if nothing fits.
pub(crate) fn fenced(
    name: &'static str,
    sections: &[Section],
    tokens: Tokens,
    gate: &Gate,
) -> Redacted {
    let taken = Size::of(PREAMBLE) + fence_size(name) + Size::ascii(1);
    let room = Size::of_tokens(tokens).less(taken);
    let Some(fitted) = room.and_then(|room| fit(sections, room, gate)) else {
        return Redacted::default();
    };
    let opening = [PREAMBLE, "\n\n", OPEN, name, OPENED].map(Woven::Ours);
    let closing = ["\n", CLOSE, "\n"].map(Woven::Ours);
    let text = [Woven::Passed(&fitted.text)];
    Redacted::weave(&[&opening[..], &text, &closing].concat())
}

struct Assembly<'a> {
    gate: &'a Gate,
    /// Remaining room, without the preamble and the mark for omitted parts.
    left: Size,
    /// Kind and text of each shown part.
    shown: Vec<(Kind, Redacted)>,
    parts: Vec<Part>,
}

impl<'a> Assembly<'a> {
    fn new(budget: &Budget, gate: &'a Gate) -> Assembly<'a> {
        let taken = Size::of(PREAMBLE) + Size::ascii(1 + MARK_CHARS_MAX);
        let left = budget.room().less(taken).unwrap_or_default();
        Assembly { gate, left, shown: Vec::new(), parts: Vec::new() }
    }

    /// Adds the groups of the directory, in one fence.
    fn directory(&mut self, groups: &[Group]) {
        let all = self.left;
        self.left = all.less(fence_size(PROJECT)).unwrap_or_default();
        for (group, room) in groups.iter().zip(allotted(groups, self.left)) {
            let heading = heading_size(group.kind);
            self.push(group.kind, &group.sections, room.less(heading), heading);
        }
        if self.shown.is_empty() {
            self.left = all;
        }
    }

    /// Adds the entries that fit into `room`, within a frame.
    fn push(&mut self, kind: Kind, sections: &[Section], room: Option<Size>, frame: Size) {
        let omitted = sections.iter().map(|section| section.entries.len()).sum();
        let mut part = Part { kind, name: kind.name(), tokens: 0, entries: 0, omitted };
        if let Some(fitted) = room.and_then(|room| fit(sections, room, self.gate)) {
            let size = fitted.size + frame;
            self.left = self.left.less(size).unwrap_or_default();
            (part.tokens, part.entries) = (size.tokens(), fitted.entries);
            part.omitted = fitted.omitted;
            self.shown.push((kind, fitted.text));
        }
        if part.entries + part.omitted > 0 {
            self.parts.push(part);
        }
    }

    fn finish(self, budget: &Budget) -> Block {
        let mut block =
            Block { tokens_max: budget.tokens(), parts: self.parts, ..Block::default() };
        if self.shown.is_empty() {
            return block;
        }
        let mut pieces = vec![Woven::Ours(PREAMBLE), Woven::Ours("\n")];
        let mut is_open = false;
        for (kind, text) in &self.shown {
            let is_directory = Kind::DIRECTORY.contains(kind);
            if is_open && !is_directory {
                pieces.extend([CLOSE, "\n"].map(Woven::Ours));
                is_open = false;
            }
            pieces.push(Woven::Ours("\n"));
            if !std::mem::replace(&mut is_open, true) {
                let name = if is_directory { PROJECT } else { kind.name() };
                pieces.extend([OPEN, name, OPENED].map(Woven::Ours));
            }
            if is_directory {
                pieces.extend([HEADING, kind.name(), "\n"].map(Woven::Ours));
            }
            pieces.extend([Woven::Passed(text), Woven::Ours("\n")]);
        }
        pieces.extend([CLOSE, "\n"].map(Woven::Ours));
        let omitted = block.parts.iter().filter(|part| part.entries == 0).count();
        let mark = match omitted {
            0 => String::new(),
            1 => "\n[… 1 part omitted]\n".to_owned(),
            more => format!("\n[… {more} parts omitted]\n"),
        };
        pieces.push(Woven::Label(&mark));
        block.text = Redacted::weave(&pieces);
        block.tokens = Size::of(block.text.as_str()).tokens();
        block
    }
}

/// Room of each group: its share, or less if it needs less. What groups leave goes to the others by their shares, and
/// the rest to the first.
fn allotted(groups: &[Group], room: Size) -> Vec<Size> {
    let needs: Vec<Size> =
        groups.iter().map(|group| whole(&group.sections) + heading_size(group.kind)).collect();
    let mut left = room;
    let shares = groups.iter().map(|group| room.percent(group.kind.share()));
    let mut given: Vec<Size> =
        needs.iter().zip(shares).map(|(need, share)| take(need.min(share), &mut left)).collect();
    for _ in groups {
        let lacks = |given: &Size, need: &Size| need.less(*given).unwrap_or_default();
        let of_each = given.iter().zip(&needs).map(|(given, need)| lacks(given, need));
        let of_each: Vec<Size> = of_each.collect();
        let wanting = groups.iter().zip(&of_each).filter(|(_, lack)| lack.chars > 0);
        let total: usize = wanting.map(|(group, _)| group.kind.share()).sum();
        if total == 0 {
            break;
        }
        let spare = left;
        for ((group, lack), given) in groups.iter().zip(of_each).zip(&mut given) {
            let share = spare.percent((group.kind.share() * 100 / total).min(100));
            *given += take(lack.min(share), &mut left);
        }
    }
    for (given, need) in given.iter_mut().zip(&needs) {
        *given += take(need.less(*given).unwrap_or_default(), &mut left);
    }
    given
}

/// Takes `size` from `left`, or as much as there is.
fn take(size: Size, left: &mut Size) -> Size {
    let taken = size.min(*left);
    *left = left.less(taken).unwrap_or_default();
    taken
}

/// Size of a heading in the fence of the directory, with its line ends and that of its text.
fn heading_size(kind: Kind) -> Size {
    Size::of(HEADING) + Size::of(kind.name()) + Size::ascii(HEADING_ENDS + 1)
}

/// Size of a part's fence.
fn fence_size(name: &str) -> Size {
    const LINE_ENDS: usize = 3;
    [OPEN, name, OPENED, CLOSE].map(Size::of).into_iter().fold(Size::ascii(LINE_ENDS), Size::add)
}
