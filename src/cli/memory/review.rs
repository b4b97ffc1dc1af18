//! `annalist memory review`: what is open or contradicts one another, one after another, each answered with a key. Every
//! answer is a verdict of its own: what was answered before the end stays.

use super::folder::{after_plan, before_plan};
use super::verdicts::apply;
use crate::adapters::files;
use crate::cli::consolidate::consolidator;
use crate::cli::output::{self, BOLD, DIM, Failure, counted, short, shorten};
use crate::cli::settings;
use crate::consolidate::PersonVerdict;
use crate::domain::{ClaimKind, Memory, MemoryId, MemoryMap, MemoryState};
use crate::eval::{Forbidden, Gold, Item, Why, gold_item, write_if_changed};
use crate::privacy::Gate;
use crate::store::{PrefixLookup, Store};
use std::collections::BTreeSet;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Open pairs of one review; the others come with the next.
const PAIRS_MAX: u32 = 1_000;
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

/// Something to answer about.
enum Question {
    /// Two memories that contradict one another, or may; the earlier one first.
    Pair { one: Box<Memory>, other: Box<Memory> },
    /// A request, question or failure that is open.
    Open(Box<Memory>),
}

/// The meaning of a key.
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
        if count == 0 {
            output::note("nothing is open, and nothing contradicts anything");
        }
        for (number, mut question) in (1..).zip(all) {
            // An earlier answer may have settled it.
            if !question.refresh(self.store).await? {
                continue;
            }
            question.print(&format!("{number}/{count}"))?;
            let verdict = match question.ask(lines)? {
                Answer::Quit => break,
                Answer::Skip => continue,
                Answer::Verdict(verdict) => verdict,
            };
            let namespace = &question.memories()[0].namespace;
            match apply(&consolidator, namespace, verdict).await {
                Ok(plan) => {
                    let rule = plan.operations.first().map(|it| it.rule.to_string());
                    let (rule, plan) = (rule.unwrap_or_default(), short(&plan.id));
                    output::line(&format!("   {DIM}{rule}, plan {plan}{DIM:#}"))?;
                    changed.insert(namespace.clone());
                    self.gold.add(self.store, &question, verdict).await?;
                }
                Err(failure) => output::note(&failure.line),
            }
        }
        Ok(())
    }
}

/// Everything to answer about in a namespace: first the pairs, then what is open, each by time.
async fn questions(store: &Store, namespace: &str) -> Result<Vec<Question>, Failure> {
    let memories = store.memories(Some(namespace)).await?;
    let open = store.suspected_pairs(namespace, PAIRS_MAX).await?;
    let mut pairs: Vec<(MemoryId, MemoryId)> = open.iter().map(|it| (it.memory, it.home)).collect();
    pairs.extend(store.contradictions(namespace).await?);
    let mut found = Vec::new();
    let mut met = BTreeSet::new();
    for (one, other) in pairs {
        if met.insert((one.min(other), one.max(other))) {
            found.extend(Question::pair(one, other, &memories));
        }
    }
    let mut open: Vec<&Memory> = memories.values().filter(|it| is_open(it)).collect();
    open.sort_by_key(|it| (it.valid_from, it.id));
    found.extend(open.into_iter().map(|it| Question::Open(Box::new(it.clone()))));
    Ok(found)
}

fn is_active(memory: &Memory) -> bool {
    memory.state == MemoryState::Active
}

fn is_open(memory: &Memory) -> bool {
    is_active(memory) && memory.is_open() && memory.stage_once(true).is_some()
}

impl Question {
    fn pair(one: MemoryId, other: MemoryId, memories: &MemoryMap) -> Option<Question> {
        let (one, other) = (memories.get(&one)?, memories.get(&other)?);
        let is_earlier = (one.valid_from, one.id) <= (other.valid_from, other.id);
        let (one, other) = if is_earlier { (one, other) } else { (other, one) };
        let both = is_active(one) && is_active(other);
        both.then(|| Question::Pair { one: Box::new(one.clone()), other: Box::new(other.clone()) })
    }

