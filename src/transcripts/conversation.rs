//! Builds a client's conversation from its records. Labels injected text, joins calls with results,
//! and drops repetitions.

use super::chat::{MessageReader, call_text};
use super::client_text::{ClientText, own_result, split_message};
use super::emit::Emit;
use super::marks::{FileIndex, NameMap, NameSet, name_of};
use super::raw::{RawEntry, RawSession, short_title};
use super::text::clean;
use super::tools::{
    OpenCalls, is_shell, is_web, outcome_of_code, outcome_of_output, outcome_of_stop, trailing_code,
};
use crate::domain::{Branch, Digest, EntryKind, Outcome, Skip, Speaker, Timestamp};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;

#[derive(Default)]
pub(super) struct Conversation<'e> {
    pub(super) emit: Emit<'e>,
    /// Line of the record, or its number in its list.
    pub(super) line: u32,
    /// True if a parent agent speaks in the user's place.
    pub(super) is_sidechain: bool,
    /// True if the user calls the tools, not the agent.
    pub(super) is_users_tool: bool,
    /// Id of the first message that the user has undone, or empty.
    pub(super) undone_from: String,
    /// Index made by the first pass.
    known: FileIndex,
    found: FileIndex,
    begun: usize,
    current: usize,
    /// Entries by session, if the file interleaves several.
    waiting: Option<Vec<Vec<RawEntry>>>,
    /// Counts of each message in the session so far and in the current request.
    history: NameMap<u32>,
    request: NameMap<u32>,
    /// Sessions by what a later request continues or repeats of an answer.
    pub(super) continued: NameMap<String>,
    called: NameSet,
    commands: NameSet,
    /// Fields that all entries of the current record share.
    frame: RawEntry,
    seen: NameSet,
    /// Record ids in file order, for rewinding.
    order: Vec<u64>,
    calls: OpenCalls<String>,
    answered: NameSet,
    /// Readers by session: sessions may use the same ids of calls.
    messages: HashMap<usize, MessageReader>,
}

/// Result of a tool call. An empty name stands for the name of its call.
#[derive(Default)]
pub(super) struct ToolResult<'j> {
    pub(super) id: &'j str,
    pub(super) name: &'j str,
    pub(super) text: String,
    pub(super) outcome: Option<Outcome>,
    pub(super) exit_code: Option<i32>,
}

