//! Documents, in which an agent, a hook or another machine appends entries to a session. A document is enqueued whole
//! or not at all, and only once.

use super::batch::{Baseline, Batch, Rules};
use super::intake::SessionIntake;
use super::{EnqueueOptions, Enqueuer, PASSES_MAX};
use crate::domain::{Digest, Entry, Finding, Format, Session, Severity, Timestamp};
use crate::pipeline::namespace::{Namespaces, namespace_of_folder};
use crate::pipeline::preamble::Preamble;
use crate::pipeline::reader::{SessionEnding, mark, mark_of, named_by};
use crate::privacy::{Redacted, Report};
use crate::slicing::Slicer;
use crate::store::{CopyBuilder, Intake, SessionProgress, SpokenEntry, StoreError, StoreResult};
use crate::transcripts::{
    RawEntry, SessionSource, SliceError, parse_slice, private_tag_finding, redact_entry,
    redact_session,
};
use std::error::Error;
use std::ops::Range;

#[derive(Debug)]
pub(crate) struct Document {
    /// Its session. Documents of one session are enqueued one after another.
    pub(crate) session: Session,
    /// The client's id of the session, as the client wrote it.
    native_id: String,
    /// True if a person or the document named the namespace.
    is_named: bool,
    /// Numbered from 0 within the document.
    entries: Vec<Entry>,
    from: Option<u32>,
    closed: bool,
    priority: Option<i32>,
    findings: Vec<Finding>,
    masked: Report,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum DocumentError {
    /// It does not fit the stored entries. The message contains no text of it.
    #[error("{0}")]
    Refused(String),
    /// Earlier entries of its session are missing; they may arrive later.
    #[error("{0}")]
    Early(String),
    /// Other processes enqueued more of its session at each try.
    #[error("another process is enqueueing its session; try again")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Document {
    /// True if it changes nothing: it has no entry and ends nothing.
    pub(crate) fn is_idle(&self, how: &EnqueueOptions) -> bool {
        self.entries.is_empty() && !self.closed && !how.flush
    }

    /// Digest of its redacted content, which identifies repeats.
    fn digest(&self) -> Digest {
        let mut parts = vec!["document".to_owned(), self.closed.to_string()];
        for entry in &self.entries {
            let tool = entry.tool.as_ref();
            let call_id = tool.and_then(|tool| tool.call_id.as_ref());
            let texts = [Some(&entry.text), entry.native_id.as_ref(), call_id];
            let texts = texts.map(|text| text.map_or("", |text| text.as_str()).to_owned());
            parts.extend([entry.speaker.name().to_owned(), entry.kind.name().to_owned()]);
            parts.extend(texts);
            parts.push(entry.at.map_or(String::new(), |Timestamp(at)| at.to_string()));
        }
        Digest::of(&parts.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

impl Enqueuer {
    /// Reads and redacts a document; `source` names its origin. An error has the place and the reason, but no text of it.
    pub(crate) fn open(
        &self,
        bytes: &[u8],
        source: &str,
        how: &EnqueueOptions,
    ) -> Result<Document, SliceError> {
        let handed = parse_slice(bytes, how.session.as_deref())?;
        let mut masked = Report::default();
        let named = how.namespace.clone().or_else(|| self.namespace.clone());
        let named = named.or_else(|| named_by(&handed.session, &self.gate));
        let (native_id, is_named) = (handed.session.native_id.clone(), named.is_some());
        let namespace = named.unwrap_or_else(|| {
            let folder = handed.session.cwd.as_deref().unwrap_or_default();
            namespace_of_folder(folder, &self.gate)
        });
        let source = SessionSource { namespace: &namespace, format: Format::Slice, path: source };
        let session = redact_session(handed.session, source, &self.gate, &mut masked);
        let mut mentioned = None;
        let sealed = |(ordinal, raw): (u32, RawEntry)| {
            let (line, known) = (raw.line, masked.mentions);
            let entry = redact_entry(raw, ordinal, &self.gate, &mut masked);
            mentioned = mentioned.take().or_else(|| private_tag_finding(&masked, known, line));
            entry
        };
        let entries = (0..).zip(handed.entries).map(sealed).collect();
        let what = "invalid characters or escapes were replaced";
        let finding = || Finding::new(Severity::Warning, "invalid-utf8", 0, what);
        let findings = handed.repaired.then(finding).into_iter().chain(mentioned).collect();
        Ok(Document {
            session,
            native_id,
            is_named,
            entries,
            from: handed.from,
            closed: handed.closed,
            priority: handed.priority,
            findings,
            masked,
        })
    }

    /// The session of a document as the store has it.
    async fn session_of(&self, document: &Document) -> StoreResult<Session> {
        let namespaces = Namespaces { store: &self.store, gate: &self.gate };
        let Document { session, native_id, is_named, .. } = document;
        let mut session = session.clone();
        if !is_named {
            let folder = session.cwd.as_ref().map_or("", Redacted::as_str);
            session.namespace = namespaces.of_folder(folder).await?;
            session.id = Session::id_of(&session.namespace, session.format, native_id);
        }
        namespaces.known(session, native_id, *is_named).await
    }

    /// Enqueues a document whole or not at all.
    pub(crate) async fn document(
        &self,
        mut document: Document,
        how: &EnqueueOptions,
    ) -> Result<SessionIntake, DocumentError> {
        document.session = self.session_of(&document).await?;
        let document = &document;
        let mut rules = self.rules(how);
        rules.flush |= document.closed;
        rules.priority = how.priority.or(document.priority).unwrap_or_default();
        let mut taken = SessionIntake::of(&document.session);
        for _ in 0..PASSES_MAX {
            let growth = self.store.growth(document.session.id).await?.unwrap_or_default();
            taken.gathers_until = growth.gathers_until;
            taken.forgotten = growth.forgotten && !how.also_forgotten;
            if taken.forgotten {
                return Ok(taken);
            }
            let known = growth.entries;
            let new = self.new_in(document, &growth).await?;
            let Some(intake) = self.intake(document, growth, new, &rules).await? else {
                let ordinals = self.ordinals(document, known).await?;
                taken.add_known(&self.store, ordinals).await?;
                return Ok(taken);
            };
            if taken.enqueue(&self.store, intake).await? {
                let evicted = self.keep_copy(document, known, new, &rules).await;
                let session = document.session.id;
                let evicted = evicted.inspect_err(
                    |error| tracing::warn!(session.id = %session, error = %error, "no copy was kept"),
                );
                taken.evicted = evicted.ok();
                return Ok(taken);
            }
        }
        Err(DocumentError::Busy)
    }

    /// Extends the session's copy with the entries that follow the first `known`; returns the number of copies evicted
    /// for it.
    async fn keep_copy(
        &self,
        document: &Document,
        known: u32,
        new: &[Entry],
        rules: &Rules,
    ) -> Result<u64, Box<dyn Error + Send + Sync>> {
        let Some(bytes_max) = self.vault.filter(|_| !new.is_empty()) else { return Ok(0) };
        let id = document.session.id;
        let stored = self.store.copy_chunks(id).await?;
        let copied: u32 = stored.iter().map(|it| it.entries).sum();
        let (mut copy, open) = CopyBuilder::behind(stored);
        if let Some(open) = open {
            let open = self.store.copied_entries(id, open).await?.unwrap_or_default();
            open.iter().for_each(|entry| copy.push(entry));
        }
        // Entries from a time when no copies were kept, as far as they are stored.
        let before = self.store.entries_of(id, copied..known.max(copied)).await?;
        before.iter().for_each(|entry| copy.push(entry));
        for (ordinal, entry) in (known..).zip(new).skip_while(|(ordinal, _)| *ordinal < copied) {
            copy.push(&Entry { ordinal, line: ordinal.saturating_add(1), ..entry.clone() });
        }
        let Some(copy) = copy.finish()? else { return Ok(0) };
        Ok(self.store.keep_copy(id, copy, rules.now, bytes_max).await?)
    }

    /// The entries of a document that the store does not have.
    async fn new_in<'d>(
        &self,
        document: &'d Document,
        growth: &SessionProgress,
    ) -> Result<&'d [Entry], DocumentError> {
        let (session, entries) = (document.session.id, document.entries.as_slice());
        let Some(from) = document.from else {
            let known = !entries.is_empty()
                && growth.intakes > 0
                && self.store.was_submitted(session, document.digest()).await?;
            return Ok(if known { &[] } else { entries });
        };
        let known = growth.entries;
        if known < from {
            let line = format!(
                "from: expected at most {known}, found {from}: entries {known} to {} of the session \
                 are missing",
                from - 1
            );
            return Err(DocumentError::Early(line));
        }
        let (again, new) = entries.split_at(entries.len().min((known - from) as usize));
        let mut differs = None;
        if !again.is_empty() {
            let ordinals = from..from + again.len() as u32;
            let compare = |said: SpokenEntry| {
                let now = again.get((said.ordinal - from) as usize).map(mark_of);
                if now != Some(mark(said.speaker, said.kind, said.text.as_str())) {
                    differs.get_or_insert(said.ordinal);
                }
            };
            self.store.spoken_entries(session, ordinals, compare).await?;
        }
        match differs {
            None => Ok(new),
            Some(ordinal) => Err(DocumentError::Refused(format!(
                "entries[{}]: entry {ordinal} of the session was submitted before with different \
                 words: expected the same, or from = {known}",
                ordinal - from
            ))),
        }
    }

    /// Ordinals of a document's entries, which are among the first `known` of its session.
    async fn ordinals(&self, document: &Document, known: u32) -> StoreResult<Range<u32>> {
        let own: Vec<u64> = document.entries.iter().map(mark_of).collect();
        let mut from = document.from;
        if from.is_none() && !own.is_empty() {
            let mut marks = Vec::new();
            let each = |it: SpokenEntry| marks.push(mark(it.speaker, it.kind, it.text.as_str()));
            self.store.spoken_entries(document.session.id, 0..known, each).await?;
            from = marks.windows(own.len()).rposition(|it| it == own).map(|at| at as u32);
        }
        let from = from.unwrap_or(known);
        Ok(from..from.saturating_add(own.len() as u32))
    }

    /// Slices the waiting and the new entries; `None` if there is nothing to enqueue.
    async fn intake(
        &self,
        document: &Document,
        growth: SessionProgress,
        new: &[Entry],
        rules: &Rules,
    ) -> StoreResult<Option<Intake>> {
        let (session, taken, known) = (&document.session, growth.taken, growth.entries);
        let (mut gathered, mut remembered) = (Vec::new(), None);
        if taken < known {
            gathered = self.store.entries_of(session.id, taken..known).await?;
        }
        if taken > 0 {
            remembered = self.store.remembered(session.id).await?;
        }
        let mut preamble =
            Preamble::upto(&self.store, &self.preamble, session, remembered, taken).await?;
        let ends = growth.ends.iter().copied().collect();
        let mut slicer =
            Slicer::new(session.id, self.settings, ends).starting_at(growth.next_index);
        let marks = gathered.iter().map(mark_of).collect();
        let baseline = Baseline { growth, gathered: marks, anew: None };
        let mut batch = Batch::new(session.clone(), baseline);
        batch.undivided = true;
        let entries = gathered.into_iter().chain(new.iter().cloned());
        for (ordinal, entry) in (taken..).zip(entries) {
            // Numbered as in a single document of the whole session.
            let entry = Entry { ordinal, line: ordinal.saturating_add(1), ..entry };
            preamble.push(&entry);
            if entry.skip.is_some() {
                batch.keep(entry);
                continue;
            }
            for cutting in slicer.push(entry) {
                let before = preamble.before(cutting.slice.range().0);
                batch.slice(cutting, before, rules);
            }
        }
        for cutting in slicer.finish() {
            let before = preamble.before(cutting.slice.range().0);
            batch.slice(cutting, before, rules);
        }
        let ended = SessionEnding {
            entries: known + new.len() as u32,
            findings: document.findings.clone(),
            masked: document.masked.clone(),
            whole: true,
            is_copy: false,
            preamble: Some(Box::new(preamble)),
            card: None,
        };
        let intake = batch.end(ended, rules);
        let appended = document.from.is_none() && !new.is_empty();
        let digest = appended.then(|| document.digest());
        Ok(intake.map(|intake| Intake { document: digest, ..intake }))
    }
}
