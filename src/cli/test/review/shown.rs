//! What is shown of a recording before a person decides, and what their word does.

use super::super::super::output::{self, BOLD, DIM, Failure, RED, YELLOW, counted};
use super::super::{print, print_lines, width};
use crate::config::Config;
use crate::domain::RequestDigest;
use crate::edge::cases::{CASSETTE, CASSETTE_NEW, CasePlace, drop_new};
use crate::edge::model::{Accepting, Cassette, CassetteFile, Kept};
use crate::score::compare;
use crate::worker::{Recordings, Trial, Unused, Variation};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What is said of a recording that nothing asks for as it is looked at.
const OTHER: &str =
    "--prompt FILE names it; until the settings do, `annalist test` does not ask for these";

/// A recording that waits.
pub(super) struct New<'a> {
    pub(super) place: &'a CasePlace,
    pub(super) folder: &'a Path,
    pub(super) name: &'a str,
}

impl New<'_> {
    fn waiting(&self) -> PathBuf {
        self.folder.join(CASSETTE_NEW)
    }

    /// Makes the cassette what was shown, and takes the recording from those that wait.
    ///
    /// # Errors
    /// One line: what cannot be written.
    pub(super) fn accept(&self, accepting: &Accepting) -> Result<(), Failure> {
        let folder = self.folder.join(CASSETTE);
        let before = Kept::load(&folder).map_err(Failure::failed)?;
        accepting.kept.write(&folder, &before).map_err(|error| {
            Failure::failed(format!("{}: cannot be written: {error}", folder.display()))
        })?;
        self.reject()
    }

    /// Takes the recording away.
    ///
    /// # Errors
    /// One line: what cannot be taken away.
    pub(super) fn reject(&self) -> Result<(), Failure> {
        let folder = self.waiting();
        drop_new(&folder, self.name)
            .map_err(|error| Failure::failed(format!("{}: {error}", folder.display())))
    }

    /// Shows what it would change; none, and why, if it cannot be accepted.
    ///
    /// # Errors
    /// If nothing can be printed.
    pub(super) fn show(
        &self,
        config: &Config,
        variations: &[Variation],
    ) -> Result<Option<Accepting>, Failure> {
        match self.read(config, variations) {
            Ok((file, kept, accepting, is_other)) => {
                print_lines(&requests(&file, &kept.cassette()))?;
                if is_other {
                    print_lines(&format!(
                        "{YELLOW}recorded with another prompt{YELLOW:#}: {OTHER}"
                    ))?;
                }
                self.compare(config, variations, (&file, &kept, &accepting))?;
                // Last, next to the question: the comparison may be longer than a screen.
                print_lines(&exchanged(&accepting))?;
                Ok(Some(accepting))
            }
            Err(what) => {
                output::note(&format!("{RED}error:{RED:#} {what}"));
                Ok(None)
            }
        }
    }

    fn read(
        &self,
        config: &Config,
        variations: &[Variation],
    ) -> Result<(CassetteFile, Kept, Accepting, bool), String> {
        let file = Cassette::read_file(&self.waiting().join(format!("{}.json", self.name)))?;
        let kept = Kept::load(&self.folder.join(CASSETTE))?;
        let model = file.model().map(str::to_owned);
        // A case that cannot be asked about is told with the comparison.
        let ways = self.trial(config, variations, model, Recordings::Accepted);
        let ways = ways.ways(self.place).unwrap_or_default();
        let accepting = kept.accepting(self.name, &file, &ways)?;
        let asked: BTreeSet<&RequestDigest> = ways.iter().flatten().collect();
        let is_other = !asked.is_empty() && !file.requests().any(|it| asked.contains(&it));
        Ok((file, kept, accepting, is_other))
    }

    /// What the recording says against what is accepted for the same slices, each read with what it was asked with: a
    /// changed prompt is not asked for by what was accepted, nor the other way round.
    fn compare(
        &self,
        config: &Config,
        variations: &[Variation],
        (file, kept, accepting): (&CassetteFile, &Kept, &Accepting),
    ) -> Result<(), Failure> {
        let model = file.model().map(str::to_owned);
        let held = model.clone().filter(|model| kept.cassette().names(model));
        let to = Kept::one(self.name, file.clone());
        let of = |model, of: &Kept| {
            let recordings = Recordings::Like { of: of.clone(), to: to.clone() };
            self.trial(config, variations, model, recordings).offline()
        };
        let (before, after) = (of(held, kept), of(model, &accepting.kept));
        let tolerances = |case: &str| after.tolerances_of(case);
        let compared = compare(&before.report, &after.report, &tolerances);
        print_lines(&print::table(&after.report, Some(&compared), width(), false))
    }

    fn trial(
        &self,
        config: &Config,
        variations: &[Variation],
        model: Option<String>,
        recordings: Recordings,
    ) -> Trial {
        let of_model = |it: &Variation| Variation { model: model.clone(), ..it.clone() };
        Trial {
            config: config.clone(),
            variations: variations.iter().map(of_model).collect(),
            cases: vec![self.place.clone()],
            recordings,
        }
    }
}

