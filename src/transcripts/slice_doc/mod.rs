//! Slice documents, which agents, hooks and other machines submit: one JSON object, or JSONL, with
//! the entries since the last document. A document is accepted whole or refused. In a file, documents
//! of several sessions may be interleaved; those of one session are read together.

mod document;
#[cfg(test)]
mod tests;

pub(crate) use document::{SliceError, parse_slice, schema as slice_schema, schema_file};

use crate::domain::{HANDED_BYTES_MAX, Severity};
use crate::transcripts::cutter::{Cut, Cutter, Layout, Line, each_line, layout};
use crate::transcripts::emit::Emit;
use crate::transcripts::json::JsonExt;
use crate::transcripts::marks::name_of;
use crate::transcripts::raw::{Input, RawSession, Sink};
use crate::transcripts::tools::OpenCalls;
use document::{SliceDocument, parse};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Read, SeekFrom};

/// True if a value is a slice document: it has entries, and either speakers or a session.
pub(super) fn is_slice(json: &Value) -> bool {
    let entries = &json["entries"];
    let speaks = entries.list().first().is_some_and(|entry| entry.has("speaker"));
    speaks || (entries.is_array() && json.first_text(&["session"]).is_some())
}

/// Reads a file of documents. A refused document becomes a finding and contributes nothing.
pub(crate) fn read(input: &mut dyn Input, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut emit = Emit::new(sink);
    match layout(input)? {
        Layout::Lines => lines(input, &mut emit)?,
        Layout::Array | Layout::Object => single(input, &mut emit)?,
    }
    emit.finish();
    Ok(())
}

/// Parses the document on `line`, which must have a session id, since a file has no envelope to
/// name one.
fn parse_named(bytes: &[u8], line: u32, emit: &mut Emit<'_>) -> Result<SliceDocument, SliceError> {
    let (document, repaired) = parse(bytes)?;
    if document.session.is_none() {
        return Err(SliceError::unnamed());
    }
    if repaired {
        emit.repaired(line);
    }
    Ok(document)
}

/// Reads one document over many lines; its entries use their positions as line numbers.
fn single(input: &mut dyn Input, emit: &mut Emit<'_>) -> io::Result<()> {
    let mut cutter = Cutter::new(input);
    cutter.peek()?;
    let (number, mut bytes) = (cutter.line(), Vec::new());
    let cut = cutter.value(&mut bytes, HANDED_BYTES_MAX)?;
    emit.cut(cut, number);
    if cut == Cut::Whole {
        match parse_named(&bytes, number, emit) {
            Ok(document) => {
                emit.session(document.head());
                let mut session = SessionEntries { numbered: true, ..SessionEntries::default() };
                session.emit(document, number, emit);
            }
            Err(error) => emit.finding(Severity::Warning, "bad-json", number, error.to_string()),
        }
    }
    emit.rest(&mut cutter, cut)
}

