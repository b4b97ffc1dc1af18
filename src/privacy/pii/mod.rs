//! Personal data, by pattern: nine kinds, the longest and most specific first, so that no later
//! kind matches part of an earlier one. No pattern can match inside a placeholder.

mod local;
mod patterns;

use super::letter::{Cursor, Span, digit_value, is_digit, is_space, is_word};
use super::redacted::{Report, spliced};
use std::borrow::Cow;
use std::str::FromStr;

/// A kind of personal data that the gate masks.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Pii {
    /// `<IBAN>`
    Iban,
    /// `<CREDIT_CARD>`
    CreditCard,
    /// `<SSN>`
    Ssn,
    /// `<TR_PHONE>`
    TrPhone,
    /// `<TC_KIMLIK>`
    TcKimlik,
    /// `<PHONE>`: of any country after a `+`; also any bare ten-digit number, such as an epoch.
    Phone,
    /// `<EMAIL>`
    Email,
    /// `<ADDRESS>`: of a street, or a latitude and longitude.
    Address,
    /// `<MAC>`: the hardware address of a device.
    Mac,
}

/// An unknown name of a kind of personal data.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{name}` is not a kind of personal data; expected one of {}", Pii::ALL.map(Pii::name).join(" "))]
pub struct UnknownPii {
    /// The unknown name.
    pub name: String,
}

impl Pii {
    /// Every kind, in matching order.
    pub const ALL: [Pii; 9] = [
        Pii::Iban,
        Pii::CreditCard,
        Pii::Ssn,
        Pii::TrPhone,
        Pii::TcKimlik,
        Pii::Phone,
        Pii::Email,
        Pii::Address,
        Pii::Mac,
    ];

    /// Name in the configuration and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Pii::Iban => "iban",
            Pii::CreditCard => "credit_card",
            Pii::Ssn => "ssn",
            Pii::TrPhone => "tr_phone",
            Pii::TcKimlik => "tc_kimlik",
            Pii::Phone => "phone",
            Pii::Email => "email",
            Pii::Address => "address",
            Pii::Mac => "mac",
        }
    }

    /// Placeholder that replaces a match.
    pub fn placeholder(self) -> String {
        format!("<{}>", self.name().to_ascii_uppercase())
    }
}

impl FromStr for Pii {
    type Err = UnknownPii;

    fn from_str(name: &str) -> Result<Pii, UnknownPii> {
        let known = Pii::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| UnknownPii { name: name.to_owned() })
    }
}

/// Masks these kinds; borrowed if there is nothing to mask.
pub(super) fn mask<'a>(text: &'a str, kinds: &[Pii], report: &mut Report) -> Cow<'a, str> {
    let wanted = |kind| kinds.contains(&kind);
    let mut survey = patterns::survey(text);
    let mut text = Cow::Borrowed(text);
    let numbers = local::numbers(&text, &survey.numbers);
    let addresses = local::addresses(&text, &survey.postcodes);
    let find = |kind, by: &dyn Fn() -> Vec<Span>| if wanted(kind) { by() } else { Vec::new() };
    let found = [
        (Pii::Phone, numbers.phones),
        (Pii::Ssn, numbers.ids),
        (Pii::Address, addresses),
        (Pii::Address, find(Pii::Address, &|| local::coordinates(&text, &survey.decimals))),
        (Pii::Mac, find(Pii::Mac, &|| local::macs(&text))),
        (Pii::Email, find(Pii::Email, &|| local::spelt_emails(&text))),
    ];
    let found = found.into_iter().filter(|(kind, _)| wanted(*kind));
    let mut found: Vec<(Span, Pii)> =
        found.flat_map(|(kind, spans)| spans.into_iter().map(move |at| (at, kind))).collect();
    if !found.is_empty() {
        found.sort_by_key(|(at, _)| at.start);
        found.dedup_by(|next, last| next.0.start < last.0.end);
        found.iter().for_each(|(_, kind)| report.add(kind.name(), 1));
        let masks = found.into_iter().map(|(at, kind)| (at, kind.placeholder()));
        text = Cow::Owned(spliced(&text, masks));
        survey = patterns::survey(&text);
    }
    if !survey.ibans.is_empty() && wanted(Pii::Iban) {
        let found = patterns::ibans(&text, &survey.ibans);
        replace(&mut text, &found, Pii::Iban, report);
        if !found.is_empty() {
            survey = patterns::survey(&text);
        }
    }
    if !survey.clusters.is_empty() && NUMBERS.into_iter().any(wanted) {
        let clusters = patterns::outside(&text, survey.clusters);
        mask_numbers(&mut text, clusters, &wanted, report);
    }
    if wanted(Pii::Email) {
        let found = patterns::emails(&text);
        replace(&mut text, &found, Pii::Email, report);
    }
    if survey.address && wanted(Pii::Address) {
        let found = patterns::addresses(&text, survey.digits);
        replace(&mut text, &found, Pii::Address, report);
    }
    text
}

