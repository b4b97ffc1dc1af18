//! Hears of new jobs: a connection of its own on which the server speaks up.

use super::super::changes::Bell;
use super::super::error::{Fault, StoreErrorKind};
use super::address::{Address, LOGIN_SECS};
use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, SimpleQueryMessage};

/// Where new jobs are announced.
const CHANNEL: &str = "annalist_jobs";
/// What announces them when the transaction is committed.
pub(in crate::edge::store) const ANNOUNCE: &str =
    "SELECT pg_notify('annalist_jobs', current_schema())";
/// How long we wait before we listen again after the connection was lost, in seconds.
const AGAIN_SECS: u64 = 1;

/// Rings `bell` for each announcement, and once whenever it begins to listen: what was announced
/// before was not heard. Ends never.
pub(in crate::edge::store) async fn listen(address: Address, bell: Bell) {
    loop {
        // The pool tells that the database is away; here nobody waits for an answer.
        if let Err(fault) = listen_once(&address, &bell).await {
            tracing::debug!(store = address.shown(), kind = %fault.kind(), "not listening");
        }
        sleep(Duration::from_secs(AGAIN_SECS)).await;
    }
}

async fn listen_once(address: &Address, bell: &Bell) -> Result<(), Fault> {
    let login = address.config.connect(address.tls.clone());
    let login = timeout(Duration::from_secs(LOGIN_SECS), login).await;
    let (client, mut connection) =
        login.map_err(|late| Fault::caused(StoreErrorKind::Unavailable, late))??;
    let sql = format!("LISTEN {CHANNEL}; SELECT current_schema()");
    let mut listening = pin!(client.simple_query(&sql));
    // Other stores of this database announce on the same channel.
    let mut ours: Option<String> = None;
    loop {
        tokio::select! {
            begun = &mut listening, if ours.is_none() => {
                ours = Some(schema_of(&begun?).unwrap_or_default());
                bell.ring();
            }
            message = poll_fn(|cx| connection.poll_message(cx)) => match message {
                None => return Ok(()),
                Some(Ok(AsyncMessage::Notification(said))) => {
                    if ours.as_deref() == Some(said.payload()) {
                        bell.ring();
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
            },
        }
    }
}

fn schema_of(answers: &[SimpleQueryMessage]) -> Option<String> {
    answers.iter().find_map(|answer| {
        let SimpleQueryMessage::Row(row) = answer else { return None };
        row.get(0).map(str::to_owned)
    })
}
