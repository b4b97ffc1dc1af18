//! The words in which people tell a day relative to today, language by language.

use jiff::civil::Weekday;
use regex::{Captures, Regex, RegexSet};
use std::ops::Range;
use std::sync::LazyLock;

/// What a day is counted in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Unit {
    Day,
    Week,
    Month,
    Year,
}

/// What words mean, seen from the day on which they were said.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Meaning {
    /// The day so many units away.
    Away(i64, Unit),
    /// The whole unit so many away.
    Whole(i64, Unit),
    /// The first such weekday after today, or the last before it.
    Weekday(i32, Weekday),
    /// That weekday of the week so many away, weeks beginning on Monday.
    WeekdayOfWeek(i64, Weekday),
}

/// How a row's words become a meaning.
#[derive(Clone, Copy)]
enum Read {
    /// Always the same.
    Fixed(Meaning),
    /// So many of a unit, groups `n` and `u`, forwards or backwards.
    Count(i64),
    /// A weekday, group `d`, after or before today.
    Weekday(i32),
    /// A weekday of the week so many away.
    OfWeek(i64),
    /// A whole unit, group `u`, so many away.
    Whole(i64),
}

/// Numbers that are written as words; digits besides.
const NUMBER: &str = r"(?P<n>\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|ein(?:em|er|e|en)?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|bir|iki|üç|dört|beş|alt[ıi]|yedi|sekiz|dokuz|on|una?|un|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|une|deux|trois|quatre|cinq|six|sept|huit|neuf|dix)";
/// Days, weeks, months and years in five languages.
const UNIT: &str = r"(?P<u>days?|weeks?|months?|years?|tag(?:en?)?|wochen?|monat(?:en?)?|jahr(?:en?)?|gün|hafta|ay|yıl|días?|dias?|semanas?|mes(?:es)?|años?|jours?|semaines?|mois|ans?|années?)";
/// Weekdays in five languages.
const WEEKDAY: &str = r"(?P<d>monday|tuesday|wednesday|thursday|friday|saturday|sunday|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|pazartesi|salı|çarşamba|perşembe|cumartesi|cuma|pazar|lunes|martes|miércoles|jueves|viernes|sábado|domingo|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)";

/// Patterns and how they are read. `N`, `U` and `D` stand for the three lists; blanks stand for any blanks.
const ROWS: &[(&str, Read)] = &[
    (
        r"\b(?:day before yesterday|vorgestern|evvelsi gün|anteayer|avant-hier)\b",
        Read::Fixed(Meaning::Away(-2, Unit::Day)),
    ),
    (
        r"\b(?:day after tomorrow|übermorgen|öbür gün|pasado mañana|après-demain)\b",
        Read::Fixed(Meaning::Away(2, Unit::Day)),
    ),
    (r"\b(?:yesterday|gestern|dün|ayer)\b", Read::Fixed(Meaning::Away(-1, Unit::Day))),
    (r"\b(?:today|heute|bugün|hoy|aujourd['’]hui)\b", Read::Fixed(Meaning::Away(0, Unit::Day))),
    (r"\b(?:tomorrow|morgen|yar[ıI]n|mañana|demain)\b", Read::Fixed(Meaning::Away(1, Unit::Day))),
    (r"\bhier\b", Read::Fixed(Meaning::Away(-1, Unit::Day))),
    (r"(?:一昨日|おととい)", Read::Fixed(Meaning::Away(-2, Unit::Day))),
    (r"(?:明後日|あさって)", Read::Fixed(Meaning::Away(2, Unit::Day))),
    (r"昨日", Read::Fixed(Meaning::Away(-1, Unit::Day))),
    (r"今日", Read::Fixed(Meaning::Away(0, Unit::Day))),
    (r"明日", Read::Fixed(Meaning::Away(1, Unit::Day))),
    (r"\bN U ago\b|\bhace N U\b|\bvor N U\b|\bil y a N U\b|\bN U önce\b", Read::Count(-1)),
    (r"\bin N U\b|\bN U from now\b|\bdentro de N U\b|\bdans N U\b|\bN U sonra\b", Read::Count(1)),
    (r"(?P<n>\d{1,3})(?P<u>日|週間|[ヶか]月|年)前", Read::Count(-1)),
    (r"(?P<n>\d{1,3})(?P<u>日|週間|[ヶか]月|年)後", Read::Count(1)),
    (
        r"\b(?:next|(?:am )?(?:nächste[nr]?|kommende[nr]?)|gelecek|önümüzdeki|(?:el )?próximo) D\b|\bD (?:prochain|que viene)\b",
        Read::Weekday(1),
    ),
    (
        r"\b(?:last|letzte[nr]?|vergangene[nr]?|geçen) D\b|\bD (?:dernier|pasado)\b",
        Read::Weekday(-1),
    ),
    (r"次の(?P<d>[月火水木金土日])曜", Read::Weekday(1)),
    (r"来週の?(?P<d>[月火水木金土日])曜", Read::OfWeek(1)),
    (r"先週の?(?P<d>[月火水木金土日])曜", Read::OfWeek(-1)),
    (
        r"\b(?:next|nächste[ns]?|gelecek|próxim[oa]) U\b|\bU (?:prochaine?|que viene)\b",
        Read::Whole(1),
    ),
    (r"\b(?:last|letzte[ns]?|geçen) U\b|\bU (?:derni(?:er|ère)|pasad[oa])\b", Read::Whole(-1)),
    (r"来(?P<u>週|月|年)", Read::Whole(1)),
    (r"(?:先(?P<u>週|月)|昨(?P<v>年))", Read::Whole(-1)),
];

