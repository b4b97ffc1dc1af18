//! Ends that a text names for what it says: `debug logs until 3 September`, `bis morgen`, `jusqu'au 12 mars`.

use crate::domain::{Claim, ClaimKind, Timestamp};
use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;

/// Words before an end.
const UNTIL: [&str; 9] =
    ["until", "till", "til", "bis", "jusqu'au", "jusqu'à", "jusqu’au", "jusqu’à", "hasta"];
/// The same, if nothing but a date follows: not `through 3.9.27`, `through the 2nd gate`, `through the May invoices`.
const THROUGH: &str = "through";
/// Beginnings of German words with which `bis` is a deadline: `bis Freitag fertig`.
const DEADLINES: [&str; 18] = [
    "umstell", "umgestellt", "umzieh", "umgezogen", "wechsel", "migrier", "liefer", "fertig",
    "erledig", "abgeb", "abgegeben", "einreich", "antwort", "entscheid", "kündig", "zahl",
    "bezahl", "schick",
];
/// Several words for one of them.
const INCLUDING: &str = "up to and including";
/// Parts of these words in either case. Few texts have any, and the others need not be split.
const HINTS: [&str; 8] =
    ["ntil ", "til", "bis ", "Bis ", "usqu", "asta ", "hrough ", " to and including"];
/// Words between an end and its date.
const ARTICLES: [&str; 19] = [
    "the", "of", "at", "zum", "zur", "am", "den", "der", "dem", "einschließlich", "le", "la", "el",
    "de", "día", "que", "die", "das", "het",
];
/// Words for a day of the next week, before the day or behind it.
const NEXT: [&str; 7] = ["next", "nächsten", "nächster", "nächste", "prochain", "próximo", "viene"];
/// Words for the end of a month, and between it and the month.
const END: [&str; 3] = ["end", "ende", "fin"];
const OF_END: [&str; 5] = ["of", "the", "des", "du", "de"];
const MONTH: [&str; 4] = ["month", "monats", "mois", "mes"];
const AFTER: [&str; 4] = ["after", "nach", "danach", "après"];
const WEEK: [&str; 5] = ["week", "woche", "semaine", "semana", "inclus"];
/// Words directly before an end that make it a beginning.
const NOT: [&str; 5] = ["not", "nicht", "erst", "pas", "no"];
/// Words of a span, or of another clause, of which alone an end may be.
const OF_A_PART: [&str; 10] =
    ["from", "between", "von", "zwischen", "entre", "desde", "and", "und", "et", "y"];
/// Words of what comes again and again.
const EACH: [&str; 16] = [
    "every", "each", "annually", "annual", "yearly", "monthly", "weekly", "daily", "jede", "jeden",
    "jedes", "jährlich", "chaque", "tous", "cada", "todos",
];
/// Words after an end that begin what holds from then on.
const FROM_THEN: [&str; 12] = [
    "then", "after", "afterwards", "thereafter", "now", "dann", "danach", "jetzt", "puis",
    "ensuite", "luego", "después",
];
/// Maximum time from a text to the end that it names, in days: a day that is just over would be read as that of the next year.
const END_DAYS_MAX: i32 = 300;
/// Words before the bare number of a day.
const TO_DAY: [&str; 13] =
    ["the", "den", "am", "le", "el", "il", "on", "to", "until", "bis", "au", "al", "by"];
/// Time within which the name of a day of the week means one day.
const NEAR_DAYS_MAX: i32 = 15;
const TODAY: [&str; 6] = ["today", "tonight", "heute", "aujourd'hui", "aujourd’hui", "hoy"];
const TOMORROW: [&str; 5] = ["tomorrow", "morgen", "demain", "mañana", "domani"];
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
    "monday mon montag mo lundi lunes lunedì maandag",
    "tuesday tue tues dienstag mardi martes martedì dinsdag",
    "wednesday wed mittwoch mercredi miércoles mercoledì woensdag",
    "thursday thu thurs donnerstag jeudi jueves giovedì donderdag",
    "friday fri freitag vendredi viernes venerdì vrijdag",
    "saturday sat samstag samedi sábado sabato zaterdag",
    "sunday sun sonntag dimanche domingo domenica zondag",
];

