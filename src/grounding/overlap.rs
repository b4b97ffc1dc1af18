//! Support by word overlap: the sentences that state a field of a claim, and the share of its words in
//! a few passages.

use super::fold::Folded;
use super::negation::negations;
use super::preference::{ClaimWords, Preference, Sentence, sentences, words_in};
use super::{EVIDENCE_BYTES_MAX, EVIDENCE_PER_STRING_MAX};
use crate::domain::{EntryKind, Part, Slice, Speaker};
use crate::text::lexicon::Lexicon;
use crate::text::lexicon::translations;
use crate::text::stems::lowered;
use crate::text::tokens::{keys, words};
use aho_corasick::AhoCorasick;
use foldhash::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

/// Minimum share of a string's weight in a further passage, in percent.
const GAIN_PERCENT_MIN: f64 = 12.0;
/// Same for a passage of a single word, in percent; most single words match by chance.
const WORD_GAIN_PERCENT_MIN: f64 = 25.0;
/// Ends of clauses.
static CLAUSE_ENDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let ends = "; |, |. |: | (| and | but | then | with | by | because | so | without | while | after | before | for ";
    AhoCorasick::new(ends.split('|')).ok()
});
/// Minimum weight of a word that may be a clause alone.
const RARE_WEIGHT_MIN: f64 = 2.0;
/// Weight of a negation in a claim that has one: of two sentences with the same words, the negating
/// one wins. Excluded from the share of words.
const NEGATION_WEIGHT: f64 = 0.6;

// The weights of a sentence, and those in `preference.rs`, were fitted by logistic regression: see "Evidence" in
// `docs/evaluation.md`.

/// Weight of the share of the field's words, relative to the sentence with most of them.
const SHARE_WEIGHT: f64 = 4.0;
/// Weight of the field's share of the sentence's words.
const DENSITY_WEIGHT: f64 = 3.5;
/// Weight of the claim's share of words around the sentence.
const CONTEXT_WEIGHT: f64 = 2.0;
/// Weight of the share of the field's words with a digit.
const NUMBER_WEIGHT: f64 = 1.5;
/// Weight of the share of the clause that the sentence states best.
const CLAUSE_WEIGHT: f64 = 1.5;
/// Weight of a verbatim occurrence of the field.
const VERBATIM_WEIGHT: f64 = 3.0;
/// Weight of the share of the clause that a further sentence states better than those before.
const NEW_CLAUSE_WEIGHT: f64 = 2.0;
/// Minimum share of a clause by which it does.
const BETTER_SHARE_MIN: f64 = 0.1;
/// Same for the words of the clause that no sentence before has.
const NEW_SHARE_MIN: f64 = 0.3;
/// Minimum total of a further sentence.
const FURTHER_MIN: f64 = 7.7;
/// Commands whose messages describe work done elsewhere, and the penalty for quoting them as the action.
const COMMITS: [&str; 2] = ["git commit", "git add"];
const COMMIT_WEIGHT: f64 = 4.0;
/// Minimum share of the claim around a sentence before that of a choice, relative to that one.
const NEARBY_SHARE_MIN: f64 = 0.6;

/// Words of one field, and the sentences with any of them.
#[derive(Debug)]
struct Field {
    words: Vec<FieldWord>,
    /// Weight of the whole field, including words that the slice lacks.
    total: f64,
    /// Indices of the words of each clause.
    clauses: Vec<Vec<usize>>,
    /// Weight of each clause, and whether it has numbers.
    totals: Vec<(f64, bool)>,
    /// Clauses of each word.
    homes: Vec<Vec<usize>>,
    /// Index of a sentence and of a word in it, in text order.
    places: Vec<(u32, usize)>,
}

#[derive(Clone, Copy, Debug)]
struct FieldWord {
    id: u32,
    weight: f64,
    has_digit: bool,
    is_negation: bool,
}

