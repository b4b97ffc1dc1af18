//! Recognises names and sentences by rule, without a model or a dictionary.
//!
//! A name is a capitalised word. Sentences begin with one too, so a word that occurs only there, without a capital
//! or digit inside, is no name: [`names`] says which occurrences are sure, and [`Mentions`] counts a word once one
//! of them is. Redaction placeholders and addresses are no names.

use crate::privacy::Redacted;
use foldhash::HashMap;
use memchr::memchr2;
use std::cmp::Reverse;
use std::ops::Range;

/// Maximum number of distinct words that are counted, to bound memory. A million words of prose
/// have a tenth of that.
pub(crate) const NAMES_MAX: usize = 65_536;
/// Minimum length of a name, in letters.
pub(crate) const NAME_LETTERS_MIN: usize = 3;
/// Maximum length of a name, in letters; a longer word is a digest, a key or a drawing.
pub(crate) const NAME_LETTERS_MAX: usize = 40;
/// Capitalised words that are never a name.
const NO_NAMES: [&str; 8] = ["I", "The", "This", "That", "It", "We", "You", "They"];
/// Combining marks: a word continues after one.
const COMBINING: std::ops::RangeInclusive<char> = '\u{300}'..='\u{36f}';
/// Schemes of addresses.
const SCHEMES: [&str; 2] = ["https", "http"];
/// Characters between the end of a sentence and the blank after it.
pub(crate) const CLOSERS: [char; 6] = ['"', '\'', '”', '’', ')', ']'];

/// Counts names over many texts. A word without a sure occurrence is counted, but not yet a name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mentions {
    seen: HashMap<Box<str>, Mention>,
}

#[derive(Clone, Debug)]
struct Mention {
    count: u64,
    /// Number of words known at its first occurrence.
    rank: usize,
    is_sure: bool,
}

impl Mentions {
    /// Counts the names of one more text.
    pub(crate) fn read(&mut self, text: &Redacted) {
        for name in names(text) {
            if let Some(mention) = self.seen.get_mut(name.text) {
                mention.count += 1;
                mention.is_sure |= name.is_sure;
            } else if self.seen.len() < NAMES_MAX {
                let mention = Mention { count: 1, rank: self.seen.len(), is_sure: name.is_sure };
                self.seen.insert(name.text.into(), mention);
            }
        }
    }

    /// Names and their counts, most frequent first, ties by first occurrence.
    pub(crate) fn ranked(&self) -> Vec<(&str, u64)> {
        let mut sure: Vec<_> = self.seen.iter().filter(|(_, mention)| mention.is_sure).collect();
        sure.sort_unstable_by_key(|(_, mention)| (Reverse(mention.count), mention.rank));
        sure.into_iter().map(|(name, mention)| (&**name, mention.count)).collect()
    }
}

/// A word that looks like a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Name<'t> {
    /// The word: `Kubernetes`, `EC2`, `Node.js`, `PostgreSQL`.
    pub text: &'t str,
    /// True inside a sentence, or with a capital or a digit inside. Otherwise it begins a sentence,
    /// and is a name only if the same word is one elsewhere.
    pub is_sure: bool,
}

/// Occurrences of words in `text` that look like names, in order.
pub(crate) fn names(text: &Redacted) -> impl Iterator<Item = Name<'_>> {
    let text = text.as_str();
    Names { text, pieces: pieces(text), start: 0, at: 0, end: 0, begun: false }
}

fn is_shaped(letter: char) -> bool {
    letter.is_uppercase() || letter.is_numeric()
}

fn is_name(text: &str) -> bool {
    let letters = text.chars().take(NAME_LETTERS_MAX + 1).count();
    (NAME_LETTERS_MIN..=NAME_LETTERS_MAX).contains(&letters) && !NO_NAMES.contains(&text)
}

/// Scans a text once, from capital to capital. The text around a capital decides whether it begins
/// a word, and whether the word begins a sentence.
struct Names<'t, P> {
    text: &'t str,
    /// Remaining pieces.
    pieces: P,
    /// Start, position and end in the current piece.
    start: usize,
    at: usize,
    end: usize,
    /// True if a letter or a digit precedes the piece in the sentence in which it begins.
    begun: bool,
}

