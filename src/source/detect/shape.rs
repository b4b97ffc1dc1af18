//! Which format a JSON value has, told by the names of its fields. Formats that are known but not read
//! have a name too, so that the message can say what the file is.

use super::Unknown;
use crate::domain::Format;
use crate::source::chat::{has_known_role, is_message};
use crate::source::json::Json;

pub(super) type Guess = Result<Format, Unknown>;

const NOTHING: Guess = Err(Unknown::Nothing);

fn looks_like(name: &'static str) -> Guess {
    Err(Unknown::LooksLike(name))
}

/// Elements of an array that are looked at for a message: a broken export begins with one or two odd
/// ones, and anything else tells in its first element.
const ELEMENTS_MAX: usize = 8;

/// The first guess that knows something.
fn first_of<const N: usize>(guesses: [&dyn Fn() -> Guess; N]) -> Guess {
    guesses.iter().map(|guess| guess()).find(|guess| *guess != NOTHING).unwrap_or(NOTHING)
}

/// The format of a file that is one value.
pub(super) fn of_value(json: &Json<'_>, file_name: Option<&str>) -> Guess {
    match json {
        Json::Map(_) => of_object(json, file_name),
        Json::List(list) => {
            let first = list.first().map_or(&[][..], Json::list);
            let own = first_of([&|| of_array(list, file_name), &|| of_array(first, file_name)]);
            first_of([
                &|| own,
                &|| list.first().map_or(NOTHING, |first| of_element(first, file_name)),
                &|| past_odd(list, file_name),
            ])
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => NOTHING,
    }
}

/// The format of a file that has one such value a line.
pub(super) fn of_line(json: &Json<'_>, file_name: Option<&str>) -> Guess {
    match json {
        Json::Map(_) => first_of([
            &|| handed_over(json),
            &|| codex_line(json),
            &|| claude_line(json),
            &|| other_line(json),
            &|| of_record(json, file_name),
            &|| {
                if is_message(json) {
                    of_messages(std::slice::from_ref(json), file_name)
                } else {
                    NOTHING
                }
            },
        ]),
        Json::List(list) => {
            first_of([&|| of_array(list, file_name), &|| past_odd(list, file_name)])
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => NOTHING,
    }
}

const CODEX_TYPES: [&str; 7] = [
    "session_meta",
    "response_item",
    "event_msg",
    "turn_context",
    "compacted",
    "world_state",
    "inter_agent_communication_metadata",
];
/// Items of the Responses API, and of rollouts before they had an envelope.
const ITEM_TYPES: [&str; 8] = [
    "message",
    "function_call",
    "function_call_output",
    "reasoning",
    "local_shell_call",
    "custom_tool_call",
    "custom_tool_call_output",
    "web_search_call",
];
const CLAUDE_TYPES: [&str; 12] = [
    "summary",
    "file-history-snapshot",
    "file-history-delta",
    "queue-operation",
    "ai-title",
    "custom-title",
    "last-prompt",
    "mode",
    "permission-mode",
    "progress",
    "system",
    "attachment",
];

fn kind<'j>(json: &'j Json<'_>) -> &'j str {
    json.first_text(&["type"]).unwrap_or_default()
}

fn is_item(json: &Json<'_>) -> bool {
    let own = ITEM_TYPES.contains(&kind(json));
    own && !json.has("parentId") && !json.has("uuid") && !json.get("message").is_map()
}

/// A slice that an agent handed over: entries, and speakers or a session.
fn handed_over(json: &Json<'_>) -> Guess {
    let entries = json.get("entries");
    let speaks = entries.list().first().is_some_and(|entry| entry.has("speaker"));
    if speaks || (entries.is_list() && json.first_text(&["session"]).is_some()) {
        return Ok(Format::Slice);
    }
    NOTHING
}

fn codex_line(json: &Json<'_>) -> Guess {
    let envelope = json.get("payload").is_map() && CODEX_TYPES.contains(&kind(json));
    let state = json.first_text(&["record_type"]) == Some("state");
    let old_head = json.has("id")
        && json.has("timestamp")
        && json.map().iter().any(|(key, _)| key == "instructions");
    if envelope || state || (old_head && kind(json).is_empty()) || is_item(json) {
        return Ok(Format::Codex);
    }
    NOTHING
}

fn claude_line(json: &Json<'_>) -> Guess {
    let message = json.get("message");
    if message.has("parts") {
        return looks_like("Qwen Code");
    }
    let has_parent = json.map().iter().any(|(key, _)| key == "parentUuid");
    let known = ["uuid", "sessionId", "session_id", "timestamp"].iter().any(|key| json.has(key));
    let speaks =
        matches!(kind(json), "user" | "assistant") && message.is_map() && (has_parent || known);
    let bookkeeping = CLAUDE_TYPES.contains(&kind(json))
        && ["sessionId", "session_id", "leafUuid", "messageId"].iter().any(|key| json.has(key));
    let result = kind(json) == "result" && json.has("session_id");
    if speaks || bookkeeping || result || (has_parent && json.has("uuid")) {
        return Ok(Format::ClaudeCode);
    }
    NOTHING
}

fn other_line(json: &Json<'_>) -> Guess {
    let has = |key: &str| json.map().iter().any(|(name, _)| name == key);
    let names: Vec<&str> = json.map().iter().map(|(name, _)| name.as_ref()).collect();
    let kind = kind(json);
    let name = match () {
        () if kind == "session_start" => "Factory droid",
        () if kind == "session" && has("version") => "pi or OpenClaw",
        () if has("parentId") && has("message") => "pi or OpenClaw",
        () if has("parentId")
            && matches!(kind, "model_change" | "thinking_level_change" | "compaction") =>
        {
            "pi or OpenClaw"
        }
        () if has("$set") || has("$rewindTo") || has("projectHash") => "Gemini CLI",
        () if matches!(kind, "gemini" | "info" | "warning") && has("id") => "Gemini CLI",
        () if kind == "metadata" && has("protocol_version") => "Kimi CLI",
        () if has("data") && kind.contains('.') => "GitHub Copilot CLI",
        () if json.get("history").is_list()
            && (has("instance_id") || has("git_patch") || has("issue")) =>
        {
            "OpenHands"
        }
        () if names == ["role", "message"] => "a Cursor agent transcript",
        () if has("resourceLogs") || has("resourceSpans") => "OpenTelemetry",
        () if matches!(kind, "system" | "user" | "assistant") && has("content") && !has("role") => {
            "Grok CLI"
        }
        () if has("display") && has("pastedContents") => "a prompt history",
        () if names == ["session_id", "ts", "text"] => "a prompt history",
        () => return NOTHING,
    };
    looks_like(name)
}

fn of_object(json: &Json<'_>, file_name: Option<&str>) -> Guess {
    let has = |key: &str| json.has(key);
    let list = |key: &str| json.get(key).is_list();
    let name = match () {
        () if json.get("mapping").is_map() || list("chat_messages") => return Ok(Format::Chatgpt),
        () if handed_over(json) != NOTHING => return handed_over(json),
        () if list("loglines") => return Ok(Format::ClaudeCode),
        () if has("session") && list("items") => return Ok(Format::Codex),
        () if has("projectHash") => "Gemini CLI",
        () if has("trajectory") && has("history") => "SWE-agent",
        () if has("trajectory_format") => "mini-swe-agent",
        () if has("trajectory") && (has("environment") || has("info")) => "SWE-agent",
        () if list("history") && json.get("history").list().iter().any(is_message) => "SWE-agent",
        () if has("llm_interactions") || has("agent_steps") => "Trae agent",
        () if has("speaker_a") && has("session_1") => "LoCoMo",
        () if has("schema_version") && list("steps") => "an ATIF trajectory",
        () if has("sessionID") || (has("info") && messages_have(json, "parts")) => "opencode",
        () if list("messages")
            && messages_have(json, "createdAt")
            && messages_have(json, "text") =>
        {
            "Amp"
        }
        () if json.map().iter().any(|(key, _)| key.starts_with("gen_ai.")) => "OpenTelemetry",
        () if has("resourceLogs") || has("resourceSpans") => "OpenTelemetry",
        () => {
            return first_of([
                &|| of_record(json, file_name),
                &|| codex_line(json),
                &|| claude_line(json),
                &|| other_line(json),
                &|| {
                    if is_message(json) && json.has("content") {
                        of_messages(std::slice::from_ref(json), file_name)
                    } else {
                        NOTHING
                    }
                },
            ]);
        }
    };
    looks_like(name)
}

fn messages_have(json: &Json<'_>, key: &str) -> bool {
    json.get("messages").list().first().is_some_and(|message| message.has(key))
}

/// The format that one element of an array tells.
fn of_element(json: &Json<'_>, file_name: Option<&str>) -> Guess {
    let has = |key: &str| json.has(key);
    let role = json.first_text(&["role"]);
    let name = match () {
        () if has("mapping") || has("chat_messages") => return Ok(Format::Chatgpt),
        () if has("haystack_sessions") || has("haystack_session_ids") || has("question_id") => {
            "LongMemEval"
        }
        () if json.get("conversation").has("speaker_a") => "LoCoMo",
        () if has("source") && (has("action") || has("observation")) => "OpenHands",
        () if has("parts") && matches!(role, Some("user" | "model")) => "a Gemini API conversation",
        () if has("parts") && role.is_some() => "OpenTelemetry",
        () if json.map().iter().any(|(key, _)| key.starts_with("gen_ai.")) => "OpenTelemetry",
        () if matches!(json.first_text(&["type"]), Some("say" | "ask")) => {
            "Cline's ui_messages.json"
        }
        () if is_item(json) && role.is_none_or(|_| json.first_text(&["type"]).is_some()) => {
            return Ok(Format::Codex);
        }
        () => return of_record(json, file_name),
    };
    looks_like(name)
}

fn of_array(list: &[Json<'_>], file_name: Option<&str>) -> Guess {
    // Cline's history names no role in some versions.
    let by_type = |json: &Json<'_>| {
        matches!(kind(json), "user" | "assistant") && json.first_text(&["text"]).is_some()
    };
    if list.first().is_some_and(|first| by_type(first) && !first.has("role")) {
        return Ok(Format::Anthropic);
    }
    if list.first().is_some_and(|first| speaks(first) && (is_whole(first) || list.len() == 1)) {
        return of_messages(list, file_name);
    }
    NOTHING
}

/// The format of an array whose first element tells nothing: that of the messages behind it, if any.
fn past_odd(list: &[Json<'_>], file_name: Option<&str>) -> Guess {
    // Records of other things have roles too: `admin`.
    let message = |json: &Json<'_>| speaks(json) && is_whole(json) && has_known_role(json);
    if list.iter().take(ELEMENTS_MAX).any(message) {
        return of_messages(list, file_name);
    }
    NOTHING
}

fn speaks(json: &Json<'_>) -> bool {
    is_message(json) && !json.has("parts") && !is_item(json) && kind(json) != "function_call"
}

/// Whether a message says something.
fn is_whole(json: &Json<'_>) -> bool {
    ["content", "value", "text", "tool_calls", "function_call"].iter().any(|key| json.has(key))
}

/// The format of one value that holds a conversation.
fn of_record(json: &Json<'_>, file_name: Option<&str>) -> Guess {
    for key in ["conversations", "items", "conversation"] {
        if json.get(key).list().iter().any(|turn| turn.first_text(&["from", "role"]).is_some()) {
            return Ok(Format::Openai);
        }
    }
    if json.has("traj") || json.has("custom_id") {
        return Ok(Format::Openai);
    }
    let inner = ["request", "body", "input"].iter().map(|key| json.get(key));
    let carriers = [json].into_iter().chain(inner);
    let carrier = carriers.into_iter().find(|carrier| carrier.get("messages").is_list());
    let Some(carrier) = carrier else { return NOTHING };
    let messages = carrier.get("messages").list();
    if messages.iter().any(|message| message.has("parts")) {
        return looks_like("OpenTelemetry or Gemini messages");
    }
    if !messages.iter().any(is_message) && !messages.is_empty() {
        return NOTHING;
    }
    // Only Anthropic has the system prompt beside the messages.
    let beside = carrier.has("system") || (carrier.has("sessionId") && carrier.has("agent"));
    let openai = json.get("response").has("choices") || carrier.has("functions");
    match of_messages(messages, file_name) {
        Ok(Format::Openai) if beside && !openai && !uses_openai(messages) => Ok(Format::Anthropic),
        guess => guess,
    }
}

fn uses_openai(messages: &[Json<'_>]) -> bool {
    messages.iter().any(|message| {
        let role = message.first_text(&["role"]).unwrap_or_default();
        matches!(role, "tool" | "function" | "developer" | "system")
            || message.has("tool_calls")
            || message.has("function_call")
    })
}

/// OpenAI or Anthropic, by what only one of them has; else by the file's name.
pub(super) fn of_messages(messages: &[Json<'_>], file_name: Option<&str>) -> Guess {
    const BLOCKS: [&str; 5] =
        ["tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"];
    let blocks = messages.iter().flat_map(|message| message.get("content").list());
    if blocks.clone().any(|block| BLOCKS.contains(&kind(block))) {
        return Ok(Format::Anthropic);
    }
    if uses_openai(messages) {
        return Ok(Format::Openai);
    }
    let cline = blocks
        .filter_map(|block| block.first_text(&["text"]))
        .any(|text| text.starts_with("<task>") || text.starts_with("<environment_details>"));
    let name = file_name.unwrap_or_default().to_ascii_lowercase();
    let named = ["anthropic", "claude", "cline", "api_conversation_history"]
        .iter()
        .any(|part| name.contains(part));
    Ok(if cline || named { Format::Anthropic } else { Format::Openai })
}
