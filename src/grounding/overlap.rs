//! Support by rare words: which entries of the slice hold the words of a claim, and where they stand
//! closest together.

use super::{EVIDENCE_BYTES_MAX, EVIDENCE_PER_STRING_MAX};
use crate::domain::{Slice, Speaker};
use crate::text::tokens::{Word, words};
use std::collections::HashMap;
use std::ops::Range;

/// A further entry is evidence only if it adds this share of the claim's weight, in percent.
const GAIN_PERCENT_MIN: f64 = 12.0;
/// The most places of one word in one entry that are looked at.
const PLACES_MAX: usize = 64;

/// Position of a word: the part of the slice, and its bytes in the slice's text.
#[derive(Clone, Copy, Debug)]
struct WordPosition {
    part: u32,
    start: u32,
    end: u32,
}

/// Positions of the words of all claims in one slice. Built in one pass over its text.
#[derive(Debug)]
pub(super) struct WordIndex<'a> {
    slice: &'a Slice,
    ids: HashMap<u64, u32>,
    places: Vec<Vec<WordPosition>>,
    /// Weight of each word.
    weights: Vec<f64>,
}

/// Support of a string.
#[derive(Debug, Default)]
pub(super) struct WordSupport {
    /// The share of the string's weight that is covered, 0 to 1.
    pub(super) score: f64,
    /// Weight of the string in its record.
    pub(super) weight: f64,
    /// Number of its different words in the slice.
    pub(super) shared: usize,
    /// Bytes of the slice's text, best first, each with the weight that its entry covers.
    pub(super) spans: Vec<(Range<usize>, f64)>,
}

impl<'a> WordIndex<'a> {
    pub(super) fn new<'b>(
        slice: &'a Slice,
        strings: impl Iterator<Item = &'b str>,
    ) -> WordIndex<'a> {
        let mut ids: HashMap<u64, u32> = HashMap::new();
        for string in strings {
            words(string, |word| {
                let next = ids.len() as u32;
                ids.entry(word.key).or_insert(next);
            });
        }
        let mut places: Vec<Vec<WordPosition>> = vec![Vec::new(); ids.len()];
        let mut parts_with = vec![0; ids.len()];
        // The part that each word was last seen in, and how often.
        let mut counted = vec![(u32::MAX, 0); ids.len()];
        for (number, part) in (0u32..).zip(&slice.parts) {
            let text = slice.text.as_str().get(part.span.clone()).unwrap_or_default();
            let mut note = |word: Word, id: u32| {
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
                if let Some(id) = ids.get(&word.key) {
                    note(word, *id);
                }
            });
        }
        let parts = slice.parts.len() as f64;
        let weights = parts_with.into_iter().map(|with| weight(with, parts)).collect();
        WordIndex { slice, ids, places, weights }
    }

    /// Support of `string` by the slice.
    pub(super) fn support(&self, string: &str) -> WordSupport {
        let mut wanted: Vec<u32> = Vec::new();
        words(string, |word| {
            if let Some(id) = self.ids.get(&word.key)
                && !wanted.contains(id)
            {
                wanted.push(*id);
            }
        });
        let total: f64 = wanted.iter().map(|id| self.weight(*id)).sum();
        if total <= 0.0 {
            return WordSupport::default();
        }
        let present = |id: &&u32| !self.places[**id as usize].is_empty();
        let mut open: Vec<u32> = wanted.iter().filter(present).copied().collect();
        let mut support =
            WordSupport { weight: total, shared: open.len(), ..WordSupport::default() };
        let mut covered = 0.0;
        while support.spans.len() < EVIDENCE_PER_STRING_MAX && !open.is_empty() {
            let Some((part, gain)) = self.best_part(&open) else { break };
            if !support.spans.is_empty() && gain * 100.0 < total * GAIN_PERCENT_MIN {
                break;
            }
            covered += gain;
            support.spans.push((self.window(part, &open), gain));
            open.retain(|id| !self.stands_in(*id, part));
        }
        support.score = covered / total;
        support
    }

    fn weight(&self, id: u32) -> f64 {
        self.weights[id as usize]
    }

    fn stands_in(&self, id: u32, part: u32) -> bool {
        self.places[id as usize].binary_search_by_key(&part, |place| place.part).is_ok()
    }

    fn best_part(&self, open: &[u32]) -> Option<(u32, f64)> {
        let mut gains = vec![0.0; self.slice.parts.len()];
        for id in open {
            let mut last = None;
            for place in &self.places[*id as usize] {
                if last != Some(place.part) {
                    gains[place.part as usize] += self.weight(*id);
                    last = Some(place.part);
                }
            }
        }
        let trusted = |part: u32, gain: f64| gain * self.trust(part);
        let gains = (0u32..).zip(gains).filter(|(_, gain)| *gain > 0.0);
        gains.max_by(|one, other| {
            let order = trusted(one.0, one.1).total_cmp(&trusted(other.0, other.1));
            order.then(other.0.cmp(&one.0))
        })
    }

    /// Of two entries that say the same, a person's is the better evidence.
    fn trust(&self, part: u32) -> f64 {
        match self.slice.parts[part as usize].speaker {
            Speaker::Person => 1.2,
            Speaker::Assistant => 1.0,
            Speaker::Tool => 0.95,
            Speaker::Web | Speaker::Client => 0.9,
        }
    }

    /// The stretch of `part` with most of the wanted words, widened to whole lines where they are
    /// short.
    fn window(&self, part: u32, open: &[u32]) -> Range<usize> {
        let mut places: Vec<(WordPosition, u32)> = Vec::new();
        for id in open {
            let list = &self.places[*id as usize];
            let from = list.partition_point(|place| place.part < part);
            let here = list[from..].iter().take_while(|place| place.part == part);
            places.extend(here.map(|place| (*place, *id)));
        }
        places.sort_unstable_by_key(|(place, _)| place.start);
        let mut times = vec![0u32; open.len()];
        let slot = |id: &u32| open.iter().position(|other| other == id).unwrap_or_default();
        let slots: Vec<usize> = places.iter().map(|(_, id)| slot(id)).collect();
        let (mut best, mut best_weight, mut weight, mut first) = (0..0, 0.0, 0.0, 0);
        for (last, (to, id)) in places.iter().enumerate() {
            times[slots[last]] += 1;
            weight += if times[slots[last]] == 1 { self.weight(*id) } else { 0.0 };
            // What no longer fits leaves at the front, and so does what stands again further on.
            while (to.end - places[first].0.start) as usize > EVIDENCE_BYTES_MAX
                || times[slots[first]] > 1
            {
                times[slots[first]] -= 1;
                if times[slots[first]] == 0 {
                    weight -= self.weight(places[first].1);
                }
                first += 1;
            }
            if weight > best_weight {
                best_weight = weight;
                best = places[first].0.start as usize..to.end as usize;
            }
        }
        self.widen(part, best)
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
            // No sentence begins near: a word does.
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

/// Rare words weigh more; a word that is nowhere in the slice weighs like a common one, since a
/// paraphrase has words of its own.
fn weight(parts_with: u32, parts: f64) -> f64 {
    match parts_with {
        0 => 1.0,
        with => 1.0 + (parts / f64::from(with)).ln() * 0.5,
    }
}

/// Where the first sentence or line of `text` ends, its mark included.
fn first_end(text: &str) -> Option<usize> {
    ends(text).next()
}

/// Where the last one ends.
fn last_end(text: &str) -> Option<usize> {
    ends(text).last()
}

/// A full stop ends a sentence only before a blank: `1.2` and `main.rs` go on.
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