/// Words before a date that give it another meaning: `heute Morgen` is a morning, `built in two days` a duration.
const NOT_BEHIND: &[&str] = &[
    "am", "heute", "guten", "jeden", "diesen", "gestern", "la", "esta", "cada", "every", "each",
    "within", "took", "done", "ran", "run", "runs", "built", "finished", "once", "twice", "times",
    "per",
];
/// French words; without one of them `hier` is German and means here.
const FRENCH: &[&str] = &[
    "nous", "avons", "les", "des", "est", "était", "été", "vous", "je", "il", "elle", "pas", "une",
    "qui", "le", "du", "sur", "dans", "avec", "on", "ils", "a",
];

struct Table {
    any: RegexSet,
    rows: Vec<(Regex, Read)>,
}

static TABLE: LazyLock<Option<Table>> = LazyLock::new(|| {
    let pattern = |row: &str| {
        // One pattern may hold two forms; a group may be named once only, so each form is a pattern of its own.
        let row = row.replace("N", NUMBER).replace("U", UNIT).replace("D", WEEKDAY);
        format!("(?i){}", row.replace(' ', r"\s+"))
    };
    let forms =
        ROWS.iter().flat_map(|(row, read)| forms(row).into_iter().map(move |it| (it, *read)));
    let patterns: Vec<(String, Read)> = forms.map(|(row, read)| (pattern(row), read)).collect();
    let any = RegexSet::new(patterns.iter().map(|(pattern, _)| pattern)).ok()?;
    let rows = patterns.iter().map(|(pattern, read)| Some((Regex::new(pattern).ok()?, *read)));
    Some(Table { any, rows: rows.collect::<Option<_>>()? })
});

