//! Limits of a block and its parts. Tokens are estimated as a quarter of the characters, rounded up,
//! as for the presets of the memory directory.

use crate::domain::{Finding, Severity, Tokens};
use crate::memory_dir::{LETTERS_PER_TOKEN, Preset};
use std::ops::{Add, AddAssign};

/// Divisor of the budget that limits each part that does not come from the directory.
const CONVERSATION_SHARE: Tokens = 8;

/// Kind of a part.
#[derive(
    schemars::JsonSchema, Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, serde::Serialize,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PartKind")]
pub enum Kind {
    /// Rules that hold until further notice.
    Rules,
    /// `product-context.md`.
    Project,
    /// Current decisions and values.
    Decisions,
    /// Statements that contradict one another.
    Conflicts,
    /// Current work, and what people wrote beside it.
    Focus,
    /// Open requests.
    Requests,
    /// Open questions.
    Questions,
    /// Unsolved failures.
    Blockers,
    /// Failures that were solved.
    Lessons,
    /// Entries of other files that answer a query.
    Answers,
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
    /// Kinds that come from the directory, in the order of the block.
    pub(super) const DIRECTORY: [Kind; 11] = {
        use Kind::{Answers, Blockers, Conflicts, Decisions, Focus, Glossary};
        use Kind::{Lessons, Project, Questions, Requests, Rules};
        [
            Rules, Project, Decisions, Conflicts, Focus, Requests, Questions, Blockers, Lessons,
            Answers, Glossary,
        ]
    };

    /// The heading in the block, or the name of the fence of a part that does not come from the directory.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Rules => "Rules",
            Kind::Project => "Project",
            Kind::Decisions => "Decisions",
            Kind::Conflicts => "Contradictions",
            Kind::Focus => "Current focus",
            Kind::Requests => "Open requests",
            Kind::Questions => "Open questions",
            Kind::Blockers => "Blockers",
            Kind::Lessons => "Lessons",
            Kind::Answers => "About the query",
            Kind::Glossary => "Terms",
            Kind::Dialog => "dialog",
            Kind::Entities => "entities",
            Kind::Summary => "summary",
            Kind::Card => "card",
        }
    }

    /// Share of the directory's room that is reserved for the part, in percent; room that others leave is passed on in
    /// the order of the block.
    pub(super) fn share(self) -> usize {
        match self {
            Kind::Decisions => 25,
            Kind::Rules => 18,
            Kind::Requests | Kind::Answers => 12,
            Kind::Project => 8,
            Kind::Conflicts => 7,
            Kind::Blockers | Kind::Questions => 5,
            Kind::Focus | Kind::Lessons => 3,
            Kind::Glossary => 2,
            Kind::Dialog | Kind::Entities | Kind::Summary | Kind::Card => 0,
        }
    }
}

/// Maximum size of a block.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Budget {
    tokens: Tokens,
    units_max: Option<usize>,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::of(Preset::Standard)
    }
}

impl Budget {
    /// Texts that [`Budget::parse`] takes.
    pub(crate) const EXPECTED: &str =
        "economy, light, standard, detailed, or a number of tokens from 1 to 4294967295";

    /// Budget of a preset.
    pub fn of(preset: Preset) -> Budget {
        Budget::of_tokens(preset.total())
    }

    /// Budget of `tokens`.
    pub fn of_tokens(tokens: Tokens) -> Budget {
        Budget { tokens, units_max: None }
    }

    /// Parses a preset's name or a number of tokens. `compact` is an old name of `economy`; anything
    /// else is `standard`. A finding (`budget-alias`, `unknown-budget`) reports either.
    pub fn parse(text: &str) -> (Budget, Vec<Finding>) {
        let name = text.trim().to_ascii_lowercase();
        if let Some(preset) = Preset::of_name(&name) {
            return (Budget::of(preset), Vec::new());
        }
        if let Some(tokens) = name.parse().ok().filter(|tokens| *tokens > 0) {
            return (Budget::of_tokens(tokens), Vec::new());
        }
        if name == "compact" {
            let detail = "`compact` is now called `economy`: use that name";
            let finding = Finding::new(Severity::Info, "budget-alias", 0, detail);
            return (Budget::of(Preset::Economy), vec![finding]);
        }
        let detail = format!("unknown budget: expected {}; standard is used", Budget::EXPECTED);
        let finding = Finding::new(Severity::Warning, "unknown-budget", 0, detail);
        (Budget::default(), vec![finding])
    }

    /// Limits the block to `units` UTF-16 code units, which the receiving client counts. Parts are
    /// shortened in proportion.
    pub fn within_units(self, units: usize) -> Budget {
        let tokens = Tokens::try_from(units / LETTERS_PER_TOKEN).unwrap_or(Tokens::MAX);
        Budget { tokens: self.tokens.min(tokens), units_max: Some(units) }
    }

    /// Maximum length of the block.
    pub fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// Maximum length of a part that does not come from the directory.
    pub(super) fn conversation_tokens(&self) -> Tokens {
        self.tokens / CONVERSATION_SHARE
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
    /// Size of a text of `count` ASCII letters.
    pub(super) const fn ascii(count: usize) -> Size {
        Size { chars: count, units: count }
    }

    pub(super) fn of(text: &str) -> Size {
        let sizes = text.chars().map(|letter| Size { chars: 1, units: letter.len_utf16() });
        sizes.fold(Size::default(), Size::add)
    }

    /// Room for `tokens`, in any number of UTF-16 units.
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

    pub(super) fn percent(self, percent: usize) -> Size {
        Size { chars: self.chars / 100 * percent, units: self.units / 100 * percent }
    }

    /// Minimum in each dimension.
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
