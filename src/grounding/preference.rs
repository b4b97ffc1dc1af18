//! Sentences and lines, by which evidence is quoted; and preference among them for a field: near the claim's other
//! words, by who states such a field, or by a person whom it names, as in `Anna: let us take Redis`.

use super::EVIDENCE_BYTES_MAX;
use crate::domain::{Branch, ClaimKind, EntryKind, Part, Slice, Speaker};
use std::collections::BTreeSet;
use std::ops::Range;

/// Minimum length of a piece of a sentence that is too long, in bytes.
const PIECE_BYTES_MIN: usize = 80;

/// Sentence or line of an entry.
#[derive(Debug)]
pub(super) struct Sentence {
    /// Index of the part.
    pub(super) part: u32,
    /// Byte range in the slice's text.
    pub(super) span: Range<usize>,
    /// Number of words.
    pub(super) words: u32,
}

/// Byte ranges of the sentences and lines of `text` without the blanks around them. Ranges that are too long
/// to be quoted are divided.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut rest = 0..text.len();
    std::iter::from_fn(move || {
        let blank = text[rest.clone()].len() - text[rest.clone()].trim_start().len();
        rest.start += blank;
        let start = rest.start;
        if start == text.len() {
            return None;
        }
        let cut = text.floor_char_boundary(start + EVIDENCE_BYTES_MAX);
        let piece = &text[start..cut];
        let len = end(piece, cut == text.len()).unwrap_or_else(|| {
            let ends = ["; ", ", ", ": ", " "];
            let ends = ends.iter().filter_map(|it| piece.rfind(it).map(|at| at + it.len()));
            ends.filter(|at| *at > PIECE_BYTES_MIN).max().unwrap_or(piece.len())
        });
        rest.start = start + len;
        Some(start..start + piece[..len].trim_end().len())
    })
}

