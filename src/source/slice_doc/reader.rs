//! A file of documents: one alone, or one a line. Documents of several sessions may follow one another
//! in any order, as they were handed over; what belongs to one session is read together.

use super::SliceDocument;
use super::handed::{BadSlice, Talk, parse, unnamed};
use crate::domain::{HANDED_BYTES_MAX, Severity};
use crate::source::cutter::{Cut, Cutter};
use crate::source::emit::Emit;
use crate::source::layout::{Layout, layout, rest};
use crate::source::lines::{Line, Lines};
use crate::source::marks::name_of;
use crate::source::{RawSession, Sink};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom};

/// Reads a file of documents. A document that is refused is a finding, and none of it is taken.
///
/// # Errors
///
/// Only what `input` itself returns; content gives findings.
pub(in crate::source) fn read<R: Read + Seek>(mut input: R, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut emit = Emit::new(sink);
    let layout = layout(&mut input)?;
    input.rewind()?;
    match layout {
        Layout::Lines => lines(input, &mut emit)?,
        Layout::Array | Layout::Object => alone(input, &mut emit)?,
    }
    emit.finish();
    Ok(())
}

/// A document of a session: the session's id must be in it, since a file has no envelope.
fn named(bytes: &[u8]) -> Result<(SliceDocument, bool), BadSlice> {
    let (document, repaired) = parse(bytes)?;
    if document.session.is_none() { Err(unnamed()) } else { Ok((document, repaired)) }
}

/// One document over many lines. Its entries are numbered instead.
fn alone<R: Read>(input: R, emit: &mut Emit<'_, '_>) -> io::Result<()> {
    let mut cutter = Cutter::new(input);
    cutter.peek()?;
    let (number, mut bytes) = (cutter.line(), Vec::new());
    let cut = cutter.value(&mut bytes, HANDED_BYTES_MAX)?;
    emit.cut(cut, number);
    if cut == Cut::Whole {
        match named(&bytes) {
            Ok((document, repaired)) => {
                let line = line(number, repaired);
                emit.takes(&line);
                emit.session(document.head());
                Told { alone: true, ..Told::default() }.tell(document, number, emit);
            }
            Err(bad) => emit.finding(Severity::Warning, "bad-json", number, bad.to_string()),
        }
    }
    rest(&mut cutter, cut, emit)
}

/// A line of which nothing but its number and state is asked.
fn line(number: u32, repaired: bool) -> Line<'static> {
    Line { number, text: Cow::Borrowed(""), complete: true, too_long: false, repaired }
}

/// Where a line stands in the file.
struct Place {
    offset: u64,
    bytes: u64,
    number: u32,
    complete: bool,
    too_long: bool,
}

/// The lines of one session, in the order of the file; those that cannot be read stand with the
/// session of the line before them.
#[derive(Default)]
struct Session {
    head: RawSession,
    places: Vec<Place>,
}

fn lines<R: Read + Seek>(mut input: R, emit: &mut Emit<'_, '_>) -> io::Result<()> {
    let (early, sessions) = index(&mut input)?;
    let mut at = input.stream_position()?;
    let mut read = |place: &Place| -> io::Result<Vec<u8>> {
        if place.too_long {
            return Ok(Vec::new());
        }
        // Lines mostly follow each other, and whoever counts what is read sees no jump.
        if at != place.offset {
            input.seek(SeekFrom::Start(place.offset))?;
        }
        let mut bytes = Vec::new();
        input.by_ref().take(place.bytes).read_to_end(&mut bytes)?;
        at = place.offset + bytes.len() as u64;
        Ok(bytes)
    };
    for place in &early {
        told_of(&read(place)?, place, emit);
    }
    for session in sessions {
        if emit.stopped() {
            break;
        }
        emit.session(session.head);
        let mut told = Told::default();
        for place in &session.places {
            if emit.stopped() {
                break;
            }
            if let Some(document) = told_of(&read(place)?, place, emit) {
                told.tell(document, place.number, emit);
            }
        }
    }
    Ok(())
}

