//! `annalist hook`: answers a hook of a client. It never blocks the user's work: a failure is printed on stderr and
//! exits with 0, and nothing waits for the store.

use super::context::{directory, say_skipped};
use super::hand_over::{self, AwaitedAnswer, Order};
use super::output::{self, Failure, Result, commas, count};
use super::{settings, status};
use crate::adapters::clock;
use crate::adapters::hook_folder::{GrowingFile, HookFolder, client_settings};
use crate::adapters::spool::SpooledHandOver;
use crate::agents::{
    Answer, Event, Input, OUTPUT_UNITS_MAX, Output, STATE_TTL, Say, Seen, SessionModels, State,
    TAIL_BYTES, Tail, Thresholds, Usage, decide, last_usage, model_in_settings, percent,
};
use crate::config::Config;
use crate::context::{Budget, assemble, material};
use crate::domain::{Finding, Severity, Timestamp};
use crate::memory_dir::MemoryConfig;
use crate::pipeline::ProjectDirectory;
use crate::privacy::{Gate, Redacted};
use crate::store::{OpenMode, Store, StoreErrorKind};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Maximum size of standard input, in bytes: a prompt with pasted text.
const STDIN_BYTES_MAX: u64 = 32 * 1024 * 1024;
const STDIN_PIECE_BYTES: usize = 64 * 1024;
/// Maximum pause of a client that writes to standard input.
const STDIN_PAUSE_MAX: Duration = Duration::from_millis(500);
const LOOK_MAX: Duration = Duration::from_millis(250);
/// Maximum number of transcripts that were given up to name; the rest are counted.
const GONE_NAMED_MAX: usize = 3;
/// Command that syncs a session into memory; the session name follows.
const SYNC: &str = "memory sync";
const PROJECT: &str = "CLAUDE_PROJECT_DIR";
/// Variable with the client's model; overrides the client's settings.
const MODEL: &str = "ANTHROPIC_MODEL";
const CLIENT: &str = "CLAUDE_CONFIG_DIR";
/// Client settings in the project, in order of precedence.
const PROJECT_SETTINGS: [&str; 2] = [".claude/settings.local.json", ".claude/settings.json"];

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist init --claude-code   adds these hooks to the settings of the project
  echo '{\"session_id\": \"x\"}' | annalist hook session-start
                                the answer that the client would get

  session-start       answers with the output of `annalist context`, if
                      auto_load is on; tells the person if extraction stalled
  user-prompt-submit  requests a sync once a session, from auto_sync_threshold;
                      blocks prompts until a sync, from hard_block_threshold,
                      if the window size is known
  pre-compact         warns if memory was not synced; enqueues new messages
  stop, subagent-stop, session-end
                      enqueue new messages, as `annalist enqueue` does

