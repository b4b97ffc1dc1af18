//! `annalist conversation`: what a model sees of a conversation under a memory strategy.

use super::model_args::{SummaryArgs, asked_line};
use super::output::{
    self, BOLD, Failure, Result, YELLOW, count, counted, in_pages, numbers, rules,
};
use super::session_input::{Heard, Source, StoredSession, note_private};
use super::settings;
use crate::config::Config;
use crate::conversation_memory::{
    BranchFilter, ConversationMemory, MemoryMessage, MemoryType, MessageAccount, MessageCount,
    create, from_json, messages_with_metadata, summarise_by_rule, within,
};
use crate::domain::{Entry, Format, HANDED_BYTES_MAX, Message, Session, Tokens, estimate_tokens};
use crate::pipeline::{Summarised, Summariser};
use crate::privacy::Gate;
use crate::store::OpenMode;
use crate::transcripts::DetectError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist conversation session.jsonl    with the strategy of the settings
  annalist conversation --strategy window --limit 4 chat.json
                                         system messages and the last four
  annalist conversation --strategy entity --check chat.json
                                         what was kept and what was dropped
  annalist conversation --entity Postgres chat.json
                                         what is known about an entity
  annalist conversation --strategy summary --model qwen3:8b chat.json
                                         summaries written by a model
  annalist conversation --memory chat.json > memory.json
                                         the whole memory, which can be a FILE
  annalist conversation --session 079da  a session in the store

Messages are prompts, answers and the system messages of chats, without tool calls and their \
results. If a file contains several conversations, the last one is shown; --only selects another. \
Messages as JSON may have a `token_count`, and `metadata` with `entities`: a list of names, or an \
object for each name. Without --model, summaries are written by rule. Model answers are stored: \
the same messages are paid for once, and `annalist status` shows the cost.")]
pub(super) struct Args {
    /// A transcript, messages as JSON or a saved memory, or `-` for standard input
    #[arg(value_name = "FILE", required_unless_present = "session")]
    file: Option<PathBuf>,
    /// A session in the store instead, by ID or ID prefix
    #[arg(long, value_name = "ID", conflicts_with_all = ["file", "format", "only"])]
    session: Option<String>,
    /// Strategy: buffer, window, summary or entity, instead of conversation.strategy
    #[arg(long, value_name = "TYPE")]
    strategy: Option<MemoryType>,
    /// The strategy's limit, at least 1: max_messages, window_size, summary_threshold or max_entities
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Truncate to this many tokens, like the context of a slice
    #[arg(long, value_name = "N")]
    tokens: Option<Tokens>,
    /// Conversation in the file, by name, or by number from 0
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Read the file as this format instead of detecting it
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    summaries: SummaryArgs,
    /// Print a table of kept and dropped messages instead of the messages
    #[arg(long, conflicts_with = "json")]
    check: bool,
    /// Print an array of `{role, content}` on stdout
    #[arg(long)]
    json: bool,
    /// Print what is known about this entity as JSON; implies --strategy entity
    #[arg(long, value_name = "NAME", conflicts_with_all = ["check", "json", "tokens"])]
    entity: Option<String>,
    /// Print the whole memory as JSON, which can be passed as FILE
    #[arg(long, conflicts_with_all = ["check", "json", "tokens", "entity"])]
    memory: bool,
}

pub(super) async fn run(args: &Args, file: Option<&Path>) -> Result<()> {
    let config = settings::load(file)?;
    let mut conversation = Conversation::begun(args, &config)?;
    match (&args.session, &args.file) {
        (Some(id), _) => {
            let mut each = |entry: &_, format| conversation.entry(entry, format);
            let stored = StoredSession::find(id, &config, Some(&mut each)).await?;
            conversation.session = Some(stored.session);
        }
        (None, Some(path)) => conversation.read(path)?,
        (None, None) => return Err(Failure::usage("expected a file or --session ID")),
    }
    conversation.check()?;
    if args.summaries.is_named() {
        conversation.summarise(&config).await?;
    }
    let Conversation { memory, left_out, .. } = conversation;
    let mut messages = memory.messages();
    if let Some(tokens) = args.tokens {
        messages = within(&messages, tokens);
    }
    let account = memory.account();
    if let Some(name) = &args.entity {
        let Some(known) = memory.entity(name) else {
            let names = counted(account.entities, "entity");
            return Err(Failure::failed(format!("no entity `{name}` among {names}")));
        };
        output::json(&known)?;
    } else if args.memory {
        output::json(&memory.snapshot())?;
    } else if args.json {
        output::json(&messages)?;
    } else if args.check {
        print_account(&account, &messages)?;
    } else {
        in_pages(async { print(&messages) }).await?;
    }
    output::note(&summary(&account, &messages, left_out));
    Ok(())
}

