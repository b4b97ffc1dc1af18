//! Command line with one file per command. Results go to stdout, everything else to stderr. Only
//! this module reads arguments and the environment.

mod arguments;
mod card;
mod cassette;
mod consolidate;
mod context;
mod conversation;
mod dialog;
mod doctor;
mod enqueue;
mod forget;
mod hand_over;
mod hook;
mod init;
mod jobs;
mod logging;
mod memory;
mod model_args;
mod namespace;
mod output;
mod privacy;
mod progress;
mod records;
mod replay;
mod schema;
mod search;
mod serve;
mod session_input;
mod settings;
mod status;
mod table;
mod test;
mod token;
mod vault;
mod worker;

use clap::{CommandFactory, Parser, Subcommand};
use output::{Failure, Result, in_pages};
#[cfg(fuzzing)]
pub use serve::testing::router_for_fuzzing;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Turns conversations with coding agents into verifiable memory.
#[derive(Debug, Parser)]
#[command(name = "annalist", version, about, max_term_width = 80, arg_required_else_help = true)]
#[command(after_help = "\
Start here:
  annalist replay ~/.claude/projects --dry-run   what it would read and cost
  annalist doctor                                what your endpoint can do
  annalist replay ~/.claude/projects             extract; run it again to resume
  annalist records                               what was found
  annalist search WORDS                          what was said about something
  annalist why ID                                the evidence of a record
  annalist why src/queue.rs:42                   the conversation behind a line
  annalist open                                  what is still open

Exit codes: 0 done, 1 something failed and is listed, 2 wrong usage or configuration. \
Settings: annalist init --print; NO_COLOR is honoured. \
Logs: ANNALIST_LOG=info turns them on, ANNALIST_LOG_FORMAT=json prints JSON lines.")]
struct Cli {
    /// Read settings from this file instead of the project's or the user's
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Extract every decision, discussion, attempt and request from transcripts
    Replay(replay::Args),
    /// Extract the slices in the queue
    Worker(worker::Args),
    /// Add transcripts to the queue, for workers to extract
    Enqueue(enqueue::Args),
    /// List, show, export and compare records
    Records(records::Args),
    /// Show the evidence of a record with its speaker, model and prompt
    Why(records::WhyArgs),
    /// Search records, memories and notes, best match first
    Search(search::Args),
    /// List open requests, questions and failures, oldest first
    Open(search::OpenArgs),
    /// Show what was decided, tried and asked today, by project
    Today(search::DayArgs),
    /// Show what was decided, tried and asked yesterday, by project
    Yesterday(search::DayArgs),
    /// Show what was decided, tried and asked in the last seven days, by project
    Week(search::DayArgs),
    /// Show the state of every entry, the queue, and how to retry failures
    Status(status::Args),
    /// List, retry and cancel the jobs of the queue
    Jobs(jobs::Args),
    /// Turn staged records into memory: plan, apply, undo
    Consolidate(consolidate::Args),
    /// Erase a conversation, a record or a namespace with everything derived from it
    Forget(forget::Args),
    /// List, rename and merge namespaces
    #[command(subcommand)]
    Namespace(namespace::Command),
    /// List or remove the masked copies of transcripts
    Vault(vault::Args),
    /// Maintain the memory directory; list, review and look back at memories
    Memory(memory::Args),
    /// Show what a model would see of a conversation under a memory strategy
    Conversation(conversation::Args),
    /// Print memory cards, which summarise conversations without a model
    Card(card::Args),
    /// Print the block that an agent starts with, within a token budget
    Context(context::Args),
    /// Publish rules and decisions in AGENTS.md or another file
    Publish(context::PublishArgs),
    /// Serve the project's memory to an agent, as tools of the Model Context Protocol
    #[command(after_help = "\
Examples:
  claude mcp add annalist -- annalist mcp   Claude Code
  codex mcp add annalist -- annalist mcp    Codex

The client starts it in the project's folder and talks to it over standard input and output. \
Tools: search, why, context, history, open_items, note. All but note only read; a note is \
attributed to the agent and does not become memory by itself. Other namespaces are hidden unless \
mcp.namespaces in the settings names them.")]
    Mcp,
    /// Serve the web page, the API and the tools over HTTP
    Serve(serve::Args),
    /// Create, list and revoke tokens for clients of `annalist serve`
    #[command(subcommand)]
    Token(token::Command),
    /// Answer a hook of a client: context, sync, new messages
    Hook(hook::Args),
    /// Enqueue what hooks left in the spool
    #[command(hide = true)]
    HandOver,
    /// Print a text as masked by the privacy gate
    Redact(privacy::RedactArgs),
    /// Check stored text for unmasked secrets and personal data
    #[command(subcommand)]
    Privacy(privacy::Command),
    /// Print the last turns of a dialog as they appear in a prompt
    Dialog(dialog::Args),
    /// Convert answer files into recorded answers
    #[command(subcommand)]
    Cassette(cassette::Command),
    /// Test prompts and models against gold, offline or live
    Test(test::Args),
    /// Print, write or check the JSON schemas and the generated docs
    Schema(schema::Args),
    /// Write an annalist.toml, or set up clients
    Init(init::Args),
    /// Check the endpoint, the settings and the store
    Doctor(doctor::Args),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of annalist or of a command
    Man(schema::ManArgs),
}

