//! A kept fact and its lifecycle: made from records by consolidation, shown in the memory directory.

use super::entry::named;
use super::{Claim, ClaimKind, Digest, MemoryId, RecordId, Speaker, Timestamp};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cmp::Ordering;

named! {
    /// Stage of a fact. Every kind of claim has the same stages: a request is proposed, attempted,
    /// done; a discussion is proposed while it is open and decided when it is settled.
    #[derive(schemars::JsonSchema)]
    pub Stage {
        /// Wished for, or raised and still open.
        Proposed = "proposed",
        /// Tried, and not settled by that.
        Attempted = "attempted",
        /// Settled: chosen, done, or proven to work.
        Decided = "decided",
        /// Tried or chosen, and found not to hold.
        Refuted = "refuted",
    }
}

impl Stage {
    /// Returns true if `next` may follow this stage. Stages only advance: a refuted fact that holds
    /// after all becomes a new fact that supersedes the old one, so that both remain readable.
    pub fn may_become(self, next: Stage) -> bool {
        // The stages are declared in the order in which facts advance.
        self < next
    }

    /// Word for the stage of `claim` after `rule`, for people: a request that a deed ended is done, an attempted attempt
    /// failed.
    pub(crate) fn in_words(self, claim: &Claim, rule: Option<&str>) -> &'static str {
        let is_failure = matches!(claim, Claim::Attempt(it) if !it.succeeded);
        match (claim.kind(), self) {
            (_, Stage::Decided | Stage::Refuted) if is_failure => "solved",
            (_, Stage::Refuted) => "refuted",
            (ClaimKind::Decision, Stage::Proposed) => "proposed",
            (ClaimKind::Decision, _) => "holds",
            (ClaimKind::Request | ClaimKind::Discussion, Stage::Proposed) => "open",
            (ClaimKind::Request, Stage::Attempted) => "in progress",
            (ClaimKind::Request, Stage::Decided) if is_granted(rule) => "decided",
            (ClaimKind::Request, Stage::Decided) => "done",
            (ClaimKind::Discussion, Stage::Decided) => "settled",
            (ClaimKind::Discussion, Stage::Attempted) => "open",
            (ClaimKind::Attempt, Stage::Decided) => "worked",
            (ClaimKind::Attempt, Stage::Proposed | Stage::Attempted) => "unsolved",
        }
    }
}

named! {
    /// Lifecycle state of a memory.
    #[derive(schemars::JsonSchema)]
    pub MemoryState {
        /// Believed now.
        Active = "active",
        /// Another memory took its place; kept with the reason.
        Superseded = "superseded",
        /// Taken back without anything in its place; kept with the reason.
        Retracted = "retracted",
    }
}

impl MemoryState {
    /// Word for the state after `rule`, for people; `None` while it is active, where the stage says more.
    pub(crate) fn in_words(self, rule: Option<&str>) -> Option<&'static str> {
        match self {
            MemoryState::Active => None,
            MemoryState::Superseded | MemoryState::Retracted => {
                let of_wish = [WISH_WITHDRAWN, WISH_REFUSED];
                of_wish.into_iter().find(|it| *it == by_rule(rule)).or(Some(self.name()))
            }
        }
    }
}

/// Rules by which a decision ends a request: a person takes it back, somebody else refuses it, it is granted, it was a
/// rule that holds now.
pub(crate) const WISH_WITHDRAWN: &str = "withdrawn";
pub(crate) const WISH_REFUSED: &str = "refused";
pub(crate) const WISH_GRANTED: &str = "granted";
pub(crate) const LAID_DOWN: &str = "laid-down";

/// Prefix of the rules by which a model decided.
pub(crate) const JUDGED: &str = "judged-";

/// True if a rule ends a request because a decision grants it.
fn is_granted(rule: Option<&str>) -> bool {
    matches!(by_rule(rule), WISH_GRANTED | LAID_DOWN)
}

fn by_rule(rule: Option<&str>) -> &str {
    rule.map_or("", |rule| rule.strip_prefix(JUDGED).unwrap_or(rule))
}

/// Rule recorded when a person edits or moves an entry.
pub(crate) const PERSON_EDITED: &str = "person-edited";

/// A person's decision on a memory, in the directory or by a command.
#[derive(schemars::JsonSchema, Clone, Debug, Eq, Hash, PartialEq, Deserialize, Serialize)]
pub struct PersonDecision {
    /// The rule, such as `person-closed`; no words.
    pub rule: Cow<'static, str>,
    /// The time of the decision.
    pub at: Timestamp,
}

