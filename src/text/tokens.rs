//! Words in comparable form: lower case, light suffixes removed, single characters in scripts
//! without blanks. Every comparison of texts uses these, so all agree on what a word is.

use super::stems::{Stems, all_stems, is_stop_word};
use foldhash::HashMap;
use std::borrow::Cow;

/// Maximum length of a compared word, in bytes; longer runs are digests and base64.
const WORD_BYTES_MAX: usize = 64;

/// A word of a text: its comparison key and its byte range.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Word {
    /// Hash of the folded word.
    pub(crate) key: u64,
    /// First byte.
    pub(crate) start: usize,
    /// Byte after the last one.
    pub(crate) end: usize,
}

/// Calls `each` with every word of `text` except stop words.
pub(crate) fn words(text: &str, mut each: impl FnMut(Word)) {
    folded_words(text, |folded, start, end| {
        if let Some(key) = key(folded) {
            each(Word { key, start, end });
        }
    });
}

/// Length of a search prefix, in letters: enough to identify a word in most languages, whatever its ending.
const SEARCHED_LETTERS: usize = 5;

/// Calls `each` with the search keys of `text`: prefixes of words, so that inflected forms match, names with
/// digits as a whole, and pairs of characters in scripts without blanks. Skips stop words.
pub(crate) fn search_keys(text: &str, mut each: impl FnMut(u64)) {
    let mut before: Option<(char, usize)> = None;
    folded_words(text, |folded, start, end| {
        let alone = folded.chars().next().filter(|letter| stands_alone(*letter));
        let pair = before.filter(|(_, at)| *at == start).zip(alone);
        before = alone.map(|letter| (letter, end));
        if let Some(((first, _), second)) = pair {
            each(hash(&String::from_iter([first, second])));
        } else if alone.is_none() && !is_stop_word(folded) {
            each(hash(searched(folded)));
        }
    });
}

/// A word in an index or a query.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SearchTerm {
    /// Key of the word without light endings, or of a whole code name.
    pub(crate) exact: u64,
    /// Key shared by its other forms; equal to `exact` if it has none.
    pub(crate) stem: u64,
}

impl SearchTerm {
    fn fixed(text: &str) -> SearchTerm {
        let exact = hash(stem(text));
        SearchTerm { exact, stem: exact }
    }
}

/// A word of a query, with the keys of its other forms in any language.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct QueryTerm {
    pub(crate) exact: u64,
    pub(crate) stems: Vec<u64>,
}

impl QueryTerm {
    /// True if `term` is a form of the word.
    pub(crate) fn is_met(&self, term: SearchTerm) -> bool {
        self.exact == term.exact || self.stems.contains(&term.stem)
    }
}

/// Search terms of `text` without stop words. Code names such as `claimJob`, `queue.rs` and
/// `--drain` give their parts and the whole; scripts without blanks give single letters and pairs.
pub(crate) fn search_terms(text: &str) -> Vec<SearchTerm> {
    TermReader::default().terms(text)
}

/// Extracts search terms, and caches their stems.
#[derive(Debug, Default)]
pub(crate) struct TermReader {
    /// Key of the stem, by language and word.
    stems: HashMap<(usize, u64), u64>,
}

impl TermReader {
    /// Like [`search_terms`].
    pub(crate) fn terms(&mut self, text: &str) -> Vec<SearchTerm> {
        let (mut terms, stems) = (Vec::new(), Stems::of(text));
        parts(text, |part| match part {
            Part::Whole(text) => terms.push(SearchTerm::fixed(text)),
            Part::Word(folded) => {
                let exact = key(folded).filter(|_| !stems.is_function_word(folded));
                let stemmed = |exact| SearchTerm { exact, stem: self.stem(folded, stems) };
                terms.extend(exact.map(stemmed));
            }
        });
        terms
    }

    fn stem(&mut self, folded: &str, stems: Stems) -> u64 {
        let word = hash(folded);
        if folded.contains(char::is_numeric) {
            return word;
        }
        let stem = || hash(&stems.stem(folded));
        *self.stems.entry((stems.language(folded), word)).or_insert_with(stem)
    }
}

