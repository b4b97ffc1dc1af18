//! Rules of the format, each with a rollout of a few lines, and properties of any input.

use super::read;
use crate::domain::{EntryKind, Outcome, Skip, Speaker};
use crate::transcripts::testing;
use proptest::prelude::*;

#[track_caller]
fn check(input: &str, expected: &str) {
    let lines: Vec<_> = input.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    testing::check_page(read, &lines.join("\n"), expected);
}

const HEAD: &str = r#"{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"s","cwd":"/x","source":"cli"}}"#;

#[test]
fn unknown_records_with_text_are_findings() {
    check(
        &format!(
            r#"{HEAD}
        {{"type":"event_msg","payload":{{"type":"of_tomorrow","message":"said"}}}}
        {{"type":"event_msg","payload":{{"type":"of_tomorrow","message":"said again"}}}}
        {{"type":"response_item","payload":{{"type":"of_mars","content":[{{"type":"text","text":"said"}}]}}}}
        {{"type":"of_yesterday","payload":{{"message":"said"}}}}
        {{"type":"event_msg","payload":{{"type":"of_its_work","count":1}}}}
        {{"type":"event_msg","payload":{{"type":"of_venus","text":"said"}}}}
        {{"type":"event_msg","payload":{{"type":"item_completed","item":{{"type":"OfPluto","text":"said"}}}}}}"#
        ),
        "
        = s
        ! unknown-record 2
        ! unknown-record 4
        ! unknown-record 5
        ! unknown-record 7
        ! unknown-record 8",
    );
}

#[test]
fn what_an_editor_shows_is_injected_and_the_request_is_the_persons() {
    check(
        &format!(
            r##"{HEAD}
        {{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"# Context from my IDE setup:\n\n## Open tabs:\n- a.rs\n\n## My request for Codex:\nfix a.rs\n"}}]}}}}
        {{"type":"event_msg","payload":{{"type":"user_message","message":"# Context from my IDE setup:\n\n## Open tabs:\n- a.rs\n\n## My request for Codex:\nfix a.rs\n"}}}}"##
        ),
        "
        = s
        3: client injected: # Context from my IDE setup:⏎⏎## Open tabs:⏎- a.rs (injected context)
        3: person prompt: fix a.rs",
    );
}

#[test]
fn words_come_from_events_and_calls_from_items() {
    check(
        &format!(
            r#"{HEAD}
        {{"type":"response_item","payload":{{"type":"message","role":"developer","content":[{{"type":"input_text","text":"rules"}}]}}}}
        {{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"<environment_context>x"}}]}}}}
        {{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"list files\n"}}]}}}}
        {{"type":"event_msg","payload":{{"type":"user_message","message":"list files\n","images":["data:image/png;base64,aGVsbG8h"]}}}}
        {{"type":"response_item","payload":{{"type":"reasoning","summary":[{{"type":"summary_text","text":"hm"}}]}}}}
        {{"type":"event_msg","payload":{{"type":"agent_reasoning","text":"hm"}}}}
        {{"type":"response_item","payload":{{"type":"function_call","name":"exec_command","arguments":"{{\"cmd\":\"ls\"}}","call_id":"c1"}}}}
        {{"type":"event_msg","payload":{{"type":"exec_command_end","call_id":"c1","exit_code":2,"status":"failed"}}}}
        {{"type":"response_item","payload":{{"type":"function_call_output","call_id":"c1","output":"Process running with session ID 4\nOutput:\nno"}}}}
        {{"type":"event_msg","payload":{{"type":"agent_message","message":"None."}}}}
        {{"type":"response_item","payload":{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"None."}}]}}}}
        {{"type":"event_msg","payload":{{"type":"thread_name_updated","thread_name":"Files"}}}}"#
        ),
        "
        = s Files
        2: client injected: rules (injected context)
        3: client injected: <environment_context>x (injected context)
        5: person prompt: list files⏎[image image/png, 6 bytes]
        8: assistant tool_call exec_command#c1: ls
        10: tool tool_result exec_command#c1 failed 2: no
        11: assistant text: None.",
    );
}

