//! `annalist schema`: prints, writes and checks the schemas and the generated documents.

use super::output::{self, Failure};
use super::{
    consolidate, dialog, docs, doctor, forget, jobs, memory, namespace, privacy, publish, records,
    status, token, vault, worker,
};
use crate::adapters::files;
use crate::context::Block;
use crate::conversation_memory::Snapshot;
use crate::domain::Message;
use crate::eval;
use crate::extract::schema_files;
use crate::llm;
use crate::memory_card::Card;
use crate::memory_dir::{Hit, TagCounts};
use crate::pipeline::{IntakeReport, Totals, answers_schema_file};
use crate::rows::{MemoryRow, RecordRow, SearchRow};
use crate::server::openapi;
use crate::store::NamespaceTotals;
use crate::transcripts::schema_file;
use clap::Command;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// File with the schemas of commands' JSON output.
const CLI_SCHEMAS: &str = "cli.v1.json";
/// File with the OpenAPI document of `annalist serve`.
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

struct Generated {
    name: String,
    path: PathBuf,
    content: String,
}

pub(super) fn run(args: &Args, program: Command) -> Result<ExitCode, Failure> {
    let chosen = chosen(args, program)?;
    let mut code = ExitCode::SUCCESS;
    for Generated { path, content, .. } in &chosen {
        if args.check {
            let published = files::read_to_string(path).unwrap_or_default();
            let is_same = published.trim() == content.trim();
            let state = if is_same { "is up to date" } else { "is out of date: run `just bless`" };
            output::line(&format!("{}: {state}", path.display()))?;
            if !is_same {
                code = ExitCode::from(output::FAILED);
            }
        } else if args.write {
            files::replace(path, content).map_err(|error| {
                Failure::failed(format!("{}: cannot be written: {error}", path.display()))
            })?;
        } else {
            output::line(content.trim_end())?;
        }
    }
    Ok(code)
}

/// Selects the files: one schema, all schemas, or the generated pages too with --check and --write.
fn chosen(args: &Args, program: Command) -> Result<Vec<Generated>, Failure> {
    let mut schemas: Vec<(String, String)> = schema_files();
    schemas.extend(crate::consolidate::schema_files());
    schemas.extend(crate::consolidate::reflect_schema_files());
    schemas.extend([schema_file(), llm::schema_file(), answers_schema_file()]);
    schemas.extend(eval::schema_files());
    schemas.push((CLI_SCHEMAS.to_owned(), cli_schemas()));
    schemas.push((OPENAPI.to_owned(), pretty(&openapi())));
    let known: Vec<String> = schemas.iter().map(|(name, _)| name.clone()).collect();
    let schemas = schemas.into_iter().map(|(name, content)| {
        let path = args.dir.join(&name);
        Generated { name, path, content }
    });
    let pages = docs::pages(program).into_iter().map(|(name, content)| {
        let path = args.docs.join(name);
        Generated { name: name.to_owned(), path, content }
    });
    let with_pages = args.check || args.write;
    let all = schemas.chain(pages.filter(|_| with_pages));
    let wanted = |it: &Generated| args.name.as_ref().is_none_or(|name| *name == it.name);
    let chosen: Vec<Generated> = all.filter(wanted).collect();
    if chosen.is_empty() {
        let (name, known) = (args.name.as_deref().unwrap_or_default(), known.join(", "));
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
        "jobs-show": jobs::JobDetails<'static>,
        "memory-history": Vec<memory::HistoryRow>,
        "memory-lint": memory::LintReport<'static>,
        "memory-list": Vec<MemoryRow<'static>>,
        "memory-reflect": Vec<memory::RetrospectiveRow<'static>>,
        "memory-render": memory::SyncReport<'static>,
        "memory-search": Vec<Hit>,
        "memory-show": MemoryRow<'static>,
        "memory-sync": memory::SyncWithPlans<'static>,
        "memory-verdict": memory::VerdictRow,
        "memory-tags": TagCounts,
        "memory-tokens": memory::TokensReport<'static>,
        "memory-verify": Vec<memory::MissingRow>,
        "namespace-list": Vec<NamespaceTotals>,
        "namespace-move": namespace::MovedNamespace<'static>,
        "open": Vec<SearchRow<'static>>,
        "privacy-check": privacy::PrivacyReport,
        "publish": publish::PublishReport,
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
