//! One document by itself: bytes in, a session and its entries out, or the one line that says why not.

use super::explain::explain;
use super::{Moment, SliceDocument, SliceEntry};
use crate::domain::{EntryKind, HANDED_BYTES_MAX, Speaker};
use crate::source::json::Json;
use crate::source::marks::OpenCalls;
use crate::source::raw::short_title;
use crate::source::said::Said;
use crate::source::text::clean;
use crate::source::{RawEntry, RawSession, outcome, repair, tools};
use std::borrow::Cow;

/// What a document hands over, before the gate: see [`seal_session`](crate::source::seal_session) and
/// [`seal`](crate::source::seal).
#[derive(Clone, Debug, PartialEq)]
pub struct Handed {
    /// The session, with its namespace where the document names one.
    pub session: RawSession,
    /// What was said, in order; one for each entry of the document, numbered by their lines from 1.
    pub entries: Vec<RawEntry>,
    /// The ordinal of the first entry; without it the entries are appended.
    pub from: Option<u32>,
    /// Whether the session is over.
    pub closed: bool,
    /// How urgent it is, from -100 to 100, where the document says so.
    pub priority: Option<i32>,
    /// Whether bytes or escapes that are no characters were replaced.
    pub repaired: bool,
}

/// Why a document is refused: one line, without words of the document.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct BadSlice {
    /// Where in the document, such as `entries[3].speaker`; `document` for the whole.
    pub place: String,
    /// What is wrong there and what was expected.
    pub what: String,
    /// Whether it ends before it is whole, as one that is still being written does.
    pub(super) unfinished: bool,
}

impl BadSlice {
    pub(super) fn new(path: &str, what: impl Into<String>) -> BadSlice {
        let place = if path.is_empty() { "document" } else { path };
        BadSlice { place: place.to_owned(), what: what.into(), unfinished: false }
    }
}

/// Reads one document. `session`, where it is given, stands over the one that the document names.
///
/// # Errors
///
/// If it is not exactly what `schemas/slice.v1.json` has, if it is longer than [`HANDED_BYTES_MAX`],
/// or if nobody names the session.
pub fn handed(bytes: &[u8], session: Option<&str>) -> Result<Handed, BadSlice> {
    let (document, repaired) = parse(bytes)?;
    let handed = document.handed(session)?;
    Ok(Handed { repaired, ..handed })
}

impl SliceDocument {
    /// The same for a document that was never bytes.
    ///
    /// # Errors
    ///
    /// If a bound is not kept, or if nobody names the session.
    pub fn handed(self, session: Option<&str>) -> Result<Handed, BadSlice> {
        if !self.fits() {
            let text = serde_json::to_string(&self).unwrap_or_default();
            let bad = Json::parse(&text, &mut String::new()).ok().and_then(|json| explain(&json));
            return Err(bad.unwrap_or_else(unexplained));
        }
        let mut head = self.head();
        match session.filter(|session| !session.is_empty()) {
            Some(session) => head.native_id = session.to_owned(),
            None if head.native_id.is_empty() => return Err(unnamed()),
            None => {}
        }
        let mut talk = Talk::default();
        let entries = (1..).zip(self.entries).map(|(line, entry)| talk.entry(entry, line));
        Ok(Handed {
            session: head,
            entries: entries.collect(),
            from: self.from,
            closed: self.closed,
            priority: self.priority,
            repaired: false,
        })
    }

    /// The session as the document names it; the id is empty where it does not.
    pub(super) fn head(&self) -> RawSession {
        RawSession {
            native_id: self.session.clone().unwrap_or_default(),
            namespace: self.namespace.clone(),
            title: self.title.as_deref().map(short_title),
            cwd: self.cwd.clone(),
            parent: self.parent.clone(),
            started_at: self.started_at.map(|Moment(at)| at),
        }
    }
}

/// A document in which nobody names the session.
pub(super) fn unnamed() -> BadSlice {
    BadSlice::new("session", "is missing: expected the session's id")
}