#[test]
fn a_completed_prompt_with_a_picture_is_told_once() {
    check(
        &format!(
            r#"{HEAD}
        {{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"list files"}},{{"type":"input_image","image_url":"data:image/png;base64,aGVsbG8h"}}]}}}}
        {{"type":"event_msg","payload":{{"type":"item_completed","item":{{"type":"UserMessage","id":"u","content":[{{"type":"text","text":"list files"}},{{"type":"image","image_url":"data:image/png;base64,aGVsbG8h"}},{{"type":"local_image","path":"/a.png"}}]}}}}}}
        {{"type":"response_item","payload":{{"type":"function_call","name":"request_user_input","arguments":"{{}}","call_id":"c1"}}}}
        {{"type":"response_item","payload":{{"type":"function_call_output","call_id":"c1","output":"{{\"answers\":{{\"all\":{{\"answers\":[\"yes\"]}}}}}}"}}}}"#
        ),
        "
        = s
        3: person prompt: list files⏎[image image/png, 6 bytes]⏎[image]
        4: assistant tool_call request_user_input#c1: {}
        5: person answer request_user_input#c1 succeeded: all: yes",
    );
}

#[test]
fn an_output_that_is_an_error_is_a_failure() {
    check(
        &format!(
            r#"{HEAD}
        {{"type":"response_item","payload":{{"type":"function_call","name":"mcp__db__query","arguments":"{{}}","call_id":"c1"}}}}
        {{"type":"event_msg","payload":{{"type":"mcp_tool_call_end","call_id":"c1","result":{{"Ok":{{"content":[],"isError":true}}}}}}}}
        {{"type":"response_item","payload":{{"type":"function_call_output","call_id":"c1","output":"no such table"}}}}"#
        ),
        "
        = s
        2: assistant tool_call mcp__db__query#c1: {}
        4: web tool_result mcp__db__query#c1 failed: no such table",
    );
}

#[test]
fn completed_items_are_events_in_a_new_form() {
    check(
        &format!(
            r#"{HEAD}
        {{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"list files"}}]}}}}
        {{"type":"event_msg","payload":{{"type":"item_completed","item":{{"type":"UserMessage","id":"u","content":[{{"type":"text","text":"list files"}}]}}}}}}
        {{"type":"event_msg","payload":{{"type":"item_completed","item":{{"type":"AgentMessage","id":"a","content":[{{"type":"Text","text":"None."}}]}}}}}}
        {{"type":"event_msg","payload":{{"type":"agent_message","message":"None."}}}}
        {{"type":"response_item","payload":{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"None."}}]}}}}
        {{"type":"event_msg","payload":{{"type":"item_completed","item":{{"type":"EnteredReviewMode","id":"r","user_facing_hint":"changes"}}}}}}
        {{"type":"event_msg","payload":{{"type":"item_completed","item":{{"type":"Plan","id":"p","text":"First tests."}}}}}}"#
        ),
        "
        = s
        3: person prompt: list files
        4: assistant text: None.
        7: client notice: [review began] changes
        8: assistant text: First tests.",
    );
}

#[test]
fn a_script_fails_with_the_command_that_it_runs() {
    let call = |id: &str, command: &str| {
        format!(
            r#"{{"type":"response_item","payload":{{"type":"custom_tool_call","name":"exec","call_id":"{id}","input":"await tools.exec_command({{cmd: '{command}'}});"}}}}"#
        )
    };
    let ran = |command: &str, code: i32| {
        format!(
            r#"{{"type":"event_msg","payload":{{"type":"item_completed","item":{{"type":"CommandExecution","id":"exec-{command}","command":["bash","-lc","{command}"],"status":"x","exit_code":{code}}}}}}}"#
        )
    };
    let output = |id: &str, text: &str| {
        format!(
            r#"{{"type":"response_item","payload":{{"type":"custom_tool_call_output","call_id":"{id}","output":[{{"type":"input_text","text":"Script completed\nWall time 0.1 seconds\nOutput:\n"}},{{"type":"input_text","text":"{text}"}}]}}}}"#
        )
    };
    let lines = [
        HEAD.to_owned(),
        call("c1", "one"),
        call("c2", "two"),
        ran("two", 1),
        ran("one", 0),
        output("c1", "fine"),
        output("c2", ""),
    ];
    check(
        &lines.join("\n"),
        "
        = s
        2: assistant tool_call exec#c1: await tools.exec_command({cmd: 'one'});
        3: assistant tool_call exec#c2: await tools.exec_command({cmd: 'two'});
        6: tool tool_result exec#c1 succeeded: fine
        7: tool tool_result exec#c2 failed 1: [no output]",
    );
}

