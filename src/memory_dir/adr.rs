//! Decision records: context, decision, and alternatives with the reasons against them. Empty sections are left out.

use super::document::Shape;
use super::escape::{words_inline, words_line};
use super::facts::{IN_PART_REPLACED_BY, is_past_mark};
use super::kind::UNKNOWN;
use super::name::{adr_label, slug};
use super::page::{Page, entry};
use super::render::{
    Placing, SUCCESSORS_MAX, end_trimmed, said, title_of, with_points, wording_of,
};
use super::tag::{Category, is_value, tag_line};
use crate::domain::{Claim, Decision, Memory, MemoryId, MemoryState, Stage};
use crate::text::lexicon::{WEEKDAYS, number, unit};
use crate::text::stems::is_no;
use crate::text::tokens::keys;
use crate::text::truncate::clauses_within;
use std::borrow::Cow;

/// Maximum length of a record's title, in letters.
const TITLE_LETTERS_MAX: usize = 100;
/// Maximum length of a record's paragraph, in letters.
const PARAGRAPH_LETTERS_MAX: usize = 1_200;
const UNTITLED: &str = "Decision";
/// Maximum number of alternatives in a record.
const ALTERNATIVES_MAX: usize = 10;
/// Maximum number of tags of a record.
const TAGS_MAX: usize = 4;
/// Minimum length of a word that becomes a tag, in letters.
const TAG_LETTERS_MIN: usize = 3;
/// Minimum share of an option's words in the chosen text for it to be taken.
const CHOSEN_SHARE: f64 = 0.5;
/// Words beside negations that reject the option after them, as in "instead of RabbitMQ".
const REJECTS: [&str; 12] = [
    "from", "instead", "rather", "place", "than", "over", "replaces", "von", "vom", "statt",
    "lieu", "lugar",
];
/// Words that reject the option before them, as in "RabbitMQ is dropped".
const REJECTED: [&str; 9] = [
    "replaced", "dropped", "refused", "rejected", "removed", "verworfen", "abgelehnt", "remplacé",
    "reemplazado",
];
/// Openings of a clause about consequences.
const FOLLOWS: [&str; 23] = [
    "so", "therefore", "thus", "hence", "consequently", "which means", "this means", "that means",
    "as a consequence", "as a result", "the downside", "the drawback", "the upside", "the price",
    "the trade-off", "daher", "deshalb", "das heißt", "der nachteil", "der vorteil", "donc",
    "por eso", "por lo tanto",
];
/// Beginnings of objections.
const OBJECTS: [&str; 4] = ["but ", "aber ", "mais ", "pero "];
/// Marks around quotations.
const QUOTES: [char; 7] = ['"', '“', '”', '„', '«', '»', '`'];
/// Minimum number of words in a clause about an option.
const CLAUSE_WORDS_MIN: usize = 3;
/// Maximum distance between such a word and the option, in words.
const REJECTS_WITHIN: usize = 2;
/// The same for a negation: "no more pushing to main".
const DENIES_WITHIN: usize = 3;
/// Minimum length of a word of which another one is a form, and maximum length of its ending: "show", "shown".
const FORM_LETTERS_MIN: usize = 4;
const ENDING_LETTERS_MAX: usize = 2;

