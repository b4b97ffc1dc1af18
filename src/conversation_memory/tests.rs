//! Tests of what each strategy shows.

use super::summary::SummaryRequest;
use super::*;
use crate::domain::{Message, Role};
use crate::privacy::{Gate, Redacted};
use serde_json::{Value, json};

fn passed(text: &str) -> Redacted {
    Gate::new(&[]).redact(text)
}

/// A system (`S1`), user (`u1`) or assistant (`a1`) message.
fn message(words: &str) -> MemoryMessage {
    let role = match words.chars().next() {
        Some('S') => Role::System,
        Some('u') => Role::User,
        _ => Role::Assistant,
    };
    MemoryMessage::new(role, passed(words))
}

fn memory(kind: MemoryType, limit: i64) -> ConversationMemory {
    let limits = ConversationLimits::default().with(kind, limit).unwrap();
    create(kind, &limits, None).unwrap()
}

fn shown(memory: &ConversationMemory) -> String {
    let messages = memory.messages();
    messages.iter().map(|it| it.content.as_str()).collect::<Vec<_>>().join(" ")
}

/// Checks the messages shown after `said`, under a limit.
#[track_caller]
fn check(kind: MemoryType, limit: i64, said: &str, expected: &str) {
    let mut memory = memory(kind, limit);
    for words in said.split_whitespace() {
        let _ = memory.add_message(message(words));
    }
    assert_eq!(shown(&memory), expected, "{kind} {limit} of {said}");
    let account = memory.account();
    let parts = [account.pinned, account.kept, account.summarised, account.evicted];
    assert_eq!(account.read.messages, parts.iter().map(|it| it.messages).sum::<u64>());
    assert_eq!(account.read.tokens, parts.iter().map(|it| it.tokens).sum::<u64>());
}

#[test]
fn a_buffer_lets_the_oldest_go_but_no_system_message() {
    let check = |limit, said, expected| check(MemoryType::Buffer, limit, said, expected);
    check(9, "S1 u1 a2 u3", "S1 u1 a2 u3");
    check(3, "S1 u1 a2 u3 a4 u5", "S1 a4 u5");
    check(3, "u1 a2 S1 u3", "a2 S1 u3");
    check(1, "S1 S2 u1 a2 u3", "S1 S2");
    check(2, "S1 u1 S2 u2 S3", "S1 S2 S3");
    check(1, "u1 a2", "a2");
}

#[test]
fn a_buffer_without_a_limit_keeps_everything() {
    let mut memory = create(MemoryType::Buffer, &ConversationLimits::default(), None).unwrap();
    for n in 0..1_000 {
        let _ = memory.add_message(message(&format!("u{n}")));
    }
    assert_eq!(memory.messages().len(), 1_000);
}

#[test]
fn a_buffer_that_system_messages_fill_says_so_once() {
    let mut memory = memory(MemoryType::Buffer, 2);
    let found = ["S1", "u1", "S2", "u2", "S3"].map(|it| memory.add_message(message(it)));
    let rules = found.map(|it| it.map(|finding| finding.rule.into_owned()));
    assert_eq!(rules, [None, None, Some("pinned-fill".to_owned()), None, None]);
}

#[test]
fn a_window_shows_system_messages_and_then_its_size() {
    let check = |limit, said, expected| check(MemoryType::Window, limit, said, expected);
    check(3, "u1 u2 u3 S1 u4", "S1 u2 u3 u4");
    check(1, "S1 S2 u1 a2", "S1 S2 a2");
    check(9, "u1 S1 a2", "S1 u1 a2");
}

#[test]
fn a_memory_of_entities_shows_the_last_ten() {
    let said = "S1 u1 a2 u3 a4 u5 a6 S2 u7 a8 u9 a10 u11";
    check(MemoryType::Entity, 5, said, "S1 S2 a2 u3 a4 u5 a6 u7 a8 u9 a10 u11");
}

#[test]
fn a_summary_that_nobody_makes_changes_nothing() {
    check(MemoryType::Summary, 3, "u1 a2 S1 u3 a4", "u1 a2 S1 u3 a4");
}

/// Checks the messages shown after `said` if the due summaries are `(1)`, `(2)` …
#[track_caller]
fn check_summary((threshold, keep_recent): (u32, u32), said: &str, expected: &str) {
    let limits = ConversationLimits {
        summary_threshold: threshold,
        keep_recent,
        ..ConversationLimits::default()
    };
    let mut memory = create(MemoryType::Summary, &limits, None).unwrap();
    let mut made = 0;
    for words in said.split_whitespace() {
        let _ = memory.add_message(message(words));
        if let Some(request) = memory.due() {
            made += 1;
            let reply = passed(&format!("({made})"));
            assert_eq!(memory.absorb(&request, &reply), Absorbed::Taken);
            assert_eq!(memory.absorb(&request, &reply), Absorbed::Stale, "twice is once");
        }
    }
    let label = "Previous conversation summary: ";
    assert_eq!(shown(&memory).replace(label, ""), expected, "{said}");
}

