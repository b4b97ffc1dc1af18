//! The memory directory that a case's records come to, by rule and without a store, against the one that is
//! expected. The same functions consolidate and render as for a directory that is kept.

use super::prepare::Prepared;
use crate::consolidate::{Memories, Verdicts, consolidate};
use crate::domain::{Memory, MemoryMap, Record, RecordState, Timestamp};
use crate::edge::model::difference;
use crate::memory_dir::{Facts, Files, render};
use crate::score::Problem;
use crate::worker::keeping::notes::{Sources, notes};

/// Files that differ, told one by one.
const TOLD_MAX: usize = 5;

/// The Markdown files that consolidation by rule makes of `records`, by their paths.
pub(super) fn directory(case: &Prepared, records: &[Record]) -> Files {
    let Some(namespace) = case.conversations.first().map(|it| it.session.namespace.clone()) else {
        return Files::new();
    };
    let staged = records.iter().filter(|it| it.state == RecordState::Staged);
    let staged: Vec<Record> =
        staged.filter(|it| it.provenance.namespace == namespace).cloned().collect();
    let mut memories = MemoryMap::default();
    let known = Memories::of(namespace, &memories);
    let (plan, _) = consolidate(&staged, &known, &Verdicts::none());
    // It was made of these very memories.
    let _ = plan.apply(&mut memories);
    let sessions = case.conversations.iter().map(|it| (&*it.session, it.card.clone()));
    let sources = Sources::of(&staged, sessions.collect());
    let memories: Vec<Memory> = memories.into_values().collect();
    let sessions = notes(&sources, &memories);
    // No clock: the day of the last thing that was said.
    let last = staged.iter().filter_map(|it| it.provenance.at).max();
    let Some(today) = last.or_else(|| Timestamp::from_secs(0.0)) else { return Files::new() };
    let facts =
        Facts { memories: &memories, sessions: &sessions, terms: &[], today, gate: &case.gate };
    render(&facts, &Files::new(), &Files::new()).files
}

/// In what the directory differs from the expected one, if the case expects one.
pub(super) fn problems(case: &Prepared, records: &[Record]) -> Vec<Problem> {
    let Some(expected) = &case.expected else { return Vec::new() };
    let is = directory(case, records);
    let fails = |detail| Problem { rule: "expected".to_owned(), fails: true, detail };
    let mut problems = Vec::new();
    for (path, text) in &is {
        match expected.get(path) {
            Some(wanted) if is_same(wanted, text) => {}
            Some(wanted) => {
                let lines = difference(wanted, text);
                problems.push(format!("expected/{path} differs:\n{}", lines.trim_end()));
            }
            None => problems.push(format!("expected/{path} is missing, and the records make it")),
        }
    }
    let gone = expected.keys().filter(|path| !is.contains_key(*path));
    problems.extend(gone.map(|path| format!("expected/{path} is not made of the records")));
    if problems.len() > TOLD_MAX {
        let more = problems.len() - TOLD_MAX;
        problems.truncate(TOLD_MAX);
        problems.push(format!("and {more} files more"));
    }
    problems.into_iter().map(fails).collect()
}

/// Whether a file is as it is wanted. A checkout may write `\r\n` at the end of its lines, which says nothing.
fn is_same(wanted: &str, text: &str) -> bool {
    wanted == text || wanted.replace("\r\n", "\n") == text
}
