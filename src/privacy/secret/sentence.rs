//! Secrets in sentences of any language: a distinctive word near the word for a password, a token after a word such as
//! `is`, and what follows on the next line.

use super::scan::Scan;
use super::words::{self, COMMAND_MAX, GIVEN};
use super::{shape, value};
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// Bytes before and after the name that are read.
const NEAR_MAX: usize = 80;
/// Maximum bytes of a word that starts within them.
const WORD_MAX: usize = 512;
const TOKEN_MIN: usize = 16;
/// Marks before and after a word that is quoted.
pub(super) const OPENING: [char; 13] =
    ['`', '"', '\'', '„', '«', '“', '‘', '‚', '»', '「', '『', '‹', '›'];
pub(super) const CLOSING: [char; 12] =
    ['`', '"', '\'', '“', '»', '”', '’', '«', '」', '』', '›', '‹'];
/// Words for a password that end longer words.
const COMPOUNDS: [&str; 7] =
    ["passwort", "kennwort", "wachtwoord", "passord", "schlüssel", "lösenord", "adgangskode"];
const AROUND: &[char] = &['.', ':', '!', '?', '(', ')', '[', ']', '*', '-'];

/// Masks the secrets near the name at `at`, within its line.
pub(super) fn told(scan: &mut Scan<'_>, at: Range<usize>) {
    let name = scan.piece(at.clone()).to_lowercase();
    let Some(at) = name_range(scan, at, &name) else { return };
    let is_token = words::TOLD_TOKENS.contains(name.as_str());
    let near = near(scan, &at);
    let (from, text) = (near.start, scan.piece(near));
    let (head, tail) = (at.start - from, at.end - from);
    let purpose = text.get(..head).unwrap_or_default().split_whitespace().next_back();
    if name.starts_with("key") && purpose.is_some_and(|it| words::KEYS_NOT.contains(it)) {
        return;
    }
    // `salasana on …`
    let stated = ["on", "to", "is", "pass "];
    let stated = name.split_once(' ').is_some_and(|(_, it)| stated.contains(&it));
    let named = Named {
        text,
        name: &name,
        at: head..tail,
        is_token,
        given: stated || is_given(text.get(..head).unwrap_or_default()),
    };
    let told = pieces(text).filter(|(place, word)| named.tells(*place, word));
    let foreign = foreign(text, head..tail, is_foreign_name(&name)).filter(|_| !is_token);
    let phrase = phrase(text, head..tail);
    let quoted = in_print(text).filter(|it| !is_token && is_quoted(text, head..tail, it));
    let told = told.map(|(place, word)| place..place + word.len());
    let told = told.chain(foreign).chain(phrase).chain(quoted);
    let told: Vec<Range<usize>> = told.collect();
    scan.add_hits(from, told);
    let is_title = scan.piece(from..at.start).starts_with('#');
    announced(scan, at.end, is_title);
    if name.ends_with(".key") {
        shown(scan, at);
    }
}

/// A name in its line.
struct Named<'a> {
    text: &'a str,
    name: &'a str,
    at: Range<usize>,
    is_token: bool,
    /// `with password …`
    given: bool,
}

