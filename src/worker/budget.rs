//! Hard caps on tokens and money, for one session and for one day. What a call may cost is reserved
//! before it is made, so that many calls at once do not run past a cap together.

use crate::config::{Limits, Price};
use crate::domain::{SessionId, Timestamp};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Tokens and micro-dollars.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Charge {
    /// Tokens, sent and answered.
    pub(super) tokens: u64,
    /// Micro-dollars.
    pub(super) micros: u64,
}

/// What was spent against the caps.
#[derive(Debug)]
pub(super) struct Budget {
    limits: Limits,
    price: Price,
    spent: Mutex<Account>,
}

#[derive(Debug, Default)]
struct Account {
    day: String,
    today: Charge,
    sessions: HashMap<SessionId, Charge>,
}

impl Budget {
    /// Caps with what was spent today already.
    pub(super) fn new(limits: &Limits, price: Price, now: Timestamp, today: Charge) -> Budget {
        let account = Account { day: now.day(), today, sessions: HashMap::new() };
        Budget { limits: limits.clone(), price, spent: Mutex::new(account) }
    }

    /// Whether there are caps on sessions, so that what they spent before must be known.
    pub(super) fn caps_sessions(&self) -> bool {
        self.limits.session_tokens.is_some() || self.limits.session_micros.is_some()
    }

    /// What `session` spent before.
    pub(super) fn opened(&self, session: SessionId, before: Charge) {
        self.with(|account| account.sessions.insert(session, before));
    }

    /// Reserves `tokens` to be sent for `session`, or says at which cap it waits.
    pub(super) fn reserve(
        &self,
        session: SessionId,
        tokens: u64,
        now: Timestamp,
    ) -> Result<(), String> {
        let micros = self.micros(tokens);
        self.with(|account| {
            let day = now.day();
            if account.day != day {
                (account.day, account.today) = (day, Charge::default());
            }
            let today = account.today;
            let mine = account.sessions.entry(session).or_default();
            let caps = [
                ("limits.day_tokens_max", today.tokens + tokens, self.limits.day_tokens),
                ("limits.day_usd_max", today.micros + micros, self.limits.day_micros),
                ("limits.session_tokens_max", mine.tokens + tokens, self.limits.session_tokens),
                ("limits.session_usd_max", mine.micros + micros, self.limits.session_micros),
            ];
            for (key, would_be, cap) in caps {
                if cap.is_some_and(|cap| would_be > cap) {
                    return Err(format!("{key} is reached"));
                }
            }
            mine.tokens += tokens;
            mine.micros += micros;
            account.today.tokens += tokens;
            account.today.micros += micros;
            Ok(())
        })
    }

    /// Gives back what was reserved for a call that cost nothing.
    pub(super) fn release(&self, session: SessionId, tokens: u64) {
        self.settle(session, tokens, Charge::default());
    }

    /// Replaces what was reserved by what the call cost.
    pub(super) fn settle(&self, session: SessionId, reserved: u64, charge: Charge) {
        let micros = self.micros(reserved);
        self.with(|account| {
            let Account { today, sessions, .. } = account;
            for spent in [Some(today), sessions.get_mut(&session)].into_iter().flatten() {
                spent.tokens = (spent.tokens + charge.tokens).saturating_sub(reserved);
                spent.micros = (spent.micros + charge.micros).saturating_sub(micros);
            }
        });
    }

    fn micros(&self, tokens: u64) -> u64 {
        (tokens as f64 * self.price.sent).round() as u64
    }

    fn with<T>(&self, change: impl FnOnce(&mut Account) -> T) -> T {
        change(&mut self.spent.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::domain::Digest;

    const NOON: Timestamp = Timestamp(43_200_000);

    fn budget(env: &[(&str, &str)]) -> Budget {
        let env: Vec<_> = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let config = Config::load(None, &env).unwrap();
        Budget::new(&config.limits, config.model.price, NOON, Charge::default())
    }

    #[test]
    fn at_a_cap_work_waits_and_the_next_day_it_goes_on() {
        let budget = budget(&[("ANNALIST__LIMITS__DAY_TOKENS_MAX", "100")]);
        let session = SessionId(Digest::of(&["a"]));
        assert_eq!(budget.reserve(session, 60, NOON), Ok(()));
        let reached = Err("limits.day_tokens_max is reached".to_owned());
        assert_eq!(budget.reserve(session, 60, NOON), reached);
        assert_eq!(budget.reserve(session, 60, Timestamp(NOON.0 + 86_400_000)), Ok(()));
    }

    #[test]
    fn what_a_call_cost_takes_the_place_of_what_was_reserved() {
        let budget = budget(&[("ANNALIST__LIMITS__SESSION_TOKENS_MAX", "100")]);
        let (one, other) = (SessionId(Digest::of(&["a"])), SessionId(Digest::of(&["b"])));
        assert_eq!(budget.reserve(one, 90, NOON), Ok(()));
        budget.settle(one, 90, Charge { tokens: 40, micros: 0 });
        assert_eq!(budget.reserve(one, 60, NOON), Ok(()));
        assert!(budget.reserve(one, 1, NOON).is_err());
        assert_eq!(budget.reserve(other, 100, NOON), Ok(()));
        budget.release(other, 100);
        assert_eq!(budget.reserve(other, 100, NOON), Ok(()));
    }
}
