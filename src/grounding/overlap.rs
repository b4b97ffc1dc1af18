//! Support by word overlap: the entries that hold a claim's rare words, and the windows where they
//! are densest.

use super::fold::Folded;
use super::negation::negations;
use super::preference::{ClaimWords, Preference};
use super::{EVIDENCE_BYTES_MAX, EVIDENCE_PER_STRING_MAX};
use crate::domain::{Slice, Speaker};
use crate::text::tokens::words;
use std::collections::HashMap;
use std::ops::Range;

/// Minimum share of a string's weight in a further window, or in a preferred speaker's first one, in percent.
const GAIN_PERCENT_MIN: f64 = 12.0;
/// Same for a further window of a single word, in percent; most single words match by chance.
const WORD_GAIN_PERCENT_MIN: f64 = 25.0;
/// Same for a person's first window for a request, in percent: few words of theirs are evidence of a wish.
const WISH_PERCENT_MIN: f64 = 8.0;
/// Minimum share of a clause's weight in a window that states it.
const CLAUSE_SHARE_MIN: f64 = 0.55;
/// Same for the words that no other window holds.
const CLAUSE_NEW_SHARE_MIN: f64 = 0.45;
/// Ends of clauses.
const CLAUSE_SEPARATORS: [&str; 7] = ["; ", ", ", ". ", ": ", " and ", " but ", " then "];
/// Minimum weight of a word that may be a clause alone.
const RARE_WEIGHT_MIN: f64 = 2.0;
/// Weight of a negation in a claim that has one: of two windows with the same words, the negating
/// one wins. Excluded from scores.
const NEGATION_WEIGHT: f64 = 0.6;
/// Factor for a word that a window covers already: a further window should be about the same matter.
const ECHO_FACTOR: f64 = 0.3;
/// Cost of a byte of a window, in weight: a word far from the others is not worth the text between.
const BYTE_COST: f64 = 0.01;
/// Maximum indexed occurrences of one word in one entry.
const PLACES_MAX: usize = 64;

/// Position of a word: index of its part, and byte range in the slice's text.
#[derive(Clone, Copy, Debug)]
struct WordPosition {
    part: u32,
    start: u32,
    end: u32,
}

/// Range of one entry with words of a field.
#[derive(Debug)]
struct Window {
    part: u32,
    /// Byte range in the slice's text.
    span: Range<usize>,
    /// Value of its words for the field.
    value: f64,
}

/// Window extended to sentences, with what it adds to other windows.
#[derive(Debug)]
struct CoveringWindow {
    part: u32,
    /// Byte range in the slice's text.
    span: Range<usize>,
    /// Indices of its words in the field.
    held: Vec<usize>,
    /// Number of its words that no other window holds.
    words: usize,
    /// Total weight of those words.
    gain: f64,
    /// True if it states a clause of the field.
    states: bool,
}

/// Words of one field, and the positions that no window covers yet.
#[derive(Clone, Debug)]
struct FieldWords {
    ids: Vec<u32>,
    /// Positions in text order, each with the index of its word.
    places: Vec<(WordPosition, usize)>,
    /// Value of each word for the next window.
    values: Vec<f64>,
    /// True for words that no window covers; never for a negation.
    open: Vec<bool>,
    /// Weight of the whole field, including words that the slice lacks.
    total: f64,
    /// Ids of the words of each clause.
    clauses: Vec<Vec<u32>>,
}

/// Positions of all claims' words in one slice. Built in one pass over its text.
#[derive(Debug)]
pub(super) struct WordIndex<'a> {
    slice: &'a Slice,
    ids: HashMap<u64, u32>,
    places: Vec<Vec<WordPosition>>,
    /// Weight of each word, by id.
    weights: Vec<f64>,
    /// Id shared by all negations, if a claim has one.
    negation: Option<u32>,
}

