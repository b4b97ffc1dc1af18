//! Rules and properties of the score.

use super::super::gold::{Forbidden, Why};
use super::*;
use crate::domain::{
    Attempt, Claim, ClaimKind, Decision, Digest, Evidence, Match, PersonRequest, Provenance,
    Record, RecordState, RunId, SessionId, SliceId, Speaker,
};
use crate::privacy::Gate;
use crate::testing::shared;
use proptest::prelude::*;
use std::collections::BTreeMap;

pub(crate) fn attempt(action: &str, succeeded: bool) -> Claim {
    Claim::Attempt(Attempt { action: action.to_owned(), result: "so".to_owned(), succeeded })
}

pub(crate) fn request(summary: &str) -> Claim {
    let intent = "wants".to_owned();
    Claim::Request(PersonRequest { intent, target: None, summary: summary.to_owned() })
}

pub(crate) fn record(claim: Claim, state: RecordState) -> Record {
    let digest = Digest::of(&["test"]);
    let run = RunId(digest);
    Record {
        id: Record::id_of(run, &claim),
        claim,
        provenance: Provenance {
            namespace: "n".to_owned(),
            session: SessionId(digest),
            slice: SliceId(digest),
            run,
            entries: (0, 0),
            at: None,
        },
        evidence: Vec::new(),
        score: 1.0,
        state,
        reason: None,
    }
}

fn staged(claims: Vec<Claim>) -> Vec<Record> {
    claims.into_iter().map(|claim| record(claim, RecordState::Staged)).collect()
}

fn gold(text: &str) -> Gold {
    Gold::read(text, &Gate::new(&[])).unwrap()
}

/// A line of a gold file with an item of kind request.
fn item(id: &str, importance: &str, terms: &str) -> String {
    format!(
        r#"{{"id": "{id}", "kind": "request", "importance": "{importance}", "statement": "add the {id} flag", "terms": {terms}}}"#
    )
}

fn value(rate: Rate) -> f64 {
    rate.value().unwrap()
}

