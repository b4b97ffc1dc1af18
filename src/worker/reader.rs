//! Reads transcripts on a thread of its own, in order, and hands over what the rest works on. The
//! channel is short, so that reading never runs far ahead of asking.

use super::tally::{FileProblem, Tally};
use crate::domain::{
    CoverageState, DETECT_BYTES_MAX, Digest, Entry, EntryKind, FINDINGS_MAX, Finding, Format,
    Session, Severity, Skip, Speaker, Timestamp,
};
use crate::edge::walk::{Candidate, open};
use crate::privacy::{Gate, Redacted, Report, Woven, is_private_file};
use crate::slice::{Cutting, Settings, Slicer};
use crate::source::{self, Item, RawEntry, RawSession, seal, seal_session};
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Skipped entries that are handed over at once.
const SKIPPED_BATCH: usize = 64;
/// The namespace of what names no folder.
const NAMESPACE_DEFAULT: &str = "default";

/// What is read, and how.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) format: Option<Format>,
    pub(super) namespace: Option<String>,
    pub(super) since: Option<Timestamp>,
    pub(super) sessions_max: Option<u64>,
    pub(super) slice: Settings,
    /// Counts what is skipped here, since no store does.
    pub(super) dry_run: bool,
}

/// What the reader hands over, session by session.
#[derive(Debug)]
pub(super) enum Work {
    /// A session begins.
    Begin(Arc<Session>),
    /// Entries of it that no model reads.
    Skipped(Vec<Entry>),
    /// The next slice of it.
    Slice(Box<Cutting>),
    /// It ends, with so many entries.
    End(Box<Ended>),
}

/// How a session ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) entries: u32,
    pub(super) findings: Vec<Finding>,
    pub(super) masked: Report,
    /// Whether it was read to its end.
    pub(super) whole: bool,
}

/// What is known of a session from earlier readings.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// How many entries it had each time it was read to its end.
    pub(super) ends: BTreeSet<u32>,
    /// Its entries as [`mark_of`] sees them, if it was read from another file.
    pub(super) elsewhere: Option<Vec<u64>>,
}

/// Takes work; says when to stop.
pub(super) trait Desk {
    fn before(&mut self, session: &Session) -> Before;
    fn hand(&mut self, work: Work) -> ControlFlow<()>;
}

/// Reads files one after another.
pub(super) struct Reader<'a, D> {
    reading: &'a Reading,
    gate: &'a Gate,
    tally: &'a Tally,
    desk: D,
    /// Entries of the sessions read so far, so that a copy in another file is not read twice.
    sessions: HashMap<Digest, Vec<u64>>,
    /// Records by the number of the file that had them first: clients copy them into a new file
    /// when a session is resumed.
    records: HashMap<u64, u32>,
    file_number: u32,
}

impl<'a, D: Desk> Reader<'a, D> {
    pub(super) fn new(reading: &'a Reading, gate: &'a Gate, tally: &'a Tally, desk: D) -> Self {
        let (sessions, records) = (HashMap::new(), HashMap::new());
        Reader { reading, gate, tally, desk, sessions, records, file_number: 0 }
    }

    /// What the work was handed to.
    pub(super) fn into_desk(self) -> D {
        self.desk
    }

    /// Reads one file; what is wrong with it is counted and does not stop the others.
    pub(super) fn file(&mut self, file: &Candidate) -> ControlFlow<()> {
        self.file_number += 1;
        let path = file.path.display().to_string();
        let before = self.tally.with(|totals| totals.bytes);
        let result = self.try_file(file, &path);
        self.tally.with(|totals| totals.bytes = before + file.bytes);
        match result {
            Ok(flow) => flow,
            Err(error) => {
                let problem = format!("cannot be read: {error}");
                self.tally.with(|totals| totals.problems.push(FileProblem { path, problem }));
                ControlFlow::Continue(())
            }
        }
    }

    fn try_file(&mut self, file: &Candidate, path: &str) -> io::Result<ControlFlow<()>> {
        let mut input = open(&file.path)?;
        let mut head = Vec::new();
        input.by_ref().take(DETECT_BYTES_MAX as u64).read_to_end(&mut head)?;
        input.rewind()?;
        let name = file.path.file_name().and_then(|name| name.to_str());
        let format = match self.reading.format {
            Some(format) if file.named => format,
            chosen => match source::detect(&head, name) {
                Ok(format) if chosen.is_none_or(|chosen| chosen == format) => format,
                Ok(_) => return Ok(self.pass_over()),
                Err(_) if !file.named => return Ok(self.pass_over()),
                Err(unknown) => {
                    let problem = unknown.to_string();
                    let path = path.to_owned();
                    self.tally.with(|totals| totals.problems.push(FileProblem { path, problem }));
                    return Ok(ControlFlow::Continue(()));
                }
            },
        };
        if is_private_file(&String::from_utf8_lossy(&head)) {
            self.tally.finding(&Finding::new(Severity::Info, "private-file", 0, "left out"));
            return Ok(self.pass_over());
        }
        let entries = self.tally.with(|totals| {
            totals.files += 1;
            totals.entries
        });
        let mut current = Current::new(self, file, path, format);
        let input = Counted { input, tally: current.reader.tally, read: 0 };
        source::read(format, input, &mut |item| current.take(item))?;
        let (stopped, bad) = (current.stopped, current.bad);
        current.end(!stopped);
        let entries = self.tally.with(|totals| totals.entries) - entries;
        if file.named && entries == 0 && bad > 0 {
            let problem = format!("nothing in it could be read as {format}: {bad} findings");
            let path = path.to_owned();
            self.tally.with(|totals| totals.problems.push(FileProblem { path, problem }));
        }
        Ok(if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn pass_over(&mut self) -> ControlFlow<()> {
        self.tally.with(|totals| totals.files_passed_over += 1);
        ControlFlow::Continue(())
    }
}

/// Counts what is read, for those who watch. A reader that looks twice begins anew.
struct Counted<'a, R> {
    input: R,
    tally: &'a Tally,
    read: u64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.input.read(buffer)?;
        self.read += bytes as u64;
        self.tally.with(|totals| totals.bytes += bytes as u64);
        Ok(bytes)
    }
}

