//! Counts, and the rates that they come to.

use super::gold::Why;
use crate::domain::{ClaimKind, Coverage, CoverageState, named};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Rate {
    /// Those that count.
    pub hits: u64,
    /// All.
    pub of: u64,
}

impl Rate {
    /// From 0 to 1; none where there is nothing to take it of.
    pub fn value(self) -> Option<f64> {
        (self.of > 0).then(|| self.hits as f64 / self.of as f64)
    }

    pub(super) fn count(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.of += 1;
    }
}

impl AddAssign for Rate {
    fn add_assign(&mut self, other: Rate) {
        self.hits += other.hits;
        self.of += other.of;
    }
}

named! {
    /// What is measured, by the names that bars, tolerances and tables use.
    #[derive(JsonSchema)]
    Measure {
        /// Records that answer an item, of staged records.
        Precision = "precision",
        /// Items that are answered, of items.
        Recall = "recall",
        /// The harmonic mean of both.
        F1 = "f1",
        /// Core items that are answered, of core items.
        CoreRecall = "core_recall",
        /// Outcomes of attempts that are told right.
        Succeeded = "succeeded",
        /// Strings of staged records with evidence.
        Grounded = "grounded",
        /// Things not to be said that are not.
        Restraint = "restraint",
        /// Records in quarantine; the fewer the better.
        Quarantined = "quarantined",
        /// Slices whose first answer fitted the schema.
        Schema = "schema",
    }
}

/// What was to be found, and what was found.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Counts {
    /// Items of the gold.
    pub items: u64,
    /// Records that are staged.
    pub records: u64,
    /// Pairs of both.
    pub answered: u64,
}

impl Counts {
    /// Records that answer an item, of all records.
    pub fn precision(self) -> Rate {
        Rate { hits: self.answered, of: self.records }
    }

    /// Items that are answered, of all items.
    pub fn recall(self) -> Rate {
        Rate { hits: self.answered, of: self.items }
    }

    /// The harmonic mean of both.
    pub fn f1(self) -> Rate {
        Rate { hits: 2 * self.answered, of: self.items + self.records }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.items += other.items;
        self.records += other.records;
        self.answered += other.answered;
    }
}

/// Everything that is counted of one conversation, or of many together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Tally {
    /// Decisions.
    pub decisions: Counts,
    /// Discussions.
    pub discussions: Counts,
    /// Attempts.
    pub attempts: Counts,
    /// Requests.
    pub requests: Counts,
    /// Core items that are answered.
    pub core: Rate,
    /// Outcomes of attempts that are told right.
    pub succeeded: Rate,
    /// Strings of staged records that evidence is named for.
    pub grounded: Rate,
    /// Records in quarantine.
    pub quarantined: Rate,
    /// Things not to be said that are not.
    pub restraint: Rate,
    /// The same by why they are not to be said.
    #[serde(default)]
    pub restraints: Restraints,
}

/// Things not to be said that are not, by why they are not to be said.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Restraints {
    /// See [`Why::Invented`].
    pub invented: Rate,
    /// See [`Why::SmallTalk`].
    pub small_talk: Rate,
    /// See [`Why::Tracker`].
    pub tracker: Rate,
    /// See [`Why::Private`].
    pub private: Rate,
    /// See [`Why::Injected`].
    pub injected: Rate,
    /// See [`Why::Hypothetical`].
    pub hypothetical: Rate,
    /// See [`Why::Reversed`].
    pub reversed: Rate,
    /// See [`Why::Unfinished`].
    pub unfinished: Rate,
    /// See [`Why::Transient`].
    pub transient: Rate,
}

impl Restraints {
    /// The counts of one reason.
    pub fn of(&self, why: Why) -> Rate {
        match why {
            Why::Invented => self.invented,
            Why::SmallTalk => self.small_talk,
            Why::Tracker => self.tracker,
            Why::Private => self.private,
            Why::Injected => self.injected,
            Why::Hypothetical => self.hypothetical,
            Why::Reversed => self.reversed,
            Why::Unfinished => self.unfinished,
            Why::Transient => self.transient,
        }
    }

