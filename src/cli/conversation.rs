//! `annalist conversation`: what a model would see of a conversation under a memory strategy. Asks no
//! model.

use super::output::{self, BOLD, Failure, YELLOW, count};
use super::transcript::{self, Heard};
use super::{settings, stored};
use crate::config::Config;
use crate::conversation::{
    Account, ConversationMemory, Count, Line, MemoryType, create, summarise_by_rule, within,
};
use crate::domain::{Entry, Format, Message, Session, Tokens, estimate_tokens};
use crate::privacy::Gate;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist conversation session.jsonl                          as the settings have it
  annalist conversation --strategy window --limit 4 chat.json  system messages and the last four others
  annalist conversation --strategy entity --check chat.json    what was kept and what is gone
  annalist conversation --session 079da                        of a session that was replayed or enqueued

A message is what was said: prompts, answers, and the system messages of chats. Tool calls and what tools \
answered are none. Summaries are made by rule, without a model. Of several conversations in a file the \
last one is shown; --only names another.")]
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
    /// Cut to so many tokens, as the context of a slice is
    #[arg(long, value_name = "N")]
    tokens: Option<Tokens>,
    /// Of several conversations in the file, the one with this name, or with this number, from 0
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Read the file as this format instead of finding it out
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
        line: Line::default(),
        gate: Gate::new(&config.pii),
        wanted: args.only.as_deref().map(Wanted::Named),
        listens: false,
        sessions: 0,
        left_out: 0,
    };
    listener.hear_all(args, &config)?;
    if let (Some(Wanted::Named(wanted)), 1..) = (listener.wanted, listener.sessions) {
        let name = args.file.as_deref().unwrap_or(Path::new("-")).display();
        return Err(Failure::usage(format!("{name}: holds no conversation `{wanted}`")));
    }
    if listener.sessions > 1 && args.only.is_none() {
        let sessions = count(listener.sessions);
        output::note(&format!(
            "{YELLOW}{sessions} conversations{YELLOW:#} in the file, this is the last: --only names \
             another"
        ));
    }
    let mut messages = listener.memory.messages();
    if let Some(tokens) = args.tokens {
        messages = within(&messages, tokens);
    }
    let account = listener.memory.account();
    match (args.json, args.check) {
        (true, _) => output::json(&messages)?,
        (_, true) => table(&account, &messages)?,
        (_, _) => print(&messages)?,
    }
    output::note(&line(&account, &messages, listener.left_out));
    Ok(ExitCode::SUCCESS)
}

/// Hears the messages of one conversation.
struct Listener<'a> {
    memory: Box<dyn ConversationMemory>,
    line: Line,
    gate: Gate,
    wanted: Option<Wanted<'a>>,
    listens: bool,
    sessions: u64,
    /// Entries that are no messages.
    left_out: u64,
}

impl Listener<'_> {
    /// Hears what the arguments name: a session in the store, or a file.
    fn hear_all(&mut self, args: &Args, config: &Config) -> Result<(), Failure> {
        match (&args.session, &args.file) {
            (Some(id), _) => {
                self.listens = true;
                stored::read(id, config, |session, entry| self.entry(entry, session.format))?;
                Ok(())
            }
            (None, Some(file)) => {
                transcript::read((file, args.format), config, &mut |heard| self.hear(heard))
            }
            (None, None) => Err(Failure::usage("expected a file or --session ID")),
        }
    }

    fn hear(&mut self, heard: Heard<'_>) {
        match heard {
            Heard::Session(session) => self.begin(session),
            Heard::Entry(entry, format) if self.listens => self.entry(entry, format),
            Heard::Entry(..) | Heard::Finding(_) => {}
        }
    }

    fn begin(&mut self, session: &Session) {
        let number = self.sessions.to_string();
        self.sessions += 1;
        self.listens = match self.wanted {
            Some(Wanted::Named(wanted)) => session.native_id.as_str() == wanted || number == wanted,
            Some(Wanted::Found) => false,
            None => true,
        };
        if self.listens {
            self.wanted = self.wanted.map(|_| Wanted::Found);
            self.memory.clear();
            self.line = Line::default();
            self.left_out = 0;
        }
    }

    fn entry(&mut self, entry: &Entry, format: Format) {
        let Some(message) = self.line.message(entry, format) else {
            self.left_out += 1;
            return;
        };
        if let Some(finding) = self.memory.add_message(message) {
            output::note(&finding.to_string());
        }
        summarise_by_rule(self.memory.as_mut(), &self.gate);
    }
}

/// The one conversation that somebody named.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    /// It is still to come.
    Named(&'a str),
    /// It was read, or is being read.
    Found,
}

fn print(messages: &[Message]) -> Result<(), Failure> {
    let block = |it: &Message| format!("{BOLD}{}:{BOLD:#} {}", it.role.name(), it.content.as_str());
    let blocks: Vec<String> = messages.iter().map(block).collect();
    if blocks.is_empty() {
        return Ok(());
    }
    output::line(&blocks.join("\n\n"))
}

/// What is shown, with its tokens.
fn shown(messages: &[Message]) -> Count {
    let tokens = messages.iter().map(|it| u64::from(estimate_tokens(it.content.as_str()))).sum();
    Count { messages: messages.len() as u64, tokens }
}

fn table(account: &Account, messages: &[Message]) -> Result<(), Failure> {
    let mut table = output::table(&["what", "messages", "tokens"]);
    let rows = [
        ("read", account.read),
        ("  pinned", account.pinned),
        ("  kept", account.kept),
        ("  summarised", account.summarised),
        ("  evicted", account.evicted),
        ("shown", shown(messages)),
    ];
    for (name, Count { messages, tokens }) in rows {
        table.add_row([name.to_owned(), count(messages), count(tokens)]);
    }
    if account.entities + account.entities_evicted > 0 {
        table.add_row(["entities known".to_owned(), count(account.entities)]);
        table.add_row(["  evicted".to_owned(), count(account.entities_evicted)]);
    }
    output::print_table(&table)
}

fn line(account: &Account, messages: &[Message], left_out: u64) -> String {
    let Count { messages, tokens } = shown(messages);
    let parts = [
        ("pinned", account.pinned),
        ("kept", account.kept),
        ("summarised", account.summarised),
        ("evicted", account.evicted),
    ];
    let parts = parts.iter().filter(|(_, it)| it.messages > 0);
    let parts: Vec<String> =
        parts.map(|(name, it)| format!("{} {name}", count(it.messages))).collect();
    let of = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let mut line = format!(
        "{} shown, about {} tokens, of {} read{of}",
        count(messages),
        count(tokens),
        count(account.read.messages)
    );
    if left_out > 0 {
        line.push_str(&format!("; {} entries are no messages", count(left_out)));
    }
    line
}
