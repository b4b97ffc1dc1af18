//! Law: passing the gate twice changes nothing, and what was planted never survives.
#![no_main]

use annalist::{Gate, Pii};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static GATE: LazyLock<Gate> = LazyLock::new(|| Gate::new(&Pii::ALL));

/// Made-up secrets in two halves, so that no scanner takes this file for a leak: what stands before
/// the secret, the secret, what stands behind it.
const PLANTED: [(&str, &str, &str, &str); 10] = [
    (" ", "sk-", "ant-api03-Ab12Cd34_Ef56-Gh78AA", " "),
    (" ", "AKIA", "QYLPMN5HEXAMPLE7", " "),
    (" ", "ghp_", "Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56Qr78", " "),
    (" ", "xox", "b-123456789012-123456789012-Ab12Cd34Ef56Gh78", " "),
    (" ", "AIza", "SyA12345678901234567890123456789012", " "),
    ("\n", "eyJ", "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N", "\n"),
    ("\nexport DB_PASSWORD=", "kx81Zp04", "qq7Rt55", "\n"),
    ("\n\"api_key\": \"", "kx81Zp04", "qq7Rt55", "\"\n"),
    (" postgres://ledger:", "kx81Zp04", "qq7Rt55", "@db.example.com/x "),
    ("\n<private>\n", "Mira is", " on leave", "\n</private>\n"),
];

fuzz_target!(|input: (&str, &str, u8)| {
    let (before, after, which) = input;
    let (open, head, tail, close) = PLANTED[usize::from(which) % PLANTED.len()];
    let secret = format!("{head}{tail}");
    // What says the secret itself proves nothing about the one that is planted.
    if before.contains(&secret) || after.contains(&secret) {
        return;
    }
    let text = format!("{before}{open}{secret}{close}{after}");
    for raw in [before, &text] {
        let once = GATE.redact(raw);
        assert_eq!(GATE.redact(once.as_str()).as_str(), once.as_str(), "twice is once: {raw:?}");
    }
    let passed = GATE.redact(&text);
    assert!(!passed.as_str().contains(&secret), "{secret} survived in {text:?}");
});
