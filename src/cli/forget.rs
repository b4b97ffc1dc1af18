//! `annalist forget`: erases a conversation, a record or a namespace with everything derived from it.

use super::arguments::{is_agreed, one, prefix, session, unknown_namespace};
use super::consolidate::consolidator;
use super::memory::folder::{directories, note_files};
use super::output::{self, BOLD, DIM, Failure, YELLOW, counted, in_pages, short};
use super::settings;
use crate::adapters::process;
use crate::domain::{Change, RecordId, SessionId};
use crate::pipeline::{
    Consolidator, ErasureProof, ForgetPlan, ForgetResult, ForgetTarget, Forgotten, PUBLISHED_IN,
    check_meant,
};
use crate::store::{Directory, Erased};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// Maximum memories and files to list; the rest are counted.
const LISTED_MAX: usize = 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist forget --session 079da --dry-run  what would be erased
  annalist forget --session 079da            a conversation, after asking
  annalist forget --session 079da --yes      without asking
  annalist forget --record 3fa9              one record; its conversation stays
  annalist forget --namespace roofs          everything of a namespace

Memories that rested on it alone are erased, others are rebuilt from what is left, and memories that it \
had superseded are active again. Then the store is searched for its words. The transcript is yours and \
stays where it is; its conversation is left out from now on, also what is said in it later. \
`replay --also-forgotten` and `enqueue --also-forgotten` read it again.")]
#[command(override_usage = "annalist forget [OPTIONS] <--session ID|--record ID|--namespace NAME>")]
#[command(group(clap::ArgGroup::new("what").required(true)))]
pub(super) struct Args {
    /// The conversation's id, or that of its client, or the beginning of one
    #[arg(long, value_name = "ID", group = "what")]
    session: Option<String>,
    /// The record's id, or the beginning of it
    #[arg(long, value_name = "ID", group = "what")]
    record: Option<String>,
    /// All conversations of this namespace
    #[arg(long, value_name = "NAME", group = "what")]
    namespace: Option<String>,
    /// Print what would be erased, and erase nothing
    #[arg(long)]
    dry_run: bool,
    /// Erase without asking
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Objects that would be erased, as JSON.
#[derive(JsonSchema, Serialize)]
pub(super) struct ForgetPreview<'a> {
    namespace: &'a str,
    sessions: &'a [SessionId],
    records: &'a [RecordId],
    memories: &'a [Change],
}

/// Objects that were erased, and the search for their words, as JSON.
#[derive(JsonSchema, Serialize)]
pub(super) struct ForgetReport<'a> {
    erased: &'a Erased,
    proof: &'a ErasureProof,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<(), Failure> {
    let (config, store) = settings::existing_store(file)?;
    let consolidator = consolidator(store, None);
    settings::runtime()?.block_on(async {
        let (namespace, what) = what(&consolidator, args).await?;
        let found = consolidator.plan_forgetting(&namespace, &what).await?;
        let is_nothing = found.records.is_empty() && found.sessions.is_empty();
        let store = &consolidator.store;
        if is_nothing
            && !store.has_namespace(&namespace).await?
            && !store.had_namespace(&namespace).await?
        {
            return Err(unknown_namespace(store, &namespace).await?);
        }
        if args.dry_run {
            return in_pages(|| preview(&found, args.json));
        }
        if is_nothing {
            output::note(&format!("namespace `{namespace}`: nothing to forget"));
            return Ok(());
        }
        if !args.yes && !is_wanted(&found)? {
            output::note("nothing was erased");
            return Ok(());
        }
        let directories = directories(&consolidator.store, &config)?;
        match directories.forget(&consolidator, &found, &what).await? {
            Forgotten::Done(ForgetResult { erased, proof, synced }) => {
                note_files(&directories, &synced)?;
                print(&erased, &proof, args.json)?;
                elsewhere(&consolidator, &namespace).await
            }
            Forgotten::Busy => Err(output::busy(&[&namespace])),
            Forgotten::Moved(ids) => Err(Failure::failed(format!(
                "namespace `{namespace}`: {} changed meanwhile; nothing was erased, try again",
                counted(ids.len() as u64, "memory")
            ))),
        }
    })
}