struct Conversation<'a> {
    args: &'a Args,
    memory: ConversationMemory,
    /// Messages that are buffered until the conversation is identified, so that the model is called for no other.
    waiting: Vec<MemoryMessage>,
    session: Option<Session>,
    is_saved: bool,
    branch: BranchFilter,
    gate: Gate,
    listens: bool,
    was_found: bool,
    sessions: u64,
    /// Entries that are not messages.
    left_out: u64,
}

impl<'a> Conversation<'a> {
    fn begun(args: &'a Args, config: &Config) -> Result<Conversation<'a>> {
        let otherwise = args.entity.as_ref().map(|_| MemoryType::Entity);
        let kind = args.strategy.or(otherwise).unwrap_or(config.conversation.strategy);
        let limits = config.conversation.limits;
        let limits = args.limit.map_or(Ok(limits), |limit| limits.with(kind, limit));
        let limits = limits.map_err(|error| Failure::usage(format!("--limit: {error}")))?;
        let memory = create(kind, &limits, None);
        Ok(Conversation {
            args,
            memory: memory.map_err(|error| Failure::usage(error.to_string()))?,
            waiting: Vec::new(),
            session: None,
            is_saved: false,
            branch: BranchFilter::default(),
            gate: Gate::new(&config.pii),
            listens: args.session.is_some(),
            was_found: args.session.is_some(),
            sessions: 0,
            left_out: 0,
        })
    }

    /// Checks the flags against the memory, which may have been loaded from a file.
    fn check(&self) -> Result<()> {
        let (args, kind) = (self.args, self.memory.kind());
        let wrong = if self.is_saved && (args.strategy.is_some() || args.limit.is_some()) {
            "a saved memory has its own strategy and limit: omit --strategy and --limit".to_owned()
        } else if args.entity.is_some() && kind != MemoryType::Entity {
            format!("--entity needs --strategy entity, not {kind}")
        } else if self.args.summaries.is_named() && kind != MemoryType::Summary {
            format!("--model needs --strategy summary, not {kind}")
        } else {
            return Ok(());
        };
        Err(Failure::usage(wrong))
    }

    fn add(&mut self, message: MemoryMessage) {
        if let Some(finding) = self.memory.add_message(message) {
            output::note(&finding.to_string());
        }
    }

    /// Adds or buffers the next message. Without a model, due summaries are written by rule.
    fn take(&mut self, message: MemoryMessage) {
        if self.args.summaries.is_named() {
            self.waiting.push(message);
        } else {
            self.add(message);
            summarise_by_rule(&mut self.memory, &self.gate);
        }
    }

    /// Adds the buffered messages; a model writes due summaries.
    async fn summarise(&mut self, config: &Config) -> Result<()> {
        let store = settings::open_store(config, OpenMode::Create)?;
        let session = self.session.as_ref();
        let mut summariser = self.args.summaries.summariser(config, &store, session).await?;
        // The summary of a saved memory may already be due.
        self.summary(&mut summariser).await?;
        for message in std::mem::take(&mut self.waiting) {
            self.add(message);
            self.summary(&mut summariser).await?;
        }
        if summariser.usage.questions > 0 {
            let about = counted(summariser.shown, "message");
            output::note(&asked_line(&about, &summariser.usage));
        }
        Ok(())
    }

    async fn summary(&mut self, summariser: &mut Summariser) -> Result<()> {
        match summariser.summarise(&mut self.memory).await? {
            Summarised::Done => {}
            Summarised::Empty => {
                output::note("the model's summary is empty; the messages are kept");
            }
            Summarised::Unanswered(why) => {
                return Err(Failure::failed(format!("no summary was written: {why}")));
            }
            Summarised::Stopped => {
                let line = "stopped; answers are stored; run the same command to resume";
                return Err(Failure::failed(line));
            }
        }
        Ok(())
    }

    fn read(&mut self, path: &Path) -> Result<()> {
        let (format, only) = (self.args.format, self.args.only.as_deref());
        let mut source = Source::open(path, "a transcript")?;
        let name = source.name.clone();
        let found = source.format(format);
        if source.is_private {
            note_private(&name);
            return Ok(());
        }
        let may_be_messages = match &found {
            Ok(Format::Openai | Format::Anthropic) => format.is_none(),
            found => matches!(found, Err(DetectError::Nothing)),
        };
        if may_be_messages && only.is_none() && self.messages_or_memory(&mut source)? {
            return Ok(());
        }
        let format = found.map_err(|unknown| Failure::failed(format!("{name}: {unknown}")))?;
        let mut nothing = None;
        let mut findings: BTreeMap<String, u64> = BTreeMap::new();
        let gate = self.gate.clone();
        source.hear(format, &gate, &mut |heard| match heard {
            Heard::Session(session) => self.begin(session),
            Heard::Entry(entry, format) => self.entry(entry, format),
            Heard::Finding(finding) => {
                nothing = (finding.rule == "no-entries").then(|| finding.detail.to_string());
                *findings.entry(finding.rule.to_string()).or_default() += 1;
            }
        })?;
        if let Some(nothing) = nothing {
            return Err(Failure::failed(format!("{name}: {nothing}")));
        }
        if !findings.is_empty() {
            output::note(&format!("findings: {}", rules(findings)));
        }
        match only {
            Some(only) if !self.was_found && self.sessions > 0 => {
                Err(Failure::usage(format!("{name}: contains no conversation `{only}`")))
            }
            None if self.sessions > 1 => {
                let sessions = count(self.sessions);
                output::note(&format!(
                    "{YELLOW}{sessions} conversations{YELLOW:#} in the file; this is the last: \
                     --only selects another"
                ));
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Reads a saved memory, or messages with metadata or token counts; false if the file has neither.
    fn messages_or_memory(&mut self, source: &mut Source) -> Result<bool> {
        let head = source.head();
        let is_memory = head.trim_start().starts_with('{') && head.contains("\"memory_type\"");
        let text = source.text(HANDED_BYTES_MAX as u64)?;
        let text = text.trim_start_matches('\u{feff}');
        if is_memory {
            let saved = from_json(text, &self.gate);
            let failed = |error| Failure::failed(format!("{}: {error}", source.name));
            (self.memory, self.is_saved) = (saved.map_err(failed)?, true);
            return Ok(true);
        }
        let read = messages_with_metadata(text, &self.gate);
        if let Some(Err(why)) = &read {
            let what = "metadata and token counts are ignored";
            output::note(&format!("{}: {what}: {why}", source.name));
        }
        let Some(Ok(messages)) = read else { return Ok(false) };
        messages.into_iter().for_each(|message| self.take(message));
        Ok(true)
    }

    fn begin(&mut self, session: &Session) {
        let number = self.sessions.to_string();
        self.sessions += 1;
        let is_wanted = |it: &str| session.native_id.as_str() == it || number == it;
        let only = self.args.only.as_deref();
        self.listens = only.is_none_or(|only| !self.was_found && is_wanted(only));
        if self.listens {
            self.was_found = true;
            self.memory.clear();
            self.waiting.clear();
            self.session = Some(session.clone());
            self.branch = BranchFilter::default();
            self.left_out = 0;
        }
    }

    fn entry(&mut self, entry: &Entry, format: Format) {
        if self.listens {
            match self.branch.message(entry, format) {
                Some(message) => self.take(message),
                None => self.left_out += 1,
            }
        }
    }
}

fn print(messages: &[Message]) -> Result<()> {
    let block = |it: &Message| format!("{BOLD}{}:{BOLD:#} {}", it.role.name(), it.content.as_str());
    let blocks: Vec<String> = messages.iter().map(block).collect();
    if blocks.is_empty() { Ok(()) } else { output::line(&blocks.join("\n\n")) }
}

fn shown(messages: &[Message]) -> MessageCount {
    let tokens = messages.iter().map(|it| u64::from(estimate_tokens(it.content.as_str()))).sum();
    MessageCount { messages: messages.len() as u64, tokens }
}

fn print_account(account: &MessageAccount, messages: &[Message]) -> Result<()> {
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
        1 => "; 1 entry is not a message".to_owned(),
        left_out => format!("; {} entries are not messages", count(left_out)),
    };
    format!(
        "{} shown, about {} tokens, of {} read{of}{others}",
        count(messages),
        count(tokens),
        count(account.read.messages)
    )
}