impl<P: Iterator<Item = Range<usize>>> Names<'_, P> {
    /// Advances to the next piece. An address in between that ends in a stop may end a sentence.
    fn piece(&mut self) -> Option<()> {
        let piece = self.pieces.next()?;
        let gap = self.text.get(self.end..piece.start).unwrap_or_default();
        let stops = gap.trim_end_matches(CLOSERS).ends_with(is_stop);
        let ends = stops && self.text.get(piece.start..)?.starts_with(is_blank);
        self.begun = self.is_begun_at(self.end) && !ends;
        (self.start, self.at, self.end) = (piece.start, piece.start, piece.end);
        Some(())
    }

    /// True if a letter or a digit precedes `at` in the same sentence. List markers and quotes do
    /// not count.
    fn is_begun_at(&self, at: usize) -> bool {
        let before = self.text.get(self.start..at).unwrap_or_default();
        let gap = before.trim_end_matches(|letter: char| !letter.is_alphanumeric()).len();
        let from = self.start + gap;
        let ends = |(at, letter): (usize, char)| {
            is_line_end(letter)
                || (is_stop(letter) && closed(self.text, from + at + letter.len_utf8()).is_some())
        };
        let between = before.get(gap..).unwrap_or_default();
        (gap > 0 || self.begun) && !between.char_indices().any(ends)
    }

    /// Position of the next capital in the piece.
    fn capital(&mut self) -> Option<usize> {
        let rest = self.text.get(self.at..self.end)?;
        self.at += rest.find(char::is_uppercase)?;
        Some(self.at)
    }

    /// Word that contains the capital at `at`, among those that begin at or after `from`.
    fn word_around(&self, from: usize, at: usize) -> Option<Range<usize>> {
        let before = self.text.get(from..at)?;
        let may_hold = |letter: char| is_word(letter) || matches!(letter, '.' | '-');
        let mut next = from + before.trim_end_matches(may_hold).len();
        while next <= at {
            let rest = self.text.get(next..)?;
            let start = next + rest.find(char::is_alphabetic)?;
            next = self.name_end(start);
            if at < next {
                return Some(start..next);
            }
        }
        None
    }

    /// End of the word that begins at `start`; `docker-compose.yml` is one word.
    fn name_end(&self, start: usize) -> usize {
        let piece = self.text.get(..self.end).unwrap_or_default();
        let mut end = word_end(piece, start);
        let bytes = piece.as_bytes();
        let is_inner = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
        while matches!(bytes.get(end), Some(b'.' | b'-')) && is_inner(end + 1) {
            end += 2;
            while is_inner(end) {
                end += 1;
            }
        }
        end
    }
}

impl<'t, P: Iterator<Item = Range<usize>>> Iterator for Names<'t, P> {
    type Item = Name<'t>;

    fn next(&mut self) -> Option<Name<'t>> {
        loop {
            let from = self.at;
            let Some(capital) = self.capital() else {
                self.piece()?;
                continue;
            };
            let Some(word) = self.word_around(from, capital) else {
                // A capital that is not a letter begins no word.
                self.at = capital + self.text.get(capital..)?.chars().next()?.len_utf8();
                continue;
            };
            self.at = word.end;
            let text = self.text.get(word)?;
            if self.at - text.len() == capital && is_name(text) {
                let is_shaped = text.chars().skip(1).any(is_shaped);
                return Some(Name { text, is_sure: is_shaped || self.is_begun_at(capital) });
            }
        }
    }
}

/// True for letters, numbers of any kind, underscores and combining marks.
pub(crate) fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || COMBINING.contains(&letter)
}

/// End of the run of word characters that begins at `from`.
pub(crate) fn word_end(text: &str, from: usize) -> usize {
    let is_inner = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let bytes = text.as_bytes().get(from..).unwrap_or_default();
    let from = from + bytes.iter().take_while(is_inner).count();
    if text.as_bytes().get(from).is_some_and(u8::is_ascii) {
        return from;
    }
    let rest = text.get(from..).unwrap_or_default();
    rest.find(|letter| !is_word(letter)).map_or(text.len(), |length| from + length)
}

