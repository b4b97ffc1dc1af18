//! Cuts a slice in two that was too long for the model's window.

use super::SLICE_TOKENS_MIN;
use super::cut::{Cut, Piece, rebuild};
use super::render::label;
use super::slicer::{Settings, Slicer};
use super::weave::Cutting;
use crate::domain::{Entry, Tokens, estimate_tokens};
use std::collections::BTreeSet;

/// The slice in two or more of at most half its length, in reading order; nothing where half would be
/// less than [`SLICE_TOKENS_MIN`]. Together they hold the words that it holds, each once: nothing is
/// shortened, so that they too can be rebuilt from what is stored. A call stays with its result where
/// both fit. They keep the slice's index; an entry that is split here has its parts numbered anew.
pub fn halve(cutting: &Cutting) -> Vec<Cutting> {
    let half = cutting.slice.tokens / 2;
    if half < SLICE_TOKENS_MIN {
        return Vec::new();
    }
    let pieces = Cut::of(cutting).pieces;
    let named: Tokens = cutting.entries.iter().zip(&pieces).map(named).sum();
    let settings = Settings { tokens: half.saturating_sub(named), tool_tokens: Tokens::MAX };
    let mut slicer = Slicer::new(cutting.slice.session, settings, BTreeSet::new());
    let mut halves = Vec::new();
    // One entry may stand here in two pieces; the cutter sees each as an entry of its own.
    for (number, (entry, part)) in (0..).zip(cutting.entries.iter().zip(&cutting.slice.parts)) {
        let mut piece = entry.clone();
        piece.ordinal = number;
        piece.text = entry.text.cut(part.entry_offset..part.entry_offset + part.span.len());
        halves.extend(slicer.push(piece));
    }
    halves.extend(slicer.finish());
    if halves.len() < 2 {
        return Vec::new();
    }
    let whole = |half: Cutting| {
        let pieces = Cut::of(&half).pieces.into_iter().map(|inner| inside(inner, &pieces));
        let cut = Cut { index: cutting.slice.index, pieces: pieces.collect::<Option<_>>()? };
        rebuild(cutting.slice.session, &cut, &cutting.entries).ok()
    };
    halves.into_iter().map(whole).collect::<Option<_>>().unwrap_or_default()
}

/// What the number of its part adds to the label of a piece, in tokens.
fn named((entry, piece): (&Entry, &Piece)) -> Tokens {
    let numbered = estimate_tokens(&label(entry, piece.part, piece.parts));
    numbered.saturating_sub(estimate_tokens(&label(entry, 0, 1)))
}

/// A piece of the piece that has its number, as a piece of the entry.
fn inside(inner: Piece, pieces: &[Piece]) -> Option<Piece> {
    let outer = pieces.get(inner.ordinal as usize)?;
    let (part, parts) =
        if inner.parts > 1 { (inner.part, inner.parts) } else { (outer.part, outer.parts) };
    Some(Piece {
        ordinal: outer.ordinal,
        part,
        parts,
        start: outer.start + inner.start,
        end: inner.end.map(|end| outer.start + end).or(outer.end),
    })
}