impl Named<'_> {
    /// Returns whether the line gives the word at `place` as what the name says.
    fn tells(&self, place: usize, word: &str) -> bool {
        let piece = |at: Range<usize>| self.text.get(at).unwrap_or_default();
        let before = piece(0..place);
        // Most words are short ones of small letters, which are secret only in quotes.
        let is_plain = word.bytes().all(|it| it.is_ascii_lowercase());
        let is_stated = is_plain && !self.is_token && self.is_stated(place, word);
        if is_stated || is_plain && !before.ends_with(OPENING) {
            return is_stated;
        }
        let between = piece(self.at.end..place).trim_start_matches("'s").trim();
        let rest = piece(place + word.len()..self.text.len());
        if is_other(between, word, rest) {
            return false;
        }
        let after = piece(place + word.len()..self.at.start);
        let is_behind = self.at.end <= place;
        let is_next =
            self.at.end < place && between.trim_end_matches(['(', '「', '『', '«']).is_empty();
        let is_linked = is_behind && is_linked(self.text, place);
        let is_led = is_linked || is_behind && is_led(self.text, place) || is_role(after);
        let is_near = is_next || is_led;
        let is_stated = is_led && is_subject(between)
            || is_behind && self.is_joined(is_near, before, between)
            || is_role(after)
            || is_behind && is_changed(self.text, self.at.clone(), place, word);
        // Where nothing names the word the password, it may be a program, a place or a path of names.
        let shape = word.replace('.', if is_next || is_stated { "_" } else { "." });
        let is_placed = is_next || is_stated || may_be_far(before, word, is_linked);
        let is_window =
            !self.is_token && is_placed && is_within(self.text, self.at.clone(), place, word);
        let is_predicate = is_predicate(after, piece(self.at.end..self.text.len()));
        if (is_window || is_predicate) && (value::is_distinct(word) || value::is_distinct(&shape)) {
            return true;
        }
        if place + word.len() <= self.at.start && is_noted(after) {
            return value::is_key(word) || value::is_mixed(word, 1);
        }
        // Paths and signatures also hold `/` and `+`.
        let fits = !word.contains(['+', '/', '=']) || before.ends_with([' ', '：', '「', '«']);
        let is_key = is_near && (fits && is_told_token(word) || value::is_interspersed(word));
        if self.is_token || is_key {
            let is_given = is_next && self.given || is_linked && is_subject(between);
            let is_name = value::is_versioned(word) || value::names_type(word);
            return is_key || is_given && !is_name && value::is_likely(word);
        }
        // `with password rotation2 enabled`
        let is_described = rest.split_whitespace().next().is_some_and(|it| it.ends_with("ed"));
        let enclosed = before.ends_with(['"', '\'', '`']) && rest.starts_with(CLOSING);
        let is_small = word.starts_with(|it: char| it.is_ascii_lowercase());
        let is_joined = || names_user(piece(0..self.at.start), 1);
        let is_given =
            (is_next && (self.given || is_joined()) || is_only_led(between)) && !is_described;
        let is_plain = || value::may_be_secret(word, false) && !value::is_code(word);
        (is_stated || is_near && is_small) && value::is_mixed(word, 1)
            || is_stated && value::is_plain_key(word)
            || is_given && value::is_numbered(word)
            || is_stated && is_linked && enclosed && is_plain()
            || is_linked && value::is_phrase(word)
    }

    /// Returns whether a sentence gives a plain word as the password: `the password for the zip is …`, `user bob,
    /// password …`, `… is the password`, `changed the password to …`.
    fn is_stated(&self, place: usize, word: &str) -> bool {
        /// Maximum words after `as` in `… as the root password`.
        const ROLE_MAX: usize = 3;
        let piece = |at: Range<usize>| self.text.get(at).unwrap_or_default();
        let (head, rest) = (piece(0..self.at.start), piece(place + word.len()..self.text.len()));
        if !value::is_plain_password(word) || self.name == "key" {
            return false;
        }
        if place < self.at.start {
            let after = piece(place + word.len()..self.at.start);
            let before = piece(0..place).trim_end_matches([' ', '"', '\'', '`']);
            let verb = before.rsplit(' ').next().unwrap_or_default().to_lowercase();
            return is_role(after)
                && words::USES.contains(verb.as_str())
                && ends_noun(piece(self.at.end..self.text.len()))
                && after.split_whitespace().count() <= ROLE_MAX
                || piece(0..place).trim_matches([' ', '"', '\'', '`']).is_empty()
                    && is_predicate(after, piece(self.at.end..self.text.len()));
        }
        let between = piece(self.at.end..place).trim();
        let verb = between.rsplit(' ').next().unwrap_or_default();
        // `la clave es …` is also what matters.
        let is_named = !["clave", "parola"].contains(&self.name)
            || between.split(' ').any(words::is_user)
            || names_user(head, usize::MAX);
        let is_told =
            (words::VERBS.contains(verb) || between.ends_with(':') || is_only_led(between))
                && is_subject(between);
        let is_joined = between.is_empty() && names_user(head, 1);
        ends_clause(rest) && (is_told && is_named || is_joined)
            || is_changed(self.text, self.at.clone(), place, word)
    }

    /// Returns whether no verb need stand between a name in this language and its value: `mot de passe du wifi …`.
    fn is_joined(&self, is_near: bool, before: &str, between: &str) -> bool {
        let last = before.split_whitespace().next_back().unwrap_or_default();
        is_near && is_foreign_name(self.name)
            || !self.name.starts_with("passw")
                && !words::PLACES.contains(last)
                && is_subject(between)
                && [0, 2].contains(&between.split_whitespace().count())
    }
}

/// Returns whether a word may be a password where nothing but its sentence names one: no program, place or path of names.
fn may_be_far(before: &str, word: &str, is_linked: bool) -> bool {
    let last = before.split_whitespace().next_back().unwrap_or_default();
    is_linked && value::is_likely(word)
        || (is_linked || !words::PLACES.contains(last))
            && !value::is_release(word)
            && !value::is_place(word)
}

/// Range of the text near a name, within its line. The last word is read to its end.
fn near(scan: &Scan<'_>, name: &Range<usize>) -> Range<usize> {
    let end = scan.line_end(name.end, NEAR_MAX);
    let end = scan.run_within(end, WORD_MAX, |byte| byte.is_ascii_graphic() && byte != b'\\');
    scan.line_start(name.start, NEAR_MAX)..end
}

/// Returns whether a word stands in the sentence of a name, at most ten words behind it or four before, and no code between.
fn is_within(text: &str, name: Range<usize>, place: usize, word: &str) -> bool {
    let (between, most) = match place < name.end {
        true => (text.get(place + word.len()..name.start), 4),
        false => (text.get(name.end..place), 10),
    };
    let Some(between) = between else { return false };
    let apart = [". ", "! ", "; ", "。", "{", "}", "=", "|", "\\", "()", "//", "->", "\t"];
    !apart.iter().any(|it| between.contains(it))
        && between.split_whitespace().count() <= most
        && (between.trim().is_empty() || !text.get(..place).unwrap_or_default().ends_with('`'))
}

