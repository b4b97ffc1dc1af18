use super::*;
use crate::domain::{
    Attempt, CLAIMS_MAX, Call, Digest, Discussion, Finish, SessionId, SliceId, Usage,
};
use crate::extract::TOOL_NAME;
use crate::llm::prompt::Prompts;
use crate::text::lenient_json::tests::answers;
use proptest::prelude::*;
use serde_json::{Value, json};

pub(super) fn start_on(rung: OutputMode) -> (Exchange, Request) {
    let asking = ExtractionSpec::new("small-model", "English", Arc::new(Prompts::built_in()));
    let slice = Slice {
        id: SliceId(Digest::of(&["slice"])),
        session: SessionId(Digest::of(&["session"])),
        index: 0,
        text: Redacted::reopened("[User] Use SQLite.".to_owned()),
        parts: vec![],
        tokens: 5,
    };
    Exchange::start(&Arc::new(asking), &slice, None, rung, 0)
}

fn passed(text: &str) -> Redacted {
    Redacted::reopened(text.to_owned())
}

pub(super) fn reply(calls: &[(&str, &str)], content: &str, finish: Finish) -> Reply {
    let call = |(name, arguments): &(&str, &str)| Call {
        name: (*name).to_owned(),
        arguments: passed(arguments),
    };
    Reply {
        calls: calls.iter().map(call).collect(),
        content: passed(content),
        refusal: None,
        finish,
        usage: Usage::default(),
    }
}

pub(super) fn called(arguments: &str) -> Reply {
    reply(&[(TOOL_NAME, arguments)], "", Finish::ToolCalls)
}

fn said(content: &str) -> Reply {
    reply(&[], content, Finish::Stop)
}

fn topics(names: &[&str]) -> String {
    let topic = |name: &&str| json!({"topic": name, "points": []});
    let topics: Vec<Value> = names.iter().map(topic).collect();
    json!({"decisions": [], "discussions": topics, "attempts": [], "requests": []}).to_string()
}

fn claim(name: &str) -> Claim {
    Claim::Discussion(Discussion { topic: name.to_owned(), points: vec![] })
}

/// Passes on the replies one by one; only the last may end the exchange.
#[track_caller]
fn run(rung: OutputMode, replies: &[Reply]) -> (Vec<Request>, Step<Outcome>) {
    let (mut exchange, first) = start_on(rung);
    let mut requests = vec![first];
    for (n, reply) in replies.iter().enumerate() {
        match exchange.reply(reply) {
            Step::Ask(request) => requests.push(request),
            step @ Step::Done(_) => {
                assert_eq!(n + 1, replies.len(), "ended early: {step:?}");
                assert_eq!(exchange.asks as usize, requests.len());
                return (requests, step);
            }
        }
    }
    panic!("still asking: {:?}", requests.last().map(words));
}

#[track_caller]
pub(super) fn check(
    replies: &[Reply],
    claims: &[Claim],
    rules: &[&str],
) -> (Vec<Request>, Extraction) {
    let (requests, step) = run(OutputMode::ForcedTool, replies);
    let Step::Done(Ok(extraction)) = step else { panic!("{step:?}") };
    assert_eq!(extraction.claims, claims);
    let found: Vec<&str> = extraction.findings.iter().map(|it| it.rule.as_ref()).collect();
    assert_eq!(found, rules);
    (requests, extraction)
}

#[track_caller]
fn check_stuck(rung: OutputMode, replies: &[Reply], kind: FailureKind) -> (Vec<Request>, Failure) {
    let (requests, step) = run(rung, replies);
    let Step::Done(Err(failure)) = step else { panic!("{step:?}") };
    assert_eq!(failure.kind, kind);
    (requests, failure)
}

fn words(request: &Request) -> String {
    request.messages.last().map(|it| it.content.as_str().to_owned()).unwrap_or_default()
}

#[test]
fn a_good_call_is_all_it_takes() {
    let (requests, extraction) =
        check(&[called(&topics(&["a", "b"]))], &[claim("a"), claim("b")], &[]);
    assert_eq!(extraction.rung, OutputMode::ForcedTool);
    let roles: Vec<Role> = requests[0].messages.iter().map(|it| it.role).collect();
    assert_eq!(roles, [Role::System, Role::User]);
    assert!(!requests[0].messages[0].content.as_str().contains("Use SQLite"));
    assert!(requests[0].messages[1].content.as_str().contains("[User] Use SQLite."));
}

