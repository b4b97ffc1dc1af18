//! Prepares a case: reads its files, slices its transcript, and loads its recordings.

use super::case::{self, CASSETTE, Case, CaseFolder};
use super::gold::Gold;
use crate::config::Config;
use crate::domain::{Digest, Finding, Format, Session};
use crate::extract::ExtractionSpec;
use crate::llm::Cassette;
use crate::llm::prompt::Prompts;
use crate::pipeline::extractor::{asking_digest, extraction_spec};
use crate::pipeline::import::{Collected, collect};
use crate::privacy::{Gate, Redacted};
use crate::slicing::Cutting;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Variation {
    pub name: String,
    /// Model for all cases; `None` if each case names its own.
    pub model: Option<String>,
    pub prompts: Arc<Prompts>,
}

/// Source of the answers.
#[derive(Clone, Copy)]
pub(super) enum Answers {
    Recorded,
    Live,
}

pub(super) struct CaseContents {
    pub(super) case: Case,
    pub(super) gold: Gold,
    pub(super) config: Config,
    pub(super) conversations: Vec<Collected>,
}

pub(super) struct PreparedCase {
    pub(super) name: String,
    pub(super) folder: PathBuf,
    pub(super) contents: CaseContents,
    pub(super) gate: Gate,
    pub(super) format: Format,
    pub(super) asking: Arc<ExtractionSpec>,
    pub(super) asking_digest: Digest,
    pub(super) cassette: Cassette,
    pub(super) cassette_findings: Vec<Finding>,
}

#[derive(Clone, Copy)]
pub(super) struct CaseSlice<'a> {
    pub(super) conversation: usize,
    pub(super) session: &'a Session,
    pub(super) cutting: &'a Cutting,
    /// Preamble made of earlier entries.
    pub(super) before: Option<&'a Redacted>,
}

impl PreparedCase {
    pub(super) fn slices(&self) -> impl Iterator<Item = CaseSlice<'_>> {
        let conversations = self.contents.conversations.iter().enumerate();
        conversations.flat_map(|(conversation, it)| {
            it.slices.iter().map(move |(cutting, before)| {
                let before = before.as_ref();
                CaseSlice { conversation, session: &it.session, cutting, before }
            })
        })
    }
}

/// A case that cannot run: its purpose, if known, and the reason.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) about: String,
    pub(super) reason: String,
}

impl From<String> for Broken {
    fn from(reason: String) -> Broken {
        Broken { about: String::new(), reason }
    }
}

pub(super) fn prepare(
    config: &Config,
    answers: Answers,
    folder: &CaseFolder,
    variation: &Variation,
) -> Result<PreparedCase, Broken> {
    let mut contents = load(config, &folder.path)?;
    let broken = |reason: String| Broken { about: contents.case.about.clone(), reason };
    let (cassette, cassette_findings) = match answers {
        Answers::Recorded => load_cassette(&folder.path.join(CASSETTE)).map_err(broken)?,
        Answers::Live => (Cassette::default(), Vec::new()),
    };
    // A case names the model of its recordings; a live run uses that of the settings.
    let own = match answers {
        Answers::Live => None,
        Answers::Recorded => contents.case.model.as_deref().or(cassette.model()),
    };
    let default = contents.config.model.model.clone();
    let model = variation.model.as_deref().or(own).unwrap_or(&default).to_owned();
    let prompts = contents.config.prompts.with_extraction(Arc::clone(&variation.prompts));
    contents.config.prompts = prompts;
    let asking = extraction_spec(&contents.config, &model);
    Ok(PreparedCase {
        name: folder.name.clone(),
        folder: folder.path.clone(),
        gate: Gate::new(&contents.config.pii),
        // A transcript without conversations was rejected.
        format: contents.conversations.first().map_or(Format::Plain, |it| it.session.format),
        asking_digest: asking_digest(&asking, &contents.config),
        asking,
        cassette,
        cassette_findings,
        contents,
    })
}

fn load(config: &Config, folder: &Path) -> Result<CaseContents, Broken> {
    let files = case::read(folder)?;
    let path = |file: &str| folder.join(file).display().to_string();
    let case_file = path(case::CASE_FILE);
    let mut case = Case::read(&files.case).map_err(|finding| located(&case_file, &finding))?;
    let about = Gate::new(&config.pii).redact(&case.about).as_str().to_owned();
    let mut config = config
        .with(&case.settings, &format!("{case_file}: settings"))
        .map_err(|error| Broken { about: about.clone(), reason: error.to_string() })?;
    // The case may enable more redaction.
    let gate = Gate::new(&config.pii);
    case.about = gate.redact(&about).as_str().to_owned();
    let broken = |reason: String| Broken { about: case.about.clone(), reason };
    let gold = Gold::read(&files.gold, &gate)
        .map_err(|finding| broken(located(&path(case::GOLD_FILE), &finding)))?;
    if let Some(language) = &case.language {
        config.language.clone_from(language);
    }
    let wanted = case.conversation.as_deref();
    let conversations = collect(&config, &files.transcript, wanted).map_err(broken)?;
    Ok(CaseContents { case, gold, config, conversations })
}

/// Recordings of a folder; empty if it does not exist.
fn load_cassette(folder: &Path) -> Result<(Cassette, Vec<Finding>), String> {
    match Cassette::load(folder) {
        Ok(loaded) => Ok(loaded),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Default::default()),
        Err(error) => Err(format!("{}: cannot be read: {error}", folder.display())),
    }
}

fn located(path: &str, finding: &Finding) -> String {
    match finding.line {
        0 => format!("{path}: {}", finding.detail),
        line => format!("{path}:{line}: {}", finding.detail),
    }
}
