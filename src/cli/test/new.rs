//! `annalist test new`: a case made of a transcript.

use super::super::output::{self, Failure, GREEN, YELLOW, counted};
use super::super::settings;
use super::CASES;
use super::run::{ask, variations};
use crate::config::Config;
use crate::edge::cases::{self, CASE_FILE, CASSETTE, CasePlace, GOLD_FILE, Place, bring};
use crate::edge::disk;
use crate::worker::{Drafted, Recordings, Trial, Tried, draft, gold_of};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Conversations of a transcript that are named where one must be chosen.
const NAMED_MAX: usize = 10;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist test new two-choices --from session.jsonl
  annalist test new two-choices --from export.json --conversation 3
  annalist test new two-choices --from session.jsonl --live      and record what the model answers, with its
                                                                 records as a draft of the gold

The transcript is copied as it is, whatever the gate masks in it: it says what that is. Gold is written from
the transcript, not from the answers: a draft wants reading.")]
pub(super) struct Args {
    /// What the case is called; its folder
    name: String,
    /// The transcript, in any format that is read
    #[arg(long, value_name = "TRANSCRIPT")]
    from: PathBuf,
    /// Which conversation of it, by its id or its number
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// The folder of cases
    #[arg(long, value_name = "DIR", default_value = CASES)]
    dir: PathBuf,
    /// Take recorded answers from this folder
    #[arg(long, value_name = "DIR", conflicts_with = "live")]
    cassette: Option<PathBuf>,
    /// Ask the endpoint
    #[arg(long)]
    live: bool,
    /// The model's name at the endpoint, instead of model.model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let lawful = |letter: char| letter.is_alphanumeric() || "._-".contains(letter);
    if args.name.is_empty() || args.name.starts_with('.') || !args.name.chars().all(lawful) {
        return Err(Failure::usage(format!(
            "{}: a case is named with letters, digits, `.`, `_` and `-`",
            args.name
        )));
    }
    let transcript = cases::candidate(&args.from).map_err(Failure::usage)?;
    let drafted =
        draft(&config, &transcript, args.conversation.as_deref()).map_err(Failure::usage)?;
    chosen(args, &drafted)?;
    let folder = args.dir.join(&args.name);
    let wrong = |error| Failure::failed(format!("{}: {error}", folder.display()));
    if !cases::make(&folder).map_err(wrong)? {
        return Err(Failure::usage(format!(
            "{}: is there already and is left as it is: choose another name",
            folder.display()
        )));
    }
    cases::copy_transcript(&args.from, &folder).map_err(wrong)?;
    let empty = "{\n  \"must\": [],\n  \"must_not\": []\n}\n";
    bring(&folder.join(GOLD_FILE), empty).map_err(wrong)?;
    bring(&folder.join(CASE_FILE), &case_toml(args, &config, None)).map_err(wrong)?;
    tell(&folder, &drafted);
    let code = if args.live || args.cassette.is_some() {
        answered(args, config, &folder)?
    } else {
        ExitCode::SUCCESS
    };
    output::line(&format!("made {}", folder.display()))?;
    output::note(&format!(
        "next: say in {CASE_FILE} what it shows, write {GOLD_FILE} from the transcript, then \
         `annalist test {}`",
        folder.display()
    ));
    Ok(code)
}

/// A case is about one conversation.
fn chosen(args: &Args, drafted: &Drafted) -> Result<(), Failure> {
    if drafted.conversations.len() < 2 {
        return Ok(());
    }
    let named: Vec<&str> =
        drafted.conversations.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = if drafted.conversations.len() > NAMED_MAX { ", …" } else { "" };
    Err(Failure::usage(format!(
        "{}: holds {} conversations: name one with --conversation: {}{more}",
        args.from.display(),
        drafted.conversations.len(),
        named.join(", ")
    )))
}

