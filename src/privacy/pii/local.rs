//! Personal data that needs more than digits: numbers in national forms after a word such as
//! `Handy`, street addresses with a postcode, coordinates after a word such as `near`, e-mail
//! addresses with words for their marks, and MAC addresses. The words are in `words.txt`.

use crate::privacy::letter::{Cursor, Span, is_digit, is_word};
use crate::privacy::secret::table_section;
use regex::Regex;
use std::collections::HashSet;
use std::sync::LazyLock;

/// Words of a section as alternatives of a pattern.
fn any(section: &str) -> String {
    let lines = table_section(include_str!("words.txt"), section);
    let words: Vec<&str> = lines.into_iter().flat_map(str::split_whitespace).collect();
    format!("(?:{})", words.join("|"))
}

static PHONE_CUE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!(r"(?i)(?-u:\b){}(?-u:\b)", any("phones"))).ok());
/// A word and a colon or a verb, after which any number is one of a phone.
static PHONE_NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let verb = r"(?:[ \u{a0}]*:| is| ist| est| es)";
    Regex::new(&format!(r"(?i)(?-u:\b){}{verb} *\z", any("phones"))).ok()
});
static ID_CUE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let mark = r"[\s:.#°=]*";
    Regex::new(&format!(
        r"(?i)(?-u:\b){}{mark}(?:{}{mark})*[A-Z]{{0,2}}\z",
        any("ids"),
        any("links")
    ))
    .ok()
});

/// Maximum bytes between a word and the number that it introduces.
const CUE_BYTES_MAX: usize = 48;

/// Returns whether a phone or identity number may start with these digits.
pub(super) fn may_start_number(bytes: &[u8], run: &Span) -> bool {
    let at = |place: Option<usize>| place.and_then(|at| bytes.get(at)).copied().unwrap_or(0);
    let goes_on = b" .-/)".contains(&at(Some(run.end)));
    if at(Some(run.start)) == b'0' {
        return goes_on && 1 < run.len() || 9 < run.len();
    }
    let before = |back: usize| at(run.start.checked_sub(back));
    let letter =
        |byte: u8| byte.is_ascii_alphabetic() || b".:#".contains(&byte) || !byte.is_ascii();
    (6 < run.len() || goes_on && at(Some(run.end + 1)).is_ascii_digit())
        && (before(1) == b' ' && letter(before(2)) || before(1).is_ascii_uppercase())
}

/// Digits with marks between; a phone number without a country code; one that needs no word before
/// it, such as `020 7946 0958` and `0171 / 3948 572`; and a date.
static FORMS: LazyLock<Option<[Regex; 4]>> = LazyLock::new(|| {
    let forms = [
        r"\A[0-9]+(?:[ .)/-]{1,3}[0-9]+){0,6}",
        r"\A00?[1-9][0-9]*(?:[ .)/-]{1,3}[0-9]{2,})*\z",
        concat!(
            r"\A0[1-9](?:[0-9] [0-9]{4} [0-9]{4}|[0-9]{2} [0-9]{3} [0-9]{4}|[0-9]{3} [0-9]{3} [0-9]{3}",
            r"|[0-9]+ / [0-9]{3,5} [0-9]{2,4})\z"
        ),
        r"\A(?:[0-9]{2}.[0-9]{2}.[0-9]{4}|[0-9]{4}-[0-9]{2}-[0-9]{2})",
    ];
    let forms: Vec<Regex> = forms.iter().filter_map(|form| Regex::new(form).ok()).collect();
    forms.try_into().ok()
});

/// Numbers in national forms.
pub(super) struct NationalNumbers {
    pub(super) phones: Vec<Span>,
    /// Numbers that identify a person.
    pub(super) ids: Vec<Span>,
}

