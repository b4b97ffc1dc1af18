//! Turns claims into records: collects evidence, scores it and decides whether it suffices.

mod fields;

use super::fold::Folded;
use super::language::{Language, foreign_passage};
use super::literal::{Literal, find, literals};
use super::negation::negated;
use super::overlap::{EvidenceWindow, WordIndex, WordSupport};
use super::preference::{ClaimWords, Favour, Preference, SpeakerNames, without_speaker};
use super::{EVIDENCE_BYTES_MAX, EVIDENCE_PER_STRING_MAX};
use crate::domain::{
    Claim, ClaimKind, Evidence, Finding, Match, Provenance, Record, RecordState, Severity, Slice,
    Speaker,
};
use crate::privacy::Redacted;
use crate::text::tokens::keys;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Range;

/// Minimum score of a staged record. `benches/README.md` has the scores of recorded answers in
/// their own transcript and in unrelated ones.
pub(crate) const SCORE_MIN: f64 = 0.38;
/// Same for an attempt: it paraphrases calls and results, but an unrelated one shares even fewer words.
const ATTEMPT_SCORE_MIN: f64 = 0.32;
/// Minimum score of a field with support of its own.
const FIELD_SCORE_MIN: f64 = 0.12;
/// Minimum number of words in a field that needs support; a shorter one may be a paraphrase.
const FIELD_WORDS_MIN: usize = 3;
/// Minimum score and number of words at which `chosen` supports its rationale too; few words match
/// by chance.
const PROVEN_SCORE_MIN: f64 = 0.7;
const PROVEN_WORDS_MIN: usize = 5;
/// Words of the prompt; a rationale made of nothing else is not from the conversation.
const FRAME: &str =
    "four empty lists decisions discussions attempts requests slice transcript tool call";
/// Minimum length of a verbatim match, in bytes; shorter strings match by chance.
const EXACT_BYTES_MIN: usize = 12;
/// Score of a folded match, a little below an exact one.
const FOLDED_SCORE: f64 = 0.98;
/// Reason of a record whose evidence says the opposite.
const NEGATED: &str = "negated";
/// Minimum number of names and words that a claim shares with a slice in another language.
const SHARED_WORDS_MIN: usize = 2;
/// Maximum score of such a claim, if the slice's language has no lexicon.
const SHARED_SCORE_MAX: f64 = 0.6;
/// Minimum score by translated words. It is low because the lexicon lacks some words.
const TRANSLATED_SCORE_MIN: f64 = 0.28;

/// Weight of a literal in a string without other support; the same as that of a string without
/// words.
const LITERAL_WEIGHT: f64 = 0.5;
/// Minimum share of a decision's or request's support that comes from speakers who may decide or
/// ask, in percent of its weight; the rest may be tool output.
const TRUSTED_PERCENT_MIN: f64 = 40.0;

/// Records of an answer, and what was dropped from it.
#[derive(Clone, Debug, Default)]
pub struct Grounded {
    /// One record per claim, staged or quarantined, in the same order.
    pub records: Vec<Record>,
    /// Points, options and targets that the slice does not support.
    pub findings: Vec<Finding>,
}

/// Grounds `claims` in `slice`. `context` is what the model was shown before it: its literals are not invented, but no
/// evidence.
pub fn ground(
    slice: &Slice,
    context: Option<&Redacted>,
    claims: Vec<Claim>,
    provenance: &Provenance,
) -> Grounded {
    let strings: Vec<_> = claims.iter().flat_map(Claim::strings).map(|(_, text)| text).collect();
    let whole = Grounder::new(slice, context, &strings);
    let passage = foreign_passage(slice, whole.language);
    let passage = passage.as_ref().map(|passage| Grounder::new(passage, context, &strings));
    let mut grounded = Grounded::default();
    for claim in &claims {
        let ground = |by: &Grounder<'_>| {
            let mut findings = Vec::new();
            let claim = by.without_unproven_parts(claim.clone(), &mut findings);
            (by.record(claim, provenance), findings)
        };
        let (mut record, mut findings) = ground(&whole);
        // Its words may be those of a passage in another language.
        if let Some(passage) = &passage
            && record.reason.as_ref().is_some_and(|it| !it.starts_with(NEGATED))
            && passage.is_foreign(claim.strings().iter().map(|(_, text)| *text))
        {
            let other = ground(passage);
            if other.0.state == RecordState::Staged {
                (record, findings) = other;
            }
        }
        grounded.records.push(record);
        grounded.findings.extend(findings);
    }
    grounded
}

struct Grounder<'a> {
    slice: &'a Slice,
    folded: Folded,
    context: Option<&'a Redacted>,
    /// Folded when a literal is not in the slice.
    folded_context: OnceCell<Folded>,
    index: WordIndex<'a>,
    language: Language,
    names: SpeakerNames,
}

