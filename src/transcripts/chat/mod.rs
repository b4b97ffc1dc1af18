//! Conversations as APIs and web clients store them. Arrays and objects are streamed message by
//! message, JSONL record by record. OpenAI's and Anthropic's files differ only in the messages.

mod log;
mod messages;
mod parts;
pub(super) mod chatgpt;
#[cfg(test)]
mod tests;

pub(super) use messages::{MessageReader, call_text, has_known_role, is_message, time_of};
pub(super) use parts::words_of;

use super::cutter::{Cut, Cutter, Element, FIELD_BYTES_MAX, Layout, Line, each_line, layout};
use super::emit::Emit;
use super::json::{self, JsonExt};
use super::raw::{Input, Sink};
use crate::domain::LINE_BYTES_MAX;
use log::{ChatLog, LISTS, Record, SYSTEMS, answers, head};
use serde_json::Value;
use std::io;

pub(super) fn read(input: &mut dyn Input, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut log = ChatLog::new(Emit::new(sink));
    match layout(input)? {
        Layout::Lines => each_line(input, |line| {
            read_line(&line, &mut log);
            !log.emit.stopped()
        })?,
        Layout::Array => array(&mut Cutter::new(input), &mut log)?,
        Layout::Object => object(input, &mut log)?,
    }
    log.close();
    log.emit.finish();
    Ok(())
}

fn read_line(line: &Line<'_>, log: &mut ChatLog<'_>) {
    let number = line.number;
    if !log.emit.accepts(line) {
        return log.pass();
    }
    if line.text.trim().is_empty() {
        return;
    }
    match json::parse(&line.text) {
        // One message per line: one session.
        Ok(json) if is_lone(&json, log) => {
            log.lone_message(&json, number, number);
        }
        Ok(json) => log.record(&json, Some(number), number),
        Err(expected) => {
            if line.complete {
                log.pass();
            }
            log.emit.unreadable(line, &expected);
        }
    }
}

/// True if a value belongs to a session without a record around it; what is neither message nor record ends none.
fn is_lone(json: &Value, log: &ChatLog<'_>) -> bool {
    let (is_message, is_open) = (is_message(json), log.is_open());
    is_message && is_open || (is_message || is_open) && Record::of(json).is_none()
}

/// Streams an array of messages (one session) or of records (a session each).
fn array(cutter: &mut Cutter<&mut dyn Input>, log: &mut ChatLog<'_>) -> io::Result<()> {
    let cut = cutter.elements(LINE_BYTES_MAX, |it| {
        match log.emit.element(&it) {
            Some(json) if is_lone(&json, log) => {
                log.lone_message(&json, it.number, it.line);
            }
            Some(json) => log.record(&json, None, it.line),
            // An unreadable record counts.
            None if !it.cut.is_end() && !log.is_open() => log.pass(),
            None => {}
        }
        !log.emit.stopped()
    })?;
    log.emit.rest(cutter, cut)
}

/// Reads one object. Streams its messages after the fields around them are known.
fn object(input: &mut dyn Input, log: &mut ChatLog<'_>) -> io::Result<()> {
    let (mut beside, mut list) = (String::new(), None);
    Cutter::new(&mut *input).fields(|cutter, key, buffer| {
        if LISTS.contains(&key) && cutter.peek()? == Some(b'[') && list.is_none() {
            list = Some(key.to_owned());
            return cutter.value(buffer, 0);
        }
        let cut = cutter.value(buffer, FIELD_BYTES_MAX)?;
        if cut == Cut::Whole {
            let value = log.emit.text(buffer, cutter.line());
            // A broken field is dropped alone.
            let is_valid = serde_json::from_str::<serde::de::IgnoredAny>(&value).is_ok();
            if is_valid && beside.len() + value.len() <= FIELD_BYTES_MAX {
                let comma = if beside.is_empty() { "" } else { "," };
                beside += &format!("{comma}{}:{value}", Value::from(key));
            }
        }
        Ok(cut)
    })?;
    input.rewind()?;
    let mut cutter = Cutter::new(input);
    let Some(list) = list else { return nested(&mut cutter, log) };
    let beside = json::parse(&format!("{{{beside}}}")).unwrap_or(Value::Null);
    log.open(head(&beside));
    log.system(beside.first(&SYSTEMS), 1);
    let (mut last, mut said) = (0, Value::Null);
    let (cut, is_reported) = cutter.lists(
        LINE_BYTES_MAX,
        |key| key == list,
        |it| {
            last = it.number;
            if let Some(mut json) = log.emit.element(&it) {
                log.message(&json, it.number, it.line);
                said = json.get_mut("content").map(Value::take).unwrap_or_default();
            }
            !log.emit.stopped()
        },
    )?;
    if !is_reported {
        log.emit.cut(cut, cutter.line());
    }
    let is_new = |json: &&Value| said.is_null() || json["content"] != said;
    let told = answers(&beside).filter(is_new).zip(last + 1..);
    told.for_each(|(json, line)| log.message(json, line, 1));
    log.emit.rest(&mut cutter, cut)
}

/// Reads one object whose messages are nested deeper.
fn nested(cutter: &mut Cutter<&mut dyn Input>, log: &mut ChatLog<'_>) -> io::Result<()> {
    let mut buffer = Vec::new();
    let cut = cutter.value(&mut buffer, LINE_BYTES_MAX)?;
    let line = if cut == Cut::Whole { 1 } else { cutter.line() };
    if let Some(json) = log.emit.element(&Element { cut, bytes: &buffer, line, number: 1 }) {
        log.record(&json, None, 1);
    }
    Ok(())
}
