//! Numbers that let a person in, in sentences of any language: PINs, one-time codes, codes of doors. Only a word that
//! makes a number such a code masks it, so the lists hold no word that also counts or measures.

use super::scan::Scan;
use super::sentence::{is_predicate, is_role};
use super::words::{self, OTHERS, PINS, PURPOSES, TELLS, UNITS};
use super::{sentence, value};
use regex::Regex;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

/// Bytes before and after the word that are read.
const NEAR_MAX: usize = 96;
/// Maximum bytes of a word.
const WORD_MAX: usize = 32;

/// Masks the number that a sentence gives as the PIN, the password or the code at `at`.
pub(super) fn told(scan: &mut Scan<'_>, at: Range<usize>) {
    let near = at.start.saturating_sub(NEAR_MAX)..scan.bytes.len().min(at.end + NEAR_MAX);
    // Most such words have no number near. Without a branch for each byte this is quick.
    if !scan.bytes[near].iter().fold(false, |any, byte| any | byte.is_ascii_digit()) {
        return;
    }
    let name = scan.piece(at.clone()).to_lowercase();
    let Some(word) = word_range(scan, at, &name) else { return };
    let from = scan.line_start(word.start, NEAR_MAX);
    let end = scan.line_end(word.end, NEAR_MAX);
    let end = scan.run_within(end, WORD_MAX, |byte| byte.is_ascii_digit());
    let name = Name {
        text: scan.piece(from..end),
        at: word.start - from..word.end - from,
        is_pin: PINS.contains(name.as_str()),
    };
    let found = numbers(name.text).filter(|it| name.gives(it));
    let lettered = codes(name.text).filter(|it| name.gives_code(it));
    let found: Vec<Range<usize>> = found.chain(lettered).collect();
    scan.add_hits(from, found);
}

/// Range of the whole word around a keyword; `None` if the word means something else: `barcode`, `opinion`, `pin_dialog`.
fn word_range(scan: &Scan<'_>, at: Range<usize>, name: &str) -> Option<Range<usize>> {
    // Words of Chinese, Japanese and Korean are not divided.
    if name.bytes().any(|byte| 0xe2 < byte) {
        return Some(at);
    }
    let fits = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || byte == b'-'
            || (0xc3..0xe0).contains(&byte)
            || (0x80..0xc0).contains(&byte)
    };
    let start = scan.floor(scan.run_back(at.start, WORD_MAX, fits));
    let end = scan.run_within(at.end, WORD_MAX, fits);
    let (prefix, ending) = (scan.piece(start..at.start), scan.piece(at.end..end));
    let is_code = |byte: u8| b"_.(=/\\".contains(&byte);
    let member =
        is_code(scan.before(start)) || is_code(scan.byte(end)) && scan.byte(end + 1) > b' ';
    // `pins`, `pinned` and `codec` are other words; `PIN-Code` and `пароля` are not.
    let short = name.is_ascii() && !PINS.contains(name);
    let inflected = ["", "n", "en", "t", "u", "um", "unuz", "em", "a", "s:"].contains(&ending);
    let second = ending.trim_start_matches('-').to_lowercase();
    let joined = ["code", "kod", "koodi", "nummer"].iter().any(|it| second.starts_with(it));
    let is_flag = prefix.starts_with('-') || start == at.start && scan.before(start) == b'-';
    let whole = ending.is_empty() || joined || !name.is_ascii() || short && inflected;
    let begins = prefix.is_empty() || prefix.ends_with('-') || !PINS.contains(name);
    (whole && begins && !member && !is_flag).then_some(start..end)
}

/// A word for a code in its line.
struct Name<'a> {
    text: &'a str,
    at: Range<usize>,
    /// The word needs no other that says what the code is for.
    is_pin: bool,
}

