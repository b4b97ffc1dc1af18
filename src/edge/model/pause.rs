//! How long to wait before asking again when the endpoint does not say. Pure: chance is an argument.

use std::time::Duration;

/// The pause after the first failure, in milliseconds: a restart of a local server takes longer, a
/// dropped connection nothing.
const FIRST_MS: u64 = 500;
/// The longest pause, in milliseconds: an outage is noticed to be over within a minute.
const LONGEST_MS: u64 = 60_000;
/// Doublings until the longest pause is reached, with room.
const DOUBLINGS_MAX: u32 = 10;

const _: () = assert!(LONGEST_MS <= FIRST_MS << DOUBLINGS_MAX);

/// The pause after `failures` failures in a row (1 is the first): doubles each time up to a minute;
/// between half of that and the whole, as `seed` decides, so that workers do not come back at once.
pub fn back_off(failures: u32, seed: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(DOUBLINGS_MAX);
    let whole = (FIRST_MS << doublings).min(LONGEST_MS);
    let half = whole / 2;
    let chance = mixed(seed ^ u64::from(failures).rotate_left(32));
    Duration::from_millis(half + chance % (whole - half + 1))
}

/// SplitMix64's last step: near seeds give far numbers.
fn mixed(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    proptest::proptest! {
        #[test]
        fn pause_lies_between_half_and_whole(failures: u32, seed: u64) {
            let doubled = FIRST_MS << failures.saturating_sub(1).min(DOUBLINGS_MAX);
            let whole = Duration::from_millis(doubled.min(LONGEST_MS));
            let pause = back_off(failures, seed);
            assert!(whole / 2 <= pause && pause <= whole);
            assert_eq!(pause, back_off(failures, seed), "same seed, same pause");
        }
    }

    #[test]
    fn workers_do_not_come_back_at_once() {
        let pauses: BTreeSet<Duration> = (0..100).map(|seed| back_off(4, seed)).collect();
        assert!(pauses.len() > 90);
    }
}