/// Start of the first word at or after `from`, or the end of the text.
pub(crate) fn word_start(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.find(is_word).map_or(text.len(), |length| from + length)
}

/// True for blanks, including line ends and the four information separators.
pub(crate) fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter)
}

/// Ranges of `text` between placeholders such as `<EMAIL>` and addresses such as
/// `https://example.com/a`. No word extends across one.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut from = Some(0);
    std::iter::from_fn(move || {
        let start = from?;
        let gap = text.get(start..).and_then(first_gap);
        from = gap.as_ref().map(|gap| start + gap.end);
        Some(start..gap.map_or(text.len(), |gap| start + gap.start))
    })
}

/// Range of the first placeholder or address.
fn first_gap(text: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(found) = memchr2(b'<', b':', bytes.get(from..)?) {
        let at = from + found;
        let gap = match bytes.get(at) {
            Some(b'<') => placeholder(text.get(at..)?).map(|length| at..at + length),
            Some(_) | None => address(text, at),
        };
        if gap.is_some() {
            return gap;
        }
        from = at + 1;
    }
    None
}

/// Length of the placeholder at the start of `text`.
fn placeholder(text: &str) -> Option<usize> {
    let name = text.strip_prefix('<')?;
    let end = name.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))?;
    let is_one = name.starts_with(|c: char| c.is_ascii_uppercase());
    (is_one && name.as_bytes().get(end) == Some(&b'>')).then_some(end + 2)
}

/// Range of the address whose colon is at `colon`.
fn address(text: &str, colon: usize) -> Option<Range<usize>> {
    let (before, behind) = (text.get(..colon)?, text.get(colon..)?.strip_prefix("://")?);
    let scheme = SCHEMES.into_iter().find(|scheme| before.ends_with(scheme))?;
    let is_end = |(at, c): &(usize, char)| {
        is_blank(*c) || (*c == '<' && placeholder(&behind[*at..]).is_some())
    };
    let length = behind.char_indices().find(is_end).map_or(behind.len(), |(at, _)| at);
    (length > 0).then_some(colon - scheme.len()..colon + "://".len() + length)
}

/// Non-empty sentences of `text` in order, without blanks around them. A sentence ends at a line
/// end, and after `.`, `!`, `?` and their like before a blank.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let start = at;
            let end = sentence_end(text, start);
            // Skips the character after the sentence, so every iteration makes progress.
            at = end + text.get(end..)?.chars().next().map_or(0, char::len_utf8);
            let body = text.get(start..end)?.trim_start_matches(is_blank);
            let start = end - body.len();
            let body = body.trim_end_matches(is_blank);
            if !body.is_empty() {
                return Some(start..start + body.len());
            }
        }
        None
    })
}

/// End of the sentence that begins at `from`: a line end, its last closer, or the end of the text.
fn sentence_end(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    for (at, letter) in rest.char_indices() {
        if is_line_end(letter) {
            return from + at;
        }
        if is_stop(letter)
            && let Some(end) = closed(text, from + at + letter.len_utf8())
        {
            return end;
        }
    }
    text.len()
}

/// End of a sentence whose stop precedes `at`: after its closers, if a blank follows.
fn closed(text: &str, at: usize) -> Option<usize> {
    let behind = text.get(at..)?;
    let open = behind.trim_start_matches(CLOSERS);
    open.starts_with(is_blank).then_some(at + behind.len() - open.len())
}

fn is_stop(letter: char) -> bool {
    matches!(letter, '.' | '!' | '?' | '。' | '！' | '？' | '…')
}

