//! Sessions of Gemini CLI: one document, or JSONL in which a changed message is written again; and
//! saved checkpoints, which are messages of its API. Qwen Code writes the same message parts.

use super::chat::{time_of, words_of};
use super::client::{Client, record, records};
use super::client_text::{is_prompt, own_result, split_message};
use super::conversation::{Conversation, ToolResult};
use super::json::JsonExt;
use super::text::push_piece;
use super::tools::outcome_of_status;
use crate::domain::{EntryKind, Format, Outcome, Speaker, Timestamp};
use serde_json::Value;

pub(super) const CLIENT: Client = Client {
    format: Format::GeminiCli,
    lines: &[
        &["$set"],
        &["$rewindTo"],
        &["projectHash"],
        &["type=gemini|info|warning|error", "id"],
    ],
    documents: &[
        &["projectHash"],
        &["history.0.parts"],
        &["parts", "role=user|model", "!parts.0.type"],
    ],
    list: "messages|history",
    kind,
    kinds: &[
        ("head", begin),
        ("$set", set),
        ("$rewindTo", |json, talk| talk.rewind(json.text("$rewindTo"))),
        ("user", user),
        ("gemini|model", model),
        ("info|warning|error", notice),
    ],
};

fn kind(json: &Value) -> &str {
    let marks = ["$set", "$rewindTo"];
    let mark = marks.into_iter().find(|mark| json.has(mark));
    let is_head = ["projectHash", "sessionId", "history"].iter().any(|key| json.get(key).is_some());
    mark.or(json.first_text(&["type", "role"])).unwrap_or(if is_head { "head" } else { "" })
}

fn begin(json: &Value, talk: &mut Conversation<'_>) {
    talk.header(json.text("sessionId"));
    head(json, talk);
    records(&CLIENT, json.first(&["messages", "history"]), talk);
}

fn head(json: &Value, talk: &mut Conversation<'_>) {
    talk.name(json.text("sessionId"));
    talk.title(json.text("summary"));
    if json["kind"] == "subagent" {
        talk.is_sidechain = true;
        talk.cwd(json["directories"][0].as_str().unwrap_or_default());
    }
    let started_at = Timestamp::parse(json.text("startTime"));
    talk.head().started_at = talk.head().started_at.or(started_at);
}

/// Answer that the client puts behind the summary of a compressed conversation.
const ACKNOWLEDGED: &str = "Got it. Thanks for the additional context!";

/// Reads changed fields, which may include all messages: the client replaces its list when it hides
/// outputs or summarises, and writes what it keeps again under new ids.
fn set(json: &Value, talk: &mut Conversation<'_>) {
    let set = &json["$set"];
    head(set, talk);
    let list = set["messages"].list();
    if set["messages"].is_array() {
        let said: Vec<(&str, String)> = list.iter().map(|it| (it.text("id"), words(it))).collect();
        talk.replace_list(&said);
    }
    let is_answer = |it: &Value| it["type"] == "gemini" && words_of(content(it)) == ACKNOWLEDGED;
    let answer = list.iter().position(is_answer).unwrap_or(list.len());
    for (at, message) in list.iter().enumerate() {
        match at == answer || at + 1 == answer && answer < list.len() {
            true => summary(message, talk),
            false => record(&CLIENT, message, talk),
        }
    }
}

fn summary(json: &Value, talk: &mut Conversation<'_>) {
    let Some(json) = talk.latest(json.text("id"), json) else { return };
    talk.at(json.text("id"), time_of(&json));
    talk.summary(&words_of(content(&json)));
}

/// Speaker, text and ids of calls of a message: its copies have the same.
fn words(json: &Value) -> String {
    let content = content(json);
    let mut words = format!("{} {}", kind(json), content.as_str().unwrap_or_default());
    for part in content.list().iter().filter(|part| part["thought"] != true) {
        words += part.text("text");
        words += part["functionCall"].text("id");
        words += part["functionResponse"].text("id");
    }
    for id in json["toolCalls"].list().iter().map(|call| call.text("id")) {
        if !words.contains(id) {
            words += id;
        }
    }
    words
}

