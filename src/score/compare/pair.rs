//! Which record of one run is which of another. Ids are no help: another prompt gives the same claim another id.

use super::super::index::Index;
use super::super::report::RecordReport;
use super::super::similar::{SIMILARITY_MIN, words};
use super::{RecordChange, RecordSide};
use crate::domain::ClaimKind;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The records that are not as they were, by kind. The same claim in the same state is the same record; then
/// the same claim, then the most similar ones, are a record that changed. What is left was gained or lost.
pub(super) fn pair(before: &[RecordReport], after: &[RecordReport]) -> Vec<RecordChange> {
    let mut changes = Vec::new();
    for kind in ClaimKind::ALL {
        let (mut old, mut new) = (Side::of(before, *kind), Side::of(after, *kind));
        let key = |it: &RecordReport| format!("{} {}", it.state.name(), it.claim);
        equal(&mut old, &mut new, key);
        let mut pairs = equal(&mut old, &mut new, |it| it.claim.to_string());
        pairs.extend(similar(&mut old, &mut new));
        let change = |old: Option<(usize, &RecordReport)>, new: Option<(usize, &RecordReport)>| {
            let side = |(at, it): (usize, &RecordReport)| RecordSide::of(at, it);
            RecordChange { kind: *kind, before: old.map(side), after: new.map(side) }
        };
        pairs.sort_by_key(|(_, (at, _))| *at);
        changes.extend(pairs.into_iter().map(|(old, new)| change(Some(old), Some(new))));
        changes.extend(old.0.into_iter().map(|old| change(Some(old), None)));
        changes.extend(new.0.into_iter().map(|new| change(None, Some(new))));
    }
    changes
}

/// A record and its place.
type Placed<'r> = (usize, &'r RecordReport);

/// Records of one kind that have no partner yet.
struct Side<'r>(Vec<Placed<'r>>);

impl<'r> Side<'r> {
    fn of(records: &'r [RecordReport], kind: ClaimKind) -> Side<'r> {
        Side(records.iter().enumerate().filter(|(_, it)| it.kind == kind).collect())
    }

    fn drop(&mut self, taken: &BTreeSet<usize>) {
        self.0.retain(|(at, _)| !taken.contains(at));
    }
}

/// Takes out the records with the same key, the first with the first.
fn equal<'r>(
    old: &mut Side<'r>,
    new: &mut Side<'r>,
    key: impl Fn(&RecordReport) -> String,
) -> Vec<(Placed<'r>, Placed<'r>)> {
    let mut waiting: BTreeMap<String, Vec<Placed<'r>>> = BTreeMap::new();
    for it in new.0.iter().rev() {
        waiting.entry(key(it.1)).or_default().push(*it);
    }
    let partner = |it: &Placed<'r>| Some((*it, waiting.get_mut(&key(it.1))?.pop()?));
    let pairs = old.0.iter().filter_map(partner).collect();
    take(old, new, pairs)
}

/// Takes out pairs of records that say much the same, the most similar ones first. Which pair is taken depends
/// only on those that share a record with it, so that the other way round the same ones are.
fn similar<'r>(old: &mut Side<'r>, new: &mut Side<'r>) -> Vec<(Placed<'r>, Placed<'r>)> {
    let said = |side: &Side<'r>| -> Vec<[Vec<String>; 1]> {
        side.0.iter().map(|(_, it)| [words(&text(&it.claim))]).collect()
    };
    let (then, now) = (said(old), said(new));
    let index = Index::of(now.iter().map(<[_; 1]>::as_slice));
    let mut near: Vec<(u32, usize, usize)> = Vec::new();
    for (left, words) in then.iter().enumerate() {
        let alike = index.near(&index.ranked(words), SIMILARITY_MIN);
        near.extend(alike.into_iter().map(|(right, alike)| (alike, left, right)));
    }
    near.sort_by_key(|(alike, left, right)| (Reverse(*alike), *left, *right));
    let mut free = (vec![true; then.len()], vec![true; now.len()]);
    let mut pairs = Vec::new();
    for (_, left, right) in near {
        if let (Some(one), Some(other)) = (free.0.get_mut(left), free.1.get_mut(right))
            && *one
            && *other
        {
            (*one, *other) = (false, false);
            pairs.extend(old.0.get(left).copied().zip(new.0.get(right).copied()));
        }
    }
    take(old, new, pairs)
}

fn take<'r>(
    old: &mut Side<'r>,
    new: &mut Side<'r>,
    pairs: Vec<(Placed<'r>, Placed<'r>)>,
) -> Vec<(Placed<'r>, Placed<'r>)> {
    let (left, right): (BTreeSet<usize>, BTreeSet<usize>) =
        pairs.iter().map(|(one, other)| (one.0, other.0)).unzip();
    old.drop(&left);
    new.drop(&right);
    pairs
}

/// Every string of a claim, joined by a blank.
fn text(claim: &Value) -> String {
    fn collect<'c>(value: &'c Value, into: &mut Vec<&'c str>) {
        match value {
            Value::String(text) => into.push(text),
            Value::Array(values) => values.iter().for_each(|it| collect(it, into)),
            Value::Object(fields) => fields.values().for_each(|it| collect(it, into)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut strings = Vec::new();
    collect(claim, &mut strings);
    strings.join(" ")
}
