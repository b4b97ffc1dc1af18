//! What a reader emits before the gate, and the gate.

use crate::domain::{
    Branch, Entry, EntryKind, Finding, Format, Outcome, Session, Severity, Skip, Speaker,
    Timestamp, Tool,
};
use crate::privacy::{Gate, Report};
use std::ops::ControlFlow;

/// A conversation as the transcript names it, before the gate.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RawSession {
    /// The transcript's own id; where it has none, the reader makes one from the first words.
    pub native_id: String,
    /// Whose memory it becomes, where its envelope says so.
    pub namespace: Option<String>,
    /// What its client called it.
    pub title: Option<String>,
    /// The folder the agent worked in.
    pub cwd: Option<String>,
    /// The session it was forked from or works for.
    pub parent: Option<String>,
    /// When it began.
    pub started_at: Option<Timestamp>,
}

/// The longest title that a client's log gives a session, in characters.
const TITLE_CHARS_MAX: usize = 300;

/// The beginning of a title: some clients put whole prompts there.
pub(super) fn short_title(title: &str) -> String {
    title.chars().take(TITLE_CHARS_MAX).collect()
}

/// An entry before the gate. Ordinals are given by the caller, in the order of emission.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RawEntry {
    /// The line of the file it begins on, from 1; for one JSON value, its number in the array.
    pub line: u32,
    /// The transcript's own id for it.
    pub native_id: Option<String>,
    /// Who said it.
    pub speaker: Speaker,
    /// What sort of item it is.
    pub kind: EntryKind,
    /// Which line of the conversation it stands on.
    pub branch: Branch,
    /// Its words.
    pub text: String,
    /// The tool's name, for calls and results.
    pub tool: Option<String>,
    /// What joins a call with its result.
    pub call_id: Option<String>,
    /// For results: how the call ended.
    pub outcome: Option<Outcome>,
    /// For results of commands.
    pub exit_code: Option<i32>,
    /// When it was said.
    pub at: Option<Timestamp>,
    /// Why no model reads it, if so.
    pub skip: Option<Skip>,
}

impl RawEntry {
    /// An entry of the active branch with nothing but words.
    pub fn new(line: u32, speaker: Speaker, kind: EntryKind, text: impl Into<String>) -> RawEntry {
        RawEntry {
            line,
            native_id: None,
            speaker,
            kind,
            branch: Branch::Active,
            text: text.into(),
            tool: None,
            call_id: None,
            outcome: None,
            exit_code: None,
            at: None,
            skip: None,
        }
    }
}

/// What a reader emits. Every entry belongs to the session emitted last.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A conversation begins.
    Session(RawSession),
    /// The next entry of it.
    Entry(RawEntry),
    /// Something could not be read; the rest goes on.
    Finding(Finding),
}

/// Takes what a reader emits; says when to stop.
pub type Sink<'a> = dyn FnMut(Item) -> ControlFlow<()> + 'a;

/// What a reader of a conversation is told where `report` has the first private tags that hide nothing, and had
/// `known` of them before the entry at `line`; none where it is not the first.
pub fn mention(report: &Report, known: u64, line: u32) -> Option<Finding> {
    let detail = "a tag <private> does not hide anything: expected it at the start of its line, and </private> \
                  where it ends";
    let is_first = known == 0 && 0 < report.mentions;
    is_first.then(|| Finding::new(Severity::Warning, "private-mention", line, detail))
}

/// Takes a conversation's head through the gate.
pub fn seal_session(
    raw: RawSession,
    place: (&str, Format, &str),
    gate: &Gate,
    report: &mut Report,
) -> Session {
    let (namespace, format, path) = place;
    let mut pass = |text: String| gate.redact_into(&text, report);
    Session {
        id: Session::id_of(namespace, format, &raw.native_id),
        namespace: namespace.to_owned(),
        format,
        path: path.to_owned(),
        native_id: pass(raw.native_id),
        title: raw.title.map(&mut pass),
        cwd: raw.cwd.map(&mut pass),
        parent: raw.parent.map(&mut pass),
        started_at: raw.started_at,
    }
}

/// Takes an entry through the gate. What has no words left says why it is skipped.
pub fn seal(raw: RawEntry, ordinal: u32, gate: &Gate, report: &mut Report) -> Entry {
    let had_words = !raw.text.trim().is_empty();
    let text = gate.redact_into(&raw.text, report);
    let has_words = !text.as_str().trim().is_empty();
    let skip = match (had_words, has_words) {
        (true, true) => raw.skip,
        (true, false) => raw.skip.or(Some(Skip::Private)),
        (false, _) => raw.skip.or(Some(Skip::Empty)),
    };
    let mut pass = |text: &str| gate.redact_into(text, report);
    let call_id = raw.call_id.as_deref().map(&mut pass);
    Entry {
        ordinal,
        line: raw.line,
        native_id: raw.native_id.as_deref().map(&mut pass),
        speaker: raw.speaker,
        kind: raw.kind,
        branch: raw.branch,
        text,
        tool: raw.tool.as_deref().map(|name| Tool { name: pass(name), call_id }),
        outcome: raw.outcome,
        exit_code: raw.exit_code,
        at: raw.at,
        skip,
    }
}
