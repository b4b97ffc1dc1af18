//! Detects standing rules and definitions of terms in the text of a claim. If in doubt, it is neither. The words are in
//! `wording.txt`.

use super::stems::is_no;
use super::tokens::folded;
use crate::privacy::table_sections;
use aho_corasick::AhoCorasick;
use foldhash::HashMap;
use std::sync::LazyLock;

/// Maximum number of words to the end of a consent.
const CONSENT_WORDS_MAX: usize = 4;
/// Maximum number of words to the end of the name of a rule.
const RULE_WORDS_MAX: usize = 5;
/// Maximum number of words of the scope of a rule.
const SCOPE_WORDS_MAX: usize = 5;

/// Words and phrases of a section of `wording.txt`.
fn list(section: &str) -> &'static [&'static str] {
    static SECTIONS: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
        let words = |lines: Vec<&'static str>| lines.into_iter().flat_map(|it| it.split('|'));
        let sections = table_sections(include_str!("wording.txt"));
        sections.map(|(name, lines)| (name, words(lines).collect())).collect()
    });
    debug_assert!(SECTIONS.contains_key(section), "`wording.txt` has no section `{section}`");
    SECTIONS.get(section).map_or(&[], Vec::as_slice)
}

/// True if the decision is a standing rule.
pub(crate) fn is_rule(chosen: &str, reason: &str) -> bool {
    let says = |words: &[&str], of: &str| words.iter().position(|it| list(of).contains(it));
    let (text, reason) = (folded(chosen), folded(reason));
    // `never.rs` forbids nothing.
    let is_prose = |word: &&str| !word.contains('/') && !word.trim_end_matches('.').contains('.');
    let prose: Vec<&str> = text.split_whitespace().filter(is_prose).collect();
    let prose = prose.join(" ");
    let words = split(&prose);
    let forbids = says(&words, "forbids").and_then(|at| words.get(at + 1..));
    let has_any = |of: &str| list(of).iter().any(|it| has_words(&prose, it));
    let has_unless = |words: &[&str]| says(words, "unless").is_some();
    if has_any("makeshift") {
        return false;
    }
    let title = chosen.split_once(": ").map(|(title, _)| folded(title));
    let is_titled = title.is_some_and(|it| list("rule-title").contains(&it.as_str()));
    let called = reason.split([';', '.']).next().unwrap_or_default().split_whitespace();
    let ends = |letter: char| !letter.is_alphanumeric() && letter != ':';
    let mut called = called.take(RULE_WORDS_MAX).map(|word| word.trim_matches(ends));
    says(&words, "always").is_some()
        || words.first().is_some_and(|it| list("nobody").contains(it))
        || words.starts_with(&["do", "not"])
        || list("always-joined").iter().any(|word| text.contains(word))
        || forbids.is_some_and(|rest| has_unless(rest) || has_any("while-any"))
        || has_unless(&words) && has_any("asks")
        || is_titled
        || called.any(|word| list("rule").contains(&word))
        || begins_from_now_on(&text)
}

/// True if a folded request states a standing rule, such as `never touch vendor/` or `ask me before you add a crate`.
fn is_standing(text: &str) -> bool {
    let words = split(without_scope(without_please(text)));
    let first = words.first().copied().unwrap_or_default();
    let asks_first = list("ask").contains(&first)
        && words.iter().take(3).any(|word| list("asked").contains(word))
        && words.iter().any(|word| list("before").contains(word));
    begins_from_now_on(text) || asks_first || (first != "must" && list("always").contains(&first))
}

fn begins_from_now_on(folded: &str) -> bool {
    list("from-now-on").iter().any(|words| without_please(folded).starts_with(*words))
}

/// Text behind the scope of a rule, as in `for the whole project: never …`.
fn without_scope(folded: &str) -> &str {
    let scope = folded.split_once([':', ',']).filter(|(scope, _)| {
        let words = split(scope);
        words.len() <= SCOPE_WORDS_MAX && words.first().is_some_and(|it| list("for").contains(it))
    });
    scope.map_or(folded, |(_, rest)| rest.trim_start())
}

