//! Context of a slice: consumes transcript entries and renders the messages that the strategy keeps, truncated to a
//! token budget at message boundaries.

use super::message::MemoryMessage;
use super::snapshot::from_json;
use super::summary::Absorbed;
use super::{ConversationMemory, ConversationSettings, MemoryError, create};
use crate::domain::{
    Branch, Entry, EntryKind, Format, Message, Role, Skip, Speaker, Tokens, estimate_tokens,
};
use crate::privacy::{Gate, Redacted, Woven};
use crate::slicing::bound;
use serde::{Deserialize, Serialize};

/// Tokens of a label, and of the mark in a truncated message.
const CUT_TOKENS: Tokens = 40;

/// Context of a session's next slice. Uses rule-based summaries, so that equal entries give equal text.
#[derive(Debug)]
pub(crate) struct SliceContext {
    memory: ConversationMemory,
    branch: BranchFilter,
    tokens_max: Tokens,
    gate: Gate,
}

#[derive(Deserialize, Serialize)]
struct SavedContext {
    line: BranchFilter,
    memory: String,
}

impl SliceContext {
    /// Creates the context of a new session.
    pub(crate) fn new(
        settings: &ConversationSettings,
        gate: &Gate,
    ) -> Result<SliceContext, MemoryError> {
        Ok(SliceContext {
            memory: create(settings.strategy, &settings.limits, None)?,
            branch: BranchFilter::default(),
            tokens_max: settings.context_tokens,
            gate: gate.clone(),
        })
    }

    /// Adds the next entry of a transcript of `format`; ignores entries that are not messages.
    pub(crate) fn push(&mut self, entry: &Entry, format: Format) {
        if let Some(message) = self.branch.message(entry, format) {
            // Findings concern metadata, and the message of an entry has none.
            let _ = self.memory.add_message(message);
            summarise_by_rule(&mut self.memory, &self.gate);
        }
    }

    /// Serialises the context for [`SliceContext::from_json`].
    pub(crate) fn to_json(&self) -> String {
        let saved = SavedContext { line: self.branch, memory: self.memory.to_json() };
        serde_json::to_string(&saved).unwrap_or_default()
    }

    /// Parses the output of [`SliceContext::to_json`], with the budget `tokens_max`. Strategy and limits are the
    /// stored ones.
    pub(crate) fn from_json(
        text: &str,
        tokens_max: Tokens,
        gate: &Gate,
    ) -> Result<SliceContext, MemoryError> {
        let unreadable = |_| MemoryError::Unreadable("expected line and memory".to_owned());
        let SavedContext { line: branch, memory } =
            serde_json::from_str(text).map_err(unreadable)?;
        let memory = from_json(&memory, gate)?;
        Ok(SliceContext { memory, branch, tokens_max, gate: gate.clone() })
    }

    /// Text before the next slice, within the budget; `None` if there is nothing to show. If the last message alone
    /// exceeds the budget, shows its head and tail, since the slice responds to it.
    pub(crate) fn text(&self) -> Option<Redacted> {
        let messages = self.memory.messages();
        let is_said = |message: &&Message| message.role != Role::System;
        let shown = within(&messages, self.tokens_max);
        if shown.iter().any(|message| is_said(&message)) {
            return render(&shown);
        }
        let last = messages.iter().rev().find(is_said)?;
        let room = self.tokens_max.checked_sub(CUT_TOKENS).filter(|room| CUT_TOKENS < *room)?;
        let content = bound(&last.content, room).unwrap_or_else(|| last.content.clone());
        render(&[Message { role: last.role, content }])
    }
}

/// Absorbs a rule-based summary if one is due; returns whether it did. One call per message is enough.
pub fn summarise_by_rule(memory: &mut ConversationMemory, gate: &Gate) -> bool {
    let Some(request) = memory.due() else { return false };
    let summary = request.by_rule(gate);
    memory.absorb(&request, &summary) == Absorbed::Taken
}

/// Selects the messages of one branch, that of the first message. A sub-agent's own file has only sidechain
/// entries; other files omit them.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct BranchFilter(Option<Branch>);

