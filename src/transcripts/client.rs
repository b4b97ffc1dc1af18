//! Table-driven reader of clients' own files. A client lists its kinds of records, each with a
//! function that passes the record on to a [`Conversation`]. Walks JSONL, lists and documents.

use super::conversation::Conversation;
use super::cutter::{Cut, Cutter, Element, FIELD_BYTES_MAX, Layout, each_line, layout};
use super::emit::Emit;
use super::json::{self, JsonExt};
use super::raw::{Input, Sink};
use crate::domain::{Format, LINE_BYTES_MAX, Severity};
use serde_json::{Map, Value};
use std::io;

pub(super) type ReadRecord = fn(&Value, &mut Conversation<'_>);

/// Client whose files have records of several kinds.
pub(super) struct Client {
    pub(super) format: Format,
    /// Fields that identify one of its lines; see [`has_fields`].
    pub(super) lines: &'static [&'static [&'static str]],
    /// Fields that identify a whole file, or the first element of a list.
    pub(super) documents: &'static [&'static [&'static str]],
    /// Field of a document with its records, or several separated by `|`. The fields beside it form
    /// the first record, in which the list itself is null.
    pub(super) list: &'static str,
    pub(super) kind: fn(&Value) -> &str,
    /// Readers by kind; `|` separates kinds that are read the same way.
    pub(super) kinds: &'static [(&'static str, ReadRecord)],
}

/// Kind under which the fields beside a list are read once more after it.
pub(super) const AT_END: &str = "at end";

/// Ignores a record: bookkeeping, reasoning, copies.
pub(super) fn ignore(_: &Value, _: &mut Conversation<'_>) {}

/// Reads a file twice: replacements, rewinds and titles must be known before the first entry.
pub(super) fn read(client: &Client, input: &mut dyn Input, sink: &mut Sink<'_>) -> io::Result<()> {
    let layout = layout(input)?;
    let mut first = Conversation::default();
    walk(client, layout, input, &mut first)?;
    input.rewind()?;
    let mut second = first.again(Emit::new(sink));
    walk(client, layout, input, &mut second)?;
    second.finish();
    Ok(())
}

fn walk(
    client: &Client,
    layout: Layout,
    input: &mut dyn Input,
    talk: &mut Conversation<'_>,
) -> io::Result<()> {
    match layout {
        Layout::Lines => each_line(input, |line| {
            if talk.emit.accepts(&line) && !line.text.trim().is_empty() {
                talk.line = line.number;
                let (values, error) = json::parse_line(&line.text);
                values.iter().for_each(|json| record(client, json, talk));
                if let Some(expected) = error {
                    talk.emit.unreadable(&line, &expected);
                }
            }
            !talk.emit.stopped()
        }),
        Layout::Array => {
            let mut cutter = Cutter::new(input);
            let cut = cutter.elements(LINE_BYTES_MAX, |it| element(client, &it, talk))?;
            talk.emit.rest(&mut cutter, cut)
        }
        Layout::Object => document(client, input, talk),
    }
}

/// Reads one element of a list; returns whether to continue.
fn element(client: &Client, element: &Element<'_>, talk: &mut Conversation<'_>) -> bool {
    talk.line = element.number;
    if let Some(json) = talk.emit.element(element) {
        record(client, &json, talk);
    }
    !talk.emit.stopped()
}

/// Reads one object: the fields beside its list, then the list.
fn document(client: &Client, input: &mut dyn Input, talk: &mut Conversation<'_>) -> io::Result<()> {
    let mut beside = Map::new();
    let bytes_max = if client.list.is_empty() { LINE_BYTES_MAX } else { FIELD_BYTES_MAX };
    Cutter::new(&mut *input).fields(|cutter, key, buffer| {
        let is_list = is_list(client, key) && cutter.peek()? == Some(b'[');
        let cut = cutter.value(buffer, if is_list { 0 } else { bytes_max })?;
        if is_list {
            beside.insert(key.to_owned(), Value::Null);
        } else if cut == Cut::Whole
            && let Ok(value) = json::parse(&String::from_utf8_lossy(buffer))
        {
            beside.insert(key.to_owned(), value);
        }
        Ok(cut)
    })?;
    talk.line = 1;
    let beside = Value::Object(beside);
    record(client, &beside, talk);
    input.rewind()?;
    let mut cutter = Cutter::new(input);
    let is_list = |key: &str| is_list(client, key);
    let (cut, is_reported) =
        cutter.lists(LINE_BYTES_MAX, is_list, |it| element(client, &it, talk))?;
    if !is_reported {
        talk.emit.cut(cut, cutter.line());
    }
    if let Some(read) = read_of(client.kinds, AT_END).filter(|_| cut == Cut::Whole) {
        read(&beside, talk);
    }
    talk.emit.rest(&mut cutter, cut)
}

fn is_list(client: &Client, key: &str) -> bool {
    client.list.split('|').any(|list| list == key && !list.is_empty())
}

/// Reads one record, or each of a list of them.
pub(super) fn record(client: &Client, json: &Value, talk: &mut Conversation<'_>) {
    if json.is_array() {
        return json.list().iter().for_each(|json| record(client, json, talk));
    }
    if !json.is_object() {
        let detail = "expected a JSON object; skipped";
        return talk.emit.finding(Severity::Warning, "bad-line", talk.line, detail);
    }
    read_as(client.kinds, (client.kind)(json), json, talk);
}

/// Reads the records of a document that is one line of a file.
pub(super) fn records(client: &Client, list: &Value, talk: &mut Conversation<'_>) {
    for (json, number) in list.list().iter().zip(1..) {
        talk.line = number;
        record(client, json, talk);
    }
}

/// Reads a record of `kind`; reports it if the table does not have it.
pub(super) fn read_as(
    kinds: &[(&'static str, ReadRecord)],
    kind: &str,
    json: &Value,
    talk: &mut Conversation<'_>,
) {
    match read_of(kinds, kind) {
        Some(read) => read(json, talk),
        None => talk.unknown(kind),
    }
}

pub(super) fn read_of(kinds: &[(&'static str, ReadRecord)], kind: &str) -> Option<ReadRecord> {
    let row = kinds.iter().find(|(names, _)| names.split('|').any(|name| name == kind));
    row.map(|(_, read)| *read)
}

/// True if a value matches all of `fields`: `a.0.b` is a path, `!a` an absent field, `a[]` a list,
/// `a=x|y` a value, `a=.` a text that contains a dot.
pub(super) fn has_fields(json: &Value, fields: &[&str]) -> bool {
    fields.iter().all(|field| {
        if let Some(absent) = field.strip_prefix('!') {
            return json[absent].is_null() && !(absent.contains('.') && has_path(json, absent));
        }
        if let Some(list) = field.strip_suffix("[]") {
            return json[list].is_array();
        }
        match field.split_once('=') {
            Some((key, ".")) => json[key].as_str().is_some_and(|text| text.contains('.')),
            Some((key, values)) => {
                json[key].as_str().is_some_and(|text| values.split('|').any(|it| it == text))
            }
            None => has_path(json, field),
        }
    })
}

fn has_path(json: &Value, path: &str) -> bool {
    if json.get(path).is_some() {
        return true;
    }
    let Some((head, rest)) = path.split_once('.') else { return false };
    match head {
        "0" => json.list().first().is_some_and(|first| has_path(first, rest)),
        head => has_path(&json[head], rest),
    }
}
