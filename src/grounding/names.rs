//! Speaker names at the start of lines: `Anna: let us take Redis`.

use crate::domain::{Part, Slice, Speaker};
use std::collections::BTreeSet;
use std::ops::Range;

/// Maximum length of a name, in bytes.
const NAME_BYTES_MAX: usize = 40;
/// Maximum number of words of a name.
const NAME_WORDS_MAX: usize = 3;
/// Minimum number of named turns; fewer may be headings of a text.
const TURNS_MIN: usize = 3;

/// Positions of speaker names in the slice's text, in order; empty unless several people talk.
#[derive(Debug)]
pub(super) struct SpeakerNames(Vec<Range<usize>>);

impl SpeakerNames {
    pub(super) fn of(slice: &Slice) -> SpeakerNames {
        let (mut names, mut lines, mut parts, mut named) = (Vec::new(), 0, 0, 0);
        for part in slice.parts.iter().filter(|part| part.speaker == Speaker::Person) {
            let text = slice.text.as_str().get(part.span.clone()).unwrap_or_default();
            let known = names.len();
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                let start = part.span.start + (line.as_ptr() as usize - text.as_ptr() as usize);
                names.extend(name(line).map(|name| start..start + name.len()));
                lines += 1;
            }
            parts += 1;
            named += usize::from(names.len() > known);
        }
        let different: BTreeSet<&str> =
            names.iter().filter_map(|name| slice.text.as_str().get(name.clone())).collect();
        // Names begin half of the lines or messages, and one repeats; headings all differ.
        let mostly = lines <= names.len() * 2 || parts < named * 2;
        let talk = TURNS_MIN <= names.len() && (2..names.len()).contains(&different.len());
        SpeakerNames(if talk && mostly { names } else { Vec::new() })
    }

    /// Turns of the speakers whom `text` mentions.
    pub(super) fn turns_of(&self, text: &str, slice: &Slice) -> Vec<Range<usize>> {
        let whole = slice.text.as_str();
        let turn = |(at, name): (usize, &Range<usize>)| {
            let end = slice.part_at(name.start)?.span.end;
            let next = self.0.get(at + 1).map_or(end, |next| next.start.min(end));
            text.contains(whole.get(name.clone())?).then_some(name.start..next)
        };
        self.0.iter().enumerate().filter_map(turn).collect()
    }

    /// Position of the name of whoever says most of `span`, in `part`.
    pub(super) fn of_span(&self, part: &Part, span: &Range<usize>) -> Option<Range<usize>> {
        let known = self.0.partition_point(|name| name.start < span.end);
        let mut end = span.end;
        let turns = self.0[..known].iter().rev().map(|name| {
            let said = end.saturating_sub(name.start.max(span.start));
            end = name.start;
            (said, name)
        });
        let ours = turns.take_while(|(said, name)| *said > 0 && part.span.contains(&name.start));
        ours.max_by_key(|(said, _)| *said).map(|(_, name)| name.clone())
    }
}

/// The name that `line` begins with.
fn name(line: &str) -> Option<&str> {
    let (name, words) = line.split_once(':')?;
    let is_inner = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_');
    let is_word = |word: &str| word.starts_with(char::is_alphabetic) && word.chars().all(is_inner);
    let fits = name.len() <= NAME_BYTES_MAX && name.split(' ').count() <= NAME_WORDS_MAX;
    (fits && words.starts_with(' ') && name.split(' ').all(is_word)).then_some(name)
}