/// Runs the command given by the process arguments and returns its exit code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            output::note(error.render().ansi().to_string().trim_end());
            // For the client of a hook, exit code 2 is a decision, and any other non-zero code breaks its work.
            let is_hook = is_hook(std::env::args_os().skip(1));
            return ExitCode::from(if is_hook { 0 } else { output::USAGE });
        }
        // Help and version are not errors.
        Err(error) => error.exit(),
    };
    let telemetry = logging::Telemetry::start();
    let ended = if let Command::Hook(args) = &cli.command {
        // Without a runtime, since a hook exits with 0 whatever fails.
        Ok(hook::run(args, cli.config.as_deref()))
    } else {
        settings::runtime().and_then(|it| it.block_on(run(cli)))
    };
    let code = ended.unwrap_or_else(Failure::report);
    telemetry.end();
    code
}

/// True if the command is `hook`, even if its arguments are invalid.
fn is_hook(args: impl Iterator<Item = OsString>) -> bool {
    let mut args = args.skip_while(|arg| arg.to_string_lossy().starts_with("--config="));
    let first = args.next();
    let first = match first {
        // Skips the file name.
        Some(arg) if arg == "--config" => args.nth(1),
        other => other,
    };
    first.is_some_and(|arg| arg == "hook")
}

async fn run(cli: Cli) -> Result<ExitCode> {
    let file = cli.config.as_deref();
    match cli.command {
        Command::Replay(args) => replay::run(args, file).await,
        Command::Worker(args) => worker::run(&args, file).await,
        Command::Enqueue(args) => {
            enqueue::run(&args, file).await.inspect(|()| hand_over::done_by_hand(&args.paths))
        }
        Command::Records(args) => in_pages(records::run(args, file)).await,
        Command::Why(args) => in_pages(records::why(&args, file)).await,
        Command::Search(args) => search::run(&args, file).await,
        Command::Open(args) => search::open(&args, file).await,
        Command::Today(args) => search::days(&args, "today", "today", file).await,
        Command::Yesterday(args) => search::days(&args, "yesterday", "yesterday", file).await,
        Command::Week(args) => search::days(&args, "6d", "today", file).await,
        Command::Status(args) => in_pages(status::run(&args, file)).await,
        Command::Jobs(args) => in_pages(jobs::run(args, file)).await,
        Command::Consolidate(args) => consolidate::run(&args, file).await,
        Command::Forget(args) => forget::run(&args, file).await,
        Command::Namespace(args) => namespace::run(&args, file).await,
        Command::Vault(args) => vault::run(&args, file).await,
        Command::Memory(args) => memory::run(&args, file).await,
        Command::Conversation(args) => conversation::run(&args, file).await,
        Command::Card(args) => in_pages(card::run(&args, file)).await,
        Command::Context(args) => in_pages(context::run(&args, file)).await,
        Command::Publish(args) => context::publish(&args, file),
        Command::Mcp => serve::mcp(file).await,
        Command::Serve(args) => serve::run(&args, file).await,
        Command::Token(args) => token::run(args, file).await,
        Command::Hook(args) => return Ok(hook::run(&args, file)),
        Command::HandOver => hand_over::run().await,
        Command::Redact(args) => privacy::redact(&args, file),
        Command::Privacy(args) => privacy::run(&args, file).await,
        Command::Dialog(args) => in_pages(dialog::run(&args, file)).await,
        Command::Cassette(args) => cassette::run(args, file),
        Command::Test(args) => test::run(&args, file).await,
        Command::Schema(args) => schema::run(&args, Cli::command()),
        Command::Init(args) => init::run(&args),
        Command::Doctor(args) => doctor::run(&args, file).await,
        Command::Completions { shell } => completions(shell),
        Command::Man(args) => schema::man(&args, Cli::command()),
    }
    .map(|()| ExitCode::SUCCESS)
}

fn completions(shell: clap_complete::Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "annalist", &mut script);
    output::bytes(&script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn examples_fit_a_terminal_of_80_columns() {
        let mut commands = vec![Cli::command()];
        while let Some(command) = commands.pop() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines().filter(|line| line.starts_with("  annalist")) {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }

    #[test]
    fn a_hook_is_known_by_its_command_however_wrong_the_rest_is() {
        let is = |line: &str| is_hook(line.split(' ').map(OsString::from));
        assert!(is("hook nonsense") && is("--config x hook stop --no") && is("--config=x hook"));
        assert!(!is("enqueue hook") && !is("--config hook status") && !is("--config"));
    }
}