/// The requests that wait for a word in a case.
///
/// # Errors
/// One line: what cannot be read.
pub(super) fn waiting(folder: &Path) -> Result<BTreeSet<RequestDigest>, Failure> {
    Ok(Kept::load(&folder.join(CASSETTE_NEW)).map_err(Failure::failed)?.requests())
}

/// How many requests a recording answers, and in what they are new.
fn requests(file: &CassetteFile, accepted: &Cassette) -> String {
    let requests = counted(file.len() as u64, "request");
    let differences = accepted.differences(file);
    let mut by_sort: BTreeMap<&str, usize> = BTreeMap::new();
    differences.iter().for_each(|it| *by_sort.entry(it).or_default() += 1);
    match differences.is_empty() {
        true => format!("{requests}, all asked as before"),
        false => {
            let sorts = by_sort.iter().map(|(sort, times)| format!("{times} in {sort}"));
            let sorts: Vec<String> = sorts.collect();
            format!("{requests}; not asked before: {}", sorts.join("; "))
        }
    }
}

/// What accepting does to the answers that are kept, and which of them go.
fn exchanged(accepting: &Accepting) -> String {
    let Accepting { added, same, replaced, outdone, others, .. } = accepting;
    let answers = |number: usize| counted(number as u64, "answer");
    let mut lines = vec![format!(
        "accepting adds {}, replaces {}; {same} as before, {others} of other requests stay",
        answers(*added),
        replaced.len()
    )];
    lines.extend(replaced.iter().map(|it| gone("replaced", it)));
    let other_way = "goes, it was asked in another way:";
    lines.extend(outdone.iter().map(|it| gone(other_way, it)));
    lines.join("\n")
}

/// A line for an answer that goes. All are told: none goes unseen.
fn gone(how: &str, (file, digest): &(String, RequestDigest)) -> String {
    format!("  {how} {CASSETTE}/{file}.json {DIM}{:.12}{DIM:#}", digest.to_string())
}

/// Recordings of a case that no request asks for.
pub(super) struct Old {
    pub(super) unused: Unused,
}

/// Which of them are looked at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sort {
    /// Those that were made with the prompts at hand.
    Unused,
    /// Those of other prompts.
    OtherPrompt,
}

impl Old {
    /// Those of one sort.
    pub(super) fn of(&self, sort: Sort) -> &[(String, RequestDigest)] {
        match sort {
            Sort::Unused => &self.unused.recordings,
            Sort::OtherPrompt => &self.unused.of_other_prompts,
        }
    }

    /// Shows them.
    ///
    /// # Errors
    /// If nothing can be printed.
    pub(super) fn show(&self, place: &CasePlace, sort: Sort) -> Result<(), Failure> {
        let all = counted(self.of(sort).len() as u64, "recording");
        let (what, word) = match sort {
            Sort::Unused => ("that no request asks for any more", "unused"),
            Sort::OtherPrompt => ("of another prompt", "of another prompt"),
        };
        let mut lines = vec![format!("{BOLD}{}{BOLD:#} · {all} {what}", place.name)];
        if self.unused.is_stale {
            let stale = "the case is stale: what it asks has no answer yet, and these may answer what it asked before";
            lines.push(format!("  {RED}look:{RED:#} {stale}"));
        }
        lines.extend(self.of(sort).iter().map(|it| gone(word, it)));
        print_lines(&lines.join("\n"))
    }

    /// Takes those of one sort away; says how many.
    ///
    /// # Errors
    /// One line: what cannot be read or written.
    pub(super) fn take_away(&self, folder: &Path, sort: Sort) -> Result<u64, Failure> {
        let folder = folder.join(CASSETTE);
        let kept = Kept::load(&folder).map_err(Failure::failed)?;
        let gone: BTreeSet<RequestDigest> =
            self.of(sort).iter().map(|(_, digest)| *digest).collect();
        kept.without(&gone).write(&folder, &kept).map_err(|error| {
            Failure::failed(format!("{}: cannot be written: {error}", folder.display()))
        })?;
        Ok(gone.len() as u64)
    }
}
