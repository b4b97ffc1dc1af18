//! A cassette: the answers of a model kept in a folder, given again for the same questions. Never asks
//! anybody; what it does not hold is stale.

use super::cassette_file::{CassetteFile, Origin, Question};
use super::stale;
use crate::domain::{
    ErrorKind, Finding, LanguageModel, ModelError, OutputMode, Reply, Request, RequestDigest,
    Severity,
};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes; a larger one is no cassette.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Number of answers by origin.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Origins {
    /// From a model that annalist asked.
    pub recorded: usize,
    /// From a person.
    pub hand_written: usize,
    /// From a model that another program asked.
    pub imported: usize,
}

/// Kept answers by the digest of the question.
#[derive(Debug, Default)]
pub struct Cassette {
    held: BTreeMap<RequestDigest, Held>,
    origins: Origins,
}

#[derive(Debug)]
struct Held {
    case: String,
    question: Question,
    origin: Origin,
    reply: Reply,
}

impl Cassette {
    /// Reads every `<case>.json` of `folder`. A file that cannot be read as a cassette is a finding, and
    /// the others are used; of two answers to one question the first by file name counts.
    ///
    /// # Errors
    /// If the folder itself cannot be listed.
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
            let place = match self.held.entry(exchange.request.digest) {
                Entry::Vacant(place) => place,
                // The same question with the same answer, as of two conversations that began alike.
                Entry::Occupied(other) if other.get().reply == exchange.reply.reply() => continue,
                Entry::Occupied(other) => {
                    let first = &other.get().case;
                    let detail = format!("case {case} answers a question that {first} answers too");
                    findings.push(Finding::new(Severity::Warning, "answered-twice", 0, detail));
                    continue;
                }
            };
            place.insert(Held {
                case: case.to_owned(),
                question: exchange.request.clone(),
                origin: file.origin,
                reply: exchange.reply.reply(),
            });
            let count = match file.origin {
                Origin::Recorded => &mut self.origins.recorded,
                Origin::HandWritten => &mut self.origins.hand_written,
                Origin::Imported => &mut self.origins.imported,
            };
            *count += 1;
        }
    }

    /// Reads one file of a folder.
    ///
    /// # Errors
    /// One line: where, and what is wrong there.
    pub fn read_file(path: &Path) -> Result<CassetteFile, String> {
        read(path).map_err(|(line, what)| match line {
            0 => format!("{}: {what}", path.display()),
            line => format!("{}:{line}: {what}", path.display()),
        })
    }

    /// Where the answers come from.
    pub fn origins(&self) -> Origins {
        self.origins
    }

    /// The model that most questions name, so that they are asked alike; none if none is named.
    pub fn model(&self) -> Option<&str> {
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for held in self.held.values().filter(|held| !held.question.model.is_empty()) {
            *times.entry(&held.question.model).or_default() += 1;
        }
        times.into_iter().max_by_key(|(_, times)| *times).map(|(model, _)| model)
    }

    /// Returns whether a question names this model.
    pub fn names(&self, model: &str) -> bool {
        self.held.values().any(|held| held.question.model == model)
    }

    /// The highest rung that a question names, so that they are asked in the same way; none if none is
    /// named.
    pub fn rung(&self) -> Option<OutputMode> {
        self.held.values().filter_map(|held| held.question.rung).min()
    }

    /// The answer that is kept for a question, and where it comes from.
    pub fn kept(&self, request: &Request) -> Option<(&Reply, Origin)> {
        self.held.get(&request.digest()).map(|held| (&held.reply, held.origin))
    }

    /// In what `request` differs from the nearest question that is held: a sentence, then the lines of the
    /// messages that differ, which are words of the conversation.
    pub fn difference(&self, request: &Request) -> String {
        let asked = Question::of(request);
        let nearest = stale::nearest(self.questions(), &asked);
        nearest.map_or(stale::EMPTY.to_owned(), |it| stale::page(it, &asked))
    }

    fn questions(&self) -> impl Iterator<Item = (&str, &Question)> {
        self.held.values().map(|held| (held.case.as_str(), &held.question))
    }

    /// Number of answers.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns whether it holds no answer.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The answer to a question, or which kept question is nearest and in what it differs.
    ///
    /// # Errors
    /// `Stale`, and no other.
    pub fn answer(&self, request: &Request) -> Result<&Reply, ModelError> {
        if let Some(held) = self.held.get(&request.digest()) {
            return Ok(&held.reply);
        }
        let asked = Question::of(request);
        let nearest = stale::nearest(self.questions(), &asked);
        let why = nearest.map_or(stale::EMPTY.to_owned(), |it| stale::sentence(it, &asked));
        Err(ModelError::new(ErrorKind::Stale, why))
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

/// The file, or the line and what is wrong there.
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

/// serde's sentence without the value that it found, which may be words of a conversation.
fn what_is_wrong(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    match text.split_once(", expected ") {
        Some((_, expected)) if !text.starts_with("unknown field") => format!("expected {expected}"),
        Some(_) | None => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "cassette_test.rs"]
mod tests;
