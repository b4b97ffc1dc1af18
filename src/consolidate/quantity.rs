//! Comparable quantities of a statement: `30 s`, `30 seconds` and `half a minute` are equal, as are
//! `:8443` and `port 8443`.

use super::phrases::{is_sign, is_stop_word, is_symbol, with_sign};
use crate::text::lexicon::{WEEKDAYS, number, unit};
use crate::text::tokens::{hash, stands_alone};
use foldhash::HashMap;
use std::sync::LazyLock;

/// Words for a half or a quarter of a unit, and the amount.
const FRACTION_PHRASES: [(f64, &[&str]); 3] = [
    (1.5, &["one and a half", "anderthalb"]),
    (0.25, &["a quarter of an"]),
    (0.5, &["half an", "half a", "halbe"]),
];

/// Words for a part of a whole, in percent.
const PERCENT_PHRASES: [(f64, &[&str]); 2] = [
    (25.0, &["a quarter of", "ein viertel der", "un quart des"]),
    (50.0, &["half of", "die hälfte der", "la moitié des", "la mitad de"]),
];

/// Value of the phrase with which `words` begins, and the number of its words.
fn said<T: Copy>(words: &[&str], phrases: &[(T, &[&str])]) -> Option<(T, usize)> {
    let first = words.first()?;
    let phrases = phrases.iter().flat_map(|(value, said)| said.iter().map(|it| (*value, *it)));
    // Called for every word of every statement.
    let mut likely = phrases.filter(|(_, said)| said.starts_with(first));
    likely.find_map(|(value, said)| {
        let count = said.split(' ').count();
        let is_said = words.get(..count)?.iter().copied().eq(said.split(' '));
        is_said.then_some((value, count))
    })
}

static DAY_OF_WORD: LazyLock<HashMap<&str, u64>> = LazyLock::new(|| {
    let days = WEEKDAYS.iter();
    days.flat_map(|day| day.split(' ').map(move |word| (word, hash(day)))).collect()
});

/// A quantity among the words of a statement.
pub(super) struct Quantity {
    /// Equal for equal amounts of one dimension.
    pub(super) key: u64,
    /// Number of words that it takes up.
    pub(super) words: usize,
    /// Empty for a bare number or a name.
    pub(super) dimension: &'static str,
    /// True if it says how often something happens.
    pub(super) is_frequency: bool,
}

impl Quantity {
    fn new(dimension: &'static str, amount: f64, words: usize) -> Quantity {
        Quantity { key: key(dimension, amount), words, dimension, is_frequency: false }
    }
}

/// Strips punctuation and a joined article (`l'import`) from a word; a path keeps its slash.
fn bare(word: &str) -> &str {
    if is_symbol(word) {
        return word;
    }
    let word = match word.split_once(['\'', '’']) {
        Some(("l" | "d" | "n" | "s" | "qu" | "j" | "dell" | "all" | "nell", rest)) => rest,
        Some(_) | None => word,
    };
    let marks =
        |letter: char| !letter.is_alphanumeric() && !matches!(letter, '/' | '%' | '€' | '$');
    let word = word.trim_end_matches(|letter| marks(letter) && !is_sign(letter));
    let rest = word.trim_start_matches(|letter| marks(letter) && letter != ':');
    let word = with_sign(word, word.len() - rest.len());
    let is_version = |it: &&str| it.contains('.') && it.starts_with(|it: char| it.is_ascii_digit());
    word.strip_prefix('v').filter(is_version).unwrap_or(word)
}

/// Words of a folded text without punctuation. In scripts without blanks, a number or a name ends a
/// word, and so does Hiragana, which spells particles and endings.
pub(super) fn words_of(folded: &str) -> Vec<&str> {
    let words = folded.split(|letter: char| letter == ' ' || matches!(letter, 'ぁ'..='ゟ'));
    let script = |letter| (stands_alone(letter), matches!(letter, '゠'..='ヿ'));
    let runs = words.flat_map(|word| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let first = script(rest.chars().next()?);
            let end = rest.find(|letter| script(letter) != first);
            let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after;
            Some(run)
        })
    });
    runs.map(bare).filter(|word| !word.is_empty()).collect()
}