fn user(json: &Value, talk: &mut Conversation<'_>) {
    talk.list(json.text("id"), &words(json));
    let Some(json) = talk.latest(json.text("id"), json) else { return };
    talk.at(json.text("id"), time_of(&json));
    let content = content(&json);
    talk.cwd(folder(&words_of(content)).unwrap_or_default());
    // The user typed a command, and the model gets its template.
    let typed = split_message(&words_of(&json["displayContent"]));
    match typed.iter().find(|it| it.is_prompt() && it.text.trim_start().starts_with('/')) {
        Some(command) => {
            talk.say(Speaker::Person, EntryKind::Command, &command.text);
            talk.injected(&words_of(content));
        }
        None => parts(content, true, None, talk),
    }
}

/// Replacement for an output that the client hid later.
const MASKED: &str = "<tool_output_masked>";

fn model(json: &Value, talk: &mut Conversation<'_>) {
    talk.list(json.text("id"), &words(json));
    if talk.has_record(json.text("id")) && only_hides(json, talk) {
        return;
    }
    let Some(json) = talk.latest(json.text("id"), json) else { return };
    let at = time_of(&json);
    talk.at(json.text("id"), at);
    let calls = json["toolCalls"].list();
    let mut own = content(&json).clone();
    if let Value::Array(parts) = &mut own {
        // A resumed session has its calls in the content too.
        parts.retain(|part| {
            let call = &part["functionCall"];
            call.is_null() || calls.iter().all(|it| it["id"] != call["id"])
        });
    }
    parts(&own, false, None, talk);
    for call in calls {
        let (id, name) = (call.text("id"), call.text("name"));
        talk.time(at);
        talk.call(id, name, &call["args"]);
        talk.time(time_of(call));
        let outcome = match call["resultDisplay"].text("terminateReason") {
            "" | "GOAL" => outcome_of_status(call.text("status")),
            "ABORTED" => Some(Outcome::Aborted),
            _ => Some(Outcome::Failed),
        };
        let results = result_parts(call).map(|part| &part["functionResponse"]);
        let results: Vec<&Value> = results.filter(|it| it.is_object()).collect();
        // What a tool returns beside its response.
        let beside = result_parts(call).filter(|it| !it.has("functionResponse"));
        let mut beside: String = beside.map(|it| format!("\n{}", text_of(it))).collect();
        for result in &results {
            let mut result = response(result, outcome);
            result.text += &std::mem::take(&mut beside);
            talk.result(ToolResult { id, name, ..result });
        }
        if results.is_empty() && (call.has("result") || call.has("resultDisplay")) {
            let text = words_of(call.first(&["result", "resultDisplay"]));
            talk.result(ToolResult { id, name, text, outcome, exit_code: None });
        }
    }
}

/// Parts of a call's own result: where the client replaces its list, each call has the results of all calls beside it.
fn result_parts(call: &Value) -> impl Iterator<Item = &Value> {
    let all = call["result"].list();
    let is_calls = |part: &Value| part["functionResponse"]["id"] == call["id"];
    let (names_it, mut is_own) = (all.iter().any(is_calls), true);
    all.iter().filter(move |part| {
        if names_it && part.has("functionResponse") {
            is_own = is_calls(part);
        }
        is_own
    })
}

/// True if a message is written again to hide outputs, and no call of it has a new one.
fn only_hides(json: &Value, talk: &mut Conversation<'_>) -> bool {
    let (mut hides, mut tells) = (false, false);
    if !json.has("toolCalls") {
        // A resumed session has its calls in the content, and the results in other messages.
        for call in content(json).list().iter().map(|part| &part["functionCall"]) {
            hides |= call.is_object();
            tells |= call.is_object() && !talk.is_answered(call.text("id"));
        }
    }
    for call in json["toolCalls"].list() {
        for result in result_parts(call) {
            match response(&result["functionResponse"], None).text.starts_with(MASKED) {
                true => hides = true,
                false => tells |= talk.answer(call.text("id")),
            }
        }
    }
    hides && !tells
}

fn notice(json: &Value, talk: &mut Conversation<'_>) {
    let Some(json) = talk.latest(json.text("id"), json) else { return };
    talk.at(json.text("id"), time_of(&json));
    let content = content(&json);
    let parts: Vec<String> = content.list().iter().map(text_of).collect();
    talk.notice(&if parts.is_empty() { words_of(content) } else { parts.join("\n") });
}

fn content(json: &Value) -> &Value {
    json.first(&["content", "parts"])
}

