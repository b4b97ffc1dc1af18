//! Copies in the vault: keeps one of each session that is read, and reads copies like files. A copy that cannot be kept
//! or read stops nothing.

use super::current::Current;
use super::{Reader, SliceSink};
use crate::adapters::walk::Candidate;
use crate::domain::{Entry, Finding, SessionId, Severity};
use crate::privacy::Redacted;
use crate::store::{CopyBuilder, KeepAs, StoreError, StoredCopy};
use crate::transcripts::{RawEntry, RawSession, TranscriptItem};
use std::fmt::Display;
use std::ops::ControlFlow;

impl<S: SliceSink> Reader<'_, S> {
    /// Begins the copy of a session, if copies are kept.
    pub(super) fn begin_copy(&mut self, id: SessionId) -> Option<CopyBuilder> {
        self.reading.vault?;
        let lookup = self.sink.lookup()?;
        let stored = lookup.block_on(lookup.store().copy_chunks(id));
        stored.map(CopyBuilder::new).map_err(|error| self.note_not_kept(id, &error)).ok()
    }

    /// Keeps the copy of a session that was read and ingested.
    pub(super) fn keep_copy(&mut self, id: SessionId, copy: CopyBuilder) {
        let copy = match copy.finish() {
            Ok(copy) => copy,
            Err(error) => return self.note_not_kept(id, &error),
        };
        let (Some(copy), Some(bytes_max)) = (copy, self.reading.vault) else { return };
        let Some(lookup) = self.sink.lookup() else { return };
        let Some(at) = lookup.now() else { return };
        match lookup.block_on(lookup.store().keep_copy(id, copy, KeepAs { at, bytes_max })) {
            Ok(0) => {}
            Ok(evicted) => {
                tracing::info!(evicted, "the vault is full: the oldest copies went");
                let what = "the vault is full: the oldest copies made room";
                (0..evicted).for_each(|_| {
                    self.tally.finding(&Finding::new(Severity::Info, "vault-full", 0, what));
                });
            }
            Err(error) => self.note_not_kept(id, &error),
        }
    }

    fn note_not_kept(&self, session: SessionId, error: &dyn Display) {
        tracing::warn!(session.id = %session, error = %error, "no copy was kept");
        let what = "no copy was kept in the vault";
        self.tally.finding(&Finding::new(Severity::Warning, "vault-failed", 0, what));
    }

    /// Reads a copy like the file that it was made from.
    pub(crate) fn copy(&mut self, copy: &StoredCopy) -> ControlFlow<()> {
        self.next_file();
        let before = self.tally.totals();
        let read = loop {
            let read = self.read_copy(copy);
            // As for a file: at most once per session.
            let Some(taken) = self.copies.take_again() else { break read };
            self.copies.same_file();
            self.tally
                .with(|totals| totals.read_again(&before, taken.marks.len() as u64, taken.slices));
        };
        self.tally.with(|totals| totals.bytes = before.bytes + copy.plain);
        read.unwrap_or_else(|error| {
            let problem = format!("its copy in the vault cannot be read: {error}");
            self.tally.problem(&copy.session.path, problem);
            ControlFlow::Continue(())
        })
    }

    fn read_copy(&mut self, copy: &StoredCopy) -> Result<ControlFlow<()>, StoreError> {
        let session = &copy.session;
        let Some(lookup) = self.sink.lookup() else { return Ok(ControlFlow::Continue(())) };
        let chunks = lookup.block_on(lookup.store().copy_chunks(session.id))?;
        self.tally.with(|totals| totals.files += 1);
        let path = session.path.as_str();
        let file =
            Candidate { path: path.into(), named: true, bytes: copy.plain, changed_at: None };
        let mut current =
            Current::new(self, &file, path, session.format).in_namespace(&session.namespace);
        let text = |text: &Option<Redacted>| text.as_ref().map(|it| it.as_str().to_owned());
        let mut flow = current.take(TranscriptItem::Session(RawSession {
            native_id: session.native_id.as_str().to_owned(),
            namespace: Some(session.namespace.clone()),
            title: text(&session.title),
            cwd: text(&session.cwd),
            parent: text(&session.parent),
            branches: text(&session.branches),
            started_at: session.started_at,
        }));
        let mut is_whole = true;
        for part in 0..u32::try_from(chunks.len()).unwrap_or(u32::MAX) {
            if flow.is_break() {
                break;
            }
            let entries = match current.reader.copied_entries(session.id, part) {
                Ok(Some(entries)) => entries,
                // It was evicted meanwhile.
                Ok(None) => {
                    is_whole = false;
                    break;
                }
                Err(error) => {
                    current.end(false);
                    return Err(error);
                }
            };
            flow =
                entries.into_iter().try_for_each(|it| current.take(TranscriptItem::Entry(raw(it))));
        }
        let stopped = current.stopped;
        current.end(is_whole && !stopped);
        Ok(if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn copied_entries(
        &mut self,
        id: SessionId,
        part: u32,
    ) -> Result<Option<Vec<Entry>>, StoreError> {
        let Some(lookup) = self.sink.lookup() else { return Ok(None) };
        lookup.block_on(lookup.store().copied_entries(id, part))
    }
}

/// Turns a stored entry back into a raw one, so that redaction rules added since apply to it.
fn raw(entry: Entry) -> RawEntry {
    let text = |text: &Redacted| text.as_str().to_owned();
    RawEntry {
        line: entry.line,
        native_id: entry.native_id.as_ref().map(text),
        speaker: entry.speaker,
        kind: entry.kind,
        branch: entry.branch,
        text: text(&entry.text),
        tool: entry.tool.as_ref().map(|tool| text(&tool.name)),
        call_id: entry.tool.as_ref().and_then(|tool| tool.call_id.as_ref()).map(text),
        outcome: entry.outcome,
        exit_code: entry.exit_code,
        at: entry.at,
        skip: entry.skip,
    }
}