/// Quantity at the start of `words`, which are folded and bare.
pub(super) fn quantity(words: &[&str]) -> Option<Quantity> {
    let first = words.first()?;
    if let Some(key) = DAY_OF_WORD.get(first) {
        return Some(Quantity { key: *key, ..Quantity::new("day", 0.0, 1) });
    }
    if let Some(frequency) = frequency(words) {
        return Some(frequency);
    }
    if let Some(time) = time_of_day(words) {
        return Some(time);
    }
    if let Some(port) = port(first) {
        return Some(Quantity::new("", port, 1));
    }
    let (amount, suffix, count) = if let Some((amount, count)) = said(words, &FRACTION_PHRASES) {
        (amount, "", count)
    } else if let Some((percent, words)) = said(words, &PERCENT_PHRASES) {
        return Some(Quantity::new("percent", percent, words));
    } else {
        let (amount, suffix) = written(first)?;
        (amount, suffix, 1)
    };
    let follows = words.get(count).copied().unwrap_or_default();
    let (found, count) = match suffix {
        "" => (unit(follows), count + usize::from(unit(follows).is_some())),
        suffix => (Some(unit(suffix)?), count),
    };
    let (dimension, scale) = found.map_or(("", 1.0), |unit| (unit.dimension, unit.scale as f64));
    Some(Quantity::new(dimension, amount * scale, count))
}

/// Adverbs for once in so many of a unit. Those with an ending of English may be adjectives, as in `the daily report`.
const ADVERBS: [(&str, f64, &[&str]); 6] = [
    ("hour", 1.0, &["hourly", "stündlich"]),
    ("day", 1.0, &["daily", "täglich", "diariamente", "quotidiennement"]),
    ("week", 1.0, &["weekly", "wöchentlich", "semanalmente"]),
    ("month", 1.0, &["monthly", "monatlich", "mensualmente", "mensuellement"]),
    ("month", 3.0, &["quarterly", "vierteljährlich", "quartalsweise"]),
    ("year", 1.0, &["yearly", "annually", "jährlich", "anualmente"]),
];
/// Words before a unit, and how often something happens in it.
const TIMES_PER: [(f64, &[&str]); 3] = [
    (
        1.0,
        &[
            "every", "each", "jede", "jeden", "jedes", "chaque", "cada", "toutes les", "tous les",
            "once a", "once an", "once per", "einmal pro", "einmal am", "einmal die", "einmal im",
            "une fois par", "una vez al", "una vez por",
        ],
    ),
    (
        2.0,
        &[
            "twice a", "twice an", "twice per", "two times a", "zweimal pro", "zweimal am",
            "zweimal die", "zweimal im", "deux fois par", "dos veces al", "dos veces por",
        ],
    ),
    (3.0, &["three times a", "dreimal pro", "dreimal am", "trois fois par", "tres veces al"]),
];

/// The frequency at the start of `words`: `hourly`, `every hour`, `twice a day`. `every 10 minutes` is `10 minutes`. An
/// adjective is none.
fn frequency(words: &[&str]) -> Option<Quantity> {
    let first = words.first()?;
    let adverb = ADVERBS.iter().find(|(.., adverbs)| adverbs.contains(first));
    let (unit, times, count) = match adverb {
        Some((name, units, _)) => (unit(name)?, 1.0 / units, 1),
        None => {
            let (times, count) = said(words, &TIMES_PER)?;
            (unit(words.get(count)?)?, times, count + 1)
        }
    };
    let is_german = first.ends_with("lich") || first.starts_with("jede") || first.ends_with("mal");
    let is_adverb = is_german || words.get(count).is_none_or(|next| is_stop_word(next));
    let per = if times > 1.0 { "times" } else { unit.dimension };
    let found = Quantity::new(per, unit.scale as f64 / times, count);
    is_adverb.then_some(Quantity { is_frequency: true, ..found })
}

