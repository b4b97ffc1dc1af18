//! The session that is being read: redacts its entries and passes them to the slicer, one by one.

use super::earlier::{EarlierReading, StoredPrefix, copy_key, mark_of, record_key};
use super::{APART_MAX, Reader, SessionEnding, SliceSink, Work};
use crate::adapters::repository;
use crate::adapters::walk::Candidate;
use crate::domain::{
    Branch, CoverageState, Digest, Entry, FINDINGS_MAX, Finding, Format, Session, Severity, Skip,
    Speaker,
};
use crate::memory_card;
use crate::pipeline::namespace::namespace_of_folder;
use crate::pipeline::preamble::Preamble;
use crate::privacy::{Gate, Redacted, Report, Woven};
use crate::slicing::{Cutting, Slicer};
use crate::store::CopyBuilder;
use crate::transcripts::{
    RawEntry, RawSession, SessionSource, TranscriptItem, private_tag_finding, redact_entry,
    redact_session,
};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) struct Current<'r, 'a, S> {
    pub(super) reader: &'r mut Reader<'a, S>,
    file: &'r Candidate,
    path: &'r str,
    format: Format,
    open: Option<Open<'a>>,
    pub(super) stopped: bool,
    /// Number of findings of at least warning severity.
    pub(super) bad: u64,
    /// Findings before the first session.
    early: Vec<Finding>,
    /// True if a person or the transcript named the namespace of the session.
    is_named: bool,
    /// Namespace of the session, if a copy of it is read.
    pub(super) namespace: Option<&'r str>,
}

struct Open<'a> {
    session: Arc<Session>,
    /// Marks of the session in another file, as long as this file has the same entries.
    elsewhere: Option<Vec<u64>>,
    stored: StoredPrefix,
    copy: Option<CopyBuilder>,
    slicer: Slicer,
    preamble: Option<Box<Preamble>>,
    card: Option<memory_card::CardBuilder<'a>>,
    ordinal: u32,
    findings: Vec<Finding>,
    masked: Report,
    /// True until a record with an id is read.
    beginning: bool,
    /// True if part of it is stored.
    is_known: bool,
    /// Keys of the records that are stored as its own, loaded on first use.
    own: Option<HashSet<u64>>,
    /// True if an entry is no copy of another session's.
    is_own: bool,
}

impl Open<'_> {
    /// True if the entry's record is another session's, since a fork repeats its origin. A record that is stored as
    /// this session's stays its own, whichever file is read first.
    fn is_copy<S: SliceSink>(
        &mut self,
        reader: &mut Reader<'_, S>,
        entry: &Entry,
        mark: u64,
    ) -> bool {
        let Some(native_id) = &entry.native_id else { return false };
        // Ids of pi's records are short; its forks name their origin.
        let is_fork = self.session.format == Format::ClaudeCode || self.session.parent.is_some();
        if is_fork && std::mem::take(&mut self.beginning) {
            let others = reader.look_up(|lookup| lookup.fork_of(&self.session, native_id));
            reader.copies.belong_elsewhere(others);
        }
        let key = copy_key(&self.session, native_id, mark);
        if !reader.copies.is_elsewhere(key, is_fork) {
            return false;
        }
        if !self.is_known {
            return true;
        }
        let session = self.session.id;
        let own =
            self.own.get_or_insert_with(|| reader.look_up(|lookup| lookup.own_records(session)));
        !own.contains(&record_key(native_id))
    }

    fn with_preambles(&mut self, slices: Vec<Cutting>) -> Vec<(Cutting, Option<Redacted>)> {
        let mut before =
            |cutting: &Cutting| self.preamble.as_mut()?.before(cutting.slice.range().0);
        let paired = |cutting: Cutting| {
            let before = before(&cutting);
            (cutting, before)
        };
        slices.into_iter().map(paired).collect()
    }
}

impl<'r, 'a, S: SliceSink> Current<'r, 'a, S> {
    pub(super) fn new(
        reader: &'r mut Reader<'a, S>,
        file: &'r Candidate,
        path: &'r str,
        format: Format,
    ) -> Current<'r, 'a, S> {
        Current {
            reader,
            file,
            path,
            format,
            open: None,
            stopped: false,
            bad: 0,
            early: Vec::new(),
            is_named: false,
            namespace: None,
        }
    }

    pub(super) fn take(&mut self, item: TranscriptItem) -> ControlFlow<()> {
        let flow = match item {
            TranscriptItem::Session(raw) => {
                self.end(true);
                self.begin(raw)
            }
            TranscriptItem::Entry(raw) => self.entry(raw),
            TranscriptItem::Finding(finding) => {
                self.finding(finding);
                ControlFlow::Continue(())
            }
        };
        self.stopped |= flow.is_break();
        flow
    }

