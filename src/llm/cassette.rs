//! A cassette: recorded model replies in a folder, replayed for the same requests. Never calls a model: a request
//! without a recording is stale.

use super::cassette_file::{CassetteFile, Origin, RecordedRequest};
use crate::domain::{
    ErrorKind, Finding, LanguageModel, ModelError, OutputMode, Reply, Request, RequestDigest, Role,
    Severity,
};
use crate::text::diff::difference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Where the answers come from.
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

    /// Number of recordings.
    pub fn len(&self) -> usize {
        self.recordings.len()
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
