//! Truncates messages to a token budget at message boundaries, and renders them for a prompt.

use crate::domain::{Message, Role, Tokens, estimate_tokens};
use crate::privacy::{Redacted, Woven};

/// Tokens of a message's label and of the blank line between two messages.
const LABEL_TOKENS: Tokens = 4;
/// Maximum tokens of the mark for omitted messages, including its label. A test builds the longest.
const MARK_TOKENS_MAX: Tokens = 20;
/// Divisor of the budget that is reserved for system messages before the newest messages.
const PINNED_PART: Tokens = 2;

/// Returns the messages of `view` that fit in `tokens_max`, in order. First the system messages that fit in half
/// the budget, earliest first; then a contiguous run of the newest others; then further system messages. A system
/// message before that run says how many were omitted. A view that fits is returned unchanged.
pub fn within(view: &[Message], tokens_max: Tokens) -> Vec<Message> {
    let mut all = Room(tokens_max);
    if view.iter().all(|message| all.takes(message)) {
        return view.to_vec();
    }
    let Some(room) = tokens_max.checked_sub(MARK_TOKENS_MAX) else { return Vec::new() };
    let mut kept = vec![false; view.len()];
    let is_pinned = |message: &Message| message.role == Role::System;
    let share = room / PINNED_PART;
    let mut pinned = Room(share);
    for (kept, message) in kept.iter_mut().zip(view).filter(|(_, it)| is_pinned(it)) {
        *kept = pinned.takes(message);
    }
    let mut rest = Room(room - (share - pinned.0));
    let mut from = view.len();
    for ((at, message), kept) in view.iter().enumerate().zip(&mut kept).rev() {
        if is_pinned(message) {
            continue;
        }
        if !rest.takes(message) {
            break;
        }
        (*kept, from) = (true, at);
    }
    for (kept, message) in kept.iter_mut().zip(view).filter(|(kept, it)| !**kept && is_pinned(it)) {
        *kept = rest.takes(message);
    }
    joined(view, &kept, from)
}

/// The kept messages, with the mark before position `from`.
fn joined(view: &[Message], kept: &[bool], from: usize) -> Vec<Message> {
    let left_out = kept.iter().filter(|kept| !**kept).count();
    let mark = Redacted::weave(&[Woven::Label(&mark(left_out))]);
    let mut mark = Some(Message { role: Role::System, content: mark });
    let mut shown = Vec::with_capacity(view.len() - left_out + 1);
    for ((at, message), kept) in view.iter().enumerate().zip(kept) {
        if at >= from {
            shown.extend(mark.take());
        }
        if *kept {
            shown.push(message.clone());
        }
    }
    shown.extend(mark);
    shown
}

fn mark(left_out: usize) -> String {
    match left_out {
        1 => "[… 1 message left out …]".to_owned(),
        more => format!("[… {more} messages left out …]"),
    }
}

struct Room(Tokens);

impl Room {
    /// Reserves the message's tokens; false if there is not enough room.
    fn takes(&mut self, message: &Message) -> bool {
        let cost = estimate_tokens(message.content.as_str()).saturating_add(LABEL_TOKENS);
        match self.0.checked_sub(cost) {
            Some(left) => {
                self.0 = left;
                true
            }
            None => false,
        }
    }
}

/// Renders messages as prompt text, each with a role label; `None` if there are none. The estimate of the text does
/// not exceed the budget given to [`within`].
pub fn render(messages: &[Message]) -> Option<Redacted> {
    let mut pieces = Vec::with_capacity(messages.len() * 3);
    for message in messages {
        let label = match message.role {
            Role::System => "[System] ",
            Role::User => "[User] ",
            Role::Assistant => "[Assistant] ",
        };
        let between = if pieces.is_empty() { "" } else { "\n\n" };
        pieces.extend([Woven::Ours(between), Woven::Ours(label), Woven::Passed(&message.content)]);
    }
    (!pieces.is_empty()).then(|| Redacted::weave(&pieces))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(role: usize, text: String) -> Message {
        Message { role: Role::ALL[role % 3], content: Redacted::reopened(text) }
    }

    /// Messages such as `s1 u1 a1`: the letter is the role, the number the tokens.
    #[track_caller]
    fn check(view: &str, tokens_max: Tokens, expected: &str) {
        let view: Vec<Message> = view
            .split_whitespace()
            .map(|it| {
                let (who, tokens) = it.split_at(1);
                let role = "sua".find(who).unwrap();
                message(role, "word".repeat(tokens.parse().unwrap()))
            })
            .collect();
        let shown: Vec<String> = within(&view, tokens_max)
            .iter()
            .map(|it| match it.content.as_str().starts_with('[') {
                true => it.content.as_str().to_owned(),
                false => format!("{:.1}{}", it.role.name(), it.content.len() / 4),
            })
            .collect();
        assert_eq!(shown.join(" "), expected);
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        check("s6 u6 a6", 30, "s6 u6 a6");
        check("", 0, "");
    }

    #[test]
    fn pinned_and_newest_stay_and_a_mark_says_how_many_are_gone() {
        check("s6 u6 a6", 29, "[… 3 messages left out …]");
        check("s6 u96 a96 u90 a6", 220, "s6 [… 2 messages left out …] u90 a6");
        check("u96 a96 s6 u90 a6", 220, "s6 [… 2 messages left out …] u90 a6");
        check("u96 a6", 50, "[… 1 message left out …] a6");
    }

    #[test]
    fn no_message_is_skipped_among_the_newest() {
        check("u6 a400 u6", 120, "[… 2 messages left out …] u6");
        check("s6 u400", 120, "s6 [… 1 message left out …]");
    }

    #[test]
    fn a_long_system_message_does_not_push_out_the_newest() {
        check("s100 s10 u60 a60", 220, "s10 [… 1 message left out …] u60 a60");
        check("s100 u60 a10", 140, "[… 1 message left out …] u60 a10");
        check("s100 u6 a6", 150, "s100 u6 a6");
        check("s90 u6 a6 u400", 150, "s90 [… 3 messages left out …]");
    }

    #[test]
    fn a_budget_without_room_for_the_mark_shows_nothing() {
        check("u400", 19, "");
    }

    #[test]
    fn the_longest_mark_is_as_long_as_budgets_expect() {
        assert!(estimate_tokens(&mark(usize::MAX)) + LABEL_TOKENS <= MARK_TOKENS_MAX);
    }

    proptest! {
        #[test]
        fn a_view_within_its_budget_fits_keeps_its_order_and_is_not_cut_again(
            view in prop::collection::vec((0..3usize, "[a-zş \n]{0,90}"), 0..30),
            tokens_max in 0..400u32,
        ) {
            let view: Vec<Message> = view.into_iter().map(|(role, text)| message(role, text)).collect();
            let cut = within(&view, tokens_max);
            let text = render(&cut).unwrap_or_default();
            prop_assert!(estimate_tokens(text.as_str()) <= tokens_max);
            prop_assert_eq!(&within(&cut, tokens_max), &cut);
            let mut rest = view.iter();
            let is_mark = |it: &&Message| it.content.as_str().starts_with("[…");
            prop_assert!(cut.iter().filter(|it| !is_mark(it)).all(|it| rest.any(|of| of == it)));
            prop_assert!(cut.iter().filter(is_mark).count() <= 1);
            prop_assert!(cut == view || cut.is_empty() || cut.iter().any(|it| is_mark(&it)));
        }
    }
}
