//! Properties of cards, on generated conversations.

use super::*;
use crate::privacy::{Gate, Pii, Redacted};
use proptest::prelude::*;

/// Words that cards look for, words that the gate masks, and edge cases of both.
const PIECES: &str = r#"(decided|need to|[A-Z][a-z]{2,9}|[a-z]{1,12}|the|[.?!]|\. |\n|<private>|</private>| ada@example\.com |AKIA[A-Z0-9]{16}|password: [a-z0-9]{12}|[0-9]{3}[ \n][0-9]{3}[ \n][0-9]{4}|https://a\.example/\?b|"|\\| |  |\PC|.)"#;

// Few cases, since the gate is slow without optimisation.
const CASES: u32 = 48;

fn messages() -> impl Strategy<Value = Vec<(String, String)>> {
    let text = proptest::collection::vec(PIECES, 0..40).prop_map(|pieces| pieces.concat());
    proptest::collection::vec(("(user|assistant|system|\\PC{0,3})", text), 0..8)
}

fn build(messages: &[(String, String)], gate: &Gate, ellipsis: Ellipsis) -> Card {
    let mut builder = CardBuilder::new(gate).ellipsis(ellipsis);
    for (role, text) in messages {
        builder.message(role, &gate.redact(text), None);
    }
    builder.finish()
}

fn all(card: &Card) -> Vec<&Redacted> {
    [&card.title].into_iter().chain(card.lists().into_iter().flat_map(|(_, items)| items)).collect()
}

proptest! {
    #![proptest_config(crate::testing::cases(CASES))]

    #[test]
    fn every_card_passes_its_own_checklist(messages in messages()) {
        let gate = Gate::new(&Pii::ALL);
        for ellipsis in [Ellipsis::Cut, Ellipsis::Template] {
            let card = build(&messages, &gate, ellipsis);
            for check in checklist(&card, None, &gate) {
                prop_assert!(check.holds(), "{check:?} {card:?}");
            }
        }
    }

    #[test]
    fn the_same_messages_give_the_same_bytes(messages in messages()) {
        let gate = Gate::new(&Pii::ALL);
        let [one, other] = [(); 2].map(|()| build(&messages, &gate, Ellipsis::Cut));
        prop_assert_eq!(yaml(&one, &CardHead::default()), yaml(&other, &CardHead::default()));
    }

    #[test]
    fn a_card_is_read_back_as_it_was_printed(messages in messages()) {
        let card = build(&messages, &Gate::new(&Pii::ALL), Ellipsis::Cut);
        let text = serde_json::to_string(&card).unwrap();
        prop_assert_eq!(serde_json::from_str::<Card>(&text).unwrap(), card);
    }

    #[test]
    fn items_stand_in_the_order_of_the_messages(messages in messages()) {
        let gate = Gate::new(&[]);
        let whole = build(&messages, &gate, Ellipsis::Cut);
        // The items of the first messages come first, whatever follows.
        for count in 0..messages.len() {
            let part = build(&messages[..count], &gate, Ellipsis::Cut);
            for ((name, first), (_, items)) in part.texts().into_iter().zip(whole.texts()) {
                prop_assert!(items.starts_with(first), "{name}");
            }
        }
    }

    #[test]
    fn a_card_of_a_card_adds_nothing_that_was_masked(messages in messages()) {
        let gate = Gate::new(&Pii::ALL);
        let card = build(&messages, &gate, Ellipsis::Cut);
        for text in all(&card) {
            prop_assert_eq!(&gate.redact(text.as_str()), text);
            prop_assert!(!text.as_str().contains("ada@example.com"));
        }
    }
}
