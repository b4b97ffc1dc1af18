//! Scaffolding of a new case: a summary of its transcript, and gold drafted from records.

use super::gold::{Gold, Importance, Item, Wanted};
use super::report::{RecordReport, ShownEntry, headline};
use super::run::EvalResult;
use crate::adapters::walk::Candidate;
use crate::config::Config;
use crate::domain::{ClaimKind, Format, RecordState};
use crate::pipeline::import::collect;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(crate) struct TranscriptSummary {
    pub format: Format,
    /// Ids of the conversations that have slices.
    pub conversations: Vec<String>,
    pub entries: u64,
    pub slices: usize,
    pub masked: BTreeMap<&'static str, u64>,
}

/// Reads a transcript as a case would.
pub(crate) fn summarize(
    config: &Config,
    transcript: &Candidate,
    conversation: Option<&str>,
) -> Result<TranscriptSummary, String> {
    let found = collect(config, transcript, conversation)?;
    let mut masked: BTreeMap<&'static str, u64> = BTreeMap::new();
    for (rule, times) in found.iter().flat_map(|it| &it.masked.counts) {
        *masked.entry(rule).or_default() += times;
    }
    Ok(TranscriptSummary {
        format: found.first().map_or(Format::Plain, |it| it.session.format),
        conversations: found.iter().map(|it| it.session.native_id.as_str().to_owned()).collect(),
        entries: found.iter().map(|it| it.entries).sum(),
        slices: found.iter().map(|it| it.slices.len()).sum(),
        masked,
    })
}

/// Drafts gold from the staged records of the only case of a run: items with fields, without terms.
pub(crate) fn draft_gold(result: &EvalResult) -> Gold {
    let case = result.report.variants.first().and_then(|variant| variant.cases.first());
    let shown = result.shown.first().and_then(|shown| shown.first());
    let entries: &[ShownEntry] = shown.map(Vec::as_slice).unwrap_or_default();
    let mut numbers: BTreeMap<ClaimKind, usize> = BTreeMap::new();
    let records = case.into_iter().flat_map(|case| &case.records);
    let items = records.filter(|it| it.state == RecordState::Staged).map(|record| {
        let number = numbers.entry(record.kind).or_default();
        *number += 1;
        item(record, *number, entries)
    });
    Gold { items: items.collect(), ..Gold::default() }
}

fn item(record: &RecordReport, number: usize, entries: &[ShownEntry]) -> Item {
    let first = record.evidence.first();
    let quote = first.and_then(|it| {
        let entry = entries.iter().find(|entry| entry.ordinal == it.entry)?;
        Some(entry.text.as_str().get(it.from as usize..it.to as usize)?.to_owned())
    });
    let initial = match record.kind {
        ClaimKind::Decision => 'd',
        // For "topic".
        ClaimKind::Discussion => 't',
        ClaimKind::Attempt => 'a',
        ClaimKind::Request => 'r',
    };
    Item {
        id: format!("{initial}{number}"),
        entry_hint: first.map(|it| it.entry.to_string()),
        ..gold_item(record.kind, &record.claim, quote)
    }
}

/// An item that matches this claim by its fields; its id is empty.
pub(crate) fn gold_item(kind: ClaimKind, claim: &Value, quote: Option<String>) -> Item {
    let field = |(name, value): (&String, &Value)| {
        let texts =
            |all: &[Value]| all.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        match value {
            Value::String(text) => Some((name.clone(), Wanted::Text(text.clone()))),
            Value::Array(all) => Some((name.clone(), Wanted::Texts(texts(all)))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        }
    };
    Item {
        id: String::new(),
        kind,
        importance: Importance::Useful,
        statement: headline(kind, claim).to_owned(),
        terms: Vec::new(),
        fields: claim.as_object().into_iter().flatten().filter_map(field).collect(),
        succeeded: claim.get("succeeded").and_then(Value::as_bool),
        questions: Vec::new(),
        quote,
        entry_hint: None,
    }
}
