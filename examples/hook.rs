//! A session whose window fills, hook by hook, and our entries in a settings file: `cargo run --example hook`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use annalist::Timestamp;
use annalist::{Gate, Pii};
use annalist::{
    HookEvent, HookInput, HookOutput, HookSeen, HookState, HookThresholds, MergedSettings,
    TranscriptTail, decide_hook, install_hooks, last_usage, settings_changes, window_percent,
};
use std::error::Error;

/// The end of a transcript in which the last answer took so many tokens.
fn transcript(tokens: u64) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"model":"opus","usage":{{"input_tokens":{tokens}}}}}}}"#
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    let gate = Gate::new(&Pii::ALL);
    let (thresholds, _) = HookThresholds::new(None, None, None);
    let context = gate.redact("(the block of `annalist context`)");
    let mut state = HookState::default();
    let steps = [
        (HookEvent::SessionStart, r#"{"session_id": "s-1", "source": "startup"}"#, 0),
        (HookEvent::UserPromptSubmit, r#"{"session_id": "s-1", "prompt": "go on"}"#, 90_000),
        (HookEvent::UserPromptSubmit, r#"{"session_id": "s-1", "prompt": "go on"}"#, 130_000),
        (HookEvent::UserPromptSubmit, r#"{"session_id": "s-1", "prompt": "go on"}"#, 170_000),
        (
            HookEvent::UserPromptSubmit,
            r#"{"session_id": "s-1", "prompt": "annalist override: go"}"#,
            170_000,
        ),
        (HookEvent::PreCompact, r#"{"session_id": "s-1", "trigger": "auto"}"#, 185_000),
        (HookEvent::SessionEnd, r#"{"session_id": "s-1", "reason": "clear"}"#, 0),
    ];
    for (minute, (event, told, tokens)) in (0..).zip(steps) {
        let (Some(input), _) = HookInput::read(told, event) else { return Err("no input".into()) };
        let share = match last_usage(transcript(tokens).as_bytes(), true) {
            TranscriptTail::Usage(usage) => {
                let window = thresholds.window_tokens(&[usage.model.as_deref()]);
                Some(window_percent(usage.tokens, window))
            }
            TranscriptTail::Nothing | TranscriptTail::CutOff => None,
        };
        let seen = HookSeen { now: Timestamp(minute * 60_000), percent: share, synced_at: None };
        let (answer, next) = decide_hook(state, &input, seen, &thresholds);
        state = next;
        let output = HookOutput::of(answer, &input, &context, "annalist memory sync");
        println!("{event} at {share:?} %: exit {}, enqueue: {}", output.exit, answer.enqueue);
        for text in [output.stdout, output.stderr].iter().flatten() {
            println!("  {text}");
        }
    }
    let theirs = "{\n  \"model\": \"opus\"\n}\n";
    let MergedSettings::Changed(settings) = install_hooks(Some(theirs), "annalist") else {
        return Err("our entries are missing there".into());
    };
    println!("\n{}", settings_changes(theirs, &settings, &gate).as_str());
    Ok(())
}
