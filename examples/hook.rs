//! A session whose window fills, hook by hook, and our entries in a settings file: `cargo run --example hook`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use annalist::domain::Timestamp;
use annalist::hook::{
    Event, Input, Merged, Output, Seen, State, Tail, Thresholds, changes, decide, install,
    last_usage, percent,
};
use annalist::privacy::{Gate, Pii};
use std::error::Error;

/// The end of a transcript in which the last answer took so many tokens.
fn transcript(tokens: u64) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"model":"opus","usage":{{"input_tokens":{tokens}}}}}}}"#
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    let gate = Gate::new(&Pii::ALL);
    let (thresholds, _) = Thresholds::new(None, None, None);
    let context = gate.redact("(the block of `annalist context`)");
    let mut state = State::default();
    let steps = [
        (Event::SessionStart, r#"{"session_id": "s-1", "source": "startup"}"#, 0),
        (Event::UserPromptSubmit, r#"{"session_id": "s-1", "prompt": "go on"}"#, 90_000),
        (Event::UserPromptSubmit, r#"{"session_id": "s-1", "prompt": "go on"}"#, 130_000),
        (Event::UserPromptSubmit, r#"{"session_id": "s-1", "prompt": "go on"}"#, 170_000),
        (
            Event::UserPromptSubmit,
            r#"{"session_id": "s-1", "prompt": "annalist override: go"}"#,
            170_000,
        ),
        (Event::PreCompact, r#"{"session_id": "s-1", "trigger": "auto"}"#, 185_000),
        (Event::SessionEnd, r#"{"session_id": "s-1", "reason": "clear"}"#, 0),
    ];
    for (minute, (event, told, tokens)) in (0..).zip(steps) {
        let (Some(input), _) = Input::read(told, event) else { return Err("no input".into()) };
        let share = match last_usage(transcript(tokens).as_bytes(), true) {
            Tail::Usage(usage) => {
                let window = thresholds.window_tokens(&[usage.model.as_deref()]);
                Some(percent(usage.tokens, window))
            }
            Tail::Nothing | Tail::CutOff => None,
        };
        let seen = Seen { now: Timestamp(minute * 60_000), percent: share, synced_at: None };
        let (answer, next) = decide(state, &input, seen, &thresholds);
        state = next;
        let output = Output::of(answer, &input, &context, "annalist memory sync");
        println!("{event} at {share:?} %: exit {}, enqueue: {}", output.exit, answer.enqueue);
        for text in [output.stdout, output.stderr].iter().flatten() {
            println!("  {text}");
        }
    }
    let theirs = "{\n  \"model\": \"opus\"\n}\n";
    let Merged::Changed(settings) = install(Some(theirs), "annalist") else {
        return Err("our entries are missing there".into());
    };
    println!("\n{}", changes(theirs, &settings, &gate).as_str());
    Ok(())
}
