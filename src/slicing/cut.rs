//! A slice as a job stores it: positions in entries instead of their text. The slice is rebuilt from the stored entries
//! when the job is claimed, and cut in two if it is too long for the model's window.

use super::slicer::{SLICE_TOKENS_MIN, SliceSettings, Slicer};
use super::{Cutting, Stretch, assemble, label};
use crate::domain::{Entry, SessionId, Tokens, estimate_tokens};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

/// Maximum number of pieces of one slice that are read back. A row with more is damaged: an entry takes
/// at least four tokens of a slice, and no model reads four million.
const PIECES_MAX: u64 = 1 << 20;

/// Positions of a slice. As JSON it is `[index,[piece,…]]`; a piece is `[ordinal]` for a whole entry,
/// `[first,last]` for a run of them, and `[ordinal,part,parts,start]` for a piece of one, followed by
/// `end` unless it extends to the end of the entry.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "Numbers", into = "Numbers")]
pub(crate) struct SliceCut {
    /// Index of the slice in its session, from 0.
    pub index: u32,
    /// Pieces in order.
    pub pieces: Vec<SlicePiece>,
}

/// A piece of one entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SlicePiece {
    /// The entry's ordinal in its session.
    pub ordinal: u32,
    /// Part of the entry, from 0.
    pub part: u32,
    /// Number of the entry's parts; 1 for a whole entry.
    pub parts: u32,
    /// First byte in the entry's text.
    pub start: usize,
    /// End in bytes; `None` for the end of the entry, even if its length changed.
    pub end: Option<usize>,
}

impl SlicePiece {
    fn whole(ordinal: u32) -> SlicePiece {
        SlicePiece { ordinal, part: 0, parts: 1, start: 0, end: None }
    }
}

/// An entry of a slice is missing.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("entry {ordinal} of the slice is not stored")]
pub(crate) struct MissingEntry {
    /// The entry's ordinal in its session.
    pub ordinal: u32,
}

impl SliceCut {
    /// The positions of `cutting`.
    pub(crate) fn of(cutting: &Cutting) -> SliceCut {
        let parts = cutting.slice.parts.iter().zip(&cutting.entries);
        let pieces = parts.map(|(part, entry)| {
            let end = part.entry_offset + part.span.len();
            SlicePiece {
                ordinal: part.ordinal,
                part: part.part,
                parts: part.parts,
                start: part.entry_offset,
                end: (end < entry.text.len()).then_some(end),
            }
        });
        SliceCut { index: cutting.slice.index, pieces: pieces.collect() }
    }
}

/// Rebuilds a slice from `entries` as they are stored, in any order. Unchanged entries give the same
/// slice. If the text of one has changed, its pieces are those of the new text: they begin and end at
/// the nearest character before, and together they still cover all of it.
///
/// # Errors
///
/// If an entry is missing.
pub(crate) fn rebuild(
    session: SessionId,
    cut: &SliceCut,
    entries: &[Entry],
) -> Result<Cutting, MissingEntry> {
    let by_ordinal: HashMap<u32, &Entry> = entries.iter().map(|it| (it.ordinal, it)).collect();
    let (mut found, mut stretches) = (Vec::new(), Vec::new());
    for piece in &cut.pieces {
        let missing = MissingEntry { ordinal: piece.ordinal };
        let entry: &Entry = by_ordinal.get(&piece.ordinal).copied().ok_or(missing)?;
        stretches.push(stretch(piece, entry.text.as_str()));
        found.push(entry.clone());
    }
    Ok(assemble(session, cut.index, found, stretches))
}

fn stretch(piece: &SlicePiece, text: &str) -> Stretch {
    let start = text.floor_char_boundary(piece.start);
    let end = piece.end.map_or(text.len(), |end| text.floor_char_boundary(end)).max(start);
    Stretch { range: start..end, part: piece.part, parts: piece.parts }
}

/// The index, and the pieces as lists of numbers.
#[derive(Deserialize, Serialize)]
struct Numbers(u32, Vec<Vec<u64>>);

