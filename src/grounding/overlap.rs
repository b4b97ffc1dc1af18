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
/// Minimum share of a clause's weight in a window that is far from the first one.
const CLAUSE_SHARE_MIN: f64 = 0.6;
/// Weight of a negation in a claim that has one: of two windows with the same words, the negating
/// one wins. Excluded from scores.
const NEGATION_WEIGHT: f64 = 0.6;
/// Maximum indexed occurrences of one word in one entry.
const PLACES_MAX: usize = 64;

/// Position of a word: index of its part, and byte range in the slice's text.
#[derive(Clone, Copy, Debug)]
struct WordPosition {
    part: u32,
    start: u32,
    end: u32,
}

/// Range of one entry, with the claim's words that it holds.
#[derive(Debug)]
struct Window {
    part: u32,
    /// Byte range in the slice's text.
    span: Range<usize>,
    /// Ids of the words.
    held: Vec<u32>,
    /// Total weight of `held`.
    gain: f64,
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
        let mut open: Vec<u32> = wanted.iter().filter(present).copied().collect();
        let mut support = WordSupport {
            weight: total,
            words: wanted.len(),
            shared: open.clone(),
            ..WordSupport::default()
        };
        open.extend(self.negation.filter(|_| negations(string).next().is_some()));
        let is_word = |id: &u32| Some(*id) != self.negation;
        let clauses = self.clauses(string);
        let (mut covered, mut lead) = (0.0, None);
        for _ in 0..EVIDENCE_PER_STRING_MAX {
            if !open.iter().any(is_word) {
                break;
            }
            let leads = if lead.is_none() { preference.first } else { &[] };
            let mut led =
                leads.iter().filter_map(|it| self.best_window(&open, Some(*it), preference, None));
            let leads_with = |it: &Window| {
                it.held.iter().any(is_word) && it.gain * 100.0 >= total * GAIN_PERCENT_MIN
            };
            let led = led.find(leads_with);
            let leads_alone = led.is_some() && preference.lead_share_min == 0.0;
            let best = match leads_alone {
                true => None,
                false => self.best_window(&open, None, preference, lead.as_ref()),
            };
            let least = best.as_ref().map_or(0.0, |it| it.gain * preference.lead_share_min);
            let Some(window) = led.filter(|it| it.gain >= least).or(best) else { break };
            let is_slight = window.gain * 100.0 < total * GAIN_PERCENT_MIN
                || window.held.len() == 1 && window.gain * 100.0 < total * WORD_GAIN_PERCENT_MIN;
            if lead.is_some() && is_slight {
                break;
            }
            covered +=
                window.held.iter().copied().filter(is_word).map(|id| self.weight(id)).sum::<f64>();
            open.retain(|id| !window.held.contains(id));
            let lead = lead.get_or_insert_with(|| window.span.clone());
            let part = &self.slice.parts[window.part as usize];
            if *lead == window.span
                || preference.shows(part, &window.span, lead, window.gain / total)
                || clauses.iter().any(|clause| self.states(&window, clause))
            {
                support.spans.push((self.widen(window.part, window.span), window.gain));
            }
        }
        support.score = covered / total;
        if !preference.first.is_empty() {
            self.sort(&mut support.spans, preference);
        }
        support
    }

    /// Sorts a person's windows first, then by share of the whole claim.
    fn sort(&self, spans: &mut [(Range<usize>, f64)], preference: &Preference<'_>) {
        let rank = |(span, _): &(Range<usize>, f64)| {
            let part = self.slice.part_at(span.start);
            let person = part.is_some_and(|part| part.speaker == Speaker::Person);
            let bonus = if person && preference.lead_share_min == 0.0 { 2.0 } else { 0.0 };
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

    /// Words of each clause of `string` that has several.
    fn clauses(&self, string: &str) -> Vec<Vec<u32>> {
        let clauses =
            string.split("; ").flat_map(|it| it.split(", ")).flat_map(|it| it.split(". "));
        clauses.map(|it| self.wanted(it)).filter(|it| it.len() > 1).collect()
    }

    /// True if `window` holds most of the weight of `clause`.
    fn states(&self, window: &Window, clause: &[u32]) -> bool {
        let weigh = |id: &u32| self.weight(*id);
        let held: f64 = clause.iter().filter(|id| window.held.contains(id)).map(weigh).sum();
        held >= clause.iter().map(weigh).sum::<f64>() * CLAUSE_SHARE_MIN
    }

    fn weight(&self, id: u32) -> f64 {
        self.weights[id as usize]
    }

    /// Window of one entry with the greatest weight of `open` words, after preference.
    fn best_window(
        &self,
        open: &[u32],
        only: Option<Speaker>,
        preference: &Preference<'_>,
        lead: Option<&Range<usize>>,
    ) -> Option<Window> {
        let mut places: Vec<(WordPosition, usize)> = Vec::new();
        for (slot, id) in open.iter().enumerate() {
            places.extend(self.places[*id as usize].iter().map(|place| (*place, slot)));
        }
        places.sort_unstable_by_key(|(place, _)| (place.part, place.start));
        let mut best: Option<(f64, Window)> = None;
        for here in places.chunk_by(|(one, _), (other, _)| one.part == other.part) {
            let part = here[0].0.part;
            let speaker = self.slice.parts[part as usize].speaker;
            if only.is_some_and(|only| only != speaker) {
                continue;
            }
            let window = self.window(here, open);
            let placed = window.gain * preference.in_place(self.slice, part, &window.span, lead);
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

    /// Window with the most weight of wanted words; `places` are those of one entry, in order.
    fn window(&self, places: &[(WordPosition, usize)], open: &[u32]) -> Window {
        let mut times = vec![0u32; open.len()];
        let weigh = |slot: usize| self.weight(open[slot]);
        let (mut best, mut best_weight, mut weight, mut first) = (0..0, 0.0, 0.0, 0);
        for (last, (to, slot)) in places.iter().enumerate() {
            times[*slot] += 1;
            weight += if times[*slot] == 1 { weigh(*slot) } else { 0.0 };
            // Drops words at the front that no longer fit or that occur again in the window.
            while (to.end - places[first].0.start) as usize > EVIDENCE_BYTES_MAX
                || times[places[first].1] > 1
            {
                let slot = places[first].1;
                times[slot] -= 1;
                weight -= if times[slot] == 0 { weigh(slot) } else { 0.0 };
                first += 1;
            }
            if weight > best_weight {
                (best_weight, best) = (weight, first..last + 1);
            }
        }
        let held = &places[best];
        let mut ids: Vec<u32> = held.iter().map(|(_, slot)| open[*slot]).collect();
        ids.sort_unstable();
        ids.dedup();
        let span = match held {
            [] => 0..0,
            [(from, _), ..] => from.start as usize..held[held.len() - 1].0.end as usize,
        };
        let part = places.first().map_or(0, |(place, _)| place.part);
        Window { part, span, held: ids, gain: best_weight }
    }

    fn widen(&self, part: u32, span: Range<usize>) -> Range<usize> {
        let part = &self.slice.parts[part as usize];
        let text = self.slice.text.as_str();
        let room = EVIDENCE_BYTES_MAX.saturating_sub(span.len()) / 2;
        let low = text.ceil_char_boundary(span.start.saturating_sub(room).max(part.span.start));
        let high = text.floor_char_boundary((span.end + room).min(part.span.end)).max(span.end);
        let low = low.min(span.start);
        let start = match last_end(&text[low..span.start]) {
            Some(end) => low + end,
            // No sentence begins nearby; begin at a word.
            None if low > part.span.start => {
                text[low..span.start].find(' ').map_or(span.start, |at| low + at + 1)
            }
            None => low,
        };
        let end = match first_end(&text[span.end..high]) {
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

/// Weight of a word by rarity. An absent word weighs nearly as much as the rarest present one;
/// otherwise unrelated claims would score better in longer slices.
fn weight(parts_with: u32, parts: f64) -> f64 {
    let rarity = match parts_with {
        0 => (parts / 2.0).max(1.0),
        with => parts / f64::from(with),
    };
    1.0 + rarity.ln() * 0.5
}

/// End of the first sentence or line of `text`, including its terminator.
fn first_end(text: &str) -> Option<usize> {
    ends(text).next()
}

/// End of the last sentence or line of `text`.
fn last_end(text: &str) -> Option<usize> {
    ends(text).last()
}

/// Ends of sentences and lines. A full stop counts only before whitespace, unlike in `main.rs`.
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
