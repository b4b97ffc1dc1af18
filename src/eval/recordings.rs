//! Recordings: a model's replies about a case, in the plain files of its cassette, matched by request digest.
//! Recording overwrites the model's file; version control shows the changes.

use super::cases::{CASSETTE, write_if_changed};
use super::extraction::SliceResult;
use super::prepare::PreparedCase;
use crate::adapters::files;
use crate::domain::{Reply, RequestDigest};
use crate::llm::{Cassette, CassetteFile, Origin};
use crate::privacy::Gate;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const NAME_LETTERS_MAX: usize = 100;

/// All replies of one model about one case, with every prompt of the run.
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    pub folder: PathBuf,
    /// File name without `.json`, derived from the model.
    pub name: String,
    pub file: CassetteFile,
}

impl Recording {
    /// Overwrites the model's file and removes replies to the same requests from the other files of the cassette.
    /// Returns the file if it changed.
    pub(crate) fn write(&self) -> Result<Option<PathBuf>, String> {
        let folder = self.folder.join(CASSETTE);
        let path = folder.join(format!("{}.json", self.name));
        let wrong = |path: &Path, error: io::Error| {
            format!("{}: cannot be written: {error}", path.display())
        };
        let requests: BTreeSet<RequestDigest> = self.file.requests().collect();
        let written = write_if_changed(&path, &self.file.text()).map_err(|it| wrong(&path, it))?;
        let others = fs::read_dir(&folder).map_err(|error| wrong(&folder, error))?;
        for other in others.flatten().map(|entry| entry.path()) {
            let is_recording = other.extension().is_some_and(|it| it == "json") && other != path;
            if !is_recording {
                continue;
            }
            let mut file = Cassette::read_file(&other)?;
            if !file.requests().any(|it| requests.contains(&it)) {
                continue;
            }
            file.remove(&requests);
            let result = match file.is_empty() {
                true => files::remove_if_exists(&other).map(|_| ()),
                false => files::replace(&other, &file.text()),
            };
            result.map_err(|error| wrong(&other, error))?;
        }
        Ok(written.then_some(path))
    }
}

#[derive(Default)]
pub(super) struct Recorder(BTreeMap<(PathBuf, String), Recording>);

impl Recorder {
    /// Adds the replies about a case if every slice was answered.
    pub(super) fn add(&mut self, case: &PreparedCase, results: &[SliceResult]) {
        if results.iter().any(|it| it.unanswered.is_some() || it.stale.is_some()) {
            return;
        }
        let model = &case.asking.model;
        let name = file_name(model);
        let origin = origin(results);
        let about = match origin {
            Origin::Recorded => format!("recorded from {model}"),
            Origin::HandWritten => "written by hand".to_owned(),
            Origin::Imported => "recorded elsewhere".to_owned(),
        };
        let recording = self.0.entry((case.folder.clone(), name.clone())).or_insert_with(|| {
            Recording { folder: case.folder.clone(), name, file: CassetteFile::new(origin, about) }
        });
        for (request, reply) in results.iter().flat_map(|it| &it.exchanges) {
            recording.file.push(request, &redacted(reply, &case.gate));
        }
    }

    pub(super) fn finish(self) -> Vec<Recording> {
        self.0.into_values().collect()
    }
}

/// Redacts a reply by the case's gate, which may mask more than that of the settings.
fn redacted(reply: &Reply, gate: &Gate) -> Reply {
    let mut reply = reply.clone();
    for call in &mut reply.calls {
        call.arguments = gate.redact_json(call.arguments.as_str());
    }
    reply.content = gate.redact_json(reply.content.as_str());
    reply.refusal = reply.refusal.map(|words| gate.redact(words.as_str()));
    reply
}

fn file_name(model: &str) -> String {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let letters = model.chars().map(|letter| if is_allowed(letter) { letter } else { '-' });
    let name: String = letters.take(NAME_LETTERS_MAX).collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() { "model".to_owned() } else { name.to_owned() }
}

/// The most frequent origin of the replies.
fn origin(results: &[SliceResult]) -> Origin {
    let sum = |of: fn(&SliceResult) -> u64| results.iter().map(of).sum::<u64>();
    let by_hand = sum(|it| it.answers.hand_written);
    let (recorded, imported) = (sum(|it| it.answers.recorded), sum(|it| it.answers.imported));
    if recorded >= by_hand && recorded >= imported {
        Origin::Recorded
    } else if by_hand >= imported {
        Origin::HandWritten
    } else {
        Origin::Imported
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_name_becomes_a_valid_file_name() {
        let names = ["gpt-5-mini", "vendor/large:8b", "../up", "", "..."].map(file_name);
        assert_eq!(names, ["gpt-5-mini", "vendor-large-8b", "-up", "model", "model"]);
        assert_eq!(file_name(&"x".repeat(300)).len(), NAME_LETTERS_MAX);
    }
}
