//! One record for one item, for as many items as can have one, and then the most similar ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A record that can answer an item, and how alike they are, in thousandths.
pub(super) type Answer = (usize, u32);

/// The most that two texts are alike.
const ALIKE_MAX: i64 = 1_000;

/// Gives each item at most one of the records that answer it, and each record to one item at most. As many
/// items as possible have one, earlier items before later ones; of all ways to give those items a record, it is
/// one with the most similarity in all.
///
/// Each item looks for the chain of others that can change theirs at the least loss (shortest augmenting paths
/// with potentials). Most find a free record at once, and where there is none it is not looked for again, so
/// that the time is near the number of answers. That is the product of both where every record answers every item.
pub(super) fn assign(answers: &[Vec<Answer>], records: usize) -> Vec<Option<usize>> {
    let mut pairs = Pairs {
        answers,
        given: vec![None; answers.len()],
        taken: vec![None; records],
        item_price: vec![0; answers.len()],
        record_price: vec![0; records],
        closed: vec![false; records],
        way: vec![None; records],
    };
    for item in 0..answers.len() {
        pairs.add(item);
    }
    pairs.given
}

/// Records that were reached, those with the least loss first.
type Waiting = BinaryHeap<Reverse<(i64, usize)>>;

/// How a record is reached from the item that looks for one.
#[derive(Clone, Copy)]
struct Way {
    /// What is lost up to here.
    loss: i64,
    /// The item before it.
    by: usize,
    /// Whether there is no shorter way.
    is_settled: bool,
}

/// Who has what.
struct Pairs<'a> {
    answers: &'a [Vec<Answer>],
    /// The record of each item.
    given: Vec<Option<usize>>,
    /// The item of each record.
    taken: Vec<Option<usize>>,
    /// Potentials: no pair costs less than its two prices, and what is given costs just that.
    item_price: Vec<i64>,
    record_price: Vec<i64>,
    /// Records from which no free one can be reached, now or later.
    closed: Vec<bool>,
    /// The ways of one search; empty between searches.
    way: Vec<Option<Way>>,
}

impl Pairs<'_> {
    /// Gives `item` a record if one can be had, whoever has to change for it.
    fn add(&mut self, item: usize) {
        let (mut waiting, mut reached) = (Waiting::new(), Vec::new());
        self.look(item, 0, (&mut waiting, &mut reached));
        let mut free = None;
        // No answer puts its record here twice.
        while let Some(Reverse((loss, record))) = waiting.pop() {
            let Some(Some(way)) = self.way.get_mut(record) else { continue };
            if way.is_settled || way.loss != loss {
                continue;
            }
            way.is_settled = true;
            match self.taken.get(record).copied().flatten() {
                Some(holder) => self.look(holder, loss, (&mut waiting, &mut reached)),
                None => {
                    free = Some((record, loss));
                    break;
                }
            }
        }
        match free {
            Some((record, loss)) => {
                self.reprice(item, loss, &reached);
                self.follow(record);
            }
            None => reached.iter().for_each(|record| set(&mut self.closed, *record, true)),
        }
        reached.iter().for_each(|record| set(&mut self.way, *record, None));
    }

    /// Reaches the records of `item`, which itself was reached at `loss`.
    fn look(
        &mut self,
        item: usize,
        loss: i64,
        (waiting, reached): (&mut Waiting, &mut Vec<usize>),
    ) {
        let answers = self.answers;
        let own = at(&self.item_price, item);
        for (record, alike) in answers.get(item).into_iter().flatten().copied() {
            if self.closed.get(record).copied().unwrap_or(true) {
                continue;
            }
            let cost = ALIKE_MAX - i64::from(alike);
            let loss = loss + cost - own - at(&self.record_price, record);
            let Some(way) = self.way.get_mut(record) else { continue };
            if way.is_none() {
                reached.push(record);
            }
            if way.is_none_or(|way| !way.is_settled && loss < way.loss) {
                *way = Some(Way { loss, by: item, is_settled: false });
                waiting.push(Reverse((loss, record)));
            }
        }
    }

    /// Keeps the prices true for what is about to be given.
    fn reprice(&mut self, item: usize, loss: i64, reached: &[usize]) {
        if let Some(price) = self.item_price.get_mut(item) {
            *price += loss;
        }
        for record in reached {
            let Some(Some(way)) = self.way.get(*record) else { continue };
            let Some(holder) = self.taken.get(*record).copied().flatten() else { continue };
            if way.is_settled {
                let gain = loss - way.loss;
                if let Some(price) = self.record_price.get_mut(*record) {
                    *price -= gain;
                }
                if let Some(price) = self.item_price.get_mut(holder) {
                    *price += gain;
                }
            }
        }
    }

    /// Hands records on along the way that ends at a free one.
    fn follow(&mut self, free: usize) {
        let mut record = Some(free);
        // No item stands on a way twice.
        for _ in 0..self.given.len() {
            let Some(at) = record else { return };
            let Some(item) = self.way.get(at).copied().flatten().map(|way| way.by) else { return };
            record = self.given.get(item).copied().flatten();
            set(&mut self.given, item, Some(at));
            set(&mut self.taken, at, Some(item));
        }
    }
}

fn at(prices: &[i64], place: usize) -> i64 {
    prices.get(place).copied().unwrap_or_default()
}

fn set<T>(all: &mut [T], place: usize, value: T) {
    if let Some(it) = all.get_mut(place) {
        *it = value;
    }
}