/// Range of the name that a keyword begins; `None` if it is part of code.
fn name_range(scan: &Scan<'_>, at: Range<usize>, name: &str) -> Option<Range<usize>> {
    // `pw to`
    let short = name.starts_with("pw") || name.starts_with("ww");
    let length = if short { "pw".len() } else { name.trim_end().len() };
    let at = at.start..at.start + length.min(at.len());
    // `password=`, `password.len`, `db_password` and `tokens` are different names.
    let goes_on = |byte: u8| b"_-=(/".contains(&byte) || byte.is_ascii_alphanumeric();
    let member = scan.byte(at.end) == b'.' && goes_on(scan.byte(at.end + 1));
    // `Root-Passwort` is a word.
    let joined = match scan.before(at.start) {
        b'-' => !scan.byte(at.start).is_ascii_uppercase(),
        before => before == b'_' || before == b'.',
    };
    let is_code = member || goes_on(scan.byte(at.end)) || joined;
    // `Datenbankpasswort`
    let is_compound = COMPOUNDS.contains(&name) && scan.byte(at.start).is_ascii_lowercase();
    if name.is_ascii() && (is_code || !is_compound && !scan.word_starts(at.start)) {
        return None;
    }
    // `şifresi`, `lösenordet`
    // Names in Chinese have no endings.
    let inflects = !short && !name.is_ascii() && name.bytes().all(|byte| byte < 0xe0);
    let ending = |byte: u8| byte.is_ascii_alphabetic() || 0x7f < byte && byte < 0xe0;
    let end = if inflects { scan.run_within(at.end, 8, ending) } else { at.end };
    Some(at.start..end)
}

/// Finds the words with letters beyond ASCII, and digits or marks, that a sentence gives: `пароль от сервера: …`.
fn foreign(text: &str, name: Range<usize>, is_foreign: bool) -> impl Iterator<Item = Range<usize>> {
    let parts = |it: char| it.is_whitespace() || "\"'`,;<>()«»„“”「」『』。，".contains(it);
    let marks = ['.', ':', '!', '?', '-', '—', '–'];
    let mut end = name.end;
    text.get(name.end..).unwrap_or_default().split_inclusive(parts).filter_map(move |piece| {
        let place = end;
        end += piece.len();
        let word = piece.trim_end_matches(parts).trim_end_matches(marks);
        if !value::is_foreign(word) {
            return None;
        }
        let between = text.get(name.end..place)?;
        // `пароль от вайфая …`
        let between = between.trim_end_matches(OPENING);
        let is_next = is_subject(between) && [0, 2].contains(&between.split_whitespace().count());
        let is_told = is_linked(text, place)
            || is_changed(text, name.clone(), place, word)
            || is_foreign && (is_next || is_led(text, place));
        is_told.then_some(place..place + word.len())
    })
}

/// Returns whether a word near a name is something else: another member, the version of a `password manager`, a type.
fn is_other(between: &str, word: &str, rest: &str) -> bool {
    let first = between.split([' ', ':']).next().unwrap_or_default();
    between.contains("\",")
        || between.contains("\":")
        || value::is_identifier(word)
        || words::ATTRIBUTES.contains(first) && value::is_versioned(word)
        // `password: complex128 = …`
        || rest.trim_start().starts_with('=') && value::is_plain_key(word)
}

/// Returns whether a name belongs to a language in which a blank is enough before a password.
fn is_foreign_name(name: &str) -> bool {
    !name.is_ascii() || name.starts_with("parola") || name.starts_with("jelsz")
}

/// Returns whether a clause ends behind a word that may be a password: at a mark, a remark or a conjunction.
pub(super) fn ends_clause(after: &str) -> bool {
    let closed = after.trim_start_matches([')', ']', '*', '"', '\'', '`', '»', '”', '“', '’']);
    let rest = closed.trim_start_matches(['.', '!', '?', ' ', '\t', '\r']);
    let next = rest.split([' ', ',']).next().unwrap_or_default();
    rest.is_empty()
        || closed.starts_with([',', ';', '|', '\n', '\\'])
        || closed.starts_with(". ")
        || rest.len() < closed.len()
            && (rest.starts_with(['(', '/', '|', '#', '—', '–', ';', '*'])
                || rest.starts_with("- ")
                || rest.starts_with("-->")
                || words::CONJUNCTIONS.contains(next))
}

/// Returns whether the text names a user and a name, within so many last pairs: `user bob`, `Login: bob`, `log in as bob`.
pub(super) fn names_user(text: &str, pairs_max: usize) -> bool {
    let parts = |it: char| it.is_whitespace() || ",;|/:=\"'`()[]{}".contains(it);
    let is_word = |it: &&str| {
        !it.is_empty()
            && !words::VERBS.contains(*it)
            && !words::ARTICLES.contains(*it)
            && !GIVEN.contains(it)
    };
    let mut found = text.rsplit(parts).filter(is_word).peekable();
    let mut pairs = std::iter::from_fn(|| Some((found.next()?, *found.peek()?))).take(pairs_max);
    pairs.any(|(name, user)| words::is_user(user) && !value::is_about(name))
}

