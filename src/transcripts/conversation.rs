//! Entries of a client's conversation, told record by record. Labels what the client injected, joins calls with
//! results, and says once what a file says twice.

use super::chat::{MessageReader, call_text, is_shell};
use super::client_text::{ClientText, split_message, split_result};
use super::emit::Emit;
use super::file_index::FileIndex;
use super::marks::{NameMap, NameSet, name_of};
use super::raw::{EntryFrame, RawEntry, RawSession, short_title};
use super::text::clean;
use super::tools::{OpenCalls, is_web, outcome_of_code, outcome_of_output, trailing_code};
use crate::domain::{Branch, Digest, EntryKind, Outcome, Severity, Skip, Speaker, Timestamp};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Maximum number of unknown kinds that are named for one file.
const UNKNOWN_MAX: usize = 20;

pub(super) struct Conversation<'e, 's> {
    pub(super) emit: Emit<'e, 's>,
    /// Line of the record, or its number in its list.
    pub(super) line: u32,
    /// True if a parent agent speaks in the user's place.
    pub(super) is_sidechain: bool,
    /// Index of the reading before.
    known: FileIndex,
    found: FileIndex,
    begun: usize,
    /// Index of the session that is told.
    current: usize,
    /// Entries by session, where a file tells several in turn.
    waiting: Option<Vec<Vec<RawEntry>>>,
    /// Messages of the session so far, and of the request that is told: how often each was said.
    history: NameMap<u32>,
    request: NameMap<u32>,
    called: NameSet,
    frame: EntryFrame,
    seen: NameSet,
    /// Ids in their order, for rewinding.
    order: Vec<u64>,
    calls: OpenCalls<String>,
    answered: NameSet,
    messages: MessageReader,
    unknown: BTreeSet<String>,
}

/// Tool call.
#[derive(Clone, Copy)]
pub(super) struct ToolCall<'j> {
    pub(super) id: &'j str,
    pub(super) name: &'j str,
    pub(super) arguments: &'j Value,
}

/// Result of a tool call. The name is that of its call where it is empty.
#[derive(Default)]
pub(super) struct ToolResult<'j> {
    pub(super) id: &'j str,
    pub(super) name: &'j str,
    pub(super) text: String,
    pub(super) outcome: Option<Outcome>,
    pub(super) exit_code: Option<i32>,
}

impl<'e, 's> Conversation<'e, 's> {
    pub(super) fn new(emit: Emit<'e, 's>) -> Conversation<'e, 's> {
        let frame =
            EntryFrame { line: 0, native_id: None, at: None, branch: Branch::Active, skip: None };
        Conversation {
            emit,
            line: 0,
            is_sidechain: false,
            known: FileIndex::default(),
            found: FileIndex::default(),
            begun: 0,
            current: 0,
            waiting: None,
            history: NameMap::default(),
            request: NameMap::default(),
            called: NameSet::default(),
            frame,
            seen: NameSet::default(),
            order: Vec::new(),
            calls: OpenCalls::default(),
            answered: NameSet::default(),
            messages: MessageReader::default(),
            unknown: BTreeSet::new(),
        }
    }

    /// Begins the second reading, with what this one found.
    pub(super) fn again<'f, 't>(self, emit: Emit<'f, 't>) -> Conversation<'f, 't> {
        let known = self.found.closed();
        Conversation { known, ..Conversation::new(emit) }
    }

    /// Ends the file. A session without entries is a session too.
    pub(super) fn finish(mut self) {
        let waiting = self.waiting.take().unwrap_or_default();
        for (session, entries) in waiting.into_iter().enumerate() {
            self.current = session;
            self.begin();
            entries.into_iter().for_each(|entry| self.emit.entry(entry));
        }
        self.begin();
        self.emit.finish();
    }

    /// Head of the session; to be filled in whenever a record tells something of it.
    pub(super) fn head(&mut self) -> &mut RawSession {
        if self.found.heads.is_empty() {
            self.found.heads.push(RawSession::default());
        }
        let last = self.found.heads.len() - 1;
        &mut self.found.heads[self.current.min(last)]
    }

    /// Begins another session, unless nothing is known of the one before.
    pub(super) fn next_session(&mut self) {
        self.begin();
        if self.found.heads.last().is_some_and(|head| *head != RawSession::default()) {
            self.current = self.found.heads.len();
            self.found.heads.push(RawSession::default());
        }
        self.messages = MessageReader::default();
        self.is_sidechain = false;
    }

    /// Goes on with the session `id`, or begins it: a file may tell several in turn. What has no id belongs to the
    /// session before it.
    pub(super) fn session(&mut self, id: &str) {
        let heads = &mut self.found.heads;
        if id.is_empty() && !heads.is_empty() {
            return;
        }
        self.current = heads.iter().position(|head| head.native_id == id).unwrap_or(heads.len());
        if self.current == heads.len() {
            heads.push(RawSession { native_id: id.to_owned(), ..RawSession::default() });
        }
        self.waiting.get_or_insert_default().resize_with(self.found.heads.len(), Vec::new);
    }

