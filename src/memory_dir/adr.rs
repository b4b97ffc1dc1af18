//! Decision records: context, decision, and alternatives with the reasons against them. Empty sections are left out.

use super::document::Shape;
use super::escape::{words_inline, words_line};
use super::kind::UNKNOWN;
use super::name::{adr_label, slug};
use super::page::{Page, entry};
use super::render::{Placing, end_trimmed, title_of};
use super::tag::{Category, is_value, tag_line};
use crate::domain::{Claim, Decision, Discussion, Memory, MemoryState, Stage};
use crate::text::tokens::keys;

/// Maximum length of a record's title, in letters.
const TITLE_LETTERS_MAX: usize = 80;
/// Maximum length of a record's paragraph, in letters.
const PARAGRAPH_LETTERS_MAX: usize = 1_200;
const UNTITLED: &str = "Decision";
/// Maximum number of alternatives in a record.
const ALTERNATIVES_MAX: usize = 10;
/// Maximum number of tags of a record.
const TAGS_MAX: usize = 4;
/// Minimum length of a word that becomes a tag, in letters.
const TAG_LETTERS_MIN: usize = 3;
/// Minimum share of an option's words in the chosen text for it to be the chosen option.
const CHOSEN_SHARE: f64 = 0.5;
/// Words that reject the option after them, as in "instead of RabbitMQ".
const REJECTS: [&str; 21] = [
    "from", "of", "than", "no", "not", "longer", "more", "without", "over", "von", "vom", "statt",
    "kein", "keine", "nicht", "mehr", "lieu", "de", "sans", "lugar", "sin",
];
/// Openings of a clause about consequences.
const FOLLOWS: [&str; 13] = [
    "so", "therefore", "thus", "hence", "consequently", "which means", "this means", "that means",
    "daher", "deshalb", "das heißt", "donc", "por eso",
];
/// Minimum number of words in a clause about an option.
const CLAUSE_WORDS_MIN: usize = 3;
/// Maximum distance between such a word and the option, in words.
const REJECTS_WITHIN: usize = 2;

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
        let title = words_inline(&title_of(it), TITLE_LETTERS_MAX, self.facts.gate);
        let title = if title.is_empty() { UNTITLED } else { &title };
        let tag = tag_line(self.tag(memory.id));
        let date = memory.valid_from.map_or_else(|| UNKNOWN.to_owned(), |at| at.day());
        let mut head = format!(
            "# {}: {title}\n{tag}\n\n**Status:** {}\n**Date:** {date}\n",
            adr_label(number),
            self.status(memory),
        );
        let tags = self.topics(it);
        if !tags.is_empty() {
            head.push_str(&format!("**Tags:** {}\n", tags.join(", ")));
        }
        let mut page = Page::new(path);
        page.head = Some(head);
        let mut push = |section, shape: Shape, text: &str| {
            // The gate may leave nothing of the text.
            let words = words_line(text, PARAGRAPH_LETTERS_MAX, self.facts.gate);
            let is_decision = section == "Decision";
            let category = is_decision.then_some(Category::Decision);
            let tag = is_decision.then(|| self.tag(memory.id));
            if !words.is_empty() {
                page.push(section, entry(shape, &words, category, tag));
            }
        };
        let mut before = 0;
        for line in self.background(memory) {
            before += 1;
            push("Context", Shape::Bullet, &line);
        }
        push("Decision", Shape::Paragraph, &it.chosen);
        let (follows, reasons): (Vec<&str>, Vec<&str>) = it
            .rationale
            .split("; ")
            .flat_map(|part| part.split(". "))
            .partition(|part| follows(part));
        let why = if before == 0 { "Context" } else { "Rationale" };
        match follows.is_empty() {
            true => push(why, Shape::Bullet, &it.rationale),
            false => push(why, Shape::Bullet, &reasons.join("; ")),
        }
        for part in follows {
            push("Consequences", Shape::Bullet, part);
        }
        for other in alternatives(it) {
            push("Alternatives Considered", Shape::Bullet, &other);
        }
        page
    }

    /// Decisions that this one superseded, and discussions that it settled.
    fn background(&self, memory: &Memory) -> Vec<String> {
        let replaced = self.replaced.get(&memory.id).into_iter().flatten();
        let line = |old: &&Memory| match &old.claim {
            Claim::Decision(it) => {
                let label = self.names.label(old.id);
                let label = label.map(|label| format!("{label}: ")).unwrap_or_default();
                let since = old.valid_from.map(|at| format!(" (since {})", at.day()));
                let chosen = end_trimmed(&it.chosen);
                Some(format!("Before: {label}{chosen}{}", since.unwrap_or_default()))
            }
            Claim::Discussion(Discussion { topic, points }) if !points.is_empty() => {
                Some(format!("{} {}", topic.trim(), points.join("; ")))
            }
            Claim::Discussion(_) | Claim::Attempt(_) | Claim::Request(_) => None,
        };
        replaced.filter_map(line).collect()
    }

    /// Tags from the words of the claim, names of options first.
    fn topics(&self, it: &Decision) -> Vec<String> {
        let mut found: Vec<(usize, String)> = Vec::new();
        let options = it.options.join(" ").to_lowercase();
        let words = words_inline(&it.chosen, PARAGRAPH_LETTERS_MAX, self.facts.gate);
        for word in words.split(|letter: char| !letter.is_alphanumeric()) {
            let is_word = word.chars().count() >= TAG_LETTERS_MIN && !keys(word).is_empty();
            let Some(tag) = slug(word).filter(|tag| is_word && is_value(tag)) else { continue };
            let is_option = options
                .split(|letter: char| !letter.is_alphanumeric())
                .any(|it| it == word.to_lowercase());
            let is_name = word.starts_with(char::is_uppercase);
            let rank = usize::from(!is_option) * 2 + usize::from(!is_name);
            if !found.iter().any(|(_, other)| *other == tag) {
                found.push((rank, tag));
            }
        }
        found.sort_by_key(|(rank, _)| *rank);
        found.into_iter().take(TAGS_MAX).map(|(_, tag)| tag).collect()
    }

    /// `Superseded by ADR-XXX` needs the successor's record; without one it is `Deprecated`.
    fn status(&self, memory: &Memory) -> String {
        let successor = memory.superseded_by.and_then(|id| self.names.label(id));
        match (memory.state, memory.stage) {
            (MemoryState::Superseded, _) => successor
                .map_or_else(|| "Deprecated".to_owned(), |label| format!("Superseded by {label}")),
            (MemoryState::Retracted, _) | (MemoryState::Active, Stage::Refuted) => {
                "Deprecated".to_owned()
            }
            (MemoryState::Active, Stage::Proposed | Stage::Attempted) => "Proposed".to_owned(),
            (MemoryState::Active, Stage::Decided) => "Accepted".to_owned(),
        }
    }
}