/// Finds what stands between double quotes or those of print.
fn in_print(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let is_open =
            |it: char| it == '"' || !it.is_ascii() && (OPENING.contains(&it) || it == '”');
        let open = at + text.get(at..)?.find(is_open)?;
        let mark = text.get(open..)?.chars().next()?;
        let start = open + mark.len_utf8();
        let closes = |it: char| match mark {
            '"' => it == '"',
            '«' => it == '»',
            '»' => it == '«',
            '‘' | '‚' => "‘’".contains(it),
            _ => "“”›‹」』".contains(it),
        };
        let Some(length) = text.get(start..)?.find(closes) else {
            at = text.len();
            return Some(start..start);
        };
        at = start + length + text.get(start + length..)?.chars().next()?.len_utf8();
        let inner = text.get(start..start + length)?;
        let first = start + inner.len() - inner.trim_start().len();
        Some(first..first + inner.trim().len())
    })
}

/// Returns whether a sentence gives a text in quotes of print as the password that it names: `«…» es la contraseña`.
fn is_quoted(text: &str, name: Range<usize>, quoted: &Range<usize>) -> bool {
    let piece = |at: Range<usize>| text.get(at).unwrap_or_default();
    let marks = |it: char| it.is_whitespace() || CLOSING.contains(&it) || OPENING.contains(&it);
    let value = piece(quoted.clone());
    let has_digit = value.bytes().any(|it| it.is_ascii_digit());
    // `… asks for the passphrase, enter "…"`
    let head = piece(name.end..quoted.start.max(name.end)).trim_end_matches(marks);
    let is_bidden = words::BIDS.contains(head.rsplit(' ').next().unwrap_or_default());
    if text.as_bytes().get(quoted.end) == Some(&b'"') && !is_bidden {
        return false;
    }
    let fits = match value.contains(' ') {
        true => has_digit || is_bidden,
        false => {
            value::is_distinct(value)
                || value::may_be_secret(value, false) && !value::is_code(value)
        }
    };
    if !fits || words::names_secret(&value.to_lowercase()) {
        return false;
    }
    if quoted.end <= name.start {
        let after = piece(quoted.end..name.start).trim_start_matches(marks);
        let after = format!(" {after}");
        return is_role(&after) || is_predicate(&after, piece(name.end..text.len()));
    }
    let between = head;
    let start = name.end + between.len();
    let is_apart = between.contains(['"', '“', '”', '»', '’', '?']);
    let is_label = between.ends_with([':', '：']) && between.split(' ').count() < 4 && has_digit;
    !is_apart
        && name.end < quoted.start
        && (between.is_empty() && (has_digit || !goes_on(text, quoted.end))
            || is_linked(text, start) && is_subject(between)
            || is_changed(text, name, start, value)
            || is_only_led(between)
            || is_bidden
            || is_label)
}

/// Returns whether a word in small letters follows behind a closing quote.
fn goes_on(text: &str, at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default().trim_start_matches(CLOSING);
    rest.starts_with(':')
        || rest
            .strip_prefix(' ')
            .is_some_and(|it| it.starts_with(|it: char| it.is_ascii_lowercase()))
}

/// Finds a passphrase of several words without quotes: `the passphrase is: seven gulls over harbour`.
fn phrase(text: &str, name: Range<usize>) -> Option<Range<usize>> {
    /// Minimum words behind a verb; behind a colon one fewer is enough.
    const WORDS_MIN: usize = 4;
    let word = text.get(name.clone())?.to_lowercase();
    let rest = text.get(name.end..)?;
    if !["phras", "fras", "фраз", "フレーズ", "wachtzin"].iter().any(|it| word.contains(it))
    {
        return None;
    }
    let colon =
        rest.find([':', '：']).map(|at| at + rest[at..].chars().next().map_or(1, char::len_utf8));
    let verb = || {
        let mut ends = rest.match_indices(' ').map(|(at, _)| at);
        ends.find(|at| is_linked(rest, *at)).map(|at| at + 1)
    };
    let linked = colon.or_else(verb)?;
    let start = name.end + linked + rest.get(linked..)?.len()
        - rest
            .get(linked..)?
            .trim_start_matches([' ', '«', '„', '“', '"', '`', '*', '\u{a0}'])
            .len();
    let ends = |it: char| !it.is_alphanumeric() && !" -'’".contains(it);
    let words = text.get(start..)?.split(ends).next()?;
    let words = words.split(" - ").next()?.trim_end_matches([' ', '-', '\'']);
    let count = words.split(' ').count();
    let is_plain = |word: &str| {
        let word = word.to_lowercase();
        [&words::PLAIN, &words::GRAMMAR, &words::ABOUT, &words::LINKS, &words::LEADS]
            .iter()
            .any(|it| it.contains(word.as_str()))
    };
    let least = WORDS_MIN - usize::from(colon.is_some());
    let plain = words.split(' ').filter(|it| is_plain(it)).count();
    ((least..=12).contains(&count)
        && plain * 5 < count
        && is_subject(rest.get(..linked)?.trim_end_matches([':', '：'])))
    .then_some(start..start + words.len())
}

