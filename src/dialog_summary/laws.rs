//! Properties of the rolling summary, on generated dialogs.

use super::block::Omitted;
use super::tests::{entry, gate};
use super::*;
use crate::domain::{Branch, Entry};
use proptest::prelude::*;

/// Entry kinds, some with a tool.
const HEADS: [&str; 14] = [
    "prompt",
    "prompt",
    "prompt",
    "text",
    "text",
    "tool_call calendar.list_events",
    "tool_call AskUserQuestion",
    "tool_result AskUserQuestion",
    "tool_result Bash",
    "steering",
    "answer",
    "rejection",
    "command",
    "injected",
];
/// Text that the gate masks.
const PLANTED: [&str; 5] = [
    "ada@example.com",
    "555-123-4567",
    "4111 1111 1111 1111",
    "TR33 0006 1005 1978 6457 8413 26",
    "sk-proj-ROOFroofROOFroof0123456789abcdefgh",
];

/// Words of dialogs: plain ones, questions, text that the gate masks, and look-alikes.
fn words() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zışçğöüİI]{1,9}",
        1 => Just("ada@example.com".to_owned()),
        1 => Just("555-123-4567".to_owned()),
        1 => Just("password: hunter2x9".to_owned()),
        1 => Just("<private>".to_owned()),
        1 => Just("</private>".to_owned()),
        1 => Just("<EMAIL>".to_owned()),
        1 => Just("-----BEGIN PRIVATE KEY-----".to_owned()),
        1 => Just("Shall I?".to_owned()),
        1 => Just("devam edeyim mi".to_owned()),
        1 => Just("selam".to_owned()),
        1 => "[0-9]{1,10}",
        1 => "[ \n\t.,:?!<>\"'=@-]{1,4}",
        1 => any::<String>(),
    ];
    let gap = prop_oneof![3 => Just(" "), 1 => Just(""), 1 => Just("\n")];
    prop::collection::vec((piece, gap), 0..14)
        .prop_map(|pieces| pieces.into_iter().map(|(piece, gap)| piece + gap).collect())
}

/// Entries of a dialog.
fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let step = (prop::sample::select(&HEADS[..]), words(), 0..10u8);
    prop::collection::vec(step, 0..40).prop_map(|steps| {
        let steps = (0..).zip(steps);
        let entries = steps.map(|(ordinal, (head, words, branch))| {
            let branch = if branch == 0 { Branch::Sidechain } else { Branch::Active };
            Entry { branch, ..entry(ordinal, &format!("{head}: {words}")) }
        });
        entries.collect()
    })
}

// Fewer cases, since dialogs are long and checked after every entry.
const CASES: u32 = 96;

fn limits() -> impl Strategy<Value = DialogLimits> {
    (0..200u32, 0..8u32).prop_map(|(tokens_max, turns_max)| DialogLimits { tokens_max, turns_max })
}

/// A turn of a document.
fn told() -> impl Strategy<Value = CompactSummary> {
    (words(), words(), prop::collection::vec(words(), 0..4)).prop_map(
        |(intent, action, pending)| {
            let pass = |text: &String| gate().redact(text);
            CompactSummary {
                user_intent: pass(&intent),
                action_taken: pass(&action),
                pending_items: pending.iter().map(pass).collect(),
                ..CompactSummary::default()
            }
        },
    )
}

/// Checks the limits, the order of turns, one line per turn, and redaction.
fn check(dialog: &DialogSummary, rules: DialogRules<'_>) -> Result<(), TestCaseError> {
    let block = dialog.block(&[], rules);
    let text = block.text.as_str();
    prop_assert!(block.tokens <= rules.limits.tokens_max, "{text}");
    prop_assert!(block.tokens as usize >= text.split_whitespace().count());
    prop_assert!(block.tokens as usize >= text.chars().count().div_ceil(4));
    prop_assert!(block.turns.len() <= rules.limits.turns_max as usize);
    prop_assert_eq!(&rules.gate.redact(text), &block.text);
    prop_assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'));
    let numbers: Vec<u32> = block.turns.iter().map(|turn| turn.turn_number).collect();
    prop_assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
    let all = dialog.turns(rules);
    let last = all.last().map(|turn| turn.turn_number);
    prop_assert!(numbers.is_empty() || numbers.last().copied() == last);
    prop_assert_eq!(text.is_empty(), block.turns.is_empty());
    Ok(())
}

