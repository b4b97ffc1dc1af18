//! Log of the changes of VS Code's chat sessions, as its `ObjectMutationLog` appends it: a line
//! holds the whole session, a value set at a path, elements of a list, or a path to remove.

use super::vscode;
use crate::transcripts::conversation::Conversation;
use crate::transcripts::json::JsonExt;
use serde_json::{Value, json};

/// Kinds of changes.
const INITIAL: u64 = 0;
const SET: u64 = 1;
const PUSH: u64 = 2;
const DELETE: u64 = 3;
/// States of an answer that is not finished yet: pending, and waiting for the user.
const UNFINISHED: [u64; 2] = [0, 4];

/// Applies a change. The session as all changes leave it is read at the first of them.
pub(super) fn delta(json: &Value, talk: &mut Conversation<'_, '_>) {
    if let Some(session) = talk.rebuilt() {
        read(session, talk);
    }
    let session = talk.rebuild();
    let kind = json["kind"].as_u64().unwrap_or_default();
    match kind {
        INITIAL => *session = json["v"].clone(),
        SET => set(session, json["k"].list(), json["v"].clone()),
        PUSH => push(session, json),
        DELETE => delete(session, json["k"].list()),
        _ => talk.unknown(&kind.to_string()),
    }
}

/// Reads the session. The last answer is left out until it is finished, since it will change.
fn read(mut session: Value, talk: &mut Conversation<'_, '_>) {
    let requests = session["requests"].take();
    vscode::chat(&session, talk);
    let count = requests.list().len();
    for (request, number) in requests.list().iter().zip(1..) {
        talk.line = number;
        if number as usize == count && !is_finished(request) {
            let mut begun = request.clone();
            begun["response"] = Value::Null;
            vscode::request(&begun, talk);
        } else {
            vscode::request(request, talk);
        }
    }
}

fn is_finished(request: &Value) -> bool {
    let state = request["modelState"]["value"].as_u64();
    request.has("result")
        || request["isCanceled"] == true
        || state.is_some_and(|state| !UNFINISHED.contains(&state))
}

/// Value at a path. Missing objects are created, and elements at the ends of lists.
fn at<'v>(mut value: &'v mut Value, path: &[Value]) -> Option<&'v mut Value> {
    for step in path {
        if value.is_null() {
            *value = if step.is_u64() { json!([]) } else { json!({}) };
        }
        value = if let Value::Array(list) = value {
            let index = usize::try_from(step.as_u64()?).ok()?;
            if index == list.len() {
                list.push(Value::Null);
            }
            list.get_mut(index)?
        } else {
            value.as_object_mut()?.entry(step.as_str()?).or_insert(Value::Null)
        };
    }
    Some(value)
}

fn set(session: &mut Value, path: &[Value], new: Value) {
    if let Some(old) = at(session, path) {
        *old = new;
    }
}

/// Appends elements to a list, which is first cut off at the index `i`, if there is one.
fn push(session: &mut Value, json: &Value) {
    let Some(list) = at(session, json["k"].list()) else { return };
    if list.is_null() {
        *list = json!([]);
    }
    let Value::Array(list) = list else { return };
    if let Some(end) = json["i"].as_u64().and_then(|end| usize::try_from(end).ok()) {
        list.truncate(end);
    }
    list.extend_from_slice(json["v"].list());
}

fn delete(session: &mut Value, path: &[Value]) {
    let Some((Value::String(key), parents)) = path.split_last() else { return };
    if let Some(Value::Object(fields)) = at(session, parents) {
        fields.remove(key);
    }
}
