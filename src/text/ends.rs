//! Ends that a text names for what it says: `debug logs until 3 September`, `bis morgen`, `jusqu'au 12 mars`.

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

/// Words before an end.
const UNTIL: [&str; 9] =
    ["until", "till", "til", "bis", "jusqu'au", "jusqu'à", "jusqu’au", "jusqu’à", "hasta"];
/// Parts of these words: few texts have any.
const HINTS: [&str; 6] = ["ntil ", "til", "bis ", "Bis ", "usqu", "asta "];
/// Words for a date that was named before.
const THEN: [&str; 5] = ["then", "dahin", "là", "entonces", "ese"];
/// Words between an end and its date.
const ARTICLES: [&str; 15] = [
    "the", "of", "at", "zum", "zur", "am", "den", "der", "dem", "le", "la", "fin", "el", "de",
    "día",
];
/// Words before an end that turn it into a beginning.
const NOT: [&str; 6] = ["not", "nicht", "erst", "pas", "no", "only"];
const TODAY: [&str; 6] = ["today", "tonight", "heute", "aujourd'hui", "aujourd’hui", "hoy"];
const TOMORROW: [&str; 4] = ["tomorrow", "morgen", "demain", "mañana"];
/// Months, from January, as they are written and shortened.
const MONTHS: [&str; 12] = [
    "january jan januar jänner janvier janv enero ene",
    "february feb februar février févr febrero",
    "march mar märz mär mars marzo",
    "april apr avril avr abril abr",
    "may mai mayo",
    "june jun juni juin junio",
    "july jul juli juillet juil julio",
    "august aug août agosto ago",
    "september sep sept septembre septiembre",
    "october oct oktober okt octobre octubre",
    "november nov novembre noviembre",
    "december dec dezember dez décembre déc diciembre dic",
];
/// Days of the week, from Monday.
const WEEKDAYS: [&str; 7] = [
    "monday mon montag mo lundi lunes",
    "tuesday tue tues dienstag mardi martes",
    "wednesday wed mittwoch mercredi miércoles",
    "thursday thu thurs donnerstag jeudi jueves",
    "friday fri freitag vendredi viernes",
    "saturday sat samstag samedi sábado",
    "sunday sun sonntag dimanche domingo",
];

/// Last day on which `text`, which was said on `said`, holds by its own words. `None` if it names no end, or one for
/// something beside its first clause alone.
pub(crate) fn named_end(text: &str, said: Date) -> Option<Date> {
    if !HINTS.iter().any(|hint| text.contains(hint)) {
        return None;
    }
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let bare = |at: usize| words.get(at).map(|it| it.trim_matches([',', ';', ':', '(', ')', '"']));
    let at = (0..words.len()).find(|at| bare(*at).is_some_and(|it| UNTIL.contains(&it)))?;
    let before = words.get(..at)?;
    if before.last().is_some_and(|it| NOT.contains(it)) {
        return None;
    }
    let rest = || (at + 1..words.len()).filter_map(bare);
    if rest().next().is_some_and(|it| THEN.contains(&it)) {
        let from = |start: usize| (start..at).filter_map(bare).collect::<Vec<_>>();
        return (0..at).rev().find_map(|start| date_at(&from(start), said));
    }
    let is_beside = before.iter().any(|it| it.ends_with([',', ';']));
    let rest: Vec<&str> = rest().skip_while(|it| ARTICLES.contains(it)).collect();
    if is_beside {
        return None;
    }
    let of_month = || {
        let end = usize::from(rest.first().is_some_and(|it| ["end", "ende"].contains(it)));
        let of = usize::from(rest.get(end) == Some(&"of"));
        let month = i8::try_from(index(&MONTHS, rest.get(end + of)?)? + 1).ok()?;
        let year = said.year() + i16::from(month < said.month());
        Some(Date::new(year, month, 1).ok()?.last_of_month())
    };
    date_at(&rest, said).or_else(of_month)
}

