//! A session of the store, for commands that show something of one.

use super::output::Failure;
use super::records::{one, prefix};
use super::settings;
use crate::config::Config;
use crate::dialog::DialogSummary;
use crate::domain::{Entry, Record, RecordState, Session};
use crate::edge::store::{Open, RecordFilter, Store};
use crate::worker::dialog_of;

/// Entries that are read at once.
const ENTRIES_MAX: u32 = 1_000;

/// Hands the entries of the session whose id begins with `id` to `hear`, in order; gives the session and
/// its staged records.
pub(super) fn read(
    id: &str,
    config: &Config,
    mut hear: impl FnMut(&Session, &Entry),
) -> Result<(Session, Vec<Record>), Failure> {
    let store = settings::open_store(config, Open::Existing)?;
    settings::runtime()?.block_on(async {
        let session = one(store.session(prefix(id)?).await?, "session", id)?;
        let mut from = 0;
        // Ends with the session.
        loop {
            let entries =
                store.entries_of(session.id, from..from.saturating_add(ENTRIES_MAX)).await?;
            entries.iter().for_each(|entry| hear(&session, entry));
            // Ordinals have no gaps within a session.
            let Some(last) = entries.last() else { break };
            from = last.ordinal.saturating_add(1);
        }
        let records = records(&store, &session).await?;
        Ok((session, records))
    })
}

/// The dialog of the session whose id begins with `id`, as far as it is remembered and from there on as it
/// is stored; with the session and its staged records.
pub(super) fn dialog(
    id: &str,
    config: &Config,
) -> Result<(Session, DialogSummary, Vec<Record>), Failure> {
    let store = settings::open_store(config, Open::Existing)?;
    settings::runtime()?.block_on(async {
        let session = one(store.session(prefix(id)?).await?, "session", id)?;
        let dialog = dialog_of(&store, config, &session).await?;
        let records = records(&store, &session).await?;
        Ok((session, dialog, records))
    })
}

/// What stands beside the entries of a session.
pub(super) struct Told {
    /// The last turns.
    pub(super) dialog: DialogSummary,
    /// What was found in it and staged.
    pub(super) records: Vec<Record>,
    /// Its memory card as JSON, if one was made.
    pub(super) card: Option<String>,
}

/// What is told of the session whose id begins with `id`.
pub(super) fn told(id: &str, config: &Config) -> Result<Told, Failure> {
    let store = settings::open_store(config, Open::Existing)?;
    settings::runtime()?.block_on(async {
        let session = one(store.session(prefix(id)?).await?, "session", id)?;
        let dialog = dialog_of(&store, config, &session).await?;
        let records = records(&store, &session).await?;
        let cards = store.cards(Some(session.id.0.into()), None).await?;
        Ok(Told { dialog, records, card: cards.into_iter().next().map(|stored| stored.card) })
    })
}

async fn records(store: &Store, session: &Session) -> Result<Vec<Record>, Failure> {
    let filter = RecordFilter {
        session: Some(session.id.0.into()),
        states: vec![RecordState::Staged],
        ..RecordFilter::default()
    };
    Ok(store.records(filter).await?.into_iter().map(|stored| stored.record).collect())
}
