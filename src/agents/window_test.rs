//! Window use in the tail of a transcript.

use super::*;
use crate::testing::shared;

/// Line of an answer.
pub(super) fn answered(tokens: u64, more: &str) -> String {
    format!(
        r#"{{"type":"assistant",{more}"message":{{"model":"m","usage":{{"input_tokens":1,"cache_read_input_tokens":{tokens},"cache_creation_input_tokens":2}}}}}}"#
    )
}

/// Checks the usage in all of `lines`, and that every tail agrees or is cut off.
#[track_caller]
fn check_usage(lines: &[&str], expected: Option<u64>) {
    let text = lines.join("\n");
    let expected = expected
        .map_or(Tail::Nothing, |tokens| Tail::Usage(Usage { tokens, model: Some("m".to_owned()) }));
    assert_eq!(last_usage(text.as_bytes(), true), expected);
    for from in 0..text.len() {
        let tail = last_usage(&text.as_bytes()[from..], false);
        assert!(tail == expected || tail == Tail::CutOff, "{from}: {tail:?}");
    }
}

#[test]
fn the_last_answer_of_the_main_conversation_tells_the_usage() {
    let (one, two) = (answered(10, ""), answered(20, ""));
    let tool = r#"{"type":"user","message":{"content":"\"usage\":{\"input_tokens\":9}"}}"#;
    check_usage(&[&one, &two, tool, ""], Some(23));
    check_usage(&[&one, &answered(20, r#""isSidechain":true,"#)], Some(13));
    check_usage(&[&one, &answered(20, r#""isApiErrorMessage":true,"#)], Some(13));
    check_usage(&[&one, &two[..40], "no line", "{\"type\":\"assistant\"}"], Some(13));
    check_usage(
        &[&one, r#"{"type":"progress","data":{"message":{"usage":{"input_tokens":5}}}}"#],
        Some(13),
    );
    check_usage(
        &[
            &one,
            r#"{"type":"assistant","message":{"model":"<synthetic>","usage":{"input_tokens":5}}}"#,
        ],
        Some(13),
    );
    check_usage(
        &[&one, r#"{"type":"assistant","message":{"model":"m","usage":{"input_tokens":-1}}}"#],
        Some(13),
    );
    check_usage(&[tool], None);
    check_usage(&[""], None);
}

#[test]
fn nothing_is_known_after_a_compaction_until_the_next_answer() {
    let boundary = r#"{"type":"system","subtype":"compact_boundary","content":"x"}"#;
    let (before, after) = (answered(190_000, ""), answered(20, ""));
    let said = r#"{"type":"user","message":{"content":"subtype: compact_boundary"}}"#;
    check_usage(&[&before, boundary, said], None);
    check_usage(&[&before, boundary, &after, said], Some(23));
}

#[test]
fn the_usage_of_real_transcripts_is_found_in_their_last_64_kib() {
    let Some(folder) = shared("transcripts/claude-code") else { return };
    let files = std::fs::read_dir(folder).unwrap();
    let mut read = 0;
    for file in files {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let text = std::fs::read(&path).unwrap();
        let whole = last_usage(&text, true);
        let last = text.len().saturating_sub(TAIL_BYTES[0] as usize);
        let tail = last_usage(&text[last..], last == 0);
        assert!(tail == whole || tail == Tail::CutOff, "{}", path.display());
        read += usize::from(matches!(tail, Tail::Usage(_)));
    }
    assert!(read > 10, "{read}");
}
