//! Files of API conversations, whatever carries them: one array of messages, one object around it, an
//! array of such objects, or one a line. Openai and Anthropic differ in the messages only.
//!
//! A session's id is `<id>#<N>`: the conversation's own id where it has one, and N, the number of its
//! record in the file from 0. Without an own id it is a digest of the file's first words, up to and
//! with the first message that is not context: that part does not change when the file grows.

use super::messages::{Talk, is_hollow, is_message};
use super::record::{Record, is_empty};
use crate::domain::{Digest, EntryKind, Severity};
use crate::source::emit::Emit;
use crate::source::json::Json;
use crate::source::{RawEntry, RawSession};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Messages of a record remembered to tell whether the next one repeats them.
const HISTORY_MAX: usize = 100_000;
/// Entries held back until a session's first words are known, which give it its id.
const HELD_MAX: usize = 64;

/// Entries, and for each message its mark and where its entries end.
type Said = (Vec<RawEntry>, Vec<(u64, usize)>);

/// Turns records and messages into sessions and entries.
pub(super) struct Log<'e, 's> {
    pub(super) emit: Emit<'e, 's>,
    /// Records seen, whether they could be read or not.
    records: u64,
    /// Digest of the file's first words.
    prefix: Option<Digest>,
    /// Marks of the messages of the session emitted last.
    history: Vec<u64>,
    /// A session whose messages come one by one.
    open: Option<Open>,
    talk: Talk,
    /// Reused for the entries of one message.
    entries: Vec<RawEntry>,
}

struct Open {
    head: RawSession,
    /// Entries read before the session was emitted.
    held: Vec<RawEntry>,
    emitted: bool,
}

impl<'e, 's> Log<'e, 's> {
    pub(super) fn new(emit: Emit<'e, 's>) -> Log<'e, 's> {
        Log {
            emit,
            records: 0,
            prefix: None,
            history: Vec::new(),
            open: None,
            talk: Talk::default(),
            entries: Vec::new(),
        }
    }

    /// Counts a record that could not be read, so that the numbers of the others stay right.
    pub(super) fn pass(&mut self) {
        self.close();
        self.records += 1;
    }

    /// Reads a whole conversation. `line` is given to all its entries; without it each message's own
    /// number is.
    pub(super) fn record(&mut self, json: &Json<'_>, line: Option<u32>, file_line: u32) {
        self.close();
        let Some(record) = Record::of(json) else {
            self.records += 1;
            if is_empty(json) {
                return;
            }
            let detail = "expected a conversation: `messages` of `role` and `content`";
            self.emit.finding(Severity::Warning, "no-messages", file_line, detail);
            return;
        };
        let (entries, said) = self.read(&record, line, file_line);
        let repeated = self.repeated(&said, &entries);
        if repeated == 0 {
            self.begin(record.head, &entries);
        }
        self.records += 1;
        self.history = said.into_iter().map(|(mark, _)| mark).collect();
        entries.into_iter().skip(repeated).for_each(|entry| self.emit.entry(entry));
    }

    /// The entries of a record; for each message that says something its mark, and how many entries
    /// there are up to its end.
    fn read(&mut self, record: &Record<'_, '_>, line: Option<u32>, file_line: u32) -> Said {
        let (mut entries, mut said) = (Vec::new(), Vec::new());
        let mut from = 0;
        self.talk = Talk::default();
        Talk::system(record.system, line.unwrap_or(1), &mut entries);
        for (number, message) in
            (0..).zip([None].into_iter().chain(record.messages.iter().map(Some)))
        {
            if let Some(message) = message
                && !self.talk.read(message, line.unwrap_or(number), &mut entries)
            {
                self.unknown_role(file_line);
            }
            if from < entries.len() && said.len() < HISTORY_MAX {
                said.push((mark(entries.get(from..).unwrap_or_default()), entries.len()));
                from = entries.len();
            }
        }
        (entries, said)
    }

