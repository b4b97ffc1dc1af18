//! `annalist dialog`: the last few turns of a dialog in prompt form.

use super::output::{self, DIM, Failure, Result, counted, json_row};
use super::session_input::{EntrySink, Heard, Source, StoredSession};
use super::settings;
use crate::dialog_summary::{
    Block, CompactSummary, DIALOG_TOKENS_MIN, DialogLimits, DialogRules, DialogSummary, document,
};
use crate::domain::{Entry, Finding, Format, HANDED_BYTES_MAX, Record, Severity, Tokens};
use crate::privacy::{Gate, Redacted};
use crate::transcripts::DetectError;
use clap::builder::TypedValueParser;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

const EXPECTED: &str = "a transcript, or turns as JSON: {\"turns\": [{\"user_intent\", …}]}";
const LINE_LETTERS: usize = 100;
const LISTED_MAX: usize = 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist dialog session.jsonl                  the last turns of a prompt
  annalist dialog session.jsonl --check          every turn and its length
  annalist dialog --session 079da                a session from the store
  annalist dialog - --max-tokens 200 < turns.json
                                {\"turns\": [{\"user_intent\": \"asked about x\",
                                \"action_taken\": \"called y\",
                                \"pending_items\": []}]}

Instead of these fields, a turn may have the output of a router: {\"user_input\": \"…\", \"output\": {\"route\", \
\"calendar_intent\", \"tool_plan\", \"assistant_reply\", \"requires_confirmation\", \"ask_user\", \
\"question\"}}. Small talk, intents and requests for permission are recognised in English, German, \
French, Spanish, Turkish, Japanese and Chinese. Calls no model. Text is redacted before it is \
truncated. privacy.pii sets which personal data is masked, dialog.tokens and dialog.turns how much \
is kept.")]
pub(super) struct Args {
    /// A transcript, or turns as JSON; `-` reads standard input
    #[arg(required_unless_present = "session")]
    file: Option<PathBuf>,
    /// A session in the store instead, with its records, by ID or ID prefix
    #[arg(long, value_name = "ID", conflicts_with_all = ["file", "format"])]
    session: Option<String>,
    /// Maximum length of the block in estimated tokens, instead of dialog.tokens
    #[arg(long, value_name = "N", value_parser = tokens())]
    max_tokens: Option<Tokens>,
    /// Read the transcript as this format instead of detecting it
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Print the blocks with their turns as JSON
    #[arg(long)]
    json: bool,
    /// Print a table of all turns with their length and state: shown, shortened or evicted
    #[arg(long, conflicts_with = "json")]
    check: bool,
}

/// The last turns of one conversation, as JSON.
#[derive(JsonSchema, Serialize)]
pub(super) struct DialogRow {
    session: Option<Redacted>,
    block: Redacted,
    tokens: Tokens,
    tokens_max: Tokens,
    turns: Vec<DialogTurn>,
    evicted: u32,
    shortened: bool,
}

json_row! {
    struct DialogTurn of turn: CompactSummary {
        turn_number: u32 = turn.turn_number,
        user_intent: Redacted = turn.user_intent,
        action_taken: Redacted = turn.action_taken,
        pending_items: Vec<Redacted> = turn.pending_items,
        timestamp: Option<String> = output::time(turn.timestamp),
        entries: Option<(u32, u32)> = turn.entries,
    }
}

#[derive(Default)]
struct Dialog {
    /// Name in the transcript; `None` for a document of turns.
    session: Option<Redacted>,
    kept: DialogSummary,
    all: DialogSummary,
    records: Vec<Record>,
}

fn tokens() -> impl TypedValueParser<Value = Tokens> {
    clap::value_parser!(Tokens).range(i64::from(DIALOG_TOKENS_MIN)..)
}

pub(super) async fn run(args: &Args, file: Option<&Path>) -> Result<()> {
    let config = settings::load(file)?;
    let gate = Gate::new(&config.pii);
    let mut limits = config.dialog;
    limits.tokens_max = args.max_tokens.unwrap_or(limits.tokens_max);
    let rules = DialogRules { gate: &gate, limits };
    let mut findings = Vec::new();
    let dialogs = match (&args.session, &args.file) {
        (Some(id), _) => {
            let mut dialog = Dialog::default();
            let is_kept = !args.check && limits.tokens_max <= config.dialog.tokens_max;
            // Reads evicted turns again.
            let mut each = |entry: &_, _: Format| dialog.push(entry, rules);
            let each: EntrySink<'_> = &mut each;
            let stored = StoredSession::find(id, &config, (!is_kept).then_some(each)).await?;
            if is_kept {
                dialog.kept = stored.dialog;
            }
            (dialog.session, dialog.records) = (Some(stored.session.native_id), stored.records);
            vec![dialog]
        }
        (None, Some(path)) => read(path, args.format, rules, &mut findings)?,
        (None, None) => return Err(Failure::usage("expected a file or --session ID")),
    };
    if args.check {
        for (at, dialog) in dialogs.iter().enumerate() {
            print_check(dialog, rules, at > 0)?;
        }
    } else if args.json {
        output::json(&dialogs.iter().map(|it| it.row(rules)).collect::<Vec<_>>())?;
    } else {
        let texts = dialogs.iter().map(|it| it.block(rules).text.as_str().to_owned());
        let texts: Vec<String> = texts.filter(|it| !it.is_empty()).collect();
        match texts.is_empty() {
            true => output::note("no turns to show"),
            false => output::line(&texts.join("\n\n"))?,
        }
    }
    findings.retain(|finding: &Finding| finding.severity > Severity::Info);
    output::notes(findings.iter().map(Finding::to_string), LISTED_MAX, "more findings");
    output::fail_if(findings.iter().any(|finding| finding.severity == Severity::Error))
}

