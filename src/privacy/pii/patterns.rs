//! Patterns of personal data. One pass over the digits of a text selects the patterns to try.

use super::local;
use crate::privacy::letter::{Cursor, Span, is_alnum, is_digit, is_space, is_word};

/// The shortest number, a social security number, has nine digits.
const DIGITS_MIN: usize = 9;
/// Maximum bytes between two digits of one number: two separators, each a blank of any script.
const GAP_BYTES_MAX: usize = 6;
const LANE: usize = 16;

pub(super) struct Survey {
    /// Groups of nearby digits that are long enough to be a number of some kind.
    pub(super) clusters: Vec<Span>,
    /// Digits that may be the check digits of an IBAN.
    pub(super) ibans: Vec<Span>,
    pub(super) address: bool,
    /// Digits that may begin a number in a national form.
    pub(super) numbers: Vec<Span>,
    pub(super) postcodes: Vec<Span>,
    /// Digits that may be the decimals of a coordinate.
    pub(super) decimals: Vec<Span>,
    pub(super) digits: Digits,
}

/// Digits that occur in a text. Masking adds none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Digits {
    /// Only `0` to `9`.
    Ascii,
    /// Digits of other scripts too.
    AnyScript,
}

pub(super) fn survey(text: &str) -> Survey {
    let digits = if has_digits_of_other_scripts(text) { Digits::AnyScript } else { Digits::Ascii };
    let bytes = text.as_bytes();
    let mut survey = Survey {
        clusters: Vec::new(),
        ibans: Vec::new(),
        address: false,
        numbers: Vec::new(),
        postcodes: Vec::new(),
        decimals: Vec::new(),
        digits,
    };
    let mut open = (0..0, 0);
    for run in std::iter::successors(ascii_run(text, 0), |run| ascii_run(text, run.end)) {
        survey.ibans.extend(Some(&run).filter(|it| may_start_iban(bytes, it)).cloned());
        let is_apart = bytes.get(run.end).is_some_and(|byte| !byte.is_ascii_graphic());
        survey.address = survey.address || is_apart && street(text, &run).is_some();
        survey.numbers.extend(Some(&run).filter(|it| local::may_start_number(bytes, it)).cloned());
        survey.postcodes.extend(Some(&run).filter(|it| local::may_be_postcode(bytes, it)).cloned());
        survey.decimals.extend(Some(&run).filter(|it| local::may_be_decimals(bytes, it)).cloned());
        let (cluster, digits) = &mut open;
        let gap = bytes.get(cluster.end..run.start).unwrap_or_default();
        let near = gap.len() <= GAP_BYTES_MAX && gap.iter().all(|byte| may_separate(*byte));
        if 0 < *digits && near {
            cluster.end = run.end;
            *digits += run.len();
            continue;
        }
        let (done, digits) = std::mem::replace(&mut open, (run.clone(), run.len()));
        survey.clusters.extend(finished(bytes, done, digits));
    }
    survey.clusters.extend(finished(bytes, open.0, open.1));
    if digits == Digits::AnyScript {
        survey.clusters = std::iter::once(0..text.len()).collect();
        survey.ibans = digit_runs(text, digits).collect();
        survey.address = true;
    }
    survey
}

fn finished(bytes: &[u8], cluster: Span, digits: usize) -> Option<Span> {
    let opener =
        cluster.start.checked_sub(1).filter(|at| matches!(bytes.get(*at), Some(b'+' | b'(')));
    let cluster = opener.unwrap_or(cluster.start)..cluster.end;
    let enough = DIGITS_MIN <= digits && is_grouped(bytes.get(cluster.clone()).unwrap_or_default());
    enough.then_some(cluster)
}

/// Returns whether the groups may form a number: each kind has a group of three or at least five,
/// or two adjacent ones of four; dates and times do not. After a `+`, any groups may.
fn is_grouped(cluster: &[u8]) -> bool {
    if cluster.contains(&b'+') {
        return true;
    }
    let groups = cluster.split(|byte| !byte.is_ascii_digit()).map(<[u8]>::len);
    let mut before = 0;
    groups.filter(|length| 0 < *length).any(|length| {
        let twice = before == 4 && length == 4;
        before = length;
        twice || length == 3 || 5 <= length
    })
}

fn may_separate(byte: u8) -> bool {
    let blank = byte.is_ascii_whitespace() || matches!(byte, 0x0b | 0x1c..=0x1f);
    blank || !byte.is_ascii() || matches!(byte, b'.' | b'-' | b'(' | b')' | b'+')
}

