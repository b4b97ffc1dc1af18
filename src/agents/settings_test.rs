//! Users' settings files, with and without annalist's entries.

use super::*;
use crate::agents::clients::{CODEX_HOOKS, COMMON_HOOKS};
use crate::privacy::{Gate, Pii};
use proptest::prelude::*;

#[track_caller]
fn installed(existing: Option<&str>) -> String {
    let Merged::Changed(text) = install(&COMMON_HOOKS, existing, "annalist") else {
        panic!("{existing:?}")
    };
    assert_eq!(
        install(&COMMON_HOOKS, Some(&text), "annalist"),
        Merged::Unchanged,
        "twice is once: {text}"
    );
    text
}

#[track_caller]
fn removed(existing: &str) -> String {
    let Merged::Changed(text) = remove(existing) else { panic!("{existing}") };
    assert_eq!(remove(&text), Merged::Unchanged, "{text}");
    text
}

fn value(text: &str) -> Value {
    serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap()
}

/// Commands that are run at an event.
fn commands(text: &str, event: &str) -> Vec<String> {
    let value = value(text);
    let groups = value["hooks"][event].as_array().cloned().unwrap_or_default();
    let hooks = groups.iter().flat_map(|it| it["hooks"].as_array().cloned().unwrap_or_default());
    hooks.filter_map(|hook| hook["command"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_new_file_runs_us_at_every_event() {
    let text = installed(None);
    assert!(text.starts_with("{\n  \"hooks\": {\n    \"SessionStart\": [\n      {\n"), "{text}");
    assert!(text.ends_with("\n  }\n}\n"), "{text}");
    for event in Event::ALL {
        assert_eq!(commands(&text, event.name()), [format!("annalist hook {}", event.argument())]);
    }
    assert_eq!(value(&text)["hooks"].as_object().unwrap().len(), Event::ALL.len());
    assert_eq!(installed(Some(" \n")), text);
    assert_eq!(removed(&text), "{}\n");
}

#[test]
fn a_former_timeout_of_ours_is_updated_and_one_of_a_person_stays() {
    let older = installed(None);
    let Merged::Changed(text) = install(&CODEX_HOOKS, Some(&older), "annalist") else { panic!() };
    assert_eq!(Merged::Changed(text.clone()), install(&CODEX_HOOKS, None, "annalist"));
    let theirs = text.replace("\"timeout\": 3", "\"timeout\": 5");
    assert_eq!(install(&CODEX_HOOKS, Some(&theirs), "annalist"), Merged::Unchanged);
}

#[test]
fn the_plugin_for_marketplaces_has_the_same_hooks_and_tools() {
    let hooks = include_str!("../../plugins/claude-code/hooks/hooks.json");
    assert_eq!(hooks, installed(None));
    let servers = include_str!("../../plugins/claude-code/.mcp.json");
    let registered = crate::agents::servers::register(None, false, "annalist");
    assert_eq!(registered, Merged::Changed(servers.to_owned()));
}

/// Settings of a user, with tabs, a hook at one of annalist's events, and odd numbers.
const THEIRS: &str = "{\n\t\"model\": \"opus\",\n\t\"env\": {\"KEY\" : \"caf\\u00e9\", \"n\": 1.50},\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{\n\t\t\t\t\"hooks\": [\n\t\t\t\t\t{ \"type\": \"command\", \"command\": \"say done\" }\n\t\t\t\t]\n\t\t\t}\n\t\t],\n\t\t\"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": []}]\n\t}\n}";

#[test]
fn what_is_not_ours_keeps_every_byte() {
    let text = installed(Some(THEIRS));
    let mut rest = text.as_str();
    for line in THEIRS.lines() {
        let line = line.trim_end_matches(['}', ']']);
        let at = rest.find(line).unwrap_or_else(|| panic!("{line} in {text}"));
        rest = &rest[at + line.len()..];
    }
    assert_eq!(commands(&text, "Stop"), ["say done", "annalist hook stop"]);
    assert!(text.contains("\n\t\t\"SessionStart\": [\n\t\t\t{\n\t\t\t\t\"hooks\": ["), "{text}");
    assert_eq!(removed(&text), THEIRS);
}

