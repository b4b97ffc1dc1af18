//! How far a rate may be off for the choice of conversations: a bootstrap over them, where there are enough. Of one
//! conversation every draw is the same, and an interval from 17 % to 17 % would look certain where nothing is.

use super::Tally;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Draws of as many conversations as there are.
pub const RESAMPLES: usize = 1_000;
/// Conversations with something to take the rate of, below which there is no interval. Draws of a few repeat the same
/// few and lie too close together. Of 200 sets of conversations that a test makes up, with a rate of 0.8 in the long
/// run, the interval held that rate in 96 of sets of two, in 163 of five and in 180 of ten: even ten say a little more
/// than they know.
pub const CONVERSATIONS_MIN: usize = 10;
/// What lies outside an interval at either end, in thousandths: 95 % lie inside.
const OUTSIDE: usize = 25;

const _: () = assert!(OUTSIDE * 2 < 1_000);

/// From where to where a rate lies in 95 of 100 draws.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The interval of `rate` over these conversations: they are drawn with replacement, counts are added up,
/// and the rate is taken. The same seed gives the same draws. None where fewer than [`CONVERSATIONS_MIN`] have a rate,
/// or all draws have the same: then counts say more.
pub fn interval(
    tallies: &[Tally],
    seed: u64,
    rate: impl Fn(&Tally) -> Option<f64>,
) -> Option<Interval> {
    if tallies.iter().filter(|it| rate(it).is_some()).count() < CONVERSATIONS_MIN {
        return None;
    }
    drawn(tallies, seed, rate).filter(|it| it.low < it.high)
}

/// The interval of any number of conversations.
fn drawn(tallies: &[Tally], seed: u64, rate: impl Fn(&Tally) -> Option<f64>) -> Option<Interval> {
    let mut draw = Draw(seed);
    let mut rates: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let mut sum = Tally::default();
            for _ in tallies {
                if let Some(tally) = tallies.get(draw.below(tallies.len())) {
                    sum += *tally;
                }
            }
            rate(&sum)
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    let cut = rates.len() * OUTSIDE / 1_000;
    let low = rates.get(cut).copied()?;
    let high = rates.get(rates.len().checked_sub(cut + 1)?).copied()?;
    Some(Interval { low, high })
}

/// Numbers by chance, the same for the same seed (SplitMix64).
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        // The remainder favours low numbers by less than one in 2^50 here.
        bits.checked_rem(bound as u64).unwrap_or_default() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::Rate;

    fn core(tally: &Tally) -> Option<f64> {
        tally.core.value()
    }

    fn tally(hits: u64) -> Tally {
        Tally { core: Rate { hits, of: 2 }, ..Tally::default() }
    }

    #[test]
    fn an_interval_holds_the_rate_and_narrows_with_more_conversations() {
        let few: Vec<Tally> = [0, 1, 2, 2].map(tally).repeat(3);
        let many = few.repeat(10);
        let (wide, narrow) = (interval(&few, 7, core).unwrap(), interval(&many, 7, core).unwrap());
        for interval in [wide, narrow] {
            assert!(interval.low <= 0.625 && 0.625 <= interval.high, "{interval:?}");
        }
        assert!(narrow.high - narrow.low < wide.high - wide.low);
        assert_eq!(interval(&few, 7, core), Some(wide), "the same seed draws the same");
    }

    #[test]
    fn too_few_conversations_and_such_as_do_not_differ_have_no_interval() {
        let mut some: Vec<Tally> = (0..CONVERSATIONS_MIN as u64).map(|at| tally(at % 3)).collect();
        assert!(interval(&some, 7, core).is_some());
        some.pop();
        // One without a rate is one that says nothing of it.
        some.push(Tally::default());
        assert_eq!(interval(&some, 7, core), None);
        assert_eq!(interval(&[tally(2); 30], 7, core), None);
        assert_eq!(interval(&[], 7, core), None);
    }

    /// In how many of 200 made-up sets of so many conversations the draws hold the rate in the long run. Each has four
    /// items, of which each is found with a chance that is the conversation's own: from 0.6 to 1.
    fn held(conversations: usize) -> usize {
        let mut draw = Draw(1);
        let set = |draw: &mut Draw| -> Vec<Tally> {
            let one = |draw: &mut Draw| {
                let chance = 600 + draw.below(401);
                let hits = (0..4).filter(|_| draw.below(1_000) < chance).count() as u64;
                Tally { core: Rate { hits, of: 4 }, ..Tally::default() }
            };
            (0..conversations).map(|_| one(draw)).collect()
        };
        let sets: Vec<Vec<Tally>> = (0..200).map(|_| set(&mut draw)).collect();
        let holds = |it: Interval| it.low <= 0.8 && 0.8 <= it.high;
        sets.iter().filter(|set| drawn(set, 7, core).is_some_and(holds)).count()
    }

    #[test]
    fn draws_of_a_few_hold_the_rate_less_often_than_they_say() {
        assert_eq!([2, 5, CONVERSATIONS_MIN].map(held), [96, 163, 180]);
    }
}
