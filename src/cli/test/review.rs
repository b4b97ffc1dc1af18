//! `annalist test review`: new recordings, one after another, as a person looks at them: what was asked
//! differently, which answers and records come and go, what it does to the score; then accepts or rejects them.
//! After them, of each case, what no request asks for any more.

mod shown;
mod word;

use self::shown::{New, Old, Sort, waiting};
use self::word::{Word, ask_about_new, ask_about_old};
use super::super::output::{self, BOLD, Failure, counted};
use super::super::settings;
use super::run::variations;
use super::{find, print_lines};
use crate::config::Config;
use crate::domain::RequestDigest;
use crate::edge::cases::{CASSETTE, CASSETTE_NEW, CasePlace, Place, recordings};
use crate::worker::{Recordings, Trial, Variation};
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Accepting adds answers to the accepted ones, request by request: it replaces answers to the same requests, and takes \
away none but those that are shown.

Examples:
  annalist test review            walk through what is new: a(ccept), r(eject), s(kip), q(uit);
                                  then what no request asks for: t(ake away), k(eep), q(uit)
  annalist test review two-choices --accept
  annalist test review --prune    take away what no request asks for, leave what is new
  annalist test review --list     name what waits; nothing is changed")]
pub(super) struct Args {
    /// Cases, or folders of them; tests/fixtures/cases by default
    #[arg(value_name = "CASE")]
    cases: Vec<PathBuf>,
    /// Accept all that is new
    #[arg(long, conflicts_with_all = ["reject", "list"])]
    accept: bool,
    /// Reject all that is new
    #[arg(long, conflicts_with = "list")]
    reject: bool,
    /// Take away all that no request asks for, with the prompt of the settings and those of --prompt; not of cases
    /// that are stale, not what is accepted now, not what was recorded with another prompt
    #[arg(long, conflicts_with = "list")]
    prune: bool,
    /// Go through what was recorded with other prompts than that of the settings and those of --prompt too; with
    /// --prune take it away
    #[arg(long)]
    other_prompts: bool,
    /// Name what waits, what no request asks for, and what was recorded with other prompts
    #[arg(long)]
    list: bool,
    /// The prompt that they were recorded with, if not that of the settings; several are looked at side by side
    #[arg(long = "prompt", value_name = "FILE")]
    prompts: Vec<PathBuf>,
}

/// What became of what was walked through.
#[derive(Debug, Default)]
struct Counts {
    accepted: u64,
    rejected: u64,
    left: u64,
    taken: u64,
    /// Recordings of other prompts, which stay.
    others: u64,
}

/// A walk through cases.
struct Walk<'a> {
    args: &'a Args,
    config: &'a Config,
    /// With which prompts new recordings are looked at.
    variations: Vec<Variation>,
    /// All prompts that ask for recordings.
    asking: Vec<Variation>,
    /// How many recordings are new.
    new: usize,
    nth: usize,
    counts: Counts,
    /// Requests of the case at hand that were answered by what was accepted now.
    accepted: BTreeSet<RequestDigest>,
    has_quit: bool,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let variations = |prompts: &[PathBuf]| variations(&config, &[], prompts);
    let mut walk = Walk {
        args,
        config: &config,
        asking: [variations(&[])?, variations(&args.prompts)?].concat(),
        variations: variations(&args.prompts)?,
        new: 0,
        nth: 0,
        counts: Counts::default(),
        accepted: BTreeSet::new(),
        has_quit: false,
    };
    let mut places = Vec::new();
    for place in find(&args.cases)?.0 {
        let Place::Folder(folder) = &place.is else { continue };
        let new = folder.join(CASSETTE_NEW);
        let names = recordings(&new);
        let names =
            names.map_err(|error| Failure::failed(format!("{}: {error}", new.display())))?;
        walk.new += names.len();
        let folder = folder.clone();
        places.push((place, folder, names));
    }
    let (mut old, mut others) = (0, 0);
    for (place, ..) in &places {
        let it = walk.old(place);
        old += walk.sorts().iter().map(|sort| it.of(*sort).len() as u64).sum::<u64>();
        others += it.of(Sort::OtherPrompt).len() as u64;
    }
    if walk.new == 0 && old == 0 && !(args.list && others > 0) {
        output::note("nothing waits for review; `annalist test --record` records");
        tell_others(others);
        return Ok(ExitCode::SUCCESS);
    }
    if args.list {
        return walk.list(&places);
    }
    if !(args.accept || args.reject || args.prune || io::stdin().is_terminal()) {
        return Err(Failure::usage(format!(
            "{} to review, and stdin is no terminal: say --accept, --reject or --list; --prune takes away what no \
             request asks for",
            counted(walk.new as u64 + old, "recording")
        )));
    }
    for (place, folder, names) in &places {
        walk.accepted.clear();
        for name in names {
            walk.new_one(&New { place, folder, name })?;
        }
        walk.old_ones(place, folder)?;
    }
    walk.end()
}

