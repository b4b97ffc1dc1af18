//! Hands over what was said, while somebody waits: at once where that is quick, else by a process of its own
//! that nobody waits for.

use crate::cli::output::{self, Failure};
use crate::cli::{enqueue, settings};
use crate::config::Config;
use crate::worker::HandOver;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use tokio_util::sync::CancellationToken;

/// The longest transcript that is handed over while the client waits, in bytes: it is read from its
/// beginning and compared, up to thirty milliseconds a megabyte (`benches/hooks.sh`).
const AT_ONCE_BYTES_MAX: u64 = 64 * 1024;
/// What the URL of a store begins with that is a file here; others are asked over a network.
const FILE_STORE: &str = "sqlite:";

/// Hands over what the transcript at `path` grew by; `flush` is for a session that ended. What fails is
/// said: whoever hands it over the next time takes all of it.
pub(super) fn hand_over(
    (path, bytes): (&Path, u64),
    flush: bool,
    (config, file): (&Config, Option<&Path>),
) {
    if bytes == 0 {
        return;
    }
    let is_quick = bytes <= AT_ONCE_BYTES_MAX && config.store_url.starts_with(FILE_STORE);
    let handed = match is_quick {
        true => at_once(path, flush, config),
        false => apart(path, flush, file).map_err(|error| Failure::failed(error.to_string())),
    };
    if let Err(failure) = handed {
        output::note(&format!("what was said is not handed over yet: {}", failure.line));
    }
}

fn at_once(path: &Path, flush: bool, config: &Config) -> Result<(), Failure> {
    let enqueuer = enqueue::enqueuer(config, None)?;
    let how = HandOver { flush, ..HandOver::default() };
    let work = enqueuer.files(vec![path.to_owned()], how, CancellationToken::new());
    let taken = settings::runtime()?.block_on(work)?;
    match taken.problems.first() {
        None => Ok(()),
        Some(it) => Err(Failure::failed(format!("{}: {}", it.path, it.problem))),
    }
}

/// Starts `annalist enqueue`, which goes on when this process and the client are gone.
fn apart(path: &Path, flush: bool, file: Option<&Path>) -> io::Result<()> {
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
