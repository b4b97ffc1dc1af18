//! From claims to records: evidence, score, and whether it is enough.

use super::fold::Folded;
use super::language::Language;
use super::literal::{find, literals};
use super::overlap::{WordIndex, WordSupport};
use super::{EVIDENCE_BYTES_MAX, EVIDENCE_PER_STRING_MAX};
use crate::domain::{
    Claim, ClaimKind, Evidence, Match, Provenance, Record, RecordState, Slice, Speaker,
};
use std::ops::Range;

/// Below this score a record is quarantined. `benches/README.md` has what recorded answers score in
/// their own transcript and in strangers'.
pub const SCORE_MIN: f64 = 0.42;
/// A string shorter than this is found anywhere by chance; its words are weighed instead. In bytes.
const EXACT_BYTES_MIN: usize = 12;
/// Score of folded words; a little less than that of the very words.
const FOLDED_SCORE: f64 = 0.98;
/// A claim in another language than the slice rests on the names and words that both share; this
/// many of them are enough.
const SHARED_WORDS_MIN: usize = 2;
/// Maximum score of such a claim.
const SHARED_SCORE_MAX: f64 = 0.6;

/// Weight of one literal where no other word of its string is found; as much as a string without
/// words.
const LITERAL_WEIGHT: f64 = 0.5;
/// Of what is found of a decision or request, those who may decide or ask must have said this share,
/// in percent of its weight; the rest may be tool output.
const TRUSTED_PERCENT_MIN: f64 = 40.0;

/// Grounds `claims` in `slice`: each becomes a record, staged or quarantined, in the same order.
pub fn ground(slice: &Slice, claims: Vec<Claim>, provenance: &Provenance) -> Vec<Record> {
    let strings: Vec<Vec<(String, String)>> = claims.iter().map(owned).collect();
    let index = WordIndex::new(slice, strings.iter().flatten().map(|(_, text)| text.as_str()));
    let ground = Grounder {
        slice,
        folded: Folded::of_slice(slice),
        index,
        language: Language::of_slice(slice),
    };
    let grounded = claims.into_iter().zip(strings);
    grounded.map(|(claim, strings)| ground.record(claim, &strings, provenance)).collect()
}

fn owned(claim: &Claim) -> Vec<(String, String)> {
    claim.strings().into_iter().map(|(field, text)| (field, text.to_owned())).collect()
}

struct Grounder<'a> {
    slice: &'a Slice,
    folded: Folded,
    index: WordIndex<'a>,
    /// Language of the slice.
    language: Language,
}

/// Evidence and scores of one claim.
#[derive(Default)]
struct ClaimSupport {
    evidence: Vec<Evidence>,
    absent: Vec<(String, String)>,
    scores: Vec<(f64, f64)>,
    /// Weight by speaker.
    carried: Vec<(Speaker, f64)>,
    shared: usize,
}