    fn begin(&mut self, mut raw: RawSession) -> ControlFlow<()> {
        let reading = self.reader.reading;
        let is_out = |since| raw.started_at.map_or(!reading.undated, |began| began < since);
        if reading.since.is_some_and(is_out) {
            let undated = u64::from(raw.started_at.is_none());
            self.reader.tally.with(|totals| totals.sessions_undated += undated);
            return ControlFlow::Continue(());
        }
        let read = self.reader.tally.with(|totals| totals.sessions);
        if reading.sessions_max.is_some_and(|most| read >= most) {
            return ControlFlow::Break(());
        }
        if let Some(name) = &reading.session {
            raw.native_id.clone_from(name);
        }
        if raw.cwd.is_none() {
            let folder = folder_by_path(self.format, &self.file.path);
            raw.cwd = folder.map(|folder| folder.display().to_string());
        }
        raw.parent = raw.parent.or_else(|| parent_by_path(self.format, &self.file.path));
        let mut masked = Report::default();
        let (gate, native_id) = (self.reader.gate, raw.native_id.clone());
        let named = self.namespace.map(str::to_owned).or_else(|| reading.namespace.clone());
        let named = named.or_else(|| named_by(&raw, gate));
        self.is_named = named.is_some();
        let namespace = named.unwrap_or_else(|| {
            let folder = raw.cwd.as_deref().unwrap_or_default();
            let stored = self.reader.look_up(|it| it.namespace(folder, gate).map(Some));
            stored.unwrap_or_else(|| namespace_of_folder(folder, gate))
        });
        let source =
            SessionSource { namespace: namespace.as_str(), format: self.format, path: self.path };
        let session = redact_session(raw, source, gate, &mut masked);
        let mut session = self.known(session, &native_id);
        let mut before = self.before(&session);
        // Earlier versions stored sessions of files with names by their first words.
        let is_stored = before.forgotten || before.is_known && before.elsewhere.is_none();
        let is_read = is_stored || reading.session.is_some() || self.namespace.is_some();
        if !is_read && let Some(name) = id_by_path(self.format, &self.file.path) {
            session = self.renamed(&session, &[Woven::Passed(&gate.redact(&name))]);
            before = self.before(&session);
        }
        for _ in 0..APART_MAX {
            let Some(behind) = before.apart.take() else { break };
            let behind = format!("@{behind}");
            let name = [Woven::Passed(&session.native_id), Woven::Label(&behind)];
            session = self.renamed(&session, &name);
            before = self.before(&session);
        }
        if self.is_forgotten(&before) {
            return ControlFlow::Continue(());
        }
        let read = self.reader.copies.sessions.get(&session.id).map(|read| read.marks.clone());
        let elsewhere = read.or_else(|| before.elsewhere.take());
        let open = self.opened(Arc::new(session), before);
        let session = Arc::clone(&open.session);
        let starts = elsewhere.is_none();
        let findings = std::mem::take(&mut self.early);
        self.open = Some(Open { elsewhere, findings, masked, ..open });
        if starts { self.start(&session) } else { ControlFlow::Continue(()) }
    }

    fn known(&mut self, session: Session, native_id: &str) -> Session {
        let (gate, is_named) = (self.reader.gate, self.is_named);
        let known = self.reader.look_up(|it| {
            it.block_on(it.namespaces_of(gate).known(session.clone(), native_id, is_named))
                .map(Some)
        });
        known.unwrap_or(session)
    }

    fn renamed(&mut self, session: &Session, name: &[Woven<'_>]) -> Session {
        let native_id = Redacted::weave(name);
        let id = Session::id_of(&session.namespace, session.format, native_id.as_str());
        let text = native_id.as_str().to_owned();
        self.known(Session { id, native_id, ..session.clone() }, &text)
    }

    fn before(&mut self, session: &Session) -> EarlierReading {
        let own = self.reader.copies.own.contains(&session.id);
        let before = self.reader.sink.before(session, own);
        self.reader.noted(before)
    }

    /// Reports a session that is left out because it was forgotten.
    fn is_forgotten(&mut self, before: &EarlierReading) -> bool {
        let forgotten = before.forgotten && !self.reader.reading.also_forgotten;
        if forgotten {
            let what = "this session was forgotten; --also-forgotten reads it again";
            self.finding(Finding::new(Severity::Info, "forgotten", 0, what));
        }
        forgotten
    }

    fn opened(&mut self, session: Arc<Session>, mut before: EarlierReading) -> Open<'a> {
        let copy = self.reader.begin_copy(session.id);
        let reading = self.reader.reading;
        let ends = std::mem::take(&mut before.ends);
        let slicer = Slicer::new(session.id, reading.slice, ends).starting_at(before.next_index);
        let preamble = reading.preamble.as_ref();
        let preamble = preamble.map(|it| Box::new(Preamble::begin(it, self.format)));
        Open {
            session,
            elsewhere: None,
            is_known: before.is_known,
            stored: StoredPrefix::new(before),
            copy,
            slicer,
            preamble,
            card: reading.cards.then(|| memory_card::CardBuilder::new(self.reader.gate)),
            ordinal: 0,
            findings: Vec::new(),
            masked: Report::default(),
            beginning: true,
            own: None,
            is_own: false,
        }
    }

