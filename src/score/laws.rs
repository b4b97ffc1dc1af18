//! Laws of scores, over gold and records that nobody would write.

use super::assign::assign;
use super::fields::{Fields, Texts};
use super::index::Index;
use super::similar::words;
use super::terms::Terms;
use super::tests::{attempt, record, request};
use super::*;
use crate::domain::{ClaimKind, Record, RecordState};
use crate::privacy::Gate;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Words of few letters, so that they meet.
const WORDS: &str = "[ab]{1,2}( [ab]{1,2}){0,3}";

fn items() -> impl Strategy<Value = Vec<Item>> {
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
            succeeded,
            quote: None,
            entry_hint: None,
        },
    );
    prop::collection::vec(item, 0..8)
}

fn records() -> impl Strategy<Value = Vec<Record>> {
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

/// The most pairs that there are, and the most that they can be alike in all, found by trying everything.
fn most(answers: &[Vec<(usize, u32)>], taken: u32) -> (usize, u32) {
    let Some((first, rest)) = answers.split_first() else { return (0, 0) };
    let free = first.iter().filter(|(at, _)| taken & (1 << *at) == 0);
    let with = free.map(|(at, alike)| {
        let (pairs, sum) = most(rest, taken | 1 << at);
        (pairs + 1, sum + alike)
    });
    with.max().unwrap_or_default().max(most(rest, taken))
}

/// The records that answer an item, each once.
fn answers() -> impl Strategy<Value = Vec<Vec<(usize, u32)>>> {
    let alike = prop_oneof![Just(500), Just(1_000), 0..=1_000u32];
    let one = prop::collection::btree_map(0..6usize, alike, 0..5);
    prop::collection::vec(one.prop_map(|it| it.into_iter().collect()), 0..6)
}

/// Some words of few letters; or none, or one without blanks.
const TEXT: &str = "([a-h] ){0,9}|日本{0,2}";
/// The fields of a decision, and what they weigh.
const DECISION: [&str; 3] = ["chosen", "rationale", "options"];
const WEIGHTS: [u32; 3] = [4, 2, 1];

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(TEXT, 0..4)
}

/// A claim by its fields, each a list; one that is not there is as an empty one.
fn claim() -> impl Strategy<Value = BTreeMap<&'static str, Vec<String>>> {
    prop::collection::btree_map(prop::sample::select(&DECISION[..]), texts(), 0..4)
}

/// How alike a claim is to what is wanted, as the documentation says it and without an index.
fn plain(wanted: &BTreeMap<&str, Vec<String>>, claim: &BTreeMap<&str, Vec<String>>) -> u32 {
    let none = Vec::new();
    let (mut sum, mut all) = (0, 0);
    for (name, weight) in DECISION.iter().zip(WEIGHTS) {
        let Some(wanted) = wanted.get(name) else { continue };
        let said = claim.get(name).unwrap_or(&none);
        let to_each = |it: &String| -> Vec<(usize, u32)> {
            said.iter().map(|said| similarity(it, said)).enumerate().collect()
        };
        let pairs: Vec<Vec<(usize, u32)>> = wanted.iter().map(to_each).collect();
        let texts = (wanted.len() + said.len()) as u32;
        sum += weight * (2 * most(&pairs, 0).1).checked_div(texts).unwrap_or(1_000);
        all += weight;
    }
    sum.checked_div(all).unwrap_or(0)
}