/// Last day on which a decision that was made at `at` holds by its own words; `None` for other claims.
pub(crate) fn decision_end(claim: &Claim, at: Option<Timestamp>) -> Option<Date> {
    let at = at.filter(|_| claim.kind() == ClaimKind::Decision)?;
    named_end(claim.headline(), at.date_in(&TimeZone::UTC))
}

/// True if `text`, said on `said`, names `day`: as a date, by its number, as today or tomorrow, by its day of the week or the
/// end of the week if it is near, or as the end of its month.
pub(crate) fn names_day(text: &str, day: Date, said: Date) -> bool {
    let days = day.since(said).map_or(-1, |it| it.get_days());
    let (text, week_day) = (text.to_lowercase(), day.weekday().to_monday_zero_offset());
    let words: Vec<&str> = bare(text.split_whitespace());
    let words: Vec<&str> = words.iter().map(|it| it.trim_end_matches(['!', '?'])).collect();
    let (is_near, is_last) = (days < NEAR_DAYS_MAX, day == day.last_of_month());
    let is_month = |it: usize| i8::try_from(it + 1) == Ok(day.month());
    let is_date = |word: &str| word.trim_end_matches('.').parse().is_ok_and(|it: Date| it == day);
    let names = |at: usize| {
        let word = words[at].trim_end_matches('.');
        let is_week_day = || index(&WEEKDAYS, word) == usize::try_from(week_day).ok();
        is_near && (WEEK.contains(&word) || is_week_day())
            || TODAY.contains(&word) && days == 0
            || TOMORROW.contains(&word) && days == 1
            || is_last && (MONTH.contains(&word) || index(&MONTHS, word).is_some_and(is_month))
            || is_number_of(day, &words, at)
    };
    words.iter().any(|word| is_date(word)) && days >= 0
        || (0..=END_DAYS_MAX).contains(&days) && (0..words.len()).any(names)
}

/// True if the word at this place is the number of `day`, as `12th`, `12.`, `6.8.`, `12 September` or `to the 12`, and not that of
/// another month, of an hour or of an amount.
fn is_number_of(day: Date, words: &[&str], at: usize) -> bool {
    let word = words[at];
    let digits = word.find(|it| !is_digit(it)).map_or(word, |end| &word[..end]);
    if digits.parse() != Ok(day.day()) {
        return false;
    }
    let rest = &word[digits.len()..];
    let month = rest.trim_start_matches(['.', '/']).trim_end_matches('.');
    if let Some(month) = month.split(['.', '/']).next().and_then(|it| it.parse::<i8>().ok()) {
        return rest.starts_with(['.', '/']) && month == day.month();
    }
    let beside = [at.wrapping_sub(1), at + 1, at + 2].map(|at| words.get(at).copied());
    let [before, after, behind] = beside.map(Option::unwrap_or_default);
    let after = if OF_END.contains(&after) { behind } else { after };
    let months = [before, after].map(|it| index(&MONTHS, it));
    match months.into_iter().flatten().next() {
        Some(month) => i8::try_from(month + 1) == Ok(day.month()),
        // `12 tickets` are no day.
        None if rest.is_empty() => TO_DAY.contains(&before),
        None => number(word).is_some(),
    }
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

/// True if a lower-case word belongs to a day: `friday`, `october`, `tomorrow`, `end`.
pub(crate) fn is_of_day(word: &str) -> bool {
    index(&WEEKDAYS, word).or(index(&MONTHS, word)).is_some()
        || [&TODAY[..], &TOMORROW, &END].iter().any(|list| list.contains(&word))
}

/// True if a sentence or a clause ends with `word`, and it is no date: `7.` and `Nov.`, but not `November.`
fn ends_sentence(word: &str) -> bool {
    let is_short = word.chars().count() < 6 && index(&MONTHS, word).is_some();
    let is_date = is_short || word.starts_with(is_digit);
    word.ends_with(';') || word.ends_with('.') && !is_date
}

fn bare<'t>(words: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    words.map(|it| it.trim_matches([',', ';', ':', '(', ')', '"'])).collect()
}

