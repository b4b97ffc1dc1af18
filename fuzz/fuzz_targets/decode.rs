//! Law: what is JSON is read as it is, and no text makes `decode` say what does not stand in it.
#![no_main]

use annalist::{Attempt, Decision, Discussion, PersonRequest, WriteExtracted};
use annalist::{decode_answer, validate_answer};
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// Claims that are kept of one answer.
const CLAIMS_MAX: usize = 200;

/// One of the four kinds: strings, a list, a flag.
#[derive(Arbitrary, Debug)]
struct Claim {
    kind: u8,
    one: String,
    two: String,
    list: Vec<String>,
    flag: bool,
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    text: &'a str,
    claims: Vec<Claim>,
    pretty: bool,
    cut: u16,
}

/// NUL is dropped on purpose; no answer is expected to bring it back.
fn clean(text: String) -> String {
    text.replace('\0', "")
}

fn answer(claims: Vec<Claim>) -> WriteExtracted {
    let mut all = WriteExtracted::default();
    for Claim { kind, one, two, list, flag } in claims {
        let (one, two) = (clean(one), clean(two));
        let list: Vec<String> = list.into_iter().map(clean).collect();
        match kind % 4 {
            0 => all.decisions.push(Decision { options: list, chosen: one, rationale: two }),
            1 => all.discussions.push(Discussion { topic: one, points: list }),
            2 => all.attempts.push(Attempt { action: one, result: two, succeeded: flag }),
            _ => {
                let target = list.into_iter().next();
                all.requests.push(PersonRequest { intent: one, target, summary: two });
            }
        }
    }
    all
}

/// Every string of a value; keys too.
fn strings<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => into.push(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, into)),
        Value::Object(map) => map.iter().for_each(|(key, item)| {
            into.push(key);
            strings(item, into);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fuzz_target!(|input: Input<'_>| {
    let (value, _) = decode_answer(input.text);
    // An escape is spelt otherwise than what it means; without any, each string is a quote.
    if !input.text.contains(['\\', '\0']) {
        let mut said = Vec::new();
        strings(&value, &mut said);
        for text in said {
            assert!(input.text.contains(text), "{text:?} is not in {:?}", input.text);
        }
    }
    let checked = validate_answer(value);
    assert!(checked.claims.len() <= CLAIMS_MAX);
    assert!(checked.shaped || checked.claims.is_empty());

    let answer = serde_json::to_value(answer(input.claims)).expect("an answer is JSON");
    let text = if input.pretty { format!("{answer:#}") } else { answer.to_string() };
    assert_eq!(decode_answer(&text), (answer.clone(), vec![]), "{text}");
    let end = text.floor_char_boundary(usize::from(input.cut) % (text.len() + 1));
    let (cut, _) = decode_answer(&text[..end]);
    for (list, claims) in cut.as_object().into_iter().flatten() {
        let whole = answer[list].as_array().expect("one of the four lists");
        let claims = claims.as_array().expect("a list");
        assert!(whole.starts_with(claims), "a cut answer gives whole claims only: {text}");
    }
});
