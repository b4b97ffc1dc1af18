//! Rules of the format, each with a history of a few lines.

use super::read;
use crate::transcripts::testing;

#[track_caller]
fn check(input: &str, expected: &[&str]) {
    testing::check(read, input, expected);
}

const HEAD: &str = "\n# aider chat started at 2026-01-02 03:04:05\n\n";

#[test]
fn every_start_is_a_session_and_equal_times_are_numbered() {
    check(
        &format!("{HEAD}{HEAD}# aider chat started at noon\n"),
        &[
            "= 2026-01-02 03:04:05#0",
            "= 2026-01-02 03:04:05#1",
            "7: assistant text: # aider chat started at noon",
        ],
    );
}

#[test]
fn whose_line_it_is_stands_in_front() {
    check(
        &format!(
            "{HEAD}> Aider v0.9.9  \n> Git repo: .git with 3 files  \n\n#### rename it  \n####   \n#### and test  \n\n\
             Sure.\n\n# A heading\nDone.\n\n> Tokens: 1k sent  \n> Applied edit to a.py  \n> Commit abc1234 feat: rename  \n> You can use /undo to undo and discard each aider commit.  \n"
        ),
        &[
            "= 2026-01-02 03:04:05#0",
            "4: client notice: Aider v0.9.9\nGit repo: .git with 3 files (injected context)",
            "7: person prompt: rename it\n\nand test",
            "11: assistant text: Sure.\n\n# A heading\nDone.",
            "16: client notice: Tokens: 1k sent (injected context)",
            "17: tool tool_result edit# succeeded: Applied edit to a.py",
            "18: tool tool_result commit# succeeded: Commit abc1234 feat: rename",
            "19: client notice: You can use /undo to undo and discard each aider commit. (injected context)",
        ],
    );
}

#[test]
fn commands_are_told_from_paths() {
    check(
        &format!(
            "{HEAD}#### /run make test  \n> FAILED test_a  \n\n#### !ls  \n\n#### /etc/hosts is wrong  \n\n#### <blank>  \n"
        ),
        &[
            "= 2026-01-02 03:04:05#0",
            "4: person command: /run make test",
            "5: tool tool_result run#: FAILED test_a",
            "7: person command: !ls",
            "9: person prompt: /etc/hosts is wrong",
        ],
    );
}

#[test]
fn what_is_asked_with_a_command_is_a_prompt() {
    check(
        &format!(
            "{HEAD}#### /ask why a lock?  \n####   \n#### and where?  \n\n#### /ask  \n\n#### /asked x  \n\n#### /code do it  \n"
        ),
        &[
            "= 2026-01-02 03:04:05#0",
            "4: person prompt: why a lock?\n\nand where?",
            "8: person command: /ask",
            "10: person command: /asked x",
            "12: person prompt: do it",
        ],
    );
}

#[test]
fn what_aider_logs_again_after_a_command_is_one_prompt() {
    check(
        &format!(
            "{HEAD}#### /ask why?  \n####   \n#### and where?  \n\n#### why?  \n####   \n#### and where?  \n\nSo.\n\n#### /ask a  \n\nB.\n\n#### a  \n\n#### /ask end  \n{HEAD}#### end  \n"
        ),
        &[
            "= 2026-01-02 03:04:05#0",
            "4: person prompt: why?\n\nand where?",
            "12: assistant text: So.",
            "14: person prompt: a",
            "16: assistant text: B.",
            "18: person prompt: a",
            "20: person prompt: end",
            "= 2026-01-02 03:04:05#1",
            "24: person prompt: end",
        ],
    );
}

#[test]
fn answers_are_the_persons() {
    check(
        &format!(
            "{HEAD}> Add a.py to the chat? (Y)es/(N)o [Yes]: n  \n> Attempt to fix lint errors? [Y/n] y  \n> Add the output to the chat?  \n> Attempt to fix lint errors? n  \n"
        ),
        &[
            "= 2026-01-02 03:04:05#0",
            "4: person answer: Add a.py to the chat? (Y)es/(N)o [Yes]: n",
            "5: person answer: Attempt to fix lint errors? [Y/n] y",
            "6: tool tool_result aider#: Add the output to the chat?",
            "7: person answer: Attempt to fix lint errors? n",
        ],
    );
}

#[test]
fn fences_quote_whatever_stands_in_them() {
    check(
        &format!("{HEAD}#### go  \n\n```md\n#### not a person\n> not a tool\n```\n\n#### next  \n"),
        &[
            "= 2026-01-02 03:04:05#0",
            "4: person prompt: go",
            "6: assistant text: ```md\n#### not a person\n> not a tool\n```",
            "11: person prompt: next",
        ],
    );
}

