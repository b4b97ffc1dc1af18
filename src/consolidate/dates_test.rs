use super::*;
use proptest::prelude::*;

/// A Wednesday.
const SAID: &str = "2026-11-18T15:04:05Z";

fn said() -> Timestamp {
    Timestamp::of_rfc3339(SAID).unwrap()
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let found: Vec<String> = relative_dates(text, said()).into_iter().map(|it| it.1).collect();
    assert_eq!(found.join(" "), expected, "{text}");
    let once = annotate(text, said());
    assert_eq!(annotate(&once, said()), once, "annotating twice changes nothing");
}

#[test]
fn days_are_resolved_against_the_day_they_were_said() {
    check("We shipped it yesterday.", "2026-11-17");
    check("Today and tomorrow", "2026-11-18 2026-11-19");
    check("the day after tomorrow", "2026-11-20");
    check("two weeks ago, in 3 days", "2026-11-04 2026-11-21");
    check("release in two weeks", "2026-12-02");
    check("next Friday, not last Friday", "2026-11-20 2026-11-13");
    check("next Wednesday", "2026-11-25");
    check("next week and last month", "2026-W48 2026-10");
    check("a year ago", "2025-11-18");
}

#[test]
fn what_can_be_read_in_two_ways_is_left_alone() {
    for text in [
        "on Friday",
        "soon",
        "it was built in two days",
        "the migration finished in 3 weeks",
        "the last days",
        "run `yesterday --all`",
        "notes/yesterday.md and next-week.txt",
        "fn today() {}",
        "yesterdays",
    ] {
        check(text, "");
    }
}

#[test]
fn the_words_are_kept_and_the_day_stands_behind_them() {
    assert_eq!(
        annotate("Ship it tomorrow, as said yesterday.", said()),
        "Ship it tomorrow (2026-11-19), as said yesterday (2026-11-17)."
    );
    assert_eq!(annotate("Nothing here.", said()), "Nothing here.");
}

proptest! {
    #[test]
    fn annotating_only_adds_and_only_once(text in "(yesterday|in 2 weeks|昨日|next friday|`| |\\(|x|\\.|é){0,12}", at in any::<i64>()) {
        let once = annotate(&text, Timestamp(at));
        prop_assert_eq!(annotate(&once, Timestamp(at)), once.clone());
        prop_assert!(once.len() >= text.len());
        for it in relative_dates(&text, Timestamp(at)) {
            prop_assert!(text.get(it.0).is_some());
        }
    }
}
