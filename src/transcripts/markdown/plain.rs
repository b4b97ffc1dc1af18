//! Plain conversations: lines `role: words`, each continued until the next role. All roles have the
//! style of the first. In chats that VS Code copied and that Cursor exported, names are the roles. A
//! session's id is the digest of its first message, which does not change when the file grows.

use super::{Fence, LineReader, read_lines};
use crate::domain::{
    DETECT_BYTES_MAX, Digest, EntryKind, LINE_BYTES_MAX, Severity, Speaker, Timestamp,
};
use crate::transcripts::cursor::split;
use crate::transcripts::emit::Emit;
use crate::transcripts::raw::{Input, RawEntry, RawSession, Sink};
use std::io::{self, Read};

/// Role names in lower case, separated by `|`.
const ROLES: [(Speaker, &str); 4] = [
    (Speaker::Person, "user|human|me|person|prompt"),
    (Speaker::Assistant, "assistant|ai|bot|agent|model|claude|gpt|chatgpt|codex"),
    (Speaker::Client, "system|developer"),
    (Speaker::Tool, "tool|function"),
];
/// Names in a chat that Cursor exported; a rule is in front of them.
const EXPORTED: [&str; 2] = ["**User**", "**Cursor**"];
/// Maximum size of a timestamp before a role.
const STAMP_BYTES_MAX: usize = 40;

pub(crate) fn read(input: &mut dyn Input, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut head = Vec::new();
    (&mut *input).take(DETECT_BYTES_MAX as u64).read_to_end(&mut head)?;
    input.rewind()?;
    let names = names(&String::from_utf8_lossy(&head));
    let emit = Emit::new(sink);
    read_lines(input, &mut PlainReader { emit, names, is_free: true, ..PlainReader::default() })
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

/// Names of the user and the assistant that are the roles of a chat, if Cursor exported it or VS Code copied it.
pub(crate) fn names(text: &str) -> Option<[String; 2]> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).skip(1);
    let is_export = |it: &str| it.starts_with("_Exported on ") && it.contains(" from Cursor (");
    if lines.next().is_some_and(is_export) {
        return Some(EXPORTED.map(str::to_owned));
    }
    let (user, _) = text.split_once(": ")?;
    let is_part = |it: u8| it.is_ascii_alphanumeric() || b"-_".contains(&it);
    let is_name = !user.is_empty() && user.bytes().all(is_part);
    let names = [format!("{user}:"), "GitHub Copilot:".to_owned()];
    let opening = text.lines().next().and_then(role_line).map(|it| it.style);
    let mut is_after_blank = false;
    // The first answer tells, for other names may be of any conversation or note.
    let is_copy = is_name.then(|| text.lines()).into_iter().flatten().find_map(|line| {
        let is_free = std::mem::replace(&mut is_after_blank, line.trim().is_empty());
        let role = named_line(line, &names).filter(|_| is_free);
        let is_answer = |it: &RoleLine<'_>| it.speaker == Speaker::Assistant;
        if role.as_ref().is_some_and(is_answer) {
            return Some(true);
        }
        let other = role_line(line).filter(is_answer).map(|it| it.style);
        other.zip(opening).is_some_and(|(it, opening)| it.is_like(opening)).then_some(false)
    });
    (is_copy == Some(true)).then_some(names)
}

fn named_line<'t>(line: &'t str, names: &[String; 2]) -> Option<RoleLine<'t>> {
    let style = RoleStyle { bold: false, stamped: false, case: Case::Any };
    [Speaker::Person, Speaker::Assistant].into_iter().zip(names).find_map(|(speaker, name)| {
        let words = line.strip_prefix(name)?;
        let is_role = words.is_empty() || words.starts_with(' ');
        is_role.then(|| RoleLine { speaker, style, stamp: None, words: words.trim_start() })
    })
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

