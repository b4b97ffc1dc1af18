//! Blocks by what they are, so that one can be found again in another version of the file.

use crate::memory_dir::document::{Block, Document, Part};
use crate::memory_dir::{line, tag};
use std::collections::HashMap;

/// What a block is known by. Where a block stands is no part of it: it may have been moved.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Name {
    /// Our tag; it stays when the words change.
    Ours(String),
    /// The words, without blanks and marks.
    Words(String),
    /// The name before the colon.
    Meta(String),
    Title,
    Footer,
}

/// A name, and how many blocks above have it too.
pub(super) type Key = (Name, usize);

/// A block that can be found again.
#[derive(Clone, Debug)]
pub(super) struct Unit<'t> {
    pub(super) at: usize,
    pub(super) section: &'t str,
    pub(super) body: &'t str,
    pub(super) tags: &'t str,
}

/// The blocks of a document that can be found again, in order.
pub(super) struct Units<'t> {
    pub(super) list: Vec<(Key, Unit<'t>)>,
    by_key: HashMap<Key, usize>,
}

impl<'t> Units<'t> {
    pub(super) fn of(document: &Document<'t>) -> Units<'t> {
        let mut counts: HashMap<Name, usize> = HashMap::new();
        let mut units = Units { list: Vec::new(), by_key: HashMap::new() };
        for (at, block) in document.blocks().iter().enumerate() {
            let Some(name) = name(document, block) else { continue };
            let count = counts.entry(name.clone()).or_default();
            let key = (name, *count);
            *count += 1;
            let body = document.body(block);
            let tags = document.raw(block).get(body.len()..).unwrap_or_default();
            let unit = Unit { at, section: document.section(block), body, tags };
            units.by_key.insert(key.clone(), units.list.len());
            units.list.push((key, unit));
        }
        units
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Unit<'t>> {
        let at = self.by_key.get(key)?;
        self.list.get(*at).map(|(_, unit)| unit)
    }
}

fn name(document: &Document<'_>, block: &Block) -> Option<Name> {
    match block.part {
        Part::Title => Some(Name::Title),
        Part::Footer => Some(Name::Footer),
        Part::Meta => {
            let line = document.body(block);
            Some(Name::Meta(line.split(':').next().unwrap_or(line).trim().to_owned()))
        }
        Part::Entry(_) => {
            let ours = document.tags(block).find_map(|tag| tag.ours());
            let words = || Name::Words(words(document.body(block)));
            Some(ours.map_or_else(words, |tag| Name::Ours(tag.to_owned())))
        }
        Part::Comment => Some(Name::Words(words(document.body(block)))),
        Part::FrontMatter
        | Part::Section
        | Part::Heading
        | Part::TableHead
        | Part::StrayTag
        | Part::Private
        | Part::Marker
        | Part::Rule
        | Part::Blank => None,
    }
}

/// The words of an entry: a run of blanks is one, and its mark and box do not count.
pub(super) fn words(body: &str) -> String {
    let text = body.trim_start();
    let text = line::item(text).unwrap_or(text);
    let text = line::task(text).map_or(text, |(_, rest)| rest);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether two pieces say the same, whatever their line ends and the blanks behind their lines.
pub(super) fn same(one: &str, other: &str) -> bool {
    one == other || one.lines().map(str::trim_end).eq(other.lines().map(str::trim_end))
}

/// Whether a name is one of ours.
pub(super) fn tag_of(key: &Key) -> Option<&str> {
    match &key.0 {
        Name::Ours(tag) => Some(tag),
        Name::Words(_) | Name::Meta(_) | Name::Title | Name::Footer => None,
    }
}

/// Whether the tag is that of a memory.
pub(super) fn is_source(tag: &str) -> bool {
    tag.starts_with(tag::SOURCE)
}