/// Finds phone numbers without a country code, and numbers that identify a person.
pub(super) fn numbers(text: &str, starts: &[Span]) -> NationalNumbers {
    let mut found = NationalNumbers { phones: Vec::new(), ids: Vec::new() };
    let mut passed_to = 0;
    for run in starts {
        let Some([number, phone, unmistakable, date]) = FORMS.as_ref() else { break };
        let (head, tail) = text.split_at(run.start);
        let number = number.find(tail).map_or("", |it| it.as_str());
        let digits = number.bytes().filter(u8::is_ascii_digit).count();
        if run.start < passed_to
            || !(7..=13).contains(&digits)
            || !is_apart(text, run.start, number.len())
        {
            continue;
        }
        let near = head.get(head.floor_char_boundary(head.len().saturating_sub(CUE_BYTES_MAX))..);
        let near = near.and_then(|near| near.rsplit('\n').next());
        let told = |cue: &Option<Regex>| {
            cue.as_ref().zip(near).is_some_and(|(it, near)| it.is_match(near))
        };
        let end = run.start + number.len();
        // A Turkish mobile number has a kind of its own.
        let is_told =
            9 <= digits && !date.is_match(number) && !(digits == 11 && number.starts_with("05"));
        let is_phone =
            phone.is_match(number) && (unmistakable.is_match(number) || told(&PHONE_CUE));
        if is_told && (is_phone || number.contains(' ') && told(&PHONE_NAME)) {
            let opens = number.contains(')') && head.ends_with('(');
            found.phones.push(run.start - usize::from(opens)..end);
            passed_to = end;
        } else if told(&ID_CUE) {
            let start = head.trim_end_matches(|letter: char| letter.is_ascii_uppercase()).len();
            let letter = Cursor::new(text, end).one(|it| it.is_ascii_uppercase());
            let end = letter.filter(Cursor::word_ends).map_or(end, |it| it.at);
            found.ids.push(start..end);
            passed_to = end;
        }
    }
    found
}

/// Returns whether a number is no part of a word, a time or a longer number.
fn is_apart(text: &str, start: usize, length: usize) -> bool {
    let (head, tail) = (text.get(..start), text.get(start + length..));
    let mut head = head.unwrap_or_default().chars().rev();
    let mut tail = tail.unwrap_or_default().chars();
    let part = |first: Option<char>, second: Option<char>| {
        first.is_some_and(|it| is_word(it) && !it.is_ascii_uppercase())
            || first.is_some_and(|it| ":.,-/+%".contains(it)) && second.is_some_and(is_digit)
    };
    !part(head.next(), head.next()) && !part(tail.next(), tail.next())
}

/// Words beside which a number is still masked: `tel-…`, `visa/…`.
static NUMBER_WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let edge = |side: &str| format!("(?:{side}|[^a-z])");
    let words = format!("(?:{}|{})", any("phones"), any("cards"));
    Regex::new(&format!("(?i)phone|{}{words}{}", edge(r"\A"), edge(r"\z"))).ok()
});
static FILE_ENDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lines = table_section(include_str!("words.txt"), "files");
    lines.into_iter().flat_map(str::split_whitespace).collect()
});

/// Maximum characters of an identifier on each side.
const SIDE_MAX: usize = 64;

fn glues(letter: char) -> bool {
    is_word(letter) || "._-/#".contains(letter)
}

/// Text written in one with the digits that start at `start`, and true if it starts its line.
fn glued_before(text: &str, start: usize, head: &str) -> (String, bool) {
    let before = text.get(..start).unwrap_or_default().chars().rev().chain(head.chars().rev());
    let before: Vec<char> = before.take(SIDE_MAX).collect();
    let end = before.iter().position(|it| !glues(*it)).unwrap_or(before.len());
    // The letter of `\n` is no part of it.
    let end = end.saturating_sub(usize::from(before.get(end) == Some(&'\\')));
    let (glued, above) = before.split_at(end);
    let mut above = above.iter().skip_while(|it| [' ', '\t'].contains(it));
    let starts = match above.next() {
        None | Some('\n' | '"') => true,
        Some('n') => above.next() == Some(&'\\'),
        Some(_) => false,
    };
    (glued.iter().rev().collect(), starts)
}

/// Returns whether digits stand in a line of a hex dump: `00000010: 0300 3e00 0100 0000`.
pub(super) fn is_in_dump(text: &str, number: &Span, head: &str) -> bool {
    /// Maximum bytes of an offset and sixteen bytes.
    const DUMP_MAX: usize = 80;
    /// Minimum digits of an offset.
    const OFFSET_MIN: usize = 7;
    let before = text.get(..number.start).unwrap_or_default();
    let head = head.get(head.floor_char_boundary(head.len().saturating_sub(DUMP_MAX))..);
    let line = format!("{}{before}", head.unwrap_or_default());
    let line = line.rsplit(['\n', '"']).next().unwrap_or_default();
    let line = line.rsplit("\\n").next().unwrap_or_default();
    let is_hex = |word: &str| word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut words = line.split_whitespace();
    let offset = words.next().unwrap_or_default().trim_end_matches(':');
    OFFSET_MIN <= offset.len()
        && offset.starts_with('0')
        && is_hex(offset)
        && words.all(|it| [2, 4, 8].contains(&it.len()) && is_hex(it))
}

