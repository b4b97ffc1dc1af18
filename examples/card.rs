//! The card of a conversation, its checklist, and both ways to print it: `cargo run --example card`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use annalist::{CardBuilder, CardHead, card_checklist, card_yaml};
use annalist::{Gate, Pii};
use std::error::Error;

const SAID: [(&str, &str); 3] = [
    ("user", "Our importer chokes on CP1252. Could you ask ada@example.com for a sample?"),
    ("assistant", "I tried chardet and Charset Normalizer. I'd be going with an explicit list."),
    ("user", "Good! We should warn people who pass --encoding, though."),
];

fn main() -> Result<(), Box<dyn Error>> {
    let gate = Gate::new(&Pii::ALL);
    let mut builder = CardBuilder::new(&gate);
    for (role, words) in SAID {
        builder.message(role, &gate.redact(words), None);
    }
    let opening = builder.opening().cloned();
    let head = CardHead { session: gate.redact("importer"), at: builder.last_at() };
    let card = builder.finish();
    println!("{}", card_yaml(&card, &head));
    println!("{}", serde_json::to_string_pretty(&card)?);

    for check in card_checklist(&card, opening.as_ref(), &gate) {
        println!("{} {}: {}", if check.holds() { "ok" } else { "FAILED" }, check.asks, check.seen);
        if !check.holds() {
            return Err("a card that was built passes its checklist".into());
        }
    }
    Ok(())
}
