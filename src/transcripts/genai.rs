//! Message parts of Google's API, as Gemini CLI and Qwen Code write them: text, calls, results.

use super::chat::words_of;
use super::conversation::{Conversation, ToolCall, ToolResult};
use super::json::JsonExt;
use super::text::push_piece;
use crate::domain::Outcome;
use serde_json::Value;

/// Markers around the contents of files that a prompt refers to.
const FILES: &str = "--- Content from referenced files ---";
const FILES_END: &str = "--- End of content ---";

/// Reads a message's parts; `outcome` applies to the results among them.
pub(super) fn parts(
    content: &Value,
    is_user: bool,
    outcome: Option<Outcome>,
    talk: &mut Conversation<'_, '_>,
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
            let (id, name) = (call.text("id"), call.text("name"));
            talk.call(ToolCall { id, name, arguments: &call["args"] });
        } else if part.has("functionResponse") {
            talk.result(response(&part["functionResponse"], outcome));
        } else {
            let text = text_of(part);
            files |= is_user && text.trim() == FILES;
            if files {
                talk.injected(&text);
                files = text.trim() != FILES_END;
            } else if is_user {
                talk.user(&text);
            } else {
                push_piece(&mut words, &text, "\n\n");
            }
        }
    }
    say(&mut words, is_user, talk);
}

fn say(words: &mut String, is_user: bool, talk: &mut Conversation<'_, '_>) {
    let words = std::mem::take(words);
    if is_user { talk.user(&words) } else { talk.assistant(&words) }
}

fn text_of(part: &Value) -> String {
    match () {
        () if part.has("inlineData") => {
            format!("[file {}]", part["inlineData"].text("mimeType"))
        }
        () if part.has("fileData") => {
            format!("[file {}]", part["fileData"].text("fileUri"))
        }
        () if part.has("executableCode") => part["executableCode"].text("code").into(),
        () if part.has("codeExecutionResult") => part["codeExecutionResult"].text("output").into(),
        () => words_of(part),
    }
}

/// Result in a `functionResponse`.
pub(super) fn response(json: &Value, outcome: Option<Outcome>) -> ToolResult<'_> {
    let response = &json["response"];
    let error = &response["error"];
    let output = ["output", "content", "result"].iter().map(|key| &response[key]);
    let output = output.clone().find(|it| !it.is_null()).unwrap_or(response);
    let has_failed = !error.is_null() && error != false && error != "";
    let text = words_of(if has_failed { error } else { output });
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
