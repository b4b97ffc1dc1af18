//! `annalist redact`: prints a text after redaction.

use super::output::{self, BOLD, Failure, count, counted};
use super::session_input::unreadable;
use super::settings;
use crate::privacy::{Gate, Only, Report, is_private_file};
use clap::ValueEnum;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Maximum size of a text, in bytes.
const TEXT_BYTES_MAX: u64 = 1 << 30;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: annalist redact notes.md > clean.md

privacy.pii sets which personal data is masked; private blocks and secrets always are.")]
pub(super) struct Args {
    /// The text; `-` or nothing reads standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Apply one part of the gate alone
    #[arg(long, value_enum)]
    only: Option<Part>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Part {
    /// `<private>` blocks
    Private,
    /// Keys, passwords, tokens
    Secrets,
    /// Personal data
    Pii,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let text = read(&args.file)?;
    let only = match args.only {
        None => Only::Everything,
        Some(Part::Private) => Only::Private,
        Some(Part::Secrets) => Only::Secrets,
        Some(Part::Pii) => Only::Pii,
    };
    if matches!(only, Only::Everything | Only::Private) && is_private_file(&text) {
        output::note("private-file 1");
        output::note("the file says `private: true`: nothing of it is let through");
        return Ok(ExitCode::SUCCESS);
    }
    let mut report = Report::default();
    let clean = Gate::new(&config.pii).only(only).redact_into(&text, &mut report);
    output::bytes(clean.as_str().as_bytes())?;
    if report.counts.is_empty() {
        output::note("nothing was masked");
    }
    if report.mentions > 0 {
        let tags = counted(report.mentions, "tag");
        output::note(&format!("{tags} <private> without an end hide nothing: expected </private>"));
    }
    for (rule, times) in &report.counts {
        output::note(&format!("{BOLD}{rule}{BOLD:#} {}", count(*times)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the text; unlike a transcript, it may be empty.
fn read(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let is_stdin = path.as_os_str() == "-";
    let name = if is_stdin { "standard input".into() } else { path.display().to_string() };
    let read = match is_stdin {
        true => std::io::stdin().lock().take(TEXT_BYTES_MAX).read_to_end(&mut bytes),
        // A pipe is fine, since it is read only once.
        false => File::open(path).and_then(|it| it.take(TEXT_BYTES_MAX).read_to_end(&mut bytes)),
    };
    read.map_err(|error| unreadable(&name, &error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
