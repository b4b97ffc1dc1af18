//! Content of a directory as plain data, and the section of a list in which people look for a memory.

use super::tag::SOURCE_DIGITS_MIN;
use crate::domain::{
    Claim, ClaimKind, Decision, Memory, MemoryId, MemoryState, SessionId, Speaker, Stage,
    Timestamp, named,
};
use crate::privacy::{Gate, Redacted};
use crate::text::ends::decision_end;
use crate::text::wording;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::collections::BTreeMap;

/// Everything that the directory shows.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Memories of one namespace, including superseded and retracted ones.
    pub memories: &'a [Memory],
    /// Sessions that have a file.
    pub sessions: &'a [SessionNote],
    /// Memories that contradict one another, or may.
    pub contradictions: &'a [Contradiction],
    /// Memories that name something missing in the code, and the text that says so.
    pub missing: &'a [(MemoryId, String)],
    /// State of the last run besides its files.
    pub last: &'a LastRun,
    /// Date for files that change.
    pub today: Timestamp,
    /// Redacts joined or truncated text once more.
    pub gate: &'a Gate,
}

/// Facts about the last run that its files do not show.
#[derive(Clone, Debug, Default)]
pub struct LastRun {
    /// Numbers of the records that a run removed, by tag: they are kept for their decisions.
    pub removed: BTreeMap<String, u32>,
    /// Hashes of what files in the base, by path, were rendered from.
    pub inputs: BTreeMap<String, u64>,
    /// Identity of this program; another one may render differently.
    pub program: String,
}

/// Text between an entry and the tag of the entry that it contradicts.
pub(crate) const CONFLICTS_WITH: &str = "conflicts with";

/// Two memories that contradict one another, or may.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Contradiction {
    pub one: MemoryId,
    pub other: MemoryId,
    /// False while the pair is open.
    pub is_certain: bool,
    /// True if the later one changes a part of the other.
    pub is_partly: bool,
}

impl Contradiction {
    /// Words of a mark on `memory` for the other one of the pair.
    pub(crate) fn words(self, memory: &Memory, by: &Memory) -> Option<&'static str> {
        if self.is_certain { Some(CONFLICTS_WITH) } else { suspicion(memory, by, self.is_partly) }
    }
}

/// Text between an entry and the tag of the entry that changes a part of it.
pub(crate) const IN_PART_REPLACED_BY: &str = "in part replaced by";

/// Text before the last day on which a decision holds, once that is past.
pub(crate) const PAST: &str = "past: until";

/// Text between an entry and the names that the code no longer has.
pub(crate) const NOT_FOUND: &str = "not found in the code since";
/// Mark of a decision that nobody took yet.
pub(super) const PROPOSED: &str = "proposed";
/// Mark of what was decided, and of which nothing else was done.
pub(super) const DECIDED: &str = "decided";

/// Mark of a decision that ended before `today`, as a model found or else by its own words.
pub(crate) fn past_end(memory: &Memory, today: Timestamp) -> Option<String> {
    // A person's edit is of another day than the claim: an end that only it names may be meant otherwise.
    let end_of = |claim: &Claim| decision_end(claim, memory.valid_from);
    let named =
        || end_of(&memory.claim).filter(|end| end_of(&memory.current_claim()) == Some(*end));
    // What a person stands by ends only by its own words.
    let told = memory.ends.filter(|_| !memory.confirmed).map(|it| it.date_in(&TimeZone::UTC));
    let past = told.or_else(named).filter(|end| *end < today.date_in(&TimeZone::UTC));
    past.map(|end| format!("{PAST} {end}"))
}

/// True if `text` is a mark of [`past_end`], and no person's note such as `past: on hold`.
pub(super) fn is_past_mark(text: &str) -> bool {
    let is_day = |day: &str| day.trim_start().parse::<Date>().is_ok();
    text.strip_prefix(PAST).is_some_and(is_day)
}

/// Text between a discussion and the tag of the entry that settled it.
pub(super) const SETTLED_BY: &str = "settled by";
/// Maximum number of memories that a mark names.
const NAMED_MAX: usize = 3;

/// Marks with these words and the tags of other memories, one for the same words: `possibly done by src-1, src-2, src-3
/// and 2 more`.
pub(crate) fn marks(related: impl Iterator<Item = (&'static str, String)>) -> Vec<String> {
    let mut by_words: Vec<(&str, Vec<String>)> = Vec::new();
    for (words, name) in related {
        match by_words.iter_mut().find(|(known, _)| *known == words) {
            Some((_, names)) => names.push(name),
            None => by_words.push((words, vec![name])),
        }
    }
    let mark = |(words, mut names): (&str, Vec<String>)| {
        names.dedup();
        let more = names.len().saturating_sub(NAMED_MAX);
        names.truncate(NAMED_MAX);
        names.extend((more > 0).then(|| format!("{more} more")));
        let last = names.pop().unwrap_or_default();
        let and = if names.is_empty() { "" } else { " and " };
        format!("{words} {}{and}{last}", names.join(", "))
    };
    by_words.into_iter().map(mark).collect()
}

/// Words of a mark for what took the place of `memory` or settled it. A failure has a lesson instead.
pub(super) fn ending(memory: &Memory, by: &Memory) -> Option<&'static str> {
    let is_failure = memory.claim.succeeded() == Some(false);
    let is_question = |it: &Memory| it.claim.kind() == ClaimKind::Discussion;
    match is_question(memory) && !is_question(by) {
        true => Some(SETTLED_BY),
        false if is_failure || memory.state != MemoryState::Superseded => None,
        false => Some("superseded by"),
    }
}