/// Returns whether digits follow `0.`, so that even the check digit of a card says nothing.
pub(super) fn is_fraction(text: &str, number: &Span, head: &str) -> bool {
    glued_before(text, number.start, head).0.trim_start_matches('-') == "0."
}

/// Returns whether ungrouped digits are a decimal fraction, or part of an identifier, a version or a path: `0.0123456789`,
/// `run-1767707352.log`. `head` and `tail` are the text around `text`.
pub(super) fn is_part(text: &str, number: &Span, head: &str, tail: &str) -> bool {
    /// Length of a group of digits before the number: a year, a date.
    const GROUP: std::ops::RangeInclusive<usize> = 4..=8;
    /// Digits of a number without groups: at least so many, and a phone number has no more.
    const UNGROUPED: usize = 10;
    /// Maximum digits of the number of a list's item.
    const ITEM_MAX: usize = 2;
    let digits = text.get(number.clone()).unwrap_or_default();
    let ungrouped = digits.rsplit(|it| !is_digit(it)).next().unwrap_or_default();
    if digits.starts_with('+') || ungrouped.chars().count() < UNGROUPED {
        return false;
    }
    let (before, starts_line) = glued_before(text, number.end - ungrouped.len(), head);
    let after = text.get(number.end..).unwrap_or_default().chars().chain(tail.chars());
    let after: String = after.take(SIDE_MAX).take_while(|it| glues(*it)).collect();
    let whole = before.strip_suffix('.').unwrap_or_default();
    let is_item = starts_line
        && whole.len() <= ITEM_MAX
        && !whole.starts_with('0')
        && whole.chars().all(is_digit);
    let whole = whole.chars().rev().take_while(|it| is_digit(*it)).count();
    let fraction = after.strip_prefix('.').unwrap_or_default();
    let fraction = fraction.chars().take_while(|it| is_digit(*it)).count();
    let is_decimal =
        ![0, UNGROUPED].contains(&whole) && !is_item || ![0, UNGROUPED].contains(&fraction);
    // A person's name or a sentence may go on without a blank: `Bob/5551234567`, `5551234567.thanks`.
    let parts = |side: &str| -> Vec<String> {
        let parts = side.split(|it| "._-/#".contains(it)).filter(|it| !it.is_empty());
        parts.map(str::to_owned).collect()
    };
    let is_name = |parts: &[String], nearest: Option<&String>| {
        let is_word = |it: &String| it.chars().all(char::is_alphabetic);
        parts.iter().any(|it| it.contains(char::is_alphabetic))
            && !nearest.is_some_and(|it| it.starts_with(char::is_uppercase))
            && !(parts.len() == 1 && parts.iter().all(is_word))
    };
    let (head_parts, tail_parts) = (parts(&before), parts(&after));
    let is_file = after.starts_with('.')
        && matches!(tail_parts.as_slice(), [end] if FILE_ENDS.contains(end.as_str()));
    // `anna.mueller/5551234567`
    let is_person = matches!(head_parts.as_slice(), [first, last]
        if [first, last].iter().all(|it| it.chars().all(char::is_alphabetic))
            && before.contains(&format!("{first}.{last}")));
    let named = is_file
        || !is_person && is_name(&head_parts, head_parts.last())
        || is_name(&tail_parts, tail_parts.first());
    let groups: Vec<&str> = before.split(|it| !is_digit(it)).filter(|it| !it.is_empty()).collect();
    let is_group = |it: &str| {
        let fits = 1 < groups.len() && it.len() <= *GROUP.end() || GROUP.contains(&it.len());
        fits && !it.starts_with("00")
    };
    let dated = !before.contains('/') && groups.last().is_some_and(|it| is_group(it));
    let word = |text: &str| NUMBER_WORDS.as_ref().is_some_and(|it| it.is_match(text));
    let beside = before.trim_end_matches('#').rsplit('#').next().unwrap_or_default();
    is_decimal || (named || dated) && !word(beside) && !word(&after)
}

/// Returns whether these digits may be a postcode, or the end of a British one.
pub(super) fn may_be_postcode(bytes: &[u8], run: &Span) -> bool {
    let at = |place: Option<usize>| place.and_then(|at| bytes.get(at)).copied().unwrap_or(0);
    let before = |back: usize| at(run.start.checked_sub(back));
    let after = |count: usize| at(Some(run.end + count));
    let capital = |byte: u8| byte.is_ascii_uppercase() || !byte.is_ascii();
    match run.len() {
        1 => after(0).is_ascii_uppercase() && after(1).is_ascii_uppercase() && before(1) == b' ',
        4 | 5 if after(0) == b' ' && capital(after(1)) => {
            b"\n-".contains(&before(1)) || before(1) == b' ' && b",\n".contains(&before(2))
        }
        5 => before(1) == b' ' && before(2).is_ascii_uppercase() && before(3).is_ascii_uppercase(),
        _ => false,
    }
}

