//! Personal data, by pattern: eight kinds, the longest and most specific first, so that no later
//! kind matches part of an earlier one. No pattern can match inside a placeholder.

mod patterns;

use super::letter::{Span, digit_value, is_digit};
use super::redacted::{Report, spliced};
use regex::Regex;
use std::borrow::Cow;
use std::str::FromStr;
use std::sync::LazyLock;

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
    /// `<ADDRESS>`
    Address,
}

/// An unknown name of a kind of personal data.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{name}` is no kind of personal data; there are {}", Pii::ALL.map(Pii::name).join(" "))]
pub struct UnknownPii {
    /// The unknown name.
    pub name: String,
}

impl Pii {
    /// Every kind, in matching order.
    pub const ALL: [Pii; 8] = [
        Pii::Iban,
        Pii::CreditCard,
        Pii::Ssn,
        Pii::TrPhone,
        Pii::TcKimlik,
        Pii::Phone,
        Pii::Email,
        Pii::Address,
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
    if survey.iban && wanted(Pii::Iban) {
        let found = patterns::ibans(&text);
        replace(&mut text, &found, Pii::Iban, report);
        if !found.is_empty() {
            survey = patterns::survey(&text);
        }
    }
    if !survey.clusters.is_empty() && NUMBERS.iter().any(|it| wanted(it.kind)) {
        let clusters = patterns::outside(&text, survey.clusters);
        mask_numbers(&mut text, clusters, &wanted, report);
    }
    if wanted(Pii::Email) {
        let found = patterns::emails(&text);
        replace(&mut text, &found, Pii::Email, report);
    }
    if survey.address && wanted(Pii::Address) {
        for street in patterns::STREETS.iter() {
            let found = patterns::addresses(&text, street);
            replace(&mut text, &found, Pii::Address, report);
        }
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
    for number in NUMBERS.iter().filter(|number| wanted(number.kind)) {
        let found = number.find(&local);
        replace(&mut local, &found, number.kind, report);
    }
    match local {
        Cow::Borrowed(_) => None,
        Cow::Owned(local) => local.get(left..local.len() - right).map(str::to_owned),
    }
}

/// Kind made of digits.
struct Number {
    kind: Pii,
    /// Each group is a number.
    shape: Regex,
    /// Checks the digits; a number with wrong ones is skipped, not masked.
    is_valid: fn(&[u32]) -> bool,
}

/// Kinds made of digits, in matching order. `START` and `END` are the boundaries of a word without combining marks.
static NUMBERS: LazyLock<Vec<Number>> = LazyLock::new(|| {
    let number = |kind, shape: &str, is_valid| {
        let shape = shape
            .replace("START", r"(?:\A|[^\p{L}\p{N}_])")
            .replace("END", r"(?:\z|[^\p{L}\p{N}_])")
            .replace("DASH", r"[\s\x1c-\x1f-]")
            .replace("SEP", r"[\s\x1c-\x1f.-]");
        Some(Number { kind, shape: Regex::new(&shape).ok()?, is_valid })
    };
    let any: fn(&[u32]) -> bool = |_| true;
    let local = r"\d{3}SEP?\d{4}";
    let mobile = r"5\d{2}SEP?\d{3}SEP?\d{2}SEP?\d{2}";
    let numbers = [
        // Four groups of four digits; no check digit, since sample numbers lack a valid one.
        number(Pii::CreditCard, r"START((?:\d{4}DASH?){3}\d{4})END", any),
        number(Pii::CreditCard, r"START(\d{4}[ -]\d{6}[ -]\d{5}|\d{13,19})END", luhn),
        number(Pii::Ssn, r"START(\d{3}-\d{2}-\d{4})END", any),
        number(Pii::TrPhone, &format!(r"START(0{mobile})END|(\+90SEP?{mobile})END"), any),
        number(
            Pii::TcKimlik,
            r"(?:\A|[^\p{L}\p{N}_-])([1-9]\d{10})(?:\z|[^\p{L}\p{N}_-])",
            tc_checks,
        ),
        // After a `+`, 9 to 15 digits in groups of any length, as E.164 allows; the trunk prefix may be there.
        number(
            Pii::Phone,
            r"(?:\A|[^\p{L}\p{N}_+])(\+[1-9](?:SEP?(?:\(0\)SEP?)?\d){3}(?:SEP?\d){5,11})END",
            any,
        ),
        // Ten digits in three groups, perhaps with a country code or parentheses.
        number(
            Pii::Phone,
            &format!(
                r"START(\+?\d{{1,3}}SEP\d{{3}}SEP?{local}|\d{{3}}SEP?{local}|\+?\d{{1,3}}SEP?\(\d{{3}}\)SEP?{local})END|(\(\d{{3}}\)SEP?{local})END"
            ),
            any,
        ),
    ];
    numbers.into_iter().flatten().collect()
});

impl Number {
    /// Valid matches from left to right, without overlap.
    fn find(&self, text: &str) -> Vec<Span> {
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(groups) = self.shape.captures_at(text, from) {
            let Some(number) = groups.iter().skip(1).flatten().next() else { break };
            // The character after a number may begin the next one.
            from = number.end();
            let digits = number.as_str().chars().filter(|it| is_digit(*it)).map(digit_value);
            if (self.is_valid)(&digits.collect::<Vec<_>>()) {
                found.push(number.range());
            }
        }
        found
    }
}

fn luhn(digits: &[u32]) -> bool {
    let weighed = digits.iter().rev().enumerate().map(|(index, digit)| match (index % 2, digit) {
        (0, digit) => *digit,
        (_, digit @ 0..=4) => digit * 2,
        (_, digit) => digit * 2 - 9,
    });
    weighed.sum::<u32>().is_multiple_of(10)
}

/// Checks a Turkish identity number: of its eleven digits, the last two are check digits.
fn tc_checks(digits: &[u32]) -> bool {
    let [first @ .., tenth, eleventh] = digits else { return false };
    let odd: u32 = first.iter().step_by(2).sum();
    let even: u32 = first.iter().skip(1).step_by(2).sum();
    let sum: u32 = odd + even + tenth;
    (i64::from(odd) * 7 - i64::from(even)).rem_euclid(10) == i64::from(*tenth)
        && sum % 10 == *eleventh
}

#[cfg(test)]
mod tests;
