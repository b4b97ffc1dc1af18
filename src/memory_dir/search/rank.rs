//! How well an entry fits words: BM25, with the constants that are usual.

use std::collections::HashMap;

/// How soon more of the same word says no more.
const SATURATION: f64 = 1.2;
/// How much a long entry is held against it.
const LENGTH_WEIGHT: f64 = 0.75;
/// Words of a query that count; nobody types more.
const WORDS_MAX: usize = 32;

/// The words of a text: runs of letters and digits in small letters; each sign of a script that has no
/// blanks is a word.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = String> + '_ {
    let is_gap = |c: char| !c.is_alphanumeric();
    text.split(is_gap).flat_map(pieces).filter(|word| !word.is_empty())
}

/// A run of letters as words.
fn pieces(run: &str) -> Vec<String> {
    if !run.chars().any(has_no_blanks) {
        return vec![folded(run)];
    }
    let (mut words, mut word) = (Vec::new(), String::new());
    for letter in run.chars() {
        if has_no_blanks(letter) {
            words.push(folded(&std::mem::take(&mut word)));
            words.push(letter.to_string());
        } else {
            word.push(letter);
        }
    }
    words.push(folded(&word));
    words
}

fn has_no_blanks(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
}

/// In small letters; all four letters i are one, whatever the language.
fn folded(word: &str) -> String {
    if word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
        return word.to_owned();
    }
    let small = word.chars().flat_map(char::to_lowercase).filter(|c| *c != '\u{307}');
    small.map(|c| if c == 'ı' { 'i' } else { c }).collect()
}

/// Counts the words of a query in entries.
pub(super) struct Index {
    words: HashMap<String, usize>,
    /// The words of each entry, and how often each word of the query is among them.
    entries: Vec<(usize, Vec<u32>)>,
}

impl Index {
    pub(super) fn new(query: &str) -> Index {
        let mut words = HashMap::new();
        for word in tokens(query) {
            let next = words.len();
            if next < WORDS_MAX {
                words.entry(word).or_insert(next);
            }
        }
        Index { words, entries: Vec::new() }
    }

    pub(super) fn add(&mut self, text: &str) {
        let mut counts = vec![0; self.words.len()];
        let mut length = 0;
        for token in tokens(text) {
            length += 1;
            if let Some(count) = self.words.get(&token).and_then(|at| counts.get_mut(*at)) {
                *count += 1;
            }
        }
        self.entries.push((length, counts));
    }

    /// The entries that have a word, by their order of coming, with their scores; the best first. All, with
    /// no score, if there is no word.
    pub(super) fn ranked(&self) -> Vec<(usize, f64)> {
        if self.words.is_empty() {
            return (0..self.entries.len()).map(|at| (at, 0.0)).collect();
        }
        let count = self.entries.len() as f64;
        let total: usize = self.entries.iter().map(|(length, _)| length).sum();
        let mean = (total as f64 / count.max(1.0)).max(1.0);
        let mut with: Vec<f64> = vec![0.0; self.words.len()];
        for (_, counts) in &self.entries {
            for (with, count) in with.iter_mut().zip(counts) {
                *with += f64::from(u8::from(*count > 0));
            }
        }
        let rarity: Vec<f64> =
            with.iter().map(|with| (1.0 + (count - with + 0.5) / (with + 0.5)).ln()).collect();
        let score = |(length, counts): &(usize, Vec<u32>)| -> f64 {
            let long = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * *length as f64 / mean);
            let each = counts.iter().zip(&rarity).map(|(count, rarity)| {
                let count = f64::from(*count);
                rarity * count * (SATURATION + 1.0) / (count + long)
            });
            each.sum()
        };
        let scored = self.entries.iter().enumerate().map(|(at, entry)| (at, score(entry)));
        let mut found: Vec<(usize, f64)> = scored.filter(|(_, score)| *score > 0.0).collect();
        found.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        found
    }
}