#[test]
fn any_layout_comes_back() {
    for theirs in [
        r#"{"a":[1.50]}"#,
        r#"{ "a": [ 1.50 ], "hooks": { "Stop": [ { "hooks": [ { "command": "x" } ] } ] } }"#,
        "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"x\"}]},{\"hooks\":[]}]},\"a\":1}\n\n",
        "{\n  \"hooks\":\n  {\n    \"Stop\":\n    [\n      { \"hooks\": [{ \"command\": \"x\" }] } ]\n  }\n}",
        "{\r\n\t\"hooks\": { \"PreToolUse\": [] },\r\n\t\"a\": [\r\n\t\t1, 2 ]\r\n}\r\n",
    ] {
        assert_eq!(removed(&installed(Some(theirs))), theirs);
    }
}

#[test]
fn comments_stay_where_the_client_reads_them() {
    let hooks = HookSettings { comments: true, ..COMMON_HOOKS };
    for theirs in [
        "// one\n{\n  // two\n  \"a\": \"http://x/*y*/\", /* three */\n  \"b\": 1 // four\n  // five\n}\n// six",
        "{\n  \"hooks\": {\n    // one\n    \"Stop\": [\n      // two\n      { \"hooks\": [ { \"command\": \"x\" } ] } // three\n      /* four */\n    ] // five\n  }\n}",
        "{ // one\n}",
        "{\n  \"hooks\": { /* one */\n    \"PreToolUse\": [1, // two\n      2] // five\n  }\n}",
    ] {
        let Merged::Changed(text) = install(&hooks, Some(theirs), "annalist") else {
            panic!("{theirs}")
        };
        let words = ["one", "two", "three", "four", "five", "six"];
        let bare = words.iter().fold(text.clone(), |text, word| {
            text.replace(&format!("// {word}"), "").replace(&format!("/* {word} */"), "")
        });
        assert_eq!(commands(&bare, "Stop").last().unwrap(), "annalist hook stop", "{text}");
        assert_eq!(install(&hooks, Some(&text), "annalist"), Merged::Unchanged, "{text}");
        assert_eq!(removed(&text), theirs);
    }
}

#[test]
fn lists_that_hold_a_comment_stay_and_others_that_become_empty_go() {
    let hooks = HookSettings { comments: true, ..COMMON_HOOKS };
    for (theirs, left) in [
        ("{\n  \"hooks\": { // none\n  }\n}", None),
        ("{ /* nothing */ }", None),
        ("{\"hooks\": {\"Stop\": [ /* none */ ], \"a\": 1}}", None),
        ("{\n  // hooks\n  \"hooks\": /* ours */ {}\n}\n", None),
        ("{\n    \"a\": 1\n  , \"hooks\": {\"b\": []}\n}", None),
        ("{\"a\": 1, \"hooks\": {\"Stop\": []}}\r\n", Some("{\"a\": 1}\r\n")),
        ("{\n    \"a\": 1\n  , \"hooks\": {}\n}", Some("{\n    \"a\": 1\n}")),
        ("{\n}", Some("{}")),
    ] {
        let Merged::Changed(text) = install(&hooks, Some(theirs), "annalist") else {
            panic!("{theirs}")
        };
        assert_eq!(install(&hooks, Some(&text), "annalist"), Merged::Unchanged, "{text}");
        assert_eq!(removed(&text), left.unwrap_or(theirs));
    }
    let group =
        r#"{"hooks": {"Stop": [{ /* mine */ "hooks": [{"command": "annalist hook stop"}]}]}}"#;
    let left = r#"{"hooks": {"Stop": [{ /* mine */ "hooks": []}]}}"#;
    assert_eq!(removed(group), left);
}

#[test]
fn an_event_that_is_not_ours_is_no_reason_to_fail() {
    let hooks = HookSettings { name: Event::gemini_name, ..COMMON_HOOKS };
    for theirs in [r#"{"hooks":{"Stop":{"a":1}}}"#, r#"{"hooks":{"Stop":null}}"#] {
        let Merged::Changed(text) = install(&hooks, Some(theirs), "annalist") else {
            panic!("{theirs}")
        };
        assert_eq!(removed(&text), theirs);
    }
}

