//! Logged objects of OpenAI's Responses API: a response, or a request with its response. A request
//! without `previous_response_id` repeats the conversation before it.

use super::chat::{time_of, words_of};
use super::client::{Client, ReadRecord, ignore, read_as};
use super::conversation::{Conversation, ToolResult};
use super::json::JsonExt;
use super::marks::name_of;
use super::tools::outcome_of_status;
use crate::domain::{Format, Outcome, Timestamp};
use serde_json::Value;

pub(super) const CLIENT: Client = Client {
    format: Format::Responses,
    lines: &[&["object=response"], &["response.object"], &["response.output"], &["body.object"]],
    documents: &[&["object=response"], &["response.output"]],
    list: "",
    kind,
    kinds: &[
        ("response", logged),
        ("list", |json, talk| json["data"].list().iter().for_each(|json| logged(json, talk))),
    ],
};

const ITEMS: &[(&str, ReadRecord)] = &[
    ("message", |item, talk| talk.message(item)),
    ("function_call|custom_tool_call|mcp_call|mcp_approval_request", call),
    ("local_shell_call|shell_call|apply_patch_call|computer_call", call),
    ("web_search_call|file_search_call|code_interpreter_call", call),
    ("function_call_output|custom_tool_call_output|local_shell_call_output", output),
    ("shell_call_output|apply_patch_call_output|computer_call_output", output),
    ("reasoning|item_reference|mcp_list_tools|image_generation_call|compaction", ignore),
    ("mcp_approval_response", ignore),
];

fn kind(json: &Value) -> &str {
    let carriers = [json, &json["response"], &json["body"], &json["response"]["body"]];
    let is_one = |it: &&Value| it["object"] == "response" || it["output"].is_array();
    match carriers.iter().any(is_one) {
        true => "response",
        false if json["data"].is_array() => "list",
        false => json.first_text(&["object", "type"]).unwrap_or_default(),
    }
}

/// Exchange, and what it says about the conversation before it.
struct Exchange<'j> {
    request: &'j Value,
    response: &'j Value,
    /// Id of the conversation.
    named: Option<&'j str>,
    /// Id of the response before it.
    before: Option<&'j str>,
}