/// Support for one string of a claim.
#[derive(Debug, Default)]
pub(super) struct WordSupport {
    /// Share of the string's weight that is covered, 0 to 1.
    pub(super) score: f64,
    /// Weight of the string in the record's score.
    pub(super) weight: f64,
    /// Number of distinct words.
    pub(super) words: usize,
    /// Ids of the distinct words that the slice has.
    pub(super) shared: Vec<u32>,
    /// Ranges of the slice's text, best first, each with the weight that it covers.
    pub(super) spans: Vec<(Range<usize>, f64)>,
}

impl<'a> WordIndex<'a> {
    pub(super) fn new<'b>(
        slice: &'a Slice,
        folded: &Folded,
        strings: impl Iterator<Item = &'b str>,
    ) -> WordIndex<'a> {
        let mut ids: HashMap<u64, u32> = HashMap::new();
        let mut denies = false;
        for string in strings {
            denies |= negations(string).next().is_some();
            words(string, |word| {
                let next = ids.len() as u32;
                ids.entry(word.key).or_insert(next);
            });
        }
        let negation = denies.then_some(ids.len() as u32);
        let numbers = ids.len() + usize::from(denies);
        let mut places: Vec<Vec<WordPosition>> = vec![Vec::new(); numbers];
        let mut parts_with = vec![0; numbers];
        // Part in which each word was last seen, and its occurrences there.
        let mut counted = vec![(u32::MAX, 0); numbers];
        for (number, part) in (0u32..).zip(&slice.parts) {
            let text = slice.text.as_str().get(part.span.clone()).unwrap_or_default();
            let mut note = |word: Range<usize>, id: u32| {
                let here = &mut counted[id as usize];
                if here.0 != number {
                    *here = (number, 0);
                    parts_with[id as usize] += 1;
                }
                if here.1 < PLACES_MAX {
                    here.1 += 1;
                    let at = |byte: usize| (part.span.start + byte) as u32;
                    let place =
                        WordPosition { part: number, start: at(word.start), end: at(word.end) };
                    places[id as usize].push(place);
                }
            };
            words(text, |word| {
                let span = || part.span.start + word.start..part.span.start + word.end;
                // Elision marks are not part of the conversation.
                if let Some(id) = ids.get(&word.key)
                    && !folded.is_marked(&span())
                {
                    note(word.start..word.end, *id);
                }
            });
            if let Some(id) = negation {
                negations(text).for_each(|word| note(word, id));
            }
        }
        let parts = slice.parts.len() as f64;
        let mut weights: Vec<f64> =
            parts_with.into_iter().map(|with| weight(with, parts)).collect();
        if denies && let Some(of_negation) = weights.last_mut() {
            *of_negation = NEGATION_WEIGHT;
        }
        WordIndex { slice, ids, places, weights, negation }
    }

    /// Positions of the words of all `strings`.
    pub(super) fn claim_words<'s>(&self, strings: impl Iterator<Item = &'s str>) -> ClaimWords {
        let mut ids: Vec<u32> = strings.flat_map(|string| self.wanted(string)).collect();
        ids.sort_unstable();
        ids.dedup();
        let of_word = |(word, id): (u32, &u32)| {
            self.places[*id as usize].iter().map(move |place| (place.start, word))
        };
        let places = (0u32..).zip(&ids).flat_map(of_word).collect();
        ClaimWords::new(places, ids.iter().map(|id| self.weight(*id)).collect())
    }

    /// Finds the windows that hold most of the words of `string`, preferred ones first.
    pub(super) fn support(&self, string: &str, preference: &Preference<'_>) -> WordSupport {
        let wanted = self.wanted(string);
        let total: f64 = wanted.iter().map(|id| self.weight(*id)).sum();
        if total <= 0.0 {
            return WordSupport::default();
        }
        let present = |id: &&u32| !self.places[**id as usize].is_empty();
        let shared: Vec<u32> = wanted.iter().filter(present).copied().collect();
        let negation = self.negation.filter(|_| negations(string).next().is_some());
        let ids = shared.iter().copied().chain(negation).collect();
        let field = self.field(ids, total, self.clauses(string));
        let mut support =
            WordSupport { weight: total, words: wanted.len(), shared, ..WordSupport::default() };
        let chosen = self.choose(&field, preference);
        support.score = self.covered(&field, &chosen) / total;
        let is_shown = |window: &CoveringWindow| {
            let (lead, part) = (&chosen[0].span, &self.slice.parts[window.part as usize]);
            let shows = || preference.shows(part, &window.span, lead, window.gain / total);
            window.span == *lead || window.states || shows()
        };
        let shown = chosen.iter().filter(|window| is_shown(window));
        support.spans.extend(shown.map(|window| (window.span.clone(), window.gain)));
        if !preference.first.is_empty() {
            self.sort(&mut support.spans, preference);
        }
        support
    }

    /// Windows that together hold most of a field, the leading one first.
    fn choose(&self, whole: &FieldWords, preference: &Preference<'_>) -> Vec<CoveringWindow> {
        let (mut field, mut chosen) = (whole.clone(), Vec::<CoveringWindow>::new());
        while chosen.len() < EVIDENCE_PER_STRING_MAX {
            let lead = chosen.first().map(|it| &it.span);
            let Some(window) = self.next_window(&field, preference, lead) else { break };
            if lead.is_some() && !window.adds_to(&field) {
                break;
            }
            field.cover(&window);
            chosen.push(window);
        }
        chosen
    }

    /// Weight of the words in and around `windows`.
    fn covered(&self, field: &FieldWords, windows: &[CoveringWindow]) -> f64 {
        let mut is_covered = vec![false; field.ids.len()];
        for window in windows {
            let part = &self.slice.parts[window.part as usize].span;
            let room = EVIDENCE_BYTES_MAX.saturating_sub(window.span.len()) / 2;
            let start = window.span.start.saturating_sub(room).max(part.start);
            let around = start..(window.span.end + room).min(part.end);
            field.held(&around).into_iter().for_each(|word| is_covered[word] = true);
        }
        let words = field.ids.iter().zip(is_covered);
        let words = words.filter(|(id, is_covered)| *is_covered && Some(**id) != self.negation);
        words.map(|(id, _)| self.weight(*id)).sum()
    }

    /// The next window: that of a preferred speaker leads if it covers enough.
    fn next_window(
        &self,
        field: &FieldWords,
        preference: &Preference<'_>,
        lead: Option<&Range<usize>>,
    ) -> Option<CoveringWindow> {
        let windows = field.windows();
        let best = |only| self.best_window(&windows, only, preference, lead);
        let cover = |it: &Window| self.covering(field, it.part, self.widen(it));
        if lead.is_some() {
            // A person states a wish in several messages.
            let person = best(Some(Speaker::Person)).filter(|_| preference.is_wish()).map(cover);
            return person.filter(|it| it.adds_to(field)).or_else(|| best(None).map(cover));
        }
        let least = if preference.is_wish() { WISH_PERCENT_MIN } else { GAIN_PERCENT_MIN };
        let mut led = preference.first.iter().filter_map(|it| best(Some(*it)));
        let led = led.find(|it| it.value * 100.0 >= field.total * least);
        if preference.is_wish() && led.is_some() {
            return led.map(cover);
        }
        let best = best(None);
        let least = best.map_or(0.0, |it| it.value * preference.lead_share_min);
        led.filter(|it| it.value >= least).or(best).map(cover)
    }

    /// The window `span` with what it adds to those that cover the rest of the field.
    fn covering(&self, field: &FieldWords, part: u32, span: Range<usize>) -> CoveringWindow {
        let held = field.held(&span);
        let new: Vec<usize> = held.iter().copied().filter(|word| field.open[*word]).collect();
        let weigh = |words: &[usize], clause: &[u32]| -> f64 {
            let ids = words.iter().map(|word| field.ids[*word]);
            ids.filter(|id| clause.contains(id)).map(|id| self.weight(id)).sum()
        };
        let states = field.clauses.iter().any(|clause| {
            let all: f64 = clause.iter().map(|id| self.weight(*id)).sum();
            weigh(&held, clause) >= all * CLAUSE_SHARE_MIN
                && weigh(&new, clause) >= all * CLAUSE_NEW_SHARE_MIN
        });
        let gain = weigh(&new, &field.ids);
        CoveringWindow { part, span, states, words: new.len(), held, gain }
    }

    fn field(&self, ids: Vec<u32>, total: f64, clauses: Vec<Vec<u32>>) -> FieldWords {
        let of_word = |(word, id): (usize, &u32)| {
            self.places[*id as usize].iter().map(move |place| (*place, word))
        };
        let mut places: Vec<_> = ids.iter().enumerate().flat_map(of_word).collect();
        places.sort_unstable_by_key(|(place, _)| place.start);
        let values = ids.iter().map(|id| self.weight(*id)).collect();
        let open = ids.iter().map(|id| Some(*id) != self.negation).collect();
        FieldWords { ids, places, values, open, total, clauses }
    }

    /// Sorts a person's windows first, then by share of the whole claim.
    fn sort(&self, spans: &mut [(Range<usize>, f64)], preference: &Preference<'_>) {
        let rank = |(span, _): &(Range<usize>, f64)| {
            let part = self.slice.part_at(span.start);
            let person = part.is_some_and(|part| part.speaker == Speaker::Person);
            let bonus = if person && preference.is_wish() { 2.0 } else { 0.0 };
            bonus + preference.claim.share(span)
        };
        spans.sort_by(|one, other| rank(other).total_cmp(&rank(one)));
    }

    /// Ids of the distinct words of `string`.
    pub(super) fn wanted(&self, string: &str) -> Vec<u32> {
        let mut wanted: Vec<u32> = Vec::new();
        words(string, |word| {
            if let Some(id) = self.ids.get(&word.key)
                && !wanted.contains(id)
            {
                wanted.push(*id);
            }
        });
        wanted
    }

    /// Words of each clause of `string` that has several or a rare one.
    fn clauses(&self, string: &str) -> Vec<Vec<u32>> {
        let mut clauses = vec![string];
        for separator in CLAUSE_SEPARATORS {
            clauses = clauses.into_iter().flat_map(|it| it.split(separator)).collect();
        }
        let is_rare = |it: &[u32]| it.first().is_some_and(|id| self.weight(*id) >= RARE_WEIGHT_MIN);
        let clauses = clauses.into_iter().map(|it| self.wanted(it));
        clauses.filter(|it| it.len() > 1 || is_rare(it)).collect()
    }

    fn weight(&self, id: u32) -> f64 {
        self.weights[id as usize]
    }

    /// Most valuable one of `windows`, after preference.
    fn best_window<'w>(
        &self,
        windows: &'w [Window],
        only: Option<Speaker>,
        preference: &Preference<'_>,
        lead: Option<&Range<usize>>,
    ) -> Option<&'w Window> {
        let mut best: Option<(f64, &Window)> = None;
        for window in windows {
            let speaker = self.slice.parts[window.part as usize].speaker;
            if only.is_some_and(|only| only != speaker) {
                continue;
            }
            let place = preference.in_place(self.slice, window.part, &window.span, lead);
            let placed = window.value * place;
            let least = best.as_ref().map_or(0.0, |(most, _)| *most);
            if placed * Preference::CONTEXT_FACTOR_MAX <= least {
                continue;
            }
            let preferred = placed * preference.in_context(&window.span);
            if best.is_none() || least < preferred {
                best = Some((preferred, window));
            }
        }
        best.map(|(_, window)| window)
    }

    /// Range of `window` extended to sentences.
    fn widen(&self, window: &Window) -> Range<usize> {
        let Window { part, span, .. } = window;
        let part = &self.slice.parts[*part as usize];
        let text = self.slice.text.as_str();
        let room = EVIDENCE_BYTES_MAX.saturating_sub(span.len());
        let low = span.start.saturating_sub(room).max(part.span.start);
        let low = text.ceil_char_boundary(low).min(span.start);
        let start = match ends(&text[low..span.start]).last() {
            Some(end) => low + end,
            // No sentence begins nearby; begin at a clause.
            None if low > part.span.start => {
                let ends = CLAUSE_SEPARATORS
                    .iter()
                    .filter_map(|it| text[low..span.start].rfind(it).map(|at| low + at + it.len()));
                ends.max().unwrap_or(span.start)
            }
            None => low,
        };
        let room = EVIDENCE_BYTES_MAX.saturating_sub(span.end - start);
        let high = text.floor_char_boundary((span.end + room).min(part.span.end)).max(span.end);
        let end = match ends(&text[span.end..high]).next() {
            Some(end) => span.end + end,
            None if high < part.span.end => {
                text[span.end..high].rfind(' ').map_or(span.end, |at| span.end + at)
            }
            None => high,
        };
        let blank = |text: &str| text.len() - text.trim_start().len();
        start + blank(&text[start..span.start])..end
    }
}