#[test]
fn the_reason_for_stopping_is_not_trusted() {
    for finish in [Finish::Stop, Finish::Length, Finish::ContentFilter, Finish::Other] {
        check(&[reply(&[(TOOL_NAME, &topics(&["a"]))], "", finish)], &[claim("a")], &[]);
    }
}

#[test]
fn only_broken_claims_are_asked_for_again() {
    let broken = r#"{"decisions": [], "discussions": [{"topic": "a", "points": []}, {"points": []}],
        "attempts": [{"action": "b", "result": "c", "succeeded": "partial"}], "requests": []}"#;
    let mended = r#"{"decisions": [], "discussions": [], "requests": [],
        "attempts": [{"action": "b", "result": "c", "succeeded": false}]}"#;
    let attempt = Attempt { action: "b".into(), result: "c".into(), succeeded: false };
    let replies = [called(broken), called(mended)];
    let (requests, _) = check(&replies, &[claim("a"), Claim::Attempt(attempt)], &[]);
    let roles: Vec<Role> = requests[1].messages.iter().map(|it| it.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::User]);
    let complaint = words(&requests[1]);
    assert!(complaint.contains("are kept: 1."), "{complaint}");
    assert!(complaint.contains("discussions[1].topic: missing"), "{complaint}");
    assert!(complaint.contains("a partial success is false"), "{complaint}");
    assert!(requests[1].messages[2].content.as_str().contains("partial"));
}

#[test]
fn what_stays_broken_is_reported_and_the_rest_kept() {
    let broken = r#"{"discussions": [{"topic": "a", "points": []}, {"points": []}]}"#;
    let replies = [called(broken), called(broken), called(broken)];
    let (_, extraction) = check(&replies, &[claim("a")], &["missing-array", "broken-claim"]);
    assert_eq!(extraction.findings[1].severity, Severity::Error);
    check(
        &[called(broken), said("Sorry.")],
        &[claim("a")],
        &["missing-array", "no-answer", "broken-claim"],
    );
    let broken = r#"{"discussions": [{"points": []}]}"#;
    let replies = [called(broken), called(broken), called(broken)];
    let (_, failure) = check_stuck(OutputMode::ForcedTool, &replies, FailureKind::Malformed);
    assert!(failure.findings.iter().any(|it| it.rule == "broken-claim"));
}

#[test]
fn a_broken_claim_that_is_left_out_when_asked_again_is_reported() {
    let broken = r#"{"discussions": [{"topic": "a", "points": []}, {"points": []}]}"#;
    let findings = ["missing-array", "omitted-claim"];
    check(&[called(broken), called(&topics(&[]))], &[claim("a")], &findings);
}

#[test]
fn calls_of_one_reply_are_joined() {
    let (one, two) = (topics(&["a", "b"]), topics(&["b", "c"]));
    let both = reply(&[(TOOL_NAME, &one), (TOOL_NAME, &two)], "", Finish::ToolCalls);
    check(&[both], &[claim("a"), claim("b"), claim("c")], &["several-calls"]);
}