impl Grounder<'_> {
    fn record(&self, claim: Claim, strings: &[(String, String)], from: &Provenance) -> Record {
        let mut proof = ClaimSupport::default();
        for (field, text) in strings {
            self.prove(field, text, &mut proof);
        }
        let language = Language::of(strings.iter().map(|(_, text)| text.as_str()));
        let score = score(&proof, self.language.is_foreign_to(language));
        let reason = self.reason(&claim, &proof, score);
        let state = match reason {
            Some(_) => RecordState::Quarantined,
            None => RecordState::Staged,
        };
        let mut provenance = from.clone();
        let said = |evidence: &Evidence| {
            let part = self.slice.parts.iter().find(|part| part.ordinal == evidence.ordinal);
            part.and_then(|part| part.at)
        };
        provenance.at = proof.evidence.iter().filter_map(said).min().or(provenance.at);
        let id = Record::id_of(from.run, &claim);
        Record { id, claim, provenance, evidence: proof.evidence, score, state, reason }
    }

    fn prove(&self, field: &str, text: &str, proof: &mut ClaimSupport) {
        let support = self.index.support(text);
        proof.shared += support.shared;
        let found = self.verbatim(text);
        let missing = |rule: &&super::literal::Literal| rule.text != text;
        for literal in literals(text).iter().filter(missing) {
            match find(literal, &self.folded) {
                None => proof.absent.push((field.to_owned(), literal.text.clone())),
                Some(span) => {
                    let known = |evidence: &Evidence| {
                        evidence.field == field && evidence.words.as_str().contains(&literal.text)
                    };
                    let few = proof.evidence.iter().filter(|it| it.field == field).count();
                    let wanted = support.spans.is_empty() && found.is_none();
                    if wanted && few < EVIDENCE_PER_STRING_MAX && !proof.evidence.iter().any(known)
                    {
                        self.add(field, span, Match::Literal, LITERAL_WEIGHT, proof);
                    }
                }
            }
        }
        match found {
            Some((span, how)) => {
                let score = if how == Match::Exact { 1.0 } else { FOLDED_SCORE };
                let weight = support.weight.max(1.0);
                proof.scores.push((score, weight));
                self.add(field, span, how, weight, proof);
            }
            None => self.by_words(field, text, support, proof),
        }
    }

    fn by_words(&self, field: &str, text: &str, support: WordSupport, proof: &mut ClaimSupport) {
        // A string of stop words and marks alone proves nothing and disproves nothing.
        if support.weight > 0.0 {
            proof.scores.push((support.score, support.weight));
        } else if text.chars().any(char::is_alphanumeric) {
            proof.scores.push((0.5, 0.5));
        }
        for (span, gain) in support.spans {
            self.add(field, span, Match::Overlap, gain, proof);
        }
    }

    fn add(
        &self,
        field: &str,
        span: Range<usize>,
        how: Match,
        weight: f64,
        proof: &mut ClaimSupport,
    ) {
        if let Some(evidence) = self.evidence(field, span, how) {
            proof.carried.push((evidence.speaker, weight));
            proof.evidence.push(evidence);
        }
    }

    /// Position of the whole of `text` in one entry, a person's first.
    fn verbatim(&self, text: &str) -> Option<(Range<usize>, Match)> {
        let text = text.trim();
        if text.len() < EXACT_BYTES_MIN {
            return None;
        }
        let whole = self.slice.text.as_str();
        let exact = memchr::memmem::find_iter(whole.as_bytes(), text.as_bytes());
        let exact = exact.map(|start| start..start + text.len());
        let exact = self.most_trusted(exact).map(|span| (span, Match::Exact));
        exact.or_else(|| {
            let needle = Folded::new(text);
            if needle.as_str().len() < EXACT_BYTES_MIN {
                return None;
            }
            let found = self.folded.find(needle.as_str());
            self.most_trusted(found).map(|span| (span, Match::Folded))
        })
    }

    fn most_trusted(&self, spans: impl Iterator<Item = Range<usize>>) -> Option<Range<usize>> {
        /// Places looked at; what is said more often than this is no rare phrase.
        const PLACES_MAX: usize = 32;
        let spans = spans.take(PLACES_MAX).filter_map(|span| {
            let part = self.slice.part_at(span.start)?;
            let inside = span.end <= part.span.end && !self.folded.is_marked(&span);
            inside.then_some((part.speaker, span))
        });
        spans.min_by_key(|(speaker, span)| (*speaker, span.start)).map(|(_, span)| span)
    }

    fn evidence(&self, field: &str, span: Range<usize>, found: Match) -> Option<Evidence> {
        let part = self.slice.part_at(span.start)?;
        let text = self.slice.text.as_str();
        let end = span.end.min(part.span.end).min(span.start + EVIDENCE_BYTES_MAX);
        let end = text.floor_char_boundary(end);
        let bytes = |at: usize| part.entry_offset + at - part.span.start;
        Some(Evidence {
            field: field.to_owned(),
            ordinal: part.ordinal,
            line: part.line,
            bytes: bytes(span.start)..bytes(end),
            speaker: part.speaker,
            found,
            words: self.slice.text.cut(span.start..end),
        })
    }

    fn reason(&self, claim: &Claim, proof: &ClaimSupport, score: f64) -> Option<String> {
        if let Some((field, literal)) = proof.absent.first() {
            let more = proof.absent.len() - 1;
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            return Some(format!(
                "literal-absent: `{literal}` of {field}{more} is not in the slice"
            ));
        }
        if proof.evidence.is_empty() {
            return Some("no-evidence: none of its words are in the slice".to_owned());
        }
        if score < SCORE_MIN {
            return Some(format!("weak-evidence: score {score:.2} is below {SCORE_MIN:.2}"));
        }
        let said_by = |speakers: &[Speaker]| {
            let weigh = |it: &(Speaker, f64)| it.1;
            let all: f64 = proof.carried.iter().map(weigh).sum();
            let by_them = proof.carried.iter().filter(|(speaker, _)| speakers.contains(speaker));
            let share = by_them.map(weigh).sum::<f64>() * 100.0;
            share > 0.0 && share >= all * TRUSTED_PERCENT_MIN
        };
        let trusted = match claim.kind() {
            ClaimKind::Request => said_by(&[Speaker::Person, Speaker::Assistant]),
            ClaimKind::Decision => said_by(&[Speaker::Person, Speaker::Assistant, Speaker::Client]),
            ClaimKind::Discussion | ClaimKind::Attempt => true,
        };
        let why = "untrusted-source: it rests mostly on tool or web text";
        (!trusted).then(|| why.to_owned())
    }
}

fn score(proof: &ClaimSupport, foreign: bool) -> f64 {
    let weight: f64 = proof.scores.iter().map(|(_, weight)| weight).sum();
    let points: f64 = proof.scores.iter().map(|(score, weight)| score * weight).sum();
    // Rounding may leave a hair more than all.
    let score = if weight > 0.0 { (points / weight).min(1.0) } else { 0.0 };
    if foreign && proof.shared >= SHARED_WORDS_MIN {
        let shared = SCORE_MIN + 0.05 * proof.shared as f64;
        return score.max(shared.min(SHARED_SCORE_MAX));
    }
    score
}

#[cfg(test)]
mod tests;
