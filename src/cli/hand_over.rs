//! Hand-overs of hooks. They are spooled and enqueued by a separate process, so that no client waits for the store.
//! Failures stay in the spool; the next hook, `annalist worker` and `annalist status` retry them, until the transcript
//! is gone for [`GIVEN_UP`].

use super::enqueue::enqueuer_of;
use super::output::{Failure, Result};
use super::settings;
use crate::adapters::client_files;
use crate::adapters::clock;
use crate::adapters::hook_folder::GrowingFile;
use crate::adapters::spool::{Spool, SpooledHandOver};
use crate::agents::{AnswerEnd, TAIL_BYTES};
use crate::config::ENV_PREFIX;
use crate::domain::Digest;
use crate::pipeline::{EnqueueOptions, IntakeSource};
use crate::store::OpenMode;
use serde::{Deserialize, Serialize};
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Folder with the transcripts of a session's sub-agents.
pub(super) const AGENTS: &str = "subagents";
/// Maximum size of an order, in bytes; fits into a pipe buffer, so that the hook never blocks.
const ORDER_BYTES_MAX: u64 = 32 * 1024;
/// Maximum polls for an answer that is not in its transcript yet: five seconds in total.
const LOOKS_MAX: u32 = 200;
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// Time for which a transcript may be missing without a problem: clients create it with their first write.
const MISSING: Duration = Duration::from_secs(3_600);
/// Time after which a transcript that is missing from its folder is given up. Without the folder, its disk may be
/// unmounted.
const GIVEN_UP: Duration = Duration::from_secs(7 * 24 * 3_600);

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Order {
    pub(super) hand_over: SpooledHandOver,
    pub(super) answer: Option<AwaitedAnswer>,
}

/// Answer that the client has yet to write. It is passed to the process through a pipe, never a file.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct AwaitedAnswer {
    pub(super) end: AnswerEnd,
    /// Size of the transcript before the answer, in bytes.
    pub(super) bytes: u64,
}

