//! A recorded request is answered; for any other the error says why it is stale.

use super::super::wire::request_tests::question;
use super::*;
use crate::domain::{Call, Finish, Message, OutputMode, Role, ToolSpec, Usage};
use crate::privacy::Gate;
use std::sync::Arc;

fn reply(arguments: &str) -> Reply {
    let gate = Gate::new(&[]);
    Reply {
        calls: vec![Call { name: "write_points".to_owned(), arguments: gate.redact(arguments) }],
        content: gate.redact("two\nlines"),
        refusal: None,
        finish: Finish::ToolCalls,
        usage: Usage { prompt_tokens: 9, cached_tokens: 3, completion_tokens: 2 },
    }
}

/// A cassette with one reply, to the `ForcedTool` request.
fn one() -> Cassette {
    let mut file = CassetteFile::new(Origin::Recorded, "one door");
    file.push(&question(OutputMode::ForcedTool), &reply("{}"));
    let (mut cassette, mut findings) = (Cassette::default(), Vec::new());
    cassette.add("door", &file, &mut findings);
    assert_eq!(findings, []);
    cassette
}

#[track_caller]
fn check_stale(change: impl FnOnce(&mut Request), expected: &str) {
    let mut request = question(OutputMode::ForcedTool);
    change(&mut request);
    let error = one().answer(&request).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Stale);
    let (_, differences) = error.detail.split_once("case door, which differs in: ").unwrap();
    assert_eq!(differences, expected);
}

#[test]
fn stale_question_says_what_changed() {
    let said = |text: &str| Gate::new(&[]).redact(text);
    check_stale(|r| r.model = "large".to_owned(), "model (kept small, asked large)");
    check_stale(|r| r.rung = OutputMode::Text, "rung (kept forced_tool, asked text)");
    check_stale(|r| r.messages[0].content = said("Other rules."), "prompt");
    check_stale(|r| r.messages[1].content = said("Other words."), "slice");
    check_stale(
        |r| r.messages.push(Message { role: Role::User, content: said("Again.") }),
        "later messages",
    );
    check_stale(|r| r.temperature = None, "settings");
    check_stale(|r| r.generation = 1, "generation");
    check_stale(
        |r| {
            let parameters = serde_json::json!({"type": "object"});
            let description = r.tool.description.clone();
            r.tool = Arc::new(ToolSpec::new(r.tool.name, description, parameters));
        },
        "schema",
    );
}

#[test]
fn empty_cassette_says_so() {
    let error = Cassette::default().answer(&question(OutputMode::Text)).unwrap_err();
    assert_eq!(error.detail, "the cassette is empty; record one");
}

#[test]
fn nearest_is_the_one_with_the_same_slice() {
    let mut other = question(OutputMode::ForcedTool);
    other.messages[1].content = Gate::new(&[]).redact("Other words.");
    let mut file = CassetteFile::new(Origin::HandWritten, "");
    file.push(&other, &reply("{}"));
    let mut cassette = one();
    cassette.add("a-other", &file, &mut Vec::new());
    other.messages[0].content = Gate::new(&[]).redact("New rules.");
    let error = cassette.answer(&other).unwrap_err();
    assert!(error.detail.contains("case a-other, which differs in: prompt"), "{}", error.detail);
}

#[test]
fn what_is_saved_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let (forced, text) = (question(OutputMode::ForcedTool), question(OutputMode::Text));
    let answers = [reply("{\"points\":[\"blue\"]}"), reply("{\"points\": [\n")];
    let mut file = CassetteFile::new(Origin::Recorded, "doors");
    file.push(&forced, &answers[0]);
    file.save(folder.path(), "a").unwrap();
    let mut file = CassetteFile::new(Origin::Imported, "doors");
    file.push(&text, &answers[1]);
    file.push(&forced, &answers[1]);
    file.save(folder.path(), "b").unwrap();
    let (cassette, findings) = Cassette::load(folder.path()).unwrap();
    assert_eq!(cassette.answer(&forced), Ok(&answers[0]), "the first counts");
    assert_eq!(cassette.answer(&text), Ok(&answers[1]));
    assert_eq!(cassette.origins(), Origins { recorded: 1, hand_written: 0, imported: 1 });
    let rules: Vec<_> = findings.iter().map(|finding| finding.rule.as_ref()).collect();
    assert_eq!(rules, ["answered-twice"]);
    file.save(folder.path(), "b").unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file stays");
}

#[test]
fn bad_file_is_one_finding_without_its_words() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        io::Write::write_all(
            &mut fs::File::create(folder.path().join(name)).unwrap(),
            text.as_bytes(),
        )
        .unwrap();
    };
    put("a.json", "{");
    put("b.json", "{\"origin\": \"hush\"}");
    put("c.json", "{\"origin\": \"recorded\", \"exchanges\":\n \"hush\"}");
    put("d.json", "{\"origin\": \"recorded\", \"exchanges\": [], \"extra\": 1}");
    put(
        "e.json",
        "{\"origin\": \"hand-written\", \"exchanges\": [{\"request\": {}, \"reply\": {}}]}",
    );
    put("notes.md", "not read");
    let (cassette, findings) = Cassette::load(folder.path()).unwrap();
    assert!(cassette.is_empty());
    let details: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(details.len(), 5, "{details:?}");
    for (detail, part) in details.iter().zip([
        "EOF while parsing",
        "expected one of `recorded`, `hand-written`, `imported`",
        "line 2: ",
        "unknown field `extra`",
        "missing field `digest`",
    ]) {
        assert!(detail.contains(part) && detail.contains("bad-cassette"), "{detail}");
    }
    assert!(!details[2].contains("hush"), "{}", details[2]);
}

#[test]
fn person_writes_a_short_one() {
    let text = format!(
        r#"{{"origin": "hand-written", "exchanges": [{{"request": {{"digest": "{}"}},
        "reply": {{"calls": [{{"name": "write_points", "arguments": {{"points": ["blue"]}}}}]}}}}]}}"#,
        question(OutputMode::Text).digest()
    );
    let mut cassette = Cassette::default();
    cassette.add("short", &serde_json::from_str(&text).unwrap(), &mut Vec::new());
    let reply = cassette.answer(&question(OutputMode::Text)).unwrap();
    assert_eq!(reply.calls[0].arguments.as_str(), "{\"points\":[\"blue\"]}");
    assert_eq!(reply.finish, Finish::ToolCalls);
}