/// Digits of other scripts start at U+0660, with these lead bytes.
fn has_digits_of_other_scripts(text: &str) -> bool {
    let leads = |byte: u8| matches!(byte, 0xd9 | 0xdb | 0xdf | 0xe0 | 0xe1 | 0xea | 0xef | 0xf0);
    if text.is_ascii() || !text.as_bytes().iter().fold(false, |any, byte| any | leads(*byte)) {
        return false;
    }
    let starts = text.bytes().enumerate().filter(|(_, byte)| leads(*byte));
    let mut letters = starts.filter_map(|(at, _)| text.get(at..)?.chars().next());
    letters.any(is_digit)
}

pub(super) fn digit_runs(text: &str, digits: Digits) -> impl Iterator<Item = Span> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let run = match digits {
            Digits::Ascii => ascii_run(text, at),
            Digits::AnyScript => any_run(text, at),
        }?;
        at = run.end;
        Some(run)
    })
}

fn ascii_run(text: &str, at: usize) -> Option<Span> {
    let bytes = text.as_bytes();
    let start = at + first_digit(bytes.get(at..)?)?;
    let rest = bytes.get(start..)?;
    let length = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    Some(start..start + length)
}

fn any_run(text: &str, at: usize) -> Option<Span> {
    let start = at + text.get(at..)?.find(is_digit)?;
    Cursor::new(text, start).run(is_digit).map(|end| start..end.at)
}

/// Position of the first digit. Skips whole lanes, since most of a text has no digits.
fn first_digit(bytes: &[u8]) -> Option<usize> {
    let mut skipped = 0;
    for lane in bytes.chunks(LANE) {
        let any = lane.iter().fold(false, |any, byte| any | byte.is_ascii_digit());
        if any {
            return lane.iter().position(u8::is_ascii_digit).map(|at| skipped + at);
        }
        skipped += lane.len();
    }
    None
}

/// Number of groups of four after the check digits.
const GROUPS_MIN: usize = 2;
const GROUPS_MAX: usize = 7;
/// Characters in an IBAN: Norway's is the shortest, the standard allows 34.
const IBAN_LENGTH_MIN: usize = 15;
const IBAN_LENGTH_MAX: usize = 34;

/// Returns whether an IBAN may start before these digits.
fn may_start_iban(bytes: &[u8], digits: &Span) -> bool {
    let capitals = digits.start.checked_sub(2).and_then(|start| bytes.get(start..digits.start));
    2 <= digits.len() && capitals.is_some_and(|both| both.iter().all(u8::is_ascii_uppercase))
}

/// Finds IBANs. A match of the wrong length is skipped whole.
pub(super) fn ibans(text: &str, starts: &[Span]) -> Vec<Span> {
    let mut found = Vec::new();
    let mut passed_to = 0;
    let bytes = text.as_bytes();
    for run in starts {
        let Some(start) = run.start.checked_sub(2) else { continue };
        let capitals = bytes.get(start..run.start).unwrap_or_default();
        if start < passed_to || !capitals.iter().all(u8::is_ascii_uppercase) {
            continue;
        }
        let Some(end) = iban(text, start) else { continue };
        passed_to = end;
        let blanks = text.get(start..end).unwrap_or_default().matches(' ').count();
        let length = text.get(start..end).unwrap_or_default().chars().count() - blanks;
        if (IBAN_LENGTH_MIN..=IBAN_LENGTH_MAX).contains(&length) {
            found.push(start..end);
        }
    }
    found
}

fn is_code(letter: char) -> bool {
    letter.is_ascii_uppercase() || letter.is_ascii_digit()
}

/// End of the IBAN at `start`: as many groups as possible, up to four more characters, then a word
/// boundary.
fn iban(text: &str, start: usize) -> Option<usize> {
    let start = Cursor::new(text, start);
    if !start.word_starts() {
        return None;
    }
    let mut groups = vec![start.exactly(2, |next| next.is_ascii_uppercase())?.digits(2)?];
    for _ in 0..GROUPS_MAX {
        let group = |cursor: &Cursor<'_>| {
            cursor.maybe(|next| next == ' ').exactly(4, is_code).map(|c| c.at)
        };
        let Some(end) = groups.last().and_then(group) else { break };
        groups.push(Cursor::new(text, end));
    }
    let whole = groups.get(GROUPS_MIN..).unwrap_or_default();
    whole.iter().rev().find_map(|group| {
        let spaced = group.maybe(|next| next == ' ');
        let rests = (1..=4).rev().filter_map(|count| spaced.exactly(count, is_code));
        rests.chain([*group]).find_map(Cursor::end).map(|end| end.at)
    })
}