/// Evidence and scores of one claim.
#[derive(Default)]
struct ClaimSupport {
    /// Words of the claim without its options, of which at most one was chosen.
    words: ClaimWords,
    /// Field that is likelier to be stated in a part of the slice.
    favoured: Option<(&'static str, Favour)>,
    /// True if the claim is in another language than the slice.
    is_foreign: bool,
    /// True if its words were translated by a lexicon.
    is_translated: bool,
    evidence: Vec<Evidence>,
    absent: Vec<(String, String)>,
    /// Fields without support in the slice.
    unsupported_fields: Vec<String>,
    /// True if the slice supports `chosen` so well that its rationale needs no support.
    is_proven: bool,
    scores: Vec<(f64, f64)>,
    /// Weight of the evidence by speaker.
    weight_by_speaker: Vec<(Speaker, f64)>,
    /// Ids of the words that are in the slice.
    shared: BTreeSet<u32>,
}

impl<'a> Grounder<'a> {
    fn new(slice: &'a Slice, context: Option<&'a Redacted>, strings: &[&str]) -> Grounder<'a> {
        let folded = Folded::of_slice(slice);
        let language = Language::of_slice(slice);
        let is_foreign = language.is_foreign_to(Language::English);
        Grounder {
            slice,
            index: WordIndex::new(slice, &folded, strings.iter().copied(), is_foreign),
            folded,
            context,
            folded_context: OnceCell::new(),
            language,
            names: SpeakerNames::of(slice),
        }
    }

    /// Drops what the slice does not support of a claim that holds without it: points of a discussion, unless none
    /// would be left; other options than the choice that are numbers or versions; the target of a request that is a
    /// path made of a word of the slice, such as `src/labels.rs` for the labels.
    fn without_unproven_parts(&self, mut claim: Claim, findings: &mut Vec<Finding>) -> Claim {
        let absent = |text: &str| {
            let all = literals(text).into_iter();
            let is_absent = |it: &Literal| {
                find(it, &self.folded, self.language).is_none() && !self.is_in_context(it)
            };
            all.filter(is_absent).collect::<Vec<_>>()
        };
        let (rule, what) = match &mut claim {
            Claim::Discussion(discussion) => {
                let points = discussion.points.iter().map(String::as_str);
                let foreign = self.is_foreign(points);
                let is_proven = |point: &String| {
                    let is_translated = self.is_translated(point, foreign);
                    let is_bare = || {
                        let score = self.index.score(without_speaker(point));
                        is_unsupported(&score) && self.verbatim(point).is_none()
                    };
                    absent(point).iter().all(|it| is_translated && it.is_english_prose())
                        && (foreign || !is_bare())
                };
                let all = discussion.points.len();
                let proven: Vec<String> =
                    discussion.points.iter().filter(|it| is_proven(it)).cloned().collect();
                if proven.len() == all || proven.is_empty() {
                    return claim;
                }
                let dropped = all - proven.len();
                discussion.points = proven;
                (
                    "unproven-point",
                    format!("{dropped} points of a discussion have no words in the slice"),
                )
            }
            Claim::Decision(decision) => {
                let is_number = |option: &String| {
                    let absent = absent(option);
                    !absent.is_empty() && absent.iter().all(|it| it.rule == "number")
                };
                let all = decision.options.len();
                decision.options.retain(|it| *it == decision.chosen || !is_number(it));
                let dropped = all - decision.options.len();
                if dropped == 0 {
                    return claim;
                }
                (
                    "unproven-option",
                    format!(
                        "{dropped} options of a decision have a number that is not in the slice"
                    ),
                )
            }
            Claim::Request(wish) => {
                let is_guess = |target: &mut String| {
                    let stem = target.rsplit('/').next().and_then(|name| name.split('.').next());
                    let stem = Folded::new(stem.unwrap_or_default());
                    let absent = absent(target);
                    absent.iter().any(|it| it.rule == "path" && it.text == *target)
                        && self.folded.find_word(stem.as_str()).is_some()
                };
                if wish.target.take_if(is_guess).is_none() {
                    return claim;
                }
                ("unproven-target", "the target of a request is not in the slice".to_owned())
            }
            Claim::Attempt(_) => return claim,
        };
        findings.push(Finding::new(Severity::Warning, rule, 0, what));
        claim
    }

