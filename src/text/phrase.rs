//! Phrases for people: counts of things, and an error with its causes.

use std::error::Error;

/// Formats a number with thousands separators.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut parted = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            parted.push(',');
        }
        parted.push(digit);
    }
    parted
}

/// Joins texts by commas.
pub(crate) fn commas<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let mut joined = String::new();
    for text in texts {
        joined.push_str(if joined.is_empty() { "" } else { ", " });
        joined.push_str(text.as_ref());
    }
    joined
}

/// Formats a number with `name`, or with its regular plural.
pub(crate) fn counted(number: u64, name: &str) -> String {
    let number_of = count(number);
    match (number, name.strip_suffix('y')) {
        (1, _) => format!("{number_of} {name}"),
        (_, Some(stem)) if !stem.ends_with('a') => format!("{number_of} {stem}ies"),
        (_, _) => format!("{number_of} {name}s"),
    }
}

/// Formats the error with its causes, the root cause last.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(&format!(": {error}"));
        cause = error.source();
    }
    line.replace('\n', " ")
}
