//! The first pass over a Claude Code transcript: the session's head, and one byte of marks a line
//! (duplicates, rewound branches, what became of queued prompts). It keeps no texts but the title.

use super::record::{Head, Link};
use super::said;
use super::tree::{Node, Tree};
use crate::domain::{Digest, Timestamp};
use crate::source::RawSession;
use crate::source::fields::Obj;
use crate::source::marks::{Marks, NameMap, name_of};
use crate::source::raw::short_title;
use crate::source::said::Said;
use std::collections::VecDeque;

/// The line holds nothing that becomes an entry.
pub(super) const PASSED: u8 = 1;
/// It stands on a branch that was rewound.
pub(super) const ABANDONED: u8 = 2;
/// It stands elsewhere in the file, under another session.
pub(super) const COPIED: u8 = 4;
/// A queued prompt that reached the agent while it worked.
pub(super) const STEERING: u8 = 8;
/// A queued prompt that the person took back.
pub(super) const TAKEN_BACK: u8 = 16;
/// A summary of records that are themselves in the file.
pub(super) const SUMMARISED: u8 = 32;

/// Prompts that wait in the queue; a person does not type more ahead.
const QUEUE_MAX: usize = 1024;
/// Blocked prompts that may still be sent again.
const BLOCKED_MAX: usize = 64;
/// How the prompt begins that the client writes when a plan is accepted with a cleared context.
const PLAN_HEAD: &str = "Implement the following plan:";

/// What the first pass learnt.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) session: RawSession,
    pub(super) marks: Marks,
    /// Steering that is read from the queue, by the name of its text: not to be read twice.
    pub(super) steering: NameMap<u32>,
    /// Whether the file is a sub-agent's run that made a summary.
    pub(super) compaction_run: bool,
}

/// Builds an [`Index`] record by record.
#[derive(Debug, Default)]
pub(super) struct Builder {
    index: Index,
    tree: Tree,
    sessions: NameMap<u64>,
    queue: VecDeque<(u32, u64)>,
    last_prompt: Option<(u32, u64)>,
    blocked: VecDeque<(u32, u64)>,
    titles: Titles,
    ids: Ids,
    conversational: u32,
    main: bool,
    /// Compactions so far: a prompt behind one takes the place of none before it.
    compactions: u32,
}

#[derive(Debug, Default)]
struct Ids {
    first: Option<String>,
    /// The first and the last session that the assistant spoke in.
    assistant: Option<(String, String)>,
    agent: Option<String>,
    digest: Option<String>,
}

impl Ids {
    fn assistant(&mut self, id: &str) {
        match &mut self.assistant {
            Some((_, last)) if last == id => {}
            Some((_, last)) => id.clone_into(last),
            None => self.assistant = Some((id.to_owned(), id.to_owned())),
        }
    }
}

#[derive(Debug, Default)]
struct Titles {
    custom: Option<String>,
    ai: Option<String>,
    summaries: Vec<(u64, String)>,
}

/// Summaries at the head of a file that may belong to it; dozens of stale ones pile up.
const SUMMARIES_MAX: usize = 256;

impl Builder {
    /// Takes the next record, which stands on `line`; `text` is the whole line.
    pub(super) fn add(&mut self, line: u32, head: &Head<'_>, text: &str) {
        if self.ids.digest.is_none() {
            self.ids.digest = Some(Digest::of(&["claude-code", text]).to_string());
        }
        self.head(head);
        match head.kind.get() {
            "user" => self.conversation(line, head),
            "assistant" => self.conversation(line, head),
            "queue-operation" => self.queue(line, head),
            "attachment" | "system" => {
                self.compactions += u32::from(head.subtype.is("compact_boundary"));
                self.node(line, head, None);
            }
            "progress" => {
                self.node(line, head, None);
                self.index.marks.set(line, PASSED);
            }
            "pr-link" | "result" => {}
            other => {
                self.title(other, head);
                self.index.marks.set(line, PASSED);
            }
        }
    }

