//! A cassette: recorded model replies in a folder, replayed for the same requests. Never calls a model: a request
//! without a recording is stale. A person can read, compare and write its files: multi-line text is a list of lines;
//! JSON stays JSON.

use crate::adapters::files;
use crate::domain::{
    Call, Digest, ErrorKind, Finding, Finish, LanguageModel, Message, ModelError, OutputMode,
    Reply, Request, RequestDigest, Role, Severity, Usage,
};
use crate::llm::tool::published_of;
use crate::privacy::Redacted;
use crate::text::diff::difference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Number of answers by origin.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Origins {
    /// A model that annalist asked.
    pub recorded: u64,
    pub hand_written: u64,
    /// A model that another program asked.
    pub imported: u64,
}

impl Origins {
    /// Counts an answer.
    pub fn count(&mut self, origin: Origin) {
        *match origin {
            Origin::Recorded => &mut self.recorded,
            Origin::HandWritten => &mut self.hand_written,
            Origin::Imported => &mut self.imported,
        } += 1;
    }
}

/// Recordings by the digest of the request.
#[derive(Debug, Default)]
pub struct Cassette {
    recordings: BTreeMap<RequestDigest, Recording>,
    origins: Origins,
}

#[derive(Debug)]
struct Recording {
    case: String,
    request: RecordedRequest,
    origin: Origin,
    reply: Reply,
}

impl Cassette {
    /// Reads every `<case>.json` of `folder`. An unreadable file is a finding; an error means that the folder cannot be
    /// listed. Of two replies to one request, the first by file name is used.
    pub fn load(folder: &Path) -> io::Result<(Cassette, Vec<Finding>)> {
        let mut paths: Vec<PathBuf> = fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<_>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        let (mut cassette, mut findings) = (Cassette::default(), Vec::new());
        for path in paths {
            match read(&path) {
                Ok(file) => cassette.add(&case_of(&path), &file, &mut findings),
                Err((line, what)) => {
                    let detail = format!("{}: {what}", path.display());
                    findings.push(Finding::new(Severity::Error, "bad-cassette", line, detail));
                }
            }
        }
        Ok((cassette, findings))
    }

    /// Adds the exchanges of a file.
    pub fn add(&mut self, case: &str, file: &CassetteFile, findings: &mut Vec<Finding>) {
        for exchange in &file.exchanges {
            let place = match self.recordings.entry(exchange.request.digest) {
                Entry::Vacant(place) => place,
                // The same exchange, for example of two conversations with the same beginning.
                Entry::Occupied(other) if other.get().reply == exchange.reply.reply() => continue,
                Entry::Occupied(other) => {
                    let first = &other.get().case;
                    let detail = format!("case {case} answers a request that {first} answers too");
                    findings.push(Finding::new(Severity::Warning, "answered-twice", 0, detail));
                    continue;
                }
            };
            place.insert(Recording {
                case: case.to_owned(),
                request: exchange.request.clone(),
                origin: file.origin,
                reply: exchange.reply.reply(),
            });
            self.origins.count(file.origin);
        }
    }

    /// Reads one file of a folder. An error is one line with the place and the problem.
    pub fn read_file(path: &Path) -> Result<CassetteFile, String> {
        read(path).map_err(|(line, what)| match line {
            0 => format!("{}: {what}", path.display()),
            line => format!("{}:{line}: {what}", path.display()),
        })
    }

    /// Number of recordings by origin.
    pub fn origins(&self) -> Origins {
        self.origins
    }

    /// The model that most requests name; `None` if none names one.
    pub fn model(&self) -> Option<&str> {
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for it in self.recordings.values().filter(|it| !it.request.model.is_empty()) {
            *times.entry(&it.request.model).or_default() += 1;
        }
        times.into_iter().max_by_key(|(_, times)| *times).map(|(model, _)| model)
    }

    /// True if a request names this model.
    pub fn has_model(&self, model: &str) -> bool {
        self.recordings.values().any(|it| it.request.model == model)
    }

    /// The best output mode of any request; `None` if none names one.
    pub fn rung(&self) -> Option<OutputMode> {
        self.recordings.values().filter_map(|it| it.request.rung).min()
    }

    /// Returns the recorded reply to `request`, and its origin.
    pub fn recorded(&self, request: &Request) -> Option<(&Reply, Origin)> {
        self.recordings.get(&request.digest()).map(|it| (&it.reply, it.origin))
    }

    /// Difference between `request` and the nearest recorded one: a sentence, then the message lines that differ,
    /// which contain conversation text.
    pub fn difference(&self, request: &Request) -> String {
        self.explained(request, page)
    }

    fn explained(
        &self,
        request: &Request,
        explain: fn((&str, &RecordedRequest), &RecordedRequest) -> String,
    ) -> String {
        let asked = RecordedRequest::of(request);
        let recorded = self.recordings.values().map(|it| (it.case.as_str(), &it.request));
        nearest(recorded, &asked).map_or(EMPTY.to_owned(), |it| explain(it, &asked))
    }

