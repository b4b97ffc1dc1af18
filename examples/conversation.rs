//! What four memories show of one conversation: `cargo run --example conversation`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use annalist::{
    ConversationLimits, MemoryMessage, MemoryType, create_conversation_memory, messages_from_json,
    messages_within, render_messages, summarise_by_rule,
};
use annalist::{Gate, Pii};
use std::error::Error;

const SAID: [(&str, &str); 7] = [
    ("system", "You help the payouts team."),
    ("user", "We need a durable queue. Ask ada@example.com about Redis."),
    ("assistant", "Redis streams would do. Shall we compare them with Postgres?"),
    ("user", "Yes, compare both."),
    ("assistant", "Postgres wins: one database fewer, and SKIP LOCKED is enough."),
    ("user", "Then we take Postgres."),
    ("assistant", "Noted: the queue stands in Postgres."),
];

fn main() -> Result<(), Box<dyn Error>> {
    let gate = Gate::new(&Pii::ALL);
    for kind in MemoryType::ALL {
        let limits = ConversationLimits { keep_recent: 1, ..ConversationLimits::default() }
            .with(*kind, 3)?;
        let mut memory = create_conversation_memory(*kind, &limits, None)?;
        for (role, text) in SAID {
            let text = gate.redact(text);
            memory.add_message(match role {
                "system" => MemoryMessage::system(text),
                "user" => MemoryMessage::user(text),
                _ => MemoryMessage::assistant(text),
            });
            // Who can ask a model sends `memory.due()` as a prompt instead and absorbs the answer.
            summarise_by_rule(&mut memory, &gate);
        }
        let shown = render_messages(&messages_within(&memory.messages(), 200)).unwrap_or_default();
        println!("--- {kind}\n{}\n", shown.as_str());

        let reopened = messages_from_json(&memory.to_json(), &gate)?;
        if reopened.messages() != memory.messages() {
            return Err("what was put in comes out".into());
        }
    }
    println!(
        "{}",
        match "vector".parse::<MemoryType>() {
            Ok(kind) => kind.to_string(),
            Err(error) => error.to_string(),
        }
    );
    Ok(())
}
