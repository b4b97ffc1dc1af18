//! Properties of slices that are stored as positions, and of slices that are cut in two.

use super::testing::{cut, entry, session, settings, transcript};
use super::*;
use crate::domain::{Entry, EntryKind};
use crate::privacy::Gate;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

fn slices(entries: &[Entry], settings: SliceSettings) -> Vec<Cutting> {
    cut(Slicer::new(session(), settings, BTreeSet::new()), entries)
}

/// Serialises and parses `cut`.
#[track_caller]
fn through_json(cut: &SliceCut) -> SliceCut {
    serde_json::from_str(&serde_json::to_string(cut).unwrap()).unwrap()
}

/// Byte ranges of the entries in `slices`, with adjacent ones joined.
fn covered<'a>(slices: impl IntoIterator<Item = &'a Cutting>) -> BTreeMap<u32, Vec<Range<usize>>> {
    let mut covered: BTreeMap<u32, Vec<Range<usize>>> = BTreeMap::new();
    for part in slices.into_iter().flat_map(|cutting| &cutting.slice.parts) {
        let range = part.entry_offset..part.entry_offset + part.span.len();
        let ranges = covered.entry(part.ordinal).or_default();
        match ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            Some(_) | None => ranges.push(range),
        }
    }
    covered
}

/// Checks that the text of each part is that of its entry.
#[track_caller]
fn check_words(cutting: &Cutting) {
    let slice = &cutting.slice;
    assert_eq!(slice.parts.len(), cutting.entries.len());
    for (part, entry) in slice.parts.iter().zip(&cutting.entries) {
        assert_eq!(part.ordinal, entry.ordinal);
        let words = &entry.text.as_str()[part.entry_offset..][..part.span.len()];
        assert_eq!(&slice.text.as_str()[part.span.clone()], words);
    }
}

#[track_caller]
fn check_halves(cutting: &Cutting) {
    let halves = halve(cutting);
    if cutting.slice.tokens / 2 < SLICE_TOKENS_MIN {
        return assert_eq!(halves, [], "too small to be cut");
    }
    assert!(halves.len() > 1);
    assert_eq!(covered(&halves), covered([cutting]), "the same words, each once");
    for half in &halves {
        check_words(half);
        assert!(half.slice.tokens <= cutting.slice.tokens / 2, "{} tokens", half.slice.tokens);
        assert_eq!(half.slice.index, cutting.slice.index);
        assert!(half.entries.iter().all(|entry| cutting.entries.contains(entry)), "as they were");
        assert_eq!(rebuild(session(), &SliceCut::of(half), &cutting.entries).as_ref(), Ok(half));
        check_halves(half);
    }
}

proptest! {
    // Cuts whole sessions repeatedly: a case costs as much as ten of a smaller property.
    #![proptest_config(crate::testing::cases(48))]
    #[test]
    fn a_slice_is_rebuilt_as_it_was_cut(entries in transcript(), settings in settings()) {
        for cutting in slices(&entries, settings) {
            let cut = SliceCut::of(&cutting);
            prop_assert_eq!(&through_json(&cut), &cut);
            let mut stored = cutting.entries.clone();
            stored.reverse();
            prop_assert_eq!(rebuild(session(), &cut, &stored), Ok(cutting));
        }
    }

    #[test]
    fn halves_hold_the_words_of_the_slice_once(entries in transcript(), settings in settings()) {
        slices(&entries, settings).iter().for_each(check_halves);
    }

    #[test]
    fn stored_entries_are_cut_as_they_were(entries in transcript(), settings in settings()) {
        let first = slices(&entries, settings);
        let stored: BTreeMap<u32, Entry> =
            first.iter().flat_map(|it| &it.entries).map(|it| (it.ordinal, it.clone())).collect();
        let stored: Vec<Entry> = stored.into_values().collect();
        prop_assert_eq!(slices(&stored, settings), first);
    }

    #[test]
    fn a_text_that_changed_is_still_covered_once(
        entries in transcript(), settings in settings(), changed in "[aş名]{0,999}",
    ) {
        let changed = Gate::new(&[]).redact(&changed);
        let mut rebuilt = Vec::new();
        for cutting in slices(&entries, settings) {
            let mut stored = cutting.entries.clone();
            stored.iter_mut().for_each(|entry| entry.text = changed.clone());
            rebuilt.push(rebuild(session(), &SliceCut::of(&cutting), &stored).unwrap());
        }
        rebuilt.iter().for_each(check_words);
        for (_, ranges) in covered(&rebuilt) {
            let all = 0..changed.len();
            prop_assert!(matches!(ranges.as_slice(), [one] if *one == all), "{:?}", ranges);
        }
    }
}

#[test]
fn a_half_with_the_end_of_a_long_entry_fits_too() {
    let long = entry(0, EntryKind::Prompt, &"word ".repeat(1_748), None);
    for words in 350..500 {
        let rest = [150, words].map(|words| "word".repeat(words));
        let rest = (1..).zip(&rest).map(|(at, text)| entry(at, EntryKind::Prompt, text, None));
        let entries: Vec<Entry> = [long.clone()].into_iter().chain(rest).collect();
        let cut = slices(&entries, SliceSettings { tokens: 2_000, tool_tokens: 40 });
        assert_eq!(cut[1].slice.parts[0].parts, 2);
        cut.iter().for_each(check_halves);
    }
}

#[test]
fn a_run_of_whole_entries_costs_two_numbers() {
    let entries: Vec<Entry> =
        (7..300).map(|ordinal| entry(ordinal, EntryKind::Text, "a", None)).collect();
    let whole = slices(&entries, SliceSettings { tokens: 6_000, tool_tokens: 1_000 });
    assert_eq!(serde_json::to_string(&SliceCut::of(&whole[0])).unwrap(), "[0,[[7,299]]]");
    let long = [entry(0, EntryKind::Prompt, &"word ".repeat(1_000), None)];
    let parts = slices(&long, SliceSettings { tokens: 800, tool_tokens: 40 });
    let written: Vec<String> =
        parts.iter().map(|part| serde_json::to_string(&SliceCut::of(part)).unwrap()).collect();
    assert_eq!(written, ["[0,[[0,0,2,0,2940]]]", "[1,[[0,1,2,2940]]]"]);
}

#[test]
fn an_entry_that_is_not_stored_is_named() {
    let entries = [0, 1].map(|ordinal| entry(ordinal, EntryKind::Text, "a", None));
    let cut = SliceCut::of(&slices(&entries, SliceSettings { tokens: 800, tool_tokens: 40 })[0]);
    let missing = rebuild(session(), &cut, &entries[..1]).unwrap_err();
    assert_eq!(missing.to_string(), "entry 1 of the slice is not stored");
}

#[test]
fn what_is_no_cut_slice_is_refused() {
    for bad in [
        "[0,[[]]]", "[0,[[1,0]]]", "[0,[[1,1,1]]]", "[0,[[0,4294967296]]]", "[0,[[0,2000000]]]",
        "[0,[[0,700000],[0,700000]]]", "[0,[[0,2,2,0]]]", "[0,[[0,0,2,9,8]]]",
        "[0,[[0,0,2,9,10,11]]]", "[-1,[]]", "{}",
    ] {
        assert!(serde_json::from_str::<SliceCut>(bad).is_err(), "{bad}");
    }
}