    /// True if there are no recordings.
    pub fn is_empty(&self) -> bool {
        self.recordings.is_empty()
    }

    /// Returns the recorded reply; the error is always `Stale` and names the nearest request and the differences.
    pub fn answer(&self, request: &Request) -> Result<&Reply, ModelError> {
        let stale = || ModelError::new(ErrorKind::Stale, self.explained(request, sentence));
        self.recorded(request).map(|(reply, _)| reply).ok_or_else(stale)
    }
}

impl LanguageModel for Cassette {
    async fn call(&self, request: &Request) -> Result<Reply, ModelError> {
        self.answer(request).cloned()
    }
}

fn case_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn read(path: &Path) -> Result<CassetteFile, (u32, String)> {
    let length = fs::metadata(path).map_err(|error| (0, error.to_string()))?.len();
    if length > FILE_BYTES_MAX {
        return Err((0, format!("{length} bytes; a cassette has {FILE_BYTES_MAX} at most")));
    }
    let bytes = fs::read(path).map_err(|error| (0, error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let line = u32::try_from(error.line()).unwrap_or(u32::MAX);
        (line, what_is_wrong(&error))
    })
}

/// serde's message without the value that it quotes, which may be conversation text.
fn what_is_wrong(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    match text.split_once(", expected ") {
        Some((_, expected)) if !text.starts_with("unknown field") => format!("expected {expected}"),
        Some(_) | None => text.to_owned(),
    }
}

const EMPTY: &str = "the cassette is empty; record one";

/// Parts of a request with their weights for similarity. The slice weighs most.
fn parts(question: &RecordedRequest) -> [(&'static str, u32, String); 8] {
    let text = |role: Role, at: usize| {
        let mut messages = question.messages.iter().filter(|it| it.role == role);
        messages.nth(at).map(|it| it.content.text()).unwrap_or_default()
    };
    let (mut system, mut user) = (0, 0);
    let later = question.messages.iter().filter(|it| match it.role {
        Role::System => std::mem::replace(&mut system, 1) > 0,
        Role::User => std::mem::replace(&mut user, 1) > 0,
        Role::Assistant => true,
    });
    let later: Vec<String> = later.map(|it| it.content.text()).collect();
    let schema = question.schema.map(|it| it.to_string()).unwrap_or_default();
    [
        ("model", 8, question.model.clone()),
        ("rung", 2, question.rung.map_or("unknown", OutputMode::name).to_owned()),
        ("prompt", 16, text(Role::System, 0)),
        ("slice", 64, text(Role::User, 0)),
        ("later messages", 4, later.join("\u{0}")),
        ("schema", 1, schema),
        ("settings", 1, settings(question)),
        ("generation", 1, question.generation.to_string()),
    ]
}

fn settings(question: &RecordedRequest) -> String {
    let temperature = question.temperature.map(|it| format!("temperature {it}"));
    let temperature = temperature.unwrap_or_else(|| "no temperature".to_owned());
    format!("reply_tokens_max {}, {temperature}", question.reply_tokens_max)
}

/// The recorded request most similar to `asked`, of pairs of file name and request; the first among equals.
fn nearest<'a>(
    recorded: impl Iterator<Item = (&'a str, &'a RecordedRequest)>,
    asked: &RecordedRequest,
) -> Option<(&'a str, &'a RecordedRequest)> {
    let wanted = parts(asked);
    let nearness = |question: &RecordedRequest| -> u32 {
        let same = parts(question).into_iter().zip(&wanted).filter(|(one, other)| one.2 == other.2);
        same.map(|((_, weight, _), _)| weight).sum()
    };
    let scored = recorded.map(|it| (nearness(it.1), it));
    let best = scored.reduce(|best, it| if best.0 < it.0 { it } else { best });
    best.map(|(_, it)| it)
}

/// Parts of a request that differ from the recorded one: name, recorded and asked value.
fn differences(
    recorded: &RecordedRequest,
    asked: &RecordedRequest,
) -> Vec<(&'static str, String, String)> {
    let pairs = parts(recorded).into_iter().zip(parts(asked));
    let differences = pairs.filter(|(one, other)| one.2 != other.2);
    differences.map(|((name, _, kept), (_, _, asked))| (name, kept, asked)).collect()
}

/// Names of `differences`, each as `named` writes it.
fn names(
    differences: &[(&str, String, String)],
    named: impl Fn(&(&str, String, String)) -> String,
) -> String {
    if differences.is_empty() {
        return "the digest itself; was the file edited by hand?".to_owned();
    }
    differences.iter().map(named).collect::<Vec<_>>().join(", ")
}