fn is_wanted(found: &ForgetPlan) -> Result<bool, Failure> {
    let what = format!("{} and all that rests on them", amount(found));
    let refusal = format!(
        "{what} would be erased for good: nobody is there to say yes; add --yes, or --dry-run to look"
    );
    is_agreed(&format!("erase {what} for good?"), refusal)
}

fn amount(found: &ForgetPlan) -> String {
    let sessions = counted(found.sessions.len() as u64, "session");
    format!("{sessions} and {}", counted(found.records.len() as u64, "record"))
}

/// Notes directories on other machines that still show the namespace.
async fn elsewhere(consolidator: &Consolidator, namespace: &str) -> Result<(), Failure> {
    for Directory { host, dir } in consolidator.store.directories(namespace).await? {
        if host != process::host() {
            output::note(&format!(
                "{dir} on {host} shows `{namespace}` too: run `annalist memory render` there"
            ));
        }
    }
    Ok(())
}

async fn what(consolidator: &Consolidator, args: &Args) -> Result<(String, ForgetTarget), Failure> {
    let store = &consolidator.store;
    match (&args.session, &args.record, &args.namespace) {
        (Some(id), ..) => {
            let session = session(store, id).await?;
            check_meant(id, session.native_id.as_str()).map_err(Failure::usage)?;
            Ok((session.namespace, ForgetTarget::Session(session.id)))
        }
        (_, Some(id), _) => {
            let page = one(store.record(prefix(id)?).await?, "record", id)?;
            let record = page.stored.record;
            check_meant(id, &record.id.to_string()).map_err(Failure::usage)?;
            Ok((record.provenance.namespace, ForgetTarget::Record(record.id)))
        }
        (_, _, Some(namespace)) => Ok((namespace.clone(), ForgetTarget::Namespace)),
        (None, None, None) => {
            Err(Failure::usage("expected --session ID, --record ID or --namespace NAME"))
        }
    }
}

fn preview(found: &ForgetPlan, as_json: bool) -> Result<(), Failure> {
    if as_json {
        let ForgetPlan { namespace, sessions, records, changes, .. } = found;
        return output::json(&ForgetPreview { namespace, sessions, records, memories: changes });
    }
    output::line(&format!("{BOLD}{}{BOLD:#}: {} would go", found.namespace, amount(found)))?;
    for Change { memory, before, after } in found.changes.iter().take(LISTED_MAX) {
        let becomes = match (before, after) {
            (_, None) => "goes",
            (Some(before), Some(after)) if before.state != after.state => "is active again",
            (_, Some(_)) => "is rebuilt",
        };
        let words = after.as_ref().or(before.as_ref()).map_or("", |it| it.claim.headline());
        output::line(&format!("  {DIM}{} {becomes}:{DIM:#} {words}", short(memory)))?;
    }
    if let Some(more) = found.changes.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
        let more = counted(more as u64, "memory");
        output::line(&format!("  {DIM}and {more} more: --json lists them{DIM:#}"))?;
    }
    output::note("a dry run: nothing was erased");
    Ok(())
}

fn print(erased: &Erased, proof: &ErasureProof, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return output::json(&ForgetReport { erased, proof });
    }
    let gone = [
        (erased.sessions, "session"),
        (erased.entries, "entry"),
        (erased.records, "record"),
        (erased.answers, "answer"),
        (erased.jobs, "job"),
    ];
    let gone = output::commas(gone.map(|(count, name)| counted(count, name)));
    output::line(&format!("erased: {gone}"))?;
    output::line(&format!(
        "memories: {} gone, {} changed",
        erased.memories_gone, erased.memories_changed
    ))?;
    let looked = format!(
        "searched {} texts for {} of what was erased",
        output::count(proof.texts),
        counted(proof.passages as u64, "passage")
    );
    if proof.left.is_empty() {
        return output::line(&format!("{looked}: none is left"));
    }
    let left = proof.left.iter().map(|(place, count)| format!("{place} {count}"));
    output::line(&format!(
        "{looked}: {YELLOW}others hold some of them too{YELLOW:#}: {}",
        output::commas(left)
    ))?;
    let told = |file: &String| match PUBLISHED_IN.contains(&file.as_str()) {
        true => format!("{file} holds some: `annalist publish {file}` renews a published block"),
        false => format!("{file} holds some: what people wrote or hid there is theirs to erase"),
    };
    output::notes(proof.files.iter().map(told), LISTED_MAX, "more files: --json");
    Ok(())
}