/// End of the first sentence or line of `text`, including its terminator. A full stop counts only before
/// whitespace and after neither a full stop nor a slash, unlike in `main.rs` and `./...`.
fn end(text: &str, is_last: bool) -> Option<usize> {
    let mut letters = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, letter)) = letters.next() {
        let ended = match letter {
            '\n' | '。' | '！' | '？' => true,
            '.' if matches!(before, '.' | '/') => false,
            '.' | '!' | '?' => letters.peek().is_some_and(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        if ended {
            return Some(at + letter.len_utf8());
        }
        before = letter;
    }
    is_last.then_some(text.len())
}

/// Number of sentences before and after one in which a claim's other words support it.
const CONTEXT_SENTENCES: usize = 3;
/// Same, as the maximum distance of their first bytes.
const CONTEXT_BYTES: usize = 300;
/// Weight by which words for a choice go before calls and outputs, which do not choose.
const VOICE_WEIGHT: f64 = 10.0;
/// Weight of the words of a person whom the field names.
const NAMED_WEIGHT: f64 = 1.0;

/// Sentences with the words of a whole claim.
#[derive(Debug, Default)]
pub(super) struct ClaimWords {
    /// Index of a sentence and of a word in `weights`, in text order.
    places: Vec<(u32, usize)>,
    weights: Vec<f64>,
    total: f64,
}

impl ClaimWords {
    pub(super) fn new(mut places: Vec<(u32, usize)>, weights: Vec<f64>) -> ClaimWords {
        places.sort_unstable();
        let total = weights.iter().sum::<f64>().max(1.0);
        ClaimWords { places, weights, total }
    }

    /// Share of the claim's weight in and around one of `sentences`, 0 to 1.
    pub(super) fn around(&self, sentences: &[Sentence], at: usize) -> f64 {
        let start = sentences[at].span.start;
        let is_near = |other: &usize| sentences[*other].span.start.abs_diff(start) < CONTEXT_BYTES;
        let near =
            at.saturating_sub(CONTEXT_SENTENCES)..(at + CONTEXT_SENTENCES + 1).min(sentences.len());
        let (first, last) = (near.clone().find(is_near), near.rev().find(is_near));
        self.share(&(first.unwrap_or(at)..last.unwrap_or(at) + 1))
    }

    /// Share of the claim's weight in a range of sentences, 0 to 1.
    pub(super) fn share(&self, sentences: &Range<usize>) -> f64 {
        let held = words_in(&self.places, sentences, self.weights.len());
        held.map(|word| self.weights[word]).sum::<f64>() / self.total
    }
}

/// Distinct words in a range of sentences, of `count`; `places` has sentences and words in text order.
pub(super) fn words_in(
    places: &[(u32, usize)],
    sentences: &Range<usize>,
    count: usize,
) -> impl Iterator<Item = usize> + use<> {
    let first = places.partition_point(|(at, _)| (*at as usize) < sentences.start);
    let here = places[first..].iter().take_while(|(at, _)| (*at as usize) < sentences.end);
    let mut is_held = vec![false; count];
    here.for_each(|(_, word)| is_held[*word] = true);
    (0..count).filter(move |word| is_held[*word])
}

/// Weights of the sentences of a person, the assistant, a tool call and others for a field.
#[derive(Clone, Copy, Debug)]
struct SourceWeights {
    person: f64,
    assistant: f64,
    call: f64,
    other: f64,
}

const WISH: SourceWeights = SourceWeights { person: 2.4, assistant: -1.4, call: -3.3, other: -2.5 };
// Calls and outputs alone make no decision.
const CHOSEN: SourceWeights =
    SourceWeights { person: 0.7, assistant: -0.2, call: -3.0, other: -3.0 };
const RATIONALE: SourceWeights =
    SourceWeights { person: 1.0, assistant: 0.7, call: -0.6, other: 0.5 };
const DISCUSSION: SourceWeights =
    SourceWeights { person: 1.1, assistant: 0.2, call: -0.9, other: -0.4 };
const ACTION: SourceWeights =
    SourceWeights { person: -0.5, assistant: 0.3, call: 1.2, other: -0.2 };
const RESULT: SourceWeights = SourceWeights { person: 1.3, assistant: 1.3, call: -0.7, other: 1.7 };

/// Text in which a field is likelier to be stated, because of the evidence of another one.
#[derive(Clone, Debug)]
pub(super) struct Favour {
    pub(super) spans: Vec<Range<usize>>,
    /// Additional weight of its sentences.
    pub(super) weight: f64,
}

/// Preference among the sentences for one field.
#[derive(Debug)]
pub(super) struct Preference<'c> {
    /// Words of the whole claim.
    pub(super) claim: &'c ClaimWords,
    /// True if the field is the choice of a decision.
    pub(super) is_choice: bool,
    /// True if the field is what was done.
    pub(super) is_deed: bool,
    pub(super) favoured: Option<Favour>,
    /// Turns of the people whom the field names.
    turns: Vec<Range<usize>>,
    sources: SourceWeights,
}

impl<'c> Preference<'c> {
    pub(super) fn new(
        kind: ClaimKind,
        field: &str,
        claim: &'c ClaimWords,
        turns: Vec<Range<usize>>,
    ) -> Preference<'c> {
        let sources = match kind {
            ClaimKind::Request => WISH,
            ClaimKind::Decision if field == "rationale" => RATIONALE,
            ClaimKind::Decision => CHOSEN,
            ClaimKind::Discussion => DISCUSSION,
            ClaimKind::Attempt if field == "action" => ACTION,
            ClaimKind::Attempt => RESULT,
        };
        let (is_choice, is_deed) = (field == "chosen", field == "action");
        Preference { claim, is_choice, is_deed, favoured: None, turns, sources }
    }

    /// Additional weight by which one of the sentences that may be shown is chosen. A call or an output makes no
    /// choice, and a question is neither favoured.
    pub(super) fn of_place(&self, part: &Part, sentence: &Sentence, text: &str) -> f64 {
        let speaks = part.speaker == Speaker::Assistant && part.kind != EntryKind::ToolCall;
        let is_choice = self.is_choice && (speaks || part.speaker == Speaker::Person);
        let is_there = |it: &&Favour| it.spans.iter().any(|it| it.contains(&sentence.span.start));
        let favoured = self.favoured.as_ref().filter(|_| !text.ends_with('?')).filter(is_there);
        let voice = if is_choice { VOICE_WEIGHT } else { 0.0 };
        voice + favoured.map_or(0.0, |it| it.weight)
    }

    /// Weight of a sentence of `part` by its source.
    pub(super) fn of_source(&self, part: &Part, sentence: &Sentence) -> f64 {
        let weight = match part.speaker {
            Speaker::Person => self.sources.person,
            Speaker::Assistant if part.branch != Branch::Active => self.sources.other,
            Speaker::Assistant if part.kind == EntryKind::ToolCall => self.sources.call,
            Speaker::Assistant => self.sources.assistant,
            Speaker::Tool | Speaker::Web | Speaker::Client => self.sources.other,
        };
        let is_named = self.turns.iter().any(|turn| turn.contains(&sentence.span.start));
        if is_named { weight + NAMED_WEIGHT } else { weight }
    }
}