/// Sentence with words of a field.
#[derive(Debug)]
struct Candidate {
    /// Index of the sentence.
    sentence: usize,
    /// Indices of its words in the field.
    held: Vec<usize>,
    /// Share of each clause in it, 0 to 1.
    clauses: Vec<f64>,
    score: f64,
    /// Additional weight among the sentences that may be shown.
    voice: f64,
}

/// Sentences of all claims' words in one slice. Built in one pass over its text.
#[derive(Debug)]
pub(super) struct WordIndex<'a> {
    slice: &'a Slice,
    sentences: Vec<Sentence>,
    ids: HashMap<u64, u32>,
    /// True for words that the slice has as they are, and not only in a translation of the lexicon, by id.
    told: Vec<bool>,
    /// Sentences with each word, by id.
    places: Vec<Vec<u32>>,
    /// Weight of each word, by id.
    weights: Vec<f64>,
    /// Id shared by all negations, if a claim has one.
    negation: Option<u32>,
    /// True if English words are compared with words of the slice's language.
    pub(super) is_translated: bool,
}

/// Sentences that state a string of a claim.
#[derive(Debug)]
pub(super) struct EvidenceWindow {
    /// Byte range in the slice's text.
    pub(super) span: Range<usize>,
    /// Weight of its words.
    pub(super) weight: f64,
}

/// Support for one string of a claim.
#[derive(Debug, Default)]
pub(super) struct WordSupport {
    /// Share of the string's weight in a few passages, 0 to 1.
    pub(super) score: f64,
    /// Weight of the string in the record's score.
    pub(super) weight: f64,
    /// Number of distinct words.
    pub(super) words: usize,
    /// Ids of the distinct words that the slice has as they are.
    pub(super) shared: Vec<u32>,
    /// Best first.
    pub(super) windows: Vec<EvidenceWindow>,
}

