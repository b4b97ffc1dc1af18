//! First pass over a Claude Code transcript. Collects the session's header and a byte of flags per
//! line (duplicates, rewound branches, the fate of queued prompts). Keeps no text but the title.

use super::record::{Head, Link};
use super::user_text;
use crate::domain::{Digest, Timestamp};
use crate::transcripts::client_text::{ClientText, HOOK_STOPPED};
use crate::transcripts::fields::{Content, TextOr};
use crate::transcripts::marks::{LineMarks, NameMap, NameSet, name_of};
use crate::transcripts::raw::{RawSession, short_title};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::VecDeque;

/// Line without an entry.
pub(super) const PASSED: u8 = 1;
/// Line of a rewound branch.
pub(super) const ABANDONED: u8 = 2;
/// Line copied from another session.
pub(super) const COPIED: u8 = 4;
/// Queued prompt that reached the agent while it worked.
pub(super) const STEERING: u8 = 8;
/// Queued prompt that the user withdrew.
pub(super) const TAKEN_BACK: u8 = 16;
/// Summary of records that are in the file too.
pub(super) const SUMMARISED: u8 = 32;
/// Line with another line's id but different text.
pub(super) const REUSED: u8 = 64;
/// Maximum number of lines from a result to its call behind it: the client writes both at the same time.
const EARLY_LINES_MAX: u32 = 32;

const QUEUE_MAX: usize = 1024;
/// Maximum number of blocked prompts that may still be resent.
const BLOCKED_MAX: usize = 64;
/// Beginning and a later field of the record of a background task in the queue, which is never taken
/// out of it.
const TASK_STARTED: [&str; 2] = ["{\"task_id\":", "\"task_type\":"];
/// Beginning of the prompt that the client writes for a plan accepted with a cleared context.
const PLAN_HEAD: &str = "Implement the following plan:";

#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) session: RawSession,
    pub(super) marks: LineMarks,
    /// Lines of results that are in front of their call, each with the line of the call, in order.
    pub(super) early: Vec<(u32, u32)>,
    /// Number of steering prompts read from the queue, by hash of the text.
    pub(super) steering: NameMap<u32>,
    /// True if the file is the run of a sub-agent that wrote a summary.
    pub(super) compaction_run: bool,
}

#[derive(Debug, Default)]
pub(super) struct Indexer {
    index: Index,
    tree: Tree,
    known: NameSet,
    /// Sessions of records, by hash of id and text.
    sessions: NameMap<u64>,
    words: u64,
    queue: VecDeque<(u32, u64)>,
    /// Oldest queued prompt, taken out for the last `dequeue`, which did not say what it took.
    taken: Option<(u32, u64)>,
    /// Line of the prompt last put back into the queue.
    put_back: u32,
    last_prompt: Option<(u32, u64)>,
    blocked: Vec<(u32, u64)>,
    /// Lines of results whose parent was not in front of them, and the hash of its id.
    orphans: Vec<(u32, u64)>,
    /// Titles that a person and the client gave, and summaries with the hash of the record they end at.
    custom_title: Option<String>,
    ai_title: Option<String>,
    summaries: Vec<(u64, String)>,
    /// First session, and first and last session in which the assistant spoke.
    first_id: Option<String>,
    assistant_ids: Option<(String, String)>,
    agent_id: Option<String>,
    digest: Option<String>,
    conversational: u32,
    main: bool,
    /// Number of compactions so far: a prompt after one replaces none before it.
    compactions: u32,
}

/// Maximum number of summaries at the start of a file; dozens of stale ones accumulate.
const SUMMARIES_MAX: usize = 256;

impl Indexer {
    pub(super) fn add(&mut self, line: u32, head: &Head<'_>, text: &str) {
        self.digest.get_or_insert_with(|| Digest::of(&["claude-code", text]).to_string());
        self.head(head);
        self.words = head.uuid.some().map_or(0, |_| words_of(head, text));
        match head.kind.get() {
            "user" | "assistant" => self.conversation(line, head),
            "queue-operation" => self.queue(line, head),
            "attachment" | "system" => {
                self.compactions += u32::from(head.subtype.is("compact_boundary"));
                self.node(line, head, None);
            }
            "progress" => {
                self.node(line, head, None);
                self.index.marks.set(line, PASSED);
            }
            // Messages as they were sent to the API, which other records hold too.
            "api-request-blob" => self.index.marks.set(line, PASSED),
            "pr-link" | "result" => {}
            other => {
                self.title(other, head);
                // A record of an unknown kind with words is reported.
                let is_spoken =
                    !matches!(head.message, TextOr::None) || json_of(text).message.is_some();
                if !is_spoken && head.content.some().is_none() {
                    self.index.marks.set(line, PASSED);
                }
            }
        }
    }

