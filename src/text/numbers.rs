//! Words for numbers, units and days in several languages. Number words that are also common English words, such as the
//! Spanish `once`, are left out.

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

/// Days of the week, in several languages.
pub(crate) const WEEKDAYS: [&str; 7] = [
    "monday mondays montag montags lundi lundis lunes lunedì понедельник понедельникам",
    "tuesday tuesdays dienstag dienstags mardi mardis martes martedì вторник вторникам",
    "wednesday wednesdays mittwoch mittwochs mercredi mercredis miércoles mercoledì среда среду средам",
    "thursday thursdays donnerstag donnerstags jeudi jeudis jueves giovedì четверг четвергам",
    "friday fridays freitag freitags vendredi vendredis viernes venerdì пятница пятницу пятницам",
    "saturday saturdays samstag samstags samedi samedis sábado sábados sabato суббота субботу субботам",
    "sunday sundays sonntag sonntags dimanche dimanches domingo domingos domenica воскресенье",
];

/// Line of each word: numbers from two on, since `un` is also an article; units, days.
static TRANSLATIONS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let numbers = include_str!("numbers.txt").lines().skip(2);
    let units = include_str!("units.txt").lines().filter_map(|line| line.splitn(3, ' ').nth(2));
    let lines = numbers.chain(units).chain(WEEKDAYS);
    lines.flat_map(|line| line.split(' ').map(move |word| (word, line))).collect()
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

/// Words in several languages for the number, unit or day that a lower-case word or number means, itself included.
pub(crate) fn translations(word: &str) -> impl Iterator<Item = &'static str> {
    TRANSLATIONS.get(word).into_iter().flat_map(|line| line.split(' '))
}
