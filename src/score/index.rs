//! Finds the texts that are alike without comparing every two.
//!
//! Two texts of which so many words are the same share one of the first few of either, whatever the order of words
//! is; here the rarest come first, so that what all texts have is hardly ever followed.

use super::similar::lists;
use std::collections::BTreeMap;

/// A text as the ranks of its words, in order. Words have higher ranks the more texts of an index have them.
pub(super) type Ranked = Vec<u32>;

/// The rank of a word that no text of an index has.
const NOWHERE: u32 = 0;

/// The most that two texts are alike, in thousandths.
const ALIKE_MAX: u64 = 1_000;

/// Lists of texts by the words in them; where there are texts only, they are lists of one.
#[derive(Debug, Default)]
pub(super) struct Index<'t> {
    ranks: BTreeMap<&'t str, u32>,
    lists: Vec<Vec<Ranked>>,
    /// Where each word stands, by its rank.
    words: Vec<Vec<Place>>,
    /// The lists without a text.
    empty: Vec<usize>,
}

/// Where a word stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    list: usize,
    /// How many words stand before it in its text, and behind it.
    before: usize,
    behind: usize,
}

impl<'t> Index<'t> {
    /// Of lists of texts by their words, each once; they are known by their places.
    pub(super) fn of(lists: impl Iterator<Item = &'t [Vec<String>]>) -> Index<'t> {
        let lists: Vec<&[Vec<String>]> = lists.collect();
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for word in lists.iter().copied().flatten().flatten() {
            *times.entry(word).or_default() += 1;
        }
        let mut by_times: Vec<(usize, &str)> =
            times.into_iter().map(|(word, times)| (times, word)).collect();
        by_times.sort_unstable();
        let ranks = (NOWHERE + 1..).zip(by_times).map(|(rank, (_, word))| (word, rank)).collect();
        let mut index = Index { ranks, ..Index::default() };
        index.words.resize_with(index.ranks.len() + 1, Vec::new);
        for list in lists {
            index.add(list);
        }
        index
    }

    fn add(&mut self, texts: &[Vec<String>]) {
        let (list, ranked) = (self.lists.len(), self.ranked(texts));
        for text in &ranked {
            for (before, rank) in text.iter().enumerate() {
                let behind = text.len() - before - 1;
                if let Some(places) = self.words.get_mut(*rank as usize) {
                    places.push(Place { list, before, behind });
                }
            }
        }
        if ranked.is_empty() {
            self.empty.push(list);
        }
        self.lists.push(ranked);
    }

    /// Texts as this index compares them.
    pub(super) fn ranked(&self, texts: &[Vec<String>]) -> Vec<Ranked> {
        let rank = |word: &String| self.ranks.get(word.as_str()).copied().unwrap_or(NOWHERE);
        let ranked = |text: &Vec<String>| {
            let mut ranks: Ranked = text.iter().map(rank).collect();
            ranks.sort_unstable();
            ranks
        };
        texts.iter().map(ranked).collect()
    }

    /// How alike the list at a place is to one that is wanted.
    pub(super) fn alike(&self, wanted: &[Ranked], at: usize) -> u32 {
        self.lists.get(at).map_or(0, |list| lists(wanted, list))
    }

    /// How many places [`Index::may_be`] looks at.
    pub(super) fn looks(&self, wanted: &[Ranked], least: u64) -> usize {
        if wanted.is_empty() {
            return self.empty.len();
        }
        let first = wanted.iter().flat_map(|text| first(text, least));
        first.map(|(_, rank)| self.places(rank).len()).sum()
    }

    /// Adds the lists that can be alike at least so much, which must be more than nothing: all that are, and some
    /// that are not, some of them twice.
    pub(super) fn may_be(&self, wanted: &[Ranked], least: u64, found: &mut Vec<usize>) {
        if wanted.is_empty() {
            found.extend(&self.empty);
        }
        for text in wanted {
            for (before, rank) in first(text, least) {
                let behind = text.len() - before - 1;
                // At the first word that two texts share, no more can be shared than this and what is behind it.
                let can_be = |it: &&Place| {
                    let all = text.len() + it.before + 1 + it.behind;
                    shared_min(all, least) <= 1 + behind.min(it.behind) as u64
                };
                found.extend(self.places(rank).iter().filter(can_be).map(|it| it.list));
            }
        }
    }

    /// The lists that are alike at least so much, which must be more than nothing, and how much; in order of
    /// their places.
    pub(super) fn near(&self, wanted: &[Ranked], least: u32) -> Vec<(usize, u32)> {
        let mut found = Vec::new();
        self.may_be(wanted, u64::from(least), &mut found);
        found.sort_unstable();
        found.dedup();
        let near = found.into_iter().map(|at| (at, self.alike(wanted, at)));
        near.filter(|(_, alike)| least <= *alike).collect()
    }

    fn places(&self, rank: u32) -> &[Place] {
        self.words.get(rank as usize).map_or(&[], Vec::as_slice)
    }
}

/// The first words of a text and where they stand in it: every text that is alike at least so much has one of them.
/// As many words must be shared as are shared with the shortest text that is alike: one with no other words.
fn first(text: &[u32], least: u64) -> impl Iterator<Item = (usize, u32)> {
    let length = text.len() as u64;
    // Those shared are twice the part `least` of `length` and of themselves.
    let shared = (least * length).div_ceil((2 * ALIKE_MAX).saturating_sub(least).max(1));
    let first = match (1..=ALIKE_MAX).contains(&least) {
        true => (length + 1).saturating_sub(shared.max(1)),
        false => 0,
    };
    text.iter().copied().enumerate().take(usize::try_from(first).unwrap_or(usize::MAX))
}

/// How many words two texts of `all` words share at least that are so much alike.
fn shared_min(all: usize, least: u64) -> u64 {
    (least * all as u64).div_ceil(2 * ALIKE_MAX)
}