impl BranchFilter {
    /// Converts the next entry to a message; `None` if it is not one or belongs to another branch.
    pub(crate) fn message(&mut self, entry: &Entry, format: Format) -> Option<MemoryMessage> {
        let role = role_of(entry, format)?;
        if entry.branch == Branch::Abandoned {
            return None;
        }
        let is_on = *self.0.get_or_insert(entry.branch) == entry.branch;
        is_on.then(|| MemoryMessage {
            at: entry.at,
            id: entry.native_id.clone(),
            ..MemoryMessage::new(role, entry.text.clone())
        })
    }
}

fn role_of(entry: &Entry, format: Format) -> Option<Role> {
    let role = match entry.kind {
        EntryKind::Prompt
        | EntryKind::Steering
        | EntryKind::Answer
        | EntryKind::Rejection
        | EntryKind::Command => Role::User,
        EntryKind::Text => match entry.speaker {
            Speaker::Person => Role::User,
            Speaker::Assistant | Speaker::Tool | Speaker::Web | Speaker::Client => Role::Assistant,
        },
        EntryKind::Summary => Role::System,
        EntryKind::Injected if has_system_messages(format) => Role::System,
        EntryKind::Injected | EntryKind::Notice | EntryKind::ToolCall | EntryKind::ToolResult => {
            return None;
        }
    };
    let is_read = match entry.skip {
        None => true,
        Some(Skip::Injected) => role == Role::System,
        Some(Skip::Copied | Skip::Summarised | Skip::Private | Skip::Empty | Skip::TakenBack) => {
            false
        }
    };
    is_read.then_some(role)
}

/// Returns whether injected context counts as a message in this format. Agent clients inject files, reminders and
/// skills continuously; pinned, they would displace the dialogue.
fn has_system_messages(format: Format) -> bool {
    matches!(
        format,
        Format::Openai | Format::Anthropic | Format::Chatgpt | Format::Plain | Format::Slice
    )
}

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
    let plural = if left_out == 1 { "" } else { "s" };
    format!("[… {left_out} message{plural} left out …]")
}

struct Room(Tokens);

