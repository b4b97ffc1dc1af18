use super::fixture::*;
use crate::domain::{
    MemoryMap, MemoryState, PERSON_EDITED, PersonDecision, RELATED, Speaker, Stage,
};
use serde::Deserialize;

/// Two decisions of a person, two days apart.
#[derive(Deserialize)]
struct Pair {
    /// `replaced`; `suspected`: left to a model, and shown beside each other until then; or `open`: only a part, something
    /// else, or left to a model.
    expected: String,
    former: String,
    later: String,
    /// Rationale of the later decision, as `said` and `options` are too.
    rationale: String,
    said: String,
    #[serde(default)]
    options: Vec<String>,
    /// Alternatives of the former decision.
    #[serde(default)]
    former_options: Vec<String>,
}

#[test]
fn only_what_certainly_gives_a_decision_up_takes_its_place() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/consolidate");
    let pairs = std::fs::read_to_string(folder.join("changed.json")).unwrap();
    let pairs: Vec<Pair> = serde_json::from_str(&pairs).unwrap();
    let mut wrong = Vec::new();
    for Pair { expected, former, later, rationale, said, options, former_options } in &pairs {
        let [options, former_options] = [options, former_options]
            .map(|it| it.iter().map(String::as_str).collect::<Vec<&str>>());
        let former = record(decision(&former_options, former, "so it is"), Speaker::Person, 1);
        let later = decision(&options, later, rationale);
        let later = record_of(later, &[(Speaker::Person, said)], 3);
        let plans = [[former.clone(), later.clone()], [later, former]]
            .map(|records| plan(&records, &mut MemoryMap::new()));
        let is_beside = plans[0].left_open.iter().any(|it| it.rule != RELATED);
        let made = plans.map(|plan| told(&plan).pop().unwrap_or_default());
        let [in_order, _] = &made;
        if in_order.starts_with("supersede") != (expected == "replaced")
            || expected == "suspected" && !is_beside
        {
            wrong.push(format!("{expected}: {said}: {made:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_said_again_but_replaces_something_is_a_change() {
    let stored = |words: &str, said: &str, on| {
        let claim = decision(&[], &format!("bookings are kept in {words}"), "");
        record_of(claim, &[(Speaker::Person, said)], on)
    };
    let old = stored("SQLite", "Bookings are kept in SQLite.", 1);
    let said = "As I said: bookings are kept in Postgres instead of SQLite.";
    let new = stored("Postgres instead of SQLite", said, 4);
    let mut state = MemoryMap::new();
    plan(std::slice::from_ref(&old), &mut state);
    assert_eq!(told(&plan(std::slice::from_ref(&new), &mut state)), ["supersede revised"]);
}

#[test]
fn words_that_name_the_former_value_replace_the_memory_with_it() {
    let tokens = |words: &str, on| {
        let claim = decision(&[], &format!("session tokens live {words}"), "");
        record_of(claim, &[(Speaker::Person, &format!("Session tokens live {words}."))], on)
    };
    let (hour, half) = (tokens("60 minutes", 1), tokens("30 minutes", 3));
    let last = tokens("15 minutes, no longer 60 minutes", 5);
    for records in [[&hour, &half], [&half, &hour]] {
        let mut state = MemoryMap::new();
        for record in records {
            plan(std::slice::from_ref(record), &mut state);
        }
        let made = plan(std::slice::from_ref(&last), &mut state);
        assert_eq!(told(&made), ["supersede revised"]);
        assert_eq!(of(&state, &hour).state, MemoryState::Superseded);
        assert_eq!(of(&state, &half).state, MemoryState::Active);
        let left: Vec<_> = made.left_open.iter().map(|it| it.memory).collect();
        assert_eq!(left, [of(&state, &half).id], "the other one is left open beside it");
    }
}

#[test]
fn another_value_for_a_topic_of_one_word_is_a_suspicion() {
    for (old, new, is_suspected) in [
        ("keep logs for 14 days", "keep logs for 30 days", true),
        ("we deploy on Fridays", "we deploy on Mondays", true),
        ("the timeout is 30 seconds", "the timeout is 60 seconds", true),
        ("keep logs for 14 days", "keep invoices for 30 days", false),
        ("keep logs for 14 days", "keep logs", false),
    ] {
        let records = [
            record(decision(&[], old, ""), Speaker::Person, 1),
            record(decision(&[], new, ""), Speaker::Person, 5),
        ];
        let mut state = MemoryMap::new();
        let made = plan(&records, &mut state);
        assert!(state.values().all(|it| it.state == MemoryState::Active), "{made:#?}");
        let is_open = made.left_open.iter().any(|it| it.rule == "may-replace")
            || made.counts().contains_key("conflict");
        assert_eq!(is_open, is_suspected, "{old} / {new}: {made:#?}");
    }
}

#[test]
fn a_persons_wording_is_what_later_records_are_compared_with() {
    let keep = |words: &str, by, on| record(decision(&[], words, ""), by, on);
    let old = keep("keep the access logs for 14 days", Speaker::Person, 1);
    for (later, on, expected) in [
        ("keep the access logs for 30 days", 9, "duplicate equal"),
        ("keep the access logs for 90 days from now on", 9, "supersede revised"),
        ("keep the access logs for 14 days", 9, "conflict revised"),
        // Said before the edit.
        ("keep the access logs for 14 days", 3, "duplicate equal"),
    ] {
        let mut state = MemoryMap::new();
        plan(std::slice::from_ref(&old), &mut state);
        for memory in state.values_mut() {
            memory.edited = Some("- keep the access logs for 30 days".to_owned());
            memory.confirmed = true;
            memory.decided = Some(PersonDecision { rule: PERSON_EDITED.into(), at: day(5) });
        }
        let later = keep(later, Speaker::Person, on);
        let told = told(&plan(std::slice::from_ref(&later), &mut state));
        assert_eq!(told, [expected], "{:?}", later.claim);
    }
}

#[test]
fn an_edited_request_is_fulfilled_as_the_person_worded_it() {
    let asked = record(request("Add a search box to the recipe page"), Speaker::Person, 1);
    for (action, is_done) in [
        ("added a search box to the recipe page", false),
        ("added a filter by season to the recipe page", true),
    ] {
        let mut state = MemoryMap::new();
        plan(std::slice::from_ref(&asked), &mut state);
        for memory in state.values_mut() {
            memory.edited = Some("- [ ] Add a filter by season to the recipe page".to_owned());
            memory.decided = Some(PersonDecision { rule: PERSON_EDITED.into(), at: day(5) });
        }
        let deed = record(attempt(action, "it is there", true), Speaker::Assistant, 9);
        plan(std::slice::from_ref(&deed), &mut state);
        assert_eq!(of(&state, &asked).stage == Stage::Decided, is_done, "{action}");
    }
}