/// The forms of a row: what stands between bars that are in no bracket.
fn forms(row: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0_i32, 0, Vec::new());
    for (at, byte) in row.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'|' if depth == 0 => {
                found.push(row.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(row.get(start..).unwrap_or_default());
    found
}

/// Every stretch of `text` that tells a day, and what it means; they may overlap.
pub(super) fn meanings(text: &str) -> Vec<(Range<usize>, Meaning)> {
    let Some(table) = TABLE.as_ref() else { return Vec::new() };
    let rows = table.any.matches(text);
    let mut found = Vec::new();
    for (regex, read) in rows.iter().filter_map(|row| table.rows.get(row)) {
        for groups in regex.captures_iter(text) {
            let Some(whole) = groups.get(0) else { continue };
            let fits = fits(text, whole.start(), whole.as_str());
            if let Some(meaning) = meaning(&groups, *read).filter(|_| fits) {
                found.push((whole.range(), meaning));
            }
        }
    }
    found
}

/// Whether the words are meant as a date where they stand.
fn fits(text: &str, start: usize, words: &str) -> bool {
    let before = text.get(..start).unwrap_or_default().trim_end();
    let last = before.rsplit(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
    let last = last.to_lowercase();
    let first = words.split_whitespace().next().unwrap_or_default().to_lowercase();
    if first == "hier" {
        let mut all = text.split(|letter: char| !letter.is_alphanumeric());
        return all.any(|word| FRENCH.contains(&word.to_lowercase().as_str()));
    }
    let wary = matches!(first.as_str(), "morgen" | "mañana" | "in" | "dans");
    let spent = first == "in" && last.ends_with("ed");
    !(wary && (NOT_BEHIND.contains(&last.as_str()) || spent))
}

fn meaning(groups: &Captures<'_>, read: Read) -> Option<Meaning> {
    let group = |name: &str| groups.name(name).map(|it| it.as_str().to_lowercase());
    match read {
        Read::Fixed(meaning) => Some(meaning),
        Read::Count(sign) => {
            let (count, unit) = (number(&group("n")?)?, unit(&group("u")?)?);
            Some(Meaning::Away(sign * count, unit))
        }
        Read::Weekday(count) => Some(Meaning::Weekday(count, weekday(&group("d")?)?)),
        Read::OfWeek(count) => Some(Meaning::WeekdayOfWeek(count, weekday(&group("d")?)?)),
        Read::Whole(count) => {
            let unit = unit(&group("u").or_else(|| group("v"))?)?;
            // `the last days` and `the next weeks` name no day.
            (unit != Unit::Day).then_some(Meaning::Whole(count, unit))
        }
    }
}

fn number(word: &str) -> Option<i64> {
    if let Ok(digits) = word.parse() {
        return Some(digits);
    }
    Some(match word {
        "a" | "an" | "one" | "bir" | "un" | "una" | "une" => 1,
        "two" | "zwei" | "iki" | "dos" | "deux" => 2,
        "three" | "drei" | "üç" | "tres" | "trois" => 3,
        "four" | "vier" | "dört" | "cuatro" | "quatre" => 4,
        "five" | "fünf" | "beş" | "cinco" | "cinq" => 5,
        "six" | "sechs" | "altı" | "alti" | "seis" => 6,
        "seven" | "sieben" | "yedi" | "siete" | "sept" => 7,
        "eight" | "acht" | "sekiz" | "ocho" | "huit" => 8,
        "nine" | "neun" | "dokuz" | "nueve" | "neuf" => 9,
        "ten" | "zehn" | "on" | "diez" | "dix" => 10,
        word if word.starts_with("ein") => 1,
        _ => return None,
    })
}

fn unit(word: &str) -> Option<Unit> {
    const UNITS: [(Unit, &[&str]); 4] = [
        (Unit::Day, &["day", "tag", "gün", "día", "dia", "jour", "日"]),
        (Unit::Week, &["week", "woche", "hafta", "semana", "semaine", "週"]),
        (Unit::Month, &["month", "monat", "mes", "mois", "ヶ月", "か月", "月"]),
        (Unit::Year, &["year", "jahr", "yıl", "año", "ans", "année", "年"]),
    ];
    let begins = |names: &[&str]| names.iter().any(|name| word.starts_with(name));
    let found = UNITS.iter().find(|(_, names)| begins(names)).map(|(unit, _)| *unit);
    found.or(match word {
        "ay" => Some(Unit::Month),
        "an" => Some(Unit::Year),
        _ => None,
    })
}

fn weekday(word: &str) -> Option<Weekday> {
    const NAMES: [(Weekday, &[&str]); 7] = [
        (Weekday::Monday, &["monday", "montag", "pazartesi", "lunes", "lundi", "月"]),
        (Weekday::Tuesday, &["tuesday", "dienstag", "salı", "martes", "mardi", "火"]),
        (Weekday::Wednesday, &["wednesday", "mittwoch", "çarşamba", "miércoles", "mercredi", "水"]),
        (Weekday::Thursday, &["thursday", "donnerstag", "perşembe", "jueves", "jeudi", "木"]),
        (Weekday::Friday, &["friday", "freitag", "cuma", "viernes", "vendredi", "金"]),
        (Weekday::Saturday, &["saturday", "samstag", "cumartesi", "sábado", "samedi", "土"]),
        (Weekday::Sunday, &["sunday", "sonntag", "pazar", "domingo", "dimanche", "日"]),
    ];
    NAMES.iter().find(|(_, names)| names.contains(&word)).map(|(weekday, _)| *weekday)
}