#[test]
fn another_tool_counts_if_its_arguments_fit() {
    let fits = reply(&[("record", &topics(&["a"]))], "", Finish::ToolCalls);
    check(&[fits], &[claim("a")], &["wrong-tool"]);
    let other = reply(&[("get_weather", r#"{"city": "Bonn"}"#)], "", Finish::ToolCalls);
    let (requests, _) = check(&[other, called(&topics(&[]))], &[], &[]);
    assert!(words(&requests[1]).starts_with("You did not hand anything over"));
}

#[test]
fn json_in_words_is_taken() {
    let fenced = format!("Here it is:\n```json\n{}\n```", topics(&["a"]));
    check(&[said(&fenced)], &[claim("a")], &["code-fence", "found-in-text"]);
    let (_, step) = run(OutputMode::JsonObject, &[said(&topics(&["a"]))]);
    let Step::Done(Ok(extraction)) = step else { panic!("{step:?}") };
    assert_eq!((extraction.rung, extraction.findings.len()), (OutputMode::JsonObject, 0));
}

#[test]
fn other_json_in_words_is_no_answer() {
    let other = said(r#"I changed {"name": "x", "version": to be"#);
    let (requests, _) = check(&[other, called(&topics(&[]))], &[], &[]);
    assert!(words(&requests[1]).starts_with("You did not hand anything over"));
}

#[test]
fn silence_is_reminded_once_then_the_ladder_is_climbed_down() {
    let silence = vec![said("I see."); 7];
    let (requests, _) = check_stuck(OutputMode::ForcedTool, &silence, FailureKind::NoCall);
    let rungs: Vec<OutputMode> = requests.iter().map(|it| it.rung).collect();
    let mut expected = vec![OutputMode::ForcedTool];
    expected.extend(OutputMode::ALL);
    assert_eq!(rungs, expected);
    assert!(requests[5].messages[0].content.as_str().contains("There is no tool here"));
    let digests: std::collections::BTreeSet<_> = requests.iter().map(Request::digest).collect();
    assert_eq!(digests.len(), requests.len(), "no question is asked twice");
}

#[test]
fn empty_arguments_are_no_call() {
    for arguments in ["", "null", "  "] {
        let (requests, _) =
            check(&[called(arguments), called(&topics(&["a"]))], &[claim("a")], &[]);
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[1].messages.len(), 4);
    }
}

#[test]
fn an_object_without_lists_is_asked_for_again() {
    let other = called(r#"{"answer": 1}"#);
    let (requests, _) = check(&[other, called(&topics(&["a"]))], &[claim("a")], &[]);
    assert!(words(&requests[1]).contains("none of the four lists is present"));
    check(&[called("{}")], &[], &["empty-arguments"]);
    check_stuck(OutputMode::Text, &[said("{}"), said("{}")], FailureKind::Malformed);
}

#[test]
fn a_refusal_ends_it_at_once() {
    let mut refusal = said("");
    refusal.refusal = Some(passed("I will not."));
    check_stuck(OutputMode::ForcedTool, &[refusal], FailureKind::Refused);
    check_stuck(
        OutputMode::ForcedTool,
        &[reply(&[], "", Finish::ContentFilter)],
        FailureKind::Refused,
    );
}

#[test]
fn a_cut_answer_is_asked_for_again_and_replaced() {
    let cut = r#"{"discussions": [{"topic": "a", "points": []}, {"topic": "b", "poi"#;
    let replies = [called(cut), called(&topics(&["x", "y"]))];
    let rules = ["cut-json", "missing-array", "truncated"];
    let (requests, _) = check(&replies, &[claim("x"), claim("y")], &rules);
    assert!(words(&requests[1]).contains("arrived whole: 1."));
}

#[test]
fn two_cut_answers_are_joined() {
    let one = r#"{"discussions": [{"topic": "a", "points": []}, {"topic": "b", "poi"#;
    let two = r#"{"discussions": [{"topic": "a", "points": []}, {"topic": "c", "points": []}, {""#;
    let rules = ["cut-json", "missing-array", "truncated"];
    check(&[called(one), called(two)], &[claim("a"), claim("c")], &rules);
}

#[test]
fn an_extraction_says_that_no_answer_was_whole() {
    let cut = r#"{"discussions": [{"topic": "a", "points": []}, {"topic": "b", "poi"#;
    let whole = topics(&["a"]);
    let is_cut = |replies: &[Reply]| {
        let (_, step) = run(OutputMode::ForcedTool, replies);
        let Step::Done(Ok(extraction)) = step else { panic!("{step:?}") };
        extraction.is_cut
    };
    assert!(is_cut(&[called(cut), called(cut)]));
    assert!(is_cut(&[called(cut), said("Sorry.")]));
    assert!(!is_cut(&[called(cut), called(&whole)]));
    assert!(!is_cut(&[called(&whole)]));
}

#[test]
fn a_smaller_answer_does_not_replace_what_was_salvaged() {
    let cut = r#"{"discussions": [{"topic": "a", "points": []}, {"topic": "b", "poi"#;
    let rules = ["cut-json", "missing-array", "truncated"];
    check(&[called(cut), called(&topics(&[]))], &[claim("a")], &rules);
    check(
        &[called(cut), said("Sorry.")],
        &[claim("a")],
        &["cut-json", "missing-array", "truncated", "no-answer"],
    );
}

#[test]
fn an_answer_that_broke_off_before_the_first_claim_is_no_extraction() {
    let cut = reply(&[], "Let me think about", Finish::Length);
    let replies = vec![cut; 3];
    check_stuck(OutputMode::Text, &replies, FailureKind::CutOff);
    let replies = vec![called(r#"{"decisions": [], "discu"#); 3];
    check_stuck(OutputMode::Text, &replies, FailureKind::CutOff);
}

#[test]
fn a_refused_rung_leads_to_the_next() {
    let (mut exchange, _) = start_on(OutputMode::ForcedTool);
    let mut rungs = vec![];
    while let Step::Ask(request) = exchange.output_mode_refused() {
        rungs.push(request.rung);
    }
    assert_eq!(rungs, OutputMode::ALL[1..]);
    assert!(matches!(exchange.output_mode_refused(), Step::Done(Err(_))));
}

#[test]
fn stopping_keeps_what_was_good() {
    let (mut exchange, _) = start_on(OutputMode::ForcedTool);
    exchange.reply(&called(r#"{"discussions": [{"topic": "a", "points": []}, {"points": []}]}"#));
    assert_eq!(exchange.kept.len(), 1);
    let Step::Done(Ok(extraction)) = exchange.stop() else { panic!("stuck") };
    assert_eq!(extraction.claims, [claim("a")]);
    let (mut exchange, _) = start_on(OutputMode::ForcedTool);
    assert!(matches!(exchange.stop(), Step::Done(Err(_))));
}

#[test]
fn an_endless_answer_is_shown_in_part() {
    let long = "é".repeat(200_000);
    let (mut exchange, _) = start_on(OutputMode::ForcedTool);
    let Step::Ask(request) = exchange.reply(&said(&long)) else { panic!("ended") };
    assert!(request.messages[2].content.len() < 25_000);
}

fn replies() -> impl Strategy<Value = Reply> {
    let arguments = prop_oneof![
        answers().prop_map(|it| it.to_string()),
        (answers(), any::<prop::sample::Index>()).prop_map(|(it, at)| {
            let text = it.to_string();
            text.chars().take(at.index(text.len())).collect()
        }),
        (answers(), "[a-z]{1,3}").prop_map(|(it, key)| {
            it.to_string().replacen("topic", &key, 1).replacen("chosen", &key, 1)
        }),
        Just(String::new()),
        Just("null".to_owned()),
        Just("{}".to_owned()),
        "\\PC{0,20}",
    ];
    let name = prop_oneof![4 => Just(TOOL_NAME), 1 => Just("other")];
    let finish = prop::sample::select(Finish::ALL.to_vec());
    let calls = prop::collection::vec((name, arguments.clone()), 0..3);
    (calls, arguments, finish, prop::bool::weighted(0.1)).prop_map(
        |(calls, content, finish, refused)| {
            let calls: Vec<(&str, &str)> =
                calls.iter().map(|(name, it)| (*name, it.as_str())).collect();
            let mut reply = reply(&calls, &content, finish);
            reply.refusal = refused.then(|| passed("no"));
            reply
        },
    )
}

proptest! {
    #[test]
    fn it_ends(script in prop::collection::vec(prop::option::weighted(0.8, replies()), 12), rung in prop::sample::select(OutputMode::ALL.to_vec())) {
        let (mut exchange, first) = start_on(rung);
        let mut sent = String::new();
        let mut requests = vec![first];
        for reply in script {
            let step = match &reply {
                Some(reply) => {
                    reply.calls.iter().for_each(|call| sent.push_str(call.arguments.as_str()));
                    sent.push_str(reply.content.as_str());
                    exchange.reply(reply)
                }
                None => exchange.output_mode_refused(),
            };
            match step {
                Step::Ask(request) => requests.push(request),
                Step::Done(Ok(extraction)) => {
                    prop_assert!(extraction.claims.len() <= CLAIMS_MAX);
                    let folded = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
                    let sent = folded(&sent.replace("\\n", " "));
                    for (_, text) in extraction.claims.iter().flat_map(Claim::strings) {
                        prop_assert!(text.contains('\\') || sent.contains(&folded(text)), "{:?}", text);
                    }
                    break;
                }
                Step::Done(Err(failure)) => {
                    prop_assert!(!failure.detail.is_empty());
                    break;
                }
            }
        }
        prop_assert!(requests.len() <= ASKS_MAX as usize);
        prop_assert!(exchange.asks as usize == requests.len());
    }
}