/// Masks the answer on the line after a question: `assistant: it's secret`.
fn replied(scan: &mut Scan<'_>, question_end: usize) {
    /// Maximum words of an answer that is only the secret and its speaker.
    const WORDS_MAX: usize = 3;
    let Some(mut line) = scan.next_line(question_end) else { return };
    if let Some(next) = scan.next_line(line) {
        line = next;
    }
    let text = scan.piece(line..scan.line_end(line, NEAR_MAX));
    let short = text.split_whitespace().count() <= WORDS_MAX;
    let question = scan.piece(scan.line_start(question_end, NEAR_MAX)..question_end).to_lowercase();
    let asks = ["what", "was ", "wie ", "quel", "cual", "cuál", "qual", "wat ", "jak", "как"];
    let is_asked = asks.iter().any(|it| question.contains(it)) && !question.contains("hash");
    let is_plain = |word: &str| short && text.ends_with(word) && value::is_plain_password(word);
    let fits = |word: &str| {
        value::is_likely(word) || is_asked && value::is_plain_key(word) || is_plain(word)
    };
    let told = pieces(text).filter(|(place, word)| fits(word) && (short || is_led(text, *place)));
    let told: Vec<Range<usize>> = told.map(|(place, word)| place..place + word.len()).collect();
    scan.add_hits(line, told);
}

/// Masks a password at the end of the line that says that it was generated, or alone on the next line after a colon or a
/// title.
fn announced(scan: &mut Scan<'_>, at: usize, is_title: bool) {
    let end = scan.line_end(at, NEAR_MAX);
    let rest = scan.piece(at..end).trim_end();
    if let Some((between, last)) = rest.rsplit_once(": ")
        && between.contains("generated")
        && value::is_generated(last)
    {
        let end = at + rest.len();
        scan.add_hit(end - last.len()..end);
    } else if rest.ends_with('?') {
        replied(scan, end);
    } else if rest.ends_with([':', '：']) || rest.is_empty() && is_title {
        answer(scan, end, value::is_answer);
    } else {
        continued(scan, at, end);
    }
}

/// Masks a password at the start of the next line, where the sentence goes on: `the new password` and `is …`.
fn continued(scan: &mut Scan<'_>, name_end: usize, line_end: usize) {
    /// Maximum words behind the name on its line, and before a verb on the next one.
    const WORDS_MAX: usize = 2;
    let rest = scan.piece(name_end..line_end);
    let Some(line) = scan.next_line(line_end) else { return };
    let line = scan.run_within(line, NEAR_MAX, is_margin);
    let text = scan.piece(line..scan.line_end(line, NEAR_MAX));
    let is_verb = |it: &str| words::VERBS.contains(it.trim_end_matches(':'));
    let verb = match rest.split_whitespace().next_back() {
        Some(last) if is_verb(last) => Some(0),
        _ => text.split_whitespace().take(WORDS_MAX).position(is_verb).map(|place| place + 1),
    };
    let goes_on = rest.split_whitespace().count() <= WORDS_MAX && !rest.contains(['.', ',', ';']);
    let Some(skipped) = verb.filter(|_| goes_on) else { return };
    let is_told = |word: &str| value::is_distinct(word) && !value::is_versioned(word);
    let word = pieces(text).nth(skipped).filter(|(_, word)| is_told(word));
    let Some((place, word)) = word else { return };
    scan.add_hit(line + place..line + place + word.len());
}

/// True for what a mail puts before the lines that it quotes.
fn is_margin(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'>')
}

/// Masks the codes after their name: on its line, or on the lines below, which hold nothing else.
pub(super) fn codes(scan: &mut Scan<'_>, at: Range<usize>) {
    /// Maximum lines of a list.
    const LINES_MAX: usize = 32;
    let name_end = scan.run_within(at.end, NEAR_MAX, |byte| byte.is_ascii_alphabetic());
    let mut line = scan.run(scan.gap(name_end), |byte| b":=\"'[(".contains(&byte));
    for place in 0..LINES_MAX {
        let end = scan.line_end(line, COMMAND_MAX);
        let text = scan.piece(line..end);
        let found: Vec<Range<usize>> = code_ranges(text, 0 < place).collect();
        // Only the line of the name holds other words.
        let is_over = found.is_empty() && !text.trim_matches([' ', '>', '*', '"', '[']).is_empty();
        if 0 < place && is_over {
            return;
        }
        scan.add_hits(line, found);
        let Some(next) = scan.next_line(end) else { return };
        line = next;
    }
}

