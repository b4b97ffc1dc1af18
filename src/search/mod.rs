//! Ranks texts by the words of a query: BM25 over weighted fields. Every search uses this ranking,
//! whatever collected the candidates. Pure.

use crate::domain::{Claim, Memory, Record};
pub(crate) use crate::text::tokens::TermReader;
use crate::text::tokens::{QueryTerm, SearchTerm, query_terms, search_terms};
use std::collections::HashMap;
use std::sync::LazyLock;

#[cfg(test)]
mod tests;

/// Maximum letters of a query; few of its words would count.
const LETTERS_MAX: usize = 4_000;
/// Maximum number of query words that count.
const WORDS_MAX: usize = 32;
/// Weights of the fields: subject, rationale and evidence.
pub(crate) const WEIGHTS: [f64; 3] = [3.0, 1.5, 1.0];
/// BM25 saturation of repeated words (k1).
const SATURATION: f64 = 1.2;
/// BM25 length normalization (b).
const LENGTH_WEIGHT: f64 = 0.4;
/// Weight of another form of a word relative to the word itself.
const STEM_WEIGHT: f64 = 0.8;

/// Factor on the score of a text that has a code name of the query as it is written.
const VERBATIM: f64 = 1.25;
/// Weight of a synonym relative to the word itself.
const SYNONYM_WEIGHT: f64 = 0.7;

/// English synonyms and related words, by stem.
static SYNONYMS: LazyLock<HashMap<u64, Vec<u64>>> = LazyLock::new(|| {
    let mut found: HashMap<u64, Vec<u64>> = HashMap::new();
    for line in include_str!("synonyms.txt").lines() {
        let stems: Vec<u64> = line.split(' ').flat_map(search_terms).map(|it| it.stem).collect();
        for stem in &stems {
            found.entry(*stem).or_default().extend(stems.iter().filter(|it| *it != stem));
        }
    }
    found
});

/// Words that ask, and say nothing about what is asked for.
static FILLERS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let words =
        "why whose whom many much often still ever yet again actually happen happened happens";
    search_terms(words).iter().map(|it| it.exact).collect()
});

/// Words of a query, without duplicates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    words: Vec<QueryWord>,
    /// Code names as they are written, such as `--drain`, `claimJob` and `v1.2`.
    names: Vec<String>,
}

/// Reason to refuse a query without words that are rare enough.
pub(crate) const NO_WORDS: &str = "nothing to search for: use a rarer word, of 2 to 64 letters";

/// A word of a query, and the stems of its synonyms.
#[derive(Clone, Debug)]
struct QueryWord {
    term: QueryTerm,
    synonyms: Vec<u64>,
}

impl QueryWord {
    fn of(term: QueryTerm) -> QueryWord {
        let known = term.stems.iter().filter_map(|stem| SYNONYMS.get(stem)).flatten().copied();
        let synonyms = each_once(known.filter(|it| !term.stems.contains(it)));
        QueryWord { term, synonyms }
    }
}

impl Query {
    /// Parses a query; `Err` says why there is nothing to search for. Blank text is an empty query.
    pub(crate) fn parse(text: &str) -> Result<Query, String> {
        let letters = text.chars().count();
        if LETTERS_MAX < letters {
            return Err(format!("{letters} letters: expected at most {LETTERS_MAX}"));
        }
        let query = Query::of(text);
        match query.is_empty() && !text.trim().is_empty() {
            true => Err(NO_WORDS.to_owned()),
            false => Ok(query),
        }
    }