/// Last day on which the whole of `text`, said on `said`, holds by its own words. `None` if it names no end, or if that is the
/// end of a part.
fn named_end(text: &str, said: Date) -> Option<Date> {
    if !HINTS.iter().any(|hint| text.contains(hint)) {
        return None;
    }
    let text = text.to_lowercase().replace(INCLUDING, THROUGH);
    let marked: Vec<&str> = text.split_whitespace().collect();
    let words = bare(marked.iter().copied());
    let first = |is_it: fn(&&str) -> bool| words.iter().position(is_it);
    let until = first(|it| UNTIL.contains(it));
    let at = until.or_else(|| first(|it| *it == THROUGH))?;
    let (before, rest) = (words.get(..at)?, words.get(at + 1..)?);
    let (marked_before, marked_rest) = (marked.get(..at)?, marked.get(at + 1..)?);
    let ends_clause =
        |it: &&str| it.ends_with([',', ';', ':', '.', ')']) || it.starts_with(['(', '–', '-']);
    let is_span = |it: &str| {
        it.starts_with(is_digit) || index(&WEEKDAYS, it).or(index(&MONTHS, it)).is_some()
    };
    let is_of_a_part = marked_before.iter().any(ends_clause)
        || before.iter().any(|it| OF_A_PART.contains(it))
        || before.last().is_some_and(|it| NOT.contains(it) || is_span(it))
        || words.iter().any(|it| EACH.contains(it))
        || rest.iter().any(|it| FROM_THEN.contains(it))
        || marked_rest.iter().rev().skip(1).any(|it| ends_sentence(it))
        // `wir stellen bis Freitag um`
        || words.get(at) == Some(&"bis")
            && (words.last() == Some(&"um")
                || words.iter().any(|it| DEADLINES.iter().any(|begins| it.starts_with(begins))));
    if is_of_a_part {
        return None;
    }
    let dated: Vec<&str> = rest.iter().copied().skip_while(|it| ARTICLES.contains(it)).collect();
    let word = *dated.first()?;
    let is_named = (word.len() > 3 || word.chars().all(is_digit)) && !word.contains('.');
    let is_of_date = |it: &&str| {
        is_span(it)
            || [&NEXT[..], &END, &OF_END, &MONTH, &WEEK].iter().any(|list| list.contains(it))
    };
    if until.is_none() && !(is_named && dated.iter().all(is_of_date)) {
        return None;
    }
    let end = date_at(&dated, said).or_else(|| month_at(&dated, said));
    end.or_else(|| until.and_then(|_| day_at(word, said))).filter(|end| said <= *end)
}

/// Last day of the month with which `words` begin, or its end.
fn month_at(words: &[&str], said: Date) -> Option<Date> {
    let end = words.iter().take_while(|it| END.contains(it) || OF_END.contains(it)).count();
    let name = *words.get(end)?;
    if end > 0 && MONTH.contains(&name.trim_end_matches('.')) {
        let is_later = words.get(end + 1).is_some_and(|it| AFTER.contains(it));
        return (!is_later).then(|| said.last_of_month());
    }
    let month = i8::try_from(index(&MONTHS, name)? + 1).ok()?;
    // "Jan" and "Mar" alone are names of people.
    (name.len() > 3 || matches!(name, "may" | "mai")).then_some(())?;
    let year = words.get(end + 1).and_then(|it| it.parse().ok());
    let year = year.filter(|it| (1970..=9999).contains(it));
    let year = year.unwrap_or(said.year() + i16::from(month < said.month()));
    Some(Date::new(year, month, 1).ok()?.last_of_month())
}

