//! A cassette: recorded model replies in a folder, replayed for the same requests. Never calls a model: a request
//! without a recording is stale.

use super::cassette_file::{CassetteFile, Origin, RecordedRequest};
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

/// Maximum size of a file, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Number of replies by origin.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Origins {
    /// Replies of a model that annalist called.
    pub recorded: usize,
    /// Replies that a person wrote.
    pub hand_written: usize,
    /// Replies of a model that another program called.
    pub imported: usize,
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
    /// Reads every `<case>.json` of `folder`. An unreadable file is a finding. Of two replies to one request, the
    /// first by file name is used.
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
    /// One line: the place and the problem.
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
        self.explained(request, stale::page)
    }

    fn explained(
        &self,
        request: &Request,
        explain: fn((&str, &RecordedRequest), &RecordedRequest) -> String,
    ) -> String {
        let asked = RecordedRequest::of(request);
        let recorded = self.recordings.values().map(|it| (it.case.as_str(), &it.request));
        let nearest = stale::nearest(recorded, &asked);
        nearest.map_or(stale::EMPTY.to_owned(), |it| explain(it, &asked))
    }

    /// Number of recordings.
    pub fn len(&self) -> usize {
        self.recordings.len()
    }

    /// True if there are no recordings.
    pub fn is_empty(&self) -> bool {
        self.recordings.is_empty()
    }

    /// Returns the recorded reply; the error names the nearest request and the differences.
    ///
    /// # Errors
    /// Always `Stale`.
    pub fn answer(&self, request: &Request) -> Result<&Reply, ModelError> {
        let reply = self.recorded(request).map(|(reply, _)| reply);
        reply.ok_or_else(|| {
            let why = self.explained(request, stale::sentence);
            ModelError::new(ErrorKind::Stale, why)
        })
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

#[cfg(test)]
#[path = "cassette_test.rs"]
mod tests;