type Found = (CasePlace, PathBuf, Vec<String>);

impl Walk<'_> {
    fn list(&self, places: &[Found]) -> Result<ExitCode, Failure> {
        for (place, _, names) in places {
            for name in names {
                output::line(&format!("{}\t{name}", place.name))?;
            }
            let old = self.old(place);
            for (sort, word) in [(Sort::Unused, "unused"), (Sort::OtherPrompt, "other-prompt")] {
                for (file, digest) in old.of(sort) {
                    let line = format!("{}\t{CASSETTE}/{file}\t{word}\t{digest}", place.name);
                    output::line(&line)?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Asks about one new recording, and does what is said.
    fn new_one(&mut self, it: &New<'_>) -> Result<(), Failure> {
        self.nth += 1;
        if self.has_quit {
            self.counts.left += 1;
            return Ok(());
        }
        print_lines(&format!(
            "{BOLD}{} · {}{BOLD:#} ({} of {})",
            it.place.name, it.name, self.nth, self.new
        ))?;
        let shown = it.show(self.config, &self.variations)?;
        let word = match (self.args.accept, self.args.reject, self.args.prune) {
            // What cannot be read, or has no place, cannot be accepted.
            (true, ..) if shown.is_none() => Word::Skip,
            (true, ..) => Word::Accept,
            (_, true, _) => Word::Reject,
            (.., true) => Word::Skip,
            (false, false, false) => ask_about_new(shown.is_some())?,
        };
        match (word, shown) {
            (Word::Accept, Some(accepting)) => {
                self.accepted.append(&mut waiting(it.folder)?);
                it.accept(&accepting)?;
                self.counts.accepted += 1;
            }
            (Word::Reject, _) => {
                it.reject()?;
                self.counts.rejected += 1;
            }
            (Word::Accept, None) | (Word::Skip, _) => self.counts.left += 1,
            (Word::Quit, _) => {
                self.counts.left += 1;
                self.has_quit = true;
            }
        }
        Ok(())
    }

    /// Which recordings that no request asks for are gone through.
    fn sorts(&self) -> &'static [Sort] {
        match self.args.other_prompts {
            true => &[Sort::Unused, Sort::OtherPrompt],
            false => &[Sort::Unused],
        }
    }

    /// Asks about what no request asks for in a case, and does what is said. What was accepted a moment ago, or waits,
    /// was asked for by somebody.
    fn old_ones(&mut self, place: &CasePlace, folder: &Path) -> Result<(), Failure> {
        if self.has_quit {
            return Ok(());
        }
        let mut wanted = waiting(folder)?;
        wanted.extend(&self.accepted);
        let old = Old { unused: self.old(place).unused.without(&wanted) };
        for sort in self.sorts() {
            if !self.has_quit && !old.of(*sort).is_empty() {
                self.old_of(place, folder, (&old, *sort))?;
            }
        }
        if !self.args.other_prompts {
            self.counts.others += old.of(Sort::OtherPrompt).len() as u64;
        }
        Ok(())
    }

    fn old_of(
        &mut self,
        place: &CasePlace,
        folder: &Path,
        (old, sort): (&Old, Sort),
    ) -> Result<(), Failure> {
        old.show(place, sort)?;
        let word = match (self.args.prune, self.args.accept || self.args.reject) {
            (true, _) if old.unused.is_stale => {
                output::note("kept: the case is stale; `annalist test --record` and accept first");
                Word::Skip
            }
            (true, _) => Word::Accept,
            (false, true) => {
                output::note("kept: --prune takes them away");
                Word::Skip
            }
            (false, false) => ask_about_old()?,
        };
        match word {
            Word::Accept => self.counts.taken += old.take_away(folder, sort)?,
            Word::Reject | Word::Skip => {}
            Word::Quit => self.has_quit = true,
        }
        Ok(())
    }

    /// What no request asks for in a case; nothing of one that cannot be asked about, which a run tells.
    fn old(&self, place: &CasePlace) -> Old {
        let trial = Trial {
            config: self.config.clone(),
            variations: self.asking.clone(),
            cases: vec![place.clone()],
            recordings: Recordings::Accepted,
        };
        Old { unused: trial.unused(place).unwrap_or_default() }
    }

    fn end(&self) -> Result<ExitCode, Failure> {
        let Counts { accepted, rejected, left, taken, others } = self.counts;
        let mut line = format!("{accepted} accepted, {rejected} rejected, {left} left");
        if taken > 0 {
            line.push_str(&format!("; {} taken away", counted(taken, "unused recording")));
        }
        output::line(&line)?;
        tell_others(others);
        let unread = self.args.accept && left > 0;
        Ok(ExitCode::from(if unread { output::FAILED } else { 0 }))
    }
}

/// Says that recordings of other prompts stay.
fn tell_others(others: u64) {
    if others > 0 {
        let others = counted(others, "recording");
        output::note(&format!("{others} of other prompts stay; --other-prompts goes through them"));
    }
}