fn push(dialog: &mut DialogSummary, entries: &[Entry], rules: DialogRules<'_>) {
    for entry in entries {
        dialog.push(entry, rules);
    }
}

fn through_json(dialog: &DialogSummary) -> DialogSummary {
    serde_json::from_str(&serde_json::to_string(dialog).unwrap()).unwrap()
}

proptest! {
    #![proptest_config(crate::testing::cases(CASES))]

    #[test]
    fn any_dialog_stays_within_its_limits_after_every_entry(
        entries in entries(),
        limits in limits(),
    ) {
        let gate = gate();
        let rules = DialogRules { gate: &gate, limits };
        let mut dialog = DialogSummary::default();
        for entry in &entries {
            dialog.push(entry, rules);
            check(&dialog, rules)?;
        }
    }

    #[test]
    fn written_down_and_read_again_it_goes_on_as_before(
        entries in entries(),
        cut in any::<prop::sample::Index>(),
        limits in limits(),
    ) {
        let gate = gate();
        let rules = DialogRules { gate: &gate, limits };
        let mut whole = DialogSummary::default();
        push(&mut whole, &entries, rules);
        let mut parts = DialogSummary::default();
        let cut = cut.index(entries.len() + 1);
        push(&mut parts, &entries[..cut], rules);
        parts = through_json(&parts);
        // Repeats entries that were already added.
        push(&mut parts, &entries, rules);
        prop_assert_eq!(&parts, &whole);
        prop_assert_eq!(&through_json(&whole), &whole);
    }

    #[test]
    fn told_turns_stay_within_their_limits(
        turns in prop::collection::vec(told(), 0..9),
        limits in limits(),
        less in limits(),
    ) {
        let gate = gate();
        let rules = DialogRules { gate: &gate, limits };
        let mut dialog = DialogSummary::default();
        for turn in turns.iter().cloned() {
            dialog.add(turn, rules);
            check(&dialog, rules)?;
        }
        let block = dialog.block(&[], rules);
        prop_assert_eq!(block.fit.evicted as usize + block.turns.len(), turns.len());
        check(&dialog, DialogRules { limits: less, ..rules })?;
    }

    #[test]
    fn what_was_fitted_fits(turns in prop::collection::vec(told(), 0..9), limits in limits()) {
        let gate = gate();
        let rules = DialogRules { gate: &gate, limits };
        let once = Block::of(&turns, rules);
        let again = Block::of(&once.turns, rules);
        prop_assert_eq!(again.text, once.text);
        prop_assert_eq!(again.fit, Omitted::default());
    }

    #[test]
    fn nothing_planted_comes_back(
        heads in prop::collection::vec(prop::sample::select(&HEADS[..]), 1..12),
        before in "[a-zş \n]{0,70}",
        planted in prop::sample::select(&PLANTED[..]),
        limits in limits(),
    ) {
        let gate = gate();
        let rules = DialogRules { gate: &gate, limits };
        let mut dialog = DialogSummary::default();
        for (ordinal, head) in (0..).zip(["prompt"].into_iter().chain(heads)) {
            dialog.push(&entry(ordinal, &format!("{head}: {before} {planted} ok?")), rules);
            let told = CompactSummary {
                user_intent: gate.redact(&format!("{before} {planted}")),
                action_taken: gate.redact(planted),
                pending_items: vec![gate.redact(planted), gate.redact(&before)],
                ..CompactSummary::default()
            };
            let mut told_too = dialog.clone();
            told_too.add(told, rules);
            for dialog in [&dialog, &told_too] {
                let kept = serde_json::to_string(dialog).unwrap();
                for text in [dialog.block(&[], rules).text.as_str(), &kept] {
                    prop_assert!(!text.contains(planted), "{text}");
                }
            }
        }
    }

    #[test]
    fn any_document_is_survived(text in any::<String>(), turns in any::<Vec<String>>()) {
        let gate = gate();
        let rules = DialogRules { gate: &gate, limits: DialogLimits::default() };
        document(&text, rules.gate);
        let json = serde_json::json!({ "turns": turns }).to_string();
        prop_assert_eq!(document(&json, rules.gate).unwrap().1.len(), turns.len());
    }
}
