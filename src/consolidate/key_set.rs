//! Sets of keys of words, as sorted lists without repetitions.

/// Sorted, each once.
pub(super) fn sort(keys: &mut Vec<u64>) {
    keys.sort_unstable();
    keys.dedup();
}

/// Number of keys that both sets have.
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

/// The elements of `one`, which is sorted, that `other`, sorted too, lacks.
pub(super) fn without(one: &[u64], other: &[u64]) -> Vec<u64> {
    one.iter().filter(|key| other.binary_search(key).is_err()).copied().collect()
}

/// The keys that both sets have.
pub(super) fn both(one: &[u64], other: &[u64]) -> Vec<u64> {
    one.iter().filter(|key| other.binary_search(key).is_ok()).copied().collect()
}
