//! Conversation memory against the cases that are stored beside the project.

use super::*;
use crate::domain::Role;
use crate::llm::prompt::SummaryPrompt;
use crate::privacy::Gate;
use crate::testing::shared;
use serde_json::Value;

fn gate() -> Gate {
    Gate::new(&[])
}

fn message(said: &Value) -> MemoryMessage {
    let role = Role::of_name(said["role"].as_str().unwrap()).unwrap();
    let mut message = MemoryMessage::new(role, gate().redact(said["content"].as_str().unwrap()));
    if let Some(metadata) = said["metadata"].as_object() {
        message.metadata = Metadata::seal(metadata.clone(), &gate());
    }
    message
}

/// The memory of a case, or the error.
fn made(case: &Value) -> Result<ConversationMemory, String> {
    let run = &case["upstream"];
    let kind: MemoryType = run["type"].as_str().unwrap().parse().unwrap();
    let mut limits = ConversationLimits::default();
    if let Some(limit) = run["config"][kind.limit_name()].as_i64() {
        limits = limits.with(kind, limit).map_err(|error| error.to_string())?;
    }
    create(kind, &limits, None).map_err(|error| error.to_string())
}

/// Answers like a model that numbers its summaries, or returns nothing; records its prompts.
fn answer(memory: &mut ConversationMemory, asked: &mut Vec<String>, is_silent: bool) {
    let Some(request) = memory.due() else { return };
    asked.push(request.prompt(&SummaryPrompt::built_in()).as_str().to_owned());
    let reply = if is_silent { String::new() } else { format!("summary#{}", asked.len()) };
    let expected = if is_silent { Absorbed::Empty } else { Absorbed::Taken };
    assert_eq!(memory.absorb(&request, &gate().redact(&reply)), expected);
}

fn check(case: &Value) {
    let (name, run, decided) = (&case["name"], &case["upstream"], &case["recommended"]);
    let mut memory = match made(case) {
        Ok(memory) => memory,
        Err(error) => {
            let expected = decided["error"].as_str().unwrap_or_else(|| panic!("{name}: {error}"));
            return assert!(error.starts_with(expected), "{name}: {error}");
        }
    };
    assert!(decided["error"].is_null(), "{name}: made, and should not have been");
    // Without prompts, nothing is summarised.
    let prompts = run["summarizer_prompts"].as_array().filter(|prompts| !prompts.is_empty());
    let is_silent = run["summary"] == "";
    let mut asked = Vec::new();
    for said in run["messages"].as_array().unwrap() {
        assert_eq!(memory.add_message(message(said)).filter(|it| it.rule != "pinned-fill"), None);
        if prompts.is_some() {
            answer(&mut memory, &mut asked, is_silent);
        }
        memory = from_json(&memory.to_json(), &gate()).unwrap();
    }
    let shown = serde_json::to_value(memory.messages()).unwrap();
    let expected = [decided, run].map(|it| &it["get_messages"]);
    if decided.is_null() || !expected[0].is_null() {
        assert_eq!(shown, *expected.into_iter().find(|it| !it.is_null()).unwrap(), "{name}");
    }
    for (asked, prompt) in asked.iter().zip(prompts.into_iter().flatten()) {
        assert_eq!(Some(asked.as_str()), prompt.as_str(), "{name}");
    }
    let entities = [decided, run].into_iter().find_map(|it| it["entities"].as_object());
    for (entity, data) in entities.into_iter().flatten() {
        let known = serde_json::to_value(memory.entity(entity)).unwrap();
        assert_eq!(known, *data, "{name}: {entity}");
    }
}

#[test]
fn memories_show_what_the_golden_cases_say() {
    let Some(path) = shared("golden/conversation_memory.json") else { return };
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert!(cases.len() > 10);
    cases.iter().for_each(check);
    for made in golden["factory"].as_array().unwrap() {
        let kind = made["type"].as_str().unwrap().parse::<MemoryType>();
        assert_eq!(kind.is_ok(), made["error"].is_null(), "{made}");
    }
}
