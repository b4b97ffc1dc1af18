//! Reads transcripts for commands that show something of them: told apart by their content, taken
//! through the gate, handed over entry by entry.

use super::enqueue::read_stdin;
use super::output::{self, Failure};
use crate::config::Config;
use crate::domain::{DETECT_BYTES_MAX, Entry, Finding, Format, Session, Severity};
use crate::edge::walk;
use crate::privacy::{Gate, Report, is_private_file};
use crate::source::{self, Item, mention, seal, seal_session};
use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Seek};
use std::ops::ControlFlow;
use std::path::Path;

/// What is heard of a transcript.
pub(super) enum Heard<'a> {
    /// A conversation begins.
    Session(&'a Session),
    /// Its next entry, in a file of this format.
    Entry(&'a Entry, Format),
    /// Something is wrong with it.
    Finding(Finding),
}

/// How a file begins.
pub(super) struct Begun {
    /// Enough of it to know its format by.
    pub(super) head: Vec<u8>,
    /// It says `private: true`: nothing of it may be shown.
    pub(super) is_private: bool,
}

/// Looks at the beginning of a file, and goes back to it.
pub(super) fn begin(input: &mut (impl Read + Seek)) -> io::Result<Begun> {
    let mut head = Vec::new();
    input.by_ref().take(DETECT_BYTES_MAX as u64).read_to_end(&mut head)?;
    input.rewind()?;
    let is_private = is_private_file(&String::from_utf8_lossy(&head));
    Ok(Begun { head, is_private })
}

/// Takes the transcript `name` of `format` through the gate and hands it over, until `hear` breaks off.
/// Entries are counted from 0 in each conversation.
pub(super) fn hand_over(
    input: impl Read + Seek,
    (name, format): (&str, Format),
    (gate, namespace): (&Gate, &str),
    hear: &mut dyn FnMut(Heard<'_>) -> ControlFlow<()>,
) -> io::Result<()> {
    let (mut masked, mut ordinals) = (Report::default(), 0..);
    source::read(format, input, &mut |item| match item {
        Item::Session(raw) => {
            ordinals = 0..;
            let place = (namespace, format, name);
            hear(Heard::Session(&seal_session(raw, place, gate, &mut masked)))
        }
        Item::Entry(raw) => {
            let ordinal = ordinals.next().unwrap_or(u32::MAX);
            let (line, known) = (raw.line, masked.mentions);
            let entry = seal(raw, ordinal, gate, &mut masked);
            if let Some(finding) = mention(&masked, known, line) {
                hear(Heard::Finding(finding))?;
            }
            hear(Heard::Entry(&entry, format))
        }
        Item::Finding(finding) => hear(Heard::Finding(finding)),
    })
}

/// Reads the transcript at `path`, or standard input where that is `-`; `format` tells what it is where
/// somebody named it. Findings are counted on stderr, too. A file that says `private: true` gives nothing.
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
    let Begun { head, is_private } = begin(&mut input).map_err(|error| unreadable(name, &error))?;
    let file_name = Path::new(name).file_name().and_then(|name| name.to_str());
    let found = format.map_or_else(|| source::detect(&head, file_name), Ok);
    let format = found.map_err(|unknown| Failure::failed(format!("{name}: {unknown}")))?;
    if is_private {
        output::note("the file says `private: true`: nothing of it is let through");
        return Ok(());
    }
    let (gate, namespace) = (Gate::new(&config.pii), config.namespace.as_deref());
    let whose = (&gate, namespace.unwrap_or_default());
    let (mut entries, mut bad) = (0_u64, 0_u64);
    let mut findings: BTreeMap<String, u64> = BTreeMap::new();
    let read = hand_over(input, (name, format), whose, &mut |heard| {
        match &heard {
            Heard::Session(_) => {}
            Heard::Entry(..) => entries += 1,
            Heard::Finding(finding) => {
                bad += u64::from(finding.severity >= Severity::Warning);
                *findings.entry(finding.rule.to_string()).or_default() += 1;
            }
        }
        hear(heard);
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
