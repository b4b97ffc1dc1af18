//! Law: evidence stands, byte for byte, in the entry that it names; a quote is found exactly; what is
//! staged has evidence and a score, what is not has a reason.
#![no_main]

use annalist::ground_claims;
use annalist::{
    Attempt, Claim, Digest, EvidenceMatch, PersonRequest, Provenance, RecordState, RunId,
};
use annalist_fuzz::{Talk, words};
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

/// Words of a claim: of its own, and a piece of an entry.
#[derive(Arbitrary, Debug)]
struct Words<'a> {
    own: &'a str,
    part: u8,
    from: u16,
    length: u16,
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    talk: Talk<'a>,
    claims: Vec<(Words<'a>, Words<'a>)>,
}

/// The shortest quote that is looked for as it stands, in bytes; the longest copied as evidence.
const QUOTE_BYTES: std::ops::RangeInclusive<usize> = 12..=400;

fuzz_target!(|input: Input<'_>| {
    let entries = input.talk.entries();
    let Some(cutting) = input.talk.cut(&entries).into_iter().next() else { return };
    let slice = &cutting.slice;
    let quote = |of: &Words<'_>| -> String {
        let text = words(slice, &slice.parts[usize::from(of.part) % slice.parts.len()]);
        let from = text.floor_char_boundary(usize::from(of.from) % (text.len() + 1));
        let to = text.floor_char_boundary((from + usize::from(of.length)).min(text.len()));
        text[from..to].to_owned()
    };
    let mut claims = Vec::new();
    for (one, two) in input.claims.iter().take(20) {
        // The first string is a quote alone; the second has words around it.
        let (action, intent) = (quote(one), quote(two));
        let result = format!("{}{}", two.own, intent);
        let summary = format!("{}{}", intent, one.own);
        claims.push(Claim::Attempt(Attempt { action, result, succeeded: true }));
        claims.push(Claim::Request(PersonRequest { intent, target: None, summary }));
    }
    let provenance = Provenance {
        namespace: "fuzz".to_owned(),
        session: slice.session,
        slice: slice.id,
        run: RunId(Digest::of(&["fuzz"])),
        entries: slice.range(),
        at: None,
    };
    let records = ground_claims(slice, None, claims.clone(), &provenance).records;
    assert_eq!(records.len(), claims.len());
    for (record, claim) in records.iter().zip(&claims) {
        assert_eq!(&record.claim, claim, "in the same order, unchanged");
        assert!((0.0..=1.0).contains(&record.score), "{}", record.score);
        assert_eq!(record.state == RecordState::Staged, record.reason.is_none());
        if record.state == RecordState::Staged {
            assert!(!record.evidence.is_empty() && record.score > 0.0);
        }
        let fields: Vec<(String, &str)> = claim.strings();
        for evidence in &record.evidence {
            let entry = cutting.entries.iter().find(|entry| entry.ordinal == evidence.ordinal);
            let entry = entry.expect("evidence names an entry of the slice");
            let said = entry.text.as_str().get(evidence.bytes.clone());
            assert_eq!(said, Some(evidence.words.as_str()), "the words stand where it says");
            assert_eq!((evidence.speaker, evidence.line), (entry.speaker, entry.line));
            assert!(!evidence.words.is_empty() && evidence.words.len() <= *QUOTE_BYTES.end());
            assert!(fields.iter().any(|(name, _)| *name == evidence.field));
        }
        let quote = fields[0].1.trim();
        // A quote that holds a label of ours is looked for, but may stand across two entries; our mark of what was left out,
        // `[… 9 bytes left out …]`, is nobody's words.
        let is_ours = quote.contains("\n\n[") || quote.contains('…');
        if QUOTE_BYTES.contains(&quote.len()) && !is_ours {
            let exact = |it: &&annalist::Evidence| it.found == EvidenceMatch::Exact;
            let found = record.evidence.iter().filter(exact).any(|it| it.words.as_str() == quote);
            assert!(found, "{quote:?} was said and is not found");
        }
    }
});