/// Finds the codes of a line: those at its start or, if it is `whole`, all if it holds nothing else.
fn code_ranges(line: &str, whole: bool) -> impl Iterator<Item = Range<usize>> {
    let parts = |it: char| it.is_whitespace() || ",;\"'`[](){}*>|\\•、，".contains(it);
    let mut end = 0;
    let words = line.split_inclusive(parts).filter_map(move |piece| {
        let start = end;
        end += piece.len();
        let word = piece.trim_end_matches(parts);
        // `- `, `3. `
        let is_item = word.trim_end_matches(['.', ')', ':']).len() < 3 && word.len() < 4;
        (!is_item).then_some(start..start + word.len())
    });
    let words: Vec<Range<usize>> = words.collect();
    let digits = words.iter().all(|it| value::is_code_group(&line[it.clone()])) && 1 < words.len();
    let fits =
        move |it: &Range<usize>| whole && digits || value::is_recovery_code(&line[it.clone()]);
    // `… recovery codes instead. k7wq-m2dx-9hfz`
    let words: Vec<Range<usize>> =
        match words.iter().position(|it| value::is_grouped_code(&line[it.clone()])) {
            Some(first) if !whole => words.into_iter().skip(first).collect(),
            Some(_) | None => words,
        };
    let count = words.iter().take_while(|it| fits(it)).count();
    let count = if whole && count < words.len() { 0 } else { count };
    words.into_iter().take(count)
}

/// Masks the key of a wireless network: `wifi is home and the key is …`.
pub(super) fn network(scan: &mut Scan<'_>, at: Range<usize>) {
    let from = scan.line_start(at.start, NEAR_MAX);
    let end = scan.line_end(at.end, NEAR_MAX);
    let is_ssid = scan.piece(at.clone()).eq_ignore_ascii_case("ssid");
    let below = scan.next_line(end).filter(|_| is_ssid);
    let end = below.map_or(end, |line| scan.line_end(line, NEAR_MAX));
    let text = scan.piece(from..scan.run_within(end, NEAR_MAX, |byte| byte.is_ascii_digit()));
    let lower = text.to_lowercase();
    let names_key = |text: &str| words::NETWORK_KEYS.iter().any(|key| text.contains(key));
    let begins = !scan.byte(at.start).is_ascii_alphabetic() || scan.word_starts(at.start);
    if !begins || !names_key(&lower) {
        return;
    }
    let told = pieces(text).filter(|(place, word)| {
        let is_key = value::is_likely(word) || value::is_plain_key(word);
        let last = text.get(..*place).unwrap_or_default().trim_end().rsplit(' ').next();
        let last = last.unwrap_or_default().to_lowercase();
        let is_named = names_key(&last) || names_key(scan.piece(at.clone()));
        at.end - from <= *place
            && (is_key && (is_linked(text, *place) || is_named)
                || value::is_long_number(word)
                    && (is_linked(text, *place) || is_named || last.starts_with("вай")))
    });
    let told: Vec<Range<usize>> = told.map(|(place, word)| place..place + word.len()).collect();
    scan.add_hits(from, told);
}

/// Masks what a command printed on the line after it: `gh auth token`; or the client of a mail server, in base64.
pub(super) fn printed(scan: &mut Scan<'_>, at: Range<usize>) {
    let is_mail = scan.piece(at.clone()).starts_with("334");
    let is_base64 = |word: &str| word.bytes().all(shape::is_base64);
    let fits = if is_mail { is_base64 } else { value::is_printed };
    answer(scan, scan.line_end(at.end, COMMAND_MAX), fits);
}

/// Masks what a command at a prompt printed that reads a name at the end of its line:
/// `$ cat password.txt`.
pub(super) fn shown(scan: &mut Scan<'_>, name: Range<usize>) {
    /// Maximum bytes after the name.
    const TAIL_MAX: usize = 32;
    let ends = |byte: u8| byte == b'\n' || byte == b'\\';
    let end = scan.run_within(name.end, TAIL_MAX, |byte| !ends(byte));
    if !ends(scan.byte(end)) {
        return;
    }
    let line = scan.piece(scan.line_start(name.start, COMMAND_MAX)..name.start).trim_start();
    let command = line.strip_prefix(['$', '#', '%', '❯', '>']).unwrap_or_default();
    let reads = command.split_whitespace().next().is_some_and(|it| words::READERS.contains(it));
    if reads && words::kind(scan.piece(name)).is_some() {
        answer(scan, end, value::is_answer);
    }
}

/// Masks the next line that is not blank, if it is a single word that looks like a secret.
fn answer(scan: &mut Scan<'_>, mut line_end: usize, fits: fn(&str) -> bool) {
    /// Maximum lines, of which all but the last are blank.
    const LINES_MAX: usize = 3;
    for _ in 0..LINES_MAX {
        let Some(line) = scan.next_line(line_end) else { return };
        let margin = scan.run_within(scan.gap(line), NEAR_MAX, is_margin);
        let client = ["-> ", "C: "].iter().find(|it| scan.from(margin).starts_with(**it));
        let start = scan.quote_or(scan.gap(margin + client.map_or(0, |it| it.len()))).1;
        let ends = |byte: u8| byte.is_ascii_whitespace() || b"\"'`\\<\x1b".contains(&byte);
        let end = scan.run_within(start, COMMAND_MAX, |byte| !ends(byte));
        let closed = scan.gap(scan.quote_or(end).1);
        let alone = matches!(scan.byte(closed), 0 | b'\n' | b'\r' | b'\\' | b',' | b'}' | b']');
        if start < end {
            if alone && fits(scan.piece(start..end)) {
                scan.add_hit(start..end);
            }
            return;
        }
        line_end = end;
    }
}

