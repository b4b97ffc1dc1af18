//! Sessions of a file of API conversations.
//!
//! A session's id is `<id>#<N>`: the conversation's own id and the record's index in the file.
//! Without an own id it is a digest of the file's text up to the first message that is not
//! context: that part does not change when the file grows.

use super::messages::{self, MessageReader, is_hollow, is_message, time_of};
use crate::domain::{Digest, EntryKind, Severity};
use crate::transcripts::emit::Emit;
use crate::transcripts::json::JsonExt;
use crate::transcripts::raw::{RawEntry, RawSession};
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// Maximum number of messages of a record that are compared with the next record.
const HISTORY_MAX: usize = 100_000;
/// Maximum number of entries buffered until the session's id can be derived from its first text.
const WAITING_MAX: usize = 64;

#[derive(Default)]
pub(super) struct ChatLog<'e> {
    pub(super) emit: Emit<'e>,
    /// Number of records so far, unreadable ones included.
    records: u64,
    prefix: Option<Digest>,
    /// Hashes of the messages of the session emitted last.
    history: Vec<u64>,
    /// Session whose messages arrive one by one.
    open: Option<OpenSession>,
    messages: MessageReader,
}

struct OpenSession {
    head: RawSession,
    /// First entries; `None` once the session is emitted.
    waiting: Option<Vec<RawEntry>>,
}