/// Working directory named in the client's context.
fn folder(text: &str) -> Option<&str> {
    let context = text.split_once("<session_context>").map_or(text, |(_, context)| context);
    let named = context.split_once("**Workspace Directories:**\n  - ");
    let named = named.or_else(|| context.split_once("working in the directory: "));
    let heads = ["This is the Gemini CLI.", "This is the Qwen Code."];
    let is_context = heads.iter().any(|head| context.trim_start().starts_with(head));
    named.filter(|_| is_context)?.1.lines().next().map(str::trim)
}

/// Markers around the contents of files that a prompt refers to.
const FILES: &str = "--- Content from referenced files ---";
const FILES_END: &str = "--- End of content ---";

/// Reads a message's parts; `outcome` applies to the results among them.
pub(super) fn parts(
    content: &Value,
    is_user: bool,
    outcome: Option<Outcome>,
    talk: &mut Conversation<'_>,
) {
    let list = if content.is_array() { content.list() } else { std::slice::from_ref(content) };
    let (mut words, mut files) = (String::new(), false);
    for part in list {
        if part["thought"] == true {
            continue;
        }
        if part.has("functionCall") || part.has("functionResponse") {
            say(&mut words, is_user, talk);
        }
        if part.has("functionCall") {
            let call = &part["functionCall"];
            talk.call(call.text("id"), call.text("name"), &call["args"]);
        } else if part.has("functionResponse") {
            talk.result(response(&part["functionResponse"], outcome));
        } else {
            let text = text_of(part);
            files |= is_user && text.trim() == FILES;
            // Each part of a user's message may have another author.
            let is_alone = files || is_user && !is_prompt(&text);
            if is_alone {
                say(&mut words, is_user, talk);
            }
            if files {
                talk.injected(&text);
                files = text.trim() != FILES_END;
                continue;
            }
            push_piece(&mut words, &text, "\n\n");
            if is_alone {
                say(&mut words, is_user, talk);
            }
        }
    }
    say(&mut words, is_user, talk);
}

fn say(words: &mut String, is_user: bool, talk: &mut Conversation<'_>) {
    let words = std::mem::take(words);
    if is_user { talk.user(&words) } else { talk.assistant(&words) }
}

fn text_of(part: &Value) -> String {
    match () {
        () if part.has("inlineData") => format!("[file {}]", part["inlineData"].text("mimeType")),
        () if part.has("fileData") => format!("[file {}]", part["fileData"].text("fileUri")),
        () if part.has("executableCode") => part["executableCode"].text("code").into(),
        () if part.has("codeExecutionResult") => part["codeExecutionResult"].text("output").into(),
        () => words_of(part),
    }
}

