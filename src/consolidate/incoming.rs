//! A record as it comes in: what it says, who says it, and whether its evidence speaks of a change.

use super::dates;
use super::marker::says_change;
use super::subject::Subject;
use crate::domain::{Claim, Facts, MemoryId, Record, SessionId, Speaker, Stage, Timestamp};
use crate::words::folded;

/// A record and what can be said of it alone.
#[derive(Debug)]
pub(super) struct Incoming<'a> {
    pub(super) record: &'a Record,
    pub(super) facts: Facts,
    pub(super) subject: Subject,
    /// The memory that it begins, if it begins one.
    pub(super) own: MemoryId,
    /// Whether a person's words are among its evidence.
    pub(super) person: bool,
    /// Whether it rests on what tools printed or the web says, and on nothing else.
    pub(super) hearsay: bool,
    /// The most trusted speaker who says that something changes, if anybody does.
    pub(super) change_by: Option<Speaker>,
    pub(super) place: Place,
}

/// Where in which conversation something was said: tells the order where nobody knows the time.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Place {
    pub(super) session: SessionId,
    pub(super) ordinal: u32,
}

impl<'a> Incoming<'a> {
    pub(super) fn new(record: &'a Record, own: MemoryId) -> Incoming<'a> {
        let at = record.provenance.at;
        let claim = record.claim.clone();
        let claim = match at {
            Some(at) => claim.map(&|text| dates::annotate(text, at)),
            None => claim,
        };
        let by = |speaker: Speaker| record.evidence.iter().any(|it| it.speaker == speaker);
        let mut speakers = record.evidence.iter().map(|it| it.speaker);
        let heard = |speaker| match speaker {
            Speaker::Tool | Speaker::Web => true,
            Speaker::Person | Speaker::Assistant | Speaker::Client => false,
        };
        Incoming {
            own,
            subject: Subject::of(&claim),
            facts: Facts {
                stage: stage(&claim),
                said_by: record.evidence.iter().map(|it| it.speaker).min().unwrap_or(Speaker::Web),
                at,
                claim,
            },
            person: by(Speaker::Person),
            hearsay: speakers.all(heard),
            change_by: change_by(record),
            place: place(record),
            record,
        }
    }
}

/// How far a fact has come when it is first heard of.
fn stage(claim: &Claim) -> Stage {
    match claim {
        Claim::Decision(_) => Stage::Decided,
        Claim::Discussion(_) | Claim::Request(_) => Stage::Proposed,
        Claim::Attempt(it) => {
            if it.succeeded {
                Stage::Decided
            } else {
                Stage::Attempted
            }
        }
    }
}

/// Who says that something changes: in the words of the evidence, or in a field of the claim that those words carry.
fn change_by(record: &Record) -> Option<Speaker> {
    let heard = record.evidence.iter().filter(|it| says_change(&folded(it.words.as_str())));
    let strings = record.claim.strings();
    let told = strings.iter().filter(|(_, text)| says_change(&folded(text)));
    let carried =
        told.flat_map(|(field, _)| record.evidence.iter().filter(move |it| it.field == *field));
    heard.chain(carried).map(|it| it.speaker).min()
}

/// Where a record was said.
pub(super) fn place(record: &Record) -> Place {
    let first = record.evidence.iter().map(|it| it.ordinal).min();
    let ordinal = first.unwrap_or(record.provenance.entries.0);
    Place { session: record.provenance.session, ordinal }
}

/// How two moments stand to one another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Order {
    Earlier,
    Same,
    Later,
    Unknown,
}

impl Order {
    /// The same, seen from the other side.
    pub(super) fn turned(self) -> Order {
        match self {
            Order::Earlier => Order::Later,
            Order::Later => Order::Earlier,
            Order::Same => Order::Same,
            Order::Unknown => Order::Unknown,
        }
    }

    /// How `at` and `place` stand to `then` and `there`: by time, and within one conversation by its entries.
    pub(super) fn of(
        (at, place): (Option<Timestamp>, Place),
        (then, there): (Option<Timestamp>, Option<Place>),
    ) -> Order {
        let by_time = at.zip(then).map(|(at, then)| at.cmp(&then));
        let together = there.filter(|there| there.session == place.session);
        let by_place = together.map(|there| place.ordinal.cmp(&there.ordinal));
        match by_time.filter(|order| order.is_ne()).or(by_place).or(by_time) {
            Some(std::cmp::Ordering::Less) => Order::Earlier,
            Some(std::cmp::Ordering::Equal) => Order::Same,
            Some(std::cmp::Ordering::Greater) => Order::Later,
            None => Order::Unknown,
        }
    }
}
