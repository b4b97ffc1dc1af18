//! Rules of OpenAI's and Anthropic's messages.

use super::read;
use crate::transcripts::raw::TranscriptItem;
use crate::transcripts::testing;

#[track_caller]
fn check(input: &str, expected: &[&str]) {
    testing::check(read, input, expected);
}

#[test]
fn an_array_of_messages_is_one_session() {
    check(
        r#"[{"role":"system","content":"s"},{"role":"user","content":"q"},{"role":"assistant","content":"a"}]"#,
        &[
            "= …#0",
            "1: client injected: s (injected context)",
            "2: person prompt: q",
            "3: assistant text: a",
        ],
    );
}

#[test]
fn odd_elements_cost_themselves_only() {
    check(
        r#"[{"role":"user","content":null},{"role":"user","content":"a"},"STRING",{"content":"NOROLE"},{"role":"assistant","content":"b"}]"#,
        &[
            "! no-content 1", "= …#0", "2: person prompt: a", "! no-message 1", "! no-message 1",
            "5: assistant text: b",
        ],
    );
    check(
        r#"["STRING",{"role":"user"},{"role":"user","content":"a"}]"#,
        &["! no-messages 1", "! no-content 1", "= …#1", "3: person prompt: a"],
    );
}

#[test]
fn calls_and_results_of_goose_are_not_words() {
    let message = |role: &str, rest: &str, part: &str| {
        format!(r#"{{"role":"{role}",{rest}"created":1756000000,"content":[{part}]}}"#)
    };
    let call = |id: &str| {
        format!(
            r#"{{"type":"toolRequest","id":"{id}","toolCall":{{"status":"success","value":{{"name":"developer__text","arguments":{{"path":"a"}}}}}}}}"#
        )
    };
    let result = |id: &str, told: &str| {
        format!(r#"{{"type":"toolResponse","id":"{id}","toolResult":{told}}}"#)
    };
    let hidden = r#""metadata":{"userVisible":false,"agentVisible":true},"#;
    let messages = [
        message("user", "", r#"{"type":"text","text":"which port"}"#),
        message("assistant", "", &format!("{},{}", call("c1"), call("c2"))),
        message(
            "user",
            hidden,
            &[
                result("c1", r#"{"status":"success","value":{"content":[{"type":"text","text":"8443"}],"isError":false}}"#),
                result("c2", r#"{"status":"error","error":"no such file"}"#),
            ]
            .join(","),
        ),
        message("user", hidden, r#"{"type":"text","text":"Go on from the summary."}"#),
    ];
    check(
        &format!(
            r#"{{"id":"20260301_1","working_dir":"/home/u/app","conversation":[{}]}}"#,
            messages.join(",")
        ),
        &[
            "= …#0",
            "1: person prompt: which port",
            r#"2: assistant tool_call developer__text#c1: {"path":"a"}"#,
            r#"2: assistant tool_call developer__text#c2: {"path":"a"}"#,
            "3: tool tool_result developer__text#c1 succeeded: 8443",
            "3: tool tool_result developer__text#c2 failed: no such file",
            "4: client injected: Go on from the summary. (injected context)",
        ],
    );
}

#[test]
fn nothing_said_is_no_session_and_no_fault() {
    for empty in ["[]", "[]\n", "{\"messages\":[]}", "{\"messages\":[]}\n"] {
        check(empty, &[]);
    }
}

#[test]
fn fields_may_stand_before_or_after_the_messages() {
    let expected = ["= c-1#0 T", "1: client injected: s (injected context)", "1: person prompt: q"];
    check(
        r#"{"conversation_id":"c-1","title":"T","system":"s","messages":[{"role":"user","content":"q"}]}"#,
        &expected,
    );
    check(
        "{\"messages\":\n[{\"role\":\"user\",\"content\":\"q\"}],\n\"system\":\"s\",\"title\":\"T\",\"conversation_id\":\"c-1\"}",
        &expected,
    );
}

#[test]
fn an_array_of_records_has_a_session_each() {
    check(
        r#"[{"messages":[{"role":"user","content":"q"}],"images":["x"]},{"task_id":5,"traj":[{"role":"user","content":"r"}]}]"#,
        &["= …#0", "1: person prompt: q", "= …#1", "1: person prompt: r"],
    );
}

#[test]
fn a_bad_line_does_not_move_the_numbers() {
    check(
        "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}\n{oops\n\n{\"messages\":[{\"role\":\"user\",\"content\":\"r\"}]}\n{\"messages\":[{\"ro",
        &[
            "= …#0", "1: person prompt: q", "! bad-line 2", "= …#2", "4: person prompt: r",
            "! truncated-last-line 5",
        ],
    );
}

#[test]
fn a_broken_first_line_costs_itself_only() {
    check(
        "{\"messages\":[{\"role\":\"us\n{\"messages\":[{\"role\":\"user\",\"content\":\"r\"}]}\n",
        &["! bad-line 1", "= …#1", "2: person prompt: r"],
    );
}

#[test]
fn one_message_a_line_is_one_session() {
    check(
        "{\"role\":\"user\",\"content\":\"q\"}\n{\"role\":\"assistant\",\"content\":\"a\"}\n",
        &["= …#0", "1: person prompt: q", "2: assistant text: a"],
    );
}

#[test]
fn repeated_history_is_one_session_that_goes_on() {
    check(
        "{\"request\":{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]},\"response\":{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"b\",\"refusal\":null}}]}}\n\
             {\"request\":{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"b\"}]},{\"role\":\"user\",\"content\":\"c\"}]},\"response\":{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"d\"}}]}}\n\
             {\"request\":{\"messages\":[{\"role\":\"user\",\"content\":\"z\"}]},\"response\":{}}\n",
        &[
            "= …#0", "1: person prompt: a", "1: assistant text: b", "2: person prompt: c",
            "2: assistant text: d", "= …#2", "3: person prompt: z",
        ],
    );
}

#[test]
fn a_shared_system_prompt_is_no_repetition() {
    check(
        "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"}]}\n{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"q\"}]}\n",
        &[
            "= …#0",
            "1: client injected: s (injected context)",
            "= …#1",
            "2: client injected: s (injected context)",
            "2: person prompt: q",
        ],
    );
}

#[test]
fn what_came_before_a_break_is_kept() {
    check(
        "[{\"role\":\"user\",\"content\":\"q\"},\n{\"role\":\"assi",
        &["= …#0", "1: person prompt: q", "! bad-json 2"],
    );
    check(
        "[{\"role\":\"user\",\"content\":\"q\"},\n{\"role\": oops},{\"role\":\"assistant\",\"content\":\"a\"}]",
        &["= …#0", "1: person prompt: q", "! bad-json 2", "3: assistant text: a"],
    );
    check(
        "{\"session_id\":\"x\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"ro",
        &["= x#0", "1: person prompt: q", "! bad-json 1"],
    );
}

#[test]
fn a_printed_value_that_breaks_is_no_file_of_lines() {
    check(
        "{\n  \"messages\": [\n    {\"role\": \"user\", \"content\": \"q\"},\n    {\"ro",
        &["= …#0", "1: person prompt: q", "! bad-json 4"],
    );
    check(
        "{\"messages\":[\n{\"role\":\"user\",\"content\":\"q\"},\n{\"ro",
        &["= …#0", "1: person prompt: q", "! bad-json 3"],
    );
}

#[test]
fn what_follows_a_value_is_reported() {
    check(
        "[{\"role\":\"user\",\n\"content\":\"q\"}]\n[]",
        &["= …#0", "1: person prompt: q", "! bad-json 3"],
    );
    check(
        "{\n\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}\n{}",
        &["= …#0", "1: person prompt: q", "! bad-json 3"],
    );
}

#[test]
fn the_first_line_is_read_the_same_before_and_after_the_second() {
    let line = "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":\"a\"}]}\n";
    check(line, &["= …#0", "1: person prompt: q", "1: assistant text: a"]);
    check(
        &format!("{line}[]"),
        &["= …#0", "1: person prompt: q", "1: assistant text: a", "! no-messages 2"],
    );
}

#[test]
fn a_lone_surrogate_is_repaired() {
    check(r#"[{"role":"user","content":"q\ud83d"}]"#, &["= …#0", "1: person prompt: q\u{fffd}"]);
}

#[test]
fn unknown_roles_are_reported_and_kept_aside() {
    check(
        r#"[{"role":"critic","content":"q"},{"role":"user","content":"r"}]"#,
        &[
            "! unknown-role 1",
            "= …#0",
            "1: client injected: q (injected context)",
            "2: person prompt: r",
        ],
    );
}

#[test]
fn an_id_does_not_change_when_the_file_grows() {
    let id = |text: &str| testing::ids(&testing::read(read, text.as_bytes())).concat();
    let one = r#"[{"role":"user","content":"q"}]"#;
    let two = r#"[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]"#;
    assert_eq!(id(one), id(two));
    assert_ne!(id(one), id(r#"[{"role":"user","content":"other"}]"#));
}

#[test]
fn empty_values_have_no_session() {
    check("[]", &[]);
    check("", &["! bad-json 1"]);
    check(r#"{"messages":[]}"#, &[]);
}

#[test]
fn a_file_that_grows_gives_the_same_and_more() {
    let call = r#"{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}"#;
    let messages = format!(
        r#"[{{"role":"system","content":"s"}},{{"role":"user","content":"q"}},{call},{{"role":"tool","tool_call_id":"a","content":"r"}}]"#
    );
    testing::check_cuts(read, &messages, 0);
    testing::check_cuts(read, &format!("{{\"session_id\":\"x\",\"messages\":{messages}}}"), 0);
    let line = format!("{{\"messages\":{messages}}}\n");
    let other = line.replace("\"q\"", "\"p\"");
    testing::check_cuts(read, &format!("{line}{other}{line}"), line.len());
}

#[test]
fn damage_is_survived() {
    let input = "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}\n[{\"role\":\"tool\",\"content\":[1,{}]}]\n{\"traj\":[{}]}";
    testing::survives(read, input.as_bytes(), 1);
    let input = "[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}]";
    testing::survives(read, input.as_bytes(), 1);
}

#[test]
fn system_beside_the_messages_is_context() {
    check(
        "{\"system\":[{\"type\":\"text\",\"text\":\"s\"}],\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}\n\
             {\"system\":\"s\",\"messages\":[{\"role\":\"user\",\"content\":\"r\"}]}\n",
        &[
            "= …#0",
            "1: client injected: s (injected context)",
            "1: person prompt: q",
            "= …#1",
            "2: client injected: s (injected context)",
            "2: person prompt: r",
        ],
    );
}

#[test]
fn a_cline_history_is_read() {
    check(
        r#"[{"role":"user","content":[{"type":"text","text":"<task>\nfix the build\n</task>"},
                 {"type":"text","text":"<environment_details>\nfiles\n</environment_details>"}]},
                {"role":"assistant","content":[{"type":"text","text":"<execute_command>\n<command>make</command>\n</execute_command>"}]},
                {"role":"user","content":[{"type":"text","text":"[execute_command for 'make'] Result:"},{"type":"text","text":"ok"}]}]"#,
        &[
            "= …#0",
            "1: person prompt: fix the build",
            "1: client injected: files (injected context)",
            "2: assistant text: <execute_command>\n<command>make</command>\n</execute_command>",
            "3: tool tool_result execute_command#: [execute_command for 'make'] Result:\nok",
        ],
    );
}

#[test]
fn feedback_on_clines_completion_is_the_persons_and_what_it_ran_is_not() {
    let file = |blocks: &[&str]| {
        let blocks = blocks.iter().map(|text| format!(r#"{{"type":"text","text":"{text}"}}"#));
        let blocks = blocks.collect::<Vec<_>>().join(",");
        format!(
            r#"[{{"role":"user","content":"<task>a</task>"}},{{"role":"user","content":[{blocks}]}}]"#
        )
    };
    let done = "[attempt_completion] Result: Done";
    let told = "The user has provided feedback on the results. Consider their input.";
    let words = "<feedback>\\nkeep it\\n</feedback>";
    let head = ["= …#0", "1: person prompt: a"];
    let result = "2: tool tool_result attempt_completion#: [attempt_completion] Result: Done";
    let injected = format!("2: client injected: {told} (injected context)");
    let said = "2: person prompt: keep it";
    check(&file(&[done, told, words]), &[&head[..], &[result, &injected, said]].concat());
    check(
        &file(&[done, "Command failed with exit code 1.\\nOutput:\\nFAIL", told, words]),
        &[
            &head[..],
            &[
                "2: tool tool_result attempt_completion# failed 1: [attempt_completion] Result: Done\n\
                 Command failed with exit code 1.\nOutput:\nFAIL",
                &injected,
                said,
            ],
        ]
        .concat(),
    );
    check(&file(&[done]), &[&head[..], &[result]].concat());
}

#[test]
fn a_refusal_in_a_result_is_said_once() {
    check(
        r#"[{"role":"user","content":"<task>publish</task>"},
                {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"execute_command","input":{"command":"git push"}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"The user denied this operation and provided the following feedback:\n<feedback>\nuse jj\n</feedback>"}]}]}]"#,
        &[
            "= …#0",
            "1: person prompt: publish",
            "2: assistant tool_call execute_command#t: git push",
            "3: tool tool_result execute_command#t aborted: The user denied this operation and provided the following feedback:",
            "3: person rejection: use jj",
        ],
    );
}

#[test]
fn a_history_of_roo_tells_outcomes_refusals_and_summaries() {
    check(
        r#"[{"role":"user","content":"<user_message>\npublish\n</user_message>"},
                {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"execute_command","input":{"command":"git push"}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"{\"status\":\"denied\",\"feedback\":\"use jj\"}"}]},
                {"role":"user","content":"[ERROR] You did not use a tool in your previous response! Please retry."},
                {"role":"user","content":[{"type":"text","text":"Summary"}],"isSummary":true,"condenseId":"x"}]"#,
        &[
            "= …#0",
            "1: person prompt: publish",
            "2: assistant tool_call execute_command#t: git push",
            r#"3: tool tool_result execute_command#t aborted: {"status":"denied"}"#,
            "3: person rejection: use jj",
            "4: client injected: [ERROR] You did not use a tool in your previous response! Please retry. (injected context)",
            "5: client summary: Summary (summary of entries that are here)",
        ],
    );
}

