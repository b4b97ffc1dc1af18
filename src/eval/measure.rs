//! Counts, and the rates derived from them.

use crate::domain::{ClaimKind, Coverage, named};
use crate::llm::Origins;
use crate::text::phrase::commas;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

macro_rules! sum_fields {
    ($type:ident: $($field:ident),*) => {
        impl AddAssign for $type {
            fn add_assign(&mut self, other: $type) {
                $(self.$field += other.$field;)*
            }
        }
    };
}

/// A number of hits out of a number of trials.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Rate {
    pub hits: u64,
    pub of: u64,
}

sum_fields!(Rate: hits, of);

impl Rate {
    /// Value from 0 to 1; `None` without trials.
    pub(crate) fn value(self) -> Option<f64> {
        (self.of > 0).then(|| self.hits as f64 / self.of as f64)
    }

    pub(crate) fn count(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.of += 1;
    }
}

named! {
    /// A measure, by the name that bars, tolerances and reports use.
    #[derive(JsonSchema)]
    pub(crate) Measure {
        /// Records that answer an item, of staged records.
        Precision = "precision",
        /// Items that are answered, of items.
        Recall = "recall",
        /// Harmonic mean of both.
        F1 = "f1",
        /// Core items that are answered, of core items.
        CoreRecall = "core_recall",
        /// Attempts with the right outcome, of attempts found.
        Succeeded = "succeeded",
        /// Strings of staged records with evidence.
        Grounded = "grounded",
        /// Forbidden statements that no record makes.
        Restraint = "restraint",
        /// Questions whose item is among the first five records that a search finds.
        Found = "found",
        /// Records in quarantine; fewer are better.
        Quarantined = "quarantined",
        /// Slices whose first answer fitted the schema.
        Schema = "schema",
    }
}

impl Measure {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Measure::CoreRecall => "core recall",
            Measure::Succeeded => "right outcomes",
            Measure::Found => "questions, recall@5",
            Measure::Schema => "fitted the schema",
            Measure::Precision
            | Measure::Recall
            | Measure::F1
            | Measure::Grounded
            | Measure::Restraint
            | Measure::Quarantined => self.name(),
        }
    }
}

/// Items and records.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Counts {
    pub items: u64,
    pub records: u64,
    /// Pairs of an item and the record that answers it.
    pub answered: u64,
}

sum_fields!(Counts: items, records, answered);

impl Counts {
    pub(crate) fn precision(self) -> Rate {
        Rate { hits: self.answered, of: self.records }
    }

    pub(crate) fn recall(self) -> Rate {
        Rate { hits: self.answered, of: self.items }
    }

    pub(crate) fn f1(self) -> Rate {
        Rate { hits: 2 * self.answered, of: self.items + self.records }
    }

    pub(crate) fn rates(self) -> [Rate; 3] {
        [self.precision(), self.recall(), self.f1()]
    }
}

/// Records against gold, of one case or of many.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Tally {
    pub decisions: Counts,
    pub discussions: Counts,
    pub attempts: Counts,
    pub requests: Counts,
    pub core: Rate,
    /// Attempts with the right outcome.
    pub succeeded: Rate,
    /// Strings of staged records with evidence.
    pub grounded: Rate,
    pub quarantined: Rate,
    /// Forbidden statements that no record makes.
    pub restraint: Rate,
    /// Questions whose item is among the first five records that a search finds.
    #[serde(default)]
    pub found: Rate,
}

sum_fields!(Tally: decisions, discussions, attempts, requests, core, succeeded, grounded, quarantined, restraint, found);

impl Tally {
    pub(crate) fn of(mut self, kind: ClaimKind) -> Counts {
        *self.of_mut(kind)
    }

    pub(crate) fn of_mut(&mut self, kind: ClaimKind) -> &mut Counts {
        match kind {
            ClaimKind::Decision => &mut self.decisions,
            ClaimKind::Discussion => &mut self.discussions,
            ClaimKind::Attempt => &mut self.attempts,
            ClaimKind::Request => &mut self.requests,
        }
    }

    pub(crate) fn all(&self) -> Counts {
        let mut all = Counts::default();
        ClaimKind::ALL.iter().for_each(|kind| all += self.of(*kind));
        all
    }
}

/// Requests, and what the answers were like.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Asks {
    pub slices: u64,
    /// Slices whose first answer fitted the schema.
    pub fitted: u64,
    /// Slices that were extracted after another request.
    pub repaired: u64,
    pub failed: u64,
    pub requests: u64,
    /// Repairs of answers without another request.
    pub repairs: u64,
    /// Tokens sent, as counted by the endpoint, or estimated.
    pub tokens_sent: u64,
    /// Tokens sent that came from the provider's cache.
    pub tokens_cached: u64,
    pub tokens_answered: u64,
    /// Cost by the prices of the settings, in millionths of a dollar.
    pub cost_micros: u64,
}

sum_fields!(Asks: slices, fitted, repaired, failed, requests, repairs, tokens_sent, tokens_cached, tokens_answered, cost_micros);

sum_fields!(Origins: recorded, hand_written, imported);

impl Origins {
    pub(crate) fn total(&self) -> u64 {
        self.recorded + self.hand_written + self.imported
    }

    /// "3 hand-written, 1 recorded".
    pub(crate) fn text(&self) -> String {
        let all = [
            (self.hand_written, "hand-written"),
            (self.recorded, "recorded"),
            (self.imported, "imported"),
        ];
        let some = all.iter().filter(|(number, _)| *number > 0);
        commas(some.map(|(number, name)| format!("{number} {name}")))
    }
}

/// Everything that rates are computed from, of one case or of many.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Sums {
    pub tally: Tally,
    pub asks: Asks,
    /// Final states of the entries.
    pub coverage: Coverage,
}

impl Sums {
    pub(crate) fn rate(&self, measure: Measure) -> Rate {
        let all = self.tally.all();
        match measure {
            Measure::Precision => all.precision(),
            Measure::Recall => all.recall(),
            Measure::F1 => all.f1(),
            Measure::CoreRecall => self.tally.core,
            Measure::Succeeded => self.tally.succeeded,
            Measure::Grounded => self.tally.grounded,
            Measure::Restraint => self.tally.restraint,
            Measure::Found => self.tally.found,
            Measure::Quarantined => self.tally.quarantined,
            Measure::Schema => Rate { hits: self.asks.fitted, of: self.asks.slices },
        }
    }
}

sum_fields!(Sums: tally, asks, coverage);
