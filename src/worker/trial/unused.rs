//! Recordings of a case that no request asks for any more, as after an edit of its transcript or of a prompt.

use super::offline::heard;
use super::prepare::{Prepared, prepare};
use super::{Recordings, Trial, Variation};
use crate::domain::{RequestDigest, Rung};
use crate::edge::cases::{CASSETTE, CasePlace, Place};
use crate::edge::model::{Kept, KeptPrompts};
use crate::extract::Exchange;
use std::collections::BTreeSet;

/// Recordings that no request asks for, each with its file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Unused {
    /// Those that were made with a prompt of this trial: what they answered is not asked any more.
    pub recordings: Vec<(String, RequestDigest)>,
    /// Those that were made with another prompt, which may ask for them.
    pub of_other_prompts: Vec<(String, RequestDigest)>,
    /// Whether a request has no recording, so that one of these may be what is to become of it.
    pub is_stale: bool,
}

impl Unused {
    /// Whether everything is asked for.
    pub fn is_empty(&self) -> bool {
        self.recordings.is_empty() && self.of_other_prompts.is_empty()
    }

    /// The same without those that are still of use.
    pub fn without(mut self, used: &BTreeSet<RequestDigest>) -> Unused {
        for some in [&mut self.recordings, &mut self.of_other_prompts] {
            some.retain(|(_, digest)| !used.contains(digest));
        }
        self
    }
}

impl Trial {
    /// What of the accepted recordings of a case no request asks for with the prompts of this trial, whichever model they
    /// name.
    ///
    /// # Errors
    /// One line: why the case cannot be asked about.
    pub fn unused(&self, place: &CasePlace) -> Result<Unused, String> {
        let Place::Folder(folder) = &place.is else { return Ok(Unused::default()) };
        let kept = Kept::load(&folder.join(CASSETTE))?;
        let (mut asked, mut is_stale) = (BTreeSet::new(), false);
        let mut prompts = KeptPrompts::default();
        for variation in self.each_prompt() {
            let case = self.accepted(place, &Variation { model: None, ..variation.clone() })?;
            is_stale |= ask(&case, &mut asked);
            said(&case, &mut prompts);
        }
        // Each round takes a model that a recording names, and none twice.
        let mut models: BTreeSet<&str> = kept.unasked(&asked).filter_map(|(.., it)| it).collect();
        while let Some(model) = models.pop_first() {
            for variation in self.each_prompt() {
                let model = Some(model.to_owned());
                let case = self.accepted(place, &Variation { model, ..variation.clone() })?;
                ask(&case, &mut asked);
            }
        }
        let others = kept.unasked(&asked).map(|(_, digest, _)| digest).collect();
        let others = kept.of_other_prompts(&others, &prompts);
        let all = kept.unasked(&asked).map(|(file, digest, _)| (file.to_owned(), digest));
        let (of_other_prompts, recordings) = all.partition(|(_, digest)| others.contains(digest));
        Ok(Unused { recordings, of_other_prompts, is_stale })
    }

    /// The ways to ask the first question about each slice of a case, of which only the highest that is kept is ever
    /// used; with the model and the prompt of each variation.
    ///
    /// # Errors
    /// One line: why the case cannot be asked about.
    pub fn ways(&self, place: &CasePlace) -> Result<Vec<Vec<RequestDigest>>, String> {
        let mut ways = Vec::new();
        for variation in &self.variations {
            let case = self.accepted(place, variation)?;
            for (_, cutting, before) in case.slices() {
                let first = |rung: &Rung| {
                    let (_, first) =
                        Exchange::start(&case.asking, &cutting.slice, before, *rung, 0);
                    first.digest()
                };
                ways.push(Rung::ALL.iter().map(first).collect());
            }
        }
        Ok(ways)
    }

    /// A variation of each prompt.
    fn each_prompt(&self) -> impl Iterator<Item = &Variation> {
        let mut seen = BTreeSet::new();
        self.variations.iter().filter(move |it| seen.insert(it.prompts.digest()))
    }

    fn accepted(&self, place: &CasePlace, variation: &Variation) -> Result<Prepared, String> {
        prepare((&self.config, &Recordings::Accepted), place, variation).map_err(|why| why.what)
    }
}

/// Notes what is asked of the cassette of a case; says whether it had no answer to something.
fn ask(case: &Prepared, asked: &mut BTreeSet<RequestDigest>) -> bool {
    let heard = heard(case);
    let is_stale = heard.iter().any(|it| it.stale.is_some());
    asked.extend(heard.into_iter().flat_map(|it| it.asked));
    is_stale
}

/// Notes what the prompt of a case says around a slice: in each way of asking, with and without what went before.
fn said(case: &Prepared, prompts: &mut KeptPrompts) {
    let Some((_, cutting, _)) = case.slices().next() else { return };
    let before = case.gate.redact("before");
    for rung in Rung::ALL {
        for before in [None, Some(&before)] {
            prompts.add(&Exchange::start(&case.asking, &cutting.slice, before, *rung, 0).1);
        }
    }
}