impl Name<'_> {
    fn piece(&self, at: Range<usize>) -> &str {
        self.text.get(at).unwrap_or_default()
    }

    /// Returns whether the line gives the number as the code.
    fn gives(&self, number: &Range<usize>) -> bool {
        let word = self.piece(self.at.clone()).to_lowercase();
        let digits = self.piece(number.clone());
        let is_card = word.starts_with("cv");
        if is_card != (digits.len() == 3) && !(is_card && digits.len() == 4) {
            return false;
        }
        // `the entry code was 4096`
        let is_size = digits.parse().is_ok_and(u32::is_power_of_two);
        if is_size && !self.is_pin {
            return false;
        }
        if number.end <= self.at.start {
            let after = self.piece(number.end..self.at.start);
            let behind = self.piece(self.at.end..self.text.len());
            // `… is your code for the door`, `… — ваш код подтверждения`
            let next = behind.trim_start().split_once(' ').unwrap_or((behind.trim(), ""));
            let rest = if is_purpose(&next.0.to_lowercase()) { next.1 } else { behind };
            return self.has_purpose(behind, &word)
                && (is_role(after) || is_predicate(after, rest));
        }
        if number.start < self.at.end {
            return false;
        }
        let between = self.piece(self.at.end..number.start);
        // `login.rs:1042`
        let is_place = between.ends_with(':') && between.trim_start() != ":";
        let after = self.after(number);
        let opens = ["sign in", "log in", "verify", "unlock"]
            .iter()
            .any(|it| after.starts_with(&format!(" to {it}")));
        if is_place || ends_sentence(between) || !opens && !self.has_purpose(between, &word) {
            return false;
        }
        let is_year = digits.len() == 4 && (digits.starts_with("19") || digits.starts_with("20"));
        let last = self.piece(0..self.at.start).trim_end().rsplit(' ').next();
        // `pin 1024` is one of a chip, `card pin 4471` is not.
        let is_plain_pin = word == "pin"
            && !self.piece(self.at.clone()).starts_with('P')
            && !last.is_some_and(is_purpose);
        let core =
            between.trim_matches(|it: char| it.is_whitespace() || "([【\"'`*«„“「『".contains(it));
        if core.is_empty() {
            return !is_year && !is_plain_pin;
        }
        // `PIN dialog: 1042` is about something else.
        let first = core.split([' ', '-', ':', '：', ',', '\'']).find(|it| !it.is_empty());
        let first = first.unwrap_or_default().to_lowercase();
        let goes_on = |word: &str| {
            let lists = [&words::LINKS, &words::VERBS, &words::LEADS, &words::CHANGES, &TELLS];
            !word.is_ascii() || lists.iter().any(|it| it.contains(word)) || is_purpose(word)
        };
        // `TAN eingeben, hier steht`
        const SURE_MIN: usize = 6;
        let last = core.split(' ').next_back().unwrap_or_default();
        let shown = SURE_MIN <= digits.len() && TELLS.contains(last)
            || self.is_pin && words::BIDS.contains(last);
        if !shown && !goes_on(&first) && core.starts_with(char::is_alphabetic) {
            return false;
        }
        let is_polish = ["kod", "has"].iter().any(|it| word.starts_with(it)) || first == "do";
        let to = core.ends_with(" to") && is_polish;
        let on = core.ends_with("on") && word.contains("koodi");
        if to
            || on
            || sentence::is_linked(self.text, number.start)
            || leads(core, self.after(number))
        {
            return true;
        }
        // `от сейфа`, `for the back door`
        const LINKS_MAX: usize = 4;
        !is_year
            && !is_plain_pin
            && (words::LINKS.contains(first.as_str()) || is_purpose(&first))
            && core.split_whitespace().count() <= LINKS_MAX
            && !core.contains(',')
    }

    /// Returns whether the line gives a word of letters and digits as the code.
    fn gives_code(&self, code: &Range<usize>) -> bool {
        if code.start < self.at.end {
            return false;
        }
        let word = self.piece(self.at.clone());
        let token = self.piece(code.clone());
        // `提取码：8k3f`
        let is_shared = word.contains("取码") || word.contains("访问码");
        let is_undivided = word.bytes().any(|it| 0xe2 < it);
        let has_digit = token.bytes().any(|it| it.is_ascii_digit());
        let is_linked = || sentence::is_linked(self.text, code.start);
        let fits = is_lettered(token)
            || is_shared && token.len() == 4
            || is_undivided && has_digit && token.len() <= 8 && is_linked();
        if !fits || words::TYPES.contains(token.to_ascii_lowercase().as_str()) {
            return false;
        }
        let between = self.piece(self.at.end..code.start);
        let is_known = |it: &str| words::LINKS.contains(it) || is_purpose(it);
        (between.to_lowercase().split_whitespace().all(is_known) || is_linked())
            && !ends_sentence(between)
            && self.has_purpose(between, &word.to_lowercase())
    }

    fn after(&self, number: &Range<usize>) -> &str {
        self.piece(number.end..self.text.len())
    }

    /// Returns whether the word, the one before it or those around say that the code lets somebody in.
    fn has_purpose(&self, beside: &str, word: &str) -> bool {
        if self.is_pin {
            return true;
        }
        let head = self.piece(0..self.at.start).to_lowercase();
        let mut words = head.split_whitespace().rev();
        let last = words.next().unwrap_or_default();
        let beside = beside.to_lowercase();
        let next = beside.split_whitespace().take(3).any(|it| names_one(&OTHERS, it));
        // `error in access code`
        let joins = |it: &str| words::LINKS.contains(it) || ["with", "mit", "avec"].contains(&it);
        let of = words.clone().next().filter(|it| joins(it)).and_then(|_| words.clone().nth(1));
        let is_other = |word: &str| names_one(&OTHERS, word);
        if is_other(last) || is_other(word) || next || of.is_some_and(is_other) {
            return false;
        }
        // `SMS ile gelen kod`
        const NEAR_WORDS: usize = 3;
        let messages = ["sms", "смс", "otp", "2fa", "mfa", "whatsapp", "authenticator"];
        let pair = ["one time", "single use", "two factor", "two step", "tek kullanımlık"];
        PURPOSES.iter().any(|it| word.contains(it))
            || is_purpose(last)
            || pair.iter().any(|it| head.trim_end().ends_with(it))
            || is_purpose(&beside)
            || words.take(NEAR_WORDS).any(|it| messages.contains(&it))
    }
}

