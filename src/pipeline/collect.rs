//! Slices a transcript without a store, for cassettes and prompt tests.

use super::namespace::NAMESPACE_DEFAULT;
use super::preamble::PreambleSettings;
use super::reader::{Reader, Reading, SliceSink, Work};
use super::tally::Tally;
use crate::adapters::walk::Candidate;
use crate::config::Config;
use crate::domain::{Entry, Finding, Session};
use crate::privacy::{Gate, Redacted, Report};
use crate::slicing::Cutting;
use crate::store::StoreError;
use std::ops::ControlFlow;
use std::sync::Arc;

/// One conversation of a transcript.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) session: Arc<Session>,
    /// Its slices with their preambles.
    pub(crate) slices: Vec<(Cutting, Option<Redacted>)>,
    /// Entries in no slice.
    pub(crate) skipped: Vec<Entry>,
    pub(crate) entries: u64,
    pub(crate) findings: Vec<Finding>,
    pub(crate) masked: Report,
}

/// Reads one conversation by its id or number, or all conversations of the transcript.
///
/// # Errors
/// A one-line message if the transcript cannot be read or has nothing to extract.
pub(crate) fn collect(
    config: &Config,
    transcript: &Candidate,
    conversation: Option<&str>,
) -> Result<Vec<Collected>, String> {
    let reading = Reading {
        format: None,
        // Must not depend on the machine's folders.
        namespace: config.namespace.clone().or_else(|| Some(NAMESPACE_DEFAULT.to_owned())),
        since: None,
        undated: true,
        sessions_max: None,
        slice: config.slice,
        session: None,
        preamble: Some(PreambleSettings::of(config)),
        cards: false,
        also_forgotten: true,
        vault: None,
        dry_run: true,
    };
    let (gate, tally) = (Gate::new(&config.pii), Tally::default());
    let sink = Collector { conversation, wanted: false, found: Vec::new() };
    let mut reader = Reader::new(&reading, &gate, &tally, sink);
    // The collector never stops the reading.
    let _ = reader.file(transcript);
    if let Some(problem) = tally.totals().problems.first() {
        return Err(format!("{}: {}", problem.path, problem.problem));
    }
    let mut found = reader.finish().map_err(|error| error.to_string())?.found;
    found.retain(|it| !it.slices.is_empty());
    let path = transcript.path.display();
    match (found.is_empty(), conversation) {
        (false, _) => Ok(found),
        (true, Some(id)) => Err(format!("{path}: holds no conversation `{id}`")),
        (true, None) => Err(format!("{path}: holds nothing to ask about")),
    }
}

struct Collector<'a> {
    conversation: Option<&'a str>,
    wanted: bool,
    found: Vec<Collected>,
}

impl Collector<'_> {
    /// Matches the conversation's id or its number in the file.
    fn is_wanted(&self, session: &Session) -> bool {
        let id = session.native_id.as_str();
        self.conversation.is_none_or(|wanted| {
            id == wanted || id.rsplit_once('#').is_some_and(|(_, number)| number == wanted)
        })
    }
}

impl SliceSink for Collector<'_> {
    fn hand(&mut self, work: Work) -> Result<ControlFlow<()>, StoreError> {
        if let Work::Begin(session) = work {
            self.wanted = self.is_wanted(&session);
            if self.wanted {
                self.found.push(Collected {
                    session,
                    slices: Vec::new(),
                    skipped: Vec::new(),
                    entries: 0,
                    findings: Vec::new(),
                    masked: Report::default(),
                });
            }
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(open) = self.found.last_mut().filter(|_| self.wanted) {
            match work {
                Work::Begin(_) | Work::Left => {}
                Work::Slice(cutting, before) => open.slices.push((*cutting, before)),
                Work::Skipped(entry) => open.skipped.push(*entry),
                Work::End(ended) => {
                    open.entries = u64::from(ended.entries);
                    (open.findings, open.masked) = (ended.findings, ended.masked);
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