impl<'a> WordIndex<'a> {
    /// Index of the words of `strings`; in a slice that `is_foreign` to English, with numbers, units and days in other
    /// languages.
    pub(super) fn new<'b>(
        slice: &'a Slice,
        folded: &Folded,
        strings: impl Iterator<Item = &'b str>,
        is_foreign: bool,
    ) -> WordIndex<'a> {
        let (mut ids, mut next): (HashMap<u64, u32>, u32) = (HashMap::default(), 0);
        let lexicon = is_foreign.then(|| lexicon_of(slice)).flatten();
        let mut translated: HashMap<u64, Vec<u32>> = HashMap::default();
        let mut denies = false;
        for string in strings {
            denies |= negations(string).next().is_some();
            words(string, |word| {
                let id = *ids.entry(word.key).or_insert(next);
                next = next.max(id + 1);
                if is_foreign {
                    for word in translations(&lowered(&string[word.start..word.end])) {
                        keys(word).into_iter().for_each(|key| _ = ids.entry(key).or_insert(id));
                    }
                }
                let english = lowered(&string[word.start..word.end]);
                for key in lexicon.into_iter().flat_map(|it| it.keys(&english)) {
                    let known = translated.entry(key).or_default();
                    if !known.contains(&id) {
                        known.push(id);
                    }
                }
            });
        }
        let negation = denies.then_some(next);
        let numbers = next as usize + usize::from(denies);
        let mut places: Vec<Vec<u32>> = vec![Vec::new(); numbers];
        let mut parts_with = vec![0; numbers];
        let mut last_parts = vec![u32::MAX; numbers];
        let mut told = vec![false; numbers];
        let mut all: Vec<Sentence> = Vec::new();
        for (part, of_part) in (0u32..).zip(&slice.parts) {
            let text = slice.text.as_str().get(of_part.span.clone()).unwrap_or_default();
            for range in sentences(text) {
                let start = of_part.span.start + range.start;
                let (index, mut count) = (all.len() as u32, 0);
                let mut note = |id: u32| {
                    if last_parts[id as usize] != part {
                        last_parts[id as usize] = part;
                        parts_with[id as usize] += 1;
                    }
                    let places = &mut places[id as usize];
                    if places.last() != Some(&index) {
                        places.push(index);
                    }
                };
                let sentence = &text[range.clone()];
                words(sentence, |word| {
                    count += 1;
                    let own = ids.get(&word.key);
                    let foreign = lexicon.map(|it| it.key(&sentence[word.start..word.end]));
                    let others = foreign.and_then(|key| translated.get(&key));
                    // Elision marks are not part of the conversation.
                    if own.is_none() && others.is_none()
                        || folded.is_marked(&(start + word.start..start + word.end))
                    {
                        return;
                    }
                    own.into_iter().for_each(|id| {
                        told[*id as usize] = true;
                        note(*id);
                    });
                    others.into_iter().flatten().for_each(|id| note(*id));
                });
                if let Some(id) = negation
                    && negations(sentence).next().is_some()
                {
                    note(id);
                }
                all.push(Sentence { part, span: start..start + range.len(), words: count });
            }
        }
        let parts = slice.parts.len() as f64;
        let mut weights: Vec<f64> =
            parts_with.into_iter().map(|with| weight(with, parts)).collect();
        if denies && let Some(of_negation) = weights.last_mut() {
            *of_negation = NEGATION_WEIGHT;
        }
        let is_translated = lexicon.is_some();
        WordIndex { slice, sentences: all, ids, told, places, weights, negation, is_translated }
    }

    /// Sentences with the words of all `strings`.
    pub(super) fn claim_words<'s>(&self, strings: impl Iterator<Item = &'s str>) -> ClaimWords {
        let mut ids: Vec<u32> = strings.flat_map(|string| self.wanted(string)).collect();
        ids.sort_unstable();
        ids.dedup();
        let of_word = |(word, id): (usize, &u32)| {
            self.places[*id as usize].iter().map(move |sentence| (*sentence, word))
        };
        let places = ids.iter().enumerate().flat_map(of_word).collect();
        ClaimWords::new(places, ids.iter().map(|id| self.weight(*id)).collect())
    }

    /// Finds the sentences that state `string`. `verbatim` is its position in the slice's text.
    pub(super) fn support(
        &self,
        string: &str,
        preference: &Preference<'_>,
        verbatim: Option<&Range<usize>>,
    ) -> WordSupport {
        let field = self.field(string);
        let windows = match field.total > 0.0 {
            true => self.windows(&field, preference, self.candidates(&field, preference, verbatim)),
            false => Vec::new(),
        };
        WordSupport { windows, ..self.scored(&field) }
    }

    /// Support for `string` without the sentences that state it.
    pub(super) fn score(&self, string: &str) -> WordSupport {
        self.scored(&self.field(string))
    }

    fn scored(&self, field: &Field) -> WordSupport {
        if field.total <= 0.0 {
            return WordSupport::default();
        }
        let wanted = || field.words.iter().filter(|word| !word.is_negation).map(|word| word.id);
        WordSupport {
            score: self.covered(field) / field.total,
            weight: field.total,
            words: wanted().count(),
            shared: wanted().filter(|id| self.told[*id as usize]).collect(),
            windows: Vec::new(),
        }
    }

    fn field(&self, string: &str) -> Field {
        let known = self.known(string);
        let wanted = distinct(&known);
        let negation = self.negation.filter(|_| negations(string).next().is_some());
        let words = wanted.iter().copied().chain(negation).map(|id| FieldWord {
            id,
            weight: self.weight(id),
            has_digit: known.iter().any(|it| it.id == id && it.has_digit),
            is_negation: Some(id) == negation,
        });
        let words: Vec<FieldWord> = words.collect();
        let of_word = |(index, word): (usize, &FieldWord)| {
            self.places[word.id as usize].iter().map(move |sentence| (*sentence, index))
        };
        let mut places: Vec<_> = words.iter().enumerate().flat_map(of_word).collect();
        places.sort_unstable();
        let total = wanted.iter().map(|id| self.weight(*id)).sum();
        let clauses = clauses(string, &known, &words);
        let weigh = |clause: &Vec<usize>| {
            let weight = clause.iter().map(|word| words[*word].weight).sum();
            (weight, clause.iter().any(|word| words[*word].has_digit))
        };
        let totals = clauses.iter().map(weigh).collect();
        let mut homes = vec![Vec::new(); words.len()];
        for (index, clause) in clauses.iter().enumerate() {
            clause.iter().for_each(|word| homes[*word].push(index));
        }
        Field { words, total, clauses, totals, homes, places }
    }

    /// Sentences with words of `field`, in text order.
    fn candidates(
        &self,
        field: &Field,
        preference: &Preference<'_>,
        verbatim: Option<&Range<usize>>,
    ) -> Vec<Candidate> {
        let of_sentence = |places: &[(u32, usize)]| {
            let held: Vec<usize> = places.iter().map(|(_, word)| *word).collect();
            let clauses = field.shares(&held);
            let sentence = places[0].0 as usize;
            let shown = &self.sentences[sentence];
            let voice = preference.of_place(self.part(sentence), shown, self.words_of(shown));
            Candidate { sentence, held, clauses, score: 0.0, voice }
        };
        let each = field.places.chunk_by(|(one, _), (other, _)| one == other);
        let has_words = |it: &Candidate| it.held.iter().any(|at| !field.words[*at].is_negation);
        let mut candidates: Vec<Candidate> = each.map(of_sentence).filter(has_words).collect();
        let most = candidates.iter().map(|it| field.weigh(&it.held)).fold(f64::EPSILON, f64::max);
        let numbers = field.words.iter().filter(|word| word.has_digit).count().max(1) as f64;
        for candidate in &mut candidates {
            let sentence = &self.sentences[candidate.sentence];
            let held = candidate.held.iter().map(|word| &field.words[*word]);
            let with_digit = held.filter(|word| word.has_digit).count() as f64;
            let is_verbatim = verbatim
                .is_some_and(|it| it.start < sentence.span.end && sentence.span.start < it.end);
            let density = candidate.held.len() as f64 / f64::from(sentence.words.max(1));
            candidate.score = SHARE_WEIGHT * field.weigh(&candidate.held) / most
                + DENSITY_WEIGHT * density.min(1.0)
                + NUMBER_WEIGHT * with_digit / numbers
                + CLAUSE_WEIGHT * candidate.clauses.iter().copied().fold(0.0, f64::max)
                + if is_verbatim { VERBATIM_WEIGHT } else { 0.0 }
                + preference.of_source(self.part(candidate.sentence), sentence);
            let text = self.words_of(sentence);
            if preference.is_deed && COMMITS.iter().any(|it| text.contains(it)) {
                candidate.score -= COMMIT_WEIGHT;
            }
        }
        // Only sentences that may be shown need their context.
        let first = |it: &Candidate| it.score + it.voice;
        let best = candidates.iter().max_by(|one, other| first(one).total_cmp(&first(other)));
        let best = best.map_or(0.0, |it| it.score);
        let least = best.min(FURTHER_MIN - NEW_CLAUSE_WEIGHT) - CONTEXT_WEIGHT;
        for candidate in candidates.iter_mut().filter(|it| it.score >= least) {
            let context = preference.claim.around(&self.sentences, candidate.sentence);
            candidate.score += CONTEXT_WEIGHT * context;
        }
        candidates
    }

    /// Part of a sentence.
    fn part(&self, sentence: usize) -> &Part {
        &self.slice.parts[self.sentences[sentence].part as usize]
    }

    fn words_of(&self, sentence: &Sentence) -> &str {
        self.slice.text.as_str().get(sentence.span.clone()).unwrap_or_default()
    }

    /// Windows around the sentence with the best score, and around those that state another clause better.
    fn windows(
        &self,
        field: &Field,
        preference: &Preference<'_>,
        mut candidates: Vec<Candidate>,
    ) -> Vec<EvidenceWindow> {
        let around = |it: &Candidate| preference.claim.around(&self.sentences, it.sentence);
        let mut windows: Vec<Range<usize>> = Vec::new();
        let mut stated = Stated::of(field);
        let (mut around_first, mut first) = (0.0, 0);
        for _ in 0..EVIDENCE_PER_STRING_MAX {
            let total = |it: &Candidate| {
                if windows.is_empty() {
                    return Some(it.score + it.voice);
                }
                let total = it.score + NEW_CLAUSE_WEIGHT * stated.best_new(it, field)?;
                let is_told_before = preference.is_choice && it.sentence < first;
                let is_near = !is_told_before || around(it) >= NEARBY_SHARE_MIN * around_first;
                (total >= FURTHER_MIN && is_near).then_some(total + it.voice)
            };
            let totals =
                candidates.iter().enumerate().filter_map(|(at, it)| Some((at, total(it)?)));
            // Of equal candidates, the first one wins.
            let best = totals.reduce(|best, it| if it.1 > best.1 { it } else { best });
            let Some((at, _)) = best else { break };
            if windows.is_empty() {
                (around_first, first) = (around(&candidates[at]), candidates[at].sentence);
            }
            let shown = self.grown(&candidates, at);
            let sentences =
                candidates[shown.start].sentence..candidates[shown.end - 1].sentence + 1;
            candidates.drain(shown).for_each(|it| stated.add(&it));
            windows.push(self.with_change(sentences));
        }
        let shown = windows.into_iter().map(|it| EvidenceWindow {
            span: self.span(&it),
            weight: field.weigh(&field.held(it)),
        });
        shown.collect()
    }

    /// Range of candidates around one that follow one another, add words to it and fit in one piece of evidence.
    fn grown(&self, candidates: &[Candidate], at: usize) -> Range<usize> {
        let adds = |it: &Candidate| it.held.iter().any(|word| !candidates[at].held.contains(word));
        grow(at, |range| {
            let ends = candidates.get(range.start).zip(candidates.get(range.end - 1));
            ends.is_some_and(|(first, last)| {
                let mut new =
                    [first, last].into_iter().filter(|it| it.sentence != candidates[at].sentence);
                let sentences = first.sentence..last.sentence + 1;
                new.all(adds) && sentences.len() == range.len() && self.is_quotable(sentences)
            })
        })
    }

    /// The path of an edited file with the line after it, which says what was changed.
    fn with_change(&self, shown: Range<usize>) -> Range<usize> {
        let longer = shown.start..shown.end + 1;
        let text = self.slice.text.as_str().get(self.span(&shown)).unwrap_or_default();
        let is_path = text.contains('/') && !text.contains(char::is_whitespace);
        let is_call = self.part(shown.start).kind == EntryKind::ToolCall;
        if is_path && is_call && self.is_quotable(longer.clone()) { longer } else { shown }
    }

    /// True if a range of sentences fits in one piece of evidence.
    fn is_quotable(&self, sentences: Range<usize>) -> bool {
        let within = self.sentences.get(sentences.clone());
        let ends = within.and_then(|it| it.first().zip(it.last()));
        ends.is_some_and(|(first, last)| {
            first.part == last.part && self.span(&sentences).len() <= EVIDENCE_BYTES_MAX
        })
    }

    fn span(&self, sentences: &Range<usize>) -> Range<usize> {
        self.sentences[sentences.start].span.start..self.sentences[sentences.end - 1].span.end
    }

    /// Weight of the words of `field` in a few passages.
    fn covered(&self, field: &Field) -> f64 {
        let mut open: Vec<bool> = field.words.iter().map(|word| !word.is_negation).collect();
        let sentences = field.places.chunk_by(|(one, _), (other, _)| one == other);
        let around = |it: &[(u32, usize)]| grow(it[0].0 as usize, |it| self.is_quotable(it));
        let mut ranges: Vec<Range<usize>> = sentences.map(around).collect();
        ranges.dedup();
        let passages: Vec<_> = ranges.into_iter().map(|it| field.held(it)).collect();
        let mut covered = 0.0;
        for round in 0..EVIDENCE_PER_STRING_MAX {
            let is_open = |word: &&usize| open[**word];
            let gain = |held: &[usize]| -> f64 {
                held.iter().filter(is_open).map(|word| field.words[*word].weight).sum()
            };
            let gains = passages.iter().map(|held| (gain(held), held));
            let best = gains.max_by(|one, other| one.0.total_cmp(&other.0));
            let Some((gain, held)) = best else { break };
            let new: Vec<usize> = held.iter().filter(is_open).copied().collect();
            let least = if new.len() > 1 { GAIN_PERCENT_MIN } else { WORD_GAIN_PERCENT_MIN };
            if round > 0 && gain * 100.0 < field.total * least {
                break;
            }
            new.iter().for_each(|word| open[*word] = false);
            covered += gain;
        }
        covered
    }

    /// Share of the weight of the words of `string` that `texts` have, 0 to 1.
    pub(super) fn share<'t>(&self, string: &str, texts: impl Iterator<Item = &'t str>) -> f64 {
        let (wanted, held) = (self.wanted(string), texts.flat_map(|it| self.wanted(it)));
        let held: Vec<u32> = held.collect();
        let weigh = |it: &u32| self.weight(*it);
        let total: f64 = wanted.iter().map(weigh).sum();
        wanted.iter().filter(|it| held.contains(it)).map(weigh).sum::<f64>() / total.max(1.0)
    }

    /// Ids of the distinct words of `string`.
    pub(super) fn wanted(&self, string: &str) -> Vec<u32> {
        distinct(&self.known(string))
    }

    /// Words of `string` with an id, in order.
    fn known(&self, string: &str) -> Vec<KnownWord> {
        let mut known = Vec::new();
        words(string, |word| {
            let has_digit = || string[word.start..word.end].contains(char::is_numeric);
            let of_id = |id: &u32| KnownWord { id: *id, at: word.start, has_digit: has_digit() };
            known.extend(self.ids.get(&word.key).map(of_id));
        });
        known
    }

    fn weight(&self, id: u32) -> f64 {
        self.weights[id as usize]
    }
}

