//! Memory cards of sessions that were handed over: workers make them from the stored entries, beside
//! their jobs or when there are none, so that handing over stays quick.

use crate::domain::SessionId;
use crate::memory_card::CardBuilder;
use crate::privacy::Gate;
use crate::store::{Store, StoreError, StoreErrorKind};
use tokio_util::sync::CancellationToken;

/// Stored entries that are read at once: others get their turn between two pages.
const PAGE_ENTRIES: u32 = 256;

/// Makes the cards of these sessions, each of its first so many entries, until it is told to stop.
pub(super) async fn make(
    (store, gate): (&Store, &Gate),
    due: Vec<(SessionId, u32)>,
    stop: &CancellationToken,
) -> Result<(), StoreError> {
    for (session, entries) in due {
        let mut card = CardBuilder::new(gate);
        let mut from = 0;
        while from < entries {
            if stop.is_cancelled() {
                return Ok(());
            }
            let to = entries.min(from.saturating_add(PAGE_ENTRIES));
            store.entries_of(session, from..to).await?.iter().for_each(|entry| card.entry(entry));
            from = to;
        }
        // A card is texts, which always have a JSON.
        let card = serde_json::to_string(&card.finish()).unwrap_or_default();
        match store.keep_card(session, entries, card).await {
            // Somebody forgot it meanwhile.
            Err(error) if matches!(error.kind, StoreErrorKind::UnknownSession(_)) => {}
            kept => kept?,
        }
    }
    Ok(())
}