impl<R: Seek> Seek for Counted<'_, R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.tally.with(|totals| totals.bytes = totals.bytes.saturating_sub(self.read));
        self.read = 0;
        self.input.seek(to)
    }
}

/// The session that is being read.
struct Current<'r, 'a, D> {
    reader: &'r mut Reader<'a, D>,
    file: &'r Candidate,
    path: &'r str,
    format: Format,
    open: Option<Open>,
    stopped: bool,
    /// Findings that matter.
    bad: u64,
    /// Findings before the first session.
    early: Vec<Finding>,
}

struct Open {
    session: Arc<Session>,
    /// The entries that another file has of it, while this one has the same.
    elsewhere: Option<Vec<u64>>,
    slicer: Slicer,
    ordinal: u32,
    skipped: Vec<Entry>,
    findings: Vec<Finding>,
    masked: Report,
}

impl<'r, 'a, D: Desk> Current<'r, 'a, D> {
    fn new(
        reader: &'r mut Reader<'a, D>,
        file: &'r Candidate,
        path: &'r str,
        format: Format,
    ) -> Current<'r, 'a, D> {
        let (open, stopped, bad, early) = (None, false, 0, Vec::new());
        Current { reader, file, path, format, open, stopped, bad, early }
    }

    fn take(&mut self, item: Item) -> ControlFlow<()> {
        let flow = match item {
            Item::Session(raw) => {
                self.end(true);
                self.begin(raw)
            }
            Item::Entry(raw) => self.entry(raw),
            Item::Finding(finding) => {
                self.finding(finding);
                ControlFlow::Continue(())
            }
        };
        self.stopped |= flow.is_break();
        flow
    }

    fn begin(&mut self, raw: RawSession) -> ControlFlow<()> {
        let reading = self.reader.reading;
        let began = raw.started_at.or(self.file.changed_at);
        if let (Some(since), Some(began)) = (reading.since, began)
            && began < since
        {
            return ControlFlow::Continue(());
        }
        let read = self.reader.tally.with(|totals| totals.sessions);
        if reading.sessions_max.is_some_and(|most| read >= most) {
            return ControlFlow::Break(());
        }
        let mut masked = Report::default();
        let gate = self.reader.gate;
        let namespace = reading.namespace.clone().unwrap_or_else(|| namespace_of(&raw, gate));
        let place = (namespace.as_str(), self.format, self.path);
        let session = Arc::new(seal_session(raw, place, self.reader.gate, &mut masked));
        let before = self.reader.desk.before(&session);
        let elsewhere = self.reader.sessions.get(&session.id.0).cloned().or(before.elsewhere);
        let mut flow = ControlFlow::Continue(());
        if elsewhere.is_none() {
            flow = self.start(&session);
        }
        self.open = Some(Open {
            elsewhere,
            slicer: Slicer::new(session.id, reading.slice, before.ends),
            session,
            ordinal: 0,
            skipped: Vec::new(),
            findings: std::mem::take(&mut self.early),
            masked,
        });
        flow
    }

    fn start(&mut self, session: &Arc<Session>) -> ControlFlow<()> {
        self.reader.sessions.insert(session.id.0, Vec::new());
        self.reader.tally.with(|totals| totals.sessions += 1);
        self.reader.desk.hand(Work::Begin(Arc::clone(session)))
    }

    /// What follows is in no other file: two conversations began alike, or one went on in two places.
    /// It becomes a session of its own, named after its file too.
    fn part_ways(&mut self) -> ControlFlow<()> {
        let Some(open) = &mut self.open else { return ControlFlow::Continue(()) };
        let mut session = Session::clone(&open.session);
        let file = format!("@{:.8}", Digest::of(&[self.path]).to_string());
        let name = [Woven::Passed(&session.native_id), Woven::Label(&file)];
        session.native_id = Redacted::weave(&name);
        session.id = Session::id_of(&session.namespace, session.format, session.native_id.as_str());
        let before = self.reader.desk.before(&session);
        (open.elsewhere, open.ordinal) = (None, 0);
        open.slicer = Slicer::new(session.id, self.reader.reading.slice, before.ends);
        open.session = Arc::new(session);
        let session = Arc::clone(&open.session);
        self.start(&session)
    }

