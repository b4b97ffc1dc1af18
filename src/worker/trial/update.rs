//! Makes what is derived anew: the cassette of a case that has answers for its whole transcript, and the
//! directory that its records come to.

use super::prepare::{Told, prepare, told};
use super::{Recordings, Trial, Variation};
use crate::edge::cases::{self, CASSETTE, CasePlace, EXPECTED, Place};
use crate::worker::import::{MODEL_UNKNOWN, spread};
use crate::worker::setup::asking_of;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What became of a case's derived files.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Updated {
    /// Files that were written.
    pub written: Vec<PathBuf>,
    /// Files that were taken away.
    pub gone: Vec<PathBuf>,
    /// What is to be said of the answers.
    pub findings: Vec<String>,
}

impl Trial {
    /// Brings the derived files of `place` up to date with its answers and `variation`. Twice writes nothing.
    ///
    /// # Errors
    /// One line.
    pub fn update(&self, place: &CasePlace, variation: &Variation) -> Result<Updated, String> {
        let mut updated = Updated::default();
        let Place::Folder(folder) = &place.is else { return Ok(updated) };
        let Told { case, mut config, conversations, answers, expected, .. } =
            told(&self.config, place).map_err(|why| why.what)?;
        if let Some(answers) = answers {
            let model = variation.model.as_deref().or(case.model.as_deref());
            config.prompts = config.prompts.with_extraction(Arc::clone(&variation.prompts));
            let asking = asking_of(&config, model.unwrap_or(MODEL_UNKNOWN));
            let imported = spread(&config, &conversations, &answers.answer(&place.name), &asking);
            updated.findings = imported.findings.iter().map(|it| it.to_string()).collect();
            let name = place.name.rsplit('/').next().unwrap_or_default();
            let path = folder.join(CASSETTE).join(format!("{name}.json"));
            updated.bring(path, &imported.file.text())?;
        }
        if let Some(expected) = expected {
            let trial = Trial {
                config: self.config.clone(),
                variations: vec![variation.clone()],
                cases: vec![place.clone()],
                recordings: Recordings::Accepted,
            };
            let is = trial.directory(place, variation)?;
            for (path, text) in &is {
                updated.bring(folder.join(EXPECTED).join(path), text)?;
            }
            for path in expected.keys().filter(|path| !is.contains_key(*path)) {
                let path = folder.join(EXPECTED).join(path);
                if cases::take_away(&path).map_err(|error| wrong(&path, &error))? {
                    updated.gone.push(path);
                }
            }
        }
        Ok(updated)
    }

    fn directory(
        &self,
        place: &CasePlace,
        variation: &Variation,
    ) -> Result<crate::memory_dir::Files, String> {
        let case =
            prepare((&self.config, &self.recordings), place, variation).map_err(|why| why.what)?;
        let heard = super::offline::heard(&case);
        if heard.iter().any(|it| it.stale.is_some()) {
            return Err("its cassette is stale: expected/ is left as it is".to_owned());
        }
        let records: Vec<_> = heard.into_iter().flat_map(|it| it.records).collect();
        Ok(super::expected::directory(&case, &records))
    }
}

impl Updated {
    fn bring(&mut self, path: PathBuf, text: &str) -> Result<(), String> {
        if cases::bring(&path, text).map_err(|error| wrong(&path, &error))? {
            self.written.push(path);
        }
        Ok(())
    }
}

fn wrong(path: &Path, error: &io::Error) -> String {
    format!("{}: cannot be written: {error}", path.display())
}
