//! Properties of the slicer.

use super::*;
use crate::domain::Part;
use crate::slicing::testing::{SETTINGS, cut, cut_all, entry, transcript};
use proptest::prelude::*;

fn check(entries: &[Entry], slices: &[Cutting]) {
    let parts: Vec<&Part> = slices.iter().flat_map(|cutting| &cutting.slice.parts).collect();
    for entry in entries {
        let mine: Vec<_> = parts.iter().filter(|part| part.ordinal == entry.ordinal).collect();
        let numbers: Vec<u32> = mine.iter().map(|part| part.part).collect();
        assert_eq!(numbers, (0..mine[0].parts).collect::<Vec<_>>(), "each part once");
        if !is_tool(entry) {
            let covered: usize = mine.iter().map(|part| part.span.len()).sum();
            assert_eq!(covered, entry.text.len(), "nobody's words are shortened");
        }
    }
    for Cutting { slice, entries } in slices {
        let whole = slice.text.as_str();
        assert!(slice.tokens <= SETTINGS.tokens, "{} tokens", slice.tokens);
        for (part, entry) in slice.parts.iter().zip(entries) {
            let words = &entry.text.as_str()[part.entry_offset..][..part.span.len()];
            assert_eq!(&whole[part.span.clone()], words);
        }
        for call in entries.iter().filter(|entry| entry.kind == EntryKind::ToolCall) {
            let id = call.tool.as_ref().unwrap().call_id.clone();
            let same = |entry: &&Entry| entry.tool.as_ref().is_some_and(|t| t.call_id == id);
            let here = entries.iter().filter(same).count();
            let all = slices.iter().flat_map(|cutting| &cutting.entries).filter(same).count();
            assert_eq!(here, all, "a call and its result stand in one slice");
        }
    }
}

proptest! {
    #[test]
    fn every_entry_is_in_one_slice_and_no_call_loses_its_result(entries in transcript()) {
        check(&entries, &cut_all(&entries, BTreeSet::new()));
    }

    #[test]
    fn a_session_that_grew_is_cut_again_where_it_was(entries in transcript(), at in 1..30usize) {
        let before = cut_all(&entries[..at.min(entries.len())], BTreeSet::new());
        let after = cut_all(&entries, BTreeSet::from([at as u32]));
        let ids = |slices: &[Cutting]| slices.iter().map(|c| c.slice.id).collect::<Vec<_>>();
        prop_assert_eq!(&ids(&after)[..before.len()], &ids(&before)[..]);
    }
}

proptest! {
    #[test]
    fn a_session_goes_on_where_its_first_slices_ended(entries in transcript(), at in 1..30usize) {
        let at = at.min(entries.len());
        let mut apart = cut_all(&entries[..at], BTreeSet::new());
        let ends = BTreeSet::from([at as u32]);
        let slicer = Slicer::new(crate::slicing::testing::session(), SETTINGS, ends.clone());
        apart.extend(cut(slicer.starting_at(apart.len() as u32), &entries[at..]));
        prop_assert_eq!(apart, cut_all(&entries, ends));
    }
}

#[test]
fn an_entry_longer_than_a_slice_is_split_and_none_of_it_is_dropped() {
    let entries = [entry(0, EntryKind::Prompt, &"one two three\n".repeat(900), None)];
    let slices = cut_all(&entries, BTreeSet::new());
    assert!(slices.len() > 5);
    check(&entries, &slices);
    assert!(slices[1].slice.text.as_str().contains(", part 2 of "));
}