/// Says how the transcript is read, and what the copy holds that the gate masks.
fn tell(folder: &Path, drafted: &Drafted) {
    let (entries, slices) =
        (counted(drafted.entries, "entry"), counted(drafted.slices as u64, "slice"));
    output::note(&format!("read as {}: {entries}, {slices}", drafted.format));
    if !drafted.masked.is_empty() {
        let rules = drafted.masked.iter();
        let rules: Vec<String> = rules.map(|(rule, times)| format!("{rule} {times}")).collect();
        output::note(&format!(
            "{YELLOW}look:{YELLOW:#} the gate masks in this transcript: {}. The copy in {} holds it as it \
             is: put something else there before you share it",
            rules.join(", "),
            folder.display()
        ));
    }
}

/// Puts the answers into the new case, with their records as a draft of the gold.
fn answered(args: &Args, config: Config, folder: &Path) -> Result<ExitCode, Failure> {
    let models: Vec<String> = args.model.iter().cloned().collect();
    let trial = Trial {
        variations: variations(&config, &models, &[])?,
        cases: vec![CasePlace { name: args.name.clone(), is: Place::Folder(folder.to_owned()) }],
        recordings: match &args.cassette {
            Some(from) => Recordings::From(from.clone()),
            None => Recordings::Live,
        },
        config: config.clone(),
    };
    let (tried, recordings, stop) = match &args.cassette {
        Some(_) => {
            let (tried, recordings) = trial.recorded();
            (tried, recordings, None)
        }
        None => ask(trial)?,
    };
    let Some(recording) = recordings.first() else {
        let why = stop.unwrap_or_else(|| why(&tried));
        return Err(Failure::failed(format!(
            "{}: was made, but there are no answers for it: {why}",
            folder.display()
        )));
    };
    let wrong = |error| Failure::failed(format!("{}: {error}", folder.display()));
    recording.file.save(&folder.join(CASSETTE), &recording.name).map_err(wrong)?;
    let model = recording.file.model().map(str::to_owned);
    let case = case_toml(args, &config, model.as_deref());
    bring(&folder.join(CASE_FILE), &case).map_err(wrong)?;
    let gold = gold_of(&tried);
    let items = gold.items.len() as u64;
    let text = serde_json::to_string_pretty(&gold)
        .map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?;
    disk::replace(&folder.join(GOLD_FILE), &(text + "\n")).map_err(wrong)?;
    output::note(&format!(
        "{GREEN}answers are in {CASSETTE}/{}.json{GREEN:#}; {GOLD_FILE} has the {} they came to as a draft",
        recording.name,
        counted(items, "record")
    ));
    Ok(ExitCode::from(if stop.is_some() { output::FAILED } else { 0 }))
}

/// Why the one case of a run has no answers.
fn why(tried: &Tried) -> String {
    let cases = tried.report.variants.iter().flat_map(|variant| &variant.cases);
    let mut problems = cases.flat_map(|case| &case.problems).filter(|it| it.fails);
    problems.next().map(|it| it.detail.clone()).unwrap_or_default()
}

fn case_toml(args: &Args, config: &Config, model: Option<&str>) -> String {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let language = quoted(&config.language);
    let conversation = match &args.conversation {
        Some(id) => format!("conversation = {}", quoted(id)),
        None => "# conversation = \"1\"".to_owned(),
    };
    let model = match model {
        Some(model) => format!("model = {}", quoted(model)),
        None => "# model = \"hand-written\"".to_owned(),
    };
    format!(
        "\
# One line for people: what the case shows, and why it is hard.
about = \"\"
# Language of the records, as config.toml's `language`.
language = {language}
# Which conversation of the transcript, where it holds several: its id, or its number in the file.
{conversation}
# The model that the recorded requests name. Answers that a person wrote name \"hand-written\".
{model}

# Settings that differ from config.toml's: of [slice], [conversation], [dialog] and [privacy].
# [settings.slice]
# tokens = 800

# What must be reached, rates from 0 to 1; the case fails below (above, for quarantined_max). A bar that has
# nothing to measure is left out.
[bars]
# precision = 0.8
# recall = 1.0
# core_recall = 1.0
# succeeded = 1.0
# grounded = 0.7
# restraint = 1.0
# quarantined_max = 0.0

# How much worse than a baseline it may be; nothing where it is left out.
[tolerances]
# precision = 0.1
"
    )
}
