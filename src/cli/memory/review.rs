//! `annalist memory review`: asks about open and contradictory memories one by one. Each answer is a separate verdict,
//! so quitting keeps earlier answers.

use super::folder::{after_plan, before_plan};
use super::verdicts::apply;
use crate::adapters::files;
use crate::cli::consolidate::consolidator;
use crate::cli::output::{self, BOLD, DIM, Failure, counted, short, shorten};
use crate::cli::settings;
use crate::consolidate::PersonVerdict;
use crate::eval::{Forbidden, Gold, Item, Why, gold_item, write_if_changed};
use crate::pipeline::{Question, questions};
use crate::privacy::Gate;
use crate::store::Store;
use std::collections::BTreeSet;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HEADLINE_LETTERS: usize = 160;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory review
  annalist memory review --namespace roofs
  printf '2\\nb\\nq\\n' | annalist memory review   one letter a line; the end of the input ends the review
  annalist memory review --gold gold.json         the answers, as gold")]
pub(super) struct Args {
    /// Only this namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Add each memory that was answered about to this gold file
    #[arg(long, value_name = "FILE")]
    gold: Option<PathBuf>,
}

/// Meaning of a key.
enum Answer {
    Verdict(PersonVerdict),
    Skip,
    Quit,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let (config, store) = settings::existing_store(file)?;
    let gate = Gate::new(&config.pii);
    settings::runtime()?.block_on(async {
        let named = args.namespace.clone();
        let namespaces = match named {
            Some(namespace) => vec![namespace],
            None => store.namespaces().await?,
        };
        let mut gold = Drafted::read(args.gold.as_deref(), &gate)?;
        let mut lines = io::stdin().lock().lines();
        let mut changed = BTreeSet::new();
        for namespace in &namespaces {
            before_plan(&store, &config, namespace).await?;
        }
        let reviewer = Reviewer { store: &store, gold: &mut gold };
        let ended = reviewer.review(&namespaces, &mut lines, &mut changed).await;
        gold.write()?;
        let changed: Vec<&str> = changed.iter().map(String::as_str).collect();
        after_plan(&store, &config, &changed).await?;
        ended.map(|()| ExitCode::SUCCESS)
    })
}

struct Reviewer<'a> {
    store: &'a Store,
    gold: &'a mut Drafted,
}

impl Reviewer<'_> {
    async fn review(
        self,
        namespaces: &[String],
        lines: &mut impl Iterator<Item = io::Result<String>>,
        changed: &mut BTreeSet<String>,
    ) -> Result<(), Failure> {
        let consolidator = consolidator(self.store.clone(), None);
        let mut all = Vec::new();
        for namespace in namespaces {
            all.extend(questions(self.store, namespace).await?);
        }
        let count = all.len();
        let pairs = all.iter().filter(|it| matches!(it, Question::Pair { .. })).count();
        output::note(&match count {
            0 => "nothing is open, and nothing contradicts anything".to_owned(),
            _ => format!(
                "{count} to answer: {} left open or in contradiction, {} open requests, questions and failures",
                counted(pairs as u64, "pair"),
                count - pairs
            ),
        });
        for (number, mut question) in (1..).zip(all) {
            // An earlier answer may have resolved it.
            if !question.refresh(self.store).await? {
                continue;
            }
            let asked = Asked(&question);
            asked.print(&format!("{number}/{count}"))?;
            let verdict = match asked.ask(lines)? {
                Answer::Quit => break,
                Answer::Skip => continue,
                Answer::Verdict(verdict) => verdict,
            };
            let namespace = &question.memories()[0].namespace;
            match apply(&consolidator, namespace, verdict).await {
                Ok(plan) => {
                    let done = match verdict {
                        PersonVerdict::KeepBoth { .. } => "both are kept",
                        PersonVerdict::Supersede { .. } => "the other is out of use",
                        PersonVerdict::Close { .. } => "closed",
                        PersonVerdict::Reopen { .. } => "open again",
                        PersonVerdict::Retract { .. } => "taken out of memory",
                    };
                    let plan = short(&plan.id);
                    let undo = format!("`annalist consolidate --undo {plan}` takes it back");
                    output::line(&format!("   {DIM}{done}; {undo}{DIM:#}"))?;
                    changed.insert(namespace.clone());
                    self.gold.add(self.store, &question, verdict).await?;
                }
                Err(failure) => output::note(&failure.line),
            }
        }
        Ok(())
    }
}

/// Question on a terminal.
struct Asked<'a>(&'a Question);