impl<'e> ChatLog<'e> {
    pub(super) fn new(emit: Emit<'e>) -> ChatLog<'e> {
        ChatLog { emit, messages: MessageReader::of_file(), ..ChatLog::default() }
    }

    /// Counts an unreadable record, so that the others keep their numbers.
    pub(super) fn pass(&mut self) {
        self.close();
        self.records += 1;
    }

    /// Reads a whole conversation. All entries are on `line`; if `None`, on their message's number.
    pub(super) fn record(&mut self, json: &Value, line: Option<u32>, file_line: u32) {
        self.close();
        let Some(record) = Record::of(json) else {
            self.records += 1;
            if !is_empty(json) {
                let detail = "expected a conversation: `messages` of `role` and `content`";
                self.emit.finding(Severity::Warning, "no-messages", file_line, detail);
            }
            return;
        };
        let (entries, messages) = self.read(&record, line, file_line);
        let repeated = self.repeated(&messages, &entries);
        if repeated == 0 {
            self.begin(record.head, &entries);
        }
        self.records += 1;
        self.history = messages.into_iter().map(|(mark, _)| mark).collect();
        entries.into_iter().skip(repeated).for_each(|entry| self.emit.entry(entry));
    }

    /// Entries of a record, and for each message its hash and the end index of its entries.
    fn read(
        &mut self,
        record: &Record<'_>,
        line: Option<u32>,
        file_line: u32,
    ) -> (Vec<RawEntry>, Vec<(u64, usize)>) {
        let (mut entries, mut messages) = (Vec::new(), Vec::new());
        let mut from = 0;
        self.messages = MessageReader::of_file();
        messages::injected(record.system, line.unwrap_or(1), &mut entries);
        let told = [None].into_iter().chain(record.messages.iter().map(Some));
        for (number, message) in (0..).zip(told) {
            if let Some(message) = message
                && !self.messages.read(message, line.unwrap_or(number), &mut entries)
            {
                self.unknown_role(file_line);
            }
            if from < entries.len() && messages.len() < HISTORY_MAX {
                messages.push((hash(entries.get(from..).unwrap_or_default()), entries.len()));
                from = entries.len();
            }
        }
        (entries, messages)
    }

    /// Number of entries that repeat the previous record. A request log repeats the whole
    /// conversation each time and is one session.
    fn repeated(&self, messages: &[(u64, usize)], entries: &[RawEntry]) -> usize {
        let same = messages.iter().zip(&self.history).take_while(|((mark, _), old)| mark == *old);
        if self.history.is_empty() || same.count() < self.history.len() {
            return 0;
        }
        let last = self.history.len() - 1;
        let known = messages.get(last).map_or(0, |(_, end)| *end);
        // Different conversations may share context.
        let context = |entry: &RawEntry| entry.kind == EntryKind::Injected;
        if entries.iter().take(known).all(context) { 0 } else { known }
    }

    /// Begins a session whose messages arrive one by one.
    pub(super) fn open(&mut self, head: RawSession) {
        self.close();
        self.history.clear();
        self.messages = MessageReader::of_file();
        self.open = Some(OpenSession { head, waiting: Some(Vec::new()) });
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Adds context to the open session.
    pub(super) fn system(&mut self, json: &Value, line: u32) {
        let mut entries = Vec::new();
        messages::injected(json, line, &mut entries);
        self.add(entries);
    }

    pub(super) fn message(&mut self, json: &Value, line: u32, file_line: u32) {
        if !is_message(json) && json.has("type") {
            return self.emit.unknown(json.text("type"), file_line);
        }
        if !is_message(json) {
            let detail = "expected a message: `role` and `content`";
            return self.emit.finding(Severity::Warning, "no-message", file_line, detail);
        }
        let mut entries = Vec::new();
        if !self.messages.read(json, line, &mut entries) {
            self.unknown_role(file_line);
        }
        if is_hollow(json) {
            let detail = "expected a message: `content` with a text or a list of parts";
            self.emit.finding(Severity::Warning, "no-content", file_line, detail);
        }
        self.add(entries);
    }

    /// Reads a message without a conversation around it; begins a session if none is open.
    pub(super) fn lone_message(&mut self, json: &Value, line: u32, file_line: u32) {
        if self.open.is_none() {
            self.open(RawSession::default());
        }
        self.message(json, line, file_line);
    }

    fn add(&mut self, mut entries: Vec<RawEntry>) {
        let Some(open) = &mut self.open else { return };
        let Some(waiting) = &mut open.waiting else {
            return entries.into_iter().for_each(|entry| self.emit.entry(entry));
        };
        let known = entries.iter().any(|entry| entry.kind != EntryKind::Injected);
        waiting.append(&mut entries);
        if known || waiting.len() >= WAITING_MAX {
            self.release();
        }
    }

    /// Emits the header and the first entries of the open session, if there are any.
    fn release(&mut self) {
        let Some(open) = &mut self.open else { return };
        if let Some(waiting) = open.waiting.take_if(|waiting| !waiting.is_empty()) {
            let head = std::mem::take(&mut open.head);
            self.begin(head, &waiting);
            waiting.into_iter().for_each(|entry| self.emit.entry(entry));
        }
    }

    pub(super) fn close(&mut self) {
        self.release();
        self.records += u64::from(self.open.take().is_some());
    }

    fn begin(&mut self, mut head: RawSession, entries: &[RawEntry]) {
        let prefix = *self.prefix.get_or_insert_with(|| {
            let context = |entry: &&RawEntry| entry.kind == EntryKind::Injected;
            let first = entries.iter().take_while(context).count() + 1;
            digest(entries.get(..first).unwrap_or(entries))
        });
        let own = std::mem::take(&mut head.native_id);
        let name = if own.is_empty() { prefix.to_string() } else { own };
        head.native_id = format!("{name}#{}", self.records);
        head.started_at = head.started_at.or_else(|| entries.iter().find_map(|entry| entry.at));
        let context = || entries.iter().filter(|entry| entry.kind == EntryKind::Injected);
        let told = || context().find_map(|entry| working_directory(&entry.text)).map(str::to_owned);
        head.cwd = head.cwd.or_else(told);
        self.emit.session(head);
    }

    fn unknown_role(&mut self, line: u32) {
        let detail = "expected a role: system, developer, user, assistant, tool or function";
        self.emit.finding(Severity::Warning, "unknown-role", line, detail);
    }
}

/// Working directory in a client's context: `Working Directory: /home/me/app`, or the heading
/// `# Current Working Directory (/home/me/app) Files`; Roo's is `Workspace`.
fn working_directory(context: &str) -> Option<&str> {
    const NAMES: [&str; 2] = ["working directory", "workspace directory"];
    let path = context.lines().find_map(|line| {
        let lower = line.to_ascii_lowercase();
        let end = NAMES.iter().find_map(|name| Some(lower.find(name)? + name.len()))?;
        let told = line.get(end..)?.trim();
        let inner = told.strip_prefix('(').and_then(|told| told.split_once(')'));
        inner.map(|(path, _)| path).or_else(|| told.strip_prefix(':')).map(str::trim)
    });
    path.filter(|it| Path::new(it).is_absolute() || matches!(it.get(1..3), Some(":/" | ":\\")))
}

/// Hash of a message, compared only within one run.
fn hash(entries: &[RawEntry]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for entry in entries {
        (entry.speaker, entry.kind, &entry.tool, &entry.text).hash(&mut hasher);
    }
    hasher.finish()
}

/// Digest of messages, independent of how they are wrapped.
fn digest(entries: &[RawEntry]) -> Digest {
    let parts = entries.iter().flat_map(|entry| {
        let tool = entry.tool.as_deref().unwrap_or_default();
        [entry.speaker.name(), entry.kind.name(), tool, entry.text.as_str()]
    });
    Digest::of(&parts.collect::<Vec<_>>())
}

/// Fields with a conversation's id, most reliable first.
const IDS: [&str; 7] =
    ["conversation_id", "session_id", "sessionId", "thread_id", "chat_id", "uuid", "id"];
/// Minimum size of an `id` that identifies a conversation; shorter ones only number records.
const ID_BYTES_MIN: usize = 16;
pub(super) const LISTS: [&str; 6] =
    ["messages", "traj", "conversations", "conversation", "chat_messages", "items"];
pub(super) const SYSTEMS: [&str; 3] = ["system", "system_prompt", "systemPrompt"];

pub(super) struct Record<'j> {
    /// Session header; its id may be empty.
    pub(super) head: RawSession,
    pub(super) system: &'j Value,
    pub(super) messages: Vec<&'j Value>,
}

impl<'j> Record<'j> {
    pub(super) fn of(json: &'j Value) -> Option<Record<'j>> {
        if json.is_array() {
            let messages: Vec<_> = json.list().iter().filter(|m| is_message(m)).collect();
            let (head, system) = (RawSession::default(), &Value::Null);
            return (!messages.is_empty()).then_some(Record { head, system, messages });
        }
        let inner = ["request", "body", "input", "data"].iter().map(|key| &json[key]);
        let carriers = [json].into_iter().chain(inner.filter(|inner| inner.is_object()));
        let found = carriers.clone().find_map(|carrier| Some((carrier, list_of(carrier)?)));
        let (carrier, list) = found.unwrap_or((json, &[]));
        let mut messages: Vec<_> = list.iter().filter(|message| is_message(message)).collect();
        messages.extend(answers(json));
        if messages.is_empty() {
            return None;
        }
        Some(Record { head: head(json), system: carrier.first(&SYSTEMS), messages })
    }
}

pub(super) fn head(json: &Value) -> RawSession {
    let heads = [json, &json["meta"]["session_meta"]];
    let text = |keys: &[&str]| heads.iter().find_map(|it| it.first_text(keys)).map(str::to_owned);
    let ids = heads.iter().flat_map(|it| IDS.map(|key| (key, it.text(key))));
    let id = ids.filter(|(key, id)| id.len() >= if *key == "id" { ID_BYTES_MIN } else { 1 });
    let id = id.map(|(_, id)| id.to_owned()).next();
    RawSession {
        native_id: id.unwrap_or_default(),
        title: text(&["title", "name", "threadName"]),
        cwd: text(&["cwd", "working_dir"]),
        started_at: time_of(json),
        ..RawSession::default()
    }
}

/// True if an object is a conversation without messages: `{"messages":[]}`.
pub(super) fn is_empty(json: &Value) -> bool {
    let mut lists = LISTS.iter().map(|key| &json[key]).filter(|value| value.is_array());
    lists.any(|value| value.list().is_empty())
}

fn list_of(carrier: &Value) -> Option<&[Value]> {
    let lists = LISTS.iter().map(|key| carrier[key].list());
    lists.into_iter().find(|list| list.iter().any(is_message))
}

/// Messages beside the list of a conversation: preferred answers and the logged response.
pub(super) fn answers(json: &Value) -> impl Iterator<Item = &Value> {
    json["preferred_output"].list().iter().chain(answer(&json["response"]))
}

/// Message of a logged response: OpenAI's first choice, or Anthropic's message itself.
fn answer(response: &Value) -> Option<&Value> {
    let body = if response["body"].is_object() { &response["body"] } else { response };
    let choice = body["choices"].list().first().map(|choice| &choice["message"]);
    let own = [&body["message"], body].into_iter().find(|message| is_message(message));
    choice.filter(|message| message.is_object()).or(own)
}

#[cfg(test)]
mod record_tests {
    use super::*;
    use crate::transcripts::json;

