use super::fixture::*;
use crate::domain::Speaker::Person;
use crate::domain::{MemoryMap, MemoryState, Speaker};
use serde::Deserialize;

/// Two statements of a person, two days apart.
#[derive(Deserialize)]
struct Pair {
    /// `merged`, `open` (the same, but left to a model) or `different`.
    expected: String,
    former: String,
    later: String,
    /// Alternatives of the later one.
    #[serde(default)]
    options: Vec<String>,
}

#[test]
fn only_what_certainly_says_the_same_is_merged() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/consolidate");
    let pairs = std::fs::read_to_string(folder.join("restated.json")).unwrap();
    let pairs: Vec<Pair> = serde_json::from_str(&pairs).unwrap();
    let mut wrong = Vec::new();
    for Pair { expected, former, later, options } in &pairs {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let said = [
            (decision(&[], former, "so it is"), 1),
            (decision(&options, later, "that is how it is"), 3),
        ];
        let records = said.map(|(claim, day)| record(claim, Speaker::Person, day));
        let told = told(&plan(&records, &mut MemoryMap::new()));
        let is_merged = told.last().is_some_and(|it| it.starts_with("merge"));
        if is_merged != (expected == "merged") {
            wrong.push(format!("{expected}: {former} / {later}: {told:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn statements_that_differ_in_a_sign_or_a_time_are_two() {
    for (one, other, is_same) in [
        ("the depot opens at 9:00 on Mondays", "the depot opens at 10:00 on Mondays", false),
        ("the depot closes at 4 am", "the depot closes at 4 pm", false),
        ("the freezer is kept at -18 degrees", "the freezer is kept at 18 degrees", false),
        ("the roof sensor is written in C", "the roof sensor is written in C++", false),
        ("the roof sensor is written in C", "the roof sensor is written in C#", false),
        ("copy the roof plans staging → live", "copy the roof plans live → staging", false),
        ("alarm at a roof load > 200 kg", "alarm at a roof load < 200 kg", false),
        ("the roof tool needs Python >=3.9", "the roof tool needs Python 3.9", false),
        ("use Redis for the roof sessions", "drop Redis for the roof sessions", false),
        ("we need the old roof API", "we abandon the old roof API", false),
        ("roofers are signed in after lunch", "roofers are signed out after lunch", false),
        ("die Luke im Dach ist nachts auf", "die Luke im Dach ist nachts zu", false),
        ("die Heizung am Dach geht nachts an", "die Heizung am Dach geht nachts aus", false),
        ("Ann reviews the roofs of Bob", "Bob reviews the roofs of Ann", false),
        ("use slate, not tiles", "use tiles, not slate", false),
        ("test the roof first, then pay", "pay first, then test the roof", false),
        ("send the plan to Ann and Bob", "send the plan to Ann or Bob", false),
        ("keep the roof plans in vault-b", "keep the roof plans in vault-c", false),
        ("take plan b for the roof", "take plan c for the roof", false),
        ("pay 5 euros for 2 hours", "pay 2 euros for 5 hours", false),
        ("take the train to Ulm", "take the train from Ulm", false),
        ("roofs below 2 m are not insured", "roofs under 2 m are not insured", true),
        ("put the roof plans on tape", "put the roof plans on tape, please", true),
    ] {
        let said = |text, on| record(decision(&[], text, "it is so"), Person, on);
        let mut state = MemoryMap::new();
        plan(&[said(one, 1), said(other, 2)], &mut state);
        assert_eq!(state.len() == 1, is_same, "{one} / {other}");
    }
}

#[test]
fn a_number_in_the_place_of_another_leaves_the_words_before_it_a_topic() {
    let lives = record(decision(&[], "players start with three lives", "one was hard"), Person, 1);
    let slots = "players start with five inventory slots instead of eight";
    let slots = record(decision(&[], slots, "choices should matter"), Person, 2);
    let mut state = MemoryMap::new();
    plan(&[lives.clone(), slots], &mut state);
    assert_eq!(of(&state, &lives).state, MemoryState::Active);
}