    fn record(&self, claim: Claim, from: &Provenance) -> Record {
        let strings = claim.strings();
        let told = strings.iter().filter(|(field, _)| !field.starts_with("options"));
        let words = self.index.claim_words(told.map(|(_, text)| *text));
        let is_foreign = self.is_foreign(strings.iter().map(|(_, text)| *text));
        let is_translated = self.index.is_translated;
        let mut proof =
            ClaimSupport { words, is_foreign, is_translated, ..ClaimSupport::default() };
        proof.favoured = self.favoured(&claim, &proof.words);
        for (field, text) in &strings {
            match field.as_str() {
                "rationale" => proof.favoured = self.favoured_reason(&proof.evidence),
                "result" => proof.favoured = self.favoured_result(&proof.evidence),
                _ => {}
            }
            self.prove(claim.kind(), field, text, &mut proof);
        }
        if let Claim::Decision(it) = &claim {
            self.choose_by_reason(it, &mut proof.evidence);
            self.add_consent(&mut proof);
        }
        if let Claim::Attempt(it) = &claim {
            self.complete_calls(it, &mut proof);
        }
        self.arrange(&claim, &mut proof.evidence);
        let score = score(&proof);
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

    fn is_foreign<'b>(&self, strings: impl Iterator<Item = &'b str>) -> bool {
        self.language.is_foreign_to(Language::of_claim(strings))
    }