/// The first day with this number on or after `said`: `14th`.
fn day_at(word: &str, said: Date) -> Option<Date> {
    let is_ordinal = word.trim_end_matches('.').ends_with(['t', 'd', 'h', 'r']);
    let day = i8::try_from(number(word).filter(|_| is_ordinal)?).ok()?;
    let next = said.first_of_month().checked_add(1.month()).ok()?;
    let both = [said, next].map(|it| Date::new(it.year(), it.month(), day).ok());
    both.into_iter().flatten().find(|it| said <= *it)
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
    if let (true, Some(day)) = (NEXT.contains(&first), rest.first()) {
        return weekday_after(end_of_week(said)?, index(&WEEKDAYS, day)?);
    }
    if let Some(weekday) = index(&WEEKDAYS, first) {
        let named = rest.iter().take_while(|it| ARTICLES.contains(it)).count();
        let rest = rest.get(named..)?;
        let is_next = rest.first().is_some_and(|it| NEXT.contains(&it.trim_end_matches('.')))
            && rest.get(1).is_none_or(|it| WEEK.contains(&it.trim_end_matches('.')));
        let from = if is_next { end_of_week(said)? } else { said };
        return date_at(rest, said).or_else(|| weekday_after(from, weekday));
    }
    if let [day, month, year] = first.split('.').collect::<Vec<_>>()[..] {
        let year = match (year.len(), year.parse::<i16>()) {
            (0, _) => None,
            (2, Ok(short)) => Some(2000 + short),
            (4, Ok(year)) => Some(year),
            _ => return None,
        };
        return in_year(day.parse().ok()?, month.parse().ok()?, year, said);
    }
    let of_day = || {
        let rest = rest.get(usize::from(rest.first() == Some(&"de"))..)?;
        Some((number(first)?, index(&MONTHS, rest.first()?)?, rest.get(1)))
    };
    let of_month = || Some((number(rest.first()?)?, index(&MONTHS, first)?, rest.get(1)));
    let (day, month, year) = of_day().or_else(of_month)?;
    let year = year.and_then(|it| it.parse().ok()).filter(|it| (1970..=9999).contains(it));
    in_year(i8::try_from(day).ok()?, i8::try_from(month + 1).ok()?, year, said)
}

/// The first day of the week with this index that follows `date`.
fn weekday_after(date: Date, weekday: usize) -> Option<Date> {
    let weekday = Weekday::from_monday_zero_offset(i8::try_from(weekday).ok()?).ok()?;
    date.nth_weekday(1, weekday).ok()
}

/// The Sunday on or after `date`.
fn end_of_week(date: Date) -> Option<Date> {
    date.checked_add((6 - date.weekday().to_monday_zero_offset()).days()).ok()
}

/// Number of a day: `3`, `3.` or `3rd`.
fn number(word: &str) -> Option<i16> {
    let word = word.trim_end_matches('.');
    let end = word.find(|it: char| !is_digit(it)).unwrap_or(word.len());
    let (digits, suffix) = word.split_at(end);
    matches!(suffix, "" | "st" | "nd" | "rd" | "th" | "er").then_some(())?;
    digits.parse().ok()
}

fn index(lists: &[&str], word: &str) -> Option<usize> {
    let word = word.trim_end_matches('.');
    lists.iter().position(|list| list.split(' ').any(|it| it == word))
}

