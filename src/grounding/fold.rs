//! Text folded for comparison, with a map back to the original bytes. Labels of a slice and elision
//! marks are excluded: their numbers and digests are not part of the conversation.

use super::numbers::{SpokenNumbers, unit_after};
use crate::domain::Slice;
use crate::text::lexicon::Unit;
use crate::text::tokens::fold_into;
use regex::Regex;
use std::cell::OnceCell;
use std::ops::Range;
use std::sync::LazyLock;

/// Separator between entries and where a mark was elided. Folded text never contains it, so no
/// match crosses it.
const GAP: char = '\0';

/// Maximum occurrences of the first piece to start from.
const STARTS_MAX: usize = 256;

/// Mark of elided tool output, as slices contain it.
static MARK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\[… [0-9]{1,20} bytes left out; digest of the whole [^\]\n]{0,80} …\]").ok()
});

/// Folded text and where each of its bytes came from.
#[derive(Debug)]
pub(super) struct Folded {
    text: String,
    /// Offset in the original of each byte of `text`.
    from: Vec<u32>,
    /// Range of each entry in `text`, in order.
    entries: Vec<Range<usize>>,
    /// Ranges of elision marks in the original, in order.
    marks: Vec<Range<usize>>,
    /// Numbers in words; parsed once a number is not found in digits.
    spoken: OnceCell<SpokenNumbers>,
}

impl Folded {
    pub(super) fn new(original: &str) -> Folded {
        let mut folded = Folded::empty(original.len());
        folded.add(original, 0);
        folded.entries.push(0..folded.text.len());
        folded
    }

    /// Folds the text of the entries without elision marks. Of labels it keeps only the tool name
    /// and exit code, which occur nowhere else.
    pub(super) fn of_slice(slice: &Slice) -> Folded {
        let whole = slice.text.as_str();
        let mut folded = Folded::empty(whole.len());
        let mut before = 0;
        for part in &slice.parts {
            let label = whole.get(before..part.span.start).unwrap_or_default();
            if let Some(named) = transcript_label(label) {
                folded.add(&label[named.clone()], before + named.start);
                folded.gap(before + named.end);
            }
            before = part.span.end;
            let text = whole.get(part.span.clone()).unwrap_or_default();
            let start = folded.text.len();
            let mut done = 0;
            for mark in marks(text) {
                folded.add(&text[done..mark.start], part.span.start + done);
                folded.gap(part.span.start + mark.start);
                done = mark.end;
                folded.marks.push(part.span.start + mark.start..part.span.start + mark.end);
            }
            folded.add(&text[done..], part.span.start + done);
            folded.entries.push(start..folded.text.len());
            folded.gap(part.span.end);
        }
        folded
    }

    fn empty(bytes: usize) -> Folded {
        Folded {
            text: String::with_capacity(bytes),
            from: Vec::with_capacity(bytes),
            entries: Vec::new(),
            marks: Vec::new(),
            spoken: OnceCell::new(),
        }
    }

    fn gap(&mut self, at: usize) {
        self.text.push(GAP);
        self.from.push(u32::try_from(at).unwrap_or(u32::MAX));
    }

    /// Folds `original`, which begins at byte `offset` of the whole.
    fn add(&mut self, original: &str, offset: usize) {
        let Folded { text, from, .. } = self;
        for (at, letter) in original.char_indices() {
            if !(matches!(letter, '.' | '_') && is_initialism(original, at)) {
                fold_into(letter, text);
            }
            let at = u32::try_from(offset + at).unwrap_or(u32::MAX);
            from.resize(text.len(), at);
        }
    }

    /// True if `span` of the original overlaps an elision mark.
    pub(super) fn is_marked(&self, span: &Range<usize>) -> bool {
        let first = self.marks.partition_point(|mark| mark.end <= span.start);
        self.marks.get(first).is_some_and(|mark| mark.start < span.end)
    }

    pub(super) fn as_str(&self) -> &str {
        self.text.trim_end()
    }

