//! The memory directory that results from the records of a case, by rules and without a store. It
//! uses the functions that consolidate and render real directories.

use super::prepare::CaseContents;
use super::report::Problem;
use crate::consolidate::{Memories, Verdicts, consolidate};
use crate::domain::{Memory, MemoryMap, Record, RecordState, Timestamp};
use crate::memory_dir::{Facts, Files, render};
use crate::pipeline::dir_sync::notes::{Sources, notes};
use crate::privacy::Gate;
use crate::text::diff::difference;
use crate::text::phrase::counted;

/// Maximum number of files whose differences are described.
const FILES_MAX: usize = 5;

/// Markdown files that rule-based consolidation derives from `records`, by path.
pub(super) fn directory(case: &CaseContents, gate: &Gate, records: &[Record]) -> Files {
    let Some(namespace) = case.conversations.first().map(|it| it.session.namespace.clone()) else {
        return Files::new();
    };
    let staged = records.iter().filter(|it| it.state == RecordState::Staged);
    let staged: Vec<Record> =
        staged.filter(|it| it.provenance.namespace == namespace).cloned().collect();
    let mut memories = MemoryMap::default();
    let known = Memories::of(namespace, &memories);
    let (plan, _) = consolidate(&staged, &known, &Verdicts::none());
    // Cannot fail: the plan was made from these memories.
    let _ = plan.apply(&mut memories);
    let sessions = case.conversations.iter().map(|it| &*it.session);
    let sources = Sources::of(&staged, sessions.collect());
    let memories: Vec<Memory> = memories.into_values().collect();
    let sessions = notes(&sources, &memories);
    // The day of the last entry replaces the clock.
    let last = staged.iter().filter_map(|it| it.provenance.at).max();
    let Some(today) = last.or_else(|| Timestamp::from_secs(0.0)) else { return Files::new() };
    let facts = Facts {
        memories: &memories,
        sessions: &sessions,
        contradictions: &[],
        missing: &[],
        today,
        gate,
    };
    render(&facts, &Files::new(), &Files::new()).files
}

/// Differences from the expected directory, if the case has one.
pub(super) fn problems(case: &CaseContents, gate: &Gate, records: &[Record]) -> Vec<Problem> {
    let Some(expected) = &case.expected else { return Vec::new() };
    let actual = directory(case, gate, records);
    let mut problems = Vec::new();
    for (path, text) in &actual {
        match expected.get(path) {
            // A checkout may write `\r\n`.
            Some(wanted) if wanted == text || *wanted.replace("\r\n", "\n") == **text => {}
            Some(wanted) => {
                let lines = difference(wanted, text);
                problems.push(format!("expected/{path} differs:\n{}", lines.trim_end()));
            }
            None => problems.push(format!("expected/{path} is missing, and the records make it")),
        }
    }
    let gone = expected.keys().filter(|path| !actual.contains_key(*path));
    problems.extend(gone.map(|path| format!("expected/{path} is not made of the records")));
    if problems.len() > FILES_MAX {
        let more = problems.len() - FILES_MAX;
        problems.truncate(FILES_MAX);
        problems.push(format!("and {} more", counted(more as u64, "file")));
    }
    problems.into_iter().map(|detail| Problem::new("expected", true, detail)).collect()
}