impl CoveringWindow {
    /// True if it adds enough to the windows that cover the rest of `field`.
    fn adds_to(&self, field: &FieldWords) -> bool {
        let least = if self.words > 1 { GAIN_PERCENT_MIN } else { WORD_GAIN_PERCENT_MIN };
        self.states || self.gain * 100.0 >= field.total * least
    }
}

impl FieldWords {
    /// Indices of the words in `span`.
    fn held(&self, span: &Range<usize>) -> Vec<usize> {
        let first = self.places.partition_point(|(place, _)| (place.start as usize) < span.start);
        let here = self.places[first..].iter();
        let here = here.take_while(|(place, _)| place.end as usize <= span.end);
        let mut held: Vec<usize> = here.map(|(_, word)| *word).collect();
        held.sort_unstable();
        held.dedup();
        held
    }

    /// Closes the words of `window`, which no further window overlaps.
    fn cover(&mut self, window: &CoveringWindow) {
        let span = &window.span;
        self.places.retain(|(place, _)| {
            (place.end as usize) <= span.start || span.end <= place.start as usize
        });
        for word in &window.held {
            self.open[*word] = false;
            self.values[*word] *= ECHO_FACTOR;
        }
    }

    /// Most valuable window with an open word of each entry.
    fn windows(&self) -> Vec<Window> {
        let mut times = vec![0u32; self.ids.len()];
        let entries = self.places.chunk_by(|(one, _), (other, _)| one.part == other.part);
        entries.filter_map(|places| self.window(places, &mut times)).collect()
    }