    /// Ranges in the original of `needle`, which is folded, in order.
    pub(super) fn find<'a>(&'a self, needle: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        let found = memchr::memmem::find_iter(self.text.as_bytes(), needle.as_bytes());
        found.map(|start| self.original(start, start + needle.len()))
    }

    /// Range in the original of `needle`, which is folded. An end of `needle` that is a letter or
    /// digit must be the end of a word.
    pub(super) fn find_word(&self, needle: &str) -> Option<Range<usize>> {
        let (start, end) =
            self.whole_matches(needle, 0..self.text.len(), char::is_alphanumeric).next()?;
        Some(self.original(start, end))
    }

    /// Range in the original of a word that begins with `start`, which is folded.
    pub(super) fn find_prefix(&self, start: &str) -> Option<Range<usize>> {
        let found = memchr::memmem::find_iter(self.text.as_bytes(), start.as_bytes());
        let is_begun = |at: &usize| !self.text[..*at].ends_with(char::is_alphanumeric);
        found.into_iter().find(is_begun).map(|at| self.original(at, at + start.len()))
    }

    /// Range in the original where all of `pieces`, which are folded, occur as whole words of one
    /// entry, in order and within `bytes_max` bytes.
    pub(super) fn find_in_order(&self, pieces: &[&str], bytes_max: usize) -> Option<Range<usize>> {
        let (first, rest) = pieces.split_first()?;
        let one = char::is_alphanumeric;
        let starts = self.whole_matches(first, 0..self.text.len(), one).take(STARTS_MAX);
        let mut starts = starts.filter_map(|(start, end)| {
            let near = self.text.floor_char_boundary(start + bytes_max);
            let to = self.entry_end(start)?.min(near).max(end);
            let last = rest.iter().try_fold(end, |from, piece| {
                self.whole_matches(piece, from..to, one).next().map(|(_, end)| end)
            })?;
            Some(self.original(start, last))
        });
        starts.next()
    }

    /// Range of a list of files of one folder that has `name`: `src/` and `c.rs` in `src/a.rs, b.rs and c.rs`.
    pub(super) fn find_in_folder(&self, folder: &str, name: &str) -> Option<Range<usize>> {
        /// Maximum length of such a list, in bytes.
        const FILES_BYTES_MAX: usize = 160;
        let one = char::is_alphanumeric;
        let mut starts = self.whole_matches(folder, 0..self.text.len(), one).take(STARTS_MAX);
        starts.find_map(|(start, end)| {
            let near = self.text.floor_char_boundary(end + FILES_BYTES_MAX);
            let to = self.entry_end(start)?.min(near).max(end);
            let mut names = self.whole_matches(name, end..to, one);
            let (_, last) = names.find(|(at, _)| {
                let before = self.text[end..*at].split([' ', ',']).filter(|it| !it.is_empty());
                let is_file = |it: &str| it.contains('.') && !it.contains('/');
                let mut before =
                    before.map(|it| is_file(it) || matches!(it, "and" | "und" | "et" | "y" | "+"));
                self.text[..*at].ends_with([' ', ',']) && before.all(|it| it)
            })?;
            Some(self.original(start, last))
        })
    }

    /// Range of `name` as a whole word in the entry after one in which one of `commands`, and at most flags, precede `folder`.
    pub(super) fn find_in_output(
        &self,
        commands: &[&str],
        folder: &str,
        name: &str,
    ) -> Option<Range<usize>> {
        let is_listed = |from: usize, at: usize| {
            let mut before = self.text[from..at].split_whitespace().rev();
            let command = before.find(|word| !word.starts_with('-')).unwrap_or_default();
            commands.contains(&command.trim_matches(['`', '"', '$', '[', '{']))
        };
        self.entries.windows(2).find_map(|two| {
            let [call, output] = two else { return None };
            let mut places = self.whole_matches(folder, call.clone(), char::is_alphanumeric);
            places.find(|(at, _)| is_listed(call.start, *at))?;
            let mut names = self.whole_matches(name, output.clone(), char::is_alphanumeric);
            names.next().map(|(start, end)| self.original(start, end))
        })
    }

    /// Range of `one` as a whole word in an entry that also has `other`.
    pub(super) fn find_both(&self, one: &str, other: &str) -> Option<Range<usize>> {
        let find = |needle: &str, entry: &Range<usize>| {
            self.whole_matches(needle, entry.clone(), char::is_alphanumeric).next()
        };
        self.entries.iter().find_map(|entry| {
            let (start, end) = find(one, entry)?;
            find(other, entry).map(|_| self.original(start, end))
        })
    }

    fn entry_end(&self, at: usize) -> Option<usize> {
        let after = self.entries.partition_point(|entry| entry.start <= at);
        self.entries[..after].last().map(|entry| entry.end)
    }

    /// Range of `needle` as a whole number, in digits or words, that no unit other than `unit` follows.
    pub(super) fn find_number(&self, needle: &str, unit: Option<Unit>) -> Option<Range<usize>> {
        let digits =
            self.whole_matches(needle, 0..self.text.len(), |letter| letter.is_ascii_digit());
        let digits = digits.filter(|(start, end)| !self.is_group(*start, *end));
        let spoken = || {
            let spoken = self.spoken.get_or_init(|| SpokenNumbers::new(&self.text));
            spoken.find(needle).map(|place| (place.start, place.end))
        };
        let agrees = |(_, end): &(usize, usize)| {
            let other = unit_after(&self.text[*end..]);
            unit.is_none() || other.is_none() || unit == other
        };
        let found = digits.into_iter().find(agrees).or_else(|| spoken().find(agrees));
        found.map(|(start, end)| self.original(start, end))
    }

    /// True if these digits end a number with thousands separators: `200` of `1,200`. Lists have no blanks.
    fn is_group(&self, start: usize, end: usize) -> bool {
        let digits = |letter: char| letter.is_ascii_digit();
        let Some(before) = self.text[..start].strip_suffix(',') else { return false };
        let thousands = before.len() - before.trim_end_matches(digits).len();
        let after = &self.text[end..];
        let is_list = after.strip_prefix(',').is_some_and(|more| !more.starts_with(' '));
        (1..=3).contains(&thousands) && end - start == 3 && !is_list
    }

    /// Ranges of `needle` in a range of the folded text where `one` does not hold for both an end
    /// of the needle and its neighbour.
    fn whole_matches<'a>(
        &'a self,
        needle: &'a str,
        within: Range<usize>,
        one: fn(char) -> bool,
    ) -> impl Iterator<Item = (usize, usize)> + 'a {
        let bytes = self.text.as_bytes().get(within.clone()).unwrap_or_default();
        let glued = move |inside: Option<char>, outside: Option<char>| {
            inside.is_some_and(one) && outside.is_some_and(one)
        };
        let found = memchr::memmem::find_iter(bytes, needle.as_bytes());
        found.filter_map(move |start| {
            let start = within.start + start;
            let end = start + needle.len();
            let before = self.text.get(..start)?;
            // The letter of an escape in a string is part of no word.
            let is_escaped = [r"\n", r"\r", r"\t"].iter().any(|it| before.ends_with(it));
            let before = before.chars().next_back().filter(|_| !is_escaped);
            let after = self.text.get(end..)?.chars().next();
            let whole =
                !glued(needle.chars().next(), before) && !glued(needle.chars().next_back(), after);
            whole.then_some((start, end))
        })
    }

    fn original(&self, start: usize, end: usize) -> Range<usize> {
        let at = |index: usize| self.from.get(index).map_or(usize::MAX, |at| *at as usize);
        let last = at(end.saturating_sub(1));
        // The origin of the next byte may be far away, behind an elision mark.
        at(start)..last.saturating_add(1)
    }
}

