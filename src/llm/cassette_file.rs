//! One file of a cassette: exchanges that a person can read, compare and write. Multi-line text is a list of lines;
//! JSON stays JSON.

use crate::adapters::files;
use crate::domain::{
    Call, Digest, Finish, Message, OutputMode, Reply, Request, RequestDigest, Role, Usage,
};
use crate::llm::tool::published_of;
use crate::privacy::Redacted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// Schema of a cassette in `schemas/`. A breaking change makes the next version.
const SCHEMA_NAME: &str = "cassette.v1.json";

pub(crate) fn schema_file() -> (String, String) {
    (SCHEMA_NAME.to_owned(), published_of::<CassetteFile>())
}

/// Maximum length of a case name in bytes, so that `<case>.json` fits every file system.
const CASE_BYTES_MAX: usize = 120;

/// Where answers come from; printed with every score that rests on them.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A model was asked by annalist.
    Recorded,
    /// A person wrote what a model might say.
    HandWritten,
    /// A model was asked by somebody else.
    Imported,
}

/// A file of exchanges. Build it with [`CassetteFile::push`], write it with [`CassetteFile::save`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CassetteFile {
    /// Where the answers come from.
    pub origin: Origin,
    /// Purpose of the case, for people.
    #[serde(default)]
    pub about: String,
    /// The exchanges, in the order in which they took place.
    pub(super) exchanges: Vec<Exchange>,
}

impl CassetteFile {
    /// Creates a file without exchanges.
    pub fn new(origin: Origin, about: impl Into<String>) -> CassetteFile {
        CassetteFile { origin, about: about.into(), exchanges: Vec::new() }
    }

    /// Adds an exchange. Requests and replies contain redacted text only.
    pub fn push(&mut self, request: &Request, reply: &Reply) {
        let (request, reply) = (RecordedRequest::of(request), RecordedReply::of(reply));
        self.exchanges.push(Exchange { request, reply });
    }

    /// Number of exchanges.
    pub fn len(&self) -> usize {
        self.exchanges.len()
    }

    /// True if there are no exchanges.
    pub fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }

    pub(crate) fn remove(&mut self, requests: &BTreeSet<RequestDigest>) {
        self.exchanges.retain(|it| !requests.contains(&it.request.digest));
    }

    /// Digests of the recorded requests.
    pub fn requests(&self) -> impl Iterator<Item = RequestDigest> {
        self.exchanges.iter().map(|it| it.request.digest)
    }

    /// Serialises the file.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Atomically writes `<folder>/<case>.json`; creates the folder if it is missing. Fails with `InvalidInput` for
    /// anything but letters, digits, `.`, `_` and `-`.
    pub fn save(&self, folder: &Path, case: &str) -> io::Result<()> {
        let lawful = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let named = !case.is_empty() && !case.starts_with('.') && case.len() <= CASE_BYTES_MAX;
        if !named || !case.bytes().all(lawful) {
            let detail = "a case is named with letters, digits, `.`, `_` and `-`";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, detail));
        }
        std::fs::create_dir_all(folder)?;
        files::replace(&folder.join(format!("{case}.json")), &self.text())
    }
}

/// A question and what was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Exchange {
    pub(super) request: RecordedRequest,
    pub(super) reply: RecordedReply,
}

/// A request as a person reads it. Only the digest is looked up; the rest says what became of it when
/// it is stale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedRequest {
    #[schemars(with = "String")]
    pub(super) digest: RequestDigest,
    #[serde(default)]
    pub(super) model: String,
    #[serde(default)]
    pub(super) rung: Option<OutputMode>,
    #[serde(default)]
    pub(super) tool: String,
    /// Digest of the tool's description and parameters, which every exchange would repeat.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub(super) schema: Option<Digest>,
    #[serde(default)]
    pub(super) reply_tokens_max: u32,
    #[serde(default)]
    pub(super) temperature: Option<f32>,
    #[serde(default)]
    pub(super) generation: u32,
    #[serde(default)]
    pub(super) messages: Vec<RecordedMessage>,
}

