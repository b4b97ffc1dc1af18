//! The way out of a reader: items go to the sink, findings are bounded, and the sink's word to stop
//! is remembered.

use super::lines::Line;
use super::{Item, RawEntry, RawSession, Sink};
use crate::domain::{FINDINGS_MAX, Finding, LINE_BYTES_MAX, Severity};

/// Hands items to a sink.
pub(super) struct Emit<'e, 's> {
    sink: &'e mut Sink<'s>,
    findings: usize,
    stopped: bool,
}

impl<'e, 's> Emit<'e, 's> {
    pub(super) fn new(sink: &'e mut Sink<'s>) -> Emit<'e, 's> {
        Emit { sink, findings: 0, stopped: false }
    }

    /// Whether the sink wants nothing more.
    pub(super) fn stopped(&self) -> bool {
        self.stopped
    }

    pub(super) fn session(&mut self, session: RawSession) {
        self.item(Item::Session(session));
    }

    pub(super) fn entry(&mut self, entry: RawEntry) {
        self.item(Item::Entry(entry));
    }

    /// Reports what could not be read; beyond [`FINDINGS_MAX`] findings are only counted.
    pub(super) fn finding(
        &mut self,
        severity: Severity,
        rule: &'static str,
        line: u32,
        detail: impl Into<String>,
    ) {
        self.findings += 1;
        if self.findings <= FINDINGS_MAX {
            self.item(Item::Finding(Finding::new(severity, rule, line, detail)));
        }
    }

    /// Whether a line can be read; reports what was done to it.
    pub(super) fn takes(&mut self, line: &Line<'_>) -> bool {
        if line.too_long {
            let detail = format!("expected at most {LINE_BYTES_MAX} bytes a line; passed over");
            self.finding(Severity::Warning, "line-too-long", line.number, detail);
        } else if line.repaired {
            let detail = "expected UTF-8; other bytes were replaced";
            self.finding(Severity::Info, "not-utf8", line.number, detail);
        }
        !line.too_long
    }

    /// Says how many findings were only counted.
    pub(super) fn finish(&mut self) {
        let more = self.findings.saturating_sub(FINDINGS_MAX);
        if more > 0 {
            let detail = format!("{more} more findings of this file are not listed");
            self.item(Item::Finding(Finding::new(Severity::Warning, "more-findings", 0, detail)));
        }
    }

    fn item(&mut self, item: Item) {
        if !self.stopped {
            self.stopped = (self.sink)(item).is_break();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::ControlFlow;

    #[test]
    fn findings_beyond_the_bound_are_counted() {
        let mut items = Vec::new();
        let mut sink = |item: Item| {
            items.push(item);
            ControlFlow::Continue(())
        };
        let mut emit = Emit::new(&mut sink);
        for line in 0..150 {
            emit.finding(Severity::Warning, "bad-line", line, "expected JSON");
        }
        emit.finish();
        assert_eq!(items.len(), FINDINGS_MAX + 1);
        let Some(Item::Finding(last)) = items.last() else { panic!("no finding") };
        assert!(last.detail.starts_with("50 more"));
    }

    #[test]
    fn nothing_comes_after_stop() {
        let mut seen = 0;
        let mut sink = |_: Item| {
            seen += 1;
            ControlFlow::Break(())
        };
        let mut emit = Emit::new(&mut sink);
        emit.session(RawSession::default());
        emit.session(RawSession::default());
        assert!(emit.stopped());
        assert_eq!(seen, 1);
    }
}
