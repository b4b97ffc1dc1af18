//! A conversation with the words that records rest on marked in place, and no more of it than a page can hold.

use super::html::{Html, cut, escaped_len};
use crate::score::report::{CaseReport, Shown, ShownEntry};
use std::collections::BTreeMap;
use std::ops::Range;

/// What is shown of entries, in bytes; the first of these that fits the room of its case is taken.
const DETAILS: [Detail; 3] = [
    Detail { whole: 3_000, head: 900, tail: 450, around: 250, plain: true },
    Detail { whole: 400, head: 160, tail: 80, around: 120, plain: true },
    Detail { whole: 0, head: 80, tail: 0, around: 80, plain: false },
];
/// Bytes of evidence that are shown at either end of what is longer than both.
const SPAN_ENDS: usize = 500;
/// Bytes that the markup of an entry takes, about.
const ENTRY_MARKUP: usize = 260;
/// Bytes that the markup of a mark takes, about.
const MARK_MARKUP: usize = 220;

/// How much of an entry is shown.
#[derive(Clone, Copy)]
struct Detail {
    /// An entry of so many bytes is shown whole.
    whole: usize,
    /// Of a longer one its beginning,
    head: usize,
    /// its end,
    tail: usize,
    /// and so much around each mark.
    around: usize,
    /// Whether entries without a mark are shown.
    plain: bool,
}

/// A place that a record rests on, for one or more of its fields.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) entry: u32,
    pub(super) from: usize,
    pub(super) to: usize,
    /// The record's place in its case.
    pub(super) record: usize,
    pub(super) fields: Vec<String>,
    /// Who said it and how it was found.
    pub(super) how: String,
    /// Whether it stands in the conversation that is shown.
    pub(super) is_shown: bool,
}

/// The marks of a case, in order of its records; their places are their names on the page.
pub(super) fn marks(case: &CaseReport, shown: &Shown) -> Vec<Mark> {
    let entries: BTreeMap<u32, &str> =
        shown.entries.iter().map(|it| (it.ordinal, it.text.as_str())).collect();
    let mut marks: Vec<Mark> = Vec::new();
    for (record, it) in case.records.iter().enumerate() {
        let first = marks.len();
        for evidence in &it.evidence {
            let text = entries.get(&evidence.entry).copied().unwrap_or_default();
            let from = text.floor_char_boundary(evidence.from as usize);
            let to = text.floor_char_boundary(evidence.to as usize);
            let same =
                |mark: &&mut Mark| (mark.entry, mark.from, mark.to) == (evidence.entry, from, to);
            match marks.iter_mut().skip(first).find(same) {
                Some(mark) => mark.fields.push(evidence.field.clone()),
                None => marks.push(Mark {
                    entry: evidence.entry,
                    from,
                    to,
                    record,
                    fields: vec![evidence.field.clone()],
                    how: format!("{}, {}", evidence.speaker.name(), evidence.found.name()),
                    is_shown: from < to,
                }),
            }
        }
    }
    marks
}

/// Writes the conversation, in `room` bytes about. `key` begins every name of the case.
pub(super) fn transcript(
    html: &mut Html,
    shown: &Shown,
    marks: &[Mark],
    (key, room): (&str, usize),
) {
    let mut by_entry: BTreeMap<u32, Vec<(usize, &Mark)>> = BTreeMap::new();
    for (at, mark) in marks.iter().enumerate().filter(|(_, it)| it.is_shown) {
        by_entry.entry(mark.entry).or_default().push((at, mark));
    }
    let of = |it: &ShownEntry| by_entry.get(&it.ordinal).map(Vec::as_slice).unwrap_or_default();
    let size = |detail: &&Detail| {
        let sizes = shown.entries.iter().map(|it| size(it.text.as_str(), of(it), detail));
        sizes.sum::<usize>() <= room
    };
    let Some(detail) = DETAILS.iter().find(size).or(DETAILS.last()) else { return };
    let end = html.len() + room;
    let mut out = 0_usize;
    for entry in &shown.entries {
        let marks = of(entry);
        if (marks.is_empty() && !detail.plain) || end < html.len() {
            out += 1;
            continue;
        }
        left_out(html, &mut out);
        write_entry(html, entry, marks, (key, detail));
    }
    left_out(html, &mut out);
}

fn left_out(html: &mut Html, out: &mut usize) {
    match std::mem::take(out) {
        0 => html,
        1 => html.classed("p", "out", "1 entry left out"),
        many => html.classed("p", "out", &format!("{many} entries left out")),
    };
}