/// True if a request lays down a rule, and no task that can be done: a standing rule, a prohibition that is not only
/// for now, or something that is to stay as it is.
pub(crate) fn is_constraint(request: &str) -> bool {
    let text = folded(request);
    let stays = without_please(&text).starts_with("keep ")
        && list("stays").iter().any(|words| has_words(&text, words));
    is_standing(&text) || (stays || forbids(&text)) && !is_for_now(&text)
}

/// True if a folded text holds only for the present.
pub(crate) fn is_for_now(folded: &str) -> bool {
    list("for-now").iter().any(|words| has_words(folded, words))
}

/// True if `text` has these whole words in this order.
fn has_words(text: &str, words: &str) -> bool {
    let wanted = split(words);
    // Few texts have the first one at all.
    if !wanted.first().is_some_and(|first| text.contains(first)) {
        return false;
    }
    let text = split(text);
    text.windows(wanted.len()).any(|some| some == wanted)
}

/// True if a request only forbids something, such as `do not touch vendor/`.
pub(crate) fn is_prohibition(request: &str) -> bool {
    forbids(&folded(request))
}

/// Like [`is_prohibition`], for a folded text.
fn forbids(text: &str) -> bool {
    let text = without_scope(without_please(text));
    let words = split(text);
    // `Not only` and `no-op` forbid nothing.
    let is_only = |next: Option<&&str>| next.is_some_and(|next| list("only").contains(next));
    words.iter().take(2).enumerate().any(|(at, word)| {
        is_no(word)
            && !list("unless").contains(word)
            && !is_only(words.get(at + 1))
            && !text.split_whitespace().any(|part| {
                let part = part.trim_start_matches(|it: char| !it.is_alphanumeric());
                part.strip_prefix(word).is_some_and(|rest| rest.starts_with('-'))
            })
    })
}

/// True if a text begins with an exception or a condition.
pub(crate) fn begins_with_exception(text: &str) -> bool {
    let text = folded(text);
    let lists = ["unless", "excepts", "only"].map(list);
    split(&text).first().is_some_and(|first| lists.iter().any(|list| list.contains(first)))
}

/// True if a folded text begins by accepting something, or soon does.
pub(crate) fn begins_with_consent(folded: &str) -> bool {
    let begin: Vec<&str> = split(folded).into_iter().take(CONSENT_WORDS_MAX).collect();
    let begin = begin.join(" ");
    list("consent").iter().any(|words| has_words(&begin, words)) || folded.starts_with("はい")
}

/// The wish without who wishes and "please": `no mail before noon` of `Anna wants no mail before noon`.
fn without_please(folded: &str) -> &str {
    let mut words = folded.splitn(3, ' ');
    let folded = match (words.next(), words.next(), words.next()) {
        (Some(who), Some(verb), Some(wish)) if list("wants").contains(&verb) && !is_no(who) => wish,
        _ => folded,
    };
    let rest = list("please").iter().find_map(|word| folded.strip_prefix(word));
    rest.unwrap_or(folded).trim_start_matches([' ', ','])
}

fn split(text: &str) -> Vec<&str> {
    let ends = |letter: char| !letter.is_alphanumeric() && letter != '\'';
    text.split(ends).filter(|word| !word.is_empty()).collect()
}

/// Verbs that occur only in definitions.
const MEANS: [&str; 15] = [
    " means ", " stands for ", " refers to ", " denotes ", " is short for ", " bedeutet ",
    " heißt ", " steht für ", " bezeichnet ", " signifie ", " désigne ", " significa ",
    " betekent ", "とは", " := ",
];
/// Verbs between an indefinite term and its kind.
const IS: [&str; 5] = [" is ", " ist ", " est ", " es ", " is een "];
/// Finds whether a text has any of these verbs: most have none.
static DEFINES: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::new(MEANS.iter().chain(&IS)).ok());
/// Words around the term in definitions that name it first.
const CALLED: [(&str, &str); 5] = [
    ("by ", " we mean "),
    ("unter ", " verstehen wir "),
    ("mit ", " meinen wir "),
    ("par ", " on entend "),
    ("por ", " entendemos "),
];
/// Articles; all but those in `DEFINITE` are indefinite.
const ARTICLES: [&str; 11] =
    ["a ", "an ", "the ", "ein ", "eine ", "der ", "die ", "das ", "un ", "une ", "una "];
