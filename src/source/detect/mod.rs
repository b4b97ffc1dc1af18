//! Tells the format of a transcript from the beginning of its content. The file's name decides only
//! between OpenAI and Anthropic where the messages are the same in both.

mod peek;
mod shape;

use super::json::Json;
use super::markdown::fence::Fence;
use super::markdown::{aider, plain, specstory};
use crate::domain::{DETECT_BYTES_MAX, Format};

/// Lines of a JSONL file that have a vote.
const VOTES_MAX: usize = 60;
/// Lines of a text that are looked at.
const TEXT_LINES_MAX: usize = 2_000;

/// Why a file is not read.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Unknown {
    /// Nothing is in it.
    #[error("the file is empty")]
    Empty,
    /// It is no text.
    #[error("a binary file, not a transcript; expected {EXPECTED}")]
    Binary,
    /// A format that is known but not read.
    #[error("looks like {0}, which is not read; expected {EXPECTED}")]
    LooksLike(&'static str),
    /// Text of no format that is known.
    #[error("no transcript format that is known; expected {EXPECTED}")]
    Nothing,
}

/// What can be read, for messages.
const EXPECTED: &str = "a session of Claude Code or Codex, OpenAI or Anthropic messages, a ChatGPT \
    export, aider's or SpecStory's history, slices as `annalist schema slice.v1.json` has them, or \
    lines such as `user: words`";

impl Unknown {
    /// The format that the file seems to be in, if it is one that is known.
    pub fn looks_like(self) -> Option<&'static str> {
        match self {
            Unknown::LooksLike(name) => Some(name),
            Unknown::Empty | Unknown::Binary | Unknown::Nothing => None,
        }
    }
}

/// The format of a file that begins with `head`, of which at most [`DETECT_BYTES_MAX`] bytes are looked
/// at; or why it is none.
pub fn detect(head: &[u8], file_name: Option<&str>) -> Result<Format, Unknown> {
    let head = head.get(..DETECT_BYTES_MAX).unwrap_or(head);
    if let Some(name) = magic(head) {
        return Err(Unknown::LooksLike(name));
    }
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.is_empty() {
        return Err(Unknown::Empty);
    }
    let guess = match text.as_bytes().first() {
        Some(b'{' | b'[') => json(text, file_name),
        Some(_) | None if is_mostly_objects(text) => votes(text, file_name),
        Some(_) | None => prose(text),
    };
    match guess {
        Err(Unknown::Nothing) if head.contains(&0) => Err(Unknown::Binary),
        Err(_) | Ok(_) => guess,
    }
}

/// Containers, told by their first bytes.
fn magic(head: &[u8]) -> Option<&'static str> {
    const MAGIC: [(&[u8], &str); 5] = [
        (b"SQLite format 3\0", "a SQLite database (Cursor, opencode)"),
        (b"PK\x03\x04", "a zip archive (unpack it: a ChatGPT export holds conversations.json)"),
        (b"\x28\xb5\x2f\xfd", "a zstd archive (unpack it)"),
        (b"\x1f\x8b", "a gzip archive (unpack it)"),
        (b"%PDF-", "a PDF"),
    ];
    MAGIC.iter().find(|(bytes, _)| head.starts_with(bytes)).map(|(_, name)| *name)
}

/// Whether a file of lines begins with a broken one; a document with an example of one is none.
fn is_mostly_objects(text: &str) -> bool {
    let lines = || text.lines().filter(|line| !line.trim().is_empty()).take(VOTES_MAX);
    let objects = lines().filter(|line| line.starts_with('{')).count();
    objects * 2 >= lines().count() && objects > 1
}

