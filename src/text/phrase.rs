//! Phrases for people: counts of things, and an error with its causes.

use std::error::Error;

/// The words of a text in one line.
pub(crate) fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

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

/// The text without what is in parentheses after a blank. One that is not closed becomes a comma.
pub(crate) fn without_asides(text: &str) -> String {
    let (mut kept, mut depth) = (String::new(), 0_usize);
    for it in text.chars() {
        match it {
            '(' if depth > 0 => depth += 1,
            '(' if kept.ends_with(' ') => {
                kept.truncate(kept.trim_end().len());
                depth = 1;
            }
            ')' if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            _ => kept.push(it),
        }
    }
    if depth == 0 { kept } else { text.replace(" (", ", ") }
}

/// Formats the error with its causes, the root cause last.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // SQLite's errors repeat themselves as their cause.
        if !line.rsplit(": ").next().is_some_and(|last| text.ends_with(last)) {
            line.push_str(&format!(": {text}"));
        }
        cause = error.source();
    }
    line.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Fault {
        text: &'static str,
        #[source]
        cause: Option<Box<Fault>>,
    }

    #[test]
    fn a_cause_that_repeats_its_error_is_left_out() {
        let fault = |text, cause: Option<Fault>| Fault { text, cause: cause.map(Box::new) };
        let inner = fault("it is read-only", Some(fault("Error code 8: it is read-only", None)));
        assert_eq!(with_causes(&fault("opening", Some(inner))), "opening: it is read-only");
    }

    #[test]
    fn asides_are_left_out_of_a_quotation() {
        for (text, expected) in [
            ("x (a (b) c), y (d)", "x, y"),
            ("call f(x) (soon)", "call f(x)"),
            ("limit (soft is 5 per day", "limit, soft is 5 per day"),
            ("a) b", "a) b"),
        ] {
            assert_eq!(without_asides(text), expected, "{text}");
        }
    }
}