/// Maximum length of a name, in bytes.
const NAME_BYTES_MAX: usize = 40;
/// Maximum number of words of a name.
const NAME_WORDS_MAX: usize = 3;
/// Articles, with which no name begins.
const ARTICLES: [&str; 9] = ["the", "a", "an", "der", "die", "das", "ein", "eine", "les"];
/// Words within names.
const PARTICLES: [&str; 8] = ["van", "von", "de", "del", "da", "di", "la", "der"];
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

/// `text` without the name of whose words it is, which is no part of them: `Anna: …`.
pub(super) fn without_speaker(text: &str) -> &str {
    let is_word =
        |it: &str| it.starts_with(char::is_uppercase) && it.chars().all(char::is_alphabetic);
    let said = name(text).filter(|name| name.split(' ').all(is_word));
    said.and_then(|name| text.strip_prefix(name)?.strip_prefix(": ")).unwrap_or(text)
}

/// The name that `line` begins with.
fn name(line: &str) -> Option<&str> {
    let (name, words) = line.split_once(':')?;
    let is_inner = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_');
    let is_word = |word: &str| word.starts_with(char::is_alphabetic) && word.chars().all(is_inner);
    let fits = name.len() <= NAME_BYTES_MAX && name.split(' ').count() <= NAME_WORDS_MAX;
    // `The lamps: are they on?` begins with what it is about, `we have levels: red and white` with a sentence.
    let (first, rest) = name.split_once(' ').unwrap_or_default();
    let is_part = |word: &str| word.starts_with(char::is_uppercase) || PARTICLES.contains(&word);
    let fits = fits
        && !ARTICLES.iter().any(|it| it.eq_ignore_ascii_case(first))
        && (rest.is_empty() || rest.split(' ').all(is_part));
    (fits && words.starts_with(' ') && name.split(' ').all(is_word)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speaker_is_no_part_of_what_was_said() {
        let check = |text: &str, expected: &str| assert_eq!(without_speaker(text), expected);
        check("Henrike: one bar is enough", "one bar is enough");
        check("Jan van Dam: take it", "Jan van Dam: take it");
        check("Mia Berg: take it", "take it");
        check("error: no such file", "error: no such file");
    }

    #[test]
    fn text_is_divided_at_sentences_lines_and_blanks() {
        let of = |text: &str| sentences(text).map(|it| text[it].to_owned()).collect::<Vec<_>>();
        assert_eq!(of(" Read main.rs. Is it  \n\nlong?"), ["Read main.rs.", "Is it", "long?"]);
        assert_eq!(of("go test ./... && ls . Fine."), ["go test ./... && ls .", "Fine."]);
        assert_eq!(of("长吗？很长。"), ["长吗？", "很长。"]);
        let long = "four words and more ".repeat(50);
        let pieces = of(&long);
        assert!(
            pieces
                .iter()
                .all(|it| it.len() <= EVIDENCE_BYTES_MAX && it.starts_with(char::is_alphabetic))
        );
        assert_eq!(pieces.join(" "), long.trim());
        assert_eq!(of(" \n"), Vec::<String>::new());
    }
}