/// The bytes that an entry takes, about.
fn size(text: &str, marks: &[(usize, &Mark)], detail: &Detail) -> usize {
    if marks.is_empty() && !detail.plain {
        return 0;
    }
    let seen = windows(text, marks, detail);
    let seen = seen.into_iter().filter_map(|it| text.get(it)).map(escaped_len);
    ENTRY_MARKUP + MARK_MARKUP * marks.len() + seen.sum::<usize>()
}

/// What is shown of a text: pieces in order that do not touch.
fn windows(text: &str, marks: &[(usize, &Mark)], detail: &Detail) -> Vec<Range<usize>> {
    let head = if text.len() <= detail.whole { text.len() } else { detail.head };
    let mut all = vec![0..head, text.len().saturating_sub(detail.tail)..text.len()];
    for (_, mark) in marks {
        let (from, to) = (mark.from.saturating_sub(detail.around), mark.to + detail.around);
        if mark.to - mark.from <= 2 * SPAN_ENDS {
            all.push(from..to);
        } else {
            all.extend([from..mark.from + SPAN_ENDS, mark.to - SPAN_ENDS..to]);
        }
    }
    all.sort_by_key(|it| it.start);
    let mut pieces: Vec<Range<usize>> = Vec::new();
    for it in all {
        let start = text.floor_char_boundary(it.start);
        let it = start..text.ceil_char_boundary(it.end.min(text.len()));
        match pieces.last_mut() {
            Some(last) if it.start <= last.end + LEFT_OUT_MIN => last.end = last.end.max(it.end),
            _ => pieces.push(it),
        }
    }
    pieces.retain(|it| !it.is_empty());
    pieces
}

/// Bytes that are worth a line that says they are left out.
const LEFT_OUT_MIN: usize = 80;

fn write_entry(
    html: &mut Html,
    entry: &ShownEntry,
    marks: &[(usize, &Mark)],
    (key, detail): (&str, &Detail),
) {
    let (id, text) = (format!("{key}e{}", entry.ordinal), entry.text.as_str());
    html.open("article", &[("class", &format!("entry {}", entry.speaker.name())), ("id", &id)]);
    html.raw("<h5><b>").text(&entry.ordinal.to_string()).raw(" ").text(entry.speaker.name());
    html.raw("</b> ");
    cut(html, &entry.label, 200);
    html.raw("</h5><div class=\"text\" dir=\"auto\">");
    let mut seen = 0;
    for piece in windows(text, marks, detail) {
        gap(html, piece.start - seen);
        seen = piece.end;
        write_piece(html, text, marks, (key, piece));
    }
    gap(html, text.len() - seen);
    html.raw("</div>").close("article");
}

fn gap(html: &mut Html, bytes: usize) {
    if bytes > 0 {
        html.classed("span", "out", &format!("{bytes} bytes left out"));
    }
}

/// Writes a piece in parts between which no mark begins or ends. Behind the end of each mark stands the number
/// of its record, which leads there.
fn write_piece(
    html: &mut Html,
    text: &str,
    marks: &[(usize, &Mark)],
    (key, piece): (&str, Range<usize>),
) {
    let mut bounds: Vec<usize> = marks.iter().flat_map(|(_, it)| [it.from, it.to]).collect();
    bounds.extend([piece.start, piece.end]);
    bounds.retain(|it| piece.start <= *it && *it <= piece.end);
    bounds.sort_unstable();
    bounds.dedup();
    for pair in bounds.windows(2) {
        let &[from, to] = pair else { continue };
        let part = text.get(from..to).unwrap_or_default();
        let over = marks.iter().filter(|(_, it)| it.from <= from && to <= it.to).count();
        match over {
            0 => html.text(part),
            1 => html.raw("<mark>").text(part).raw("</mark>"),
            _ => html.raw("<mark class=\"more\">").text(part).raw("</mark>"),
        };
        for (at, mark) in marks.iter().filter(|(_, it)| it.to == to) {
            let (id, record) = (format!("{key}m{at}"), format!("#{key}r{}", mark.record));
            let number = (mark.record + 1).to_string();
            let label = format!("record {number}: {}", mark.fields.join(", "));
            let attributes =
                [("class", "ref"), ("id", &id), ("href", &record), ("aria-label", &label)];
            html.element("a", &attributes, &number);
        }
    }
}