#[test]
fn a_summary_stands_where_the_messages_stood_that_are_in_it() {
    check_summary((3, 0), "u1 a2 u3", "(1)");
    check_summary((3, 0), "u1 a2 u3 a4 u5 a6 u7", "(2) u7");
    check_summary((3, 0), "S1 u1 a2 S2 u3 S3 a4", "S1 S2 (1) S3 a4");
    check_summary((3, 2), "u1 a2 u3", "(1) a2 u3");
    check_summary((3, 2), "u1 a2 u3 a4 u5", "(3) a4 u5");
    check_summary((1, 0), "u1 a2", "(2)");
}

#[test]
fn a_reply_that_says_nothing_keeps_the_messages_and_is_asked_for_again() {
    let mut memory = memory(MemoryType::Summary, 2);
    let _ = memory.add_message(message("u1"));
    assert_eq!(memory.due(), None);
    let _ = memory.add_message(message("a2"));
    let request = memory.due().unwrap();
    assert_eq!(memory.absorb(&request, &passed(" \n")), Absorbed::Empty);
    assert_eq!((memory.due(), shown(&memory).as_str()), (None, "u1 a2"));
    let _ = memory.add_message(message("u3"));
    let again = memory.due().unwrap();
    assert_eq!((again.messages.len(), again.existing.as_ref()), (3, None));
    assert_eq!(memory.absorb(&request, &passed("late")), Absorbed::Taken);
    assert_eq!(memory.absorb(&again, &passed("later")), Absorbed::Stale);
    assert_eq!(shown(&memory), "Previous conversation summary: late u3");
}

#[test]
fn messages_that_came_while_a_model_was_asked_stay() {
    let mut memory = memory(MemoryType::Summary, 2);
    let _ = ["u1", "a2"].map(|it| memory.add_message(message(it)));
    let request = memory.due().unwrap();
    let _ = memory.add_message(message("u3"));
    assert_eq!(memory.absorb(&request, &passed("told")), Absorbed::Taken);
    assert_eq!(shown(&memory), "Previous conversation summary: told u3");
}

#[test]
fn without_a_model_a_summary_is_made_by_rule() {
    let mut memory = memory(MemoryType::Summary, 2);
    for words in ["use SQLite for now. It is enough.", "agreed, SQLite it is", "next"] {
        let _ = memory.add_message(MemoryMessage::user(passed(words)));
        summarise_by_rule(&mut memory, &Gate::new(&[]));
    }
    assert_eq!(
        shown(&memory),
        "Previous conversation summary: - user: use SQLite for now.\n\
         - user: agreed, SQLite it is next"
    );
}

/// Checks the entities known after messages with these metadata or texts.
#[track_caller]
fn check_entities(most: u32, said: &[Value], expected: &str) {
    let limits = ConversationLimits { max_entities: most, ..ConversationLimits::default() };
    let mut memory = create(MemoryType::Entity, &limits, None).unwrap();
    let gate = Gate::new(&[]);
    for said in said {
        let mut message = MemoryMessage::user(passed(said.as_str().unwrap_or("words")));
        if !said.is_string() {
            let metadata = json!({ "entities": said });
            message.metadata = Metadata::seal(metadata.as_object().unwrap().clone(), &gate);
        }
        let _ = memory.add_message(message);
    }
    let first = memory.messages().into_iter().next().unwrap();
    let lines = first.content.as_str().strip_prefix("Known entities:\n");
    assert_eq!(lines.unwrap_or_default(), expected);
}

#[test]
fn what_is_known_is_merged_and_mentions_are_counted_here() {
    check_entities(
        5,
        &[json!({"Ann": {"type": "person"}, "Acme": {}}), json!({"Ann": {"city": "Şırnak"}})],
        "- Ann: {\"type\": \"person\", \"mentions\": 2, \"city\": \"Şırnak\"}\n- Acme: {\"mentions\": 1}",
    );
    check_entities(
        5,
        &[json!({"A": {"mentions": 99}}), json!({"A": {"mentions": "x"}})],
        "- A: {\"mentions\": 2}",
    );
    check_entities(
        5,
        &[json!(["A", "B", "A"]), json!({"A": null})],
        "- A: {\"mentions\": 2}\n- B: {\"mentions\": 1}",
    );
}