    /// Begins a request, which repeats the conversation before it.
    pub(super) fn next_request(&mut self) {
        self.request.clear();
    }

    /// True if a message of this request was told with an earlier one.
    pub(super) fn repeats(&mut self, message: &str) -> bool {
        let name = self.key(message);
        let now = self.request.entry(name).or_default();
        *now += 1;
        let before = self.history.entry(name).or_default();
        let is_told = *now <= *before;
        *before = (*before).max(*now);
        is_told
    }

    /// True if a call with this id was told.
    pub(super) fn has_call(&self, id: &str) -> bool {
        self.called.contains(&self.key(id))
    }

    /// Key of an id or a message within the session that is told.
    fn key(&self, id: &str) -> u64 {
        name_of(id).wrapping_add(self.current as u64)
    }

    /// Names the session, if it has no name yet.
    pub(super) fn name(&mut self, id: &str) {
        let head = self.head();
        if head.native_id.is_empty() {
            id.clone_into(&mut head.native_id);
        }
    }

    /// Gives the session's title; the last one counts.
    pub(super) fn title(&mut self, title: &str) {
        if !title.trim().is_empty() {
            self.head().title = Some(short_title(title.trim()));
        }
    }

    /// Gives the folder that the agent works in; the first one counts.
    pub(super) fn cwd(&mut self, cwd: &str) {
        let head = self.head();
        if head.cwd.is_none() && !cwd.is_empty() {
            head.cwd = Some(cwd.to_owned());
        }
    }

    /// Adds a git branch that the session was on.
    pub(super) fn branch(&mut self, branch: &str) {
        if !branch.is_empty() {
            self.head().on_branch(branch);
        }
    }

    /// Begins a record: what follows is said in it. Without an id, `id` is empty.
    pub(super) fn at(&mut self, id: &str, at: Option<Timestamp>) {
        let name = name_of(id);
        self.frame.line = self.line;
        self.frame.native_id = (!id.is_empty()).then(|| id.to_owned());
        self.frame.at = at;
        self.frame.branch = match self.known.abandoned.contains(&name) && !id.is_empty() {
            true => Branch::Abandoned,
            false if self.is_sidechain => Branch::Sidechain,
            false => Branch::Active,
        };
        self.order.push(name);
    }

    /// Sets the time of what follows in this record.
    pub(super) fn time(&mut self, at: Option<Timestamp>) {
        self.frame.at = at.or(self.frame.at);
    }

