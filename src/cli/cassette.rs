//! `annalist cassette`: recorded answers.

use super::output::{self, Failure, count};
use super::settings;
use crate::edge::disk;
use crate::edge::walk::walk;
use crate::worker::{AnswerFile, MODEL_UNKNOWN, import};
use clap::Subcommand;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a cassette out of answer files, one for each whole conversation
    #[command(after_help = "\
An answer file is JSON: {\"transcript\": PATH, \"conversation\": ID or null, \"arguments\": {…}}. \
The transcript is cut as replay cuts it, and each claim is put where the words are that support it.

Example:
  annalist cassette import answers/*.json --transcripts transcripts --to cassette
  annalist replay transcripts --cassette cassette")]
    Import {
        /// Answer files, or folders of them
        #[arg(required = true, value_name = "ANSWER")]
        answers: Vec<PathBuf>,
        /// The folder that transcripts are named from; beside the answers' folder by default
        #[arg(long, value_name = "DIR")]
        transcripts: Option<PathBuf>,
        /// The cassette's folder
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
        /// The name of the model that answered
        #[arg(long, value_name = "NAME", default_value = MODEL_UNKNOWN)]
        model: String,
    },
}

pub(super) fn run(args: Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let Command::Import { answers, transcripts, to, model } = args.command;
    let (files, problems) = walk(&answers);
    let mut failed = !problems.is_empty();
    for (path, error) in problems {
        output::note(&format!("{}: cannot be read: {error}", path.display()));
    }
    for answer in files.iter().filter(|it| it.named || is_json(&it.path)) {
        let base = transcripts.clone().unwrap_or_else(|| beside(&answer.path));
        match one(&config, &answer.path, &base, (&to, &model)) {
            Ok(line) => output::line(&line)?,
            Err(what) => {
                failed = true;
                output::note(&format!("{}: {what}", answer.path.display()));
            }
        }
    }
    Ok(ExitCode::from(if failed { output::FAILED } else { 0 }))
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

/// `answers/x.json` names transcripts in `transcripts/`.
fn beside(answer: &Path) -> PathBuf {
    let folder = answer.parent().unwrap_or(Path::new(""));
    folder.join("..").join("transcripts")
}

fn one(
    config: &crate::config::Config,
    path: &Path,
    base: &Path,
    (to, model): (&Path, &str),
) -> Result<String, String> {
    let text = disk::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
    let answer = AnswerFile::read(&text)?;
    let named = answer.transcript.clone().ok_or("names no transcript")?;
    let transcript = base.join(&named);
    let (found, problems) = walk(std::slice::from_ref(&transcript));
    if let Some((path, error)) = problems.first() {
        return Err(format!("its transcript {} cannot be read: {error}", path.display()));
    }
    let found = found.first().ok_or("its transcript is no file")?;
    let whole = answer.answer(&named.display().to_string());
    let imported = import(config, found, &whole, model)?;
    let case: String =
        path.file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or("answer")
            .chars()
            .map(|letter| {
                if letter.is_ascii_alphanumeric() || ".-_".contains(letter) { letter } else { '-' }
            })
            .collect();
    imported.file.save(to, &case).map_err(|error| format!("cannot be saved: {error}"))?;
    for finding in &imported.findings {
        output::note(&format!("{}: {finding}", path.display()));
    }
    let (claims, slices) = (count(imported.claims as u64), count(imported.slices as u64));
    Ok(format!("{}: {claims} claims over {slices} slices", to.join(case + ".json").display()))
}
