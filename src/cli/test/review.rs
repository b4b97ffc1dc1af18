//! `annalist test review`: new recordings, one after another, as a person looks at them: what was asked
//! differently, which records come and go, what it does to the score; then accepts or rejects them.

use super::super::output::{self, BOLD, Failure, RED, counted};
use super::super::settings;
use super::run::variations;
use super::{find, print, print_lines, width};
use crate::config::Config;
use crate::edge::cases::{CASSETTE, CASSETTE_NEW, CasePlace, Place, drop_new, recordings, settle};
use crate::edge::model::Cassette;
use crate::score::{Tolerances, compare};
use crate::worker::{Recordings, Trial, Variation};
use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What is asked of a person.
const QUESTION: &str = "accept, reject, skip or quit? [a/r/s/q]";
/// Answers that are not understood before we give up.
const ANSWERS_MAX: u32 = 10;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist test review                    walk through what is new and say a(ccept), r(eject), s(kip) or q(uit)
  annalist test review two-choices --accept
  annalist test review --list             name what waits; nothing is changed")]
pub(super) struct Args {
    /// Cases, or folders of them; tests/fixtures/cases by default
    #[arg(value_name = "CASE")]
    cases: Vec<PathBuf>,
    /// Accept all of them
    #[arg(long, conflicts_with_all = ["reject", "list"])]
    accept: bool,
    /// Reject all of them
    #[arg(long, conflicts_with = "list")]
    reject: bool,
    /// Name what waits
    #[arg(long)]
    list: bool,
    /// The prompt that they were recorded with, if not that of the settings
    #[arg(long, value_name = "FILE")]
    prompt: Option<PathBuf>,
}

/// A recording that waits.
struct Waiting {
    place: CasePlace,
    folder: PathBuf,
    name: String,
}

