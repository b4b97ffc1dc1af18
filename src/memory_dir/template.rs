//! Files as they begin.

use super::kind::{self, Kind};

/// What `annalist memory init` writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Initial {
    /// What must be there.
    Required,
    /// Every file of the schema, and the settings.
    All,
}

/// The files of a new directory, with their texts, for a day such as `2026-11-21`. The folders of records and
/// sessions are to be made too; they may be empty.
pub fn initial_files(which: Initial, day: &str) -> Vec<(&'static str, String)> {
    let required = [kind::ACTIVE_CONTEXT, kind::PRODUCT_CONTEXT];
    let others = [kind::PROGRESS, kind::PATTERNS, kind::GLOSSARY, kind::CONFIG];
    let others: &[&str] = match which {
        Initial::Required => &[],
        Initial::All => &others,
    };
    let paths = required.into_iter().chain(others.iter().copied());
    paths.map(|path| (path, template(Kind::of_path(path), day))).collect()
}

/// A file of a kind, with nothing noted yet.
pub(super) fn template(kind: Kind, day: &str) -> String {
    if kind == Kind::Config {
        return CONFIG.to_owned();
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

/// The last line of a file of a kind.
pub(super) fn footer(kind: Kind, day: &str) -> Option<String> {
    let value = match kind {
        Kind::ProductContext => format!("{day} by annalist"),
        Kind::Session => UNKNOWN_DURATION.to_owned(),
        Kind::ActiveContext
        | Kind::Progress
        | Kind::Patterns
        | Kind::Glossary
        | Kind::Decision
        | Kind::Retrospective
        | Kind::Config
        | Kind::Other => day.to_owned(),
    };
    kind.footer().map(|head| format!("*{head}{value}*"))
}

/// What a session's footer says where nobody knows how long it was.
pub(super) const UNKNOWN_DURATION: &str = "unknown";

/// What stands below an empty heading: a comment, or the head of a table.
pub(super) fn hint(kind: Kind, section: &str) -> &'static str {
    match (kind, section) {
        (Kind::ActiveContext, "Current Focus") => {
            "<!-- What is being worked on, in a sentence. -->\n"
        }
        (Kind::ActiveContext, "Recent Decisions") => {
            "<!-- What was decided lately and matters now. -->\n"
        }
        (Kind::ActiveContext, "Open Questions") => {
            "<!-- What must be answered before work goes on. -->\n"
        }
        (Kind::ActiveContext, "Blockers") => "<!-- What stands in the way. -->\n",
        (Kind::ProductContext, "Project Overview") => {
            "<!-- What it is and which problem it solves. -->\n"
        }
        (Kind::ProductContext, "Architecture") => {
            "<!-- Its parts and what they are built with. -->\n"
        }
        (Kind::ProductContext, "Key Stakeholders") => "<!-- Who uses it, who looks after it. -->\n",
        (Kind::ProductContext, "Constraints") => "<!-- Limits by technique, business or law. -->\n",
        (Kind::ProductContext, "Non-Goals") => "<!-- What it does not do on purpose. -->\n",
        (Kind::Glossary, section) => table_head(section),
        _ => "",
    }
}

/// Heading and rule of a table of the glossary.
pub(super) fn table_head(section: &str) -> &'static str {
    match section {
        "Abbreviations" => "| Abbrev | Expansion |\n|--------|-----------|\n",
        _ => "| Term | Definition |\n|------|------------|\n",
    }
}

/// The settings with their defaults.
const CONFIG: &str = "\
---
suggest_memories: true         # whether additions are suggested
auto_load: true                # whether a session starts with its memory
output_style: normal           # quiet, normal or explanatory
token_budget: standard         # economy, light, standard or detailed
auto_sync_threshold: 60        # per cent of the window: memory is synced
hard_block_threshold: 80       # per cent of the window: prompts wait for a sync
context_window_tokens: 200000  # the window of the model
---
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_dir::{Document, MemoryConfig, Part};

    #[test]
    fn templates_have_the_headings_of_the_schema() {
        for (path, text) in initial_files(Initial::All, "2026-11-21") {
            let kind = Kind::of_path(path);
            let (document, odd) = Document::parse(kind, &text);
            assert!(odd.is_empty(), "{path}: {odd:?}");
            assert_eq!(document.title(), kind.title().unwrap_or_default());
            let sections = document.blocks().iter().filter(|block| block.part == Part::Section);
            let names: Vec<&str> = sections.map(|block| document.heading_words(block)).collect();
            assert_eq!(names, kind.sections(), "{path}");
            let footers = document.blocks().iter().filter(|block| block.part == Part::Footer);
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
        let (config, odd) = MemoryConfig::parse(CONFIG);
        assert!(odd.is_empty(), "{odd:?}");
        let expected =
            MemoryConfig { context_window_tokens: Some(200_000), ..MemoryConfig::default() };
        assert_eq!(config, expected);
    }
}
