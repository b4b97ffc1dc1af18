//! `annalist why`: the evidence for a record, or the conversation behind a line of code; `annalist records show
//! --in-transcript`: a record's quotes in their transcript.

use super::rows::print_claim;
use super::why_code::{self, Subject};
use crate::cli::arguments::{limit, one};
use crate::cli::memory::folder::{DirArgs, tag_or_id};
use crate::cli::memory::{headline, undecided};
use crate::cli::output::{self, BOLD, DIM, Failure, Result, YELLOW, json_row, pairs};
use crate::cli::session_input::{Heard, Source};
use crate::cli::settings;
use crate::domain::{Entry, EntryKind, Evidence, Memory, OutputMode, Speaker};
use crate::memory_dir::{SOURCE, Tag, source_tag, standing};
use crate::pipeline::{Why, why as lookup};
use crate::privacy::{Gate, Redacted, strip_private};
use crate::rows::RecordRow;
use crate::store::{RecordPage, RecordSources, Store};
use crate::text::truncate;
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

const AROUND_LETTERS: usize = 60;
const RELATED_MAX: usize = 10;
const REPLACED_MAX: u32 = 10;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist why 3fa9             one record
  annalist why src-1b0c22d4     the records behind a memory
  annalist why src/queue.rs:42  the conversation that produced this line
  annalist why --commit HEAD~2  the same for a commit

