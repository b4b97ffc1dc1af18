//! Rules of comparison.

use super::super::testing::{
    case, count, decision, earlier, forbidden, item, report, request, sample,
};
use super::*;
use crate::domain::RecordState;
use proptest::prelude::*;

fn none(_: &str) -> Tolerances {
    Tolerances::default()
}

fn one(cases: Vec<CaseReport>) -> Report {
    report("built-in", cases)
}

/// Change of the only case.
fn changed(before: CaseReport, after: CaseReport) -> Option<CaseComparison> {
    let comparison = compare(&one(vec![before]), &one(vec![after]), &none);
    let case = comparison.variants[0].cases.first().cloned();
    assert_eq!(comparison.worse(), case.as_ref().is_some_and(|it| it.worse));
    case
}

#[test]
fn a_run_compared_with_itself_changed_nothing() {
    for report in [sample(), earlier()] {
        let comparison = compare(&report, &report, &none);
        assert!(comparison.is_empty() && !comparison.worse(), "{comparison:?}");
        let variant = &comparison.variants[0];
        assert!(variant.measures.is_empty() && variant.all.before == variant.all.after);
    }
}

#[test]
fn the_other_way_round_what_was_gained_is_lost() {
    let (forth, back) =
        (compare(&earlier(), &sample(), &none), compare(&sample(), &earlier(), &none));
    assert!(forth.worse());
    let (forth, back) = (&forth.variants[0], &back.variants[0]);
    assert_eq!((&forth.gone, &forth.new), (&back.new, &back.gone));
    assert_eq!((forth.all.before, forth.all.after), (back.all.after, back.all.before));
    for (one, other) in forth.cases.iter().zip(&back.cases) {
        assert_eq!((&one.name, one.before, one.after), (&other.name, other.after, other.before));
        assert_eq!((one.worse, one.better), (other.better, other.worse), "{}", one.name);
        let ids = |all: &[ItemReport]| all.iter().map(|it| it.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&one.answered), ids(&other.missed));
        assert_eq!((&one.lost, &one.gained), (&other.gained, &other.lost));
    }
}

#[test]
fn records_are_told_apart_as_gained_and_lost() {
    let before = case(
        "c",
        vec![],
        vec![],
        vec![
            decision("PostgreSQL", "Two services write at once."),
            request("Write the migration today."),
            request("Remove the cache."),
            request("Remove the cache."),
        ],
    );
    let mut doubted = decision("PostgreSQL", "Two services write at once.");
    doubted.state = RecordState::Quarantined;
    let after = case(
        "c",
        vec![],
        vec![],
        vec![request("Remove the cache."), request("Write the whole migration today."), doubted],
    );
    let it = changed(before.clone(), after.clone()).unwrap();
    let (before, after) = (before.records, after.records);
    let why = "a changed state is a change, an equal claim is none, and each is matched once";
    let lost = [&before[0], &before[1], &before[3]].map(Clone::clone);
    assert_eq!((it.lost, it.gained), (lost.to_vec(), after[1..].to_vec()), "{why}");
}

#[test]
fn what_cannot_be_measured_any_more_is_worse_and_has_no_measures() {
    let before = sample().variants[0].cases[1].clone();
    assert_eq!(before.outcome, CaseOutcome::Failed);
    let mut after = before.clone();
    after.outcome = CaseOutcome::Stale;
    let it = changed(before, after).unwrap();
    assert!(it.worse && it.measures.is_empty() && it.lost.is_empty());
}

#[test]
fn nothing_to_measure_counts_as_the_table_says() {
    let empty = || case("c", vec![], vec![], vec![]);
    // With empty gold, a new record is a regression and a lost one an improvement.
    let invented = case("c", vec![], vec![], vec![request("Something.")]);
    let it = changed(empty(), invented.clone()).unwrap();
    let f1 = it.measures.iter().find(|it| it.measure == Measure::F1).unwrap();
    assert!(it.worse && !it.better && f1.trend == Trend::Worse, "{it:?}");
    let it = changed(invented.clone(), empty()).unwrap();
    assert!(it.better && !it.worse, "{it:?}");
    // Gold that lost its items cannot show recall any more.
    let item = item("r", ClaimKind::Request, "Something.", Some(0));
    let found = case("c", vec![item], vec![], vec![request("Something.")]);
    let it = changed(found, invented).unwrap();
    assert!(it.worse && it.gold_changed);
    // The first quarantined record increases the count.
    let mut doubted = case("c", vec![], vec![], vec![request("Something.")]);
    doubted.records[0].state = RecordState::Quarantined;
    count(&mut doubted);
    assert!(changed(empty(), doubted).unwrap().worse);
}

#[test]
fn a_tolerance_is_how_much_worse_a_measure_may_be() {
    let records = |said: usize| {
        let items = (0..4).map(|at| {
            let by = (at < said).then_some(at);
            item(&format!("r{at}"), ClaimKind::Request, "Something.", by)
        });
        let records = (0..4).map(|at| request(&format!("Thing {at}."))).collect();
        one(vec![case("c", items.collect(), vec![], records)])
    };
    let all = |rate: f64| {
        move |_: &str| Tolerances {
            precision: rate,
            recall: rate,
            f1: rate,
            core_recall: rate,
            ..Tolerances::default()
        }
    };
    assert!(compare(&records(4), &records(3), &all(0.2499)).worse());
    assert!(!compare(&records(4), &records(3), &all(0.25)).worse());
    let other = |name: &str| if name == "c" { none(name) } else { all(1.0)(name) };
    assert!(compare(&records(4), &records(3), &other).worse());
}

