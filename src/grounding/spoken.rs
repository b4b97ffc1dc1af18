//! Numbers that were said in words, in English: `twelve fifty`, `half a minute`, `three thousand`.

use std::ops::Range;

/// Words from zero to nineteen, each at its number.
const UNITS: [&str; 20] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
];
/// Words of the tens, from twenty.
const TENS: [&str; 8] =
    ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
/// Parts of a minute or an hour, in sixtieths.
const PARTS: [(&str, u64); 3] = [("half a", 30), ("a quarter", 15), ("quarter of a", 15)];
/// Maximum number of words of one number.
const WORDS_MAX: usize = 6;

/// Position of `number` said in words in `text`, which is folded.
pub(super) fn find(text: &str, number: &str) -> Option<Range<usize>> {
    let value: f64 = number.parse().ok()?;
    let words: Vec<(usize, &str)> = text
        .split(|letter: char| !letter.is_ascii_alphabetic())
        .filter(|word| !word.is_empty())
        .map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
        .collect();
    let said = |from: usize| {
        let length =
            words[from..].iter().take(WORDS_MAX).take_while(|(_, word)| is_number(word)).count();
        (1..=length).rev().find(|length| {
            let said: Vec<&str> =
                words[from..from + length].iter().map(|(_, word)| *word).collect();
            values(&said).into_iter().any(|other| other == value)
        })
    };
    let found = (0..words.len()).find_map(|from| Some((from, said(from)?)));
    if let Some((from, length)) = found {
        let (last, word) = words[from + length - 1];
        return Some(words[from].0..last + word.len());
    }
    let part = PARTS.iter().filter(|(_, sixtieths)| *sixtieths as f64 == value);
    part.into_iter().find_map(|(words, _)| text.find(words).map(|at| at..at + words.len()))
}

fn is_number(word: &str) -> bool {
    unit(word).is_some()
        || ten(word).is_some()
        || matches!(word, "hundred" | "thousand" | "and" | "point")
}

fn unit(word: &str) -> Option<u64> {
    UNITS.iter().position(|unit| *unit == word).map(|at| at as u64)
}

fn ten(word: &str) -> Option<u64> {
    TENS.iter().position(|ten| *ten == word).map(|at| at as u64 * 10 + 20)
}

/// Meanings of `words`: one number, or two of which the second is its hundredths, as prices are said.
fn values(words: &[&str]) -> Vec<f64> {
    let mut values: Vec<f64> = whole(words).map(|value| value as f64).into_iter().collect();
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
            "and" if current > 0 => {}
            "hundred" if (1..100).contains(&current) => (current, last) = (current * 100, 100),
            "thousand" if current > 0 => {
                (sum, current, last) = (sum + current * 1_000, 0, u64::MAX)
            }
            word => {
                let value = ten(word).or_else(|| unit(word))?;
                // A smaller place follows a larger one: twenty five, but not five twenty.
                if last <= value || (last < 100 && value >= 10) {
                    return None;
                }
                (current, last) = (current + value, if value >= 20 { 10 } else { 1 });
            }
        }
    }
    (!words.is_empty() && words.last() != Some(&"and")).then_some(sum + current)
}