#[test]
fn tags_in_a_result_are_a_persons_words_in_clines_answers_only() {
    let file = |prompt: &str, tool: &str, result: &str| {
        format!(
            r#"[{{"role":"user","content":"{prompt}"}},
                {{"role":"assistant","content":[{{"type":"tool_use","id":"t","name":"{tool}","input":{{}}}}]}},
                {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":"{result}"}}]}}]"#
        )
    };
    let last = |input: &str| {
        let items = testing::read(read, input.as_bytes());
        items.last().map(testing::show_item).unwrap_or_default()
    };
    let told = "<answer>the second</answer>";
    let denied = "The user denied this operation and provided the following feedback:\\n<feedback>no</feedback>";
    let asked = "ask_followup_question";
    assert_eq!(last(&file("<task>a</task>", asked, told)), "3: person answer: the second");
    for (prompt, tool, result) in
        [("<task>a</task>", "read_file", told), ("a", asked, told), ("a", "fetch", denied)]
    {
        let shown = last(&file(prompt, tool, result));
        assert!(shown.starts_with("3: tool tool_result"), "{prompt} {tool}: {shown}");
    }
}

#[test]
fn an_outcome_stated_for_another_tool_than_a_shell_is_not_what_a_file_says() {
    let read_as = |tool: &str, shown: &str| {
        let file = format!(
            r#"[{{"role":"assistant","content":[{{"type":"tool_use","id":"t","name":"{tool}","input":{{}}}}]}},
                {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":"Exit code 2","is_error":false}}]}}]"#
        );
        let shown = format!("2: tool tool_result {tool}#t {shown}: Exit code 2");
        check(&file, &["= …#0", &format!("1: assistant tool_call {tool}#t: {{}}"), &shown]);
    };
    read_as("read", "succeeded");
    read_as("bash", "succeeded 2");
}

#[test]
fn a_cline_sdk_file_has_an_id_and_times() {
    check(
        r#"{"version":1,"sessionId":"17_a","messages":[{"id":"m","role":"user","ts":1,"content":[{"type":"text","text":"q"},
                {"type":"file","path":"a.rs","content":"fn"}]}],"system_prompt":"s"}"#,
        &[
            "= 17_a#0",
            "1: client injected: s (injected context)",
            "1: person prompt: q\n\n[file a.rs]",
        ],
    );
}

