//! Kinds of files by path, the structure of each kind (the ConKeeper schema), and initial files.
//! Paths are relative to the directory, with `/`.

use crate::domain::named;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Files of a directory by path, which is relative to it and uses `/`.
pub type Files = BTreeMap<String, Arc<str>>;

pub(crate) const ACTIVE_CONTEXT: &str = "active-context.md";
pub(crate) const PRODUCT_CONTEXT: &str = "product-context.md";
pub(crate) const PROGRESS: &str = "progress.md";
pub(crate) const PATTERNS: &str = "patterns.md";
pub(crate) const GLOSSARY: &str = "glossary.md";
pub(crate) const CONFIG: &str = ".memory-config.md";
pub(crate) const DECISIONS: &str = "decisions/";
pub(crate) const SESSIONS: &str = "sessions/";
/// Folder for entries beyond the limits of the lists, by month.
pub(crate) const ARCHIVE: &str = "archive/";
/// Section of `patterns.md` for solved failures, after those of the schema.
pub(crate) const LESSONS: &str = "Lessons";

named! {
    /// Kind of a file of the directory.
    pub Kind {
        /// Current work.
        ActiveContext = "active-context",
        /// Description of the project.
        ProductContext = "product-context",
        /// Tasks.
        Progress = "progress",
        /// Recurring patterns.
        Patterns = "patterns",
        /// Terms.
        Glossary = "glossary",
        /// An architecture decision record.
        Decision = "decision",
        /// Result of a session.
        Session = "session",
        /// A look back on sessions; has categories of its own.
        Retrospective = "retrospective",
        /// Settings.
        Config = "config",
        /// A file of a person that the schema does not know.
        Other = "other",
    }
}

impl Kind {
    /// Kind of the file at `path`.
    pub fn of_path(path: &str) -> Kind {
        match path {
            ACTIVE_CONTEXT => Kind::ActiveContext,
            PRODUCT_CONTEXT => Kind::ProductContext,
            PROGRESS => Kind::Progress,
            PATTERNS => Kind::Patterns,
            GLOSSARY => Kind::Glossary,
            CONFIG => Kind::Config,
            path if !path.ends_with(".md") => Kind::Other,
            path if path.starts_with(DECISIONS) => Kind::Decision,
            path if path.starts_with("retrospectives/") => Kind::Retrospective,
            path if path.starts_with(SESSIONS) && path.ends_with("-retro.md") => {
                Kind::Retrospective
            }
            path if path.starts_with(SESSIONS) => Kind::Session,
            _ => Kind::Other,
        }
    }

    /// Heading of the file; its prefix for records and sessions. `None` if the schema requires none.
    pub fn title(self) -> Option<&'static str> {
        match self {
            Kind::ActiveContext => Some("Active Context"),
            Kind::ProductContext => Some("Product Context"),
            Kind::Progress => Some("Progress Tracker"),
            Kind::Patterns => Some("Project Patterns"),
            Kind::Glossary => Some("Project Glossary"),
            Kind::Decision => Some("ADR-"),
            Kind::Session => Some("Session: "),
            Kind::Retrospective | Kind::Config | Kind::Other => None,
        }
    }

    /// Second-level headings, in order.
    pub fn sections(self) -> &'static [&'static str] {
        const PRODUCT: &[&str] =
            &["Project Overview", "Architecture", "Key Stakeholders", "Constraints", "Non-Goals"];
        const DECISION: &[&str] =
            &["Context", "Decision", "Rationale", "Consequences", "Alternatives Considered"];
        const SESSION: &[&str] = &[
            "Summary", "Work Completed", "Decisions Made", "Context for Next Session",
            "Open Questions",
        ];
        match self {
            Kind::ActiveContext => {
                &["Current Focus", "Recent Decisions", "Open Questions", "Blockers"]
            }
            Kind::ProductContext => PRODUCT,
            Kind::Progress => &["In Progress", "Completed (Recent)", "Backlog"],
            Kind::Patterns => &["Code Conventions", "Architecture Patterns", "Testing Patterns"],
            Kind::Glossary => &["Terms", "Abbreviations"],
            Kind::Decision => DECISION,
            Kind::Session => SESSION,
            Kind::Retrospective | Kind::Config | Kind::Other => &[],
        }
    }

    /// True if every heading must be there; in other files a heading without entries may be missing.
    pub(super) fn needs_headings(self) -> bool {
        matches!(self, Kind::ActiveContext | Kind::ProductContext)
    }

    /// Start of the last line, after its asterisk; `None` without such a line.
    pub fn footer(self) -> Option<&'static str> {
        match self {
            Kind::ActiveContext => Some("Session: "),
            Kind::ProductContext | Kind::Progress | Kind::Patterns | Kind::Glossary => {
                Some("Last updated: ")
            }
            Kind::Session => Some("Session duration: "),
            Kind::Decision | Kind::Retrospective | Kind::Config | Kind::Other => None,
        }
    }
}

/// Selection of files for `annalist memory init`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Initial {
    /// Required files.
    Required,
    /// Every file of the schema, and the settings.
    All,
}