/// True if a part of the rationale states a consequence.
fn follows(part: &str) -> bool {
    let part = part.trim().to_lowercase();
    FOLLOWS
        .iter()
        .any(|begins| part.strip_prefix(begins).is_some_and(|rest| rest.starts_with([' ', ','])))
}

/// The other options, each with the part of the rationale about it.
fn alternatives(it: &Decision) -> Vec<String> {
    let mut options: Vec<&str> = Vec::new();
    for option in it.options.iter().map(|option| end_trimmed(option)) {
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    let chosen = chosen(it, &options);
    let names: Vec<Vec<u64>> = options.iter().map(|option| keys(option)).collect();
    let others = options.iter().enumerate().filter(|(at, _)| Some(*at) != chosen);
    let line = |(at, option): (usize, &&str)| match reason(&it.rationale, at, &names) {
        Some(why) if why.to_lowercase().starts_with(&option.to_lowercase()) => why.to_owned(),
        Some(why) => format!("{option} – {why}"),
        None => (*option).to_owned(),
    };
    others.take(ALTERNATIVES_MAX).map(line).collect()
}

/// The chosen option: the one whose words the decision uses, unless it uses them to reject it.
fn chosen(it: &Decision, options: &[&str]) -> Option<usize> {
    let split = |text: &str| -> Vec<String> {
        let text = text.to_lowercase();
        let words = text.split(|letter: char| !letter.is_alphanumeric());
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let said = split(&it.chosen);
    let rank = |(at, option): (usize, &&str)| {
        let words = split(option);
        // Words without a key, such as `no`, are compared as written.
        let is_same = |one: &str, other: &str| {
            let (key, other_key) = (keys(one), keys(other));
            one == other || !key.is_empty() && key == other_key
        };
        let has = |word: &String| said.iter().position(|said| is_same(said, word));
        let known: Vec<usize> = words.iter().filter_map(has).collect();
        let share = known.len() as f64 / words.len().max(1) as f64;
        let first = known.into_iter().min()?;
        let before = said.get(first.saturating_sub(REJECTS_WITHIN)..first).unwrap_or_default();
        let is_rejected = before.iter().any(|word| REJECTS.contains(&word.as_str()));
        (share >= CHOSEN_SHARE && !is_rejected).then_some((share, first, at))
    };
    let ranked = options.iter().enumerate().filter_map(rank);
    let best = ranked.max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
    best.map(|(_, _, at)| at)
}

/// The clause of the rationale that names this option and no other.
fn reason<'t>(rationale: &'t str, option: usize, names: &[Vec<u64>]) -> Option<&'t str> {
    let is_clause = |part: &str| part.split_whitespace().count() >= CLAUSE_WORDS_MIN;
    let clauses = rationale.split(['.', ';', ',']).flat_map(|part| {
        // `Go and Zig are small` is one clause.
        let is_split = part.split(" and ").all(is_clause);
        if is_split { part.split(" and ").collect() } else { vec![part] }
    });
    let is_about = |clause: &&str| {
        let said = keys(clause);
        let named =
            |name: &Vec<u64>| !name.is_empty() && name.iter().all(|word| said.contains(word));
        names.iter().enumerate().all(|(at, name)| named(name) == (at == option))
    };
    let clause = clauses.map(str::trim).find(is_about)?;
    is_clause(clause).then_some(clause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(chosen: &str, options: &[&str], rationale: &str, expected: &[&str]) {
        let options = options.iter().map(|it| (*it).to_owned()).collect();
        let it = Decision { options, chosen: chosen.into(), rationale: rationale.into() };
        assert_eq!(alternatives(&it), expected, "{chosen}");
    }

    #[test]
    fn the_chosen_option_is_no_alternative() {
        check("SQLite for the job queue", &["Postgres", "SQLite"], "", &["Postgres"]);
        check("switch from Java to Rust", &["Java", "Rust"], "", &["Java"]);
        check("a table in Postgres instead of Kafka", &["Kafka", "Postgres"], "", &["Kafka"]);
        check("the limit is 5 days, no longer 7", &["7", "5"], "", &["7"]);
        check("Braintree, PayPal goes", &["PayPal", "Braintree"], "", &["PayPal"]);
        check("logs go to S3", &["S3", "no logs"], "", &["no logs"]);
        check("statt MySQL nehmen wir Postgres", &["MySQL", "Postgres"], "", &["MySQL"]);
        check("wait", &["now", "later"], "", &["now", "later"]);
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
    }

    #[test]
    fn consequences_are_clauses_that_say_so() {
        assert!(follows("so each branch needs a flag") && follows("Deshalb, wie gesagt"));
        assert!(!follows("some do") && !follows("small steps break less"));
    }
}
