//! What was answered about a case, as a file of a cassette.

use super::ask::Heard;
use super::judge::judge;
use super::prepare::{Prepared, prepare};
use super::report::{Done, report};
use super::{Trial, Tried, Unused};
use crate::domain::Reply;
use crate::edge::cases::CASSETTE;
use crate::edge::model::{Cassette, CassetteFile, Origin};
use crate::privacy::Gate;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The longest name of a recording, in letters.
const NAME_LETTERS_MAX: usize = 100;

/// What a model answered about a case, all of it.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The case.
    pub case: String,
    /// Its folder.
    pub folder: PathBuf,
    /// What its file is called, without `.json`: after the model.
    pub name: String,
    /// The answers.
    pub file: CassetteFile,
    /// Whether the accepted cassette holds the very same.
    pub known: bool,
}

impl Trial {
    /// Runs every case on the recordings of the trial, and gives those that were used as recordings of the
    /// case's own.
    pub fn recorded(&self) -> (Tried, Vec<Recording>) {
        let (mut done, mut recordings) = (Vec::new(), Recorded::default());
        for variation in &self.variations {
            let mut of = Vec::new();
            for place in &self.cases {
                of.push(match prepare((&self.config, &self.recordings), place, variation) {
                    Err(why) => super::live::left(&place.name, why),
                    Ok(case) => {
                        let heard = super::offline::heard(&case);
                        recordings.add(&case, &heard);
                        let (report, shown) = judge(&case, heard);
                        Done {
                            report,
                            shown,
                            tolerances: case.case.tolerances,
                            unused: Unused::default(),
                        }
                    }
                });
            }
            done.push(of);
        }
        (report(self, done), recordings.finish())
    }
}

/// Recordings by case and model: those of several prompts stand in one file.
#[derive(Default)]
pub(super) struct Recorded(BTreeMap<(String, String), Recording>);

impl Recorded {
    /// Keeps what was heard of a case, if it was answered whole.
    pub(super) fn add(&mut self, case: &Prepared, heard: &[Heard]) {
        let whole = heard.iter().all(|it| it.waits.is_none() && it.stale.is_none());
        let Some(folder) = case.folder.clone().filter(|_| whole) else { return };
        let model = &case.asking.model;
        let name = name_of(model);
        let key = (case.name.clone(), name.clone());
        let origin = origin(heard);
        let about = match origin {
            Origin::Recorded => format!("recorded from {model}"),
            Origin::HandWritten => "written by hand".to_owned(),
            Origin::Imported => "recorded elsewhere".to_owned(),
        };
        let recording = self.0.entry(key).or_insert_with(|| Recording {
            case: case.name.clone(),
            folder,
            name,
            file: CassetteFile::new(origin, about),
            known: false,
        });
        for (request, reply) in heard.iter().flat_map(|it| &it.exchanges) {
            recording.file.push(request, &scrubbed(reply, &case.gate));
        }
    }

    pub(super) fn finish(self) -> Vec<Recording> {
        let known = |mut recording: Recording| {
            let kept = Cassette::load(&recording.folder.join(CASSETTE));
            recording.known = kept.is_ok_and(|(kept, _)| kept.holds(&recording.file));
            recording
        };
        self.0.into_values().map(known).collect()
    }
}

/// A reply as a case's own gate lets it through: it may mask more than that of the settings.
fn scrubbed(reply: &Reply, gate: &Gate) -> Reply {
    let mut reply = reply.clone();
    for call in &mut reply.calls {
        call.arguments = gate.redact(call.arguments.as_str());
    }
    reply.content = gate.redact(reply.content.as_str());
    reply.refusal = reply.refusal.map(|words| gate.redact(words.as_str()));
    reply
}

/// A file's name for a model.
fn name_of(model: &str) -> String {
    let lawful = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let letters = model.chars().map(|letter| if lawful(letter) { letter } else { '-' });
    let name: String = letters.take(NAME_LETTERS_MAX).collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() { "model".to_owned() } else { name.to_owned() }
}

/// Where most of the answers come from that were heard.
fn origin(heard: &[Heard]) -> Origin {
    let sum = |of: fn(&Heard) -> u64| heard.iter().map(of).sum::<u64>();
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
    fn a_model_gives_its_recording_a_name_that_every_file_system_takes() {
        let names = ["gpt-5-mini", "vendor/large:8b", "../up", "", "..."].map(name_of);
        assert_eq!(names, ["gpt-5-mini", "vendor-large-8b", "-up", "model", "model"]);
        assert_eq!(name_of(&"x".repeat(300)).len(), NAME_LETTERS_MAX);
    }
}