/// Maximum words between the house number and the street type.
const STREET_WORDS_MAX: usize = 3;

/// Users of version control servers.
const SERVICES: [&str; 6] = ["git", "hg", "svn", "gitea", "forgejo", "gogs"];

pub(super) fn emails(text: &str) -> Vec<Span> {
    let mut found: Vec<Span> = Vec::new();
    let mut passed_to = 0;
    for at in memchr::memchr_iter(b'@', text.as_bytes()) {
        let head = text.get(passed_to..at).unwrap_or_default();
        let name = head
            .trim_end_matches(|letter| is_word(letter) || matches!(letter, '.' | '%' | '+' | '-'));
        let start = passed_to + name.len();
        if start == at {
            continue;
        }
        if let Some(end) = domain_end(text, at + 1) {
            passed_to = end;
            // `git@host:path` is the address of a repository; an escape may precede it.
            let user = text.get(start..at).unwrap_or_default();
            let user =
                user.strip_prefix(['n', 't']).filter(|_| name.ends_with('\\')).unwrap_or(user);
            let file = text.get(at + 1..end).is_some_and(is_file);
            if !file && !SERVICES.contains(&user) {
                found.push(start..end);
            }
        }
    }
    found
}

/// Returns whether a domain is the rest of a file's name: `2x.png` of `icon@2x.png`, `3.4.21.js`. Files are also named
/// after an address: `ann@example.org.json`, `bob@163.com.png`.
fn is_file(domain: &str) -> bool {
    const ENDS: [&str; 20] = [
        "png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "bmp", "ico", "icns", "tiff", "heic",
        "pdf", "js", "mjs", "css", "json", "html", "tgz", "tsx",
    ];
    let (size, end) = domain.rsplit_once('.').unwrap_or_default();
    let is_size = |part: &str| part.starts_with(is_digit);
    let size = size.strip_suffix(".min").unwrap_or(size);
    size.split('.').all(is_size) && ENDS.iter().any(|it| end.eq_ignore_ascii_case(it))
}

fn is_top_letter(letter: char) -> bool {
    is_alnum(letter) && !is_digit(letter)
}

/// End of the domain at `start`: after the last dot that at least two letters follow, then neither
/// letter nor digit.
fn domain_end(text: &str, start: usize) -> Option<usize> {
    let domain = Cursor::new(text, start).run(|next| is_word(next) || matches!(next, '.' | '-'))?;
    let name = text.get(start..domain.at)?;
    name.rmatch_indices('.').filter(|(dot, _)| 0 < *dot).find_map(|(dot, _)| {
        let top = Cursor::new(text, start + dot + 1).exactly(2, is_top_letter)?;
        let end = top.run(is_top_letter).unwrap_or(top);
        (!end.peek().is_some_and(is_alnum)).then_some(end.at)
    })
}

/// End of the street after a house number.
fn street(text: &str, number: &Span) -> Option<usize> {
    let start = number_before_blanks(text, number)?;
    long_street(start).or_else(|| short_street(start)).or_else(|| one_word_street(start))
}

/// Case-insensitive: `12 old mill road`. Dotless i, long s and the Kelvin sign fold to ASCII
/// letters.
fn long_street(start: Cursor<'_>) -> Option<usize> {
    let is_street_letter = |next: char| {
        next.is_ascii_alphabetic() || matches!(next, '\u{130}' | '\u{131}' | '\u{17f}' | '\u{212a}')
    };
    let word = |cursor: Cursor<'_>| Some(cursor.run(is_street_letter)?.blanks()?.at);
    words_then(start, word, &|cursor| {
        let kinds = ["street", "avenue", "road", "boulevard"];
        kinds.iter().find_map(|kind| in_any_case(cursor, kind)?.end().map(|end| end.at))
    })
}

fn in_any_case<'a>(cursor: Cursor<'a>, word: &str) -> Option<Cursor<'a>> {
    word.chars().try_fold(cursor, |cursor, wanted| {
        cursor
            .one(|next| next.eq_ignore_ascii_case(&wanted) || (wanted == 's' && next == '\u{17f}'))
    })
}

fn literally<'a>(cursor: Cursor<'a>, word: &str) -> Option<Cursor<'a>> {
    cursor.rest().starts_with(word).then_some(cursor.to(cursor.at + word.len()))
}