    pub(crate) fn of(text: &str) -> Query {
        let mut words: Vec<QueryTerm> = Vec::new();
        for word in query_terms(text) {
            if words.len() < WORDS_MAX && !words.contains(&word) {
                words.push(word);
            }
        }
        let is_filler = |word: &QueryTerm| FILLERS.contains(&word.exact);
        if !words.iter().all(is_filler) {
            words.retain(|word| !is_filler(word));
        }
        let names =
            text.split_whitespace().map(|word| word.trim_matches(['`', '"', '\'', ',', '?', '!']));
        let names = names.filter(|word| is_code_name(word)).map(str::to_owned).collect();
        Query { words: words.into_iter().map(QueryWord::of).collect(), names }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Keys to look up in an index.
    pub(crate) fn keys(&self) -> Vec<u64> {
        let stems = self.words.iter().flat_map(|it| it.term.stems.iter().copied());
        each_once(stems.chain(self.words.iter().map(|it| it.term.exact)))
    }

    /// Keys of synonyms, to look up in addition.
    pub(crate) fn synonym_keys(&self) -> Vec<u64> {
        let own = self.keys();
        let all = self.words.iter().flat_map(|it| it.synonyms.iter().copied());
        each_once(all.filter(|key| own.binary_search(key).is_err()))
    }

    /// Number of query words that occur in `text`, in any form.
    pub(crate) fn words_in(&self, text: &str) -> usize {
        let terms = search_terms(text);
        self.words.iter().filter(|it| terms.iter().any(|term| it.term.is_met(*term))).count()
    }
}

/// True for a word with marks inside or before it, or with a capital after a small letter.
fn is_code_name(word: &str) -> bool {
    let body = word.trim_end_matches(['.', ':']);
    let is_mark = |it: char| matches!(it, '_' | '-' | '.' | ':' | '/');
    let mut pairs = body.chars().zip(body.chars().skip(1));
    body.contains(char::is_alphanumeric)
        && (body.contains(is_mark)
            || pairs.any(|(one, next)| one.is_lowercase() && next.is_uppercase()))
}

/// Sorts the keys and removes duplicates.
fn each_once(keys: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut keys: Vec<u64> = keys.collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Keys of a text, with repetitions.
pub(crate) fn keys(text: &str, reader: &mut TermReader) -> Vec<u64> {
    let each = |it: SearchTerm| [Some(it.exact), (it.stem != it.exact).then_some(it.stem)];
    reader.terms(text).into_iter().flat_map(each).flatten().collect()
}

/// Text of a record by field: subject, rest of the claim, evidence.
pub(crate) fn fields_of_record(record: &Record) -> [String; 3] {
    let mut said: Vec<&str> = Vec::new();
    for evidence in &record.evidence {
        if !said.contains(&evidence.words.as_str()) {
            said.push(evidence.words.as_str());
        }
    }
    let [subject, reason] = fields_of_claim(&record.claim);
    [subject, reason, said.join("\n")]
}

/// Text of a memory: a person's wording, or else the claim.
pub(crate) fn fields_of_memory(memory: &Memory) -> [String; 3] {
    let [subject, reason] = fields_of_claim(&memory.claim);
    match &memory.edited {
        Some(edited) => [edited.clone(), String::new(), String::new()],
        None => [subject, reason, String::new()],
    }
}

fn fields_of_claim(claim: &Claim) -> [String; 2] {
    let headline = claim.headline();
    let strings = claim.strings();
    let (subject, reason): (Vec<_>, Vec<_>) =
        strings.iter().partition(|(name, text)| *text == headline || name == "target");
    let joined = |texts: Vec<&(String, &str)>| {
        texts.into_iter().map(|(_, text)| *text).collect::<Vec<_>>().join("\n")
    };
    [joined(subject), joined(reason)]
}

/// Document counts of a collection that is too large to count here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frequencies {
    pub(crate) texts: u64,
    /// Number of texts by key.
    pub(crate) with: HashMap<u64, u64>,
}

/// Candidates with the query words that they contain.
pub(crate) struct Ranking<'q> {
    query: &'q Query,
    texts: Vec<Counted>,
}

struct Counted {
    /// True if it has a code name of the query as it is written.
    is_verbatim: bool,
    /// Number of words, weighted by field.
    length: f64,
    /// Occurrences of each query word and its forms, weighted by field.
    counts: Vec<Count>,
}

#[derive(Clone, Copy, Default)]
struct Count {
    exact: f64,
    stem: f64,
    synonym: f64,
}

