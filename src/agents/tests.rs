//! Input, decisions and output of hooks.

use super::input::SessionName;
use super::*;
use crate::domain::Timestamp;
use crate::privacy::{Gate, Redacted};
use serde_json::{Value, json};

pub(super) const SYNC: &str = "annalist memory sync";

/// State of a session that received its context.
pub(super) fn started() -> State {
    State { is_started: true, ..State::default() }
}

/// One session, with one minute between hooks.
pub(super) struct Session {
    name: &'static str,
    thresholds: Thresholds,
    state: State,
    minute: i64,
}

impl Session {
    pub(super) fn new() -> Session {
        let thresholds = Thresholds::default();
        Session { name: "s-1", thresholds, state: started(), minute: 0 }
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.minute * 60_000)
    }

    fn told(&self, event: Event, more: &Value) -> Input {
        let mut told = json!({"session_id": self.name, "hook_event_name": event.name()});
        let fields = told.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        Input::read(&told.to_string(), event).0.unwrap()
    }

    pub(super) fn hook(&mut self, event: Event, more: &Value, percent: Option<u32>) -> Answer {
        self.minute += 1;
        let seen = Seen { now: self.now(), percent, is_window_known: true, synced_at: None };
        let input = self.told(event, more);
        let (answer, state) = decide(&self.state, &input, seen, &self.thresholds);
        // The state passes through a file.
        let (read, findings) = State::read(&serde_json::to_string(&state).unwrap());
        assert_eq!((&read, findings.len()), (&state, 0));
        self.state = state;
        answer
    }

    fn prompt(&mut self, words: &str, percent: u32) -> Say {
        self.hook(Event::UserPromptSubmit, &json!({"prompt": words}), Some(percent)).say
    }

    pub(super) fn syncs(&mut self) {
        self.minute += 1;
        self.state.synced_at = Some(self.now());
    }
}

#[test]
fn the_first_prompt_of_a_session_whose_start_was_not_told_gets_its_context_once() {
    let mut session = Session { state: State::default(), ..Session::new() };
    assert_eq!(session.prompt("go on", 10), Say::Context);
    assert_eq!(session.prompt("go on", 10), Say::Nothing);
    let mut told = Session { state: State::default(), ..Session::new() };
    assert_eq!(told.hook(Event::SessionStart, &json!({}), None).say, Say::Context);
    assert_eq!(told.prompt("go on", 10), Say::Nothing);
}

fn sync(percent: u32) -> Say {
    Say::Sync { percent: Some(percent) }
}

fn block(percent: u32) -> Say {
    Say::Block { percent, hard_percent: 80 }
}

#[test]
fn a_sync_is_asked_for_once_and_then_prompts_wait_for_it() {
    let mut session = Session::new();
    assert_eq!(session.prompt("a", 59), Say::Nothing);
    assert_eq!(session.prompt("b", 60), sync(60));
    assert_eq!(session.prompt("c", 79), Say::Nothing);
    assert_eq!(session.prompt("d", 80), block(80));
    assert_eq!(session.prompt("d", 80), block(80), "and the third prompt too");
    session.syncs();
    assert_eq!(session.prompt("d", 80), Say::Nothing);
    assert_eq!(session.prompt("e", 99), Say::Nothing);
}

#[test]
fn nobody_is_held_up_by_a_window_that_is_assumed() {
    let mut session = Session::new();
    let input = session.told(Event::UserPromptSubmit, &json!({"prompt": "a"}));
    for expected in [Say::Sync { percent: None }, Say::Nothing, Say::Nothing] {
        let (now, percent) = (session.now(), Some(99));
        let seen = Seen { now, percent, is_window_known: false, synced_at: None };
        let (answer, state) = decide(&session.state, &input, seen, &session.thresholds);
        assert_eq!(answer.say, expected);
        session.state = state;
    }
}

#[test]
fn a_sync_before_the_hard_threshold_does_not_count_for_it() {
    let mut session = Session::new();
    assert_eq!(session.prompt("a", 70), sync(70));
    session.syncs();
    assert_eq!(session.prompt("b", 85), block(85));
    session.syncs();
    assert_eq!(session.prompt("b", 85), Say::Nothing);
    assert_eq!(session.prompt("c", 10), Say::Nothing, "the window was emptied");
    assert_eq!(session.prompt("d", 85), block(85), "and filled again since");
}