impl From<SliceCut> for Numbers {
    fn from(cut: SliceCut) -> Numbers {
        let (mut lists, mut in_run) = (Vec::<Vec<u64>>::new(), false);
        for piece in cut.pieces {
            let is_whole = piece == SlicePiece::whole(piece.ordinal);
            let [ordinal, part, of] = [piece.ordinal, piece.part, piece.parts].map(u64::from);
            let run = lists.last_mut().filter(|_| in_run && is_whole);
            if let Some(run) = run.filter(|run| run.last().is_some_and(|last| last + 1 == ordinal))
            {
                run.truncate(1);
                run.push(ordinal);
            } else if is_whole {
                lists.push(vec![ordinal]);
            } else {
                let list = [ordinal, part, of, piece.start as u64].into_iter();
                lists.push(list.chain(piece.end.map(|end| end as u64)).collect());
            }
            in_run = is_whole;
        }
        Numbers(cut.index, lists)
    }
}

/// Malformed JSON of a [`SliceCut`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("not a cut slice: expected [index,[piece,...]], a piece of one, two, four or five numbers")]
struct BadCut;

impl TryFrom<Numbers> for SliceCut {
    type Error = BadCut;

    fn try_from(numbers: Numbers) -> Result<SliceCut, BadCut> {
        let Numbers(index, lists) = numbers;
        let short = |number: u64| u32::try_from(number).map_err(|_| BadCut);
        let long = |number: u64| usize::try_from(number).map_err(|_| BadCut);
        let mut pieces = Vec::new();
        for list in lists {
            match *list.as_slice() {
                [ordinal] => pieces.push(SlicePiece::whole(short(ordinal)?)),
                [first, last] if first < last && last - first < PIECES_MAX => {
                    pieces.extend((short(first)?..=short(last)?).map(SlicePiece::whole));
                }
                [ordinal, part, parts, start, ref end @ ..] if end.len() < 2 && part < parts => {
                    let end = end.first().copied().map(long).transpose()?;
                    let [ordinal, part, parts] = [short(ordinal)?, short(part)?, short(parts)?];
                    let start = long(start)?;
                    if end.is_some_and(|end| end < start) {
                        return Err(BadCut);
                    }
                    pieces.push(SlicePiece { ordinal, part, parts, start, end });
                }
                _ => return Err(BadCut),
            }
            if pieces.len() as u64 > PIECES_MAX {
                return Err(BadCut);
            }
        }
        Ok(SliceCut { index, pieces })
    }
}

/// Cuts a slice into two or more of at most half its length, in order; empty if half is less than
/// [`SLICE_TOKENS_MIN`]. Together they have the same text, each part of it once and nothing shortened, so
/// that they too can be rebuilt from what is stored. A call stays with its result if both fit. They keep
/// the slice's index; an entry that is split here gets new part numbers.
pub(crate) fn halve(cutting: &Cutting) -> Vec<Cutting> {
    let half = cutting.slice.tokens / 2;
    if half < SLICE_TOKENS_MIN {
        return Vec::new();
    }
    let pieces = SliceCut::of(cutting).pieces;
    let numbers = cutting.entries.iter().zip(&pieces).map(|(it, piece)| number_tokens(it, piece));
    let tokens = half.saturating_sub(numbers.sum());
    let settings = SliceSettings { tokens, tool_tokens: Tokens::MAX };
    let mut slicer = Slicer::new(cutting.slice.session, settings, BTreeSet::new());
    let mut halves = Vec::new();
    // One entry may occur here in two pieces; the slicer treats each as a separate entry.
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
        let pieces = SliceCut::of(&half).pieces.into_iter().map(|inner| inside(inner, &pieces));
        let cut = SliceCut { index: cutting.slice.index, pieces: pieces.collect::<Option<_>>()? };
        rebuild(cutting.slice.session, &cut, &cutting.entries).ok()
    };
    halves.into_iter().map(whole).collect::<Option<_>>().unwrap_or_default()
}

/// Tokens that the part number adds to the label of a piece.
fn number_tokens(entry: &Entry, piece: &SlicePiece) -> Tokens {
    let numbered = estimate_tokens(&label(entry, piece.part, piece.parts));
    numbered.saturating_sub(estimate_tokens(&label(entry, 0, 1)))
}

/// Maps a piece of a piece, which has that piece's number as its ordinal, to a piece of the entry.
fn inside(inner: SlicePiece, pieces: &[SlicePiece]) -> Option<SlicePiece> {
    let outer = pieces.get(inner.ordinal as usize)?;
    let (part, parts) =
        if inner.parts > 1 { (inner.part, inner.parts) } else { (outer.part, outer.parts) };
    Some(SlicePiece {
        ordinal: outer.ordinal,
        part,
        parts,
        start: outer.start + inner.start,
        end: inner.end.map(|end| outer.start + end).or(outer.end),
    })
}