impl Room {
    /// Reserves the message's tokens; false if there is not enough room.
    fn takes(&mut self, message: &Message) -> bool {
        let cost = estimate_tokens(message.content.as_str()).saturating_add(LABEL_TOKENS);
        let left = self.0.checked_sub(cost);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
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
    mod branch {
        use super::super::*;
        use crate::domain::testing::said;

        fn entry(speaker: Speaker, kind: EntryKind, skip: Option<Skip>) -> Entry {
            Entry { skip, ..said(0, (speaker, kind), Gate::new(&[]).redact("words")) }
        }

        #[track_caller]
        fn check(entry: &Entry, format: Format, expected: Option<Role>) {
            let found = BranchFilter::default().message(entry, format).map(|message| message.role);
            assert_eq!(found, expected, "{format} {entry:?}");
        }

        #[test]
        fn what_was_said_is_a_message_and_what_tools_did_is_none() {
            let said = |speaker, kind| entry(speaker, kind, None);
            check(&said(Speaker::Person, EntryKind::Prompt), Format::Codex, Some(Role::User));
            check(&said(Speaker::Person, EntryKind::Rejection), Format::Codex, Some(Role::User));
            check(&said(Speaker::Assistant, EntryKind::Text), Format::Codex, Some(Role::Assistant));
            check(
                &said(Speaker::Client, EntryKind::Summary),
                Format::ClaudeCode,
                Some(Role::System),
            );
            for kind in [EntryKind::ToolCall, EntryKind::ToolResult, EntryKind::Notice] {
                check(&said(Speaker::Tool, kind), Format::Openai, None);
            }
        }

        #[test]
        fn a_chats_context_is_a_system_message_and_an_agents_is_none() {
            let context = entry(Speaker::Client, EntryKind::Injected, Some(Skip::Injected));
            check(&context, Format::Openai, Some(Role::System));
            check(&context, Format::Plain, Some(Role::System));
            check(&context, Format::ClaudeCode, None);
        }

        #[test]
        fn what_no_model_reads_is_no_message() {
            for skip in Skip::ALL {
                let skipped = entry(Speaker::Person, EntryKind::Prompt, Some(*skip));
                check(&skipped, Format::Openai, None);
            }
        }

        #[test]
        fn a_conversation_is_followed_on_the_line_that_it_began_on() {
            let mut line = BranchFilter::default();
            let mut on = |branch| {
                let said = entry(Speaker::Assistant, EntryKind::Text, None);
                line.message(&Entry { branch, ..said }, Format::ClaudeCode).is_some()
            };
            assert!(!on(Branch::Abandoned) && on(Branch::Sidechain));
            assert!(!on(Branch::Active) && on(Branch::Sidechain) && !on(Branch::Abandoned));
        }
    }

    mod context {
        use super::super::*;
        use crate::conversation_memory::{ConversationLimits, MemoryType};
        use crate::domain::estimate_tokens;
        use crate::domain::testing::said;

        fn entry(ordinal: u32, speaker: Speaker, kind: EntryKind, text: &str) -> Entry {
            said(ordinal, (speaker, kind), Gate::new(&[]).redact(text))
        }

        const FIRST: &str = "[User] Fix the importer of Mira.";
        const LAST: &str = "[Assistant] It reads CP1252 now.\n\n[User] Thanks.";

        /// Checks the context after these entries.
        #[track_caller]
        fn check(strategy: MemoryType, context_tokens: Tokens, expected: Option<&str>) {
            let limits = ConversationLimits {
                window_size: 2,
                summary_threshold: 2,
                ..ConversationLimits::default()
            };
            let settings = ConversationSettings { strategy, limits, context_tokens };
            let mut context = SliceContext::new(&settings, &Gate::new(&[])).unwrap();
            assert_eq!(context.text(), None, "nothing goes before the first slice");
            let entries = [
                entry(0, Speaker::Person, EntryKind::Prompt, "Fix the importer of Mira."),
                entry(1, Speaker::Tool, EntryKind::ToolResult, "4,000 lines"),
                entry(2, Speaker::Assistant, EntryKind::Text, "It reads CP1252 now."),
                entry(3, Speaker::Person, EntryKind::Prompt, "Thanks."),
            ];
            entries.iter().for_each(|entry| context.push(entry, Format::ClaudeCode));
            assert_eq!(context.text().as_ref().map(Redacted::as_str), expected, "{strategy}");
        }

        #[test]
        fn entries_before_a_slice_are_its_context() {
            check(MemoryType::Window, 100, Some(LAST));
            check(MemoryType::Buffer, 100, Some(&format!("{FIRST}\n\n{LAST}")));
            let known =
                "[System] Known entities:\n- Mira: {\"mentions\": 1}\n- CP1252: {\"mentions\": 1}";
            check(MemoryType::Entity, 100, Some(&format!("{known}\n\n{FIRST}\n\n{LAST}")));
            let summary = "[System] Previous conversation summary: - user: Fix the importer of Mira.\n\
                       - assistant: It reads CP1252 now.";
            check(MemoryType::Summary, 100, Some(&format!("{summary}\n\n[User] Thanks.")));
        }

        #[test]
        fn a_last_message_beyond_the_budget_is_cut_and_a_mark_alone_is_nothing() {
            let limits = ConversationLimits::default();
            let strategy = MemoryType::Window;
            let settings = ConversationSettings { strategy, limits, context_tokens: 120 };
            let mut context = SliceContext::new(&settings, &Gate::new(&[])).unwrap();
            let rules = "Follow the policy. ".repeat(200);
            context.push(&entry(0, Speaker::Client, EntryKind::Injected, &rules), Format::Openai);
            assert_eq!(context.text(), None);
            let long = format!("{}Shall I do so?", "A plan of many steps. ".repeat(90));
            context.push(&entry(1, Speaker::Assistant, EntryKind::Text, &long), Format::Openai);
            let text = context.text().unwrap();
            let text = text.as_str();
            assert!(text.starts_with("[Assistant] A plan") && text.ends_with("Shall I do so?"));
            assert!(text.contains(" bytes left out;") && estimate_tokens(text) <= 120, "{text}");
        }

        #[test]
        fn a_context_keeps_to_its_budget() {
            check(MemoryType::Buffer, 26, Some(&format!("{FIRST}\n\n{LAST}")));
            check(MemoryType::Buffer, 25, None);
            check(MemoryType::Buffer, 0, None);
        }
    }
}

#[cfg(test)]
mod budget_tests {
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