    /// How many entries of a record stood in the record before: a log of requests repeats the whole
    /// conversation each time, and that is one session that goes on.
    fn repeated(&self, said: &[(u64, usize)], entries: &[RawEntry]) -> usize {
        let same = said.iter().zip(&self.history).take_while(|((mark, _), old)| mark == *old);
        if self.history.is_empty() || same.count() < self.history.len() {
            return 0;
        }
        let last = self.history.len() - 1;
        let known = said.get(last).map_or(0, |(_, end)| *end);
        // Context alone is what different conversations share.
        let context = |entry: &RawEntry| entry.kind == EntryKind::Injected;
        if entries.iter().take(known).all(context) { 0 } else { known }
    }

    /// Begins a session whose messages come one by one; ends the one before.
    pub(super) fn open(&mut self, head: RawSession) {
        self.close();
        self.history.clear();
        self.talk = Talk::default();
        self.open = Some(Open { head, held: Vec::new(), emitted: false });
    }

    /// Whether messages belong to a session that was opened.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Context that stands beside the messages of the open session.
    pub(super) fn system(&mut self, json: &Json<'_>, line: u32) {
        let mut entries = std::mem::take(&mut self.entries);
        Talk::system(json, line, &mut entries);
        self.hand(&mut entries);
        self.entries = entries;
    }

    /// The next message of the open session.
    pub(super) fn message(&mut self, json: &Json<'_>, line: u32, file_line: u32) {
        if !is_message(json) {
            let detail = "expected a message: `role` and `content`";
            self.emit.finding(Severity::Warning, "no-message", file_line, detail);
            return;
        }
        let mut entries = std::mem::take(&mut self.entries);
        if !self.talk.read(json, line, &mut entries) {
            self.unknown_role(file_line);
        }
        if is_hollow(json) {
            let detail = "expected a message: `content` with a text or a list of parts";
            self.emit.finding(Severity::Warning, "no-content", file_line, detail);
        }
        self.hand(&mut entries);
        self.entries = entries;
    }

    fn hand(&mut self, entries: &mut Vec<RawEntry>) {
        let Some(open) = &mut self.open else { return entries.clear() };
        if open.emitted {
            return entries.drain(..).for_each(|entry| self.emit.entry(entry));
        }
        let known = entries.iter().any(|entry| entry.kind != EntryKind::Injected);
        open.held.append(entries);
        if known || open.held.len() >= HELD_MAX {
            self.release();
        }
    }

    /// Emits the open session and what was held back.
    fn release(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        if !open.emitted {
            open.emitted = true;
            let held = std::mem::take(&mut open.held);
            self.begin(std::mem::take(&mut open.head), &held);
            held.into_iter().for_each(|entry| self.emit.entry(entry));
        }
        self.open = Some(open);
    }

    /// Ends the open session, if any.
    pub(super) fn close(&mut self) {
        if self.open.as_ref().is_some_and(|open| !open.held.is_empty()) {
            self.release();
        }
        if self.open.take().is_some() {
            self.records += 1;
        }
    }

    /// Emits a session's head with its id.
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
        self.emit.session(head);
    }

    fn unknown_role(&mut self, line: u32) {
        let detail = "expected a role: system, developer, user, assistant, tool or function";
        self.emit.finding(Severity::Warning, "unknown-role", line, detail);
    }
}

/// Tells a message from the one that stood in its place in the record before. Compared within one run
/// only, so that a fast hash will do.
fn mark(entries: &[RawEntry]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for entry in entries {
        (entry.speaker, entry.kind, &entry.tool, &entry.text).hash(&mut hasher);
    }
    hasher.finish()
}

/// What messages say, in one digest: the same messages in another wrapping have the same one.
fn digest(entries: &[RawEntry]) -> Digest {
    let parts = entries.iter().flat_map(|entry| {
        let tool = entry.tool.as_deref().unwrap_or_default();
        [entry.speaker.name(), entry.kind.name(), tool, entry.text.as_str()]
    });
    Digest::of(&parts.collect::<Vec<_>>())
}