Claude Code, Codex, Gemini CLI, Qwen Code and the opencode plugin run these hooks. If a client \
uses another name for an event (BeforeAgent), so does the answer. A prompt that begins with \
`annalist override` is not blocked. Thresholds are in .memory-config.md. Session state is kept for \
four hours in $XDG_STATE_HOME/annalist/hooks, and the list of transcripts still to be enqueued in \
$XDG_DATA_HOME/annalist/spool. A hook does not wait for the store: a process of its own enqueues, and \
session-start and `annalist status` tell what failed there. Exit codes: 0 answered, or failed with a message on stderr; 2 the \
prompt is blocked.")]
pub(super) struct Args {
    /// Event of the client
    event: Event,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> ExitCode {
    // `--config` is relative to the current folder, which changes to the project's below.
    let file = file.and_then(|file| std::path::absolute(file).ok());
    answer(args.event, file.as_deref()).unwrap_or_else(|failure| {
        failure.report();
        ExitCode::SUCCESS
    })
}

fn answer(event: Event, file: Option<&Path>) -> Result<ExitCode> {
    let (input, findings) = Input::read(&stdin()?, event);
    let Some(input) = input else {
        let what: Vec<String> = findings.iter().map(|it| it.detail.to_string()).collect();
        return Err(Failure::failed(what.join("; ")));
    };
    findings.iter().for_each(warn);
    enter_project(&input);
    let mut transcript = open_transcript(&input);
    let directory = or_noted(directory(None));
    let answer = decide_and_keep(&input, directory.as_ref(), transcript.as_mut());
    let config = settings::load(file);
    if let Err(failure) = &config {
        output::note(&failure.line);
    }
    let context = match (&answer.say, directory, &config) {
        (Say::Context, Some(directory), Ok(config)) if directory.settings.auto_load => {
            or_noted(context(&directory, config))
        }
        _ => Redacted::default(),
    };
    let program = settings::program().unwrap_or_else(|_| "annalist".to_owned());
    let sync = format!("{program} {SYNC}");
    let mut said = Output::of(answer, &input, &context, &sync);
    let mut gone = Vec::new();
    if event == Event::SessionStart
        && let Some(notice) = notice(&config, &mut gone)
    {
        said = said.with_notice(&notice);
    }
    let handed = match answer.enqueue {
        true => hand_over(&input, file),
        false if hand_over::spool().is_none_or(|spool| spool.is_empty()) => Ok(()),
        false => hand_over::start(None),
    };
    if let Err(error) = handed {
        output::note(&format!("new messages are not enqueued yet: {error}"));
    }
    if let Some(text) = &said.stdout {
        output::bytes(format!("{text}\n").as_bytes())?;
        // Only what a person was told about.
        hand_over::give_up(&gone);
    }
    if let Some(text) = &said.stderr {
        output::note(text);
    }
    Ok(ExitCode::from(said.exit))
}

/// Returns a line about what stops work; `gone` gets the hand-overs to be given up that it names.
fn notice(config: &Result<Config>, gone: &mut Vec<SpooledHandOver>) -> Option<String> {
    let config = match config {
        Ok(config) => config,
        Err(failure) => return Some(format!("annalist: {}", failure.line)),
    };
    let (tell, told) = mpsc::channel();
    let url = config.store_url.clone();
    thread::spawn(move || {
        let runtime = settings::runtime().ok()?;
        let store = Store::open(&url, OpenMode::Existing);
        tell.send(store.and_then(|it| runtime.block_on(it.depth(clock::now())))).ok()
    });
    // If the store does not answer in time, the next failed hand-over reports it.
    let (depth, error) = told.recv_timeout(LOOK_MAX).map_or((None, None), |it| match it {
        Ok(depth) => (Some(depth), None),
        Err(error) => (None, Some(error)),
    });
    let error = error.filter(|it| !it.is_transient() && it.kind != StoreErrorKind::Missing);
    let spool = hand_over::spool();
    let spooled = spool.map(|spool| spool.left_behind(clock::now()));
    let mut spooled = spooled.unwrap_or_default();
    spooled.retain(|it| settings::is_of_project(&it.project));
    *gone = hand_over::take_gone(&mut spooled);
    let given_up = (!gone.is_empty()).then(|| given_up(gone));
    let obstacles = status::in_line(depth.as_ref(), &spooled);
    let error = error.map(|it| Failure::from(it).line);
    let all: Vec<String> = obstacles.into_iter().chain(given_up).chain(error).collect();
    (!all.is_empty()).then(|| format!("annalist: {}", all.join("; ")))
}

fn given_up(gone: &[SpooledHandOver]) -> String {
    let named = gone.iter().take(GONE_NAMED_MAX).map(|it| it.transcript.display().to_string());
    let more = match gone.len().saturating_sub(GONE_NAMED_MAX) as u64 {
        0 => String::new(),
        more => format!(" and {} more", count(more)),
    };
    format!("{}{more}: not found, given up", commas(named))
}

fn or_noted<T: Default>(result: Result<T>) -> T {
    result.unwrap_or_else(|failure| {
        output::note(&failure.line);
        T::default()
    })
}

/// Decides by the session state and the context window usage, and stores the new state.
fn decide_and_keep(
    input: &Input,
    directory: Option<&ProjectDirectory>,
    transcript: Option<&mut GrowingFile>,
) -> Answer {
    let now = clock::now();
    let folder = settings::state_folder().map(|state| HookFolder::new(&state));
    if folder.is_none() {
        output::note("neither XDG_STATE_HOME nor HOME is set: no session state is kept");
    }
    // A session without a valid name has no state.
    let session = folder.as_ref().zip(input.session.as_ref());
    let state = session.map(|(folder, session)| read_state(folder, session.as_str()));
    let (before, synced_at) = state.unwrap_or_default();
    let thresholds = thresholds(directory.map(|it| &it.settings));
    let at_start = input.model.as_deref().or(before.model.as_deref());
    let window = transcript.and_then(|file| window_use(file, at_start, &thresholds));
    let (percent, is_window_known) = window.unzip();
    let is_window_known = is_window_known.unwrap_or_default();
    let seen = Seen { now, percent, is_window_known, synced_at };
    let (answer, after) = decide(&before, input, seen, &thresholds);
    if let Some((folder, session)) = session {
        let text = serde_json::to_string(&after).unwrap_or_default();
        let kept = (after != before).then(|| folder.keep_state(session.as_str(), &text));
        let is_start = input.event == Event::SessionStart;
        let swept = is_start.then(|| folder.sweep(now, STATE_TTL));
        for error in [kept, swept].into_iter().flatten().filter_map(Result::err) {
            output::note(&format!("the state of this session cannot be saved: {error}"));
        }
    }
    answer
}

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

fn context(directory: &ProjectDirectory, config: &Config) -> Result<Redacted> {
    let budget = Budget::of(directory.settings.token_budget).within_units(OUTPUT_UNITS_MAX);
    let wrong = |error| Failure::failed(format!("the memory directory cannot be read: {error}"));
    let (shown, gate) = (directory.read(false).map_err(wrong)?, Gate::new(&config.pii));
    say_skipped(&shown.skipped);
    Ok(assemble(&material(&shown.files, None, &gate), &budget, &gate).text)
}

/// Reads standard input. Input over the limit is truncated, which makes it invalid JSON. A client that does not close
/// its end is not waited for.
fn stdin() -> Result<String> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut input = io::stdin().lock().take(STDIN_BYTES_MAX);
        let mut piece = vec![0; STDIN_PIECE_BYTES];
        loop {
            let read = input.read(&mut piece).map(|count| piece.get(..count).map(<[u8]>::to_vec));
            let is_end = !matches!(&read, Ok(Some(bytes)) if !bytes.is_empty());
            if tell.send(read).is_err() || is_end {
                return;
            }
        }
    });
    let mut bytes = Vec::new();
    while let Ok(piece) = told.recv_timeout(STDIN_PAUSE_MAX) {
        let piece = piece
            .map_err(|error| Failure::failed(format!("standard input: cannot be read: {error}")))?;
        bytes.extend(piece.unwrap_or_default());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn enter_project(input: &Input) {
    let named = settings::path_of(PROJECT).or_else(|| input.cwd.as_ref().map(PathBuf::from));
    let Some(folder) = named.filter(|folder| folder.is_absolute()) else { return };
    if let Err(error) = std::env::set_current_dir(&folder) {
        output::note(&format!("{}: cannot be entered: {error}", folder.display()));
    }
}

/// Opens the transcript; a new session may not have one yet.
fn open_transcript(input: &Input) -> Option<GrowingFile> {
    let path = PathBuf::from(input.transcript_path.as_ref()?);
    let opened = GrowingFile::open(&path);
    if let Err(error) = &opened
        && error.kind() != io::ErrorKind::NotFound
    {
        output::note(&format!("{}: {error}", path.display()));
    }
    opened.ok()
}

fn warn(finding: &Finding) {
    if finding.severity > Severity::Info {
        output::note(&format!("annalist: {}", finding.detail));
    }
}

fn hand_over(input: &Input, file: Option<&Path>) -> io::Result<()> {
    let event = input.event;
    let path = match event == Event::SubagentStop {
        true => &input.agent_transcript_path,
        false => &input.transcript_path,
    };
    let session = input.database.as_ref().and(input.session.as_ref());
    let Some(path) = path.as_ref().or(input.database.as_ref()) else { return Ok(()) };
    let transcript = std::path::absolute(path)?;
    // The folder of a session's sub-agents is read, any other would be read with everything in it.
    let is_other = transcript.is_dir() && !transcript.ends_with(hand_over::AGENTS);
    if is_other || (input.is_fork && !transcript.exists()) {
        return Ok(());
    }
    let answer = input.answer_end.as_ref().and_then(|end| {
        let Ok(mut file) = GrowingFile::open(&transcript) else {
            return Some(AwaitedAnswer { end: end.clone(), bytes: 0 });
        };
        let is_there = file.tail(TAIL_BYTES[0]).is_ok_and(|(tail, _)| end.ends_turn(&tail));
        (!is_there).then(|| AwaitedAnswer { end: end.clone(), bytes: file.bytes() })
    });
    let hand_over = SpooledHandOver {
        transcript,
        session: session.map(|name| name.as_str().to_owned()),
        project: std::env::current_dir()?,
        config: file.map(Path::to_owned),
        environment: Some(hand_over::environment_digest()),
        flush: event == Event::SessionEnd,
        at: clock::now(),
        problem: None,
    };
    let kept = hand_over::spool().map_or(Ok(()), |spool| spool.put(&hand_over));
    hand_over::start(Some(&Order { hand_over, answer })).and(kept)
}

/// Thresholds of the directory's settings, which were validated when they were read.
fn thresholds(config: Option<&MemoryConfig>) -> Thresholds {
    let Some(config) = config else { return Thresholds::default() };
    let (auto, hard) = (config.auto_sync_threshold.into(), config.hard_block_threshold.into());
    Thresholds::new(Some(auto), Some(hard), config.context_window_tokens.map(Into::into)).0
}

/// Returns the context window usage in percent, and true if the window size is known; `None` if the transcript has no
/// usage.
fn window_use(
    file: &mut GrowingFile,
    at_start: Option<&str>,
    thresholds: &Thresholds,
) -> Option<(u32, bool)> {
    let usage = usage(file)?;
    let configured = model_of_client();
    let models = SessionModels { at_start, configured: configured.as_deref() };
    let window = thresholds.window(&usage, &models);
    Some((percent(usage.tokens, window.tokens), window.is_known))
}

/// Returns the usage of the last answer, reading further back until it finds one.
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

fn model_of_client() -> Option<String> {
    let named = std::env::var_os(MODEL).and_then(|name| name.into_string().ok());
    let own = settings::path_of(CLIENT).or_else(|| settings::home().map(|it| it.join(".claude")));
    let own = own.map(|folder| folder.join("settings.json"));
    let places = PROJECT_SETTINGS.map(PathBuf::from).into_iter().chain(own);
    let model = |path: PathBuf| client_settings(&path).as_deref().and_then(model_in_settings);
    named.filter(|name| !name.is_empty()).or_else(|| places.into_iter().find_map(model))
}