    fn head(&mut self, head: &Head<'_>) {
        let session = &mut self.index.session;
        if let Some(id) = head.session_id() {
            self.first_id.get_or_insert_with(|| id.to_owned());
            if head.kind.is("assistant") {
                let ids = self.assistant_ids.get_or_insert_with(|| (id.to_owned(), String::new()));
                id.clone_into(&mut ids.1);
            }
        }
        session.cwd = session.cwd.take().or_else(|| head.cwd.owned());
        if let Some(branch) = head.git_branch.some() {
            session.on_branch(branch);
        }
        let at = || head.timestamp.some().and_then(Timestamp::parse);
        session.started_at = session.started_at.or_else(at);
        self.agent_id = self.agent_id.take().or_else(|| head.agent_id.owned());
    }

    fn title(&mut self, kind: &str, head: &Head<'_>) {
        match kind {
            "custom-title" => self.custom_title = head.custom_title.some().map(short_title),
            "ai-title" => self.ai_title = head.ai_title.some().map(short_title),
            "summary" if self.summaries.len() < SUMMARIES_MAX => {
                let Some(summary) = head.summary.some().map(short_title) else { return };
                self.summaries.push((name_of(head.leaf_uuid.get()), summary));
            }
            _ => {}
        }
    }

    fn node(&mut self, line: u32, head: &Head<'_>, prompt: Option<&ClientText>) {
        let Some(uuid) = head.uuid.some().filter(|id| is_id(id)) else {
            return self.tree.push(None, self.node_of(line, head, prompt), None);
        };
        let name = name_of(uuid);
        let session = name_of(head.session_id().unwrap_or_default());
        let record = name ^ self.words.rotate_left(1);
        if let Some(first) = self.sessions.get(&record) {
            let mark = if *first == session { PASSED } else { COPIED };
            self.index.marks.set(line, mark);
            return;
        }
        self.sessions.insert(record, session);
        if !self.known.insert(name) {
            self.index.marks.set(line, REUSED);
        }
        let parent = match (&head.parent_uuid, head.logical_parent_uuid.some()) {
            (Link::Null, Some(logical)) => Some(Some(name_of(logical))),
            (Link::Null, None) => Some(None),
            (Link::To(parent), _) if is_id(parent) => Some(Some(name_of(parent))),
            (Link::To(_) | Link::Absent, _) => None,
        };
        let is_result =
            || head.kind.is("user") && content_of(head).is_some_and(|it| has_result(&it));
        let orphaned = parent.flatten().filter(|it| !self.known.contains(it) && is_result());
        self.orphans.extend(orphaned.map(|parent| (line, parent)));
        let node = self.node_of(line, head, prompt);
        self.tree.push(Some(name), node, parent);
    }

    fn node_of(&self, line: u32, head: &Head<'_>, prompt: Option<&ClientText>) -> Node {
        let sidechain = head.is_sidechain();
        let speaks = matches!(head.kind.get(), "user" | "assistant");
        let begins = |text: &&ClientText| {
            matches!(head.parent_uuid, Link::Null)
                && head.plan_content.is_none()
                && !text.text.trim_start().starts_with(PLAN_HEAD)
        };
        let name = || name_of(&format!("{} {:?}", self.compactions, head.session_id()));
        let beginning = prompt.filter(begins).map(|_| name());
        let prompt = prompt.is_some() && !sidechain;
        Node { line, parent: None, message: None, prompt, speaks, sidechain, beginning }
    }

