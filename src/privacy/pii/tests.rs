//! Examples, the published cases if they are present beside the project, and idempotence.

use super::{Pii, mask};
use crate::privacy::redacted::Report;
use proptest::prelude::*;

fn masked(text: &str) -> (String, Report) {
    let mut report = Report::default();
    let masked = mask(text, &Pii::ALL, &mut report).into_owned();
    (masked, report)
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let (once, _) = masked(text);
    assert_eq!(once, expected);
    assert_eq!(masked(&once).0, once, "masking twice changes nothing");
}

#[test]
fn a_domain_ends_at_its_last_top_level() {
    check("mail ann.lee@mail.example.co.uk, or x@y.z1", "mail <EMAIL>, or x@y.z1");
    check("a@b@c.org", "a@<EMAIL>");
    check("ali@\u{15f}irket.com|eve@test.org", "<EMAIL>|<EMAIL>");
}

#[test]
fn a_card_of_other_length_needs_its_check_digit() {
    check("3782 822463 10005 and 3782 822463 10006", "<CREDIT_CARD> and 3782 822463 10006");
    check("4222222222222 4222222222223", "<CREDIT_CARD> 4222222222223");
}

#[test]
fn phones_are_masked_with_their_country_code() {
    check("call +1 (212) 555-0187 now", "call <PHONE> now");
    check("(212)555-0187, 212.555.0187", "<PHONE>, <PHONE>");
    check("+90 532 123 45 67 / 05321234567", "<TR_PHONE> / <TR_PHONE>");
    check("at 2024-05-01T09:00:00Z, 10.0.0.1", "at 2024-05-01T09:00:00Z, 10.0.0.1");
}

#[test]
fn phones_of_any_country_are_masked_behind_a_plus() {
    for phone in [
        "+49 30 123456", "+49 (0)30 12345678", "+4930123456", "+44 (0) 20 7946 0958",
        "+33 6 12 34 56 78", "+81-3-1234-5678", "+86 138 0013 8000", "+34 612 345 678",
        "+55.11.91234.5678", "+90 212 555 01 23",
    ] {
        check(&format!("Tel. {phone}, home"), "Tel. <PHONE>, home");
    }
    check("+1234567890123456789012", "+1234567890123456789012");
    check("1e+123456789 a+123456789 ++123456789", "1e+123456789 a+123456789 ++123456789");
    check("+12.5% +1.25 +3 -2 12+34 +01234567", "+12.5% +1.25 +3 -2 12+34 +01234567");
    check("UTC+02:00, 10:00:00.000+0200", "UTC+02:00, 10:00:00.000+0200");
}

#[test]
fn an_iban_is_whole_before_cards_are_looked_for() {
    check("to TR33 0006 1005 1978 6457 8413 26.", "to <IBAN>.");
    check("constant AB12_CDEF, XY12ABCD", "constant AB12_CDEF, XY12ABCD");
}

#[test]
fn identifiers_and_hashes_are_no_numbers() {
    for id in [
        "11111111-2222-4333-8444-555555555555",
        "a1b2c3d4-1234-4567-8910-123456789012",
        "12345678-4111-1111-1111-111111111111",
        "{\"id\":\"4a1b2c3d-5555-1234-5678-901234567890\"}",
        "1234567890123456789012345678901234567890",
        "1234567890123456789012345678901234567890123456789012345678901234",
        "7f123456789012345678a0123456789012345678",
    ] {
        check(id, id);
    }
    check(
        "11111111-2222-4333-8444-555555555555 555-123-4567",
        "11111111-2222-4333-8444-555555555555 <PHONE>",
    );
    check(
        "4111-1111-1111-1111-11111111-2222-4333-8444-555555555555",
        "<CREDIT_CARD>-11111111-2222-4333-8444-555555555555",
    );
    check(
        "11111111-2222-4333-8444-555555555555 \u{664}",
        "11111111-2222-4333-8444-555555555555 \u{664}",
    );
}

#[test]
fn addresses_have_up_to_three_words() {
    check("at 12 Old Mill Road, or 7 elm avenue", "at <ADDRESS>, or <ADDRESS>");
    check("5 Oak St. and 9 lime Rd", "<ADDRESS> and <ADDRESS>");
    check("3 files changed in the road map", "3 files changed in the road map");
}

#[test]
fn kinds_that_are_not_wanted_stay() {
    let mut report = Report::default();
    let text = mask("a@b.org 078-05-1120", &[Pii::Ssn], &mut report).into_owned();
    assert_eq!(text, "a@b.org <SSN>");
    assert_eq!(report.counts, [("ssn", 1)].into());
}

#[test]
fn an_unknown_kind_names_the_known_ones() {
    let error = "e-mail".parse::<Pii>().unwrap_err().to_string();
    assert!(Pii::ALL.iter().all(|kind| error.contains(kind.name())), "{error}");
    assert!(Pii::ALL.iter().all(|kind| kind.name().parse() == Ok(*kind)));
}

proptest! {
    #[test]
    fn masking_twice_changes_nothing(text in "[0-9 .+()@a-cA-C|\u{15f}\u{664}-]{0,60}") {
        let (once, _) = masked(&text);
        prop_assert_eq!(&masked(&once).0, &once);
    }
}

proptest! {
    #[test]
    fn placeholders_hold_nothing_to_mask(kind in prop::sample::select(Pii::ALL.to_vec()), around in "[0-9 a]{0,8}") {
        let text = format!("{around}{}x", kind.placeholder());
        prop_assert_eq!(&masked(&text).0, &text);
    }
}
