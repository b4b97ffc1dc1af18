//! Outcomes of tool calls from another extractor's golden file, which lies beside the project.
//! Without it, the tests of this module still cover these rules.

use super::tests::{called, reply, start_on};
use super::*;
use crate::domain::{ClaimKind, Finish};
use crate::extract::TOOL_NAME;
use crate::testing::shared;
use serde_json::Value;

/// Tool calls of the published cases; `None` if the file is missing.
fn cases() -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(shared("golden/yoi_extract.json")?).ok()?;
    let golden: Value = serde_json::from_str(&text).ok()?;
    golden["tool_calls"].as_array().cloned()
}

/// Kinds of the claims, rules of the findings, and the complaint if asked again.
fn outcome(reply: &Reply) -> (Vec<ClaimKind>, Vec<String>, String) {
    let (mut exchange, _) = start_on(OutputMode::ForcedTool);
    match exchange.reply(reply) {
        Step::Ask(request) => {
            let complaint = request.messages.last().map(|it| it.content.as_str().to_owned());
            (vec![], vec![], complaint.unwrap_or_default())
        }
        Step::Done(Ok(it)) => (
            it.claims.iter().map(Claim::kind).collect(),
            it.findings.into_iter().map(|finding| finding.rule.into_owned()).collect(),
            String::new(),
        ),
        Step::Done(Err(failure)) => panic!("{failure:?}"),
    }
}

#[test]
fn known_calls_come_to_what_is_recommended() {
    let Some(cases) = cases() else {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "skipped: no golden file beside the project");
        return;
    };
    let mut seen = 0;
    for case in &cases {
        let name = case["name"].as_str().unwrap_or_default();
        let (claims, rules, complaint) = match case["input_sequence"].as_array() {
            None => outcome(&called(&case["input"].to_string())),
            Some(calls) => {
                let texts: Vec<String> = calls.iter().map(Value::to_string).collect();
                let calls: Vec<(&str, &str)> =
                    texts.iter().map(|text| (TOOL_NAME, text.as_str())).collect();
                outcome(&reply(&calls, "", Finish::ToolCalls))
            }
        };
        let none: [&str; 0] = [];
        match name {
            "empty" => assert_eq!((claims, rules.as_slice()), (vec![], [].as_slice())),
            "missing_arrays" => {
                assert_eq!(claims, [ClaimKind::Decision]);
                assert_eq!(rules, ["missing-array"]);
            }
            "provenance_smuggled" => {
                assert_eq!((claims, rules), (vec![], vec!["model-provenance".to_owned()]));
            }
            "decision_without_rationale" => assert!(complaint.contains("decisions[0].rationale")),
            "succeeded_as_string" => assert!(complaint.contains("a partial success is false")),
            "request_without_target" => {
                assert_eq!(claims, [ClaimKind::Request]);
                assert_eq!(rules, none);
            }
            "open_discussion" => {
                assert_eq!(claims, [ClaimKind::Discussion]);
                assert_eq!(rules, none);
            }
            "two_calls" => {
                assert_eq!(claims, [ClaimKind::Attempt]);
                assert_eq!(rules, ["several-calls"]);
            }
            _ => continue,
        }
        seen += 1;
    }
    assert!(seen > 0);
}
