//! Answers of tools: hits, sources and histories as lines with quotes, speakers, places, dates and states. They are
//! fenced as data and limited by a budget.

use crate::consolidate::Event;
use crate::context::{Entry, Section, fenced};
use crate::domain::{
    Claim, Evidence, Memory, Session, Speaker, Timestamp, Tokens, estimate_tokens,
};
use crate::memory_dir::source_tag;
use crate::pipeline::{HitState, MemoryChange, SearchHit, rule_in_words};
use crate::privacy::{Gate, Redacted};
use crate::search::Query;
use crate::store::AuditEntry;
use crate::text::phrase::in_one_line;
use crate::text::truncate;

/// Maximum length of an answer.
const TOKENS_MAX: Tokens = 2_000;
/// Maximum letters of a hit's claim and of its quote.
const CLAIM_LETTERS: usize = 160;
const WORDS_LETTERS: usize = 240;
/// Maximum letters of a piece of evidence or of a claim's field.
const FIELD_LETTERS: usize = 600;
/// Digits of a short id; enough to look it up.
const ID_DIGITS: usize = 10;

/// Lines of an answer, grouped under headings.
pub(super) struct Answer<'g> {
    gate: &'g Gate,
    sections: Vec<Section>,
}

impl<'g> Answer<'g> {
    pub(super) fn new(gate: &'g Gate) -> Answer<'g> {
        Answer { gate, sections: Vec::new() }
    }

    pub(super) fn head(&mut self, heading: &str) {
        let heading = Some(self.gate.redact(heading));
        self.sections.push(Section { heading, entries: Vec::new() });
    }

    /// Adds a line. If the budget is exceeded, the first lines stay.
    pub(super) fn line(&mut self, text: &str) {
        if self.sections.is_empty() {
            self.sections.push(Section::default());
        }
        let entry = Entry { text: self.gate.redact(text), ..Entry::default() };
        if let Some(section) = self.sections.last_mut() {
            section.entries.push(entry);
        }
    }

    /// Returns the fenced answer; empty if it has no lines.
    pub(super) fn fenced(&self, name: &'static str) -> Redacted {
        bounded(|tokens| fenced(name, &self.sections, tokens, self.gate))
    }

    pub(super) fn hit(&mut self, hit: &SearchHit, query: &Query) {
        let words = quoted(hit.words(query), WORDS_LETTERS);
        let line = match (hit.note(), hit.claim()) {
            (Some(note), _) => format!("- note, written at {}:{}: {words}", note.path, note.line),
            (None, _) if hit.edited().is_some() => {
                let (hit, origin) = (identity(hit), origin(hit, query));
                format!("- {hit}: {words}, edited by a person; originally {origin}")
            }
            (None, claim) => {
                let claim = claim.map(Claim::headline).filter(|it| *it != hit.words(query));
                let claim = claim
                    .map(|it| format!("{}: ", one_line(it, CLAIM_LETTERS).trim_end_matches('.')));
                let claim = claim.unwrap_or_default();
                format!("- {}: {claim}{words}, {}", identity(hit), origin(hit, query))
            }
        };
        self.line(&line);
    }

    /// Adds a hit with its claim, its state and all its evidence.
    pub(super) fn sources(&mut self, hit: &SearchHit) {
        self.head(&format!("## {}", identity(hit)));
        let claim = hit.claim().map(Claim::strings).unwrap_or_default();
        for (field, text) in claim.into_iter().filter(|(_, text)| !text.is_empty()) {
            self.line(&format!("- {field}: {}", one_line(text, FIELD_LETTERS)));
        }
        if let Some(edited) = hit.memory.as_ref().and_then(|memory| memory.edited.as_deref()) {
            self.line(&format!("- edited by a person: {}", quoted(edited, FIELD_LETTERS)));
        }
        let Some(stored) = hit.record() else { return };
        if let Some(reason) = &stored.record.reason {
            self.line(&format!("- not proven: {reason}"));
        }
        for it in &stored.record.evidence {
            let place = spoken(it, &stored.path, stored.record.provenance.at);
            let words = quoted(it.words.as_str(), FIELD_LETTERS);
            self.line(&format!("- evidence for {}: {words}, {place}", it.field));
        }
        let session = format!("annalist://session/{}", short(&stored.record.provenance.session));
        self.line(&format!("- session: {session}"));
    }

    pub(super) fn session(&mut self, session: &Session) {
        let title = session.title.as_ref().map(|it| it.as_str()).unwrap_or("untitled");
        let day = day(session.started_at);
        let (path, format) = (&session.path, session.format.name());
        let title = one_line(title, WORDS_LETTERS);
        self.head(&format!("## session {}, {day}, {format}, {path}: {title}", short(&session.id)));
    }

    pub(super) fn change(&mut self, change: &MemoryChange) {
        let AuditEntry { at, rule, .. } = &change.entry;
        let rule = rule.as_ref().map(|rule| format!(" ({})", rule_in_words(rule)));
        let became = change.event.as_ref().map(|Event { standing, record, at, .. }| {
            format!(": {standing}; record {}, said {}", short(record), day(*at))
        });
        let (deed, rule) = (change.in_words(), rule.unwrap_or_default());
        self.line(&format!("- {at} {deed}{rule}{}", became.unwrap_or_default()));
    }
}

/// Makes a text of at most [`TOKENS_MAX`] tokens. Budgets count four letters of any script as a token, so scripts that
/// take more tokens get a smaller budget.
pub(super) fn bounded(make: impl Fn(Tokens) -> Redacted) -> Redacted {
    let mut budget = TOKENS_MAX;
    // Terminates because each budget is smaller than the last, and nothing fits into none.
    loop {
        let text = make(budget);
        let tokens = estimate_tokens(text.as_str());
        if tokens <= TOKENS_MAX {
            return text;
        }
        budget = budget * TOKENS_MAX / tokens;
    }
}

/// Id, kind, state and day of a hit.
fn identity(hit: &SearchHit) -> String {
    let (memory, record) = (hit.memory.as_ref(), hit.record());
    let id = match (memory, record) {
        (Some(memory), _) => source_tag(memory.id),
        (None, Some(stored)) => short(&stored.record.id),
        (None, None) => String::new(),
    };
    let kind = match hit.claim() {
        Some(Claim::Attempt(it)) if !it.succeeded => "failed attempt",
        Some(claim) => claim.kind().name(),
        None => "note",
    };
    format!("{id} {kind}, {}, {}", holds(hit), day(hit.at()))
}

/// State of a hit in words.
fn holds(hit: &SearchHit) -> String {
    let is_open = hit.memory.as_ref().is_some_and(Memory::is_open);
    let words = match hit.state {
        HitState::Current if hit.possibly.is_none() && is_open => "open",
        HitState::Current if hit.possibly.is_none() => "holds now",
        HitState::Current
        | HitState::Completed
        | HitState::Conflicting
        | HitState::Superseded
        | HitState::Retracted => return hit.standing(),
        HitState::Staged => "said, not in memory",
        HitState::Discarded => "said, excluded from memory",
        HitState::Quarantined => "not proven",
        HitState::Note => "written in the directory",
    };
    words.to_owned()
}

/// Speaker and place of a hit's quote.
fn origin(hit: &SearchHit, query: &Query) -> String {
    match (hit.record().zip(hit.quote(query)), &hit.memory) {
        (Some((stored, it)), _) => {
            format!("said by {} at {}:{}", speaker(it), stored.path, it.line)
        }
        (None, Some(memory)) => {
            let deed = if memory.sources.is_empty() { "written" } else { "said" };
            format!("{deed} by {}", memory.said_by.name())
        }
        (None, None) => "no speaker".to_owned(),
    }
}

fn spoken(evidence: &Evidence, path: &str, at: Option<Timestamp>) -> String {
    let (who, found) = (speaker(evidence), evidence.found.in_words());
    format!("said by {who} at {path}:{}, {}, found {found}", evidence.line, day(at))
}

fn speaker(evidence: &Evidence) -> String {
    let speaker = match evidence.speaker {
        Speaker::Assistant => "the agent",
        Speaker::Person | Speaker::Tool | Speaker::Web | Speaker::Client => evidence.speaker.name(),
    };
    let name = evidence.name.as_ref().map(|name| format!(" {}", name.as_str()));
    format!("{speaker}{}", name.unwrap_or_default())
}

fn day(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "no date".to_owned(), Timestamp::day)
}

