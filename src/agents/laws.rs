//! Properties of hooks, over whole sessions and any input.

use super::tests::Session;
use super::*;
use crate::domain::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

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

/// Settings that people wrote: JSON with comments in any layout, none of whose lists is empty.
fn commented_settings() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(Value::from),
        prop::sample::select(vec!["", "//", "a, b", "/*", "é\"}"]).prop_map(Value::from),
        Just(json!({})),
        Just(json!([])),
    ];
    let value = leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..3)
                .prop_map(|members| members.into_iter().collect()),
        ]
    });
    let part = |name: &'static str, full: Value| {
        prop::option::of(value.clone()).prop_map(move |other| {
            let mut full = full.clone();
            full["other"] = other.unwrap_or_else(|| json!("none"));
            (name, full)
        })
    };
    let group = json!({"hooks": [{"type": "command", "command": "say done"}]});
    let members = prop::sample::subsequence(vec![0, 1, 2], 0..=3);
    let parts = (
        part("theme", json!({"z": 1})),
        part("hooks", json!({"AfterAgent": [group]})),
        part("mcpServers", json!({"x": {"command": "y"}})),
    );
    let gaps = prop::sample::select(vec![
        "", "", " ", "\n", "\n  ", "\r\n\t", " // why, }\n", "// x \u{a0}\n", "// y\t \r\n",
        " /* // {, */ ", "\n/* a\n b */\n",
    ]);
    let gaps = prop::collection::vec(gaps, 1..12);
    let last = (value, any::<bool>());
    (members, parts, last, gaps).prop_map(|(members, parts, (last, has_last), gaps)| {
        let parts = [parts.0, parts.1, parts.2];
        let mut all: Vec<(&str, &Value)> = Vec::new();
        all.extend(members.iter().map(|at| (parts[*at].0, &parts[*at].1)));
        if has_last || all.is_empty() {
            all.push(("last", &last));
        }
        let mut gaps = gaps.iter().copied().cycle();
        let members = all.into_iter().map(|(name, value)| (name, value.clone()));
        let mut text = gaps.next().unwrap_or_default().to_owned();
        write_object(members, &mut gaps, &mut text);
        text + gaps.next().unwrap_or_default()
    })
}

fn write_object<'a>(
    members: impl Iterator<Item = (impl AsRef<str>, Value)>,
    gaps: &mut impl Iterator<Item = &'a str>,
    text: &mut String,
) {
    text.push('{');
    for (at, (name, value)) in members.enumerate() {
        text.push_str(if at == 0 { "" } else { "," });
        text.extend(gaps.next());
        text.push_str(&json!(name.as_ref()).to_string());
        text.extend(gaps.next());
        text.push(':');
        text.extend(gaps.next());
        write_value(value, gaps, text);
        text.extend(gaps.next());
    }
    text.push('}');
}

fn write_value<'a>(value: Value, gaps: &mut impl Iterator<Item = &'a str>, text: &mut String) {
    match value {
        Value::Object(members) => write_object(members.into_iter(), &mut *gaps, text),
        Value::Array(elements) => {
            text.push('[');
            for (at, element) in elements.into_iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                text.extend(gaps.next());
                write_value(element, &mut *gaps, text);
                text.extend(gaps.next());
            }
            text.push(']');
        }
        leaf @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            text.push_str(&leaf.to_string());
        }
    }
}

/// Adds all parts of a client to its settings, or removes them.
fn settings_edited(flag: &str, text: &str, edit: impl Fn(&Content, &str) -> Merged) -> String {
    let client = CLIENTS.iter().find(|it| it.flag == flag).unwrap();
    let parts = client.contents().into_iter().filter(|(path, _)| path == SETTINGS);
    parts.fold(text.to_owned(), |text, (_, content)| {
        let Merged::Changed(text) = edit(&content, &text) else { panic!("{text}") };
        text
    })
}

proptest! {
    #[test]
    fn settings_with_comments_are_as_before_once_our_parts_are_removed(text in commented_settings()) {
        for flag in ["gemini", "qwen"] {
            let added = settings_edited(flag, &text, |it, text| it.add(Some(text), "annalist"));
            for (path, content) in CLIENTS.iter().find(|it| it.flag == flag).unwrap().contents() {
                let again = content.add(Some(&added), "annalist");
                prop_assert!(path != SETTINGS || again == Merged::Unchanged, "{again:?}: {added}");
            }
            let removed = settings_edited(flag, &added, |it, text| it.remove(text));
            prop_assert_eq!(&removed, &text, "{}", added);
        }
    }

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
