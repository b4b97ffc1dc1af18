//! Plain conversations: lines `role: words`, each continued until the next role. All roles have the
//! style of the first. A session's id is the digest of its first message, which does not change
//! when the file grows.

use super::{Fence, LineReader, read_lines};
use crate::domain::{Digest, EntryKind, LINE_BYTES_MAX, Severity, Speaker, Timestamp};
use crate::transcripts::emit::Emit;
use crate::transcripts::raw::{Input, RawEntry, RawSession, Sink};
use std::io;

/// Role names in lower case, separated by `|`.
const ROLES: [(Speaker, &str); 4] = [
    (Speaker::Person, "user|human|me|person|prompt"),
    (Speaker::Assistant, "assistant|ai|bot|agent|model|claude|gpt|chatgpt|codex"),
    (Speaker::Client, "system|developer"),
    (Speaker::Tool, "tool|function"),
];
/// Maximum size of a timestamp before a role.
const STAMP_BYTES_MAX: usize = 40;

pub(crate) fn read(input: &mut dyn Input, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut reader = PlainReader {
        emit: Emit::new(sink),
        style: None,
        fence: Fence::default(),
        message: None,
        begun: false,
    };
    read_lines(input, &mut reader)
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct RoleLine<'t> {
    pub(crate) speaker: Speaker,
    pub(crate) style: RoleStyle,
    stamp: Option<&'t str>,
    words: &'t str,
}

/// Style of a role; the same throughout a conversation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct RoleStyle {
    bold: bool,
    stamped: bool,
    case: Case,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Case {
    Lower,
    Upper,
    Mixed,
    /// Acronym, always upper case.
    Any,
}

/// Reads `role: words`, `**Role:** words` or `[time] role: words`.
pub(crate) fn role_line(line: &str) -> Option<RoleLine<'_>> {
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
    // `user:password` is not a role.
    if !words.is_empty() && !words.starts_with([' ', '\t']) {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let (speaker, _) = *ROLES.iter().find(|(_, names)| names.split('|').any(|it| it == lower))?;
    let case = match name {
        _ if name == lower => Case::Lower,
        "AI" | "GPT" => Case::Any,
        _ if name.bytes().all(|b| b.is_ascii_uppercase()) => Case::Upper,
        _ => Case::Mixed,
    };
    let style = RoleStyle { bold: bold.is_some(), stamped: stamp.is_some(), case };
    Some(RoleLine { speaker, style, stamp, words: words.trim_start() })
}

impl RoleStyle {
    pub(crate) fn is_like(self, other: RoleStyle) -> bool {
        let case = self.case == other.case || self.case == Case::Any || other.case == Case::Any;
        self.bold == other.bold && self.stamped == other.stamped && case
    }
}

struct Message {
    line: u32,
    speaker: Speaker,
    at: Option<Timestamp>,
    text: String,
}

struct PlainReader<'e> {
    emit: Emit<'e>,
    style: Option<RoleStyle>,
    fence: Fence,
    message: Option<Message>,
    begun: bool,
}

impl<'e> LineReader<'e> for PlainReader<'e> {
    fn emit(&mut self) -> &mut Emit<'e> {
        &mut self.emit
    }

    fn line(&mut self, line: &str, number: u32) {
        let quoted = self.fence.line(line);
        let role = role_line(line)
            .filter(|role| !quoted && self.style.is_none_or(|style| role.style.is_like(style)));
        if let Some(role) = role {
            self.flush();
            self.style.get_or_insert(role.style);
            let at = role.stamp.and_then(Timestamp::parse);
            let text = format!("{}\n", role.words);
            self.fence.line(role.words);
            self.message = Some(Message { line: number, speaker: role.speaker, at, text });
            return;
        }
        let is_full = |it: &&Message| it.text.len() + line.len() > LINE_BYTES_MAX;
        let full = self.message.as_ref().filter(is_full).map(|it| (it.speaker, it.at));
        if let Some((speaker, at)) = full {
            self.flush();
            self.message = Some(Message { line: number, speaker, at, text: String::new() });
        }
        match &mut self.message {
            Some(message) => {
                message.text.extend([line, "\n"]);
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

impl PlainReader<'_> {
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
        self.emit.entry(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcripts::testing;

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
