//! How long a block and its parts may be. Tokens are a quarter of the characters, rounded up: the
//! estimate by which the presets of the memory directory were made.

use crate::domain::{Finding, Severity, Tokens};
use crate::memory_dir::{self, LETTERS_PER_TOKEN, Preset};
use std::ops::{Add, AddAssign};
use std::str::FromStr;

/// What stands beside the directory takes one of so many parts of the whole at most.
const BESIDE_SHARE: Tokens = 8;
/// The fewest tokens that a decision takes with its headings and its fence.
const DECISION_TOKENS_MIN: Tokens = 50;

/// What a part of a block is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// `active-context.md`.
    ActiveContext,
    /// `product-context.md`.
    ProductContext,
    /// `progress.md`.
    Progress,
    /// `patterns.md`.
    Patterns,
    /// A session.
    Session,
    /// A decision.
    Decision,
    /// The decisions that are not shown whole, by a line each.
    DecisionIndex,
    /// `glossary.md`.
    Glossary,
    /// The last turns of a dialog.
    Dialog,
    /// Known entities.
    Entities,
    /// The summary of the conversation.
    Summary,
    /// The card of the conversation.
    Card,
}

impl Kind {
    /// The kind of file that it is made of; none of what stands beside the directory.
    fn file(self) -> Option<memory_dir::Kind> {
        Some(match self {
            Kind::ActiveContext => memory_dir::Kind::ActiveContext,
            Kind::ProductContext => memory_dir::Kind::ProductContext,
            Kind::Progress => memory_dir::Kind::Progress,
            Kind::Patterns => memory_dir::Kind::Patterns,
            Kind::Session => memory_dir::Kind::Session,
            Kind::Decision | Kind::DecisionIndex => memory_dir::Kind::Decision,
            Kind::Glossary => memory_dir::Kind::Glossary,
            Kind::Dialog | Kind::Entities | Kind::Summary | Kind::Card => return None,
        })
    }
}

/// How long a block may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Budget {
    preset: Preset,
    tokens: Tokens,
    units_max: Option<usize>,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::of(Preset::Standard)
    }
}

impl Budget {
    /// The budget of a preset.
    pub fn of(preset: Preset) -> Budget {
        Budget { preset, tokens: preset.total(), units_max: None }
    }

    /// So many tokens; the parts are as long as those of the standard preset, in proportion.
    pub fn of_tokens(tokens: Tokens) -> Budget {
        Budget { preset: Preset::Standard, tokens, units_max: None }
    }

    /// Reads a preset's name or a number of tokens. `compact` is an older name of `economy`, and what is
    /// neither is `standard`; the finding, with the rule `budget-alias` or `unknown-budget`, says so.
    pub fn parse(text: &str) -> (Budget, Vec<Finding>) {
        let name = text.trim().to_ascii_lowercase();
        if let Some(preset) = Preset::of_name(&name) {
            return (Budget::of(preset), Vec::new());
        }
        if let Ok(tokens) = Tokens::from_str(&name)
            && tokens > 0
        {
            return (Budget::of_tokens(tokens), Vec::new());
        }
        let (preset, severity, rule, detail) = match name.as_str() {
            "compact" => (
                Preset::Economy,
                Severity::Info,
                "budget-alias",
                "`compact` is called `economy` now; write that",
            ),
            _ => (
                Preset::Standard,
                Severity::Warning,
                "unknown-budget",
                "unknown budget: expected economy, light, standard, detailed or a number of tokens; \
                 standard holds",
            ),
        };
        (Budget::of(preset), vec![Finding::new(severity, rule, 0, detail)])
    }

    /// The same, and at most so many UTF-16 units: what takes the block counts them and shows no more. Parts
    /// are shortened in proportion, so that later ones have their room.
    pub fn within_units(self, units: usize) -> Budget {
        let tokens = Tokens::try_from(units / LETTERS_PER_TOKEN).unwrap_or(Tokens::MAX);
        Budget { tokens: self.tokens.min(tokens), units_max: Some(units), ..self }
    }

    /// The longest block, in tokens.
    pub fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// How many decisions can be shown whole at most: the others need not be read.
    pub fn decisions_max(&self) -> usize {
        (self.tokens / DECISION_TOKENS_MIN) as usize
    }

    /// The longest part of a kind, in tokens: the upper ends of the preset's ranges. What stands beside the
    /// directory has none there; it takes an eighth of the whole at most, each.
    pub fn part_tokens(&self, kind: Kind) -> Tokens {
        let whole = self.preset.total();
        let range = kind.file().and_then(|file| self.preset.range(file));
        let most = range.map_or(whole / BESIDE_SHARE, |(_, most)| most);
        let share = u64::from(most) * u64::from(self.tokens) / u64::from(whole.max(1));
        Tokens::try_from(share).unwrap_or(Tokens::MAX)
    }

    /// The room of the whole block.
    pub(super) fn room(&self) -> Size {
        let room = Size::of_tokens(self.tokens);
        Size { units: self.units_max.unwrap_or(usize::MAX), ..room }
    }
}

/// How much room a text takes, or may take.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Size {
    /// Characters, by which tokens are estimated.
    pub(super) chars: usize,
    /// UTF-16 units, which clients count.
    pub(super) units: usize,
}

impl Size {
    pub(super) fn of(text: &str) -> Size {
        let sizes = text.chars().map(|letter| Size { chars: 1, units: letter.len_utf16() });
        sizes.fold(Size::default(), Size::add)
    }

    /// The most that `tokens` hold, in any number of units.
    pub(super) fn of_tokens(tokens: Tokens) -> Size {
        Size { chars: (tokens as usize).saturating_mul(LETTERS_PER_TOKEN), units: usize::MAX }
    }

    /// The tokens that it comes to.
    pub(super) fn tokens(self) -> Tokens {
        Tokens::try_from(self.chars.div_ceil(LETTERS_PER_TOKEN)).unwrap_or(Tokens::MAX)
    }

    /// What is left of it; none if `taken` is more.
    pub(super) fn less(self, taken: Size) -> Option<Size> {
        let chars = self.chars.checked_sub(taken.chars)?;
        Some(Size { chars, units: self.units.checked_sub(taken.units)? })
    }

    /// The smaller of both, each by itself.
    pub(super) fn min(self, other: Size) -> Size {
        Size { chars: self.chars.min(other.chars), units: self.units.min(other.units) }
    }
}

impl Add for Size {
    type Output = Size;

    fn add(self, other: Size) -> Size {
        Size {
            chars: self.chars.saturating_add(other.chars),
            units: self.units.saturating_add(other.units),
        }
    }
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Size) {
        *self = *self + other;
    }
}
