//! The preamble of a slice's prompt: the configured conversation memory and the last turns of the dialog before the
//! slice. The same entries give the same text however the session was ingested, because the journal is keyed by the
//! text of requests.

use crate::config::Config;
use crate::conversation_memory::{self, SliceContext};
use crate::dialog_summary::{self, DialogRules, DialogSummary};
use crate::domain::{Digest, Entry, EntryKind, Format, Session};
use crate::privacy::{Gate, Redacted, Woven};
use crate::store::{ConversationState, Store, StoreResult};
use std::collections::VecDeque;
use std::sync::Arc;

/// Stored entries per read.
const PAGE_ENTRIES: u32 = 512;

#[derive(Debug)]
pub(super) struct PreambleSettings {
    conversation: conversation_memory::ConversationSettings,
    dialog: dialog_summary::DialogLimits,
    gate: Gate,
    /// Digest of all settings that a preamble depends on.
    pub(super) digest: Digest,
}

impl PreambleSettings {
    pub(super) fn of(config: &Config) -> Arc<PreambleSettings> {
        let (conversation, dialog) = (config.conversation, config.dialog);
        let settings = serde_json::to_string(&conversation).unwrap_or_default();
        let limits = format!("{} {}", dialog.tokens_max, dialog.turns_max);
        let digest = Digest::of(&["telling", &settings, &limits]);
        Arc::new(PreambleSettings { conversation, dialog, gate: Gate::new(&config.pii), digest })
    }

    fn rules(&self) -> DialogRules<'_> {
        DialogRules { gate: &self.gate, limits: self.dialog }
    }
}

/// The preamble of one session, which grows with its entries.
#[derive(Debug)]
pub(super) struct Preamble {
    settings: Arc<PreambleSettings>,
    format: Format,
    /// `None` if the session is resumed only for its dialog, or if a limit does not fit the strategy, which is rejected
    /// when the settings are read.
    context: Option<SliceContext>,
    dialog: DialogSummary,
    /// Ordinal of the first entry that is not included yet.
    next: u32,
    /// Entries not included yet, because a later slice may begin with them.
    pending: VecDeque<Entry>,
}

impl Preamble {
    /// Starts the preamble of a session that is read from its beginning.
    pub(super) fn begin(settings: &Arc<PreambleSettings>, format: Format) -> Preamble {
        Preamble {
            settings: Arc::clone(settings),
            format,
            context: SliceContext::new(&settings.conversation, &settings.gate).ok(),
            dialog: DialogSummary::default(),
            next: 0,
            pending: VecDeque::new(),
        }
    }

    /// Resumes a stored preamble; `None` if it was made under other settings or includes entries from `end` on.
    fn resume(
        settings: &Arc<PreambleSettings>,
        format: Format,
        kept: &ConversationState,
        end: u32,
    ) -> Option<Preamble> {
        if kept.settings != settings.digest || end < kept.next {
            return None;
        }
        let tokens_max = settings.conversation.context_tokens;
        let context = || SliceContext::from_json(&kept.conversation, tokens_max, &settings.gate);
        Some(Preamble {
            context: comes_in_pieces(format).then(context).transpose().ok()?,
            dialog: serde_json::from_str(&kept.dialog).ok()?,
            next: kept.next,
            ..Preamble::begin(settings, format)
        })
    }

    /// Builds the preamble of the stored entries of `session` before `end`; resumes `kept` if possible.
    pub(super) async fn upto(
        store: &Store,
        settings: &Arc<PreambleSettings>,
        session: &Session,
        kept: Option<ConversationState>,
        end: u32,
    ) -> StoreResult<Preamble> {
        let resumed = kept.and_then(|kept| Preamble::resume(settings, session.format, &kept, end));
        let mut preamble = resumed.unwrap_or_else(|| Preamble::begin(settings, session.format));
        while preamble.next < end {
            let page = preamble.next..end.min(preamble.next.saturating_add(PAGE_ENTRIES));
            let entries = store.entries_of(session.id, page.clone()).await?;
            // Ordinals have no gaps, so the session ends here.
            if entries.is_empty() {
                break;
            }
            entries.iter().for_each(|entry| preamble.push(entry));
            preamble.pass(page.end);
        }
        Ok(preamble)
    }

    pub(super) fn push(&mut self, entry: &Entry) {
        let mut entry = entry.clone();
        if entry.kind == EntryKind::ToolResult {
            // Tool results are in no preamble, and can be long.
            (entry.text, entry.native_id) = (Redacted::default(), None);
        }
        self.pending.push_back(entry);
    }