fn json(text: &str, file_name: Option<&str>) -> Result<Format, Unknown> {
    let (first, rest) = peek::value(text);
    let first_line = text.lines().next().unwrap_or_default();
    let ends_with_line = peek::value(first_line).1.is_some_and(|rest| rest.trim().is_empty());
    let alone = rest.is_none_or(|rest| rest.trim().is_empty());
    // A whole `[]`, and not a broken list that merely began.
    if matches!(&first, Json::List(list) if list.is_empty()) && rest.is_some() && alone {
        return shape::of_messages(&[], file_name);
    }
    let whole = || shape::of_value(&first, file_name);
    let lines = || votes(text, file_name);
    // A whole value on the first line and more below: lines. Else one value; a broken first line
    // hides which, so that each is tried.
    let (likely, other) =
        if ends_with_line && !alone { (lines(), whole()) } else { (whole(), lines()) };
    match likely {
        Err(Unknown::Nothing) => other,
        Err(_) | Ok(_) => likely,
    }
}

/// The shape that most lines have; lines of no known shape have no vote.
fn votes(text: &str, file_name: Option<&str>) -> Result<Format, Unknown> {
    let mut counts: Vec<(Result<Format, Unknown>, usize)> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()).take(VOTES_MAX) {
        let vote = shape::of_line(&peek::value(line).0, file_name);
        if vote == Err(Unknown::Nothing) {
            continue;
        }
        match counts.iter_mut().find(|(known, _)| *known == vote) {
            Some((_, count)) => *count += 1,
            None => counts.push((vote, 1)),
        }
    }
    let best = counts.iter().rev().max_by_key(|(_, count)| *count).map(|(vote, _)| *vote);
    // Tools in a single line settle whose messages they all are.
    let anthropic = counts.iter().any(|(vote, _)| *vote == Ok(Format::Anthropic));
    if best == Some(Ok(Format::Openai)) && anthropic {
        return Ok(Format::Anthropic);
    }
    best.unwrap_or(Err(Unknown::Nothing))
}