    #[track_caller]
    fn check(json: &str, id: &str, messages: usize) {
        let json = json::parse(json).unwrap();
        let record = Record::of(&json);
        let got = record.map(|record| (record.head.native_id, record.messages.len()));
        assert_eq!(got.unwrap_or_default(), (id.to_owned(), messages));
    }

    #[test]
    fn messages_are_found_in_every_wrapping() {
        const M: &str = r#"[{"role":"user","content":"a"}]"#;
        check(M, "", 1);
        check(&format!(r#"{{"messages":{M},"session_id":"s"}}"#), "s", 1);
        check(&format!(r#"{{"task_id":3,"reward":1,"traj":{M}}}"#), "", 1);
        check(&format!(r#"{{"custom_id":"c","body":{{"messages":{M}}}}}"#), "", 1);
        check(
            &format!(
                r#"{{"input":{{"messages":{M}}},"preferred_output":{M},"non_preferred_output":{M}}}"#
            ),
            "",
            2,
        );
        check(r#"{"conversations":[{"from":"human","value":"a"}]}"#, "", 1);
    }

    #[test]
    fn a_number_within_a_file_is_no_name() {
        const M: &str = r#"[{"role":"user","content":"a"}]"#;
        check(&format!(r#"{{"messages":{M},"id":"identity_0"}}"#), "", 1);
        check(
            &format!(r#"{{"messages":{M},"id":"chatcmpl-0123456789"}}"#),
            "chatcmpl-0123456789",
            1,
        );
    }

    #[test]
    fn a_logged_response_is_the_last_message() {
        check(
            r#"{"request":{"messages":[{"role":"user","content":"a"}]},
                "response":{"id":"r","choices":[{"message":{"role":"assistant","content":"b"}}]}}"#,
            "",
            2,
        );
        check(
            r#"{"request":{"messages":[{"role":"user","content":"a"}]},
                "response":{"role":"assistant","content":[{"type":"text","text":"b"}]}}"#,
            "",
            2,
        );
    }

    #[test]
    fn something_else_has_none() {
        check(r#"{"a":1}"#, "", 0);
        check("3", "", 0);
        check(r#"{"messages":[{"text":"no role"}]}"#, "", 0);
    }
}