    fn memories(&self) -> Vec<&Memory> {
        match self {
            Question::Pair { one, other } => vec![one, other],
            Question::Open(memory) => vec![memory],
        }
    }

    /// Reads it again; false if there is nothing to answer any more.
    async fn refresh(&mut self, store: &Store) -> Result<bool, Failure> {
        let mut now = MemoryMap::new();
        for memory in self.memories() {
            if let PrefixLookup::One(found) = store.memory(memory.id.0.into()).await? {
                now.insert(found.id, *found);
            }
        }
        let fresh = match &*self {
            Question::Pair { one, other } => Question::pair(one.id, other.id, &now),
            Question::Open(memory) => {
                now.remove(&memory.id).filter(is_open).map(|it| Question::Open(Box::new(it)))
            }
        };
        Ok(fresh.map(|it| *self = it).is_some())
    }

    /// The memory of a pair that the other one may close.
    fn asked(&self) -> Option<&Memory> {
        match self {
            Question::Pair { one, other } if one.claim.kind() != other.claim.kind() => {
                let asks = |it: &&Memory| {
                    matches!(it.claim.kind(), ClaimKind::Request | ClaimKind::Discussion)
                };
                [&**one, &**other].into_iter().find(asks)
            }
            Question::Pair { .. } => None,
            Question::Open(memory) => Some(memory),
        }
    }

    fn print(&self, number: &str) -> Result<(), Failure> {
        output::line(&format!("{BOLD}{number}{BOLD:#}"))?;
        for (place, memory) in (1..).zip(self.memories()) {
            let day = memory.valid_from.map_or_else(|| "no day".to_owned(), |at| at.day());
            let kind = memory.claim.kind().name();
            let words = shorten(memory.claim.headline(), HEADLINE_LETTERS);
            let id = short(&memory.id);
            output::line(&format!("  {place}  {day}  {kind}  {words}  {DIM}{id}{DIM:#}"))?;
        }
        Ok(())
    }

    fn keys(&self) -> &'static str {
        match (self, self.asked()) {
            (Question::Open(_), _) => "c close, s still open, q quit",
            (Question::Pair { .. }, Some(_)) => {
                "c close the request or question, b both stay, s skip, q quit"
            }
            (Question::Pair { .. }, None) => "1 or 2 holds, b both hold, s skip, q quit",
        }
    }

    /// Reads lines until one is an answer; the end of the input quits.
    fn ask(&self, lines: &mut impl Iterator<Item = io::Result<String>>) -> Result<Answer, Failure> {
        output::note(self.keys());
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
        let verdict = match (key, self, self.asked()) {
            ("q", ..) => return Some(Answer::Quit),
            ("s" | "", ..) => return Some(Answer::Skip),
            ("c", _, Some(asked)) => PersonVerdict::Close { memory: asked.id },
            ("b", Question::Pair { one, other }, _) => {
                PersonVerdict::KeepBoth { one: one.id, other: other.id }
            }
            ("1", Question::Pair { one, other }, None) => {
                PersonVerdict::Supersede { old: other.id, new: one.id }
            }
            ("2", Question::Pair { one, other }, None) => {
                PersonVerdict::Supersede { old: one.id, new: other.id }
            }
            _ => return None,
        };
        Some(Answer::Verdict(verdict))
    }
}

/// Gold that is drafted of verdicts, and its file.
struct Drafted {
    file: Option<PathBuf>,
    gold: Gold,
}

impl Drafted {
    fn read(file: Option<&Path>, gate: &Gate) -> Result<Drafted, Failure> {
        let Some(path) = file else { return Ok(Drafted { file: None, gold: Gold::default() }) };
        let text = files::read_if_there(path);
        let text = text.map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        let gold = match text {
            Some(text) => Gold::read(&text, gate)
                .map_err(|finding| Failure::usage(format!("{}: {finding}", path.display())))?,
            None => Gold::default(),
        };
        Ok(Drafted { file: Some(path.to_owned()), gold })
    }

    /// Adds the memories of an answer: what holds must be found, what was replaced must not.
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
