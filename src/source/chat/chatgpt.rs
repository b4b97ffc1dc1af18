//! ChatGPT's data export: an array of conversations, each of them a tree of messages; and its small
//! sibling, the export of claude.ai. Conversations are read one at a time.

use super::messages::{Talk, time_of};
use super::tree;
use crate::domain::{Digest, LINE_BYTES_MAX, Severity};
use crate::source::cutter::{Cut, Cutter};
use crate::source::emit::Emit;
use crate::source::json::Json;
use crate::source::layout::rest;
use crate::source::{RawSession, Sink};
use std::io::{self, Read, Seek};

/// Reads an export: an array of conversations, or one of them alone.
pub(in crate::source) fn read<R: Read + Seek>(input: R, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut emit = Emit::new(sink);
    let mut cutter = Cutter::new(input);
    let mut number = 0;
    let cut = cutter.elements(LINE_BYTES_MAX, |cut, bytes, line| {
        emit.cut(cut, line);
        if cut == Cut::Whole {
            match Json::parse(&emit.text(bytes, line), &mut String::new()) {
                Ok(json) => conversation(&json, number, line, &mut emit),
                Err(expected) => emit.finding(Severity::Warning, "bad-json", line, expected),
            }
        }
        number += 1;
        !emit.stopped()
    })?;
    rest(&mut cutter, cut, &mut emit)?;
    emit.finish();
    Ok(())
}

fn conversation(json: &Json<'_>, number: u32, line: u32, emit: &mut Emit<'_, '_>) {
    let nested = json.get("conversations");
    if !json.has("mapping") && nested.is_list() {
        // Some browser exporters put the array into an object.
        return nested.list().iter().for_each(|json| conversation(json, number, line, emit));
    }
    let is_tree = json.get("mapping").is_map();
    if !is_tree && !json.get("chat_messages").is_list() {
        let detail = "expected a conversation with `mapping` or `chat_messages`";
        return emit.finding(Severity::Warning, "no-messages", line, detail);
    }
    let title = json.first_text(&["title", "name"]).map(str::to_owned);
    let own = json.first_text(&["conversation_id", "id", "uuid"]).map(str::to_owned);
    // Without an id, the title, the time and the place in the file name it; an export is written
    // once and does not grow.
    let made = || {
        let time = json.get("create_time").compact();
        let digest = Digest::of(&[title.as_deref().unwrap_or_default(), &time]);
        format!("{digest}#{number}")
    };
    let native_id = own.unwrap_or_else(made);
    emit.session(RawSession { native_id, title, started_at: time_of(json), ..Default::default() });
    if is_tree { tree::read(json, emit) } else { linear(json, emit) }
}

/// claude.ai's messages stand in a row.
fn linear(json: &Json<'_>, emit: &mut Emit<'_, '_>) {
    let (mut talk, mut entries) = (Talk::default(), Vec::new());
    for (number, message) in (1..).zip(json.get("chat_messages").list()) {
        // The text may be empty while the blocks are not, and the other way round.
        let blocks = message.get("content").list();
        let spoken = |block: &Json<'_>| block.first_text(&["text"]).is_some() || block.has("name");
        let fields =
            message.map().iter().filter(|(key, _)| key != "content" || blocks.iter().any(spoken));
        let message = Json::Map(fields.cloned().collect());
        if !talk.read(&message, number, &mut entries) {
            let detail = "expected a sender: human or assistant";
            emit.finding(Severity::Warning, "unknown-role", number, detail);
        }
        let files = ["attachments", "files"].iter().flat_map(|key| message.get(key).list());
        let marks: Vec<String> = files.map(tree::file_mark).collect();
        if let Some(entry) = entries.last_mut() {
            tree::add_marks(&mut entry.text, &marks);
        }
        entries.drain(..).for_each(|entry| emit.entry(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::testing;

    #[track_caller]
    fn check(input: &str, expected: &[&str]) {
        testing::check(read, input, expected);
    }

    /// A node with one text part.
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