fn prose(text: &str) -> Result<Format, Unknown> {
    let first = text.lines().next().unwrap_or_default();
    if first.starts_with("<!-- Generated by SpecStory") || specstory::heading(first).is_some() {
        return Ok(Format::Specstory);
    }
    let mut fence = Fence::default();
    let outside: Vec<&str> =
        text.lines().take(TEXT_LINES_MAX).filter(|line| !fence.line(line)).collect();
    let starts = outside.iter().filter(|line| aider::start_of(line).is_some()).count();
    let begins =
        aider::start_of(first).is_some() || first.starts_with("> ") || first.starts_with("#### ");
    // A beginning that was cut off may be anything; two starts are no accident.
    if starts > 1 || (starts == 1 && begins) {
        return Ok(Format::Aider);
    }
    let Some(opening) = plain::role_line(first) else { return Err(Unknown::Nothing) };
    let roles = outside.iter().filter_map(|line| plain::role_line(line));
    let more = roles.filter(|role| role.is_like(opening.manner())).count() > 1;
    let lone = outside.iter().filter(|line| !line.trim().is_empty()).count() == 1;
    if more || (lone && opening.speaker == crate::domain::Speaker::Person) {
        return Ok(Format::Plain);
    }
    Err(Unknown::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: Result<Format, Unknown>) {
        assert_eq!(detect(text.as_bytes(), None), expected);
        let with_mark = format!("\u{feff}\r\n{text}");
        assert_eq!(detect(with_mark.as_bytes(), None), expected, "with a byte order mark");
    }

    const CODEX: &str =
        r#"{"timestamp":"t","type":"session_meta","payload":{"id":"x","instructions":null}}"#;
    const CLAUDE: &str =
        r#"{"parentUuid":null,"type":"user","message":{"role":"user","content":"q"},"uuid":"u"}"#;

    #[test]
    fn lines_are_told_by_their_votes() {
        check(CODEX, Ok(Format::Codex));
        check(&format!("{CODEX}\n{CODEX}\n"), Ok(Format::Codex));
        check(r#"{"id":"x","timestamp":"t","instructions":null}"#, Ok(Format::Codex));
        check(
            "{\"record_type\":\"state\"}\n{\"type\":\"message\",\"role\":\"user\",\"content\":[]}\n",
            Ok(Format::Codex),
        );
        check(CLAUDE, Ok(Format::ClaudeCode));
        check(&format!("{{broken\n{CLAUDE}\n"), Ok(Format::ClaudeCode));
        check(&format!("broken\n{CLAUDE}\n{CLAUDE}\n"), Ok(Format::ClaudeCode));
        check(r#"{"type":"summary","summary":"s","leafUuid":"l"}"#, Ok(Format::ClaudeCode));
        check(r#"{"type":"system","subtype":"init","session_id":"s"}"#, Ok(Format::ClaudeCode));
        check(r#"{"loglines":[{"type":"user"}]}"#, Ok(Format::ClaudeCode));
    }

    #[test]
    fn messages_are_told_by_what_only_one_has() {
        check(r#"[{"role":"system","content":"s"}]"#, Ok(Format::Openai));
        check(r#"{"messages":[{"role":"tool","content":"s"}]}"#, Ok(Format::Openai));
        check(r#"{"custom_id":"c","body":{"messages":[]}}"#, Ok(Format::Openai));
        check(r#"[{"task_id":1,"traj":[]}]"#, Ok(Format::Openai));
        check(r#"{"conversations":[{"from":"human","value":"q"}]}"#, Ok(Format::Openai));
        check(
            r#"{"system":"s","messages":[{"role":"user","content":"q"}]}"#,
            Ok(Format::Anthropic),
        );
        check(
            r#"[{"role":"user","content":[{"type":"tool_result","content":"#,
            Ok(Format::Anthropic),
        );
        check(
            r#"[{"role":"user","content":[{"type":"text","text":"<task>x</task>"}]}]"#,
            Ok(Format::Anthropic),
        );
    }

    #[test]
    fn odd_elements_do_not_hide_the_messages_behind_them() {
        const ODD: [&str; 5] = [
            r#"{"role":"user","content":null}"#,
            r#"{"role":"user"}"#,
            r#""STRING""#,
            r#"{"content":"NOROLE"}"#,
            "null",
        ];
        for odd in ODD {
            check(&format!(r#"[{odd},{{"role":"user","content":"q"}}]"#), Ok(Format::Openai));
            check(
                &format!(
                    r#"[{odd},{{"role":"user","content":"q"}},
                        {{"role":"assistant","content":[{{"type":"tool_use","id":"t"}}]}}]"#
                ),
                Ok(Format::Anthropic),
            );
        }
    }

    #[test]
    fn no_messages_are_messages_too() {
        check("[]", Ok(Format::Openai));
        check("[ ]\n", Ok(Format::Openai));
        check(r#"{"messages":[]}"#, Ok(Format::Openai));
        assert_eq!(detect(b"[]", Some("claude.json")), Ok(Format::Anthropic));
        check("[", Err(Unknown::Nothing));
        check("[] an open task\n", Err(Unknown::Nothing));
    }

    #[test]
    fn other_arrays_are_no_messages() {
        check(r#"[{"a":1},{"b":2}]"#, Err(Unknown::Nothing));
        check(r#"["a",{"name":"x","role":"admin","text":"t"}]"#, Err(Unknown::Nothing));
        check(r#"[{"content":"a"},{"content":"b"}]"#, Err(Unknown::Nothing));
        check(r#"[[],{},null]"#, Err(Unknown::Nothing));
        let late = format!(r#"[{}{{"role":"user","content":"q"}}]"#, "1,".repeat(8));
        check(&late, Err(Unknown::Nothing));
    }

    #[test]
    fn the_name_decides_between_equals_only() {
        let plain = br#"[{"role":"user","content":"q"}]"#;
        assert_eq!(detect(plain, Some("chat.json")), Ok(Format::Openai));
        assert_eq!(detect(plain, Some("api_conversation_history.json")), Ok(Format::Anthropic));
        let openai = br#"[{"role":"system","content":"q"}]"#;
        assert_eq!(detect(openai, Some("claude.json")), Ok(Format::Openai));
        assert_eq!(detect(CODEX.as_bytes(), Some("claude.json")), Ok(Format::Codex));
    }

    #[test]
    fn exports_and_texts_are_told() {
        check(r#"[{"title":"T","mapping":{"a":{"#, Ok(Format::Chatgpt));
        check(r#"{"mapping":{}}"#, Ok(Format::Chatgpt));
        check(r#"[{"uuid":"u","chat_messages":[]}]"#, Ok(Format::Chatgpt));
        check("# aider chat started at 2026-01-02 03:04:05\n", Ok(Format::Aider));
        check("<!-- Generated by SpecStory -->\n", Ok(Format::Specstory));
        check("_**User**_\n\nq\n", Ok(Format::Specstory));
        check("user: q\nassistant: a\n", Ok(Format::Plain));
        check("**Human:** q\n\n**AI:** a\n", Ok(Format::Plain));
        check("user: only this\n", Ok(Format::Plain));
    }

    #[test]
    fn slices_are_told_by_their_entries() {
        const ENTRY: &str = r#"{"speaker":"person","text":"q"}"#;
        check(&format!(r#"{{"session":"s","entries":[{ENTRY}]}}"#), Ok(Format::Slice));
        check(&format!(r#"{{"entries":[{ENTRY}],"session":"s"}}"#), Ok(Format::Slice));
        check(r#"{"session":"s","closed":true,"entries":[]}"#, Ok(Format::Slice));
        check(r#"{"entries":[{"speaker":"person","text":"some wo"#, Ok(Format::Slice));
        let line = format!(r#"{{"session":"s","entries":[{ENTRY}]}}"#);
        check(&format!("{line}\n{line}\n"), Ok(Format::Slice));
        check(&format!("{{broken\n{line}\n"), Ok(Format::Slice));
        check(r#"{"entries":[{"text":"q"}]}"#, Err(Unknown::Nothing));
    }

    #[test]
    fn what_is_not_read_is_named() {
        check(
            r#"{"sessionId":"s","projectHash":"h","messages":[]}"#,
            Err(Unknown::LooksLike("Gemini CLI")),
        );
        check(
            r#"{"role":"user","message":{"content":[]}}"#,
            Err(Unknown::LooksLike("a Cursor agent transcript")),
        );
        check(
            r#"{"type":"session","version":3,"id":"x"}"#,
            Err(Unknown::LooksLike("pi or OpenClaw")),
        );
        assert!(detect(b"SQLite format 3\0", None).unwrap_err().looks_like().is_some());
        assert!(detect(b"PK\x03\x04", None).unwrap_err().to_string().contains("zip"));
    }

    #[test]
    fn nothing_is_told_apart() {
        assert_eq!(detect(b"", None), Err(Unknown::Empty));
        assert_eq!(detect(b"\xef\xbb\xbf \n", None), Err(Unknown::Empty));
        assert_eq!(detect(b"\x7fELF\0\0", None), Err(Unknown::Binary));
        assert_eq!(detect(&[0xff, 0xfe, b'u', 0, b's', 0], None), Err(Unknown::Binary));
        check("Just some prose.\n", Err(Unknown::Nothing));
    }

    #[test]
    fn documents_are_no_transcripts() {
        check("# Read me\n\nuser: admin\nassistant: none\n", Err(Unknown::Nothing));
        check("user: admin\npassword: x\nport: 1\n", Err(Unknown::Nothing));
        check("system: linux\narch: x86\n", Err(Unknown::Nothing));
        check(
            "# Notes\n\n```\n# aider chat started at 2026-01-02 03:04:05\n```\n",
            Err(Unknown::Nothing),
        );
        check("{\"name\": \"x\", \"version\": \"1\"}", Err(Unknown::Nothing));
        check("[package]\nname = \"x\"\n", Err(Unknown::Nothing));
        check("[1, 2, 3]", Err(Unknown::Nothing));
    }

    proptest! {
        #[test]
        fn any_beginning_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = detect(&bytes, None);
        }

        #[test]
        fn a_cut_beginning_is_survived(end in 0..CODEX.len()) {
            let _ = detect(CODEX.get(..end).unwrap_or_default().as_bytes(), None);
        }
    }
}