#[test]
fn comments_around_entries_of_ours_stay_where_they_are() {
    let ours = r#"{"hooks": [{"command": "annalist hook stop"}]}"#;
    for (theirs, left) in [
        ("[ // one, two\n OURS, {\"a\": 1} // three\n]", "[ // one, two\n  {\"a\": 1} // three\n]"),
        ("[\n  OURS, // one\n  OURS, /* two */ 3]", "[ // one\n   /* two */ 3]"),
        ("[ 1, // one\n  OURS, /* two */ OURS\n]", "[ 1 // one\n   /* two */\n]"),
    ] {
        let text = format!("{{\"hooks\": {{\"Stop\": {}}}}}", theirs.replace("OURS", ours));
        assert_eq!(removed(&text), format!("{{\"hooks\": {{\"Stop\": {left}}}}}"));
    }
}

#[test]
fn line_ends_of_windows_and_a_mark_at_the_beginning_stay() {
    let theirs = "\u{feff}{\r\n    \"a\": 1\r\n}\r\n";
    let text = installed(Some(theirs));
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    assert!(text.contains("\r\n    \"hooks\": {\r\n        \"SessionStart\""), "{text}");
    assert_eq!(removed(&text), theirs);
}

#[test]
fn an_entry_that_runs_us_keeps_its_path_and_flags_and_a_second_one_goes() {
    let older = r#"{"hooks": {
  "SessionStart": [
    {"matcher": "startup", "hooks": [{"type": "command", "command": "OUR hook session-start --budget light", "timeout": 3}]},
    {"hooks": [{"type": "command", "command": "annalist hook session-start"}, {"type": "command", "command": "x"}]}
  ],
  "Stop": [{"hooks": [{"type": "command", "command": "'/my tools/annalist' hook session-end --a"}]}],
  "SessionEnd": [{"hooks": [{"type": "command", "command": "cd /x && annalist hook session-end | tee log"}]}]
}}"#;
    let older = &older.replace("OUR", "/opt/bin/annalist");
    let text = installed(Some(older));
    let start = ["/opt/bin/annalist hook session-start --budget light", "x"];
    assert_eq!(commands(&text, "SessionStart"), start);
    assert!(text.contains("\"matcher\": \"startup\"") && text.contains("\"timeout\": 3"), "{text}");
    assert_eq!(commands(&text, "Stop"), ["'/my tools/annalist' hook stop --a"]);
    let theirs = ["cd /x && annalist hook session-end | tee log"];
    assert_eq!(commands(&text, "SessionEnd"), theirs, "a person's own way to run us stays");
    let without = removed(&text);
    assert_eq!(commands(&without, "SessionStart"), ["x"]);
    assert_eq!(commands(&without, "SessionEnd"), theirs);
    assert!(!without.contains("\"Stop\""));
}

#[test]
fn a_program_that_only_sounds_like_us_is_not_ours() {
    for command in
        ["annalist-x hook stop", "annalist stop", "echo annalist", "my/annalists hook stop"]
    {
        let theirs = serde_json::json!({"hooks": {"Stop": [{"hooks": [{"command": command}]}]}});
        let text = installed(Some(&theirs.to_string()));
        assert_eq!(commands(&text, "Stop"), [command, "annalist hook stop"]);
        assert_eq!(remove(&theirs.to_string()), Merged::Unchanged);
    }
}