#[derive(Default)]
struct PlainReader<'e> {
    emit: Emit<'e>,
    style: Option<RoleStyle>,
    names: Option<[String; 2]>,
    /// True behind what is in front of a name: a rule in an export, a blank line in a copy.
    is_free: bool,
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
        let is_like = |role: &RoleLine<'_>| {
            !quoted && self.style.is_none_or(|style| role.style.is_like(style))
        };
        // A block of code that is not closed hides no turn.
        let role = match &self.names {
            Some(names) => named_line(line, names).filter(|_| self.is_free),
            None => role_line(line).filter(is_like),
        };
        let is_blank = line.trim().is_empty();
        match self.is_export() {
            true if is_blank => {}
            true => self.is_free = line.trim_end() == "---",
            false => self.is_free = is_blank,
        }
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
            None if self.names.is_some() => {}
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
    fn is_export(&self) -> bool {
        self.names.as_ref().is_some_and(|names| names[0] == EXPORTED[0])
    }

    fn flush(&mut self) {
        let Some(message) = self.message.take() else { return };
        self.fence = Fence::default();
        let is_export = self.is_export();
        let text = message.text.trim_end();
        let text = text.strip_suffix("\n---").filter(|_| is_export).unwrap_or(text).trim();
        if !self.begun {
            self.begun = true;
            let native_id = Digest::of(&[message.speaker.name(), text]).to_string();
            let head = RawSession { native_id, started_at: message.at, ..RawSession::default() };
            self.emit.session(head);
        }
        if is_export && message.speaker == Speaker::Person {
            let parts = split(text).into_iter().map(|part| part.entry(message.line));
            return parts.for_each(|entry| self.emit.entry(entry));
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
    fn a_chat_that_vs_code_copied_names_the_user() {
        let chat = "ada-l: Port?\nuser: root\n\nGitHub Copilot: Read [](a.md)\n\nIt is 8443.\n\nada-l:\nThanks\n";
        check(
            chat,
            &[
                "= …",
                "1: person prompt: Port?\nuser: root",
                "4: assistant text: Read [](a.md)\n\nIt is 8443.",
                "8: person prompt: Thanks",
            ],
        );
        for name in ["ada-l", "User", "user"] {
            let open = format!(
                "\u{feff}\n{name}: a\n\nGitHub Copilot: b\n```\n\n{name}: c\n\nGitHub Copilot: d\n"
            );
            let items = testing::read(read, open.as_bytes());
            assert_eq!(testing::entries(&items).count(), 4, "{name}");
        }
        assert_eq!(names("Note: we use Copilot.\nIt is good.\n"), None);
        assert_eq!(names("Note: tools\n\nCursor: $20\nGitHub Copilot: $10\n"), None);
        assert_eq!(names(": x\n\nGitHub Copilot: y\n"), None);
        check(
            "root: a\n\nGitHub Copilot:\n```yaml\nroot: /srv\n```\n",
            &["= …", "1: person prompt: a", "3: assistant text: ```yaml\nroot: /srv\n```"],
        );
        check(
            "User: compare:\n\nGitHub: x\nGitHub Copilot: good\nAssistant: ok\n\nGitHub Copilot: no\n",
            &[
                "= …",
                "1: person prompt: compare:\n\nGitHub: x\nGitHub Copilot: good",
                "5: assistant text: ok\n\nGitHub Copilot: no",
            ],
        );
        assert_eq!(names("Two words: x\nGitHub Copilot: y\n"), None);
    }

    #[test]
    fn a_chat_that_cursor_exported_has_a_rule_in_front_of_each_message() {
        let chat = "# Ports\n_Exported on 19/10/2025 at 12:29:42 GMT+8 from Cursor (1.7.38)_\n\n---\n\n\
            **User**\n\nWhich port?\n\n---\n\n**Cursor**\n\n```\n**User**\nroot\n\n---\n\n\
            **User**\n\nThanks for a---\n";
        check(
            chat,
            &[
                "= …",
                "6: person prompt: Which port?",
                "12: assistant text: ```\n**User**\nroot",
                "20: person prompt: Thanks for a---",
            ],
        );
        assert!(
            names("# T\n\n_Exported on 9/3/2025 at 21:07:09 GMT+8 from Cursor (1.5.7)_\n")
                .is_some()
        );
        assert!(names("# Ports\n\n_Exported on Monday_\n").is_none());
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
