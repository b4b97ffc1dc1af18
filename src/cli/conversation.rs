//! `annalist conversation`: what a model would see of a conversation under a memory strategy. Asks no
//! model.

use super::output::{self, BOLD, Failure, YELLOW, count, numbers, rules};
use super::session_input::{Heard, Source, StoredSession, note_private};
use super::settings;
use crate::config::Config;
use crate::conversation_memory::{
    BranchFilter, ConversationMemory, MemoryType, MessageAccount, MessageCount, create,
    summarise_by_rule, within,
};
use crate::domain::{Entry, Format, Message, Session, Severity, Tokens, estimate_tokens};
use crate::privacy::Gate;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist conversation session.jsonl                as the settings have it
  annalist conversation --strategy window --limit 4 chat.json
                                                     system messages and the last four
  annalist conversation --strategy entity --check chat.json
                                                     what was kept and what was dropped
  annalist conversation --session 079da              a session in the store

Messages are prompts, answers and the system messages of chats; tool calls and their results are not. \
Summaries are made by rule, without a model. Of several conversations in a file the last one is shown; \
--only names another.")]
pub(super) struct Args {
    /// A transcript, or `-` for standard input
    #[arg(value_name = "FILE", required_unless_present = "session")]
    file: Option<PathBuf>,
    /// A session in the store instead: its id, or the beginning of it
    #[arg(long, value_name = "ID", conflicts_with_all = ["file", "format", "only"])]
    session: Option<String>,
    /// buffer, window, summary or entity, instead of conversation.strategy
    #[arg(long, value_name = "TYPE")]
    strategy: Option<MemoryType>,
    /// The strategy's limit, at least 1: max_messages, window_size, summary_threshold or max_entities
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Cut to this many tokens, as the context of a slice is
    #[arg(long, value_name = "N")]
    tokens: Option<Tokens>,
    /// Of several conversations in the file, the one with this name, or with this number, from 0
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Read the file as this format instead of detecting it
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Print a table of what became of the messages instead of the messages
    #[arg(long, conflicts_with = "json")]
    check: bool,
    /// Print an array of `{role, content}` on stdout
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let kind = args.strategy.unwrap_or(config.conversation.strategy);
    let mut limits = config.conversation.limits;
    if let Some(limit) = args.limit {
        let with = limits.with(kind, limit);
        limits = with.map_err(|error| Failure::usage(format!("--limit: {error}")))?;
    }
    let memory = create(kind, &limits, None).map_err(|error| Failure::usage(error.to_string()))?;
    let mut listener = Listener {
        memory,
        line: BranchFilter::default(),
        gate: Gate::new(&config.pii),
        only: args.only.as_deref(),
        listens: args.session.is_some(),
        was_found: args.session.is_some(),
        sessions: 0,
        left_out: 0,
    };
    match (&args.session, &args.file) {
        (Some(id), _) => {
            let mut each = |entry: &_, format| listener.entry(entry, format);
            StoredSession::with_entries(id, &config, &mut each)?;
        }
        (None, Some(path)) => listener.read(path, args.format, &config)?,
        (None, None) => return Err(Failure::usage("expected a file or --session ID")),
    }
    let mut messages = listener.memory.messages();
    if let Some(tokens) = args.tokens {
        messages = within(&messages, tokens);
    }
    let account = listener.memory.account();
    match (args.json, args.check) {
        (true, _) => output::json(&messages)?,
        (_, true) => print_account(&account, &messages)?,
        (_, _) => print(&messages)?,
    }
    output::note(&summary(&account, &messages, listener.left_out));
    Ok(ExitCode::SUCCESS)
}

struct Listener<'a> {
    memory: ConversationMemory,
    line: BranchFilter,
    gate: Gate,
    /// Name or number of the wanted conversation; `None` takes the last.
    only: Option<&'a str>,
    listens: bool,
    was_found: bool,
    sessions: u64,
    /// Entries that are no messages.
    left_out: u64,
}

