//! Rules of the format, each with a transcript of a few lines, and properties of any input.

use super::read;
use crate::domain::{EntryKind, FINDINGS_MAX};
use crate::transcripts::raw::TranscriptItem;
use crate::transcripts::testing;
use proptest::prelude::*;

#[track_caller]
fn check(input: &str, expected: &str) {
    let lines: Vec<_> = input.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    testing::check_page(read, &lines.join("\n"), expected);
}

fn user(id: &str, parent: &str, content: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"{id}","parentUuid":"{parent}","sessionId":"s","message":{{"role":"user","content":{content}}}}}"#
    )
}

/// A line of `message` with one block, as JSON.
fn says(id: &str, parent: &str, message: &str, block: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{id}","parentUuid":"{parent}","sessionId":"s","message":{{"id":"{message}","model":"m","content":[{block}]}}}}"#
    )
}

fn text(words: &str) -> String {
    format!(r#"{{"type":"text","text":"{words}"}}"#)
}

fn call(id: &str, name: &str, input: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}"#)
}

fn result(id: &str, content: &str) -> String {
    format!(r#"[{{"type":"tool_result","tool_use_id":"{id}","content":{content}}}]"#)
}

#[test]
fn a_reused_id_drops_no_words() {
    let lines = [
        user("a", "x", r#""list the files""#),
        user("a", "x", r#""list the files""#),
        user("a", "x", r#""and remove them""#),
    ];
    check(
        &lines.join("\n"),
        "
        = s
        1: person prompt: list the files
        ! reused-id 3
        3: person prompt: and remove them",
    );
}

#[test]
fn unknown_records_and_parts_with_text_are_findings() {
    let of_tomorrow =
        user("b", "a", r#""move them""#).replace(r#""user","uuid"#, r#""of-tomorrow","uuid"#);
    let lines = [
        user("a", "x", r#"[{"type":"of-mars","text":"list"},{"type":"text","text":"the files"}]"#),
        of_tomorrow,
        r#"{"type":"of-its-work","sessionId":"s","count":1}"#.to_owned(),
        r#"{"type":"system","subtype":"of_venus","uuid":"v","parentUuid":"b","sessionId":"s","content":"said"}"#.to_owned(),
        r#"{"type":"of-io","sessionId":"s","message":["said"]}"#.to_owned(),
    ];
    check(
        &lines.join("\n"),
        "
        = s
        ! unknown-record 1
        1: person prompt: the files
        ! unknown-record 2
        ! unknown-record 4
        ! unknown-record 5",
    );
}

#[test]
fn what_annalist_wrote_is_context() {
    let memory = r#""Memory of this project's earlier sessions, kept by annalist. What the memory tags\n\n<memory name=\"project\">\nWe use tabs.\n</memory>\n\nfix it""#;
    let lines = [
        user("a", "x", memory),
        says("b", "a", "m1", &call("t1", "Bash", r#"{"command":"cd /x && annalist why 12"}"#)),
        user("c", "b", &result("t1", r#""decided: tabs""#)),
        says("d", "c", "m2", &call("t2", "Bash", r#"{"command":"cat annalist.md"}"#)),
        user("e", "d", &result("t2", r#""we use tabs""#)),
        user("f", "e", r#""<bash-input>annalist status</bash-input>""#),
        user("g", "f", r#""<bash-stdout>all done</bash-stdout>""#),
        user("h", "g", r#""Operation stopped by hook: annalist: this prompt was not sent.""#),
    ];
    check(
        &lines.join("\n"),
        "
        = s
        1: person prompt: fix it
        2: assistant tool_call Bash#t1: cd /x && annalist why 12
        3: client injected Bash#t1 succeeded 0: decided: tabs (injected context)
        4: assistant tool_call Bash#t2: cat annalist.md
        5: tool tool_result Bash#t2 succeeded 0: we use tabs
        6: person command: !annalist status
        7: client injected: all done (injected context)
        8: client injected: Operation stopped by hook: annalist: this prompt was not sent. (injected context)",
    );
}

#[test]
fn lines_of_one_message_are_one_text_and_a_call_each() {
    let lines = [
        says("a", "x", "m1", r#"{"type":"thinking","thinking":"hm","signature":"xx"}"#),
        says("b", "a", "m1", &text("First.")),
        says("c", "b", "m1", &text("Second.")),
        says("d", "c", "m1", &call("t1", "Bash", r#"{"command":"ls"}"#)),
        user("e", "d", &result("t1", r#""a.rs""#)),
        says("f", "d", "m1", &call("t2", "Read", r#"{"file_path":"a"}"#)),
        user("g", "f", &result("t2", r#""fn""#)),
        says("h", "g", "m2", &text("Done.")),
    ];
    check(
        &lines.join("\n"),
        r#"
        = s
        2: assistant text: First.⏎⏎Second.
        4: assistant tool_call Bash#t1: ls
        5: tool tool_result Bash#t1 succeeded 0: a.rs
        6: assistant tool_call Read#t2: {"file_path":"a"}
        7: tool tool_result Read#t2 succeeded: fn
        8: assistant text: Done."#,
    );
}

#[test]
fn a_result_between_two_texts_of_a_message_stands_behind_them() {
    let lines = [
        says("a", "x", "m1", &call("t1", "Bash", r#"{"command":"ls"}"#)),
        says("b", "a", "m1", &text("One.")),
        user("c", "a", &result("t1", r#""x""#)),
        says("d", "b", "m1", &text("Two.")),
    ];
    check(
        &lines.join("\n"),
        "
        = s
        1: assistant tool_call Bash#t1: ls
        2: assistant text: One.⏎⏎Two.
        3: tool tool_result Bash#t1 succeeded 0: x",
    );
}

#[test]
fn a_result_in_front_of_its_call_belongs_to_it() {
    let lines = [
        user("u1", "x", r#""look""#),
        says("a1", "u1", "m1", &call("c1", "Read", "{}")),
        user("r2", "a3", &result("c2", r#""page""#)),
        user("r1", "a1", &result("c1", r#""file""#)),
        says("a2", "r1", "m2", &text("And the page.")),
        says("a3", "a2", "m2", &call("c2", "WebFetch", r#"{"url":"u"}"#)),
        user("r9", "gone", &result("c9", r#""of a call that is not here""#)),
        says("a4", "r2", "m3", &text("Done.")),
    ];
    check(
        &lines.join("\n"),
        "
        = s
        1: person prompt: look
        2: assistant tool_call Read#c1: {}
        4: tool tool_result Read#c1 succeeded: file
        5: assistant text: And the page.
        6: assistant tool_call WebFetch#c2: u
        3: web tool_result WebFetch#c2 succeeded: page
        7: tool tool_result succeeded: of a call that is not here
        8: assistant text: Done.",
    );
}

#[test]
fn a_result_in_front_of_its_call_is_read_as_one_behind_it() {
    let lines = [
        user("r1", "a1", &result("c1", r#""done""#)),
        user("r2", "a1", &result("c9", r#""of no call""#)),
        says("a1", "", "m1", &call("c1", "Bash", r#"{"command":"ls"}"#)),
        says("a2", "r1", "m2", &text("Done.")),
        user("r3", "a3", &result("c3", r#""far""#)),
    ];
    let mut lines = lines.join("\n");
    let far = format!("\n{}", says("a4", "a2", "m4", &text("x")).replace("a4", "REDACTED"));
    lines += &far.repeat(33);
    lines += &format!("\n{}", says("a3", "a2", "m3", &call("c3", "Bash", "{}")));
    check(
        &lines,
        &format!(
            "
        = s
        3: assistant tool_call Bash#c1: ls
        1: tool tool_result Bash#c1 succeeded 0: done
        2: tool tool_result succeeded: of no call
        4: assistant text: Done.
        5: tool tool_result succeeded: far
        6: assistant text: {}
        39: assistant tool_call Bash#c3: {{}}",
            ["x"; 33].join("⏎⏎")
        ),
    );
}

#[test]
fn words_beside_a_result_are_a_persons_unless_the_client_wrote_them() {
    let beside = |text: &str| {
        let result = result("t1", r#""x""#);
        format!(r#"{},{{"type":"text","text":"{text}"}}]"#, result.trim_end_matches(']'))
    };
    let lines = [
        says("a", "x", "m1", &call("t1", "Bash", r#"{"command":"ls"}"#)),
        user("b", "a", &beside("also rename y")),
        user("c", "b", &beside("[Request interrupted by user for tool use]")),
        user("d", "c", &beside("<system-reminder>be brief</system-reminder>")),
        user("e", "d", &beside("<ide_opened_file>a.rs</ide_opened_file>")),
        user("f", "e", &beside("of a skill")).replacen('{', r#"{"isMeta":true,"#, 1),
        user("g", "f", &beside("")).replace(r#""text","text":"""#, r#""image""#),
    ];
    let items = testing::read(read, lines.join("\n").as_bytes());
    let shown: Vec<String> = testing::entries(&items)
        .filter(|entry| !matches!(entry.kind, EntryKind::ToolCall | EntryKind::ToolResult))
        .map(testing::show)
        .collect();
    assert_eq!(
        shown,
        [
            "person steering: also rename y",
            "client notice aborted: [Request interrupted by user for tool use]",
            "client injected: [context of the editor or of a hook] (injected context)",
            "client injected: of a skill (injected context)",
            "client injected: [image] (injected context)",
        ]
    );
}

#[test]
fn queued_prompts_steer_return_or_reappear() {
    check(
        r#"
        {"type":"queue-operation","operation":"enqueue","content":"use tabs","sessionId":"s"}
        {"type":"queue-operation","operation":"enqueue","content":"and stop","sessionId":"s"}
        {"type":"queue-operation","operation":"remove","sessionId":"s"}
        {"type":"attachment","attachment":{"type":"queued_command","prompt":"use tabs","commandMode":"prompt"}}
        {"type":"attachment","attachment":{"type":"queued_command","prompt":"only here","commandMode":"prompt"}}
        {"type":"queue-operation","operation":"popAll","content":"and stop","sessionId":"s"}
        {"type":"queue-operation","operation":"enqueue","content":"go on","sessionId":"s"}
        {"type":"queue-operation","operation":"dequeue","sessionId":"s"}
        {"type":"user","uuid":"u","message":{"content":"go on"}}
        {"type":"queue-operation","operation":"enqueue","content":"last word","sessionId":"s"}"#,
        "
        = s
        1: person steering: use tabs
        2: person steering: and stop (taken back)
        5: person steering: only here
        9: person prompt: go on
        10: person steering: last word",
    );
}

#[test]
fn a_record_behind_which_another_was_appended_is_read() {
    let lines = [
        user("a", "x", r#""list the files""#),
        says("b", "a", "m", &text("Done.")) + r#"{"type":"summary","summary":"Files"}"#,
    ];
    check(
        &lines.join("\n"),
        "
        = s
        1: person prompt: list the files
        ! bad-line 2
        2: assistant text: Done.",
    );
}

#[test]
fn a_queued_prompt_that_is_taken_out_of_turn_is_read_once() {
    check(
        r#"
        {"type":"queue-operation","operation":"enqueue","content":"{\"task_id\":\"a1\",\"task_type\":\"local_bash\"}","sessionId":"s"}
        {"type":"queue-operation","operation":"enqueue","content":"<task-notification>done</task-notification>","sessionId":"s"}
        {"type":"queue-operation","operation":"enqueue","content":"use tabs","sessionId":"s"}
        {"type":"queue-operation","operation":"dequeue","sessionId":"s"}
        {"type":"user","uuid":"u","message":{"content":"use tabs"}}
        {"type":"user","uuid":"v","message":{"content":"<task-notification>done</task-notification>"}}"#,
        "
        = s
        5: person prompt: use tabs
        6: client notice: <task-notification>done</task-notification>",
    );
    check(
        r#"
        {"type":"queue-operation","operation":"enqueue","content":"<task-notification>done</task-notification>","sessionId":"s"}
        {"type":"queue-operation","operation":"enqueue","content":"use tabs","sessionId":"s"}
        {"type":"queue-operation","operation":"enqueue","content":"{\"task_id\": 5} is rejected, why?","sessionId":"s"}
        {"type":"queue-operation","operation":"dequeue","sessionId":"s"}
        {"type":"user","uuid":"u","message":{"content":"use tabs"}}
        {"type":"queue-operation","operation":"dequeue","sessionId":"s"}
        {"type":"user","uuid":"v","message":{"content":"<task-notification>done</task-notification>"}}"#,
        "
        = s
        3: person steering: {\"task_id\": 5} is rejected, why?
        5: person prompt: use tabs
        7: client notice: <task-notification>done</task-notification>",
    );
}

#[test]
fn a_queued_prompt_in_blocks_and_a_queued_notice_are_known() {
    check(
        r#"
        {"type":"queue-operation","operation":"enqueue","content":"use tabs","sessionId":"s"}
        {"type":"queue-operation","operation":"remove","content":"use tabs","sessionId":"s"}
        {"type":"attachment","attachment":{"type":"queued_command","prompt":[{"type":"text","text":"use tabs"}],"commandMode":"prompt"}}
        {"type":"attachment","attachment":{"type":"queued_command","prompt":"it ended","origin":{"kind":"task-notification"}}}
        {"type":"queue-operation","operation":"enqueue","content":"<task-notification>done</task-notification>","sessionId":"s"}"#,
        "
        = s
        1: person steering: use tabs
        4: client notice: it ended
        5: client notice: <task-notification>done</task-notification>",
    );
}

#[test]
fn a_blocked_prompt_that_is_sent_again_counts_once() {
    let lines = [
        user("a", "x", r#""tidy up""#),
        user("b", "a", r#""Operation stopped by hook: busy""#),
        user("c", "b", r#""tidy up""#),
        user("d", "c", r#""now this""#),
        user("e", "d", r#""Operation stopped by hook: busy""#),
    ];
    check(
        &lines.join("\n"),
        "
        = s
        1: person prompt: tidy up (copied from elsewhere)
        2: client notice: Operation stopped by hook: busy
        3: person prompt: tidy up
        4: person prompt: now this
        5: client notice: Operation stopped by hook: busy",
    );
}

#[test]
fn a_rewound_branch_is_abandoned() {
    let lines = [
        user("a", "x", r#""plan it""#),
        says("b", "a", "m1", &text("A plan.")),
        user("c", "b", r#""do it in C""#),
        says("d", "c", "m2", &text("In C.")),
        user("e", "b", r#""do it in Rust""#),
        says("f", "e", "m3", &text("In Rust.")),
    ];
    check(
        &lines.join("\n"),
        "
        = s
        1: person prompt: plan it
        2: assistant text: A plan.
        3: person prompt abandoned: do it in C
        4: assistant text abandoned: In C.
        5: person prompt: do it in Rust
        6: assistant text: In Rust.",
    );
}

/// Two prompts that each begin a tree and have an answer, with `between` in between.
fn two_beginnings(second: &str, between: &str) -> String {
    let root = |line: String| line.replace(r#""parentUuid":"""#, r#""parentUuid":null"#);
    let (first, second) = (root(user("a", "", r#""do it in C""#)), root(user("c", "", second)));
    let (b, d) = (says("b", "a", "m1", &text("In C.")), says("d", "c", "m2", &text("Done.")));
    [first, b, between.to_owned(), second, d].join("\n")
}

#[test]
fn the_first_prompt_may_be_rewound() {
    check(
        &two_beginnings(r#""do it in Rust""#, ""),
        "
        = s
        1: person prompt abandoned: do it in C
        2: assistant text abandoned: In C.
        3: person prompt: do it in Rust
        4: assistant text: Done.",
    );
}

#[test]
fn a_plan_or_a_compaction_rewinds_nothing() {
    check(
        &two_beginnings(r#""Implement the following plan: C""#, ""),
        "
        = s
        1: person prompt: do it in C
        2: assistant text: In C.
        3: person prompt: Implement the following plan: C
        4: assistant text: Done.",
    );
    check(
        &two_beginnings(
            r#""Implement the following plan:\n\nC\n\n\nIf you need specific details from before exiting plan mode""#,
            "",
        ),
        "
        = s
        1: person prompt: do it in C
        2: assistant text: In C.
        3: client injected: Implement the following plan:⏎⏎C⏎⏎⏎If you need specific details from before exiting plan mode (injected context)
        4: assistant text: Done.",
    );
    let boundary = r#"{"type":"system","subtype":"compact_boundary","uuid":"j","parentUuid":null,"logicalParentUuid":"b","sessionId":"s"}"#;
    check(
        &two_beginnings(r#""and now in Rust""#, boundary),
        "
        = s
        1: person prompt: do it in C
        2: assistant text: In C.
        4: person prompt: and now in Rust
        5: assistant text: Done.",
    );
}

#[test]
fn a_summary_is_read_where_the_originals_are_missing() {
    let summary = r#"{"type":"user","uuid":"k","isCompactSummary":true,"message":{"content":"This session is being continued"}}"#;
    let boundary = r#"{"type":"system","subtype":"compact_boundary","uuid":"j","parentUuid":null,"logicalParentUuid":"a"}"#;
    check(
        &[boundary, summary].join("\n"),
        "
        = …
        2: client summary: This session is being continued",
    );
    let lines = [&user("a", "x", r#""go""#), boundary, summary];
    check(
        &lines.join("\n"),
        "
        = s
        1: person prompt: go
        3: client summary: This session is being continued (summary of entries that are here)",
    );
}

#[test]
fn a_record_is_read_once() {
    let once = user("a", "x", r#""go""#);
    let resumed = once.replace("\"sessionId\":\"s\"", "\"sessionId\":\"t\"");
    check(
        &[once.clone(), once, resumed].join("\n"),
        "
        = s
        1: person prompt: go
        3: person prompt: go (copied from elsewhere)",
    );
}

#[test]
fn ids_that_a_redactor_replaced_make_no_duplicates() {
    let lines = [
        user("[trimmed for fixture]", "[trimmed for fixture]", r#""one""#),
        user("[trimmed for fixture]", "[trimmed for fixture]", r#""two""#),
    ];
    check(
        &lines.join("\n"),
        "
        = s
        1: person prompt: one
        2: person prompt: two",
    );
}

#[test]
fn a_resumed_session_is_its_own_and_the_child_of_the_copied_one() {
    let copied = says("a", "x", "m1", &text("Old."));
    let own = says("b", "a", "m2", &text("New.")).replace("\"s\"", "\"t\"");
    check(
        &[copied, own].join("\n"),
        "
        = t < s
        1: assistant text: Old.
        2: assistant text: New.",
    );
}

#[test]
fn copies_of_requests_to_the_api_are_passed_over() {
    check(
        &format!(
            r#"
        {{"type":"api-request-blob","sessionId":"s","hash":"9f","message":{{"role":"user","content":[{{"type":"text","text":"<system-reminder>\nClean.\n</system-reminder>"}}]}}}}
        {}"#,
            says("a", "p", "m", &text("Hi."))
        ),
        "
        = s
        2: assistant text: Hi.",
    );
}

#[test]
fn the_session_is_the_one_the_assistant_spoke_in() {
    check(
        &format!(
            r#"
        {{"type":"progress","uuid":"p","sessionId":"next","cwd":"/x"}}
        {}"#,
            says("a", "p", "m", &text("Hi."))
        ),
        "
        = s
        2: assistant text: Hi.",
    );
}

#[test]
fn a_sub_agents_file_is_a_session_of_its_own() {
    check(
        r#"
        {"type":"user","uuid":"a","parentUuid":null,"isSidechain":true,"agentId":"a1","sessionId":"s","message":{"content":"look for x"}}
        {"type":"assistant","uuid":"b","parentUuid":"a","isSidechain":true,"agentId":"a1","sessionId":"s","message":{"id":"m","content":[{"type":"text","text":"Found."}]}}"#,
        "
        = s/agent-a1 < s
        1: client prompt sidechain: look for x
        2: assistant text sidechain: Found.",
    );
}

#[test]
fn what_the_client_made_is_not_the_models() {
    check(
        r#"
        {"type":"assistant","uuid":"a","sessionId":"s","message":{"id":"m","model":"<synthetic>","content":[{"type":"text","text":"No response requested."}]}}
        {"type":"user","uuid":"b","isMeta":true,"message":{"content":"Base directory for this skill: /x"}}
        {"type":"user","uuid":"c","origin":{"kind":"task-notification"},"message":{"content":"it ended"}}
        {"type":"attachment","attachment":{"type":"edited_text_file","filename":"a.rs","snippet":"fn"}}
        {"type":"pr-link","prNumber":7,"prUrl":"https://x.test/7"}
        {"type":"pr-link","prNumber":7,"prUrl":"https://x.test/7"}
        {"type":"never-heard-of","message":{"content":"x"}}
        {"type":"ai-title","aiTitle":"Old"}
        {"type":"ai-title","aiTitle":"Look around"}"#,
        "
        = s Look around
        1: client notice: No response requested.
        2: client injected: Base directory for this skill: /x (injected context)
        3: client notice: it ended
        4: client injected: [edited_text_file a.rs] (injected context)
        5: client notice: [pull request #7] https://x.test/7
        ! unknown-record 7",
    );
}

#[test]
fn summaries_of_other_sessions_are_no_title() {
    let own = r#"{"type":"summary","summary":"Ours","leafUuid":"a"}"#;
    let others = r#"{"type":"summary","summary":"Theirs","leafUuid":"q"}"#;
    check(
        &[own, others, &user("a", "x", r#""go""#)].join("\n"),
        "
        = s Ours
        3: person prompt: go",
    );
}

#[test]
fn images_are_marks() {
    let image = r#"[{"type":"text","text":"see"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8h"}}]"#;
    check(
        &user("a", "x", image),
        "
        = s
        1: person prompt: see⏎⏎[image image/png, 6 bytes]",
    );
}

#[test]
fn broken_lines_are_findings_and_the_rest_goes_on() {
    let good = user("a", "x", r#""go""#);
    check(
        &format!(
            "{good}\n{{\"type\":\n42\n\n{}\n{}",
            user("b", "a", r#""half \ud83d""#),
            &good[..30]
        ),
        "
        = s
        1: person prompt: go
        ! bad-line 2
        ! bad-line 3
        4: person prompt: half \u{fffd}
        ! truncated-last-line 5
        ! invalid-utf8 4",
    );
}

#[test]
fn a_whole_last_line_without_line_end_is_read() {
    check(
        &user("a", "x", r#""go""#),
        "
        = s
        1: person prompt: go",
    );
}

#[test]
fn the_web_clients_export_is_read() {
    let export = r#"{"loglines":[
        {"type":"user","timestamp":"2026-01-01T00:00:00Z","sessionId":"s","message":{"content":"go"}},
        {"type":"assistant","message":{"content":[{"type":"text","text":"Gone."}]}}]}"#;
    testing::check_page(
        read,
        export,
        "
        = s
        1: person prompt: go
        2: assistant text: Gone.",
    );
}

#[test]
fn a_printed_run_is_read() {
    check(
        r#"
        {"type":"system","subtype":"init","session_id":"s","cwd":"/x"}
        {"type":"assistant","session_id":"s","parent_tool_use_id":null,"message":{"id":"m","content":[{"type":"text","text":"Hi."}]}}
        {"type":"user","session_id":"s","parent_tool_use_id":"t1","message":{"content":"search"}}
        {"type":"result","subtype":"success","is_error":false,"result":"Hi.","session_id":"s"}"#,
        "
        = s
        2: assistant text: Hi.
        3: client prompt sidechain: search",
    );
    check(
        r#"{"type":"result","is_error":false,"result":"Only this.","session_id":"s"}"#,
        "
        = s
        1: assistant text: Only this.",
    );
}

#[test]
fn findings_of_one_file_are_bounded() {
    let items = testing::read(read, "x\n".repeat(3 * FINDINGS_MAX).as_bytes());
    let findings = items.iter().filter(|item| matches!(item, TranscriptItem::Finding(_)));
    assert_eq!(findings.count(), FINDINGS_MAX + 1);
}

/// Lines of every kind, as input for corruption.
fn lines() -> Vec<u8> {
    let mut all = String::new();
    let refusal = r#""The user doesn't want to proceed with this tool use. the user said:\nno""#;
    for line in [
        user("a", "x", r#""go \ud83d\ude00""#),
        says("b", "a", "m1", &call("t1", "AskUserQuestion", r#"{"questions":[{"question":"q","options":[{"label":"l"}]}]}"#)),
        user("c", "b", &result("t1", refusal)),
        r#"{"type":"queue-operation","operation":"enqueue","content":"<bash-input>ls</bash-input>"}"#.to_owned(),
        r#"{"type":"system","subtype":"api_error","error":{"status":529,"message":"busy"}}"#.to_owned(),
        user("d", "c", r#""<command-name>/x</command-name><system-reminder>y""#),
        r#"{"type":"user","uuid":"e","toolUseResult":{"answers":{"q":["l"]},"plan":"p"},"message":{"content":[{"type":"tool_result","content":[{"type":"image","source":{"data":"aa"}}]}]}}"#.to_owned(),
    ] {
        all.push_str(&line);
        all.push('\n');
    }
    all.into_bytes()
}

proptest! {
    #![proptest_config(crate::testing::cases(400))]

    #[test]
    fn broken_bytes_never_panic(
        cut in 0usize..2000,
        flips in prop::collection::vec((0usize..2000, any::<u8>()), 0..12),
    ) {
        testing::broken(read, lines(), cut, &flips);
    }
}

#[test]
fn a_call_with_the_id_of_an_earlier_one_is_another_call() {
    let lines = [
        says("a", "x", "m1", &call("call_0", "Bash", r#"{"command":"ls"}"#)),
        user("b", "a", &result("call_0", r#""one""#)),
        says("c", "b", "m2", &call("call_0", "Bash", r#"{"command":"rm -rf build"}"#)),
    ];
    let shown = testing::shown(crate::domain::Format::ClaudeCode, &lines.join("\n"));
    assert_eq!(shown.iter().filter(|it| it.contains("tool_call Bash#call_0")).count(), 2);
}

#[test]
fn a_call_that_a_later_record_repeats_is_one_call() {
    let repeated = [
        call("t1", "Read", r#"{"file_path":"a"}"#),
        text("Now b."),
        call("t2", "Read", r#"{"file_path":"b"}"#),
    ];
    let part = |id: &str, text: &str| {
        format!(
            r#"{{"callId":"{id}","responseParts":{{"functionResponse":{{"id":"{id}","response":{{"output":"{text}"}}}}}}}}"#
        )
    };
    let lines = [
        says("a", "x", "m1", &call("t1", "Read", r#"{"file_path":"a"}"#)),
        user("b", "a", &result("t1", &part("t1", "one"))),
        says("c", "a", "m2", &repeated.join(",")),
        user("d", "c", &result("t2", &part("t2", "two"))),
    ];
    check(
        &lines.join("\n"),
        r#"
        = s
        1: assistant tool_call Read#t1: {"file_path":"a"}
        2: tool tool_result Read#t1 succeeded: one
        3: assistant text: Now b.
        3: assistant tool_call Read#t2: {"file_path":"b"}
        4: tool tool_result Read#t2 succeeded: two"#,
    );
}

#[test]
fn notices_in_system_records_are_no_findings() {
    let record = |subtype: &str| {
        format!(
            r#"{{"type":"system","subtype":"{subtype}","uuid":"{subtype}","parentUuid":"a","sessionId":"s","content":"x"}}"#
        )
    };
    let lines =
        [user("a", "x", r#""go""#), record("bridge_status"), record("microcompact_boundary")];
    check(&lines.join("\n"), "= s\n1: person prompt: go");
}
