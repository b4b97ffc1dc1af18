//! Why a document is refused, told by the published schema: the first thing that does not fit it. Names
//! and values of the document are never repeated, since both may be words of somebody.

use super::handed::BadSlice;
use super::schema::schema;
use crate::domain::Timestamp;
use crate::source::json::Json;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// How alike a name must be to a known one to be suggested, 0 to 1.
const ALIKE_MIN: f64 = 0.7;

/// What others call the same thing.
const OTHER_NAMES: [(&str, &str); 20] = [
    ("user", "person"),
    ("human", "person"),
    ("ai", "assistant"),
    ("agent", "assistant"),
    ("model", "assistant"),
    ("system", "client"),
    ("developer", "client"),
    ("function", "tool"),
    ("role", "speaker"),
    ("content", "text"),
    ("message", "text"),
    ("messages", "entries"),
    ("type", "kind"),
    ("timestamp", "at"),
    ("time", "at"),
    ("name", "tool"),
    ("success", "succeeded"),
    ("ok", "succeeded"),
    ("error", "failed"),
    ("cancelled", "aborted"),
];

/// The first thing in `json` that is not as the schema has it; none if all of it is.
pub(super) fn explain(json: &Json<'_>) -> Option<BadSlice> {
    fits(json, schema(), "").err()
}

fn bad(path: &str, what: impl Into<String>) -> Result<(), BadSlice> {
    Err(BadSlice::new(path, what))
}

fn fits(json: &Json<'_>, schema: &Value, path: &str) -> Result<(), BadSlice> {
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        let is_null = |choice: &&Value| kinds(choice).contains(&"null");
        let inner = choices.iter().find(|choice| !is_null(choice));
        return match inner {
            Some(_) if json.is_null() && choices.iter().any(|choice| is_null(&choice)) => Ok(()),
            Some(inner) => fits(json, inner, path),
            None => Ok(()),
        };
    }
    if let Some(choices) = schema.get("oneOf").and_then(Value::as_array) {
        let known: Vec<&str> =
            choices.iter().filter_map(|choice| choice["const"].as_str()).collect();
        return one_of(json, &known, path);
    }
    let kinds = kinds(schema);
    let is_number = matches!(json, Json::Number(_));
    let is_of = |kind: &&str| kind_of(json) == *kind || (*kind == "integer" && is_number);
    if !kinds.iter().any(is_of) {
        let wanted = kinds.first().copied().unwrap_or_default();
        let found = shown(kind_of(json));
        return bad(path, format!("expected {}, found {found}", wanted_of(wanted, schema)));
    }
    match json {
        Json::Map(fields) => object(fields, schema, path),
        Json::List(list) => self::list(list, schema, path),
        Json::Text(text) => self::text(text, schema, path),
        Json::Number(_) => number(json, schema, path),
        Json::Null | Json::Bool(_) => Ok(()),
    }
}

fn object(fields: &[(Cow<'_, str>, Json<'_>)], schema: &Value, path: &str) -> Result<(), BadSlice> {
    let none = Map::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let names: Vec<&str> = known.keys().map(String::as_str).collect();
    for (number, (name, _)) in (1..).zip(fields) {
        if !known.contains_key(name.as_ref()) {
            let hint = hint(name, &names);
            return bad(path, format!("field {number} has a name that is not known: {hint}"));
        }
        let before = fields.iter().take(number - 1);
        if before.into_iter().any(|(other, _)| other == name) {
            return bad(&join(path, name), "stands there twice: expected one");
        }
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        if !fields.iter().any(|(field, _)| field == name) {
            let kind = kinds(&known[name]).first().copied().unwrap_or("string");
            let wanted = wanted_of(kind, &known[name]);
            return bad(&join(path, name), format!("is missing: expected {wanted}"));
        }
    }
    for (name, value) in fields {
        if let Some(schema) = known.get(name.as_ref()) {
            fits(value, schema, &join(path, name))?;
        }
    }
    Ok(())
}

