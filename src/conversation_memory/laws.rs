//! Properties that hold for any conversation.

use super::RECENT_MAX;
use super::*;
use crate::domain::{Message, Role, Timestamp};
use crate::llm::prompt::SummaryPrompt;
use crate::privacy::{Gate, Pii, Redacted};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Text that the gate masks and that must never reappear.
const SECRETS: [&str; 3] = ["ada@example.com", "AKIAIOSFODNN7EXAMPLE", "4111 1111 1111 1111"];

/// An operation on a memory.
#[derive(Clone, Debug)]
enum Act {
    Add(Box<MemoryMessage>),
    /// Answers a due summary with this text.
    Reply(Redacted),
    /// Serialises and parses the memory.
    Reopen,
}

fn gate() -> Gate {
    Gate::new(&Pii::ALL)
}

fn words() -> impl Strategy<Value = Redacted> {
    let piece = prop_oneof![
        4 => "[A-Z][a-z]{0,6}[ .\n]".prop_map(|it| it.to_owned()),
        4 => "[a-zş日 ,!?\n]{0,12}".prop_map(|it| it.to_owned()),
        1 => prop::sample::select(&SECRETS[..]).prop_map(|it| format!(" {it} ")),
        1 => "(<private>|</private>|password: |\"|\\{|\u{0}|.)".prop_map(|it| it.to_owned()),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| gate().redact(&pieces.concat()))
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1.0e9..1.0e9f64).prop_map(Value::from),
        words().prop_map(|it| it.as_str().into()),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-z]{1,4}", inner), 0..3)
                .prop_map(|it| Value::Object(it.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn metadata() -> impl Strategy<Value = Metadata> {
    let names = prop::collection::vec("[A-D]{1,2}", 0..4).prop_map(|it| json!(it));
    let info = ("[A-D]{1,2}", "[a-c]|mentions", value());
    let infos = prop::collection::vec(info, 0..3).prop_map(|all| {
        let all = all.into_iter().map(|(name, key, value)| (name, json!({ key: value })));
        Value::Object(all.collect())
    });
    let entities = prop_oneof![1 => names, 1 => infos, 1 => value()];
    let key = prop_oneof![Just("entities".to_owned()), "[a-z]{1,3}".prop_map(|it| it.to_owned())];
    let object = prop::collection::vec((key, entities), 0..3);
    object.prop_map(|it| Metadata::seal(it.into_iter().collect(), &gate()))
}

fn message() -> impl Strategy<Value = MemoryMessage> {
    let role = prop::sample::select(vec![Role::System, Role::User, Role::User, Role::Assistant]);
    let at = prop::option::of(prop_oneof![any::<i64>(), 0..4_000_000_000_000i64]);
    let id = prop::option::of(words());
    (role, words(), at, id, prop::option::of(any::<u32>()), metadata()).prop_map(
        |(role, content, at, id, token_count, metadata)| {
            let at = at.map(Timestamp);
            MemoryMessage { role, content, at, id, token_count, metadata }
        },
    )
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        8 => message().prop_map(|it| Act::Add(Box::new(it))),
        2 => words().prop_map(Act::Reply),
        1 => Just(Act::Reopen),
    ];
    prop::collection::vec(act, 0..30)
}

fn setting() -> impl Strategy<Value = (MemoryType, ConversationLimits)> {
    (prop::sample::select(MemoryType::ALL), 1..7u32, 0..7u32).prop_map(|(kind, limit, recent)| {
        let limits = ConversationLimits { keep_recent: recent, ..ConversationLimits::default() };
        (kind, limits.with(kind, limit.into()).unwrap())
    })
}

fn memory(setting: (MemoryType, ConversationLimits)) -> ConversationMemory {
    let (kind, limits) = setting;
    create(kind, &limits, Some(gate().redact("session-1"))).unwrap()
}

fn act(memory: &mut ConversationMemory, act: &Act) {
    match act {
        Act::Add(message) => drop(memory.add_message(MemoryMessage::clone(message))),
        Act::Reply(reply) => {
            if let Some(request) = memory.due() {
                let first = memory.absorb(&request, reply);
                let once = memory.to_json();
                let again = memory.absorb(&request, reply);
                assert_eq!(
                    (again, first == Absorbed::Empty),
                    match first {
                        Absorbed::Empty => (Absorbed::Empty, true),
                        Absorbed::Taken => (Absorbed::Stale, false),
                        Absorbed::Stale => panic!("what is due is not stale"),
                    }
                );
                assert_eq!(memory.to_json(), once, "absorbing twice changes nothing");
            }
        }
        Act::Reopen => *memory = from_json(&memory.to_json(), &gate()).unwrap(),
    }
}

fn of_role(messages: &[Message], system: bool) -> Vec<&Message> {
    messages.iter().filter(|it| (it.role == Role::System) == system).collect()
}

proptest! {
    #[test]
    fn what_was_put_in_comes_out_and_goes_on_alike(setting in setting(), acts in acts()) {
        let (mut whole, mut reopened) = (memory(setting), memory(setting));
        for it in &acts {
            act(&mut whole, it);
            reopened = from_json(&reopened.to_json(), &gate()).unwrap();
            act(&mut reopened, it);
            prop_assert_eq!(whole.messages(), reopened.messages());
            prop_assert_eq!(whole.account(), reopened.account());
            prop_assert_eq!(whole.to_json(), reopened.to_json());
        }
    }

    #[test]
    fn system_messages_stay_and_the_newest_of_the_others(setting in setting(), acts in acts()) {
        let (kind, limits) = setting;
        let mut memory = memory(setting);
        let mut all: Vec<Message> = Vec::new();
        for it in &acts {
            act(&mut memory, it);
            if let Act::Add(message) = it {
                all.push(message.shown());
            }
            let view = memory.messages();
            let account = memory.account();
            let (pinned, others) = (of_role(&all, true), of_role(&all, false));
            let mut system = of_role(&view, true).into_iter();
            prop_assert!(pinned.iter().all(|it| system.any(|of| of == *it)), "in their order");
            let shown = of_role(&view, false);
            prop_assert!(others.ends_with(&shown));
            let most = match kind {
                MemoryType::Buffer => {
                    (limits.max_messages.unwrap() as usize).saturating_sub(pinned.len())
                }
                MemoryType::Window => limits.window_size as usize,
                MemoryType::Summary => usize::MAX,
                MemoryType::Entity => RECENT_MAX,
            };
            prop_assert!(shown.len() <= most);
            if kind == MemoryType::Window || kind == MemoryType::Entity {
                prop_assert_eq!(shown.len(), others.len().min(most));
            }
            prop_assert!(account.entities <= limits.max_entities.into());
            let parts = [account.pinned, account.kept, account.summarised, account.evicted];
            prop_assert_eq!(account.read.messages, all.len() as u64);
            prop_assert_eq!(account.read.messages, parts.iter().map(|it| it.messages).sum::<u64>());
            prop_assert_eq!(account.read.tokens, parts.iter().map(|it| it.tokens).sum::<u64>());
        }
    }

    #[test]
    fn a_memory_by_rule_is_never_due(setting in setting(), acts in acts()) {
        let mut memory = memory(setting);
        for it in &acts {
            act(&mut memory, it);
            summarise_by_rule(&mut memory, &gate());
            let due = memory.due().filter(|request| !request.by_rule(&gate()).is_empty());
            prop_assert_eq!(due, None);
        }
    }

    #[test]
    fn nothing_that_the_gate_masks_comes_back(setting in setting(), acts in acts()) {
        let (mut memory, prompt) = (memory(setting), SummaryPrompt::built_in());
        for it in &acts {
            act(&mut memory, it);
            let view = memory.messages();
            let mut out = vec![memory.to_json()];
            out.extend(view.iter().map(|it| it.content.as_str().to_owned()));
            out.extend(render(&within(&view, 60)).map(|it| it.as_str().to_owned()));
            if let Some(request) = memory.due() {
                out.push(request.prompt(&prompt).as_str().to_owned());
                out.push(request.by_rule(&gate()).as_str().to_owned());
            }
            for secret in SECRETS {
                prop_assert!(!out.iter().any(|text| text.contains(secret)), "{}", secret);
            }
        }
    }

    #[test]
    fn a_memory_that_was_cleared_is_as_new(setting in setting(), acts in acts()) {
        let mut it = memory(setting);
        acts.iter().for_each(|of| act(&mut it, of));
        it.clear();
        prop_assert_eq!(it.to_json(), memory(setting).to_json());
    }

    #[test]
    fn no_text_makes_the_loader_panic(text in ".{0,200}") {
        prop_assert!(from_json(&text, &gate()).is_err());
    }

    #[test]
    fn a_memory_with_any_value_in_any_place_is_read_or_refused(
        setting in setting(),
        acts in acts(),
        place in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        value in value(),
    ) {
        let mut it = memory(setting);
        acts.iter().for_each(|of| act(&mut it, of));
        let mut saved: Value = serde_json::from_str(&it.to_json()).unwrap();
        let mut at = &mut saved;
        for index in place {
            let inner = at.as_object().map_or(0, Map::len) + at.as_array().map_or(0, Vec::len);
            if inner > 0 && at.is_object() {
                let object = at.as_object_mut().unwrap();
                at = object.values_mut().nth(index.index(inner)).unwrap();
            } else if inner > 0 {
                at = &mut at[index.index(inner)];
            }
        }
        *at = value;
        if let Ok(mut read) = from_json(&saved.to_string(), &gate()) {
            let _ = read.add_message(MemoryMessage::user(gate().redact("on")));
            summarise_by_rule(&mut read, &gate());
            let _ = (read.messages(), read.account());
            prop_assert!(from_json(&read.to_json(), &gate()).is_ok());
        }
    }
}
