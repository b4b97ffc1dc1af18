//! The store, opened in a folder of its own: one session is begun, no record is there yet.
#![expect(clippy::print_stdout, reason = "an example prints")]

use annalist::Gate;
use annalist::{Format, Session, Timestamp};
use annalist::{OpenMode, RecordFilter, Store};
use annalist::{RawSession, SessionSource, redact_session};
use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(&format!("sqlite:{}/a.db", folder.path().display()), OpenMode::Create)?;

    let raw = RawSession { native_id: "one".to_owned(), ..RawSession::default() };
    let source = SessionSource { namespace: "example", format: Format::Plain, path: "one.txt" };
    let session = redact_session(raw, source, &Gate::new(&[]), &mut Default::default());
    let session = Session { started_at: Timestamp::parse("2026-11-21T09:00:00Z"), ..session };
    store.begin_session(&session).await?;
    // Doing it twice changes nothing: ids are digests of what they name.
    store.begin_session(&session).await?;

    let (status, records) = (store.status().await?, store.records(RecordFilter::default()).await?);
    for one in &status.sessions {
        let ended = if one.ended_at.is_some() { "read to its end" } else { "not read yet" };
        println!("{} {}: {ended}", one.session.format, one.session.path);
    }
    println!("{} records, {} runs failed", records.len(), status.failed.len());
    Ok(())
}
