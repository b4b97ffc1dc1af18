//! `annalist hook`: answers a hook of Claude Code. It never breaks a person's work: a failure is a line on
//! stderr, and never exits with the code that blocks a prompt.

use super::context::Directory;
use super::output::{self, FAILED, Failure, USAGE};
use super::{enqueue, settings};
use crate::adapters::clock;
use crate::adapters::hook_folder::{GrowingFile, HookFolder, client_settings};
use crate::agents::{
    Answer, Event, Input, OUTPUT_UNITS_MAX, Output, STATE_TTL, Say, Seen, State, TAIL_BYTES, Tail,
    Thresholds, Usage, decide, last_usage, model_in_settings, percent,
};
use crate::config::Config;
use crate::context::Budget;
use crate::domain::{Finding, Severity, Timestamp};
use crate::memory_dir::MemoryConfig;
use crate::pipeline::{HandOver, IntakeSource};
use crate::privacy::{Gate, Redacted};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use tokio_util::sync::CancellationToken;

/// Maximum size of standard input, in bytes: a prompt with what was pasted into it.
const STDIN_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Maximum size of a transcript that is enqueued while the client waits, in bytes: up to thirty milliseconds a
/// megabyte (`benches/hooks.sh`).
const ENQUEUE_BYTES_MAX: u64 = 64 * 1024;
/// Prefix of the URLs of stores that are files here; others are asked over a network.
const FILE_STORE: &str = "sqlite:";
/// The command that brings a session into memory; the session's name follows.
const SYNC: &str = "memory sync";
const PROJECT: &str = "CLAUDE_PROJECT_DIR";
/// Variable with the client's model; it goes before the client's settings.
const MODEL: &str = "ANTHROPIC_MODEL";
const CLIENT: &str = "CLAUDE_CONFIG_DIR";
/// The client's settings in the project, those that override others first.
const PROJECT_SETTINGS: [&str; 2] = [".claude/settings.local.json", ".claude/settings.json"];

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist init --claude-code   adds these hooks to the settings of the project
  echo '{\"session_id\": \"x\"}' | annalist hook session-start
                                the answer that the client would get

  session-start       answers with what `annalist context` prints, if auto_load is on
  user-prompt-submit  asks for a sync from auto_sync_threshold on, once a session;
                      blocks prompts from hard_block_threshold on until a sync was done
  pre-compact         warns if memory was not synced; enqueues new messages
  stop, session-end   enqueue new messages, as `annalist enqueue` does

A prompt that begins with `annalist override` is not blocked. Thresholds are in .memory-config.md. The \
state of a session is kept for four hours in $XDG_STATE_HOME/annalist/hooks. \
Exit codes: 0 answered, 1 something failed and nothing was blocked, 2 the prompt is blocked.")]
pub(super) struct Args {
    /// session-start, user-prompt-submit, pre-compact, stop or session-end
    event: Event,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    // The settings are looked for in the folder of the project, a named file is not.
    let file = file.and_then(|file| std::path::absolute(file).ok());
    answer(args.event, file.as_deref()).map_err(|failure| {
        // The code of usage errors would block the prompt.
        let code = if failure.code == USAGE { FAILED } else { failure.code };
        Failure { code, ..failure }
    })
}

struct Transcript {
    path: PathBuf,
    file: GrowingFile,
}

fn answer(event: Event, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let (input, findings) = Input::read(&stdin()?, event);
    let Some(input) = input else {
        let what: Vec<String> = findings.iter().map(|it| it.detail.to_string()).collect();
        return Err(Failure::failed(what.join("; ")));
    };
    findings.iter().for_each(warn);
    enter_project(&input);
    let mut transcript = open_transcript(&input);
    let directory = Directory::find(None).unwrap_or_else(|failure| {
        output::note(&failure.line);
        None
    });
    let answer = decide_and_keep(&input, directory.as_ref(), transcript.as_mut());
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
    if let (true, Some(transcript)) = (answer.enqueue, transcript) {
        match config {
            Ok(config) => enqueue(&transcript, event, &config, file),
            Err(failure) => {
                output::note(&failure.line);
                exit = if exit == 0 { FAILED } else { exit };
            }
        }
    }
    Ok(ExitCode::from(exit))
}

/// Decides by the state of the session and by how full its window is, and keeps the new state.
fn decide_and_keep(
    input: &Input,
    directory: Option<&Directory>,
    transcript: Option<&mut Transcript>,
) -> Answer {
    let now = clock::now();
    let folder = settings::state_folder().map(|state| HookFolder::new(&state));
    if folder.is_none() {
        output::note("neither XDG_STATE_HOME nor HOME is set: nothing is kept of this session");
    }
    // A session without a safe name is left alone.
    let session = folder.as_ref().zip(input.session.as_ref());
    let state = session.map(|(folder, session)| read_state(folder, session.as_str()));
    let (before, synced_at) = state.unwrap_or_default();
    let thresholds = thresholds(directory.map(|it| &it.settings));
    let percent = transcript.and_then(|it| percent_of(&mut it.file, input, &thresholds));
    let (answer, after) = decide(before, input, Seen { now, percent, synced_at }, &thresholds);
    if let Some((folder, session)) = session {
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
            output::note(&format!("the state of this session cannot be kept: {error}"));
        }
    }
    answer
}