#[test]
fn the_hard_threshold_is_met_where_a_turn_ends() {
    let mut session = Session::new();
    assert_eq!(session.prompt("a", 70), sync(70));
    session.hook(Event::Stop, &json!({}), Some(90));
    session.syncs();
    assert_eq!(session.prompt("b", 90), Say::Nothing);
}

#[test]
fn a_sync_that_others_keep_counts_too() {
    let mut session = Session::new();
    assert_eq!(session.prompt("a", 90), sync(90));
    let input = session.told(Event::UserPromptSubmit, &json!({"prompt": "b"}));
    let at = |millis: i64| Timestamp(session.now().0 + millis);
    for (synced_at, expected) in [(at(1), Say::Nothing), (at(0), block(90)), (at(9_999), block(90))]
    {
        let seen = Seen {
            now: at(100),
            percent: Some(90),
            is_window_known: true,
            synced_at: Some(synced_at),
        };
        let (answer, _) = decide(&session.state, &input, seen, &session.thresholds);
        assert_eq!(answer.say, expected, "{synced_at:?}");
    }
}

#[test]
fn a_person_may_go_on_without_a_sync_until_the_window_was_emptied() {
    let mut session = Session::new();
    assert_eq!(session.prompt("a", 85), sync(85));
    assert_eq!(session.prompt("b", 85), block(85));
    assert_eq!(session.prompt("annalist overrides nothing", 85), block(85));
    assert_eq!(session.prompt(" Annalist override: b", 85), Say::Nothing);
    assert_eq!(session.prompt("c", 90), Say::Nothing);
    assert_eq!(session.prompt("d", 20), Say::Nothing);
    assert_eq!(session.prompt("e", 81), block(81));
}

#[test]
fn the_prompt_that_syncs_is_never_held_up() {
    let mut session = Session::new();
    assert_eq!(session.prompt("a", 85), sync(85));
    assert_eq!(session.prompt("/memory-sync", 85), sync(85));
    assert_eq!(session.prompt("/memory-sync-later", 85), sync(85));
    assert_eq!(session.prompt("/memory-synced", 85), block(85));
    session.name = "s-2";
    session.state = started();
    assert_eq!(session.prompt("/memory-sync", 5), sync(5));
    assert_eq!(session.prompt("a", 61), Say::Nothing, "it was asked for");
}

#[test]
fn a_compaction_is_warned_about_and_never_held_up() {
    let (auto, manual) = (json!({"trigger": "auto"}), json!({"trigger": "manual"}));
    for (more, percent, say) in [
        (&auto, Some(91), Say::Warn),
        (&auto, Some(70), Say::Warn),
        (&auto, None, Say::Warn),
        (&manual, Some(90), Say::Warn),
        (&manual, Some(89), Say::Nothing),
        (&manual, None, Say::Nothing),
    ] {
        let mut session = Session::new();
        let answer = session.hook(Event::PreCompact, more, percent);
        assert_eq!(answer, Answer { say, enqueue: true }, "{more} {percent:?}");
        session.syncs();
        assert_eq!(session.hook(Event::PreCompact, more, percent).say, Say::Nothing);
    }
    let mut session = Session::new();
    let input = session.told(Event::PreCompact, &auto);
    let warned = session.hook(Event::PreCompact, &auto, None);
    let output = Output::of(warned, &input, &Redacted::default(), SYNC);
    assert_eq!((output.exit, output.stderr), (0, None));
    let told: Value = serde_json::from_str(&output.stdout.unwrap()).unwrap();
    assert_eq!(told.as_object().unwrap().len(), 1);
    assert!(told["systemMessage"].as_str().unwrap().contains("not synced"), "{told}");
}

#[test]
fn what_was_kept_is_forgotten_after_four_hours() {
    let mut session = Session::new();
    assert_eq!(session.prompt("a", 85), sync(85));
    session.minute += 239;
    assert_eq!(session.prompt("b", 85), sync(85), "asked again");
    assert_eq!(session.prompt("b", 85), block(85));
    session.minute -= 600;
    assert_eq!(session.prompt("b", 85), sync(85), "written by a clock that went back since");
    let (state, findings) = State::read("{\"nudged_at\": \"yesterday\"");
    assert_eq!((state, findings.len()), (State::default(), 1));
    assert_eq!(State::read("{\"other\": 1}"), (State::default(), vec![]));
}