/// Terms of a query, to be matched with the [`search_terms`] of a text.
pub(crate) fn query_terms(query: &str) -> Vec<QueryTerm> {
    let (mut terms, own) = (Vec::new(), Stems::of(query));
    parts(query, |part| match part {
        Part::Whole(text) => {
            let SearchTerm { exact, stem } = SearchTerm::fixed(text);
            terms.push(QueryTerm { exact, stems: vec![stem] });
        }
        Part::Word(folded) => {
            let exact = key(folded).filter(|_| !own.is_function_word(folded));
            let stems = || match folded.contains(char::is_numeric) {
                true => vec![hash(folded)],
                false => all_stems(folded).iter().map(|it| hash(it)).collect(),
            };
            terms.extend(exact.map(|exact| QueryTerm { exact, stems: stems() }));
        }
    });
    terms
}

/// A searchable part of a text.
enum Part<'t> {
    /// A folded word.
    Word(&'t str),
    /// A whole code name, or letters of a script without blanks.
    Whole(&'t str),
}

/// Calls `each` with the searchable parts of `text`, including stop words.
fn parts(text: &str, mut each: impl FnMut(Part<'_>)) {
    let joins = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '-' | ':');
    let (mut folded, mut whole) = (String::new(), String::new());
    for name in text.split(|letter| !joins(letter)) {
        let (mut parts, mut before) = (0, None);
        whole.clear();
        for part in name.split(|letter: char| !letter.is_alphanumeric()).flat_map(humps) {
            folded.clear();
            if part.is_ascii() {
                folded.push_str(part);
                folded.make_ascii_lowercase();
            } else {
                part.chars().for_each(|letter| match letter {
                    'ı' => folded.push('i'),
                    _ => lower(letter, &mut folded),
                });
            }
            let alone = folded.chars().next().filter(|letter| stands_alone(*letter));
            if let Some((first, second)) = before.zip(alone) {
                each(Part::Whole(&String::from_iter([first, second])));
            }
            before = alone;
            if alone.is_some() {
                each(Part::Whole(&folded));
            } else if folded.len() <= WORD_BYTES_MAX {
                each(Part::Word(&folded));
                parts += 1;
                whole.push_str(&folded);
            }
        }
        if parts > 1 && whole.len() <= WORD_BYTES_MAX {
            each(Part::Whole(&whole));
        }
    }
}

/// Splits camel case: `claimJob` into `claim` and `Job`, `HTTPServer` into `HTTP` and `Server`.
/// Letters of scripts without blanks are separate parts.
fn humps(run: &str) -> impl Iterator<Item = &str> {
    let mut rest = run;
    std::iter::from_fn(move || {
        let (part, behind) = rest.split_at(hump_end(rest));
        rest = behind;
        (!part.is_empty()).then_some(part)
    })
}

/// End of the first part in camel case.
fn hump_end(run: &str) -> usize {
    // Most words have no capital.
    if run.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return run.len();
    }
    let mut letters = run.char_indices().peekable();
    while let Some((_, before)) = letters.next() {
        let Some(&(at, letter)) = letters.peek() else { break };
        let is_end = || {
            let next = run[at..].chars().nth(1);
            before.is_lowercase() || before.is_uppercase() && next.is_some_and(char::is_lowercase)
        };
        if letter.is_uppercase() && is_end() || stands_alone(before) || stands_alone(letter) {
            return at;
        }
    }
    run.len()
}

/// Search prefix of a folded word.
fn searched(folded: &str) -> &str {
    if folded.contains(char::is_numeric) {
        return folded;
    }
    let stem = stem(folded);
    let stem = stem.strip_suffix('s').filter(|bare| bare.len() >= 3).unwrap_or(stem);
    let end = stem.char_indices().nth(SEARCHED_LETTERS).map_or(stem.len(), |(at, _)| at);
    let begin = &stem[..end];
    begin.strip_suffix(['y', 'i', 'e']).filter(|bare| bare.len() >= 3).unwrap_or(begin)
}