/// Lines of one session in file order, without their text, and the offset of each. An unreadable
/// line belongs to the session of the line before it.
#[derive(Default)]
struct SessionLines {
    head: RawSession,
    lines: Vec<(u64, Line<'static>)>,
}

fn lines(input: &mut dyn Input, emit: &mut Emit<'_>) -> io::Result<()> {
    let sessions = index(input)?;
    let mut position = input.stream_position()?;
    for session in sessions {
        // Lines before the first session have no header.
        if !session.head.native_id.is_empty() {
            emit.session(session.head);
        }
        let mut entries = SessionEntries::default();
        for (offset, line) in &session.lines {
            if emit.stopped() {
                return Ok(());
            }
            if !emit.accepts(line) {
                continue;
            }
            // Seeking would drop the buffer; lines are mostly consecutive.
            if position != *offset {
                input.seek(SeekFrom::Start(*offset))?;
            }
            let mut bytes = Vec::new();
            Read::take(&mut *input, line.end - offset).read_to_end(&mut bytes)?;
            position = offset + bytes.len() as u64;
            match parse_named(&bytes, line.number, emit) {
                Ok(document) => entries.emit(document, line.number, emit),
                Err(error) if error.unfinished => emit.unreadable(line, &error.to_string()),
                Err(error) => {
                    emit.finding(Severity::Warning, "bad-line", line.number, error.to_string());
                }
            }
        }
    }
    Ok(())
}

/// First pass: collects the lines and the header of each session.
fn index(input: &mut dyn Input) -> io::Result<Vec<SessionLines>> {
    let mut sessions = vec![SessionLines::default()];
    let mut known: HashMap<(Option<String>, String), usize> = HashMap::new();
    let (mut current, mut offset) = (0, 0);
    each_line(input, |line| {
        let Line { number, complete, too_long, repaired: _, end, text } = line;
        let is_blank = text.trim().is_empty() && !too_long;
        let parsed = if is_blank || too_long { None } else { parse(text.as_bytes()).ok() };
        if let Some((document, _)) = parsed.filter(|(document, _)| document.session.is_some()) {
            let head = document.head();
            let key = (head.namespace.clone(), head.native_id.clone());
            current = *known.entry(key).or_insert(sessions.len());
            if current == sessions.len() {
                sessions.push(SessionLines::default());
            }
            if let Some(session) = sessions.get_mut(current) {
                complete_head(&mut session.head, head);
            }
        }
        if let Some(session) = sessions.get_mut(current).filter(|_| !is_blank) {
            let text = Cow::Borrowed("");
            let line = Line { number, text, complete, too_long, repaired: false, end };
            session.lines.push((offset, line));
        }
        offset = end;
        true
    })?;
    Ok(sessions)
}

/// Fills the fields that earlier documents of the session left empty.
fn complete_head(session: &mut RawSession, head: RawSession) {
    let RawSession { native_id, namespace, title, cwd, parent, branches, started_at } = head;
    session.native_id = native_id;
    session.namespace = session.namespace.take().or(namespace);
    session.title = session.title.take().or(title);
    session.cwd = session.cwd.take().or(cwd);
    session.parent = session.parent.take().or(parent);
    session.branches = session.branches.take().or(branches);
    session.started_at = session.started_at.or(started_at);
}

/// State of one session's emitted entries.
#[derive(Default)]
struct SessionEntries {
    /// Results find their calls across documents.
    calls: OpenCalls<String>,
    /// True if entries use their position as line number, for a file with one document.
    numbered: bool,
    /// Ordinal of the next entry, as counted by the sender.
    next: u32,
    /// Hash of each entry's text, by ordinal.
    words: HashMap<u32, u64>,
}

impl SessionEntries {
    /// Emits the new entries of the document on `line`.
    fn emit(&mut self, document: SliceDocument, line: u32, emit: &mut Emit<'_>) {
        let from = document.from.unwrap_or(self.next);
        if from > self.next {
            let missing = format!("expected entry {}, found {from}: those between", self.next);
            let detail = format!("{missing} were not sent");
            emit.finding(Severity::Warning, "missing-entries", line, detail);
        }
        let (mut again, mut changed) = (0u32, 0u32);
        for (number, entry) in (1..).zip(document.entries) {
            let raw = entry.read(if self.numbered { number } else { line }, &mut self.calls);
            let ordinal = from.saturating_add(number - 1);
            let words = name_of(&raw.text);
            match self.words.get(&ordinal) {
                Some(before) => {
                    again += 1;
                    changed += u32::from(*before != words);
                }
                None => {
                    self.words.insert(ordinal, words);
                    emit.entry(raw);
                }
            }
            self.next = self.next.max(ordinal.saturating_add(1));
        }
        if changed > 0 {
            let detail =
                format!("{changed} of {again} entries that were sent again had different text");
            emit.finding(Severity::Warning, "changed-entries", line, detail);
        }
    }
}

#[cfg(test)]
mod reader_tests {
    use super::*;
    use crate::transcripts::testing;

    #[track_caller]
    fn check(input: &str, expected: &str) {
        testing::check_page(read, input, expected);
    }