/// Words of a mark for what `by` may have done to `memory`, while the pair is open.
pub(crate) fn suspicion(memory: &Memory, by: &Memory, is_partly: bool) -> Option<&'static str> {
    let is_later = (memory.last_said(), memory.id) < (by.last_said(), by.id);
    let asks = matches!(memory.claim, Claim::Request(_) | Claim::Discussion(_));
    match (&memory.claim, &by.claim) {
        (one, other) if asks && !memory.is_open() && one.kind() != other.kind() => None,
        (Claim::Request(_), Claim::Attempt(it)) if it.succeeded => Some("possibly done by"),
        (Claim::Request(_), Claim::Attempt(_)) => Some("possibly tried by"),
        (Claim::Request(_), Claim::Decision(_)) => Some("possibly withdrawn by"),
        (Claim::Discussion(_), Claim::Decision(_)) => Some("possibly settled by"),
        (Claim::Attempt(failed), Claim::Attempt(it))
            if is_later && !failed.succeeded && it.succeeded =>
        {
            Some("possibly solved by")
        }
        (one, other) if one.kind() != other.kind() => None,
        _ if is_partly && is_later => Some(IN_PART_REPLACED_BY),
        _ if is_partly => Some("replaces a part of"),
        _ if is_later => Some("possibly outdated by"),
        _ => Some("possibly in place of"),
    }
}

/// Result of a session.
#[derive(Clone, Debug)]
pub struct SessionNote {
    /// The session.
    pub id: SessionId,
    /// Start of the session; names its file.
    pub began: Timestamp,
    /// Time of its last entry.
    pub ended: Option<Timestamp>,
    /// Topic, for the file name.
    pub topic: Option<Redacted>,
    /// Memories of the session; attempts, decisions, open requests and open discussions are listed.
    pub memories: Vec<MemoryId>,
}

impl SessionNote {
    pub(super) fn digits(&self) -> String {
        self.id.to_string().chars().take(SOURCE_DIGITS_MIN).collect()
    }

    pub(super) fn tag(&self) -> String {
        format!("session-{}", self.digits())
    }
}

named! {
    /// Section of a list of memories.
    pub(crate) Section {
        /// A standing rule of a person.
        Rule = "rule",
        /// A decision that holds.
        Decision = "decision",
        /// A request that is open.
        Request = "request",
        /// A question that is open.
        Question = "question",
        /// A failure that nothing solved yet.
        Failure = "failure",
        /// A failure that was solved or superseded.
        Lesson = "lesson",
        /// A successful attempt, a fulfilled request or a settled question.
        Done = "done",
        /// A memory that no longer applies.
        Past = "past",
    }
}

/// The section of `memory`.
pub(crate) fn section(memory: &Memory) -> Section {
    let is_active = memory.state == MemoryState::Active;
    let is_past = !is_active || memory.stage == Stage::Refuted;
    let is_open = memory.is_open();
    match &memory.claim {
        Claim::Attempt(it) if !it.succeeded && is_active && is_open => Section::Failure,
        Claim::Attempt(it) if !it.succeeded && memory.state != MemoryState::Retracted => {
            Section::Lesson
        }
        _ if is_past => Section::Past,
        Claim::Decision(it) if is_standing_rule(memory, it) => Section::Rule,
        Claim::Decision(_) => Section::Decision,
        Claim::Request(it) if is_open && wording::is_constraint(&it.summary) => Section::Rule,
        Claim::Request(_) if is_open => Section::Request,
        Claim::Discussion(_) if is_open => Section::Question,
        Claim::Request(_) | Claim::Discussion(_) | Claim::Attempt(_) => Section::Done,
    }
}

/// State in a word or two, for people: a standing rule is nothing to do, so it is never open.
pub(crate) fn standing(memory: &Memory) -> &'static str {
    if section(memory) == Section::Rule { "holds" } else { memory.standing() }
}

