//! The whole gate: its order, idempotence, and the published cases if they are present.

use super::{
    Gate, Only, Pii, Redacted, Report, Woven, is_private_file, private_spans, strip_private,
};
use crate::testing::shared;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;

fn gate() -> Gate {
    Gate::new(&Pii::ALL)
}

#[track_caller]
fn check(raw: &str, expected: &str, counts: &[(&'static str, u64)]) {
    let mut report = Report::default();
    let once = gate().redact_into(raw, &mut report);
    assert_eq!(once.as_str(), expected);
    assert_eq!(report.counts, counts.iter().copied().collect());
    assert_eq!(gate().redact(once.as_str()), once, "redacting twice changes nothing");
}

/// Texts with secrets, and look-alikes, in base64 so that no secret scanner reports this file.
#[derive(serde::Deserialize)]
struct Cases {
    mask: Vec<Case>,
    keep: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    #[serde(default)]
    case: String,
    text_b64: String,
    #[serde(default)]
    secret_b64: String,
}

fn decoded(base64: &str) -> String {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters: Vec<u8> = base64.bytes().filter(|it| *it != b'=').map(value).collect();
    let bytes = letters.chunks(4).flat_map(|four| {
        let bits = four.iter().fold(0_u32, |bits, six| bits << 6 | u32::from(*six));
        let bits = bits << (6 * (4 - four.len()));
        bits.to_be_bytes().into_iter().skip(1).take(four.len() - 1)
    });
    String::from_utf8(bytes.collect()).unwrap()
}

/// Checks that at most `leaks_max` secrets leak, no look-alike changes, and masking is idempotent.
#[track_caller]
fn check_cases(cases: &str, leaks_max: usize) {
    let cases: Cases = serde_json::from_str(cases).unwrap();
    let mut leaks = Vec::new();
    for case in &cases.mask {
        let clean = gate().redact(&decoded(&case.text_b64));
        assert_eq!(gate().redact(clean.as_str()), clean, "{}", case.case);
        if clean.as_str().contains(&decoded(&case.secret_b64)) {
            leaks.push(case.case.as_str());
        }
    }
    assert!(leaks.len() <= leaks_max, "{} of {} leak: {leaks:?}", leaks.len(), cases.mask.len());
    for case in &cases.keep {
        let text = decoded(&case.text_b64);
        assert_eq!(gate().redact(&text).as_str(), text);
    }
}

#[test]
fn secrets_of_every_class_go_and_look_alikes_stay() {
    check_cases(include_str!("../../tests/fixtures/privacy/held-back.json"), 1);
}

#[test]
fn published_secrets_go_and_look_alikes_stay() {
    let Some(path) = shared("secrets/cases.json") else { return };
    check_cases(&std::fs::read_to_string(path).unwrap(), 3);
}

#[test]
fn private_goes_before_secrets_and_secrets_before_pii() {
    check(
        "a\n<private>\npassword=\"x1\"\n</private>\napi_key=\"a@b.org\" c@d.org\n",
        "a\napi_key=\"<SECRET>\" <EMAIL>\n",
        &[("private", 1), ("named-secret", 1), ("email", 1)],
    );
    check(
        "postgres://u:pw@db.example.com/x",
        "postgres://u:<SECRET>@db.example.com/x",
        &[("url-password", 1)],
    );
}

#[test]
fn tags_that_hide_nothing_are_counted_once() {
    let mut report = Report::default();
    gate().redact_into("a <private> b `<private>` c@d.org\n", &mut report);
    gate().redact_into("- <private>a\n", &mut report);
    gate().redact_into("x `<private>` y\n", &mut report);
    assert_eq!((report.mentions, report.counts.get("private")), (3, Some(&1)));
}

#[test]
fn a_part_of_the_gate_leaves_the_others() {
    let text = "<private>x</private> password=\"y\" a@b.org";
    for (only, expected) in [
        (Only::Everything, " password=\"<SECRET>\" <EMAIL>"),
        (Only::Private, " password=\"y\" a@b.org"),
        (Only::Secrets, "<private>x</private> password=\"<SECRET>\" a@b.org"),
        (Only::Pii, "<private>x</private> password=\"y\" <EMAIL>"),
    ] {
        assert_eq!(gate().only(only).redact(text).as_str(), expected);
    }
}

#[test]
fn tags_that_appear_when_others_go_hide_the_rest() {
    let mut text = "x".to_owned();
    for _ in 0..20 {
        text = format!("a <pri<private>y</private>vate>{text}</private>");
    }
    let once = gate().redact(&text);
    assert_eq!(gate().redact(once.as_str()), once);
}

#[test]
fn no_text_holds_a_nul_however_it_came() {
    check("a\0b\0", "a\u{fffd}b\u{fffd}", &[]);
    check(
        "pass\0word=hunter2 a@b.org\0",
        "pass\u{fffd}word=hunter2 <EMAIL>\u{fffd}",
        &[("email", 1)],
    );
    for only in [Only::Everything, Only::Private, Only::Secrets, Only::Pii] {
        assert_eq!(gate().only(only).redact("\0").as_str(), "\u{fffd}");
    }
    let woven = [Woven::Ours("a\0"), Woven::Label("\0b"), Woven::Passed(&gate().redact("\0"))];
    assert_eq!(Redacted::weave(&woven).as_str(), "a\u{fffd}\u{fffd}b\u{fffd}");
    assert_eq!(Redacted::reopened("\0".to_owned()).as_str(), "\u{fffd}");
    let read: Redacted = serde_json::from_str(r#""\u0000""#).unwrap();
    assert_eq!(read.as_str(), "\u{fffd}");
}

#[test]
fn hostile_text_takes_linear_time() {
    for piece in [
        "password=",
        "token='",
        "\"secret\":\"",
        "-----BEGIN PRIVATE KEY-----",
        "://a:",
        "cookie: a=",
        "1 a ",
        "a@",
        "eyJ",
        "\\\"",
        "(555) ",
        "authorization: ",
        "curl -u ",
        "-----BEGIN PRIVATE KEY-----MIIEpAIBAAKCAQEA",
        "12345 ",
        "password: a,",
        "secret_",
        "--token ",
        "AB12 ",
        "password: str ",
        "<private",
        "x.y@z",
        "api key",
        "token is ",
        "ENV TOKEN ",
        "machine x login y password ",
        "mysql ",
        "token=[\"a1b2c3d4\",",
        "\"name\":\"password\",\"value\":",
        "11111111-2222-4333-",
        "authorization: digest a=\"",
        "password: letmein\n",
        "x\u{200b}y",
        "\x1b[1ma",
        "tel 0171 ",
        "nie 1234567 ",
        ", 1234 A",
        "\"curl\",\"-u\",",
        "curl -u \\\n",
        "curl:\n- -u\n",
        "recovery codes: a1b2c3 ",
        "\"name\":\"token\",\"type\":\"x\",",
        "wifi key: ",
        "changed the password to ",
        "what is the password?\n",
        "credentials for a",
        "a/b1 gets you in ",
        "expect assword send ",
        "echo a > pass ",
        "DB_PASSWORD to ",
        "1234567890.",
        "a-1234567890/",
        "user a password ",
        "user: a, ",
        "x:5432:",
        "identified ",
        "\"AUTH\" \"a\" ",
        "variable \"token\" {",
        "a_A1",
        ";pwd={",
    ] {
        let text = piece.repeat(30_000 / piece.len());
        assert!(gate().redact(&text).len() <= 4 * text.len() + 8, "{piece}");
    }
}

/// Cases that are stored beside the project.
fn published(file: &str) -> Option<Value> {
    let text = std::fs::read_to_string(shared(&format!("golden/{file}"))?).ok()?;
    serde_json::from_str(&text).ok()
}

fn cases<'a>(all: &'a Value, name: &str) -> &'a [Value] {
    all[name].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn published_private_cases_hold() {
    let Some(all) = published("conkeeper.json") else { return };
    for case in cases(&all, "strip_private") {
        let input = case["input"].as_str().unwrap_or_default();
        assert_eq!(strip_private(input), case["recommended"], "{case}");
        let remarks: BTreeSet<&str> = private_spans(input).1.iter().map(|it| it.what).collect();
        let remarks: Vec<&str> = remarks.into_iter().collect();
        assert_eq!(Value::from(remarks), case["warnings"], "{case}");
        let gate = gate().only(Only::Private);
        assert_eq!(
            gate.redact(case["input"].as_str().unwrap_or_default()).as_str(),
            case["recommended"],
            "{case}"
        );
    }
    for case in cases(&all, "file_private") {
        let private = is_private_file(case["input"].as_str().unwrap_or_default());
        assert_eq!(private, case["recommended"], "{case}");
    }
}

#[test]
fn published_pii_cases_hold() {
    let Some(all) = published("memory_lite.json") else { return };
    for case in cases(&all, "pii") {
        let mut report = Report::default();
        let gate = gate().only(Only::Pii);
        let text = gate.redact_into(case["input"].as_str().unwrap_or_default(), &mut report);
        assert_eq!(text.as_str(), case["recommended"]["text"], "{case}");
        assert_eq!(serde_json::json!(report.counts), case["recommended"]["counts"], "{case}");
    }
}

/// Pieces of forms that only mask a value that looks like a secret.
const WEAK: [&str; 12] = [
    "Tr0ub4dor-9x",
    "DB_PASSWORD to ",
    " is the root password",
    "log in as ops with ",
    " gets you in",
    "пароль от сервера: Ключ-42",
    "echo ",
    " > ~/.vault_pass",
    "expect \"password:\"\nsend \"",
    ".",
    "1736937000",
    "x@2x.png",
];

const PIECES: &[&str] = &[
    "<private>",
    "</private>",
    "<private x",
    "- ",
    "> ",
    "`",
    "\n",
    " ",
    "a",
    "password",
    "=",
    ": ",
    "\"",
    "'",
    "\\",
    "token",
    "hunter2",
    "://u:",
    "@h.org",
    "a@b.org",
    "5551234567",
    "TR33 0006 1005 1978 6457 8413 26",
    "-----BEGIN PRIVATE KEY-----",
    "MIIEpAIBAAKCAQEA0Z3VS5",
    "-----END ",
    "Bearer ",
    "Authorization: ",
    "Cookie: a=",
    "bcdefg1;",
    "4111 1111 1111 1111",
    ",",
    "}",
    "{",
    "<SECRET>",
    "<EMAIL>",
    "12 Main Street",
    "API_KEY=",
    "<",
    ">",
    "\u{15f}",
    "curl -u a:b",
    "--token ",
    "key",
    "?sig=",
    "&",
    "\\n",
    "sk-",
    "AbCd1234EfGh5678IjKl",
    "eyJhbGciOi.eyJzdWIiOi.",
    "0532",
    "-",
    "+",
    "(",
    "[",
    "name: ",
    "value",
    "ENV ",
    "mysql -p",
    "Digest ",
    "nc=",
    "letmein",
    "11111111-2222-4333-8444-555555555555",
    "1\u{2192}",
    "\0",
    "\u{200b}",
    "\x1b[1m",
    "curl -u \\\n a:b1",
    "[\"curl\",\"-u\",\"a:b1\"]",
    "args:\n- -u\n- a:b1\n",
    "tel 0171 / 3948 572",
    "12 rue des Lilas, 69003 Lyon",
    "recovery codes: a1b2c3",
    "git@h.org:x",
    "2021 2022 2023 2024",
    "user bob, ",
    "user: bob, password: marshtulip",
    ";Pwd={",
    "identified by '",
    "DNI 12345678Z",
];

fn pieces() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select([PIECES, &WEAK].concat()), 0..14)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(crate::testing::cases(2_000))]
    #[test]
    fn redacting_twice_changes_nothing(text in pieces()) {
        let once = gate().redact(&text);
        prop_assert!(!once.as_str().contains('\0'));
        let twice = gate().redact(once.as_str());
        prop_assert_eq!(twice.as_str(), once.as_str());
    }
}

proptest! {
    #[test]
    fn any_text_passes(text in "\\PC{0,80}") {
        let once = gate().redact(&text);
        let twice = gate().redact(once.as_str());
        prop_assert_eq!(twice.as_str(), once.as_str());
    }
}