/// Returns whether a word of the text is one of these or starts with a longer one: `sim`, but not `simple`.
fn names_one(list: &HashSet<&str>, text: &str) -> bool {
    const PART_MIN: usize = 5;
    let is_one = |word: &str| {
        list.iter().any(|it| {
            word == *it || PART_MIN <= it.len() && (word.starts_with(it) || word.ends_with(it))
        })
    };
    // `un solo uso`
    list.iter().any(|it| it.contains(' ') && text.contains(it))
        || text.split([' ', '-', '\'', '’', '(', ',', ':']).any(is_one)
}

fn is_purpose(text: &str) -> bool {
    names_one(&PURPOSES, text)
}

/// Returns whether the last words before a number introduce it: `is the`, `est le`, `wurde geändert auf`.
fn leads(between: &str, after: &str) -> bool {
    const AFTER_WORDS: usize = 2;
    let plain = |it: &str| it.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let words: Vec<String> = between.split_whitespace().map(plain).collect();
    let Some((last, before)) = words.split_last() else { return false };
    let is_verb = |it: &String| words::VERBS.contains(it.as_str());
    let changes = |it: &String| words::CHANGES.contains(it.as_str());
    if words::INTO.contains(last.as_str())
        && (before.iter().any(changes)
            || after.split_whitespace().take(AFTER_WORDS).map(plain).any(|it| changes(&it)))
    {
        return true;
    }
    words::ARTICLES.contains(last.as_str()) && before.last().is_some_and(is_verb)
        || (words::LEADS.contains(last.as_str())
            || words::BIDS.contains(last.as_str())
            || TELLS.contains(last.as_str()))
            && !words::INTO.contains(last.as_str())
}

/// Returns whether a sentence ends in the text, or another number or code stands there.
fn ends_sentence(text: &str) -> bool {
    let ends = [". ", "; ", "? ", "! ", "。", "？", "；", "！", "{", "}", "==", "()"];
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    ends.iter().any(|it| text.contains(it))
        || text
            .split([' ', '(', ','])
            .scan("", |before, word| {
                // `changed from 1199 to`
                let is_old = words::FROM.contains(before);
                *before = word;
                Some(!word.is_empty() && is_number(word) && !is_old)
            })
            .any(|it| it)
}