const DEFINITE: [&str; 4] = ["the ", "der ", "die ", "das "];
/// Maximum number of words of a term.
const TERM_WORDS_MAX: usize = 4;

/// Term that the text defines, and its meaning.
pub(crate) fn definition<'t>(chosen: &'t str, reason: &str) -> Option<(&'t str, &'t str)> {
    let text = chosen.trim().trim_end_matches('.');
    let named = CALLED.iter().find_map(|(before, verb)| {
        let head = text.get(..before.len()).filter(|it| it.eq_ignore_ascii_case(before))?;
        text.get(head.len()..)?.split_once(verb)
    });
    if named.is_none() && !DEFINES.as_ref().is_none_or(|it| it.is_match(text)) {
        return None;
    }
    let strong = || MEANS.iter().find_map(|verb| text.split_once(verb));
    let (term, meaning) = named.or_else(strong).or_else(|| {
        let (term, meaning) =
            IS.iter().filter_map(|verb| text.split_once(verb)).min_by_key(|it| it.0.len())?;
        let is_said = folded(reason).contains("defin") || term.starts_with(QUOTES);
        let article = article(term);
        let is_any = article.is_some_and(|it| !DEFINITE.contains(&it));
        let kind = meaning.split_whitespace().next().unwrap_or_default().to_lowercase();
        (is_said || is_any && list("kinds").contains(&kind.as_str())).then_some((term, meaning))
    })?;
    let bare = article(term).and_then(|it| term.get(it.len()..)).unwrap_or(term);
    let term = bare.trim().trim_matches(QUOTES);
    let words = split(term);
    let is_term = (1..=TERM_WORDS_MAX).contains(&words.len())
        && !term.contains([',', ';', '(', ':'])
        && !words.iter().any(|word| list("no-term").contains(&word.to_lowercase().as_str()));
    (is_term && !meaning.trim().is_empty())
        .then(|| (term, meaning.trim().trim_start_matches("dass ")))
}

const QUOTES: [char; 8] = ['"', '\'', '“', '”', '„', '«', '»', '`'];

