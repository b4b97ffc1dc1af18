//! What a new case begins with: what is known of its transcript, and gold drafted from records.

use super::Tried;
use crate::config::Config;
use crate::domain::{Claim, ClaimKind, Format, RecordState};
use crate::edge::walk::Candidate;
use crate::score::{Gold, Importance, Item, RecordReport, Shown, Wanted};
use crate::worker::collect::{Cards, collect};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a transcript is, for who makes a case of it.
#[derive(Clone, Debug)]
pub struct Drafted {
    /// How it is read.
    pub format: Format,
    /// Its conversations by their ids, those with something to ask about.
    pub conversations: Vec<String>,
    /// Entries of all of them.
    pub entries: u64,
    /// Slices of all of them.
    pub slices: usize,
    /// What the gate masks in it, by rule.
    pub masked: BTreeMap<&'static str, u64>,
}

/// Reads a transcript as a case would.
///
/// # Errors
/// One line, if it cannot be read, or holds nothing of that to ask about.
pub fn draft(
    config: &Config,
    transcript: &Candidate,
    conversation: Option<&str>,
) -> Result<Drafted, String> {
    let found = collect(config, transcript, conversation, Cards::None)?;
    let mut masked: BTreeMap<&'static str, u64> = BTreeMap::new();
    for (rule, times) in found.iter().flat_map(|it| &it.masked.counts) {
        *masked.entry(rule).or_default() += times;
    }
    let entries = found.iter().map(|it| it.entries).sum();
    Ok(Drafted {
        format: found.first().map_or(Format::Plain, |it| it.session.format),
        conversations: found.iter().map(|it| it.session.native_id.as_str().to_owned()).collect(),
        entries,
        slices: found.iter().map(|it| it.slices.len()).sum(),
        masked,
    })
}

/// The staged records of the first case of a run as gold: a draft, that a person has to read. Its items have
/// no terms yet: what is like their fields answers them.
pub fn gold_of(tried: &Tried) -> Gold {
    let case = tried.report.variants.first().and_then(|variant| variant.cases.first());
    let shown = tried.shown.first().and_then(|shown| shown.first());
    let records = case.into_iter().flat_map(|case| &case.records);
    let mut numbers: BTreeMap<ClaimKind, usize> = BTreeMap::new();
    let items = records.filter(|it| it.state == RecordState::Staged).filter_map(|record| {
        let claim = Claim::from_json(record.kind, &record.claim.to_string()).ok()?;
        let number = numbers.entry(record.kind).or_default();
        *number += 1;
        Some(item(record, &claim, *number, shown))
    });
    Gold { items: items.collect(), ..Gold::default() }
}

fn item(record: &RecordReport, claim: &Claim, number: usize, shown: Option<&Shown>) -> Item {
    let first = record.evidence.first();
    let quote = first.and_then(|it| {
        let entry = shown?.entries.iter().find(|entry| entry.ordinal == it.entry)?;
        Some(entry.text.as_str().get(it.from as usize..it.to as usize)?.to_owned())
    });
    let initial: String = record.kind.name().chars().take(1).collect();
    Item {
        id: match record.kind {
            ClaimKind::Discussion => format!("t{number}"),
            ClaimKind::Decision | ClaimKind::Attempt | ClaimKind::Request => {
                format!("{initial}{number}")
            }
        },
        kind: record.kind,
        importance: Importance::Useful,
        statement: claim.headline().to_owned(),
        terms: Vec::new(),
        fields: fields(&record.claim),
        succeeded: match claim {
            Claim::Attempt(attempt) => Some(attempt.succeeded),
            Claim::Decision(_) | Claim::Discussion(_) | Claim::Request(_) => None,
        },
        quote,
        entry_hint: first.map(|it| it.entry.to_string()),
    }
}

/// The texts of a claim, by their fields.
fn fields(claim: &Value) -> BTreeMap<String, Wanted> {
    let wanted = |(name, value): (&String, &Value)| {
        let wanted = match value {
            Value::String(text) => Wanted::Text(text.clone()),
            Value::Array(texts) => {
                Wanted::Texts(texts.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
        };
        Some((name.clone(), wanted))
    };
    claim.as_object().into_iter().flatten().filter_map(wanted).collect()
}