#[test]
fn the_least_mentioned_goes_and_of_equals_the_first() {
    check_entities(
        2,
        &[json!(["A", "B"]), json!(["C"])],
        "- B: {\"mentions\": 1}\n- C: {\"mentions\": 1}",
    );
    check_entities(
        2,
        &[json!(["A", "B"]), json!(["A"]), json!(["C"])],
        "- A: {\"mentions\": 2}\n- C: {\"mentions\": 1}",
    );
    check_entities(1, &[json!(["A"]), json!(["A"]), json!(["B"])], "- B: {\"mentions\": 1}");
}

#[test]
fn entities_that_nobody_names_are_found_in_the_words() {
    check_entities(
        5,
        &[json!("we use Docker and EC2"), json!("Docker it is. Yes, Docker."), json!([])],
        "- Docker: {\"mentions\": 2}\n- EC2: {\"mentions\": 1}",
    );
}

#[test]
fn entities_of_another_form_are_a_finding_and_change_nothing() {
    for entities in [json!("A"), json!(["A", 1]), json!({"A": {}, "B": 3})] {
        let mut memory = memory(MemoryType::Entity, 3);
        let metadata = json!({ "entities": entities });
        let gate = Gate::new(&[]);
        let metadata = Metadata::seal(metadata.as_object().unwrap().clone(), &gate);
        let found = memory.add_message(MemoryMessage { metadata, ..message("u1") });
        assert_eq!(found.map(|it| it.rule.into_owned()).as_deref(), Some("bad-entities"));
        assert_eq!((memory.entity("A"), shown(&memory).as_str()), (None, "u1"));
    }
}

#[test]
fn an_entity_is_looked_up_by_its_name() {
    let mut memory = memory(MemoryType::Entity, 3);
    let _ = memory.add_message(MemoryMessage::user(passed("ask Ann")));
    let ann = memory.entity("Ann").unwrap();
    assert_eq!((ann.get("mentions"), memory.entity("Bob")), (Some(&json!(1)), None));
}

#[test]
fn a_name_with_a_line_end_cannot_pass_for_another() {
    check_entities(5, &[json!({"A\n- B": {}})], "- A - B: {\"mentions\": 1}");
}

#[test]
fn unsupported_types_and_limits_below_one_name_what_is_allowed() {
    let vector = "vector".parse::<MemoryType>().unwrap_err().to_string();
    assert_eq!(
        vector,
        "unsupported memory type `vector`: allowed are buffer, window, summary, entity"
    );
    for &kind in MemoryType::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
        for limit in [0, -1, i64::MIN, i64::from(u32::MAX) + 1] {
            let error = ConversationLimits::default().with(kind, limit).unwrap_err().to_string();
            let name = kind.limit_name();
            let expected =
                format!("{name} must be at least 1: allowed are 1 to 4294967295, found {limit}");
            assert_eq!(error, expected);
        }
    }
    let zero = ConversationLimits { max_entities: 0, ..ConversationLimits::default() };
    assert!(create(MemoryType::Entity, &zero, None).is_err());
    assert!(create(MemoryType::Window, &zero, None).is_ok(), "each looks at its own");
    assert!(zero.check().is_err(), "settings look at all");
    let never = ConversationLimits { keep_recent: 10, ..ConversationLimits::default() };
    assert_eq!(
        create(MemoryType::Summary, &never, None).unwrap_err().to_string(),
        "keep_recent must be below summary_threshold: allowed are 0 to 9, found 10"
    );
}