    fn head(&mut self, head: &Head<'_>) {
        let session = &mut self.index.session;
        if let Some(id) = head.session_id() {
            self.ids.first.get_or_insert_with(|| id.to_owned());
            if head.kind.is("assistant") {
                self.ids.assistant(id);
            }
        }
        if session.cwd.is_none() {
            session.cwd = head.cwd.some().map(str::to_owned);
        }
        if session.started_at.is_none() {
            session.started_at = head.timestamp.some().and_then(Timestamp::parse);
        }
        if self.ids.agent.is_none() {
            self.ids.agent = head.agent.some().map(str::to_owned);
        }
    }

    fn title(&mut self, kind: &str, head: &Head<'_>) {
        match kind {
            "custom-title" => self.titles.custom = head.custom_title.some().map(short_title),
            "ai-title" => self.titles.ai = head.ai_title.some().map(short_title),
            "summary" if self.titles.summaries.len() < SUMMARIES_MAX => {
                let Some(summary) = head.summary.some().map(short_title) else { return };
                self.titles.summaries.push((name_of(head.leaf.get()), summary));
            }
            _ => {}
        }
    }

    /// Adds a record to the tree and says whether it is a duplicate, which is marked.
    fn node(&mut self, line: u32, head: &Head<'_>, prompt: Option<&Said>) {
        let Some(uuid) = head.uuid.some().filter(|id| is_id(id)) else {
            self.tree.push(None, self.node_of(line, head, prompt), None);
            return;
        };
        let name = name_of(uuid);
        let session = name_of(head.session_id().unwrap_or_default());
        if let Some(first) = self.sessions.insert(name, session) {
            self.sessions.insert(name, first);
            let mark = if first == session { PASSED } else { COPIED };
            self.index.marks.set(line, mark);
            return;
        }
        let parent = match (&head.parent, head.logical_parent.some()) {
            (Link::Null, Some(logical)) => Some(Some(name_of(logical))),
            (Link::Null, None) => Some(None),
            (Link::To(parent), _) if is_id(parent) => Some(Some(name_of(parent))),
            (Link::To(_) | Link::Absent, _) => None,
        };
        let node = self.node_of(line, head, prompt);
        self.tree.push(Some(name), node, parent);
    }

    fn node_of(&self, line: u32, head: &Head<'_>, prompt: Option<&Said>) -> Node {
        let sidechain = head.is_sidechain();
        let speaks = matches!(head.kind.get(), "user" | "assistant");
        let begins = |said: &&Said| {
            matches!(head.parent, Link::Null)
                && head.plan.is_none()
                && !said.text.trim_start().starts_with(PLAN_HEAD)
        };
        let name = || name_of(&format!("{} {:?}", self.compactions, head.session_id()));
        let beginning = prompt.filter(begins).map(|_| name());
        Node::new(line, prompt.is_some() && !sidechain, speaks, sidechain).beginning(beginning)
    }

    fn conversation(&mut self, line: u32, head: &Head<'_>) {
        let said = self.said(head);
        let prompt = said.as_ref().filter(|said| said.is_prompt());
        self.node(line, head, prompt);
        if self.index.marks.has(line, PASSED | COPIED) {
            return;
        }
        self.main |= !head.is_sidechain();
        if head.compact.on() && 0 < self.conversational {
            self.index.marks.set(line, SUMMARISED);
        }
        self.conversational += u32::from(!head.meta.on());
        match said {
            Some(said) if said.is_prompt() => self.prompt(line, &said),
            Some(said) if said.text.starts_with(said::HOOK_STOPPED) => {
                if let Some(blocked) = self.last_prompt.take()
                    && self.blocked.len() < BLOCKED_MAX
                {
                    self.blocked.push_back(blocked);
                }
            }
            Some(_) | None => {}
        }
    }

    /// What a user record without tool result says, its first words at least.
    fn said(&self, head: &Head<'_>) -> Option<Said> {
        let made = head.meta.on() || head.compact.on() || head.tool_result.is_some();
        let origin = head.origin.0.as_ref().map(|origin| origin.kind.get()).unwrap_or_default();
        let made = made || said::is_made(origin, head.prompt_source.get());
        if made || !head.kind.is("user") {
            return None;
        }
        let message = head.message?.get();
        let read: Obj<super::record::Message<'_>> = Obj(serde_json::from_str(message).ok());
        let message = read.0?;
        if super::holds_result(&message.content) {
            return None;
        }
        let said = said::read_all(message.content);
        let prompt = said.iter().find(|said| said.is_prompt()).cloned();
        prompt.or_else(|| said.into_iter().next())
    }

