//! How much of the directory a session starts with: presets, and what each file may take of them
//! (the tables of the schema; §4.2 no. 3: both are caps, the lower ends are advice).

use super::kind::Kind;
use crate::domain::{Tokens, named};

/// Letters of a token in the directory's accounts (§4.2 no. 4).
pub const LETTERS_PER_TOKEN: usize = 4;

named! {
    /// How much of memory a session starts with.
    Preset {
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
    /// All files together, in tokens.
    pub fn total(self) -> Tokens {
        match self {
            Preset::Economy => 2_000,
            Preset::Light => 3_000,
            Preset::Standard => 4_000,
            Preset::Detailed => 6_000,
        }
    }

    /// What a file of a kind should have at least, and may have at most, in tokens; none where there is
    /// no limit. Each record and each session counts by itself.
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
        let [economy, light, standard, detailed] = by_preset;
        Some(match self {
            Preset::Economy => economy,
            Preset::Light => light,
            Preset::Standard => standard,
            Preset::Detailed => detailed,
        })
    }
}

/// The tokens of a text: its letters by [`LETTERS_PER_TOKEN`], rounded up.
pub fn tokens_of(text: &str) -> Tokens {
    let letters = text.chars().count();
    Tokens::try_from(letters.div_ceil(LETTERS_PER_TOKEN)).unwrap_or(Tokens::MAX)
}

#[cfg(test)]
mod tests {
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
