//! The question of a discussion, and how it ended by the words of its own record, such as `Which store? (left open)` or
//! a last point `decided: SQLite`. Likewise a wish to be told something.

use super::phrases::{WordList, list};
use super::quantity::words_of;
use crate::domain::{Discussion, PersonRequest};
use crate::text::tokens::folded;

/// Characters before a remark that has no parentheses.
const BEFORE_REMARK: [char; 6] = ['?', '.', ';', '–', '—', ','];

/// True if the last remark of its own record on how it ended says that it was settled, false if it was left open.
pub(super) fn is_settled(it: &Discussion) -> Option<bool> {
    let of_last = || it.points.last().and_then(|point| is_remark_of_end(point));
    is_remark_of_end(&it.topic).or_else(of_last)
}

/// True if its summary says that a wish to be told something was answered: `How is the locale set? (answered)`.
pub(super) fn is_answered(it: &PersonRequest) -> bool {
    wish(&it.summary).len() < it.summary.trim_end().len()
}

/// The summary of a wish to be told something without the remark that it was answered.
pub(super) fn wish(summary: &str) -> &str {
    let is_answered = |remark: &str| {
        let flat = folded(remark);
        let words = words_of(&flat);
        list("wish answered").begin(&words) == Some(words.len())
    };
    let told = remark(summary).filter(|(_, remark)| is_answered(remark));
    told.map_or(summary, |(told, _)| told.trim_end())
}

/// The topic without a remark in parentheses on how it ended.
pub(super) fn question(topic: &str) -> &str {
    let asked = remark(topic).filter(|(_, remark)| ended(remark, false).is_some());
    asked.map_or(topic, |(asked, _)| asked.trim_end())
}

/// True if the remark at the end of `text` says that the matter is settled; `None` if there is no such remark.
fn is_remark_of_end(text: &str) -> Option<bool> {
    let in_parentheses = remark(text).and_then(|(_, remark)| ended(remark, false));
    let head = text.split(": ").next().unwrap_or(text).trim_end_matches(['.', ' ', ':']);
    in_parentheses.or_else(|| ended(head.rsplit(BEFORE_REMARK).next()?, true))
}

/// Text before the parentheses at the end, and in them.
fn remark(text: &str) -> Option<(&str, &str)> {
    text.trim_end().trim_end_matches('.').strip_suffix(')')?.rsplit_once('(')
}

/// True if `remark`, or if it `is_whole` all of it, says that something is settled; `None` if it says neither.
fn ended(remark: &str, is_whole: bool) -> Option<bool> {
    let flat = folded(remark);
    let words = words_of(&flat);
    let begins = |list: &WordList| {
        list.begin(&words).is_some_and(|length| !is_whole || length == words.len())
    };
    match begins(list("question open")) {
        true => Some(false),
        false => begins(list("question settled")).then(|| !list("postponed").are_in(&flat)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discussion_ended_as_its_own_record_says() {
        for (topic, last, expected) in [
            ("Which store? (settled: SQLite (in a file))", "it is small", true),
            ("Which store? (settled: SQLite)", "it is small", true),
            ("Which store (Settled)", "it is small", true),
            ("Which store? (settled for this year: none of it)", "it is small", true),
            ("Which store?", "it is small (decided)", true),
            ("Which store?", "Decided: SQLite v1.2 in a file", true),
            ("Which store? Decided: SQLite", "it is small", true),
            ("Welcher Speicher? (geklärt)", "er ist klein", true),
            ("Quel magasin ? (décidé : SQLite)", "il est petit", true),
            ("Which store? (left open)", "decided: the file stays small", false),
            ("Which store?", "still open", false),
            ("Which store? (decided later)", "it is small", false),
            ("Which store? (not settled)", "it is small", false),
            ("Welcher Speicher? (offen)", "er ist klein", false),
            ("Which store?", "decided fast, a store is a risk", false),
            ("Settled accounts: who sees them?", "it is small", false),
        ] {
            let points = vec!["it is fast".to_owned(), last.to_owned()];
            let it = Discussion { topic: topic.to_owned(), points };
            assert_eq!(is_settled(&it) == Some(true), expected, "{topic} {last}");
        }
    }

    #[test]
    fn a_wish_was_answered_as_its_own_record_says() {
        for (summary, expected) in [
            ("Tell how the locale is set by the path. (answered)", true),
            ("Tell how the locale is set by the path (answered).", true),
            ("Tell how the locale is set by the path", false),
            ("Tell how the locale is set (answered in part)", false),
            ("Tell how the locale is set (not answered)", false),
            ("Move the meeting to 9:30 (agreed)", false),
            ("Dire comment régler la langue (répondu)", true),
        ] {
            let it =
                PersonRequest { intent: String::new(), target: None, summary: summary.to_owned() };
            assert_eq!(is_answered(&it), expected, "{summary}");
        }
    }

    #[test]
    fn a_remark_on_the_end_is_no_part_of_the_question() {
        assert_eq!(question("Which store? (left open; ask Ole first)"), "Which store?");
        assert_eq!(question("Which store (for the queue)"), "Which store (for the queue)");
    }
}
