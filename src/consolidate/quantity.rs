//! Comparable quantities of a statement: `30 s`, `30 seconds` and `half a minute` are equal, as are
//! `:8443` and `port 8443`.

use super::phrases::{is_sign, is_stop_word, is_symbol, with_sign};
use crate::text::lexicon::{WEEKDAYS, number, unit};
use crate::text::tokens::{hash, stands_alone};
use foldhash::HashMap;
use std::sync::LazyLock;

/// Phrases for a part of a unit, or of a whole in percent, with the dimension and the amount.
const FRACTIONS: [(&str, f64, &[&str]); 5] = [
    ("", 1.5, &["one and a half", "anderthalb"]),
    ("", 0.25, &["a quarter of an"]),
    ("", 0.5, &["half an", "half a", "halbe"]),
    ("percent", 25.0, &["a quarter of", "ein viertel der", "un quart des"]),
    ("percent", 50.0, &["half of", "die hälfte der", "la moitié des", "la mitad de"]),
];

/// Dimension and amount of the fraction with which `words` begins, and the number of its words.
fn fraction(words: &[&str]) -> Option<(&'static str, f64, usize)> {
    let first = words.first()?;
    let phrases = FRACTIONS.iter().flat_map(|it| it.2.iter().map(|said| (it.0, it.1, *said)));
    // Called for every word of every statement.
    let mut likely = phrases.filter(|it| it.2.starts_with(first));
    likely.find_map(|(dimension, amount, said)| {
        let count = said.split(' ').count();
        let is_said = words.get(..count)?.iter().copied().eq(said.split(' '));
        is_said.then_some((dimension, amount, count))
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
}

impl Quantity {
    fn new(dimension: &str, amount: f64, words: usize) -> Quantity {
        Quantity { key: key(dimension, amount), words }
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
        return Some(Quantity { key: *key, words: 1 });
    }
    if let Some(port) = port(first) {
        return Some(Quantity::new("", port, 1));
    }
    let (amount, suffix, count) = match fraction(words) {
        Some(("", amount, count)) => (amount, "", count),
        Some((dimension, amount, count)) => return Some(Quantity::new(dimension, amount, count)),
        None => written(first).map(|(amount, suffix)| (amount, suffix, 1))?,
    };
    let follows = words.get(count).copied().unwrap_or_default();
    let (found, count) = match suffix {
        "" => (unit(follows), count + usize::from(unit(follows).is_some())),
        suffix => (Some(unit(suffix)?), count),
    };
    let (dimension, scale) = found.map_or(("", 1.0), |unit| (unit.dimension, unit.scale as f64));
    Some(Quantity::new(dimension, amount * scale, count))
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
    // `9:30` is a time.
    let is_time = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    port.parse::<u16>().ok().filter(|_| is_host && !is_time).map(f64::from)
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
        same("-18 degrees", "18 degrees", false);
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
    }

    #[test]
    fn names_are_no_quantities() {
        for name in ["v2", "1.2.3", "loan_item", "src/a.rs:x", "2fa", "half"] {
            assert!(quantity(&[name]).is_none(), "{name}");
        }
    }
}
