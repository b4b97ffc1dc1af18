//! What became of every entry. The totals balance, or somebody hears of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where an entry ended; exactly one of these.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoverageState {
    /// A record rests on it.
    Extracted,
    /// A model read it and found nothing worth keeping in it.
    Nothing,
    /// No model read it, for a reason that is kept.
    Skipped,
    /// Reading it failed, for a reason that is kept.
    Failed,
    /// Not read yet: a dry run, or work that was stopped.
    Pending,
}

impl CoverageState {
    /// Every state.
    pub const ALL: &'static [CoverageState] = &[
        CoverageState::Extracted,
        CoverageState::Nothing,
        CoverageState::Skipped,
        CoverageState::Failed,
        CoverageState::Pending,
    ];

    /// The name in a database column and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            CoverageState::Extracted => "extracted",
            CoverageState::Nothing => "nothing",
            CoverageState::Skipped => "skipped",
            CoverageState::Failed => "failed",
            CoverageState::Pending => "pending",
        }
    }
}

/// Entries by where they ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// See [`CoverageState::Extracted`].
    pub extracted: u64,
    /// See [`CoverageState::Nothing`].
    pub nothing: u64,
    /// See [`CoverageState::Skipped`].
    pub skipped: u64,
    /// See [`CoverageState::Failed`].
    pub failed: u64,
    /// See [`CoverageState::Pending`].
    pub pending: u64,
}

impl Coverage {
    /// Counts `entries` more that ended in `state`.
    pub fn add(&mut self, state: CoverageState, entries: u64) {
        *match state {
            CoverageState::Extracted => &mut self.extracted,
            CoverageState::Nothing => &mut self.nothing,
            CoverageState::Skipped => &mut self.skipped,
            CoverageState::Failed => &mut self.failed,
            CoverageState::Pending => &mut self.pending,
        } += entries;
    }

    /// How many ended in `state`.
    pub fn of(&self, state: CoverageState) -> u64 {
        match state {
            CoverageState::Extracted => self.extracted,
            CoverageState::Nothing => self.nothing,
            CoverageState::Skipped => self.skipped,
            CoverageState::Failed => self.failed,
            CoverageState::Pending => self.pending,
        }
    }

    /// Every entry that was counted.
    pub fn total(&self) -> u64 {
        self.extracted + self.nothing + self.skipped + self.failed + self.pending
    }
}