#[test]
fn the_summary_of_a_compaction_is_not_the_assistants_words() {
    check(
        &format!(
            r#"{HEAD}
        {{"type":"event_msg","payload":{{"type":"user_message","message":"go"}}}}
        {{"type":"response_item","payload":{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"We chose tabs."}}]}}}}
        {{"type":"compacted","payload":{{"message":"Another language model started to solve this problem and wrote:\nWe chose tabs."}}}}
        {{"type":"event_msg","payload":{{"type":"agent_message","message":"Going on."}}}}"#
        ),
        "
        = s
        2: person prompt: go
        3: client summary: We chose tabs. (summary of entries that are here)
        4: client summary: Another language model started to solve this problem and wrote:⏎We chose tabs. (summary of entries that are here)
        5: assistant text: Going on.",
    );
}

#[test]
fn without_events_items_hold_the_words() {
    check(
        r#"
        {"id":"old","timestamp":"2025-05-01T00:00:00Z","instructions":null,"git":{}}
        {"record_type":"state"}
        {"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x"}]}
        {"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}
        {"type":"reasoning","summary":[]}
        {"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"ls\"]}","call_id":"c1"}
        {"type":"function_call_output","call_id":"c1","output":"{\"output\":\"a\",\"metadata\":{\"exit_code\":0}}"}
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}"#,
        "
        = old
        3: client injected: <environment_context>x (injected context)
        4: person prompt: go
        6: assistant tool_call shell#c1: ls
        7: tool tool_result shell#c1 succeeded 0: a
        8: assistant text: Done.",
    );
}

#[test]
fn the_first_clients_single_object_is_read() {
    let object =
        r#"{"session":{"id":"s0"},"items":[{"type":"message","role":"user","content":"go"}]}"#;
    let first = r#"{"type":"message","role":"user","content":"go"}"#;
    let id = crate::domain::Digest::of(&["codex", first]).to_string();
    testing::check_page(read, object, "= …\n1: person prompt: go");
    assert_eq!(testing::ids(&testing::read(read, object.as_bytes())), [id]);
}

#[test]
fn an_interruption_ends_the_calls_that_wait() {
    check(
        &format!(
            r#"{HEAD}
        {{"type":"event_msg","payload":{{"type":"user_message","message":"go"}}}}
        {{"type":"response_item","payload":{{"type":"function_call","name":"exec_command","arguments":"{{\"cmd\":\"sleep 9\"}}","call_id":"c1"}}}}
        {{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"<turn_aborted>\nstopped"}}]}}}}
        {{"type":"event_msg","payload":{{"type":"turn_aborted","reason":"interrupted"}}}}"#
        ),
        "
        = s
        2: person prompt: go
        3: assistant tool_call exec_command#c1: sleep 9
        4: client notice: <turn_aborted>⏎stopped (copied from elsewhere)
        5: client tool_result exec_command#c1 aborted: [no output: the turn was aborted]
        5: client notice aborted: [turn aborted: interrupted]",
    );
}