/// Masks the words of a wallet: twelve or more in a row, of three to eight letters each, on the line of its name or the
/// next one.
pub(super) fn seed(scan: &mut Scan<'_>, at: Range<usize>) {
    const WORDS_MIN: usize = 12;
    /// One in so many may be a word that is frequent in sentences.
    const PLAIN_SHARE: usize = 6;
    let mut start = at.end;
    let line_end = scan.line_end(at.end, COMMAND_MAX);
    let next = scan.next_line(line_end).map_or(line_end, |line| scan.line_end(line, COMMAND_MAX));
    let text = scan.piece(at.end..next);
    let ends = |letter: char| !letter.is_ascii_lowercase() && letter != ' ';
    for run in text.split_inclusive(ends) {
        let phrase = run.trim_end_matches(|letter| ends(letter) || letter == ' ');
        let end = start + phrase.len();
        let words = phrase.rsplit(' ').take_while(|word| (3..=8).contains(&word.len()));
        let words: Vec<&str> = words.collect();
        let is_plain =
            |word: &&&str| words::PLAIN.contains(**word) || words::GRAMMAR.contains(**word);
        let plain = words.iter().filter(is_plain).count();
        if WORDS_MIN <= words.len() && plain * PLAIN_SHARE <= words.len() {
            let length: usize = words.iter().map(|word| word.len() + 1).sum();
            return scan.add_hit(end + 1 - length..end);
        }
        start += run.len();
    }
}

/// Groups of four in base32, as an application for one-time codes is set up with.
static GROUPS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let groups = |letter: &str| format!("(?:{letter}{{4}}[ -]){{3,}}{letter}{{1,4}}(?-u:\\b)");
    Regex::new(&format!("{}|{}", groups("[a-z2-7]"), groups("[A-Z2-7]"))).ok()
});

/// Masks such groups on the line of their name.
pub(super) fn setup_key(scan: &mut Scan<'_>, at: Range<usize>) {
    const DIGITS_MIN: usize = 2;
    let line = scan.piece(at.end..scan.line_end(at.end, NEAR_MAX));
    let found = GROUPS.as_ref().and_then(|it| it.find(line));
    let is_key = |key: &str| DIGITS_MIN <= value::count(key, u8::is_ascii_digit);
    if let Some(key) = found.filter(|it| is_key(it.as_str())) {
        scan.add_hit(at.end + key.start()..at.end + key.end());
    }
}

/// Words of ASCII letters and marks, with their positions.
fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let parts = |letter: char| !letter.is_ascii_graphic() || "\"'`,;<>".contains(letter);
    let mut end = 0;
    text.split_inclusive(parts).filter_map(move |piece| {
        end += piece.len();
        let word = piece.trim_end_matches(parts).trim_start_matches(AROUND);
        let start = end - piece.len() + piece.trim_end_matches(parts).len() - word.len();
        Some((start, word.trim_end_matches(AROUND))).filter(|(_, word)| !word.is_empty())
    })
}

/// Returns whether `is` or a colon precedes the word at `place`.
pub(super) fn is_linked(text: &str, place: usize) -> bool {
    let quotes =
        |letter: char| letter.is_whitespace() || "*[".contains(letter) || OPENING.contains(&letter);
    let before = text.get(..place).unwrap_or_default().trim_end_matches(quotes);
    let word = before.split_whitespace().next_back().unwrap_or_default().to_lowercase();
    before.ends_with([
        ':', '：', '—', '–', '→', '＝', '是', 'は', '为', '為', '成', '了', '는', '은', '를', 'を',
    ]) || words::VERBS.contains(word.as_str())
}

/// Returns whether a verb, and only words such as `still`, stand between a name and its value.
fn is_only_led(between: &str) -> bool {
    let is_verb = |word: &str| words::VERBS.contains(word);
    between.split_whitespace().any(is_verb)
        && between.split_whitespace().all(|it| is_verb(it) || words::LEADS.contains(it))
}

/// Returns whether the words before a name introduce its value: `with password …`, `user bob and
/// password …`.
pub(super) fn is_given(before: &str) -> bool {
    let mut last = before.split_whitespace().rev();
    let article = |word: &&str| ["the", "dem", "le", "la", "a", "o"].contains(word);
    last.find(|word| !article(word)).is_some_and(|word| GIVEN.contains(&word))
}

/// Returns whether the words after a value say what it is for: `… as the password`.
pub(super) fn is_role(after: &str) -> bool {
    /// Maximum words up to the name.
    const WORDS_MAX: usize = 7;
    let roles = ["as", "als", "comme", "como", "come", "when", "wenn", "quand", "cuando"];
    let mut words = after.split_whitespace();
    after.starts_with([' ', '`', '"', '\''])
        && words
            .find(|it| it.starts_with(char::is_alphabetic))
            .is_some_and(|it| roles.contains(&it))
        && words.count() < WORDS_MAX
}

