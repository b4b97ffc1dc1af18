//! Agent transcripts of Cursor: one message per line, without ids. Cursor puts the words of a person in
//! a block, behind blocks of its own, of which one has the time.

use super::chat::words_of;
use super::client::Client;
use super::client_text::{ClientText, split_message};
use super::conversation::Conversation;
use super::json::JsonExt;
use crate::domain::{EntryKind, Format, Speaker, Timestamp};
use serde_json::{Value, json};

pub(super) const CLIENT: Client = Client {
    format: Format::Cursor,
    lines: &[&["role", "message", "!type", "!content", "!id"]],
    documents: &[&["role", "message", "!type", "!content", "!id"]],
    list: "",
    kind: |json| json.first_text(&["role", "type"]).unwrap_or_default(),
    kinds: &[
        ("user", user),
        ("assistant|system|tool", message),
        ("turn_ended", |json, talk| talk.notice(json.text("error"))),
    ],
};

const QUERY: &str = "user_query";
/// Blocks of Cursor's own; others are known by the words of a person behind them.
const CONTEXT: &str = "timestamp|system_notification|system_reminder|attached_files|image_files|rules|user_info|\
    manually_attached_skills|agent_skills|agent_transcripts|dynamic_tools|git_status|mcp_file_system|\
    open_and_recently_viewed_files|additional_data|hooks_context";
/// Beginning of what Cursor asks in the place of a person when a task in the background has ended.
const ON_TASK: &str = "Briefly inform the user about the task result";
/// Reasoning that Cursor left out.
const LEFT_OUT: &str = "[REDACTED]";

fn user(json: &Value, talk: &mut Conversation<'_>) {
    let mut content = json["message"]["content"].clone();
    if let Some(parts) = content.as_array_mut() {
        parts.retain(|part| !part.text("type").contains("image"));
    }
    let words = words_of(&content);
    let is_plain = !words.starts_with('<') && !words.contains("<user_query>");
    if is_plain || content.list().iter().any(|part| part["type"] == "tool_result") {
        return message(json, talk);
    }
    talk.at("", block(&words).and_then(|(_, inner, _)| time(inner)));
    talk.told(split(&words));
}

fn message(json: &Value, talk: &mut Conversation<'_>) {
    let mut content = json["message"]["content"].clone();
    let parts = content.as_array_mut().filter(|_| json["role"] == "assistant");
    for part in parts.into_iter().flatten() {
        let words = part.text("text").strip_suffix(LEFT_OUT);
        if let Some(words) = words.filter(|words| words.is_empty() || words.ends_with('\n')) {
            part["text"] = words.trim_end().into();
        }
    }
    talk.at("", None);
    talk.message(&json!({ "role": json["role"], "content": content }));
}

/// Splits a text that Cursor attributes to the user.
pub(super) fn split(text: &str) -> Vec<ClientText> {
    let text = text.trim_start_matches("[Image]\n").trim();
    let (mut parts, mut rest, mut is_behind_context) = (Vec::new(), text, false);
    // Number of bytes from the last query on.
    let query = text.rfind("\n<user_query>").map_or(0, |at| text.len() - at - 1);
    while !rest.is_empty() {
        let known = block(rest).filter(|(tag, _, behind)| {
            let is_before = behind.starts_with('<') && (1..=behind.len()).contains(&query);
            let is_in_front = is_before || behind.starts_with("<user_query>");
            is_in_front || *tag == QUERY || CONTEXT.split('|').any(|it| it == *tag)
        });
        let Some((tag, inner, behind)) = known else {
            // A file in a block may hold the block's end.
            let is_cut = rest.starts_with('<') || is_behind_context;
            if !is_cut || query == 0 || rest.len() <= query {
                break;
            }
            let (context, queries) = rest.split_at(rest.len() - query);
            parts.push(ClientText::injected(context.trim()));
            rest = queries;
            continue;
        };
        is_behind_context = ![QUERY, "timestamp"].contains(&tag);
        match tag {
            QUERY if !inner.starts_with(ON_TASK) => parts.extend(split_message(inner)),
            "timestamp" => {}
            "system_notification" => {
                parts.push(ClientText::new(Speaker::Client, EntryKind::Notice, inner));
            }
            _ => parts.push(ClientText::injected(inner)),
        }
        rest = behind;
    }
    parts.extend(split_message(rest));
    parts
}

/// Tag of the block at the beginning of a text, what is in it, and what is behind it.
fn block(text: &str) -> Option<(&str, &str, &str)> {
    let (tag, rest) = text.strip_prefix('<')?.split_once('>')?;
    let is_tag = !tag.is_empty() && tag.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
    let (inner, behind) = match rest.split_once(&format!("</{tag}>")) {
        None if tag == QUERY => (rest, ""),
        found => found?,
    };
    is_tag.then(|| (tag, inner.trim(), behind.trim_start()))
}