#[test]
fn a_forks_copied_history_is_skipped() {
    let stamp =
        |time: &str, rest: &str| format!(r#"{{"timestamp":"2026-01-01T00:00:{time}Z",{rest}}}"#);
    let said = |kind: &str, text: &str| {
        format!(r#""type":"event_msg","payload":{{"type":"{kind}","message":"{text}"}}"#)
    };
    let started = r#""type":"event_msg","payload":{"type":"task_started"}"#;
    let lines = [
        stamp(
            "00.001",
            r#""type":"session_meta","payload":{"id":"s","forked_from_id":"p","source":{"subagent":{"thread_spawn":{"parent_thread_id":"p"}}}}"#,
        ),
        stamp("00.002", r#""type":"session_meta","payload":{"id":"p","source":"cli"}"#),
        stamp("00.003", &said("user_message", "the parent's task")),
        stamp("00.004", &said("agent_message", "Decided.")),
        stamp("00.005", started),
        stamp("00.006", &said("user_message", "your part")),
        stamp("09.000", &said("agent_message", "My part is done.")),
    ];
    check(
        &lines.join("\n"),
        "
        = s < p
        3: person prompt sidechain: the parent's task (copied from elsewhere)
        4: assistant text sidechain: Decided. (copied from elsewhere)
        6: client prompt sidechain: your part
        7: assistant text sidechain: My part is done.",
    );
}

#[test]
fn a_resumed_session_repeats_its_head_and_is_no_fork() {
    check(
        &format!(
            r#"{HEAD}
        {HEAD}
        {{"timestamp":"2026-01-01T00:00:00.000Z","type":"event_msg","payload":{{"type":"user_message","message":"go"}}}}"#
        ),
        "
        = s
        3: person prompt: go",
    );
}

#[test]
fn a_review_is_told_once() {
    check(
        &format!(
            r#"{HEAD}
        {{"type":"event_msg","payload":{{"type":"user_message","message":"go"}}}}
        {{"type":"event_msg","payload":{{"type":"entered_review_mode","user_facing_hint":"the changes"}}}}
        {{"type":"event_msg","payload":{{"type":"exited_review_mode","review_output":{{"findings":[{{"title":"Leak","body":"It leaks."}}],"overall_correctness":"incorrect"}}}}}}
        {{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"<user_action>\nLeak"}}]}}}}"#
        ),
        "
        = s
        2: person prompt: go
        3: client notice: [review began] the changes
        4: assistant text: incorrect⏎⏎Leak⏎It leaks.
        5: client notice: <user_action>⏎Leak (copied from elsewhere)",
    );
}