/// A kept fact. Nothing of it comes from a model but the claim, which was proven first.
#[derive(schemars::JsonSchema, Clone, Debug, Hash, PartialEq, Deserialize, Serialize)]
pub struct Memory {
    /// Digest of the namespace and of the first record that it rests on.
    pub id: MemoryId,
    /// Namespace.
    pub namespace: String,
    /// The claim.
    pub claim: Claim,
    /// Stage.
    pub stage: Stage,
    /// Lifecycle state.
    pub state: MemoryState,
    /// The most trusted speaker among the evidence of its records.
    pub said_by: Speaker,
    /// True if a person wrote it in the directory, or decided on it.
    pub confirmed: bool,
    /// The person's words in the directory that replaced the claim, without private blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<String>,
    /// A person's last decision on it: final against everything that was said before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<PersonDecision>,
    /// Start of validity: the time of its first evidence.
    pub valid_from: Option<Timestamp>,
    /// Time at which a speaker who is trusted as much as any other last said it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_said: Option<Timestamp>,
    /// End of validity; none while it holds.
    pub valid_until: Option<Timestamp>,
    /// End of the last day on which it matters, if a model found one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Timestamp>,
    /// Its successor.
    pub superseded_by: Option<MemoryId>,
    /// The memory that completed, settled or solved it, while that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_by: Option<MemoryId>,
    /// The rule by which that was so; no words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_as: Option<Cow<'static, str>>,
    /// The rule that took it out of use; no words.
    pub reason: Option<String>,
    /// The records that it rests on, the earliest first; none where a person wrote it.
    pub sources: Vec<RecordId>,
}

/// Returns the text to show: the first line of a person's edit without its marks, or else the claim's headline.
pub(crate) fn shown_words<'a>(edited: Option<&'a str>, claim: &'a Claim) -> &'a str {
    let marks = ["- ", "* ", "# ", "#", "[ ] ", "[x] "];
    let mut words = edited.and_then(|it| it.lines().find(|line| !line.trim().is_empty()));
    while let Some(rest) = words.and_then(|it| marks.iter().find_map(|mark| it.strip_prefix(mark)))
    {
        words = Some(rest.trim_start());
    }
    let bare = |line: &'a str| match claim {
        Claim::Decision(_) => without_label(line),
        Claim::Request(_) | Claim::Discussion(_) | Claim::Attempt(_) => line,
    };
    words.map_or(claim.headline(), |line| without_marks(bare(line)))
}

/// The text behind the label of its decision record, such as `ADR-003: `.
pub(crate) fn without_label(line: &str) -> &str {
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    let behind = line.split_once(": ");
    let behind = behind.filter(|(label, _)| label.strip_prefix("ADR-").is_some_and(is_number));
    behind.map_or(line, |(_, text)| text)
}

/// Text of a line before its date and the marks that name other memories.
fn without_marks(line: &str) -> &str {
    let line = line.trim_end();
    let behind = line.strip_suffix(')').and_then(|it| it.rsplit_once(" ("));
    let is_mark = |behind: &str| {
        let first = behind.split(';').next().unwrap_or_default();
        let is_day = first.len() == 10 && first.bytes().all(|it| it.is_ascii_digit() || it == b'-');
        is_day || behind.split([' ', ';', ',']).any(|it| it.starts_with("src-"))
    };
    behind.filter(|(_, behind)| is_mark(behind)).map_or(line, |(text, _)| text)
}

impl Memory {
    /// Returns the id of the memory that starts with `record` in `namespace`.
    pub fn id_of(namespace: &str, record: RecordId) -> MemoryId {
        MemoryId(Digest::of(&["memory", namespace, &record.to_string()]))
    }

    /// Reactivates the memory and clears its successor.
    pub fn reinstate(&mut self) {
        self.state = MemoryState::Active;
        self.valid_until = None;
        self.superseded_by = None;
        self.reason = None;
    }

    /// Notes that `by` says it at `at`. A less trusted speaker than before does not count as saying it again.
    pub(crate) fn say_again(&mut self, by: Speaker, at: Option<Timestamp>) {
        let last = match by.cmp(&self.said_by) {
            Ordering::Less => at,
            Ordering::Equal => self.last_said().max(at),
            Ordering::Greater => self.last_said(),
        };
        self.valid_from = self.valid_from.into_iter().chain(at).min();
        self.last_said = last.filter(|last| Some(*last) > self.valid_from);
        self.said_by = self.said_by.min(by);
    }

