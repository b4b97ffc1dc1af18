//! `annalist cassette`: imports recorded answers.

use super::output::{self, Result, counted};
use super::settings;
use crate::adapters::files;
use crate::adapters::walk::walk;
use crate::config::Config;
use crate::pipeline::import::{AnswerFile, Imported, MODEL_UNKNOWN, import};
use clap::Subcommand;
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a cassette from answer files, one per conversation
    #[command(after_help = "\
An answer file is JSON: {\"transcript\": PATH, \"conversation\": ID or null, \"arguments\": {…}}. \
The transcript is sliced as by `replay`, and each claim goes to the slice with its evidence.

Example:
  annalist cassette import answers/*.json --transcripts sessions --to cassette
  annalist replay sessions --cassette cassette")]
    Import {
        /// Answer files, or folders of them
        #[arg(required = true, value_name = "ANSWER")]
        answers: Vec<PathBuf>,
        /// Folder of the transcripts; default: `transcripts` beside the answers' folder
        #[arg(long, value_name = "DIR")]
        transcripts: Option<PathBuf>,
        /// Folder of the cassette
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
        /// Name of the model that answered
        #[arg(long, value_name = "NAME", default_value = MODEL_UNKNOWN)]
        model: String,
    },
}

pub(super) fn run(command: Command, file: Option<&Path>) -> Result<()> {
    let config = settings::load(file)?;
    let Command::Import { answers, transcripts, to, model } = command;
    let (files, problems) = walk(&answers);
    let mut failed = !problems.is_empty();
    for (path, error) in problems {
        output::note(&format!("{}: cannot be read: {error}", path.display()));
    }
    let is_json = |path: &Path| path.extension().is_some_and(|extension| extension == "json");
    for answer in files.iter().filter(|it| it.named || is_json(&it.path)) {
        // For `answers/x.json`, the default is `transcripts` beside `answers`.
        let folder = answer.path.parent().unwrap_or(Path::new(""));
        let base = transcripts.clone().unwrap_or_else(|| folder.join("..").join("transcripts"));
        let imported = import_file(&config, &answer.path, &base, &model);
        let saved = imported.and_then(|imported| {
            let case = case_name(&answer.path);
            let saved = imported.file.save(&to, &case);
            saved.map_err(|error| format!("cannot be saved: {error}"))?;
            Ok((imported, to.join(case + ".json")))
        });
        match saved {
            Ok((imported, path)) => {
                for finding in &imported.findings {
                    output::note(&format!("{}: {finding}", answer.path.display()));
                }
                let claims = counted(imported.claims as u64, "claim");
                let slices = counted(imported.slices as u64, "slice");
                output::line(&format!("{}: {claims} in {slices}", path.display()))?;
            }
            Err(what) => {
                failed = true;
                output::note(&format!("{}: {what}", answer.path.display()));
            }
        }
    }
    output::fail_if(failed)
}

fn case_name(answer: &Path) -> String {
    let stem = answer.file_stem().and_then(|stem| stem.to_str()).unwrap_or("answer");
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
    stem.chars().map(|letter| if is_allowed(letter) { letter } else { '-' }).collect()
}

fn import_file(config: &Config, path: &Path, base: &Path, model: &str) -> Result<Imported, String> {
    let text = files::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
    let answer = AnswerFile::read(&text)?;
    let transcript = base.join(answer.transcript.as_ref().ok_or("names no transcript")?);
    let (found, problems) = walk(std::slice::from_ref(&transcript));
    if let Some((path, error)) = problems.first() {
        return Err(format!("its transcript {} cannot be read: {error}", path.display()));
    }
    import(config, found.first().ok_or("its transcript is not a file")?, &answer, model)
}
