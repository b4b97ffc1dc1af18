//! What is to be shown, as plain data.

use crate::domain::{Memory, MemoryId, SessionId, Timestamp};
use crate::memory_dir::escape;
use crate::memory_dir::tag::SOURCE_DIGITS_MIN;
use crate::privacy::{Gate, Redacted};

/// Everything that the directory is to show.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The memories of one namespace, superseded and retracted ones too.
    pub memories: &'a [Memory],
    /// The sessions that have a file.
    pub sessions: &'a [SessionNote],
    /// What the glossary explains.
    pub terms: &'a [Term],
    /// The day that a file gets which changes.
    pub today: Timestamp,
    /// Words that are put side by side or cut pass it once more.
    pub gate: &'a Gate,
}

/// What a session came to.
#[derive(Clone, Debug)]
pub struct SessionNote {
    /// Whose.
    pub id: SessionId,
    /// When it began; its file is named for it.
    pub began: Timestamp,
    /// What it was about, for the name of its file.
    pub topic: Option<Redacted>,
    /// A few sentences.
    pub summary: Vec<Redacted>,
    /// What was kept of it: attempts, decisions and open discussions are listed.
    pub memories: Vec<MemoryId>,
    /// What the next session must know.
    pub next: Vec<Redacted>,
    /// Its memory card: the names of the fields, in small letters, with their items.
    pub card: Vec<(String, Vec<Redacted>)>,
    /// How long it was, in minutes.
    pub minutes: Option<u64>,
}

impl SessionNote {
    /// The first digits of its id.
    pub(super) fn digits(&self) -> String {
        self.id.to_string().chars().take(SOURCE_DIGITS_MIN).collect()
    }

    /// The tag below the heading of its file.
    pub(super) fn tag(&self) -> String {
        format!("session-{}", self.digits())
    }
}

/// A word and what it means here.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Term {
    /// The word.
    pub word: Redacted,
    /// What it means, or what it stands for.
    pub meaning: Redacted,
    /// Whether it is an abbreviation.
    pub is_abbreviation: bool,
}

/// Makes words fit for a line of a file.
pub(super) struct Words<'g> {
    pub(super) gate: &'g Gate,
}

impl Words<'_> {
    /// One line that has passed the gate, in at most so many letters.
    fn line(&self, text: &str, letters_max: usize) -> String {
        let whole = escape::one_line(text, usize::MAX);
        let passed = self.gate.redact(&whole);
        // A cut in the right place can make a number of what was none.
        let cut = escape::one_line(passed.as_str(), letters_max);
        escape::one_line(self.gate.redact(&cut).as_str(), usize::MAX)
    }

    /// The same, fit to stand at the beginning of a line.
    pub(super) fn plain(&self, text: &str, letters_max: usize) -> String {
        escape::plain(&self.line(text, letters_max))
    }

    /// The same, fit to stand within a line.
    pub(super) fn inline(&self, text: &str, letters_max: usize) -> String {
        escape::inline(&self.line(text, letters_max))
    }

    /// The same, fit to stand in a cell of a table.
    pub(super) fn cell(&self, text: &str, letters_max: usize) -> String {
        escape::cell(&self.line(text, letters_max))
    }
}
