//! Derived files of a case: the recordings made from `answers.json`, and the expected directory.

use super::cases::{CASSETTE, CaseFolder, EXPECTED, write_if_changed};
use super::expected::directory;
use super::extraction::from_recordings;
use super::prepare::{Answers, Variation, load, prepare};
use crate::adapters::files;
use crate::config::Config;
use crate::pipeline::import::{MODEL_UNKNOWN, spread};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Changes to the derived files of a case.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Updated {
    pub written: Vec<PathBuf>,
    pub removed: Vec<PathBuf>,
    pub findings: Vec<String>,
}

/// Updates the derived files of a case. Idempotent.
///
/// # Errors
/// One line: the file that cannot be read or written.
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
        return Err("its recordings are stale: expected/ is left as it is".to_owned());
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