    fn start(&mut self, session: &Arc<Session>) -> ControlFlow<()> {
        self.reader.copies.begin(session.id);
        let is_unfiled = session.cwd.is_none() && !self.is_named;
        self.reader.tally.with(|totals| {
            totals.sessions += 1;
            totals.sessions_unfiled += u64::from(is_unfiled);
        });
        self.reader.hand(Work::Begin(Arc::clone(session)))
    }

    /// Makes the rest a separate session with a suffix from its file: two conversations began alike, or one was
    /// continued in two files.
    fn part_ways(&mut self) -> ControlFlow<()> {
        let Some(open) = &self.open else { return ControlFlow::Continue(()) };
        let behind = format!("@{:.8}", Digest::of(&[self.path]).to_string());
        let session = Arc::clone(&open.session);
        let name = [Woven::Passed(&session.native_id), Woven::Label(&behind)];
        let session = Arc::new(self.renamed(&session, &name));
        let before = self.before(&session);
        if self.is_forgotten(&before) {
            self.open = None;
            return ControlFlow::Continue(());
        }
        let opened = self.opened(Arc::clone(&session), before);
        if let Some(Open { findings, masked, beginning, own, is_own, .. }) = self.open.take() {
            self.open = Some(Open { findings, masked, beginning, own, is_own, ..opened });
        }
        self.start(&session)
    }

    fn entry(&mut self, mut raw: RawEntry) -> ControlFlow<()> {
        let Some(open) = &mut self.open else { return ControlFlow::Continue(()) };
        // A parent agent speaks in the user's place.
        if self.format == Format::Cursor && open.session.parent.is_some() {
            raw.branch = Branch::Sidechain;
            raw.speaker =
                if raw.speaker == Speaker::Person { Speaker::Client } else { raw.speaker };
        }
        let (line, known) = (raw.line, open.masked.mentions);
        let mut entry = redact_entry(raw, open.ordinal, self.reader.gate, &mut open.masked);
        let mention =
            private_tag_finding(&open.masked, known, line).filter(|_| open.elsewhere.is_none());
        let mark = mark_of(&entry);
        if let Some(elsewhere) = &open.elsewhere
            && elsewhere.get(open.ordinal as usize) != Some(&mark)
        {
            if elsewhere.len() == open.ordinal as usize {
                // The same conversation, continued.
                self.reader.copies.take_over(open.session.id);
                self.open = None;
                return ControlFlow::Break(());
            }
            self.part_ways()?;
        }
        if let Some(finding) = mention {
            self.finding(finding);
        }
        let Some(open) = &mut self.open else { return ControlFlow::Continue(()) };
        entry.ordinal = open.ordinal;
        open.ordinal += 1;
        match &open.elsewhere {
            Some(_) => entry.skip = Some(Skip::Copied),
            None => {
                self.reader.copies.of(open.session.id).marks.push(mark);
                if matches!(self.format, Format::ClaudeCode | Format::Pi | Format::QwenCode)
                    && open.is_copy(self.reader, &entry, mark)
                    && entry.skip.is_none()
                {
                    entry.skip = Some(Skip::Copied);
                }
            }
        }
        open.is_own |= entry.skip != Some(Skip::Copied);
        self.reader.tally.with(|totals| totals.entries += 1);
        if open.elsewhere.is_none() {
            if let Some(copy) = &mut open.copy {
                copy.push(&entry);
            }
            if let Some(card) = &mut open.card {
                card.entry(&entry);
            }
            if let Some(preamble) = &mut open.preamble {
                preamble.push(&entry);
            }
            if open.stored.has(&entry, mark) {
                // No later slice begins with it.
                if let Some(preamble) = &mut open.preamble {
                    preamble.pass(entry.ordinal.saturating_add(1));
                }
                return ControlFlow::Continue(());
            }
        }
        match entry.skip {
            Some(skip) => self.skip(entry, skip),
            None => {
                let slices = open.slicer.push(entry);
                let slices = open.with_preambles(slices);
                self.hand(slices)
            }
        }
    }

    fn skip(&mut self, entry: Entry, skip: Skip) -> ControlFlow<()> {
        let Some(open) = &mut self.open else { return ControlFlow::Continue(()) };
        // The store counts stored entries when the session ends.
        let unstored = u64::from(open.elsewhere.is_some() || self.reader.reading.dry_run);
        self.reader.tally.with(|totals| {
            totals.coverage.add(CoverageState::Skipped, unstored);
            *totals.skipped.entry(skip.name()).or_default() += 1;
        });
        if open.elsewhere.is_some() {
            return ControlFlow::Continue(());
        }
        self.reader.hand(Work::Skipped(Box::new(entry)))
    }