    fn conversation(&mut self, line: u32, head: &Head<'_>) {
        self.dequeued(head);
        let text = Indexer::user_text(head);
        let prompt = text.as_ref().filter(|text| text.is_prompt());
        self.node(line, head, prompt);
        if self.index.marks.has(line, PASSED | COPIED) {
            return;
        }
        self.main |= !head.is_sidechain();
        if head.is_compact_summary.on() && 0 < self.conversational {
            self.index.marks.set(line, SUMMARISED);
        }
        self.conversational += u32::from(!head.is_meta.on());
        match text {
            Some(text) if text.is_prompt() => self.prompt(line, &text),
            Some(text) if text.text.starts_with(HOOK_STOPPED) => {
                if let Some(blocked) = self.last_prompt.take()
                    && self.blocked.len() < BLOCKED_MAX
                {
                    self.blocked.push(blocked);
                }
            }
            Some(_) | None => {}
        }
    }

    /// Prompt of a user record without tool result, or its first text if it has no prompt.
    fn user_text(head: &Head<'_>) -> Option<ClientText> {
        let generated =
            head.is_meta.on() || head.is_compact_summary.on() || head.tool_use_result.is_some();
        if generated || head.is_generated() || !head.kind.is("user") {
            return None;
        }
        let content = content_of(head)?;
        if has_result(&content) {
            return None;
        }
        let mut texts = user_text::read_all(content);
        let prompt = texts.iter().position(ClientText::is_prompt).unwrap_or(0);
        (prompt < texts.len()).then(|| texts.swap_remove(prompt))
    }

    fn prompt(&mut self, line: u32, text: &ClientText) {
        let name = queued_name(&text.text);
        for (blocked, _) in self.blocked.extract_if(.., |(_, text)| *text == name) {
            self.index.marks.set(blocked, COPIED);
        }
        self.last_prompt = Some((line, name));
    }

