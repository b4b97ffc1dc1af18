//! What the slices of a session are told of the entries before them: the conversation's memory that the
//! settings name, and the last turns of the dialog. The same entries give the same text, whoever reads
//! them and however often the session was handed over: requests are known by their words.

use crate::config::Config;
use crate::conversation_memory::{self, SliceContext};
use crate::dialog_summary::{self, DialogRules, DialogSummary};
use crate::domain::{Digest, Entry, EntryKind, Format, Session};
use crate::privacy::{Gate, Redacted, Woven};
use crate::store::{ConversationState, Store, StoreError};
use std::collections::VecDeque;
use std::sync::Arc;

/// Stored entries that are read at once.
const PAGE_ENTRIES: u32 = 512;

/// What slices are told, and how much of it.
#[derive(Debug)]
pub(super) struct PreambleSettings {
    conversation: conversation_memory::ConversationSettings,
    dialog: dialog_summary::DialogLimits,
    gate: Gate,
    digest: Digest,
}

impl PreambleSettings {
    pub(super) fn of(config: &Config) -> Arc<PreambleSettings> {
        PreambleSettings::new(config.conversation, config.dialog, Gate::new(&config.pii))
    }

    fn new(
        conversation: conversation_memory::ConversationSettings,
        dialog: dialog_summary::DialogLimits,
        gate: Gate,
    ) -> Arc<PreambleSettings> {
        let settings = serde_json::to_string(&conversation).unwrap_or_default();
        let limits = format!("{} {}", dialog.tokens_max, dialog.turns_max);
        let digest = Digest::of(&["telling", &settings, &limits]);
        Arc::new(PreambleSettings { conversation, dialog, gate, digest })
    }

    /// Everything that two texts about the same entries may differ by.
    pub(super) fn digest(&self) -> Digest {
        self.digest
    }

    fn rules(&self) -> DialogRules<'_> {
        DialogRules { gate: &self.gate, limits: self.dialog }
    }
}

/// What is to be told of one session, as it is read from its beginning or gone on with.
#[derive(Debug)]
pub(super) struct Preamble {
    telling: Arc<PreambleSettings>,
    format: Format,
    /// None where nobody will ask for it, or where the settings name a limit that their strategy cannot
    /// have, which reading them refuses.
    context: Option<SliceContext>,
    dialog: DialogSummary,
    /// The ordinal of the first entry that it knows nothing of.
    next: u32,
    /// Entries that a slice to come may begin with: it is not told of them.
    pending: VecDeque<Entry>,
}

impl Preamble {
    /// Of a session in `format` that is read from its beginning.
    pub(super) fn begin(telling: &Arc<PreambleSettings>, format: Format) -> Preamble {
        let context = SliceContext::new(&telling.conversation, &telling.gate).ok();
        Preamble::with(telling, format, context, (DialogSummary::default(), 0))
    }

    /// Goes on from what is remembered of the entries before `before`, if that can be used.
    fn resume(
        telling: &Arc<PreambleSettings>,
        format: Format,
        (kept, before): (&ConversationState, u32),
    ) -> Option<Preamble> {
        if kept.settings != telling.digest() || before < kept.next {
            return None;
        }
        let tokens_max = telling.conversation.context_tokens;
        let context = match comes_in_pieces(format) {
            true => {
                Some(SliceContext::from_json(&kept.conversation, tokens_max, &telling.gate).ok()?)
            }
            false => None,
        };
        let dialog = serde_json::from_str(&kept.dialog).ok()?;
        Some(Preamble::with(telling, format, context, (dialog, kept.next)))
    }

    fn with(
        telling: &Arc<PreambleSettings>,
        format: Format,
        context: Option<SliceContext>,
        (dialog, next): (DialogSummary, u32),
    ) -> Preamble {
        let telling = Arc::clone(telling);
        Preamble { telling, format, context, dialog, next, pending: VecDeque::new() }
    }

