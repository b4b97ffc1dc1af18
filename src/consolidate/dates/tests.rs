use super::*;
use proptest::prelude::*;

/// A Wednesday.
const SAID: &str = "2026-11-18T15:04:05Z";

fn said() -> Timestamp {
    Timestamp::of_rfc3339(SAID).unwrap()
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let found: Vec<String> = relative_dates(text, said()).into_iter().map(|it| it.iso).collect();
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
fn other_languages_are_read() {
    check("Gestern ging es, übermorgen nicht mehr", "2026-11-17 2026-11-20");
    check("in zwei Wochen, vor 3 Tagen, nächste Woche", "2026-12-02 2026-11-15 2026-W48");
    check("nächsten Freitag", "2026-11-20");
    check("dün başladık, yarın biter", "2026-11-17 2026-11-19");
    check("iki hafta sonra, 3 gün önce, gelecek cuma", "2026-12-02 2026-11-15 2026-11-20");
    check("ayer y pasado mañana; hace dos días", "2026-11-17 2026-11-20 2026-11-16");
    check("el viernes pasado, la próxima semana", "2026-11-13 2026-W48");
    check("hier nous avons livré, demain on teste", "2026-11-17 2026-11-19");
    check("il y a trois jours, vendredi prochain", "2026-11-15 2026-11-20");
    check("昨日直した。来週の金曜日に出す。3日後", "2026-11-17 2026-11-27 2026-11-21");
}

#[test]
fn what_can_be_read_in_two_ways_is_left_alone() {
    for text in [
        "on Friday",
        "soon",
        "Guten Morgen",
        "por la mañana",
        "hier ist der Fehler",
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
    fn annotating_only_adds_and_only_once(text in "(yesterday|in 2 weeks|dün|昨日|next friday|`| |\\(|x|\\.|é){0,12}", at in any::<i64>()) {
        let once = annotate(&text, Timestamp(at));
        prop_assert_eq!(annotate(&once, Timestamp(at)), once.clone());
        prop_assert!(once.len() >= text.len());
        for it in relative_dates(&text, Timestamp(at)) {
            prop_assert!(text.get(it.bytes).is_some());
        }
    }
}
