//! Where a forked session's own work begins. A fork's file starts with a copy of its parent's
//! history, re-stamped with the time of the fork.

use crate::domain::Timestamp;
use std::ops::Range;

/// A pause longer than this ends the copy, in milliseconds: copies are written within ten.
const COPY_GAP_MILLIS_MAX: i64 = 1000;

/// Watches the lines of a file go by.
#[derive(Debug, Default)]
pub(super) struct Fork {
    forked: bool,
    head: u32,
    /// The ordinal, where the client says it, that own work begins with.
    own_ordinal: Option<i64>,
    own_line: Option<u32>,
    begun: Option<Timestamp>,
    previous: Option<Timestamp>,
    /// The last turn that began, and whether it is still open.
    turn: Option<(u32, bool)>,
    spoken: bool,
    last: u32,
}

impl Fork {
    /// The file's own head stands on `line`.
    pub(super) fn begin(&mut self, line: u32, forked: bool, own_ordinal: Option<i64>) {
        self.head = line;
        self.forked = forked || own_ordinal.is_some();
        self.own_ordinal = own_ordinal;
    }

    /// Another session's head follows; says whether that makes the file a fork.
    pub(super) fn second_head(&mut self) -> bool {
        self.forked |= !self.spoken;
        self.forked
    }

    /// The next line, its ordinal, time and kinds.
    pub(super) fn line(
        &mut self,
        line: u32,
        ordinal: Option<i64>,
        at: Option<Timestamp>,
        (kind, sort): (&str, &str),
    ) {
        self.last = line;
        let meta = matches!(kind, "session_meta" | "");
        self.spoken |= !meta;
        // The parent's head opens the copy: pauses count from there.
        if self.own_line.is_some() || line <= self.head || (meta && !self.spoken) {
            self.begun = self.begun.or(at);
            self.previous = at.or(self.previous);
            return;
        }
        if let Some(own) = self.own_ordinal {
            let number = ordinal.unwrap_or(i64::from(line) - 1);
            if own <= number {
                self.own_line = Some(line);
            }
            return;
        }
        if self.is_pause(at) {
            let begins = matches!(sort, "task_started" | "thread_settings_applied");
            self.own_line = Some(match self.turn {
                Some((turn, true)) if !begins => turn,
                Some(_) | None => line,
            });
        }
        match sort {
            "task_started" => self.turn = Some((line, true)),
            "task_complete" | "turn_aborted" => {
                self.turn = self.turn.map(|(turn, _)| (turn, false))
            }
            _ => {}
        }
    }

    fn is_pause(&mut self, at: Option<Timestamp>) -> bool {
        let (Some(at), Some(begun)) = (at, self.begun) else { return false };
        if at < begun {
            // A copy that kept its own times.
            return false;
        }
        let previous = self.previous.replace(at).unwrap_or(at);
        COPY_GAP_MILLIS_MAX < at.0.saturating_sub(previous.0)
    }

    /// The lines that are copies.
    pub(super) fn copied(&self) -> Range<u32> {
        if !self.forked {
            return 0..0;
        }
        let open = self.turn.filter(|(_, open)| *open).map(|(turn, _)| turn);
        let own = self.own_line.or(open.filter(|_| self.own_ordinal.is_none()));
        let own = own.unwrap_or(self.last.saturating_add(1));
        self.head.saturating_add(1)..own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as `kind@milliseconds`; the first is the head.
    #[track_caller]
    fn check(lines: &str, own: Option<i64>, expected: Range<u32>) {
        let mut fork = Fork::default();
        fork.begin(1, true, own);
        for (line, text) in (1..).zip(lines.split(' ')) {
            let (kind, at) = text.split_once('@').unwrap();
            let at = Some(Timestamp(at.parse().unwrap()));
            fork.line(line, None, at, ("event_msg", kind));
        }
        assert_eq!(fork.copied(), expected);
    }

    #[test]
    fn the_copy_ends_where_time_goes_on() {
        check("h@0 user@2 agent@3 task_complete@4 task_started@9000 user@9001", None, 2..5);
    }

    #[test]
    fn a_turn_begun_with_the_fork_is_its_own() {
        check("h@0 task_started@1 agent@2 task_started@5 user@6 agent@4000", None, 2..4);
    }

    #[test]
    fn a_turn_that_ended_is_copied() {
        check("h@0 task_started@1 agent@2 task_complete@3 user@8000", None, 2..5);
    }

    #[test]
    fn a_copy_with_its_own_times_is_a_copy_still() {
        check("h@90000 user@1 agent@5000 task_complete@9000 task_started@99000", None, 2..5);
    }

    #[test]
    fn the_client_may_say_where_own_work_begins() {
        check("h@0 user@1 agent@2 user@3 agent@4", Some(3), 2..4);
    }
}
