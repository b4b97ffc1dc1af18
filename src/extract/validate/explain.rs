//! One violation of the schema in words that a model can act on: the path, what is wrong, what was
//! expected. The words of the answer itself are left out, so that logs may hold them.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::LocationSegment;
use serde_json::Value;

/// The element that is broken, and the problem.
pub(super) fn explain(error: &ValidationError<'_>) -> (Option<(String, usize)>, String) {
    let mut path = String::new();
    let mut list = None;
    let mut place = None;
    let mut field = String::new();
    for segment in error.instance_path().segments() {
        match segment {
            LocationSegment::Property(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&name);
                field = name.into_owned();
                list.get_or_insert_with(|| field.clone());
            }
            LocationSegment::Index(n) => {
                path.push_str(&format!("[{n}]"));
                if place.is_none() {
                    place = list.clone().map(|list| (list, n));
                }
            }
        }
    }
    let in_element = place.is_some() && path.contains('.');
    let nested = in_element && path.ends_with(']');
    let wanted = if nested {
        "a string".to_owned()
    } else if in_element {
        expected(&field).to_owned()
    } else if place.is_some() {
        format!("an object with {}", element(list.as_deref().unwrap_or_default()))
    } else {
        "a list".to_owned()
    };
    let problem = describe(error, &path, &wanted);
    (place, problem)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "another crate's enum, which grows")]
fn describe(error: &ValidationError<'_>, path: &str, wanted: &str) -> String {
    let found = kind(error.instance());
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            format!("{path}.{name}: missing; expected {}", expected(name))
        }
        ValidationErrorKind::Type { .. } => format!("{path}: expected {wanted}; found {found}"),
        ValidationErrorKind::MinLength { .. } => format!("{path}: empty; expected {wanted}"),
        _ => format!("{path}: does not fit the schema ({})", error.kind().keyword()),
    }
}

fn expected(field: &str) -> &'static str {
    match field {
        "options" | "points" => "a list of strings",
        "succeeded" => {
            "true or false (a partial success is false; say in `result` which part worked)"
        }
        "target" => "a string or null",
        _ => "a string",
    }
}

fn element(list: &str) -> &'static str {
    match list {
        "decisions" => "`options`, `chosen` and `rationale`",
        "discussions" => "`topic` and `points`",
        "attempts" => "`action`, `result` and `succeeded`",
        _ => "`intent`, `target` and `summary`",
    }
}

/// What sort of value it is.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