/// The first date on or after `said` with which `words` begin.
fn date_at(words: &[&str], said: Date) -> Option<Date> {
    let first = *words.first()?;
    let rest = words.get(1..)?;
    if TODAY.contains(&first) {
        return Some(said);
    }
    if TOMORROW.contains(&first) {
        return said.checked_add(1.day()).ok();
    }
    if let Ok(whole) = first.trim_end_matches('.').parse::<Date>() {
        return Some(whole);
    }
    if let Some(weekday) = index(&WEEKDAYS, first) {
        let named = rest.iter().take_while(|it| ARTICLES.contains(it)).count();
        let weekday = Weekday::from_monday_zero_offset(i8::try_from(weekday).ok()?).ok()?;
        return date_at(rest.get(named..)?, said).or_else(|| said.nth_weekday(1, weekday).ok());
    }
    let dotted: Vec<i16> = first.split('.').filter_map(|it| it.parse().ok()).collect();
    if let [day, month, year @ ..] = dotted.as_slice() {
        return dated(*day, *month, year.first().copied(), said);
    }
    let of_day = || {
        let rest = rest.get(usize::from(rest.first() == Some(&"de"))..)?;
        Some((number(first)?, index(&MONTHS, rest.first()?)?, rest.get(1)))
    };
    let of_month = || Some((number(rest.first()?)?, index(&MONTHS, first)?, rest.get(1)));
    let (day, month, year) = of_day().or_else(of_month)?;
    let year = year.and_then(|it| it.parse().ok()).filter(|it| (1970..=9999).contains(it));
    dated(day, i16::try_from(month + 1).ok()?, year, said)
}

/// Number of a day: `3`, `3.` or `3rd`.
fn number(word: &str) -> Option<i16> {
    let end = word.find(|it: char| !it.is_ascii_digit()).unwrap_or(word.len());
    let (digits, suffix) = word.split_at(end);
    matches!(suffix, "" | "." | "st" | "nd" | "rd" | "th" | "er").then_some(())?;
    digits.parse().ok()
}

fn index(lists: &[&str], word: &str) -> Option<usize> {
    let word = word.trim_end_matches('.');
    lists.iter().position(|list| list.split(' ').any(|it| it == word))
}

fn dated(day: i16, month: i16, year: Option<i16>, said: Date) -> Option<Date> {
    let (day, month) = (i8::try_from(day).ok()?, i8::try_from(month).ok()?);
    let in_year = |year: i16| Date::new(year, month, day).ok();
    match year {
        Some(short @ 0..100) => in_year(2000 + short),
        Some(year) => in_year(year),
        None => in_year(said.year()).filter(|it| said <= *it).or_else(|| in_year(said.year() + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    #[test]
    fn an_end_is_a_date_after_a_word_for_until_in_the_first_clause() {
        let said = date(2026, 8, 27);
        for (text, expected) in [
            ("Until 3 September also watering at 19-20, then only mornings", Some((2026, 9, 3))),
            ("Debug logs till tomorrow evening, then info again", Some((2026, 8, 28))),
            ("Uwe bleibt bis zum 5. Oktober Wasserwart", Some((2026, 10, 5))),
            ("Debug bis 03.09. an", Some((2026, 9, 3))),
            ("Solo lectura hasta el 12 de marzo", Some((2027, 3, 12))),
            ("Tarif réduit jusqu'au 1er octobre 2026", Some((2026, 10, 1))),
            ("Freeze until Friday, 4 September", Some((2026, 9, 4))),
            ("Freeze until friday", Some((2026, 8, 28))),
            ("Free parking until the end of October", Some((2026, 10, 31))),
            ("Free parking until Sept. 3rd", Some((2026, 9, 3))),
            ("No deploys until 2026-12-01", Some((2026, 12, 1))),
            (
                "South gets its controllers on 12 September; until then only north",
                Some((2026, 9, 12)),
            ),
            ("Aylin has the keys; Uwe helps until 5 October", None),
            ("The move does not start, not until 5 October", None),
            ("Wait until the tests pass", None),
            ("Keep 30 copies, until 2 of them fail", None),
            ("Ask before 3 September", None),
            ("until 31 Februar", None),
            ("bis", None),
        ] {
            let expected = expected.map(|(year, month, day)| date(year, month, day));
            assert_eq!(named_end(text, said), expected, "{text}");
        }
    }
}
