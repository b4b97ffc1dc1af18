//! The store, opened in a folder of its own: one session is handed over, no record is there yet.
#![expect(clippy::print_stdout, reason = "an example prints")]

use annalist::{Digest, Format, Session, Timestamp, now};
use annalist::{Gate, RedactionReport};
use annalist::{Intake, OpenMode, RecordFilter, SessionProgress, Store};
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
    let intake = Intake {
        session,
        growth: SessionProgress::default(),
        anew: None,
        entries: Vec::new(),
        known: 0,
        goes_on: false,
        jobs: Vec::new(),
        gathering: None,
        priority: 0,
        document: Some(Digest::of(&["one.txt"])),
        findings: Vec::new(),
        masked: RedactionReport::default(),
        remembered: None,
        at: now(),
    };
    store.enqueue(intake.clone()).await?;
    // Doing it twice changes nothing: the document was handed over before.
    store.enqueue(intake).await?;

    let (status, records) = (store.status().await?, store.records(RecordFilter::default()).await?);
    for one in &status.sessions {
        let ended = if one.ended_at.is_some() { "read to its end" } else { "not read yet" };
        println!("{} {}: {ended}", one.session.format, one.session.path);
    }
    println!("{} records, {} runs failed", records.len(), status.failed.len());
    Ok(())
}
