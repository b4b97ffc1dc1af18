//! What a prompt is told of the last few turns, entry by entry: `cargo run --example dialog`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use annalist::{DialogLimits, DialogRules, DialogSummary};
use annalist::{EntryKind, Speaker};
use annalist::{Gate, Pii, RedactionReport};
use annalist::{RawEntry, redact_entry};
use std::error::Error;

const SAID: [(Speaker, EntryKind, &str); 6] = [
    (Speaker::Person, EntryKind::Prompt, "Selam! Bugün neler yapacağız?"),
    (Speaker::Assistant, EntryKind::ToolCall, "{\"day\": \"today\"}"),
    (Speaker::Assistant, EntryKind::Text, "Saat onda tek bir toplantı var."),
    (Speaker::Person, EntryKind::Prompt, "Onu ada@example.com ile yarına al"),
    (Speaker::Assistant, EntryKind::ToolCall, "{\"day\": \"tomorrow\"}"),
    (Speaker::Assistant, EntryKind::Text, "Yarın onda yer var. Taşıyayım mı?"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let gate = Gate::new(&Pii::ALL);
    let rules = DialogRules { gate: &gate, limits: DialogLimits::default() };
    let mut dialog = DialogSummary::default();
    for (ordinal, (speaker, kind, text)) in (0..).zip(SAID) {
        let mut raw = RawEntry::new(ordinal + 1, speaker, kind, text);
        raw.tool = (kind == EntryKind::ToolCall).then(|| "calendar.find_slot".to_owned());
        dialog.push(&redact_entry(raw, ordinal, &gate, &mut RedactionReport::default()), rules);
        // Kept with the session, it goes on in the next process.
        dialog = serde_json::from_str(&serde_json::to_string(&dialog)?)?;
    }
    let block = dialog.block(&[], rules);
    println!("{}", block.text.as_str());

    // A smaller budget keeps what is newest, and says what went.
    let limits = DialogLimits { tokens_max: 40, ..rules.limits };
    let small = dialog.block(&[], DialogRules { limits, ..rules });
    println!("\n{}", small.text.as_str());
    println!("{} of {} tokens, {:?}", small.tokens, limits.tokens_max, small.fit);
    Ok(())
}