/// Replaces each span by the placeholder, and counts.
fn replace(text: &mut Cow<'_, str>, found: &[Span], kind: Pii, report: &mut Report) {
    if found.is_empty() {
        return;
    }
    let masked = spliced(text, found.iter().map(|at| (at.clone(), kind.placeholder())));
    report.add(kind.name(), found.len() as u64);
    *text = Cow::Owned(masked);
}

/// Kinds made of digits, in matching order.
const NUMBERS: [Pii; 5] = [Pii::CreditCard, Pii::Ssn, Pii::TrPhone, Pii::TcKimlik, Pii::Phone];

/// Masks every number of a wanted kind in these clusters.
fn mask_numbers(
    text: &mut Cow<'_, str>,
    clusters: Vec<Span>,
    wanted: &dyn Fn(Pii) -> bool,
    report: &mut Report,
) {
    let masked = clusters.into_iter().filter_map(|cluster| {
        let masked = mask_cluster(text, cluster.clone(), wanted, report)?;
        Some((cluster, masked))
    });
    let masked: Vec<(Span, String)> = masked.collect();
    if !masked.is_empty() {
        *text = Cow::Owned(spliced(text, masked));
    }
}

/// Masks the numbers of a cluster; `None` if it has none.
fn mask_cluster(
    text: &str,
    cluster: Span,
    wanted: &dyn Fn(Pii) -> bool,
    report: &mut Report,
) -> Option<String> {
    // The adjacent letters decide word boundaries; they are included and removed again.
    let before = text.get(..cluster.start)?.chars().next_back();
    let after = text.get(cluster.end..)?.chars().next();
    let left = before.map_or(0, char::len_utf8);
    let right = after.map_or(0, char::len_utf8);
    let mut local = Cow::Borrowed(text.get(cluster.start - left..cluster.end + right)?);
    for kind in NUMBERS.into_iter().filter(|kind| wanted(*kind)) {
        for pattern in patterns(kind) {
            let mut found = find_numbers(&local, *pattern);
            if matches!(kind, Pii::CreditCard | Pii::Phone) {
                let head = text.get(..cluster.start - left).unwrap_or_default();
                let tail = text.get(cluster.end + right..).unwrap_or_default();
                let surely = |at: &Span| {
                    kind == Pii::CreditCard && local.get(at.clone()).is_some_and(is_card)
                };
                let is_part = |at: &Span| match surely(at) {
                    _ if local::is_in_dump(&local, at, head) => true,
                    true => local::is_fraction(&local, at, head),
                    false => local::is_part(&local, at, head, tail),
                };
                found.retain(|at| !is_part(at));
            }
            replace(&mut local, &found, kind, report);
        }
    }
    match local {
        Cow::Borrowed(_) => None,
        Cow::Owned(local) => local.get(left..local.len() - right).map(str::to_owned),
    }
}

/// A match; an invalid one (such as a wrong check digit) is skipped, not masked.
struct Match {
    end: usize,
    valid: bool,
}