impl Placing<'_> {
    pub(super) fn records(&mut self) -> Vec<Page> {
        let mut pages = Vec::new();
        for memory in self.facts.memories {
            let Claim::Decision(decision) = &memory.claim else { continue };
            let Some((path, number)) = self.names.records.get(&memory.id) else { continue };
            pages.push(self.record(memory, decision, path, *number));
            self.shown.insert(memory.id);
        }
        pages
    }

    fn record(&self, memory: &Memory, it: &Decision, path: &str, number: u32) -> Page {
        let status = self.status(memory);
        let replaced = self.replaced.get(&memory.id).into_iter().flatten().copied();
        let memories: Vec<&Memory> = replaced.chain([memory]).collect();
        let mut page = self.page(path.to_owned(), self.inputs(&status, &memories));
        if page.is_kept {
            return page;
        }
        let claimed = title_of(it);
        let title = said(memory, &claimed);
        let title = clauses_within(&title, TITLE_LETTERS_MAX).unwrap_or(&title);
        let title = words_inline(title, TITLE_LETTERS_MAX, self.facts.gate);
        let title = if title.is_empty() { UNTITLED } else { &title };
        let tag = tag_line(self.tag(memory.id));
        let date = memory.valid_from.map_or_else(|| UNKNOWN.to_owned(), |at| at.day());
        let mut head = format!(
            "# {}: {title}\n{tag}\n\n**Status:** {status}\n**Date:** {date}\n",
            adr_label(number),
        );
        let tags = self.topics(it);
        if !tags.is_empty() {
            head.push_str(&format!("**Tags:** {}\n", tags.join(", ")));
        }
        page.head = Some(head);
        // A person may have worded the title of a longer decision, which stays.
        let is_whole = claimed.chars().count() <= TITLE_LETTERS_MAX;
        let (decided, own) = match wording_of(memory) {
            Some((Shape::Paragraph, own)) if is_whole => (Cow::Borrowed(""), Some(own)),
            Some((Shape::Paragraph, _)) => (Cow::Borrowed(it.chosen.as_str()), None),
            Some(_) | None => (said(memory, &it.chosen), None),
        };
        let mut push = |section, shape: Shape, text: &str| {
            // The gate may leave nothing of the text.
            let words = match own.as_deref() == Some(text) {
                true => text.to_owned(),
                false => words_line(text, PARAGRAPH_LETTERS_MAX, self.facts.gate),
            };
            let is_decision = section == "Decision";
            let category = is_decision.then_some(Category::Decision);
            let tag = is_decision.then(|| self.tag(memory.id));
            if !words.is_empty() {
                page.push(section, entry(shape, &words, category, tag));
            }
        };
        let background = self.background(memory);
        background.iter().for_each(|line| push("Context", Shape::Bullet, line));
        push("Decision", Shape::Paragraph, own.as_deref().unwrap_or(&decided));
        let (follows, reasons): (Vec<&str>, Vec<&str>) = it
            .rationale
            .split("; ")
            .flat_map(|part| part.split(". "))
            .partition(|part| follows(part));
        let why = if background.is_empty() { "Context" } else { "Rationale" };
        match follows.is_empty() {
            true => push(why, Shape::Bullet, &it.rationale),
            false => push(why, Shape::Bullet, &reasons.join("; ")),
        }
        follows.iter().for_each(|part| push("Consequences", Shape::Bullet, part));
        let talk = self.talk(memory);
        let others = alternatives(it, &talk).into_iter().map(|other| self.corrected(memory, other));
        let others: Vec<String> = others.collect();
        others.iter().for_each(|other| push("Alternatives Considered", Shape::Bullet, other));
        page
    }

    /// An alternative of `memory` in a person's wording, if it was the choice of a decision that this one superseded.
    fn corrected(&self, memory: &Memory, other: String) -> String {
        let replaced = self.replaced.get(&memory.id).into_iter().flatten();
        let mut worded = replaced.filter_map(|old| {
            let Claim::Decision(was) = &old.claim else { return None };
            let rest = other.strip_prefix(end_trimmed(&was.chosen))?;
            let is_it = rest.is_empty() || rest.starts_with(" – ");
            is_it.then(|| said(old, end_trimmed(&was.chosen)).into_owned() + rest)
        });
        worded.next().unwrap_or(other)
    }

    /// Points of the discussions that it settled.
    fn talk(&self, memory: &Memory) -> String {
        let settled = self.replaced.get(&memory.id).into_iter().flatten();
        let points = settled.filter_map(|old| match &old.claim {
            Claim::Discussion(it) => Some(it.points.join("; ")),
            Claim::Decision(_) | Claim::Attempt(_) | Claim::Request(_) => None,
        });
        points.collect::<Vec<_>>().join("; ")
    }

    /// Decisions that this one superseded, and discussions that it settled.
    fn background(&self, memory: &Memory) -> Vec<String> {
        let replaced = self.replaced.get(&memory.id).into_iter().flatten();
        let line = |old: &&Memory| match &old.claim {
            Claim::Decision(it) => {
                let label = self.names.label(old.id);
                let label = label.map(|label| format!("{label}: ")).unwrap_or_default();
                let since = old.valid_from.map(|at| format!(" (since {})", at.day()));
                let chosen = said(old, &it.chosen);
                let chosen = end_trimmed(&chosen);
                Some(format!("Before: {label}{chosen}{}", since.unwrap_or_default()))
            }
            Claim::Discussion(it) if !it.points.is_empty() => Some(with_points(it)),
            Claim::Discussion(_) | Claim::Attempt(_) | Claim::Request(_) => None,
        };
        replaced.filter_map(line).collect()
    }

    /// Tags from the names in what was chosen: options of one word, and words that are written as names are.
    fn topics(&self, it: &Decision) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let split = |text: &str| -> Vec<String> {
            let words = text.split(|letter: char| !letter.is_alphanumeric());
            words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let short = it.options.iter().filter(|option| option.split_whitespace().count() == 1);
        let named: Vec<String> =
            short.flat_map(|option| split(option)).map(|word| word.to_lowercase()).collect();
        let text = words_inline(&it.chosen, PARAGRAPH_LETTERS_MAX, self.facts.gate);
        let words = split(&text);
        // The first word of a sentence has a capital whatever it is.
        let begins = |word: &str| {
            let before = text.split_once(word).map_or("", |(before, _)| before.trim_end());
            before.is_empty() || before.ends_with(['.', ':', ';', '(', '!', '?'])
        };
        let is_loud = |word: &String| !word.chars().any(char::is_lowercase);
        for (at, word) in words.iter().enumerate() {
            let inner = word.chars().skip(1).any(|it| it.is_uppercase() || it.is_numeric());
            let is_capital = word.starts_with(char::is_uppercase);
            // Neighbours in capitals are words of a language such as SQL.
            let is_phrase = is_loud(word)
                && [at.checked_sub(1), Some(at + 1)]
                    .into_iter()
                    .flatten()
                    .filter_map(|at| words.get(at))
                    .any(is_loud);
            let is_name = is_capital && (inner || !begins(word)) && !is_phrase;
            let lower = word.to_lowercase();
            let is_day = WEEKDAYS.iter().any(|day| day.split(' ').any(|it| it == lower));
            let is_word =
                word.chars().count() >= TAG_LETTERS_MIN && !keys(word).is_empty() && !is_day;
            let is_told = is_name || named.contains(&lower);
            let tag = slug(word).filter(|tag| is_told && is_word && is_value(tag));
            found.extend(tag.filter(|tag| !found.contains(tag)));
        }
        found.truncate(TAGS_MAX);
        found
    }

    /// `Superseded by ADR-XXX` needs the record of a successor; without one it is `Deprecated`. What replaced a part of a
    /// record that holds follows its status.
    fn status(&self, memory: &Memory) -> String {
        let next = |id: &MemoryId| self.by_id.get(id).and_then(|it| it.superseded_by);
        let chain = std::iter::successors(memory.superseded_by, next).take(SUCCESSORS_MAX);
        let successor = chain.filter(|id| *id != memory.id).find_map(|id| self.names.label(id));
        let mut marks = self.marks.get(&memory.id).into_iter().flatten();
        let behind = marks.find(|mark| mark.starts_with(IN_PART_REPLACED_BY) || is_past_mark(mark));
        let behind = behind.map(|mark| format!(" ({mark})")).unwrap_or_default();
        match (memory.state, memory.stage, successor) {
            (MemoryState::Superseded, _, Some(label)) => format!("Superseded by {label}"),
            (MemoryState::Superseded | MemoryState::Retracted, ..) => "Deprecated".to_owned(),
            (MemoryState::Active, Stage::Refuted, _) => "Deprecated".to_owned(),
            (MemoryState::Active, Stage::Decided, _) => format!("Accepted{behind}"),
            (MemoryState::Active, Stage::Proposed | Stage::Attempted, _) => {
                format!("Proposed{behind}")
            }
        }
    }
}