#[test]
fn messages_without_role_are_told_by_type() {
    check(r#"[{"type":"assistant","timestamp":1,"text":"a"}]"#, &["= …#0", "1: assistant text: a"]);
}

#[test]
fn a_clients_frame_is_not_the_persons_words_and_tells_the_folder() {
    let folders = |input: &str| {
        let items = testing::read(read, input.as_bytes()).into_iter();
        let cwd = |item| match item {
            TranscriptItem::Session(session) => Some(session.cwd.unwrap_or_default()),
            TranscriptItem::Entry(_) | TranscriptItem::Finding(_) => None,
        };
        items.filter_map(cwd).collect::<Vec<_>>()
    };
    let cline = r#"{"sessionId":"1795446669896_svuny","messages":[{"role":"user","content":[{"type":"text",
        "text":"<user_input mode=\"act\">Write a test</user_input>"}]}],
        "system_prompt":"1. Platform: linux\n4. Working Directory: /home/me/app"}"#;
    check(
        cline,
        &[
            "= 1795446669896_svuny#0",
            "1: client injected: 1. Platform: linux\n4. Working Directory: /home/me/app (injected context)",
            "1: person prompt: Write a test",
        ],
    );
    assert_eq!(folders(cline), ["/home/me/app"]);
    let older = r#"[{"role":"user","content":"<task>a</task>\n<environment_details>\n# Current Working Directory (/home/me/b) Files\nx\n</environment_details>"}]"#;
    assert_eq!(folders(older), ["/home/me/b"]);
    let roo = older.replace("Working", "Workspace");
    assert_eq!(folders(&roo), ["/home/me/b"]);
    assert_eq!(folders(&older.replace("/home/me", "c:/Users")), ["c:/Users/b"]);
    let said = r#"[{"role":"user","content":"Working Directory: /home/me/c"}]"#;
    assert_eq!(folders(said), [""], "a person's words are no context");
}