    /// Time at which it was last said, by a speaker who is trusted as much as any other.
    pub(crate) fn last_said(&self) -> Option<Timestamp> {
        self.last_said.or(self.valid_from)
    }

    /// True if it was said again after `at`.
    pub(crate) fn is_said_after(&self, at: Option<Timestamp>) -> bool {
        self.last_said.is_some_and(|last| at.is_some_and(|at| at < last))
    }

    /// Returns true if the memory is neither settled nor refuted.
    pub fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Proposed | Stage::Attempted)
    }

    /// True for a request of which nothing remains to be done.
    pub(crate) fn is_fulfilled(&self) -> bool {
        self.claim.kind() == ClaimKind::Request && self.stage == Stage::Decided
    }

    /// Text to show: a person's wording, or else the claim.
    pub(crate) fn words(&self) -> &str {
        shown_words(self.edited.as_deref(), &self.claim)
    }

    /// The claim as it was worded at `at`, or is now: a person's wording has no other fields.
    pub(crate) fn claim_at(&self, at: Option<Timestamp>) -> Cow<'_, Claim> {
        match &self.edited {
            Some(_) if !self.is_decided_after(at) => Cow::Owned(self.claim.in_words(self.words())),
            Some(_) | None => Cow::Borrowed(&self.claim),
        }
    }

    /// The claim in a person's wording, if they edited it.
    pub(crate) fn current_claim(&self) -> Cow<'_, Claim> {
        self.claim_at(Some(Timestamp(i64::MAX)))
    }

    /// True for a question whose answer took its place: it is settled, not superseded.
    pub(crate) fn is_answered(&self) -> bool {
        let is_question = self.claim.kind() == ClaimKind::Discussion;
        is_question && self.superseded_by.is_some() && self.superseded_by == self.settler()
    }

    /// The memory that took its place; `None` for a question that was answered.
    pub(crate) fn replaced_by(&self) -> Option<MemoryId> {
        self.superseded_by.filter(|_| !self.is_answered())
    }

    /// State in a word or two, for people.
    pub(crate) fn standing(&self) -> &'static str {
        if self.is_answered() {
            return self.stage_in_words();
        }
        self.state.in_words(self.reason.as_deref()).unwrap_or(self.stage_in_words())
    }

    /// Stage in a word or two, for people.
    pub(crate) fn stage_in_words(&self) -> &'static str {
        self.stage.in_words(&self.claim, self.settled_as.as_deref())
    }

    /// Words before the memory that completed, settled or solved it.
    pub(crate) fn settled_in_words(&self) -> &'static str {
        match self.claim.kind() {
            ClaimKind::Request if self.stage_in_words() == "done" => "completed by",
            ClaimKind::Request => "decided by",
            ClaimKind::Attempt => "solved by",
            ClaimKind::Decision | ClaimKind::Discussion => "settled by",
        }
    }

    /// True for a request that a decision granted; to say it again asks for nothing new.
    pub(crate) fn is_granted(&self) -> bool {
        !self.is_open() && is_granted(self.settled_as.as_deref())
    }

    /// Returns the memory that completed, settled or solved it; `None` while it is open.
    pub fn settler(&self) -> Option<MemoryId> {
        self.settled_by.filter(|_| !self.is_open())
    }

    /// Returns the stage after a person closes (`done`) or reopens it; `None` for claims that are never open.
    pub fn stage_once(&self, done: bool) -> Option<Stage> {
        match &self.claim {
            Claim::Decision(_) => None,
            Claim::Attempt(it) if it.succeeded => None,
            Claim::Request(_) | Claim::Discussion(_) | Claim::Attempt(_) if done => {
                Some(Stage::Decided)
            }
            // A request that no attempt completed was not begun.
            Claim::Request(_) if self.settled_by.is_none_or(|by| by == self.id) => {
                Some(Stage::Proposed)
            }
            Claim::Request(_) | Claim::Attempt(_) => Some(Stage::Attempted),
            Claim::Discussion(_) => Some(Stage::Proposed),
        }
    }

    /// Returns true if a person decided at or after `at`; what was said until then is void.
    pub fn is_decided_after(&self, at: Option<Timestamp>) -> bool {
        self.decided.as_ref().is_some_and(|it| at.is_none_or(|at| at <= it.at))
    }

    /// Returns true if all of its records were withdrawn. It can still be looked up, and a record
    /// that comes back reactivates it.
    pub fn is_hollow(&self) -> bool {
        self.state == MemoryState::Retracted && self.sources.is_empty() && !self.confirmed
    }
}