/// First digits of an id, with a letter among them: the gate takes ten decimal digits for a phone number.
pub(super) fn short(id: &impl ToString) -> String {
    let id = id.to_string();
    let letter = id.find(|it: char| !it.is_ascii_digit()).unwrap_or_default();
    truncate::chars(&id, ID_DIGITS.max(letter + 1)).to_owned()
}

fn quoted(words: &str, letters: usize) -> String {
    format!("“{}”", one_line(words, letters))
}

/// Collapses a text into one line, truncated at a word boundary with an ellipsis.
fn one_line(text: &str, letters: usize) -> String {
    let line = in_one_line(text);
    let head = truncate::words_within(&line, letters);
    if head.len() == line.len() { line } else { format!("{head}…") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_any_script_is_within_the_bound_and_fills_most_of_it() {
        let gate = Gate::new(&[]);
        for line in
            ["- the queue moves to Postgres: “it must survive”", "- 队列迁移到数据库", "- очередь"]
        {
            let mut answer = Answer::new(&gate);
            (0..2_000).for_each(|n| answer.line(&format!("{line} {n}")));
            let text = answer.fenced("search");
            let tokens = estimate_tokens(text.as_str());
            assert!((TOKENS_MAX * 8 / 10..=TOKENS_MAX).contains(&tokens), "{tokens}: {line}");
            assert!(text.as_str().contains(" omitted]"), "{line}");
        }
    }
}