impl AwaitedAnswer {
    fn wait(&self, transcript: &Path) {
        for _ in 0..LOOKS_MAX {
            let tail = GrowingFile::open(transcript).and_then(|mut file| {
                let grown = file.bytes().checked_sub(self.bytes).unwrap_or(file.bytes());
                file.tail(grown.min(TAIL_BYTES[TAIL_BYTES.len() - 1]))
            });
            if tail.is_ok_and(|(tail, _)| self.end.is_in(&tail)) {
                return;
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

pub(super) fn spool() -> Option<Spool> {
    settings::data_folder().map(|folder| Spool::new(&folder))
}

/// Digest of the settings in the environment. The store's URL may contain a password.
pub(super) fn environment_digest() -> String {
    let all = std::env::vars_os()
        .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()));
    let mut ours: Vec<String> = all.filter(|it| it.starts_with(ENV_PREFIX)).collect();
    ours.sort();
    Digest::of(&ours.iter().map(String::as_str).collect::<Vec<_>>()).to_string()
}

/// Starts a process that handles `order` and then the spool. It outlives this process and the client.
pub(super) fn start(order: Option<&Order>) -> io::Result<()> {
    let mut command = command()?;
    // The client kills the process group of its hooks.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let Some(order) = order else { return command.spawn().map(|_| ()) };
    let mut child = command.stdin(Stdio::piped()).spawn()?;
    match &mut child.stdin {
        Some(pipe) => pipe.write_all(serde_json::to_string(order)?.as_bytes()),
        None => Ok(()),
    }
}

pub(super) fn retry() -> Vec<SpooledHandOver> {
    let Some(spool) = spool().filter(|it| !it.is_empty()) else { return Vec::new() };
    if let Err(error) = command().and_then(|mut command| command.status()) {
        tracing::warn!(kind = ?error.kind(), "the spool was not retried");
    }
    spool.left_behind(clock::now())
}

/// Takes out the hand-overs whose transcript is gone for [`GIVEN_UP`]; [`give_up`] removes them from the spool.
pub(super) fn take_gone(all: &mut Vec<SpooledHandOver>) -> Vec<SpooledHandOver> {
    let now = clock::now();
    let is_gone = |it: &mut SpooledHandOver| {
        GIVEN_UP <= now.since(it.at)
            && it.problem.is_some()
            && has_folder(&it.transcript)
            && it.transcript.try_exists().is_ok_and(|is_there| !is_there)
    };
    all.extract_if(.., is_gone).collect()
}

/// Returns true if the folder of a transcript exists. That of a session goes with its sub-agents.
fn has_folder(transcript: &Path) -> bool {
    let of_agents = transcript.ancestors().find(|folder| folder.ends_with(AGENTS));
    let session = of_agents.and_then(Path::parent);
    session.unwrap_or(transcript).parent().is_some_and(Path::is_dir)
}

pub(super) fn give_up(gone: &[SpooledHandOver]) {
    if let Some(spool) = spool() {
        gone.iter().for_each(|it| drop(spool.done(it)));
    }
}

/// Removes hand-overs of this project that the user enqueued with `paths`.
pub(super) fn done_by_hand(paths: &[PathBuf]) {
    let Some(spool) = spool() else { return };
    let paths: Vec<_> = paths.iter().filter_map(|path| std::path::absolute(path).ok()).collect();
    let mut spooled = spool.left_behind(clock::now());
    spooled.retain(|it| settings::is_of_project(&it.project));
    spooled.retain(|it| paths.iter().any(|path| it.transcript.starts_with(path)));
    // One that remains is retried.
    spooled.iter().for_each(|it| drop(spool.done(it)));
}

fn command() -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("hand-over");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

/// Handles the order on standard input, if there is one, and then the spool.
pub(super) async fn run() -> Result<()> {
    let mut told = Vec::new();
    if !io::stdin().is_terminal() {
        io::stdin().lock().take(ORDER_BYTES_MAX).read_to_end(&mut told)?;
    }
    let spool = spool();
    if let Ok(Order { hand_over, answer }) = serde_json::from_slice(&told) {
        if let Some(answer) = answer {
            answer.wait(&hand_over.transcript);
        }
        attempt(spool.as_ref(), hand_over).await;
    }
    let Some(spool) = spool else { return Ok(()) };
    // Skips a store after its first failure.
    let mut failing = Vec::new();
    for hand_over in spool.left_behind(clock::now()) {
        let store = (hand_over.environment.clone(), hand_over.project.clone());
        let is_readable = hand_over.transcript.exists();
        if !failing.contains(&store) && !attempt(Some(&spool), hand_over).await && is_readable {
            failing.push(store);
        }
    }
    Ok(())
}

/// Enqueues a transcript. Returns false on failure and stores the problem in the spool.
async fn attempt(spool: Option<&Spool>, hand_over: SpooledHandOver) -> bool {
    let (kept, is_done) = match enqueue(&hand_over).await {
        Ok(true) => (spool.map(|spool| spool.done(&hand_over)), true),
        Ok(false) => return true,
        Err(failure) => {
            let failed = SpooledHandOver { problem: Some(failure.line), ..hand_over };
            (spool.map(|spool| spool.failed(&failed)), false)
        }
    };
    if let Some(Err(error)) = kept {
        tracing::warn!(kind = ?error.kind(), "the spool cannot be written to");
    }
    is_done
}

/// Enqueues a transcript. Returns false to wait for the transcript, or for a process with the hook's settings.
async fn enqueue(hand_over: &SpooledHandOver) -> Result<bool> {
    let SpooledHandOver { transcript, session, project, config, environment, .. } = hand_over;
    let is_there = transcript.exists();
    let records = match session {
        Some(session) if is_there => Some(client_files::opencode_session(transcript, session)?),
        Some(_) | None => None,
    };
    if !is_there || records.as_ref().is_some_and(Vec::is_empty) {
        let is_late = MISSING <= clock::now().since(hand_over.at);
        // A session without messages never gets a transcript.
        let was_there = hand_over.problem.is_some() || !has_folder(transcript);
        if is_late && was_there && !is_there {
            let line = format!("{}: not found; is its disk mounted?", transcript.display());
            return Err(Failure::failed(line));
        }
        return Ok(is_late);
    }
    if environment.as_ref().is_some_and(|it| *it != environment_digest()) {
        return Ok(false);
    }
    std::env::set_current_dir(project).map_err(|error| {
        Failure::failed(format!("{}: cannot be entered: {error}", project.display()))
    })?;
    let config = settings::load(config.as_deref())?;
    let store = settings::open_store(&config, OpenMode::Create)?;
    let enqueuer = enqueuer_of(&config, store, &config.model.model);
    let how = EnqueueOptions { flush: hand_over.flush, ..EnqueueOptions::default() };
    let source = match records {
        None => IntakeSource::Paths(vec![transcript.clone()]),
        Some(records) => IntakeSource::Bytes(transcript.display().to_string(), records),
    };
    let taken = enqueuer.enqueue_files(source, how, CancellationToken::new()).await?;
    match taken.problems.first() {
        None => Ok(true),
        Some(it) => Err(Failure::failed(format!("{}: {}", it.path, it.problem))),
    }
}
