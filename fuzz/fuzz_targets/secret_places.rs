//! Law: a secret in a tool's output leaves no transcript reader and no gate, wherever it stands and however deep.
#![no_main]

use annalist::{Format, Gate, Pii, RedactionReport, TranscriptItem, read_transcript, redact_entry};
use libfuzzer_sys::fuzz_target;
use serde_json::json;
use std::io::Cursor;
use std::ops::ControlFlow;
use std::sync::LazyLock;

static GATE: LazyLock<Gate> = LazyLock::new(|| Gate::new(&Pii::ALL));

/// A made-up secret in two halves, so that no scanner takes this file for a leak.
const SECRET: (&str, &str) = ("ghp_", "Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56Qr78");

/// Text before and behind a secret.
const PLACES: [(&str, &str); 8] = [
    ("\nexport GITHUB_TOKEN=", "\n"),
    ("\n  token: ", "\n"),
    ("\n| token | ", " |\n"),
    ("\nAuthorization: Bearer ", "\n"),
    (" curl -u me:", " https://example.com "),
    (" git clone https://me:", "@example.com/x.git "),
    ("\n\u{1b}[32mtoken\u{1b}[0m = ", "\u{1b}[0m\n"),
    ("\nmachine example.com login me password ", "\n"),
];

fuzz_target!(|input: (&str, &str, u8, u8)| {
    let (before, after, place, depth) = input;
    let secret = format!("{}{}", SECRET.0, SECRET.1);
    // A text that says the secret itself proves nothing about the one that is planted.
    if before.contains(&secret) || after.contains(&secret) {
        return;
    }
    let (open, close) = PLACES[usize::from(place) % PLACES.len()];
    let mut text = format!("{before}{open}{secret}{close}{after}");
    for _ in 0..depth % 3 {
        text = json!({ "output": text }).to_string();
    }
    let line = json!({"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "content": text}
    ]}});
    let mut sink = |item| {
        if let TranscriptItem::Entry(raw) = item {
            let entry = redact_entry(raw, 0, &GATE, &mut RedactionReport::default());
            assert!(!entry.text.as_str().contains(&secret), "it survived in {text:?}");
        }
        ControlFlow::Continue(())
    };
    let bytes = Cursor::new(line.to_string());
    read_transcript(Format::ClaudeCode, bytes, &mut sink).expect("memory can be read");
});
