//! ChatGPT's data export, an array of conversations, and the export of claude.ai. A ChatGPT
//! conversation is a tree of messages with one active path. Conversations are read one at a time.

use super::messages::{MessageReader, time_of};
use super::parts::{Words, mark, words_of};
use crate::domain::{Branch, Digest, EntryKind, LINE_BYTES_MAX, Outcome, Severity, Speaker};
use crate::transcripts::cutter::Cutter;
use crate::transcripts::emit::Emit;
use crate::transcripts::json::JsonExt;
use crate::transcripts::raw::{Input, RawEntry, RawSession, Sink};
use crate::transcripts::text::push_piece;
use crate::transcripts::tools;
use serde_json::Value;
use std::collections::HashMap;
use std::io;

/// Maximum number of ancestors of a result that are searched for its call.
const CALL_DISTANCE_MAX: usize = 16;

pub(crate) fn read(input: &mut dyn Input, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut emit = Emit::new(sink);
    let mut cutter = Cutter::new(input);
    let cut = cutter.elements(LINE_BYTES_MAX, |it| {
        if let Some(json) = emit.element(&it) {
            conversation(&json, it.number - 1, it.line, &mut emit);
        }
        !emit.stopped()
    })?;
    emit.rest(&mut cutter, cut)?;
    emit.finish();
    Ok(())
}

pub(crate) fn is_export(json: &Value) -> bool {
    json["mapping"].is_object() || json["chat_messages"].is_array()
}

fn conversation(json: &Value, number: u32, line: u32, emit: &mut Emit<'_>) {
    let nested = &json["conversations"];
    if !json.has("mapping") && nested.is_array() {
        // Some browser exporters put the array into an object.
        return nested.list().iter().for_each(|json| conversation(json, number, line, emit));
    }
    if !is_export(json) {
        let detail = "expected a conversation with `mapping` or `chat_messages`";
        return emit.finding(Severity::Warning, "no-messages", line, detail);
    }
    let title = json.first_text(&["title", "name"]).map(str::to_owned);
    let own = json.first_text(&["conversation_id", "id", "uuid"]).map(str::to_owned);
    // An export is not updated in place, so title, time and position identify a conversation.
    let made = || {
        let time = json["create_time"].to_string();
        let digest = Digest::of(&[title.as_deref().unwrap_or_default(), &time]);
        format!("{digest}#{number}")
    };
    let native_id = own.unwrap_or_else(made);
    emit.session(RawSession { native_id, title, started_at: time_of(json), ..Default::default() });
    if json["mapping"].is_object() { tree(json, emit) } else { linear(json, emit) }
}

fn linear(json: &Value, emit: &mut Emit<'_>) {
    let (mut reader, mut entries) = (MessageReader::default(), Vec::new());
    for (number, message) in (1..).zip(json["chat_messages"].list()) {
        // Either the text or the blocks may be empty.
        let blocks = message["content"].list();
        let spoken = |block: &Value| block.first_text(&["text"]).is_some() || block.has("name");
        let mut blocks = match blocks.iter().any(spoken) {
            true => blocks.to_vec(),
            false => vec![message["text"].clone()],
        };
        // A person's files may be all that a message holds; the model's belong to what it said.
        let (attached, is_persons) = (attached(message), message["sender"] == "human");
        if is_persons {
            blocks.push(attached.as_str().into());
        }
        let mut message = message.clone();
        if let Some(fields) = message.as_object_mut() {
            fields.insert("content".to_owned(), blocks.into());
        }
        if !reader.read(&message, number, &mut entries) {
            let detail = "expected a sender: human or assistant";
            emit.finding(Severity::Warning, "unknown-role", number, detail);
        }
        if let Some(last) = entries.last_mut().filter(|_| !is_persons) {
            push_piece(&mut last.text, &attached, "\n\n");
        }
        entries.drain(..).for_each(|entry| emit.entry(entry));
    }
}

/// Texts that were pasted into a message of claude.ai, and marks of its files.
fn attached(message: &Value) -> String {
    let files = ["attachments", "files"].iter().flat_map(|key| message[key].list());
    let (pasted, files): (Vec<_>, Vec<_>) = files.partition(|file| {
        matches!(file.text("file_name"), "" | "paste.txt") && file.has("extracted_content")
    });
    let mut text = String::new();
    pasted.iter().for_each(|it| push_piece(&mut text, it.text("extracted_content"), "\n\n"));
    add_marks(&mut text, files.into_iter());
    text
}

