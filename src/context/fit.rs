//! Selection of the entries that fit: whole entries, under their headings, in order.

use super::budget::Size;
use super::fence::{harmless, visible};
use super::material::{Entry, Section};
use crate::privacy::{Gate, Redacted};
use std::borrow::Cow;
use std::cmp::Reverse;

/// Maximum length of the mark for omitted entries, with its line end.
const MARK_CHARS_MAX: usize = 40;

/// Share of the room in which the first entries are whole.
const WHOLE_PERCENT: usize = 30;
/// Maximum number of passes; the second nearly never finds anything.
const ROUNDS_MAX: usize = 4;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Fitted {
    pub(super) text: Redacted,
    pub(super) size: Size,
    pub(super) entries: usize,
    pub(super) omitted: usize,
}

/// An entry as it is shown, and its size with the line end.
struct EntryLine<'d> {
    text: Cow<'d, str>,
    size: Size,
    /// The short text, and its size.
    short: Option<(Cow<'d, str>, Size)>,
    score: u32,
    section: usize,
    stays: bool,
    is_short: bool,
}

/// Selects the entries of `sections` that fit into `room`: higher scores first, then earlier ones; an entry that is too long
/// by itself is omitted. If not all fit, the first ones are whole, and as many others as possible are shown in short.
/// `None` if nothing fits.
pub(super) fn fit(sections: &[Section], room: Size, gate: &Gate) -> Option<Fitted> {
    let mut lines = lines(sections);
    choose(&mut lines, sections, room);
    let omitted = lines.iter().filter(|line| !line.stays).count();
    let entries = lines.len() - omitted;
    if entries == 0 {
        return None;
    }
    let page = page(&lines, sections, omitted);
    let text = passed(&page, gate)?;
    let size = Size::of(text.as_str());
    room.less(size)?;
    let says_something = text.as_str().chars().any(char::is_alphanumeric);
    says_something.then_some(Fitted { text, size, entries, omitted })
}

/// Redacts the joined lines again, since joining or a replaced bracket may reveal more. `None` if
/// each pass finds more.
fn passed(page: &str, gate: &Gate) -> Option<Redacted> {
    let mut text = gate.redact(page);
    for _ in 0..ROUNDS_MAX {
        let without = harmless(&text);
        if without == text {
            return Some(text);
        }
        text = gate.redact(without.as_str());
    }
    None
}

/// Size of the text with every entry in it.
pub(super) fn whole(sections: &[Section]) -> Size {
    total(&lines(sections), sections)
}

fn lines(sections: &[Section]) -> Vec<EntryLine<'_>> {
    let entries = sections
        .iter()
        .enumerate()
        .flat_map(|(section, held)| held.entries.iter().map(move |entry| (section, entry)));
    let lines = entries.map(|(section, Entry { text, short, score })| {
        let (text, size) = shown(text);
        let short = short.as_ref().map(shown);
        EntryLine { text, size, short, score: *score, section, stays: false, is_short: false }
    });
    lines.collect()
}

/// A text as it is shown, and its size with the line end.
fn shown(text: &Redacted) -> (Cow<'_, str>, Size) {
    let text = match visible(text.as_str()) {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_end()),
        Cow::Owned(text) => Cow::Owned(text.trim_end().to_owned()),
    };
    let size = Size::of(&text) + LINE_END;
    (text, size)
}

const LINE_END: Size = Size::ascii(1);

/// Size of a heading with its line end and the blank line before it.
fn heading_size(section: &Section) -> Size {
    let heading = section.heading.as_ref().map(|heading| Size::of(&visible(heading.as_str())));
    heading.map_or(LINE_END, |size| size + LINE_END + LINE_END)
}

/// Size of all lines with their headings.
fn total(lines: &[EntryLine<'_>], sections: &[Section]) -> Size {
    let mut all = Size::default();
    let mut last = None;
    for line in lines {
        all += line.size;
        if last.replace(line.section) != Some(line.section) {
            all += sections.get(line.section).map(heading_size).unwrap_or_default();
        }
    }
    all
}

fn choose(lines: &mut [EntryLine<'_>], sections: &[Section], room: Size) {
    let headings: Vec<Size> = sections.iter().map(heading_size).collect();
    let heading = |section: usize| headings.get(section).copied().unwrap_or_default();
    if room.less(total(lines, sections)).is_some() {
        lines.iter_mut().for_each(|line| line.stays = true);
        return;
    }
    let Some(mut left) = room.less(Size::ascii(MARK_CHARS_MAX)) else { return };
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|at| Reverse(lines.get(*at).map(|line| line.score)));
    let mut is_headed = vec![false; sections.len()];
    let mut whole_room = left.percent(WHOLE_PERCENT);
    for at in &order {
        let Some(line) = lines.get_mut(*at) else { continue };
        let is_new = is_headed.get(line.section) == Some(&false);
        let head = if is_new { heading(line.section) } else { Size::default() };
        let is_whole = whole_room.less(line.size).map(|rest| whole_room = rest).is_some();
        let short = line.short.as_ref().filter(|_| !is_whole).map(|(_, short)| *short);
        let size = short.unwrap_or(line.size);
        if let Some(rest) = left.less(size + head) {
            (left, line.stays) = (rest, true);
            line.is_short = short.is_some();
            if let Some(is_headed) = is_headed.get_mut(line.section) {
                *is_headed = true;
            }
        }
    }
    for at in order {
        let Some(line) = lines.get_mut(at).filter(|line| line.is_short) else { continue };
        let short = line.short.as_ref().map(|(_, short)| *short).unwrap_or_default();
        let Some(rest) = (left + short).less(line.size) else { return };
        (left, line.is_short) = (rest, false);
    }
}

/// Text of the selected lines.
fn page(lines: &[EntryLine<'_>], sections: &[Section], omitted: usize) -> String {
    let (mut page, mut last) = (String::new(), None);
    for line in lines.iter().filter(|line| line.stays) {
        if last.replace(line.section) != Some(line.section) {
            if !page.is_empty() {
                page.push('\n');
            }
            let heading = sections.get(line.section).and_then(|section| section.heading.as_ref());
            if let Some(heading) = heading {
                page.push_str(visible(heading.as_str()).trim_end());
                page.push('\n');
            }
        }
        let short = line.short.as_ref().filter(|_| line.is_short);
        page.push_str(short.map_or(&line.text, |(text, _)| text));
        page.push('\n');
    }
    if omitted > 0 {
        let entries = if omitted == 1 { "entry" } else { "entries" };
        page.push_str(&format!("[… {omitted} {entries} omitted]"));
    }
    page.truncate(page.trim_end().len());
    page
}