#[test]
fn the_worked_example_comes_to_what_it_says() {
    let items = [
        item("a", "core", r#"[["alpha"]]"#),
        item("b", "core", r#"[["beta"]]"#),
        item("c", "useful", r#"[["gamma"]]"#),
    ];
    let gold = gold(&format!(
        r#"{{"must": [{}], "must_not": [{{"id": "n", "terms": [["nobody"], ["said", "wrote"]]}}]}}"#,
        items.join(",")
    ));
    let said = ["beta", "Alpha", "Nobody wrote it", "delta", "epsilon"].map(request);
    let mut records = staged(said.to_vec());
    records.push(record(request("gamma"), RecordState::Quarantined));
    records.push(record(request("gamma"), RecordState::Replaced));
    let score = score(&gold, &records);
    let all = score.tally.all();
    assert_eq!((all.precision(), all.recall()), (Rate { hits: 2, of: 5 }, Rate { hits: 2, of: 3 }));
    assert_eq!((all.f1(), score.tally.core), (Rate { hits: 4, of: 8 }, Rate { hits: 2, of: 2 }));
    assert_eq!(score.tally.restraint, Rate { hits: 0, of: 1 });
    assert_eq!(score.tally.quarantined, Rate { hits: 1, of: 6 });
    assert_eq!(score.missed, ["c"]);
    assert_eq!(score.violated, [("n".to_owned(), records[2].id)]);
    assert!(score.answered.contains(&("a".to_owned(), records[1].id)));
    assert_eq!(value(all.f1()), 0.5);
    assert_eq!(Rate::default().value(), None);
}

#[test]
fn a_question_is_found_if_one_of_the_first_five_records_answers_its_item() {
    let item = item("a", "core", r#"[["lease"]]"#);
    let item =
        item.replacen('{', r#"{"questions": ["which renewals?", "how long is mail kept?"], "#, 1);
    let gold = gold(&format!(r#"{{"must": [{item}]}}"#));
    let mut said = vec![request("renew the lease"), request("keep mail for a day")];
    let found = score(&gold, &staged(said.clone()));
    assert_eq!(found.tally.found, Rate { hits: 1, of: 2 });
    assert_eq!(found.unfound, ["how long is mail kept?"]);
    // Five other records that match the question better rank higher.
    said.extend(["a", "b", "c", "d", "e"].map(|it| request(&format!("renewal, renewals {it}"))));
    let found = score(&gold, &staged(said));
    assert_eq!(found.tally.found, Rate { hits: 0, of: 2 });
}

#[test]
fn one_record_answers_one_item_and_core_items_come_first() {
    // A record that matches both items goes to the one that has no other.
    let both = [item("a", "useful", r#"[["flag", "x"]]"#), item("b", "core", r#"[["flag"]]"#)];
    let gold = gold(&format!(r#"{{"must": [{}]}}"#, both.join(",")));
    let one = score(&gold, &staged(vec![request("the flag")]));
    assert_eq!((one.tally.core, one.missed), (Rate { hits: 1, of: 1 }, vec!["a".to_owned()]));
    let two = score(&gold, &staged(vec![request("add the b flag"), request("x")]));
    assert_eq!((two.tally.all().answered, two.missed.len()), (2, 0));
}

#[test]
fn a_record_of_another_kind_answers_nothing() {
    let gold = gold(&format!(r#"{{"must": [{}]}}"#, item("a", "core", r#"[["flag"]]"#)));
    let score = score(&gold, &staged(vec![attempt("flag", true)]));
    assert_eq!((score.tally.requests.answered, score.tally.attempts.records), (0, 1));
}

#[test]
fn an_attempt_with_the_wrong_outcome_answers_nothing_and_is_counted_as_wrong() {
    let item = |succeeded: &str| {
        gold(&format!(
            r#"{{"must": [{{"id": "a", "kind": "attempt", "importance": "core", "statement": "s", "terms": [["deploy"]]{succeeded}}}]}}"#
        ))
    };
    let records = staged(vec![attempt("deploy one", true)]);
    let wrong = score(&item(r#", "succeeded": false"#), &records);
    assert_eq!(
        (wrong.tally.attempts.answered, wrong.tally.succeeded),
        (0, Rate { hits: 0, of: 1 })
    );
    let right = score(&item(r#", "succeeded": true"#), &records);
    assert_eq!(
        (right.tally.attempts.answered, right.tally.succeeded),
        (1, Rate { hits: 1, of: 1 })
    );
    let either = score(&item(""), &records);
    assert_eq!((either.tally.attempts.answered, either.tally.succeeded), (1, Rate::default()));
    let both = staged(vec![attempt("deploy one", true), attempt("deploy two", false)]);
    assert_eq!(score(&item(r#", "succeeded": false"#), &both).tally.succeeded.hits, 1);
}

#[test]
fn without_terms_the_statement_counts() {
    let gold = gold(&format!(r#"{{"must": [{}]}}"#, item("verbose", "core", "[]")));
    let found = |summary| score(&gold, &staged(vec![request(summary)])).tally.requests.answered;
    assert_eq!((found("add a verbose flag"), found("remove the parser")), (1, 0));
    assert_eq!(similarity("Add the flag", "the FLAG, add!"), 1_000);
    assert_eq!(similarity("a b", "b c"), 500);
    assert_eq!((similarity("", ""), similarity("a", "")), (0, 0));
}

/// Number of answered items for this decision and an item with these fields.
fn decided(fields: &str, extra: &str, claim: Decision) -> u64 {
    let text = format!(
        r#"{{{extra} "must": [{{"id": "d", "kind": "decision", "importance": "core", "statement": "nothing alike", "fields": {fields}}}]}}"#
    );
    score(&gold(&text), &staged(vec![Claim::Decision(claim)])).tally.decisions.answered
}

#[test]
fn fields_count_by_what_they_weigh_and_lists_in_any_order() {
    let claim = |chosen: &str, rationale: &str, options: [&str; 2]| Decision {
        options: options.map(str::to_owned).to_vec(),
        chosen: chosen.to_owned(),
        rationale: rationale.to_owned(),
    };
    let fields = r#"{"chosen": "PostgreSQL", "options": ["a file", "PostgreSQL"], "rationale": "two services write"}"#;
    let found = |it| decided(fields, "", it);
    assert_eq!(found(claim("postgresql", "so", ["x", "y"])), 1, "4 of 7 is chosen");
    assert_eq!(found(claim("sqlite", "two services write", ["PostgreSQL", "a file"])), 0, "3 of 7");
    let options = r#"{"options": ["nobody says this", "PostgreSQL"]}"#;
    let one = Decision { options: vec!["PostgreSQL".to_owned()], ..claim("x", "y", ["", ""]) };
    assert_eq!(decided(options, "", one), 1, "two thirds, whichever stands first");
    let chosen = r#"{"chosen": "a file on a disk"}"#;
    let near = claim("a file there", "so", ["x", "y"]);
    assert_eq!(decided(chosen, "", near.clone()), 1, "what is not named does not count");
    assert_eq!(decided(chosen, r#""similarity": 0.6,"#, near), 0);
}

#[test]
fn what_is_not_alike_at_all_answers_nothing_even_where_nothing_is_asked_of_it() {
    let gold = |with: &str| {
        gold(&format!(
            r#"{{"similarity": 0, "must": [{{"id": "a", "kind": "request", "importance": "core", "statement": "flag"{with}}}]}}"#
        ))
    };
    let said = |summary| staged(vec![request(summary)]);
    for with in ["", r#", "fields": {"summary": "flag"}"#] {
        let found = |summary| score(&gold(with), &said(summary)).tally.requests.answered;
        assert_eq!((found("one two three flag"), found("one two three")), (1, 0), "{with}");
    }
    // Both lack a target, which counts as equal; likewise `options` of a decision.
    let none = r#", "fields": {"target": []}"#;
    assert_eq!(score(&gold(none), &said("x")).tally.requests.answered, 1);
}

#[test]
fn two_letters_are_a_word_where_a_script_has_no_blanks() {
    assert_eq!(similarity("日本語のキャッシュ", "日本語のキャッシュ"), 1_000);
    let (near, far) = (
        similarity("キャッシュを一日保存する", "キャッシュは一日だけ保存する"),
        similarity("キャッシュを一日保存する", "夜間の書き出しをやめる"),
    );
    assert!(near > SIMILARITY_MIN && far < 200, "{near} {far}");
    assert_eq!(similarity("ＳＱＬｉｔｅを使う", "sqlite を使う"), 1_000);
    assert_eq!(similarity("İstanbul", "istanbul"), 1_000);
    assert_eq!(similarity("日", "日"), 1_000);
}

#[test]
fn of_two_records_that_both_answer_the_more_similar_one_does() {
    let gold = gold(&format!(r#"{{"must": [{}]}}"#, item("verbose", "core", r#"[["flag"]]"#)));
    let records = staged(vec![request("a flag"), request("add the verbose flag"), request("flag")]);
    assert_eq!(score(&gold, &records).answered, [("verbose".to_owned(), records[1].id)]);
}

#[test]
fn a_string_is_grounded_where_evidence_names_it() {
    let claim = Claim::Decision(Decision {
        options: vec!["a".to_owned(), "b".to_owned()],
        chosen: "a".to_owned(),
        rationale: "c".to_owned(),
    });
    let mut decided = record(claim, RecordState::Staged);
    let evidence = |field: &str| Evidence {
        field: field.to_owned(),
        ordinal: 0,
        line: 1,
        bytes: 0..1,
        speaker: Speaker::Person,
        name: None,
        found: Match::Exact,
        words: Gate::new(&[]).redact("a"),
    };
    decided.evidence = ["chosen", "chosen", "options[1]", "other"].map(evidence).to_vec();
    let score = score(&Gold::default(), &[decided]);
    assert_eq!(score.tally.grounded, Rate { hits: 2, of: 4 });
}

#[test]
fn recorded_answers_are_scored_against_their_gold() {
    let (Some(golds), Some(answers)) = (shared("gold"), shared("answers")) else { return };
    let files = std::fs::read_dir(golds).unwrap();
    let mut tallies = Vec::new();
    for file in files {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(name) = name.strip_suffix(".gold.json") else { continue };
        let gold = gold(&std::fs::read_to_string(&path).unwrap());
        let answer = std::fs::read_to_string(answers.join(format!("{name}.json")));
        let Ok(answer) = answer else { continue };
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let score = score(&gold, &staged(claims(&answer)));
        assert_eq!(score.answered.len() + score.missed.len(), gold.items.len(), "{name}");
        tallies.push(score.tally);
    }
    let mut all = Tally::default();
    tallies.iter().for_each(|tally| all += *tally);
    let counts = all.all();
    assert!(tallies.len() > 20 && counts.items > 80, "{all:?}");
    // A good model gave them for whole transcripts.
    assert!(value(counts.recall()) > 0.5 && value(all.restraint) > 0.9, "{all:?}");
}

/// Claims of a recorded reply, at any of the known places in the file.
fn claims(answer: &serde_json::Value) -> Vec<Claim> {
    let lists = ["decisions", "discussions", "attempts", "requests"];
    let found = |of: &serde_json::Value| lists.iter().any(|name| of.get(*name).is_some());
    let arguments = [answer, &answer["arguments"], &answer["answer"]];
    let from = arguments.into_iter().find(|of| found(of)).expect("an answer");
    let mut claims = Vec::new();
    for name in lists {
        let listed = from[name].as_array().into_iter().flatten();
        claims.extend(listed.filter_map(|it| serde_json::from_value::<Claim>(it.clone()).ok()));
    }
    claims
}

/// Words of few letters, so that they match often.
const WORDS: &str = "[ab]{1,2}( [ab]{1,2}){0,3}";

fn some_items() -> impl Strategy<Value = Vec<Item>> {
    let terms = prop::collection::vec(prop::collection::vec("[ab]{1,2}", 0..3), 0..3);
    let outcome = prop::option::of(any::<bool>());
    let item = (WORDS, terms, outcome, any::<bool>(), any::<bool>()).prop_map(
        |(statement, terms, succeeded, is_core, is_attempt)| Item {
            id: statement.clone(),
            kind: if is_attempt { ClaimKind::Attempt } else { ClaimKind::Request },
            importance: if is_core { Importance::Core } else { Importance::Useful },
            statement,
            terms,
            fields: BTreeMap::new(),
            questions: Vec::new(),
            succeeded,
            quote: None,
            entry_hint: None,
        },
    );
    prop::collection::vec(item, 0..8)
}

fn some_records() -> impl Strategy<Value = Vec<Record>> {
    let states = vec![RecordState::Staged, RecordState::Quarantined, RecordState::Replaced];
    let record = (WORDS, any::<Option<bool>>(), prop::sample::select(states)).prop_map(
        |(text, outcome, state)| match outcome {
            Some(succeeded) => record(attempt(&text, succeeded), state),
            None => record(request(&text), state),
        },
    );
    prop::collection::vec(record, 0..8)
}

fn forbidden(item: &Item) -> Forbidden {
    let (id, terms) = (item.id.clone(), item.terms.clone());
    Forbidden { id, why: Why::Invented, statement: String::new(), terms }
}

/// Maximum number of pairs, by brute force.
fn most(answers: &[Vec<usize>], taken: u32) -> usize {
    let Some((first, rest)) = answers.split_first() else { return 0 };
    let free = first.iter().filter(|at| taken & (1 << **at) == 0);
    let with = free.map(|at| most(rest, taken | 1 << at) + 1);
    with.max().unwrap_or_default().max(most(rest, taken))
}

/// Matching records of each item.
fn some_answers() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let one = prop::collection::btree_set(0..6usize, 0..5);
    prop::collection::vec(one.prop_map(|it| it.into_iter().collect()), 0..6)
}

proptest! {
    #[test]
    fn as_many_items_as_possible_have_a_record_and_earlier_ones_first(answers in some_answers()) {
        let given = assign(&answers, 6);
        let mut taken: Vec<usize> = given.iter().flatten().copied().collect();
        prop_assert_eq!(taken.len(), most(&answers, 0));
        taken.sort_unstable();
        prop_assert!(taken.windows(2).all(|pair| pair[0] < pair[1]));
        for (at, record) in given.iter().enumerate() {
            prop_assert!(record.is_none_or(|it| answers[at].contains(&it)));
            // An item without a record would lack one even without the later items.
            prop_assert_eq!(assign(&answers[..=at], 6)[at].is_some(), record.is_some());
        }
    }

    #[test]
    fn counts_add_up_and_no_rate_is_over_one(items in some_items(), records in some_records()) {
        let forbidden = items.iter().map(forbidden);
        let gold = Gold { forbidden: forbidden.collect(), items, ..Gold::default() };
        let score = score(&gold, &records);
        let (tally, all) = (score.tally, score.tally.all());
        let staged = records.iter().filter(|it| it.state == RecordState::Staged).count() as u64;
        prop_assert_eq!((all.items, all.records), (gold.items.len() as u64, staged));
        prop_assert_eq!(score.answered.len() as u64, all.answered);
        prop_assert_eq!((score.answered.len() + score.missed.len()) as u64, all.items);
        prop_assert_eq!(score.violated.len() as u64, tally.restraint.of - tally.restraint.hits);
        let rates = [all.precision(), all.recall(), all.f1(), tally.core, tally.succeeded];
        for rate in rates.into_iter().chain([tally.grounded, tally.quarantined, tally.restraint]) {
            prop_assert!(rate.hits <= rate.of, "{rate:?}");
        }
    }

    #[test]
    fn the_order_of_records_changes_no_count(items in some_items(), records in some_records()) {
        let gold = Gold { items, ..Gold::default() };
        let turned: Vec<Record> = records.iter().rev().cloned().collect();
        prop_assert_eq!(score(&gold, &turned).tally, score(&gold, &records).tally);
    }

    #[test]
    fn one_more_record_never_lowers_recall(items in some_items(), records in some_records()) {
        let gold = Gold { items, ..Gold::default() };
        let recall = |records: &[Record]| score(&gold, records).tally.all().answered;
        for count in 0..records.len() {
            prop_assert!(recall(&records[..count]) <= recall(&records[..=count]));
        }
    }

    #[test]
    fn similarity_is_the_same_both_ways(one in any::<String>(), other in any::<String>()) {
        prop_assert_eq!(similarity(&one, &other), similarity(&other, &one));
        prop_assert!(similarity(&one, &other) <= 1_000);
        let has_words = one.chars().any(char::is_alphanumeric);
        prop_assert_eq!(similarity(&one, &one), if has_words { 1_000 } else { 0 });
    }

    #[test]
    fn any_gold_is_survived(text in any::<String>(), json in "[\\[\\]{}:,\"a1 \\\\]{0,20}") {
        let _ = Gold::read(&text, &Gate::new(&[]));
        let _ = Gold::read(&json, &Gate::new(&[]));
    }
}
