//! Law: slices cover a session once, nobody's words are shortened, and nothing is over the budget.
#![no_main]

use annalist::{Entry, EntryKind, Speaker};
use annalist_fuzz::{Talk, words};
use libfuzzer_sys::fuzz_target;

/// Only tools' words may lose their middle.
fn is_tool(entry: &Entry) -> bool {
    matches!(entry.speaker, Speaker::Tool | Speaker::Web)
        || matches!(entry.kind, EntryKind::ToolCall | EntryKind::ToolResult)
}

fuzz_target!(|talk: Talk<'_>| {
    let entries = talk.entries();
    let slices = talk.cut(&entries);
    let tokens_max = talk.settings().tokens;
    let mut said = vec![(String::new(), 0); entries.len()];
    for (index, cutting) in slices.iter().enumerate() {
        let slice = &cutting.slice;
        assert_eq!(slice.index as usize, index);
        // A token is a byte at least, and four on average at most.
        let bytes = slice.text.as_str().len();
        assert!(
            (bytes / 4..=bytes).contains(&(slice.tokens as usize)),
            "{} of {bytes}",
            slice.tokens
        );
        assert!(slice.tokens <= tokens_max, "{} tokens of {tokens_max}", slice.tokens);
        assert_eq!(slice.parts.len(), cutting.entries.len());
        let mut end = 0;
        for (part, entry) in slice.parts.iter().zip(&cutting.entries) {
            assert!(end <= part.span.start, "parts stand in order");
            end = part.span.end;
            let (said, parts) = &mut said[part.ordinal as usize];
            assert_eq!((entry.ordinal, part.part), (part.ordinal, *parts), "each part once");
            assert_eq!(slice.part_at(part.span.start), Some(part));
            let mine = &entry.text.as_str()[part.entry_offset..][..part.span.len()];
            assert_eq!(words(slice, part), mine);
            said.push_str(mine);
            *parts += 1;
            if *parts == part.parts {
                assert_eq!(said, entry.text.as_str(), "the parts are the entry");
            }
        }
    }
    for (entry, (said, parts)) in entries.iter().zip(said) {
        assert!(parts > 0, "entry {} is in no slice", entry.ordinal);
        if !is_tool(entry) {
            assert_eq!(said, entry.text.as_str(), "nobody's words are shortened");
        }
    }
});