#[test]
fn what_is_gone_is_worse_unless_it_was_not_to_be_run() {
    let whole = one(vec![case("a", vec![], vec![], vec![]), case("b", vec![], vec![], vec![])]);
    let part = one(vec![case("b", vec![], vec![], vec![])]);
    let comparison = compare(&whole, &part, &none);
    assert_eq!(comparison.variants[0].gone, ["a"]);
    assert!(comparison.worse() && comparison.clone().of_cases(&|name| name == "a").worse());
    let rest = comparison.of_cases(&|name| name == "b");
    assert!(rest.passes() && rest.variants[0].gone.is_empty());
    assert_eq!(rest.variants[0].not_run, ["a"]);
    assert!(!compare(&part, &whole, &none).worse(), "what is new is not worse");
}

#[test]
fn variants_meet_by_name_or_where_one_is_left() {
    let named = |name: &str| report(name, vec![case("a", vec![], vec![], vec![])]);
    let both = |one: &str, other: &str| {
        let mut both = named(one);
        both.variants.extend(named(other).variants);
        both
    };
    let renamed = compare(&both("a", "b"), &both("b", "c"), &none);
    let pairs: Vec<_> = renamed.variants.iter().map(|it| (&*it.before, &*it.after)).collect();
    assert_eq!(pairs, [("b", "b"), ("a", "c")]);
    let apart = compare(&named("a"), &both("b", "c"), &none);
    assert_eq!((apart.new, apart.gone.clone()), (vec!["b".into(), "c".into()], vec!["a".into()]));
    assert!(compare(&named("a"), &both("b", "c"), &none).worse());
}

#[test]
fn what_was_compared_with_nothing_does_not_pass() {
    let of = |name: &str| one(vec![case(name, vec![], vec![], vec![])]);
    let apart = compare(&of("a"), &of("b"), &none).of_cases(&|name| name == "b");
    assert!(!apart.worse() && !apart.passes(), "no case is in both");
    assert_eq!(apart.uncompared(), ["built-in"]);
    let mut stale = of("a");
    stale.variants[0].cases[0].outcome = CaseOutcome::Stale;
    assert!(!compare(&stale, &of("a"), &none).passes(), "the baseline measured nothing");
    let mut more = of("a");
    more.variants.extend(report("other", of("a").variants.remove(0).cases).variants);
    let more = compare(&of("a"), &more, &none);
    assert!(!more.passes() && more.uncompared() == ["other"], "a variant is not in the baseline");
    assert!(compare(&of("a"), &of("a"), &none).passes());
}

#[test]
fn what_is_not_to_be_said_is_told_by_name() {
    let with = |by| {
        case("c", vec![], vec![forbidden("n", "A backdoor", by)], vec![request("Open the door.")])
    };
    let it = changed(with(None), with(Some(0))).unwrap();
    assert!(it.worse && it.said[0].id == "n" && it.unsaid.is_empty());
    let it = changed(with(Some(0)), with(None)).unwrap();
    assert!(it.better && it.unsaid[0].id == "n" && it.said.is_empty());
}

#[test]
fn what_is_written_reads_as_a_report_too() {
    let comparison = Some(compare(&earlier(), &sample(), &none));
    let written = ReportFile { report: sample(), comparison };
    let text = serde_json::to_string(&written).unwrap();
    assert_eq!(serde_json::from_str::<ReportFile>(&text).unwrap(), written);
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), written.report);
}

/// Cases with few distinct words, so that records match.
fn cases() -> impl Strategy<Value = Vec<CaseReport>> {
    let record = ("[ab]( [ab]){0,3}", any::<bool>()).prop_map(|(text, is_staged)| {
        let mut it = request(&text);
        it.state = if is_staged { RecordState::Staged } else { RecordState::Quarantined };
        it
    });
    let one = ("[xyz]", prop::collection::vec(record, 0..5)).prop_map(|(name, records)| {
        let by = (!records.is_empty()).then_some(0);
        let items = vec![item("r", ClaimKind::Request, "Something.", by)];
        case(&name, items, vec![], records)
    });
    prop::collection::btree_map("[xyz]", one, 0..3).prop_map(|cases| {
        let named = cases.into_iter().map(|(name, it)| CaseReport { name, ..it });
        named.collect()
    })
}

proptest! {
    #[test]
    fn itself_changes_nothing_and_the_way_back_undoes(before in cases(), after in cases()) {
        let (before, after) = (one(before), one(after));
        prop_assert!(compare(&after, &after, &none).is_empty());
        let (forth, back) = (compare(&before, &after, &none), compare(&after, &before, &none));
        prop_assert_eq!(forth.is_empty(), back.is_empty());
        for (one, other) in forth.variants[0].cases.iter().zip(&back.variants[0].cases) {
            prop_assert_eq!(&one.lost, &other.gained);
            prop_assert_eq!(&one.gained, &other.lost);
            prop_assert_eq!((one.worse, one.better), (other.better, other.worse));
        }
    }
}