/// Node of a tree; `parent` and `children` are indexes into the node list.
struct Node<'j> {
    id: &'j str,
    message: &'j Value,
    parent: Option<usize>,
    children: Vec<usize>,
    active: bool,
}

/// Emits a conversation's messages in tree order: parents before children, abandoned branches
/// before the active one. Timestamps are not monotonic, so they do not determine the order.
fn tree(json: &Value, emit: &mut Emit<'_>) {
    let mut nodes = nodes(&json["mapping"]);
    activate(&mut nodes, json["current_node"].as_str());
    let order = order(&nodes);
    let mut last: Option<(RawEntry, usize)> = None;
    for (number, &at) in (1..).zip(&order) {
        let Some(entry) = entry(&nodes, at, number) else { continue };
        let is_text = |entry: &RawEntry| entry.kind == EntryKind::Text && entry.skip.is_none();
        match &mut last {
            Some((before, from))
                if is_text(before)
                    && is_text(&entry)
                    && before.branch == entry.branch
                    && continues(&nodes, *from, at) =>
            {
                before.text.push_str(if cut_short(&nodes[*from]) { "" } else { "\n\n" });
                before.text.push_str(&entry.text);
                *from = at;
            }
            Some(_) | None => {
                if let Some((before, _)) = last.replace((entry, at)) {
                    emit.entry(before);
                }
            }
        }
    }
    if let Some((entry, _)) = last {
        emit.entry(entry);
    }
}

/// Maximum number of nodes without a message between a text and its continuation.
const SILENT_MAX: usize = 8;

/// True if node `at` continues the text of node `from`, as after "continue generating".
fn continues(nodes: &[Node<'_>], from: usize, at: usize) -> bool {
    let mut parent = nodes[at].parent;
    for _ in 0..SILENT_MAX {
        let silent = parent.map(|at| &nodes[at]).filter(|node| !node.message.is_object());
        let Some(silent) = silent else { break };
        parent = silent.parent;
    }
    parent == Some(from)
}

/// True if an answer was cut off at the token limit.
fn cut_short(node: &Node<'_>) -> bool {
    node.message["metadata"]["finish_details"].text("type") == "max_tokens"
}

fn nodes(mapping: &Value) -> Vec<Node<'_>> {
    let fields: Vec<(&String, &Value)> = mapping.map().collect();
    let indexes: HashMap<&str, usize> =
        fields.iter().enumerate().map(|(at, (id, _))| (id.as_str(), at)).collect();
    let index = |json: &Value| json.as_str().and_then(|id| indexes.get(id).copied());
    let mut nodes: Vec<Node<'_>> = fields
        .iter()
        .map(|(id, node)| Node {
            id: id.as_str(),
            message: &node["message"],
            parent: index(&node["parent"]),
            children: Vec::new(),
            active: false,
        })
        .collect();
    // Children in the order of their parent's list, then those that only name their parent.
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (at, (_, node)) in fields.iter().enumerate() {
        pairs.extend(node["children"].list().iter().filter_map(index).map(|child| (at, child)));
    }
    for (parent, child) in &pairs {
        nodes[*child].parent.get_or_insert(*parent);
    }
    pairs.extend(nodes.iter().enumerate().filter_map(|(at, node)| Some((node.parent?, at))));
    let mut given = vec![false; nodes.len()];
    for (parent, child) in pairs {
        if nodes[child].parent == Some(parent) && !std::mem::replace(&mut given[child], true) {
            nodes[parent].children.push(child);
        }
    }
    nodes
}