/// The date in `year`, or else the first one on or after `said`.
fn in_year(day: i8, month: i8, year: Option<i16>, said: Date) -> Option<Date> {
    let of = |year: i16| Date::new(year, month, day).ok();
    match year {
        Some(year) => of(year),
        None => of(said.year()).filter(|it| said <= *it).or_else(|| of(said.year() + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    /// Year, month and day, if there is an end.
    type Expected = Option<(i16, i8, i8)>;

    /// Ends of texts that are said on 27 August 2026, a Thursday.
    fn check(rows: &[(&str, Expected)]) {
        for (text, expected) in rows {
            let expected = expected.map(|(year, month, day)| date(year, month, day));
            assert_eq!(named_end(text, date(2026, 8, 27)), expected, "{text}");
        }
    }

    #[test]
    fn a_day_is_named_by_its_number_or_its_name() {
        // Said on 27 August 2026, a Thursday.
        let is_named = |text: &str, year, month, day| {
            names_day(text, date(year, month, day), date(2026, 8, 27))
        };
        for (text, month, day) in [
            ("the fair is on the 12th", 9, 12),
            ("der Elektriker kommt am 6.10. wegen der Lampen", 10, 6),
            ("the release is on 2026-09-12, then nothing", 9, 12),
            ("Lena starts on Monday", 8, 31),
            ("the pump comes tomorrow", 8, 28),
            ("closed until the end of the week", 8, 30),
            ("the offer is good until the end of October", 10, 31),
            ("Ute is away from 8 to 12 October", 10, 12),
            ("the pump comes on 12 October.", 10, 12),
            ("the review is on 2026-09-12.", 9, 12),
            ("the pump comes tomorrow.", 8, 28),
            ("la pompa arriva domani", 8, 28),
        ] {
            assert!(is_named(text, 2026, month, day), "{text}");
        }
        for (text, year, month, day) in [
            ("the fair is on the 12th", 2026, 9, 13),
            ("the fair is on the 12th", 2026, 8, 12),
            ("the fair is on the 12th", 2027, 9, 12),
            ("Lena starts on Monday", 2026, 9, 1),
            ("Lena starts on Monday", 2026, 9, 14),
            ("the pump comes tomorrow", 2026, 8, 29),
            ("the pump comes some day", 2026, 8, 28),
            ("the fair is on 12 September", 2026, 10, 12),
            ("der Elektriker kommt am 6.10. wegen der Lampen", 2026, 11, 6),
            ("12 tickets are booked", 2026, 9, 12),
            ("the call is at 10:30", 2026, 9, 10),
            ("the report is weekly, never on a weekend", 2026, 8, 30),
            ("the offer is good until the end of October", 2026, 9, 30),
        ] {
            assert!(!is_named(text, year, month, day), "{text} {day}");
        }
    }

    #[test]
    fn an_end_is_a_date_after_a_word_for_until() {
        check(&[
            ("Until 3 September also watering at 19-20", Some((2026, 9, 3))),
            ("Debug logs till tomorrow evening", Some((2026, 8, 28))),
            ("Uwe bleibt bis zum 5. Oktober Wasserwart", Some((2026, 10, 5))),
            ("Debug bis 03.09. an", Some((2026, 9, 3))),
            ("Debug bis 3.9.27", Some((2027, 9, 3))),
            ("Solo lectura hasta el 12 de marzo", Some((2027, 3, 12))),
            ("Tarif réduit jusqu'au 1er octobre 2026", Some((2026, 10, 1))),
            ("Freeze until Friday, 4 September", Some((2026, 9, 4))),
            ("Debug logs only until friday", Some((2026, 8, 28))),
            ("Free parking until the end of October", Some((2026, 10, 31))),
            ("Free parking until October 2027", Some((2027, 10, 31))),
            ("Free parking until Sept. 3rd", Some((2026, 9, 3))),
            ("No deploys until 2026-12-01", Some((2026, 12, 1))),
            ("No deploys until the 14th, the rota is live", Some((2026, 9, 14))),
            ("The juniors get no mail till the 28th.", Some((2026, 8, 28))),
            ("Debug logs through 3 September", Some((2026, 9, 3))),
            ("Go through the logs until 3 September", Some((2026, 9, 3))),
            ("No deploys through Friday", Some((2026, 8, 28))),
            ("Free parking through October 2027", Some((2027, 10, 31))),
            ("No deploys up to and including 3 September", Some((2026, 9, 3))),
            ("Debug bis einschließlich 3. September", Some((2026, 9, 3))),
            ("Lecture seule jusqu'au 12 octobre inclus", Some((2026, 10, 12))),
            // The next week, where both weeks may be meant.
            ("No deploys until next Friday", Some((2026, 9, 4))),
            ("No deploys until Friday next week", Some((2026, 9, 4))),
            ("Debug bis nächsten Freitag", Some((2026, 9, 4))),
            ("Lecture seule jusqu'à vendredi prochain.", Some((2026, 9, 4))),
            ("Solo lectura hasta el viernes que viene", Some((2026, 9, 4))),
            ("Solo lectura hasta el próximo lunes", Some((2026, 8, 31))),
            ("Debug bis Ende September", Some((2026, 9, 30))),
            ("Debug until the end of the month", Some((2026, 8, 31))),
            ("Debug until end of month.", Some((2026, 8, 31))),
            ("Debug bis Ende des Monats", Some((2026, 8, 31))),
            ("Lecture seule jusqu'à la fin du mois", Some((2026, 8, 31))),
            ("Solo lectura hasta fin de mes", Some((2026, 8, 31))),
            ("No deploys until Friday, next window is Monday", Some((2026, 8, 28))),
            ("Orders from 3 to 14 September get 10 % off", None),
            ("The limit goes from 10 to 12", None),
            ("Ann is away from 3 to 14 September", None),
        ]);
    }

    #[test]
    fn a_deadline_and_the_end_of_a_part_are_no_end() {
        check(&[
            ("Wir stellen bis 20. Oktober auf Postgres um", None),
            ("Die Umfrage ist bis Freitag fertig", None),
            ("Aylin has the keys; Uwe helps until 5 October", None),
            ("Use Postgres (MySQL stays readable until 5 October)", None),
            ("Use Postgres. Until Friday MySQL stays readable", None),
            ("Use Postgres and keep the dump until 3 September", None),
            ("60 s on staging until 3 September; production keeps its 15", None),
            ("Debug logs till tomorrow, then info again", None),
            ("Until today the interface spoke XML, from now on JSON", None),
            ("The move does not start, not until 5 October", None),
            ("Keep the shim and the flag through 3 September", None),
            ("Frozen through Friday every week", None),
            ("Open Monday through Friday", None),
        ]);
    }

    #[test]
    fn what_is_no_date_is_no_end() {
        check(&[
            ("Go through the September invoices by hand", None),
            ("Walk new hires through Monday standup", None),
            ("Support versions up to and including 3.9.27", None),
            ("Frozen up to and including the 14th sprint", None),
            ("Frozen until the end of the month after next", None),
            ("What the job goes through may fail", None),
            ("Deliver through the 2nd gate", None),
            ("Patch all versions through 3.9.27", None),
            ("Cycle through sun and rain", None),
            ("Push the review through tomorrow", None),
            ("Frozen until next month", None),
            ("Frozen until the end of next month", None),
            ("Keep the shim until the next release", None),
            ("Lecture seule jusqu'au mois prochain", None),
            ("Deploys only Mon till Thu", None),
            ("Heizung läuft von Oktober bis April", None),
            ("Answers from 9 until 17", None),
            ("Frozen until Friday every week", None),
            ("Wait until the tests pass", None),
            ("Keep 30 copies, until 2 of them fail", None),
            ("Free parking until 3 of them are sold", None),
            ("Keep the shim until 4.12.0 is out", None),
            ("Keep the shim until 3.1", None),
            ("Timeout bis 2.5 Sekunden", None),
            ("Cache bis 8.10 Uhr", None),
            ("Bis Jan zurück ist, kein Release", None),
            ("The old one held until 2026-01-02", None),
            ("Ask before 3 September", None),
            ("until 31 Februar", None),
            ("bis", None),
        ]);
    }
}
