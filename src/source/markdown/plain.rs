//! Plain conversations: lines `role: words`, with more lines until the next role. Written by people
//! and small tools, so that the first line's manner decides how strictly the others are read.
//!
//! A session's id is the digest of its first message, which does not change when the file grows.

use super::fence::Fence;
use super::{Feed, feed};
use crate::domain::{Digest, EntryKind, LINE_BYTES_MAX, Severity, Skip, Speaker, Timestamp};
use crate::source::emit::Emit;
use crate::source::{RawEntry, RawSession, Sink};
use std::io::{self, Read, Seek};

/// Names of roles, in lower case.
const PEOPLE: [&str; 5] = ["user", "human", "me", "person", "prompt"];
const ASSISTANTS: [&str; 9] =
    ["assistant", "ai", "bot", "agent", "model", "claude", "gpt", "chatgpt", "codex"];
const SYSTEMS: [&str; 2] = ["system", "developer"];
const TOOLS: [&str; 2] = ["tool", "function"];
/// The longest time before a role, in bytes.
const STAMP_BYTES_MAX: usize = 40;

/// Reads a plain conversation.
pub(in crate::source) fn read<R: Read + Seek>(input: R, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut reader = Reader {
        emit: Emit::new(sink),
        manner: None,
        fence: Fence::default(),
        message: None,
        begun: false,
    };
    feed(input, &mut reader)
}

/// A line that begins a message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::source) struct RoleLine<'t> {
    pub(in crate::source) speaker: Speaker,
    manner: Manner,
    stamp: Option<&'t str>,
    words: &'t str,
}

/// How a role is written; a conversation writes all its roles in one manner.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::source) struct Manner {
    bold: bool,
    stamped: bool,
    case: Case,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Case {
    Lower,
    Upper,
    Mixed,
    /// An acronym, which everybody writes in capitals.
    Any,
}

/// Reads `role: words`, `**Role:** words` or `[time] role: words`.
pub(in crate::source) fn role_line(line: &str) -> Option<RoleLine<'_>> {
    let (stamp, rest) = match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((stamp, rest)) if stamp.len() <= STAMP_BYTES_MAX => (Some(stamp), rest.trim_start()),
        Some(_) | None => (None, line),
    };
    let bold = rest.strip_prefix("**");
    let (name, words) = bold.unwrap_or(rest).split_once(':')?;
    let (name, words) = match (bold.is_some(), name.strip_suffix("**"), words.strip_prefix("**")) {
        (true, Some(name), _) => (name, words),
        (true, None, Some(words)) => (name, words),
        (true, None, None) => return None,
        (false, _, _) => (name, words),
    };
    // `user:password` is no one speaking.
    if !words.is_empty() && !words.starts_with([' ', '\t']) {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let among = |names: &[&str]| names.contains(&lower.as_str());
    let speaker = if among(&PEOPLE) {
        Speaker::Person
    } else if among(&ASSISTANTS) {
        Speaker::Assistant
    } else if among(&SYSTEMS) {
        Speaker::Client
    } else if among(&TOOLS) {
        Speaker::Tool
    } else {
        return None;
    };
    let case = match name {
        _ if name == lower => Case::Lower,
        "AI" | "GPT" => Case::Any,
        _ if name.bytes().all(|b| b.is_ascii_uppercase()) => Case::Upper,
        _ => Case::Mixed,
    };
    let manner = Manner { bold: bold.is_some(), stamped: stamp.is_some(), case };
    Some(RoleLine { speaker, manner, stamp, words: words.trim_start() })
}

impl RoleLine<'_> {
    /// Whether this line is written in the manner of `other`.
    pub(in crate::source) fn is_like(&self, other: Manner) -> bool {
        let own = self.manner;
        let case = own.case == other.case || own.case == Case::Any || other.case == Case::Any;
        own.bold == other.bold && own.stamped == other.stamped && case
    }

    pub(in crate::source) fn manner(&self) -> Manner {
        self.manner
    }
}

struct Message {
    line: u32,
    speaker: Speaker,
    at: Option<Timestamp>,
    text: String,
}

struct Reader<'e, 's> {
    emit: Emit<'e, 's>,
    manner: Option<Manner>,
    fence: Fence,
    message: Option<Message>,
    begun: bool,
}

