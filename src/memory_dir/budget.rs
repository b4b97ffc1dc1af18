//! Token budgets: presets, the share of each kind of file, and counts of tokens. The limits come from
//! the ConKeeper schema.

use super::kind::{Files, Kind};
use crate::domain::{Tokens, named};
use crate::privacy::{is_private_file, strip_private};

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

    /// Maximum tokens of a file; `None` without a limit. Each record and session counts by itself.
    pub fn file_max(self, kind: Kind) -> Option<Tokens> {
        let by_preset = match kind {
            Kind::ActiveContext => [400, 500, 600, 800],
            Kind::ProductContext => [600, 700, 900, 1_200],
            Kind::Progress | Kind::Patterns => [400, 450, 550, 700],
            Kind::Glossary => [300, 350, 450, 500],
            Kind::Decision => [500, 600, 800, 1_000],
            Kind::Session => [400, 700, 1_000, 1_500],
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

/// Number of tokens of a file without what is private.
pub(crate) fn public_tokens(text: &str) -> Tokens {
    if is_private_file(text) { 0 } else { tokens_of(&strip_private(text)) }
}

/// Size of a session start before truncation: the top-level files and the newest session.
pub(crate) fn start_tokens(files: &Files) -> Tokens {
    use Kind::{ActiveContext, Glossary, Patterns, ProductContext, Progress};
    let is_base =
        |kind| matches!(kind, ActiveContext | ProductContext | Progress | Patterns | Glossary);
    let base = files.iter().filter(|(path, _)| is_base(Kind::of_path(path)));
    let newest = files.iter().rfind(|(path, _)| Kind::of_path(path) == Kind::Session);
    base.chain(newest).fold(0, |sum, (_, text)| sum.saturating_add(public_tokens(text)))
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
            base.iter().filter_map(|kind| preset.file_max(*kind)).sum()
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

    #[test]
    fn a_session_starts_with_the_files_at_the_top_and_the_newest_session() {
        let files = [
            ("active-context.md", "- a\n<private>\n- b\n</private>\n"),
            ("patterns.md", "---\nprivate: true\n---\n- c\n"),
            ("progress.md", "- a task"),
            ("sessions/2026-01-02-a.md", "- old and long"),
            ("sessions/2026-01-03-b.md", "- newest"),
        ];
        let files = files.into_iter().map(|(path, text)| (path.to_owned(), text.into())).collect();
        assert_eq!(start_tokens(&files), 1 + 2 + 2);
    }
}
