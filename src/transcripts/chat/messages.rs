//! Messages of API conversations in the dialects of OpenAI, Anthropic and compatible APIs. The
//! dialects differ in the fields of calls and results, and never contradict each other.

use super::parts::{Words, words_of};
use crate::domain::{Branch, EntryKind, Outcome, Skip, Speaker, Timestamp};
use crate::transcripts::client_text::{
    cline_outcome, is_of_cline, is_prompt, is_result_heading, own_result, split_cline_result,
    split_message,
};
use crate::transcripts::json::{self, JsonExt};
use crate::transcripts::raw::RawEntry;
use crate::transcripts::tools::{self, OpenCalls, is_shell, outcome_of_output, outcome_of_shell};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Types of the parts of a message that are calls, and of those that are results.
const CALLS: [&str; 7] = [
    "tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "toolCall", "function_call",
    "tool-call",
];
const RESULTS: [&str; 4] = ["tool_result", "toolResult", "tool-result", "function_call_output"];
/// Maximum number of calls without an id that wait for their results.
const CALLS_MAX: usize = 4_096;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Role {
    System,
    User,
    Assistant,
    Tool,
    Call,
    Unknown,
}

#[derive(Debug, Default)]
pub(crate) struct MessageReader {
    /// Names of tools by call id.
    names: OpenCalls<String>,
    /// Generated ids of calls without one, in the order in which their results are expected.
    open: VecDeque<String>,
    /// True if a result has come since the last call; earlier calls then stay unanswered.
    answered: bool,
    made: u32,
    family: Family,
}

/// Client that wrote the messages. Only Cline puts a person's words into results of tools.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Family {
    #[default]
    Other,
    /// Cline, once a user's message is written as Cline writes it.
    MaybeCline,
    Cline,
}

pub(crate) fn is_message(json: &Value) -> bool {
    role_text(json).is_some() || json.has("tool_calls")
}

pub(crate) fn has_known_role(json: &Value) -> bool {
    role_text(json).is_some_and(|text| role(text) != Role::Unknown)
}

/// True if a user's message has no content. An assistant's may consist of calls alone, GitHub.com's root of nothing.
pub(super) fn is_hollow(json: &Value) -> bool {
    let is_users = role_text(json).is_some_and(|text| role(text) == Role::User);
    is_users && content(json).is_null() && json.field("id") != "root"
}

/// Role of a message; those of LangChain and of Factory's `droid exec` may have only a type.
fn role_text(json: &Value) -> Option<&str> {
    let call = json.first_text(&["tool_call_id", "toolCallId", "toolId"]);
    json.first_text(&["role", "from", "sender"]).or_else(|| match json.text("type") {
        kind @ ("user" | "assistant" | "human" | "ai" | "system") => Some(kind),
        kind @ ("tool" | "tool_call" | "tool_result") => call.and(Some(kind)),
        _ => None,
    })
}

/// Id of a call, or of the call that a result answers.
fn id_of(json: &Value) -> Option<&str> {
    json.first_text(&["tool_call_id", "tool_use_id", "call_id", "toolCallId", "id"])
}

fn role(text: &str) -> Role {
    match text {
        "system" | "developer" => Role::System,
        "user" | "human" => Role::User,
        "assistant" | "gpt" | "chatgpt" | "bing" | "bard" | "model" | "ai" | "bot" => {
            Role::Assistant
        }
        "tool" | "function" | "observation" | "function_response" | "tool_response"
        | "tool_result" => Role::Tool,
        "function_call" | "tool_call" => Role::Call,
        _ => Role::Unknown,
    }
}

/// True if a message of Goose holds results of tools.
fn holds_results(json: &Value) -> bool {
    content(json).list().iter().any(|part| part["type"] == "toolResponse")
}

