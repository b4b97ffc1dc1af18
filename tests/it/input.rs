//! Transcripts of any length, in our own words; each talk holds one decision of its own.

use serde_json::{Value, json};

/// The id of the session in [`claude`].
pub(crate) const SESSION: &str = "7b0c5a52-0d3e-4d3c-9a57-0c8f3f2b6a10";

/// The words of talk `n`: a decision among enough other words to fill a short slice.
pub(crate) fn talk(n: usize) -> [String; 2] {
    let filler = format!("The weather station on roof {n} sends a line a minute. ").repeat(11);
    [
        format!("{filler}Which store shall roof {n} use?"),
        format!("We chose depot-{n} over cellar-{n} because damp-{n} ruins paper. {filler}"),
    ]
}

/// `talks` talks as Claude Code writes them, a line each; two lines a talk.
pub(crate) fn claude(talks: std::ops::Range<usize>) -> String {
    let mut text = String::new();
    for n in talks {
        for (side, words) in talk(n).iter().enumerate() {
            text.push_str(&line(n, side, words).to_string());
            text.push('\n');
        }
    }
    text
}

/// One record of Claude Code.
fn line(n: usize, side: usize, words: &str) -> Value {
    let uuid = |n: usize, side: usize| format!("{n:08x}-abcd-4bcd-8bcd-{side:012x}");
    let parent = match (n, side) {
        (0, 0) => Value::Null,
        (_, 0) => json!(uuid(n - 1, 1)),
        _ => json!(uuid(n, 0)),
    };
    let message = match side {
        0 => json!({"role": "user", "content": words}),
        _ => json!({
            "id": format!("msg_{n}"), "type": "message", "role": "assistant", "model": "none",
            "content": [{"type": "text", "text": words}], "stop_reason": "end_turn",
        }),
    };
    json!({
        "parentUuid": parent, "isSidechain": false, "userType": "external",
        "cwd": "/home/dev/roofs", "sessionId": SESSION, "version": "2.1.0",
        "type": if side == 0 { "user" } else { "assistant" }, "message": message,
        "uuid": uuid(n, side),
        "timestamp": format!("2026-05-04T{:02}:{:02}:{:02}.000Z", 6 + n / 60, n % 60, side),
    })
}

/// What a model would hand over for the words of a slice: every decision of a talk.
pub(crate) fn extracted(words: &str) -> Value {
    let decisions: Vec<Value> = words
        .split("We chose ")
        .skip(1)
        .filter_map(|rest| {
            let (chosen, rest) = rest.split_once(" over ")?;
            let (other, rest) = rest.split_once(" because ")?;
            let (why, _) = rest.split_once('.')?;
            Some(json!({"options": [chosen, other], "chosen": chosen, "rationale": why}))
        })
        .collect();
    json!({"decisions": decisions, "discussions": [], "attempts": [], "requests": []})
}