/// Reads a transcript of any format or a document of turns, unless the file is private.
fn read(
    path: &Path,
    format: Option<Format>,
    rules: DialogRules<'_>,
    findings: &mut Vec<Finding>,
) -> Result<Vec<Dialog>> {
    let mut source = Source::open(path, EXPECTED)?;
    if source.is_private {
        return Ok(Vec::new());
    }
    let mut dialogs: Vec<Dialog> = Vec::new();
    match source.format(format) {
        Ok(format) => source.hear(format, rules.gate, &mut |heard| match heard {
            Heard::Session(session) => {
                let session = Some(session.native_id.clone());
                dialogs.push(Dialog { session, ..Dialog::default() });
            }
            Heard::Entry(entry, _) => {
                dialogs.last_mut().into_iter().for_each(|it| it.push(entry, rules));
            }
            Heard::Finding(finding) => findings.push(finding),
        })?,
        Err(unknown) => {
            let text = source.text(HANDED_BYTES_MAX as u64)?;
            let turns = document(text.trim_start_matches('\u{feff}'), rules.gate);
            let (turns, wrong) = turns.ok_or_else(|| {
                let or = match unknown {
                    DetectError::Nothing => {
                        ", or `{\"turns\": [{\"user_intent\", \"action_taken\", \"pending_items\"}]}`"
                    }
                    DetectError::Empty | DetectError::Binary | DetectError::LooksLike(_) => "",
                };
                Failure::failed(format!("{}: {unknown}{or}", source.name))
            })?;
            findings.extend(wrong);
            let mut dialog = Dialog::default();
            turns.into_iter().for_each(|turn| dialog.add(turn, rules));
            dialogs.push(dialog);
        }
    }
    Ok(dialogs)
}

fn print_check(dialog: &Dialog, rules: DialogRules<'_>, again: bool) -> Result<()> {
    let block = dialog.block(rules);
    let all = dialog.all.turns(unlimited(rules));
    let mut table = output::table(&["turn", "tokens", "state", "line"]);
    let mut shown = 0;
    for turn in &all {
        let kept = block.turns.iter().find(|it| it.turn_number == turn.turn_number);
        shown += usize::from(kept.is_some());
        let state = match kept {
            None => "evicted",
            Some(kept) if kept != turn => "shortened",
            Some(_) => "shown",
        };
        let turn = kept.unwrap_or(turn);
        table.add_row([
            turn.turn_number.to_string(),
            turn.tokens().to_string(),
            state.to_owned(),
            output::shorten(turn.line().as_str(), LINE_LETTERS),
        ]);
    }
    if again {
        output::line("")?;
    }
    if let Some(session) = &dialog.session {
        output::line(&format!("{DIM}session {}{DIM:#}", session.as_str()))?;
    }
    if !all.is_empty() {
        output::print_table(&table)?;
    }
    output::line(&format!(
        "{}, {shown} shown, {} evicted; {} of at most {} tokens",
        counted(all.len() as u64, "turn"),
        all.len() - shown,
        block.tokens,
        rules.limits.tokens_max
    ))
}

fn unlimited(rules: DialogRules<'_>) -> DialogRules<'_> {
    DialogRules { limits: DialogLimits::NONE, ..rules }
}

impl Dialog {
    fn block(&self, rules: DialogRules<'_>) -> Block {
        self.kept.block(&self.records.iter().collect::<Vec<_>>(), rules)
    }

    fn row(&self, rules: DialogRules<'_>) -> DialogRow {
        let block = self.block(rules);
        DialogRow {
            session: self.session.clone(),
            block: block.text,
            tokens: block.tokens,
            tokens_max: rules.limits.tokens_max,
            turns: block.turns.into_iter().map(DialogTurn::of).collect(),
            evicted: block.fit.evicted,
            shortened: block.fit.shortened,
        }
    }

    fn add(&mut self, turn: CompactSummary, rules: DialogRules<'_>) {
        self.all.add(turn.clone(), unlimited(rules));
        self.kept.add(turn, rules);
    }

    fn push(&mut self, entry: &Entry, rules: DialogRules<'_>) {
        self.all.push(entry, unlimited(rules));
        self.kept.push(entry, rules);
    }
}