/// True if the `.` or `_` at `at` joins single letters: `U.S`, `V_C_R`.
fn is_initialism(text: &str, at: usize) -> bool {
    fn is_single(mut letters: impl Iterator<Item = char>) -> bool {
        letters.next().is_some_and(char::is_alphabetic)
            && !letters.next().is_some_and(char::is_alphanumeric)
    }
    is_single(text[..at].chars().rev()) && is_single(text[at + 1..].chars())
}

/// Elision marks in `text`, in order.
fn marks(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    MARK.iter().flat_map(|mark| mark.find_iter(text)).map(|found| found.range())
}

/// Part of the last label in `label` that comes from the transcript: the tool name, how the call
/// ended and its exit code.
fn transcript_label(label: &str) -> Option<Range<usize>> {
    let from = label.rfind('[')?;
    let to = from + label[from..].find(']')?;
    let to = label[from..to].find(", part ").map_or(to, |part| from + part);
    let starts = ["[ToolCall ", "[ToolResult ", ": ToolCall ", ": ToolResult ", ", exit "];
    let start = starts.iter().find_map(|start| Some(label[from..to].find(start)? + start.len()))?;
    Some(from + start..to)
}

#[cfg(test)]
mod tests {
    mod fold {
        use super::super::*;

        #[test]
        fn what_is_found_leads_back_to_the_original() {
            let original = "We’ll  use **Postgres** –\nfor now";
            let folded = Folded::new(original);
            let needle = Folded::new("we'll use postgres - for");
            let found: Vec<_> = folded.find(needle.as_str()).collect();
            assert_eq!(&original[found[0].clone()], "We’ll  use **Postgres** –\nfor");
        }

        #[test]
        fn part_of_a_word_is_no_whole_word() {
            let folded = Folded::new("port 54321, a.rs");
            assert!(folded.find_word("5432").is_none());
            assert!(folded.find_word("54321").is_some() && folded.find_word("a.rs").is_some());
        }
    }

    mod mark {
        use super::super::*;
        use crate::privacy::Gate;

        #[test]
        fn names_of_tools_and_exit_codes_in_labels_are_the_transcripts() {
            let check = |label: &str, expected: Option<&str>| {
                assert_eq!(transcript_label(label).map(|span| &label[span]), expected, "{label}");
            };
            check("\n[ToolCall book_seat] ", Some("book_seat"));
            check("[Sub-agent: ToolResult run, exit 127, part 12 of 30] ", Some("run, exit 127"));
            check("[User runs: failed, exit 127] ", Some("127"));
            check("[User, part 12 of 30] ", None);
        }

        #[test]
        fn the_mark_that_slices_have_is_found_whole() {
            let long: String = (0..500).map(|n| format!("line {n}\n")).collect();
            let kept = crate::slicing::bound(&Gate::new(&[]).redact(&long), 100).unwrap();
            let text = kept.as_str();
            let found: Vec<&str> = marks(text).map(|mark| &text[mark]).collect();
            assert_eq!(found.len(), 1);
            assert!(found[0].starts_with("[… ") && found[0].ends_with(" …]"), "{found:?}");
            assert_eq!(marks("3 bytes left out; digest of the whole thing …]").count(), 0);
        }
    }
}
