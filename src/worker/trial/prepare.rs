//! A case made ready to be asked about: its files read, its transcript cut, its answers at hand.

use super::Variation;
use super::ask::Of;
use crate::config::Config;
use crate::domain::{Digest, Finding, Format};
use crate::edge::cases::{self, CASSETTE, CasePlace, Place};
use crate::edge::model::{Cassette, Kept};
use crate::extract::Asking;
use crate::memory_dir::Files;
use crate::privacy::Gate;
use crate::score::{Case, Gold};
use crate::worker::collect::{Cards, Collected, collect};
use crate::worker::import::{AnswerFile, MODEL_UNKNOWN, conversation, spread};
use crate::worker::setup::{asking_digest, asking_of};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which recordings answer offline.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Recordings {
    /// Those that were accepted.
    #[default]
    Accepted,
    /// Of these, whatever prompt they were recorded with, those about the same slices; where there are several the ones
    /// that were asked for most like those of the other recordings.
    Like {
        /// What answers.
        of: Kept,
        /// What it is to be like.
        to: Kept,
    },
    /// Those of this folder, for a case that has none yet.
    From(PathBuf),
    /// None; a model is asked.
    Live,
}

/// A case that can be asked about.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) name: String,
    /// Where it is, if it has a folder of its own.
    pub(super) folder: Option<PathBuf>,
    pub(super) case: Case,
    pub(super) gold: Gold,
    pub(super) config: Config,
    pub(super) format: Format,
    pub(super) asking: Arc<Asking>,
    pub(super) asking_digest: Digest,
    pub(super) conversations: Vec<Collected>,
    pub(super) cassette: Cassette,
    /// Like which recordings those of the cassette are to be that answer, where it is not asked request by request.
    pub(super) like: Option<Cassette>,
    /// What is wrong with the cassette.
    pub(super) findings: Vec<Finding>,
    pub(super) expected: Option<Files>,
    pub(super) gate: Gate,
    /// Whether what a cassette answers is kept, to go into another one.
    pub(super) keeps: bool,
}

impl Prepared {
    /// Its slices, in order.
    pub(super) fn slices(&self) -> impl Iterator<Item = Of<'_>> {
        self.conversations.iter().flat_map(|it| {
            it.slices.iter().map(|(cutting, before)| (&*it.session, cutting, before.as_ref()))
        })
    }
}

/// A case that cannot be asked about: what it shows, where that is known, and why.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) about: String,
    pub(super) what: String,
}

impl From<String> for Broken {
    fn from(what: String) -> Broken {
        Broken { about: String::new(), what }
    }
}

/// What a case's files say, before it is known who is asked.
pub(super) struct Told {
    pub(super) case: Case,
    pub(super) gold: Gold,
    pub(super) config: Config,
    pub(super) conversations: Vec<Collected>,
    pub(super) answers: Option<AnswerFile>,
    pub(super) expected: Option<Files>,
}

/// Reads a case of either sort.
pub(super) fn told(config: &Config, place: &CasePlace) -> Result<Told, Broken> {
    match &place.is {
        Place::Folder(folder) => of_folder(config, folder),
        Place::Suite { root, gold } => of_suite(config, root, gold),
    }
}

/// Makes a case ready for `variation`.
pub(super) fn prepare(
    (config, recordings): (&Config, &Recordings),
    place: &CasePlace,
    variation: &Variation,
) -> Result<Prepared, Broken> {
    let Told { case, gold, mut config, conversations, answers, expected } = told(config, place)?;
    let broken = |what: String| Broken { about: case.about.clone(), what };
    let (mut cassette, mut findings) = (Cassette::default(), Vec::new());
    let (mut folder, mut like) = (None, None);
    match (&place.is, recordings) {
        (Place::Folder(path), Recordings::Accepted) => {
            folder = Some(path.clone());
            (cassette, findings) = recorded(&path.join(CASSETTE)).map_err(broken)?;
        }
        (Place::Folder(path), Recordings::From(from)) => {
            folder = Some(path.clone());
            (cassette, findings) = recorded(from).map_err(broken)?;
        }
        (Place::Folder(path), Recordings::Like { of, to }) => {
            (folder, cassette, like) = (Some(path.clone()), of.cassette(), Some(to.cassette()));
        }
        (Place::Folder(path), Recordings::Live) => folder = Some(path.clone()),
        (Place::Suite { .. }, Recordings::Live) => {}
        (
            Place::Suite { .. },
            Recordings::Accepted | Recordings::Like { .. } | Recordings::From(_),
        ) => {
            // What was recorded elsewhere was recorded for the prompt of the settings, and for no other.
            let asking = asking_of(&config, MODEL_UNKNOWN);
            let answers = answers.ok_or_else(|| broken("it has no answers".to_owned()))?;
            let imported = spread(&config, &conversations, &answers.answer(&place.name), &asking);
            findings = imported.findings;
            cassette.add(&place.name, &imported.file, &mut findings);
        }
    }
    let live = *recordings == Recordings::Live;
    // What a case names are the words of its recordings; live the endpoint's model is meant.
    let own = if live { None } else { case.model.as_deref().or(cassette.model()) };
    let model = variation.model.as_deref().or(own).unwrap_or(&config.model.model).to_owned();
    config.prompts = config.prompts.with_extraction(Arc::clone(&variation.prompts));
    let asking = asking_of(&config, &model);
    // There is one: what holds nothing to ask about was refused.
    let format = conversations.first().map_or(Format::Plain, |it| it.session.format);
    Ok(Prepared {
        name: place.name.clone(),
        folder,
        asking_digest: asking_digest(&asking, &config),
        gate: Gate::new(&config.pii),
        keeps: matches!(recordings, Recordings::From(_)),
        case,
        gold,
        config,
        format,
        asking,
        conversations,
        cassette,
        like,
        findings,
        expected,
    })
}

