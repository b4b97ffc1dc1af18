//! Deed of a request or an attempt: its verb, its object and the things it lists. An attempt completes only a request
//! for the same deed.

use super::parts::before_reason;
use super::phrases::{FORM_WORDS, infinitive, is_exact, is_stop_word, list, topic_keys};
use super::quantity::{quantity, words_of};
use crate::domain::Claim;
use crate::text::lexicon::unit;
use crate::text::tokens::{folded, hash};

/// Synonymous verbs, by row. Using a thing implies that it was made, so verbs of the second row also count for the
/// first.
const DEEDS: [&str; 4] = ["makes", "uses a thing", "repairs", "removes"];
/// Beginnings of words by which an attempt reproduces a failure.
const REPRODUCES: [&str; 3] = ["reprodu", "nachgestellt", "recreate"];
/// Minimum number of letters that two forms of one verb share at their beginning.
const VERB_LETTERS_MIN: usize = 3;

/// Deed that a request asks for or an attempt did; empty for other claims.
#[derive(Clone, Debug, Default)]
pub(super) struct Deed {
    /// First word that is no name, and the last one if it may be a German verb: the verb is one of them.
    verbs: Vec<Box<str>>,
    /// True if the first of them is a topic word.
    begins: bool,
    /// Keys of the topic words in order, without exact names.
    words: Vec<u64>,
    /// Keys of the exact names, and of the words between slashes.
    names: Vec<u64>,
    /// Keys of both on both sides of a conjunction, or before a comma in such a list.
    joined: Vec<u64>,
    /// True if it concerns all of many things.
    is_of_all: bool,
    removes: bool,
    failed: bool,
    /// True if the result says that something works.
    works: bool,
    /// True if it refers to an earlier attempt.
    pub(super) again: bool,
    /// True if it reproduces a failure.
    reproduces: bool,
    /// Keys of the commands in backticks, which have several words.
    commands: Vec<u64>,
    /// Keys of the commands that run these tests and more: `cargo test` for `cargo test --lib queue`.
    suites: Vec<u64>,
}

impl Deed {
    pub(super) fn of(claim: &Claim, head: &str) -> Deed {
        let mut deed = Deed::default();
        let (Claim::Request(_) | Claim::Attempt(_)) = claim else { return deed };
        let words = words_of(head);
        let is_english = words.iter().any(|word| list("english").has(word));
        let last = words.last().filter(|word| !is_english && word.ends_with(['n', 't']));
        // A tool may come first: `add_bags to add one bag`.
        let first = words.iter().find(|word| !is_exact(word) && **word != "to");
        deed.verbs = first.into_iter().chain(last).map(|word| (*word).into()).collect();
        deed.begins = first.is_some_and(|word| !is_stop_word(word));
        deed.removes = list("removals").are_in(head);
        if let Claim::Attempt(it) = claim {
            deed.failed = !it.succeeded;
            let result = folded(&it.result);
            let results = words_of(&result);
            deed.works = results.iter().any(|word| list("works").has(word));
            let quoted = it.action.split('`').skip(1).step_by(2);
            for command in quoted.filter(|words| words.trim().contains(' ')).map(folded) {
                deed.commands.push(hash(&command));
                let ends = command.match_indices(' ').map(|(end, _)| command.get(..end));
                let is_suite = |head: &&str| {
                    let mut words = head.split([' ', ':']);
                    head.contains(' ')
                        && words.any(|it| it.ends_with("test") || it.ends_with("tests"))
                };
                let suites = ends.flatten().filter(is_suite);
                deed.suites.extend(suites.map(hash));
            }
            deed.reproduces =
                words.iter().any(|word| REPRODUCES.iter().any(|it| word.starts_with(it)));
            deed.again = words.iter().chain(&results).any(|word| list("retries").has(word));
            deed.is_of_all = of_all(&results);
        }
        deed.is_of_all |= of_all(&words);
        deed.list(head);
        deed
    }

    /// Collects the words of the folded `head`, and those that it lists. Reasons list nothing.
    fn list(&mut self, head: &str) {
        let tokens = head.split(' ').flat_map(|token| {
            let words = words_of(if token == "&" { "and" } else { token }).into_iter();
            words.map(move |word| (word, token.ends_with([',', ';'])))
        });
        let (words, commas): (Vec<&str>, Vec<bool>) = tokens.unzip();
        let unreasoned = words_of(before_reason(head)).len();
        let (mut last, mut before_commas, mut is_joined) = (Vec::new(), Vec::new(), false);
        for (at, word) in words.iter().enumerate() {
            if list("and").begin(&words[at..]).is_some() {
                if at < unreasoned {
                    self.joined.append(&mut before_commas);
                    self.joined.extend(&last);
                    is_joined = true;
                }
                continue;
            }
            let mut keys = Vec::new();
            let parts: Vec<&str> = word.split('/').collect();
            let is_word = |part: &&str| !part.is_empty() && part.chars().all(char::is_alphabetic);
            if parts.len() > 1 && parts.iter().all(is_word) {
                parts.iter().for_each(|part| topic_keys(part, |key| keys.push(key)));
                self.names.extend(&keys);
                self.joined.extend(&keys);
            } else if is_exact(word) {
                keys.push(hash(word));
                self.names.extend(&keys);
            } else if !is_stop_word(word) {
                topic_keys(word, |key| keys.push(key));
                self.words.extend(&keys);
            } else {
                continue;
            }
            self.joined.extend(keys.iter().filter(|_| is_joined));
            is_joined = false;
            before_commas.extend(keys.iter().filter(|_| commas[at]));
            last = keys;
        }
    }