    /// The same of one entry with `places`. Leaves `times` at zero.
    fn window(&self, places: &[(WordPosition, usize)], times: &mut [u32]) -> Option<Window> {
        let (mut best, mut most, mut value, mut open, mut first) = (None, 0.0, 0.0, 0, 0);
        for (last, (to, word)) in places.iter().enumerate() {
            let before = last.checked_sub(1).map_or(to.start, |before| places[before].0.end);
            let is_apart = value < f64::from(to.start.saturating_sub(before)) * BYTE_COST;
            times[*word] += 1;
            if times[*word] == 1 {
                value += self.values[*word];
                open += usize::from(self.open[*word]);
            }
            // Drops words at the front that are far away, no longer fit or occur again in the window.
            while first < last
                && (is_apart
                    || (to.end - places[first].0.start) as usize > EVIDENCE_BYTES_MAX
                    || times[places[first].1] > 1)
            {
                let word = places[first].1;
                times[word] -= 1;
                if times[word] == 0 {
                    value -= self.values[word];
                    open -= usize::from(self.open[word]);
                }
                first += 1;
            }
            let span = places[first].0.start as usize..to.end as usize;
            let net = value - span.len() as f64 * BYTE_COST;
            if open > 0 && (best.is_none() || most < net) {
                (most, best) = (net, Some(Window { part: to.part, span, value: net }));
            }
        }
        places.iter().for_each(|(_, word)| times[*word] = 0);
        best
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

/// Ends of sentences and lines, including their terminators. A full stop counts only before whitespace, unlike in `main.rs`.
fn ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    let mut letters = text.char_indices().peekable();
    std::iter::from_fn(move || {
        loop {
            let (at, letter) = letters.next()?;
            let ended = match letter {
                '\n' | '。' | '！' | '？' => true,
                '.' | '!' | '?' => letters.peek().is_none_or(|(_, next)| next.is_whitespace()),
                _ => false,
            };
            if ended {
                return Some(at + letter.len_utf8());
            }
        }
    })
}