#[test]
fn an_answer_beside_the_messages_of_a_document_is_the_last_one() {
    let expected = ["= …#0", "1: person prompt: q", "2: assistant text: a"];
    for response in [
        r#"{"choices":[{"message":{"role":"assistant","content":"a"}}]}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"a"}]}"#,
    ] {
        let file = format!(
            "{{\"messages\":[\n{{\"role\":\"user\",\"content\":\"q\"}}],\n\"response\":{response}}}"
        );
        check(&file, &expected);
    }
    check(
        "{\"preferred_output\":[{\"role\":\"assistant\",\"content\":\"a\"}],\n\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}",
        &expected,
    );
}

#[test]
fn a_call_in_the_content_and_beside_it_is_one_call() {
    check(
        r#"[{"role":"assistant","content":[{"type":"tool_call","tool_call_id":"a","name":"get","arguments":"{\"x\":1}"}],
             "tool_calls":[{"id":"a","type":"function","function":{"name":"get","arguments":"{\"x\":1}"}},
                           {"id":"b","type":"function","function":{"name":"get","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"a","content":[{"type":"tool_output","text":[{"type":"text","text":"r"}]}]}]"#,
        &[
            "= …#0",
            "1: assistant tool_call get#a: {\"x\":1}",
            "1: assistant tool_call get#b: {}",
            "2: tool tool_result get#a: r",
        ],
    );
}

#[test]
fn a_converted_session_has_its_folder_times_and_sub_agents() {
    let file = r#"{"messages":[{"role":"user","content":"q","_metadata":{"timestamp":"2026-03-02T08:00:00Z"}},
        {"role":"assistant-subagent-a1","content":"look","_metadata":{"original_role":"user"}},
        {"role":"assistant-subagent-a1","content":[{"type":"tool_call","tool_call_id":"c","name":"ls","arguments":"{}"}],"_metadata":{"original_role":"assistant"}},
        {"role":"assistant-subagent-a1","tool_call_id":"c","content":"r","_metadata":{"original_role":"tool"}}],
        "meta":{"session_meta":{"session_id":"s","cwd":"/home/me/a"}}}"#;
    check(
        file,
        &[
            "= s#0",
            "1: person prompt: q",
            "2: client prompt sidechain: look",
            "3: assistant tool_call ls#c sidechain: {}",
            "4: tool tool_result ls#c sidechain: r",
        ],
    );
    let items = testing::read(read, file.as_bytes());
    let Some(TranscriptItem::Session(head)) = items.first() else { panic!("no session") };
    assert_eq!(head.cwd.as_deref(), Some("/home/me/a"));
    assert!(testing::entries(&items).next().is_some_and(|entry| entry.at.is_some()));
}

#[test]
fn messages_of_langchain_have_a_type() {
    check(
        r#"[{"type":"system","content":"s"},{"type":"human","content":"q"},
            {"type":"ai","content":"","tool_calls":[{"name":"get","args":{"x":1},"id":"a","type":"tool_call"}]},
            {"type":"tool","content":"no","tool_call_id":"a","status":"error"},{"type":"ai","content":"a"}]"#,
        &[
            "= …#0",
            "1: client injected: s (injected context)",
            "2: person prompt: q",
            "3: assistant tool_call get#a: {\"x\":1}",
            "4: tool tool_result get#a failed: no",
            "5: assistant text: a",
        ],
    );
}

#[test]
fn a_line_of_another_kind_does_not_end_a_session_of_messages() {
    check(
        r#"{"type":"message","role":"user","text":"q"}
{"type":"title","title":"T"}
{"type":"tool_call","id":"c","toolId":"Execute","toolName":"Execute","parameters":{"command":"ls"}}
{"type":"tool_result","id":"c","toolId":"Execute","isError":true,"value":"no"}
{"type":"title","title":"T"}
{"type":"message","role":"assistant","text":"a"}"#,
        &[
            "= …#0",
            "1: person prompt: q",
            "! unknown-record 2",
            "3: assistant tool_call Execute#c: {\"command\":\"ls\"}",
            "4: tool tool_result Execute#c failed: no",
            "6: assistant text: a",
        ],
    );
}

#[test]
fn the_root_of_a_conversation_on_github_is_no_message() {
    check(
        r#"{"threadName":"T","messages":[{"id":"root","role":"user","createdAt":""},{"id":"m","role":"user","content":"q"}]}"#,
        &["= …#0 T", "2: person prompt: q"],
    );
}