fn folded_words(text: &str, mut each: impl FnMut(&str, usize, usize)) {
    let (bytes, mut at) = (text.as_bytes(), 0);
    let mut folded = String::with_capacity(WORD_BYTES_MAX);
    while let Some(byte) = bytes.get(at) {
        let start = at;
        if byte.is_ascii() && !byte.is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let run = bytes[start..].iter().take_while(|it| it.is_ascii_alphanumeric()).count();
        let is_ascii = bytes.get(start + run).is_none_or(u8::is_ascii);
        let len = if is_ascii { run } else { word_len(&text[start..]) };
        at = if len == 0 { text.ceil_char_boundary(start + 1) } else { start + len };
        if len == 0 || len > WORD_BYTES_MAX {
            continue;
        }
        folded.clear();
        if is_ascii {
            folded.push_str(&text[start..at]);
            folded.make_ascii_lowercase();
        } else {
            text[start..at].chars().for_each(|letter| lower(letter, &mut folded));
        }
        each(&folded, start, at);
    }
}

/// Length of the word at the start of `text` in bytes; zero if there is none.
fn word_len(text: &str) -> usize {
    let Some(first) = text.chars().next().filter(|it| it.is_alphanumeric()) else { return 0 };
    if stands_alone(first) {
        return first.len_utf8();
    }
    let joins = |next: char| next.is_alphanumeric() && !stands_alone(next);
    text.find(|next| !joins(next)).unwrap_or(text.len())
}

/// Keys of the words of `text` in order. Dotless i equals dotted i: folding `I` loses the difference.
pub(crate) fn keys(text: &str) -> Vec<u64> {
    let mut keys = Vec::new();
    let folded = match text.contains('ı') {
        true => Cow::Owned(text.replace('ı', "i")),
        false => Cow::Borrowed(text),
    };
    words(&folded, |word| keys.push(word.key));
    keys
}

/// Key of a folded word; `None` for stop words and single letters.
fn key(folded: &str) -> Option<u64> {
    let single = folded.len() == 1 && !folded.as_bytes()[0].is_ascii_digit();
    (!single && !is_stop_word(folded)).then(|| hash(stem(folded)))
}

/// Strips the endings that a paraphrase changes most: `caches`, `caching`, `cached` become `cach`.
fn stem(word: &str) -> &str {
    /// Minimum length of a stem; with shorter ones unrelated words would match.
    const STEM_BYTES_MIN: usize = 4;
    const ENDINGS: [&str; 8] = ["ations", "ation", "ings", "ing", "ies", "ed", "es", "s"];
    let may_end = word.ends_with(['s', 'g', 'n', 'd', 'e']);
    if !may_end || !word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return word;
    }
    let cut = ENDINGS.iter().find_map(|ending| word.strip_suffix(ending));
    let stem = cut.filter(|stem| stem.len() >= STEM_BYTES_MIN).unwrap_or(word);
    let bare = stem.strip_suffix('e').filter(|bare| bare.len() >= STEM_BYTES_MIN);
    bare.unwrap_or(stem)
}

/// True for scripts written without blanks, where each character is a word.
pub(crate) fn stands_alone(letter: char) -> bool {
    matches!(u32::from(letter),
        0x0E00..=0x0EFF | 0x1100..=0x11FF | 0x2E80..=0x9FFF | 0xAC00..=0xD7FF | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF)
}

