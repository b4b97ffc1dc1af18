//! The mouth of a reader: passes items to the sink until it says stop, and bounds the findings of
//! one file.

use super::lines::Line;
use super::mend::Parsed;
use super::{Item, RawEntry, RawSession, Sink};
use crate::domain::{FINDINGS_MAX, Finding, Severity};
use std::ops::ControlFlow;

/// Where a reader puts what it reads.
pub(super) struct Outlet<'a, 's> {
    sink: &'a mut Sink<'s>,
    findings: usize,
    repaired: (u32, usize),
    stopped: bool,
}

impl<'a, 's> Outlet<'a, 's> {
    pub(super) fn new(sink: &'a mut Sink<'s>) -> Outlet<'a, 's> {
        Outlet { sink, findings: 0, repaired: (0, 0), stopped: false }
    }

    /// Whether the sink wants no more.
    pub(super) fn stopped(&self) -> bool {
        self.stopped
    }

    pub(super) fn session(&mut self, session: RawSession) {
        self.put(Item::Session(session));
    }

    pub(super) fn entry(&mut self, entry: RawEntry) {
        self.put(Item::Entry(entry));
    }

    /// Reports a finding, up to [`FINDINGS_MAX`] of them; the others are counted.
    pub(super) fn finding(&mut self, finding: Finding) {
        self.findings += 1;
        if self.findings <= FINDINGS_MAX {
            self.put(Item::Finding(finding));
        }
    }

    /// Reports how a line parsed, unless as it should.
    pub(super) fn parsed(&mut self, line: &Line<'_>, parsed: Parsed, expected: &str) {
        match parsed {
            Parsed::AsIs if line.repaired => self.repaired(line.number),
            Parsed::AsIs => {}
            Parsed::Mended => self.repaired(line.number),
            Parsed::Not => self.unreadable(line.number, line.complete, expected),
        }
    }

    /// A line that does not parse: a warning, or, when it is being written, a remark.
    pub(super) fn unreadable(&mut self, line: u32, complete: bool, expected: &str) {
        let (severity, rule, detail) = match complete {
            true => (Severity::Warning, "bad-line", format!("expected {expected}; line left out")),
            false => {
                let detail = "the last line is not finished; it is left for the next time";
                (Severity::Info, "truncated-last-line", detail.to_owned())
            }
        };
        self.finding(Finding::new(severity, rule, line, detail));
    }

    /// A line longer than the bound, which was never kept.
    pub(super) fn too_long(&mut self, line: u32, bytes_max: usize) {
        let detail = format!("expected a line of at most {bytes_max} bytes; line left out");
        self.finding(Finding::new(Severity::Warning, "line-too-long", line, detail));
    }

    /// Counts a line whose bytes were not UTF-8 (or whose escapes were no characters).
    fn repaired(&mut self, line: u32) {
        if self.repaired.1 == 0 {
            self.repaired.0 = line;
        }
        self.repaired.1 += 1;
    }

    /// Ends the file: says once what was repaired, and how many findings were not shown.
    pub(super) fn close(mut self) {
        let (line, lines) = self.repaired;
        if 0 < lines {
            let detail = format!("{lines} lines held bytes or escapes that are no characters");
            self.put(Item::Finding(Finding::new(Severity::Info, "invalid-utf8", line, detail)));
        }
        if FINDINGS_MAX < self.findings {
            let detail = format!("{} more findings of this file", self.findings - FINDINGS_MAX);
            self.put(Item::Finding(Finding::new(Severity::Warning, "more-findings", 0, detail)));
        }
    }

    fn put(&mut self, item: Item) {
        if !self.stopped {
            self.stopped = (self.sink)(item) == ControlFlow::Break(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(work: impl FnOnce(Outlet<'_, '_>)) -> Vec<Item> {
        let mut items = Vec::new();
        let mut sink = |item| {
            items.push(item);
            ControlFlow::Continue(())
        };
        work(Outlet::new(&mut sink));
        items
    }

    #[test]
    fn findings_are_bounded_and_the_rest_counted() {
        let items = collect(|mut outlet| {
            for line in 1..=150 {
                outlet.unreadable(line, true, "a record");
            }
            outlet.close();
        });
        assert_eq!(items.len(), FINDINGS_MAX + 1);
        let Some(Item::Finding(last)) = items.last() else { panic!("a finding closes the file") };
        assert_eq!(
            (last.rule.as_ref(), last.detail.as_str()),
            ("more-findings", "50 more findings of this file")
        );
    }

    #[test]
    fn nothing_is_said_after_the_sink_broke() {
        let mut seen = 0;
        let mut sink = |_| {
            seen += 1;
            ControlFlow::Break(())
        };
        let mut outlet = Outlet::new(&mut sink);
        outlet.session(RawSession::default());
        outlet.unreadable(1, true, "a record");
        assert!(outlet.stopped());
        outlet.close();
        assert_eq!(seen, 1);
    }
}