    fn queue(&mut self, line: u32, head: &Head<'_>) {
        let name = head.content.some().map(queued_name);
        match head.operation.get() {
            "enqueue" if is_task(head.content.get()) => {
                self.index.marks.set(line, PASSED);
            }
            "enqueue" if self.queue.len() < QUEUE_MAX => {
                self.queue.push_back((line, name.unwrap_or_default()));
            }
            "enqueue" => self.steered(line, name.unwrap_or_default()),
            "dequeue" => {
                self.taken = self.unqueue(name).filter(|(_, taken)| Some(*taken) != name);
            }
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

    /// Removes the queued prompt that became this record: the client need not take the oldest.
    fn dequeued(&mut self, head: &Head<'_>) {
        if !head.kind.is("user") || head.tool_use_result.is_some() {
            return;
        }
        if self.queue.is_empty() {
            self.taken = None;
            return;
        }
        let names = match content_of(head) {
            Some(Content::Text(text)) => vec![queued_name(&text)],
            Some(Content::Blocks(blocks)) => {
                blocks.iter().map(|block| queued_name(block.text.get())).collect()
            }
            Some(Content::None) | None => Vec::new(),
        };
        self.taken.take_if(|(_, name)| names.contains(name));
        let Some(at) = self.queue.iter().position(|(_, name)| names.contains(name)) else { return };
        self.queue.remove(at);
        let Some((line, name)) = self.taken.take() else { return };
        // One that the client lost would be the oldest for ever.
        match std::mem::replace(&mut self.put_back, line) == line {
            true => self.steered(line, name),
            false => self.queue.push_front((line, name)),
        }
    }

    /// Removes the queued prompt with this hash, or the oldest.
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

    pub(super) fn finish(mut self) -> Index {
        for (line, name) in std::mem::take(&mut self.queue) {
            self.steered(line, name);
        }
        for (line, parent) in std::mem::take(&mut self.orphans) {
            let parent =
                self.tree.by_name.get(&parent).map(|at| self.tree.nodes[*at as usize].line);
            let parent = parent.filter(|it| it.saturating_sub(line) <= EARLY_LINES_MAX);
            self.index.early.extend(parent.map(|parent| (line, parent)));
        }
        for line in self.tree.abandoned() {
            self.index.marks.set(line, ABANDONED);
        }
        let known = |(leaf, _): &&(u64, String)| self.known.contains(leaf);
        let summary = self.summaries.iter().rfind(known).map(|(_, summary)| summary.clone());
        let session = &mut self.index.session;
        session.title = self.custom_title.or(self.ai_title).or(summary);
        // Some files hold records of two ids: hooks that ran under another id, the prompt of a plan
        // accepted in the previous session, or the copied history of a resumed session. The last id
        // under which the assistant spoke wins: the first may be a copy, and a majority may change.
        let (first, last) = self.assistant_ids.unzip();
        let digest = || Digest::of(&["claude-code", ""]).to_string();
        let id = last.or(self.first_id).or(self.digest).unwrap_or_else(digest);
        session.parent = first.filter(|first| *first != id);
        match self.agent_id.filter(|_| !self.main && 0 < self.conversational) {
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

fn content_of<'a>(head: &'a Head<'_>) -> Option<Content<'a>> {
    Some(match &head.message {
        TextOr::None => Content::None,
        TextOr::Text(text) => Content::Text(Cow::Borrowed(text)),
        TextOr::Fields(message) => serde_json::from_str(message.content?.get()).ok()?,
    })
}

/// Fields of a record that may hold words, in any form.
#[derive(Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
struct Words<'a> {
    message: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    attachment: Option<&'a RawValue>,
}

fn json_of(text: &str) -> Words<'_> {
    serde_json::from_str(text).unwrap_or_default()
}

/// Hash of a record's text, which a copy repeats under the same id.
fn words_of(head: &Head<'_>, text: &str) -> u64 {
    let words = match &head.message {
        TextOr::Text(text) => return name_of(text),
        TextOr::Fields(message) => message.content,
        TextOr::None => {
            let words = json_of(text);
            words.content.or(words.attachment)
        }
    };
    name_of(words.map_or("", RawValue::get))
}

/// True if a text can be an id; a redactor's replacement cannot.
fn is_id(text: &str) -> bool {
    !text.bytes().any(|byte| byte == b' ' || byte == b'[') && !text.contains("REDACTED")
}

/// True if a queued text is the record of a background task.
fn is_task(text: &str) -> bool {
    let [start, field] = TASK_STARTED;
    text.starts_with(start) && text.contains(field)
}

pub(super) fn has_result(content: &Content<'_>) -> bool {
    matches!(content, Content::Blocks(it) if it.iter().any(|it| it.kind.is("tool_result")))
}

pub(super) fn queued_name(text: &str) -> u64 {
    name_of(text.trim())
}

/// Bit that distinguishes hashes of first prompts from node numbers.
const BEGINNING: u64 = 1 << 63;

#[derive(Clone, Copy, Debug)]
struct Node {
    line: u32,
    parent: Option<u32>,
    /// Nearest message above, skipping progress, hooks and attachments.
    message: Option<u32>,
    prompt: bool,
    speaks: bool,
    sidechain: bool,
    /// Key of a first prompt that may have replaced another: of two with one key, one was rewound.
    beginning: Option<u64>,
}

impl Node {
    /// Position of a prompt; two prompts at one position are a fork.
    fn position(&self) -> Option<u64> {
        let first = self.beginning.filter(|_| self.parent.is_none());
        self.message.map(u64::from).or(first.map(|name| name | BEGINNING))
    }
}

/// Tree of a file's records. A parent always precedes its children.
#[derive(Debug, Default)]
struct Tree {
    nodes: Vec<Node>,
    by_name: NameMap<u32>,
}

impl Tree {
    /// Adds a record with its name and parent: `None` if unknown, `Some(None)` for a root. A record
    /// whose parent is unknown or missing follows the previous record in the file.
    fn push(&mut self, name: Option<u64>, mut node: Node, parent: Option<Option<u64>>) {
        let Ok(at) = u32::try_from(self.nodes.len()) else { return };
        let is_root = parent == Some(None);
        let named = parent.flatten().and_then(|name| self.by_name.get(&name).copied());
        node.parent = named.or(at.checked_sub(1)).filter(|_| !is_root);
        if let Some(parent) = node.parent.map(|parent| &self.nodes[parent as usize]) {
            // The parent of a first prompt is the hook that began the session.
            let above = parent.message.filter(|_| !parent.speaks || parent.sidechain);
            node.message = above.or(node.parent);
        }
        self.nodes.push(node);
        if let Some(name) = name {
            self.by_name.insert(name, at);
        }
    }

    /// Lines of all records abandoned by a rewind.
    fn abandoned(&self) -> Vec<u32> {
        let forked = self.forked();
        if forked.is_empty() {
            return Vec::new();
        }
        let (active, linked) = (self.active(), self.linked());
        let mut left = vec![false; self.nodes.len()];
        for prompts in forked {
            // Without an active prompt, the last one was continued.
            let kept = prompts.iter().rev().find(|at| active[**at]).or(prompts.last()).copied();
            for at in prompts {
                left[at] |= Some(at) != kept && linked[at];
            }
        }
        let mut lines = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            left[at] |= node.parent.is_some_and(|parent| left[parent as usize]);
            lines.extend(left[at].then_some(node.line));
        }
        lines
    }

    /// Groups of two or more prompts that follow the same message.
    fn forked(&self) -> Vec<Vec<usize>> {
        let mut below: NameMap<Vec<usize>> = NameMap::default();
        let mut parents = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(position) = node.position().filter(|_| node.prompt && !node.sidechain) {
                let prompts = below.entry(position).or_default();
                prompts.push(at);
                if prompts.len() == 2 {
                    parents.push(position);
                }
            }
        }
        parents.into_iter().filter_map(|parent| below.remove(&parent)).collect()
    }

    /// Flags records that have a parent or a message below them. In a file without links every
    /// prompt seems to begin a tree, and none was rewound.
    fn linked(&self) -> Vec<bool> {
        let mut linked: Vec<bool> = self.nodes.iter().map(|node| node.parent.is_some()).collect();
        for parent in self.nodes.iter().filter(|node| node.speaks).filter_map(|node| node.parent) {
            linked[parent as usize] = true;
        }
        linked
    }

    /// Flags records on the path from the last message to its root.
    fn active(&self) -> Vec<bool> {
        let mut active = vec![false; self.nodes.len()];
        let mut at = self.nodes.iter().rposition(|node| node.speaks && !node.sidechain);
        while let Some(here) = at {
            active[here] = true;
            at = self.nodes[here].parent.map(|parent| parent as usize);
        }
        active
    }
}

#[cfg(test)]
mod tree_tests {
    use super::*;
    use crate::transcripts::marks::name_of;

