//! Puts right what need not be asked for again: foreign fields, blanks, lengths, missing lists.

use super::LISTS;
use super::tally::Tally;
use crate::domain::{CLAIM_BYTES_MAX, CLAIMS_MAX};
use serde_json::{Map, Value};

/// The fields of an element of each list.
const FIELDS: [(&str, &[&str]); 4] = [
    ("decisions", &["options", "chosen", "rationale"]),
    ("discussions", &["topic", "points"]),
    ("attempts", &["action", "result", "succeeded"]),
    ("requests", &["intent", "target", "summary"]),
];
/// Options or points that are kept of one claim; a model that lists more repeats itself.
const ITEMS_MAX: usize = 100;
/// Texts that are one line.
const ONE_LINE: [&str; 3] = ["intent", "target", "summary"];
/// Names under which models try to say where something comes from.
const PROVENANCE: [&str; 24] = [
    "source",
    "sources",
    "source_ref",
    "source_refs",
    "session",
    "session_id",
    "segment_id",
    "provenance",
    "evidence",
    "citation",
    "citations",
    "entry",
    "entries",
    "entry_id",
    "entry_index",
    "index",
    "range",
    "line",
    "id",
    "timestamp",
    "timestamps",
    "time",
    "date",
    "created_at",
];

/// Tidies the whole answer in place.
pub(super) fn tidy(root: &mut Map<String, Value>, tally: &mut Tally) {
    root.retain(|key, _| keep(key, &LISTS, tally, || "the whole".to_owned()));
    for (list, fields) in FIELDS {
        match root.get_mut(list) {
            None | Some(Value::Null) => {
                tally.at("missing-array", || list.to_owned());
                root.insert(list.to_owned(), Value::Array(Vec::new()));
            }
            Some(Value::Array(elements)) => {
                for n in CLAIMS_MAX..elements.len() {
                    tally.count("too-many-claims", list, n);
                }
                elements.truncate(CLAIMS_MAX);
                for (n, element) in elements.iter_mut().enumerate() {
                    if let Value::Object(element) = element {
                        tidy_element(element, fields, tally, &|| format!("{list}[{n}]"));
                    }
                }
            }
            Some(Value::Object(_) | Value::String(_) | Value::Number(_) | Value::Bool(_)) => {}
        }
    }
}

fn tidy_element(
    element: &mut Map<String, Value>,
    fields: &[&str],
    tally: &mut Tally,
    place: &dyn Fn() -> String,
) {
    element.retain(|key, _| keep(key, fields, tally, place));
    for (key, value) in element.iter_mut() {
        match value {
            Value::String(text) => {
                if ONE_LINE.contains(&key.as_str()) {
                    collapse(text);
                }
                tidy_text(text, tally, place);
                if text.is_empty() && key == "target" {
                    *value = Value::Null;
                }
            }
            Value::Array(items) => {
                if items.len() > ITEMS_MAX {
                    tally.at("too-many-items", place);
                    items.truncate(ITEMS_MAX);
                }
                for item in items.iter_mut() {
                    if let Value::String(text) = item {
                        tidy_text(text, tally, place);
                    }
                }
                items.retain(|item| {
                    let empty = item.as_str() == Some("");
                    if empty {
                        tally.at("empty-item", place);
                    }
                    !empty
                });
            }
            Value::Object(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }
}

/// Whether `key` is one of `known`; if not, it is counted.
fn keep(key: &str, known: &[&str], tally: &mut Tally, place: impl Fn() -> String) -> bool {
    if known.contains(&key) {
        return true;
    }
    let ours = PROVENANCE.contains(&key.to_ascii_lowercase().as_str());
    tally.at(if ours { "model-provenance" } else { "unknown-field" }, place);
    false
}

fn tidy_text(text: &mut String, tally: &mut Tally, place: &dyn Fn() -> String) {
    if text.trim().len() < text.len() {
        *text = text.trim().to_owned();
    }
    if text.len() > CLAIM_BYTES_MAX {
        let mut end = CLAIM_BYTES_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.truncate(text.trim_end().len());
        tally.at("cut-string", place);
    }
}

/// Makes one line of it: every run of blanks becomes one blank.
fn collapse(text: &mut String) {
    let clean = |text: &str| {
        !text.contains("  ") && !text.contains(|c: char| c != ' ' && c.is_whitespace())
    };
    if !clean(text) {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
}
