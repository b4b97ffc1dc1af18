//! A cut slice as a job keeps it: which words of which entries, and not the words themselves. The
//! slice is rebuilt from the stored entries when its turn comes.

use super::weave::{Cutting, Stretch, weave};
use crate::domain::{Entry, SessionId};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Pieces of one slice that are read back. A row that says more is damaged: an entry takes four tokens
/// or more of a slice, and no model reads four million.
const PIECES_MAX: u64 = 1 << 20;

/// Where a slice was cut. As JSON it is `[index,[piece,…]]`; a piece is `[ordinal]` for a whole entry,
/// `[first,last]` for a run of them, and `[ordinal,part,parts,start]`, with `end` behind it unless it is
/// that of the entry, for a piece of one.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "Numbers", into = "Numbers")]
pub struct Cut {
    /// The slice's place among the session's slices, from 0.
    pub index: u32,
    /// What stands in it, in the order in which it stands there.
    pub pieces: Vec<Piece>,
}

/// Which words of one entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Piece {
    /// The entry's ordinal in its session.
    pub ordinal: u32,
    /// Which part of the entry this is, from 0.
    pub part: u32,
    /// How many parts the entry has; 1 for a whole entry.
    pub parts: u32,
    /// Where the words begin in the entry's text, in bytes.
    pub start: usize,
    /// Where they end, in bytes; none if at the end of the entry, however long it is by then.
    pub end: Option<usize>,
}

impl Piece {
    fn whole(ordinal: u32) -> Piece {
        Piece { ordinal, part: 0, parts: 1, start: 0, end: None }
    }
}

/// An entry of a slice is not among those that were given.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("entry {ordinal} of the slice is not stored")]
pub struct MissingEntry {
    /// The entry's ordinal in its session.
    pub ordinal: u32,
}

impl Cut {
    /// Where `cutting` was cut.
    pub fn of(cutting: &Cutting) -> Cut {
        let parts = cutting.slice.parts.iter().zip(&cutting.entries);
        let pieces = parts.map(|(part, entry)| {
            let end = part.entry_offset + part.span.len();
            Piece {
                ordinal: part.ordinal,
                part: part.part,
                parts: part.parts,
                start: part.entry_offset,
                end: (end < entry.text.len()).then_some(end),
            }
        });
        Cut { index: cutting.slice.index, pieces: pieces.collect() }
    }
}

/// The slice that was cut so, of `entries` as they are stored, in any order. If they are as they were,
/// it is the same slice. Where the text of one has changed since, its pieces are those of the new
/// text: they begin and end at the nearest character before, and together they still are all of it.
///
/// # Errors
///
/// If an entry is not there.
pub fn rebuild(session: SessionId, cut: &Cut, entries: &[Entry]) -> Result<Cutting, MissingEntry> {
    let by_ordinal: HashMap<u32, &Entry> = entries.iter().map(|it| (it.ordinal, it)).collect();
    let (mut found, mut stretches) = (Vec::new(), Vec::new());
    for piece in &cut.pieces {
        let missing = MissingEntry { ordinal: piece.ordinal };
        let entry: &Entry = by_ordinal.get(&piece.ordinal).copied().ok_or(missing)?;
        stretches.push(stretch(piece, entry.text.as_str()));
        found.push(entry.clone());
    }
    Ok(weave((session, cut.index), found, stretches))
}

fn stretch(piece: &Piece, text: &str) -> Stretch {
    let start = text.floor_char_boundary(piece.start);
    let end = piece.end.map_or(text.len(), |end| text.floor_char_boundary(end)).max(start);
    Stretch { range: start..end, part: piece.part, parts: piece.parts }
}

/// The index, and the pieces as lists of numbers.
#[derive(Deserialize, Serialize)]
struct Numbers(u32, Vec<Vec<u64>>);

impl From<Cut> for Numbers {
    fn from(cut: Cut) -> Numbers {
        let mut lists: Vec<Vec<u64>> = Vec::new();
        let mut run: Option<(u32, u32)> = None;
        for piece in cut.pieces {
            let whole = piece == Piece::whole(piece.ordinal);
            match run {
                Some((first, last)) if whole && last.checked_add(1) == Some(piece.ordinal) => {
                    run = Some((first, piece.ordinal));
                    continue;
                }
                Some(_) | None => lists.extend(run.take().map(numbers_of_run)),
            }
            if whole {
                run = Some((piece.ordinal, piece.ordinal));
            } else {
                let [ordinal, part, of] = [piece.ordinal, piece.part, piece.parts].map(u64::from);
                let list = [ordinal, part, of, piece.start as u64].into_iter();
                lists.push(list.chain(piece.end.map(|end| end as u64)).collect());
            }
        }
        lists.extend(run.map(numbers_of_run));
        Numbers(cut.index, lists)
    }
}

fn numbers_of_run((first, last): (u32, u32)) -> Vec<u64> {
    let first_alone = [u64::from(first)].into_iter();
    first_alone.chain((first < last).then_some(u64::from(last))).collect()
}

/// Not what [`Cut`] is written as.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("not a cut slice: expected [index,[piece,...]], a piece of one, two, four or five numbers")]
struct BadCut;

impl TryFrom<Numbers> for Cut {
    type Error = BadCut;

    fn try_from(Numbers(index, lists): Numbers) -> Result<Cut, BadCut> {
        let short = |number: u64| u32::try_from(number).map_err(|_| BadCut);
        let long = |number: u64| usize::try_from(number).map_err(|_| BadCut);
        let mut pieces = Vec::new();
        for list in lists {
            match *list.as_slice() {
                [ordinal] => pieces.push(Piece::whole(short(ordinal)?)),
                [first, last] if first < last && last - first < PIECES_MAX => {
                    pieces.extend((short(first)?..=short(last)?).map(Piece::whole));
                }
                [ordinal, part, parts, start, ref end @ ..] if end.len() < 2 && part < parts => {
                    let end = end.first().copied().map(long).transpose()?;
                    let [ordinal, part, parts] = [short(ordinal)?, short(part)?, short(parts)?];
                    let start = long(start)?;
                    if end.is_some_and(|end| end < start) {
                        return Err(BadCut);
                    }
                    pieces.push(Piece { ordinal, part, parts, start, end });
                }
                _ => return Err(BadCut),
            }
            if pieces.len() as u64 > PIECES_MAX {
                return Err(BadCut);
            }
        }
        Ok(Cut { index, pieces })
    }
}