A line leads to its commit, and the commit to the session that was active then, with a confidence \
based on its time, its branch and what its tools wrote. Shows records that name the file or the \
code, or that come from the part of the session in which it was written. Exits with 1 if nothing \
is found.")]
pub(crate) struct WhyArgs {
    /// ID or ID prefix of a record or memory, a tag of the directory, a label such as ADR-013, or
    /// FILE:LINE
    #[arg(required_unless_present = "commit", value_name = "ID|FILE:LINE")]
    id: Option<String>,
    /// A commit, in any form that git accepts
    #[arg(long, value_name = "COMMIT", conflicts_with = "id")]
    commit: Option<String>,
    /// Maximum number of records for a line or a commit
    #[arg(long, value_name = "N", default_value_t = RELATED_MAX, value_parser = limit())]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

json_row! {
    /// A record with the entries that it rests on, as JSON.
    pub(crate) struct WhyRow<'a> of why: &'a RecordSources {
        #[serde(flatten)]
        record: RecordRow<'a> = RecordRow::of(&why.page.stored),
        sources: Vec<Option<EntryRow<'a>>> =
            why.entries.iter().map(|it| it.as_ref().map(EntryRow::of)).collect(),
        schema_version: u32 = why.page.run.run.schema_version,
        rung: OutputMode = why.page.run.run.rung,
    }
}

json_row! {
    struct EntryRow<'a> of it: &'a Entry {
        entry: u32 = it.ordinal,
        line: u32 = it.line,
        speaker: Speaker = it.speaker,
        kind: EntryKind = it.kind,
        at: Option<String> = output::time(it.at),
        text: &'a Redacted = &it.text,
    }
}

/// One record, or the records that a memory rests on, as JSON.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub(crate) enum WhyReport<'a> {
    Record(Box<WhyRow<'a>>),
    Memory(Vec<WhyRow<'a>>),
    Note(NoteRow),
}

/// A line that a person wrote in the memory directory, as JSON.
#[derive(JsonSchema, Serialize)]
pub(crate) struct NoteRow {
    path: String,
    line: usize,
    text: String,
    /// Tag of the memory that the line shows.
    #[serde(skip)]
    tag: Option<String>,
}

impl NoteRow {
    /// The line that `subject` names by its path in the directory; `None` if it names something else.
    fn find(subject: &Subject) -> Result<Option<NoteRow>> {
        let Subject::Line { file, number } = subject else { return Ok(None) };
        let path = file.display().to_string();
        let Some(folder) = DirArgs::default().find().ok().filter(|_| !file.exists()) else {
            return Ok(None);
        };
        let Ok(Some(text)) = folder.file(&path) else { return Ok(None) };
        let (public, gate) = (strip_private(&text), Gate::new(&[]));
        let mut lines = text.lines().skip(number.saturating_sub(1));
        let said = lines.next().filter(|said| 0 < *number && public.contains(*said));
        let said =
            said.ok_or_else(|| Failure::usage(format!("{path} has no public line {number}")))?;
        let mut tags = lines.map_while(Tag::of_line).filter_map(|tag| tag.ours());
        let tag = tags.find(|tag| tag.starts_with(SOURCE));
        let said = gate.redact(said.trim()).as_str().to_owned();
        Ok(Some(NoteRow { path, line: *number, text: said, tag: tag.map(str::to_owned) }))
    }

    fn print(self, as_json: bool) -> Result<()> {
        if as_json {
            return output::json(&WhyReport::Note(self));
        }
        let NoteRow { path, line, text, .. } = self;
        output::line(&format!("{BOLD}note{BOLD:#}  {path}:{line}  {text}"))?;
        output::line("      written in the memory directory; it rests on no conversation")
    }
}

pub(crate) async fn why(args: &WhyArgs, file: Option<&Path>) -> Result<()> {
    let id = args.id.as_deref().unwrap_or_default();
    let subject = match &args.commit {
        Some(commit) => Some(Subject::Commit(commit.clone())),
        None => Subject::parse(id)?,
    };
    let note = subject.as_ref().map(NoteRow::find).transpose()?.flatten();
    let id = match (subject, note) {
        (None, _) => tag_or_id(id)?,
        (Some(_), Some(NoteRow { tag: Some(tag), .. })) => Cow::Owned(tag),
        (Some(_), Some(note)) => return note.print(args.json),
        (Some(subject), None) => return why_code::run(subject, args.limit, args.json, file).await,
    };
    let (_, store) = settings::existing_store(file)?;
    let id = &*id;
    let found = lookup(&store, id).await?;
    let what = if id.starts_with(SOURCE) { "memory" } else { "record" };
    let Why { records: all, memory } = one(found, what, id)?;
    if args.json {
        match (all.as_slice(), memory) {
            ([why], None) => output::json(&WhyReport::Record(Box::new(WhyRow::of(why))))?,
            (all, _) => output::json(&WhyReport::Memory(all.iter().map(WhyRow::of).collect()))?,
        }
        return Ok(());
    }
    for (number, why) in all.iter().enumerate() {
        if number > 0 {
            output::line("")?;
        }
        print_why(why)?;
    }
    print_standing(&store, memory, &all).await
}

/// Prints the memory of a record and its state, what took its place or settled it, and what it took the place of.
async fn print_standing(
    store: &Store,
    memory: Option<Memory>,
    records: &[RecordSources],
) -> Result<()> {
    let memory = match (memory, records) {
        (None, [record]) => store.memory_on(record.page.stored.record.id).await?,
        (memory, _) => memory,
    };
    let Some(memory) = memory else { return Ok(()) };
    let state = format!("{}, {}", source_tag(memory.id), standing(&memory));
    let mut rows = vec![
        ("memory", state),
        ("edited", memory.edited.as_ref().map(|_| memory.words().to_owned()).unwrap_or_default()),
        ("replaced by", headline(store, memory.replaced_by()).await?),
        (memory.settled_in_words(), headline(store, memory.settler()).await?),
    ];
    for old in store.replaced_by(memory.id, REPLACED_MAX).await? {
        let what = if old.is_answered() { "settles" } else { "replaces" };
        rows.push((what, headline(store, Some(old.id)).await?));
    }
    rows.extend(undecided(store, &memory).await?);
    output::line("")?;
    pairs(rows)
}

fn print_why(why: &RecordSources) -> Result<()> {
    let stored = &why.page.stored;
    print_claim(stored)?;
    output::line("")?;
    for (evidence, entry) in stored.record.evidence.iter().zip(&why.entries) {
        let when = entry.as_ref().and_then(|entry| entry.at);
        let when = when.map(|at| format!(", {at}")).unwrap_or_default();
        let name = evidence.name.as_ref().map(|name| format!("{}, a ", name.as_str()));
        output::line(&format!(
            "{BOLD}{}{BOLD:#} {DIM}from entry {} ({}:{}), said by {}{}{when}, found {}{DIM:#}",
            evidence.field,
            evidence.ordinal,
            stored.path,
            evidence.line,
            name.unwrap_or_default(),
            evidence.speaker.name(),
            evidence.found.in_words()
        ))?;
        let (before, after) = around(entry.as_ref(), evidence);
        let words = evidence.words.as_str().replace('\n', "\n    ");
        let [open, close] = if output::has_styles() { [""; 2] } else { [">>", "<<"] };
        output::line(&format!("    {DIM}{before}{DIM:#}{open}{words}{close}{DIM}{after}{DIM:#}"))?;
    }
    if stored.record.evidence.is_empty() {
        output::line("nothing in the slice supports it")?;
    }
    let (run, session) = (&why.page.run.run, &why.page.session);
    output::line("")?;
    let title = session.title.as_ref().map(|title| format!(" “{}”", title.as_str()));
    let (name, title) = (session.native_id.as_str(), title.unwrap_or_default());
    let prompt = run.prompt();
    let schema = run.schema_version;
    pairs([
        ("session", format!("{name} {}{title}", session.format)),
        ("namespace", session.namespace.clone()),
        ("run", format!("{}, entries {}–{}", run.id, run.first.0, run.last.0)),
        ("model", run.model.clone()),
        ("prompt", format!("{prompt}, schema version {schema}")),
        ("extracted", run.finished_at.to_string()),
    ])
}

/// Rest of the line around a quote, truncated.
fn around(entry: Option<&Entry>, evidence: &Evidence) -> (String, String) {
    let Some(text) = entry.map(|entry| entry.text.as_str()) else { return Default::default() };
    // Empty if the entry no longer contains the quote.
    if text.get(evidence.bytes.clone()) != Some(evidence.words.as_str()) {
        return Default::default();
    }
    let before = text[..evidence.bytes.start].rsplit('\n').next().unwrap_or_default();
    let after = text[evidence.bytes.end..].split('\n').next().unwrap_or_default();
    let cut = |text, is_after| between(text, is_after, !is_after, AROUND_LETTERS);
    (cut(before, false), cut(after, true))
}

/// Entries shown before and after one with evidence.
const AROUND: u32 = 2;
const ENTRY_LETTERS: usize = 400;

/// Prints the entries that support a record and those around them, from the file as it is now, or from the store if
/// the file is unavailable.
pub(super) async fn print_in_transcript(
    store: &Store,
    page: &RecordPage,
    gate: &Gate,
) -> Result<()> {
    let evidence = page.stored.record.evidence.as_slice();
    let of_file = match page.stored.path.is_empty() {
        true => Err(Failure::failed("the record names no file")),
        false => read_around(page, gate),
    };
    let entries = match of_file {
        Ok(entries) => entries,
        Err(failure) => {
            output::note(&format!("{YELLOW}{}{YELLOW:#}: shown from the store", failure.line));
            let mut kept = BTreeMap::new();
            for range in evidence.iter().map(entries_around) {
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
        let text = marked(entry.text.as_str(), &own, output::has_styles());
        output::line(&format!("  {}", text.replace('\n', "\n  ")))?;
    }
    Ok(())
}

fn entries_around(evidence: &Evidence) -> std::ops::Range<u32> {
    let ordinal = evidence.ordinal;
    ordinal.saturating_sub(AROUND)..ordinal.saturating_add(AROUND + 1)
}

/// Reads the entries around the evidence from the file, redacted.
fn read_around(page: &RecordPage, gate: &Gate) -> Result<BTreeMap<u32, Entry>> {
    let path = &page.stored.path;
    let mut source = Source::open(Path::new(path), "a transcript")?;
    if source.is_private {
        return Err(Failure::failed(format!("{path}: says `private: true`")));
    }
    let ranges: Vec<_> = page.stored.record.evidence.iter().map(entries_around).collect();
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

/// Marks the quotes in a text: bold if styles are shown, else between `>>` and `<<`. Omits text far from them.
fn marked(text: &str, evidence: &[&Evidence], is_styled: bool) -> String {
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
    let (open, close) = match is_styled {
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
        page.push_str(&between(&text[at..start], at > 0, true, ENTRY_LETTERS));
        page.push_str(&format!("{open}{}{close}", &text[start..end]));
        at = end;
    }
    page.push_str(&between(&text[at..], at > 0, false, ENTRY_LETTERS));
    page
}

/// Text next to quotes, of which `most` letters beside each are left if it is long.
fn between(text: &str, is_after: bool, is_before: bool, most: usize) -> String {
    let letters = text.chars().count();
    let (head, tail) =
        (if is_after || !is_before { most } else { 0 }, if is_before { most } else { 0 });
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
    fn the_line_around_a_quote_is_cut_between_words_with_a_mark() {
        let (one, two) = ("one ".repeat(30), " two".repeat(30));
        assert_eq!(between(&one, false, true, 10), "…one one ");
        assert_eq!(between(&two, true, false, 10), " two two…");
        assert_eq!(between(" short", true, false, 10), " short");
    }

    #[test]
    fn what_is_far_from_the_words_is_left_out() {
        let text = format!("{}two{}", "a".repeat(ENTRY_LETTERS + 1), "b".repeat(ENTRY_LETTERS + 1));
        let marked = marked(&text, &[&evidence(ENTRY_LETTERS + 1, "two")], false);
        let expected =
            format!("…{}>>two<<{}…", "a".repeat(ENTRY_LETTERS), "b".repeat(ENTRY_LETTERS));
        assert_eq!(marked, expected);
    }
}
