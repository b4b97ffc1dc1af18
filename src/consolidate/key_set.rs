//! Sets of word keys, as sorted lists without duplicates.

/// Sorts the keys and removes duplicates.
pub(super) fn sort(keys: &mut Vec<u64>) {
    keys.sort_unstable();
    keys.dedup();
}

/// Number of keys in both sets.
pub(super) fn shared(one: &[u64], other: &[u64]) -> usize {
    let (mut left, mut right, mut count) = (one, other, 0);
    while let ([first, rest @ ..], [second, after @ ..]) = (left, right) {
        match first.cmp(second) {
            std::cmp::Ordering::Less => left = rest,
            std::cmp::Ordering::Greater => right = after,
            std::cmp::Ordering::Equal => {
                count += 1;
                (left, right) = (rest, after);
            }
        }
    }
    count
}

/// Keys of `one` that `other` lacks.
pub(super) fn without(one: &[u64], other: &[u64]) -> Vec<u64> {
    one.iter().filter(|key| other.binary_search(key).is_err()).copied().collect()
}

/// Keys in both sets.
pub(super) fn both(one: &[u64], other: &[u64]) -> Vec<u64> {
    one.iter().filter(|key| other.binary_search(key).is_ok()).copied().collect()
}
