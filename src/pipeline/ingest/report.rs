//! What became of what was handed over, for a person or a program that looks.

use crate::domain::{Session, SessionId, Timestamp};
use crate::pipeline::tally::{FileProblem, Tally};
use crate::privacy::Redacted;
use crate::store::EnqueueResult;
use serde::Serialize;
use std::collections::HashMap;

/// What became of one conversation.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct Taken {
    /// The conversation.
    pub session: SessionId,
    /// Its own name for itself.
    pub name: Redacted,
    /// Whose memory it becomes.
    pub namespace: String,
    /// Where it was read.
    pub path: String,
    /// Entries that are new.
    pub entries: u32,
    /// Jobs that are new; a last one that waits for more is not counted.
    pub jobs: u32,
    /// Jobs that the queue had already.
    pub known: u32,
    /// When its last entries are asked about, if they wait for more.
    pub gathers_until: Option<Timestamp>,
    /// Whether it was forgotten before, so that nothing of it was taken in.
    #[serde(skip)]
    pub(super) forgotten: bool,
}

impl Taken {
    pub(super) fn of(session: &Session) -> Taken {
        Taken {
            session: session.id,
            name: session.native_id.clone(),
            namespace: session.namespace.clone(),
            path: session.path.clone(),
            entries: 0,
            jobs: 0,
            known: 0,
            gathers_until: None,
            forgotten: false,
        }
    }

    pub(super) fn add(&mut self, enqueued: EnqueueResult, gathers_until: Option<Timestamp>) {
        self.entries += enqueued.entries;
        self.jobs += enqueued.jobs;
        self.known += enqueued.known;
        if !enqueued.repeated {
            self.gathers_until = gathers_until;
        }
    }
}

/// What became of everything that was handed over.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct TakenIn {
    /// Files or documents that were read.
    pub files: u64,
    /// Files that were passed over: not a transcript.
    pub files_passed_over: u64,
    /// Conversations of which another file has all.
    pub copies: u64,
    /// Conversations that were forgotten before, and are left out.
    pub forgotten: u64,
    /// Entries that are new.
    pub entries: u64,
    /// Jobs that are new.
    pub jobs: u64,
    /// Jobs that the queue had already.
    pub known: u64,
    /// Every conversation, in the order in which they were read.
    pub sessions: Vec<Taken>,
    /// Files with problems.
    pub problems: Vec<FileProblem>,
    #[serde(skip)]
    by_id: HashMap<SessionId, usize>,
}

impl TakenIn {
    /// Whether nothing was new in all of it.
    pub(crate) fn is_nothing_new(&self) -> bool {
        self.entries == 0 && self.jobs == 0
    }

    /// A conversation is met; what is known of it stays.
    pub(super) fn meet(&mut self, session: &Session, gathers_until: Option<Timestamp>) {
        self.of(session).gathers_until = gathers_until;
    }

    /// More of a conversation was taken in.
    pub(super) fn add(
        &mut self,
        session: &Session,
        enqueued: EnqueueResult,
        gathers_until: Option<Timestamp>,
    ) {
        self.of(session).add(enqueued, gathers_until);
        self.entries += u64::from(enqueued.entries);
        self.jobs += u64::from(enqueued.jobs);
        self.known += u64::from(enqueued.known);
    }

    /// What a document came to.
    pub(super) fn join(&mut self, taken: Taken) {
        if taken.forgotten {
            self.forgotten += 1;
            return;
        }
        let next = self.sessions.len();
        let at = *self.by_id.entry(taken.session).or_insert(next);
        self.entries += u64::from(taken.entries);
        self.jobs += u64::from(taken.jobs);
        self.known += u64::from(taken.known);
        match self.sessions.get_mut(at) {
            Some(before) => {
                before.entries += taken.entries;
                before.jobs += taken.jobs;
                before.known += taken.known;
                before.gathers_until = taken.gathers_until;
            }
            None => self.sessions.push(taken),
        }
    }

    /// With what the reading itself came to.
    pub(super) fn closed(mut self, tally: &Tally) -> TakenIn {
        tally.with(|totals| {
            self.files = totals.files;
            self.files_passed_over = totals.files_passed_over;
            self.copies = totals.findings.get("session-copy").copied().unwrap_or_default();
            self.forgotten += totals.findings.get("forgotten").copied().unwrap_or_default();
            self.problems.append(&mut totals.problems);
        });
        self
    }

    fn of(&mut self, session: &Session) -> &mut Taken {
        let next = self.sessions.len();
        let at = *self.by_id.entry(session.id).or_insert(next);
        if at == next {
            self.sessions.push(Taken::of(session));
        }
        &mut self.sessions[at]
    }
}
