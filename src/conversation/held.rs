//! What a memory holds: system messages, which are pinned, and the others, each in the order in which
//! they came. Adding one and letting the oldest go cost the same however many there are.

use super::MemoryMessage;
use crate::domain::{Message, Role};
use crate::privacy::Redacted;
use serde::Serialize;
use std::collections::VecDeque;

/// Messages, and their tokens.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Count {
    /// How many.
    pub messages: u64,
    /// Their tokens together, estimated where nobody counted.
    pub tokens: u64,
}

impl Count {
    pub(super) fn add(&mut self, message: &MemoryMessage) {
        self.messages += 1;
        self.tokens = self.tokens.saturating_add(message.tokens().into());
    }

    fn less(self, other: Count) -> Count {
        Count {
            messages: self.messages.saturating_sub(other.messages),
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }

    fn of<'a>(messages: impl Iterator<Item = &'a Kept>) -> Count {
        let mut count = Count::default();
        messages.for_each(|it| count.add(&it.message));
        count
    }
}

/// What became of every message: `read` is the sum of the four below it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Account {
    /// All that were added.
    pub read: Count,
    /// System messages; none of them is let go.
    pub pinned: Count,
    /// The others that are held.
    pub kept: Count,
    /// Those that a summary stands for.
    pub summarised: Count,
    /// Those that are gone.
    pub evicted: Count,
    /// Entities that are known.
    pub entities: u64,
    /// Entities that had to make room.
    pub entities_evicted: u64,
}

/// A message, and its place among all that were added, from 0.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) ordinal: u64,
    pub(super) message: MemoryMessage,
}

/// The messages of one conversation that are still here.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    pub(super) session_id: Option<Redacted>,
    pub(super) pinned: Vec<Kept>,
    pub(super) others: VecDeque<Kept>,
    pub(super) read: Count,
}

impl Held {
    pub(super) fn new(session_id: Option<Redacted>) -> Held {
        Held { session_id, ..Held::default() }
    }

    pub(super) fn push(&mut self, message: MemoryMessage) {
        let ordinal = self.read.messages;
        self.read.add(&message);
        self.put(Kept { ordinal, message });
    }

    /// Puts a message where its role says.
    pub(super) fn put(&mut self, kept: Kept) {
        match kept.message.role {
            Role::System => self.pinned.push(kept),
            Role::User | Role::Assistant => self.others.push_back(kept),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.pinned.len() + self.others.len()
    }

    /// Lets the oldest of the others go, if there are more of them than `most`. One is enough after
    /// each that was added.
    pub(super) fn let_go_above(&mut self, most: usize) {
        if self.others.len() > most {
            self.others.pop_front();
        }
    }

    /// All of them as they came.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &Kept> {
        let mut pinned = self.pinned.iter().peekable();
        let mut others = self.others.iter().peekable();
        std::iter::from_fn(move || match (pinned.peek(), others.peek()) {
            (Some(first), Some(other)) if first.ordinal < other.ordinal => pinned.next(),
            (Some(_), None) => pinned.next(),
            (_, Some(_)) | (None, None) => others.next(),
        })
    }

    /// Pinned ones as a model sees them.
    pub(super) fn pinned_shown(&self) -> impl Iterator<Item = Message> {
        self.pinned.iter().map(|kept| kept.message.shown())
    }

    /// The others as a model sees them.
    pub(super) fn others_shown(&self) -> impl Iterator<Item = Message> {
        self.others.iter().map(|kept| kept.message.shown())
    }

    /// What became of every message, of which a summary stands for so many.
    pub(super) fn account(&self, summarised: Count) -> Account {
        let pinned = Count::of(self.pinned.iter());
        let kept = Count::of(self.others.iter());
        let evicted = self.read.less(pinned).less(kept).less(summarised);
        Account { read: self.read, pinned, kept, summarised, evicted, ..Account::default() }
    }

    /// Forgets everything but whose conversation it is.
    pub(super) fn clear(&mut self) {
        *self = Held::new(self.session_id.take());
    }
}