/// Hours after midnight that words behind a time of day add to an hour before noon; `None` for a 24-hour clock.
const PARTS_OF_DAY: [(Option<u32>, &[&str]); 3] = [
    (
        Some(0),
        &[
            "am", "a.m", "in the morning", "uhr morgens", "uhr früh", "heures du matin",
            "de la mañana",
        ],
    ),
    (
        Some(12),
        &[
            "pm", "p.m", "in the afternoon", "in the evening", "uhr nachmittags", "uhr abends",
            "heures de l'après-midi", "heures du soir", "de la tarde",
        ],
    ),
    (None, &["uhr", "o'clock", "часов"]),
];

/// The time of day at the start of `words`, such as `16:00`, `4 pm` or `four in the afternoon`.
fn time_of_day(words: &[&str]) -> Option<Quantity> {
    let (first, behind) = words.split_first()?;
    if *first == "noon" {
        return Some(Quantity::new("clock", 12.0 * 60.0, 1));
    }
    let glued = [("am", 0), ("pm", 12)];
    let glued = glued.iter().find_map(|(said, shift)| Some((first.strip_suffix(said)?, *shift)));
    let (time, part, count) = match glued {
        Some((time, shift)) => (time, Some(Some(shift)), 1),
        None => {
            let part = said(behind, &PARTS_OF_DAY);
            (*first, part.map(|(shift, _)| shift), 1 + part.map_or(0, |(_, count)| count))
        }
    };
    // `16.30` is a time only if words say so.
    let dotted = || time.split_once('.').filter(|_| part.is_some());
    let (hour, minute): (u32, u32) = match time.split_once(':').or_else(dotted) {
        Some((hour, minute)) if minute.len() == 2 => (hour.parse().ok()?, minute.parse().ok()?),
        Some(_) => return None,
        None => {
            part?;
            let (hour, rest) = written(time)?;
            let is_hour = rest.is_empty() && hour.fract() == 0.0 && (0.0..=24.0).contains(&hour);
            (is_hour.then_some(hour as u32)?, 0)
        }
    };
    let hour = match part.flatten() {
        Some(shift) if (1..=12).contains(&hour) => hour % 12 + shift,
        Some(_) => return None,
        None => hour,
    };
    let minutes = (hour <= 24 && minute < 60).then(|| hour % 24 * 60 + minute)?;
    Some(Quantity::new("clock", f64::from(minutes), count))
}

/// True if one of `values` is a day of the week, which is a condition beside another value.
pub(super) fn has_day(values: &[u64]) -> bool {
    days(values).next().is_some()
}

/// Days of the week among `values`.
pub(super) fn days(values: &[u64]) -> impl Iterator<Item = u64> {
    WEEKDAYS.iter().map(|day| hash(day)).filter(|day| values.contains(day))
}

pub(super) fn key(dimension: &str, amount: f64) -> u64 {
    hash(&format!("{dimension} {amount:.3}"))
}

/// Amount at the start of a word, and the suffix after its digits.
fn written(word: &str) -> Option<(f64, &str)> {
    if let Some(word) = word.strip_prefix('-') {
        return written(word).map(|(amount, suffix)| (-amount, suffix));
    }
    let digits = word.bytes().take_while(|byte| byte.is_ascii_digit() || b".,".contains(byte));
    let (digits, suffix) = word.split_at(digits.count());
    if digits.starts_with(|first: char| first.is_ascii_digit()) {
        return Some((amount(digits)?, suffix));
    }
    // An article is not a number.
    number(word).filter(|_| !is_stop_word(word)).map(|number| (number as f64, ""))
}