/// Result in a `functionResponse`.
fn response(json: &Value, outcome: Option<Outcome>) -> ToolResult<'_> {
    let response = &json["response"];
    let error = &response["error"];
    let output = response.first(&["output", "content", "result"]);
    let output = if output.is_null() { response } else { output };
    let has_failed = !error.is_null() && error != false && error != "";
    // A cancelled call may have printed something before.
    let mut text = words_of(if has_failed { response.first(&["output"]) } else { output });
    push_piece(&mut text, &words_of(if has_failed { error } else { &Value::Null }), "\n");
    let text = own_result(&text);
    let text = text.strip_prefix("<untrusted_context>\n").unwrap_or(&text);
    let text = text.strip_suffix("\n</untrusted_context>").unwrap_or(text);
    ToolResult {
        id: json.text("id"),
        name: json.text("name"),
        text: text.to_owned(),
        outcome: outcome.or(has_failed.then_some(Outcome::Failed)),
        exit_code: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{EntryKind, Speaker};
    use crate::transcripts::detect;
    use crate::transcripts::raw::TranscriptItem;
    use crate::transcripts::testing::{entries, items, show};

    #[test]
    fn repeated_words_under_their_own_ids_are_no_copies() {
        let says = |id: &str, kind: &str, words: &str| {
            format!(r#"{{"id":"{id}","type":"{kind}","content":[{{"text":"{words}"}}]}}"#)
        };
        let (m3, m4) = (says("m3", "user", "continue"), says("m4", "gemini", "Second."));
        for list in [format!("{},{m3},{m4}", says("s1", "user", "new")), format!("{m3},{m4}")] {
            let lines = [
                r#"{"sessionId":"s","projectHash":"p"}"#.to_owned(),
                says("m1", "user", "continue"),
                says("m2", "gemini", "First."),
                m3.clone(),
                m4.clone(),
                format!(r#"{{"$set":{{"messages":[{list}]}}}}"#),
            ];
            let items = items(Format::GeminiCli, lines.join("\n").as_bytes());
            let said = entries(&items).filter(|it| it.text == "continue");
            assert_eq!(said.count(), 2, "{list}");
        }
    }

    #[test]
    fn a_typed_command_is_the_persons_and_its_template_the_clients() {
        let lines = [
            r#"{"sessionId":"s","projectHash":"p"}"#,
            r#"{"id":"m","type":"user","content":[{"text":"You are a reviewer."}],"displayContent":[{"text":"/review a.rs"}]}"#,
            r#"{"id":"n","type":"user","content":[{"text":"fix a.rs"}],"displayContent":[{"text":"fix @a.rs"}]}"#,
        ];
        let items = items(Format::GeminiCli, lines.join("\n").as_bytes());
        let template = "client injected: You are a reviewer. (injected context)";
        assert_eq!(
            entries(&items).map(show).collect::<Vec<_>>(),
            ["person command: /review a.rs", template, "person prompt: fix a.rs"]
        );
    }

    #[test]
    fn a_sub_agent_that_did_not_reach_its_goal_failed_and_a_picture_is_a_mark() {
        let ended = |reason: &str| {
            format!(
                r#"{{"id":"m{reason}","type":"gemini","content":"","toolCalls":[{{"id":"{reason}","name":"explore","args":{{}},"status":"success","resultDisplay":{{"terminateReason":"{reason}"}},"result":[{{"functionResponse":{{"id":"{reason}","response":{{"output":"done"}}}}}}]}}]}}"#
            )
        };
        let lines = [
            r#"{"sessionId":"s","projectHash":"p"}"#.to_owned(),
            ended("GOAL"),
            ended("MAX_TURNS"),
            r#"{"id":"i","type":"info","content":[{"inlineData":{"mimeType":"image/png","data":"aGVsbG8="}}]}"#.to_owned(),
        ];
        let items = items(Format::GeminiCli, lines.join("\n").as_bytes());
        let shown: Vec<String> = entries(&items).map(show).collect();
        let result = |at: usize| shown[at].rsplit('#').next().unwrap();
        assert_eq!([result(1), result(3)], ["GOAL succeeded: done", "MAX_TURNS failed: done"]);
        assert_eq!(shown[4], "client notice: [file image/png]");
    }

    #[test]
    fn text_beside_a_response_belongs_to_the_result() {
        let lines = [
            r#"{"sessionId":"s","projectHash":"p"}"#,
            r#"{"id":"m","type":"gemini","content":"I read.","toolCalls":[{"id":"g","name":"read","args":{},"status":"success","result":[{"functionResponse":{"id":"g","response":{"output":"two files"}}},{"text":"a.rs"},{"text":"b.rs"}]}]}"#,
        ];
        let items = items(Format::GeminiCli, lines.join("\n").as_bytes());
        let result = entries(&items).last().map(show);
        assert_eq!(
            result.as_deref(),
            Some("tool tool_result read#g succeeded: two files\na.rs\nb.rs")
        );
    }

    #[test]
    fn only_outputs_that_begin_with_the_mask_are_hidden() {
        let says = |outputs: &[(&str, &str)]| {
            let calls = outputs.iter().map(|(id, output)| {
                format!(
                    r#"{{"id":"{id}","name":"read","args":{{}},"result":[{{"functionResponse":{{"response":{{"output":"{output}"}}}}}}]}}"#
                )
            });
            let calls = calls.collect::<Vec<_>>().join(",");
            format!(r#"{{"id":"m2","type":"gemini","content":"I look.","toolCalls":[{calls}]}}"#)
        };
        let mask = "<tool_output_masked>";
        let lines = [
            r#"{"sessionId":"s","projectHash":"p"}"#.to_owned(),
            says(&[]),
            says(&[("c1", "TAG = <tool_output_masked>")]),
            says(&[("c1", "TAG = <tool_output_masked>"), ("c2", "b")]),
            says(&[("c1", mask), ("c2", "b")]),
        ];
        let items = items(Format::GeminiCli, lines.join("\n").as_bytes());
        let results = entries(&items).filter(|it| it.kind == EntryKind::ToolResult);
        let results: Vec<&str> = results.map(|it| it.text.as_str()).collect();
        assert_eq!(results, ["TAG = <tool_output_masked>", "b"]);
    }

    #[test]
    fn a_list_that_is_written_again_says_nothing_new() {
        let call = |output: &str| {
            format!(
                r#"[{{"id":"c1","name":"run_shell_command","args":{{"command":"ls"}},"status":"success","result":[{{"functionResponse":{{"id":"c1","response":{{"output":"{output}"}}}}}}]}}]"#
            )
        };
        let calls = call("a\\nExit Code: 1");
        let hidden = call("<tool_output_masked>a</tool_output_masked>");
        let says =
            |id: &str| format!(r#"{{"id":"{id}","type":"user","content":[{{"text":"yes"}}]}}"#);
        let copy = r#"{"id":"n2","type":"gemini","content":[{"text":"I look."},{"functionCall":{"id":"c1","name":"run_shell_command"}}]}"#;
        let (m1, n1) = (says("m1"), says("n1"));
        let lines = [
            r#"{"sessionId":"s","projectHash":"p"}"#.to_owned(),
            m1,
            format!(r#"{{"id":"m2","type":"gemini","content":"I look.","toolCalls":{calls}}}"#),
            format!(r#"{{"id":"m2","type":"gemini","content":"I look.","toolCalls":{hidden}}}"#),
            n1.clone(),
            copy.to_owned(),
            format!(r#"{{"$set":{{"messages":[{n1},{copy}]}}}}"#),
            says("m3"),
            format!(r#"{{"$set":{{"messages":[{n1},{copy},{}]}}}}"#, says("m3")),
            says("m4"),
            r#"{"$rewindTo":"n2"}"#.to_owned(),
        ];
        let items = items(Format::GeminiCli, lines.join("\n").as_bytes());
        let shown: Vec<String> = entries(&items).map(show).collect();
        assert_eq!(
            shown,
            [
                "person prompt: yes",
                "assistant text abandoned: I look.",
                "assistant tool_call run_shell_command#c1 abandoned: ls",
                "tool tool_result run_shell_command#c1 failed 1 abandoned: a\nExit Code: 1",
                "person prompt abandoned: yes",
                "person prompt abandoned: yes",
            ]
        );
    }

    #[test]
    fn a_summary_of_the_conversation_is_nobodys_words() {
        let says = |id: &str, kind: &str, words: &str| {
            format!(r#"{{"id":"{id}","type":"{kind}","content":[{{"text":"{words}"}}]}}"#)
        };
        let asked = says("m3", "user", "go on");
        let list = [
            says("c1", "user", "We take Redis."),
            says("c2", "gemini", "Got it. Thanks for the additional context!"),
            asked.clone(),
        ];
        let compressed = format!(r#"{{"$set":{{"messages":[{}]}}}}"#, list.join(","));
        let head = r#"{"sessionId":"s","projectHash":"p"}"#.to_owned();
        let lines = [head, says("m1", "user", "hello"), asked, compressed.clone(), compressed];
        let items = items(Format::GeminiCli, lines.join("\n").as_bytes());
        let said = entries(&items).map(|it| (it.speaker, it.text.as_str())).collect::<Vec<_>>();
        assert_eq!(
            said,
            [
                (Speaker::Person, "hello"),
                (Speaker::Person, "go on"),
                (Speaker::Client, "We take Redis."),
                (Speaker::Client, "Got it. Thanks for the additional context!"),
            ]
        );
    }

    #[test]
    fn a_resumed_session_without_its_tool_calls_says_nothing_new() {
        let head = r#"{"sessionId":"s","projectHash":"p"}"#;
        let call = r#"{"id":"c1","name":"run_shell_command","args":{"command":"ls"}"#;
        let output = r#"{"functionResponse":{"id":"c1","response":{"output":"a"}}}"#;
        let says =
            |id: &str, kind: &str, rest: &str| format!(r#"{{"id":"{id}","type":"{kind}",{rest}}}"#);
        let ask = says("m1", "user", r#""content":[{"text":"yes"}]"#);
        let answer = says("m3", "user", &format!(r#""content":[{output}]"#));
        let resumed = format!(r#""content":[{{"text":"I look."}},{{"functionCall":{call}}}}}]"#);
        let resumed = says("m2", "gemini", &resumed);
        let called = format!(
            r#""content":"I look.","toolCalls":[{call},"status":"success","result":[{output}]}}]"#
        );
        let lines = [
            head.to_owned(),
            ask.clone(),
            says("m2", "gemini", r#""content":"I look.""#),
            says("m2", "gemini", &called),
            answer.clone(),
            head.to_owned(),
            r#"{"$set":{"messages":[]}}"#.to_owned(),
            format!(r#"{{"$set":{{"messages":[{ask},{resumed},{answer}]}}}}"#),
        ];
        let read = |lines: &[String]| {
            let items = items(Format::GeminiCli, lines.join("\n").as_bytes());
            entries(&items).map(show).collect::<Vec<_>>()
        };
        let before = read(&lines[..5]);
        assert!(before.len() == 4 && before[3].contains("succeeded: a"), "{before:?}");
        assert_eq!(read(&lines), before);
    }

    #[test]
    fn each_call_keeps_its_result_when_the_client_gives_them_those_of_all() {
        let result = |id: &str| {
            format!(
                r#"{{"functionResponse":{{"id":"{id}","response":{{"output":"of {id}"}}}}}},{{"text":"beside {id}"}}"#
            )
        };
        let call = |id: &str, results: &[&str]| {
            let results = results.iter().map(|id| result(id)).collect::<Vec<_>>().join(",");
            format!(
                r#"{{"id":"{id}","name":"read","args":{{}},"status":"success","result":[{results}]}}"#
            )
        };
        let says = |calls: [String; 2]| {
            format!(
                r#"{{"id":"m2","type":"gemini","content":"I look.","toolCalls":[{}]}}"#,
                calls.join(",")
            )
        };
        let both = ["c1", "c2"];
        let apart = says([call("c1", &["c1"]), call("c2", &["c2"])]);
        let merged = says([call("c1", &both), call("c2", &both)]);
        let lines = [
            r#"{"sessionId":"s","projectHash":"p"}"#.to_owned(),
            apart,
            format!(r#"{{"$set":{{"messages":[{merged}]}}}}"#),
        ];
        let items = items(Format::GeminiCli, lines.join("\n").as_bytes());
        let results = entries(&items).filter(|it| it.kind == EntryKind::ToolResult);
        let results: Vec<&str> = results.map(|it| it.text.as_str()).collect();
        assert_eq!(results, ["of c1\nbeside c1", "of c2\nbeside c2"]);
    }

    #[test]
    fn a_document_on_one_line_is_read_like_any_other() {
        let head = r#"{"sessionId":"s","projectHash":"p","directories":["/elsewhere"],"#;
        let list = r#""messages":[{"id":"1","type":"user","content":"yes"}]}"#;
        for gap in ["", "\n"] {
            let items = items(Format::GeminiCli, format!("{head}{gap}{list}\n").as_bytes());
            let Some(TranscriptItem::Session(session)) = items.first() else {
                panic!("no session")
            };
            assert_eq!(session.cwd, None, "a folder that was added later is not where it runs");
            assert_eq!(entries(&items).map(show).collect::<Vec<_>>(), ["person prompt: yes"]);
        }
    }

    #[test]
    fn context_in_a_checkpoint_is_the_clients() {
        for name in ["Gemini CLI", "Qwen Code"] {
            let list = format!(
                r#"[{{"role":"user","parts":[{{"text":"This is the {name}. We are setting up the context for our chat.\nI'm currently working in the directory: /home/me/app\n"}}]}},
                {{"role":"user","parts":[{{"text":"fix it"}}]}}]"#
            );
            for file in [list.clone(), format!(r#"{{"history":{list},"authType":"oauth"}}"#)] {
                assert_eq!(detect(file.as_bytes(), None), Ok(Format::GeminiCli));
                for file in [file.replace('\n', ""), file] {
                    let items = items(Format::GeminiCli, format!("{file}\n").as_bytes());
                    let session = items.iter().find_map(|it| match it {
                        TranscriptItem::Session(session) => session.cwd.as_deref(),
                        TranscriptItem::Entry(_) | TranscriptItem::Finding(_) => None,
                    });
                    assert_eq!(session, Some("/home/me/app"));
                    let persons = entries(&items).filter(|it| it.speaker == Speaker::Person);
                    assert_eq!(persons.map(show).collect::<Vec<_>>(), ["person prompt: fix it"]);
                    let unread = items.iter().any(|it| matches!(it, TranscriptItem::Finding(_)));
                    assert!(!unread, "{items:?}");
                }
            }
        }
    }
}