/// Capitalised: `12 Old Mill Rd.`
fn short_street(start: Cursor<'_>) -> Option<usize> {
    let word = |cursor: Cursor<'_>| {
        let first = cursor.one(|next| next.is_ascii_uppercase())?;
        Some(first.run(|next| next.is_ascii_alphabetic()).unwrap_or(first).blanks()?.at)
    };
    words_then(start, word, &|cursor| {
        let kinds = ["St", "Ave", "Rd", "Blvd"];
        let end = kinds.iter().find_map(|kind| literally(cursor, kind)?.end())?;
        Some(end.maybe(|next| next == '.').at)
    })
}

/// One word in any case, then a capitalised street type: `12 mill Rd`
fn one_word_street(start: Cursor<'_>) -> Option<usize> {
    let kind = start.run(|next| next.is_ascii_alphabetic())?.blanks()?;
    let kinds = ["Street", "St", "Avenue", "Ave", "Road", "Rd", "Boulevard", "Blvd"];
    kinds.iter().find_map(|word| literally(kind, word)?.end().map(|end| end.at))
}

/// As many words as possible, at most three, then a street type.
fn words_then(
    start: Cursor<'_>,
    word: impl Fn(Cursor<'_>) -> Option<usize>,
    kind: &dyn Fn(Cursor<'_>) -> Option<usize>,
) -> Option<usize> {
    let mut cursor = start;
    let mut end = None;
    for _ in 0..STREET_WORDS_MAX {
        let Some(at) = word(cursor) else { break };
        cursor = cursor.to(at);
        end = kind(cursor).or(end);
    }
    end
}

/// Finds every number that is followed by blanks and such a street.
pub(super) fn addresses(text: &str, digits: Digits) -> Vec<Span> {
    let mut found: Vec<Span> = Vec::new();
    let mut passed_to = 0;
    for run in digit_runs(text, digits) {
        if run.start < passed_to {
            continue;
        }
        if let Some(end) = street(text, &run) {
            passed_to = end;
            found.push(run.start..end);
        }
    }
    found
}

/// Position after the blanks that follow a whole number, if a word starts there.
fn number_before_blanks<'a>(text: &'a str, run: &Span) -> Option<Cursor<'a>> {
    let after = Cursor::new(text, run.end);
    let blanks = after.peek().filter(|next| is_space(*next)).and_then(|_| after.blanks())?;
    blanks.peek().filter(|next| next.is_alphabetic())?;
    Cursor::new(text, run.start).word_starts().then_some(blanks)
}

const ID_BYTES: usize = 36;
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// The clusters without UUIDs.
pub(super) fn outside(text: &str, clusters: Vec<Span>) -> Vec<Span> {
    let bytes = text.as_bytes();
    let mut outside = Vec::with_capacity(clusters.len());
    for cluster in clusters {
        let mut kept_to = cluster.start;
        // A UUID may start before the cluster, with letters.
        let from = cluster.start.saturating_sub(ID_BYTES);
        let near = bytes.get(from..cluster.end).unwrap_or_default();
        let mut id_end = 0;
        for dash in memchr::memchr_iter(b'-', near) {
            let Some(start) = (from + dash).checked_sub(8).filter(|start| id_end <= *start) else {
                continue;
            };
            if !is_id(text, start) {
                continue;
            }
            id_end = start + ID_BYTES;
            outside.extend(trimmed(text, kept_to..start));
            kept_to = kept_to.max(id_end);
        }
        outside.extend(trimmed(text, kept_to..cluster.end));
    }
    outside
}

/// Drops everything before the first digit or opener, so that no digit of a UUID is adjacent.
fn trimmed(text: &str, piece: Span) -> Option<Span> {
    let digits = text.get(piece.clone())?;
    let opens = |letter| is_digit(letter) || letter == '+' || letter == '(';
    let start = piece.start + digits.find(opens)?;
    Some(start..piece.end)
}

/// Returns whether a UUID starts here, with word boundaries on both sides.
fn is_id(text: &str, start: usize) -> bool {
    let end = start + ID_BYTES;
    let fits = |(at, byte): (usize, &u8)| match DASHES.contains(&at) {
        true => *byte == b'-',
        false => byte.is_ascii_hexdigit(),
    };
    let id = text.as_bytes().get(start..end);
    id.is_some_and(|id| id.iter().enumerate().all(fits))
        && Cursor::new(text, start).word_starts()
        && Cursor::new(text, end).word_ends()
}
