//! Text of a message's content. Joins lists of parts, replaces pictures and files with marks, and
//! drops reasoning and base64.

use crate::transcripts::json::JsonExt;
use crate::transcripts::text::push_piece;
use serde_json::Value;

/// Maximum depth of lists inside parts; real transcripts nest them once.
const DEPTH_MAX: u8 = 4;

#[derive(Default)]
pub(super) struct Words(String);

impl Words {
    pub(super) fn push(&mut self, words: &str) {
        push_piece(&mut self.0, &without_data(words), "\n\n");
    }

    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.0)
    }
}

/// Returns all text of `content`: a string, a part, or a list of them.
pub(crate) fn words_of(content: &Value) -> String {
    let mut words = Words::default();
    collect(content, &mut words, 0);
    words.take()
}

fn collect(content: &Value, words: &mut Words, depth: u8) {
    match content {
        Value::Null => {}
        Value::String(text) => words.push(text),
        Value::Array(list) if depth < DEPTH_MAX => {
            list.iter().for_each(|part| collect(part, words, depth + 1));
        }
        Value::Object(_) => match part(content) {
            Part::Words(text) => words.push(&text),
            Part::Nested(inner) if depth < DEPTH_MAX => collect(inner, words, depth + 1),
            Part::Nested(_) | Part::Nothing => {}
        },
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => words.push(&content.to_string()),
    }
}

enum Part<'p> {
    Words(String),
    Nested(&'p Value),
    Nothing,
}

fn part(part: &Value) -> Part<'_> {
    let kind = part.first_text(&["type", "content_type"]).unwrap_or_default();
    let own = || part.first_text(&["text", "value", "content", "result", "transcript", "logs"]);
    match kind {
        "thinking" | "redacted_thinking" | "reasoning" | "reasoning_content" | "thoughts"
        | "reasoning_recap" | "summary_text" | "token_budget" => Part::Nothing,
        "refusal" => Part::Words(part.first_text(&["refusal", "text"]).unwrap_or_default().into()),
        "audio_transcription" => Part::Words(own().unwrap_or_default().to_owned()),
        "tool_reference" => Part::Words(mark("tool", part.first_text(&["tool_name", "name"]))),
        "document" | "file" | "input_file" | "container_upload" => {
            Part::Words(mark("file", name(part)))
        }
        "search_result" | "web_search_result" => {
            Part::Words(mark("search result", part.first_text(&["title", "url"])))
        }
        "blob" | "uri" => Part::Words(mark(
            part.first_text(&["modality"]).unwrap_or("file"),
            part.first_text(&["uri"]),
        )),
        kind if kind.contains("image") => Part::Words(mark("image", None)),
        kind if kind.contains("audio") => Part::Words(mark("audio", None)),
        kind if kind.contains("video") => Part::Words(mark("video", None)),
        kind => match own() {
            Some(text) => Part::Words(text.to_owned()),
            None if part["content"].is_array() => Part::Nested(&part["content"]),
            None if part["text"].is_array() => Part::Nested(&part["text"]),
            None if kind.is_empty() && part.has("result") => Part::Nested(&part["result"]),
            None if kind.is_empty() && part.map().next().is_some() => Part::Words(part.to_string()),
            None if kind.is_empty() || kind.contains("text") => Part::Nothing,
            None => Part::Words(mark(kind, None)),
        },
    }
}

fn name(part: &Value) -> Option<&str> {
    let keys = ["path", "filename", "file_name", "name", "title"];
    part.first_text(&keys).or_else(|| part["file"].first_text(&keys))
}

/// Renders `[what]` or `[what name]`.
pub(super) fn mark(what: &str, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("[{what} {name}]"),
        None => format!("[{what}]"),
    }
}

/// Replaces every `data:…;base64,…` URL with a mark.
fn without_data(text: &str) -> std::borrow::Cow<'_, str> {
    const SIGN: &str = ";base64,";
    if memchr::memmem::find(text.as_bytes(), SIGN.as_bytes()).is_none() {
        return text.into();
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some(sign) = rest.find(SIGN) {
        let (before, after) = rest.split_at(sign);
        let body = after.get(SIGN.len()..).unwrap_or_default();
        let is_body = |c: char| c.is_ascii_alphanumeric() || "+/=_-%".contains(c);
        let end = body.find(|c| !is_body(c)).unwrap_or(body.len());
        match before.rfind("data:") {
            Some(start) if before.len() - start < 100 => {
                out.push_str(before.get(..start).unwrap_or_default());
                out.push_str("[data]");
            }
            Some(_) | None => {
                out.push_str(before);
                out.push_str("[base64]");
            }
        }
        rest = body.get(end..).unwrap_or_default();
    }
    out.push_str(rest);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcripts::json;

    #[track_caller]
    fn check(content: &str, expected: &str) {
        assert_eq!(words_of(&json::parse(content).unwrap()), expected);
    }

    #[test]
    fn text_parts_are_joined_by_a_blank_line() {
        check(
            r#"[{"type":"text","text":"a"},{"type":"input_text","text":"b"},"c"]"#,
            "a\n\nb\n\nc",
        );
        check(r#"[{"type":"text","value":"a"}]"#, "a");
        check(r#""a""#, "a");
        check("null", "");
    }

    #[test]
    fn pictures_and_files_become_marks() {
        check(
            r#"[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]"#,
            "[image]",
        );
        check(r#"[{"type":"image","source":{"type":"base64","data":"AAAA"}}]"#, "[image]");
        check(r#"[{"type":"input_audio","input_audio":{"data":"AAAA"}}]"#, "[audio]");
        check(r#"[{"type":"file","path":"src/a.rs","content":"fn a() {}"}]"#, "[file src/a.rs]");
        check(
            r#"[{"type":"file","file":{"filename":"a.pdf","file_data":"AAAA"}}]"#,
            "[file a.pdf]",
        );
        check(r#"[{"type":"image_asset_pointer","asset_pointer":"file-service://x"}]"#, "[image]");
    }

    #[test]
    fn base64_in_words_is_cut_out() {
        check(r#""see ![](data:image/png;base64,iVBORw0KGgo=) here""#, "see ![]([data]) here");
    }

    #[test]
    fn reasoning_never_enters() {
        check(r#"[{"type":"thinking","thinking":"a"},{"type":"reasoning","value":"b"}]"#, "");
        check(r#"[{"type":"redacted_thinking","data":"AAAA"}]"#, "");
    }

    #[test]
    fn a_refusal_is_words() {
        check(r#"[{"type":"refusal","refusal":"I cannot."}]"#, "I cannot.");
    }

    #[test]
    fn results_without_type_give_their_result() {
        check(r#"[{"query":"q","result":"r","success":true}]"#, "r");
    }

    #[test]
    fn data_in_parts_of_telemetry_becomes_a_mark() {
        check(
            r#"[{"type":"text","content":"see"},{"type":"blob","modality":"image","mime_type":"image/png","content":"AAAA"}]"#,
            "see\n\n[image]",
        );
        check(
            r#"{"type":"uri","modality":"image","uri":"https://x.test/a.png"}"#,
            "[image https://x.test/a.png]",
        );
    }
}
