//! One case: why it did not pass, its records beside the transcript, the gold, and what changed.

use super::changes;
use super::html::{Html, cut};
use super::summary::{answers, asked, percent, whole};
use super::transcript::{Mark, marks, transcript};
use crate::domain::RecordState;
use crate::score::compare::CaseComparison;
use crate::score::measure::Measure;
use crate::score::report::{
    CaseOutcome, CaseReport, ForbiddenReport, Problem, RecordReport, Shown,
};
use serde_json::Value;

/// Bytes of a string that are shown.
const STRING_BYTES_MAX: usize = 1_500;
/// Bytes of a problem that are shown: a difference of two requests.
const PROBLEM_BYTES_MAX: usize = 8_000;
/// Places that are linked of one record.
const PLACES_MAX: usize = 40;

/// A case and everything that is known of it.
pub(super) struct One<'r> {
    /// Begins every name of the case on the page.
    pub(super) key: String,
    pub(super) case: &'r CaseReport,
    pub(super) shown: &'r Shown,
    /// What changed of it; none where nothing did.
    pub(super) change: Option<&'r CaseComparison>,
    /// Whether the earlier run had it.
    pub(super) is_compared: bool,
    /// Bytes that it may take, about.
    pub(super) room: usize,
}

impl One<'_> {
    pub(super) fn write(&self, html: &mut Html) {
        let change = match (self.change, self.is_compared) {
            (Some(it), _) if it.worse => "worse",
            (Some(_), _) => "changed",
            (None, true) => "same",
            (None, false) => "new",
        };
        let attributes = [
            ("class", "case"),
            ("id", self.key.as_str()),
            ("data-name", self.case.name.as_str()),
            ("data-state", self.case.outcome.name()),
            ("data-change", change),
        ];
        html.open("details", &attributes);
        self.summary(html);
        html.raw("<div class=\"body\">\n");
        html.element("p", &[("dir", "auto")], &self.case.about);
        let CaseReport { format, language, answers: origins, sums, .. } = self.case;
        let meta = format!("{format}, {language}. {} {}", answers(*origins), asked(sums));
        html.classed("p", "meta", &meta).raw("\n");
        let end = html.len() + self.room;
        self.problems(html);
        let marks = marks(self.case, self.shown);
        let has_both = !self.shown.entries.is_empty();
        html.open("div", &[("class", if has_both { "columns two" } else { "columns" })]);
        html.raw("<div>\n");
        self.gold(html);
        self.records(html, &marks);
        if let Some(change) = self.change {
            changes::of_case(html, change, &self.key, self.room / 8);
        }
        html.close("div");
        if has_both {
            html.raw("<section><h4>Transcript</h4>\n");
            let room = end.saturating_sub(html.len());
            transcript(html, self.shown, &marks, (&self.key, room));
            html.close("section");
        }
        html.raw("</div></div>\n").close("details");
    }

    /// The line that opens it.
    fn summary(&self, html: &mut Html) {
        html.raw("<summary>");
        let (class, sign) = match self.case.outcome {
            CaseOutcome::Passed => ("badge good", "✓ "),
            CaseOutcome::Failed => ("badge bad", "✗ "),
            CaseOutcome::Stale => ("badge warn", "◌ "),
            CaseOutcome::Broken => ("badge bad", "! "),
        };
        html.open("span", &[("class", class)]).raw(sign).raw(self.case.outcome.name());
        html.raw("</span>").element("h3", &[], &self.case.name);
        if let Some(change) = self.change {
            let (class, word) = match (change.worse, change.better) {
                (true, _) => ("badge bad", "worse"),
                (false, true) => ("badge good", "better"),
                (false, false) => ("badge", "changed"),
            };
            html.classed("span", class, word);
        }
        if self.case.is_measured() {
            let sums = &self.case.sums;
            let rate = |measure| sums.rate(measure);
            let items = rate(Measure::Recall);
            let text = format!(
                "{}/{} items, {} records, F1 {}",
                items.hits,
                items.of,
                rate(Measure::Precision).of,
                percent(rate(Measure::F1))
            );
            html.classed("span", "counts", &text);
        }
        html.close("summary");
    }

    fn problems(&self, html: &mut Html) {
        if self.case.problems.is_empty() {
            return;
        }
        let end = html.len() + self.room / 8;
        html.raw("<section><h4>What is to be said of it</h4>\n<ul class=\"plain\">\n");
        for (at, Problem { rule, fails, detail }) in self.case.problems.iter().enumerate() {
            if end < html.len() {
                let left = self.case.problems.len() - at;
                html.raw("<li>").classed("span", "out", &format!("{left} left out")).close("li");
                break;
            }
            let class = if *fails { "badge bad" } else { "badge warn" };
            html.raw("<li>").classed("span", class, rule).raw(" ");
            let (first, rest) = detail.split_once('\n').unwrap_or((detail, ""));
            cut(html, first, STRING_BYTES_MAX);
            if !rest.is_empty() {
                difference(html, rest, end);
            }
            html.close("li");
        }
        html.raw("</ul>\n").close("section");
    }

    /// What was to be found, and what was not to be said.
    fn gold(&self, html: &mut Html) {
        let end = html.len() + self.room / 8;
        let CaseReport { items, forbidden, .. } = self.case;
        if !self.case.is_measured() {
            return;
        }
        let recall = whole(self.case.sums.rate(Measure::Recall));
        html.raw("<section><h4>To be found: ").text(&recall).raw("</h4>\n<ul class=\"plain\">\n");
        for (at, it) in items.iter().enumerate() {
            if end < html.len() {
                let left = items.len() - at;
                html.raw("<li>").classed("span", "out", &format!("{left} left out")).close("li");
                break;
            }
            html.open("li", &[("id", &format!("{}i{at}", self.key))]);
            match it.answered_by {
                Some(_) => html.classed("span", "badge good", "✓ found"),
                None => html.classed("span", "badge bad", "✗ missed"),
            };
            let (importance, kind) = (it.importance.name(), it.kind.name());
            html.raw(" ").text(&format!("{} ({importance} {kind}): ", it.id));
            cut(html, &it.statement, STRING_BYTES_MAX);
            self.link(html, it.answered_by);
            html.close("li");
        }
        html.raw("</ul></section>\n");
        if forbidden.is_empty() {
            return;
        }
        let restraint = whole(self.case.sums.rate(Measure::Restraint));
        html.raw("<section><h4>Not to be said: ")
            .text(&restraint)
            .raw(" kept</h4>\n<ul class=\"plain\">\n");
        for (at, it) in forbidden.iter().enumerate() {
            if end < html.len() {
                let left = forbidden.len() - at;
                html.raw("<li>").classed("span", "out", &format!("{left} left out")).close("li");
                break;
            }
            html.raw("<li>");
            match it.said_by {
                Some(_) => html.classed("span", "badge bad", "✗ said"),
                None => html.classed("span", "badge good", "✓ kept"),
            };
            html.raw(" ").text(&format!("{} ({}): ", it.id, it.why.name()));
            cut(html, &it.statement, STRING_BYTES_MAX);
            self.link(html, it.said_by);
            html.close("li");
        }
        html.raw("</ul></section>\n");
    }

    /// A link to a record.
    fn link(&self, html: &mut Html, record: Option<usize>) {
        if let Some(at) = record {
            let place = format!("#{}r{at}", self.key);
            html.raw(" ").element("a", &[("href", &place)], &format!("record {}", at + 1));
        }
    }

    fn records(&self, html: &mut Html, marks: &[Mark]) {
        let records = &self.case.records;
        if records.is_empty() {
            return;
        }
        let end = html.len() + self.room / 3;
        html.raw("<section><h4>Records: ").text(&records.len().to_string()).raw("</h4>\n");
        for (at, record) in records.iter().enumerate() {
            if end < html.len() {
                let text = format!("{} records left out", records.len() - at);
                html.classed("p", "out", &text);
                break;
            }
            self.record(html, at, record, marks);
        }
        html.close("section");
    }

    fn record(&self, html: &mut Html, at: usize, record: &RecordReport, marks: &[Mark]) {
        html.open("article", &[("class", "record"), ("id", &format!("{}r{at}", self.key))]);
        html.raw("<p><b>")
            .text(&(at + 1).to_string())
            .raw(" ")
            .raw(record.kind.name())
            .raw("</b> ");
        match record.state {
            RecordState::Staged => html.classed("span", "badge", "staged"),
            RecordState::Quarantined => html.classed("span", "badge warn", "? quarantined"),
            RecordState::Replaced => html.classed("span", "badge", "replaced"),
        };
        let bans = self.case.forbidden.iter().filter(|it| it.said_by == Some(at));
        let bans: Vec<&ForbiddenReport> = bans.collect();
        match (&record.answers, record.state) {
            (Some(item), _) => {
                html.raw(" answers ");
                match self.case.items.iter().position(|it| it.id == *item) {
                    Some(at) => {
                        html.element("a", &[("href", &format!("#{}i{at}", self.key))], item)
                    }
                    None => html.text(item),
                }
            }
            (None, RecordState::Staged) if bans.is_empty() => {
                html.classed("span", "warn", "answers nothing")
            }
            (None, RecordState::Staged | RecordState::Quarantined | RecordState::Replaced) => html,
        };
        for ban in bans {
            let what = format!("says {}, which is not to be said ({})", ban.id, ban.why.name());
            html.raw(" ").classed("span", "bad", &what);
        }
        html.close("p");
        if let Some(reason) = &record.reason {
            html.raw("<p class=\"warn\">");
            cut(html, reason, STRING_BYTES_MAX);
            html.close("p");
        }
        html.raw("<dl>");
        for (name, value) in record.claim.as_object().into_iter().flatten() {
            html.element("dt", &[], name).raw("<dd dir=\"auto\">");
            field(html, value);
            html.raw("</dd>");
        }
        html.raw("</dl>\n");
        self.evidence(html, at, marks);
        html.close("article");
    }

    /// Links to the words that a record rests on.
    fn evidence(&self, html: &mut Html, record: usize, marks: &[Mark]) {
        let own = marks.iter().enumerate().filter(|(_, it)| it.record == record);
        let own: Vec<(usize, &Mark)> = own.collect();
        if own.is_empty() {
            html.raw("<p class=\"evidence\">No words of the transcript are named for it.</p>\n");
            return;
        }
        html.raw("<p class=\"evidence\">Rests on ");
        for (n, (at, mark)) in own.iter().take(PLACES_MAX).enumerate() {
            html.raw(if n == 0 { "" } else { "; " });
            let text = format!("entry {} ({})", mark.entry, mark.how);
            match mark.is_shown {
                true => html.element("a", &[("href", &format!("#{}m{at}", self.key))], &text),
                false => html.text(&text),
            };
            html.raw(": ").text(&mark.fields.join(", "));
        }
        if own.len() > PLACES_MAX {
            html.text(&format!("; and {} places more", own.len() - PLACES_MAX));
        }
        html.close("p");
    }
}