/// The state of a session, and the time of its last sync.
fn read_state(folder: &HookFolder, session: &str) -> (State, Option<Timestamp>) {
    let unreadable = |error: io::Error| {
        output::note(&format!("the state of this session cannot be read: {error}"));
        None
    };
    let text = folder.state(session).unwrap_or_else(unreadable);
    let (state, findings) = text.map_or_else(Default::default, |text| State::read(&text));
    findings.iter().for_each(warn);
    (state, folder.synced_at(session).ok().flatten())
}

fn context(directory: &Directory, config: &Config) -> Result<Redacted, Failure> {
    let budget = Budget::of(directory.settings.token_budget).within_units(OUTPUT_UNITS_MAX);
    let block = directory.block(&budget, &Gate::new(&config.pii));
    let block = block.map_err(|error| {
        Failure::failed(format!("the memory directory cannot be read: {error}"))
    })?;
    Ok(block.text)
}

/// Standard input; a longer one is cut, and is no JSON then.
fn stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(STDIN_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|error| Failure::failed(format!("standard input: cannot be read: {error}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Goes to the folder of the project: settings, store and memory directory are found from there.
fn enter_project(input: &Input) {
    let named = settings::path_of(PROJECT).or_else(|| input.cwd.as_ref().map(PathBuf::from));
    let Some(folder) = named.filter(|folder| folder.is_absolute()) else { return };
    if let Err(error) = std::env::set_current_dir(&folder) {
        output::note(&format!("{}: cannot be entered: {error}", folder.display()));
    }
}

/// The transcript; a session that starts need not have one.
fn open_transcript(input: &Input) -> Option<Transcript> {
    let path = PathBuf::from(input.transcript_path.as_ref()?);
    match GrowingFile::open(&path) {
        Ok(file) => Some(Transcript { path, file }),
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

/// Enqueues what a transcript grew by. A failure is noted: the next hook enqueues all of it.
fn enqueue(transcript: &Transcript, event: Event, config: &Config, file: Option<&Path>) {
    let (path, bytes) = (&transcript.path, transcript.file.bytes());
    if bytes == 0 {
        return;
    }
    let flush = event == Event::SessionEnd;
    let is_quick = bytes <= ENQUEUE_BYTES_MAX && config.store_url.starts_with(FILE_STORE);
    let handed = match is_quick {
        true => enqueue_here(path, flush, config),
        false => spawn_enqueue(path, flush, file).map_err(|it| Failure::failed(it.to_string())),
    };
    if let Err(failure) = handed {
        output::note(&format!("what was said is not handed over yet: {}", failure.line));
    }
}

fn enqueue_here(path: &Path, flush: bool, config: &Config) -> Result<(), Failure> {
    let enqueuer = enqueue::enqueuer(config, None)?;
    let how = HandOver { flush, ..HandOver::default() };
    let work =
        enqueuer.take_in(IntakeSource::Paths(vec![path.to_owned()]), how, CancellationToken::new());
    let taken = settings::runtime()?.block_on(work)?;
    match taken.problems.first() {
        None => Ok(()),
        Some(it) => Err(Failure::failed(format!("{}: {}", it.path, it.problem))),
    }
}

/// Starts `annalist enqueue`, which goes on when this process and the client are gone.
fn spawn_enqueue(path: &Path, flush: bool, file: Option<&Path>) -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    if let Some(file) = file {
        command.arg("--config").arg(file);
    }
    command.arg("enqueue");
    if flush {
        command.arg("--flush");
    }
    command.arg("--").arg(path);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The client ends its hooks as a group.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().map(|_| ())
}

/// The thresholds of the directory's settings, which were checked when they were read.
fn thresholds(config: Option<&MemoryConfig>) -> Thresholds {
    let Some(config) = config else { return Thresholds::default() };
    let (thresholds, _) = Thresholds::new(
        Some(config.auto_sync_threshold.into()),
        Some(config.hard_block_threshold.into()),
        config.context_window_tokens.map(Into::into),
    );
    thresholds
}

/// The share of the window that is in use, in percent; `None` if the transcript does not say.
fn percent_of(file: &mut GrowingFile, input: &Input, thresholds: &Thresholds) -> Option<u32> {
    let usage = usage(file)?;
    let client = model_of_client();
    let models = [usage.model.as_deref(), input.model.as_deref(), client.as_deref()];
    Some(percent(usage.tokens, thresholds.window_tokens(&models)))
}

/// The usage of the last answer; looks further back until one is found.
fn usage(file: &mut GrowingFile) -> Option<Usage> {
    for most in TAIL_BYTES {
        let (tail, is_whole) = file.tail(most).ok()?;
        match last_usage(&tail, is_whole) {
            Tail::Usage(usage) => return Some(usage),
            Tail::Nothing => return None,
            Tail::CutOff => {}
        }
    }
    None
}

/// The model in the client's environment or settings.
fn model_of_client() -> Option<String> {
    let named = std::env::var_os(MODEL).and_then(|name| name.into_string().ok());
    let own = settings::path_of(CLIENT).or_else(|| settings::home().map(|it| it.join(".claude")));
    let own = own.map(|folder| folder.join("settings.json"));
    let places = PROJECT_SETTINGS.map(PathBuf::from).into_iter().chain(own);
    let model = |path: PathBuf| client_settings(&path).as_deref().and_then(model_in_settings);
    named.filter(|name| !name.is_empty()).or_else(|| places.into_iter().find_map(model))
}