/// Time of a message: RFC 3339, or seconds or milliseconds since 1970.
pub(crate) fn time_of(json: &Value) -> Option<Timestamp> {
    const KEYS: [&str; 7] =
        ["timestamp", "ts", "created_at", "createdAt", "create_time", "created", "time"];
    /// Larger numbers are milliseconds.
    const SECS_MAX: f64 = 1.0e11;
    let carriers = [json, json.field("_metadata")].into_iter();
    let mut values = carriers.flat_map(|it| KEYS.iter().map(|key| it.field(key)));
    values.find_map(|value| match value.number() {
        Some(number) if number.abs() < SECS_MAX => Timestamp::from_secs(number),
        Some(number) => Timestamp::from_secs(number / 1000.0),
        None => Timestamp::parse(value.as_str()?),
    })
}

impl MessageReader {
    /// Creates a reader of files of messages, which may be Cline's.
    pub(super) fn of_file() -> MessageReader {
        MessageReader { family: Family::MaybeCline, ..MessageReader::default() }
    }

    /// Appends the entries of one message; returns whether its role is known.
    pub(crate) fn read(&mut self, json: &Value, line: u32, out: &mut Vec<RawEntry>) -> bool {
        let (mut own, all) = (Vec::new(), out);
        let out = &mut own;
        // A converter's mark of sessions of sub-agents that it merged into the session.
        let is_subagents = json.text("role").starts_with("assistant-subagent-");
        let original =
            json.field("_metadata").first_text(&["original_role"]).filter(|_| is_subagents);
        let role = original.or(role_text(json)).map_or(Role::Assistant, role);
        match role {
            // Roo's summary; the messages that it stands for are kept if it has an id.
            _ if json.field("isSummary") == true => {
                injected(content(json), line, out);
                for entry in out.iter_mut() {
                    entry.kind = EntryKind::Summary;
                    entry.skip = json.has("condenseId").then_some(Skip::Summarised);
                }
            }
            // Cline's summary, and its own words to the model.
            Role::User if json.field("metadata")["kind"] == "compaction_summary" => {
                let entry = RawEntry::new(
                    line,
                    Speaker::Client,
                    EntryKind::Summary,
                    words_of(content(json)),
                );
                out.push(entry);
            }
            Role::User if json.field("metadata")["displayRole"] == "system" => {
                injected(content(json), line, out);
            }
            // Goose's own words to the model.
            Role::User
                if json.field("metadata")["userVisible"] == false && !holds_results(json) =>
            {
                injected(content(json), line, out);
            }
            Role::System | Role::Unknown => injected(content(json), line, out),
            Role::User | Role::Assistant => {
                self.blocks(role, content(json), line, out);
                self.calls(json, line, out);
            }
            Role::Tool => self.answer(json, line, out),
            Role::Call => self.call(json, content(json), line, out),
        }
        // In group chats each message names its author.
        let name = json.first_text(&["name"]).filter(|_| role == Role::User);
        let said = own.iter_mut().find(|it| it.kind == EntryKind::Prompt);
        if let (Some(name), Some(said)) = (name, said) {
            said.text = format!("{name}: {}", said.text);
        }
        let (at, id) = (time_of(json), json.first_text(&["id", "uuid"]));
        for entry in &mut own {
            entry.at = at;
            entry.native_id = id.map(str::to_owned);
            if is_subagents {
                entry.branch = Branch::Sidechain;
                let is_prompt = entry.speaker == Speaker::Person;
                entry.speaker = if is_prompt { Speaker::Client } else { entry.speaker };
            }
        }
        all.append(&mut own);
        role != Role::Unknown
    }