    fn hand(&mut self, slices: Vec<(Cutting, Option<Redacted>)>) -> ControlFlow<()> {
        if let Some(open) = self.open.as_ref().filter(|_| !slices.is_empty()) {
            self.reader.copies.of(open.session.id).slices += slices.len() as u64;
        }
        for (cutting, before) in slices {
            self.reader.tally.with(|totals| totals.slices += 1);
            self.reader.hand(Work::Slice(Box::new(cutting), before))?;
        }
        ControlFlow::Continue(())
    }

    fn finding(&mut self, finding: Finding) {
        self.reader.tally.finding_in(self.path, &finding);
        self.bad += u64::from(finding.severity >= Severity::Warning);
        let findings = self.open.as_mut().map_or(&mut self.early, |open| &mut open.findings);
        if findings.len() < FINDINGS_MAX {
            findings.push(finding);
        }
    }

    pub(super) fn end(&mut self, whole: bool) {
        let Some(mut open) = self.open.take() else { return };
        for (rule, count) in &open.masked.counts {
            self.reader.tally.with(|totals| *totals.masked.entry(rule).or_default() += count);
        }
        if open.elsewhere.is_some() {
            let what = "another file contains all of this session";
            self.finding(Finding::new(Severity::Info, "session-copy", 0, what));
            return;
        }
        if let Some(differs) = open.stored.differs() {
            return self.reader.sink.differs(&open.session, differs);
        }
        if whole && !open.is_own {
            let unstored = if self.reader.reading.dry_run { 0 } else { u64::from(open.ordinal) };
            self.reader.tally.with(|totals| {
                totals.sessions -= 1;
                totals.coverage.add(CoverageState::Skipped, unstored);
            });
            if open.ordinal > 0 {
                let what = "other sessions contain all of it";
                self.finding(Finding::new(Severity::Info, "session-copy", 0, what));
            }
            self.stopped |= self.reader.hand(Work::Left).is_break();
            return;
        }
        let (copy, session) = (open.copy.take().filter(|_| whole), open.session.id);
        let slices = open.slicer.finish();
        let slices = open.with_preambles(slices);
        self.reader.copies.of(open.session.id).slices += slices.len() as u64;
        let mut flow = self.hand(slices);
        if flow.is_continue() {
            flow = self.reader.hand(Work::End(Box::new(SessionEnding {
                entries: open.ordinal,
                findings: open.findings,
                masked: open.masked,
                whole,
                is_copy: self.namespace.is_some(),
                preamble: open.preamble,
                card: open.card.map(|card| Box::new(card.finish())),
            })));
        }
        if let Some(copy) = copy.filter(|_| flow.is_continue()) {
            self.reader.keep_copy(session, copy);
        }
        self.stopped |= flow.is_break();
    }
}

/// Folder of a session whose file names none.
fn folder_by_path(format: Format, file: &Path) -> Option<PathBuf> {
    let is_beside = matches!(format, Format::GeminiCli | Format::Copilot | Format::Specstory);
    let beside = || repository::project_of(file).filter(|_| is_beside);
    if format == Format::Aider { repository::folder_of(file) } else { beside() }
}

/// Cursor's folder of transcripts, with a folder for each session.
const TRANSCRIPTS: &str = "agent-transcripts";

/// Id of a session whose file holds none but is named after it.
fn id_by_path(format: Format, file: &Path) -> Option<String> {
    let file = file.canonicalize().ok().filter(|_| format == Format::Cursor)?;
    let is_named = file.components().any(|it| it.as_os_str() == TRANSCRIPTS);
    file.file_stem()?.to_str().filter(|_| is_named).map(str::to_owned)
}

/// Id of the session whose sub-agent wrote a file, if its place tells.
fn parent_by_path(format: Format, file: &Path) -> Option<String> {
    let folder = file.canonicalize().ok()?.parent()?.to_owned();
    if format == Format::GeminiCli {
        let is_in = folder.parent().is_some_and(|it| it.ends_with("chats"));
        return folder.file_name()?.to_str().filter(|_| is_in).map(str::to_owned);
    }
    id_by_path(format, file)?;
    let parent = folder.parent().filter(|_| folder.ends_with("subagents"))?;
    let name = parent.file_name()?.to_str().filter(|name| *name != TRANSCRIPTS)?;
    Some(name.to_owned())
}

pub(crate) fn named_by(raw: &RawSession, gate: &Gate) -> Option<String> {
    raw.namespace.as_deref().map(|name| gate.redact(name).as_str().to_owned())
}