impl<'q> Ranking<'q> {
    pub(crate) fn new(query: &'q Query) -> Ranking<'q> {
        Ranking { query, texts: Vec::new() }
    }

    /// Adds a text by its fields, in the order of [`WEIGHTS`].
    pub(crate) fn add(&mut self, fields: &[&str]) {
        let words = &self.query.words;
        // No word can match.
        let fields = if words.is_empty() { &[] } else { fields };
        let names = &self.query.names;
        let is_verbatim =
            names.iter().any(|name| fields.iter().any(|field| field.contains(name.as_str())));
        let counts = vec![Count::default(); words.len()];
        let mut counted = Counted { is_verbatim, length: 0.0, counts };
        for (field, weight) in fields.iter().zip(WEIGHTS) {
            for term in search_terms(field) {
                counted.length += weight;
                for (word, count) in words.iter().zip(&mut counted.counts) {
                    count.exact += if word.term.exact == term.exact { weight } else { 0.0 };
                    count.stem += if word.term.is_met(term) { weight } else { 0.0 };
                    let is_synonym = word.synonyms.binary_search(&term.stem).is_ok();
                    count.synonym += if is_synonym { weight } else { 0.0 };
                }
            }
        }
        self.texts.push(counted);
    }

    /// Matching texts by index, with scores, best first, ties by index. All of them, with score 0,
    /// if the query has no word.
    pub(crate) fn ranked(&self, known: &Frequencies) -> Vec<(usize, f64)> {
        if self.query.is_empty() {
            return (0..self.texts.len()).map(|at| (at, 0.0)).collect();
        }
        let count = (known.texts as f64).max(self.texts.len() as f64);
        let total: f64 = self.texts.iter().map(|text| text.length).sum();
        let mean = (total / (self.texts.len() as f64).max(1.0)).max(1.0);
        let rarity = |keys: &[u64], here: usize| {
            let with = keys.iter().filter_map(|key| known.with.get(key)).max();
            let with = with.map_or(0.0, |with| *with as f64).max(here as f64);
            (1.0 + (count - with + 0.5).max(0.0) / (with + 0.5)).ln()
        };
        let here = |at: usize, has: fn(&Count) -> f64| {
            self.texts
                .iter()
                .filter(move |text| text.counts.get(at).is_some_and(|it| has(it) > 0.0))
        };
        let words = self.query.words.iter().enumerate();
        let rarities = words.map(|(at, word)| {
            let exact = rarity(&[word.term.exact], here(at, |it| it.exact).count());
            let stem = STEM_WEIGHT * rarity(&word.term.stems, here(at, |it| it.stem).count());
            // A rare synonym of a common word counts no more than the word.
            let synonym = rarity(&word.synonyms, here(at, |it| it.synonym).count());
            Count { exact, stem, synonym: SYNONYM_WEIGHT * synonym.min(exact.min(stem)) }
        });
        let rarities: Vec<Count> = rarities.collect();
        let scored =
            self.texts.iter().enumerate().map(|(at, text)| (at, text.score(&rarities, mean)));
        let mut found: Vec<(usize, f64)> = scored.filter(|(_, score)| *score > 0.0).collect();
        found.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        found
    }
}

impl Counted {
    /// BM25, raised by the share of query words in the text, up to double, and for code names.
    fn score(&self, rarities: &[Count], mean: f64) -> f64 {
        let long = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * self.length / mean);
        let saturated = |times: f64| times * (SATURATION + 1.0) / (times + long);
        let (mut score, mut met) = (0.0, 0.0);
        for (count, rarity) in self.counts.iter().zip(rarities) {
            let exact = rarity.exact * saturated(count.exact);
            let synonym = rarity.synonym * saturated(count.synonym);
            let value = exact.max(rarity.stem * saturated(count.stem)).max(synonym);
            score += value;
            met += f64::from(u8::from(value > 0.0));
        }
        let verbatim = if self.is_verbatim { VERBATIM } else { 1.0 };
        score * verbatim * (1.0 + met / (rarities.len() as f64).max(1.0))
    }
}