#[test]
fn what_cannot_be_read_is_not_changed() {
    for (text, says) in [
        ("{", "line 1, column 1"),
        ("{\"a\": 1,}", "a comma behind the last entry at line 1, column 8: delete it"),
        ("// x\n{}", "a comment, which this client does not read, at line 1, column 1: delete it"),
        ("[]", "found other JSON"),
        (r#"{"hooks": []}"#, "`hooks`: expected an object"),
        (r#"{"hooks": {"Stop": {}}}"#, "`hooks.Stop`: expected a list"),
    ] {
        let Merged::Malformed(finding) = install(&COMMON_HOOKS, Some(text), "annalist") else {
            panic!("{text}")
        };
        assert!(finding.detail.contains(says), "{}", finding.detail);
        assert!(finding.detail.ends_with("nothing was changed") && finding.rule == "bad-settings");
        assert!(!finding.detail.contains('\n'));
    }
    let odd =
        r#"{"hooks": {"PreToolUse": 3, "Stop": [1, {"hooks": 2}, {"hooks": [{"command": 4}]}]}}"#;
    let left = removed(&installed(Some(odd)));
    assert_eq!(value(&left), value(odd), "what others mean by it is theirs");
}

#[test]
fn a_diff_shows_what_changes_and_nothing_else() {
    let theirs = "{\n  \"env\": {\n    \"TOKEN\": \"hunter2hunter2\"\n  },\n  \"z\": 1\n}\n";
    let text = installed(Some(theirs));
    let page = changes(theirs, &text, &Gate::new(&Pii::ALL));
    let page = page.as_str();
    assert!(page.starts_with("  …\n-   \"z\": 1\n+   \"z\": 1,\n+   \"hooks\": {\n"), "{page}");
    assert!(page.ends_with("+   }\n  …\n"), "{page}");
    assert!(!page.contains("TOKEN"));
    assert_eq!(
        changes("a\nb\nc\nd", "a\nc\nx\nd", &Gate::new(&[])).as_str(),
        "  …\n- b\n  …\n+ x\n  …\n"
    );
    assert_eq!(changes("a", "a", &Gate::new(&[])).as_str(), "  …\n");
}

/// JSON in the layouts of people and programs.
fn settings() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
        Just(Value::Null),
        Just(serde_json::json!({"type": "command", "command": "annalist hook stop"})),
        Just(serde_json::json!({"type": "command", "command": "x"})),
    ];
    let tree = leaf.prop_recursive(5, 40, 4, |inner| {
        let name = prop::sample::select(vec!["hooks", "Stop", "SessionStart", "command", "é", "a"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..4).prop_map(|members| {
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }),
        ]
    });
    let hooks = prop::collection::vec(tree.clone(), 0..3);
    (tree, hooks, any::<bool>()).prop_map(|(tree, hooks, pretty)| {
        let groups = serde_json::json!({"Stop": [{"hooks": hooks}]});
        let whole =
            if tree.is_object() { tree } else { serde_json::json!({"a": tree, "hooks": groups}) };
        if pretty { format!("{whole:#}\n") } else { whole.to_string() }
    })
}

proptest! {
    #[test]
    fn installing_twice_is_installing_once_and_what_is_left_after_removal_is_theirs(text in settings()) {
        match install(&COMMON_HOOKS, Some(&text), "annalist") {
            Merged::Changed(more) => {
                prop_assert_eq!(install(&COMMON_HOOKS, Some(&more), "annalist"), Merged::Unchanged);
                for event in Event::ALL {
                    let own = format!("annalist hook {}", event.argument());
                    prop_assert_eq!(commands(&more, event.name()).iter().filter(|it| **it == own).count(), 1);
                }
                let Merged::Changed(left) = remove(&more) else {
                    return Err(TestCaseError::fail(more));
                };
                let bare = match remove(&text) {
                    Merged::Changed(bare) => bare,
                    Merged::Unchanged => text.clone(),
                    other @ (Merged::Removed | Merged::NotOurs | Merged::Malformed(_)) => {
                        return Err(TestCaseError::fail(format!("{other:?}")));
                    }
                };
                prop_assert_eq!(without_empty(&left), without_empty(&bare));
            }
            Merged::Unchanged => prop_assert!(text.contains("annalist")),
            Merged::Malformed(_) => {}
            other @ (Merged::Removed | Merged::NotOurs) => {
                return Err(TestCaseError::fail(format!("{other:?}")));
            }
        }
    }

    #[test]
    fn any_text_is_survived(text in any::<String>(), json in "[\\[\\]{}:,\"a1 \\\\]{0,20}") {
        for text in [text, json] {
            install(&COMMON_HOOKS, Some(&text), "annalist");
            remove(&text);
            changes(&text, "{}", &Gate::new(&[]));
        }
    }
}

/// Settings without `hooks`, events and groups that are empty: removal may delete those that were
/// empty before.
fn without_empty(text: &str) -> Value {
    let mut settings = value(text);
    let is_bare = |value: &Value| {
        value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(serde_json::Map::is_empty)
    };
    if let Some(hooks) = settings.get_mut("hooks").and_then(Value::as_object_mut) {
        hooks.retain(|_, list| !is_bare(list));
    }
    if let Some(fields) = settings.as_object_mut() {
        fields.retain(|name, value| name != "hooks" || !is_bare(value));
    }
    settings
}
