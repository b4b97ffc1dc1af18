//! A summary by rule, for who has no model: how each message begins, a line each, the newest kept.

use crate::domain::Message;
use crate::entity::sentences;
use crate::privacy::{Gate, Redacted};

/// The longest summary, in bytes: about 350 tokens, so that it fits beside the messages since.
const SUMMARY_BYTES_MAX: usize = 1_400;
/// The longest beginning of a message, in characters.
const LINE_CHARS_MAX: usize = 120;
/// The shortest sentence that stands alone, in characters; what is shorter is a greeting.
const SENTENCE_CHARS_MIN: usize = 12;
/// Stands where older lines were.
const MARK: &str = "[… earlier messages left out …]";

/// What `existing` says, and how each of `messages` begins. Goes through the gate as a whole, since
/// what is cut may look like something else.
pub(super) fn of(existing: Option<&Redacted>, messages: &[Message], gate: &Gate) -> Redacted {
    let before = existing.map_or("", Redacted::as_str);
    let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
    let new = messages.iter().filter_map(|message| {
        let words = beginning(message.content.as_str())?;
        Some(format!("- {}: {words}", message.role.name()))
    });
    lines.extend(new);
    let had_mark = lines.first().is_some_and(|line| line == MARK);
    let lines = lines.get(usize::from(had_mark)..).unwrap_or_default();
    let kept = newest(lines);
    let mut text = String::new();
    if had_mark || kept.len() < lines.len() {
        text.push_str(MARK);
    }
    for line in kept {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
    }
    gate.redact(&text)
}

/// The last lines that fit.
fn newest(lines: &[String]) -> &[String] {
    let mut room = SUMMARY_BYTES_MAX - MARK.len();
    let fits = |line: &&String| match room.checked_sub(line.len() + 1) {
        Some(left) => {
            room = left;
            true
        }
        None => false,
    };
    let kept = lines.iter().rev().take_while(fits).count();
    lines.get(lines.len() - kept..).unwrap_or_default()
}

/// The first sentence that is more than a greeting, cut where it is long.
fn beginning(text: &str) -> Option<String> {
    let mut all = sentences(text).filter_map(|range| text.get(range)).peekable();
    let first = all.peek().copied();
    let said = |it: &&str| it.chars().nth(SENTENCE_CHARS_MIN - 1).is_some();
    let sentence = all.find(said).or(first)?;
    let Some((end, _)) = sentence.char_indices().nth(LINE_CHARS_MAX) else {
        return Some(sentence.to_owned());
    };
    let head = sentence.get(..end).unwrap_or_default();
    let words = head.rsplit_once(char::is_whitespace).map_or(head, |(words, _)| words);
    Some(format!("{}…", words.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Role;

    fn said(role: Role, text: &str) -> Message {
        Message { role, content: Gate::new(&[]).redact(text) }
    }

    #[test]
    fn each_message_is_known_by_how_it_begins() {
        let long = "word ".repeat(60);
        let messages = [
            said(Role::User, "\n  Hi. We use SQLite, as v1.2 did. And more.\nNext"),
            said(Role::Assistant, &long),
            said(Role::User, " \n"),
        ];
        let gate = Gate::new(&[]);
        let first = of(None, &messages, &gate);
        let words = "word ".repeat(24);
        let expected =
            format!("- user: We use SQLite, as v1.2 did.\n- assistant: {}…", words.trim_end());
        assert_eq!(first.as_str(), expected);
        let next = of(Some(&first), &[said(Role::User, "Go")], &gate);
        assert_eq!(next.as_str(), format!("{expected}\n- user: Go"));
    }

    #[test]
    fn the_oldest_lines_make_room_visibly() {
        let gate = Gate::new(&[]);
        let mut summary = None;
        for n in 0..500 {
            let next =
                of(summary.as_ref(), &[said(Role::User, &format!("step {n} of many"))], &gate);
            assert!(next.len() <= SUMMARY_BYTES_MAX);
            summary = Some(next);
        }
        let text = summary.unwrap();
        assert!(text.as_str().starts_with(MARK) && text.as_str().ends_with("step 499 of many"));
        assert_eq!(text.as_str().matches(MARK).count(), 1);
    }

    #[test]
    fn a_line_that_is_longer_than_a_summary_goes_visibly_too() {
        let gate = Gate::new(&[]);
        let existing = gate.redact(&"long ".repeat(1_000));
        assert_eq!(of(Some(&existing), &[], &gate).as_str(), MARK);
    }
}
