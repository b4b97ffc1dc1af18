//! How far a rate may be off for the choice of conversations: a bootstrap over them.

use super::Tally;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Draws of as many conversations as there are.
pub const RESAMPLES: usize = 1_000;
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
/// and the rate is taken. The same seed gives the same draws. None where no draw has a rate.
pub fn interval(
    tallies: &[Tally],
    seed: u64,
    rate: impl Fn(&Tally) -> Option<f64>,
) -> Option<Interval> {
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
