//! What a person is asked in a review, and what they say.

use super::super::super::output::{self, Failure};
use std::io::{self, BufRead};

/// Answers that are not understood before we give up.
const ANSWERS_MAX: u32 = 10;

/// What a person says to a recording. To take away what nobody asks for is to accept that it goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Word {
    Accept,
    Reject,
    Skip,
    Quit,
}

/// Asks about a new recording; one that cannot be accepted is not offered so.
///
/// # Errors
/// If nothing can be read.
pub(super) fn ask_about_new(acceptable: bool) -> Result<Word, Failure> {
    match acceptable {
        true => ask("accept, reject, skip or quit? [a/r/s/q]", of_new),
        false => ask("reject, skip or quit? [r/s/q]", |text| {
            of_new(text).filter(|word| *word != Word::Accept)
        }),
    }
}

/// Asks about what no request asks for.
///
/// # Errors
/// If nothing can be read.
pub(super) fn ask_about_old() -> Result<Word, Failure> {
    ask("take away, keep or quit? [t/k/q]", of_old)
}

/// Asks until an answer is understood; the end of the input is a quit.
fn ask(question: &str, word: fn(&str) -> Option<Word>) -> Result<Word, Failure> {
    for _ in 0..ANSWERS_MAX {
        output::note(question);
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        let read = read.map_err(|error| Failure::failed(format!("cannot read: {error}")))?;
        if read == 0 {
            return Ok(Word::Quit);
        }
        if let Some(word) = word(line.trim()) {
            return Ok(word);
        }
    }
    Ok(Word::Quit)
}

fn of_new(text: &str) -> Option<Word> {
    match text.to_lowercase().as_str() {
        "a" | "accept" => Some(Word::Accept),
        "r" | "reject" => Some(Word::Reject),
        "s" | "skip" => Some(Word::Skip),
        "q" | "quit" => Some(Word::Quit),
        _ => None,
    }
}

fn of_old(text: &str) -> Option<Word> {
    match text.to_lowercase().as_str() {
        "t" | "take away" => Some(Word::Accept),
        "k" | "keep" => Some(Word::Skip),
        "q" | "quit" => Some(Word::Quit),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_understood_by_its_first_letter_or_whole_and_nothing_else_is() {
        let words = ["a", "Reject", "s", "quit"].map(of_new);
        let all = [Word::Accept, Word::Reject, Word::Skip, Word::Quit];
        assert_eq!(words, all.map(Some));
        assert_eq!(["", "y", "ac", "accept all", "t", "k"].map(of_new), [None; 6]);
        let words = ["T", "take away", "keep", "q"].map(of_old);
        assert_eq!(words, [Word::Accept, Word::Accept, Word::Skip, Word::Quit].map(Some));
        assert_eq!(["", "take", "a", "r"].map(of_old), [None; 4]);
    }
}
