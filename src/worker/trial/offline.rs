//! A run that asks nobody: cases side by side on the cores there are, results in order.

use super::ask::{self, Heard};
use super::judge::{broken, judge};
use super::prepare::{Prepared, prepare};
use super::report::{Done, report};
use super::{Recordings, Trial, Tried, Unused};
use crate::edge::cases::CasePlace;
use crate::score::{Shown, Tolerances};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// Threads at most; a case takes milliseconds, and reading files more of them.
const THREADS_MAX: usize = 16;

impl Trial {
    /// Runs every case with every variation, on recorded answers.
    pub fn offline(&self) -> Tried {
        let (cases, variations) = (self.cases.len(), self.variations.len());
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<(usize, Done)>> = Mutex::new(Vec::new());
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..threads.min(THREADS_MAX).min(cases * variations) {
                scope.spawn(|| {
                    // Each round takes one of a number that is known.
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        if at >= cases * variations {
                            break;
                        }
                        let one = self.one(at.checked_div(cases).unwrap_or(0), at % cases.max(1));
                        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                        done.extend(one.map(|one| (at, one)));
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(at, _)| *at);
        let mut by_variation: Vec<Vec<Done>> = Vec::new();
        by_variation.resize_with(variations, Vec::new);
        for (at, one) in done {
            if let Some(of) = at.checked_div(cases).and_then(|at| by_variation.get_mut(at)) {
                of.push(one);
            }
        }
        report(self, by_variation)
    }

    fn one(&self, variation: usize, case: usize) -> Option<Done> {
        // Once for a case, whatever it is asked with.
        let first = variation == 0;
        let (variation, place) = (self.variations.get(variation)?, self.cases.get(case)?);
        Some(match prepare((&self.config, &self.recordings), place, variation) {
            Err(why) => Done {
                report: broken(&place.name, why),
                shown: Shown::default(),
                tolerances: Tolerances::default(),
                unused: Unused::default(),
            },
            Ok(case) => {
                let heard = heard(&case);
                let unused =
                    if first { self.unused_by(place, &case, &heard) } else { Unused::default() };
                let (report, shown) = judge(&case, heard);
                Done { report, shown, tolerances: case.case.tolerances, unused }
            }
        })
    }

    /// The recordings of a case that no request asks for. Most often `heard` asked for all of them, and nothing more
    /// need be looked at.
    fn unused_by(&self, place: &CasePlace, case: &Prepared, heard: &[Heard]) -> Unused {
        let asked = heard.iter().flat_map(|it| &it.asked).copied().collect();
        if self.recordings != Recordings::Accepted || case.cassette.is_all_of(&asked) {
            return Unused::default();
        }
        // What cannot be read is a problem of the case, and told there.
        self.unused(place).unwrap_or_default()
    }
}

/// What the cassette of a case answers about its slices, in their order.
pub(super) fn heard(case: &Prepared) -> Vec<Heard> {
    // A cassette never waits and has no store to fail.
    let one = |of| at_once(ask::cassette(case, of))?.ok();
    let mut heard: Vec<Heard> = case.slices().filter_map(one).collect();
    let _ = at_once(ask::vectors(case, &mut heard, None));
    heard
}

/// What comes out of work that never waits; none if it did.
fn at_once<T>(work: impl Future<Output = T>) -> Option<T> {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}