    fn prompt(&mut self, line: u32, said: &Said) {
        let name = name_of(said.text.trim());
        self.blocked.retain(|(blocked, text)| {
            let again = *text == name;
            if again {
                self.index.marks.set(*blocked, COPIED);
            }
            !again
        });
        self.last_prompt = Some((line, name));
    }

    fn queue(&mut self, line: u32, head: &Head<'_>) {
        let name = head.content.some().map(|text| name_of(text.trim()));
        match head.operation.get() {
            "enqueue" if self.queue.len() < QUEUE_MAX => {
                self.queue.push_back((line, name.unwrap_or_default()));
            }
            "enqueue" => self.steered(line, name.unwrap_or_default()),
            "dequeue" => drop(self.unqueue(name)),
            "remove" => {
                if let Some((line, name)) = self.unqueue(name) {
                    self.steered(line, name);
                }
            }
            "popAll" => self.pop_all(name),
            _ => {}
        }
        if !head.operation.is("enqueue") {
            self.index.marks.set(line, PASSED);
        }
    }

    /// The queued prompt of this name, else the one that waits longest.
    fn unqueue(&mut self, name: Option<u64>) -> Option<(u32, u64)> {
        let at = self.queue.iter().position(|(_, queued)| Some(*queued) == name);
        self.queue.remove(at.unwrap_or(0))
    }

    fn pop_all(&mut self, name: Option<u64>) {
        let one = self.queue.iter().position(|(_, queued)| Some(*queued) == name);
        let popped = match one {
            Some(at) => self.queue.remove(at).into_iter().collect(),
            None => std::mem::take(&mut self.queue),
        };
        for (line, _) in popped {
            self.index.marks.set(line, TAKEN_BACK);
        }
    }

    fn steered(&mut self, line: u32, name: u64) {
        self.index.marks.set(line, STEERING);
        *self.index.steering.entry(name).or_default() += 1;
    }

    /// Ends the pass.
    pub(super) fn finish(mut self) -> Index {
        for (line, name) in std::mem::take(&mut self.queue) {
            self.steered(line, name);
        }
        for line in self.tree.abandoned() {
            self.index.marks.set(line, ABANDONED);
        }
        let titles = &mut self.titles;
        let known = |(leaf, _): &&(u64, String)| self.sessions.contains_key(leaf);
        // Summaries of other sessions pile up at the head of a file.
        let summary = titles.summaries.iter().rfind(known).map(|(_, summary)| summary.clone());
        let ids = self.ids;
        let session = &mut self.index.session;
        session.title = titles.custom.take().or(titles.ai.take()).or(summary);
        // Some files hold records of two ids: hooks that ran under another, the prompt of a plan
        // that was accepted in the session before, or the copied history of a session that was
        // resumed. The session is the one the assistant spoke in last: the first may be the copy's
        // (and the same as that of another file), and a majority could change as the file grows.
        let (first, last) = ids.assistant.unzip();
        let digest = || Digest::of(&["claude-code", ""]).to_string();
        let id = last.or(ids.first).or(ids.digest).unwrap_or_else(digest);
        session.parent = first.filter(|first| *first != id);
        match ids.agent.filter(|_| !self.main && 0 < self.conversational) {
            Some(agent) => {
                self.index.compaction_run = agent.starts_with("acompact");
                session.native_id = format!("{id}/agent-{agent}");
                session.parent = Some(id);
            }
            None => session.native_id = id,
        }
        self.index
    }
}

/// Whether a text can be an id; what a redactor put in its place cannot.
fn is_id(text: &str) -> bool {
    !text.contains([' ', '[']) && !text.contains("REDACTED")
}

/// The text that [`Builder::queue`] names, as a person typed it.
pub(super) fn queued_name(text: &str) -> u64 {
    name_of(text.trim())
}