proptest! {
    #[test]
    fn as_many_items_as_possible_have_a_record_and_then_the_most_alike(answers in answers()) {
        let given = assign(&answers, 6);
        let mut taken: Vec<usize> = given.iter().flatten().copied().collect();
        prop_assert_eq!(taken.len(), most(&answers, 0).0);
        taken.sort_unstable();
        prop_assert!(taken.windows(2).all(|pair| pair[0] < pair[1]));
        let mut sum = 0;
        for (record, own) in given.iter().zip(&answers) {
            let pair = record.map(|record| own.iter().find(|(at, _)| *at == record));
            prop_assert!(pair.is_none_or(|it| it.is_some()));
            sum += pair.flatten().map_or(0, |(_, alike)| *alike);
        }
        // Earlier items come first: one that has none would have none without the later ones too.
        for (at, record) in given.iter().enumerate() {
            let alone = assign(&answers[..=at], 6);
            prop_assert_eq!(alone[at].is_some(), record.is_some());
        }
        let with: Vec<_> = answers.iter().zip(&given).filter(|(_, it)| it.is_some()).collect();
        let with: Vec<Vec<(usize, u32)>> = with.into_iter().map(|(own, _)| own.clone()).collect();
        prop_assert_eq!((with.len(), sum), most(&with, 0));
    }

    #[test]
    fn counts_add_up_and_no_rate_is_over_one(items in items(), records in records()) {
        let forbidden = items.iter().map(forbidden);
        let gold = Gold { forbidden: forbidden.collect(), items, ..Gold::default() };
        let score = score(&gold, &records);
        let (tally, all) = (score.tally, score.tally.all());
        let staged = records.iter().filter(|it| it.state == RecordState::Staged).count() as u64;
        prop_assert_eq!((all.items, all.records), (gold.items.len() as u64, staged));
        prop_assert_eq!(score.answered.len() as u64, all.answered);
        prop_assert_eq!((score.answered.len() + score.missed.len()) as u64, all.items);
        prop_assert_eq!(score.violated.len() as u64, tally.restraint.of - tally.restraint.hits);
        let mut restraint = Rate::default();
        Why::ALL.iter().for_each(|why| restraint += tally.restraints.of(*why));
        prop_assert_eq!(restraint, tally.restraint);
        let rates = [all.precision(), all.recall(), all.f1(), tally.core, tally.succeeded];
        for rate in rates.into_iter().chain([tally.grounded, tally.quarantined, tally.restraint]) {
            prop_assert!(rate.hits <= rate.of, "{rate:?}");
        }
    }

    #[test]
    fn the_order_of_records_changes_no_count(items in items(), records in records()) {
        let gold = Gold { items, ..Gold::default() };
        let turned: Vec<Record> = records.iter().rev().cloned().collect();
        prop_assert_eq!(score(&gold, &turned).tally, score(&gold, &records).tally);
    }

    #[test]
    fn one_more_record_never_lowers_recall(items in items(), records in records()) {
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
    fn terms_are_met_as_a_search_in_each_text_finds_them(
        texts in prop::collection::vec("[ab日é]{0,6}", 0..5),
        groups in prop::collection::vec(prop::collection::vec("[ab日é]{0,2}", 0..3), 0..3),
    ) {
        let terms = Terms::of([groups.as_slice()].into_iter(), texts.iter().map(String::as_str));
        let met = |text: &String| {
            !groups.is_empty() && groups.iter().all(|it| it.iter().any(|it| text.contains(it)))
        };
        let expected: Vec<usize> = (0..texts.len()).filter(|at| met(&texts[*at])).collect();
        prop_assert_eq!(terms.meeting(&groups), expected);
    }

    #[test]
    fn near_texts_are_those_that_a_comparison_with_each_finds(
        texts in prop::collection::vec(TEXT, 0..12),
        text in TEXT,
        least in 1..=1_001u32,
    ) {
        let all: Vec<[Vec<String>; 1]> = texts.iter().map(|it| [words(it)]).collect();
        let index = Index::of(all.iter().map(<[_; 1]>::as_slice));
        let alike = texts.iter().map(|it| similarity(it, &text)).enumerate();
        let expected: Vec<(usize, u32)> = alike.filter(|(_, it)| least <= *it).collect();
        prop_assert_eq!(index.near(&index.ranked(&[words(&text)]), least), expected);
    }

    #[test]
    fn near_claims_are_those_that_a_comparison_with_each_finds(
        claims in prop::collection::vec(claim(), 0..12),
        wanted in prop::collection::btree_map(prop::sample::select(&DECISION[..]), texts(), 0..4),
        least in 1..=1_001u32,
    ) {
        let written = |it: &BTreeMap<&str, Vec<String>>| Texts::of(&serde_json::json!(it));
        let all: Vec<Texts> = claims.iter().map(written).collect();
        let fields = Fields::of(ClaimKind::Decision, &all);
        let alike = claims.iter().map(|it| plain(&wanted, it)).enumerate();
        let expected: Vec<(usize, u32)> = alike.filter(|(_, it)| least <= *it).collect();
        prop_assert_eq!(fields.near(&fields.wanted(&written(&wanted)), least), expected);
    }

    #[test]
    fn any_gold_is_survived(text in any::<String>(), json in "[\\[\\]{}:,\"a1 \\\\]{0,20}") {
        Gold::read(&text, &Gate::new(&[]));
        Gold::read(&json, &Gate::new(&[]));
    }
}
