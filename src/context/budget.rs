//! Limits of a block and its parts. Tokens are a quarter of the characters, rounded up: the
//! estimate by which the presets of the memory directory were made.

use crate::domain::{Finding, Severity, Tokens};
use crate::memory_dir::{self, LETTERS_PER_TOKEN, Preset};
use std::ops::{Add, AddAssign};
use std::str::FromStr;

/// Each part that does not come from the directory takes at most one of so many parts of the whole.
const CONVERSATION_SHARE: Tokens = 8;
/// Minimum size of a decision with its headings and its fence.
const DECISION_TOKENS_MIN: Tokens = 50;

/// Kind of a part.
#[derive(schemars::JsonSchema, Clone, Copy, Debug, Eq, Hash, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PartKind")]
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
    /// Decisions that are not shown whole, a line each.
    DecisionIndex,
    /// `glossary.md`.
    Glossary,
    /// Recent turns.
    Dialog,
    /// Known entities.
    Entities,
    /// Summary of the conversation.
    Summary,
    /// Card of the conversation.
    Card,
}

impl Kind {
    /// Kind of the file it is made of; `None` if it does not come from the directory.
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

/// Maximum size of a block.
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
    /// Budget of a preset.
    pub fn of(preset: Preset) -> Budget {
        Budget { preset, tokens: preset.total(), units_max: None }
    }

    /// Budget of so many tokens; parts are in proportion to those of the standard preset.
    pub fn of_tokens(tokens: Tokens) -> Budget {
        Budget { preset: Preset::Standard, tokens, units_max: None }
    }

    /// Parses a preset's name or a number of tokens. `compact` is an old name of `economy`;
    /// anything else is `standard`. The finding (`budget-alias`, `unknown-budget`) says so.
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

    /// Limits the block to so many UTF-16 units, which the receiving client counts. Parts are
    /// shortened in proportion.
    pub fn within_units(self, units: usize) -> Budget {
        let tokens = Tokens::try_from(units / LETTERS_PER_TOKEN).unwrap_or(Tokens::MAX);
        Budget { tokens: self.tokens.min(tokens), units_max: Some(units), ..self }
    }

    /// Maximum length of the block.
    pub fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// Maximum number of decisions that can be shown whole; the others need not be read.
    pub fn decisions_max(&self) -> usize {
        (self.tokens / DECISION_TOKENS_MIN) as usize
    }

    /// Maximum length of a part: the upper end of the preset's range, or an eighth of the whole for
    /// a part that does not come from the directory.
    pub fn part_tokens(&self, kind: Kind) -> Tokens {
        let whole = self.preset.total();
        let range = kind.file().and_then(|file| self.preset.range(file));
        let most = range.map_or(whole / CONVERSATION_SHARE, |(_, most)| most);
        let share = u64::from(most) * u64::from(self.tokens) / u64::from(whole.max(1));
        Tokens::try_from(share).unwrap_or(Tokens::MAX)
    }

    /// Room of the whole block.
    pub(super) fn room(&self) -> Size {
        let room = Size::of_tokens(self.tokens);
        Size { units: self.units_max.unwrap_or(usize::MAX), ..room }
    }
}

/// Size of a text, or room for one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Size {
    /// Characters, from which tokens are estimated.
    pub(super) chars: usize,
    /// UTF-16 units, which clients count.
    pub(super) units: usize,
}

impl Size {
    pub(super) fn of(text: &str) -> Size {
        let sizes = text.chars().map(|letter| Size { chars: 1, units: letter.len_utf16() });
        sizes.fold(Size::default(), Size::add)
    }

    /// Characters of `tokens`, in any number of units.
    pub(super) fn of_tokens(tokens: Tokens) -> Size {
        Size { chars: (tokens as usize).saturating_mul(LETTERS_PER_TOKEN), units: usize::MAX }
    }

    /// Estimated tokens.
    pub(super) fn tokens(self) -> Tokens {
        Tokens::try_from(self.chars.div_ceil(LETTERS_PER_TOKEN)).unwrap_or(Tokens::MAX)
    }

    /// Difference; `None` if `taken` is larger.
    pub(super) fn less(self, taken: Size) -> Option<Size> {
        let chars = self.chars.checked_sub(taken.chars)?;
        Some(Size { chars, units: self.units.checked_sub(taken.units)? })
    }

    /// Smaller of both, in each dimension.
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