    /// Reads text, calls and results in the order of the content.
    fn blocks(&mut self, role: Role, content: &Value, line: u32, out: &mut Vec<RawEntry>) {
        let mut words = Words::default();
        let parts = if content.is_array() { content.list() } else { std::slice::from_ref(content) };
        let mut heading: Option<String> = None;
        for part in parts {
            let of_goose = of_goose(part);
            let part = of_goose.as_ref().unwrap_or(part);
            match part.text("type") {
                kind if CALLS.contains(&kind) => {
                    flush(role, &mut words, line, out);
                    self.call(part, &part["value"], line, out);
                }
                kind if RESULTS.contains(&kind) || kind.ends_with("_tool_result") => {
                    flush(role, &mut words, line, out);
                    self.answer(part, line, out);
                }
                _ if role == Role::User => {
                    let own = words_of(part);
                    if self.family == Family::MaybeCline && is_of_cline(&own) {
                        self.family = Family::Cline;
                    }
                    let own = match heading.take() {
                        Some(head) if !head.ends_with(" Done") || is_prompt(&own) => {
                            format!("{head}\n{own}")
                        }
                        Some(head) => {
                            flush(role, &mut words, line, out);
                            words.push(&head);
                            own
                        }
                        None => own,
                    };
                    if is_result_heading(&own) {
                        // The result itself is the next block.
                        heading = Some(own);
                        continue;
                    }
                    // Each block of a user message may have another author: client, tool, person.
                    let alone = !is_prompt(&own);
                    if alone {
                        flush(role, &mut words, line, out);
                    }
                    words.push(&own);
                    if alone {
                        flush(role, &mut words, line, out);
                    }
                }
                _ => words.push(&words_of(part)),
            }
        }
        words.push(&heading.unwrap_or_default());
        flush(role, &mut words, line, out);
    }

    /// Reads the refusal, speech and calls beside a message's content.
    fn calls(&mut self, json: &Value, line: u32, out: &mut Vec<RawEntry>) {
        let spoken = json.field("audio").first_text(&["transcript"]);
        for words in [json.first_text(&["refusal"]), spoken].into_iter().flatten() {
            out.push(RawEntry::new(line, Speaker::Assistant, EntryKind::Text, words));
        }
        let function = Some(json.field("function_call")).filter(|it| it.is_object());
        // Some clients give a call in the content too.
        let told: Vec<String> = out.iter().filter_map(|entry| entry.call_id.clone()).collect();
        for call in json.field("tool_calls").list().iter().chain(function) {
            if !told.iter().any(|id| id_of(call) == Some(id)) {
                self.call(call, &Value::Null, line, out);
            }
        }
    }

    /// Reads a call, which may be JSON in `value`.
    fn call(&mut self, json: &Value, value: &Value, line: u32, out: &mut Vec<RawEntry>) {
        let value = parsed(value);
        let json = if value.is_object() { &value } else { json };
        let bodies = [json.field("function"), json.field("custom")];
        let body = bodies.into_iter().find(|body| body.is_object()).unwrap_or(json);
        let name = body.first_text(&["name", "tool_name", "toolName"]).unwrap_or("tool").to_owned();
        let arguments = body.first(&["arguments", "input", "parameters", "args"]);
        let id = id_of(json).map_or_else(|| self.make_id(), str::to_owned);
        let mut entry = RawEntry::new(line, Speaker::Assistant, EntryKind::ToolCall, "");
        entry.text = call_text(&name, arguments);
        entry.call_id = Some(id.clone());
        entry.tool = Some(name.clone());
        out.push(entry);
        self.names.open(&id, name);
    }

    /// Creates an id for a call without one; results take these ids in order.
    fn make_id(&mut self) -> String {
        if std::mem::take(&mut self.answered) {
            self.open.clear();
        }
        self.made = self.made.saturating_add(1);
        let id = format!("call-{}", self.made);
        self.open.push_back(id.clone());
        if self.open.len() > CALLS_MAX {
            self.open.pop_front();
        }
        id
    }

