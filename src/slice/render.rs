//! How an entry is shown to a model: a label that says who speaks, then the words. The labels are
//! explained in `prompts/extract.md`.

use crate::domain::{Branch, Entry, EntryKind, Outcome, Speaker};

/// The longest tool name in a label, in bytes.
const NAME_BYTES_MAX: usize = 48;

/// How an entry is headed, such as `ToolResult Bash: failed, exit 1`.
pub fn heading(entry: &Entry) -> String {
    label(entry, 0, 1).trim_end().trim_start_matches('[').trim_end_matches(']').to_owned()
}

/// The label of an entry, with the blank behind it.
pub(super) fn label(entry: &Entry, part: u32, parts: u32) -> String {
    let mut label = String::with_capacity(32);
    label.push('[');
    match entry.branch {
        Branch::Active => {}
        Branch::Abandoned => label.push_str("Abandoned branch: "),
        Branch::Sidechain => label.push_str("Sub-agent: "),
    }
    who(entry, &mut label);
    if parts > 1 {
        label.push_str(&format!(", part {} of {parts}", part + 1));
    }
    label.push_str("] ");
    label
}

fn who(entry: &Entry, label: &mut String) {
    label.push_str(match entry.kind {
        EntryKind::Prompt => match entry.speaker {
            Speaker::Person => "User",
            Speaker::Client => "Parent agent",
            Speaker::Assistant | Speaker::Tool | Speaker::Web => "Prompt",
        },
        EntryKind::Steering => "User, while the agent worked",
        EntryKind::Answer => "User answers",
        EntryKind::Rejection => "User refuses",
        EntryKind::Command => "User runs",
        EntryKind::Text => match entry.speaker {
            Speaker::Person => "User",
            Speaker::Assistant | Speaker::Tool | Speaker::Web | Speaker::Client => "Assistant",
        },
        EntryKind::ToolCall => "ToolCall",
        EntryKind::ToolResult => "ToolResult",
        EntryKind::Summary => "Summary of earlier conversation",
        EntryKind::Injected => "Context",
        EntryKind::Notice => "Notice",
    });
    if let Some(tool) = &entry.tool {
        let name = tool.name.as_str();
        label.push(' ');
        label.extend(name[..name.floor_char_boundary(NAME_BYTES_MAX)].chars().filter(is_plain));
    }
    match entry.outcome {
        Some(Outcome::Succeeded) => label.push_str(": succeeded"),
        Some(Outcome::Failed) => label.push_str(": failed"),
        Some(Outcome::Aborted) => label.push_str(": aborted"),
        Some(Outcome::Running) => label.push_str(": still running"),
        None => {}
    }
    if let Some(code) = entry.exit_code {
        label.push_str(&format!(", exit {code}"));
    }
}

/// A bracket or a line end in a tool's name could pass for another label.
fn is_plain(letter: &char) -> bool {
    !letter.is_control() && !matches!(letter, '[' | ']')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Tool, estimate_tokens};
    use crate::privacy::Gate;
    use crate::slice::LABEL_TOKENS_MAX;

    #[test]
    fn the_longest_label_is_as_long_as_slices_expect() {
        let gate = Gate::new(&[]);
        let mut longest = 0;
        for (kind, branch) in
            EntryKind::ALL.iter().flat_map(|kind| Branch::ALL.iter().map(move |b| (kind, b)))
        {
            for (speaker, outcome) in
                Speaker::ALL.iter().flat_map(|who| Outcome::ALL.iter().map(move |o| (who, o)))
            {
                let entry = Entry {
                    ordinal: u32::MAX,
                    line: 1,
                    native_id: None,
                    speaker: *speaker,
                    kind: *kind,
                    branch: *branch,
                    text: gate.redact("x"),
                    tool: Some(Tool { name: gate.redact(&"名".repeat(99)), call_id: None }),
                    outcome: Some(*outcome),
                    exit_code: Some(i32::MIN),
                    at: None,
                    skip: None,
                };
                longest = longest.max(estimate_tokens(&label(&entry, u32::MAX - 1, u32::MAX)));
            }
        }
        assert!(longest <= LABEL_TOKENS_MAX, "{longest}");
    }
}