/// True for a person's decision that holds until further notice.
pub(super) fn is_standing_rule(memory: &Memory, decision: &Decision) -> bool {
    let is_persons = memory.confirmed || memory.said_by == Speaker::Person;
    is_persons && wording::is_rule(&decision.chosen, &decision.rationale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Attempt, Digest, PersonRequest};

    fn memory(claim: Claim, stage: Stage) -> Memory {
        Memory {
            id: MemoryId(Digest::of(&["x"])),
            namespace: "roofs".to_owned(),
            claim,
            stage,
            state: MemoryState::Active,
            said_by: Speaker::Person,
            confirmed: false,
            edited: None,
            decided: None,
            valid_from: None,
            last_said: None,
            valid_until: None,
            superseded_by: None,
            settled_by: None,
            settled_as: None,
            ends: None,
            reason: None,
            sources: Vec::new(),
        }
    }

    #[test]
    fn a_mark_names_three_memories_and_counts_the_others() {
        let related = |count: usize| (0..count).map(|n| ("replaced by", format!("src-{n}")));
        assert_eq!(marks(related(1)), ["replaced by src-0"]);
        assert_eq!(marks(related(2)), ["replaced by src-0 and src-1"]);
        let twice = related(3).flat_map(|it| [it.clone(), it]);
        assert_eq!(marks(twice), ["replaced by src-0, src-1 and src-2"]);
        let other = [("conflicts with", "src-9".to_owned())];
        let expected = ["replaced by src-0, src-1, src-2 and 2 more", "conflicts with src-9"];
        assert_eq!(marks(related(5).chain(other)), expected);
    }

    #[test]
    fn of_two_that_may_contradict_the_one_that_was_said_last_is_the_later_one() {
        let port = |from, last: Option<i64>| {
            let decision = Decision { chosen: "port 8080".to_owned(), ..Decision::default() };
            let mut memory = memory(Claim::Decision(decision), Stage::Decided);
            (memory.valid_from, memory.last_said) = (Some(Timestamp(from)), last.map(Timestamp));
            memory
        };
        let (again, between) = (port(2, Some(12)), port(6, None));
        assert_eq!(suspicion(&between, &again, false), Some("possibly outdated by"));
        assert_eq!(suspicion(&again, &between, false), Some("possibly in place of"));
    }

    #[test]
    fn what_ended_by_words_or_by_a_models_finding_is_past() {
        let day = |text: &str| Timestamp::parse(text).unwrap();
        let past = |words: &str, told: Option<&str>| {
            let decision = Decision { options: vec![], chosen: words.into(), rationale: "".into() };
            let mut memory = memory(Claim::Decision(decision), Stage::Decided);
            memory.valid_from = Some(day("2026-09-01"));
            memory.ends = told.map(day);
            past_end(&memory, day("2026-10-05"))
        };
        let (logs, visit) = ("debug logs until 4 October", "the surveyor sees the hull on the 4th");
        assert_eq!(past(logs, None).as_deref(), Some("past: until 2026-10-04"));
        assert_eq!(past(logs, Some("2026-10-05")), None);
        assert_eq!(past(visit, None), None);
        assert_eq!(past(visit, Some("2026-10-04")).as_deref(), Some("past: until 2026-10-04"));
    }

    #[test]
    fn a_persons_note_is_no_mark_of_a_past_end() {
        assert!(is_past_mark("past: until 2026-10-04"));
        assert!(!is_past_mark("past: until recently") && !is_past_mark("past: until 2 hosts"));
    }

    #[test]
    fn a_memory_stands_where_people_look_for_it() {
        let chosen = |chosen: &str| {
            let (options, chosen, rationale) = (Vec::new(), chosen.to_owned(), String::new());
            memory(Claim::Decision(Decision { options, chosen, rationale }), Stage::Decided)
        };
        let tried = |succeeded, stage| {
            let (action, result) = ("Cached it".to_owned(), "it".to_owned());
            memory(Claim::Attempt(Attempt { action, result, succeeded }), stage)
        };
        let asked = |summary: &str, stage| {
            let (intent, summary) = ("do".to_owned(), summary.to_owned());
            memory(Claim::Request(PersonRequest { intent, target: None, summary }), stage)
        };
        let gone = |it: Memory| Memory { state: MemoryState::Superseded, ..it };
        let wrong = |it: Memory| Memory { state: MemoryState::Retracted, ..it };
        for (memory, expected) in [
            (chosen("SQLite"), Section::Decision),
            (chosen("Commits are always signed"), Section::Rule),
            (gone(chosen("Commits are always signed")), Section::Past),
            (asked("Add pagination", Stage::Attempted), Section::Request),
            (asked("Never touch vendor/", Stage::Proposed), Section::Rule),
            (asked("Add pagination", Stage::Decided), Section::Done),
            (tried(false, Stage::Attempted), Section::Failure),
            (tried(false, Stage::Decided), Section::Lesson),
            (gone(tried(false, Stage::Attempted)), Section::Lesson),
            (wrong(tried(false, Stage::Attempted)), Section::Past),
            (tried(true, Stage::Decided), Section::Done),
        ] {
            assert_eq!(section(&memory), expected, "{memory:?}");
        }
        let said = Memory { said_by: Speaker::Assistant, ..chosen("Commits are always signed") };
        assert_eq!(section(&said), Section::Decision);
    }
}
