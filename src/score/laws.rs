//! Laws of scores, over gold and records that nobody would write.

use super::assign::assign;
use super::tests::{attempt, record, request};
use super::*;
use crate::domain::{ClaimKind, Record, RecordState};
use proptest::prelude::*;

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
            succeeded,
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

/// The most pairs that there are, found by trying everything.
fn most(answers: &[Vec<usize>], taken: u32) -> usize {
    let Some((first, rest)) = answers.split_first() else { return 0 };
    let with = first.iter().filter(|at| taken & (1 << **at) == 0);
    let with = with.map(|at| 1 + most(rest, taken | 1 << at)).max();
    with.unwrap_or_default().max(most(rest, taken))
}

proptest! {
    #[test]
    fn as_many_items_as_possible_have_a_record_of_their_own(
        answers in prop::collection::vec(prop::collection::vec(0..6usize, 0..4), 0..6),
    ) {
        let given = assign(&answers, 6);
        let mut taken: Vec<usize> = given.iter().flatten().copied().collect();
        prop_assert_eq!(taken.len(), most(&answers, 0));
        taken.sort_unstable();
        prop_assert!(taken.windows(2).all(|pair| pair[0] < pair[1]));
        for (record, own) in given.iter().zip(&answers) {
            prop_assert!(record.is_none_or(|record| own.contains(&record)));
        }
        // Earlier items come first: one that has none would have none without the later ones too.
        for (at, record) in given.iter().enumerate() {
            let alone = assign(&answers[..=at], 6);
            prop_assert_eq!(alone[at].is_some(), record.is_some());
        }
    }

    #[test]
    fn counts_add_up_and_no_rate_is_over_one(items in items(), records in records()) {
        let forbidden = items.iter().map(|it| Forbidden { id: it.id.clone(), terms: it.terms.clone() });
        let gold = Gold { forbidden: forbidden.collect(), items };
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
    fn the_order_of_records_changes_no_count(items in items(), records in records()) {
        let gold = Gold { items, forbidden: Vec::new() };
        let turned: Vec<Record> = records.iter().rev().cloned().collect();
        prop_assert_eq!(score(&gold, &turned).tally, score(&gold, &records).tally);
    }

    #[test]
    fn one_more_record_never_lowers_recall(items in items(), records in records()) {
        let gold = Gold { items, forbidden: Vec::new() };
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
        Gold::read(&text);
        Gold::read(&json);
    }
}