impl<'j> Exchange<'j> {
    fn of(json: &'j Value) -> Exchange<'j> {
        let inner = [&json["response"]["body"], &json["response"], &json["body"], json];
        let response = inner.into_iter().find(|it| it["output"].is_array()).unwrap_or(json);
        let asked = ["request", "body"].iter().map(|key| &json[key]).find(|it| it.has("input"));
        let request = asked.unwrap_or(if json.has("input") { json } else { response });
        let conversation = &response["conversation"];
        let named = conversation.as_str().or(conversation.first_text(&["id"]));
        let mut both = [request, response].into_iter();
        let before = both.find_map(|it| it.first_text(&["previous_response_id"]));
        Exchange { request, response, named, before }
    }
}

/// Reads an exchange in the session of which it repeats or continues an answer. A response without its request stays
/// in the last one.
fn logged(json: &Value, talk: &mut Conversation<'_>) {
    let Exchange { request, response, named, before } = Exchange::of(json);
    let input = &request["input"];
    let mut asked = input.as_str().map(|text| format!("user {text}")).unwrap_or_default();
    let repeated = names(input.list(), &mut asked);
    let id = response.text("id");
    let ids = before.into_iter().chain([id]).filter(|id| !id.is_empty());
    let ids: Vec<u64> = ids.map(name_of).collect();
    let mut earlier = ids.iter().chain(repeated.iter().rev());
    let known = earlier.find_map(|name| talk.continued.get(name)).cloned();
    let new = before.unwrap_or(if input.is_null() { "" } else { id });
    let session = named.map(str::to_owned).or(known).unwrap_or_else(|| new.to_owned());
    talk.session(&session);
    exchange(json, talk);
    let session = talk.head().native_id.clone();
    // A request that lacks the beginning may begin with an answer.
    let told = [asked, String::new()].map(|mut asked| names(response["output"].list(), &mut asked));
    for name in ids.into_iter().chain(told.concat()) {
        talk.continued.insert(name, session.clone());
    }
}

/// Names by which a later request may repeat items: an assistant's words behind the user's, and ids, which are surer
/// and come last.
fn names(items: &[Value], asked: &mut String) -> Vec<u64> {
    let (mut names, mut ids) = (Vec::new(), Vec::new());
    for item in items {
        let own = [item.text("id"), item.text("call_id")];
        ids.extend(own.into_iter().filter(|id| !id.is_empty()).map(name_of));
        match item.text("role") {
            "user" => *asked = key(item),
            "assistant" => names.push(name_of(&format!("{asked} {}", key(item)))),
            _ => {}
        }
    }
    names.append(&mut ids);
    names
}

/// Reads the request, if it was logged, and the response.
pub(super) fn exchange(json: &Value, talk: &mut Conversation<'_>) {
    let Exchange { request, response, named, before } = Exchange::of(json);
    talk.name(named.or(before).or(response.first_text(&["id"])).unwrap_or_default());
    let at = response["created_at"].as_f64().and_then(Timestamp::from_secs);
    talk.next_request();
    let is_whole = before.is_none() && named.is_none();
    talk.at("", at.or(time_of(json)));
    let instructions = [request, response].map(|it| words_of(&it["instructions"]));
    let instructions = instructions.iter().find(|text| !text.is_empty());
    if let Some(text) = instructions.filter(|text| !talk.repeats(text)) {
        talk.injected(text);
    }
    let input = &request["input"];
    if let Some(text) =
        input.as_str().filter(|text| !is_whole || !talk.repeats(&format!("user {text}")))
    {
        talk.user(text);
    }
    for (items, is_input) in [(input.list(), true), (response["output"].list(), false)] {
        for item in items {
            let is_told = talk.repeats(&key(item)) && is_input && is_whole;
            if !is_told {
                talk.at(item.text("id"), at.or(time_of(json)));
                let kind = if item.has("role") { "message" } else { item.text("type") };
                read_as(ITEMS, kind, item, talk);
            }
        }
    }
    if response["error"].is_object() {
        talk.notice(response["error"].text("message"));
    }
}

/// Key of an item by its content; a copy in a later request has other ids and states.
fn key(item: &Value) -> String {
    let role = item.text("role");
    let content = words_of(&item["content"]);
    match item.first_text(&["call_id"]) {
        Some(call) => format!("{} {call}", item.text("type")),
        None if role.is_empty() => item.to_string(),
        None => format!("{role} {content}"),
    }
}

/// Reads a call. Calls of tools that the API runs itself include the result.
fn call(item: &Value, talk: &mut Conversation<'_>) {
    let id = item.first_text(&["call_id", "id"]).unwrap_or_default();
    let kind = item.text("type").trim_end_matches("_call");
    let name = item.first_text(&["name"]).unwrap_or(kind);
    let keys = ["arguments", "input", "action", "code", "queries", "operation"];
    talk.call(id, name, item.first(&keys));
    let keys = ["error", "output", "outputs", "results"];
    let output = keys.into_iter().find(|key| item.has(key));
    if let Some(key) = output {
        let failed = (key == "error").then_some(Outcome::Failed);
        let outcome = failed.or(outcome_of_status(item.text("status")));
        talk.result(ToolResult { id, name, text: words_of(&item[key]), outcome, exit_code: None });
    }
}

fn output(item: &Value, talk: &mut Conversation<'_>) {
    let code = item["output"].list().iter().find_map(|it| it["outcome"]["exit_code"].int());
    let texts: Vec<&str> = item["output"]
        .list()
        .iter()
        .flat_map(|it| [it.text("stdout"), it.text("stderr")])
        .filter(|text| !text.is_empty())
        .collect();
    let text = if texts.is_empty() { words_of(&item["output"]) } else { texts.join("\n") };
    let failed = matches!(item.text("status"), "failed" | "incomplete").then_some(Outcome::Failed);
    talk.result(ToolResult {
        id: item.text("call_id"),
        text,
        outcome: failed,
        exit_code: code,
        ..ToolResult::default()
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Speaker;
    use crate::transcripts::raw::TranscriptItem;
    use crate::transcripts::{client, testing};
    use serde_json::json;

    fn says(role: &str, text: &str) -> Value {
        json!({"role": role, "content": [{"type": "text", "text": text}]})
    }

    /// Line of a log: an exchange whose request has `input`, and `more` in its response.
    fn line(id: &str, input: &[Value], more: &Value) -> String {
        let output = [says("assistant", &format!("answer of {id}"))];
        let mut response = json!({"id": id, "object": "response", "output": output});
        response.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"request": {"input": input}, "response": response}).to_string()
    }

    #[track_caller]
    fn check(lines: &[String], expected: &[&str]) {
        testing::check(
            |input, sink| client::read(&CLIENT, input, sink),
            &lines.join("\n"),
            expected,
        );
    }

    #[test]
    fn a_request_that_does_not_repeat_the_conversation_begins_another() {
        let [rules, new_rules] = ["one", "two"].map(|text| says("developer", text));
        let prompt = says("user", "use sqlite");
        let more =
            [new_rules, prompt.clone(), says("assistant", "answer of a"), says("user", "go on")];
        let first = [rules, prompt];
        let lines = [
            line("a", &first, &json!({})),
            line("b", &first, &json!({})),
            line("c", &more, &json!({})),
        ];
        let (own, go_on) = ("1: person prompt: use sqlite", "3: person prompt: go on");
        check(
            &lines,
            &[
                "= a",
                "1: client injected: one (injected context)",
                own,
                "1: assistant text: answer of a",
                "3: client injected: two (injected context)",
                go_on,
                "3: assistant text: answer of c",
                "= b",
                "2: client injected: one (injected context)",
                &own.replace('1', "2"),
                "2: assistant text: answer of b",
            ],
        );
    }

    #[test]
    fn conversations_with_ids_and_chains_of_responses_may_be_interleaved() {
        let prompt = [says("user", "go")];
        let (none, of) = (json!({}), |id: &str| json!({"conversation": {"id": id}}));
        let lines = [
            line("a", &prompt, &of("x")),
            line("b", &prompt, &none),
            line("c", &prompt, &of("x")),
            line("d", &prompt, &json!({"previous_response_id": "b"})),
        ];
        let said = |number: u8, id: &str| {
            [
                format!("{number}: person prompt: go"),
                format!("{number}: assistant text: answer of {id}"),
            ]
        };
        let session = |id: &str| [format!("= {id}")];
        let expected = [
            &session("x")[..],
            &said(1, "a"),
            &said(3, "c"),
            &session("b"),
            &said(2, "b"),
            &said(4, "d"),
        ];
        let expected = expected.concat();
        check(&lines, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    }

    #[test]
    fn responses_without_requests_are_one_conversation() {
        let lines = ["a", "b"].map(|id| {
            json!({"id": id, "object": "response", "output": [says("assistant", id)]}).to_string()
        });
        check(&lines, &["= a", "1: assistant text: a", "2: assistant text: b"]);
    }

    /// Checks a log of two exchanges that are one conversation: the second sends `again`, and then "go on".
    #[track_caller]
    fn check_pair(output: &[Value], again: &[Value]) {
        let prompt = says("user", "use sqlite");
        let first = json!({"request": {"input": [prompt]}, "response": {"id": "a", "object": "response", "output": output}});
        let lines =
            [first.to_string(), line("b", &[again, &[says("user", "go on")]].concat(), &json!({}))];
        let other = line("c", &[says("user", "use sqlite")], &json!({}));
        let text = [&lines[..], &[other]].concat().join("\n");
        let items = testing::items(Format::Responses, text.as_bytes());
        let persons = testing::entries(&items).filter(|it| it.speaker == Speaker::Person);
        let persons: Vec<String> = persons.map(testing::show).collect();
        let prompt = "person prompt: use sqlite";
        assert_eq!(persons, [prompt, "person prompt: go on", prompt]);
    }

    #[test]
    fn a_request_that_repeats_any_item_of_an_answer_continues_its_conversation() {
        let prompt = says("user", "use sqlite");
        let mut answer = says("assistant", "ok");
        answer["id"] = "m".into();
        let reference = json!({"type": "item_reference", "id": "m"});
        check_pair(&[answer.clone()], &[prompt.clone(), reference]);
        let copy = says("assistant", "ok");
        let context =
            |at: u8| says("user", &format!("<environment_context>{at}</environment_context>"));
        check_pair(&[answer.clone()], &[context(2), prompt.clone(), copy.clone()]);
        check_pair(&[answer.clone()], std::slice::from_ref(&copy));
        let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "ls", "arguments": "{}"});
        let result =
            |id: &str| json!({"type": "function_call_output", "call_id": id, "output": id});
        let interleaved = [prompt.clone(), call("1"), result("1"), call("2"), result("2")];
        check_pair(&[call("1"), call("2")], &interleaved);
        check_pair(&[call("1"), answer], &[prompt, copy]);
    }

    #[test]
    fn responses_that_are_listed_from_the_last_one_are_one_conversation() {
        let lines = [("c", "b"), ("b", "a"), ("a", "")].map(|(id, before)| {
            line(id, &[says("user", id)], &json!({"previous_response_id": before}))
        });
        let items = testing::items(Format::Responses, lines.join("\n").as_bytes());
        let sessions = items.iter().filter(|it| matches!(it, TranscriptItem::Session(_)));
        assert_eq!(sessions.count(), 1);
    }
}
