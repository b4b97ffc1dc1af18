//! Recordings of a case that no request asks for any more, as after an edit of its transcript or of a prompt.

use super::offline::heard;
use super::prepare::{Prepared, prepare};
use super::{Recordings, Trial, Variation};
use crate::domain::{RequestDigest, Rung};
use crate::edge::cases::{CASSETTE, CasePlace, Place};
use crate::edge::model::Kept;
use crate::extract::Exchange;
use std::collections::BTreeSet;

/// Recordings that no request asks for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Unused {
    /// Each with its file.
    pub recordings: Vec<(String, RequestDigest)>,
    /// Whether a request has no recording, so that one of these may be what is to become of it.
    pub is_stale: bool,
}

impl Trial {
    /// What of the accepted recordings of a case no request asks for: with none of the prompts of this trial, whichever
    /// model they name.
    ///
    /// # Errors
    /// One line: why the case cannot be asked about.
    pub fn unused(&self, place: &CasePlace) -> Result<Unused, String> {
        let Place::Folder(folder) = &place.is else { return Ok(Unused::default()) };
        let kept = Kept::load(&folder.join(CASSETTE))?;
        let (mut asked, mut is_stale) = (BTreeSet::new(), false);
        for variation in self.each_prompt() {
            let case = self.accepted(place, &Variation { model: None, ..variation.clone() })?;
            is_stale |= ask(&case, &mut asked);
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
        let recordings = kept.unasked(&asked).map(|(file, digest, _)| (file.to_owned(), digest));
        Ok(Unused { recordings: recordings.collect(), is_stale })
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
