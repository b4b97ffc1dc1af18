//! `annalist memory keep-both`, `supersede`, `close`, `reopen` and `retract`: a person's verdicts on memories; `review`
//! asks about open and contradictory ones. Each answer is a separate verdict, so quitting keeps earlier answers.

use super::folder::{after_plan, before_plan, unreadable};
use super::memories::named;
use crate::adapters::files;
use crate::cli::arguments::note_unknown;
use crate::cli::consolidate::consolidator;
use crate::cli::output::{self, BOLD, DIM, Failure, Result, counted, short, shorten};
use crate::cli::settings;
use crate::config::namespace_name;
use crate::consolidate::PersonVerdict;
use crate::domain::{BY_PERSON, Digest, Memory, MemoryId, Plan};
use crate::eval::{Forbidden, Gold, Item, Why, write_if_changed};
use crate::pipeline::{Consolidator, DecisionOutcome, Question, questions};
use crate::privacy::Gate;
use crate::store::Store;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};

const HEADLINE_LETTERS: usize = 80;
const QUESTION_LETTERS: usize = 160;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: annalist memory keep-both 3fa9 src-1b0c22d4

Takes IDs, ID prefixes or tags of the directory. `annalist consolidate --undo` undoes a verdict.")]
pub(super) struct KeepBothArgs {
    /// A memory
    one: String,
    /// The memory that it seems to contradict
    other: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: annalist memory supersede 3fa9 src-1b0c22d4

Takes IDs, ID prefixes or tags of the directory. `annalist consolidate --undo` undoes a verdict.")]
pub(super) struct SupersedeArgs {
    /// The memory that no longer holds
    old: String,
    /// The memory that replaces it
    new: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Takes an ID, ID prefix or tag of the directory. `annalist consolidate --undo` undoes a verdict.")]
pub(super) struct OneArgs {
    /// The memory
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A verdict, as JSON.
#[derive(JsonSchema, Serialize)]
pub(crate) struct VerdictRow {
    plan: Digest,
    rule: String,
    memories: Vec<MemoryId>,
}

pub(super) async fn keep_both(args: &KeepBothArgs, file: Option<&Path>) -> Result<()> {
    let verdict = |one, other| PersonVerdict::KeepBoth { one, other };
    decide(&[&args.one, &args.other], verdict, args.json, file).await
}

pub(super) async fn supersede(args: &SupersedeArgs, file: Option<&Path>) -> Result<()> {
    let verdict = |old, new| PersonVerdict::Supersede { old, new };
    decide(&[&args.old, &args.new], verdict, args.json, file).await
}

pub(super) async fn one(
    args: &OneArgs,
    verdict: impl Fn(MemoryId) -> PersonVerdict,
    file: Option<&Path>,
) -> Result<()> {
    decide(&[&args.id], |memory, _| verdict(memory), args.json, file).await
}

/// Applies a verdict on the first and the last of the named memories.
async fn decide(
    names: &[&String],
    verdict: impl Fn(MemoryId, MemoryId) -> PersonVerdict,
    as_json: bool,
    file: Option<&Path>,
) -> Result<()> {
    let (config, store) = settings::existing_store(file)?;
    let mut memories: Vec<Memory> = Vec::new();
    for name in names {
        memories.push(named(&store, name).await?);
    }
    let verdict = verdict(memories[0].id, memories[memories.len() - 1].id);
    let namespace = memories[0].namespace.as_str();
    before_plan(&store, &config, namespace).await?;
    let plan = apply(&consolidator(store.clone(), None), namespace, verdict).await?;
    let rule = plan.operations.first().map(|it| it.rule.to_string()).unwrap_or_default();
    if as_json {
        let memories = memories.iter().map(|it| it.id).collect();
        output::json(&VerdictRow { plan: plan.id.0, rule, memories })?;
    } else {
        let done = rule.strip_prefix(BY_PERSON).unwrap_or(&rule).replace('-', " ");
        let is_replaced = matches!(verdict, PersonVerdict::Supersede { .. });
        for (at, memory) in memories.iter().enumerate() {
            let words = shorten(memory.words(), HEADLINE_LETTERS);
            let deed = if is_replaced && at > 0 { "replaces it" } else { &done };
            output::line(&format!("{}  {words}  {DIM}{deed}{DIM:#}", short(&memory.id)))?;
        }
        let plan = short(&plan.id);
        output::note(&format!("`annalist consolidate --undo {plan}` undoes it"));
    }
    after_plan(&store, &config, &[namespace]).await
}

async fn apply(
    consolidator: &Consolidator,
    namespace: &str,
    verdict: PersonVerdict,
) -> Result<Plan> {
    match consolidator.decide(namespace, verdict).await? {
        DecisionOutcome::Done(plan) => Ok(*plan),
        DecisionOutcome::Refused(why) => Err(Failure::usage(why)),
        DecisionOutcome::Busy => Err(output::busy(&[namespace])),
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory review
  annalist memory review --namespace roofs
  printf 'c\\nb\\nq\\n' | annalist memory review  one key per line
  annalist memory review --gold gold.json      save the answers as gold

The end of the input ends the review. Without a terminal, an unknown key ends it too and exits 2; earlier \
answers stay.")]
pub(super) struct ReviewArgs {
    /// Only this namespace
    #[arg(long, value_name = "NAME", value_parser = namespace_name)]
    namespace: Option<String>,
    /// Add each reviewed memory to this gold file
    #[arg(long, value_name = "FILE")]
    gold: Option<PathBuf>,
}

enum Answer {
    Verdict(PersonVerdict),
    Skip,
    Quit,
}

pub(super) async fn review(args: &ReviewArgs, file: Option<&Path>) -> Result<()> {
    let (config, store) = settings::existing_store(file)?;
    let gate = Gate::new(&config.pii);
    note_unknown(&store, args.namespace.as_deref()).await?;
    let namespaces = match &args.namespace {
        Some(namespace) => vec![namespace.clone()],
        None => store.namespaces().await?,
    };
    let mut gold = Drafted::read(args.gold.as_deref(), &gate)?;
    for namespace in &namespaces {
        before_plan(&store, &config, namespace).await?;
    }
    let mut changed = BTreeSet::new();
    let ended = review_all(&store, &namespaces, &mut gold, &mut changed).await;
    gold.write()?;
    let changed: Vec<&str> = changed.iter().map(String::as_str).collect();
    after_plan(&store, &config, &changed).await?;
    ended
}

/// Asks about all questions of `namespaces`; adds those with verdicts to `changed`.
async fn review_all(
    store: &Store,
    namespaces: &[String],
    gold: &mut Drafted,
    changed: &mut BTreeSet<String>,
) -> Result<()> {
    let mut lines = io::stdin().lock().lines();
    let consolidator = consolidator(store.clone(), None);
    let mut all = Vec::new();
    for namespace in namespaces {
        all.extend(questions(store, namespace).await?);
    }
    let count = all.len();
    let pairs = all.iter().filter(|it| matches!(it, Question::Pair { .. })).count();
    let (open, contradictory) = (count - pairs, counted(pairs as u64, "pair"));
    output::note(&match count {
        0 => "nothing to review: no memory is open or contradictory".to_owned(),
        _ => format!(
            "{count} to review: {contradictory} left open or contradictory, {open} open \
                 requests, questions and failures"
        ),
    });
    for (number, mut question) in (1..).zip(all) {
        // An earlier answer may have resolved it.
        if !question.refresh(store).await? {
            continue;
        }
        let number = format!("{number}/{count}");
        print_question(&question, &number)?;
        let verdict = match ask(&question, &number, &mut lines)? {
            Answer::Quit => break,
            Answer::Skip => continue,
            Answer::Verdict(verdict) => verdict,
        };
        let namespace = &question.memories()[0].namespace;
        match apply(&consolidator, namespace, verdict).await {
            Ok(plan) => {
                let done = match verdict {
                    PersonVerdict::KeepBoth { .. } => "both are kept",
                    PersonVerdict::Supersede { .. } => "the other is superseded",
                    PersonVerdict::Close { .. } => "closed",
                    PersonVerdict::Reopen { .. } => "reopened",
                    PersonVerdict::Retract { .. } => "retracted",
                };
                let plan = short(&plan.id);
                let undo = format!("`annalist consolidate --undo {plan}` undoes it");
                output::line(&format!("   {DIM}{done}; {undo}{DIM:#}"))?;
                changed.insert(namespace.clone());
                gold.add(store, &question, verdict).await?;
            }
            Err(failure) => output::note(&failure.line),
        }
    }
    Ok(())
}

fn print_question(question: &Question, number: &str) -> Result<()> {
    output::line(&format!("{BOLD}{number}{BOLD:#}"))?;
    for (place, memory) in (1..).zip(question.memories()) {
        let day = output::day(memory.valid_from.map(|at| at.to_string()).as_deref());
        let kind = memory.claim.kind().name();
        let words = shorten(memory.words(), QUESTION_LETTERS);
        let id = short(&memory.id);
        output::line(&format!("  {place}  {day}  {kind}  {words}  {DIM}{id}{DIM:#}"))?;
    }
    Ok(())
}

fn keys(question: &Question) -> String {
    match (question, question.asked()) {
        (Question::Open(_), _) => "c close, s still open, q quit".to_owned(),
        (Question::Pair { one, .. }, Some(asked)) => {
            let place = if asked.id == one.id { 1 } else { 2 };
            let kind = asked.claim.kind().name();
            format!("c close {place}, the {kind}; b both stay, s skip, q quit")
        }
        (Question::Pair { .. }, None) => "1 or 2 holds, b both hold, s skip, q quit".to_owned(),
    }
}

/// Reads lines until one is an answer. End of input quits. Without a terminal, the lines after a wrong one may be meant
/// for other questions, so it is an error.
fn ask(
    question: &Question,
    number: &str,
    lines: &mut impl Iterator<Item = io::Result<String>>,
) -> Result<Answer> {
    output::note(&format!("{}; then Enter", keys(question)));
    for line in lines {
        let line = line.map_err(|error| Failure::failed(format!("standard input: {error}")))?;
        match answer(question, line.trim()) {
            Some(answer) => return Ok(answer),
            None => {
                let what = format!("`{}`: expected {}", line.trim(), keys(question));
                if !io::stdin().is_terminal() {
                    return Err(Failure::usage(format!("{number}: {what}")));
                }
                output::note(&what);
            }
        }
    }
    Ok(Answer::Quit)
}

fn answer(question: &Question, key: &str) -> Option<Answer> {
    let verdict = match (key, question, question.asked()) {
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

struct Drafted {
    file: Option<PathBuf>,
    gold: Gold,
}

impl Drafted {
    fn read(file: Option<&Path>, gate: &Gate) -> Result<Drafted> {
        let mut gold = Gold::default();
        if let Some(path) = file {
            let text = files::read_if_exists(path).map_err(|error| unreadable(path, &error))?;
            let wrong = |finding| Failure::usage(format!("{}: {finding}", path.display()));
            gold = text.map_or(Ok(gold), |text| Gold::read(&text, gate)).map_err(wrong)?;
        }
        Ok(Drafted { file: file.map(Path::to_owned), gold })
    }

    /// Adds the memories of an answer: superseded ones as forbidden, all others as expected.
    async fn add(
        &mut self,
        store: &Store,
        question: &Question,
        verdict: PersonVerdict,
    ) -> Result<()> {
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
            self.gold.items.push(Item::of(id, &memory.claim, quote));
        }
        Ok(())
    }

    fn write(&self) -> Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        let text = serde_json::to_string_pretty(&self.gold).map_err(io::Error::from);
        let written = text.and_then(|text| write_if_changed(path, &format!("{text}\n")));
        written.map_err(output::unwritable(path))?;
        let items = self.gold.items.len() + self.gold.forbidden.len();
        output::note(&format!("{}: {}", path.display(), counted(items as u64, "gold item")));
        Ok(())
    }
}
