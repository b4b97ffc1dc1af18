//! How alike claims are field by field, and which can be alike enough.

use super::index::{Index, Ranked};
use super::similar::{weights, words};
use crate::domain::ClaimKind;
use serde_json::Value;
use std::collections::BTreeMap;

/// The most that two fields are alike, in thousandths.
const ALIKE_MAX: u64 = 1_000;

/// The texts of a claim by field, in words.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts(BTreeMap<String, Vec<Vec<String>>>);

impl Texts {
    /// The fields of a claim as it is written down: texts, and lists of texts.
    pub(super) fn of(claim: &Value) -> Texts {
        let mut texts = BTreeMap::new();
        for (name, value) in claim.as_object().into_iter().flatten() {
            let list: Vec<Vec<String>> = match value {
                Value::String(text) => vec![words(text)],
                Value::Array(all) => all.iter().filter_map(Value::as_str).map(words).collect(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => continue,
            };
            texts.insert(name.clone(), list);
        }
        Texts(texts)
    }

    /// The texts of a field; none where there is no such field.
    fn field(&self, name: &str) -> &[Vec<String>] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Claims of one kind, by their fields.
#[derive(Debug)]
pub(super) struct Fields<'t> {
    fields: Vec<Field<'t>>,
}

#[derive(Debug)]
struct Field<'t> {
    name: &'static str,
    weight: u64,
    index: Index<'t>,
}

/// What is wanted of some fields: which, and the texts as their index compares them.
pub(super) type Wanted = Vec<(usize, Vec<Ranked>)>;

/// Some of the fields that are named, and how alike one of them is at least.
struct Part<'f> {
    fields: Vec<(&'f Field<'f>, &'f [Ranked])>,
    least: u64,
}

impl<'t> Fields<'t> {
    /// Of claims of a kind, known by their places.
    pub(super) fn of(kind: ClaimKind, claims: &'t [Texts]) -> Fields<'t> {
        let field = |(name, weight): &(&'static str, u32)| Field {
            name,
            weight: u64::from(*weight),
            index: Index::of(claims.iter().map(|it| it.field(name))),
        };
        Fields { fields: weights(kind).iter().map(field).collect() }
    }

    /// What an item wants, as these claims are compared with it.
    pub(super) fn wanted(&self, texts: &Texts) -> Wanted {
        let named = self.fields.iter().enumerate();
        let named = named.filter(|(_, field)| texts.0.contains_key(field.name));
        named.map(|(at, field)| (at, field.index.ranked(texts.field(field.name)))).collect()
    }

    /// How alike the claim at a place is to what is wanted, in thousandths: the mean of the fields that are wanted, by
    /// their weights. A field that the claim does not have is as one without texts.
    pub(super) fn alike(&self, wanted: &Wanted, at: usize) -> u32 {
        let (mut sum, mut all) = (0, 0);
        for (field, texts) in self.named(wanted) {
            sum += field.weight * u64::from(field.index.alike(texts, at));
            all += field.weight;
        }
        u32::try_from(sum.checked_div(all).unwrap_or_default()).unwrap_or(u32::MAX)
    }

    /// The claims that are alike at least so much, which must be more than nothing, and how much; in order of
    /// their places.
    pub(super) fn near(&self, wanted: &Wanted, least: u32) -> Vec<(usize, u32)> {
        let named: Vec<(&Field<'_>, &[Ranked])> = self.named(wanted).collect();
        let parts = (1..1_u32 << named.len()).filter_map(|which| part(&named, which, least.into()));
        let Some(part) = parts.min_by_key(Part::looks) else { return Vec::new() };
        let mut found = Vec::new();
        for (field, texts) in part.fields {
            field.index.may_be(texts, part.least, &mut found);
        }
        found.sort_unstable();
        found.dedup();
        let near = found.into_iter().map(|at| (at, self.alike(wanted, at)));
        near.filter(|(_, alike)| least <= *alike).collect()
    }

    fn named<'f>(
        &'f self,
        wanted: &'f Wanted,
    ) -> impl Iterator<Item = (&'f Field<'f>, &'f [Ranked])> {
        wanted.iter().filter_map(|(at, texts)| Some((self.fields.get(*at)?, texts.as_slice())))
    }
}

impl Part<'_> {
    fn looks(&self) -> usize {
        self.fields.iter().map(|(field, texts)| field.index.looks(texts, self.least)).sum()
    }
}

/// The fields of `which` (a bit each), and how alike one of them is at least where the mean of all is: what they must
/// add to it even if the others are the same. None if they need not be alike at all.
fn part<'f>(named: &[(&'f Field<'f>, &'f [Ranked])], which: u32, least: u64) -> Option<Part<'f>> {
    let is_in = |at: &usize| which & (1 << *at) != 0;
    let fields: Vec<_> =
        (0..named.len()).filter(is_in).filter_map(|at| named.get(at).copied()).collect();
    let sum = |of: &[(&Field<'_>, &[Ranked])]| of.iter().map(|(it, _)| it.weight).sum::<u64>();
    let (all, inside) = (sum(named), sum(&fields));
    let rest = (least * all).checked_sub(ALIKE_MAX * (all - inside))?;
    let least = rest.div_ceil(inside.max(1));
    (least > 0).then_some(Part { fields, least })
}