#[test]
fn a_review_of_completed_items_is_told_once_and_its_prompt_is_the_clients() {
    let item = |thread: &str, item: &str| {
        format!(
            r#"{{"type":"event_msg","payload":{{"type":"item_completed","thread_id":"{thread}","item":{item}}}}}"#
        )
    };
    let asked = |hint: &str, prompt: &str| {
        let begun =
            format!(r#"{{"type":"EnteredReviewMode","id":"r","user_facing_hint":"{hint}"}}"#);
        let asked = format!(
            r#"{{"type":"UserMessage","id":"u","content":[{{"type":"text","text":"{prompt}"}}]}}"#
        );
        [item("s", &begun), item("reviewer", &asked)].join("\n")
    };
    let said = |text: &str| {
        let said = format!(
            r#"{{"type":"AgentMessage","id":"a","content":[{{"type":"Text","text":"{text}"}}]}}"#
        );
        let message = format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{text}"}}]}}}}"#
        );
        [message, item("s", &said)].join("\n")
    };
    let review = r#"{"type":"ExitedReviewMode","id":"x","review_output":{"findings":[{"title":"Leak","body":"It leaks."}],"overall_explanation":"Noted."}}"#;
    let ask = |thread: &str| {
        item(
            thread,
            r#"{"type":"UserMessage","id":"v","content":[{"type":"text","text":"fix it"}]}"#,
        )
    };
    let lines = [
        HEAD.to_owned(),
        asked("current changes", "Review the current changes."),
        item("s", review),
        said("Noted.\\n\\nReview comment:\\n\\n- Leak"),
        ask("s"),
        said("Fixed."),
        asked("look for leaks", "look for leaks"),
        item("s", r#"{"type":"ExitedReviewMode","id":"x","review_output":null}"#),
        said("Review was interrupted."),
        ask("another"),
    ];
    check(
        &lines.join("\n"),
        "
        = s
        2: client notice: [review began] current changes
        3: client prompt: Review the current changes.
        4: assistant text: Noted.⏎⏎Leak⏎It leaks.
        6: assistant text: Noted.⏎⏎Review comment:⏎⏎- Leak (copied from elsewhere)
        7: person prompt: fix it
        9: assistant text: Fixed.
        10: client notice: [review began] look for leaks
        11: person prompt: look for leaks
        14: assistant text: Review was interrupted.
        15: person prompt: fix it",
    );
    // A client that does not repeat the review.
    let lines = [HEAD.to_owned(), ask("s"), item("s", review), ask("s"), said("Fixed.")];
    check(
        &lines.join("\n"),
        "
        = s
        2: person prompt: fix it
        3: assistant text: Noted.⏎⏎Leak⏎It leaks.
        4: person prompt: fix it
        6: assistant text: Fixed.",
    );
}

#[test]
fn summaries_are_skipped_and_histories_never_read() {
    check(
        &format!(
            r#"{HEAD}
        {{"type":"compacted","payload":{{"message":"So far: x","replacement_history":[{{"type":"message","role":"user","content":[{{"type":"input_text","text":"again"}}]}}]}}}}
        {{"type":"compacted","payload":{{"message":"","replacement_history":[]}}}}"#
        ),
        "
        = s
        2: client summary: So far: x (summary of entries that are here)",
    );
}

#[test]
fn turns_that_were_rolled_back_are_abandoned() {
    check(
        &format!(
            r#"{HEAD}
        {{"type":"event_msg","payload":{{"type":"user_message","message":"one"}}}}
        {{"type":"event_msg","payload":{{"type":"user_message","message":"two"}}}}
        {{"type":"event_msg","payload":{{"type":"agent_message","message":"Two."}}}}
        {{"type":"event_msg","payload":{{"type":"thread_rolled_back","num_turns":1}}}}
        {{"type":"event_msg","payload":{{"type":"user_message","message":"three"}}}}"#
        ),
        "
        = s
        2: person prompt: one
        3: person prompt abandoned: two
        4: assistant text abandoned: Two.
        5: client notice: [thread_rolled_back]
        6: person prompt: three",
    );
}

#[test]
fn searches_are_the_webs_and_refusals_the_clients() {
    check(
        &format!(
            r#"{HEAD}
        {{"type":"response_item","payload":{{"type":"web_search_call","status":"completed","action":{{"type":"search","query":"tags"}}}}}}
        {{"type":"response_item","payload":{{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin","call_id":"c"}}}}
        {{"type":"response_item","payload":{{"type":"custom_tool_call_output","call_id":"c","output":"patch rejected by user"}}}}
        {{"type":"response_item","payload":{{"type":"function_call","name":"mcp__x__y","arguments":"not json","call_id":"d"}}}}
        {{"type":"response_item","payload":{{"type":"function_call_output","call_id":"d","output":[{{"type":"input_text","text":"a"}}]}}}}
        {{"type":"response_item","payload":{{"type":"function_call","name":"y","namespace":"mcp__x","arguments":"not json","call_id":"e"}}}}
        {{"type":"response_item","payload":{{"type":"function_call_output","call_id":"e","output":"b"}}}}"#
        ),
        "
        = s
        2: web tool_call web_search#: tags
        3: assistant tool_call apply_patch#c: *** Begin
        4: client rejection apply_patch#c aborted: patch rejected by user
        5: assistant tool_call mcp__x__y#d: not json
        6: web tool_result mcp__x__y#d succeeded: a
        7: assistant tool_call mcp__x__y#e: not json
        8: web tool_result mcp__x__y#e succeeded: b",
    );
}

#[test]
fn broken_lines_are_findings_and_the_rest_goes_on() {
    check(
        &format!(
            r#"{HEAD}
        {{"type":"event_msg","payload":
        {{"type":"event_msg","payload":7}}
        {{"type":"event_msg","payload":{{"type":"user_message","message":"go"}}}}
        {{"type":"event_m"#
        ),
        "
        = s
        ! bad-line 2
        4: person prompt: go
        ! truncated-last-line 5",
    );
}

/// Prompts, assistant texts and calls by file, from the list beside the transcripts. A sub-agent's
/// prompt is its parent's.
const COUNTS: [(&str, usize, usize, usize); 14] = [
    ("git-sync-review-merge-findings", 3, 14, 41),
    ("git-sync-same-repo-check-bugbot", 4, 11, 20),
    ("git-sync-faq-review", 2, 9, 25),
    ("git-sync-images-in-readme", 12, 46, 153),
    ("git-sync-pr-review", 3, 12, 57),
    ("git-sync-review-subagent", 0, 1, 18),
    ("git-sync-exec-review", 1, 7, 50),
    ("entire-graph-provider-contract-fix", 2, 24, 112),
    ("entire-graph-large-repo-perf", 2, 12, 37),
    ("entire-graph-adversarial-review-sandbox", 6, 26, 136),
    ("skills-issue-6", 2, 11, 29),
    ("skills-collab-tiny", 1, 1, 2),
    // One agent message, and three reviews.
    ("agent-sessions-all-record-types", 3, 1 + 3, 7),
    ("codex-git-sync-smoke-test", 37, 152, 277),
];

fn samples() -> impl Iterator<Item = (String, Vec<u8>)> {
    let folders = ["codex", "codex/fixtures", "large"];
    let all = folders.into_iter().flat_map(testing::logs);
    all.filter(|(name, _)| !name.starts_with("claude"))
}

#[test]
fn shared_rollouts_have_the_words_they_are_said_to_have() {
    for (name, bytes) in samples() {
        let items = testing::read(read, &bytes);
        let count = |speaker, kind| testing::count(&items, speaker, kind);
        let got = (
            name.as_str(),
            count(Speaker::Person, EntryKind::Prompt),
            count(Speaker::Assistant, EntryKind::Text),
            count(Speaker::Assistant, EntryKind::ToolCall),
        );
        assert_eq!(Some(got), COUNTS.iter().find(|(known, ..)| *known == name).copied());
    }
}

#[test]
fn shared_rollouts_keep_the_invariants() {
    for (name, bytes) in samples() {
        let items = testing::read(read, &bytes);
        testing::invariants(&name, &items, bytes.len());
        for entry in testing::entries(&items) {
            let text = entry.text.as_str();
            assert!(!text.starts_with("Chunk ID:"), "{name}:{} keeps its header", entry.line);
            if entry.exit_code.is_some_and(|code| code != 0) {
                assert_eq!(entry.outcome, Some(Outcome::Failed), "{name}:{}", entry.line);
            }
            if entry.kind == EntryKind::Injected {
                assert_eq!(entry.skip, Some(Skip::Injected), "{name}:{}", entry.line);
            }
        }
    }
}

#[test]
fn damaged_rollouts_never_panic() {
    testing::damaged(read, samples());
}

proptest! {
    #![proptest_config(crate::testing::cases(400))]

    #[test]
    fn broken_bytes_never_panic(
        cut in 0usize..2000,
        flips in prop::collection::vec((0usize..2000, any::<u8>()), 0..12),
    ) {
        let lines = [
            HEAD,
            r#"{"type":"event_msg","payload":{"type":"user_message","message":"go \ud83d\ude00","images":["data:image/png;base64,REDACTED"]}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"ls\"]}","call_id":"c1"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"Chunk ID: x\nProcess exited with code 1\nOutput:\nno"}}"#,
            r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<user_shell_command><command>ls</command><result>a</result>"}]}}"#,
            r#"{"type":"event_msg","payload":{"type":"exited_review_mode","review_output":{"findings":[{"title":"a"}]}}}"#,
            r#"{"type":"event_msg","payload":{"type":"turn_aborted"}}"#,
        ];
        testing::broken(read, lines.join("\n").into_bytes(), cut, &flips);
    }
}

#[test]
fn a_command_that_a_person_ran_is_theirs_where_events_hold_the_prompts() {
    check(
        &format!(
            r#"{HEAD}
        {{"type":"event_msg","payload":{{"type":"user_message","message":"list files"}}}}
        {{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"<user_shell_command>\n<command>\nls\n</command>\n<result>\nExit code: 0\nDuration: 0.1 seconds\nOutput:\na\n</result>\n</user_shell_command>"}}]}}}}"#
        ),
        "
        = s
        2: person prompt: list files
        3: person command: !ls
        3: tool tool_result succeeded 0: a",
    );
}

#[test]
fn what_a_sub_agent_without_a_prompt_says_is_read_once() {
    let said = |kind: &str, payload: &str| format!(r#"{{"type":"{kind}","payload":{payload}}}"#);
    let event = said("event_msg", r#"{"type":"agent_message","message":"Done."}"#);
    let item = said(
        "response_item",
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}"#,
    );
    check(
        &[HEAD, &event, &item].join("\n"),
        "
        = s
        3: assistant text: Done.",
    );
    check(
        &[HEAD, &event].join("\n"),
        "
        = s
        2: assistant text: Done.",
    );
    let copied = item.replace("Done.", "Planned.");
    let cited = item.replace("Done.", r"Done.\n\n<oai-mem-citation>\nx\n</oai-mem-citation>");
    check(
        &[HEAD, &copied, &event].join("\n"),
        "
        = s
        2: assistant text: Planned.
        3: assistant text: Done.",
    );
    assert_eq!(testing::read(read, [HEAD, &event, &cited].join("\n").as_bytes()).len(), 2);
}