    /// Of the entries of `session` before `end`: from what is `kept` of them, if it can be used, and the
    /// stored ones behind it.
    pub(super) async fn upto(
        store: &Store,
        (telling, session): (&Arc<PreambleSettings>, &Session),
        kept: Option<ConversationState>,
        end: u32,
    ) -> Result<Preamble, StoreError> {
        let resumed = kept.and_then(|kept| Preamble::resume(telling, session.format, (&kept, end)));
        let mut told = resumed.unwrap_or_else(|| Preamble::begin(telling, session.format));
        while told.next < end {
            let page = told.next..end.min(told.next.saturating_add(PAGE_ENTRIES));
            let entries = store.entries_of(session.id, page.clone()).await?;
            // Ordinals have no gaps within a session: there are no more.
            if entries.is_empty() {
                break;
            }
            entries.iter().for_each(|entry| told.push(entry));
            told.pass(page.end);
        }
        Ok(told)
    }

    /// Takes the next entry of the session.
    pub(super) fn push(&mut self, entry: &Entry) {
        self.pending.push_back(match entry.kind {
            EntryKind::ToolResult => without_words(entry),
            EntryKind::Prompt
            | EntryKind::Steering
            | EntryKind::Answer
            | EntryKind::Rejection
            | EntryKind::Command
            | EntryKind::Text
            | EntryKind::ToolCall
            | EntryKind::Summary
            | EntryKind::Injected
            | EntryKind::Notice => entry.clone(),
        });
    }

    /// What the slice is told whose lowest ordinal is `first`; none if that is nothing.
    pub(super) fn before(&mut self, first: u32) -> Option<Redacted> {
        self.pass(first);
        let turns = self.dialog.block(&[], self.telling.rules()).text;
        let turns = (!turns.is_empty()).then_some(turns);
        match (turns, self.context.as_ref().and_then(SliceContext::text)) {
            (Some(turns), Some(said)) => {
                let parts = [Woven::Passed(&turns), Woven::Ours("\n\n"), Woven::Passed(&said)];
                Some(Redacted::weave(&parts))
            }
            (turns, said) => turns.or(said),
        }
    }

    /// No slice to come begins with an entry before `first`.
    pub(super) fn pass(&mut self, first: u32) {
        while let Some(entry) = self.pending.pop_front_if(|entry| entry.ordinal < first) {
            if let Some(context) = &mut self.context {
                context.push(&entry, self.format);
            }
            self.dialog.push(&entry, self.telling.rules());
            self.next = entry.ordinal.saturating_add(1);
        }
    }

    /// What is to be remembered of the entries that no slice to come begins with.
    pub(super) fn remembered(&self) -> ConversationState {
        let conversation = self.context.as_ref().filter(|_| comes_in_pieces(self.format));
        ConversationState {
            settings: self.telling.digest(),
            next: self.next,
            // Turns are numbers, names and texts: they always have a JSON.
            dialog: serde_json::to_string(&self.dialog).unwrap_or_default(),
            conversation: conversation.map(SliceContext::to_json).unwrap_or_default(),
        }
    }
}

/// The dialog of a stored session, all of its entries told: from what is remembered of it, so that a
/// session of any length is not read again.
///
/// # Errors
/// The store's.
pub(crate) async fn dialog_of(
    store: &Store,
    config: &Config,
    session: &Session,
) -> Result<DialogSummary, StoreError> {
    let kept = store.remembered(session.id).await?;
    let told =
        Preamble::upto(store, (&PreambleSettings::of(config), session), kept, u32::MAX).await?;
    Ok(told.dialog)
}

/// Whether who goes on with a session of this format has only what is new of it. Files are read from their
/// beginning each time: the memory of their conversation need not be kept.
fn comes_in_pieces(format: Format) -> bool {
    match format {
        Format::Slice => true,
        Format::ClaudeCode
        | Format::Codex
        | Format::Openai
        | Format::Anthropic
        | Format::Chatgpt
        | Format::Aider
        | Format::Specstory
        | Format::Plain => false,
    }
}

