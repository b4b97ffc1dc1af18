//! Server-sent events as model servers send them: lines end in CR LF or LF and are cut anywhere, also
//! inside a character; comments are skipped; the end may come without `[DONE]`.

use super::wire::{Completion, arguments_of, items, text_of};
use serde_json::Value;

/// Maximum size of a line, in bytes; one delta is far below.
const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Calls of one stream that are put together; each is one index.
const STREAM_CALLS_MAX: usize = 128;

/// Takes bytes as they come and gives `data` lines.
#[derive(Debug, Default)]
pub(super) struct SseLines {
    rest: Vec<u8>,
}

impl SseLines {
    /// Adds bytes; gives the payload of each data line that is now whole.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(bytes);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            if self.rest.len() > LINE_BYTES_MAX {
                self.rest.clear();
            }
            return Vec::new();
        };
        let tail = self.rest.split_off(end + 1);
        let whole = std::mem::replace(&mut self.rest, tail);
        whole.split(|byte| *byte == b'\n').filter_map(payload).collect()
    }

    /// The payload of a last line that was not ended.
    pub(super) fn finish(self) -> Option<String> {
        payload(&self.rest)
    }
}

fn payload(line: &[u8]) -> Option<String> {
    let rest = line.strip_suffix(b"\r").unwrap_or(line).strip_prefix(b"data:")?;
    Some(String::from_utf8_lossy(rest).trim().to_owned()).filter(|text| !text.is_empty())
}

/// The reply of a stream, put together.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct StreamedReply {
    /// Name and arguments of each call.
    pub(super) calls: Vec<(String, String)>,
    /// The content.
    pub(super) content: String,
    /// Events that could be read.
    pub(super) events: usize,
    /// Events that could not.
    pub(super) broken: usize,
    /// True if an error was among them.
    pub(super) failed: bool,
    /// True once `[DONE]` came.
    pub(super) done: bool,
}

impl StreamedReply {
    /// Adds the payload of one event.
    pub(super) fn push(&mut self, payload: &str) {
        if payload == "[DONE]" {
            self.done = true;
            return;
        }
        let Ok(event @ Value::Object(_)) = serde_json::from_str(payload) else {
            self.broken += 1;
            return;
        };
        self.events += 1;
        let event = Completion(event);
        self.failed |= event.failure().is_some();
        let mut deltas = items(&event.0["choices"]).map(|choice| &choice["delta"]);
        let Some(delta) = deltas.find(|delta| delta.is_object()) else { return };
        self.content.push_str(&text_of(&delta["content"]));
        for call in items(&delta["tool_calls"]) {
            // Some servers leave the index out where there is one call.
            let index = call["index"].as_u64().and_then(|index| usize::try_from(index).ok());
            let index = index.unwrap_or(0).min(STREAM_CALLS_MAX - 1);
            if self.calls.len() <= index {
                self.calls.resize_with(index + 1, Default::default);
            }
            let Some(kept) = self.calls.get_mut(index) else { continue };
            let function = &call["function"];
            // llama-cpp-python repeats the name in every delta: it is set once, never added to.
            if kept.0.is_empty() {
                kept.0 = text_of(&function["name"]);
            }
            kept.1.push_str(&arguments_of(&function["arguments"]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: &str = concat!(
        ": comment\r\n\r\n",
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"é\"}}]}\r\n\r\n",
        "event: x\ndata:{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":",
        "{\"name\":\"f\",\"arguments\":\"{\\\"a\\\"\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":",
        "{\"name\":\"f\",\"arguments\":\":1}\"}}]}}]}\n\n",
        "data: {\"choices\":[],\"usage\":{}}\n\ndata: [DONE]"
    );

    /// Cuts the events into pieces of `size` bytes.
    fn stream(text: &str, size: usize) -> StreamedReply {
        let (mut lines, mut stream) = (SseLines::default(), StreamedReply::default());
        for piece in text.as_bytes().chunks(size) {
            lines.push(piece).iter().for_each(|payload| stream.push(payload));
        }
        lines.finish().iter().for_each(|payload| stream.push(payload));
        stream
    }

    #[test]
    fn pieces_of_any_size_give_the_same() {
        let expected = StreamedReply {
            calls: vec![("f".to_owned(), "{\"a\":1}".to_owned())],
            content: "é".to_owned(),
            events: 4,
            broken: 0,
            failed: false,
            done: true,
        };
        for size in 1..EVENTS.len() {
            assert_eq!(stream(EVENTS, size), expected, "pieces of {size}");
        }
    }

    #[test]
    fn error_and_junk_are_noticed() {
        let seen = stream("data: {\"error\":{\"message\":\"x\"}}\n\ndata: <html>\n\n", 7);
        assert!(seen.failed && !seen.done);
        assert_eq!((seen.events, seen.broken), (1, 1));
        assert_eq!(stream("", 1), StreamedReply::default());
    }
}
