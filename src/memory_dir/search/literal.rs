//! Finds a text letter by letter, and prints it as ConKeeper's own search does.

use crate::memory_dir::Files;
use crate::memory_dir::document::Document;
use crate::memory_dir::kind::{CONFIG, Kind, SESSIONS};
use crate::memory_dir::name::session_day;
use crate::memory_dir::public::{Shown, public_lines};
use crate::memory_dir::tag::Tag;
use crate::privacy::{Gate, Redacted, Woven};
use std::collections::BTreeMap;

/// What is looked for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Literal<'a> {
    /// The text, with its capitals.
    pub text: &'a str,
    /// Whether sessions are searched too.
    pub sessions: bool,
    /// Of sessions that are named for a day, only those of this day or later.
    pub since: Option<&'a str>,
    /// Only lines of entries with this category.
    pub category: Option<&'a str>,
    /// What stands before the paths, such as `.claude/memory/`.
    pub root: &'a str,
}

/// What was found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Found {
    /// The page to print.
    pub page: Redacted,
    /// Lines that have the text.
    pub matches: usize,
    /// Files that have such lines.
    pub files: usize,
}

/// Looks for a text in the lines of all files, tags but not their lines included. The tags of an entry stand
/// above each of its lines that is found: a tag belongs to what stands directly above it, not to what is
/// near.
pub fn literal(files: &Files, query: &Literal<'_>, gate: &Gate) -> Found {
    let mut found = Found { page: Redacted::default(), matches: 0, files: 0 };
    let asked = gate.redact(query.text);
    let mut pieces: Vec<Redacted> = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| is_searched(path, query)) {
        let (document, _) = Document::parse(Kind::of_path(path), text);
        if document.is_private() || query.text.is_empty() {
            continue;
        }
        let before = found.matches;
        let heading = label(&format!("\n### {}{path}\n\n", query.root));
        pieces.push(heading);
        matches(&document, query, gate, |line| {
            found.matches += 1;
            pieces.push(line);
        });
        match found.matches == before {
            true => {
                pieces.pop();
            }
            false => found.files += 1,
        }
    }
    let asked = Woven::Passed(&asked);
    if found.matches == 0 {
        let parts =
            [Woven::Ours("No results found for \""), asked, Woven::Ours("\" in project memory.\n")];
        found.page = Redacted::weave(&parts);
        return found;
    }
    let end =
        label(&format!("\n---\nFound {} matches across {} files.\n", found.matches, found.files));
    let mut parts = vec![Woven::Ours("## Results for: \""), asked, Woven::Ours("\"\n\n")];
    parts.extend(pieces.iter().map(Woven::Passed));
    parts.push(Woven::Passed(&end));
    found.page = Redacted::weave(&parts);
    found
}

/// Words of our own, with names and counts.
fn label(text: &str) -> Redacted {
    Redacted::weave(&[Woven::Label(text)])
}

fn is_searched(path: &str, query: &Literal<'_>) -> bool {
    if !path.starts_with(SESSIONS) {
        return path != CONFIG;
    }
    let is_late = |since: &str| session_day(path).is_none_or(|day| since <= day);
    query.sessions && query.since.is_none_or(is_late)
}

/// Hands over each line that has the text.
fn matches(
    document: &Document<'_>,
    query: &Literal<'_>,
    gate: &Gate,
    mut take: impl FnMut(Redacted),
) {
    let lines = public_lines(document);
    if !lines.iter().any(|(_, line)| line.contains(query.text)) {
        return;
    }
    let shown = Shown::of(&lines, gate);
    let mut blocks = document.blocks().iter().peekable();
    for (number, line) in lines.iter().filter(|(_, line)| line.contains(query.text)) {
        if Tag::parse(line).is_some() {
            continue;
        }
        while blocks.peek().is_some_and(|block| ends(document, block) <= *number) {
            blocks.next();
        }
        let mut tags: BTreeMap<usize, Tag<'_>> = BTreeMap::new();
        if let Some(block) = blocks.peek() {
            tags.extend(document.tags(block).filter(|tag| tag.name == "category").enumerate());
        }
        if query.category.is_some_and(|wanted| tags.values().all(|tag| tag.value != wanted)) {
            continue;
        }
        let tags: String =
            tags.values().map(|tag| format!("<!-- @category: {} -->\n", tag.value)).collect();
        let tags = gate.redact(&tags);
        let line = shown.line(line);
        let number = format!("**Line {number}:** ");
        let parts =
            [Woven::Passed(&tags), Woven::Label(&number), Woven::Passed(&line), Woven::Ours("\n")];
        take(Redacted::weave(&parts));
    }
}

/// The line behind a block.
fn ends(document: &Document<'_>, block: &crate::memory_dir::document::Block) -> u32 {
    let lines = document.raw(block).lines().count();
    block.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX))
}