/// True if a part of the rationale states a consequence.
fn follows(part: &str) -> bool {
    let part = part.trim().to_lowercase();
    let mut behind = FOLLOWS.iter().filter_map(|begins| part.strip_prefix(begins));
    behind.any(|rest| rest.starts_with([' ', ',']))
}

/// The options that were not taken, each with the part of the rationale about it, or of what was discussed before.
fn alternatives(it: &Decision, talk: &str) -> Vec<String> {
    let mut options: Vec<&str> = Vec::new();
    for option in it.options.iter().map(|option| end_trimmed(option)) {
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    let chosen = chosen(it, &options);
    let names: Vec<Vec<u64>> = options.iter().map(|option| keys(option)).collect();
    let others = options.iter().enumerate().filter(|(at, _)| Some(*at) != chosen);
    let why = |at| reason(&it.rationale, at, &names).or_else(|| reason(talk, at, &names));
    let line = |(at, option): (usize, &&str)| match why(at) {
        Some(why) if why.starts_with(option) => why,
        Some(why) => format!("{option} – {why}"),
        None => (*option).to_owned(),
    };
    others.take(ALTERNATIVES_MAX).map(line).collect()
}

/// Word of a decision or an option.
struct Word {
    text: String,
    /// `None` for words such as `no`, which are compared as written.
    key: Option<u64>,
    /// Number of the clause that it is in.
    clause: usize,
}

impl Word {
    fn all(text: &str) -> Vec<Word> {
        let clauses = text.split([',', ';', ':', '(', ')']).flat_map(|part| part.split(". "));
        let clauses = clauses.flat_map(|part| part.split(" but "));
        let of_clause = |(clause, part): (usize, &str)| -> Vec<Word> {
            // `don't`, `2.10` and `€` are words.
            let is_inner = |letter: char| matches!(letter, '\'' | '.' | '€' | '$');
            let words = part.split(|letter: char| !letter.is_alphanumeric() && !is_inner(letter));
            let word = |text: &str| {
                let text = text.trim_matches(['\'', '.']).to_lowercase();
                Word { key: keys(&text.replace('.', "")).first().copied(), text, clause }
            };
            words.map(word).filter(|word| !word.text.is_empty()).collect()
        };
        with_amounts(clauses.enumerate().flat_map(of_clause).collect())
    }

    fn is(&self, other: &Word) -> bool {
        let is_form = |long: &str, short: &str| {
            let ending = long.strip_prefix(short).filter(|_| short.len() >= FORM_LETTERS_MIN);
            ending.is_some_and(|it| {
                it.len() <= ENDING_LETTERS_MAX && it.bytes().all(|it| it.is_ascii_alphabetic())
            })
        };
        let (one, two) = (&self.text, &other.text);
        let is_same = self.key == other.key || is_form(one, two) || is_form(two, one);
        one == two || self.key.is_some() && is_same
    }

    fn is_number(&self) -> bool {
        self.text.starts_with(|letter: char| letter.is_ascii_digit())
    }
}

/// Replaces a unit behind a number by the amount in the smallest unit: that of `two minutes` and of `120 seconds` is the
/// same.
fn with_amounts(mut words: Vec<Word>) -> Vec<Word> {
    for at in 1..words.len() {
        let amount = &words[at - 1].text;
        let amount: Option<f64> = amount.parse().ok().or_else(|| Some(number(amount)? as f64));
        if let Some((amount, unit)) = amount.zip(unit(&words[at].text)) {
            let text = format!("{:.0} {}", amount * unit.scale as f64, unit.dimension);
            words[at] = Word { key: keys(&text).first().copied(), text, ..words[at] };
        }
    }
    words
}

/// True if a word of `said` such as `not` rejects an option with these `words`, by the one at `at`.
fn is_rejected(said: &[Word], at: usize, words: &[Word]) -> bool {
    let near = |from: usize, to: usize| {
        let near = said.get(from..to.min(said.len())).unwrap_or_default();
        near.iter().filter(|word| word.clause == said[at].clause)
    };
    // `over 5 seconds` is a duration.
    let rejects = |word: &Word| {
        REJECTS.contains(&word.text.as_str()) && !(said[at].is_number() && word.text == "over")
    };
    // A denial that is part of the option rejects nothing.
    let is_own = |word: &Word| words.iter().any(|own| own.text == word.text);
    near(at.saturating_sub(DENIES_WITHIN), at).any(|word| is_no(&word.text) && !is_own(word))
        || near(at.saturating_sub(REJECTS_WITHIN), at).any(|word| rejects(word) && !is_own(word))
        || near(at + 1, at + 1 + DENIES_WITHIN).any(|word| REJECTED.contains(&word.text.as_str()))
}

/// Index of the option that was taken: the one with most words in the decision, or the only one that is not rejected.
/// The decision rejects an option by a word such as `not` before a word that only this option has; the rationale, if the
/// decision lacks that word.
fn chosen(it: &Decision, options: &[&str]) -> Option<usize> {
    let (said, why) = (Word::all(&it.chosen), Word::all(&it.rationale));
    let all: Vec<Vec<Word>> = options.iter().map(|option| Word::all(option)).collect();
    let has = |word: &Word| said.iter().position(|said| said.is(word));
    let own = |at: usize| -> Vec<&Word> {
        let others = || all.iter().enumerate().filter(move |(other, _)| *other != at);
        let is_own = |word: &&Word| !others().any(|(_, other)| other.iter().any(|it| it.is(word)));
        all[at].iter().filter(is_own).collect()
    };
    let is_out = |at: usize| {
        let (words, own) = (&all[at], own(at));
        let first = words.iter().filter(|word| word.key.is_some()).filter_map(has).min();
        let of_own: Vec<usize> = own.iter().filter_map(|word| has(word)).collect();
        let spots = if own.is_empty() { first.into_iter().collect() } else { of_own };
        let is_denied = |word: &&Word| {
            let spot = why.iter().position(|it| word.key.is_some() && it.is(word));
            has(word).is_none() && spot.is_some_and(|spot| is_rejected(&why, spot, words))
        };
        own.iter().any(|word| is_no(&word.text) && has(word).is_none() || is_denied(word))
            || spots.into_iter().any(|spot| is_rejected(&said, spot, words))
    };
    let out: Vec<bool> = (0..all.len()).map(is_out).collect();
    let rank = |(at, words): (usize, &Vec<Word>)| {
        let content: Vec<&Word> = words.iter().filter(|word| word.key.is_some()).collect();
        // An option such as `no` has no other words.
        let named = if content.is_empty() { words.iter().collect() } else { content };
        let known: Vec<usize> = named.iter().filter_map(|word| has(word)).collect();
        let first = known.iter().copied().min()?;
        let share = known.len() as f64 / named.len() as f64;
        (share >= CHOSEN_SHARE && !out[at]).then_some((share, first, at))
    };
    let ranked = all.iter().enumerate().filter_map(rank);
    let best = ranked.max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
    let mut rest = (0..all.len()).filter(|at| !out[*at]);
    let only = rest.next().filter(|_| rest.next().is_none() && all.len() > 1);
    // A decision with another value took neither.
    let only = only.filter(|at| all[*at].iter().all(|it| !it.is_number() || has(it).is_some()));
    best.map(|(_, _, at)| at).or(only)
}

/// The clause of the rationale that names this option and no other, with the objection behind it.
fn reason(rationale: &str, option: usize, names: &[Vec<u64>]) -> Option<String> {
    let is_clause = |part: &str| part.split_whitespace().count() >= CLAUSE_WORDS_MIN;
    let parts = rationale.split("; ").flat_map(|part| part.split(". "));
    let clauses = parts.flat_map(|part| part.split(", ")).flat_map(|part| {
        // `Go and Zig are small` is one clause.
        let is_split = part.split(" and ").all(is_clause);
        if is_split { part.split(" and ").collect() } else { vec![part] }
    });
    let named_in = |clause: &str| -> Vec<usize> {
        let said = keys(clause);
        let is_named = |at: &usize| {
            !names[*at].is_empty() && names[*at].iter().all(|word| said.contains(word))
        };
        (0..names.len()).filter(is_named).collect()
    };
    // A consequence is no reason.
    let mut clauses = clauses.map(str::trim).filter(|clause| !follows(clause));
    let clause = end_trimmed(clauses.find(|clause| named_in(clause) == [option])?);
    let objection = clauses.next().map(end_trimmed);
    let objects = |it: &&str| OBJECTS.iter().any(|word| it.starts_with(word));
    let objection = objection.filter(|it| objects(it) && named_in(it).is_empty());
    // A clause from a longer quotation has one of its marks.
    let is_quoted = clause.matches(QUOTES).count().is_multiple_of(2);
    let clause = if is_quoted { clause } else { clause.trim_matches(QUOTES) };
    is_clause(clause).then(|| match objection {
        Some(objection) => format!("{clause}, {objection}"),
        None => clause.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(chosen: &str, options: &[&str], rationale: &str, expected: &[&str]) {
        let options = options.iter().map(|it| (*it).to_owned()).collect();
        let it = Decision { options, chosen: chosen.into(), rationale: rationale.into() };
        assert_eq!(alternatives(&it, ""), expected, "{chosen}");
    }

    #[test]
    fn the_chosen_option_is_no_alternative() {
        check("SQLite for the job queue", &["Postgres", "SQLite"], "", &["Postgres"]);
        check("switch from Java to Rust", &["Java", "Rust"], "", &["Java"]);
        check("a table in Postgres instead of Kafka", &["Kafka", "Postgres"], "", &["Kafka"]);
        check("the limit is 5 days, no longer 7", &["7", "5"], "", &["7"]);
        check("Braintree, PayPal goes", &["PayPal", "Braintree"], "", &["PayPal"]);
        check("logs go to S3", &["S3", "no logs"], "", &["no logs"]);
        let digits = ["6 digits", "8 digits"];
        check("lengthen pickup codes from 6 to 8 digits", &digits, "", &digits[..1]);
        check("the API moves from port 8600 to 8643", &["8600", "8643"], "", &["8600"]);
        let locks = ["SKIP LOCKED with NOT EXISTS on earlier jobs", "advisory locks"];
        check("`claim` uses SKIP LOCKED with a NOT EXISTS", &locks, "", &locks[1..]);
        let stores = ["PostgreSQL", "SQLite for the queue", "Kafka"];
        check("SQLite for the job queue", &stores, "", &["PostgreSQL", "Kafka"]);
        let logins = ["cookies with JWT tokens", "server sessions"];
        check("JWT tokens in cookies for login", &logins, "", &logins[1..]);
        check("statt MySQL nehmen wir Postgres", &["MySQL", "Postgres"], "", &["MySQL"]);
        check("wait", &["now", "later"], "", &["now", "later"]);
        check("not now", &["now", "later"], "", &["now"]);
        let options = ["convert in place", "write to a new folder webp/"];
        check("never convert photos in place; write to webp/", &options, "", &options[..1]);
        let options = ["Kubernetes avec Helm", "rester avec systemd"];
        check("pas de Kubernetes, rester avec systemd", &options, "", &options[..1]);
        let options = ["stop the track when the room changes", "let the track end, then the next"];
        let chosen = "the track is not stopped when the room changes; it ends, then the next plays";
        check(chosen, &options, "", &options[..1]);
        let options = ["build the file during the day", "build the file at night"];
        check("the file is built at night, never during the day", &options, "", &options[..1]);
        let options = ["detect it with chardet", "an explicit list: utf-8-sig, then cp1252"];
        check("decode with the first of utf-8-sig and cp1252", &options, "", &options[..1]);
    }

    #[test]
    fn an_option_that_says_the_same_in_other_words_is_no_alternative() {
        let options = ["call somebody", "only show it"];
        check("an overdue text is only shown red, no calls", &options, "", &options[..1]);
        check("sqlx is replaced by rusqlite", &["sqlx", "rusqlite"], "", &["sqlx"]);
        check("tanks report every 120 seconds", &["5 min", "two minutes"], "", &["5 min"]);
        let prices = ["0.85 €/L", "0.95 €/L"];
        check("pressing costs 95 cents per litre", &prices, "", &prices[..1]);
        let options = ["straight to main", "branch and PR"];
        let chosen = "no more pushing straight to main; changes go through branch and PR";
        check(chosen, &options, "", &options[..1]);
        let options = ["change the sent report", "a new report that refers to the original"];
        let chosen = "changing the sent report is refused; a new report is made";
        check(chosen, &options, "", &options[..1]);
        let options = ["OAuth with Google", "existing login page"];
        check("no OAuth with Google", &options, "", &options[..1]);
        let options = ["merge the two label sizes", "keep both"];
        check("two separate label sizes", &options, "don't merge them", &options[..1]);
        let options = ["invent Turkish texts", "wait for Aylin's texts"];
        let chosen = "the Turkish page is missing until Aylin sends the texts";
        check(chosen, &options, "we do not want to invent legal words", &options[..1]);
        check("not Java but Go", &["Java", "Go"], "", &["Java"]);
        let options = ["OAuth login with Google", "existing login page"];
        check("no OAuth login with Google", &options, "", &options[..1]);
        let options = ["2.00 for both", "one merged number"];
        check("one from 1.80 m, the other from 2.10 m", &options, "", &options);
        // Neither was taken.
        check("the limit is 18 s", &["25 s", "10 s"], "not 25 s", &["25 s – not 25 s", "10 s"]);
    }

    #[test]
    fn a_consequence_is_no_reason_against_an_alternative() {
        let why = "sensors write all the time, so move to Postgres early";
        check("SQLite", &["Postgres", "SQLite"], why, &["Postgres"]);
    }

    #[test]
    fn an_alternative_has_the_part_of_the_reason_that_is_about_it() {
        let why = "we know it; Adyen asks for a turnover and Mollie has no terminal";
        check(
            "Stripe",
            &["Stripe", "Mollie", "Adyen"],
            why,
            &["Mollie has no terminal", "Adyen asks for a turnover"],
        );
        check(
            "Go",
            &["Go", "Zig"],
            "builds are fast, nobody here knows Zig well",
            &["Zig – nobody here knows Zig well"],
        );
        check("Go", &["Go", "Zig"], "Go and Zig are both small", &["Zig"]);
        check("5 days", &["7", "5"], "\"not 7 in a.b, but 5\"", &["7 – not 7 in a.b"]);
    }

    #[test]
    fn an_alternative_has_what_was_said_against_it_before() {
        let options = ["SQLite", "Kafka"].map(str::to_owned).to_vec();
        let it = Decision { options, chosen: "SQLite".into(), rationale: String::new() };
        let talk = "SQLite is there; Kafka is known, but too heavy for us";
        assert_eq!(alternatives(&it, talk), ["Kafka is known, but too heavy for us"]);
    }

    #[test]
    fn consequences_are_clauses_that_say_so() {
        assert!(follows("so each branch needs a flag") && follows("Deshalb, wie gesagt"));
        assert!(!follows("some do") && !follows("small steps break less"));
    }
}
