//! The lines of a file that may be shown: nothing of a private block, and nothing that the gate masks.

use super::document::{Document, private_lines, without};
use super::line;
use crate::privacy::{Gate, Redacted, Woven};
use std::borrow::Cow;
use std::collections::HashSet;

/// What is shown in place of a line that only the whole text tells to be secret.
const MASKED: &str = "<SECRET>";

/// The public lines of a document with their numbers from 1, without line ends.
pub(super) fn public_lines<'t>(document: &Document<'t>) -> Vec<(u32, Cow<'t, str>)> {
    let text = document.text();
    let lines = line::lines(text);
    let hidden = private_lines(text, &lines, document.private());
    let is_hidden = |at: usize| hidden.get(at).copied().unwrap_or_default();
    let shown = lines.iter().enumerate().filter(|(at, _)| !is_hidden(*at));
    let public = shown.map(|(at, line)| {
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let end = line.start + line::bare(text.get(line.start..line.end).unwrap_or_default()).len();
        (number, without(text, line.start..end, document.private()))
    });
    public.collect()
}

/// Shows lines of one document. A key block is a secret as a whole while no line of it is; so each line is
/// looked for in the masked text.
pub(super) struct Shown<'g> {
    gate: &'g Gate,
    /// The lines of the masked text; none where nothing was masked.
    kept: Option<HashSet<String>>,
}

impl<'g> Shown<'g> {
    pub(super) fn of(lines: &[(u32, Cow<'_, str>)], gate: &'g Gate) -> Shown<'g> {
        let all: Vec<&str> = lines.iter().map(|(_, line)| line.as_ref()).collect();
        let all = all.join("\n");
        let masked = gate.redact(&all);
        let kept = (masked.as_str() != all)
            .then(|| masked.as_str().lines().map(|line| line.trim().to_owned()).collect());
        Shown { gate, kept }
    }

    /// Lines as they may be shown.
    pub(super) fn text(&self, text: &str) -> Redacted {
        if self.kept.is_none() {
            return self.gate.redact(text);
        }
        let lines: Vec<Redacted> = text.lines().map(|line| self.line(line)).collect();
        let pieces = lines.iter().enumerate().flat_map(|(at, line)| {
            [Woven::Ours(if at == 0 { "" } else { "\n" }), Woven::Passed(line)]
        });
        Redacted::weave(&pieces.collect::<Vec<_>>())
    }

    /// The line as it may be shown.
    pub(super) fn line(&self, line: &str) -> Redacted {
        let masked = self.gate.redact(line);
        let is_safe = |kept: &HashSet<String>| kept.contains(masked.as_str().trim());
        match &self.kept {
            Some(kept) if masked.as_str() == line && !is_safe(kept) => self.gate.redact(MASKED),
            Some(_) | None => masked,
        }
    }
}