type Pattern = fn(Cursor<'_>) -> Option<Match>;

fn patterns(kind: Pii) -> &'static [Pattern] {
    match kind {
        Pii::CreditCard => &[card_of_sixteen, card_by_check_digit],
        Pii::Ssn => &[ssn],
        Pii::TrPhone => &[tr_phone],
        Pii::TcKimlik => &[tc_kimlik],
        Pii::Phone => &[phone_abroad, phone],
        Pii::Iban | Pii::Email | Pii::Address | Pii::Mac => &[],
    }
}

/// Valid matches from left to right, without overlap.
fn find_numbers(text: &str, pattern: Pattern) -> Vec<Span> {
    let mut found = Vec::new();
    let mut passed_to = 0;
    let mut in_number = false;
    for (at, letter) in text.char_indices() {
        let digit = is_digit(letter);
        // No number starts inside a run of digits.
        let starts = (digit && !in_number) || letter == '+' || letter == '(';
        in_number = digit;
        if at < passed_to || !starts {
            continue;
        }
        if let Some(hit) = pattern(Cursor::new(text, at)) {
            passed_to = hit.end;
            if hit.valid {
                found.push(at..hit.end);
            }
        }
    }
    found
}

fn is_dash_or_blank(letter: char) -> bool {
    letter == '-' || is_space(letter)
}

fn is_separator(letter: char) -> bool {
    letter == '.' || is_dash_or_blank(letter)
}

fn valid(cursor: Cursor<'_>) -> Match {
    Match { end: cursor.at, valid: true }
}

/// Four groups of four digits; no check digit, since sample numbers lack a valid one.
fn card_of_sixteen(start: Cursor<'_>) -> Option<Match> {
    if !start.word_starts() {
        return None;
    }
    let groups = (0..3).try_fold(start, |c, _| Some(c.digits(4)?.maybe(is_dash_or_blank)));
    let end = groups?.digits(4)?.end()?;
    let number = start.rest().get(..end.at - start.at)?;
    let is_year =
        |group: &str| group.len() == 4 && ["19", "20"].iter().any(|it| group.starts_with(it));
    let years =
        number.split(is_dash_or_blank).count() == 4 && number.split(is_dash_or_blank).all(is_year);
    Some(Match { end: end.at, valid: !years })
}

/// 4-6-5 digits, or 13 to 19 in a row, with a valid check digit.
fn card_by_check_digit(start: Cursor<'_>) -> Option<Match> {
    if !start.word_starts() {
        return None;
    }
    let is_gap = |letter| letter == ' ' || letter == '-';
    let spaced = || start.digits(4)?.one(is_gap)?.digits(6)?.one(is_gap)?.digits(5)?.end();
    let in_a_row = || {
        let end = start.run(is_digit)?.end()?;
        let count = start.rest().get(..end.at - start.at)?.chars().count();
        (13..=19).contains(&count).then_some(end)
    };
    let end = spaced().or_else(in_a_row)?;
    let digits = start.rest().get(..end.at - start.at)?;
    Some(Match { end: end.at, valid: luhn(digits) })
}

/// Returns whether digits are surely a card number: they have a valid check digit and begin as no time does, neither in
/// milliseconds nor as a date.
fn is_card(number: &str) -> bool {
    luhn(number) && !["0", "1", "20"].iter().any(|time| number.starts_with(time))
}

fn luhn(number: &str) -> bool {
    let digits = number.chars().rev().filter(|digit| is_digit(*digit)).map(digit_value);
    let sum: u32 = digits
        .enumerate()
        .map(|(index, digit)| match (index % 2, digit) {
            (0, digit) => digit,
            (_, digit @ 0..=4) => digit * 2,
            (_, digit) => digit * 2 - 9,
        })
        .sum();
    sum.is_multiple_of(10)
}

fn ssn(start: Cursor<'_>) -> Option<Match> {
    if !start.word_starts() {
        return None;
    }
    start.digits(3)?.char('-')?.digits(2)?.char('-')?.digits(4)?.end().map(valid)
}

