//! Snapshots of the terminal output, from a handwritten report.

use super::*;
use crate::eval::testing::{earlier, sample};
use crate::eval::{Tolerances, compare};

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn no_tolerance(_: &str) -> Tolerances {
    Tolerances::default()
}

fn table(report: &Report, comparison: Option<&Comparison>, verbose: bool) -> String {
    run_lines(report, comparison, verbose).join("\n")
}

#[test]
fn a_run_is_a_line_a_case_with_what_is_wrong_below() {
    insta::assert_snapshot!("one_variant", plain(&table(&sample(), None, false)));
}

#[test]
fn several_variants_stand_side_by_side() {
    let mut both = sample();
    let mut other = earlier().variants.remove(0);
    other.name = "other-model".to_owned();
    both.variants.push(other);
    insta::assert_snapshot!("two_variants", plain(&table(&both, None, false)));
}

#[test]
fn cases_that_only_one_variant_has_are_listed() {
    let mut both = earlier();
    both.variants.push(Variant { name: "other".to_owned(), ..sample().variants.remove(0) });
    for swapped in [false, true] {
        if swapped {
            both.variants.reverse();
        }
        let text = plain(&table(&both, None, false));
        let row = text.lines().find(|line| line.starts_with("tracker-mirror")).unwrap();
        assert!(row.contains('–') && row.contains("passed"), "{row}");
    }
}

#[test]
fn against_a_baseline_the_very_records_are_told() {
    let changes = compare(&earlier(), &sample(), &no_tolerance);
    let text = table(&sample(), Some(&changes), false);
    let from = text.find("against the baseline").unwrap();
    insta::assert_snapshot!("baseline", plain(&text[from..]));
    let same = compare(&sample(), &sample(), &no_tolerance);
    assert!(table(&sample(), Some(&same), false).contains("nothing changed"));
}

#[test]
fn what_cases_that_passed_missed_is_told_on_demand() {
    let unproven = "unproven: decision MongoDB (ungrounded";
    assert!(!plain(&table(&sample(), None, false)).contains(unproven));
    assert!(plain(&table(&sample(), None, true)).contains(unproven));
}

#[test]
fn nothing_that_a_terminal_obeys_is_printed() {
    let changes = compare(&earlier(), &sample(), &no_tolerance);
    let text = plain(&table(&sample(), Some(&changes), true));
    assert!(!text.contains(|it: char| it.is_control() && it != '\n'), "{text:?}");
}