impl Asked<'_> {
    fn print(&self, number: &str) -> Result<(), Failure> {
        output::line(&format!("{BOLD}{number}{BOLD:#}"))?;
        for (place, memory) in (1..).zip(self.0.memories()) {
            let day = output::day(memory.valid_from.map(|at| at.to_string()).as_deref());
            let kind = memory.claim.kind().name();
            let words = shorten(memory.claim.headline(), HEADLINE_LETTERS);
            let id = short(&memory.id);
            output::line(&format!("  {place}  {day}  {kind}  {words}  {DIM}{id}{DIM:#}"))?;
        }
        Ok(())
    }

    fn keys(&self) -> String {
        match (self.0, self.0.asked()) {
            (Question::Open(_), _) => "c close, s still open, q quit".to_owned(),
            (Question::Pair { one, .. }, Some(asked)) => {
                let place = if asked.id == one.id { 1 } else { 2 };
                let kind = asked.claim.kind().name();
                format!("c close {place}, the {kind}; b both stay, s skip, q quit")
            }
            (Question::Pair { .. }, None) => "1 or 2 holds, b both hold, s skip, q quit".to_owned(),
        }
    }

    /// Reads lines until one is an answer. End of input quits.
    fn ask(&self, lines: &mut impl Iterator<Item = io::Result<String>>) -> Result<Answer, Failure> {
        output::note(&format!("{}; then Enter", self.keys()));
        for line in lines {
            let line = line.map_err(|error| Failure::failed(format!("standard input: {error}")))?;
            match self.answer(line.trim()) {
                Some(answer) => return Ok(answer),
                None => output::note(&format!("`{}`: expected {}", line.trim(), self.keys())),
            }
        }
        Ok(Answer::Quit)
    }

    fn answer(&self, key: &str) -> Option<Answer> {
        let verdict = match (key, self.0, self.0.asked()) {
            ("q", ..) => return Some(Answer::Quit),
            ("s" | "", ..) => return Some(Answer::Skip),
            ("c", _, Some(asked)) => PersonVerdict::Close { memory: asked.id },
            ("b", Question::Pair { one, other, .. }, _) => {
                PersonVerdict::KeepBoth { one: one.id, other: other.id }
            }
            ("1", Question::Pair { one, other, .. }, None) => {
                PersonVerdict::Supersede { old: other.id, new: one.id }
            }
            ("2", Question::Pair { one, other, .. }, None) => {
                PersonVerdict::Supersede { old: one.id, new: other.id }
            }
            _ => return None,
        };
        Some(Answer::Verdict(verdict))
    }
}

/// Draft of gold from verdicts, and its file.
struct Drafted {
    file: Option<PathBuf>,
    gold: Gold,
}

impl Drafted {
    fn read(file: Option<&Path>, gate: &Gate) -> Result<Drafted, Failure> {
        let Some(path) = file else { return Ok(Drafted { file: None, gold: Gold::default() }) };
        let text = files::read_if_exists(path);
        let text = text.map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        let gold = match text {
            Some(text) => Gold::read(&text, gate)
                .map_err(|finding| Failure::usage(format!("{}: {finding}", path.display())))?,
            None => Gold::default(),
        };
        Ok(Drafted { file: Some(path.to_owned()), gold })
    }

    /// Adds the memories of an answer: superseded ones as forbidden, all others as expected.
    async fn add(
        &mut self,
        store: &Store,
        question: &Question,
        verdict: PersonVerdict,
    ) -> Result<(), Failure> {
        if self.file.is_none() {
            return Ok(());
        }
        for memory in question.memories() {
            let (id, words) = (short(&memory.id), memory.claim.headline());
            self.gold.items.retain(|it| it.id != id);
            self.gold.forbidden.retain(|it| it.id != id);
            if matches!(verdict, PersonVerdict::Supersede { old, .. } if old == memory.id) {
                let terms = vec![vec![words.to_lowercase()]];
                let statement = words.to_owned();
                self.gold.forbidden.push(Forbidden { id, why: Why::Reversed, statement, terms });
                continue;
            }
            let first: Vec<_> = memory.sources.iter().take(1).copied().collect();
            let records = store.records_of(first).await?;
            let evidence = records.first().and_then(|record| record.evidence.first());
            let quote = evidence.map(|it| it.words.as_str().to_owned());
            let (kind, claim) = (memory.claim.kind(), memory.claim.to_json());
            self.gold.items.push(Item { id, ..gold_item(kind, &claim, quote) });
        }
        Ok(())
    }

    fn write(&self) -> Result<(), Failure> {
        let Some(path) = &self.file else { return Ok(()) };
        let wrong = |error: &dyn std::fmt::Display| {
            Failure::failed(format!("{}: cannot be written: {error}", path.display()))
        };
        let text = serde_json::to_string_pretty(&self.gold).map_err(|error| wrong(&error))?;
        write_if_changed(path, &format!("{text}\n")).map_err(|error| wrong(&error))?;
        let items = self.gold.items.len() + self.gold.forbidden.len();
        output::note(&format!("{}: {}", path.display(), counted(items as u64, "gold item")));
        Ok(())
    }
}
