//! The memory cards that are kept of sessions.

use super::super::output::{self, BOLD, DIM, Failure, short, shorten};
use super::prefix;
use crate::card::Card;
use crate::domain::Timestamp;
use crate::edge::store::{Store, StoredCard};
use serde_json::{Value, json};

/// Letters of a title, and of the words below it.
const LINE_LETTERS: usize = 100;

#[derive(Debug, Default, clap::Args)]
pub(super) struct Filter {
    /// Only sessions whose id begins so
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only this namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
}

pub(super) async fn list(store: &Store, filter: &Filter, as_json: bool) -> Result<(), Failure> {
    let id = filter.session.as_deref().map(prefix).transpose()?;
    let cards = store.cards(id, filter.namespace.clone()).await?;
    let mut read = Vec::with_capacity(cards.len());
    for stored in &cards {
        let card: Card = serde_json::from_str(&stored.card).map_err(|error| {
            let id = short(&stored.session.id);
            Failure::failed(format!("the card of session {id} cannot be read: {error}"))
        })?;
        read.push((stored, card));
    }
    if as_json {
        return output::json(
            &read.iter().map(|(stored, card)| to_json(stored, card)).collect::<Vec<_>>(),
        );
    }
    if read.is_empty() {
        output::note("no cards: a replay keeps one of each session, and so does a worker");
    }
    read.iter().try_for_each(|(stored, card)| print(stored, card))
}

fn print(stored: &StoredCard, card: &Card) -> Result<(), Failure> {
    let session = &stored.session;
    let when = session.started_at.map(Timestamp::day).unwrap_or_default();
    let due = if stored.due { ", has grown since" } else { "" };
    let title = shorten(card.title.as_str(), LINE_LETTERS);
    output::line(&format!("{BOLD}{title}{BOLD:#}"))?;
    let about = [short(&session.id), when, session.namespace.clone()];
    let about: Vec<&str> = about.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
    output::line(&format!("  {DIM}{}{due}{DIM:#}", about.join("  ")))?;
    for (name, items) in [("decided", &card.decisions), ("to do", &card.todos)] {
        for item in items {
            output::line(&format!(
                "  {DIM}{name}{DIM:#} {}",
                shorten(item.as_str(), LINE_LETTERS)
            ))?;
        }
    }
    let names: Vec<&str> = card.entities.iter().map(|name| name.as_str()).collect();
    match names.is_empty() {
        true => Ok(()),
        false => output::line(&format!("  {DIM}names{DIM:#} {}", names.join(", "))),
    }
}

fn to_json(stored: &StoredCard, card: &Card) -> Value {
    let session = &stored.session;
    json!({
        "session": session.id,
        "name": session.native_id,
        "namespace": session.namespace,
        "path": session.path,
        "started_at": session.started_at.map(|at| at.to_string()),
        "entries": stored.entries,
        "due": stored.due,
        "card": card,
    })
}
