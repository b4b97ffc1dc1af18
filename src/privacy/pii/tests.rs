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
fn digits_of_fractions_identifiers_and_paths_are_no_numbers() {
    for text in [
        "p99 was 0.0123456789 s",
        "0.7071067811865475",
        "1736937000.123456",
        "v0.0.0-20241129210726-2c02b8208cf8",
        "/logs/test-session-1767707352/full.jsonl",
        "runs/exp_3/1699999999-train/log.txt",
        "backup-1736937000.sql",
        "2024-1736937000",
        "issues/12#issuecomment-1699999999",
        "once_cell/issues/12#issuecomment-2352654806",
        "1736937000.log",
        "0.4111111111111111",
        "runs/x-4111111111111112",
        "ratio 1.4142135623",
    ] {
        check(text, text);
    }
    for (text, expected) in [
        ("tel-5551234567", "tel-<PHONE>"),
        ("phone/5551234567", "phone/<PHONE>"),
        ("tel:5551234567", "tel:<PHONE>"),
        ("Nr.5551234567", "Nr.<PHONE>"),
        ("mobile_nr-5551234567", "mobile_nr-<PHONE>"),
        ("epoch 1736937000 seconds", "epoch <PHONE> seconds"),
        ("call 5551234567.", "call <PHONE>."),
        ("call 5551234567.Thanks", "call <PHONE>.Thanks"),
        ("a\\n-5551234567", "a\\n-<PHONE>"),
        ("0049-1711234567", "0049-<PHONE>"),
        ("5551234567/5559876543/5551112222", "<PHONE>/<PHONE>/<PHONE>"),
        ("card-4111111111111111", "card-<CREDIT_CARD>"),
        ("4111111111111111/12/27", "<CREDIT_CARD>/12/27"),
        ("charge/4111111111111111", "charge/<CREDIT_CARD>"),
        ("v1/charges/stripe-4111111111111111", "v1/charges/stripe-<CREDIT_CARD>"),
        ("4111111111111111/exp12-27", "<CREDIT_CARD>/exp12-27"),
        ("1227-4111111111111111", "1227-<CREDIT_CARD>"),
        ("4111111111111111.12/27", "<CREDIT_CARD>.12/27"),
        ("my number is 5551234567.thanks", "my number is <PHONE>.thanks"),
        ("Bob/5551234567", "Bob/<PHONE>"),
        ("https://wa.me/6591234567", "https://wa.me/<PHONE>"),
        ("anna.mueller/5551234567", "anna.mueller/<PHONE>"),
        ("anna-5551234567", "anna-<PHONE>"),
        ("Ask Bob.5551234567", "Ask Bob.<PHONE>"),
        ("5551234567-Anna", "<PHONE>-Anna"),
        ("list:\n2.5551234567", "list:\n<PHONE>"),
        ("5551234567.5559876543", "<PHONE>.<PHONE>"),
    ] {
        check(text, expected);
    }
}

#[test]
fn files_with_an_at_sign_are_no_addresses() {
    let files = "icon@2x.png logo@300px.png vue@3.4.21.js";
    check(files, files);
    check("ann@2x.org", "<EMAIL>");
    check("CV_anna.mueller@gmail.com.pdf", "<EMAIL>");
    check("avatars/bob@163.com.png", "avatars/<EMAIL>");
}

#[test]
fn addresses_have_up_to_three_words() {
    check("at 12 Old Mill Road, or 7 elm avenue", "at <ADDRESS>, or <ADDRESS>");
    check("5 Oak St. and 9 lime Rd", "<ADDRESS> and <ADDRESS>");
    check("3 files changed in the road map", "3 files changed in the road map");
}

#[test]
fn national_numbers_need_a_word_or_their_own_form() {
    for (text, expected) in [
        (
            "erreichst mich unter 0171 / 3948 572 ab 18 Uhr",
            "erreichst mich unter <PHONE> ab 18 Uhr",
        ),
        ("Mon num\u{e9}ro : 06 42 18 93 77, ce soir", "Mon num\u{e9}ro : <PHONE>, ce soir"),
        ("call 0171-3948572 or 020 7946 0958.", "call <PHONE> or <PHONE>."),
        ("Handy (0171) 3948572", "Handy <PHONE>"),
        ("Steuer-ID 65 929 970 489 steht da", "Steuer-ID <SSN> steht da"),
        ("mi DNI es 12345678Z y NIE X1234567L", "mi DNI es <SSN> y NIE <SSN>"),
        ("Mi tel\u{e9}fono: 612 45 98 73", "Mi tel\u{e9}fono: <PHONE>"),
        ("tel 0532 123 45 67", "tel <TR_PHONE>"),
    ] {
        check(text, expected);
    }
    for text in [
        "matrix: 06 12 34 56 78 90 hex dump",
        "draw 05 12 33 41 07",
        "call 05-12-2024 10:30",
        "0171-3948572 of build",
        "call at 09:30:12.123456",
        "reach 0.123456789",
        "id 65 929 970 489",
        "tel 2024-01-02 03:04:05",
        "mode 0644 0755 0600",
        "phone: 2024-10-12 10",
        "reach 100 000 000 users",
        "signal 0001 0002 0003",
        "call 0x0123456789",
    ] {
        check(text, text);
    }
}