#[test]
fn a_fence_left_open_ends_with_the_reply() {
    check(
        &format!("{HEAD}```py\nx = 1\n> Tokens: 2k sent  \n\n#### next  \n"),
        &[
            "= 2026-01-02 03:04:05#0",
            "4: assistant text: ```py\nx = 1",
            "6: client notice: Tokens: 2k sent (injected context)",
            "8: person prompt: next",
        ],
    );
}

#[test]
fn quotes_in_a_reply_stay_in_it() {
    check(
        &format!("{HEAD}As you said:\n> be brief\n\nI will.\n"),
        &["= 2026-01-02 03:04:05#0", "4: assistant text: As you said:\n> be brief\n\nI will."],
    );
}

#[test]
fn output_goes_on_until_it_ends() {
    check(
        &format!(
            "{HEAD}#### /test make  \n> === begin ===\nplatform x\n\n2 failed  \n\nI see.\n\n> Tokens: 1k sent\nCost: $1  \n"
        ),
        &[
            "= 2026-01-02 03:04:05#0",
            "4: person command: /test make",
            "5: tool tool_result test#: === begin ===\nplatform x\n\n2 failed",
            "10: assistant text: I see.",
            "12: client notice: Tokens: 1k sent\nCost: $1 (injected context)",
        ],
    );
    check(
        &format!("{HEAD}> Add the output to the chat?\n(y/n/instructions) only the first line  \n"),
        &[
            "= 2026-01-02 03:04:05#0",
            "4: tool tool_result aider#: Add the output to the chat?",
            "5: person answer: only the first line",
        ],
    );
}

#[test]
fn failed_edits_and_interrupts_are_told() {
    check(
        &format!("{HEAD}> The LLM did not conform to the edit format.  \n\n> ^C again to exit  \n"),
        &[
            "= 2026-01-02 03:04:05#0",
            "4: tool tool_result aider# failed: The LLM did not conform to the edit format.",
            "6: client notice: ^C again to exit",
        ],
    );
}

#[test]
fn help_puts_its_documents_into_a_prompt() {
    check(
        &format!("{HEAD}#### # Question: hi  \n####   \n#### # Relevant docs:  \n"),
        &[
            "= 2026-01-02 03:04:05#0",
            "4: client injected: # Question: hi\n\n# Relevant docs: (injected context)",
        ],
    );
}

#[test]
fn a_beginning_cut_off_is_a_session_too() {
    let (tail, start) = ("= …#0", "1: assistant text: tail of a reply");
    check("tail of a reply\n\n#### go on  \n", &[tail, start, "3: person prompt: go on"]);
    let chat = ["= 2026-01-02 03:04:05#0", "5: person prompt: go"];
    check(&format!("tail of a reply\n{HEAD}#### go  \n"), &[tail, start, chat[0], chat[1]]);
    check("\n", &[]);
}

#[test]
fn damage_is_survived() {
    let input = format!("{HEAD}#### a  \n```\n> b  \n```\ntext\n> Commit abc1234 x  \n");
    testing::survives(read, input.as_bytes(), 1);
}

#[test]
fn without_a_line_of_aider_nothing_is_read() {
    for text in ["{\"type\":\"user\"}\n{\"a\":1}\n", "Notes\n\n> a quote\n", "a,b\n1,2\n"] {
        check(text, &[]);
    }
}

#[test]
fn a_heading_in_a_reply_is_no_prompt() {
    check(
        &format!("{HEAD}#### go  \n\nSure.\n\n#### A heading\n\nDone.\n\n#### go on  \n"),
        &[
            "= 2026-01-02 03:04:05#0",
            "4: person prompt: go",
            "6: assistant text: Sure.\n\n#### A heading\n\nDone.",
            "12: person prompt: go on",
        ],
    );
    check(
        &format!("{HEAD}#### go\n\nSure.\n\n#### go on\n"),
        &[
            "= 2026-01-02 03:04:05#0", "4: person prompt: go", "6: assistant text: Sure.",
            "8: person prompt: go on",
        ],
    );
}

#[test]
fn a_prompt_that_an_editor_trimmed_is_no_heading() {
    let first = ["= 2026-01-02 03:04:05#0", "4: person prompt: go", "6: assistant text: Sure."];
    let begun = format!("{HEAD}#### go  \n\nSure.\n\n");
    check(
        &format!(
            "{begun}# aider chat started at 2026-02-02 03:04:05\n\n#### run\n\nYes.\n\n#### no\n\nOk.\n"
        ),
        &[
            &first[..],
            &[
                "= 2026-02-02 03:04:05#0", "10: person prompt: run", "12: assistant text: Yes.",
                "14: person prompt: no", "16: assistant text: Ok.",
            ],
        ]
        .concat(),
    );
    check(&format!("{begun}#### go on"), &[&first[..], &["8: person prompt: go on"]].concat());
    let quoted = "6: assistant text: Sure.\n\n```\n#### x";
    check(&format!("{begun}```\n#### x"), &[&first[..2], &[quoted]].concat());
}
