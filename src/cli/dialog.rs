//! `annalist dialog`: what a prompt is told of the last few turns.

mod read;

use super::output::{self, DIM, Failure};
use super::{settings, stored};
use crate::dialog::{Block, CompactSummary, DialogSummary, Limits, Rules};
use crate::domain::{Entry, Finding, Format, Record, Severity, Tokens};
use crate::privacy::{Gate, Redacted};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Letters of a turn that the table shows.
const LINE_LETTERS: usize = 100;
/// Findings that are listed; the others are counted.
const LISTED_MAX: usize = 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist dialog ~/.claude/projects/roofs/session.jsonl    the last turns, as a prompt is told them
  annalist dialog session.jsonl --check                     every turn, how long it is, what became of it
  annalist dialog --session 079da                           of a session that was replayed or enqueued
  annalist dialog - --max-tokens 200 < turns.json           {\"turns\": [{\"user_intent\": \"asked about x\",
                                                            \"action_taken\": \"called y\", \"pending_items\": []}]}

No model is asked. Words pass the privacy gate before they are cut; which kinds of personal data it \
masks is set by privacy.pii, how much is kept by dialog.tokens and dialog.turns.")]
pub(super) struct Args {
    /// A transcript, or a document with turns that are told already; `-` reads standard input
    #[arg(required_unless_present = "session")]
    file: Option<PathBuf>,
    /// Tell of a session in the store instead, from its entries and its records: its id, or the beginning
    /// of it
    #[arg(long, value_name = "ID", conflicts_with_all = ["file", "format"])]
    session: Option<String>,
    /// The longest block, in estimated tokens, instead of dialog.tokens
    #[arg(long, value_name = "N")]
    max_tokens: Option<Tokens>,
    /// Read the transcript as this format instead of finding it out
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Print the blocks with their turns as JSON
    #[arg(long)]
    json: bool,
    /// Print a table of all turns: how long each is, and whether it is shown, shortened or evicted
    #[arg(long, conflicts_with = "json")]
    check: bool,
}

/// The dialog of one conversation.
struct Told {
    /// The transcript's own name for it, if it is one.
    session: Option<Redacted>,
    /// As it is kept.
    dialog: DialogSummary,
    /// Every turn, as if there were no limits.
    all: DialogSummary,
    /// What was found in it, of a session in the store.
    records: Vec<Record>,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let gate = Gate::new(&config.pii);
    let mut limits = config.dialog;
    limits.tokens_max = args.max_tokens.unwrap_or(limits.tokens_max);
    let rules = Rules { gate: &gate, limits };
    let read::Input { told, findings } = match (&args.session, &args.file) {
        (Some(id), _) if !args.check && limits.tokens_max <= config.dialog.tokens_max => {
            let (session, dialog, records) = stored::dialog(id, &config)?;
            let mut told = Told::new(Some(session.native_id));
            (told.dialog, told.records) = (dialog, records);
            read::Input { told: vec![told], findings: Vec::new() }
        }
        // What was let go of is read again.
        (Some(id), _) => {
            let mut told = Told::new(None);
            let (session, records) = stored::read(id, &config, |_, entry| told.push(entry, rules))?;
            (told.session, told.records) = (Some(session.native_id), records);
            read::Input { told: vec![told], findings: Vec::new() }
        }
        (None, Some(path)) => read::read(path, args.format, rules)?,
        (None, None) => return Err(Failure::usage("expected a file or --session ID")),
    };
    if args.check {
        for (at, it) in told.iter().enumerate() {
            print_check(it, rules, at > 0)?;
        }
    } else {
        print(&told, rules, args.json)?;
    }
    let failed = report(&findings);
    Ok(if failed { ExitCode::from(output::FAILED) } else { ExitCode::SUCCESS })
}

/// Prints a block for each conversation.
fn print(told: &[Told], rules: Rules<'_>, json: bool) -> Result<(), Failure> {
    let blocks: Vec<Block> = told.iter().map(|it| it.block(rules)).collect();
    if json {
        let sessions = told.iter().map(|it| it.session.as_ref());
        let values =
            sessions.zip(&blocks).map(|(session, block)| to_json(session, block, rules.limits));
        return output::json(&values.collect::<Vec<_>>());
    }
    let texts: Vec<&str> =
        blocks.iter().map(|it| it.text.as_str()).filter(|it| !it.is_empty()).collect();
    if texts.is_empty() {
        output::note("no turn to tell of");
        return Ok(());
    }
    output::line(&texts.join("\n\n"))
}

fn to_json(session: Option<&Redacted>, block: &Block, limits: Limits) -> Value {
    json!({
        "session": session,
        "block": block.text,
        "tokens": block.tokens,
        "tokens_max": limits.tokens_max,
        "turns": block.turns.iter().map(turn_to_json).collect::<Vec<_>>(),
        "evicted": block.fit.evicted,
        "shortened": block.fit.shortened,
    })
}

fn turn_to_json(turn: &CompactSummary) -> Value {
    json!({
        "turn_number": turn.turn_number,
        "user_intent": turn.user_intent,
        "action_taken": turn.action_taken,
        "pending_items": turn.pending_items,
        "timestamp": turn.timestamp.map(|at| at.to_string()),
        "entries": turn.entries,
    })
}

/// Prints every turn with what became of it.
fn print_check(told: &Told, rules: Rules<'_>, again: bool) -> Result<(), Failure> {
    let block = told.block(rules);
    let all = told.all.turns(unlimited(rules));
    let mut table = output::table(&["turn", "tokens", "state", "line"]);
    let mut shown = 0;
    for turn in &all {
        let kept = block.turns.iter().find(|it| it.turn_number == turn.turn_number);
        shown += u32::from(kept.is_some());
        let state = match kept {
            None => "evicted",
            Some(kept) if kept != turn => "shortened",
            Some(_) => "shown",
        };
        let line = kept.unwrap_or(turn).line();
        table.add_row([
            turn.turn_number.to_string(),
            kept.unwrap_or(turn).tokens().to_string(),
            state.to_owned(),
            output::shorten(line.as_str(), LINE_LETTERS),
        ]);
    }
    if again {
        output::line("")?;
    }
    if let Some(session) = &told.session {
        output::line(&format!("{DIM}session {}{DIM:#}", session.as_str()))?;
    }
    if !all.is_empty() {
        output::print_table(&table)?;
    }
    output::line(&format!(
        "{} turns, {shown} shown, {} evicted; {} of at most {} tokens",
        all.len(),
        all.len() - shown as usize,
        block.tokens,
        rules.limits.tokens_max,
    ))
}

/// The same rules without limits.
fn unlimited(rules: Rules<'_>) -> Rules<'_> {
    Rules { limits: Limits { tokens_max: Tokens::MAX, turns_max: u32::MAX }, ..rules }
}

/// Says what could not be read; whether something was lost.
fn report(findings: &[Finding]) -> bool {
    let worth: Vec<&Finding> = findings.iter().filter(|it| it.severity > Severity::Info).collect();
    for finding in worth.iter().take(LISTED_MAX) {
        output::note(&finding.to_string());
    }
    if worth.len() > LISTED_MAX {
        output::note(&format!("and {} more findings", worth.len() - LISTED_MAX));
    }
    worth.iter().any(|finding| finding.severity == Severity::Error)
}

impl Told {
    fn new(session: Option<Redacted>) -> Told {
        let (dialog, all, records) = Default::default();
        Told { session, dialog, all, records }
    }

    fn block(&self, rules: Rules<'_>) -> Block {
        self.dialog.block(&self.records.iter().collect::<Vec<_>>(), rules)
    }

    fn add(&mut self, turn: CompactSummary, rules: Rules<'_>) {
        self.all.add(turn.clone(), unlimited(rules));
        self.dialog.add(turn, rules);
    }

    fn push(&mut self, entry: &Entry, rules: Rules<'_>) {
        self.all.push(entry, unlimited(rules));
        self.dialog.push(entry, rules);
    }
}