    /// Returns the preamble of the slice whose lowest ordinal is `first`; `None` if it is empty.
    pub(super) fn before(&mut self, first: u32) -> Option<Redacted> {
        self.pass(first);
        let turns = self.dialog.block(&[], self.settings.rules()).text;
        let turns = (!turns.is_empty()).then_some(turns);
        match (turns, self.context.as_ref().and_then(SliceContext::text)) {
            (Some(turns), Some(said)) => {
                let parts = [Woven::Passed(&turns), Woven::Ours("\n\n"), Woven::Passed(&said)];
                Some(Redacted::weave(&parts))
            }
            (turns, said) => turns.or(said),
        }
    }

    /// Includes all entries before `first`, since no later slice begins with one of them.
    pub(super) fn pass(&mut self, first: u32) {
        while let Some(entry) = self.pending.pop_front_if(|entry| entry.ordinal < first) {
            if let Some(context) = &mut self.context {
                context.push(&entry, self.format);
            }
            self.dialog.push(&entry, self.settings.rules());
            self.next = entry.ordinal.saturating_add(1);
        }
    }

    /// Returns the state to store, which covers the entries that no later slice begins with.
    pub(super) fn remembered(&self) -> ConversationState {
        let conversation = self.context.as_ref().filter(|_| comes_in_pieces(self.format));
        ConversationState {
            settings: self.settings.digest,
            next: self.next,
            // Turns always serialise.
            dialog: serde_json::to_string(&self.dialog).unwrap_or_default(),
            conversation: conversation.map(SliceContext::to_json).unwrap_or_default(),
        }
    }
}

/// Dialog of a stored session. Resumes from the stored state, so that a long session is not read again.
pub(crate) async fn dialog_of(
    store: &Store,
    config: &Config,
    session: &Session,
) -> StoreResult<DialogSummary> {
    let kept = store.remembered(session.id).await?;
    let settings = PreambleSettings::of(config);
    Ok(Preamble::upto(store, &settings, session, kept, u32::MAX).await?.dialog)
}

/// True for formats whose sessions come in pieces. Files are read from the beginning each time, so their conversation
/// memory need not be stored.
fn comes_in_pieces(format: Format) -> bool {
    format == Format::Slice
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation_memory::MemoryType;
    use crate::domain::Speaker;
    use crate::domain::testing::said;
    use proptest::prelude::*;

    fn telling(strategy: MemoryType) -> Arc<PreambleSettings> {
        let limits = conversation_memory::ConversationLimits {
            window_size: 3,
            summary_threshold: 4,
            keep_recent: 1,
            ..conversation_memory::ConversationLimits::default()
        };
        let mut config = Config::load(None, &[]).unwrap();
        config.conversation =
            conversation_memory::ConversationSettings { strategy, limits, context_tokens: 120 };
        PreambleSettings::of(&config)
    }

    fn entry(ordinal: u32, speaker: u8, words: &str) -> Entry {
        let (speaker, kind) = match speaker {
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
        #![proptest_config(crate::testing::cases(64))]

        /// Resuming from the state stored at any entry gives every slice the same preamble as reading
        /// from the beginning, however far ahead of the slice both have read.
        #[test]
        fn the_same_entries_tell_the_same_however_they_were_handed_over(
            talk in prop::collection::vec((0..5u8, "[A-Z][a-zş]{0,9}( [a-zA-Z?]{1,9}){0,8}[.?]?"), 1..30),
            stops in prop::collection::vec(0..30u32, 0..4),
            strategy in 0..4usize,
        ) {
            let strategy = MemoryType::ALL[strategy];
            let entries: Vec<Entry> = (0..).zip(&talk).map(|(n, (speaker, words))| entry(n, *speaker, words)).collect();
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
                    let resumed = Preamble::resume(&telling, Format::Slice, &kept, first);
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
        told.push(&entry(0, 0, "Fix the importer."));
        told.pass(1);
        let kept = told.remembered();
        let resume = |strategy, before| {
            Preamble::resume(&telling(strategy), Format::Slice, &kept, before).is_some()
        };
        assert!(resume(MemoryType::Window, 1) && resume(MemoryType::Window, 5));
        assert!(!resume(MemoryType::Window, 0), "it knows what is being told anew");
        assert!(!resume(MemoryType::Entity, 1));
        let broken = ConversationState { conversation: "{".to_owned(), ..kept.clone() };
        let telling = telling(MemoryType::Window);
        assert!(Preamble::resume(&telling, Format::Slice, &broken, 1).is_none());
    }
}
