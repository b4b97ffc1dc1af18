//! `annalist schema`: prints, writes and checks the schemas and the generated pages: `docs/commands.md` from clap's
//! definitions, `docs/configuration.md` from config.toml. `annalist man`: a manual page.

use super::output::{self, Failure, Result};
use super::{
    consolidate, context, dialog, doctor, forget, jobs, memory, namespace, privacy, records,
    status, token, vault, worker,
};
use crate::adapters::files;
use crate::config::DEFAULT;
use crate::consolidate::Retrospective;
use crate::context::Block;
use crate::conversation_memory::Snapshot;
use crate::domain::Message;
use crate::eval;
use crate::extract::schema_files;
use crate::llm;
use crate::memory_card::Card;
use crate::memory_dir::Hit;
use crate::pipeline::{IntakeReport, Totals, answers_schema_file};
use crate::rows::{MemoryRow, RecordRow, SearchRow};
use crate::server::openapi;
use crate::store::NamespaceTotals;
use crate::transcripts::schema_file;
use clap::Command;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

const CLI_SCHEMAS: &str = "cli.v1.json";
const OPENAPI: &str = "openapi.v1.json";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist schema write_extracted.v1.json
  annalist schema cli.v1.json   what commands print with --json
  annalist schema --write       write schemas and generated docs")]
pub(super) struct Args {
    /// The schema to print; all of them by default
    name: Option<String>,
    /// Compare the files with the program; exit 1 if they differ
    #[arg(long)]
    check: bool,
    /// Write the files
    #[arg(long, conflicts_with = "check")]
    write: bool,
    /// The folder of the schemas for --check and --write
    #[arg(long, value_name = "DIR", default_value = "schemas")]
    dir: PathBuf,
    /// The folder of the generated pages for --check and --write
    #[arg(long, value_name = "DIR", default_value = "docs")]
    docs: PathBuf,
}

pub(super) fn run(args: &Args, program: Command) -> Result<()> {
    let chosen = chosen(args, program)?;
    let (mut is_stale, mut printed) = (false, String::new());
    for (path, content) in &chosen {
        if args.check {
            let published = files::read_to_string(path).unwrap_or_default();
            let is_same = published.trim() == content.trim();
            let state = if is_same {
                "is up to date"
            } else {
                "is out of date: `annalist schema --write` updates it"
            };
            output::line(&format!("{}: {state}", path.display()))?;
            is_stale |= !is_same;
        } else if args.write {
            files::replace(path, content).map_err(output::unwritable(path))?;
        } else {
            printed.extend([content.trim_end(), "\n"]);
        }
    }
    if !printed.is_empty() {
        output::line(printed.trim_end())?;
    }
    output::fail_if(is_stale)
}

/// Selects files with their contents: one schema, all schemas, or the generated pages too with --check and --write.
fn chosen(args: &Args, program: Command) -> Result<Vec<(PathBuf, String)>> {
    let mut schemas: Vec<(String, String)> = schema_files();
    schemas.extend(crate::consolidate::schema_files());
    schemas.extend([schema_file(), llm::schema_file(), answers_schema_file()]);
    schemas.extend(eval::schema_files());
    schemas.push((CLI_SCHEMAS.to_owned(), cli_schemas()));
    schemas.push((OPENAPI.to_owned(), pretty(&openapi())));
    let known = output::commas(schemas.iter().map(|(name, _)| name));
    let pages = [("commands.md", commands(program)), ("configuration.md", configuration())];
    let pages = pages.into_iter().filter(|_| args.check || args.write);
    let pages = pages.map(|(name, content)| (name.to_owned(), &args.docs, content));
    let all = schemas.into_iter().map(|(name, content)| (name, &args.dir, content)).chain(pages);
    let wanted = all.filter(|(own, ..)| args.name.as_ref().is_none_or(|name| name == own));
    let file = |(name, folder, content): (String, &PathBuf, _)| (folder.join(name), content);
    let chosen: Vec<(PathBuf, String)> = wanted.map(file).collect();
    if chosen.is_empty() {
        let name = args.name.as_deref().unwrap_or_default();
        return Err(Failure::usage(format!("unknown schema `{name}`: expected {known}")));
    }
    Ok(chosen)
}

