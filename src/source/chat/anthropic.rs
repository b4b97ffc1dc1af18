//! Anthropic messages and what is made of them: arrays, `{system, messages}`, JSONL, the histories of
//! Cline and Roo. A person's words and a tool's results share the role `user` there.

pub(in crate::source) use super::document::read;

#[cfg(test)]
mod tests {
    use super::read;
    use crate::source::testing;

    #[track_caller]
    fn check(input: &str, expected: &[&str]) {
        testing::check(read, input, expected);
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
    fn a_refusal_in_a_result_is_said_once() {
        check(
            r#"[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"execute_command","input":{"command":"git push"}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"The user denied this operation and provided the following feedback:\n<feedback>\nuse jj\n</feedback>"}]}]}]"#,
            &[
                "= …#0",
                "1: assistant tool_call execute_command#t: git push",
                "2: tool tool_result execute_command#t: The user denied this operation and provided the following feedback:",
                "2: person rejection: use jj",
            ],
        );
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
        check(
            r#"[{"type":"assistant","timestamp":1,"text":"a"}]"#,
            &["= …#0", "1: assistant text: a"],
        );
    }
}
