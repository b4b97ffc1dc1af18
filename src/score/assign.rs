//! One record for one item, for as many items as can have one.

use std::collections::VecDeque;

/// Gives each item at most one of the records that answer it, and each record to one item at most. As many
/// items as possible have one, earlier items before later ones; an item gets the earliest of its records that
/// is free, unless another item has no other.
///
/// Each item looks for a chain of others that can change theirs; most find a free record at once.
pub(super) fn assign(answers: &[Vec<usize>], records: usize) -> Vec<Option<usize>> {
    let mut pairs = Pairs { given: vec![None; answers.len()], taken: vec![None; records] };
    for (item, own) in answers.iter().enumerate() {
        match own.iter().copied().find(|record| pairs.taken.get(*record) == Some(&None)) {
            Some(free) => pairs.join(item, free),
            None => pairs.change(item, answers),
        }
    }
    pairs.given
}

/// Who has what.
struct Pairs {
    /// The record of each item.
    given: Vec<Option<usize>>,
    /// The item of each record.
    taken: Vec<Option<usize>>,
}

impl Pairs {
    fn join(&mut self, item: usize, record: usize) {
        if let (Some(given), Some(taken)) = (self.given.get_mut(item), self.taken.get_mut(record)) {
            (*given, *taken) = (Some(record), Some(item));
        }
    }

    /// Looks for the shortest chain of items that can change their record so that `item` has one too.
    fn change(&mut self, item: usize, answers: &[Vec<usize>]) {
        let mut reached_by: Vec<Option<usize>> = vec![None; self.taken.len()];
        let mut waiting = VecDeque::from([item]);
        while let Some(next) = waiting.pop_front() {
            for record in answers.get(next).into_iter().flatten().copied() {
                let Some(reached) = reached_by.get_mut(record) else { continue };
                if reached.is_some() {
                    continue;
                }
                *reached = Some(next);
                match self.taken.get(record).copied().flatten() {
                    Some(holder) => waiting.push_back(holder),
                    None => return self.follow(record, &reached_by),
                }
            }
        }
    }

    /// Hands records on along the chain that ends at a free one.
    fn follow(&mut self, free: usize, reached_by: &[Option<usize>]) {
        let mut record = Some(free);
        // No item stands in a chain twice.
        for _ in 0..self.given.len() {
            let Some(at) = record else { return };
            let Some(item) = reached_by.get(at).copied().flatten() else { return };
            record = self.given.get(item).copied().flatten();
            self.join(item, at);
        }
    }
}
