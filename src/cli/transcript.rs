//! Reads one transcript for a command that shows something of it: told apart by its content, taken
//! through the gate, handed over entry by entry.

use super::enqueue::read_stdin;
use super::output::{self, Failure};
use crate::config::Config;
use crate::domain::{DETECT_BYTES_MAX, Entry, Format, Session, Severity};
use crate::edge::walk;
use crate::privacy::{Gate, Report, is_private_file};
use crate::source::{self, Item, seal, seal_session};
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Seek};
use std::ops::ControlFlow;
use std::path::Path;

/// What is heard of a transcript.
pub(super) enum Heard<'a> {
    /// A conversation begins.
    Session(&'a Session),
    /// Its next entry, in a file of this format.
    Entry(&'a Entry, Format),
}

/// Reads the transcript at `path`, or standard input where that is `-`; `format` tells what it is where
/// somebody named it. Findings are counted on stderr. A file that says `private: true` gives nothing.
pub(super) fn read(
    (path, format): (&Path, Option<Format>),
    config: &Config,
    hear: &mut dyn FnMut(Heard<'_>),
) -> Result<(), Failure> {
    if path == Path::new("-") {
        return input(Cursor::new(read_stdin("a transcript")?), ("-", format), config, hear);
    }
    let name = path.display().to_string();
    let file = walk::open(path).map_err(|error| unreadable(&name, &error))?;
    input(file, (&name, format), config, hear)
}

fn unreadable(name: &str, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{name}: cannot be read: {error}"))
}

fn input(
    mut input: impl Read + Seek,
    (name, format): (&str, Option<Format>),
    config: &Config,
    hear: &mut dyn FnMut(Heard<'_>),
) -> Result<(), Failure> {
    let mut head = Vec::new();
    let began = input.by_ref().take(DETECT_BYTES_MAX as u64).read_to_end(&mut head);
    began.and_then(|_| input.rewind()).map_err(|error| unreadable(name, &error))?;
    let file_name = Path::new(name).file_name().and_then(|name| name.to_str());
    let found = format.map_or_else(|| source::detect(&head, file_name), Ok);
    let format = found.map_err(|unknown| Failure::failed(format!("{name}: {unknown}")))?;
    if is_private_file(&String::from_utf8_lossy(&head)) {
        output::note("the file says `private: true`: nothing of it is let through");
        return Ok(());
    }
    let (gate, mut masked) = (Gate::new(&config.pii), Report::default());
    let (mut entries, mut bad) = (0_u32, 0_u64);
    let mut findings: BTreeMap<String, u64> = BTreeMap::new();
    let read = source::read(format, input, &mut |item| {
        match item {
            Item::Session(raw) => {
                let namespace = config.namespace.as_deref().unwrap_or_default();
                let place = (namespace, format, name);
                hear(Heard::Session(&seal_session(raw, place, &gate, &mut masked)));
            }
            Item::Entry(raw) => {
                hear(Heard::Entry(&seal(raw, entries, &gate, &mut masked), format));
                entries += 1;
            }
            Item::Finding(finding) => {
                bad += u64::from(finding.severity >= Severity::Warning);
                *findings.entry(finding.rule.into_owned()).or_default() += 1;
            }
        }
        ControlFlow::Continue(())
    });
    read.map_err(|error| unreadable(name, &error))?;
    if entries == 0 && bad > 0 {
        let what = format!("{name}: nothing in it could be read as {format}: {bad} findings");
        return Err(Failure::failed(what));
    }
    if !findings.is_empty() {
        let told: Vec<String> =
            findings.iter().map(|(rule, times)| format!("{rule} {times}")).collect();
        output::note(&format!("findings: {}", told.join(", ")));
    }
    Ok(())
}
