//! Input of commands that show a conversation: a file, standard input or a session in the store.

use super::arguments::session;
use super::output::{self, Failure, Result, unreadable};
use super::settings;
use crate::adapters::walk::{self, Input};
use crate::config::Config;
use crate::dialog_summary::DialogSummary;
use crate::domain::{DETECT_BYTES_MAX, Entry, Finding, Format, Record, RecordState, Session};
use crate::pipeline::dialog_of;
use crate::privacy::{Gate, Report, is_private_file};
use crate::store::{OpenMode, RecordFilter, Store};
use crate::transcripts::{
    self, DetectError, SessionSource, TranscriptItem, nothing_read, private_tag_finding,
    redact_entry, redact_session,
};
use std::borrow::Cow;
use std::io::{self, Cursor, Read, Seek};
use std::ops::ControlFlow;
use std::path::Path;

const STDIN_BYTES_MAX: u64 = 256 * 1024 * 1024;
const ENTRIES_MAX: u32 = 1_000;

pub(super) enum Heard<'a> {
    Session(&'a Session),
    Entry(&'a Entry, Format),
    Finding(Finding),
}

pub(super) struct Source {
    pub(super) name: String,
    /// True if the file contains `private: true`; none of it may be shown.
    pub(super) is_private: bool,
    file_name: Option<String>,
    head: Vec<u8>,
    input: Box<dyn Input>,
}

impl Source {
    /// Opens a file, or standard input for `-`. `expected` describes the content in an error.
    pub(super) fn open(path: &Path, expected: &str) -> Result<Source> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
        let name = Gate::new(&[]).redact(&name).as_str().to_owned();
        let (input, file_name): (Box<dyn Input>, _) = match is_stdin {
            true => (Box::new(Cursor::new(read_stdin(expected)?)), None),
            false => {
                let file = walk::open(path).map_err(unreadable(&name))?;
                (file, path.file_name().and_then(|it| it.to_str()).map(str::to_owned))
            }
        };
        let mut source = Source { name, is_private: false, file_name, head: Vec::new(), input };
        let read =
            source.input.by_ref().take(DETECT_BYTES_MAX as u64).read_to_end(&mut source.head);
        read.map_err(unreadable(&source.name))?;
        source.is_private = is_private_file(&source.head());
        Ok(source)
    }

    pub(super) fn head(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.head)
    }

    /// Returns the format named by the user, or detects it.
    pub(super) fn format(&self, named: Option<Format>) -> Result<Format, DetectError> {
        named.map_or_else(|| transcripts::detect(&self.head, self.file_name.as_deref()), Ok)
    }

    pub(super) fn input(&mut self) -> Result<&mut dyn Input> {
        self.input.rewind().map_err(unreadable(&self.name))?;
        Ok(&mut *self.input)
    }

    pub(super) fn text(&mut self, bytes_max: u64) -> Result<String> {
        let mut bytes = Vec::new();
        let read = self.input()?.take(bytes_max).read_to_end(&mut bytes);
        read.map_err(unreadable(&self.name))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Redacts the transcript and passes its items to `hear`. Ordinals restart at 0 in each
    /// conversation.
    pub(super) fn hear(
        &mut self,
        format: Format,
        gate: &Gate,
        hear: &mut dyn FnMut(Heard<'_>),
    ) -> Result<()> {
        let (mut masked, mut ordinals) = (Report::default(), 0..);
        let (name, mut is_empty) = (self.name.clone(), true);
        let read = transcripts::read(format, self.input()?, &mut |item| {
            is_empty &= !matches!(item, TranscriptItem::Entry(_));
            match item {
                TranscriptItem::Session(raw) => {
                    ordinals = 0..;
                    let source = SessionSource { namespace: "", format, path: &name };
                    hear(Heard::Session(&redact_session(raw, source, gate, &mut masked)));
                }
                TranscriptItem::Entry(raw) => {
                    let ordinal = ordinals.next().unwrap_or(u32::MAX);
                    let (line, known) = (raw.line, masked.mentions);
                    let entry = redact_entry(raw, ordinal, gate, &mut masked);
                    if let Some(finding) = private_tag_finding(&masked, known, line) {
                        hear(Heard::Finding(finding));
                    }
                    hear(Heard::Entry(&entry, format));
                }
                TranscriptItem::Finding(finding) => hear(Heard::Finding(finding)),
            }
            ControlFlow::Continue(())
        });
        if read.is_ok() && is_empty {
            hear(Heard::Finding(nothing_read(format, &self.head, self.file_name.as_deref())));
        }
        read.map_err(unreadable(&name))
    }
}

/// Reads all of standard input. `expected` describes the content in an error.
pub(super) fn read_stdin(expected: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(STDIN_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > STDIN_BYTES_MAX {
        let most = STDIN_BYTES_MAX / 1024 / 1024;
        return Err(Failure::usage(format!(
            "standard input: more than {most} MiB; save it to a file and pass that"
        )));
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Failure::usage(format!("standard input: empty; expected {expected}")));
    }
    Ok(bytes)
}

pub(super) fn note_private(name: &str) {
    output::note(&format!("{name}: says `private: true` and is skipped"));
}

pub(super) struct StoredSession {
    pub(super) session: Session,
    pub(super) records: Vec<Record>,
    pub(super) dialog: DialogSummary,
    /// Memory card as JSON, if there is one.
    pub(super) card: Option<String>,
}

pub(super) type EntrySink<'a> = &'a mut dyn FnMut(&Entry, Format);

impl StoredSession {
    /// Finds the session by an id prefix, and passes its entries to `each` in order.
    pub(super) async fn find(
        id: &str,
        config: &Config,
        each: Option<EntrySink<'_>>,
    ) -> Result<StoredSession> {
        let store = settings::open_store(config, OpenMode::Existing)?;
        let session = session(&store, id).await?;
        if let Some(each) = each {
            entries(&store, &session, each).await?;
        }
        let filter = RecordFilter {
            session: Some(session.id.0.into()),
            states: vec![RecordState::Staged],
            ..RecordFilter::default()
        };
        let records = store.records(filter).await?.into_iter().map(|it| it.record).collect();
        let dialog = dialog_of(&store, config, &session).await?;
        let cards = store.cards(Some(session.id.0.into()), None).await?;
        let card = cards.into_iter().next().map(|stored| stored.card);
        Ok(StoredSession { session, records, dialog, card })
    }
}

async fn entries(store: &Store, session: &Session, each: EntrySink<'_>) -> Result<()> {
    let mut from = 0;
    // Terminates because ordinals have no gaps within a session.
    loop {
        let entries = store.entries_of(session.id, from..from.saturating_add(ENTRIES_MAX)).await?;
        entries.iter().for_each(|entry| each(entry, session.format));
        let Some(last) = entries.last() else { return Ok(()) };
        from = last.ordinal.saturating_add(1);
    }
}