/// Files of a new directory and their texts, for a day such as `2026-11-21`. The folders of records
/// and sessions must be made too; they may be empty.
pub fn initial_files(which: Initial, day: &str) -> Vec<(&'static str, String)> {
    let required = [ACTIVE_CONTEXT, PRODUCT_CONTEXT];
    let others = [PROGRESS, PATTERNS, GLOSSARY, CONFIG];
    let others = others.into_iter().filter(|_| which == Initial::All);
    let paths = required.into_iter().chain(others);
    paths.map(|path| (path, template(Kind::of_path(path), day))).collect()
}

/// An empty file of a kind.
pub(super) fn template(kind: Kind, day: &str) -> String {
    if kind == Kind::Config {
        return CONFIG_TEXT.to_owned();
    }
    let mut text = String::new();
    if let Some(title) = kind.title() {
        let day = if kind == Kind::Session { day } else { "" };
        text.push_str(&format!("# {title}{day}\n\n"));
    }
    for section in kind.sections() {
        text.push_str(&format!("## {section}\n{}\n", hint(kind, section)));
    }
    if let Some(footer) = footer(kind, day) {
        text.push_str(&format!("---\n{footer}\n"));
    }
    text
}

pub(super) fn footer(kind: Kind, day: &str) -> Option<String> {
    let value = if kind == Kind::Session { UNKNOWN } else { day };
    let by = if kind == Kind::ProductContext { " by annalist" } else { "" };
    kind.footer().map(|head| format!("*{head}{value}{by}*"))
}

pub(super) const UNKNOWN: &str = "unknown";

/// Placeholder below an empty heading: a comment, or a table head.
pub(super) fn hint(kind: Kind, section: &str) -> String {
    let words = match (kind, section) {
        (Kind::ActiveContext, "Current Focus") => "What is being worked on, in a sentence.",
        (Kind::ActiveContext, "Recent Decisions") => "What was decided lately and matters now.",
        (Kind::ActiveContext, "Open Questions") => "What must be answered before work goes on.",
        (Kind::ActiveContext, "Blockers") => "What stands in the way.",
        (Kind::ProductContext, "Project Overview") => "What it is and which problem it solves.",
        (Kind::ProductContext, "Architecture") => "Its parts and what they are built with.",
        (Kind::ProductContext, "Key Stakeholders") => "Who uses it, who looks after it.",
        (Kind::ProductContext, "Constraints") => "Limits by technique, business or law.",
        (Kind::ProductContext, "Non-Goals") => "What it does not do on purpose.",
        (Kind::Glossary, section) => return table_head(section).to_owned(),
        _ => return String::new(),
    };
    format!("<!-- {words} -->\n")
}

pub(super) fn table_head(section: &str) -> &'static str {
    match section {
        "Abbreviations" => "| Abbrev | Expansion |\n|--------|-----------|\n",
        _ => "| Term | Definition |\n|------|------------|\n",
    }
}

const CONFIG_TEXT: &str = "\
---
suggest_memories: true         # whether agents may propose memories with the tool `note`
auto_load: true                # whether a session starts with its memory
output_style: normal           # of a sync: quiet, normal or explanatory
token_budget: standard         # economy, light, standard or detailed
auto_sync_threshold: 60        # per cent of the window: memory is synced
hard_block_threshold: 80       # per cent of the window: prompts wait for a sync
context_window_tokens: 200000  # the window of the model
---
";

#[cfg(test)]
mod template_tests {
    use super::*;
    use crate::memory_dir::{Document, MemoryConfig, Part};

    #[test]
    fn templates_have_the_headings_of_the_schema() {
        for (path, text) in initial_files(Initial::All, "2026-11-21") {
            let kind = Kind::of_path(path);
            let (document, odd) = Document::parse(kind, &text);
            assert!(odd.is_empty(), "{path}: {odd:?}");
            assert_eq!(document.title(), kind.title().unwrap_or_default());
            let sections = document.blocks.iter().filter(|block| block.part == Part::Section);
            let names: Vec<&str> = sections.map(|block| document.heading_words(block)).collect();
            assert_eq!(names, kind.sections(), "{path}");
            let footers = document.blocks.iter().filter(|block| block.part == Part::Footer);
            assert_eq!(footers.count(), usize::from(kind.footer().is_some()), "{path}");
            assert_eq!(document.entries().count(), 0, "{path}");
        }
    }

    #[test]
    fn only_what_must_be_there_is_written_at_first() {
        let paths: Vec<&str> = initial_files(Initial::Required, "2026-11-21")
            .into_iter()
            .map(|(path, _)| path)
            .collect();
        assert_eq!(paths, ["active-context.md", "product-context.md"]);
    }

    #[test]
    fn the_settings_of_the_template_are_the_defaults() {
        let (config, odd) = MemoryConfig::parse(CONFIG_TEXT);
        assert!(odd.is_empty(), "{odd:?}");
        let expected =
            MemoryConfig { context_window_tokens: Some(200_000), ..MemoryConfig::default() };
        assert_eq!(config, expected);
    }
}
