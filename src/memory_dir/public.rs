//! Public text of a file: nothing from private blocks, nothing that the gate masks.

use super::document::{Block, Document, Part, private_lines, without};
use super::line;
use super::tag::words_tag;
use crate::privacy::{Gate, Redacted, Woven};
use std::borrow::Cow;
use std::collections::HashSet;

const MASKED: &str = "<SECRET>";

/// Public lines of a document with their numbers from 1, without line endings.
pub(super) fn public_lines<'t>(document: &Document<'t>) -> Vec<(u32, Cow<'t, str>)> {
    let text = document.text;
    let lines = line::lines(text);
    let hidden = private_lines(text, &lines, &document.private);
    let is_hidden = |at: usize| hidden.get(at).copied().unwrap_or_default();
    let shown = lines.iter().enumerate().filter(|(at, _)| !is_hidden(*at));
    let public = shown.map(|(at, line)| {
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let end = line.start + line::bare(text.get(line.clone()).unwrap_or_default()).len();
        (number, without(text, line.start..end, &document.private))
    });
    public.collect()
}

/// Shows lines of one document. A key block is a secret only as a whole, so each line is looked up
/// in the masked text.
pub(super) struct Shown<'g> {
    gate: &'g Gate,
    /// Lines of the masked text; `None` if nothing was masked.
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

    pub(super) fn text(&self, text: &str) -> Redacted {
        if self.kept.is_none() {
            return self.gate.redact(text);
        }
        joined(&text.lines().map(|line| self.line(line)).collect::<Vec<_>>(), "\n")
    }

    pub(super) fn line(&self, line: &str) -> Redacted {
        let masked = self.gate.redact(line);
        let is_safe = |kept: &HashSet<String>| kept.contains(masked.as_str().trim());
        match &self.kept {
            Some(kept) if masked.as_str() == line && !is_safe(kept) => self.gate.redact(MASKED),
            Some(_) | None => masked,
        }
    }
}

/// An entry that may be shown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Readable {
    pub line: u32,
    pub is_head: bool,
    /// Heading of its section.
    pub section: String,
    /// Tag that we gave it.
    pub tag: Option<String>,
    /// True if it has the tag of its words, which it loses with the first edit.
    pub is_unedited: bool,
    /// Headings and table head between it and the entry before.
    pub heading: Option<Redacted>,
    /// Its lines, without tags and final line ending.
    pub text: Redacted,
}

impl Readable {
    /// Its text without the list mark and the box of its first line.
    pub(crate) fn unmarked(&self) -> Redacted {
        let text = self.text.as_str();
        let body = line::item(text.trim_start()).unwrap_or(text);
        let body = line::task(body).map_or(body, |(_, words)| words);
        self.text.cut(text.len() - body.len()..text.len())
    }
}

/// Public entries of `document` in order; none if the file is private. Includes the file heading
/// and the metadata of a record, but no comments, tags and footers.
pub(crate) fn readable(document: &Document<'_>, gate: &Gate) -> Vec<Readable> {
    if document.is_private() {
        return Vec::new();
    }
    let lines = public_lines(document);
    let shown = Shown::of(&lines, gate);
    let text = |block: &Block| {
        let public = document.public(block);
        let public = public.trim_matches(['\r', '\n']).trim_end();
        (!public.trim().is_empty()).then(|| shown.text(public))
    };
    let (mut entries, mut headings) = (Vec::new(), Vec::new());
    // The last line is no entry if a person wrote below it.
    let end = document.misplaced_footer();
    for block in document.blocks.iter().filter(|it| Some(it.line) != end) {
        if block.part == Part::Section {
            headings = text(block).into_iter().collect();
        } else if matches!(block.part, Part::Heading | Part::TableHead) {
            headings.extend(text(block));
        } else if matches!(block.part, Part::Title | Part::Meta | Part::Entry(_)) {
            let Some(text) = text(block) else { continue };
            let above: Vec<Redacted> = std::mem::take(&mut headings);
            let heading = (!above.is_empty()).then(|| joined(&above, "\n"));
            let is_head = matches!(block.part, Part::Title | Part::Meta);
            let section = document.section(block).to_owned();
            let tag = document.tags(block).find_map(|tag| tag.ours()).map(str::to_owned);
            let words = words_tag(document.body(block));
            let is_unedited = document.tags(block).any(|tag| tag.value == words);
            let line = block.line;
            entries.push(Readable { line, is_head, section, tag, is_unedited, heading, text });
        }
    }
    entries
}

/// Joins texts by a literal of ours.
pub(crate) fn joined(texts: &[Redacted], between: &'static str) -> Redacted {
    let pieces = texts.iter().flat_map(|text| [Woven::Ours(between), Woven::Passed(text)]);
    Redacted::weave(&pieces.skip(1).collect::<Vec<_>>())
}

#[cfg(test)]
mod readable_tests {
    use super::*;
    use crate::memory_dir::Kind;
    use crate::privacy::Pii;

    #[track_caller]
    fn check(text: &str, expected: &[(u32, &str, &str)]) {
        let gate = Gate::new(&Pii::ALL);
        let (document, _) = Document::parse(Kind::of_path("active-context.md"), text);
        let entries = readable(&document, &gate);
        let found: Vec<(u32, &str, &str)> = entries
            .iter()
            .map(|it| (it.line, it.heading.as_ref().map_or("", Redacted::as_str), it.text.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn entries_stand_under_their_headings() {
        check(
            "# Active Context\n\n## Focus\n- one\n  more\n<!-- @tag: x -->\n- two\n\n## Open\n\n## Blockers\n### CI\nred\n",
            &[
                (1, "", "# Active Context"),
                (4, "## Focus", "- one\n  more"),
                (7, "", "- two"),
                (13, "## Blockers\n### CI", "red"),
            ],
        );
        check(
            "## Terms\n\n| Term | Is |\n|---|---|\n| WAL | a log |\r\n| LSN | a place |\n",
            &[
                (5, "## Terms\n| Term | Is |\n|---|---|", "| WAL | a log |"),
                (6, "", "| LSN | a place |"),
            ],
        );
    }

    #[test]
    fn nothing_private_and_nothing_secret_is_readable() {
        check("- a <private>b</private> c\n- <private>\n- d\n</private>\n", &[(1, "", "- a  c")]);
        check("---\nprivate: true\n---\n- a\n", &[]);
        check("- mail ada@example.org\n", &[(1, "", "- mail <EMAIL>")]);
        // The single lines of a key look harmless.
        let key = "-----BEGIN PRIVATE KEY-----\n- MIIEvQIBADANBgkqhkiG9w0B\n- qqqq\n-----END PRIVATE KEY-----\n";
        let gate = Gate::new(&Pii::ALL);
        let text = format!("- before\n{key}- after\n");
        let (document, _) = Document::parse(Kind::Other, &text);
        let entries = readable(&document, &gate);
        let all: Vec<&str> = entries.iter().map(|it| it.text.as_str()).collect();
        assert!(!all.join("\n").contains("MIIE") && !all.join("\n").contains("qqqq"), "{all:?}");
        assert_eq!((all.first(), all.last()), (Some(&"- before\n<SECRET>"), Some(&"- after")));
    }
}