/// A field of a claim: a text, a list of texts, or whether it succeeded.
fn field(html: &mut Html, value: &Value) {
    match value {
        Value::String(text) => cut(html, text, STRING_BYTES_MAX),
        Value::Array(values) => {
            html.raw("<ul>");
            for value in values.iter().take(PLACES_MAX) {
                html.raw("<li>");
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                cut(html, &text, STRING_BYTES_MAX);
                html.raw("</li>");
            }
            html.raw("</ul>");
        }
        Value::Bool(succeeded) => {
            html.raw(if *succeeded { "yes" } else { "no" });
        }
        Value::Null | Value::Number(_) | Value::Object(_) => {
            cut(html, &value.to_string(), STRING_BYTES_MAX);
        }
    }
}

/// A difference line by line, until the page has `end` bytes: what goes and what comes is marked beside its sign.
fn difference(html: &mut Html, text: &str, end: usize) {
    let (shown, mut is_all) = super::html::head(text, PROBLEM_BYTES_MAX);
    html.raw("<pre tabindex=\"0\" aria-label=\"difference\">");
    for line in shown.lines() {
        if end < html.len() {
            is_all = false;
            break;
        }
        match line.as_bytes().first() {
            Some(b'+') => html.element("ins", &[], line),
            Some(b'-') => html.element("del", &[], line),
            _ => html.text(line),
        };
        html.raw("\n");
    }
    html.raw(if is_all { "" } else { "…" }).close("pre");
}
