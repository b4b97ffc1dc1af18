//! `annalist hook`: answers a hook of Claude Code. It never breaks a person's work: what fails is a line on
//! stderr, and no failure exits with the code that holds a prompt up.

mod hand_over;
mod window;

use super::context::Directory;
use super::output::{self, FAILED, Failure, USAGE};
use super::settings;
use crate::config::Config;
use crate::context::Budget;
use crate::domain::{Finding, Severity, Timestamp};
use crate::edge::clock;
use crate::edge::hooks::{Growing, HookFolder};
use crate::hook::{
    Answer, Event, Input, OUTPUT_UNITS_MAX, Output, STATE_TTL, Say, Seen, State, decide,
};
use crate::privacy::{Gate, Redacted};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The most that is read of standard input, in bytes: a prompt with what was pasted into it.
const STDIN_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// What we are run with to bring a session into memory; its name comes behind it.
const SYNC: &str = "memory sync";
/// The variable in which the client names the folder of the project.
const PROJECT: &str = "CLAUDE_PROJECT_DIR";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist init --claude-code                               puts these into the settings of the project
  echo '{\"session_id\": \"x\"}' | annalist hook session-start    what the client would be told

  session-start       gives the agent what `annalist context` prints, if auto_load is on
  user-prompt-submit  asks for a sync from auto_sync_threshold on, once a session; holds prompts up
                      from hard_block_threshold on until a sync was completed
  pre-compact         warns if memory was not synced; hands over what was said
  stop, session-end   hand over what was said, as `annalist enqueue` does

A prompt that begins with `annalist override` is not held up. Thresholds are in .memory-config.md. What \
is known of a session is kept for four hours in $XDG_STATE_HOME/annalist/hooks. \
Exit codes: 0 answered, 1 something failed and nothing was held up, 2 the prompt is held up.")]
pub(super) struct Args {
    /// session-start, user-prompt-submit, pre-compact, stop or session-end
    event: Event,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    // The settings are looked for in the folder of the project, a named file is not.
    let file = file.and_then(|file| std::path::absolute(file).ok());
    answer(args.event, file.as_deref()).map_err(harmless)
}

/// The failure with a code that holds nothing up.
fn harmless(failure: Failure) -> Failure {
    Failure { code: if failure.code == USAGE { FAILED } else { failure.code }, ..failure }
}

fn answer(event: Event, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let (input, findings) = Input::read(&stdin()?, event);
    let Some(input) = input else {
        let what: Vec<String> = findings.iter().map(|it| it.detail.to_string()).collect();
        return Err(Failure::failed(what.join("; ")));
    };
    findings.iter().for_each(warn);
    enter_project(&input);
    let transcript = open_transcript(&input);
    let directory = Directory::find(None).unwrap_or_else(|failure| {
        output::note(&failure.line);
        None
    });
    let (answer, transcript) = decided(&input, directory.as_ref(), transcript);
    let config = settings::load(file);
    let context = match (&answer.say, directory) {
        (Say::Context, Some(directory)) if directory.settings.auto_load => {
            let config = config.as_ref().map_err(|failure| Failure::failed(&failure.line))?;
            context(&directory, config)?
        }
        _ => Redacted::default(),
    };
    let sync = format!("{} {SYNC}", settings::program()?);
    let said = Output::of(answer, &input, &context, &sync);
    if let Some(text) = &said.stdout {
        output::bytes(format!("{text}\n").as_bytes())?;
    }
    if let Some(text) = &said.stderr {
        output::note(text);
    }
    let mut exit = said.exit;
    if let (true, Some((path, bytes))) = (answer.enqueue, transcript) {
        match config {
            Ok(config) => {
                hand_over::hand_over((&path, bytes), event == Event::SessionEnd, (&config, file));
            }
            Err(failure) => {
                output::note(&failure.line);
                exit = if exit == 0 { FAILED } else { exit };
            }
        }
    }
    Ok(ExitCode::from(exit))
}

