//! Section of a list in which people look for a memory: rules, open, learned, past.

use crate::domain::{Claim, Decision, Memory, MemoryState, Speaker, Stage, named};
use crate::text::wording;

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
        Claim::Attempt(it) if !it.succeeded && memory.state != MemoryState::Retracted => {
            if is_active && is_open {
                Section::Failure
            } else {
                Section::Lesson
            }
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

/// True for a person's decision that holds until further notice.
pub(super) fn is_standing_rule(memory: &Memory, decision: &Decision) -> bool {
    let is_persons = memory.confirmed || memory.said_by == Speaker::Person;
    is_persons && wording::is_rule(&decision.chosen, &decision.rationale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Attempt, Digest, MemoryId, PersonRequest};

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
            valid_until: None,
            superseded_by: None,
            settled_by: None,
            reason: None,
            sources: Vec::new(),
        }
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
