//! Counts: which tags there are, and how much of the budget each file takes.

use super::Files;
use super::budget::tokens_of;
use super::config::MemoryConfig;
use super::document::Document;
use super::kind::Kind;
use crate::domain::Tokens;
use crate::privacy::{is_private_file, strip_private};
use serde::Serialize;
use std::collections::BTreeMap;

/// How often each tag is used where it can be seen.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct TagCounts {
    /// Values of `@category`.
    pub categories: BTreeMap<String, u64>,
    /// Values of `@tag` but those that say where an entry came from.
    pub tags: BTreeMap<String, u64>,
    /// Tags that say where an entry came from.
    pub sources: u64,
}

/// Counts tags; nothing private is counted.
pub fn tags(files: &Files) -> TagCounts {
    let mut counts = TagCounts::default();
    for (path, text) in files {
        let (document, _) = Document::parse(Kind::of_path(path), text);
        if document.is_private() {
            continue;
        }
        for tag in document.blocks().iter().flat_map(|block| document.tags(block)) {
            if tag.ours().is_some() {
                counts.sources += 1;
                continue;
            }
            let list = match tag.name {
                "category" => &mut counts.categories,
                "tag" => &mut counts.tags,
                _ => continue,
            };
            *list.entry(tag.value.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// What a file takes.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct TokenRow {
    /// The file.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Its tokens, without what is private.
    pub tokens: Tokens,
    /// What it should have at least and may have at most; none where there is no limit.
    pub range: Option<(Tokens, Tokens)>,
    /// Whether it is private as a whole, and so counts nothing.
    pub is_private: bool,
}

impl TokenRow {
    /// Whether it takes more than it may.
    pub fn is_over(&self) -> bool {
        self.range.is_some_and(|(_, most)| self.tokens > most)
    }
}

/// What the directory takes.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct TokenTable {
    /// Each file, by path.
    pub rows: Vec<TokenRow>,
    /// All files together.
    pub tokens: Tokens,
    /// What a session starts with, before it is cut: the files at the top and the newest session.
    pub start_tokens: Tokens,
    /// What it may start with.
    pub total_max: Tokens,
}

/// Counts tokens by file: a quarter of the letters, rounded up.
pub fn tokens(files: &Files, config: &MemoryConfig) -> TokenTable {
    let preset = config.token_budget;
    let row = |(path, text): (&String, &String)| {
        let kind = Kind::of_path(path);
        let is_private = is_private_file(text);
        let tokens = if is_private { 0 } else { tokens_of(&strip_private(text).0) };
        TokenRow { path: path.clone(), kind, tokens, range: preset.range(kind), is_private }
    };
    let rows: Vec<TokenRow> = files.iter().map(row).collect();
    let sum = |counts: &dyn Fn(&TokenRow) -> bool| {
        let counted = rows.iter().filter(|row| counts(row)).map(|row| row.tokens);
        counted.fold(0, Tokens::saturating_add)
    };
    let base = |row: &TokenRow| {
        let kinds = [
            Kind::ActiveContext,
            Kind::ProductContext,
            Kind::Progress,
            Kind::Patterns,
            Kind::Glossary,
        ];
        kinds.contains(&row.kind)
    };
    let newest = rows.iter().rev().find(|row| row.kind == Kind::Session);
    let start_tokens = sum(&base).saturating_add(newest.map_or(0, |row| row.tokens));
    let tokens = sum(&|_| true);
    TokenTable { tokens, start_tokens, total_max: preset.total(), rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files {
        let files = [
            (
                "active-context.md",
                "- a\n<!-- @category: decision -->\n<!-- @tag: payments -->\n<!-- @tag: src-0123abcd -->\n<private>\n- b\n<!-- @tag: hidden -->\n</private>\n",
            ),
            ("patterns.md", "---\nprivate: true\n---\n- c\n<!-- @tag: hidden -->\n"),
            ("sessions/2026-01-02-a.md", "- old"),
            ("sessions/2026-01-03-b.md", "- newest\n<!-- @category: decision -->"),
        ];
        files.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect()
    }

    #[test]
    fn tags_that_can_be_seen_are_counted() {
        let counts = tags(&files());
        assert_eq!(counts.categories, BTreeMap::from([("decision".to_owned(), 2)]));
        assert_eq!(counts.tags, BTreeMap::from([("payments".to_owned(), 1)]));
        assert_eq!(counts.sources, 1);
    }

    #[test]
    fn a_session_starts_with_the_files_at_the_top_and_the_newest_session() {
        let table = tokens(&files(), &MemoryConfig::default());
        let rows: Vec<(Tokens, bool)> =
            table.rows.iter().map(|row| (row.tokens, row.is_private)).collect();
        assert_eq!(rows, [(22, false), (0, true), (2, false), (10, false)]);
        assert_eq!((table.tokens, table.start_tokens, table.total_max), (34, 32, 4_000));
        assert!(table.rows.iter().all(|row| !row.is_over()));
        assert_eq!(table.rows[0].range, Some((400, 600)));
    }
}