#[test]
fn a_text_that_is_no_memory_is_one_clear_error_without_its_words() {
    let check = |text: &str, expected: &str| {
        let error = from_json(text, &Gate::new(&[])).unwrap_err().to_string();
        assert_eq!(error, format!("not a saved conversation memory: {expected}"));
    };
    check("hunter2", "line 1, column 1: no JSON that can be read");
    check("{}", "missing field `memory_type`");
    check(
        r#"{"memory_type":"vector"}"#,
        "memory_type: expected one of `buffer`, `window`, `summary`, `entity`",
    );
    check(r#"{"memory_type":"buffer"}"#, "missing field `messages`");
    check(r#"{"memory_type":"buffer","version":2,"messages":[]}"#, "version: expected 1");
    check(
        r#"{"memory_type":"buffer","messages":[],"summary":{}}"#,
        "summary: expected only in a memory of type summary",
    );
    check(
        r#"{"memory_type":"buffer","messages":[{"role":"user","content":"a"},{"role":"tool","content":"b"}]}"#,
        "messages[1].role: expected one of `system`, `user`, `assistant`",
    );
    check(
        r#"{"memory_type":"buffer","messages":[{"role":"user","content":7}]}"#,
        "messages[0].content: expected a string",
    );
    let two =
        r#"[{"ordinal":4,"role":"user","content":"a"},{"ordinal":4,"role":"user","content":"b"}]"#;
    check(
        &format!(r#"{{"memory_type":"buffer","messages":{two}}}"#),
        "messages[1].ordinal: expected a number above that of the message before",
    );
    check(
        r#"{"memory_type":"window","limits":{"window_size":1},"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}"#,
        "messages: expected at most 1 besides system messages",
    );
    check(
        r#"{"memory_type":"entity","messages":[],"entities":{"A":{"mentions":0}}}"#,
        "entities[0]: expected an object in which `mentions` is a number of at least 1, for a name of its own",
    );
    let limit = r#"{"memory_type":"entity","messages":[],"limits":{"max_entities":0}}"#;
    let error = from_json(limit, &Gate::new(&[])).unwrap_err().to_string();
    assert!(error.starts_with("max_entities must be at least 1"), "{error}");
}

#[test]
fn a_memory_written_elsewhere_with_fewer_keys_is_read() {
    let text = r#"{"memory_type":"buffer","session_id":"0123456789abcdef","messages":[
        {"role":"user","content":"x","timestamp":"2025-01-15T10:30:00","metadata":{"a":1}},
        {"role":"assistant","content":"y"}]}"#;
    let mut memory = from_json(text, &Gate::new(&[])).unwrap();
    assert_eq!(shown(&memory), "x y");
    let _ = memory.add_message(message("u3"));
    let saved: Value = serde_json::from_str(&memory.to_json()).unwrap();
    assert_eq!(saved["session_id"], "0123456789abcdef");
    let first = &saved["messages"][0];
    assert_eq!(
        (&first["timestamp"], &first["metadata"], &saved["messages"][2]["ordinal"]),
        (&json!("2025-01-15T10:30:00Z"), &json!({"a": 1}), &json!(2))
    );
}

#[test]
fn what_is_read_back_passes_the_gate() {
    let gate = Gate::new(&crate::privacy::Pii::ALL);
    let text = r#"{"memory_type":"entity","messages":[{"role":"user","content":"ask ada@example.com"}],
        "entities":{"ada@example.com":{"tel":"bob@example.com","mentions":3}}}"#;
    let memory = from_json(text, &gate).unwrap();
    let all = memory.to_json();
    assert!(!all.contains("example.com") && all.contains("<EMAIL>"), "{all}");
}

const OMITTED: &str = "[… earlier messages left out …]";

fn by_rule(existing: Option<&Redacted>, messages: &[Message], gate: &Gate) -> Redacted {
    let (existing, messages) = (existing.cloned(), messages.to_vec());
    SummaryRequest { existing, messages, through: 0 }.by_rule(gate)
}

fn spoken(role: Role, text: &str) -> Message {
    Message { role, content: Gate::new(&[]).redact(text) }
}

#[test]
fn each_message_is_known_by_how_it_begins() {
    let long = "word ".repeat(60);
    let messages = [
        spoken(Role::User, "\n  Hi. We use SQLite, as v1.2 did. And more.\nNext"),
        spoken(Role::Assistant, &long),
        spoken(Role::User, " \n"),
    ];
    let gate = Gate::new(&[]);
    let first = by_rule(None, &messages, &gate);
    let words = "word ".repeat(24);
    let expected =
        format!("- user: We use SQLite, as v1.2 did.\n- assistant: {}…", words.trim_end());
    assert_eq!(first.as_str(), expected);
    let next = by_rule(Some(&first), &[spoken(Role::User, "Go")], &gate);
    assert_eq!(next.as_str(), format!("{expected}\n- user: Go"));
}

#[test]
fn the_oldest_lines_make_room_visibly() {
    let gate = Gate::new(&[]);
    let mut summary = None;
    for n in 0..500 {
        let next =
            by_rule(summary.as_ref(), &[spoken(Role::User, &format!("step {n} of many"))], &gate);
        assert!(next.len() <= 1_400);
        summary = Some(next);
    }
    let text = summary.unwrap();
    assert!(text.as_str().starts_with(OMITTED) && text.as_str().ends_with("step 499 of many"));
    assert_eq!(text.as_str().matches(OMITTED).count(), 1);
}

#[test]
fn a_line_that_is_longer_than_a_summary_goes_visibly_too() {
    let gate = Gate::new(&[]);
    let existing = gate.redact(&"long ".repeat(1_000));
    assert_eq!(by_rule(Some(&existing), &[], &gate).as_str(), OMITTED);
}
