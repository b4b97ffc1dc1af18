//! Personal data, by pattern: eight kinds, the longest and most specific first, so that no later
//! kind eats part of an earlier one. No pattern can match inside a placeholder.

mod bank;
mod cursor;
mod digit;
mod number;
mod place;
mod uuid;

use super::mask::Report;
use cursor::Found;
use std::borrow::Cow;
use std::fmt;
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
    /// `<PHONE>`: behind a `+` of any country; also a bare number of ten digits, such as an epoch; the safe side.
    Phone,
    /// `<EMAIL>`
    Email,
    /// `<ADDRESS>`
    Address,
}

/// A name that is no kind of personal data.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownPii {
    /// What was said.
    pub name: String,
}

impl fmt::Display for UnknownPii {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no kind of personal data; there are", self.name)?;
        let mut names = Pii::ALL.iter().map(|kind| kind.name());
        names.try_for_each(|name| write!(f, " {name}"))
    }
}

impl std::error::Error for UnknownPii {}

impl Pii {
    /// Every kind, in the order in which they are looked for.
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

    /// Its name in the configuration and in reports.
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

    /// What stands in its place.
    pub const fn placeholder(self) -> &'static str {
        match self {
            Pii::Iban => "<IBAN>",
            Pii::CreditCard => "<CREDIT_CARD>",
            Pii::Ssn => "<SSN>",
            Pii::TrPhone => "<TR_PHONE>",
            Pii::TcKimlik => "<TC_KIMLIK>",
            Pii::Phone => "<PHONE>",
            Pii::Email => "<EMAIL>",
            Pii::Address => "<ADDRESS>",
        }
    }
}

impl FromStr for Pii {
    type Err = UnknownPii;

    /// Reads a kind by its name.
    fn from_str(name: &str) -> Result<Pii, UnknownPii> {
        let known = Pii::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| UnknownPii { name: name.to_owned() })
    }
}

/// Masks these kinds; the text itself if there is nothing to mask.
pub(super) fn mask<'a>(text: &'a str, kinds: &[Pii], report: &mut Report) -> Cow<'a, str> {
    let wanted = |kind| kinds.contains(&kind);
    let mut survey = digit::survey(text);
    let mut text = Cow::Borrowed(text);
    if survey.iban && wanted(Pii::Iban) {
        let found = bank::ibans(&text, survey.digits);
        replace(&mut text, &found, Pii::Iban, report);
        if !found.is_empty() {
            survey = digit::survey(&text);
        }
    }
    if !survey.clusters.is_empty() && number::KINDS.into_iter().any(wanted) {
        let clusters = uuid::outside(&text, survey.clusters);
        number::mask(&mut text, clusters, &wanted, report);
    }
    if wanted(Pii::Email) {
        let found = place::emails(&text);
        replace(&mut text, &found, Pii::Email, report);
    }
    if survey.address && wanted(Pii::Address) {
        for street in place::STREETS {
            let found = place::addresses(&text, survey.digits, street);
            replace(&mut text, &found, Pii::Address, report);
        }
    }
    text
}

/// Puts the placeholder in every place found, and counts.
fn replace(text: &mut Cow<'_, str>, found: &[Found], kind: Pii, report: &mut Report) {
    if found.is_empty() {
        return;
    }
    let mut masked = String::with_capacity(text.len());
    let mut kept_to = 0;
    for at in found {
        masked.push_str(text.get(kept_to..at.start).unwrap_or_default());
        masked.push_str(kind.placeholder());
        kept_to = at.end;
    }
    masked.push_str(text.get(kept_to..).unwrap_or_default());
    report.add(kind.name(), found.len() as u64);
    *text = Cow::Owned(masked);
}

#[cfg(test)]
mod tests;