fn list(list: &[Json<'_>], schema: &Value, path: &str) -> Result<(), BadSlice> {
    if let Some(most) = schema.get("maxItems").and_then(Value::as_u64)
        && list.len() as u64 > most
    {
        return bad(path, format!("expected at most {most} elements, found {}", list.len()));
    }
    let Some(of_each) = schema.get("items") else { return Ok(()) };
    let mut elements = list.iter().enumerate();
    elements.try_for_each(|(number, json)| fits(json, of_each, &format!("{path}[{number}]")))
}

fn text(text: &str, schema: &Value, path: &str) -> Result<(), BadSlice> {
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
    let (least, most) = (bound("minLength").unwrap_or(0), bound("maxLength").unwrap_or(u64::MAX));
    let length = text.chars().count() as u64;
    if length < least {
        return bad(path, "is empty: expected text, or leave it out");
    }
    if length > most {
        return bad(path, format!("expected at most {most} characters, found {length}"));
    }
    if schema.get("format").is_some() && Timestamp::of_rfc3339(text).is_none() {
        return bad(path, format!("expected {}", wanted_of("string", schema)));
    }
    Ok(())
}

fn number(json: &Json<'_>, schema: &Value, path: &str) -> Result<(), BadSlice> {
    let bound = |name: &str| schema.get(name).and_then(Value::as_i64);
    let (least, most) = (bound("minimum"), bound("maximum"));
    let inside = whole(json).is_some_and(|number| {
        least.is_none_or(|least| least <= number) && most.is_none_or(|most| number <= most)
    });
    if inside { Ok(()) } else { bad(path, format!("expected {}", wanted_of("integer", schema))) }
}

fn one_of(json: &Json<'_>, known: &[&str], path: &str) -> Result<(), BadSlice> {
    match json.text() {
        Some(name) if known.contains(&name) => Ok(()),
        Some(name) => bad(path, format!("has a name that is not known: {}", hint(name, known))),
        None => bad(path, format!("{}, found {}", one_of_these(known), shown(kind_of(json)))),
    }
}

/// The known name that was meant, or all of them.
fn hint(name: &str, known: &[&str]) -> String {
    let name = name.to_ascii_lowercase();
    let other = OTHER_NAMES.iter().find(|(other, own)| *other == name && known.contains(own));
    let alike = |known: &&&str| strsim::jaro_winkler(&name, known);
    let nearest = known.iter().max_by(|one, other| alike(one).total_cmp(&alike(other)));
    let nearest = nearest.filter(|nearest| alike(nearest) >= ALIKE_MIN).copied();
    match other.map(|(_, own)| *own).or(nearest) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => one_of_these(known),
    }
}

fn one_of_these(known: &[&str]) -> String {
    format!("expected one of {}", known.join(", "))
}

/// The JSON types that a schema lets in.
fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => vec![],
    }
}

fn kind_of(json: &Json<'_>) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::Text(_) => "string",
        Json::List(_) => "array",
        Json::Map(_) => "object",
    }
}

/// A number without a point.
fn whole(json: &Json<'_>) -> Option<i64> {
    match json {
        Json::Number(number) => number.as_i64(),
        Json::Null | Json::Bool(_) | Json::Text(_) | Json::List(_) | Json::Map(_) => None,
    }
}

/// A JSON type in words.
fn shown(kind: &str) -> &str {
    match kind {
        "boolean" => "true or false",
        "string" => "text",
        "number" => "a number",
        "array" => "a list",
        "object" => "an object",
        kind => kind,
    }
}

/// What the schema wants, in words.
fn wanted_of(kind: &str, schema: &Value) -> String {
    match (kind, schema.get("minimum"), schema.get("maximum")) {
        ("integer", Some(least), Some(most)) => format!("a whole number from {least} to {most}"),
        ("integer", _, _) => "a whole number".to_owned(),
        ("string", _, _) if schema.get("format").is_some() => {
            "a time in RFC 3339 with its zone, such as 2026-11-21T09:00:00Z".to_owned()
        }
        (kind, _, _) => shown(kind).to_owned(),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
