//! Words that decide how two statements relate: words of change, words that limit or negate, and exact names. In
//! English, German, Turkish, Spanish, French, Japanese, Chinese and, in part, others.

use crate::text::stems::{NEGATIONS, is_no};
use crate::text::tokens::{hash, search_keys};
use aho_corasick::AhoCorasick;
use foldhash::{HashMap, HashSet};
use std::sync::{LazyLock, OnceLock};

/// Words and phrases, folded, of the lines of `phrases.txt` with one name. A line has the name, and a list separated by
/// bars.
#[derive(Default)]
pub(super) struct WordList {
    pub(super) lines: Vec<&'static str>,
    /// Phrases by their first word.
    by_first: OnceLock<HashMap<&'static str, Vec<Vec<&'static str>>>>,
    finder: OnceLock<Option<AhoCorasick>>,
    keys: OnceLock<Vec<u64>>,
}

static LISTS: LazyLock<HashMap<&str, WordList>> = LazyLock::new(|| {
    let mut lists: HashMap<&str, WordList> = HashMap::default();
    for (name, line) in include_str!("phrases.txt").lines().filter_map(|it| it.split_once(": ")) {
        lists.entry(name).or_default().lines.push(line);
    }
    lists
});

/// The list with this name.
pub(super) fn list(name: &str) -> &'static WordList {
    static NONE: LazyLock<WordList> = LazyLock::new(WordList::default);
    debug_assert!(LISTS.contains_key(name), "`phrases.txt` has no list `{name}`");
    LISTS.get(name).unwrap_or(&NONE)
}

impl WordList {
    pub(super) fn words(&self) -> impl Iterator<Item = &'static str> {
        self.lines.iter().flat_map(|line| line.split('|'))
    }

    fn by_first(&self) -> &HashMap<&'static str, Vec<Vec<&'static str>>> {
        self.by_first.get_or_init(|| {
            let mut found: HashMap<&str, Vec<Vec<&str>>> = HashMap::default();
            for phrase in self.words() {
                let words: Vec<&str> = phrase.split(' ').collect();
                found.entry(words[0]).or_default().push(words);
            }
            found
        })
    }

    /// True if a word or phrase begins with `word`.
    pub(super) fn has(&self, word: &str) -> bool {
        self.by_first().contains_key(word)
    }

    /// Length of the phrase with which `words` begins.
    pub(super) fn begin(&self, words: &[&str]) -> Option<usize> {
        let of_word = self.by_first().get(words.first()?)?;
        of_word.iter().find(|phrase| words.starts_with(phrase)).map(Vec::len)
    }

    /// True if the folded text has one of them as whole words.
    pub(super) fn are_in(&self, folded: &str) -> bool {
        let finder = self.finder.get_or_init(|| AhoCorasick::new(self.words()).ok());
        let Some(finder) = finder else { return false };
        // In other scripts no blanks stand between words.
        let has_blanks = |letter: char| letter.is_alphabetic() && u32::from(letter) < 0x0E00;
        let glued = |end: Option<char>, next: Option<char>| {
            end.is_some_and(has_blanks) && next.is_some_and(char::is_alphanumeric)
        };
        finder.find_overlapping_iter(folded).any(|found| {
            let word = folded.get(found.range()).unwrap_or_default();
            let before = folded.get(..found.start()).and_then(|text| text.chars().next_back());
            let after = folded.get(found.end()..).and_then(|text| text.chars().next());
            !glued(word.chars().next(), before) && !glued(word.chars().next_back(), after)
        })
    }

    /// Keys of the topic words, sorted.
    pub(super) fn keys(&self) -> &[u64] {
        self.keys.get_or_init(|| {
            let mut keys = all_topic_keys(self.words());
            keys.sort_unstable();
            keys.dedup();
            keys
        })
    }
}

/// Base forms of irregular verbs, by their forms.
pub(super) static FORM_WORDS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let rows = list("forms").words().filter_map(|row| Some((row.split(' ').next()?, row)));
    rows.flat_map(|(first, row)| row.split(' ').map(move |word| (word, first))).collect()
});

/// Prefixes that German verbs separate.
const SEPARABLE: [&str; 9] = ["hinzu", "ein", "aus", "an", "ab", "auf", "um", "vor", "zu"];