    fn answer(&mut self, json: &Value, line: u32, out: &mut Vec<RawEntry>) {
        self.answered = true;
        // The own id of a result is that of its call if there is such a call.
        let id = id_of(json)
            .filter(|id| json.field("id").as_str() != Some(*id) || self.names.get(id).is_some());
        let id = id.map(str::to_owned).or_else(|| self.open.pop_front());
        let named = json.first_text(&["name", "tool_name"]).map(str::to_owned);
        let name = named.or_else(|| self.names.get(id.as_deref()?).cloned());
        let kind = json.first_text(&["type"]).unwrap_or_default();
        let name =
            name.unwrap_or_else(|| kind.strip_suffix("_tool_result").unwrap_or("tool").into());
        let speaker = if tools::is_web(&name) { Speaker::Web } else { Speaker::Tool };
        let output = words_of(content(json));
        let (text, words) = match self.family {
            Family::Cline => split_cline_result(&name, &output),
            Family::MaybeCline | Family::Other => (own_result(&output), Vec::new()),
        };
        let mut entry = RawEntry::new(line, speaker, EntryKind::ToolResult, text);
        let told = match self.family {
            Family::Cline => cline_outcome(&entry.text),
            Family::MaybeCline | Family::Other => (None, None),
        };
        let is_told = told.0.is_some();
        let printed = if is_shell(&name) { outcome_of_shell } else { outcome_of_output };
        let (printed, code) = if is_told { told } else { printed(&entry.text) };
        let is_error = json.first(&["is_error", "isError"]).as_bool();
        let flag = is_error.map(|error| tools::outcome_of_flag(!error));
        let failed = entry.text.starts_with("<tool_use_error>").then_some(Outcome::Failed);
        let status = || tools::outcome_of_status(json.text("status"));
        let results = flags_of(content(json)).or_else(status);
        entry.exit_code = code.filter(|_| flag.is_none() || is_shell(&name));
        entry.outcome = flag.or(failed).or(printed).or(results);
        entry.tool = Some(name);
        entry.call_id = id;
        out.push(entry);
        out.extend(words.into_iter().map(|part| part.entry(line)));
    }
}

/// `Failed` if any result in a list reports failure, `Succeeded` if all report success.
fn flags_of(content: &Value) -> Option<Outcome> {
    let flags: Option<Vec<bool>> =
        content.list().iter().map(|result| result["success"].as_bool()).collect();
    let flags = flags.filter(|flags| !flags.is_empty())?;
    Some(tools::outcome_of_flag(flags.into_iter().all(|flag| flag)))
}

fn content(json: &Value) -> &Value {
    json.first(&["content", "value", "text", "markdown", "parts", "output", "result"])
}

/// Parses JSON inside a string, or copies the value itself.
fn parsed(json: &Value) -> Value {
    let text = json.as_str().map_or_else(|| json.to_string(), str::to_owned);
    owned_json(&text).unwrap_or(Value::String(text))
}

/// Appends context, such as the system prompt.
pub(super) fn injected(content: &Value, line: u32, out: &mut Vec<RawEntry>) {
    let entry = RawEntry::new(line, Speaker::Client, EntryKind::Injected, words_of(content));
    if !entry.text.is_empty() {
        out.push(entry);
    }
}

fn flush(role: Role, words: &mut Words, line: u32, out: &mut Vec<RawEntry>) {
    let text = words.take();
    if text.is_empty() {
        return;
    }
    match role {
        Role::User => {
            out.extend(split_message(&text).into_iter().map(|part| part.entry(line)));
        }
        Role::System | Role::Assistant | Role::Tool | Role::Call | Role::Unknown => {
            out.push(RawEntry::new(line, Speaker::Assistant, EntryKind::Text, text));
        }
    }
}

/// A call or a result of Goose in the form of Anthropic's.
fn of_goose(part: &Value) -> Option<Value> {
    let body = part.first(&["toolCall", "toolResult"]);
    let (told, error) = (body.first(&["value", "Ok"]), body.first(&["error", "Err"]));
    let is_error = !error.is_null() || told["isError"] == true;
    let content = [&told["content"], told, error].into_iter().find(|it| !it.is_null());
    match part.text("type") {
        "toolRequest" => Some(json!({
            "type": "tool_use", "id": part["id"], "name": told["name"], "input": told["arguments"],
        })),
        "toolResponse" => Some(json!({
            "type": "tool_result", "tool_use_id": part["id"], "content": content, "is_error": is_error,
        })),
        _ => None,
    }
}

