//! Session files of Claude Code: JSONL, a tree written in file order. The first pass finds
//! duplicates, rewound branches and the fate of queued prompts; the second emits entries.

mod index;
mod reader;
mod record;
mod tools;
mod user_text;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

use super::cutter::{Line, each_record, has_list};
use super::emit::Emit;
use super::json::{JsonExt, parse_object};
use super::raw::{Input, Sink};
use reader::RecordReader;
use serde_json::Value;
use std::io;

/// Field with the records in exports of Claude Code for web.
const WEB_LIST: &str = "loglines";

/// Reads a session: the JSONL file of a session or sub-agent, `stream-json` output, or the object
/// that the web client exports.
pub(super) fn read(input: &mut dyn Input, sink: &mut Sink<'_>) -> io::Result<()> {
    let list = has_list(input, WEB_LIST)?.then_some(WEB_LIST);
    let mut indexer = index::Indexer::default();
    each_record(input, list, |line| {
        parse_object(&line.text, |json| {
            indexer.add(line.number, &serde_json::from_str(json)?, &line.text);
            Ok(())
        });
        true
    })?;
    let index = indexer.finish();
    let mut emit = Emit::new(sink);
    emit.session(index.session.clone());
    let mut reader = RecordReader::new(index, emit);
    let mut early = Vec::new();
    let cut = each_record(input, list, |line| {
        let number = line.number;
        match reader.call_behind(number) {
            Some(call) => early.push((call, line.owned())),
            None => read_line(&mut reader, &line),
        }
        for (_, line) in early.extract_if(.., |(call, _)| *call <= number) {
            read_line(&mut reader, &line);
        }
        !reader.emit.stopped()
    })?;
    reader.emit.cut(cut, 0);
    reader.close();
    Ok(())
}

fn read_line(reader: &mut RecordReader<'_>, line: &Line<'_>) {
    let skipped = reader.skips(line.number) || line.text.trim().is_empty();
    if reader.emit.accepts(line) && !skipped {
        let parsed = parse_object(&line.text, |json| {
            reader.record(line.number, serde_json::from_str(json)?);
            Ok(())
        });
        let expected = "expected a JSON object of a session; line skipped";
        reader.emit.parsed(line, parsed, expected);
    }
}

/// Types of records without text.
const BOOKKEEPING: [&str; 12] = [
    "summary", "file-history-snapshot", "file-history-delta", "queue-operation", "ai-title",
    "custom-title", "last-prompt", "mode", "permission-mode", "progress", "system", "attachment",
];

/// True if a value is a record of a session, or the web client's export.
pub(super) fn is_record(json: &Value) -> bool {
    let (kind, message) = (json.text("type"), &json["message"]);
    // Qwen Code writes similar records.
    if message.has("parts") || json.has("systemPayload") {
        return false;
    }
    let has_parent = json.get("parentUuid").is_some();
    let has_any = |keys: &[&str]| keys.iter().any(|key| json.has(key));
    let speaks = matches!(kind, "user" | "assistant")
        && message.is_object()
        && (has_parent || has_any(&["uuid", "sessionId", "session_id", "timestamp"]));
    let bookkeeping = BOOKKEEPING.contains(&kind)
        && has_any(&["sessionId", "session_id", "leafUuid", "messageId"]);
    let result = kind == "result" && json.has("session_id");
    let is_export = json[WEB_LIST].is_array();
    speaks || bookkeeping || result || is_export || (has_parent && json.has("uuid"))
}