fn of_folder(config: &Config, folder: &Path) -> Result<Told, Broken> {
    let files = cases::read(folder)?;
    let of = |file: &str| folder.join(file).display().to_string();
    let (case, findings) = Case::read(&files.case);
    let mut case = case.ok_or_else(|| first(&of(cases::CASE_FILE), &findings))?;
    let gated = |gate: Gate, about: &str| gate.redact(about).as_str().to_owned();
    let about = gated(Gate::new(&config.pii), &case.about);
    let mut config = config
        .with(&case.settings, &format!("{}: settings", of(cases::CASE_FILE)))
        .map_err(|error| Broken { about, what: error.to_string() })?;
    case.about = gated(Gate::new(&config.pii), &case.about);
    let broken = |what: String| Broken { about: case.about.clone(), what };
    let (gold, findings) = Gold::read(&files.gold, &Gate::new(&config.pii));
    let gold = gold.ok_or_else(|| broken(first(&of(cases::GOLD_FILE), &findings)))?;
    if let Some(language) = &case.language {
        config.language.clone_from(language);
    }
    let answers = files.answers.map(|text| AnswerFile::read(&text)).transpose();
    let answers = answers.map_err(|what| broken(format!("{}: {what}", of(cases::ANSWERS_FILE))))?;
    let wanted = answers.as_ref().and_then(|it| it.conversation.as_ref()).and_then(conversation);
    let wanted = case.conversation.clone().or(wanted);
    // A directory has files of sessions, which show their cards.
    let cards = if files.expected.is_some() { Cards::Wanted } else { Cards::None };
    let conversations =
        collect(&config, &files.transcript, wanted.as_deref(), cards).map_err(broken)?;
    let expected = files.expected;
    Ok(Told { case, gold, config, conversations, answers, expected })
}

fn of_suite(config: &Config, root: &Path, path: &Path) -> Result<Told, Broken> {
    let text = cases::needed(path)?;
    let (gold, findings) = Gold::read(&text, &Gate::new(&config.pii));
    let gold = gold.ok_or_else(|| first(&path.display().to_string(), &findings))?;
    let transcript = gold.transcript.as_ref();
    let transcript =
        transcript.ok_or_else(|| format!("{}: names no transcript", path.display()))?;
    let file = path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    let name = file.strip_suffix(".gold.json").unwrap_or(&file);
    let answers = root.join("answers").join(format!("{name}.json"));
    let answers = AnswerFile::read(&cases::needed(&answers)?)
        .map_err(|what| format!("{}: {what}", answers.display()))?;
    let transcript = cases::candidate(&root.join("transcripts").join(transcript))?;
    let wanted = gold.conversation.as_ref().and_then(conversation);
    let conversations = collect(config, &transcript, wanted.as_deref(), Cards::None)?;
    let (case, config) = (Case::default(), config.clone());
    Ok(Told { case, gold, config, conversations, answers: Some(answers), expected: None })
}

/// The recordings of a folder; none if there is no such folder.
fn recorded(folder: &Path) -> Result<(Cassette, Vec<Finding>), String> {
    match Cassette::load(folder) {
        Ok(loaded) => Ok(loaded),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok((Cassette::default(), Vec::new()))
        }
        Err(error) => Err(format!("{}: cannot be read: {error}", folder.display())),
    }
}

/// A file's first finding with its place.
fn first(path: &str, findings: &[Finding]) -> String {
    match findings.first() {
        Some(finding) if finding.line > 0 => {
            format!("{path}:{}: {}", finding.line, finding.detail)
        }
        Some(finding) => format!("{path}: {}", finding.detail),
        None => format!("{path}: cannot be read"),
    }
}
