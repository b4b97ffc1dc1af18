//! Numbers in words, such as `twelve fifty` and `half a minute`, and the units after numbers.

use crate::text::lexicon::{Unit, number, unit};
use std::ops::Range;

/// Fractions of a minute, an hour or a hundred.
const FRACTION_PHRASES: [(&str, f64); 6] = [
    ("half a minute", 30.0),
    ("half an hour", 30.0),
    ("a quarter", 15.0),
    ("quarter of an hour", 15.0),
    ("half of", 50.0),
    ("quarter of", 25.0),
];
/// Words before an hour, and the minutes that they add to it.
const TIME_PHRASES: [(&str, i64); 6] = [
    ("half past ", 30),
    ("quarter past ", 15),
    ("quarter to ", -15),
    ("halb ", -30),
    ("viertel nach ", 15),
    ("viertel vor ", -15),
];
/// Words behind a number that add a half, and such an end of a German number.
const HALVES: [&str; 9] = [
    " and a half", " et demi", " et demie", " y medio", " y media", " en een half", " e mezzo",
    " e mezza", " e meia",
];
const GERMAN_HALF: &str = "einhalb";
/// Maximum number of words of one number.
const WORDS_MAX: usize = 6;

/// Unit at the start of `text`, after an optional blank or hyphen.
pub(super) fn unit_after(text: &str) -> Option<Unit> {
    let text = text.strip_prefix([' ', '-']).unwrap_or(text);
    let end = text.find(|letter: char| !letter.is_alphabetic()).unwrap_or(text.len());
    let word = if text.starts_with('%') { "%" } else { &text[..end] };
    unit(&word.to_lowercase())
}

/// Values and positions of the numbers in words of one text.
#[derive(Debug)]
pub(super) struct SpokenNumbers {
    numbers: Vec<(f64, Range<usize>)>,
    /// Times of the day in digits, which are no numbers: `10:00` is not 10.
    times: Vec<(f64, Range<usize>)>,
}

impl SpokenNumbers {
    /// Parses `text`, which is folded.
    pub(super) fn new(text: &str) -> SpokenNumbers {
        let mut found = Vec::new();
        let mut run: Vec<Range<usize>> = Vec::new();
        let words = text.split(|letter: char| !letter.is_alphabetic()).filter(|it| !it.is_empty());
        for word in words.chain(std::iter::once("")) {
            if is_number(word) {
                let start = word.as_ptr() as usize - text.as_ptr() as usize;
                run.push(start..start + word.len());
                continue;
            }
            for from in 0..run.len() {
                for to in (from + 1..=run.len().min(from + WORDS_MAX)).rev() {
                    let words: Vec<&str> =
                        run[from..to].iter().map(|it| &text[it.clone()]).collect();
                    let place = run[from].start..run[to - 1].end;
                    found.extend(values(&words).into_iter().map(|value| (value, place.clone())));
                }
            }
            run.clear();
            let whole = match word.strip_suffix(GERMAN_HALF) {
                Some("ein") => Some(1),
                Some(whole) => number(whole),
                None => (word == "anderthalb").then_some(1),
            };
            if let Some(whole) = whole {
                let start = word.as_ptr() as usize - text.as_ptr() as usize;
                found.push((whole as f64 + 0.5, start..start + word.len()));
            }
        }
        // A unit may stand between: `deux heures et demie`.
        let half_behind = |(value, place): &(f64, Range<usize>)| {
            let rest = &text[place.end..];
            let word = rest.strip_prefix(' ').and_then(|rest| rest.split(' ').next());
            let skipped = word.filter(|word| unit(word).is_some()).map_or(0, |word| word.len() + 1);
            let ends = |rest: &str| !rest.starts_with(|it: char| it.is_alphanumeric() || it == '-');
            let is_it = |half: &&&str| rest[skipped..].strip_prefix(**half).is_some_and(ends);
            let half = HALVES.iter().find(is_it)?;
            Some((value + 0.5, place.start..place.end + skipped + half.len()))
        };
        found.extend(found.iter().filter_map(half_behind).collect::<Vec<_>>());
        for (words, value) in FRACTION_PHRASES {
            let places = text.match_indices(words);
            found.extend(places.map(|(at, _)| (value, at..at + words.len())));
        }
        for (words, minutes) in TIME_PHRASES {
            for (at, _) in text.match_indices(words) {
                let begin = at + words.len();
                let hour = text[begin..].split(|letter: char| !letter.is_alphabetic()).next();
                let hour = hour.filter(|it| !it.is_empty());
                let Some((hour, value)) = hour.and_then(|it| Some((it, number(it)?))) else {
                    continue;
                };
                let place = at..begin + hour.len();
                for half_day in [0, 12] {
                    let time = (value as i64 + half_day) * 60 + minutes;
                    let value = format!("{}.{:02}", time / 60, time % 60).parse();
                    found.extend(value.ok().map(|value| (value, place.clone())));
                }
            }
        }
        SpokenNumbers { numbers: found, times: clock_times(text) }
    }