impl<'e, 's: 'e> Feed<'e, 's> for Reader<'e, 's> {
    fn emit(&mut self) -> &mut Emit<'e, 's> {
        &mut self.emit
    }

    fn line(&mut self, line: &str, number: u32) {
        let quoted = self.fence.line(line);
        let role = role_line(line)
            .filter(|role| !quoted && self.manner.is_none_or(|manner| role.is_like(manner)));
        if let Some(role) = role {
            self.flush();
            self.manner.get_or_insert(role.manner);
            let at = role.stamp.and_then(Timestamp::parse);
            let mut text = role.words.to_owned();
            text.push('\n');
            self.fence.line(role.words);
            self.message = Some(Message { line: number, speaker: role.speaker, at, text });
            return;
        }
        let full = |message: &Message| message.text.len() + line.len() > LINE_BYTES_MAX;
        if let Some(message) = &self.message
            && full(message)
        {
            let (speaker, at) = (message.speaker, message.at);
            self.flush();
            self.message = Some(Message { line: number, speaker, at, text: String::new() });
        }
        match &mut self.message {
            Some(message) => {
                message.text.push_str(line);
                message.text.push('\n');
            }
            None if line.trim().is_empty() => {}
            None => {
                let detail = "expected a line such as `user: words`";
                self.emit.finding(Severity::Warning, "bad-line", number, detail);
            }
        }
    }

    fn end(&mut self) {
        self.flush();
    }
}

impl Reader<'_, '_> {
    fn flush(&mut self) {
        let Some(message) = self.message.take() else { return };
        self.fence.reset();
        let text = message.text.trim();
        if !self.begun {
            self.begun = true;
            let native_id = Digest::of(&[message.speaker.name(), text]).to_string();
            let head = RawSession { native_id, started_at: message.at, ..RawSession::default() };
            self.emit.session(head);
        }
        let kind = match message.speaker {
            Speaker::Person => EntryKind::Prompt,
            Speaker::Assistant => EntryKind::Text,
            Speaker::Tool | Speaker::Web => EntryKind::ToolResult,
            Speaker::Client => EntryKind::Injected,
        };
        let mut entry = RawEntry::new(message.line, message.speaker, kind, text);
        entry.at = message.at;
        entry.tool = (kind == EntryKind::ToolResult).then(|| "tool".to_owned());
        entry.skip = (kind == EntryKind::Injected).then_some(Skip::Injected);
        self.emit.entry(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::testing;

    #[track_caller]
    fn check(input: &str, expected: &[&str]) {
        testing::check(read, input, expected);
    }

    #[test]
    fn lines_go_on_until_the_next_role() {
        check(
            "\nuser: one\ntwo\n\nthree\nassistant: yes\nsystem: s\ntool: t\n",
            &[
                "= …",
                "2: person prompt: one\ntwo\n\nthree",
                "6: assistant text: yes",
                "7: client injected: s (injected context)",
                "8: tool tool_result tool#: t",
            ],
        );
    }

    #[test]
    fn bold_roles_and_times_are_read() {
        check(
            "**User:** q\n**Claude**: a\n",
            &["= …", "1: person prompt: q", "2: assistant text: a"],
        );
        check(
            "[2026-01-02 10:00:00] Human: q\n[10:01] AI:\na\n",
            &["= …", "1: person prompt: q", "2: assistant text: a"],
        );
    }

    #[test]
    fn another_manner_is_no_role() {
        check(
            "User: set it so:\nuser: admin\nAssistant: done\n",
            &["= …", "1: person prompt: set it so:\nuser: admin", "3: assistant text: done"],
        );
    }

    #[test]
    fn fences_quote_roles() {
        check(
            "user: see\n```\nuser: root\n```\nassistant: ok\n",
            &["= …", "1: person prompt: see\n```\nuser: root\n```", "5: assistant text: ok"],
        );
    }

    #[test]
    fn no_role_is_no_message() {
        assert_eq!(role_line("user:secret@host"), None);
        assert_eq!(role_line("Note: this"), None);
        check("just prose\n", &["! bad-line 1"]);
    }

    #[test]
    fn damage_is_survived() {
        let input = "user: é\n```\nassistant: x\n```\n[1] **AI**: y\n";
        testing::survives(read, input.as_bytes(), 1);
    }
}
