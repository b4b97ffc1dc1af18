//! Derived files of a case: the recordings made from `answers.json`, and the expected memory directory that results
//! from the records by rules, made by the functions that consolidate and render real directories.

use super::case::{CASSETTE, CaseFolder, EXPECTED, write_if_changed};
use super::extraction::from_recordings;
use super::prepare::{Answers, CaseContents, Variation, load, prepare};
use super::report::Problem;
use crate::adapters::files;
use crate::config::Config;
use crate::consolidate::{Memories, Verdicts, consolidate};
use crate::domain::{Memory, MemoryMap, Record, RecordState, Timestamp};
use crate::memory_dir::{Facts, Files, render};
use crate::pipeline::dir_sync::{Sources, notes};
use crate::pipeline::import::{MODEL_UNKNOWN, spread};
use crate::privacy::Gate;
use crate::text::diff::difference;
use crate::text::phrase::counted;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Updated {
    pub written: Vec<PathBuf>,
    pub removed: Vec<PathBuf>,
    pub findings: Vec<String>,
}

/// Updates the derived files of a case. Idempotent.
pub(crate) fn update(
    config: &Config,
    case: &CaseFolder,
    variation: &Variation,
) -> Result<Updated, String> {
    let mut updated = Updated::default();
    let mut contents = load(config, &case.path).map_err(|broken| broken.reason)?;
    if let Some(answers) = contents.answers.take() {
        let model = variation.model.as_deref().or(contents.case.model.as_deref());
        let prompts = Arc::clone(&variation.prompts);
        contents.config.prompts = contents.config.prompts.with_extraction(prompts);
        let model = model.unwrap_or(MODEL_UNKNOWN).to_owned();
        let imported = spread(&contents.config, &contents.conversations, &answers, &model);
        updated.findings = imported.findings.iter().map(|it| it.to_string()).collect();
        let name = case.name.rsplit('/').next().unwrap_or_default();
        let path = case.path.join(CASSETTE).join(format!("{name}.json"));
        updated.write(path, &imported.file.text())?;
    }
    let Some(expected) = &contents.expected else { return Ok(updated) };
    let prepared = prepare(config, &Answers::Recorded, case, variation).map_err(|it| it.reason)?;
    let results = from_recordings(&prepared);
    if results.iter().any(|it| it.stale.is_some()) {
        return Err("its recordings are stale: expected/ is unchanged".to_owned());
    }
    let records: Vec<_> = results.into_iter().flat_map(|it| it.records).collect();
    let actual = directory(&prepared.contents, &prepared.gate, &records);
    for (path, text) in &actual {
        updated.write(case.path.join(EXPECTED).join(path), text)?;
    }
    for path in expected.keys().filter(|path| !actual.contains_key(*path)) {
        let path = case.path.join(EXPECTED).join(path);
        if files::remove_if_exists(&path).map_err(|error| wrong(&path, &error))? {
            updated.removed.push(path);
        }
    }
    Ok(updated)
}

impl Updated {
    fn write(&mut self, path: PathBuf, text: &str) -> Result<(), String> {
        if write_if_changed(&path, text).map_err(|error| wrong(&path, &error))? {
            self.written.push(path);
        }
        Ok(())
    }
}

fn wrong(path: &Path, error: &io::Error) -> String {
    format!("{}: cannot be written: {error}", path.display())
}

const FILES_MAX: usize = 5;

fn directory(case: &CaseContents, gate: &Gate, records: &[Record]) -> Files {
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
        removed: &BTreeMap::new(),
        today,
        gate,
    };
    render(&facts, &Files::new(), &Files::new()).files
}

pub(super) fn differences(case: &CaseContents, gate: &Gate, records: &[Record]) -> Vec<Problem> {
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
            None => problems.push(format!("expected/{path} is missing, but records produce it")),
        }
    }
    let gone = expected.keys().filter(|path| !actual.contains_key(*path));
    problems.extend(gone.map(|path| format!("expected/{path} is not produced by records")));
    if problems.len() > FILES_MAX {
        let more = problems.len() - FILES_MAX;
        problems.truncate(FILES_MAX);
        problems.push(format!("and {} more", counted(more as u64, "file")));
    }
    problems.into_iter().map(|detail| Problem::new("expected", true, detail)).collect()
}
