//! Runs prompt tests: cases with gold, each asked about as the worker would ask, and measured. Offline the
//! answers are those of the case's cassette: no store, no network, no clock. Live they come from the endpoint,
//! through the journal, so that nothing is paid for twice.

mod ask;
mod ask_once;
mod draft;
mod expected;
mod judge;
mod live;
mod offline;
mod prepare;
mod quotes;
mod record;
mod report;
mod unused;
mod update;

pub use draft::{Drafted, draft, gold_of};
pub use live::LiveModel;
pub use prepare::Recordings;
pub use record::Recording;
pub use unused::Unused;
pub use update::Updated;

use crate::config::Config;
use crate::edge::cases::CasePlace;
use crate::prompt::Prompts;
use crate::score::{Report, Shown, Tolerances};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A model and a prompt that all cases are asked with.
#[derive(Clone, Debug)]
pub struct Variation {
    /// How it is told from the others in a table.
    pub name: String,
    /// The model; none where each case names its own.
    pub model: Option<String>,
    /// The prompts.
    pub prompts: Arc<Prompts>,
}

/// Prompt tests to run.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Settings, which cases lay theirs over.
    pub config: Config,
    /// With which models and prompts; at least one.
    pub variations: Vec<Variation>,
    /// The cases, in order of their names.
    pub cases: Vec<CasePlace>,
    /// Which recordings answer offline.
    pub recordings: Recordings,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Everything that was measured.
    pub report: Report,
    /// The conversations, by variation and case, for a page that shows them.
    pub shown: Vec<Vec<Shown>>,
    /// How much worse than a baseline each case may be, by its name.
    pub tolerances: BTreeMap<String, Tolerances>,
    /// The recordings of a case that no request asks for, by its name; told offline only, of cases that have some.
    pub unused: BTreeMap<String, Unused>,
}

impl Tried {
    /// How much worse than a baseline the case of this name may be; nothing where it could not be read.
    pub fn tolerances_of(&self, case: &str) -> Tolerances {
        self.tolerances.get(case).copied().unwrap_or_default()
    }
}