    fn preference<'c>(
        &self,
        kind: ClaimKind,
        field: &str,
        text: &str,
        words: &'c ClaimWords,
    ) -> Preference<'c> {
        let turns = self.names.turns_of(text, self.slice);
        let mut preference = Preference::new(kind, field, words, turns);
        preference.is_deed &= !text.contains("commit");
        preference
    }

    fn prove(&self, kind: ClaimKind, field: &str, text: &str, proof: &mut ClaimSupport) {
        let found = self.verbatim(text);
        let favour = proof.favoured.as_ref().filter(|(ours, _)| *ours == field);
        let mut preference = self.preference(kind, field, text, &proof.words);
        preference.favoured = favour.map(|(_, favour)| favour.clone());
        let verbatim = found.as_ref().map(|(span, _)| span);
        let support = self.index.support(without_speaker(text), &preference, verbatim);
        proof.shared.extend(&support.shared);
        let is_bare = is_unsupported(&support) && found.is_none();
        proof.is_proven |= field == "chosen"
            && PROVEN_WORDS_MIN <= support.words
            && PROVEN_SCORE_MIN <= support.score;
        // A rationale may be a paraphrase.
        let is_reason = || {
            let frame = keys(FRAME);
            field == "rationale"
                && proof.is_proven
                && !keys(text).iter().all(|it| frame.contains(it))
        };
        if is_bare && !is_reason() {
            proof.unsupported_fields.push(field.to_owned());
        }
        let is_translated = self.is_translated(text, proof.is_foreign);
        for literal in &literals(text) {
            match find(literal, &self.folded, self.language) {
                None if self.is_in_context(literal) => {}
                // A claim in another language quotes in translation, even if it is too short to tell its language.
                None if is_translated && literal.is_english_prose() => {}
                None => proof.absent.push((field.to_owned(), literal.text.clone())),
                Some(span) => {
                    // The word index lacks numbers that the slice has in words.
                    proof.shared.extend(self.index.wanted(&literal.text));
                    let ours = proof.evidence.iter().filter(|it| it.field == field).count();
                    let wanted = support.windows.is_empty() && found.is_none();
                    if wanted && ours < EVIDENCE_PER_STRING_MAX {
                        self.add(field, span, Match::Literal, LITERAL_WEIGHT, proof);
                    }
                }
            }
        }
        match &found {
            Some((_, how)) => {
                let score = if *how == Match::Exact { 1.0 } else { FOLDED_SCORE };
                proof.scores.push((score, support.weight.max(1.0)));
            }
            None if support.weight > 0.0 => proof.scores.push((support.score, support.weight)),
            // A string of only stop words and punctuation proves and disproves nothing.
            None if text.chars().any(char::is_alphanumeric) => proof.scores.push((0.5, 0.5)),
            None => {}
        }
        let mut unseen = found;
        for EvidenceWindow { span, weight } in support.windows {
            let verbatim = unseen.take_if(|(found, _)| span.contains(&found.start));
            let how = verbatim.map_or(Match::Overlap, |(_, how)| how);
            self.add(field, span, how, weight, proof);
        }
        if let Some((span, how)) = unseen {
            self.add(field, span, how, support.weight.max(1.0), proof);
        }
    }

    /// True if a string of a claim, which may be foreign to the slice, quotes in translation.
    fn is_translated(&self, text: &str, is_foreign: bool) -> bool {
        is_foreign
            || self.language.is_foreign_to(Language::English)
                && Language::of_claim(std::iter::once(text)) != self.language
    }

    fn is_in_context(&self, literal: &Literal) -> bool {
        self.context.is_some_and(|context| {
            let folded = self.folded_context.get_or_init(|| Folded::new(context.as_str()));
            find(literal, folded, self.language).is_some()
        })
    }

    fn add(
        &self,
        field: &str,
        span: Range<usize>,
        how: Match,
        weight: f64,
        proof: &mut ClaimSupport,
    ) {
        let Some(part) = self.slice.part_at(span.start) else { return };
        let text = &self.slice.text;
        let end = span.end.min(part.span.end).min(span.start + EVIDENCE_BYTES_MAX);
        let end = text.as_str().floor_char_boundary(end);
        let bytes = |at: usize| part.entry_offset + at - part.span.start;
        proof.weight_by_speaker.push((part.speaker, weight));
        proof.evidence.push(Evidence {
            field: field.to_owned(),
            ordinal: part.ordinal,
            line: part.line,
            bytes: bytes(span.start)..bytes(end),
            speaker: part.speaker,
            name: self.names.of_span(part, &span).map(|name| text.cut(name)),
            found: how,
            words: text.cut(span.start..end),
        });
    }

    /// Position of all of `text` in one entry, preferably by a person.
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
        /// Maximum number of occurrences to compare; a more frequent phrase is not distinctive.
        const PLACES_MAX: usize = 32;
        let spans = spans.take(PLACES_MAX).filter_map(|span| {
            let part = self.slice.part_at(span.start)?;
            let inside = span.end <= part.span.end && !self.folded.is_marked(&span);
            inside.then_some((part.speaker, span))
        });
        let rank = |(speaker, span): &(Speaker, Range<usize>)| (*speaker, span.start);
        spans.min_by_key(rank).map(|(_, span)| span)
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
        // A request has an intent and a summary, of which one may be a paraphrase.
        let is_wish = claim.kind() == ClaimKind::Request && proof.unsupported_fields.len() < 2;
        let bare = proof
            .unsupported_fields
            .iter()
            .find(|field| !proof.is_foreign && !is_wish && !field.contains('['));
        if let Some(field) = bare {
            return Some(format!("unproven-field: no words of {field} are in the slice"));
        }
        if let Some(field) = negated(claim, &proof.evidence, self.slice) {
            return Some(format!("{NEGATED}: the words behind {field} say the opposite"));
        }
        let least = match claim.kind() {
            ClaimKind::Attempt => ATTEMPT_SCORE_MIN,
            ClaimKind::Decision | ClaimKind::Discussion | ClaimKind::Request => SCORE_MIN,
        };
        if score < least {
            return Some(format!("weak-evidence: score {score:.2} is below {least:.2}"));
        }
        let said_by = |speakers: &[Speaker]| {
            let weigh = |it: &(Speaker, f64)| it.1;
            let all: f64 = proof.weight_by_speaker.iter().map(weigh).sum();
            let by_them =
                proof.weight_by_speaker.iter().filter(|(speaker, _)| speakers.contains(speaker));
            let share = by_them.map(weigh).sum::<f64>() * 100.0;
            share > 0.0 && share >= all * TRUSTED_PERCENT_MIN
        };
        let is_choice = |it: &Evidence| it.field == "chosen" && it.speaker == Speaker::Person;
        let trusted = match claim.kind() {
            ClaimKind::Request => said_by(&[Speaker::Person, Speaker::Assistant]),
            // Whatever a tool said for it.
            ClaimKind::Decision if proof.evidence.iter().any(is_choice) => true,
            ClaimKind::Decision => said_by(&[Speaker::Person, Speaker::Assistant, Speaker::Client]),
            ClaimKind::Discussion | ClaimKind::Attempt => true,
        };
        let why = "untrusted-source: it rests mostly on tool or web text";
        (!trusted).then(|| why.to_owned())
    }
}

/// True if the slice has too few of many words.
fn is_unsupported(support: &WordSupport) -> bool {
    support.score < FIELD_SCORE_MIN && FIELD_WORDS_MIN <= support.words
}

fn score(proof: &ClaimSupport) -> f64 {
    let weight: f64 = proof.scores.iter().map(|(_, weight)| weight).sum();
    let points: f64 = proof.scores.iter().map(|(score, weight)| score * weight).sum();
    // Rounding errors may exceed 1.
    let score = if weight > 0.0 { (points / weight).min(1.0) } else { 0.0 };
    if proof.is_foreign && proof.is_translated {
        return if score >= TRANSLATED_SCORE_MIN { score.max(SCORE_MIN) } else { score };
    }
    if proof.is_foreign && proof.shared.len() >= SHARED_WORDS_MIN {
        let shared = SCORE_MIN + 0.05 * proof.shared.len() as f64;
        return score.max(shared.min(SHARED_SCORE_MAX));
    }
    score
}

#[cfg(test)]
mod tests;