impl Listener<'_> {
    fn read(
        &mut self,
        path: &Path,
        format: Option<Format>,
        config: &Config,
    ) -> Result<(), Failure> {
        let mut source = Source::open(path, "a transcript")?;
        let name = source.name.clone();
        let found = source.format(format);
        let format = found.map_err(|unknown| Failure::failed(format!("{name}: {unknown}")))?;
        if source.is_private {
            note_private(&name);
            return Ok(());
        }
        let (mut entries, mut bad) = (0_u64, 0_u64);
        let mut findings: BTreeMap<String, u64> = BTreeMap::new();
        source.hear(format, &Gate::new(&config.pii), &mut |heard| match heard {
            Heard::Session(session) => self.begin(session),
            Heard::Entry(entry, format) => {
                entries += 1;
                self.entry(entry, format);
            }
            Heard::Finding(finding) => {
                bad += u64::from(finding.severity >= Severity::Warning);
                *findings.entry(finding.rule.to_string()).or_default() += 1;
            }
        })?;
        if entries == 0 && bad > 0 {
            let what = format!("{name}: nothing in it could be read as {format}: {bad} findings");
            return Err(Failure::failed(what));
        }
        if !findings.is_empty() {
            output::note(&format!("findings: {}", rules(findings)));
        }
        match self.only {
            Some(only) if !self.was_found && self.sessions > 0 => {
                Err(Failure::usage(format!("{name}: holds no conversation `{only}`")))
            }
            None if self.sessions > 1 => {
                let sessions = count(self.sessions);
                output::note(&format!(
                    "{YELLOW}{sessions} conversations{YELLOW:#} in the file, this is the last: \
                     --only names another"
                ));
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }

    fn begin(&mut self, session: &Session) {
        let number = self.sessions.to_string();
        self.sessions += 1;
        let is_wanted = |it: &str| session.native_id.as_str() == it || number == it;
        self.listens = self.only.is_none_or(|only| !self.was_found && is_wanted(only));
        if self.listens {
            self.was_found = true;
            self.memory.clear();
            self.line = BranchFilter::default();
            self.left_out = 0;
        }
    }

    fn entry(&mut self, entry: &Entry, format: Format) {
        if !self.listens {
            return;
        }
        let Some(message) = self.line.message(entry, format) else {
            self.left_out += 1;
            return;
        };
        if let Some(finding) = self.memory.add_message(message) {
            output::note(&finding.to_string());
        }
        summarise_by_rule(&mut self.memory, &self.gate);
    }
}

fn print(messages: &[Message]) -> Result<(), Failure> {
    let block = |it: &Message| format!("{BOLD}{}:{BOLD:#} {}", it.role.name(), it.content.as_str());
    let blocks: Vec<String> = messages.iter().map(block).collect();
    match blocks.is_empty() {
        true => Ok(()),
        false => output::line(&blocks.join("\n\n")),
    }
}

fn shown(messages: &[Message]) -> MessageCount {
    let tokens = messages.iter().map(|it| u64::from(estimate_tokens(it.content.as_str()))).sum();
    MessageCount { messages: messages.len() as u64, tokens }
}

fn print_account(account: &MessageAccount, messages: &[Message]) -> Result<(), Failure> {
    let mut table = output::table(&["what", "messages", "tokens"]);
    for (name, MessageCount { messages, tokens }) in [
        ("read", account.read),
        ("  pinned", account.pinned),
        ("  kept", account.kept),
        ("  summarised", account.summarised),
        ("  evicted", account.evicted),
        ("shown", shown(messages)),
    ] {
        table.add_row([name.to_owned(), count(messages), count(tokens)]);
    }
    if account.entities + account.entities_evicted > 0 {
        table.add_row(["entities known".to_owned(), count(account.entities)]);
        table.add_row(["  evicted".to_owned(), count(account.entities_evicted)]);
    }
    output::print_table(&table)
}

fn summary(account: &MessageAccount, messages: &[Message], left_out: u64) -> String {
    let MessageCount { messages, tokens } = shown(messages);
    let parts = numbers([
        ("pinned", account.pinned.messages),
        ("kept", account.kept.messages),
        ("summarised", account.summarised.messages),
        ("evicted", account.evicted.messages),
    ]);
    let of = if parts.is_empty() { parts } else { format!(": {parts}") };
    let others = match left_out {
        0 => String::new(),
        left_out => format!("; {} entries are no messages", count(left_out)),
    };
    format!(
        "{} shown, about {} tokens, of {} read{of}{others}",
        count(messages),
        count(tokens),
        count(account.read.messages)
    )
}