/// Decides by what is kept of the session and by how full its window is, and keeps what it comes to. Gives
/// the transcript back with its length.
fn decided(
    input: &Input,
    directory: Option<&Directory>,
    transcript: Option<(PathBuf, Growing)>,
) -> (Answer, Option<(PathBuf, u64)>) {
    let now = clock::now();
    let folder = settings::state_folder().map(|state| HookFolder::new(&state));
    if folder.is_none() {
        output::note("neither XDG_STATE_HOME nor HOME is set: nothing is kept of this session");
    }
    // A session without a safe name is left alone.
    let kept = folder.as_ref().zip(input.session.as_ref());
    let state = kept.map(|(folder, session)| kept_of(folder, session.as_str()));
    let (before, synced_at) = state.unwrap_or_default();
    let (mut transcript, path) = match transcript {
        Some((path, file)) => (Some(file), Some(path)),
        None => (None, None),
    };
    let thresholds = window::thresholds(directory.map(|it| &it.settings));
    let percent = transcript.as_mut().and_then(|file| window::percent_of(file, input, &thresholds));
    let seen = Seen { now, percent, synced_at };
    let (answer, after) = decide(before, input, seen, &thresholds);
    if let Some((folder, session)) = kept {
        let text = serde_json::to_string(&after).unwrap_or_default();
        let kept = match after == before {
            true => Ok(()),
            false => folder.keep_state(session.as_str(), &text),
        };
        let swept = match input.happened.event() {
            Event::SessionStart => folder.sweep(now, STATE_TTL),
            Event::UserPromptSubmit | Event::PreCompact | Event::SessionEnd | Event::Stop => Ok(()),
        };
        for error in [kept, swept].into_iter().filter_map(Result::err) {
            output::note(&format!("what is known of this session cannot be kept: {error}"));
        }
    }
    (answer, path.zip(transcript.map(|file| file.bytes())))
}

/// What is kept of a session, and when it was synced.
fn kept_of(folder: &HookFolder, session: &str) -> (State, Option<Timestamp>) {
    let told = |error: io::Error| {
        output::note(&format!("what is kept of this session cannot be read: {error}"));
        None
    };
    let text = folder.state(session).unwrap_or_else(told);
    let (state, findings) = text.map_or_else(Default::default, |text| State::read(&text));
    findings.iter().for_each(warn);
    (state, folder.synced_at(session).ok().flatten())
}

/// What the agent starts with.
fn context(directory: &Directory, config: &Config) -> Result<Redacted, Failure> {
    let budget = Budget::of(directory.settings.token_budget).within_units(OUTPUT_UNITS_MAX);
    let block = directory.block(&budget, &Gate::new(&config.pii));
    let block = block.map_err(|error| {
        Failure::failed(format!("the memory directory cannot be read: {error}"))
    })?;
    Ok(block.text)
}

/// Standard input; what is behind the most that is read makes it no JSON.
fn stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(STDIN_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|error| Failure::failed(format!("standard input: cannot be read: {error}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Goes to the folder of the project: settings, store and memory directory are found from there, wherever
/// the agent went meanwhile.
fn enter_project(input: &Input) {
    let named = settings::path_of(PROJECT).or_else(|| input.cwd.as_ref().map(PathBuf::from));
    let Some(folder) = named.filter(|folder| folder.is_absolute()) else { return };
    if let Err(error) = std::env::set_current_dir(&folder) {
        output::note(&format!("{}: cannot be entered: {error}", folder.display()));
    }
}

/// The transcript, if there is one: as a session starts there need not be.
fn open_transcript(input: &Input) -> Option<(PathBuf, Growing)> {
    let path = PathBuf::from(input.transcript_path.as_ref()?);
    match Growing::open(&path) {
        Ok(file) => Some((path, file)),
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                output::note(&format!("{}: {error}", path.display()));
            }
            None
        }
    }
}

fn warn(finding: &Finding) {
    if finding.severity > Severity::Info {
        output::note(&format!("annalist: {}", finding.detail));
    }
}