/// Returns whether the words after a value say that it is what the name says: `… is the root password on that box`.
pub(super) fn is_predicate(after: &str, behind: &str) -> bool {
    /// Maximum words between the article and the name.
    const WORDS_MAX: usize = 3;
    let mut words =
        after.trim_start_matches(['!', '`', '"', '\'', ',']).split_whitespace().peekable();
    // `…, that was the password`
    words.next_if(|it| ["that", "das", "it", "this"].contains(it));
    let is_verb = words.next().is_some_and(|it| {
        words::VERBS.contains(it) || ["that's", "it's", "—", "–", "to"].contains(&it)
    });
    is_verb
        && words.next().is_some_and(|it| words::ARTICLES.contains(it))
        && words.count() <= WORDS_MAX
        && ends_noun(behind)
}

/// Returns whether a name is no part of a longer noun, as in `the password field`.
fn ends_noun(behind: &str) -> bool {
    let ends = [
        "on", "for", "of", "in", "at", "di", "do", "für", "fürs", "zum", "vom", "von", "du", "de",
        "del", "pour", "per",
    ];
    let next = behind.split_whitespace().next().unwrap_or_default();
    !behind.starts_with(' ') || next.is_empty() || ends.contains(&next)
}

/// Returns whether a comment at the end of the line says what the string before it is: `"…"); // signing key`.
fn is_noted(after: &str) -> bool {
    /// Maximum words before the name.
    const WORDS_MAX: usize = 3;
    let note = after.trim_start_matches(['"', '\'', ')', ']', '}', ';', ',', ' ']);
    let words = ["//", "#", "--", "/*"].iter().find_map(|mark| note.strip_prefix(mark));
    after.starts_with(['"', '\''])
        && words.is_some_and(|it| {
            it.split_whitespace().count() <= WORDS_MAX
                && !["not ", "no "].iter().any(|no| it.contains(no))
        })
}

/// Returns whether a sentence says that the word at `place` became the value of a name: `changed the password to …`,
/// `das Kennwort auf … geändert`.
fn is_changed(text: &str, name: Range<usize>, place: usize, value: &str) -> bool {
    const NEAR_WORDS: usize = 5;
    let plain = |it: &str| it.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let changes = |it: &str| words::CHANGES.contains(plain(it).as_str());
    let between = text.get(name.end..place).unwrap_or_default();
    let before = text.get(..name.start).unwrap_or_default().split_whitespace().rev();
    let after = text.get(place + value.len()..).unwrap_or_default().split_whitespace();
    let old = between.split_whitespace().collect::<Vec<_>>();
    let old = match old.as_slice() {
        // `from changeme to`
        [from, old, _] if words::FROM.contains(from) => *old,
        _ => "",
    };
    let is_known = |it: &str| {
        if it == old || it == "from" || it == "von" {
            return true;
        }
        let word = plain(it);
        words::INTO.contains(it)
            || changes(it)
            || words::LINKS.contains(word.as_str())
            || words::LEADS.contains(word.as_str())
    };
    let is_shaped = !between.ends_with(" in ")
        && is_subject(between)
        && (value::is_marked(value) || value::is_plain_key(value));
    between
        .split_whitespace()
        .next_back()
        .is_some_and(|it| words::INTO.contains(plain(it).as_str()))
        && (is_shaped || between.split_whitespace().all(is_known))
        && before
            .take(NEAR_WORDS)
            .chain(between.split_whitespace())
            .chain(after.take(2))
            .any(changes)
}

/// Returns whether the words between a name and a verb or a colon leave it the subject: `for the
/// wiki is`, but not `hasher is`.
fn is_subject(between: &str) -> bool {
    let first = between.split_whitespace().next().unwrap_or_default().to_lowercase();
    let first = first.trim_matches(|letter: char| !letter.is_alphanumeric());
    // `dell'utente`
    let elided = || first.find('\'').is_some_and(|at| words::LINKS.contains(&first[..=at]));
    first.is_empty() || words::LINKS.contains(first) || words::VERBS.contains(first) || elided()
}

/// Returns whether a word such as `is`, `to` or `now`, or a mark, precedes the word at `place`.
fn is_led(text: &str, place: usize) -> bool {
    let before = text.get(..place).unwrap_or_default();
    let tag = before.rfind('<').filter(|_| before.ends_with('>'));
    let before = before.trim_end_matches([' ', '\'', '"', '`']);
    let word = before.split_whitespace().next_back().unwrap_or_default().to_lowercase();
    is_linked(text, tag.unwrap_or(place))
        || matches!(word.as_str(), "=" | "-" | "→" | "->" | "=>")
        || word.ends_with('?')
        || words::LEADS.contains(word.as_str())
}

/// True for a long word of upper-case letters, lower-case letters and digits, or of hexadecimal digits.
fn is_told_token(word: &str) -> bool {
    let mixed = value::has_each(word, 3);
    let is_key = TOKEN_MIN <= word.len()
        && !value::is_identifier(word)
        && (mixed || value::is_mixed(word, usize::MAX))
        && value::is_of(word, b"_-+/=");
    is_key || value::is_hex_key(word)
}