/// Word of a string.
struct KnownWord {
    id: u32,
    /// First byte.
    at: usize,
    has_digit: bool,
}

/// Ids of `words`, each once.
fn distinct(words: &[KnownWord]) -> Vec<u32> {
    let mut ids: Vec<u32> = Vec::with_capacity(words.len());
    for word in words {
        if !ids.contains(&word.id) {
            ids.push(word.id);
        }
    }
    ids
}

/// Indices of the words of each clause of `string` that has several or a rare one; all words if none has.
fn clauses(string: &str, known: &[KnownWord], words: &[FieldWord]) -> Vec<Vec<usize>> {
    let (mut clauses, mut start) = (Vec::new(), 0);
    for end in CLAUSE_ENDS.iter().flat_map(|ends| ends.find_iter(string)) {
        clauses.push(start..end.start());
        start = end.end();
    }
    clauses.push(start..string.len());
    let clause = |range: Range<usize>| {
        let denies = negations(&string[range.clone()]).next().is_some();
        let words_before = |at: usize| known.partition_point(|it| it.at < at);
        let here = &known[words_before(range.start)..words_before(range.end)];
        let is_here = |id: u32| here.iter().any(|it| it.id == id);
        let is_ours = |word: &FieldWord| match word.is_negation {
            true => denies,
            false => is_here(word.id),
        };
        (0..words.len()).filter(|at| is_ours(&words[*at])).collect::<Vec<_>>()
    };
    let is_rare = |at: &usize| words[*at].weight >= RARE_WEIGHT_MIN;
    let states = |it: &Vec<usize>| it.len() > 1 || it.first().is_some_and(is_rare);
    let found: Vec<_> = clauses.into_iter().map(clause).filter(states).collect();
    if found.is_empty() { vec![(0..words.len()).collect()] } else { found }
}

