//! What is read: a transcript of any format, or a document whose turns are told already.

use super::Told;
use crate::cli::enqueue::read_stdin;
use crate::cli::output::Failure;
use crate::cli::transcript::{Begun, Heard, begin, hand_over};
use crate::dialog::{Rules, document};
use crate::domain::{Finding, Format, HANDED_BYTES_MAX};
use crate::edge::walk;
use crate::source::{self, Unknown};
use std::io::{self, Cursor, Read, Seek};
use std::ops::ControlFlow;
use std::path::Path;

/// What is read from standard input.
const EXPECTED: &str = "a transcript, or turns as JSON: {\"turns\": [{\"user_intent\", …}]}";

/// What was read.
#[derive(Default)]
pub(super) struct Input {
    /// One dialog for each conversation, in the order in which they begin.
    pub(super) told: Vec<Told>,
    pub(super) findings: Vec<Finding>,
}

/// Reads a file, or standard input.
pub(super) fn read(
    path: &Path,
    format: Option<Format>,
    rules: Rules<'_>,
) -> Result<Input, Failure> {
    let (name, is_stdin) = match path.as_os_str() == "-" {
        true => ("standard input".to_owned(), true),
        false => (path.display().to_string(), false),
    };
    let file_name = path.file_name().and_then(|name| name.to_str());
    let read = if is_stdin {
        look(Cursor::new(read_stdin(EXPECTED)?), (None, format), rules)
    } else {
        walk::open(path).and_then(|file| look(file, (file_name, format), rules))
    };
    match read {
        Ok(Ok(input)) => Ok(input),
        Ok(Err(unknown @ (Unknown::Empty | Unknown::Binary | Unknown::LooksLike(_)))) => {
            Err(Failure::failed(format!("{name}: {unknown}")))
        }
        Ok(Err(unknown @ Unknown::Nothing)) => Err(Failure::failed(format!(
            "{name}: {unknown}, or `{{\"turns\": [{{\"user_intent\", \"action_taken\", \"pending_items\"}}]}}`"
        ))),
        Err(error) => Err(Failure::failed(format!("{name}: cannot be read: {error}"))),
    }
}

/// Finds out what it is, and reads it; nothing of a private file is told.
fn look(
    mut input: impl Read + Seek,
    (file_name, format): (Option<&str>, Option<Format>),
    rules: Rules<'_>,
) -> io::Result<Result<Input, Unknown>> {
    let Begun { head, is_private } = begin(&mut input)?;
    if is_private {
        return Ok(Ok(Input::default()));
    }
    let format = match format {
        Some(format) => format,
        None => match source::detect(&head, file_name) {
            Ok(format) => format,
            Err(unknown) => return Ok(turns(input, rules)?.ok_or(unknown)),
        },
    };
    transcript(input, format, rules).map(Ok)
}

/// The turns of a document; none if it is no such document.
fn turns(input: impl Read, rules: Rules<'_>) -> io::Result<Option<Input>> {
    let mut bytes = Vec::new();
    input.take(HANDED_BYTES_MAX as u64).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(document(text.trim_start_matches('\u{feff}'), rules).map(|(turns, findings)| {
        let mut told = Told::new(None);
        turns.into_iter().for_each(|turn| told.add(turn, rules));
        Input { told: vec![told], findings }
    }))
}

fn transcript(input: impl Read + Seek, format: Format, rules: Rules<'_>) -> io::Result<Input> {
    let mut read = Input::default();
    hand_over(input, ("", format), (rules.gate, ""), &mut |heard| {
        match heard {
            Heard::Session(session) => {
                read.told.push(Told::new(Some(session.native_id.clone())));
            }
            Heard::Entry(entry, _) => {
                if let Some(told) = read.told.last_mut() {
                    told.push(entry, rules);
                }
            }
            Heard::Finding(finding) => read.findings.push(finding),
        }
        ControlFlow::Continue(())
    })?;
    Ok(read)
}