impl Conversation<'_> {
    /// Starts the second pass with the index of the first.
    pub(super) fn again<'f>(self, emit: Emit<'f>) -> Conversation<'f> {
        let known = self.found.closed();
        Conversation { known, emit, ..Conversation::default() }
    }

    /// Ends the file. Sessions without entries are emitted too.
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

    /// Header of the current session; records fill it in as they are read.
    pub(super) fn head(&mut self) -> &mut RawSession {
        if self.found.heads.is_empty() {
            self.found.heads.push(RawSession::default());
        }
        let last = self.found.heads.len() - 1;
        &mut self.found.heads[self.current.min(last)]
    }

    /// Starts another session, unless the current one is still empty.
    pub(super) fn next_session(&mut self) {
        self.begin();
        if self.found.heads.last().is_some_and(|head| *head != RawSession::default()) {
            self.current = self.found.heads.len();
            self.found.heads.push(RawSession::default());
        }
        self.found.root = self.found.leaf;
        self.messages.clear();
        self.is_sidechain = false;
    }

    /// Switches to the session `id`, creating it if needed: a file may interleave several. Records
    /// without an id belong to the session before them.
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

    /// Starts a request, which repeats the conversation before it.
    pub(super) fn next_request(&mut self) {
        self.request.clear();
    }

    /// True if an earlier request already contained this message.
    pub(super) fn repeats(&mut self, message: &str) -> bool {
        let name = self.key(message);
        let now = self.request.entry(name).or_default();
        *now += 1;
        let before = self.history.entry(name).or_default();
        let is_told = *now <= *before;
        *before = (*before).max(*now);
        is_told
    }

    pub(super) fn has_call(&self, id: &str) -> bool {
        self.called.contains(&self.key(id))
    }

    /// True if the call `id` has no result yet.
    pub(super) fn awaits(&self, id: &str) -> bool {
        self.calls.get(&self.of_session(id)).is_some()
    }

    /// True if the user ran the command line `id`.
    pub(super) fn is_command(&self, id: &str) -> bool {
        self.commands.contains(&self.key(id))
    }

    pub(super) fn note_command(&mut self, id: &str) {
        self.commands.insert(self.key(id));
    }

    /// Time of the current record.
    pub(super) fn now(&self) -> Option<Timestamp> {
        self.frame.at
    }

    /// Marks a call as answered; false if it already was.
    pub(super) fn answer(&mut self, id: &str) -> bool {
        self.answered.insert(self.key(id))
    }

    pub(super) fn is_answered(&self, id: &str) -> bool {
        self.answered.contains(&self.key(id))
    }

    /// Key of an id or message within the current session.
    fn key(&self, id: &str) -> u64 {
        name_of(id).wrapping_add(self.current as u64)
    }

    /// Sets the session's id unless it has one.
    pub(super) fn name(&mut self, id: &str) {
        let head = self.head();
        if head.native_id.is_empty() {
            id.clone_into(&mut head.native_id);
        }
    }

    /// Reads the id in a header; starts another session if the current one has another id.
    pub(super) fn header(&mut self, id: &str) {
        if !id.is_empty() && ![id, ""].contains(&self.head().native_id.as_str()) {
            self.next_session();
        }
        self.name(id);
    }

    /// Sets the session's title; the last one wins.
    pub(super) fn title(&mut self, title: &str) {
        if !title.trim().is_empty() {
            self.head().title = Some(short_title(title.trim()));
        }
    }

    /// Sets the working directory; the first one wins.
    pub(super) fn cwd(&mut self, cwd: &str) {
        if !cwd.is_empty() {
            self.head().cwd.get_or_insert_with(|| cwd.to_owned());
        }
    }

    pub(super) fn branch(&mut self, branch: &str) {
        if !branch.is_empty() {
            self.head().on_branch(branch);
        }
    }

    /// Starts a record, to which the following entries belong. `id` may be empty.
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

    /// Sets the time of the following entries of this record.
    pub(super) fn time(&mut self, at: Option<Timestamp>) {
        self.frame.at = at.or(self.frame.at);
    }

    /// Returns a record's last version at its first occurrence, and `None` at later ones and for
    /// copies.
    pub(super) fn latest<'j>(&mut self, id: &str, json: &'j Value) -> Option<Cow<'j, Value>> {
        if id.is_empty() {
            return Some(Cow::Borrowed(json));
        }
        let name = name_of(id);
        if !self.seen.insert(name) {
            self.found.latest.insert(name, json.clone());
            return None;
        }
        if self.known.copies.contains_key(&name) {
            return None;
        }
        Some(self.known.latest.remove(&name).map_or(Cow::Borrowed(json), Cow::Owned))
    }

    pub(super) fn has_record(&self, id: &str) -> bool {
        self.seen.contains(&name_of(id))
    }

    /// Adds a message to the client's list.
    pub(super) fn list(&mut self, id: &str, words: &str) {
        let (name, words) = (name_of(id), name_of(words));
        match self.found.listed.iter_mut().rfind(|(known, _)| *known == name) {
            Some((_, said)) => *said = words,
            None if !id.is_empty() => self.found.listed.push((name, words)),
            None => {}
        }
    }

    /// Replaces the client's list with messages, each with its id and what it says. Messages under
    /// new ids, all written directly before the list or only in it, are copies if they say the same,
    /// from the last one back, as those that the list leaves out.
    pub(super) fn replace_list(&mut self, list: &[(&str, String)]) {
        let list = list.iter().filter(|(id, _)| !id.is_empty());
        let list: Vec<_> = list.map(|(id, words)| (name_of(id), name_of(words))).collect();
        let kept: NameSet = list.iter().map(|(id, _)| *id).collect();
        let old = std::mem::replace(&mut self.found.listed, list.clone());
        let written = old.iter().rev().take_while(|(id, _)| kept.contains(id)).count();
        let mut known: NameSet = old.iter().map(|(id, _)| *id).collect();
        let is_rewritten = written == kept.len();
        if is_rewritten {
            known.clear();
        }
        let mut left: Vec<_> = old.iter().filter(|(id, _)| !kept.contains(id)).collect();
        for (id, words) in list.iter().rev().filter(|(id, _)| !known.contains(id)) {
            match left.iter().rposition(|(_, said)| said == words) {
                Some(at) => {
                    let copied = left[at].0;
                    let copied = *self.found.copies.get(&copied).unwrap_or(&copied);
                    self.found.copies.insert(*id, copied);
                    left.truncate(at);
                }
                // Messages that were written before may be no copies at all.
                None if is_rewritten => break,
                None => {}
            }
        }
    }

    /// Document that the file's lines change, as far as it is read.
    pub(super) fn rebuild(&mut self) -> &mut Value {
        &mut self.found.rebuilt
    }

    /// Returns the document as the file's last line leaves it, once.
    pub(super) fn rebuilt(&mut self) -> Option<Value> {
        Some(self.known.rebuilt.take()).filter(|document| !document.is_null())
    }

    /// Sets a record's parent: only the path to the last record is active.
    pub(super) fn link(&mut self, id: &str, parent: &str) {
        if !id.is_empty() {
            self.found.link(name_of(id), name_of(parent));
        }
    }

    /// Abandons all records of the session so far.
    pub(super) fn restart(&mut self) {
        self.found.leaf = self.found.root;
    }

    /// Abandons the record `id` and all after it.
    pub(super) fn rewind(&mut self, id: &str) {
        let name = name_of(id);
        if let Some(from) = self.order.iter().rposition(|known| *known == name) {
            for name in self.order.drain(from..) {
                self.found.abandoned.insert(name);
                self.found.abandoned.extend(self.found.copies.get(&name));
            }
            let abandoned = &self.found.abandoned;
            self.found.listed.retain(|(id, _)| !abandoned.contains(id));
        }
    }

    /// Reports an unknown kind of record, once per file.
    pub(super) fn unknown(&mut self, kind: &str) {
        self.emit.unknown(kind, self.line);
    }

    /// Adds a text attributed to the user, which may contain text of the client.
    pub(super) fn user(&mut self, text: &str) {
        self.told(split_message(text));
    }

    /// Adds the parts of a text attributed to the user.
    pub(super) fn told(&mut self, parts: Vec<ClientText>) {
        let sidechain = self.is_sidechain;
        for part in parts {
            let is_parents = sidechain && part.is_prompt();
            let mut entry = part.entry(self.line);
            if is_parents {
                entry.speaker = Speaker::Client;
            }
            self.push(entry);
        }
    }

    /// Adds a text entry unless it is blank.
    pub(super) fn say(&mut self, speaker: Speaker, kind: EntryKind, text: &str) {
        let mut entry = RawEntry::new(self.line, speaker, kind, clean(Cow::Borrowed(text.trim())));
        entry.skip = entry.skip.or((kind == EntryKind::Summary).then_some(Skip::Summarised));
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

    /// Adds the client's summary of entries that are in the file too.
    pub(super) fn summary(&mut self, text: &str) {
        self.say(Speaker::Client, EntryKind::Summary, text);
    }

    /// Adds a message in API form: role, content, calls.
    pub(super) fn message(&mut self, json: &Value) {
        let mut entries = Vec::new();
        let reader = self.messages.entry(self.current).or_default();
        if !reader.read(json, self.line, &mut entries) {
            self.unknown(json["role"].as_str().unwrap_or_default());
        }
        for mut entry in entries {
            if self.is_sidechain && entry.kind == EntryKind::Prompt {
                entry.speaker = Speaker::Client;
            }
            self.push(entry);
        }
    }

    /// Adds a command line that the user ran as the call `id`.
    pub(super) fn command(&mut self, id: &str, line: &str) {
        self.say(Speaker::Person, EntryKind::Command, &format!("!{line}"));
        self.called.insert(self.key(id));
        self.note_command(id);
    }

    pub(super) fn call(&mut self, id: &str, name: &str, arguments: &Value) {
        let name = if name.is_empty() { "tool" } else { name };
        let text = call_text(name, arguments);
        let mut entry = RawEntry::new(self.line, Speaker::Assistant, EntryKind::ToolCall, text);
        entry.tool = Some(name.to_owned());
        entry.call_id = (!id.is_empty()).then(|| id.to_owned());
        self.push(entry);
    }

    /// Adds a result, unless the call already has one.
    pub(super) fn result(&mut self, result: ToolResult<'_>) {
        let ToolResult { id, name, text, outcome, exit_code } = result;
        let text = clean(Cow::Owned(text));
        let text = own_result(&text);
        let called = self.calls.get(&self.of_session(id)).filter(|_| name.is_empty());
        let is_told = outcome.is_some() && !is_shell(called.map_or(name, String::as_str));
        let (printed, code) = outcome_of_output(&text);
        let mut entry = RawEntry::new(self.line, Speaker::Tool, EntryKind::ToolResult, text);
        entry.exit_code = exit_code.or(code.filter(|_| !is_told));
        entry.outcome = outcome.or(printed);
        entry.tool = (!name.is_empty()).then(|| name.to_owned());
        entry.call_id = (!id.is_empty()).then(|| id.to_owned());
        self.push(entry);
    }

    /// Emits an entry, unless it repeats an earlier result.
    fn push(&mut self, mut entry: RawEntry) {
        let call_id = entry.call_id.clone().unwrap_or_default();
        if entry.kind == EntryKind::ToolCall {
            let key = self.key(&call_id);
            self.called.insert(key);
            self.answered.remove(&key);
            self.calls.open(&self.of_session(&call_id), entry.tool.clone().unwrap_or_default());
        } else if entry.kind == EntryKind::ToolResult {
            if !call_id.is_empty() && !self.answer(&call_id) {
                return;
            }
            let called = self.calls.close(&self.of_session(&call_id));
            let own = entry.tool.take().filter(|name| name != "tool");
            let name = own.or(called).unwrap_or_else(|| "tool".to_owned());
            if is_web(&name) {
                entry.speaker = Speaker::Web;
            }
            if is_shell(&name) {
                entry.exit_code = entry.exit_code.or_else(|| trailing_code(&entry.text));
                entry.outcome = outcome_of_stop(&entry.text).or(entry.outcome);
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
    }

    /// A call's id within the file, whose sessions may use the same ids.
    fn of_session(&self, call_id: &str) -> String {
        format!("{}/{call_id}", self.current)
    }

    /// Completes the header from the first entries; a missing id becomes a digest of the text.
    fn note_beginning(&mut self, entry: &RawEntry) {
        let head = self.head();
        head.started_at = head.started_at.or(entry.at);
        if head.native_id.is_empty() && entry.kind != EntryKind::Injected {
            let words = [entry.speaker.name(), entry.kind.name(), entry.text.as_str()];
            head.native_id = Digest::of(&words).to_string();
        }
    }

    /// Emits the session's header, once.
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