    pub(super) fn of_mut(&mut self, why: Why) -> &mut Rate {
        match why {
            Why::Invented => &mut self.invented,
            Why::SmallTalk => &mut self.small_talk,
            Why::Tracker => &mut self.tracker,
            Why::Private => &mut self.private,
            Why::Injected => &mut self.injected,
            Why::Hypothetical => &mut self.hypothetical,
            Why::Reversed => &mut self.reversed,
            Why::Unfinished => &mut self.unfinished,
            Why::Transient => &mut self.transient,
        }
    }
}

impl Tally {
    /// The counts of one kind.
    pub fn of(&self, kind: ClaimKind) -> Counts {
        match kind {
            ClaimKind::Decision => self.decisions,
            ClaimKind::Discussion => self.discussions,
            ClaimKind::Attempt => self.attempts,
            ClaimKind::Request => self.requests,
        }
    }

    /// The counts of all kinds together.
    pub fn all(&self) -> Counts {
        let mut all = Counts::default();
        ClaimKind::ALL.iter().for_each(|kind| all += self.of(*kind));
        all
    }

    pub(super) fn of_mut(&mut self, kind: ClaimKind) -> &mut Counts {
        match kind {
            ClaimKind::Decision => &mut self.decisions,
            ClaimKind::Discussion => &mut self.discussions,
            ClaimKind::Attempt => &mut self.attempts,
            ClaimKind::Request => &mut self.requests,
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        for kind in ClaimKind::ALL {
            *self.of_mut(*kind) += other.of(*kind);
        }
        self.core += other.core;
        self.succeeded += other.succeeded;
        self.grounded += other.grounded;
        self.quarantined += other.quarantined;
        self.restraint += other.restraint;
        for why in Why::ALL {
            *self.restraints.of_mut(*why) += other.restraints.of(*why);
        }
    }
}

/// What was asked, and how the answers were.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Asks {
    /// Slices that were asked about.
    pub slices: u64,
    /// Those of them whose first answer fitted the schema as it was.
    pub fitted: u64,
    /// Those that came to an extraction after they were asked about again.
    pub repaired: u64,
    /// Those that came to none.
    pub failed: u64,
    /// Requests, all together.
    pub requests: u64,
    /// Things that were put right in answers without asking again.
    pub repairs: u64,
    /// Tokens that were sent, by the endpoint's count, or by our estimate where it did not count.
    pub tokens_sent: u64,
    /// Those of them that came from the provider's cache.
    pub tokens_cached: u64,
    /// Tokens that were answered.
    pub tokens_answered: u64,
    /// What it would cost by the prices of the settings, in millionths of a dollar.
    pub cost_micros: u64,
}

impl AddAssign for Asks {
    fn add_assign(&mut self, other: Asks) {
        self.slices += other.slices;
        self.fitted += other.fitted;
        self.repaired += other.repaired;
        self.failed += other.failed;
        self.requests += other.requests;
        self.repairs += other.repairs;
        self.tokens_sent += other.tokens_sent;
        self.tokens_cached += other.tokens_cached;
        self.tokens_answered += other.tokens_answered;
        self.cost_micros += other.cost_micros;
    }
}

/// Everything that rates are taken of, of one case, or of many together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Sums {
    /// Records against gold.
    pub tally: Tally,
    /// What it took to have them.
    pub asks: Asks,
    /// Where the entries ended.
    pub coverage: Coverage,
}

impl Sums {
    /// The counts behind a measure.
    pub fn rate(&self, measure: Measure) -> Rate {
        let all = self.tally.all();
        match measure {
            Measure::Precision => all.precision(),
            Measure::Recall => all.recall(),
            Measure::F1 => all.f1(),
            Measure::CoreRecall => self.tally.core,
            Measure::Succeeded => self.tally.succeeded,
            Measure::Grounded => self.tally.grounded,
            Measure::Restraint => self.tally.restraint,
            Measure::Quarantined => self.tally.quarantined,
            Measure::Schema => Rate { hits: self.asks.fitted, of: self.asks.slices },
        }
    }
}

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Sums) {
        self.tally += other.tally;
        self.asks += other.asks;
        for state in CoverageState::ALL {
            self.coverage.add(*state, other.coverage.of(*state));
        }
    }
}
