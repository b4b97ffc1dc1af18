//! Looks for a turn's final answer in the transcript: clients run the hook before they write it.

use serde::{Deserialize, Serialize};

/// Number of trailing characters of an answer that are compared; enough to identify it.
const CHARS_MAX: usize = 200;

#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize)]
pub(crate) struct AnswerEnd(String);

/// Line of Claude Code or Qwen Code, or of Codex, which has the message as `payload`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    subtype: Option<String>,
    #[serde(alias = "payload")]
    message: Option<Message>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message {
    #[serde(rename = "type")]
    kind: Option<String>,
    role: Option<String>,
    #[serde(alias = "parts")]
    content: Option<Content>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Block {
    text: Option<String>,
}

impl AnswerEnd {
    /// Returns the end of `answer`, or `None` if it is blank.
    pub(crate) fn of(answer: &str) -> Option<AnswerEnd> {
        let answer = answer.trim();
        let from = answer.char_indices().rev().nth(CHARS_MAX - 1).map_or(0, |(at, _)| at);
        (!answer.is_empty()).then(|| AnswerEnd(answer[from..].to_owned()))
    }

    /// True if the last turn in the tail of a transcript has this answer.
    pub(crate) fn ends_turn(&self, tail: &[u8]) -> bool {
        let mut lines = tail.rsplit(|byte| *byte == b'\n').filter_map(read);
        lines
            .find_map(|line| self.is_said(&line).then_some(true).or(begins(&line)))
            .unwrap_or(false)
    }

    pub(crate) fn is_in(&self, lines: &[u8]) -> bool {
        lines.split(|byte| *byte == b'\n').filter_map(read).any(|line| self.is_said(&line))
    }

    fn is_said(&self, line: &Line) -> bool {
        let texts = texts_of(line, "assistant");
        texts.iter().any(|text| text.trim_end().ends_with(&self.0))
    }
}

fn read(line: &[u8]) -> Option<Line> {
    serde_json::from_slice(line).ok()
}

/// `Some(false)` for a line before a turn's answer: a prompt, or the previous turn's end.
fn begins(line: &Line) -> Option<bool> {
    let kind = line.message.as_ref().and_then(|message| message.kind.as_deref());
    let is_end = line.subtype.as_deref() == Some("turn_duration") || kind == Some("task_started");
    (is_end || !texts_of(line, "user").is_empty()).then_some(false)
}

/// Texts of `role` in a line, without tool results.
fn texts_of<'a>(line: &'a Line, role: &str) -> Vec<&'a str> {
    let is_role = |said: &str| said == role || (said == "model" && role == "assistant");
    let message = line.message.as_ref();
    let message = message.filter(|message| message.role.as_deref().is_some_and(is_role));
    match message.and_then(|message| message.content.as_ref()) {
        Some(Content::Text(text)) => vec![text],
        Some(Content::Blocks(blocks)) => {
            blocks.iter().filter_map(|it| it.text.as_deref()).collect()
        }
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &[&str], answer: &str, expected: bool) {
        let tail = lines.join("\n");
        assert_eq!(AnswerEnd::of(answer).unwrap().ends_turn(tail.as_bytes()), expected, "{tail}");
    }

    #[test]
    fn an_answer_counts_only_behind_the_beginning_of_its_turn() {
        let prompt = r#"{"type":"user","message":{"role":"user","content":"go on"}}"#;
        let answer = r#"{"type": "assistant", "message": {"content": [{"type": "text", "text": "It \"works\".\nDone, \u00fc."}], "role": "assistant"}}"#;
        let said = "It \"works\".\nDone, ü.\n";
        check(&[prompt, answer], said, true);
        check(&["", "half a line\"}", prompt, answer, "{\"type\":\"last-prompt\"}"], said, true);
        check(&[prompt], said, false);
        check(&[prompt, answer, prompt], said, false);
        check(&[prompt, answer, r#"{"type":"system","subtype":"turn_duration"}"#], said, false);
        check(&[answer], said, true);
        check(&[prompt, answer], "It works.", false);
        let result =
            r#"{"message":{"role":"user","content":[{"type":"tool_result","content":"x"}]}}"#;
        check(&[prompt, answer, result], said, true);
        let quoted = r#"{"message":{"role":"user","content":"Done, ü."}}"#;
        check(&[quoted], "Done, ü.", false);
    }

    #[test]
    fn an_answer_of_codex_is_known_too() {
        let begun = r#"{"type":"event_msg","payload":{"type":"task_started"}}"#;
        let answer = r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}"#;
        check(&[begun, answer], "Done.", true);
        check(&[answer, begun], "Done.", false);
    }

    #[test]
    fn an_answer_of_qwen_code_is_known_too() {
        let prompt = r#"{"type":"user","message":{"role":"user","parts":[{"text":"go on"}]}}"#;
        let answer =
            r#"{"type":"assistant","message":{"role":"model","parts":[{"text":"Done."}]}}"#;
        check(&[prompt, answer], "Done.", true);
        check(&[answer, prompt], "Done.", false);
    }

    #[test]
    fn a_long_answer_is_known_by_its_end_and_a_blank_one_is_none() {
        let long = "ü".repeat(1_000) + "the end";
        let line = format!(r#"{{"message":{{"role":"assistant","content":"{long}"}}}}"#);
        let end = AnswerEnd::of(&long).unwrap();
        assert!(end.0.len() < 500 && end.is_in(line.as_bytes()));
        assert_eq!(AnswerEnd::of(" \n"), None);
    }
}
