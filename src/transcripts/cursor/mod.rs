//! Agent transcripts of Cursor: one message per line, without ids. Cursor puts the words of a person in
//! a block, behind blocks of its own, of which one has the time.

use super::chat::words_of;
use super::client::Client;
use super::client_text::{ClientText, split_message};
use super::conversation::Conversation;
use super::json::JsonExt;
use crate::domain::{EntryKind, Format, Speaker, Timestamp};
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
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
const CONTEXT: [&str; 6] = [
    "timestamp",
    "system_notification",
    "attached_files",
    "manually_attached_skills",
    "dynamic_tools",
    "open_and_recently_viewed_files",
];
/// Beginning of what Cursor asks in the place of a person when a task in the background has ended.
const ON_TASK: &str = "Briefly inform the user about the task result";
/// Reasoning that Cursor left out.
const LEFT_OUT: &str = "[REDACTED]";

fn user(json: &Value, talk: &mut Conversation<'_>) {
    let content = &json["message"]["content"];
    let words = words_of(content);
    if !words.starts_with('<') {
        return message(json, talk);
    }
    let stamp = block(&words).filter(|block| block.tag == "timestamp");
    talk.at("", stamp.and_then(|block| time(block.inner)));
    for part in content.list().iter().filter(|part| part["type"] != "text") {
        talk.message(&json!({ "role": "user", "content": [part] }));
    }
    talk.told(split(&words));
}

fn message(json: &Value, talk: &mut Conversation<'_>) {
    let mut content = json["message"]["content"].clone();
    for part in content.as_array_mut().into_iter().flatten() {
        if let Some(words) = part.text("text").trim_end().strip_suffix(LEFT_OUT)
            && (words.is_empty() || words.ends_with('\n'))
        {
            part["text"] = words.trim_end().into();
        }
    }
    talk.at("", None);
    talk.message(&json!({ "role": json["role"], "content": content }));
}

/// Splits a text that Cursor attributes to the user.
pub(super) fn split(text: &str) -> Vec<ClientText> {
    let (mut parts, mut rest, mut is_asked) = (Vec::new(), text.trim(), false);
    // Each iteration removes a block.
    while let Some(Block { tag, inner, behind }) = block(rest) {
        let is_before = behind.starts_with('<') && behind.contains("<user_query>");
        match tag {
            QUERY if !inner.starts_with(ON_TASK) => parts.extend(split_message(inner)),
            "timestamp" => {}
            "system_notification" => {
                parts.push(ClientText::new(Speaker::Client, EntryKind::Notice, inner));
            }
            _ if tag == QUERY || is_before || CONTEXT.contains(&tag) => {
                parts.push(ClientText::injected(inner));
            }
            _ => break,
        }
        is_asked |= tag == QUERY;
        rest = behind;
    }
    match is_asked && !rest.is_empty() {
        true => parts.push(ClientText::injected(rest)),
        false => parts.extend(split_message(rest)),
    }
    parts
}

struct Block<'t> {
    tag: &'t str,
    inner: &'t str,
    behind: &'t str,
}

/// Block at the beginning of a text. The words of a person may contain its end.
fn block(text: &str) -> Option<Block<'_>> {
    let (tag, rest) = text.strip_prefix('<')?.split_once('>')?;
    let is_tag = !tag.is_empty() && tag.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
    let end = format!("</{tag}>");
    let mut ends = rest.match_indices(&end).filter_map(|(at, _)| {
        Some((rest.get(..at)?.trim(), rest.get(at + end.len()..)?.trim_start()))
    });
    let is_end = |(_, behind): &(&str, &str)| behind.is_empty() || behind.starts_with(['<', '[']);
    let (inner, behind) = match tag {
        QUERY => ends.find(is_end).unwrap_or((rest.trim(), "")),
        _ => ends.next()?,
    };
    is_tag.then_some(Block { tag, inner, behind })
}

/// Reads a time such as `Friday, Sep 4, 2026, 2:21 AM (UTC+5:30)`.
fn time(text: &str) -> Option<Timestamp> {
    let (local, zone) = text.strip_suffix(')')?.split_once(" (UTC")?;
    let (hours, minutes) = zone.split_once(':').unwrap_or((zone, "0"));
    let hours: i32 = if hours.is_empty() { 0 } else { hours.parse().ok()? };
    let minutes: i32 = minutes.parse().ok()?;
    let minutes = hours * 60 + if zone.starts_with('-') { -minutes } else { minutes };
    let read = |month| DateTime::strptime(format!("%A, {month} %d, %Y, %I:%M %p"), local).ok();
    let zone = TimeZone::fixed(Offset::from_seconds(minutes * 60).ok()?);
    let zoned = read("%b").or_else(|| read("%B"))?.to_zoned(zone).ok()?;
    Some(Timestamp(zoned.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            "<attached_files>\nnever use tabs\n</attached_files>\n<user_query>\nfix it\n</user_query>\n[Image]",
            "client injected: never use tabs | person prompt: fix it | client injected: [Image]",
        );
        check(
            "<of_tomorrow>x</of_tomorrow>\n<user_query>what is </user_query> for?</user_query>",
            "client injected: x | person prompt: what is </user_query> for?",
        );
        check("<user_query>\ncut o", "person prompt: cut o");
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
    fn times_have_the_offset_of_their_zone() {
        let read = |text| time(text).map(|it| it.to_string());
        let utc = Timestamp::parse("2026-09-03T18:21:00Z").map(|it| it.to_string());
        assert_eq!(read("Friday, Sep 4, 2026, 2:21 AM (UTC+8)"), utc);
        assert_eq!(read("Thursday, September 3, 2026, 12:51 PM (UTC-5:30)"), utc);
        assert_eq!(read("Thursday, Sep 3, 2026, 6:21 PM (UTC)"), utc);
        assert_eq!(read("Thursday"), None);
    }
}
