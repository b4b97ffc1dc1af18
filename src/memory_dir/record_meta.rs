//! What stands at the top of a record: on three lines, or on one with bars between.

use super::document::{Document, Part};
use super::name::adr_number;
use crate::memory_dir::kind::DECISIONS;

/// Whether a decision holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Status {
    /// Not decided yet.
    Proposed,
    /// It holds.
    Accepted,
    /// It holds no more.
    Deprecated,
    /// The record with this number took its place.
    SupersededBy(u32),
}

impl Status {
    /// Reads a status, in any case.
    pub fn parse(text: &str) -> Option<Status> {
        let text = text.trim().to_ascii_lowercase();
        match text.as_str() {
            "proposed" => Some(Status::Proposed),
            "accepted" => Some(Status::Accepted),
            "deprecated" => Some(Status::Deprecated),
            other => {
                let label = other.strip_prefix("superseded by ")?.trim();
                let label = label.trim_start_matches('[').split(']').next().unwrap_or(label);
                adr_number(&format!("{DECISIONS}{label}")).map(Status::SupersededBy)
            }
        }
    }
}

/// What stands at the top of a record, with the lines from 1.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RecordMeta<'t> {
    /// The status, if it is one.
    pub status: Option<(Status, u32)>,
    /// Where the status stands, whatever it says.
    pub status_line: Option<u32>,
    /// The date, as it stands there.
    pub date: Option<(&'t str, u32)>,
    /// The tags.
    pub tags: Vec<&'t str>,
}

/// Reads the top of a record.
pub fn meta<'t>(document: &Document<'t>) -> RecordMeta<'t> {
    let mut meta = RecordMeta::default();
    let lines = document.blocks().iter().filter(|block| block.part == Part::Meta);
    for block in lines {
        for field in document.body(block).split('|') {
            let Some((name, value)) = field.split_once(":**") else { continue };
            let value = value.trim();
            match name.trim().trim_start_matches('*').to_ascii_lowercase().as_str() {
                "status" => {
                    meta.status = Status::parse(value).map(|status| (status, block.line));
                    meta.status_line = Some(block.line);
                }
                "date" => meta.date = Some((value, block.line)),
                "tags" => {
                    meta.tags =
                        value.split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect();
                }
                _ => {}
            }
        }
    }
    meta
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_dir::Kind;

    #[test]
    fn three_lines_and_one_line_say_the_same() {
        let three = "# ADR-001: X\n\n**Status:** Superseded by ADR-012\n**Date:** 2026-01-02\n**Tags:** a, b\n\n## Context\n**Status:** no\n";
        let one = "# ADR-001: X\n**Status:** superseded by ADR-012 | **Date:** 2026-01-02 | **Tags:** a, b\n";
        for text in [three, one] {
            let (document, _) = Document::parse(Kind::Decision, text);
            let meta = meta(&document);
            assert_eq!(meta.status.map(|it| it.0), Some(Status::SupersededBy(12)));
            assert_eq!(meta.date.map(|it| it.0), Some("2026-01-02"));
            assert_eq!(meta.tags, ["a", "b"]);
        }
        assert_eq!(Status::parse("Proposed | Accepted"), None);
    }
}