    /// Records as `name<parent`: upper case is a prompt, lower case the assistant, `.` another.
    /// A parent of `-` begins a tree, `+` a tree that may replace another, `?` is missing.
    #[track_caller]
    fn check(records: &str, expected: &[u32]) {
        let mut tree = Tree::default();
        for (line, record) in (1..).zip(records.split(' ')) {
            let (name, parent) = record.split_once('<').unwrap();
            let prompt = name.chars().all(char::is_uppercase);
            let (speaks, beginning) = (!name.starts_with('.'), (parent == "+").then_some(1));
            let (at, sidechain) = (None, false);
            let node = Node { line, parent: at, message: at, prompt, speaks, sidechain, beginning };
            let parent = (!matches!(parent, "-" | "+")).then(|| name_of(parent));
            tree.push(Some(name_of(name)), node, Some(parent));
        }
        assert_eq!(tree.abandoned(), expected);
    }

    #[test]
    fn parallel_calls_are_no_fork() {
        check("P<- a<P r<a b<a s<b Q<s", &[]);
    }

    #[test]
    fn what_hangs_on_a_rewound_prompt_is_left() {
        check("P<- a<P Q<a b<Q R<a c<R", &[3, 4]);
    }

    #[test]
    fn bookkeeping_between_does_not_hide_a_fork() {
        check("P<- a<P .h<a Q<.h b<Q .i<a R<.i c<R", &[4, 5]);
    }

    #[test]
    fn the_first_prompt_may_be_rewound_too() {
        check(".s<- P<.s a<P Q<.s b<Q", &[2, 3]);
    }

    #[test]
    fn a_second_tree_is_no_fork() {
        check(".s<- P<.s a<P .t<- Q<.t b<Q", &[]);
        check("P<- a<P Q<- b<Q", &[]);
    }

    #[test]
    fn of_two_beginnings_the_one_without_the_last_message_is_left() {
        check("P<+ a<P Q<+ b<Q", &[1, 2]);
        check("P<+ a<P Q<+ b<Q R<a c<R", &[3, 4]);
        check("P<+ a<P Q<+", &[1, 2]);
        check("P<+ a<P Q<+ b<Q R<+ c<R", &[1, 2, 3, 4]);
    }

    #[test]
    fn a_file_without_links_has_no_rewinds() {
        check("P<+ a<- Q<+ b<-", &[]);
    }

    #[test]
    fn a_missing_parent_is_the_previous_record() {
        check("P<- a<P Q<? b<Q", &[]);
    }
}