/// Renders a call: a shell's command, or the arguments as compact JSON. Arguments that are not
/// JSON stay as they are.
pub(crate) fn call_text(name: &str, arguments: &Value) -> String {
    let inner = arguments.as_str().and_then(owned_json);
    let arguments = inner.as_ref().unwrap_or(arguments);
    if is_shell(name)
        && let Some(command) = command(arguments)
    {
        return command;
    }
    match (arguments.as_str(), arguments.is_null()) {
        (Some(text), _) => text.to_owned(),
        (None, true) => String::new(),
        (None, false) => arguments.to_string(),
    }
}

fn command(arguments: &Value) -> Option<String> {
    let joined = |list: &Value, with: &str| {
        let words: Option<Vec<&str>> = list.list().iter().map(Value::as_str).collect();
        words.filter(|words| !words.is_empty()).map(|words| words.join(with))
    };
    let one = arguments.first_text(&["command", "cmd", "script"]).map(str::to_owned);
    let listed = || joined(&arguments["command"], " ").or_else(|| joined(&arguments["cmd"], " "));
    one.or_else(listed).or_else(|| joined(&arguments["commands"], "\n"))
}

fn owned_json(text: &str) -> Option<Value> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    json::parse(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcripts::testing;

    #[track_caller]
    fn check(messages: &str, expected: &[&str]) {
        let json = json::parse(messages).unwrap();
        let (mut reader, mut out) = (MessageReader::default(), Vec::new());
        for message in json.list() {
            reader.read(message, 1, &mut out);
        }
        assert_eq!(out.iter().map(testing::show).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn calls_and_results_are_joined_in_any_order() {
        check(
            r#"[{"role":"assistant","content":null,"tool_calls":[
                {"id":"a","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls -l\"}"}},
                {"id":"b","type":"function","function":{"name":"find","arguments":"{\"q\": 1}"}},
                {"id":"c","type":"function","function":{"name":"find","arguments":"{broken"}}]},
               {"role":"tool","tool_call_id":"b","content":"two"},
               {"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"one"}]}]"#,
            &[
                "assistant tool_call bash#a: ls -l",
                "assistant tool_call find#b: {\"q\":1}",
                "assistant tool_call find#c: {broken",
                "tool tool_result find#b: two",
                "tool tool_result bash#a: one",
            ],
        );
    }

    #[test]
    fn names_of_people_stand_before_their_words() {
        check(
            r#"[{"role":"user","name":"ada","content":"what of the case?"},
               {"role":"user","name":"ben","content":[{"type":"text","text":"rubber"}]},
               {"role":"assistant","name":"scribe","content":"noted"}]"#,
            &[
                "person prompt: ada: what of the case?",
                "person prompt: ben: rubber",
                "assistant text: noted",
            ],
        );
    }

    #[test]
    fn old_functions_have_names_only() {
        check(
            r#"[{"role":"assistant","content":"look","function_call":{"name":"get","arguments":"{}"}},
               {"role":"function","name":"get","content":"{\"a\":1}"}]"#,
            &[
                "assistant text: look",
                "assistant tool_call get#call-1: {}",
                "tool tool_result get#call-1: {\"a\":1}",
            ],
        );
    }

    #[test]
    fn system_and_developer_are_injected() {
        check(
            r#"[{"role":"system","content":"s"},{"role":"developer","content":[{"type":"text","text":"d"}]}]"#,
            &["client injected: s (injected context)", "client injected: d (injected context)"],
        );
    }

    #[test]
    fn reasoning_never_enters_and_a_refusal_does() {
        check(
            r#"[{"role":"assistant","reasoning_content":"hm","reasoning":"hm","content":[{"type":"reasoning","value":"hm"}]},
               {"role":"assistant","content":null,"refusal":"no"}]"#,
            &["assistant text: no"],
        );
    }

    #[test]
    fn parts_with_values_are_read() {
        check(
            r#"[{"role":"assistant","content":[{"type":"text","value":"a"},
                 {"type":"tool_call","value":"{\"name\": \"get\", \"arguments\": {\"x\": 1}}"}]},
               {"role":"tool","content":[{"type":"text","value":"r"}]}]"#,
            &[
                "assistant text: a",
                "assistant tool_call get#call-1: {\"x\":1}",
                "tool tool_result get#call-1: r",
            ],
        );
    }

    #[test]
    fn results_inside_user_messages_are_not_the_person() {
        check(
            r#"[{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"now"},
                 {"type":"tool_use","id":"t","name":"Bash","input":{"command":"make"}}]},
               {"role":"user","content":[
                 {"type":"tool_result","tool_use_id":"t","content":"Exit code 2\nno rule","is_error":true},
                 {"type":"text","text":"stop that"}]}]"#,
            &[
                "assistant text: now",
                "assistant tool_call Bash#t: make",
                "tool tool_result Bash#t failed 2: Exit code 2\nno rule",
                "person prompt: stop that",
            ],
        );
    }

    #[test]
    fn what_the_web_says_is_marked() {
        check(
            r#"[{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"q"}},
                 {"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","title":"T"}]}]}]"#,
            &[
                "assistant tool_call web_search#s: {\"query\":\"q\"}",
                "web tool_result web_search#s: [search result T]",
            ],
        );
    }

    #[test]
    fn sharegpt_speaks_of_humans_and_observations() {
        check(
            r#"[{"from":"human","value":"hi"},{"from":"function_call","value":"{\"name\":\"f\",\"arguments\":{\"a\":1}}"},
               {"from":"observation","value":"r"},{"from":"gpt","value":"done"},{"from":"gpt","value":null}]"#,
            &[
                "person prompt: hi",
                "assistant tool_call f#call-1: {\"a\":1}",
                "tool tool_result f#call-1: r",
                "assistant text: done",
            ],
        );
    }

    #[test]
    fn results_with_flags_tell_how_they_ended() {
        check(
            r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","name":"run",
                 "content":[{"query":"q","result":"r","success":true},{"query":"p","result":"s","success":false}]}]}]"#,
            &["tool tool_result run#x failed: r\n\ns"],
        );
    }

    #[test]
    fn times_are_seconds_milliseconds_or_text() {
        let json = json::parse(r#"{"ts":1700000000000,"created_at":5}"#).unwrap();
        assert_eq!(time_of(&json), Some(Timestamp(1_700_000_000_000)));
        let json = json::parse(r#"{"create_time":"1700000000.5"}"#).unwrap();
        assert_eq!(time_of(&json), Some(Timestamp(1_700_000_000_500)));
    }
}

#[cfg(test)]
mod call_tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, arguments: &str, expected: &str) {
        assert_eq!(call_text(name, &json::parse(arguments).unwrap()), expected);
    }

    #[test]
    fn shells_show_their_command() {
        check("Bash", r#"{"command":"ls","description":"d"}"#, "ls");
        check("shell", r#"{"command":["bash","-lc","ls"]}"#, "bash -lc ls");
        check("run_commands", r#"{"commands":["a","b"]}"#, "a\nb");
        check("bash", r#""{\"command\":\"ls\"}""#, "ls");
    }

    #[test]
    fn others_show_their_arguments() {
        check(
            "str_replace_editor",
            r#"{"command": "view", "path": "a"}"#,
            r#"{"command":"view","path":"a"}"#,
        );
        check("f", r#""{ \"a\": 1 }""#, r#"{"a":1}"#);
        check("f", r#""{ broken""#, "{ broken");
        check("f", "null", "");
    }
}
