//! Joins both sides of an unfinished git merge.

use crate::memory_dir::document::{Block, Document, Part};
use crate::memory_dir::edit::Edits;
use crate::memory_dir::kind::Kind;
use crate::memory_dir::tag::Tag;
use std::collections::HashSet;

const JOINS_MAX: usize = 16;

/// Text with both sides of each unfinished merge; `None` if they have two versions of one entry: a person chooses.
pub(super) fn with_both_sides(document: &Document<'_>) -> Option<String> {
    // Removing a marker may reveal others.
    let joined = repeated(joined(document), JOINS_MAX, |now| {
        let (left, _) = Document::parse(document.kind, now);
        if left.is_private() { now.to_owned() } else { joined(&left) }
    });
    // A tag below both sides belongs to an entry of each.
    let mut lines = document.text.lines().zip(document.text.lines().skip(1));
    let is_shared = |it: (&str, &str)| it.0.starts_with(">>>>>>>") && Tag::parse(it.1).is_some();
    (!repeats_tag(document.kind, &joined) && !lines.any(is_shared)).then_some(joined)
}

/// Repeats `step` until it changes nothing, at most `rounds_max` times.
pub(super) fn repeated(text: String, rounds_max: usize, step: impl Fn(&str) -> String) -> String {
    let mut now = text;
    for _ in 0..rounds_max {
        let next = step(&now);
        if next == now {
            break;
        }
        now = next;
    }
    now
}

/// True if two entries have the tag of the same memory.
fn repeats_tag(kind: Kind, text: &str) -> bool {
    let (document, _) = Document::parse(kind, text);
    let mut met = HashSet::new();
    let is_again = |block: &Block| {
        document.tags(block).filter_map(|tag| tag.ours()).any(|tag| !met.insert(tag.to_owned()))
    };
    document.entries().any(is_again)
}

/// Keeps both sides of an unfinished git merge, one after the other; common entries once.
fn joined(document: &Document<'_>) -> String {
    let mut edits = Edits::new(document);
    let mut side = ' ';
    let mut first: HashSet<&str> = HashSet::new();
    for (at, block) in document.blocks.iter().enumerate() {
        let raw = document.raw(block);
        match (block.part, raw.trim_start_matches('\u{feff}').chars().next().unwrap_or(' ')) {
            (Part::Marker, mark) => {
                edits.remove(at);
                // An end marker without a start belongs to nothing.
                side = if mark == '>' { ' ' } else { mark };
                if mark == '<' {
                    first.clear();
                }
            }
            _ if document.holds_private(block) => {}
            (Part::Blank, _) => {}
            _ if side == '<' => {
                first.insert(raw.trim());
            }
            _ if side == '|' => edits.remove(at),
            _ if side == '=' && first.contains(raw.trim()) => edits.remove(at),
            _ => {}
        }
    }
    edits.finish().text
}