#[test]
fn a_session_that_starts_has_its_context_and_one_that_ends_is_handed_over() {
    let mut session = Session::new();
    for source in ["startup", "resume", "clear", "compact", "fork"] {
        let answer = session.hook(Event::SessionStart, &json!({"source": source}), None);
        assert_eq!(answer, Answer { say: Say::Context, enqueue: false });
    }
    for event in [Event::Stop, Event::SubagentStop, Event::SessionEnd] {
        let answer = session.hook(event, &json!({"stop_hook_active": true, "reason": "x"}), None);
        assert_eq!(answer, Answer { say: Say::Nothing, enqueue: true });
        let input = session.told(event, &json!({}));
        assert_eq!(Output::of(answer, &input, &Redacted::default(), SYNC), Output::default());
    }
}

#[test]
fn context_is_added_in_the_clients_format_or_not_at_all() {
    let mut session = Session::new();
    let answer = session.hook(Event::SessionStart, &json!({"source": "startup"}), None);
    let input = session.told(Event::SessionStart, &json!({"source": "startup"}));
    let say = |context: &str| Output::of(answer, &input, &Gate::new(&[]).redact(context), SYNC);
    let expected = json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "a\n\"b\""}});
    assert_eq!(say("a\n\"b\"").stdout, Some(expected.to_string()));
    let both: Value = serde_json::from_str(&say("a").with_notice("b").stdout.unwrap()).unwrap();
    assert_eq!((&both["systemMessage"], both.as_object().unwrap().len()), (&json!("b"), 2));
    assert_eq!(say(""), Output::default());
    let most = "😀".repeat(OUTPUT_UNITS_MAX / 2);
    assert!(say(&most).stdout.is_some());
    let over = say(&(most + "a"));
    assert_eq!((over.stdout, over.exit), (None, 0), "the client would show the first 2 KB of it");
    assert!(over.stderr.unwrap().contains("10001 UTF-16 units"));
}

#[test]
fn a_prompt_is_held_up_by_exit_code_and_by_json() {
    let mut session = Session::new();
    session.prompt("a", 85);
    let answer = session.hook(Event::UserPromptSubmit, &json!({}), Some(85));
    assert_eq!(answer, Answer { say: block(85), enqueue: true });
    let input = session.told(Event::UserPromptSubmit, &json!({}));
    let output = Output::of(answer, &input, &Redacted::default(), SYNC);
    let reason = output.stderr.unwrap();
    assert!(reason.contains("annalist memory sync --session s-1"), "{reason}");
    assert!(reason.contains("85 %") && reason.contains("80 %") && reason.contains(OVERRIDE));
    assert_eq!(output.exit, EXIT_BLOCKED);
    let told: Value = serde_json::from_str(&output.stdout.unwrap()).unwrap();
    assert_eq!(told, json!({"decision": "block", "reason": reason}));
}

