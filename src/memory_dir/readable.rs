//! The entries of a document as they may be shown: under their headings, nothing private, masked.

use super::document::{Block, Document, Part};
use super::public::{Shown, public_lines};
use crate::privacy::{Gate, Redacted, Woven};

/// An entry that may be shown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Readable {
    /// Its first line, from 1.
    pub line: u32,
    /// Whether it stands at the top: the heading of the file, or what is said about a record.
    pub is_head: bool,
    /// The headings and the head of the table that it stands under and the entry before it does not.
    pub heading: Option<Redacted>,
    /// Its lines, without tags and without a line end behind them.
    pub text: Redacted,
}

/// The entries of `document` in their order; none if the file is private. The heading of the file is an
/// entry, and so are the lines at the top of a record; comments, tags and footers are left out.
pub fn readable(document: &Document<'_>, gate: &Gate) -> Vec<Readable> {
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
    for block in document.blocks() {
        match block.part {
            Part::Section => headings = text(block).into_iter().collect(),
            Part::Heading | Part::TableHead => headings.extend(text(block)),
            Part::Title | Part::Meta | Part::Entry(_) => {
                let Some(text) = text(block) else { continue };
                let heading = joined(&std::mem::take(&mut headings));
                let is_head = matches!(block.part, Part::Title | Part::Meta);
                entries.push(Readable { line: block.line, is_head, heading, text });
            }
            Part::FrontMatter
            | Part::Comment
            | Part::StrayTag
            | Part::Private
            | Part::Marker
            | Part::Rule
            | Part::Footer
            | Part::Blank => {}
        }
    }
    entries
}

/// Headings under one another, a line each.
fn joined(headings: &[Redacted]) -> Option<Redacted> {
    let pieces = headings.iter().enumerate().flat_map(|(at, heading)| {
        [Woven::Ours(if at == 0 { "" } else { "\n" }), Woven::Passed(heading)]
    });
    (!headings.is_empty()).then(|| Redacted::weave(&pieces.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
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
        // The lines of a key tell nothing by themselves.
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
