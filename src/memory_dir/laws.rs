//! Property tests of documents.

use super::*;
use crate::domain::Finding;
use crate::privacy::{Gate, Only};
use proptest::prelude::*;

/// Lines with a meaning, and near misses.
const LINES: [&str; 71] = [
    "# Active Context",
    "# ADR-001: Use it",
    "## Recent Decisions",
    "## Open Questions",
    "### More",
    "- a",
    "- b",
    "* c",
    "1. d",
    "- [ ] task",
    "- [x] done",
    "  more of it",
    "\tindented",
    "- ",
    "text",
    "*Session: 2026-01-02*",
    "---",
    "***",
    "<!-- @category: decision -->",
    "<!-- @tag: src-0123abcd -->",
    "<!--@tag:X-->",
    "<!-- hint -->",
    "<!-- open",
    "-->",
    "```",
    "~~~~",
    "| Term | Definition |",
    "|---|---|",
    "| a | b |",
    "| a | b | <!-- @tag: src-0123abcd -->",
    "| c | <private>d</private> | <!-- @tag: src-0123abce -->",
    "<private>",
    "</private>",
    "x <private>y</private> z",
    "<PRIVATE >",
    "<<<<<<< HEAD",
    "=======",
    ">>>>>>> other",
    "private: true",
    "**Status:** Accepted",
    "",
    "",
    "",
    "\u{feff}---",
    "**Date:** 2026-01-02",
    "> quoted",
    "  <private>",
    "\u{feff}<private>",
    "<private key=\"x\">",
    "</PRIVATE>",
    "<pri<private>y</private>vate>",
    "- write `<private>` here",
    "- <private>",
    "more </private> words",
    "- a <private>b</private> c <private>",
    "<!-- <private> -->",
    "<!-- </private>",
    "> <private>",
    "- <private>key",
    "1. <private> key",
    "- [ ] <private>key",
    "my pin: <private>",
    "- my <private> pin",
    "    indented code",
    "    <private>",
    "````md",
    "`<private>`",
    "~~~",
    "---",
    "## Recent Decisions <private>x</private>",
    "```<private>",
];

pub(super) fn file() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        8 => prop::sample::select(LINES.to_vec()).prop_map(str::to_owned),
        1 => "\\PC{0,12}",
    ];
    let end = prop_oneof![8 => Just("\n"), 2 => Just("\r\n"), 1 => Just("\r")];
    let lines = prop::collection::vec((line, end), 0..40);
    let mark = prop_oneof![8 => Just(""), 1 => Just("\u{feff}")];
    (mark, lines, any::<bool>()).prop_map(|(mark, lines, ends)| {
        let text: String = lines.iter().map(|(line, end)| format!("{line}{end}")).collect();
        let text = if ends { &text } else { text.trim_end() };
        format!("{mark}{text}")
    })
}

/// Non-empty lines that the gate lets through.
pub(super) fn let_through(text: &str) -> Vec<String> {
    let gate = Gate::new(&[]).only(Only::Private);
    let lines = gate.redact(text).as_str().replace('\u{feff}', "");
    lines.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

pub(super) fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(Kind::ALL.to_vec())
}

proptest! {
    #[test]
    fn what_was_parsed_prints_the_same_bytes(text in file(), kind in kind()) {
        let (document, _) = Document::parse(kind, &text);
        prop_assert_eq!(document.print(), text);
    }

    #[test]
    fn any_text_is_printed_as_it_was(text in any::<String>(), kind in kind()) {
        let (document, _) = Document::parse(kind, &text);
        prop_assert_eq!(document.print(), text);
    }

    #[test]
    fn blocks_begin_where_the_one_before_ends(text in file(), kind in kind()) {
        let (document, findings) = Document::parse(kind, &text);
        let mut end = 0;
        for block in &document.blocks {
            prop_assert_eq!(block.span.start, end);
            prop_assert!(block.span.start < block.span.end, "{block:?}");
            prop_assert!(block.span.start <= block.tags_at && block.tags_at <= block.span.end);
            let before = text[..block.span.start].matches('\n').count() as u32;
            prop_assert_eq!(block.line, before + 1);
            end = block.span.end;
        }
        let lines = text.lines().count() as u32;
        prop_assert!(findings.iter().all(|it: &Finding| it.line <= lines.max(1)));
    }

    #[test]
    fn nothing_private_is_public(text in file(), kind in kind()) {
        let public = let_through(&text).join("\n");
        let (document, _) = Document::parse(kind, &text);
        for block in &document.blocks {
            for line in document.public(block).replace('\u{feff}', "").lines().map(str::trim) {
                prop_assert!(public.contains(line), "{line:?} of {public:?}");
            }
            let is_heading = matches!(block.part, Part::Title | Part::Section | Part::Heading);
            let words = document.heading_words(block).replace('\u{feff}', "");
            prop_assert!(!is_heading || public.contains(&words), "{words:?} of {public:?}");
        }
        for (_, line) in public::public_lines(&document) {
            prop_assert!(public.contains(line.replace('\u{feff}', "").trim()), "{line:?} of {public:?}");
        }
    }

    #[test]
    fn no_block_begins_or_ends_within_what_is_private(text in file(), kind in kind()) {
        let (document, _) = Document::parse(kind, &text);
        for block in &document.blocks {
            for private in document.private_in(block) {
                prop_assert!(block.span.start <= private.start && private.end <= block.span.end, "{block:?} {private:?}");
            }
        }
    }
}

/// Recorded cases of ConKeeper; `None`, with a message, if they are not available.
pub(super) fn golden() -> Option<serde_json::Value> {
    let path = crate::testing::shared("golden/conkeeper.json")?;
    let bytes = std::fs::read(path).unwrap();
    Some(serde_json::from_slice(&bytes).unwrap())
}

#[test]
fn a_mark_of_byte_order_hides_no_private_line() {
    let (document, _) = Document::parse(Kind::Other, "\u{feff}<private>a</private>\n- b\n");
    assert_eq!(document.blocks.first().map(|it| it.part), Some(Part::Private));
}

#[test]
fn golden_private_blocks_are_hidden() {
    let Some(golden) = golden() else { return };
    for case in golden["strip_private"].as_array().unwrap() {
        let text = case["input"].as_str().unwrap();
        let (document, _) = Document::parse(Kind::Patterns, text);
        let public: String = public::public_lines(&document)
            .into_iter()
            .map(|(_, line)| format!("{line}\n"))
            .collect();
        // Text after the end of a block on the same line is withheld too.
        let expected = case["recommended"].as_str().unwrap().replace(" public tail\n", "");
        assert_eq!(public, expected, "{}", case["name"]);
        assert_eq!(crate::privacy::strip_private(text), case["recommended"], "{}", case["name"]);
    }
    for case in golden["file_private"].as_array().unwrap() {
        let (document, _) = Document::parse(Kind::Other, case["input"].as_str().unwrap());
        assert_eq!(
            document.is_private(),
            case["recommended"].as_bool().unwrap(),
            "{}",
            case["name"]
        );
    }
}