/// What a person says to it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Word {
    Accept,
    Reject,
    Skip,
    Quit,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let prompts: Vec<PathBuf> = args.prompt.iter().cloned().collect();
    let variation = variations(&config, &[], &prompts)?;
    let mut waiting = Vec::new();
    for place in find(&args.cases)? {
        if let Place::Folder(folder) = &place.is {
            let new = folder.join(CASSETTE_NEW);
            let names = recordings(&new).map_err(|error| failed(&new, &error))?;
            waiting.extend(names.into_iter().map(|name| {
                let (place, folder) = (place.clone(), folder.clone());
                Waiting { place, folder, name }
            }));
        }
    }
    if waiting.is_empty() {
        output::note("nothing waits for review; `annalist test --record` records");
        return Ok(ExitCode::SUCCESS);
    }
    if args.list {
        for it in &waiting {
            output::line(&format!("{}\t{}", it.place.name, it.name))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !args.accept && !args.reject && !io::stdin().is_terminal() {
        return Err(Failure::usage(format!(
            "{} to review, and stdin is no terminal: say --accept, --reject or --list",
            counted(waiting.len() as u64, "recording")
        )));
    }
    let (mut accepted, mut rejected, mut left) = (0, 0, 0);
    for (nth, it) in (1..).zip(&waiting) {
        print_lines(&format!(
            "{BOLD}{} · {}{BOLD:#} ({nth} of {})",
            it.place.name,
            it.name,
            waiting.len()
        ))?;
        let readable = it.show(&config, &variation)?;
        let word = match (args.accept, args.reject) {
            // What cannot be read cannot be accepted unseen.
            (true, _) if !readable => Word::Skip,
            (true, _) => Word::Accept,
            (_, true) => Word::Reject,
            (false, false) => ask()?,
        };
        match word {
            Word::Accept => {
                it.accept()?;
                accepted += 1;
            }
            Word::Reject => {
                it.reject()?;
                rejected += 1;
            }
            Word::Skip => left += 1,
            Word::Quit => {
                left += waiting.len() - nth + 1;
                break;
            }
        }
    }
    output::line(&format!("{accepted} accepted, {rejected} rejected, {left} left"))?;
    let unread = args.accept && left > 0;
    Ok(ExitCode::from(if unread { output::FAILED } else { 0 }))
}

impl Waiting {
    fn waiting(&self) -> PathBuf {
        self.folder.join(CASSETTE_NEW)
    }

    fn kept(&self) -> PathBuf {
        self.folder.join(CASSETTE)
    }

    fn accept(&self) -> Result<(), Failure> {
        settle(&self.waiting(), &self.kept(), &self.name)
            .map_err(|error| failed(&self.waiting(), &error))
    }

    fn reject(&self) -> Result<(), Failure> {
        drop_new(&self.waiting(), &self.name).map_err(|error| failed(&self.waiting(), &error))
    }

    /// Shows what it would change; says whether it can be read.
    fn show(&self, config: &Config, variation: &[Variation]) -> Result<bool, Failure> {
        let file = match Cassette::read_file(&self.waiting().join(format!("{}.json", self.name))) {
            Ok(file) => file,
            Err(what) => {
                output::note(&format!("{RED}error:{RED:#} {what}"));
                return Ok(false);
            }
        };
        let (mut new, mut findings) = (Cassette::default(), Vec::new());
        new.add(&self.name, &file, &mut findings);
        // A case that was never recorded has none.
        let accepted = Cassette::load(&self.kept()).map(|(kept, _)| kept).unwrap_or_default();
        let requests = counted(file.len() as u64, "request");
        let differences = accepted.differences(&file);
        let mut by_sort: BTreeMap<&str, usize> = BTreeMap::new();
        differences.iter().for_each(|it| *by_sort.entry(it).or_default() += 1);
        match differences.is_empty() {
            true => print_lines(&format!("{requests}, all asked as before"))?,
            false => {
                let sorts = by_sort.iter().map(|(sort, times)| format!("{times} in {sort}"));
                let sorts: Vec<String> = sorts.collect();
                print_lines(&format!("{requests}; not asked before: {}", sorts.join("; ")))?;
            }
        }
        let model = new.model().map(str::to_owned);
        let held = model.as_deref().is_some_and(|model| accepted.names(model));
        let of = |recordings: Recordings, model: Option<String>| {
            let of_model = |it: &Variation| Variation { model: model.clone(), ..it.clone() };
            let trial = Trial {
                config: config.clone(),
                variations: variation.iter().map(of_model).collect(),
                cases: vec![self.place.clone()],
                recordings,
            };
            trial.offline()
        };
        let before = of(Recordings::Accepted, model.clone().filter(|_| held));
        let after = of(Recordings::New(self.name.clone()), model);
        let tolerances = |_: &str| Tolerances::default();
        let compared = compare(&before.report, &after.report, &tolerances);
        print_lines(&print::table(&after.report, Some(&compared), width(), false))?;
        Ok(true)
    }
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{}: {error}", path.display()))
}

/// Asks until an answer is understood; the end of the input is a quit.
fn ask() -> Result<Word, Failure> {
    for _ in 0..ANSWERS_MAX {
        output::note(QUESTION);
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        let read = read.map_err(|error| Failure::failed(format!("cannot read: {error}")))?;
        if read == 0 {
            return Ok(Word::Quit);
        }
        if let Some(word) = word(line.trim()) {
            return Ok(word);
        }
    }
    Ok(Word::Quit)
}

fn word(text: &str) -> Option<Word> {
    match text.to_lowercase().as_str() {
        "a" | "accept" => Some(Word::Accept),
        "r" | "reject" => Some(Word::Reject),
        "s" | "skip" => Some(Word::Skip),
        "q" | "quit" => Some(Word::Quit),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_understood_by_its_first_letter_or_whole_and_nothing_else_is() {
        let words = ["a", "Reject", " s".trim(), "quit"].map(word);
        let all = [Word::Accept, Word::Reject, Word::Skip, Word::Quit];
        assert_eq!(words, all.map(Some));
        assert_eq!(["", "y", "ac", "accept all"].map(word), [None; 4]);
    }
}