/// Lexicon of the language in which people and assistants speak in `slice`.
fn lexicon_of(slice: &Slice) -> Option<&'static Lexicon> {
    let is_said = |part: &&Part| matches!(part.speaker, Speaker::Person | Speaker::Assistant);
    let parts = slice.parts.iter().filter(is_said).filter(|part| part.kind != EntryKind::ToolCall);
    let said = parts.filter_map(|part| slice.text.as_str().get(part.span.clone()));
    Lexicon::of(&said.collect::<Vec<_>>().join("\n"))
}

/// Largest range around `at` that `fits`, extended step by step.
fn grow(at: usize, fits: impl Fn(Range<usize>) -> bool) -> Range<usize> {
    let mut range = at..at + 1;
    loop {
        let len = range.len();
        let before = range.start.saturating_sub(1)..range.end;
        range = if fits(before.clone()) { before } else { range };
        let after = range.start..range.end + 1;
        range = if fits(after.clone()) { after } else { range };
        if range.len() == len {
            return range;
        }
    }
}

/// Parts of a field that the windows so far state.
#[derive(Debug)]
struct Stated {
    /// Largest share of each clause in one sentence.
    clauses: Vec<f64>,
    /// True for words of the field.
    words: Vec<bool>,
}

impl Stated {
    fn of(field: &Field) -> Stated {
        Stated { clauses: vec![0.0; field.clauses.len()], words: vec![false; field.words.len()] }
    }