/// FNV-1a hash; keys are short and come from no adversary.
pub(crate) const fn hash(text: &str) -> u64 {
    let (bytes, mut hash, mut at) = (text.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

/// Appends `letter` folded: lower case, one kind of quote and dash, one blank for a run of blanks, no Markdown marks.
pub(crate) fn fold_into(letter: char, to: &mut String) {
    match letter {
        // Most letters, first.
        'a'..='z' => to.push(letter),
        '‘' | '’' | '‚' | '′' => to.push('\''),
        '“' | '”' | '„' | '«' | '»' | '″' => to.push('"'),
        '‐' | '‑' | '‒' | '–' | '—' | '−' => to.push('-'),
        '`' | '*' | '\u{200b}' | '\u{feff}' | '\u{ad}' => {}
        _ if letter == '\0' || letter.is_whitespace() => {
            if !to.is_empty() && !to.ends_with(' ') {
                to.push(' ');
            }
        }
        _ => lower(letter, to),
    }
}

/// Appends the lower case of `letter`. A dotted capital I becomes a plain i, without a combining dot.
pub(crate) fn lower(letter: char, to: &mut String) {
    if letter.is_ascii() {
        to.push(letter.to_ascii_lowercase());
    } else {
        to.extend(letter.to_lowercase().filter(|letter| *letter != '\u{307}'));
    }
}

/// Folds all of `text`, and trims blanks.
pub(crate) fn folded(text: &str) -> String {
    let mut to = String::with_capacity(text.len());
    text.chars().for_each(|letter| fold_into(letter, &mut to));
    to.truncate(to.trim_end().len());
    to
}
#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn same(one: &str, other: &str, expected: bool) {
        let keys = |text| {
            let mut keys = Vec::new();
            words(text, |word| keys.push(word.key));
            keys
        };
        assert_eq!(keys(one) == keys(other), expected, "{one} / {other}");
    }

    #[test]
    fn endings_and_case_do_not_part_words() {
        same("Caching", "caches", true);
        same("the tests failed", "test fail", true);
        same("İstanbul", "istanbul", true);
        same("port", "post", false);
        same("HTTP2", "HTTP1", false);
    }

    #[test]
    fn inflected_words_are_searched_by_one_key() {
        let keys = |text: &str| {
            let mut keys = Vec::new();
            search_keys(text, |key| keys.push(key));
            keys
        };
        for (one, other) in [
            ("retries", "retry"),
            ("deleted files", "deletion of a file"),
            ("gerundet", "gerundete"),
            ("保存先", "保存先"),
            ("écrire", "écrirons"),
        ] {
            assert_eq!(keys(one), keys(other), "{one} / {other}");
        }
        assert_ne!(keys("loan_item2"), keys("loan_item3"));
        assert_eq!(keys("保存先").len(), 2);
    }

    /// Number of words of `query` found in `text`: exactly, and also by stem.
    fn met(query: &str, text: &str) -> (usize, usize) {
        let (all, asked) = (search_terms(text), query_terms(query));
        let exact = asked.iter().filter(|it| all.iter().any(|other| other.exact == it.exact));
        let near = asked.iter().filter(|it| all.iter().any(|other| it.is_met(*other)));
        (exact.count(), near.count())
    }

    #[test]
    fn names_of_code_are_searched_in_parts_and_as_a_whole() {
        for (name, parts) in [
            ("claimJob", &["claim", "job", "claimjob"][..]),
            ("claim_job", &["claim", "job", "claimjob", "claimJob"]),
            ("src/queue.rs", &["src", "queue", "rs", "queuers", "queue.rs"]),
            ("--drain", &["drain", "--drain"]),
            ("HTTPServer", &["http", "server", "httpserver"]),
            ("Store::open", &["store", "storeopen", "Store::open"]),
            ("PostgreSQL", &["postgresql", "sql"]),
            ("保存先API", &["保", "保存", "存先", "api"]),
            ("IŞIK", &["ışık"]),
        ] {
            for part in parts {
                let (exact, _) = met(part, name);
                assert_eq!(exact, search_terms(part).len(), "{part} in {name}");
            }
        }
        assert!(search_terms("what did we use").is_empty());
    }

    #[test]
    fn other_forms_of_a_word_meet_by_their_stem_only() {
        for (query, text) in [
            ("retries", "retry"),
            ("deletion", "why is it not deleted"),
            ("Pakete", "das Paket ist im Fach"),
            ("Fach", "die Fächer sind voll"),
            ("Bestellung", "keine Bestellungen mehr und so"),
            ("livraison", "les livraisons de la semaine"),
            ("continuer", "nous avons continué avec la file"),
            ("parada", "las colas están paradas por la noche"),
            ("consegna", "le consegne della settimana"),
            ("entregas", "a entrega não é para hoje"),
            ("wachtrij", "de wachtrijen zijn vol"),
            ("очередь", "очереди"),
        ] {
            assert_eq!(met(query, text).1, 1, "{query}");
        }
        assert_eq!(met("retries", "retry"), (0, 1));
        assert_eq!(met("caches", "caching"), (1, 1));
        for (query, text) in [("configuration", "confirm"), ("nothinglikethat", "nothing")] {
            assert_eq!(met(query, text), (0, 0), "{query}");
        }
        assert!(query_terms("wie ist das mit dem").is_empty(), "function words of other languages");
        assert_eq!(met("port", "post"), (0, 0));
    }

    #[test]
    fn stop_words_have_no_key() {
        assert!(["the", "instead", "your"].iter().all(|word| key(word).is_none()));
        assert!(["thee", "queue", "postgres"].iter().all(|word| key(word).is_some()));
    }
}
