//! Consecutive entries, one request's worth, and where in the text each entry's words stand.

use super::{Branch, Digest, EntryKind, SessionId, SliceId, Speaker, Timestamp, Tokens};
use crate::privacy::Redacted;
use std::ops::Range;

/// One entry of a slice, or one part of an entry that was too long for one slice.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Part {
    /// The entry's ordinal in its session.
    pub ordinal: u32,
    /// The line of the file it begins on.
    pub line: u32,
    /// Which part this is, from 0.
    pub part: u32,
    /// How many parts the entry has; 1 for a whole entry.
    pub parts: u32,
    /// Who said it.
    pub speaker: Speaker,
    /// What sort of item it is.
    pub kind: EntryKind,
    /// Which line of the conversation it stands on.
    pub branch: Branch,
    /// When it was said.
    pub at: Option<Timestamp>,
    /// Where its words stand in the slice's text, in bytes, label left out.
    pub span: Range<usize>,
    /// Where those words begin in the entry's own text, in bytes.
    pub entry_offset: usize,
}

/// Consecutive entries of one session as a model reads them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Slice {
    /// Digest of session, range and text.
    pub id: SliceId,
    /// The conversation it is from.
    pub session: SessionId,
    /// Its place among the session's slices, from 0.
    pub index: u32,
    /// The rendered entries.
    pub text: Redacted,
    /// The entries, in the order in which they stand in the text.
    pub parts: Vec<Part>,
    /// Estimated tokens of the text.
    pub tokens: Tokens,
}

impl Slice {
    /// The id of the slice with this text at this place.
    pub fn id_of(session: SessionId, parts: &[Part], text: &Redacted) -> SliceId {
        let place = |part: &Part| format!("{}.{}", part.ordinal, part.part);
        let first = parts.first().map(place).unwrap_or_default();
        let last = parts.last().map(place).unwrap_or_default();
        let session = session.to_string();
        SliceId(Digest::of(&["slice", &session, &first, &last, text.as_str()]))
    }

    /// The part whose words stand at byte `offset` of the text.
    pub fn part_at(&self, offset: usize) -> Option<&Part> {
        let after = self.parts.partition_point(|part| part.span.start <= offset);
        self.parts[..after].last().filter(|part| offset < part.span.end)
    }

    /// The lowest and the highest ordinal.
    pub fn range(&self) -> (u32, u32) {
        let ordinals = || self.parts.iter().map(|part| part.ordinal);
        (ordinals().min().unwrap_or(0), ordinals().max().unwrap_or(0))
    }
}
