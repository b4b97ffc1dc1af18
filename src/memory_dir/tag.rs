//! Tags: `<!-- @category: V -->` or `<!-- @tag: V -->` on a line of its own, belonging to the heading or
//! item directly above. The source of a fact is such a tag too: `src-` and the first digits of its id.

use crate::domain::{Digest, MemoryId, RecordId, named};
use foldhash::{HashMap, HashMapExt};

/// Maximum length of a tag line, in letters (schema, validation of tags).
pub(crate) const TAG_LINE_LETTERS_MAX: usize = 80;
/// Number of id digits in a tag, if they are unambiguous.
pub(crate) const SOURCE_DIGITS_MIN: usize = 8;
pub(crate) const SOURCE: &str = "src-";
/// Prefix of the tag of a request shown as current focus.
pub(crate) const FOCUS: &str = "focus-";
const OURS: [&str; 6] = [SOURCE, "session-", "summary-", FOCUS, "card-", "next-"];

/// Tag of the memory that `tag` names, itself or as a request in focus; `None` if it is the tag of no memory.
pub(crate) fn source_of(tag: &str) -> Option<String> {
    let is_hex =
        |it: &&str| SOURCE_DIGITS_MIN <= it.len() && it.bytes().all(|it| it.is_ascii_hexdigit());
    let digits = tag.strip_prefix(SOURCE).or(tag.strip_prefix(FOCUS).filter(is_hex))?;
    Some(format!("{SOURCE}{digits}"))
}

named! {
    /// Category of an entry; the second five belong to retrospectives.
    pub Category {
        Decision = "decision",
        Pattern = "pattern",
        Bugfix = "bugfix",
        Convention = "convention",
        Learning = "learning",
        Efficiency = "efficiency",
        Quality = "quality",
        Ux = "ux",
        Knowledge = "knowledge",
        Architecture = "architecture",
    }
}

/// Words that indicate a category; the first match decides (`memory-sync` of ConKeeper).
const GIVEN_BY: [(Category, &[&str]); 5] = [
    (Category::Decision, &["decided", "chose", "selected", "went with"]),
    (Category::Pattern, &["pattern", "always", "never", "standard"]),
    (Category::Bugfix, &["fixed", "bug", "resolved", "workaround"]),
    (Category::Convention, &["convention", "naming", "format", "style"]),
    (Category::Learning, &["learned", "discovered", "til", "realized"]),
];

impl Category {
    pub fn is_retrospective(self) -> bool {
        use Category::{Architecture, Efficiency, Knowledge, Quality, Ux};
        matches!(self, Efficiency | Quality | Ux | Knowledge | Architecture)
    }

    /// Category of `text` by its words; the first matching rule decides.
    pub fn of_words(text: &str) -> Option<Category> {
        let mut folded = String::with_capacity(text.len());
        for letter in text.chars() {
            match letter {
                letter if !letter.is_alphanumeric() => folded.push(' '),
                letter if letter.is_ascii() => folded.push(letter.to_ascii_lowercase()),
                letter => folded.extend(letter.to_lowercase()),
            }
        }
        let words: Vec<&str> = folded.split(' ').filter(|word| !word.is_empty()).collect();
        let is = |word: &str, given: &str| word == given || word.strip_suffix('s') == Some(given);
        let says = |given: &&str| match given.split_once(' ') {
            None => words.iter().any(|word| is(word, given)),
            Some((first, then)) => words
                .windows(2)
                .any(|it| matches!(it, [one, two] if *one == first && is(two, then))),
        };
        GIVEN_BY.iter().find(|(_, words)| words.iter().any(&says)).map(|(it, _)| *it)
    }
}

/// A line that is meant as a tag.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Tag<'t> {
    pub name: &'t str,
    pub value: &'t str,
    pub is_exact: bool,
}

impl<'t> Tag<'t> {
    /// Parses a line; `None` if it is not a comment that begins with `@`.
    pub fn parse(line: &'t str) -> Option<Tag<'t>> {
        let line = line.trim();
        let inner = line.strip_prefix("<!--")?;
        let name = inner.trim_start().strip_prefix('@')?;
        let inner = name.strip_suffix("-->")?;
        let (name, value) = inner.split_once(':').unwrap_or((inner, ""));
        let tag = Tag { name: name.trim(), value: value.trim(), is_exact: false };
        let known = matches!(tag.name, "category" | "tag") && is_value(tag.value);
        let frame = line.len() == "<!-- @:  -->".len() + tag.name.len() + tag.value.len();
        let blanks = line.starts_with("<!-- @") && line.ends_with(" -->") && value.starts_with(' ');
        Some(Tag { is_exact: known && frame && blanks, ..tag })
    }

    /// Parses a line like [`Tag::parse`], or the tag after the last cell of a table row.
    pub fn of_line(line: &'t str) -> Option<Tag<'t>> {
        let from = line.rfind("<!--").filter(|_| line.trim_start().starts_with('|'));
        Tag::parse(line.get(from.unwrap_or_default()..)?)
    }

    pub fn category(&self) -> Option<Category> {
        if self.name == "category" { Category::of_name(self.value) } else { None }
    }

    pub fn ours(&self) -> Option<&'t str> {
        (self.name == "tag" && is_ours(self.value)).then_some(self.value)
    }
}

fn is_ours(value: &str) -> bool {
    let last = value.rsplit_once('-').is_some_and(|(_, last)| is_id(last));
    last && OURS.iter().any(|ours| value.starts_with(ours))
}

pub(crate) fn is_value(value: &str) -> bool {
    let tail = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    value.starts_with(|c: char| c.is_ascii_lowercase()) && value.bytes().all(tail)
}

const RECORD: &str = "record-";
/// Number of id digits in such a tag.
const RECORD_DIGITS: usize = 10;

/// Tag that names a record which an entry was made from.
pub(crate) fn record_tag(record: RecordId) -> String {
    let digits: String = record.to_string().chars().take(RECORD_DIGITS).collect();
    format!("{RECORD}{digits}")
}

const WORDS: &str = "words-";

/// Tag with a digest of an entry's text; it no longer matches once a person edits it.
pub(crate) fn words_tag(entry: &str) -> String {
    let words = entry.trim().replace("\r\n", "\n");
    let digest = Digest::of(&["words", &words]).to_string();
    format!("{WORDS}{}", digest.get(..SOURCE_DIGITS_MIN).unwrap_or(&digest))
}

pub(super) fn record_prefix<'t>(tag: &Tag<'t>) -> Option<&'t str> {
    let digits = tag.value.strip_prefix(RECORD).filter(|_| tag.name == "tag");
    digits.filter(|digits| is_id(digits))
}