#[test]
fn input_is_read_leniently_and_refused_in_one_line() {
    let read = |text: &str| Input::read(text, Event::Stop);
    let (input, findings) = read(
        "\u{feff}{\"session_id\": \"a-1_B\", \"transcript_path\": \"/t.jsonl\", \"cwd\": \"\", \"model\": 3, \"new\": []}",
    );
    let input = input.unwrap();
    assert!(findings.is_empty());
    assert_eq!(input.session.as_ref().unwrap().as_str(), "a-1_B");
    assert_eq!(input.transcript_path.as_deref(), Some("/t.jsonl"));
    assert_eq!((input.cwd, input.model, input.event), (None, None, Event::Stop));
    for (text, rule, says) in [
        ("", "bad-hook-input", "found nothing"),
        ("{\"a\":", "bad-hook-input", "line 1, column 5"),
        ("[1]", "bad-hook-input", "found other JSON"),
        (r#"{"hook_event_name": "PreCompact"}"#, "wrong-hook-event", "annalist hook stop"),
    ] {
        let (input, findings) = read(text);
        assert_eq!((input, findings.len()), (None, 1), "{text}");
        assert_eq!(findings[0].rule, rule);
        assert!(findings[0].detail.contains(says), "{}", findings[0].detail);
        assert!(!findings[0].detail.contains('\n'));
    }
}

#[test]
fn a_session_without_a_safe_name_is_left_alone() {
    let long = "a".repeat(SessionName::BYTES_MAX + 1);
    for name in ["../x", "", "a b", "ä", "a\n", &long] {
        assert_eq!(SessionName::parse(name), None, "{name}");
        for event in Event::ALL {
            let told = json!({"session_id": name, "trigger": "auto"}).to_string();
            let (input, findings) = Input::read(&told, event);
            assert_eq!(findings[0].rule, "bad-session-id");
            let seen = Seen {
                now: Timestamp(0),
                percent: Some(95),
                is_window_known: true,
                synced_at: None,
            };
            let (answer, state) =
                decide(&State::default(), &input.unwrap(), seen, &Thresholds::default());
            assert_eq!(answer, Answer { say: Say::Nothing, enqueue: false });
            assert_eq!(state, State::default());
        }
    }
}

#[test]
fn thresholds_that_cannot_be_are_the_defaults() {
    let shares = |auto, hard| {
        let (read, findings) = Thresholds::new(auto, hard, None);
        ((read.auto_percent, read.hard_percent), findings.len())
    };
    assert_eq!(shares(None, None), ((60, 80), 0));
    assert_eq!(shares(Some(1), Some(100)), ((1, 100), 0));
    assert_eq!(shares(Some(70), Some(70)), ((70, 70), 0));
    for (auto, hard) in [
        (Some(0), None),
        (Some(90), None),
        (None, Some(50)),
        (Some(50), Some(101)),
        (Some(-1), Some(i64::MAX)),
    ] {
        assert_eq!(shares(auto, hard), ((60, 80), 1), "{auto:?} {hard:?}");
    }
    for tokens in [0, -5] {
        let (read, findings) = Thresholds::new(None, None, Some(tokens));
        assert_eq!((window(&read, [None; 3], 1), findings.len()), ((200_000, false), 1));
    }
}

/// Window for the models named at the start, in the settings and by the last answer.
fn window(read: &Thresholds, models: [Option<&str>; 3], tokens: u64) -> (u64, bool) {
    let [at_start, configured, answered] = models;
    let usage = Usage { tokens, model: answered.map(str::to_owned) };
    let window = read.window(&usage, &SessionModels { at_start, configured });
    (window.tokens, window.is_known)
}

#[test]
fn the_window_is_what_settings_say_else_what_the_model_has() {
    let (read, _) = Thresholds::new(None, None, Some(50_000));
    assert_eq!(window(&read, [Some("opus[1m]"), None, None], 90_000), (50_000, true));
    let read = Thresholds::default();
    let (opus, wide) = (Some("claude-opus-4-5"), Some("claude-opus-4-5[1M]"));
    for ([at_start, configured, answered], tokens, expected) in [
        ([wide, None, opus], 1, (1_000_000, true)),
        ([None, wide, opus], 1, (1_000_000, true)),
        ([opus, None, opus], 200_000, (200_000, true)),
        ([Some("opus"), None, opus], 1, (200_000, true)),
        ([Some("next[2m]"), None, Some("next")], 1, (2_000_000, true)),
        // Nobody said how large the window of this model is.
        ([Some("gpt-5"), None, Some("gpt-5")], 1, (200_000, false)),
        ([Some("claude-next"), None, Some("claude-next")], 1, (200_000, false)),
        ([opus, None, None], 1, (200_000, true)),
        // Nothing proves that the session still runs the model of its settings or of its start.
        ([None, opus, opus], 1, (200_000, false)),
        ([None, None, opus], 1, (200_000, false)),
        ([Some("claude-sonnet-4-5"), None, opus], 1, (200_000, false)),
        // Holds more than its size.
        ([opus, None, opus], 200_001, (200_000, false)),
    ] {
        let models = [at_start, configured, answered];
        assert_eq!(window(&read, models, tokens), expected, "{models:?} {tokens}");
    }
    for (text, model) in [
        (r#"{"model": "sonnet[1m]", "env": {}}"#, Some("sonnet[1m]")),
        (r#"{"model": 3}"#, None),
        ("{\"model\": \"sonnet[1m]\"", None),
        ("", None),
    ] {
        assert_eq!(model_in_settings(text).as_deref(), model, "{text}");
    }
}

#[test]
fn shares_are_rounded_down() {
    assert_eq!(percent(119_999, 200_000), 59);
    assert_eq!(percent(120_000, 200_000), 60);
    assert_eq!(percent(160_000, 200_000), 80);
    assert_eq!(percent(u64::MAX, 1), u32::MAX);
    assert_eq!(percent(7, 0), 700);
}