/// Generates one schema document; `$defs` has an entry for each command with JSON output, such as `records-list`.
fn cli_schemas() -> String {
    let mut generator = SchemaGenerator::default();
    let mut commands: Vec<(&str, Schema)> = Vec::new();
    macro_rules! outputs {
        ($($command:literal: $type:ty,)*) => {
            $(commands.push(($command, generator.subschema_for::<$type>()));)*
        };
    }
    outputs! {
        "card": Card,
        "consolidate": Vec<consolidate::PlanRow<'static>>,
        "consolidate-log": Vec<consolidate::AppliedPlan>,
        "consolidate-undo": consolidate::UndonePlan,
        "context": Block,
        "conversation": Vec<Message>,
        "conversation-entity": Map<String, Value>,
        "conversation-memory": Snapshot,
        "dialog": Vec<dialog::DialogRow>,
        "doctor": doctor::DoctorReport<'static>,
        "enqueue": IntakeReport,
        "forget": forget::ForgetReport<'static>,
        "forget-dry-run": forget::ForgetPreview<'static>,
        "jobs-change": Vec<jobs::JobChangeRow<'static>>,
        "jobs-list": Vec<jobs::JobRow<'static>>,
        "memory-history": Vec<memory::HistoryRow>,
        "memory-lint": memory::LintReport<'static>,
        "memory-list": Vec<MemoryRow<'static>>,
        "memory-reflect": Vec<Retrospective>,
        "memory-render": memory::SyncReport<'static>,
        "memory-search": Vec<Hit>,
        "memory-show": MemoryRow<'static>,
        "memory-sync": memory::SyncWithPlans<'static>,
        "memory-verdict": memory::VerdictRow,
        "memory-verify": Vec<memory::MissingRow>,
        "namespace-list": Vec<NamespaceTotals>,
        "namespace-move": namespace::MovedNamespace<'static>,
        "open": Vec<SearchRow<'static>>,
        "privacy-check": privacy::PrivacyReport,
        "publish": context::PublishReport,
        "records-cards": Vec<records::CardRow<'static>>,
        "records-diff": records::RunDiff<'static>,
        "records-list": Vec<RecordRow<'static>>,
        "records-runs": Vec<records::RunRow<'static>>,
        "records-show": RecordRow<'static>,
        "recent": Vec<SearchRow<'static>>,
        "replay": Totals,
        "search": Vec<SearchRow<'static>>,
        "status": status::StatusReport<'static>,
        "test": eval::ReportFile,
        "token-list": Vec<token::TokenRow>,
        "token-new": token::TokenRow,
        "vault": vault::VaultReport,
        "why": records::WhyReport<'static>,
        "why-code": records::WhyCodeReport<'static>,
        "worker": worker::Summary,
    }
    let mut definitions = Map::new();
    definitions.extend(commands.into_iter().map(|(name, it)| (name.to_owned(), it.to_value())));
    definitions.extend(generator.take_definitions(true));
    let document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Output of annalist's commands with --json, by command",
        "$defs": definitions,
    });
    pretty(&document)
}

fn pretty(document: &Value) -> String {
    format!("{document:#}\n")
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist man | man -l -
  annalist man memory sync > annalist-memory-sync.1")]
pub(super) struct ManArgs {
    /// The command; annalist itself by default
    command: Vec<String>,
}

pub(super) fn man(args: &ManArgs, mut whole: Command) -> Result<()> {
    whole.build();
    let mut found = &whole;
    for name in &args.command {
        found = found.find_subcommand(name).ok_or_else(|| {
            Failure::usage(format!("no command `{name}`: `annalist --help` lists them"))
        })?;
    }
    let title = found.get_display_name().unwrap_or("annalist").to_owned();
    let mut page = Vec::new();
    let source = concat!("annalist ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(found.clone()).title(title).source(source).render(&mut page)?;
    output::bytes(&page)
}

fn commands(whole: Command) -> String {
    let whole = whole.disable_help_flag(true).disable_help_subcommand(true).term_width(80);
    let mut whole = whole.mut_arg("config", |arg| arg.hide(true));
    whole.build();
    let mut page = "# Commands\n\nGenerated from the program by `annalist schema --write`; \
        `annalist COMMAND --help` prints the same.\nEvery command takes `--config FILE`, which reads \
        settings from that file instead of the project's or the user's.\n"
        .to_owned();
    whole.get_subcommands().for_each(|command| section(command, 2, &mut page));
    page
}

fn section(command: &Command, depth: usize, page: &mut String) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let (mark, name) = ("#".repeat(depth), command.get_bin_name().unwrap_or(command.get_name()));
    let help = command.clone().render_help().to_string();
    let help: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    page.push_str(&format!("\n{mark} {name}\n\n```text\n{}\n```\n", help.join("\n")));
    command.get_subcommands().for_each(|it| section(it, depth + 1, page));
}

fn configuration() -> String {
    format!("{}\n## Keys\n\n```toml\n{DEFAULT}```\n", include_str!("configuration.md"))
}
