//! Searches for exact text, and prints the hits as ConKeeper's own search does.

use super::document::Document;
use super::kind::{CONFIG, Files, Kind, SESSIONS};
use super::name::session_day;
use super::public::{Shown, public_lines};
use super::tag::Tag;
use crate::privacy::{Gate, Redacted, Woven};

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct LiteralQuery<'a> {
    pub text: &'a str,
    pub sessions: bool,
    /// Earliest day of sessions that are named for a day.
    pub since: Option<&'a str>,
    pub category: Option<&'a str>,
    pub root: &'a str,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct LiteralPage {
    pub page: Redacted,
    /// Number of matching lines, and of files with such lines.
    pub matches: usize,
    pub files: usize,
}

/// Searches the lines of all files, without tags. Each hit is shown below the category tags of its
/// entry.
pub(crate) fn literal(files: &Files, query: &LiteralQuery<'_>, gate: &Gate) -> LiteralPage {
    let label = |text: &str| Redacted::weave(&[Woven::Label(text)]);
    let mut found = LiteralPage::default();
    let asked = gate.redact(query.text);
    let mut pieces: Vec<Redacted> = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| is_searched(path, query)) {
        let (document, _) = Document::parse(Kind::of_path(path), text);
        if document.is_private() || query.text.is_empty() {
            continue;
        }
        let lines = matching_lines(&document, query, gate);
        if !lines.is_empty() {
            pieces.push(label(&format!("\n### {}{path}\n\n", query.root)));
            found.matches += lines.len();
            found.files += 1;
            pieces.extend(lines);
        }
    }
    let asked = Woven::Passed(&asked);
    if found.matches == 0 {
        let (before, after) = ("No results found for \"", "\" in project memory.\n");
        found.page = Redacted::weave(&[Woven::Ours(before), asked, Woven::Ours(after)]);
        return found;
    }
    let (matches, files) = (found.matches, found.files);
    let end = label(&format!("\n---\nFound {matches} matches across {files} files.\n"));
    let mut parts = vec![Woven::Ours("## Results for: \""), asked, Woven::Ours("\"\n\n")];
    parts.extend(pieces.iter().map(Woven::Passed));
    parts.push(Woven::Passed(&end));
    found.page = Redacted::weave(&parts);
    found
}

fn is_searched(path: &str, query: &LiteralQuery<'_>) -> bool {
    if !path.starts_with(SESSIONS) {
        return path != CONFIG;
    }
    let is_late = |since: &str| session_day(path).is_none_or(|day| since <= day);
    query.sessions && query.since.is_none_or(is_late)
}

fn matching_lines(document: &Document<'_>, query: &LiteralQuery<'_>, gate: &Gate) -> Vec<Redacted> {
    let lines = public_lines(document);
    if !lines.iter().any(|(_, line)| line.contains(query.text)) {
        return Vec::new();
    }
    let shown = Shown::of(&lines, gate);
    let mut found = Vec::new();
    for (number, line) in lines.iter().filter(|(_, line)| line.contains(query.text)) {
        if Tag::parse(line).is_some() {
            continue;
        }
        let after = document.blocks().partition_point(|block| block.line <= *number);
        let block = after.checked_sub(1).and_then(|at| document.blocks().get(at));
        let tags = block.into_iter().flat_map(|block| document.tags(block));
        let tags: Vec<Tag<'_>> = tags.filter(|tag| tag.name == "category").collect();
        if query.category.is_some_and(|wanted| tags.iter().all(|tag| tag.value != wanted)) {
            continue;
        }
        let tags = tags.iter().map(|tag| format!("<!-- @category: {} -->\n", tag.value));
        found.push(Redacted::weave(&[
            Woven::Passed(&gate.redact(&tags.collect::<String>())),
            Woven::Label(&format!("**Line {number}:** ")),
            Woven::Passed(&shown.line(line)),
            Woven::Ours("\n"),
        ]));
    }
    found
}
