//! ConKeeper's thresholds, recorded from running it.

use super::tests::SYNC;
use super::window_test::answered;
use super::*;
use crate::domain::Timestamp;
use crate::privacy::Redacted;
use crate::testing::shared;
use serde_json::{Value, json};

#[test]
fn golden_thresholds_hold() {
    let Some(path) = shared("golden/conkeeper.json") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let golden: Value = serde_json::from_str(&text).unwrap();
    let cases = golden["thresholds"].as_array().unwrap();
    assert!(cases.len() >= 8);
    for case in cases {
        golden_case(case);
    }
}

fn golden_case(case: &Value) {
    let name = case["name"].as_str().unwrap();
    // Deliberate differences: an invalid window is no reason to stop working, and a window that
    // holds more than its size is unknown.
    let is_decided_otherwise = name == "config zero window";
    let is_window_known = case["input_tokens"].as_u64().unwrap() <= 200_000;
    let config = case["config"].as_str().unwrap_or_default();
    let number = |key: &str| {
        let line = config.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim_start_matches(':').split('#').next()?.trim().parse().ok()
    };
    let (thresholds, findings) = Thresholds::new(
        number("auto_sync_threshold"),
        number("hard_block_threshold"),
        number("context_window_tokens"),
    );
    assert_eq!(findings.is_empty(), !is_decided_otherwise, "{name}");
    let line = answered(case["input_tokens"].as_u64().unwrap() - 3, "");
    let Tail::Usage(usage) = last_usage(line.as_bytes(), true) else { panic!("{name}") };
    let model = case["settings"].as_str().and_then(model_in_settings);
    let (at_start, configured) = (usage.model.as_deref(), model.as_deref());
    let window = thresholds.window(&usage, &SessionModels { at_start, configured }).tokens;
    let session = case["sid"].as_str().unwrap_or("golden-1");
    let told = json!({"session_id": session, "prompt": "go on"}).to_string();
    let mut state = super::tests::started();
    for (at, expected) in (0..).zip(case["per_prompt"].as_array().unwrap()) {
        let input = Input::read(&told, Event::UserPromptSubmit).0.unwrap();
        let percent = percent(usage.tokens, window);
        let (now, percent) = (Timestamp(at), Some(percent));
        let seen = Seen { now, percent, is_window_known, synced_at: None };
        let (answer, next) = decide(&state, &input, seen, &thresholds);
        state = next;
        let output = Output::of(answer, &input, &Redacted::default(), SYNC);
        let (action, told) = match answer.say {
            Say::Nothing => ("none", None),
            Say::Sync { percent } => ("inject_sync", percent),
            Say::Block { percent, .. } => ("block", Some(percent)),
            Say::Context | Say::Warn => panic!("{name}"),
        };
        if is_decided_otherwise {
            assert_eq!((action, told), ("inject_sync", Some(65)), "{name}");
            continue;
        }
        if !is_window_known {
            assert_eq!(action, if at == 0 { "inject_sync" } else { "none" }, "{name}");
            continue;
        }
        assert_eq!(action, expected["action"], "{name}");
        assert_eq!(u64::from(output.exit), expected["exit"], "{name}");
        assert_eq!(told.map(u64::from), expected["percent"].as_u64(), "{name}");
        assert_eq!(output.stdout.is_none(), action == "none", "{name}");
    }
}