/// Infinitive of a regular German participle with a separable prefix: `einbauen` of `eingebaut`.
pub(super) fn infinitive(word: &str) -> Option<String> {
    let mut prefixes = SEPARABLE.into_iter();
    let (prefix, rest) =
        prefixes.find_map(|it| Some((it, word.strip_prefix(it)?.strip_prefix("ge")?)))?;
    let stem = rest.strip_suffix("et").or_else(|| rest.strip_suffix('t'))?;
    (stem.len() > 2).then(|| format!("{prefix}{stem}en"))
}

/// Calls `each` with the keys of a folded topic word; forms of one verb have the same keys.
pub(super) fn topic_keys(word: &str, mut each: impl FnMut(u64)) {
    if let Some(plain) = FORM_WORDS.get(word) {
        return search_keys(plain, each);
    }
    if word.chars().count() == 1 {
        return each(hash(word));
    }
    if let Some(verb) = infinitive(word) {
        return search_keys(&verb, each);
    }
    // `shipping` and `shipped` become `ship`, `trading` and `trade` become `trad`.
    let endings = ["ing", "ed", "es", "e"];
    let stem = endings.iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    let stem = if word.len() < 5 { word } else { stem };
    let twice = stem.as_bytes().last_chunk().is_some_and(|[one, other]| one == other);
    let doubled = twice && stem.len() > 3 && !stem.ends_with(['l', 's', 'e', 'o', 'f', 'z']);
    let single = stem.get(..stem.len().saturating_sub(1)).filter(|_| doubled);
    // `gespeichert` becomes `speichert`.
    let participle = word.strip_prefix("ge").filter(|rest| rest.len() >= 6 && rest.ends_with('t'));
    search_keys(single.or(participle).unwrap_or(stem), each);
}

/// Keys of folded topic words, in order.
pub(super) fn all_topic_keys<'w>(words: impl Iterator<Item = &'w str>) -> Vec<u64> {
    let mut keys = Vec::new();
    words.for_each(|word| topic_keys(word, |key| keys.push(key)));
    keys
}

const BOUND_SUBSTRINGS: &[&str] = &["だけ", "只", "前に", "後に"];
const NEGATION_SUBSTRINGS: &[&str] = &["ない", "ません", "禁止", "不", "别", "勿", "没"];

/// Words that negate everybody or everything.
const NOBODY: &[&str] = &[
    "nobody", "nothing", "none", "neither", "niemand", "nichts", "personne", "rien", "nadie",
    "nada", "hiçbir",
];

/// Words that bound a statement, folded. Two statements that differ in one of these do not say the same, whatever
/// else they share.
static BOUND_WORDS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| list("bounds").words().chain(NEGATIONS.iter().copied()).collect());
/// Articles, pronouns, prepositions and verbs that occur in statements on any topic.
static STOP_WORD_SET: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lists = ["changes", "shifts", "withdrawn"].into_iter().flat_map(|it| list(it).words());
    let lists = lists.chain(NEGATIONS.iter().chain(NOBODY).copied());
    let words = list("stop words").words().chain(SYMBOLS);
    words.chain(lists.filter(|words| !words.contains(' '))).collect()
});

/// True if the folded text says that something is no longer as it was.
pub(super) fn says_change(folded: &str) -> bool {
    list("changes").are_in(folded) || list("shifts").are_in(folded)
}

/// True for a folded stop word.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORD_SET.contains(word)
}

/// Hashes of the words in which equal statements must agree: bounds, and exact names (numbers,
/// versions, paths, identifiers). Sorted, with duplicates.
pub(super) fn invariant_words(folded: &str) -> Vec<u64> {
    // A letter tells one thing from others, as in `plan b` and `bucket-a`.
    let is_lettered = |word: &str| {
        let last = word.rsplit('-').next().unwrap_or_default();
        last.len() == 1 && last.as_bytes()[0].is_ascii_alphabetic() && !is_stop_word(word)
    };
    let is_hard = |word: &&str| {
        is_exact(word) || is_symbol(word) || BOUND_WORDS.contains(word) || is_lettered(word)
    };
    let mut hard: Vec<u64> = folded.split(' ').map(bare).filter(is_hard).map(hash).collect();
    if !folded.is_ascii() {
        let inside = BOUND_SUBSTRINGS.iter().chain(NEGATION_SUBSTRINGS);
        let inside = inside.filter(|word| folded.contains(**word));
        hard.extend(inside.map(|word| hash(word)));
    }
    hard.sort_unstable();
    hard
}