static ADDRESS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    // Latin letters only: all of Unicode would make the automaton large and slow.
    let word = r"[A-Za-zÀ-ɏ.'’-]+";
    let name = r"[A-ZÀ-ÞĀ-ɏ][A-Za-zÀ-ɏ.'’-]*";
    let number = r"[0-9]{1,4}(?: ?[a-zA-Z](?-u:\b))?(?: ?[/–-] ?[0-9]{1,4}[a-z]?)?";
    let forms = [
        format!(r"[0-9]{{1,5}}[a-zA-Z]? (?:{name} ){{1,3}}{}", any("streets")),
        format!(r"{number}(?:,? (?:bis|ter))?,? (?i:{})(?: {word}){{1,6}}", any("streets-french")),
        format!(r"(?:{name}[ -]){{0,3}}[A-ZÀ-Þ][A-Za-zÀ-ɏ-]+{} {number}", any("streets-joined")),
        format!(r"(?:{name} )?{name} (?:Straße|Strasse|Str\.|Allee|Weg|Platz) {number}"),
        format!(r"{} {name} {number}", any("streets-at")),
        format!(r"{}(?: {word}){{1,5}},? (?:n[º°.] ?)?{number}", any("streets-first")),
    ];
    let extra = r"(?:, [A-Za-z0-9.#º° /-]{1,16})?";
    let places = [
        format!(r"(?:[A-Z]{{1,2}}-)?[0-9]{{4,5}}(?: [A-Z]{{2}})? {name}"),
        format!(r"(?:{word},? ){{0,3}}[A-Z]{{1,2}}[0-9][A-Z[0-9]]? [0-9][A-Z]{{2}}(?-u:\b)"),
        format!(r"{name}(?: {name}){{0,2}},? [A-Z]{{2}},? [0-9]{{5}}(?-u:\b)"),
    ];
    Regex::new(&format!(r"(?:{}){extra},?[ \n]+(?:{})", forms.join("|"), places.join("|"))).ok()
});

/// Finds street addresses with a postcode.
pub(super) fn addresses(text: &str, postcodes: &[Span]) -> Vec<Span> {
    /// Maximum bytes before and after the postcode.
    const NEAR_MAX: usize = 128;
    let mut found: Vec<Span> = Vec::new();
    for run in postcodes {
        let passed_to = found.last().map_or(0, |last| last.end);
        if run.start < passed_to {
            continue;
        }
        let start = text.floor_char_boundary(run.start.saturating_sub(NEAR_MAX)).max(passed_to);
        let end = text.floor_char_boundary(text.len().min(run.end + NEAR_MAX));
        let near = text.get(start..end).unwrap_or_default();
        // A house number precedes.
        let head = near.as_bytes().get(..run.start - start).unwrap_or_default();
        if !head.iter().any(u8::is_ascii_digit) {
            continue;
        }
        let hits = ADDRESS.as_ref().into_iter().flat_map(|it| it.find_iter(near));
        let here = |hit: &Span| hit.contains(&run.start);
        found.extend(hits.map(|hit| start + hit.start()..start + hit.end()).find(here));
    }
    found
}

/// Returns whether these digits may be the decimals of a latitude or longitude.
pub(super) fn may_be_decimals(bytes: &[u8], run: &Span) -> bool {
    let before = |back: usize| run.start.checked_sub(back).and_then(|at| bytes.get(at));
    (4..=15).contains(&run.len())
        && before(1) == Some(&b'.')
        && before(2).is_some_and(u8::is_ascii_digit)
}

/// Coordinates, and the word or mark before them.
static COORDINATES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let latitude = r"-?(?:[1-8][0-9]|[1-9])\.[0-9]";
    let longitude = r"-?1?[0-9]{1,2}\.[0-9]{1,15}";
    let side = r"(?:°? ?[NSEWO](?-u:\b)|°)";
    let name = r#"(?:"?(?:gps[ _]?)?(?:lon|lng|long|longitude)"?[ :=]{1,3}"?)?"#;
    let separator = r#""?(?:[,;] ?|[ +])"#;
    // With a side, a few decimals are enough.
    let first = format!("{latitude}{{5,15}}{separator}|{latitude}{{4,15}}{side}(?:{separator}| ?)");
    let cue = format!(r#"(?:(?-u:\b){}["\s:=(\[]{{1,4}}|/@|[?&](?:q|ll|center)=)"#, any("places"));
    let end = r"(?:[^0-9.]|\.[^0-9]|\.?\z)";
    Regex::new(&format!("(?i){cue}((?:{first}){name}{longitude}{side}?){end}")).ok()
});