/// A Turkish mobile number, with the prefix `0` or `+90`.
fn tr_phone(start: Cursor<'_>) -> Option<Match> {
    let national = || start.word_starts().then_some(start)?.char('0');
    let abroad = || Some(start.char('+')?.char('9')?.char('0')?.maybe(is_separator));
    let prefix = national().or_else(abroad)?;
    let operator = prefix.char('5')?.digits(2)?.maybe(is_separator);
    let groups = operator.digits(3)?.maybe(is_separator).digits(2)?.maybe(is_separator);
    groups.digits(2)?.end().map(valid)
}

/// A Turkish identity number: eleven digits, the last two of them check digits.
fn tc_kimlik(start: Cursor<'_>) -> Option<Match> {
    let apart = |letter: Option<char>| !letter.is_some_and(|next| next == '-' || is_word(next));
    if !apart(start.before()) {
        return None;
    }
    let end = start.one(|digit| ('1'..='9').contains(&digit))?.digits(10)?;
    if !apart(end.peek()) {
        return None;
    }
    let number = start.rest().get(..end.at - start.at)?;
    let digits: Vec<u32> = number.chars().map(digit_value).collect();
    Some(Match { end: end.at, valid: tc_checks(&digits) })
}

fn tc_checks(digits: &[u32]) -> bool {
    let [first @ .., tenth, eleventh] = digits else { return false };
    let odd: u32 = first.iter().step_by(2).sum();
    let even: u32 = first.iter().skip(1).step_by(2).sum();
    let sum: u32 = odd + even + tenth;
    (i64::from(odd) * 7 - i64::from(even)).rem_euclid(10) == i64::from(*tenth)
        && sum % 10 == *eleventh
}

/// Ten digits in three groups, optionally with a country code or parentheses.
fn phone(start: Cursor<'_>) -> Option<Match> {
    let last =
        |cursor: Cursor<'_>| cursor.digits(3)?.maybe(is_separator).digits(4)?.end().map(valid);
    let apart = || start.word_starts().then_some(start);
    // One to three digits, greedily: no digit may follow.
    let country = || {
        let first = apart()?.maybe(|next| next == '+').digits(1)?;
        Some(first.maybe(is_digit).maybe(is_digit))
    };
    let abroad = || last(country()?.one(is_separator)?.digits(3)?.maybe(is_separator));
    let plain = || last(apart()?.digits(3)?.maybe(is_separator));
    let area =
        |cursor: Cursor<'_>| Some(cursor.char('(')?.digits(3)?.char(')')?.maybe(is_separator).at);
    let at = |at| start.to(at);
    let abroad_area = || last(at(area(country()?.maybe(is_separator))?));
    let plain_area = || last(at(area(start)?));
    abroad().or_else(plain).or_else(abroad_area).or_else(plain_area)
}

/// Number of digits with the country code: subscriber numbers have at least 9; E.164 allows at most
/// 15.
const ABROAD_DIGITS: std::ops::RangeInclusive<usize> = 9..=15;

/// `+`, country code and number, in groups of any length; allows a `(0)` trunk prefix.
fn phone_abroad(start: Cursor<'_>) -> Option<Match> {
    let apart = start.word_starts() && start.before() != Some('+');
    let mut at = start.char('+').filter(|_| apart)?.one(|digit| ('1'..='9').contains(&digit))?;
    let (mut digits, mut found) = (1, None);
    // At most 15 iterations.
    while digits <= *ABROAD_DIGITS.end() {
        if ABROAD_DIGITS.contains(&digits) {
            found = at.end().or(found);
        }
        let gap = at.maybe(is_separator);
        let home = |c: Cursor<'_>| Some(c.char('(')?.char('0')?.char(')')?.maybe(is_separator).at);
        let gap = if digits <= 3 { home(gap).map_or(gap, |end| gap.to(end)) } else { gap };
        let Some(next) = gap.one(is_digit) else { break };
        (at, digits) = (next, digits + 1);
    }
    found.map(valid)
}

#[cfg(test)]
mod tests;