#[test]
fn streets_with_a_postcode_are_masked_in_the_forms_of_their_country() {
    for text in [
        "Lindenstra\u{df}e 14, 50674 K\u{f6}ln",
        "Gartenweg 3a, 8010 Graz",
        "Am Markt 5\n04109 Leipzig",
        "12 rue des Lilas, 69003 Lyon",
        "Calle de Alcal\u{e1} 45, 28014 Madrid",
        "Via Roma 12, 00184 Roma",
        "22 Baker Lane, Leeds LS6 3HN",
        "77 Maple Drive, Apt 4, Austin, TX 78701",
        "Keizersgracht 12, 1015 CJ Amsterdam",
        "1428 Elm Street, Springwood, OH 45505",
    ] {
        check(&format!("to {text}; thanks"), "to <ADDRESS>; thanks");
    }
    for text in [
        "Spring 5, 2024 Release",
        "String 5, 10000 Items",
        "3 files in place, 12345 Bytes",
        "Platz 3, 2024 Bern",
        "section 4, 2024 Edition",
        "Build 14, 50674 Tests",
        "Step 3 of Lane, 12345 Rows",
    ] {
        check(text, text);
    }
}

#[test]
fn addresses_of_repositories_and_years_stay() {
    check("git@github.com:a/b.git ssh://git@h.org/x", "git@github.com:a/b.git ssh://git@h.org/x");
    check("bob@h.org:a/b.git", "<EMAIL>:a/b.git");
    check("in 2021 2022 2023 2024 2025; do", "in 2021 2022 2023 2024 2025; do");
    check("1234-5678-9012-3456", "<CREDIT_CARD>");
}

#[test]
fn lines_of_hex_dumps_stay() {
    for line in
        ["00000020: 4b00 2100 0100 5200 7011 3300 4400 0000  K.!.", "0000040  4111 1111 1111 1111"]
    {
        check(line, line);
    }
    check("\n00000020: a card 4111 1111 1111 1111", "\n00000020: a card <CREDIT_CARD>");
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

#[test]
fn an_address_with_words_for_its_marks_is_one() {
    for text in [
        "ann.lee [at] corp [dot] example [dot] com",
        "ann(at)example.org",
        "ann.lee {AT} mail {DOT} example {DOT} org",
        "anna (at) beispiel (punkt) de",
    ] {
        check(&format!("mail {text}, please"), "mail <EMAIL>, please");
    }
    for text in [
        "[at] noon (at) 12", "if (at) this.run();", "while (at) node.next",
        "blocks.get(at) it.part", "Vec<at> foo.bar",
    ] {
        check(text, text);
    }
    check("john at example dot com", "john at example dot com");
}

#[test]
fn coordinates_after_a_word_of_a_place_are_masked() {
    check("at 52.520008, 13.404954 now", "at <ADDRESS> now");
    check("{\"lat\": 48.85837, \"lng\": 2.294481}", "{\"lat\": <ADDRESS>}");
    check("GPS Latitude: 48.138680, GPS Longitude: 11.576124", "GPS Latitude: <ADDRESS>");
    check(r#"<trkpt lat="46.947996" lon="7.44">"#, r#"<trkpt lat="<ADDRESS>">"#);
    check("geo:51.057441,13.7", "geo:<ADDRESS>");
    check("near 40.7128° N, 74.0060° W.", "near <ADDRESS>.");
    check("/maps/@-33.85678,151.21529,17z", "/maps/@<ADDRESS>,17z");
    for text in [
        "loss 1.23456, 2.34567",
        "[0.12345, 0.23456]",
        "at 12.5, 13.5",
        "at 0.12345, 0.23456",
        "workerd@1.20241106.1",
        "@cloudflare/workers-types@4.20241127.0",
        "version=1.20241015.3",
        "eval at 3.1416, 2.7183",
        "--betas=1.9000,1.9990",
        "position: 120.50001, 44.0",
    ] {
        check(text, text);
    }
}

#[test]
fn hardware_addresses_are_masked() {
    check("mac de:ad:be:ef:00:42, 00-1B-44-11-3A-B7, f748.232a.cb1e", "mac <MAC>, <MAC>, <MAC>");
    for text in [
        "00:00:00:00:00:00", "20-11-12-10-20-30", "1234.5678.9012", "SHA: de:ad:be:ef:00:42:11",
        "10:20:30", "fe80::de:ad:be:ef:00:42",
    ] {
        check(text, text);
    }
}