pub(super) fn says_no(folded: &str) -> bool {
    let inside = || NEGATION_SUBSTRINGS.iter().any(|word| folded.contains(*word));
    folded.split(' ').map(bare).any(|word| is_no(word) || NOBODY.contains(&word))
        || (!folded.is_ascii() && inside())
}

/// True for `no … without …`, which demands something.
pub(super) fn is_double_negation(folded: &str) -> bool {
    let (mut without, mut others) = (false, false);
    for word in folded.split(' ').map(bare).filter(|word| is_no(word) || NOBODY.contains(word)) {
        let is_without = matches!(word, "without" | "ohne" | "sans" | "sin");
        (without, others) = (without || is_without, others || !is_without);
    }
    without && others
}

/// Signs that stand for words: comparisons and arrows.
const SYMBOLS: [&str; 11] = ["<", ">", "<=", ">=", "≤", "≥", "->", "→", "=>", "<-", "←"];

/// Strips punctuation around a word, but no sign: `c++` and `c` are two names, and so are `-18`, `18` and `>18`.
fn bare(word: &str) -> &str {
    if is_symbol(word) {
        return word;
    }
    let word = word.trim_end_matches(|letter: char| !letter.is_alphanumeric() && !is_sign(letter));
    let rest = word.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    with_sign(word, word.len() - rest.len())
}

pub(super) fn is_symbol(word: &str) -> bool {
    SYMBOLS.contains(&word)
}

/// True for a sign that may end a name, such as `c#`.
pub(super) fn is_sign(letter: char) -> bool {
    matches!(letter, '+' | '#')
}

/// The part of `word` from `start` on, with the signs before its number.
pub(super) fn with_sign(word: &str, start: usize) -> &str {
    let (before, rest) = word.split_at(start);
    let signs = before.trim_end_matches(['-', '<', '>', '=', '≤', '≥']).len();
    let is_number = rest.starts_with(|it: char| it.is_ascii_digit());
    if is_number { &word[signs..] } else { rest }
}

/// True for a folded word that is an exact name: a number, a path, an identifier.
pub(super) fn is_exact(word: &str) -> bool {
    let inner = |letter: char| {
        matches!(letter, '_' | '/' | '\\' | '.' | ':' | '@' | '=' | '<') || is_sign(letter)
    };
    !is_symbol(word) && word.chars().any(|letter| letter.is_numeric() || inner(letter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tokens::folded;

    #[test]
    fn every_list_that_is_named_is_in_the_file() {
        let sources = [
            include_str!("cross_kind.rs"),
            include_str!("deed.rs"),
            include_str!("parts.rs"),
            include_str!("phrases.rs"),
            include_str!("question.rs"),
            include_str!("retrospective.rs"),
            include_str!("stated.rs"),
            include_str!("statement.rs"),
            include_str!("subject.rs"),
        ];
        let named = regex::Regex::new(r#"(?:list|about)\("([^"]+)"\)"#).unwrap();
        let names: Vec<_> =
            named.captures_iter(&sources.concat()).map(|it| it[1].to_owned()).collect();
        assert!(names.len() > 50, "{names:?}");
        for name in names {
            assert!(list(&name).words().any(|word| !word.is_empty()), "{name}");
        }
    }

    #[test]
    fn change_is_heard_in_whole_words_only() {
        for text in [
            "No, take Postgres after all",
            "Wir nehmen doch lieber SQLite",
            "Redis YERİNE Postgres kullanalım",
            "mejor SQLite en vez de Redis",
            "On prend plutôt SQLite",
            "やっぱりPostgresにする",
        ] {
            assert!(says_change(&folded(text)), "{text}");
        }
        for text in ["Take Postgres", "the raindrops fell", "Stattliche Zahlen", "a switchboard"] {
            assert!(!says_change(&folded(text)), "{text}");
        }
    }

    #[test]
    fn numbers_paths_and_negations_are_hard() {
        let hard = |text: &str| invariant_words(&folded(text));
        assert_ne!(hard("use port 5432"), hard("use port 5433"));
        assert_ne!(hard("Push to main."), hard("Never push to main."));
        assert_ne!(hard("看 src/a.rs"), hard("看 src/b.rs"));
        assert_ne!(hard("テストを消す"), hard("テストを消さない"));
        assert_ne!(hard("keep uploads in bucket-a"), hard("keep uploads in bucket-b"));
        assert_ne!(hard("take plan b"), hard("take plan c"));
        assert_eq!(hard("Add tests, please"), hard("add Tests"));
        assert_eq!(hard("add a test"), hard("add test"));
    }
}
