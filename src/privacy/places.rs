//! Places in a text of which pieces were cut.

use std::ops::Range;

/// Where in a text the bytes stand that are left of it.
pub(super) struct Places {
    /// For each cut the byte of what is left that stands behind it, and how much was cut so far.
    cuts: Vec<(usize, usize)>,
    /// The bytes that are left.
    left: usize,
}

impl Places {
    pub(super) fn of(cuts: &[Range<usize>], left: usize) -> Places {
        let mut gone = 0;
        let known = cuts.iter().map(|cut| {
            let at = cut.start - gone;
            gone += cut.len();
            (at, gone)
        });
        Places { cuts: known.collect(), left }
    }

    pub(super) fn place(&self, at: usize) -> usize {
        let before = self.cuts.partition_point(|(cut, _)| *cut <= at);
        let last = before.checked_sub(1).and_then(|last| self.cuts.get(last));
        at + last.map_or(0, |(_, gone)| *gone)
    }

    pub(super) fn range(&self, range: &Range<usize>) -> Range<usize> {
        // What ends with what is left takes in what was cut behind it.
        if range.end == self.left {
            return self.place(range.start)..self.place(range.end);
        }
        let last = range.end.saturating_sub(1).max(range.start);
        self.place(range.start)..self.place(last) + (range.end - last)
    }
}

/// The ranges that stand in no other, in order. Of two, one holds the other or they share nothing.
pub(super) fn outermost(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = ranges.collect();
    all.sort_unstable_by_key(|range| (range.start, usize::MAX - range.end));
    let mut end = 0;
    all.retain(|range| {
        let is_outer = end < range.end;
        end = end.max(range.end);
        is_outer
    });
    all
}