/// Finds the words of letters and digits, perhaps in two parts.
fn codes(text: &str) -> impl Iterator<Item = Range<usize>> {
    static CODE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("[A-Za-z0-9-]{4,}").ok());
    let glues = |it: Option<char>| it.is_some_and(|it| "._/-#$+<>=&@%".contains(it));
    CODE.iter().flat_map(|it| it.find_iter(text)).map(|it| it.range()).filter(move |at| {
        let piece = |at: Range<usize>| text.get(at).unwrap_or_default();
        let rest = piece(at.end..text.len()).trim_start_matches(['.', ',']).chars().next();
        let glued = glues(piece(0..at.start).chars().next_back()) || glues(rest);
        piece(at.clone()).bytes().any(|it| it.is_ascii_alphabetic()) && !glued
    })
}

/// Returns whether a word is a code such as `G-448190`, `7KD2R`, `M7P-4QXR-TL` or `4471B`, and no name such as `EN-12209`.
fn is_lettered(code: &str) -> bool {
    let digits = value::count(code, u8::is_ascii_digit);
    let is_capital = |byte: u8| byte.is_ascii_uppercase();
    let is_name =
        |part: &str| part.trim_end_matches(|it: char| it.is_ascii_digit()).bytes().all(is_capital);
    let fits = code.bytes().all(|it| is_capital(it) || it.is_ascii_digit() || it == b'-')
        && 2 <= digits
        && (4..=14).contains(&code.len());
    let mut parts = code.split('-');
    let first = parts.next().unwrap_or_default();
    // `G-448190`
    let is_short = first.len() < 3 && (5..=8).contains(&digits) && parts.next().is_some();
    fits && 0 < value::count(code, u8::is_ascii_uppercase)
        && (code.split('-').any(|part| !is_name(part) && !value::is_number(part)) || is_short)
}

/// Finds the numbers of three to eight digits, perhaps in two groups of three or four or three of two, that measure nothing.
fn numbers(text: &str) -> impl Iterator<Item = Range<usize>> {
    static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let (digit, gap) = ("[0-9]", r"[ \-\u{a0}\u{202f}]");
        let pair = |size: usize| format!("{digit}{{{size}}}{gap}{digit}{{{size}}}");
        let pairs = format!("{}|{}|{digit}{{2}}(?:-{digit}{{2}}){{2}}", pair(3), pair(4));
        Regex::new(&format!(r"(?:{pairs})(?-u:\b)|{digit}+")).ok()
    });
    let found = NUMBER.iter().flat_map(|it| it.find_iter(text)).map(|it| it.range());
    found.filter(|at| {
        let before = text.get(..at.start).unwrap_or_default().chars().next_back();
        let starts =
            !before.is_some_and(|it| it.is_ascii_alphanumeric() || "._/-#$+<>=&@".contains(it));
        let digits = value::count(text.get(at.clone()).unwrap_or_default(), u8::is_ascii_digit);
        let rest = text.get(at.end..).unwrap_or_default();
        starts && (3..=8).contains(&digits) && !goes_on(rest)
    })
}

/// Returns whether the text behind a number makes it part of a word, a fraction or a measure.
fn goes_on(rest: &str) -> bool {
    let mut letters = rest.chars();
    let (next, then) = (letters.next(), letters.next());
    let joined = next.is_some_and(|it| it.is_ascii_alphanumeric() || "%_/=€$£°@\\".contains(it))
        || next.is_some_and(|it| ".,:-".contains(it))
            && then.is_some_and(|it| it.is_alphanumeric());
    let word = rest.trim_start_matches([' ', '-', '\u{a0}']).to_lowercase();
    let is_unit = |unit: &&str| {
        word.strip_prefix(*unit).is_some_and(|rest| {
            !unit.is_ascii() || !rest.starts_with(|it: char| it.is_ascii_alphabetic())
        })
    };
    joined || UNITS.iter().any(is_unit)
}