/// First pass: which lines belong to which session, and what all of them together say of it. Lines
/// before the first session stand alone.
fn index<R: Read + Seek>(input: &mut R) -> io::Result<(Vec<Place>, Vec<Session>)> {
    let (mut early, mut sessions): (Vec<Place>, Vec<Session>) = (Vec::new(), Vec::new());
    let mut known: HashMap<(Option<String>, String), usize> = HashMap::new();
    let mut current = None;
    let mut lines = Lines::new(input);
    let mut offset = 0;
    while let Some(line) = lines.next()? {
        let (number, complete, too_long) = (line.number, line.complete, line.too_long);
        let blank = line.text.trim().is_empty() && !too_long;
        let head = if blank || too_long { None } else { named(line.text.as_bytes()).ok() };
        let bytes = lines.passed() - offset;
        let place = Place { offset, bytes, number, complete, too_long };
        offset = lines.passed();
        if blank {
            continue;
        }
        if let Some((document, _)) = head {
            let head = document.head();
            let key = (head.namespace.clone(), head.native_id.clone());
            let at = *known.entry(key).or_insert(sessions.len());
            if at == sessions.len() {
                sessions.push(Session::default());
            }
            current = Some(at);
            if let Some(session) = sessions.get_mut(at) {
                learn(&mut session.head, head);
            }
        }
        match current.and_then(|at| sessions.get_mut(at)) {
            Some(session) => session.places.push(place),
            None => early.push(place),
        }
    }
    Ok((early, sessions))
}

/// What a later document says of the session where no earlier one did.
fn learn(session: &mut RawSession, head: RawSession) {
    let RawSession { native_id, namespace, title, cwd, parent, started_at } = head;
    session.native_id = native_id;
    session.namespace = session.namespace.take().or(namespace);
    session.title = session.title.take().or(title);
    session.cwd = session.cwd.take().or(cwd);
    session.parent = session.parent.take().or(parent);
    session.started_at = session.started_at.or(started_at);
}

/// The document on a line; what is wrong with it is told.
fn told_of(bytes: &[u8], place: &Place, emit: &mut Emit<'_, '_>) -> Option<SliceDocument> {
    let line =
        Line { complete: place.complete, too_long: place.too_long, ..line(place.number, false) };
    if !emit.takes(&line) {
        return None;
    }
    match named(bytes) {
        Ok((document, repaired)) => {
            emit.takes(&Line { repaired, ..line });
            Some(document)
        }
        Err(bad) if bad.unfinished => {
            emit.unreadable(&line, &bad.to_string());
            None
        }
        Err(bad) => {
            emit.finding(Severity::Warning, "bad-line", place.number, bad.to_string());
            None
        }
    }
}

/// What was told of one session so far.
#[derive(Default)]
struct Told {
    talk: Talk,
    /// Whether there is one document, whose entries have numbers for lines.
    alone: bool,
    /// The number of the next entry, as its writer counts.
    next: u32,
    /// A name for the words of each entry, by its number.
    words: HashMap<u32, u64>,
}

impl Told {
    /// Emits the entries of a document that were not there before. The document stands on `line`.
    fn tell(&mut self, document: SliceDocument, line: u32, emit: &mut Emit<'_, '_>) {
        let from = document.from.unwrap_or(self.next);
        if from > self.next {
            let missing = format!("expected entry {}, found {from}: those between", self.next);
            let detail = format!("{missing} were not handed over");
            emit.finding(Severity::Warning, "missing-entries", line, detail);
        }
        let (mut again, mut changed) = (0u32, 0u32);
        for (number, entry) in (1..).zip(document.entries) {
            let raw = self.talk.entry(entry, if self.alone { number } else { line });
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
            let detail = format!("{changed} of {again} entries handed over again had other words");
            emit.finding(Severity::Warning, "changed-entries", line, detail);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::testing;

    #[track_caller]
    fn check(input: &str, expected: &str) {
        testing::check_page(read, input, expected);
    }

    /// A document of `session` whose prompts are these words.
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
        assert!(format!("{third:?}").contains("entries[0]: field 1 has a name"), "{third:?}");
    }

    #[test]
    fn any_damage_is_survived() {
        let lines = [document("s", Some(0), &["a", "b"]), document("t", None, &["c"])];
        testing::survives(read, lines.join("\n").as_bytes(), 1);
    }
}
