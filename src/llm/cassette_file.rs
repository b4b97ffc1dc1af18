//! One file of a cassette: exchanges that a person can read, compare and write. Text with several lines
//! is a list of lines, JSON stands as JSON.

use crate::adapters::files;
use crate::domain::{
    Call, Digest, Finish, Message, OutputMode, Reply, Request, RequestDigest, Role, ToolSpec, Usage,
};
use crate::llm::tool::published_of;
use crate::privacy::Redacted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// The file in `schemas/` that says what a cassette holds. A breaking change makes the next version.
const SCHEMA_NAME: &str = "cassette.v1.json";

/// The file that is published in `schemas/`, name and content.
pub(crate) fn schema_file() -> (String, String) {
    (SCHEMA_NAME.to_owned(), published_of::<CassetteFile>())
}

/// The longest name of a case, in bytes, so that `<case>.json` fits every file system.
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
    /// What the case shows, for people.
    #[serde(default)]
    pub about: String,
    /// The exchanges, in the order in which they took place.
    pub(super) exchanges: Vec<Exchange>,
}

impl CassetteFile {
    /// A file without exchanges.
    pub fn new(origin: Origin, about: impl Into<String>) -> CassetteFile {
        CassetteFile { origin, about: about.into(), exchanges: Vec::new() }
    }

    /// Adds an exchange. What comes from requests and replies has passed the gate.
    pub fn push(&mut self, request: &Request, reply: &Reply) {
        let (request, reply) = (Question::of(request), Answer::of(reply));
        self.exchanges.push(Exchange { request, reply });
    }

    /// Number of exchanges.
    pub fn len(&self) -> usize {
        self.exchanges.len()
    }

    /// Returns whether it holds no exchange.
    pub fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// Removes the answers to these requests.
    pub(crate) fn remove(&mut self, requests: &BTreeSet<RequestDigest>) {
        self.exchanges.retain(|it| !requests.contains(&it.request.digest));
    }

    /// The requests that it answers.
    pub fn requests(&self) -> impl Iterator<Item = RequestDigest> {
        self.exchanges.iter().map(|it| it.request.digest)
    }

    /// The model that its first question names.
    pub fn model(&self) -> Option<&str> {
        let named = self.exchanges.iter().map(|exchange| exchange.request.model.as_str());
        named.into_iter().find(|model| !model.is_empty())
    }

    /// The file as it is written.
    pub fn text(&self) -> String {
        // Text, lists and numbers always have a JSON.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Writes `<folder>/<case>.json` whole, in place of an older one; makes the folder if need be.
    ///
    /// # Errors
    /// `InvalidInput` for a name with anything but letters, digits, `.`, `_` and `-`; else the disk's.
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
    pub(super) request: Question,
    pub(super) reply: Answer,
}

/// A request as a person reads it. Only the digest is looked up; the rest says what became of it when
/// it is stale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
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
    pub(super) messages: Vec<Spoken>,
}

impl Question {
    pub(super) fn of(request: &Request) -> Question {
        let spoken = |message: &Message| Spoken {
            role: message.role,
            content: Prose::of(message.content.as_str()),
        };
        Question {
            digest: request.digest(),
            model: request.model.clone(),
            rung: Some(request.rung),
            tool: request.tool.name.to_owned(),
            schema: Some(schema_digest(&request.tool)),
            reply_tokens_max: request.reply_tokens_max,
            temperature: request.temperature,
            generation: request.generation,
            messages: request.messages.iter().map(spoken).collect(),
        }
    }
}

/// The digest of what a tool is for and takes.
fn schema_digest(tool: &ToolSpec) -> Digest {
    Digest::of(&["schema", &tool.description, tool.schema()])
}

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Spoken {
    pub(super) role: Role,
    pub(super) content: Prose,
}

/// A reply as a person writes it; what is left out is empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<Called>,
    #[serde(default, skip_serializing_if = "Prose::is_empty")]
    content: Prose,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refusal: Option<Prose>,
    #[serde(default)]
    finish: Option<Finish>,
    #[serde(default)]
    usage: Usage,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Called {
    name: String,
    arguments: Prose,
}

impl Answer {
    fn of(reply: &Reply) -> Answer {
        let called = |call: &Call| Called {
            name: call.name.clone(),
            arguments: Prose::of(call.arguments.as_str()),
        };
        Answer {
            calls: reply.calls.iter().map(called).collect(),
            content: Prose::of(reply.content.as_str()),
            refusal: reply.refusal.as_ref().map(|words| Prose::of(words.as_str())),
            finish: Some(reply.finish),
            usage: reply.usage,
        }
    }

    /// The reply, as it was.
    pub(super) fn reply(&self) -> Reply {
        let text = |prose: &Prose| Redacted::reopened(prose.text());
        let call =
            |call: &Called| Call { name: call.name.clone(), arguments: text(&call.arguments) };
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
pub(super) enum Prose {
    /// As it is.
    Text(String),
    /// Joined by newlines.
    Lines(Vec<String>),
    /// Written without spaces.
    Object(serde_json::Map<String, Value>),
}

impl Default for Prose {
    fn default() -> Prose {
        Prose::Text(String::new())
    }
}

impl Prose {
    /// The most readable form that gives back the same bytes.
    pub(super) fn of(text: &str) -> Prose {
        if text.starts_with('{')
            && let Ok(Value::Object(map)) = serde_json::from_str(text)
        {
            let object = Prose::Object(map);
            if object.text() == text {
                return object;
            }
        }
        if text.contains('\n') {
            return Prose::Lines(text.split('\n').map(str::to_owned).collect());
        }
        Prose::Text(text.to_owned())
    }

    /// The text.
    pub(super) fn text(&self) -> String {
        match self {
            Prose::Text(text) => text.clone(),
            Prose::Lines(lines) => lines.join("\n"),
            Prose::Object(map) => serde_json::to_string(map).unwrap_or_default(),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Prose::Text(text) => text.is_empty(),
            Prose::Lines(_) | Prose::Object(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::tests::question;
    use super::*;

    proptest::proptest! {
        #[test]
        fn prose_gives_back_the_same_bytes(text in "(\\{\"a\":[0-9.e]{1,4}\\}|[\\n\\r{}\\[\\]\"a:é ]{0,12})") {
            let prose = Prose::of(&text);
            assert_eq!(prose.text(), text);
            let written = serde_json::to_string(&prose).unwrap();
            assert_eq!(serde_json::from_str::<Prose>(&written).unwrap().text(), text);
        }
    }

    #[test]
    fn json_stands_as_json_and_lines_as_lines() {
        assert!(matches!(Prose::of("{\"a\":[1,2]}"), Prose::Object(_)));
        assert!(matches!(Prose::of("{\"a\": 1}"), Prose::Text(_)), "spaces would be lost");
        assert_eq!(
            Prose::of("a\n\nb\n"),
            Prose::Lines(["a", "", "b", ""].map(str::to_owned).into())
        );
    }

    #[test]
    fn file_shows_all_that_a_request_shows() {
        let request = question(OutputMode::ForcedTool);
        let shown = serde_json::to_value(Question::of(&request)).unwrap();
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
