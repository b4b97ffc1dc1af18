//! An incoming record: its claim, its speakers, and whether its evidence mentions a change.

use super::phrases::says_change;
use super::question::{is_answered, is_settled};
use super::subject::Subject;
use crate::domain::{Claim, ClaimKind, Facts, Memory, MemoryId, Record, SessionId, Speaker, Stage};
use crate::text::tokens::folded;
use std::rc::Rc;

/// A record and everything derived from it alone.
#[derive(Clone, Debug)]
pub(super) struct Incoming<'a> {
    pub(super) record: &'a Record,
    pub(super) facts: Facts,
    pub(super) subject: Rc<Subject>,
    pub(super) own: MemoryId,
    pub(super) person: bool,
    pub(super) hearsay: bool,
    /// Most trusted speaker who mentions a change.
    pub(super) change_by: Option<Speaker>,
    pub(super) place: RecordPlace,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct RecordPlace {
    pub(super) session: SessionId,
    /// Entry at which an attempt is complete, or else with the first evidence.
    end: u32,
    /// Entry with the first evidence.
    start: u32,
    /// Entry with the last evidence of an attempt: of two that begin together, the later one ends later.
    last: u32,
}

impl<'a> Incoming<'a> {
    pub(super) fn new(record: &'a Record, own: MemoryId) -> Incoming<'a> {
        let (at, claim) = (record.provenance.at, record.claim.clone());
        let by = |speaker: Speaker| record.evidence.iter().any(|it| it.speaker == speaker);
        let mut speakers = record.evidence.iter().map(|it| it.speaker);
        Incoming {
            own,
            subject: Rc::new(Subject::of(&claim)),
            facts: Facts { stage: stage(&claim), said_by: said_by(record), at, claim, ends: None },
            person: by(Speaker::Person),
            hearsay: speakers.all(|speaker| is_hearsay(record.claim.kind(), speaker)),
            change_by: change_by(record),
            place: record_place(record),
            record,
        }
    }

    /// Order relative to the start of `memory`: by position in one conversation, or else by time.
    pub(super) fn order_to(&self, memory: &Memory, there: Option<RecordPlace>) -> Order {
        let by_time = self.facts.at.zip(memory.valid_from).map(|(at, then)| at.cmp(&then));
        let together = there.filter(|there| there.session == self.place.session);
        let by_place = together.map(|there| self.place.cmp(&there));
        match by_place.or(by_time) {
            Some(std::cmp::Ordering::Less) => Order::Earlier,
            Some(std::cmp::Ordering::Equal) => Order::Same,
            Some(std::cmp::Ordering::Greater) => Order::Later,
            None => Order::Unknown,
        }
    }
}

/// True if what the speaker says decides nothing. A tool decides nothing, but proves a deed.
pub(super) fn is_hearsay(kind: ClaimKind, speaker: Speaker) -> bool {
    speaker == Speaker::Web || speaker == Speaker::Tool && kind != ClaimKind::Attempt
}

pub(super) fn said_by(record: &Record) -> Speaker {
    record.evidence.iter().map(|it| it.speaker).min().unwrap_or(Speaker::Web)
}

fn stage(claim: &Claim) -> Stage {
    match claim {
        Claim::Decision(_) => Stage::Decided,
        Claim::Discussion(it) if is_settled(it) == Some(true) => Stage::Decided,
        Claim::Request(it) if is_answered(it) => Stage::Decided,
        Claim::Discussion(_) | Claim::Request(_) => Stage::Proposed,
        Claim::Attempt(it) if it.succeeded => Stage::Decided,
        Claim::Attempt(_) => Stage::Attempted,
    }
}

fn change_by(record: &Record) -> Option<Speaker> {
    let heard = record.evidence.iter().filter(|it| says_change(&folded(it.words.as_str())));
    let strings = record.claim.strings();
    let told = strings.iter().filter(|(_, text)| says_change(&folded(text)));
    let carried =
        told.flat_map(|(field, _)| record.evidence.iter().filter(move |it| it.field == *field));
    heard.chain(carried).map(|it| it.speaker).min()
}

pub(super) fn record_place(record: &Record) -> RecordPlace {
    let ordinals = || record.evidence.iter().map(|it| it.ordinal);
    let start = ordinals().min().unwrap_or(record.provenance.entries.0);
    let is_attempt = record.claim.kind() == ClaimKind::Attempt;
    let last = ordinals().max().filter(|_| is_attempt).unwrap_or(start);
    // The best window of a field comes first. Similar runs are misquoted: a failure from its repetition, a success
    // from the run before.
    let best = |field: &str| record.evidence.iter().find(|it| it.field == field);
    let fields = || ["action", "result"].into_iter().filter_map(best).map(|it| it.ordinal);
    let end = match &record.claim {
        Claim::Attempt(it) if it.succeeded => fields().max(),
        Claim::Attempt(_) => fields().min(),
        Claim::Decision(_) | Claim::Discussion(_) | Claim::Request(_) => None,
    };
    let end = end.unwrap_or(start);
    RecordPlace { session: record.provenance.session, end, start, last }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Order {
    Earlier,
    Same,
    Later,
    Unknown,
}

impl Order {
    pub(super) fn turned(self) -> Order {
        match self {
            Order::Earlier => Order::Later,
            Order::Later => Order::Earlier,
            Order::Same | Order::Unknown => self,
        }
    }
}