    /// Returns the last version of a record, in the place of its first one; `None` in the place of later ones.
    pub(super) fn latest<'j>(&mut self, id: &str, json: &'j Value) -> Option<Cow<'j, Value>> {
        if id.is_empty() {
            return Some(Cow::Borrowed(json));
        }
        let name = name_of(id);
        if !self.seen.insert(name) {
            self.found.latest.insert(name, json.clone());
            return None;
        }
        Some(self.known.latest.remove(&name).map_or(Cow::Borrowed(json), Cow::Owned))
    }

    /// Notes a record's parent: only the line that ends in the last record is active.
    pub(super) fn link(&mut self, id: &str, parent: &str) {
        if !id.is_empty() {
            self.found.link(name_of(id), name_of(parent));
        }
    }

    /// Leaves the record `id` and all after it.
    pub(super) fn rewind(&mut self, id: &str) {
        let name = name_of(id);
        if let Some(from) = self.order.iter().rposition(|known| *known == name) {
            self.found.abandoned.extend(self.order.drain(from..));
        }
    }

    /// Reports a kind of record that is not known, once a file.
    pub(super) fn unknown(&mut self, kind: &str) {
        if self.unknown.len() < UNKNOWN_MAX && self.unknown.insert(kind.to_owned()) {
            let known = |it: char| it.is_ascii_alphanumeric() || "._-$".contains(it);
            let name: String = kind.chars().filter(|it| known(*it)).take(40).collect();
            let detail = format!("expected a kind of record that is known, found `{name}`");
            self.emit.finding(Severity::Info, "unknown-record", self.line, detail);
        }
    }

    /// Adds a text in the user's name, which may hold what the client put there.
    pub(super) fn user(&mut self, text: &str) {
        let sidechain = self.is_sidechain;
        for part in split_message(text) {
            let part = match sidechain && part.is_prompt() {
                true => ClientText { speaker: Speaker::Client, ..part },
                false => part,
            };
            let entry = part.entry(self.line);
            self.push(entry);
        }
    }

    /// Adds an entry of words, unless it has none.
    pub(super) fn say(&mut self, speaker: Speaker, kind: EntryKind, text: &str) {
        let mut entry = RawEntry::new(self.line, speaker, kind, clean(Cow::Borrowed(text.trim())));
        entry.skip = match kind == EntryKind::Injected {
            true => Some(Skip::Injected),
            false => (kind == EntryKind::Summary).then_some(Skip::Summarised),
        };
        if !entry.text.trim().is_empty() {
            self.push(entry);
        }
    }

    pub(super) fn assistant(&mut self, text: &str) {
        self.say(Speaker::Assistant, EntryKind::Text, text);
    }

    pub(super) fn injected(&mut self, text: &str) {
        self.say(Speaker::Client, EntryKind::Injected, text);
    }

    pub(super) fn notice(&mut self, text: &str) {
        self.say(Speaker::Client, EntryKind::Notice, text);
    }

    /// Adds the client's summary of entries that are here too.
    pub(super) fn summary(&mut self, text: &str) {
        self.say(Speaker::Client, EntryKind::Summary, text);
    }

    /// Adds a message as APIs have it: role, content, calls.
    pub(super) fn message(&mut self, json: &Value) {
        let mut entries = Vec::new();
        if !self.messages.read(json, self.line, &mut entries) {
            self.unknown(json["role"].as_str().unwrap_or_default());
        }
        for mut entry in entries {
            if self.is_sidechain && entry.kind == EntryKind::Prompt {
                entry.speaker = Speaker::Client;
            }
            self.push(entry);
        }
    }

    pub(super) fn call(&mut self, call: ToolCall<'_>) {
        let ToolCall { id, name, arguments } = call;
        let name = if name.is_empty() { "tool" } else { name };
        let text = call_text(name, arguments);
        let mut entry = RawEntry::new(self.line, Speaker::Assistant, EntryKind::ToolCall, text);
        entry.tool = Some(name.to_owned());
        entry.call_id = (!id.is_empty()).then(|| id.to_owned());
        self.push(entry);
    }

    /// Adds a result, unless the call has one already.
    pub(super) fn result(&mut self, result: ToolResult<'_>) {
        let ToolResult { id, name, text, outcome, exit_code } = result;
        let text = clean(Cow::Owned(text));
        let (text, words) = split_result(&text);
        let (printed, code) = outcome_of_output(&text);
        let mut entry = RawEntry::new(self.line, Speaker::Tool, EntryKind::ToolResult, text);
        entry.exit_code = exit_code.or(code);
        entry.outcome = outcome.or(printed);
        entry.tool = (!name.is_empty()).then(|| name.to_owned());
        entry.call_id = (!id.is_empty()).then(|| id.to_owned());
        if self.push(entry) {
            for part in words {
                self.push(part.entry(self.line));
            }
        }
    }

    /// Emits an entry; returns false if it was told before.
    fn push(&mut self, mut entry: RawEntry) -> bool {
        let call_id = entry.call_id.clone().unwrap_or_default();
        if entry.kind == EntryKind::ToolCall {
            let key = self.key(&call_id);
            self.called.insert(key);
            self.answered.remove(&key);
            self.calls.open(&call_id, entry.tool.clone().unwrap_or_default());
        } else if entry.kind == EntryKind::ToolResult {
            let key = self.key(&call_id);
            if !call_id.is_empty() && !self.answered.insert(key) {
                return false;
            }
            let called = self.calls.close(&call_id);
            let own = entry.tool.take().filter(|name| name != "tool");
            let name = own.or(called).unwrap_or_else(|| "tool".to_owned());
            if is_web(&name) {
                entry.speaker = Speaker::Web;
            }
            if is_shell(&name) {
                entry.exit_code = entry.exit_code.or_else(|| trailing_code(&entry.text));
            }
            entry.tool = Some(name);
            let is_stated = !matches!(entry.outcome, None | Some(Outcome::Succeeded));
            if let Some(code) = entry.exit_code.filter(|_| !is_stated) {
                entry.outcome = Some(outcome_of_code(code));
            }
        }
        let frame = &self.frame;
        entry.native_id.clone_from(&frame.native_id);
        entry.at = frame.at.or(entry.at);
        entry.branch = frame.branch;
        entry.skip = entry.skip.or(frame.skip);
        self.note_beginning(&entry);
        match self.waiting.as_mut().and_then(|all| all.get_mut(self.current)) {
            Some(waiting) => waiting.push(entry),
            None => {
                self.begin();
                self.emit.entry(entry);
            }
        }
        true
    }

    /// Completes the head from the first entries: a session without an id is named after its first words.
    fn note_beginning(&mut self, entry: &RawEntry) {
        let head = self.head();
        head.started_at = head.started_at.or(entry.at);
        if head.native_id.is_empty() && entry.kind != EntryKind::Injected {
            let words = [entry.speaker.name(), entry.kind.name(), entry.text.as_str()];
            head.native_id = Digest::of(&words).to_string();
        }
    }

    /// Emits the head of the session, once.
    fn begin(&mut self) {
        if self.begun <= self.current
            && let Some(found) = self.found.heads.get(self.current)
        {
            self.begun = self.current + 1;
            let known = self.known.heads.get(self.current).unwrap_or(found);
            self.emit.session(known.clone());
        }
    }
}