/// One sentence, without conversation text.
fn sentence(nearest: (&str, &RecordedRequest), asked: &RecordedRequest) -> String {
    let (case, recorded) = nearest;
    let names = names(&differences(recorded, asked), |(name, kept, asked)| match *name {
        "model" | "rung" => format!("{name} (kept {kept}, asked {asked})"),
        _ => (*name).to_owned(),
    });
    format!("no recorded answer; the nearest is case {case}, which differs in: {names}")
}

/// A sentence, then the model, the settings and the message lines that differ, which contain conversation text.
fn page(nearest: (&str, &RecordedRequest), asked: &RecordedRequest) -> String {
    let (case, recorded) = nearest;
    let differences = differences(recorded, asked);
    let names = names(&differences, |it| it.0.to_owned());
    let mut page = format!("the nearest recording, {case}, differs in: {names}\n");
    for (name, before, after) in &differences {
        if ["model", "rung", "settings"].contains(name) {
            page.push_str(&format!("{name}:\n- {before}\n+ {after}\n"));
        }
    }
    for at in 0..recorded.messages.len().max(asked.messages.len()) {
        let (old, new) = (recorded.messages.get(at), asked.messages.get(at));
        let before = old.map(|message| message.content.text()).unwrap_or_default();
        let after = new.map(|message| message.content.text()).unwrap_or_default();
        let role = new.or(old).map(|it| it.role);
        if let Some(role) = role.filter(|_| before != after) {
            page.push_str(&format!("{} message {}:\n", role.name(), at + 1));
            page.push_str(&difference(&with_fence_of(&after, &before), &after));
        }
    }
    page.trim_end().to_owned()
}

/// Replaces the fence of `text` by that of `other`: a fence is a digest, so it differs whenever the content does.
fn with_fence_of(other: &str, text: &str) -> String {
    let fences = fence(text).zip(fence(other));
    fences.map_or_else(|| text.to_owned(), |(own, theirs)| text.replace(own, theirs))
}

fn fence(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<transcript-")?;
    rest.split_once('>').map(|(fence, _)| fence).filter(|fence| !fence.is_empty())
}

/// Schema of a cassette in `schemas/`. A breaking change makes the next version.
const SCHEMA_NAME: &str = "cassette.v1.json";

pub(crate) fn schema_file() -> (String, String) {
    (SCHEMA_NAME.to_owned(), published_of::<CassetteFile>())
}

/// Maximum length of a case name in bytes, so that `<case>.json` fits every file system.
const CASE_BYTES_MAX: usize = 120;

/// Origin of answers, printed with every score that rests on them.
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
    /// Origin of the answers.
    pub origin: Origin,
    /// Purpose of the case, for people.
    #[serde(default)]
    pub about: String,
    /// The exchanges, in the order in which they took place.
    exchanges: Vec<Exchange>,
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
struct Exchange {
    request: RecordedRequest,
    reply: RecordedReply,
}

/// A request as a person reads it. Only the digest is looked up; the rest says what became of it when
/// it is stale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordedRequest {
    #[schemars(with = "String")]
    digest: RequestDigest,
    #[serde(default)]
    model: String,
    #[serde(default)]
    rung: Option<OutputMode>,
    #[serde(default)]
    tool: String,
    /// Digest of the tool's description and parameters, which every exchange would repeat.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    schema: Option<Digest>,
    #[serde(default)]
    reply_tokens_max: u32,
    #[serde(default)]
    temperature: Option<f32>,
    #[serde(default)]
    generation: u32,
    #[serde(default)]
    messages: Vec<RecordedMessage>,
}

impl RecordedRequest {
    fn of(request: &Request) -> RecordedRequest {
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
struct RecordedMessage {
    role: Role,
    content: ReadableText,
}

/// A reply as a person writes it; what is left out is empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordedReply {
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

    fn reply(&self) -> Reply {
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
enum ReadableText {
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
    fn of(text: &str) -> ReadableText {
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

    fn text(&self) -> String {
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
#[path = "cassette_test.rs"]
mod tests;

#[cfg(test)]
mod stale_tests {
    use super::*;

    #[test]
    fn a_fence_alone_is_no_difference() {
        let old = "Between `transcript-1a`.\n<transcript-1a>\n[User] x\n</transcript-1a>";
        let new = old.replace("1a", "2b");
        assert_eq!(with_fence_of(&new, old), new);
        assert_eq!(with_fence_of("no slice", old), old);
        assert_eq!(with_fence_of(&new, "no slice"), "no slice");
    }
}

#[cfg(test)]
mod file_tests {
    use super::super::wire::request_tests::question;
    use super::*;
    use serde_json::json;

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
        let messages = request.messages.iter();
        let messages = messages.map(|m| json!({"role": m.role, "content": m.content.as_str()}));
        let expected = json!({
            "model": request.model, "rung": request.rung, "tool": request.tool.name,
            "reply_tokens_max": request.reply_tokens_max, "temperature": request.temperature,
            "generation": request.generation, "messages": messages.collect::<Vec<_>>(),
        });
        for (key, value) in expected.as_object().unwrap() {
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