/// Marks the path to the root from the current node, or from the latest leaf without one.
fn activate(nodes: &mut [Node<'_>], current: Option<&str>) {
    let named = current.and_then(|id| nodes.iter().position(|node| node.id == id));
    let leaves = || (0..nodes.len()).filter(|at| nodes[*at].children.is_empty());
    let latest = || leaves().max_by_key(|at| time_of(nodes[*at].message));
    let mut at = named.or_else(latest).or(nodes.len().checked_sub(1));
    // An active node closes a cycle.
    while let Some(node) = at.and_then(|at| nodes.get_mut(at))
        && !node.active
    {
        node.active = true;
        at = node.parent;
    }
}

/// Returns every node once: parents before children, the active child last.
fn order(nodes: &[Node<'_>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(nodes.len());
    let mut seen = vec![false; nodes.len()];
    let roots = (0..nodes.len()).filter(|at| nodes[*at].parent.is_none());
    // Cycles have no root; they start at their first node.
    let mut stack: Vec<usize> = roots.chain(0..nodes.len()).collect();
    stack.reverse();
    while let Some(at) = stack.pop() {
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        order.push(at);
        let children = &nodes[at].children;
        stack.extend(children.iter().filter(|child| nodes[**child].active));
        stack.extend(children.iter().rev().filter(|child| !nodes[**child].active));
    }
    order
}

/// Entry of a node; `None` for stubs and reasoning.
fn entry(nodes: &[Node<'_>], at: usize, number: u32) -> Option<RawEntry> {
    let node = &nodes[at];
    let (message, content) = (node.message, &node.message["content"]);
    let author = &message["author"];
    let kind = content.first_text(&["content_type"]).unwrap_or_default();
    let text = words(message, kind)?;
    let (role, name) = (author.first_text(&["role"]), author.first_text(&["name"]));
    let recipient = message.first_text(&["recipient"]).unwrap_or("all");
    let is_web = name.is_some_and(tools::is_web) || kind.starts_with("tether");
    let (speaker, sort) = match role {
        _ if is_context(message, kind) => (Speaker::Client, EntryKind::Injected),
        Some("user") => (Speaker::Person, EntryKind::Prompt),
        Some("assistant") if recipient != "all" => (Speaker::Assistant, EntryKind::ToolCall),
        Some("assistant") => (Speaker::Assistant, EntryKind::Text),
        Some("tool") if is_web => (Speaker::Web, EntryKind::ToolResult),
        Some("tool") => (Speaker::Tool, EntryKind::ToolResult),
        Some(_) | None => (Speaker::Client, EntryKind::Injected),
    };
    let mut entry = RawEntry::new(number, speaker, sort, text);
    if sort == EntryKind::ToolCall {
        entry.tool = Some(recipient.to_owned());
        entry.call_id = Some(node.id.to_owned());
    } else if sort == EntryKind::ToolResult {
        entry.tool = Some(name.unwrap_or("tool").to_owned());
        entry.call_id = call_above(nodes, at).map(str::to_owned);
        entry.outcome = match message["metadata"]["aggregate_result"].text("status") {
            _ if kind == "system_error" => Some(Outcome::Failed),
            status if status.starts_with("failed_with") => Some(Outcome::Failed),
            status => tools::outcome_of_status(status),
        };
    }
    entry.branch = if node.active { Branch::Active } else { Branch::Abandoned };
    entry.native_id = Some(message.first_text(&["id"]).unwrap_or(node.id).to_owned());
    entry.at = time_of(message);
    Some(entry)
}

/// True if a message was never shown: custom instructions, memory, hidden nodes.
fn is_context(message: &Value, kind: &str) -> bool {
    let metadata = &message["metadata"];
    let flag = |key: &str| metadata[key].as_bool() == Some(true);
    message["author"].first_text(&["role"]) == Some("system")
        || matches!(kind, "user_editable_context" | "model_editable_context")
        || flag("is_visually_hidden_from_conversation")
        || flag("is_user_system_message")
        || message["weight"].number() == Some(0.0)
}

/// Text of a message; `None` for stubs and reasoning.
fn words(message: &Value, kind: &str) -> Option<String> {
    let content = &message["content"];
    if matches!(kind, "thoughts" | "reasoning_recap") {
        return None;
    }
    let silent = message.first_text(&["channel"]) == Some("analysis");
    if silent
        && message.first_text(&["recipient"]).is_none_or(|to| to == "all")
        && message["author"].first_text(&["role"]) == Some("assistant")
    {
        return None;
    }
    const FIELDS: [&str; 9] = [
        "parts", "title", "text", "result", "summary", "user_profile", "user_instructions",
        "model_set_context", "content",
    ];
    let mut words = Words::default();
    for field in FIELDS {
        words.push(&words_of(&content[field]));
    }
    if content.as_str().is_some() {
        words.push(&words_of(content));
    }
    let mut text = words.take();
    let attached = message["metadata"]["attachments"].list().iter();
    let attached = attached.filter(|file| {
        !file.first_text(&["mime_type", "mimeType"]).is_some_and(|kind| kind.starts_with("image"))
    });
    add_marks(&mut text, attached);
    (!text.is_empty()).then_some(text)
}

fn add_marks<'j>(text: &mut String, files: impl Iterator<Item = &'j Value>) {
    let marks = files.map(|file| mark("file", file.first_text(&["name", "file_name"])));
    marks.for_each(|mark| push_piece(text, &mark, "\n\n"));
}

/// Finds the call of a result; other results of the same call may lie between them.
fn call_above<'j>(nodes: &[Node<'j>], at: usize) -> Option<&'j str> {
    let mut above = nodes[at].parent;
    for _ in 0..CALL_DISTANCE_MAX {
        let node = &nodes[above?];
        let is = |role: &str| node.message["author"].first_text(&["role"]) == Some(role);
        let calls = node.message.first_text(&["recipient"]).is_some_and(|to| to != "all");
        if is("assistant") && calls {
            return Some(node.id);
        }
        if is("user") {
            return None;
        }
        above = node.parent;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcripts::testing;

    #[track_caller]
    fn check(input: &str, expected: &[&str]) {
        testing::check(read, input, expected);
    }

    fn node(id: &str, parent: &str, role: &str, words: &str) -> String {
        format!(
            r#""{id}":{{"id":"{id}","parent":"{parent}","children":[],"message":{{"author":{{"role":"{role}"}},"recipient":"all","content":{{"content_type":"text","parts":["{words}"]}}}}}}"#
        )
    }

    fn tree_of(nodes: &[String], current: &str) -> String {
        format!(
            r#"[{{"conversation_id":"c","title":"T","current_node":"{current}","mapping":{{{}}}}}]"#,
            nodes.join(",")
        )
    }

    #[test]
    fn the_active_path_is_read_and_the_rest_is_abandoned() {
        let nodes = [
            node("u", "root", "user", "q"),
            node("a1", "u", "assistant", "first"),
            node("x1", "a1", "user", "more"),
            node("a2", "u", "assistant", "second"),
            node("u2", "a2", "user", "thanks"),
        ];
        check(
            &tree_of(&nodes, "u2"),
            &[
                "= c T",
                "1: person prompt: q",
                "2: assistant text abandoned: first",
                "3: person prompt abandoned: more",
                "4: assistant text: second",
                "5: person prompt: thanks",
            ],
        );
    }

    #[test]
    fn answers_below_nodes_without_a_message_are_joined_only_along_one_path() {
        let silent = |id: &str, parent: &str| {
            format!(r#""{id}":{{"id":"{id}","parent":"{parent}","children":[],"message":null}}"#)
        };
        let nodes = [
            node("u", "root", "user", "q"),
            silent("s1", "u"),
            node("a1", "s1", "assistant", "first"),
            silent("s2", "u"),
            node("a2", "s2", "assistant", "second"),
            silent("s3", "a2"),
            node("a3", "s3", "assistant", "goes on"),
            node("a4", "u", "assistant", "active"),
        ];
        check(
            &tree_of(&nodes, "a4"),
            &[
                "= c T",
                "1: person prompt: q",
                "3: assistant text abandoned: first",
                "5: assistant text abandoned: second\n\ngoes on",
                "8: assistant text: active",
            ],
        );
    }

    #[test]
    fn a_dangling_current_node_falls_back_to_the_latest_leaf() {
        let nodes = [node("u", "root", "user", "q"), node("a", "u", "assistant", "r")];
        check(&tree_of(&nodes, "gone"), &["= c T", "1: person prompt: q", "2: assistant text: r"]);
    }

    #[test]
    fn circles_end() {
        let nodes = [node("u", "a", "user", "q"), node("a", "u", "assistant", "r")];
        check(&tree_of(&nodes, "a"), &["= c T", "1: person prompt: q", "2: assistant text: r"]);
    }

    #[test]
    fn answers_continued_are_one_text_and_stubs_are_dropped() {
        let nodes = [
            node("u", "root", "user", "q"),
            node("e", "u", "assistant", ""),
            node("a", "e", "assistant", "one"),
            node("b", "a", "assistant", "two"),
        ];
        check(
            &tree_of(&nodes, "b"),
            &["= c T", "1: person prompt: q", "3: assistant text: one\n\ntwo"],
        );
    }

    #[test]
    fn calls_results_thoughts_and_hidden_nodes() {
        let body = |id: &str, parent: &str, message: &str| {
            format!(r#""{id}":{{"id":"{id}","parent":"{parent}","message":{message}}}"#)
        };
        let nodes = [
            body(
                "s",
                "r",
                r#"{"author":{"role":"system"},"weight":0,"content":{"content_type":"text","parts":["hid"]}}"#,
            ),
            body(
                "c",
                "s",
                r#"{"author":{"role":"user"},"content":{"content_type":"user_editable_context","user_profile":"p","user_instructions":"i"}}"#,
            ),
            body(
                "t",
                "c",
                r#"{"author":{"role":"assistant"},"recipient":"all","content":{"content_type":"thoughts","thoughts":[{"content":"hm"}]}}"#,
            ),
            body(
                "k",
                "t",
                r#"{"author":{"role":"assistant"},"recipient":"python","content":{"content_type":"code","language":"python","text":"print(1)"}}"#,
            ),
            body(
                "o",
                "k",
                r#"{"author":{"role":"tool","name":"python"},"recipient":"all","content":{"content_type":"execution_output","text":"1"}}"#,
            ),
            body(
                "b",
                "o",
                r#"{"author":{"role":"assistant"},"recipient":"browser.search","content":{"content_type":"text","parts":["q"]}}"#,
            ),
            body(
                "w",
                "b",
                r#"{"author":{"role":"tool","name":"browser.search"},"content":{"content_type":"system_error","name":"E","text":"no net"}}"#,
            ),
            body(
                "i",
                "w",
                r#"{"author":{"role":"user"},"metadata":{"attachments":[{"name":"a.txt","mime_type":"text/plain"}]},"content":{"content_type":"multimodal_text","parts":["see",{"content_type":"image_asset_pointer","asset_pointer":"file-service://x"}]}}"#,
            ),
        ];
        check(
            &tree_of(&nodes, "i"),
            &[
                "= c T",
                "1: client injected: hid (injected context)",
                "2: client injected: p\n\ni (injected context)",
                "4: assistant tool_call python#k: print(1)",
                "5: tool tool_result python#k: 1",
                "6: assistant tool_call browser.search#b: q",
                "7: web tool_result browser.search#b failed: no net",
                "8: person prompt: see\n\n[image]\n\n[file a.txt]",
            ],
        );
    }

    #[test]
    fn claude_ai_is_read_too() {
        check(
            r#"[{"uuid":"c","name":"N","chat_messages":[
                {"uuid":"1","sender":"human","text":"q","content":[],"attachments":[{"file_name":"a.txt","extracted_content":"x"}]},
                {"uuid":"2","sender":"assistant","text":"","content":[{"type":"text","text":"a"}]}]}]"#,
            &["= c N", "1: person prompt: q\n\n[file a.txt]", "2: assistant text: a"],
        );
    }

    #[test]
    fn a_file_of_the_model_stands_with_what_it_said() {
        check(
            r#"[{"uuid":"c","name":"N","chat_messages":[{"uuid":"1","sender":"assistant","text":"","content":[
                {"type":"tool_use","id":"t","name":"artifacts","input":{"a":1}},
                {"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"OK"}]}],
                "files":[{"file_name":"out.csv"}]}]}]"#,
            &[
                "= c N",
                "1: assistant tool_call artifacts#t: {\"a\":1}",
                "1: tool tool_result artifacts#t: OK\n\n[file out.csv]",
            ],
        );
    }

    #[test]
    fn a_pasted_text_is_the_persons_and_a_budget_is_nobodys() {
        check(
            r#"[{"uuid":"c","name":"N","chat_messages":[
                {"uuid":"1","sender":"human","text":"","content":[{"type":"text","text":""}],
                    "attachments":[{"file_name":"","extracted_content":"Traceback: boom"}],"files":[{"file_name":"a.png"}]},
                {"uuid":"2","sender":"assistant","text":"a","content":[{"type":"token_budget"},{"type":"text","text":"a"}]}]}]"#,
            &["= c N", "1: person prompt: Traceback: boom\n\n[file a.png]", "2: assistant text: a"],
        );
    }

    #[test]
    fn the_status_of_a_run_is_its_outcome() {
        for (status, outcome) in [
            ("failed_with_in_kernel_exception", " failed"),
            ("success", " succeeded"),
            ("cancelled", " aborted"),
            ("of_tomorrow", ""),
        ] {
            let input = format!(
                r#"[{{"conversation_id":"c","mapping":{{"o":{{"message":{{"author":{{"role":"tool","name":"python"}},
                    "metadata":{{"aggregate_result":{{"status":"{status}"}}}},"content":{{"text":"1"}}}}}}}}}}]"#
            );
            check(&input, &["= c", &format!("1: tool tool_result python#{outcome}: 1")]);
        }
    }

    #[test]
    fn a_break_keeps_the_conversations_before_it() {
        let whole = tree_of(&[node("u", "root", "user", "q")], "u");
        let cut = format!("{}, {{\"mapping\": {{", whole.trim_end_matches(']'));
        check(&cut, &["= c T", "1: person prompt: q", "! bad-json 1"]);
        check(r#"{"user":{"email":"a@b.c"}}"#, &["! no-messages 1"]);
    }

    #[test]
    fn damage_is_survived() {
        let input = tree_of(&[node("u", "r", "user", "q"), node("a", "u", "tool", "r")], "a");
        testing::survives(read, input.as_bytes(), 1);
    }
}
