//! What a file of the directory is, by its path, and what its kind must look like (the schema of
//! ConKeeper). A path is relative to the directory, with `/`.

use crate::domain::named;

/// The file that says what is going on now.
pub const ACTIVE_CONTEXT: &str = "active-context.md";
/// The file that says what the project is.
pub const PRODUCT_CONTEXT: &str = "product-context.md";
/// The file of tasks.
pub const PROGRESS: &str = "progress.md";
/// The file of recurring patterns.
pub const PATTERNS: &str = "patterns.md";
/// The file of terms.
pub const GLOSSARY: &str = "glossary.md";
/// The file of settings.
pub const CONFIG: &str = ".memory-config.md";
/// The folder of architecture decision records.
pub const DECISIONS: &str = "decisions/";
/// The folder of sessions.
pub const SESSIONS: &str = "sessions/";

named! {
    /// What a file of the directory is.
    Kind {
        /// What is going on now.
        ActiveContext = "active-context",
        /// What the project is.
        ProductContext = "product-context",
        /// Tasks.
        Progress = "progress",
        /// Recurring patterns.
        Patterns = "patterns",
        /// Terms.
        Glossary = "glossary",
        /// An architecture decision record.
        Decision = "decision",
        /// What a session came to.
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
    /// What the file at `path` is.
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

    /// The heading of the file; for records and sessions what it begins with. None where the schema
    /// asks for none.
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

    /// The headings of the second level, in their order.
    pub fn sections(self) -> &'static [&'static str] {
        match self {
            Kind::ActiveContext => {
                &["Current Focus", "Recent Decisions", "Open Questions", "Blockers"]
            }
            Kind::ProductContext => &[
                "Project Overview",
                "Architecture",
                "Key Stakeholders",
                "Constraints",
                "Non-Goals",
            ],
            Kind::Progress => &["In Progress", "Completed (Recent)", "Backlog"],
            Kind::Patterns => &["Code Conventions", "Architecture Patterns", "Testing Patterns"],
            Kind::Glossary => &["Terms", "Abbreviations"],
            Kind::Decision => {
                &["Context", "Decision", "Rationale", "Consequences", "Alternatives Considered"]
            }
            Kind::Session => &[
                "Summary",
                "Work Completed",
                "Decisions Made",
                "Context for Next Session",
                "Open Questions",
            ],
            Kind::Retrospective | Kind::Config | Kind::Other => &[],
        }
    }

    /// What the line at the end begins with, behind its asterisk; none where there is no such line.
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
