//! Conversation memory: against the cases that lie beside the project, and as a command.

use super::place::Place;
use super::shared::{beside, json_of};
use annalist::Gate;
use annalist::Role;
use annalist::SummaryPrompt;
use annalist::{
    Absorbed, ConversationLimits, ConversationMemory, MemoryMessage, MemoryType, MessageMetadata,
    create_conversation_memory, messages_from_json,
};
use serde_json::{Value, json};

fn gate() -> Gate {
    Gate::new(&[])
}

fn message(said: &Value) -> MemoryMessage {
    let role = Role::of_name(said["role"].as_str().unwrap()).unwrap();
    let mut message = MemoryMessage::new(role, gate().redact(said["content"].as_str().unwrap()));
    if let Some(metadata) = said["metadata"].as_object() {
        message.metadata = MessageMetadata::seal(metadata.clone(), &gate());
    }
    message
}

/// The memory of a case, or why there is none.
fn made(case: &Value) -> Result<ConversationMemory, String> {
    let run = &case["upstream"];
    let kind: MemoryType = run["type"].as_str().unwrap().parse().unwrap();
    let mut limits = ConversationLimits::default();
    if let Some(limit) = run["config"][kind.limit_name()].as_i64() {
        limits = limits.with(kind, limit).map_err(|error| error.to_string())?;
    }
    create_conversation_memory(kind, &limits, None).map_err(|error| error.to_string())
}

/// A model that numbers its summaries, or says nothing; what it was asked is kept.
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
    // No list of prompts, or an empty one: nobody summarises.
    let prompts = run["summarizer_prompts"].as_array().filter(|prompts| !prompts.is_empty());
    let is_silent = run["summary"] == "";
    let mut asked = Vec::new();
    for said in run["messages"].as_array().unwrap() {
        assert_eq!(memory.add_message(message(said)).filter(|it| it.rule != "pinned-fill"), None);
        if prompts.is_some() {
            answer(&mut memory, &mut asked, is_silent);
        }
        memory = messages_from_json(&memory.to_json(), &gate()).unwrap();
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
    let Some(golden) = beside("golden") else { return };
    let golden = json_of(&golden.join("conversation_memory.json"));
    let cases = golden["cases"].as_array().unwrap();
    assert!(cases.len() > 10);
    cases.iter().for_each(check);
    for made in golden["factory"].as_array().unwrap() {
        let kind = made["type"].as_str().unwrap().parse::<MemoryType>();
        assert_eq!(kind.is_ok(), made["error"].is_null(), "{made}");
    }
    let saved: Value = serde_json::from_str(
        &create_conversation_memory(MemoryType::Buffer, &ConversationLimits::default(), None)
            .map(|mut memory| {
                let _ = memory.add_message(MemoryMessage::user(gate().redact("x")));
                memory.to_json()
            })
            .unwrap(),
    )
    .unwrap();
    for (keys, of) in [("to_json_keys", &saved), ("message_keys", &saved["messages"][0])] {
        for key in golden[keys].as_array().unwrap() {
            assert!(of.get(key.as_str().unwrap()).is_some(), "{keys}: {key}");
        }
    }
}

/// A chat with system messages at the beginning and in the middle.
const CHAT: &str = r#"[
  {"role": "system", "content": "S1"},
  {"role": "user", "content": "We take Postgres. Ask ada@example.com."},
  {"role": "assistant", "content": "Good."},
  {"role": "system", "content": "S2"},
  {"role": "user", "content": "And Postgres needs a backup."}
]"#;

fn contents(shown: &Value) -> Vec<&str> {
    shown.as_array().unwrap().iter().map(|it| it["content"].as_str().unwrap()).collect()
}

