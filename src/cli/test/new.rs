//! `annalist test new`: creates a case from a transcript.

use super::super::output::{self, Failure, GREEN, YELLOW, counted, rules};
use super::super::settings;
use super::live::{CASES, run_live, variations};
use crate::adapters::files;
use crate::config::Config;
use crate::eval::{
    Answers, CASE_FILE, CASSETTE, CaseFolder, EvalRun, GOLD_FILE, TranscriptSummary, candidate,
    copy_transcript, create, draft_gold, summarize, write_if_changed,
};
use std::path::{Path, PathBuf};

const NAMED_MAX: usize = 10;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist test new two-choices --from session.jsonl
  annalist test new two-choices --from export.json --conversation 3
  annalist test new two-choices --from session.jsonl --live

--live records the model's answers and drafts the gold from their records.

The transcript is copied unchanged; the command lists what the privacy gate would mask in it. \
Write gold from the transcript, not from the answers: review a draft.")]
pub(super) struct Args {
    /// Name of the case and of its folder
    name: String,
    /// The transcript, in any supported format
    #[arg(long, value_name = "TRANSCRIPT")]
    from: PathBuf,
    /// Conversation in the transcript, by ID or number
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Folder of cases
    #[arg(long, value_name = "DIR", default_value = CASES)]
    dir: PathBuf,
    /// Use recorded answers from this folder
    #[arg(long, value_name = "DIR", conflicts_with = "live")]
    cassette: Option<PathBuf>,
    /// Ask the endpoint
    #[arg(long)]
    live: bool,
    /// Model name at the endpoint, instead of model.model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<(), Failure> {
    let config = settings::load(file)?;
    let lawful = |letter: char| letter.is_alphanumeric() || "._-".contains(letter);
    if args.name.is_empty() || args.name.starts_with('.') || !args.name.chars().all(lawful) {
        return Err(Failure::usage(format!(
            "{}: expected a name of letters, digits, `.`, `_` and `-`",
            args.name
        )));
    }
    let transcript = candidate(&args.from).map_err(Failure::usage)?;
    let summary =
        summarize(&config, &transcript, args.conversation.as_deref()).map_err(Failure::usage)?;
    check_single(args, &summary)?;
    let folder = args.dir.join(&args.name);
    let wrong = |error| Failure::failed(format!("{}: {error}", folder.display()));
    if !create(&folder).map_err(wrong)? {
        return Err(Failure::usage(format!(
            "{}: already exists: choose another name",
            folder.display()
        )));
    }
    copy_transcript(&args.from, &folder).map_err(wrong)?;
    let empty = "{\n  \"must\": [],\n  \"must_not\": []\n}\n";
    write_if_changed(&folder.join(GOLD_FILE), empty).map_err(wrong)?;
    write_if_changed(&folder.join(CASE_FILE), &case_toml(args, &config, None)).map_err(wrong)?;
    describe(&folder, &summary);
    let was_stopped = (args.live || args.cassette.is_some()) && add_answers(args, config, &folder)?;
    output::line(&format!("created {}", folder.display()))?;
    output::note(&format!(
        "next: describe the case in {CASE_FILE}, write {GOLD_FILE} from the transcript, then \
         run `annalist test {}`",
        folder.display()
    ));
    output::fail_if(was_stopped)
}

fn check_single(args: &Args, summary: &TranscriptSummary) -> Result<(), Failure> {
    if summary.conversations.len() < 2 {
        return Ok(());
    }
    let named = output::commas(summary.conversations.iter().take(NAMED_MAX));
    let more = if summary.conversations.len() > NAMED_MAX { ", …" } else { "" };
    Err(Failure::usage(format!(
        "{}: contains {} conversations: select one with --conversation: {}{more}",
        args.from.display(),
        summary.conversations.len(),
        named
    )))
}

fn describe(folder: &Path, summary: &TranscriptSummary) {
    let (entries, slices) =
        (counted(summary.entries, "entry"), counted(summary.slices as u64, "slice"));
    output::note(&format!("read as {}: {entries}, {slices}", summary.format));
    if !summary.masked.is_empty() {
        let rules = rules(summary.masked.iter().map(|(rule, times)| (rule, *times)));
        output::note(&format!(
            "{YELLOW}warning:{YELLOW:#} the gate would mask in this transcript: {}. The copy in {} \
             is not masked: edit it before you share it",
            rules,
            folder.display()
        ));
    }
}

/// Adds answers to the new case, and their records as a draft of the gold; true if the run was stopped.
fn add_answers(args: &Args, config: Config, folder: &Path) -> Result<bool, Failure> {
    let models: Vec<String> = args.model.iter().cloned().collect();
    let answers = args.cassette.clone().map_or(Answers::Live, Answers::From);
    let is_live = answers == Answers::Live;
    let run = EvalRun {
        variations: variations(&config, &models, &[])?,
        cases: vec![CaseFolder { name: args.name.clone(), path: folder.to_owned() }],
        answers,
        config: config.clone(),
    };
    let result = if is_live { run_live(run)? } else { run.offline() };
    let Some(recording) = result.recordings.first() else {
        let cases = result.report.variants.iter().flat_map(|variant| &variant.cases);
        let problem = cases.flat_map(|case| &case.problems).find(|it| it.fails);
        let reason = result.stopped.or(problem.map(|it| it.detail.clone())).unwrap_or_default();
        return Err(Failure::failed(format!(
            "{}: was created, but without answers: {reason}",
            folder.display()
        )));
    };
    let wrong = |error| Failure::failed(format!("{}: {error}", folder.display()));
    recording.write().map_err(Failure::failed)?;
    let case = case_toml(args, &config, recording.file.model());
    write_if_changed(&folder.join(CASE_FILE), &case).map_err(wrong)?;
    let gold = draft_gold(&result);
    let items = gold.items.len() as u64;
    let text = serde_json::to_string_pretty(&gold)
        .map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?;
    files::replace(&folder.join(GOLD_FILE), &(text + "\n")).map_err(wrong)?;
    output::note(&format!(
        "{GREEN}answers are in {CASSETTE}/{}.json{GREEN:#}; {GOLD_FILE} has a draft of {}",
        recording.name,
        counted(items, "record")
    ));
    Ok(result.stopped.is_some())
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
    include_str!("new_case.toml")
        .replace("{language}", &language)
        .replace("{conversation}", &conversation)
        .replace("{model}", &model)
}
