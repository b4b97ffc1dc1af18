//! Words for numbers and units in several languages. Words that are also common English words, such
//! as the Spanish `once`, are left out.

use foldhash::HashMap;
use std::sync::LazyLock;

/// A number a line: its digits, then its words.
static NUMBER_WORDS: LazyLock<HashMap<&str, u64>> = LazyLock::new(|| {
    let numbers = include_str!("numbers.txt").lines().filter_map(|line| line.split_once(' '));
    numbers
        .flat_map(|(value, words)| words.split(' ').map(move |word| (word, value)))
        .filter_map(|(word, value)| Some((word, value.parse().ok()?)))
        .collect()
});
/// A unit a line: its dimension, its amount in the smallest unit of the dimension, its words. Months
/// and years are not multiples of days.
static UNIT_WORDS: LazyLock<HashMap<&str, Unit>> = LazyLock::new(|| {
    let mut units = HashMap::default();
    for line in include_str!("units.txt").lines() {
        let mut words = line.split(' ');
        let (dimension, scale) = (words.next(), words.next().and_then(|it| it.parse().ok()));
        let Some((dimension, scale)) = dimension.zip(scale) else { continue };
        units.extend(words.map(|word| (word, Unit { dimension, scale })));
    }
    units
});

/// A unit of measurement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Unit {
    pub(crate) dimension: &'static str,
    /// Amount in the smallest unit of the dimension.
    pub(crate) scale: u64,
}

/// Number that a folded word means.
pub(crate) fn number(word: &str) -> Option<u64> {
    NUMBER_WORDS.get(word).copied()
}

/// Unit that a lower-case word means.
pub(crate) fn unit(word: &str) -> Option<Unit> {
    UNIT_WORDS.get(word).copied()
}
