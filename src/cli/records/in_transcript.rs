//! `annalist records show --in-transcript`: a record's quotes in their transcript.

use crate::cli::output::{self, BOLD, DIM, Failure, YELLOW};
use crate::cli::session_input::{Heard, Source};
use crate::domain::{Entry, Evidence};
use crate::privacy::Gate;
use crate::store::{RecordPage, Store};
use crate::text::truncate;
use std::collections::BTreeMap;
use std::path::Path;

/// Entries shown before and after one with evidence.
const AROUND: u32 = 2;
/// Letters of an entry shown before and after a quote.
const LETTERS: usize = 400;

/// Prints the entries that support a record and those around them, from the file as it is now, or from the store if
/// the file is unavailable.
pub(super) async fn print(store: &Store, page: &RecordPage, gate: &Gate) -> Result<(), Failure> {
    let evidence = page.stored.record.evidence.as_slice();
    let of_file = match page.stored.path.is_empty() {
        true => Err(Failure::failed("the record names no file")),
        false => read(page, gate),
    };
    let entries = match of_file {
        Ok(entries) => entries,
        Err(failure) => {
            output::note(&format!("{YELLOW}{}{YELLOW:#}: shown from the store", failure.line));
            let mut kept = BTreeMap::new();
            for range in evidence.iter().map(around) {
                let entries = store.entries_of(page.session.id, range).await?;
                kept.extend(entries.into_iter().map(|entry| (entry.ordinal, entry)));
            }
            kept
        }
    };
    let mut last = None;
    for (ordinal, entry) in &entries {
        if last.is_some_and(|last| last + 1 < *ordinal) {
            output::line(&format!("{DIM}…{DIM:#}"))?;
        }
        last = Some(*ordinal);
        let own: Vec<&Evidence> = evidence.iter().filter(|it| it.ordinal == *ordinal).collect();
        let at = entry.at.map(|at| format!("  {at}")).unwrap_or_default();
        let (line, speaker) = (entry.line, entry.speaker.name());
        output::line(&format!("{DIM}{}:{line}  {speaker}{at}{DIM:#}", page.stored.path))?;
        let text = marked(entry.text.as_str(), &own, output::window().is_some());
        output::line(&format!("  {}", text.replace('\n', "\n  ")))?;
    }
    Ok(())
}

fn around(evidence: &Evidence) -> std::ops::Range<u32> {
    let ordinal = evidence.ordinal;
    ordinal.saturating_sub(AROUND)..ordinal.saturating_add(AROUND + 1)
}

/// Reads the entries around the evidence from the file, redacted.
fn read(page: &RecordPage, gate: &Gate) -> Result<BTreeMap<u32, Entry>, Failure> {
    let path = &page.stored.path;
    let mut source = Source::open(Path::new(path), "a transcript")?;
    if source.is_private {
        return Err(Failure::failed(format!("{path}: says `private: true`")));
    }
    let ranges: Vec<_> = page.stored.record.evidence.iter().map(around).collect();
    let (mut entries, mut is_it) = (BTreeMap::new(), false);
    source.hear(page.stored.format, gate, &mut |heard| match heard {
        Heard::Session(session) => is_it = session.native_id == page.session.native_id,
        Heard::Entry(entry, _) => {
            if is_it && ranges.iter().any(|range| range.contains(&entry.ordinal)) {
                entries.insert(entry.ordinal, entry.clone());
            }
        }
        Heard::Finding(_) => {}
    })?;
    let has = |it: &Evidence| {
        entries
            .get(&it.ordinal)
            .is_some_and(|entry| entry.text.as_str().contains(it.words.as_str()))
    };
    match page.stored.record.evidence.iter().all(has) {
        true => Ok(entries),
        false => Err(Failure::failed(format!("{path}: no longer contains this evidence"))),
    }
}

/// Marks the quotes in a text: bold on a terminal, else between `>>` and `<<`. Omits text far from them.
fn marked(text: &str, evidence: &[&Evidence], is_terminal: bool) -> String {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for it in evidence {
        let words = it.words.as_str();
        let start = match text.get(it.bytes.clone()) == Some(words) {
            true => Some(it.bytes.start),
            false => text.find(words),
        };
        spans.extend(start.map(|start| (start, start + words.len())));
    }
    spans.sort_unstable();
    let (open, close) = match is_terminal {
        true => (format!("{BOLD}"), format!("{BOLD:#}")),
        false => (">>".to_owned(), "<<".to_owned()),
    };
    let (mut page, mut at) = (String::new(), 0);
    for (start, end) in spans.iter().copied() {
        // A span that overlaps the previous one starts where that ends.
        let start = start.max(at);
        if end <= start {
            continue;
        }
        page.push_str(&between(&text[at..start], at > 0, true));
        page.push_str(&format!("{open}{}{close}", &text[start..end]));
        at = end;
    }
    page.push_str(&between(&text[at..], at > 0, false));
    page
}

/// Text next to quotes, without its middle if it is long.
fn between(text: &str, is_after: bool, is_before: bool) -> String {
    let letters = text.chars().count();
    let (head, tail) =
        (if is_after || !is_before { LETTERS } else { 0 }, if is_before { LETTERS } else { 0 });
    if letters <= head + tail {
        return text.to_owned();
    }
    let end: String = text.chars().skip(letters - tail).collect();
    let end = end.split_once(char::is_whitespace).map_or(end.as_str(), |(_, words)| words);
    format!("{}…{end}", truncate::words_within(text, head))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Match, Speaker};
    use crate::privacy::Redacted;

    fn evidence(start: usize, words: &str) -> Evidence {
        Evidence {
            field: "chosen".to_owned(),
            ordinal: 0,
            line: 1,
            bytes: start..start + words.len(),
            speaker: Speaker::Person,
            name: None,
            found: Match::Exact,
            words: Redacted::reopened(words.to_owned()),
        }
    }

    #[test]
    fn words_are_marked_where_they_stand_and_found_again_where_they_moved() {
        let (one, other) = (evidence(4, "two"), evidence(99, "four"));
        assert_eq!(
            marked("one two three four.", &[&one, &other], false),
            "one >>two<< three >>four<<."
        );
        let over = evidence(0, "one two");
        assert_eq!(marked("one two", &[&over, &one], false), ">>one two<<");
    }

    #[test]
    fn what_is_far_from_the_words_is_left_out() {
        let text = format!("{}two{}", "a".repeat(LETTERS + 1), "b".repeat(LETTERS + 1));
        let marked = marked(&text, &[&evidence(LETTERS + 1, "two")], false);
        let expected = format!("…{}>>two<<{}…", "a".repeat(LETTERS), "b".repeat(LETTERS));
        assert_eq!(marked, expected);
    }
}
