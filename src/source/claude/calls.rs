//! Tool calls of Claude Code as words: a command as it was typed, an edit as path and new text, a
//! question with its options; anything else as its JSON.

use crate::source::text::push_piece;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::fmt::Write;

/// The words of a call of `name` with `input`.
pub(super) fn render(name: &str, input: &RawValue) -> String {
    let json = input.get();
    let words = match name {
        "Bash" | "bash" => command(json),
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => edit(json),
        "AskUserQuestion" => questions(json),
        "ExitPlanMode" | "exit_plan_mode" => plan_of(json),
        "Task" | "Agent" => task(json),
        "WebFetch" | "WebSearch" => web(json),
        _ => None,
    };
    words.filter(|words| !words.is_empty()).unwrap_or_else(|| json.to_owned())
}

/// The plan in a call's input, if it has one.
pub(super) fn plan_of(json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Input {
        plan: Option<String>,
    }
    serde_json::from_str::<Input>(json).ok()?.plan
}

fn command(json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Input {
        command: String,
        description: Option<String>,
    }
    let input: Input = serde_json::from_str(json).ok()?;
    Some(match input.description.filter(|text| !text.is_empty()) {
        Some(description) => format!("{}\n# {description}", input.command),
        None => input.command,
    })
}

fn edit(json: &str) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Change {
        new_string: String,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Input {
        file_path: String,
        notebook_path: String,
        new_string: String,
        new_source: String,
        content: String,
        edits: Vec<Change>,
    }
    let input: Input = serde_json::from_str(json).ok()?;
    let mut words = input.file_path;
    let edits = input.edits.iter().map(|change| &change.new_string);
    let texts = [&input.notebook_path, &input.new_string, &input.new_source, &input.content];
    for text in texts.into_iter().chain(edits) {
        push_piece(&mut words, text, "\n");
    }
    Some(words)
}

fn questions(json: &str) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Choice {
        label: String,
        description: String,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Question {
        question: String,
        options: Vec<Choice>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Input {
        questions: Vec<Question>,
    }
    let input: Input = serde_json::from_str(json).ok()?;
    let mut words = String::new();
    for question in &input.questions {
        push_piece(&mut words, &question.question, "\n");
        for choice in &question.options {
            let gap = if choice.description.is_empty() { "" } else { ": " };
            // Writing to a string cannot fail.
            let _ = write!(words, "\n- {}{gap}{}", choice.label, choice.description);
        }
    }
    Some(words)
}

fn task(json: &str) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Input {
        subagent_type: String,
        description: String,
        prompt: String,
    }
    let input: Input = serde_json::from_str(json).ok()?;
    let mut words = String::new();
    for text in [&input.subagent_type, &input.description, &input.prompt] {
        push_piece(&mut words, text, "\n");
    }
    Some(words)
}

fn web(json: &str) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Input {
        url: String,
        query: String,
        prompt: String,
    }
    let input: Input = serde_json::from_str(json).ok()?;
    let mut words = String::new();
    for text in [&input.url, &input.query, &input.prompt] {
        push_piece(&mut words, text, "\n");
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, input: &str, expected: &str) {
        let input = RawValue::from_string(input.to_owned()).unwrap();
        assert_eq!(render(name, &input), expected);
    }

    #[test]
    fn commands_are_shown_as_typed() {
        check("Bash", r#"{"command":"ls\n","description":"Look"}"#, "ls\n\n# Look");
    }

    #[test]
    fn edits_are_path_and_new_text() {
        check("Edit", r#"{"file_path":"a.rs","old_string":"x","new_string":"y"}"#, "a.rs\ny");
        let many = r#"{"file_path":"a.rs","edits":[{"new_string":"y"},{"new_string":"z"}]}"#;
        check("MultiEdit", many, "a.rs\ny\nz");
    }

    #[test]
    fn questions_show_their_options() {
        let input = r#"{"questions":[{"question":"Which?","options":[
            {"label":"A","description":"quick"},{"label":"B"}]}]}"#;
        check("AskUserQuestion", input, "Which?\n- A: quick\n- B");
    }

    #[test]
    fn what_has_no_form_of_its_own_is_json() {
        check("Grep", r#"{"pattern":"x"}"#, r#"{"pattern":"x"}"#);
        check("Bash", r#"{"command":1}"#, r#"{"command":1}"#);
    }
}
