//! One ChatGPT conversation: a tree of messages, of which one path is the conversation as it ended.
//! The order is the tree's, because times run backwards in it.

use super::messages::time_of;
use super::parts::{Words, mark, words_of};
use crate::domain::{Branch, EntryKind, Outcome, Skip, Speaker};
use crate::source::emit::Emit;
use crate::source::json::Json;
use crate::source::{RawEntry, tools};
use std::collections::HashMap;

/// Nodes looked at upwards to find the call that a result belongs to.
const CALL_DISTANCE_MAX: usize = 16;

/// A node, with its relatives as places in the list of nodes.
struct Node<'j, 'a> {
    id: &'j str,
    message: &'j Json<'a>,
    parent: Option<usize>,
    children: Vec<usize>,
    active: bool,
}

/// Emits the messages of a conversation, parents before children: at a fork first what was given up,
/// then what went on.
pub(super) fn read(json: &Json<'_>, emit: &mut Emit<'_, '_>) {
    let mut nodes = nodes(json.get("mapping"));
    activate(&mut nodes, json.get("current_node").text());
    let order = order(&nodes);
    let mut last: Option<(RawEntry, usize)> = None;
    for (number, &at) in (1..).zip(&order) {
        let Some(node) = nodes.get(at) else { continue };
        let Some(entry) = entry(&nodes, at, number) else { continue };
        match &mut last {
            Some((before, from)) if continues(before, &entry, *from, node, &nodes) => {
                before.text.push_str(if cut_short(&nodes, *from) { "" } else { "\n\n" });
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

/// Whether an assistant's text goes on in the next node, as with "continue generating".
fn continues(
    before: &RawEntry,
    next: &RawEntry,
    from: usize,
    node: &Node<'_, '_>,
    nodes: &[Node<'_, '_>],
) -> bool {
    let text = |entry: &RawEntry| entry.kind == EntryKind::Text && entry.skip.is_none();
    let silent = |at: usize| nodes.get(at).is_some_and(|node| !node.message.is_map());
    let parent = node.parent;
    let adjacent = parent == Some(from) || parent.is_some_and(silent);
    text(before) && text(next) && before.branch == next.branch && adjacent
}

/// Whether an answer stopped in the middle because it grew too long.
fn cut_short(nodes: &[Node<'_, '_>], at: usize) -> bool {
    let details = |node: &Node<'_, '_>| {
        let details = node.message.get("metadata").get("finish_details");
        details.first_text(&["type"]) == Some("max_tokens")
    };
    nodes.get(at).is_some_and(details)
}

fn nodes<'j, 'a>(mapping: &'j Json<'a>) -> Vec<Node<'j, 'a>> {
    let fields = mapping.map();
    let places: HashMap<&str, usize> =
        fields.iter().enumerate().map(|(at, (id, _))| (id.as_ref(), at)).collect();
    let place = |json: &Json<'_>| json.text().and_then(|id| places.get(id).copied());
    let mut nodes: Vec<Node<'_, '_>> = fields
        .iter()
        .map(|(id, node)| Node {
            id: id.as_ref(),
            message: node.get("message"),
            parent: place(node.get("parent")),
            children: Vec::new(),
            active: false,
        })
        .collect();
    // Children in the order their parent lists them; then those that only name their parent.
    for (at, (_, node)) in fields.iter().enumerate() {
        for child in node.get("children").list().iter().filter_map(place) {
            if let Some(child) = nodes.get_mut(child)
                && child.parent.is_none()
            {
                child.parent = Some(at);
            }
        }
    }
    let listed = fields.iter().enumerate().flat_map(|(at, (_, node))| {
        node.get("children").list().iter().filter_map(place).map(move |child| (at, child))
    });
    let own = (0..fields.len()).filter_map(|at| Some((nodes.get(at)?.parent?, at)));
    let pairs: Vec<(usize, usize)> = listed.chain(own).collect();
    let mut given = vec![false; nodes.len()];
    for (parent, child) in pairs {
        let is_parent = nodes.get(child).is_some_and(|node| node.parent == Some(parent));
        if let Some(given) = given.get_mut(child)
            && is_parent
            && !std::mem::replace(given, true)
            && let Some(parent) = nodes.get_mut(parent)
        {
            parent.children.push(child);
        }
    }
    nodes
}

/// Marks the path from the current node, or from the latest leaf, to the root.
fn activate(nodes: &mut [Node<'_, '_>], current: Option<&str>) {
    let named = current.and_then(|id| nodes.iter().position(|node| node.id == id));
    let time = |at: &usize| nodes.get(*at).and_then(|node| time_of(node.message));
    let leaf = |at: &usize| nodes.get(*at).is_some_and(|node| node.children.is_empty());
    let latest = || (0..nodes.len()).filter(leaf).max_by_key(time);
    let mut at = named.or_else(latest).or(nodes.len().checked_sub(1));
    // A node that is active already closes a circle.
    while let Some(node) = at.and_then(|at| nodes.get_mut(at))
        && !node.active
    {
        node.active = true;
        at = node.parent;
    }
}

/// All nodes, parents before children, at a fork the active child last. Each node comes once.
fn order(nodes: &[Node<'_, '_>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(nodes.len());
    let mut seen = vec![false; nodes.len()];
    let is_root = |at: &usize| nodes.get(*at).is_some_and(|node| node.parent.is_none());
    let roots = (0..nodes.len()).filter(is_root);
    // Circles have no root: whatever was not reached is begun at its first node.
    let mut starts: Vec<usize> = roots.chain(0..nodes.len()).collect();
    starts.reverse();
    let mut stack = Vec::new();
    while let Some(start) = starts.pop() {
        stack.push(start);
        while let Some(at) = stack.pop() {
            let Some(node) = nodes.get(at) else { continue };
            match seen.get_mut(at) {
                Some(seen) if !*seen => *seen = true,
                Some(_) | None => continue,
            }
            order.push(at);
            let active = |child: &&usize| nodes.get(**child).is_some_and(|node| node.active);
            stack.extend(node.children.iter().filter(active));
            stack.extend(node.children.iter().rev().filter(|child| !active(child)));
        }
    }
    order
}

/// The entry of a node; none for stubs and for reasoning.
fn entry(nodes: &[Node<'_, '_>], at: usize, number: u32) -> Option<RawEntry> {
    let node = nodes.get(at)?;
    let (message, content) = (node.message, node.message.get("content"));
    let author = message.get("author");
    let kind = content.first_text(&["content_type"]).unwrap_or_default();
    let text = words(message, kind)?;
    let (role, name) = (author.first_text(&["role"]), author.first_text(&["name"]));
    let recipient = message.first_text(&["recipient"]).unwrap_or("all");
    let mut entry = match role {
        _ if is_context(message, kind) => {
            RawEntry::new(number, Speaker::Client, EntryKind::Injected, text)
        }
        Some("user") => RawEntry::new(number, Speaker::Person, EntryKind::Prompt, text),
        Some("assistant") if recipient != "all" => {
            let mut entry = RawEntry::new(number, Speaker::Assistant, EntryKind::ToolCall, text);
            entry.tool = Some(recipient.to_owned());
            entry.call_id = Some(node.id.to_owned());
            entry
        }
        Some("assistant") => RawEntry::new(number, Speaker::Assistant, EntryKind::Text, text),
        Some("tool") => {
            let web = name.is_some_and(tools::is_web) || kind.starts_with("tether");
            let speaker = if web { Speaker::Web } else { Speaker::Tool };
            let mut entry = RawEntry::new(number, speaker, EntryKind::ToolResult, text);
            entry.tool = Some(name.unwrap_or("tool").to_owned());
            entry.call_id = call_above(nodes, at).map(str::to_owned);
            entry.outcome = (kind == "system_error").then_some(Outcome::Failed);
            entry
        }
        Some(_) | None => RawEntry::new(number, Speaker::Client, EntryKind::Injected, text),
    };
    entry.skip = (entry.kind == EntryKind::Injected).then_some(Skip::Injected);
    entry.branch = if node.active { Branch::Active } else { Branch::Abandoned };
    entry.native_id = Some(message.first_text(&["id"]).unwrap_or(node.id).to_owned());
    entry.at = time_of(message);
    Some(entry)
}

/// Whether a message was never shown: custom instructions, memory, hidden nodes.
fn is_context(message: &Json<'_>, kind: &str) -> bool {
    let metadata = message.get("metadata");
    let flag = |key: &str| metadata.get(key).bool() == Some(true);
    message.get("author").first_text(&["role"]) == Some("system")
        || matches!(kind, "user_editable_context" | "model_editable_context")
        || flag("is_visually_hidden_from_conversation")
        || flag("is_user_system_message")
        || message.get("weight").number() == Some(0.0)
}

/// What a message says; none if nothing, or if it is the model's reasoning.
fn words(message: &Json<'_>, kind: &str) -> Option<String> {
    let content = message.get("content");
    if matches!(kind, "thoughts" | "reasoning_recap") {
        return None;
    }
    let silent = message.first_text(&["channel"]) == Some("analysis");
    if silent
        && message.first_text(&["recipient"]).is_none_or(|to| to == "all")
        && message.get("author").first_text(&["role"]) == Some("assistant")
    {
        return None;
    }
    let mut words = Words::default();
    words.push(&words_of(content.get("parts")));
    const FIELDS: [&str; 8] = [
        "title",
        "text",
        "result",
        "summary",
        "user_profile",
        "user_instructions",
        "model_set_context",
        "content",
    ];
    for field in FIELDS {
        words.push(&words_of(content.get(field)));
    }
    if content.text().is_some() {
        words.push(&words_of(content));
    }
    let mut text = words.take();
    let attached = message.get("metadata").get("attachments").list().iter();
    let attached = attached.filter(|file| {
        !file.first_text(&["mime_type", "mimeType"]).is_some_and(|kind| kind.starts_with("image"))
    });
    add_marks(&mut text, &attached.map(file_mark).collect::<Vec<_>>());
    (!text.is_empty()).then_some(text)
}

/// `[file name]` for an attachment.
pub(super) fn file_mark(file: &Json<'_>) -> String {
    mark("file", file.first_text(&["name", "file_name"]))
}

/// Adds marks after a text.
pub(super) fn add_marks(text: &mut String, marks: &[String]) {
    for mark in marks {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(mark);
    }
}

/// The call above a result; results may stand under results of the same call.
fn call_above<'j>(nodes: &[Node<'j, '_>], at: usize) -> Option<&'j str> {
    let mut above = nodes.get(at)?.parent;
    for _ in 0..CALL_DISTANCE_MAX {
        let node = nodes.get(above?)?;
        let is = |role: &str| node.message.get("author").first_text(&["role"]) == Some(role);
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