fn article(term: &str) -> Option<&'static str> {
    let begins =
        |it: &&&str| term.get(..it.len()).is_some_and(|head| head.eq_ignore_ascii_case(it));
    ARTICLES.iter().find(begins).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_hold_until_further_notice() {
        for text in [
            "timestamps are stored in UTC, always",
            "tokens never appear in an error message",
            "every endpoint must have a test",
            "no releases after Thursday noon",
            "ask before you drop a table",
            "Passwörter kommen nie ins Log",
            "kein Merge ohne Review",
            "on ne fusionne pas sans relecture",
            "nunca se borran pedidos",
            "マージの前に必ずテストを実行する",
            "Nobody dives alone at the moorings",
            "Do not use unwrap in library code",
            "Every error message starts in lower case",
            "Jede Funktion braucht einen Test",
            "Niemand schreibt am Freitag in die Datenbank",
            "From now on a doc comment stands above every function",
            "Nothing is rolled out while a storm warning is active",
            "Deploys on Tuesdays; none während einer Messe",
            "The agent asks before it adds a dependency",
            "Whenever a page changes, its test changes with it",
            "House rule: a test for it in the same commit",
            "Generally commits are signed",
            "No names in the repository, not anywhere",
        ] {
            assert!(is_rule(text, ""), "{text}");
        }
        assert!(is_rule("commits are signed", "rule of the house"));
        let is_standing = |text| is_standing(&folded(text));
        assert!(is_standing("Never touch vendor/") && is_standing("immer erst die Tests"));
        assert!(
            is_standing("From now on run the smoke suite") && is_standing("Bitte immer testen")
        );
        for text in [
            "For the whole project: always run the tests with -race",
            "Ask the user before pulling any dependency",
            "Frag mich, bevor du etwas löschst",
            "Anna wants never to be asked about the gate",
        ] {
            assert!(is_standing(text), "{text}");
        }
        for text in [
            "Make it never fail",
            "Please add a test",
            "Ask Farid before Friday",
            "Whenever you have a moment, rename the module",
            "For the sake of the demo of the new gate on Monday: always on",
        ] {
            assert!(!is_standing(text), "{text}");
        }
        for text in [
            "the pool has 30 connections",
            "no dark mode",
            "PostgreSQL instead of MySQL",
            "Sitzungen enden nach 45 Minuten",
            "retry three times",
            "keep the port before the proxy",
            "the Postgres driver is in src/never.rs",
            "build on the Pi while a runner is missing",
            "no upgrade while the build is red",
            "the shell asks before it deletes a file",
            "only the API is in Docker",
            "the upgrade waits for the release that is generally available",
            "Rule engine: Drools",
            "the rest stays on paper for now and must not be lost",
            "Retry policy: three attempts",
            "Firewall rule: allow 443",
        ] {
            assert!(!is_rule(text, "it is faster"), "{text}");
        }
    }

    #[test]
    fn what_a_person_forbids_is_a_rule_and_no_task() {
        for text in [
            "Never touch vendor/",
            "Do not use LTO, it broke the watchdog",
            "Keep the API of `Queue` as it is",
            "Keep the key out of every file",
            "Keine Emojis",
            "For the whole project: no new dependency",
            "Anna wants no mail about the crew before noon",
        ] {
            assert!(is_constraint(text), "{text}");
        }
        for text in [
            "Do not merge it yet", "Noch nicht ausliefern", "Keep both names",
            "Add a page without a frame",
        ] {
            assert!(!is_constraint(text), "{text}");
        }
        assert!(is_prohibition("Please do not touch vendor/") && is_prohibition("Keine Emojis"));
        assert!(is_prohibition("No pushes to the mono-repo"));
        assert!(
            !is_prohibition("Anna wants not only CSV but also PDF")
                && !is_prohibition("Ann wants no-op mode for the importer")
                && !is_prohibition("Import it without a loss")
                && !is_prohibition("Make sure that nothing is lost")
        );
    }

    #[test]
    fn a_reason_makes_a_rule_if_it_calls_the_decision_one() {
        assert!(
            is_rule("logs are JSON", "the user's rule")
                && is_rule("no floats", "Rule of Ann; it bit")
        );
        for reason in [
            "rule: no deploy during a warning",
            "laid down when asked for the booking rules",
            "a report stays as it is; that is the rule here",
        ] {
            assert!(!is_rule("not deployed on Tuesday; Thursday instead", reason), "{reason}");
        }
        assert!(!is_rule("the insurance is with Hiscox", "Ann: The policy is Hiscox, number 7"));
    }

    #[track_caller]
    fn check(text: &str, expected: Option<(&str, &str)>) {
        assert_eq!(definition(text, "because"), expected, "{text}");
    }

    #[test]
    fn definitions_name_a_term_and_its_kind() {
        check("a shard is one part of an index.", Some(("shard", "one part of an index")));
        check(
            "A cold start is the first call of an instance",
            Some(("cold start", "the first call of an instance")),
        );
        check("SLA stands for service level agreement", Some(("SLA", "service level agreement")));
        check("\"Kante\" bedeutet eine Verbindung", Some(("Kante", "eine Verbindung")));
        check("Ein Beet ist eine Fläche von 2 m²", Some(("Beet", "eine Fläche von 2 m²")));
        check("Unter Schicht verstehen wir acht Stunden", Some(("Schicht", "acht Stunden")));
        check("un lot est un envoi groupé", Some(("lot", "un envoi groupé")));
        assert_eq!(
            definition("shard is part of an index", "a definition"),
            Some(("shard", "part of an index"))
        );
    }

    #[test]
    fn other_statements_define_nothing() {
        for text in [
            "a door that is open for a minute raises an alarm",
            "the API is the only way in",
            "a release is cut on Thursdays",
            "a job is retried three times",
            "this is a test",
            "PostgreSQL",
            "",
        ] {
            check(text, None);
        }
    }
}