/// Finds a latitude with its longitude. `decimals` are the digits after a point.
pub(super) fn coordinates(text: &str, decimals: &[Span]) -> Vec<Span> {
    let mut found: Vec<Span> = Vec::new();
    for run in decimals {
        let passed_to = found.last().map_or(0, |last| last.end);
        let start = text.floor_char_boundary(run.start.saturating_sub(CUE_BYTES_MAX));
        let start = start.max(passed_to);
        let end = text.floor_char_boundary(text.len().min(run.end + CUE_BYTES_MAX));
        let near = text.get(start..end).unwrap_or_default();
        let hits = COORDINATES.as_ref().into_iter().flat_map(|it| it.captures_iter(near));
        let spans = hits.filter_map(|it| it.get(1)).map(|it| start + it.start()..start + it.end());
        found.extend(spans.filter(|at| at.contains(&run.start)));
    }
    found
}

/// A word for `@` between brackets.
const SPELT_AT: &str = "(?:at|ät|arroba|chez)";
static SPELT_MARK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!(r"(?i)[\[({{]{SPELT_AT}[\])}}]")).ok());
static SPELT_EMAIL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let name = "[A-Za-z0-9_%+-]+";
    let spelt = r" ?[\[({<](?:dot|punkt|point|punto)[\])}>] ?";
    let names = format!(r"{name}(?:(?:\.|{spelt}){name})*");
    let tight =
        format!(r"(?: ?[\[{{]{SPELT_AT}[\]}}] ?|\({SPELT_AT}\)){names}(?:\.|{spelt})[a-z]{{2,}}");
    // `if (at) this.run()` is code.
    let apart = format!(
        r" \({SPELT_AT}\) {names}(?:{spelt}[a-z]{{2,}}|\.(?:com|org|net|de|edu|io)(?-u:\b))"
    );
    Regex::new(&format!("(?i){names}(?:{tight}|{apart})")).ok()
});

/// Finds e-mail addresses with words for their marks: `ann [at] mail [dot] example [dot] org`.
pub(super) fn spelt_emails(text: &str) -> Vec<Span> {
    /// Maximum bytes before and after a mark.
    const NEAR_MAX: usize = 96;
    let mut found: Vec<Span> = Vec::new();
    for mark in SPELT_MARK.as_ref().into_iter().flat_map(|it| it.find_iter(text)) {
        let passed_to = found.last().map_or(0, |last| last.end);
        let start = text.floor_char_boundary(mark.start().saturating_sub(NEAR_MAX)).max(passed_to);
        let end = text.floor_char_boundary(text.len().min(mark.end() + NEAR_MAX));
        let near = text.get(start..end).unwrap_or_default();
        let hits = SPELT_EMAIL.as_ref().into_iter().flat_map(|it| it.find_iter(near));
        let spans = hits.map(|hit| start + hit.start()..start + hit.end());
        found.extend(spans.filter(|at| at.contains(&mark.start())));
    }
    found
}

/// Finds MAC addresses: six pairs or three fours of hexadecimal digits, not all the same.
pub(super) fn macs(text: &str) -> Vec<Span> {
    const DIGITS: usize = 12;
    let bytes = text.as_bytes();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b":-_".contains(byte);
    let fits = |mark: usize| {
        let sign = *bytes.get(mark)?;
        let width = if sign == b'.' { 4 } else { 2 };
        let start = mark.checked_sub(width)?;
        let end = start + DIGITS + DIGITS / width - 1;
        let mut groups = bytes.get(start..end)?.split(|byte| *byte == sign);
        let is_hex = |it: &[u8]| it.len() == width && it.iter().all(u8::is_ascii_hexdigit);
        let first = groups.next()?;
        let rest: Vec<&[u8]> = groups.collect();
        let whole = rest.len() + 1 == DIGITS / width
            && is_hex(first)
            && rest.iter().all(|it| is_hex(it))
            && rest.iter().any(|it| *it != first);
        let letters = bytes.get(start..end)?.iter().any(u8::is_ascii_alphabetic);
        let before = start.checked_sub(1).and_then(|at| bytes.get(at)).is_some_and(is_part);
        let after = bytes.get(end).is_some_and(is_part);
        (whole && (letters || sign == b':') && !before && !after).then_some(start..end)
    };
    memchr::memchr3_iter(b':', b'-', b'.', bytes).filter_map(fits).collect()
}
