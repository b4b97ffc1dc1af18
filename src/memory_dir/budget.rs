//! Token budgets: presets, the share of each kind of file, and counts of tokens and tags. The
//! tables come from the ConKeeper schema; upper ends are limits, lower ends advice.

use super::document::Document;
use super::kind::{Files, Kind};
use crate::domain::{Tokens, named};
use crate::privacy::{is_private_file, strip_private};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Letters per token in the directory's budgets (§4.2 no. 4).
pub(crate) const LETTERS_PER_TOKEN: usize = 4;

named! {
    /// Token budget of a session start.
    pub Preset {
        /// Quick tasks.
        Economy = "economy",
        /// Small projects.
        Light = "light",
        /// Most projects.
        Standard = "standard",
        /// Long handovers.
        Detailed = "detailed",
    }
}

impl Preset {
    /// Maximum of all files together, in tokens.
    pub fn total(self) -> Tokens {
        [2_000, 3_000, 4_000, 6_000][self as usize]
    }

    /// Minimum and maximum tokens of a file; `None` without a limit. Each record and session counts by itself.
    pub fn range(self, kind: Kind) -> Option<(Tokens, Tokens)> {
        let by_preset = match kind {
            Kind::ActiveContext => [(200, 400), (300, 500), (400, 600), (500, 800)],
            Kind::ProductContext => [(300, 600), (400, 700), (500, 900), (700, 1_200)],
            Kind::Progress | Kind::Patterns => [(200, 400), (250, 450), (350, 550), (450, 700)],
            Kind::Glossary => [(100, 300), (150, 350), (200, 450), (300, 500)],
            Kind::Decision => [(300, 500), (400, 600), (500, 800), (700, 1_000)],
            Kind::Session => [(200, 400), (400, 700), (600, 1_000), (900, 1_500)],
            Kind::Retrospective | Kind::Config | Kind::Other => return None,
        };
        Some(by_preset[self as usize])
    }
}

/// Number of tokens of a text: its letters divided by [`LETTERS_PER_TOKEN`], rounded up.
pub(crate) fn tokens_of(text: &str) -> Tokens {
    let letters = text.chars().count();
    Tokens::try_from(letters.div_ceil(LETTERS_PER_TOKEN)).unwrap_or(Tokens::MAX)
}

/// Number of uses of each tag in public text.
#[derive(schemars::JsonSchema, Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub(crate) struct TagCounts {
    /// Values of `@category`.
    pub categories: BTreeMap<String, u64>,
    /// Values of `@tag` but those that say where an entry came from.
    pub tags: BTreeMap<String, u64>,
    /// Tags that say where an entry came from.
    pub sources: u64,
}

/// Counts tags in public text.
pub(crate) fn tags(files: &Files) -> TagCounts {
    let mut counts = TagCounts::default();
    for (path, text) in files {
        let (document, _) = Document::parse(Kind::of_path(path), text);
        if document.is_private() {
            continue;
        }
        for tag in document.blocks.iter().flat_map(|block| document.tags(block)) {
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

/// Tokens of a file.
#[derive(schemars::JsonSchema, Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct TokenRow {
    /// The file.
    pub path: String,
    /// Its kind.
    pub kind: Kind,
    /// Its tokens, without what is private.
    pub tokens: Tokens,
    /// Its advised minimum and its maximum; none without a limit.
    pub range: Option<(Tokens, Tokens)>,
    /// True for a private file, which counts nothing.
    pub is_private: bool,
}

impl TokenRow {
    pub(crate) fn is_over(&self) -> bool {
        self.range.is_some_and(|(_, most)| self.tokens > most)
    }
}

/// Tokens of the directory.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct TokenTable {
    /// Each file, by path.
    pub rows: Vec<TokenRow>,
    /// All files together.
    pub tokens: Tokens,
    /// Size of a session start before truncation: the top-level files and the newest session.
    pub start_tokens: Tokens,
    /// Maximum size of a session start.
    pub total_max: Tokens,
}

/// Counts the tokens of each file.
pub(crate) fn tokens(files: &Files, preset: Preset) -> TokenTable {
    let row = |(path, text): (&String, &Arc<str>)| {
        let kind = Kind::of_path(path);
        let is_private = is_private_file(text);
        let tokens = if is_private { 0 } else { tokens_of(&strip_private(text)) };
        TokenRow { path: path.clone(), kind, tokens, range: preset.range(kind), is_private }
    };
    let rows: Vec<TokenRow> = files.iter().map(row).collect();
    // Top-level files and the newest session.
    let is_base = |row: &&TokenRow| {
        use Kind::{ActiveContext, Glossary, Patterns, ProductContext, Progress};
        matches!(row.kind, ActiveContext | ProductContext | Progress | Patterns | Glossary)
    };
    let newest = rows.iter().rev().find(|row| row.kind == Kind::Session);
    let add = |sum: Tokens, row: &TokenRow| sum.saturating_add(row.tokens);
    let start_tokens = rows.iter().filter(is_base).chain(newest).fold(0, add);
    let tokens = rows.iter().fold(0, add);
    TokenTable { tokens, start_tokens, total_max: preset.total(), rows }
}

#[cfg(test)]
mod budget_tests {
    use super::*;

    #[test]
    fn the_base_files_come_to_what_the_schema_says() {
        let base = [
            Kind::ActiveContext,
            Kind::ProductContext,
            Kind::Progress,
            Kind::Patterns,
            Kind::Glossary,
        ];
        let sum = |preset: &Preset| -> Tokens {
            base.iter().filter_map(|kind| preset.range(*kind)).map(|(_, most)| most).sum()
        };
        let sums: Vec<Tokens> = Preset::ALL.iter().map(sum).collect();
        assert_eq!(sums, [2_100, 2_450, 3_050, 3_900]);
    }

    #[test]
    fn tokens_are_a_quarter_of_the_letters_rounded_up() {
        assert_eq!(
            [tokens_of(""), tokens_of("a"), tokens_of("abcde"), tokens_of("日本語文字")],
            [0, 1, 2, 2]
        );
    }
}

#[cfg(test)]
mod tally_tests {
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
        files.into_iter().map(|(path, text)| (path.to_owned(), text.into())).collect()
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
        let table = tokens(&files(), Preset::Standard);
        let rows: Vec<(Tokens, bool)> =
            table.rows.iter().map(|row| (row.tokens, row.is_private)).collect();
        assert_eq!(rows, [(22, false), (0, true), (2, false), (10, false)]);
        assert_eq!((table.tokens, table.start_tokens, table.total_max), (34, 32, 4_000));
        assert!(table.rows.iter().all(|row| !row.is_over()));
        assert_eq!(table.rows[0].range, Some((400, 600)));
    }
}