/// True for an id prefix that is long enough for a tag.
fn is_id(digits: &str) -> bool {
    let is_hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    digits.len() >= SOURCE_DIGITS_MIN && digits.bytes().all(is_hex)
}

pub(super) fn category_line(category: Category) -> String {
    format!("<!-- @category: {} -->", category.name())
}

pub(super) fn tag_line(value: &str) -> String {
    format!("<!-- @tag: {value} -->")
}

/// Shortest tag of a memory.
pub(crate) fn source_tag(id: MemoryId) -> String {
    format!("{SOURCE}{:.*}", SOURCE_DIGITS_MIN, id.0)
}

/// Unique tag of each memory: `src-` and the first [`SOURCE_DIGITS_MIN`] digits of its id. Of ids
/// with the same prefix, the lowest keeps that many; each other gets as many as distinguish it from
/// the one before.
pub(crate) fn source_tags(ids: impl IntoIterator<Item = MemoryId>) -> HashMap<MemoryId, String> {
    let mut ids: Vec<MemoryId> = ids.into_iter().collect();
    ids.sort_unstable();
    ids.dedup();
    let mut before = String::new();
    let mut tags = HashMap::with_capacity(ids.len());
    for id in ids {
        let digits = id.to_string();
        let alike = digits.bytes().zip(before.bytes()).take_while(|(a, b)| a == b).count();
        let length = if alike < SOURCE_DIGITS_MIN { SOURCE_DIGITS_MIN } else { alike + 1 };
        tags.insert(id, [SOURCE, digits.get(..length).unwrap_or(&digits)].concat());
        before = digits;
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Digest;
    use std::collections::BTreeSet;

    fn id(first: u8, fifth: u8, sixth: u8) -> MemoryId {
        let mut bytes = [0; 16];
        (bytes[0], bytes[4], bytes[5]) = (first, fifth, sixth);
        MemoryId(Digest::from_bytes(bytes))
    }

    #[test]
    fn a_tag_is_a_comment_on_a_line_of_its_own() {
        let tag = Tag::parse("  <!-- @category: bugfix -->").unwrap();
        assert_eq!((tag.category(), tag.is_exact), (Some(Category::Bugfix), true));
        let loose = Tag::parse("<!--@tag:Payments-->").unwrap();
        assert_eq!((loose.value, loose.is_exact), ("Payments", false));
        assert!(!Tag::parse("<!-- @label: x -->").unwrap().is_exact);
        assert_eq!(Tag::parse("- x <!-- @tag: y -->"), None);
        assert_eq!(Tag::of_line("- x <!-- @tag: y -->"), None);
        assert_eq!(Tag::of_line("| x | z | <!-- @tag: y -->").map(|tag| tag.value), Some("y"));
        assert_eq!(Tag::parse("<!-- what is going on -->"), None);
    }

    #[test]
    fn a_source_is_known_by_its_form() {
        let ours = |value| Tag { name: "tag", value, is_exact: true }.ours().is_some();
        assert!(ours("src-0123abcd") && ours("card-keywords-0123abcd"));
        assert!(!ours("src-0123") && !ours("src-payments") && !ours("other-0123abcd"));
    }

    #[test]
    fn ids_that_begin_alike_have_tags_that_differ() {
        let ids = [id(1, 0, 0), id(1, 0, 0x10), id(1, 0, 0x11), id(2, 0, 0)];
        let tags: BTreeSet<String> = source_tags(ids).into_values().collect();
        assert_eq!(
            Vec::from_iter(tags),
            ["src-01000000", "src-01000000001", "src-010000000011", "src-02000000"]
        );
    }

    #[test]
    fn the_first_rule_that_holds_gives_the_category() {
        assert_eq!(Category::of_words("We chose a naming style"), Some(Category::Decision));
        assert_eq!(Category::of_words("Fixed the bugs"), Some(Category::Bugfix));
        assert_eq!(Category::of_words("TIL: it debugs itself"), Some(Category::Learning));
        assert_eq!(Category::of_words("until tomorrow"), None);
    }
}
