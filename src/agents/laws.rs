//! Properties of hooks, over whole sessions and any input.

use super::tests::Session;
use super::*;
use crate::domain::Timestamp;
use proptest::prelude::*;
use serde_json::json;

/// Steps of a session: event, prompt, window use, and minutes since the previous step.
fn steps() -> impl Strategy<Value = Vec<(Event, &'static str, Option<u32>, i64)>> {
    let words = prop::sample::select(vec!["go on", "/memory-sync", "annalist override", "auto"]);
    let percent = prop::option::weighted(0.9, 0..130u32);
    let step = (prop::sample::select(Event::ALL.to_vec()), words, percent, 0..300i64);
    prop::collection::vec(step, 0..40)
}

fn input(event: Event, word: &str) -> Input {
    let told = json!({"session_id": "s", "prompt": word, "trigger": word, "source": word});
    Input::read(&told.to_string(), event).0.unwrap()
}

proptest! {
    #[test]
    fn a_prompt_is_held_up_only_from_hard_on_after_a_sync_was_asked_for(steps in steps()) {
        let (mut state, mut now, mut asked) = (State::default(), 0, false);
        for (event, word, percent, minutes) in steps {
            now += minutes * 60_000;
            let seen = Seen { now: Timestamp(now), percent, is_window_known: true, synced_at: None };
            let input = input(event, word);
            let (answer, next) = decide(&state, &input, seen, &Thresholds::default());
            let output = Output::of(answer, &input, &Default::default(), "annalist memory sync");
            if let Say::Block { percent, .. } = answer.say {
                prop_assert!(asked && percent >= 80 && event == Event::UserPromptSubmit);
                prop_assert_eq!(word, if word == "auto" { "auto" } else { "go on" });
            }
            // Any other cause of this exit code would block a prompt by accident.
            prop_assert_eq!(output.exit == EXIT_BLOCKED, matches!(answer.say, Say::Block { .. }));
            asked |= matches!(answer.say, Say::Sync { .. });
            state = next;
        }
    }

    #[test]
    fn after_a_sync_no_prompt_is_held_up_while_the_window_stays_full(shares in prop::collection::vec(80..120u32, 1..20)) {
        let mut session = Session::new();
        let prompt = json!({"prompt": "go on"});
        session.hook(Event::UserPromptSubmit, &prompt, Some(80));
        session.syncs();
        for share in shares {
            let answer = session.hook(Event::UserPromptSubmit, &prompt, Some(share));
            prop_assert_eq!(answer.say, Say::Nothing);
        }
    }

    #[test]
    fn the_same_hook_twice_is_answered_the_same_but_for_what_is_asked_once(steps in steps()) {
        let mut state = super::tests::started();
        for (event, word, percent, _) in steps {
            let seen = Seen { now: Timestamp(1), percent, is_window_known: true, synced_at: None };
            let input = input(event, word);
            let (first, next) = decide(&state, &input, seen, &Thresholds::default());
            let (second, after) = decide(&next, &input, seen, &Thresholds::default());
            prop_assert_eq!(&after, &next);
            let is_asked = matches!(first.say, Say::Sync { .. });
            prop_assert!(second == first || is_asked);
            state = next;
        }
    }

    #[test]
    fn any_input_is_survived(text in any::<String>(), bytes in any::<Vec<u8>>(), whole in any::<bool>()) {
        for event in Event::ALL {
            let (input, findings) = Input::read(&text, event);
            prop_assert!(input.is_some() || findings.len() == 1);
        }
        State::read(&text);
        last_usage(&bytes, whole);
        model_in_settings(&text);
    }

    #[test]
    fn a_longer_tail_never_says_otherwise(lines in prop::collection::vec("(\\{\"type\":\"assistant\",\"message\":\\{\"usage\":\\{\"input_tokens\":[1-9]\\}\\}\\}|\\{\"type\":\"system\",\"subtype\":\"compact_boundary\"\\}|[a-z]{0,9})", 0..8), from in any::<prop::sample::Index>()) {
        let text = lines.join("\n");
        let whole = last_usage(text.as_bytes(), true);
        let from = from.index(text.len() + 1);
        let tail = last_usage(&text.as_bytes()[from..], false);
        prop_assert!(tail == Tail::CutOff || tail == whole, "{tail:?} {whole:?}");
    }
}
