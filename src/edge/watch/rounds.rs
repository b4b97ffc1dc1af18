//! When to look, and at what: where events hint, at everything now and then, at the named folders
//! often. Knows moments only.

use std::time::Duration;
use tokio::time::Instant;

/// How long hints are gathered before they are looked at: a file that grows a thousand times a second
/// is looked at ten times.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// How often it is checked that the named folders are there and are the same, which no event tells;
/// files that were named themselves are looked at as often.
const ROOTS_EVERY: Duration = Duration::from_secs(1);
/// A look at everything is followed by a pause so many times as long: polling takes at most half a
/// percent of a core.
const PAUSE_LOOKS: u32 = 200;
/// The longest pause that is owed to a slow look; a share that answers slowly costs no work here.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// After lost events the pause is shorter, so that a flood of them takes at most five percent.
const PAUSE_LOOKS_AFTER_LOSS: u32 = 20;

/// What to look at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Round {
    /// What events hint at.
    Hints,
    /// Everything.
    All,
    /// The named folders themselves.
    Roots,
}

/// The plan of rounds.
#[derive(Debug)]
pub(super) struct Rounds {
    every: Duration,
    /// Whether everything is looked at so often that no other round is needed.
    polling: bool,
    hints_at: Option<Instant>,
    all_at: Instant,
    roots_at: Instant,
    /// Before it, lost events do not lead to another look at everything.
    loss_at: Instant,
}

impl Rounds {
    /// Everything at once, and again `every` so often; hints and named folders in between.
    pub(super) fn new(every: Duration, now: Instant) -> Rounds {
        let (all_at, roots_at, loss_at) = (now, now, now);
        Rounds { every, polling: false, hints_at: None, all_at, roots_at, loss_at }
    }

    /// From now on there are no events, and everything is looked at `every` so often.
    pub(super) fn poll(&mut self, every: Duration, now: Instant) {
        (self.every, self.polling) = (every, true);
        self.all_at = self.all_at.min(now + every);
    }

    /// A hint arrived.
    pub(super) fn hinted(&mut self, now: Instant) {
        self.hints_at.get_or_insert(now + TICK);
    }

    /// Something changed that nobody can name: everything is looked at as soon as that is fair.
    pub(super) fn lost(&mut self, now: Instant) {
        self.all_at = self.all_at.min(now.max(self.loss_at));
    }

    /// The round that is due.
    pub(super) fn due(&self, now: Instant) -> Option<Round> {
        if self.all_at <= now {
            return Some(Round::All);
        }
        if self.polling {
            return None;
        }
        if self.hints_at.is_some_and(|at| at <= now) {
            return Some(Round::Hints);
        }
        (self.roots_at <= now).then_some(Round::Roots)
    }

    /// When the next round is due.
    pub(super) fn next(&self) -> Instant {
        if self.polling {
            return self.all_at;
        }
        self.all_at.min(self.roots_at).min(self.hints_at.unwrap_or(self.all_at))
    }

    /// A round begins: what is hinted from here on is for the next one.
    pub(super) fn begun(&mut self, round: Round) {
        match round {
            Round::Hints | Round::All => self.hints_at = None,
            Round::Roots => {}
        }
    }

    /// A round is over, and took so long.
    pub(super) fn ended(&mut self, round: Round, took: Duration, now: Instant) {
        self.roots_at = match round {
            Round::Hints => self.roots_at,
            Round::All | Round::Roots => now + ROOTS_EVERY,
        };
        if round == Round::All {
            self.all_at = now + self.every.max((took * PAUSE_LOOKS).min(PAUSE_MAX));
            self.loss_at = now + (took * PAUSE_LOOKS_AFTER_LOSS).min(PAUSE_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Rounds that have looked at everything once, in so many milliseconds.
    fn after_all(every: Duration, took: u64) -> (Rounds, Instant) {
        let now = Instant::now();
        let mut rounds = Rounds::new(every, now);
        assert_eq!(rounds.due(now), Some(Round::All));
        rounds.begun(Round::All);
        rounds.ended(Round::All, ms(took), now);
        assert_eq!(rounds.due(now), None);
        (rounds, now)
    }

    #[test]
    fn hints_are_gathered_for_a_tick_and_everything_is_looked_at_now_and_then() {
        let (mut rounds, now) = after_all(MINUTE, 10);
        rounds.hinted(now);
        rounds.hinted(now + ms(50));
        assert_eq!((rounds.next(), rounds.due(now + ms(99))), (now + TICK, None));
        assert_eq!(rounds.due(now + TICK), Some(Round::Hints));
        rounds.begun(Round::Hints);
        rounds.ended(Round::Hints, ms(1), now + TICK);
        assert_eq!(rounds.next(), now + ROOTS_EVERY);
        assert_eq!(rounds.due(now + ROOTS_EVERY), Some(Round::Roots));
        rounds.ended(Round::Roots, ms(1), now + ROOTS_EVERY);
        assert_eq!(rounds.next(), now + ROOTS_EVERY * 2);
        assert_eq!(rounds.due(now + MINUTE), Some(Round::All));
    }

    #[test]
    fn lost_events_lead_to_a_look_at_once_but_not_to_one_after_another() {
        let (mut rounds, now) = after_all(MINUTE, 10);
        rounds.lost(now + ms(250));
        assert_eq!(rounds.due(now + ms(250)), Some(Round::All));
        rounds.begun(Round::All);
        rounds.ended(Round::All, ms(10), now + ms(250));
        rounds.lost(now + ms(260));
        assert_eq!(rounds.due(now + ms(260)), None);
        assert_eq!(rounds.due(now + ms(450)), Some(Round::All));
    }

    #[test]
    fn polling_rests_in_proportion_to_its_work_but_not_for_ever() {
        for (took, pause) in [(1, ms(2_000)), (50, ms(10_000)), (9_000, PAUSE_MAX)] {
            let (mut rounds, now) = after_all(MINUTE * 60, took);
            rounds.poll(ms(2_000), now);
            rounds.hinted(now);
            assert_eq!(rounds.next(), now + ms(2_000));
            rounds.ended(Round::All, ms(took), now);
            assert_eq!(rounds.next(), now + pause);
            assert_eq!(rounds.due(now + pause - ms(1)), None);
            assert_eq!(rounds.due(now + pause), Some(Round::All));
        }
    }
}