fn is_line_end(letter: char) -> bool {
    matches!(
        letter,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

#[cfg(test)]
mod tests {
    mod mentions {
        use super::super::*;
        use crate::privacy::Gate;

        #[track_caller]
        fn check(texts: &[&str], expected: &[(&str, u64)]) {
            let mut mentions = Mentions::default();
            texts.iter().for_each(|text| mentions.read(&Gate::new(&[]).redact(text)));
            assert_eq!(mentions.ranked(), expected);
        }

        #[test]
        fn a_word_that_is_a_name_once_is_one_wherever_it_stood() {
            check(&["Ann works at Acme.", "I met Ann."], &[("Ann", 2), ("Acme", 1)]);
            check(&["Kubernetes is slow. Today we scale Kubernetes. Today."], &[("Kubernetes", 2)]);
        }

        #[test]
        fn of_equals_the_first_comes_first() {
            check(
                &["we use Redis, Nginx, Redis, Nginx and EC2"],
                &[("Redis", 2), ("Nginx", 2), ("EC2", 1)],
            );
        }

        #[test]
        fn what_is_new_beyond_the_bound_is_left_out() {
            let many: String = (0..NAMES_MAX + 5).map(|n| format!("x N{n:06} ")).collect();
            let mut mentions = Mentions::default();
            mentions.read(&Gate::new(&[]).redact(&many));
            assert_eq!(mentions.ranked().len(), NAMES_MAX);
        }
    }

    mod name {
        use super::super::*;
        use crate::privacy::Gate;
        use proptest::prelude::*;

        /// Names, unsure ones with a `?`.
        #[track_caller]
        fn check(text: &str, expected: &[&str]) {
            let text = Gate::new(&[]).redact(text);
            let mark =
                |name: Name<'_>| format!("{}{}", name.text, if name.is_sure { "" } else { "?" });
            assert_eq!(names(&text).map(mark).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn a_capital_inside_a_sentence_is_a_name() {
            check("we run Docker and Kubernetes.", &["Docker", "Kubernetes"]);
            check("gestern in Ürümqi mit Ayşe", &["Ürümqi", "Ayşe"]);
        }

        #[test]
        fn a_capital_that_begins_a_sentence_is_not_sure() {
            check(
                "Ann met Bob. Today it rains.\n- Then? \"Yes\"",
                &["Ann?", "Bob", "Today?", "Then?", "Yes?"],
            );
            check("3 Redis nodes", &["Redis"]);
        }

        #[test]
        fn capitals_and_digits_inside_make_it_sure() {
            check("PostgreSQL is up. EC2 is not. AWS", &["PostgreSQL", "EC2", "AWS"]);
        }

        #[test]
        fn names_hold_stops_and_hyphens_inside() {
            check(
                "use Node.js, Docker-compose.yml and Foo-",
                &["Node.js", "Docker-compose.yml", "Foo"],
            );
        }

        #[test]
        fn short_long_and_common_words_are_no_names() {
            check("so I and The Go do it as They said", &[]);
            check(&format!("see {} there", "A".repeat(41)), &[]);
            check(&format!("see {} there", "Ä".repeat(40)), &["Ä".repeat(40).as_str()]);
        }

        #[test]
        fn placeholders_and_addresses_name_nothing() {
            check("ask <EMAIL> at https://Example.com/Readme", &[]);
            check("<EMAIL> Kubernetes", &["Kubernetes?"]);
            check("see (https://a.example/b.) Then <EMAIL>. Yes", &["Then?", "Yes?"]);
            check("see https://a.example/b Redis", &["Redis"]);
        }

        /// Reference implementation: sentence by sentence, piece by piece, word by word.
        fn word_by_word(text: &str) -> Vec<(String, bool)> {
            let word = regex::Regex::new(r"[\p{Alphabetic}--\x{300}-\x{36f}][\p{Alphabetic}\p{N}_\x{300}-\x{36f}]*(?:[.\-][A-Za-z0-9]+)*").unwrap();
            let mut found = Vec::new();
            for sentence in sentences(text).map(|range| &text[range]) {
                let clean: Vec<&str> = pieces(sentence).map(|range| &sentence[range]).collect();
                let clean = clean.join(" ");
                for word in word.find_iter(&clean) {
                    let own = word.as_str();
                    if own.starts_with(char::is_uppercase) && is_name(own) {
                        let is_first = !clean[..word.start()].contains(char::is_alphanumeric);
                        found.push((
                            own.to_owned(),
                            !is_first || own.chars().skip(1).any(is_shaped),
                        ));
                    }
                }
            }
            found
        }

        proptest! {
            #[test]
            fn one_walk_finds_what_going_word_by_word_finds(
                text in "([a-z]{1,3}|[A-Z][a-z]{2,4}|[A-Z_0-9É]{1,3}|[-._')*]|[.!?] |[ \n…]|é|<EMAIL>|https?://a\\.?){0,40}"
            ) {
                let text = Gate::new(&[]).redact(&text);
                let walked: Vec<_> = names(&text).map(|name| (name.text.to_owned(), name.is_sure)).collect();
                prop_assert_eq!(walked, word_by_word(text.as_str()));
            }

            #[test]
            fn every_name_stands_in_the_text(text in "(.|[A-Z][a-z]{2,4}|[.!?] |\n){0,60}") {
                let text = Gate::new(&[]).redact(&text);
                for name in names(&text) {
                    prop_assert!(text.as_str().contains(name.text) && is_name(name.text));
                }
            }
        }
    }

    mod piece {
        use super::super::*;
        use proptest::prelude::*;

        #[track_caller]
        fn check(text: &str, expected: &[&str]) {
            assert_eq!(pieces(text).map(|range| &text[range]).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn placeholders_and_addresses_hold_no_words() {
            check("write to <EMAIL> or <CREDIT_CARD>", &["write to ", " or ", ""]);
            check("see https://example.com/A?b=c, then", &["see ", " then"]);
            check("(http://a)", &["(", ""]);
            check("https://a.example/<EMAIL>/b", &["", "", "/b"]);
        }

        #[test]
        fn other_brackets_and_colons_are_text() {
            for text in ["a < b", "Vec<T>", "<T", "<Email>", "a: b", "http:// a", "ftp://a", "<>"] {
                let whole: String = pieces(text).map(|range| &text[range]).collect();
                assert_eq!(whole, if text == "Vec<T>" { "Vec" } else { text });
            }
        }

        proptest! {
            #[test]
            fn pieces_are_parts_of_the_text_in_order(text in "(.|<A>|https?://|:|<){0,40}") {
                let mut from = 0;
                for piece in pieces(&text) {
                    prop_assert!(from <= piece.start && text.get(piece.clone()).is_some());
                    from = piece.end;
                }
            }
        }
    }

    mod sentence {
        use super::super::*;
        use proptest::prelude::*;

        #[track_caller]
        fn check(text: &str, expected: &[&str]) {
            assert_eq!(sentences(text).map(|range| &text[range]).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn a_stop_and_a_blank_end_a_sentence() {
            check("One.  Two! Three?\tFour", &["One.", "Two!", "Three?", "Four"]);
            check(
                "He said \"go.\" Then (so.) he went.",
                &["He said \"go.\"", "Then (so.)", "he went."],
            );
            check("好。 是！ 吗？ 嗯… 完", &["好。", "是！", "吗？", "嗯…", "完"]);
        }

        #[test]
        fn a_stop_inside_a_word_ends_nothing() {
            check(
                "Use Node.js 3.5 at a.example/?q=1 now",
                &["Use Node.js 3.5 at a.example/?q=1 now"],
            );
        }

        #[test]
        fn lines_end_sentences() {
            check("\n one\r\n\n two \u{2028}three\u{85}", &["one", "two", "three"]);
            check(" \n \t", &[]);
        }

        proptest! {
            #[test]
            fn sentences_hold_every_word_once(text in "([a-c.!?\"') \n]|。|…|\u{85}|é){0,60}") {
                let joined: String = sentences(&text).map(|range| &text[range]).collect();
                let without = |text: &str| text.chars().filter(|c| !is_blank(*c)).collect::<String>();
                prop_assert_eq!(without(&joined), without(&text));
            }
        }
    }
}
