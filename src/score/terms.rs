//! Which texts hold which terms, found in one pass over each text however many terms there are.

use aho_corasick::{AhoCorasick, MatchKind};
use std::collections::{BTreeMap, BTreeSet};

/// The texts that hold each term, by their places and in order.
#[derive(Debug, Default)]
pub(super) struct Terms<'t> {
    texts: BTreeMap<&'t str, Vec<usize>>,
}

impl<'t> Terms<'t> {
    /// Looks for the terms of all groups in all texts; both are in lower case.
    pub(super) fn of<'x>(
        groups: impl Iterator<Item = &'t [Vec<String>]>,
        texts: impl Iterator<Item = &'x str>,
    ) -> Terms<'t> {
        let mut found: BTreeMap<&str, Vec<usize>> =
            groups.flatten().flatten().map(|term| (term.as_str(), Vec::new())).collect();
        let names: Vec<&str> = found.keys().copied().collect();
        let finder = AhoCorasick::builder().match_kind(MatchKind::Standard).build(&names);
        // It refuses more than four thousand million terms only.
        let Ok(finder) = finder else { return Terms::default() };
        for (at, text) in texts.enumerate() {
            for hit in finder.find_overlapping_iter(text) {
                let name = names.get(hit.pattern().as_usize());
                let places = name.and_then(|name| found.get_mut(name));
                if let Some(places) = places.filter(|it| it.last() != Some(&at)) {
                    places.push(at);
                }
            }
        }
        Terms { texts: found }
    }

    /// The texts that have one of each group, in order; none where there is no group.
    pub(super) fn meeting(&self, groups: &[Vec<String>]) -> Vec<usize> {
        let mut meeting: Option<BTreeSet<usize>> = None;
        for group in groups {
            let places = group.iter().filter_map(|term| self.texts.get(term.as_str())).flatten();
            meeting = Some(match meeting {
                None => places.copied().collect(),
                Some(before) => places.copied().filter(|at| before.contains(at)).collect(),
            });
        }
        meeting.unwrap_or_default().into_iter().collect()
    }
}