    fn entry(&mut self, raw: RawEntry) -> ControlFlow<()> {
        let Some(open) = &mut self.open else { return ControlFlow::Continue(()) };
        let mut entry = seal(raw, open.ordinal, self.reader.gate, &mut open.masked);
        let mark = mark_of(&entry);
        if let Some(elsewhere) = &open.elsewhere
            && elsewhere.get(open.ordinal as usize) != Some(&mark)
        {
            self.part_ways()?;
        }
        let Some(open) = &mut self.open else { return ControlFlow::Continue(()) };
        entry.ordinal = open.ordinal;
        open.ordinal += 1;
        if self.format == Format::ClaudeCode
            && let Some(native_id) = &entry.native_id
        {
            // Two entries of one record share its id; only the same record elsewhere is a copy.
            let here = self.reader.file_number;
            let key = Digest::of_bytes(native_id.as_str().as_bytes()).short();
            let first = *self.reader.records.entry(key).or_insert(here);
            if first != here && entry.skip.is_none() {
                entry.skip = Some(Skip::Copied);
            }
        }
        match &open.elsewhere {
            Some(_) => entry.skip = Some(Skip::Copied),
            None => self.reader.sessions.entry(open.session.id.0).or_default().push(mark),
        }
        self.reader.tally.with(|totals| totals.entries += 1);
        match entry.skip {
            Some(skip) => self.skip(entry, skip),
            None => {
                let slices = open.slicer.push(entry);
                self.hand(slices)
            }
        }
    }

    fn skip(&mut self, entry: Entry, skip: Skip) -> ControlFlow<()> {
        let Some(open) = &mut self.open else { return ControlFlow::Continue(()) };
        // What is stored is counted there, when the session ends.
        let unstored = u64::from(open.elsewhere.is_some() || self.reader.reading.dry_run);
        self.reader.tally.with(|totals| {
            totals.coverage.add(CoverageState::Skipped, unstored);
            *totals.skipped.entry(skip.name()).or_default() += 1;
        });
        if open.elsewhere.is_some() {
            return ControlFlow::Continue(());
        }
        open.skipped.push(entry);
        if open.skipped.len() < SKIPPED_BATCH {
            return ControlFlow::Continue(());
        }
        let batch = std::mem::take(&mut open.skipped);
        self.reader.desk.hand(Work::Skipped(batch))
    }

    fn hand(&mut self, slices: Vec<Cutting>) -> ControlFlow<()> {
        for cutting in slices {
            self.reader.tally.with(|totals| totals.slices += 1);
            self.reader.desk.hand(Work::Slice(Box::new(cutting)))?;
        }
        ControlFlow::Continue(())
    }

    fn finding(&mut self, finding: Finding) {
        self.reader.tally.finding(&finding);
        self.bad += u64::from(finding.severity >= Severity::Warning);
        let findings = self.open.as_mut().map_or(&mut self.early, |open| &mut open.findings);
        if findings.len() < FINDINGS_MAX {
            findings.push(finding);
        }
    }

    /// Ends the open session, if there is one.
    fn end(&mut self, whole: bool) {
        let Some(mut open) = self.open.take() else { return };
        for (rule, count) in &open.masked.counts {
            self.reader.tally.with(|totals| *totals.masked.entry(rule).or_default() += count);
        }
        if open.elsewhere.is_some() {
            let what = "another file has all of this session";
            self.finding(Finding::new(Severity::Info, "session-copy", 0, what));
            return;
        }
        let slices = open.slicer.finish();
        let flow = self.hand(slices);
        let skipped = std::mem::take(&mut open.skipped);
        let mut flow = match (flow, skipped.is_empty()) {
            (ControlFlow::Continue(()), false) => self.reader.desk.hand(Work::Skipped(skipped)),
            (flow, _) => flow,
        };
        if flow.is_continue() {
            flow = self.reader.desk.hand(Work::End(Box::new(Ended {
                entries: open.ordinal,
                findings: open.findings,
                masked: open.masked,
                whole,
            })));
        }
        self.stopped |= flow.is_break();
    }
}

/// Who said what, so that the same entry is known in another file. What tools said is stored shortened
/// and counts as the same.
pub(super) fn mark_of(entry: &Entry) -> u64 {
    let tool = matches!(entry.speaker, Speaker::Tool | Speaker::Web);
    match tool || entry.kind == EntryKind::ToolCall {
        true => 0,
        false => Digest::of(&[entry.kind.name(), entry.text.as_str()]).short() | 1,
    }
}

/// The one that the transcript's envelope names, else the last name of the folder that the agent
/// worked in.
fn namespace_of(raw: &RawSession, gate: &Gate) -> String {
    let cwd = raw.cwd.as_deref().unwrap_or_default();
    let last = || cwd.rsplit(['/', '\\']).find(|name| !name.is_empty());
    let name = raw.namespace.as_deref().or_else(last);
    gate.redact(name.unwrap_or(NAMESPACE_DEFAULT)).as_str().to_owned()
}