    /// True if it names several things, as in `A and B`.
    pub(super) fn is_list(&self) -> bool {
        !self.joined.is_empty()
    }

    /// True if it is what `request` asks for: the same verb or one for the same, done to the same thing, and to
    /// each of several.
    pub(super) fn does(&self, request: &Deed) -> bool {
        // To use a thing in vain does not mean that it was to be made.
        let is_use = |done: &str| self.failed && list("uses a thing").has(done);
        let is_same = |done: &str| {
            request.verbs.iter().any(|asked| {
                is_same_deed(asked, done) && (!is_use(done) || list("uses a thing").has(asked))
            })
        };
        let Some(verb) = self.verbs.iter().position(|done| is_same(done)) else { return false };
        let object = self.words.get(usize::from(verb == 0 && self.begins));
        object.is_some_and(|key| request.words.contains(key))
            && self
                .is_of_each(request, |key| self.words.contains(&key) || self.names.contains(&key))
    }

    /// True if it leaves out nothing that `request` lists, and concerns all things if that does. `has` tells whether a word
    /// is named.
    pub(super) fn is_of_each(&self, request: &Deed, has: impl Fn(u64) -> bool) -> bool {
        request.joined.iter().all(|key| has(*key)) && (self.is_of_all || !request.is_of_all)
    }

    /// True if it does what `failed` tried, or says that something works.
    pub(super) fn repeats(&self, failed: &Deed) -> bool {
        let is_verb_last = failed.verbs.len() > 1;
        let is_tried = || match is_verb_last {
            true => failed.words.last().is_some_and(|key| self.words.contains(key)),
            false => self.first_word().is_some_and(|key| failed.words.contains(&key)),
        };
        let tried = failed.verbs.last();
        let is_done = |done: &str| tried.is_some_and(|tried| is_same_deed(tried, done));
        self.works || is_tried() || self.verbs.iter().any(|done| is_done(done))
    }

    /// True if it repairs something, says that it was tried before, or ran a command of `failed`.
    pub(super) fn mends(&self, failed: &Deed) -> bool {
        let repairs = || self.verbs.iter().any(|done| list("repairs").has(done));
        self.again || self.reruns(failed) || repairs()
    }

    /// True if it ran a command of `failed`, or the same tests and more, and not to reproduce the failure.
    pub(super) fn reruns(&self, failed: &Deed) -> bool {
        let is_run = |key| failed.commands.contains(key) || failed.suites.contains(key);
        !self.reproduces && self.commands.iter().any(is_run)
    }

    /// True if it removes something that `failed` kept.
    pub(super) fn gives_up(&self, failed: &Deed) -> bool {
        self.removes && !failed.removes
    }

    /// Key of the first word if it is a topic word, which may be the verb.
    pub(super) fn first_word(&self) -> Option<u64> {
        self.words.first().copied().filter(|_| self.begins)
    }

    /// Key of the verb that `request` has for this deed, if it is a topic word.
    pub(super) fn verb_of(&self, request: &Deed) -> Option<u64> {
        let (verb, key) = match request.begins {
            true => (request.verbs.first(), request.words.first()),
            false => (request.verbs.get(1), request.words.last()),
        };
        let verb = verb?;
        let is_done = self.verbs.iter().any(|done| is_same_deed(verb, done));
        key.copied().filter(|_| is_done)
    }
}

/// True if one of `words` is for all of many things; `every hour` is a frequency.
fn of_all(words: &[&str]) -> bool {
    let is_time = |at: usize| {
        let next = words.get(at + 1..).unwrap_or_default();
        quantity(next).is_some() || next.first().is_some_and(|next| unit(next).is_some())
    };
    (0..words.len()).any(|at| list("all of them").has(words[at]) && !is_time(at))
}

/// Folded `head` of an attempt without its means and circumstances: in `ran eslint on the shop`, without the tool.
pub(super) fn without_means(head: &str) -> String {
    let mut words = words_of(head);
    let is_use = words.first().is_some_and(|word| list("uses").has(word));
    if let Some(at) = words.iter().position(|word| is_use && list("used on").has(word)) {
        words.drain(1..at);
    }
    let words: Vec<&str> = words.into_iter().take_while(|word| !list("means").has(word)).collect();
    words.join(" ")
}

/// True if the verb `done` does what the verb `asked` asks for.
fn is_same_deed(asked: &str, done: &str) -> bool {
    let row = |verb: &str| DEEDS.iter().position(|row| list(row).has(verb));
    let is_form = |one: &str, other: &str| {
        let common = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
        let is_ending = |verb: &str| {
            let ending: String = verb.chars().skip(common).collect();
            ending.is_empty() || list("verb endings").has(&ending)
        };
        common >= VERB_LETTERS_MIN && is_ending(one) && is_ending(other)
    };
    let base = |verb: &str| {
        infinitive(verb).unwrap_or_else(|| FORM_WORDS.get(verb).copied().unwrap_or(verb).to_owned())
    };
    let (wish, deed) = (row(asked), row(done));
    let is_use = wish == Some(0) && deed == Some(1);
    is_form(&base(asked), &base(done)) || is_use || wish.is_some() && wish == deed
}