/// What tools answered is told to nobody, and can be long.
fn without_words(entry: &Entry) -> Entry {
    Entry {
        text: Redacted::default(),
        native_id: None,
        tool: entry.tool.clone(),
        ordinal: entry.ordinal,
        line: entry.line,
        speaker: entry.speaker,
        kind: entry.kind,
        branch: entry.branch,
        outcome: entry.outcome,
        exit_code: entry.exit_code,
        at: entry.at,
        skip: entry.skip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation_memory::MemoryType;
    use crate::domain::Speaker;
    use crate::domain::testing::said;
    use proptest::prelude::*;

    fn telling(strategy: MemoryType) -> Arc<PreambleSettings> {
        let gate = Gate::new(&[]);
        let limits = conversation_memory::ConversationLimits {
            window_size: 3,
            summary_threshold: 4,
            keep_recent: 1,
            ..conversation_memory::ConversationLimits::default()
        };
        let conversation =
            conversation_memory::ConversationSettings { strategy, limits, context_tokens: 120 };
        PreambleSettings::new(conversation, dialog_summary::DialogLimits::default(), gate)
    }

    fn entry(ordinal: u32, (who, words): &(u8, String)) -> Entry {
        let (speaker, kind) = match who {
            0 => (Speaker::Person, EntryKind::Prompt),
            1 => (Speaker::Assistant, EntryKind::Text),
            2 => (Speaker::Assistant, EntryKind::ToolCall),
            3 => (Speaker::Tool, EntryKind::ToolResult),
            _ => (Speaker::Client, EntryKind::Summary),
        };
        said(ordinal, (speaker, kind), Gate::new(&[]).redact(words))
    }

    fn begin(strategy: MemoryType) -> Preamble {
        Preamble::begin(&telling(strategy), Format::Slice)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// Who reads on from what is remembered at any entry tells every slice the same as who reads
        /// from the beginning, however far ahead of the slice both have read.
        #[test]
        fn the_same_entries_tell_the_same_however_they_were_handed_over(
            talk in prop::collection::vec((0..5u8, "[A-Z][a-zş]{0,9}( [a-zA-Z?]{1,9}){0,8}[.?]?"), 1..30),
            stops in prop::collection::vec(0..30u32, 0..4),
            strategy in 0..4usize,
        ) {
            let strategy = MemoryType::ALL[strategy];
            let entries: Vec<Entry> = (0..).zip(&talk).map(|(n, said)| entry(n, said)).collect();
            let end = entries.len() as u32;
            let mut whole = begin(strategy);
            entries.iter().for_each(|entry| whole.push(entry));
            let mut pieces = begin(strategy);
            for first in 0..=end {
                if stops.contains(&first) {
                    pieces.pass(first);
                    let kept = pieces.remembered();
                    prop_assert_eq!(kept.next, first);
                    let telling = telling(strategy);
                    let resumed = Preamble::resume(&telling, Format::Slice, (&kept, first));
                    pieces = resumed.expect("made under the same settings");
                }
                let before = whole.before(first);
                prop_assert_eq!(pieces.before(first), before, "before {}", first);
                entries.iter().filter(|entry| entry.ordinal == first).for_each(|it| pieces.push(it));
            }
        }
    }

    #[test]
    fn what_was_made_under_other_settings_or_of_later_entries_is_not_gone_on_with() {
        let mut told = begin(MemoryType::Window);
        told.push(&entry(0, &(0, "Fix the importer.".to_owned())));
        told.pass(1);
        let kept = told.remembered();
        let resume = |strategy, before| {
            Preamble::resume(&telling(strategy), Format::Slice, (&kept, before)).is_some()
        };
        assert!(resume(MemoryType::Window, 1) && resume(MemoryType::Window, 5));
        assert!(!resume(MemoryType::Window, 0), "it knows what is being told anew");
        assert!(!resume(MemoryType::Entity, 1));
        let broken = ConversationState { conversation: "{".to_owned(), ..kept.clone() };
        let telling = telling(MemoryType::Window);
        assert!(Preamble::resume(&telling, Format::Slice, (&broken, 1)).is_none());
    }
}