    fn add(&mut self, candidate: &Candidate) {
        for (old, new) in self.clauses.iter_mut().zip(&candidate.clauses) {
            *old = old.max(*new);
        }
        candidate.held.iter().for_each(|word| self.words[*word] = true);
    }

    /// Largest share of a clause that `candidate` states better, or with other words.
    fn best_new(&self, candidate: &Candidate, field: &Field) -> Option<f64> {
        let new: Vec<usize> =
            candidate.held.iter().copied().filter(|it| !self.words[*it]).collect();
        let clauses = candidate.clauses.iter().zip(&self.clauses).zip(&field.clauses);
        let better = clauses.filter(|((share, old), clause)| {
            **share - **old >= BETTER_SHARE_MIN
                || **share > 0.0 && field.share(clause, &new) >= NEW_SHARE_MIN
        });
        better.map(|((share, _), _)| *share).reduce(f64::max)
    }
}

impl Field {
    fn weigh(&self, words: &[usize]) -> f64 {
        words.iter().map(|word| self.words[*word].weight).sum()
    }

    /// Share of each clause's weight that `words` have, 0 to 1. A clause with numbers needs one of them.
    fn shares(&self, words: &[usize]) -> Vec<f64> {
        let mut held = vec![(0.0, false); self.clauses.len()];
        for word in words {
            let FieldWord { weight, has_digit, .. } = self.words[*word];
            for clause in &self.homes[*word] {
                held[*clause].0 += weight;
                held[*clause].1 |= has_digit;
            }
        }
        let share = |((share, has_number), (total, needs_number)): ((f64, bool), &(f64, bool))| {
            if has_number || !needs_number { share / total } else { 0.0 }
        };
        held.into_iter().zip(&self.totals).map(share).collect()
    }

    /// Share of a clause's weight that `words` have, 0 to 1.
    fn share(&self, clause: &[usize], words: &[usize]) -> f64 {
        let ours = clause.iter().filter(|it| words.contains(it));
        ours.map(|word| self.words[*word].weight).sum::<f64>() / self.weigh(clause)
    }

    /// Indices of the words in a range of sentences.
    fn held(&self, sentences: Range<usize>) -> Vec<usize> {
        words_in(&self.places, &sentences)
    }
}

/// Weight of a word by rarity. An absent word weighs nearly as much as the rarest present one;
/// otherwise unrelated claims would score better in longer slices.
fn weight(parts_with: u32, parts: f64) -> f64 {
    let rarity = match parts_with {
        0 => (parts / 2.0).max(1.0),
        with => parts / f64::from(with),
    };
    1.0 + rarity.ln() * 0.5
}