/// Reads a time such as `Friday, Sep 4, 2026, 2:21 AM (UTC+5:30)`.
fn time(text: &str) -> Option<Timestamp> {
    let (local, zone) = text.strip_suffix(')')?.split_once(" (UTC")?;
    let (sign, offset) = zone.split_at_checked(1).unwrap_or(("+", "0"));
    let (hours, minutes) = offset.split_once(':').unwrap_or((offset, "00"));
    let text = format!("{local} {sign}{hours:0>2}:{minutes}");
    let form = |month| format!("%A, {month} %d, %Y, %I:%M %p %:z");
    let read = |month| jiff::Timestamp::strptime(form(month), &text).ok();
    Some(Timestamp(read("%b").or_else(|| read("%B"))?.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcripts::testing::shown;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let show = |it: ClientText| {
            format!("{} {}: {}", it.speaker.name(), it.kind.name(), it.text.replace('\n', "⏎"))
        };
        assert_eq!(split(text).into_iter().map(show).collect::<Vec<_>>().join(" | "), expected);
    }

    #[test]
    fn only_what_a_person_wrote_in_its_block_is_theirs() {
        let stamp = "<timestamp>Friday, Sep 4, 2026, 2:21 AM (UTC+8)</timestamp>";
        check(
            &format!("{stamp}\n<user_query>\nuse tabs\n</user_query>"),
            "person prompt: use tabs",
        );
        check(&format!("{stamp}\nuse tabs"), "person prompt: use tabs");
        check(
            "<attached_files>\nnever use tabs\n</attached_files>\n<user_query>\nfix it\n</user_query>",
            "client injected: never use tabs | person prompt: fix it",
        );
        check(
            "<of_tomorrow>x</of_tomorrow>\n<user_query>what is it for?</user_query>",
            "client injected: x | person prompt: what is it for?",
        );
        check("<user_query>\ncut o", "person prompt: cut o");
        check(
            "<attached_files>\na </attached_files> b\nnever use tabs\n</attached_files>\n<user_query>\nfix it\n</user_query>",
            "client injected: a | client injected: b⏎never use tabs⏎</attached_files> | person prompt: fix it",
        );
        check(
            "see:\n<user_query>\nx\n</user_query>",
            "person prompt: see:⏎<user_query>⏎x⏎</user_query>",
        );
        check("[Image]\n<user_query>\nblue\n</user_query>", "person prompt: blue");
        check("<git_status>\nx\n</git_status>", "client injected: x");
        check("<tick> is a bad name", "person prompt: <tick> is a bad name");
        check("<b>no</b> tabs", "person prompt: <b>no</b> tabs");
    }

    #[test]
    fn what_cursor_asks_when_a_task_ended_is_no_prompt() {
        let ended = "<system_notification>\nstatus: error\n</system_notification>\n\
            <user_query>Briefly inform the user about the task result and go on.</user_query>";
        let parts = "client notice: status: error | \
            client injected: Briefly inform the user about the task result and go on.";
        check(&format!("{ended}\n\n{ended}"), &format!("{parts} | {parts}"));
    }

    #[test]
    fn what_a_tool_returned_is_not_a_persons() {
        let line = r#"{"role":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":"<user_query>drop it</user_query>"}]}}"#;
        let expected = ["tool tool_result tool#c: <user_query>drop it</user_query>"];
        assert_eq!(shown(Format::Cursor, line), expected);
    }

    #[test]
    fn an_image_hides_no_query() {
        let text = "<attached_files>a</attached_files>\\n<user_query>blue</user_query>";
        let line = format!(
            r#"{{"role":"user","message":{{"content":[{{"type":"image"}},{{"type":"text","text":"{text}"}}]}}}}"#
        );
        let expected = ["client injected: a (injected context)", "person prompt: blue"];
        assert_eq!(shown(Format::Cursor, &line), expected);
    }

    #[test]
    fn only_the_assistants_reasoning_is_left_out() {
        let line = |role| {
            let part = r#"{"type":"text","text":"key:\n[REDACTED]"}"#;
            format!(r#"{{"role":"{role}","message":{{"content":[{part}]}}}}"#)
        };
        assert_eq!(shown(Format::Cursor, &line("assistant")), ["assistant text: key:"]);
        assert_eq!(shown(Format::Cursor, &line("user")), ["person prompt: key:\n[REDACTED]"]);
    }

    #[test]
    fn times_have_the_offset_of_their_zone() {
        let read = |text| time(text).map(|it| it.to_string());
        let utc = Timestamp::parse("2026-09-03T18:21:00Z").map(|it| it.to_string());
        assert_eq!(read("Friday, Sep 4, 2026, 2:21 AM (UTC+8)"), utc);
        assert_eq!(read("Thursday, September 3, 2026, 12:51 PM (UTC-5:30)"), utc);
        assert_eq!(read("Thursday, Sep 3, 2026, 6:21 PM (UTC)"), utc);
        assert_eq!(read("Thursday"), None);
    }
}