#[test]
fn a_conversation_is_shown_as_a_model_would_see_it() {
    let place = Place::new();
    place.write("chat.json", CHAT);
    let show =
        |args: &[&str]| place.json(&[&["conversation", "--json", "chat.json"], args].concat());
    let buffer = show(&["--strategy", "buffer"]);
    let asked = "We take Postgres. Ask <EMAIL>.";
    let last = "And Postgres needs a backup.";
    assert_eq!(contents(&buffer), ["S1", asked, "Good.", "S2", last]);
    assert_eq!(buffer[0], json!({"role": "system", "content": "S1"}));
    let buffer = show(&["--strategy", "buffer", "--limit", "4"]);
    assert_eq!(contents(&buffer), ["S1", "Good.", "S2", last]);
    let window = show(&["--strategy", "window", "--limit", "2"]);
    assert_eq!(contents(&window), ["S1", "S2", "Good.", last]);
    let entity = show(&["--strategy", "entity"]);
    let known = "Known entities:\n- Postgres: {\"mentions\": 2}";
    assert_eq!(contents(&entity), ["S1", "S2", known, asked, "Good.", last]);
    let summary = show(&["--strategy", "summary", "--limit", "2"]);
    assert_eq!(
        contents(&summary),
        [
            "S1",
            "Previous conversation summary: - user: We take Postgres.\n- assistant: Good.",
            "S2",
            last
        ]
    );
    let cut = show(&["--strategy", "buffer", "--tokens", "38"]);
    assert_eq!(contents(&cut), ["S1", "[… 3 messages left out …]", last]);
}

#[test]
fn a_person_reads_blocks_and_a_table() {
    let place = Place::new();
    place.write("chat.json", CHAT);
    let blocks = place.run(&["conversation", "--strategy", "window", "--limit", "1", "chat.json"]);
    assert_eq!(blocks.stdout, "system: S1\n\nsystem: S2\n\nuser: And Postgres needs a backup.\n");
    assert_eq!(blocks.stderr, "3 shown, about 9 tokens, of 5 read: 2 pinned, 1 kept, 2 evicted\n");
    let table = place.run(&["conversation", "--strategy", "entity", "--check", "chat.json"]);
    insta::assert_snapshot!("conversation_check", table.stdout);
}

#[test]
fn a_strategy_or_limit_that_is_not_allowed_is_refused() {
    let place = Place::new();
    place.write("chat.json", CHAT);
    let refused = |args: &[&str], words: &[&str]| {
        place.run(&[&["conversation", "chat.json"], args].concat()).refused(2, words);
    };
    refused(&["--strategy", "vector"], &["buffer, window, summary, entity"]);
    for kind in MemoryType::ALL {
        for limit in ["0", "-3"] {
            let words = [kind.limit_name(), "at least 1", "allowed are 1 to"];
            refused(&["--strategy", kind.name(), "--limit", limit], &words);
        }
    }
    refused(&["--limit", "4294967296"], &["allowed are 1 to 4294967295"]);
}

#[test]
fn of_several_conversations_one_is_shown() {
    let place = Place::new();
    let chat =
        |text: &str| format!("{{\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]}}\n");
    place.write("chats.jsonl", ["one", "two", "three"].map(chat).concat());
    let last = place.run(&["conversation", "--json", "chats.jsonl"]);
    assert_eq!(contents(&last.json()), ["three"]);
    assert!(last.stderr.contains("3 conversations in the file"), "{}", last.stderr);
    let first = place.json(&["conversation", "--json", "--only", "0", "chats.jsonl"]);
    assert_eq!(contents(&first), ["one"]);
    place.run(&["conversation", "--only", "9", "chats.jsonl"]).refused(2, &["no conversation"]);
}

#[test]
fn what_agents_clients_put_between_is_no_message() {
    let place = Place::new();
    let session = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sessions/claude-code-queue.jsonl");
    let shown = place.json(&["conversation", "--strategy", "buffer", "--json", session]);
    let shown = shown.as_array().unwrap();
    let roles: Vec<&str> = shown.iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert!(roles.contains(&"user") && roles.contains(&"assistant"));
    assert!(!roles.contains(&"system"));
}

#[test]
fn a_file_that_cannot_be_read_is_one_clear_line() {
    let place = Place::new();
    place.run(&["conversation", "none.json"]).refused(1, &["none.json: cannot be read"]);
    place.write("empty.json", "");
    place.run(&["conversation", "empty.json"]).refused(1, &["empty"]);
    place.write("private.md", "---\nprivate: true\n---\nuser: key\n");
    let hidden = place.run(&["conversation", "private.md", "--format", "plain"]);
    assert_eq!((hidden.code, hidden.stdout.as_str()), (0, ""), "{}", hidden.stderr);
}