fn unexplained() -> BadSlice {
    BadSlice::new("", "is not what schemas/slice.v1.json has")
}

/// The document that `bytes` are, and whether it had to be repaired. The session may be missing.
pub(super) fn parse(bytes: &[u8]) -> Result<(SliceDocument, bool), BadSlice> {
    if bytes.len() > HANDED_BYTES_MAX {
        let found = bytes.len();
        let what = format!("expected at most {HANDED_BYTES_MAX} bytes, found {found}");
        return Err(BadSlice::new("", what));
    }
    // A byte order mark is what some shells put before what they pipe.
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    };
    let replaced = matches!(text, Cow::Owned(_));
    match of_text(&text) {
        Ok(document) => Ok((document, replaced)),
        Err(bad) => match repair::json(&text) {
            Some(repaired) => of_text(&repaired).map(|document| (document, true)),
            None => Err(bad),
        },
    }
}

fn of_text(text: &str) -> Result<SliceDocument, BadSlice> {
    if let Ok(document) = serde_json::from_str::<SliceDocument>(text)
        && document.fits()
    {
        return Ok(document);
    }
    match serde_json::from_str::<Json<'_>>(text) {
        Ok(json) => Err(explain(&json).unwrap_or_else(unexplained)),
        Err(error) => {
            let what = format!("expected one JSON object: {error}");
            Err(BadSlice { unfinished: error.is_eof(), ..BadSlice::new("", what) })
        }
    }
}

/// Turns the entries of one session into raw ones.
#[derive(Default)]
pub(super) struct Talk {
    /// Names of tools whose results have not come.
    calls: OpenCalls<String>,
}

/// What a call or a result is named that names no tool, as for every other format.
const UNNAMED_TOOL: &str = "tool";

impl Talk {
    /// One entry for one entry.
    pub(super) fn entry(&mut self, entry: SliceEntry, line: u32) -> RawEntry {
        let kind = entry.kind.unwrap_or_else(|| kind_of(entry.speaker));
        let text = clean(Cow::Owned(entry.text));
        let mut raw = Said::new(entry.speaker, kind, text).entry(line);
        let call_id = entry.call_id.as_deref();
        raw.tool = entry.tool;
        (raw.outcome, raw.exit_code) = (entry.outcome, entry.exit_code);
        match kind {
            EntryKind::ToolCall => {
                let name = raw.tool.get_or_insert_with(|| UNNAMED_TOOL.to_owned());
                call_id.into_iter().for_each(|id| self.calls.open(id, name.clone()));
            }
            EntryKind::ToolResult => {
                let called = call_id.and_then(|id| self.calls.close(id));
                let name = raw.tool.take().or(called).unwrap_or_else(|| UNNAMED_TOOL.to_owned());
                // Whoever fetched it, strangers wrote it.
                if raw.speaker == Speaker::Tool && tools::is_web(&name) {
                    raw.speaker = Speaker::Web;
                }
                raw.tool = Some(name);
                let (told, code) = outcome::of_output(&raw.text);
                let by_code = raw.exit_code.map(outcome::of_code);
                raw.outcome = raw.outcome.or(by_code).or(told);
                raw.exit_code = raw.exit_code.or(code);
            }
            EntryKind::Prompt
            | EntryKind::Steering
            | EntryKind::Answer
            | EntryKind::Rejection
            | EntryKind::Command
            | EntryKind::Text
            | EntryKind::Summary
            | EntryKind::Injected
            | EntryKind::Notice => {}
        }
        raw.native_id = entry.id;
        raw.call_id = entry.call_id;
        raw.at = entry.at.map(|Moment(at)| at);
        raw
    }
}

/// What a speaker mostly says.
fn kind_of(speaker: Speaker) -> EntryKind {
    match speaker {
        Speaker::Person => EntryKind::Prompt,
        Speaker::Assistant => EntryKind::Text,
        Speaker::Tool | Speaker::Web => EntryKind::ToolResult,
        Speaker::Client => EntryKind::Notice,
    }
}