    /// A document of `session` with one prompt for each of `words`.
    fn document(session: &str, from: Option<u32>, words: &[&str]) -> String {
        let prompt = |words: &&str| format!(r#"{{"speaker":"person","text":"{words}"}}"#);
        let entries: Vec<String> = words.iter().map(prompt).collect();
        let from = from.map(|from| format!(r#""from":{from},"#)).unwrap_or_default();
        format!(r#"{{"session":"{session}",{from}"entries":[{}]}}"#, entries.join(","))
    }

    #[test]
    fn a_document_alone_numbers_its_entries() {
        let pretty = document("s", None, &["a", "b"]).replace('{', "{\n");
        check(&pretty, "= s\n1: person prompt: a\n2: person prompt: b");
        check(
            &format!("{pretty}\n{{}}"),
            "= s\n1: person prompt: a\n2: person prompt: b\n! bad-json 5",
        );
    }

    #[test]
    fn a_document_alone_may_be_the_middle_of_a_session() {
        let pretty = document("s", Some(4), &["a"]).replace('{', "{\n");
        check(&pretty, "= s\n! missing-entries 1\n1: person prompt: a");
    }

    #[test]
    fn sessions_that_alternate_are_read_one_after_the_other() {
        let lines = [
            document("s", None, &["a"]),
            r#"{"session":"t","title":"T","namespace":"n","entries":[]}"#.to_owned(),
            document("s", None, &["b", "c"]),
            r#"{"session":"t","namespace":"n","entries":[{"speaker":"web","text":"d"}],"closed":true}"#.to_owned(),
            String::new(),
            document("s", Some(3), &["e"]),
        ];
        check(
            &lines.join("\r\n"),
            "= s
             1: person prompt: a
             3: person prompt: b
             3: person prompt: c
             6: person prompt: e
             = t T
             4: web tool_result tool#: d",
        );
    }

    #[test]
    fn a_call_is_answered_in_a_later_document() {
        check(
            "{\"session\":\"s\",\"entries\":[{\"speaker\":\"assistant\",\"kind\":\"tool_call\",\"tool\":\"bash\",\"call_id\":\"c\",\"text\":\"ls\"}]}
             {\"session\":\"s\",\"entries\":[{\"speaker\":\"tool\",\"call_id\":\"c\",\"text\":\"x\"}]}\n",
            "= s
             1: assistant tool_call bash#c: ls
             2: tool tool_result bash#c: x",
        );
    }

    #[test]
    fn what_is_handed_over_twice_is_read_once() {
        let lines = [
            document("s", Some(0), &["a", "b"]),
            document("s", Some(0), &["a", "b"]),
            document("s", Some(1), &["B", "c"]),
            document("s", Some(9), &["j"]),
            document("s", Some(3), &["d"]),
        ];
        check(
            &lines.join("\n"),
            "= s
             1: person prompt: a
             1: person prompt: b
             3: person prompt: c
             ! changed-entries 3
             ! missing-entries 4
             4: person prompt: j
             5: person prompt: d",
        );
    }

    #[test]
    fn a_bad_line_costs_itself_and_says_where() {
        let lines = [
            "oops".to_owned(),
            document("s", None, &["a"]),
            document("s", None, &["b"]).replace("speaker", "role"),
            r#"{"entries":[]}"#.to_owned(),
            document("s", None, &["c"]),
            document("s", None, &["d"])[..40].to_owned(),
        ];
        let page = lines.join("\n");
        check(
            &page,
            "! bad-line 1
             = s
             2: person prompt: a
             ! bad-line 3
             ! bad-line 4
             5: person prompt: c
             ! truncated-last-line 6",
        );
        let items = testing::read(read, page.as_bytes());
        let third = items.iter().find(|item| testing::show_item(item) == "! bad-line 3").unwrap();
        assert!(
            format!("{third:?}").contains("entries[0]: field 1 has an unknown name"),
            "{third:?}"
        );
    }

    #[test]
    fn any_damage_is_survived() {
        let lines = [document("s", Some(0), &["a", "b"]), document("t", None, &["c"])];
        testing::survives(read, lines.join("\n").as_bytes(), 1);
    }
}