impl RecordedRequest {
    pub(super) fn of(request: &Request) -> RecordedRequest {
        let spoken = |message: &Message| RecordedMessage {
            role: message.role,
            content: ReadableText::of(message.content.as_str()),
        };
        let tool = &request.tool;
        RecordedRequest {
            digest: request.digest(),
            model: request.model.clone(),
            rung: Some(request.rung),
            tool: tool.name.to_owned(),
            schema: Some(Digest::of(&["schema", &tool.description, tool.schema()])),
            reply_tokens_max: request.reply_tokens_max,
            temperature: request.temperature,
            generation: request.generation,
            messages: request.messages.iter().map(spoken).collect(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedMessage {
    pub(super) role: Role,
    pub(super) content: ReadableText,
}

/// A reply as a person writes it; what is left out is empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedReply {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<RecordedCall>,
    #[serde(default, skip_serializing_if = "ReadableText::is_empty")]
    content: ReadableText,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refusal: Option<ReadableText>,
    #[serde(default)]
    finish: Option<Finish>,
    #[serde(default)]
    usage: Usage,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordedCall {
    name: String,
    arguments: ReadableText,
}

impl RecordedReply {
    fn of(reply: &Reply) -> RecordedReply {
        let called = |call: &Call| RecordedCall {
            name: call.name.clone(),
            arguments: ReadableText::of(call.arguments.as_str()),
        };
        RecordedReply {
            calls: reply.calls.iter().map(called).collect(),
            content: ReadableText::of(reply.content.as_str()),
            refusal: reply.refusal.as_ref().map(|words| ReadableText::of(words.as_str())),
            finish: Some(reply.finish),
            usage: reply.usage,
        }
    }

    pub(super) fn reply(&self) -> Reply {
        let text = |prose: &ReadableText| Redacted::reopened(prose.text());
        let call = |call: &RecordedCall| Call {
            name: call.name.clone(),
            arguments: text(&call.arguments),
        };
        let calls: Vec<Call> = self.calls.iter().map(call).collect();
        let usual = if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
        Reply {
            calls,
            content: text(&self.content),
            refusal: self.refusal.as_ref().map(text),
            finish: self.finish.unwrap_or(usual),
            usage: self.usage,
        }
    }
}

/// Text: a string, a list of lines, or a JSON object that is written out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum ReadableText {
    /// As it is.
    Text(String),
    /// Joined by newlines.
    Lines(Vec<String>),
    /// Written without spaces.
    Object(serde_json::Map<String, Value>),
}

impl Default for ReadableText {
    fn default() -> ReadableText {
        ReadableText::Text(String::new())
    }
}

impl ReadableText {
    /// Returns the most readable form that restores the same bytes.
    pub(super) fn of(text: &str) -> ReadableText {
        if text.starts_with('{')
            && let Ok(Value::Object(map)) = serde_json::from_str(text)
        {
            let object = ReadableText::Object(map);
            if object.text() == text {
                return object;
            }
        }
        if text.contains('\n') {
            return ReadableText::Lines(text.split('\n').map(str::to_owned).collect());
        }
        ReadableText::Text(text.to_owned())
    }

    pub(super) fn text(&self) -> String {
        match self {
            ReadableText::Text(text) => text.clone(),
            ReadableText::Lines(lines) => lines.join("\n"),
            ReadableText::Object(map) => serde_json::to_string(map).unwrap_or_default(),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, ReadableText::Text(text) if text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::request_tests::question;
    use super::*;

    proptest::proptest! {
        #[test]
        fn prose_gives_back_the_same_bytes(text in "(\\{\"a\":[0-9.e]{1,4}\\}|[\\n\\r{}\\[\\]\"a:é ]{0,12})") {
            let prose = ReadableText::of(&text);
            assert_eq!(prose.text(), text);
            let written = serde_json::to_string(&prose).unwrap();
            assert_eq!(serde_json::from_str::<ReadableText>(&written).unwrap().text(), text);
        }
    }

    #[test]
    fn json_stands_as_json_and_lines_as_lines() {
        assert!(matches!(ReadableText::of("{\"a\":[1,2]}"), ReadableText::Object(_)));
        assert!(
            matches!(ReadableText::of("{\"a\": 1}"), ReadableText::Text(_)),
            "spaces would be lost"
        );
        assert_eq!(
            ReadableText::of("a\n\nb\n"),
            ReadableText::Lines(["a", "", "b", ""].map(str::to_owned).into())
        );
    }

    #[test]
    fn file_shows_all_that_a_request_shows() {
        let request = question(OutputMode::ForcedTool);
        let shown = serde_json::to_value(RecordedRequest::of(&request)).unwrap();
        for (key, value) in request.to_json().as_object().unwrap() {
            assert_eq!(&shown[key], value, "{key}");
        }
    }

    #[test]
    fn case_cannot_leave_its_folder() {
        let file = CassetteFile::new(Origin::Imported, "");
        for name in ["", ".hidden", "../up", "a/b", "a b"] {
            let error = file.save(Path::new("/nowhere"), name).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
        }
    }
}