    /// Positions of `number`, which may be a time of the day.
    pub(super) fn find<'n>(&'n self, number: &'n str) -> impl Iterator<Item = Range<usize>> + 'n {
        let value: Option<f64> = number.replacen(':', ".", 1).parse().ok();
        let times = self.times.iter().filter(|_| number.contains(':'));
        let all = self.numbers.iter().chain(times);
        let found = all.filter(move |(other, _)| Some(*other) == value);
        found.map(|(_, place)| place.clone())
    }
}

/// Times of the day, such as `03:00`, `22 h`, `19 h 15`, `9 uhr` and `5 pm`.
fn clock_times(text: &str) -> Vec<(f64, Range<usize>)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(|letter: char| letter.is_ascii_digit()) {
        let start = from + at;
        from = start + digits(&text[start..]);
        let is_part =
            text[..start].ends_with(|it: char| it.is_alphanumeric() || ".,:".contains(it));
        let hour = text[start..from].parse::<u32>().ok().filter(|hour| *hour <= 24 && !is_part);
        let Some(hour) = hour else { continue };
        let minutes_of = |text: &str| -> Option<u32> {
            let minutes = text.get(..2).filter(|_| digits(text) == 2)?.parse().ok()?;
            (minutes < 60).then_some(minutes)
        };
        let mut rest = &text[from..];
        let mut minutes = rest.strip_prefix([':', '.']).and_then(minutes_of);
        let is_time = minutes.is_some() && rest.starts_with(':');
        if minutes.is_some() {
            rest = &rest[3..];
        }
        rest = rest.trim_start_matches(' ');
        let end = rest.find(|letter: char| !letter.is_alphabetic()).unwrap_or(rest.len());
        let hour = match &rest[..end] {
            "am" => hour % 12,
            "pm" => hour % 12 + 12,
            "h" | "uhr" | "heures" | "horas" => hour,
            _ if is_time => hour,
            _ => continue,
        };
        minutes = minutes.or_else(|| minutes_of(rest[end..].trim_start_matches(' ')));
        let end = if is_time { 0 } else { end };
        let place = start..text.len() - rest.len() + end;
        let value = format!("{hour}.{:02}", minutes.unwrap_or_default()).parse();
        found.extend(value.ok().map(|value| (value, place)));
    }
    found
}

fn is_number(word: &str) -> bool {
    number(word).is_some() || is_and(word) || matches!(word, "hundred" | "thousand" | "point")
}

fn is_and(word: &str) -> bool {
    matches!(word, "and" | "et" | "y" | "und")
}

/// Possible values of `words`: one number, or two where the second is hundredths, as in prices.
fn values(words: &[&str]) -> Vec<f64> {
    let mut values: Vec<f64> = whole(words).map(|value| value as f64).into_iter().collect();
    if let ["point", right @ ..] = words
        && let Some(right) = whole(right).filter(|it| *it < 100)
    {
        values.push(right as f64 / if right < 10 { 10.0 } else { 100.0 });
    }
    for at in 1..words.len() {
        let (left, right) = (&words[..at], &words[at..]);
        let right = right.strip_prefix(&["point"]).unwrap_or(right);
        if let (Some(left), Some(right)) = (whole(left), whole(right))
            && right < 100
        {
            let scale = if right < 10 { 10.0 } else { 100.0 };
            values.extend([left as f64 + right as f64 / scale, (left * 100 + right) as f64]);
        }
    }
    values
}

fn whole(words: &[&str]) -> Option<u64> {
    let (mut sum, mut current, mut last) = (0, 0, u64::MAX);
    for word in words {
        match *word {
            word if is_and(word) && current > 0 => {}
            "hundred" if (1..100).contains(&current) => (current, last) = (current * 100, 100),
            "thousand" if current > 0 => {
                (sum, current, last) = (sum + current * 1_000, 0, u64::MAX)
            }
            word => {
                let value = number(word)?;
                // A smaller place follows a larger one: twenty five, but not five twenty.
                if last <= value || (last < 100 && value >= 10) {
                    return None;
                }
                (current, last) = (current + value, if value >= 20 { 10 } else { 1 });
            }
        }
    }
    words.last().is_some_and(|last| !is_and(last)).then_some(sum + current)
}