/// Parses digits: `18,300` and `22.410` have thousands, `0,5` and `6.12` have fractions.
fn amount(digits: &str) -> Option<f64> {
    let mut parts = digits.split([',', '.']);
    let head = parts.next()?;
    let rest: Vec<&str> = parts.collect();
    let thousands = !rest.is_empty() && head.len() <= 3 && head != "0";
    if thousands && rest.iter().all(|part| part.len() == 3) {
        return format!("{head}{}", rest.concat()).parse().ok();
    }
    match rest.as_slice() {
        [] => head.parse().ok(),
        [fraction] => format!("{head}.{fraction}").parse().ok(),
        // Versions and dates are names.
        _ => None,
    }
}

/// The port of an address, such as `https://host:8443/path` or `:8443`.
fn port(word: &str) -> Option<f64> {
    let host = word.split_once("://").map_or(word, |(_, rest)| rest);
    let host = host.split('/').next()?;
    let (name, port) = host.rsplit_once(':')?;
    let is_host = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    port.parse::<u16>().ok().filter(|_| is_host).map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn same(one: &str, other: &str, expected: bool) {
        let key = |text: &str| {
            let words: Vec<&str> = text.split(' ').collect();
            quantity(&words).map(|it| it.key).expect(text)
        };
        assert_eq!(key(one) == key(other), expected, "{one} / {other}");
    }

    #[test]
    fn equal_amounts_are_one_quantity() {
        same("30 s", "half a minute", true);
        same("30s", "30 seconds", true);
        same("2 wochen", "14 tage", true);
        same("one and a half hours", "90 minutes", true);
        same("2 gib", "2048 mib", true);
        same("https://api.example:8443/v1", "8443", true);
        same("localhost:8443", ":8443", true);
        same("1 euro", "100 cents", true);
        same("0,5 gb", "500 mb", true);
        same("18,300", "18300", true);
        same("zwei", "2", true);
        same("10 kg", "10 kilograms", true);
        same("mondays", "montag", true);
        same("a quarter of the rooms", "25 %", true);
        same("a quarter of an hour", "15 min", true);
        same("16:00", "four in the afternoon", true);
        same("16:00", "4 pm", true);
        same("2am", "02:00", true);
        same("16 uhr", "16:00", true);
        same("noon", "12 pm", true);
        same("-18 degrees", "18 degrees", false);
        same("hourly", "every hour", true);
        same("stündlich abgefragt", "jede stunde abgefragt", true);
        same("daily at 2:00", "once a day", true);
        same("toutes les heures", "chaque heure", true);
        same("toutes les heures", "60 minutes", true);
        same("cada día", "täglich", true);
        same("quarterly", "3 months", true);
    }

    #[test]
    fn adjectives_are_no_frequencies() {
        for words in ["daily report", "hourly backup", "every second build", "chaque jour ouvré"] {
            let words: Vec<&str> = words.split(' ').collect();
            assert!(quantity(&words).is_none(), "{words:?}");
        }
        same("twice a day", "daily", false);
        same("hourly", "daily", false);
        same("twice a day", "12 hours", false);
    }

    #[test]
    fn other_amounts_and_dimensions_are_not() {
        same("12 hours", "12 days", false);
        same("30 days", "1 month", false);
        same("250 ms", "999ms", false);
        same("2 gb", "2 gib", false);
        same("6.12", "612", false);
        same("5 percent", "5", false);
        same("monday", "tuesday", false);
        same("9:00", "16:00", false);
        same("4 am", "4 pm", false);
        same("9:30", "9:00", false);
        same("16.30 uhr", "16:00", false);
        same("16.30 uhr", "16:30", true);
        same("45 in the morning", "57 in the morning", false);
    }

    #[test]
    fn names_are_no_quantities() {
        for name in ["v2", "1.2.3", "loan_item", "src/a.rs:x", "2fa", "half"] {
            assert!(quantity(&[name]).is_none(), "{name}");
        }
    }
}
