//! `annalist forget`: erases a conversation, a record or a namespace with everything derived from it.

use super::arguments::{is_agreed, one, prefix, session, unknown_namespace};
use super::consolidate::consolidator;
use super::memory::folder::{UNSCRUBBED, directories, finish_forgetting, note_files};
use super::output::{self, BOLD, DIM, Failure, Result, YELLOW, counted, in_pages, short};
use super::settings;
use crate::adapters::process;
use crate::adapters::repository::WorkingTree;
use crate::config::namespace_name;
use crate::domain::{Change, Format, RecordId, Session, SessionId};
use crate::pipeline::{
    Consolidator, ErasureProof, ForgetPlan, ForgetResult, ForgetTarget, Forgotten, PUBLISHED_IN,
    becomes, check_meant,
};
use crate::store::{Directory, Erased, Erasure, Store, TagKind};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

const LISTED_MAX: usize = 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist forget --session 079da --dry-run  show what would be erased
  annalist forget --session 079da            erase a conversation, after asking
  annalist forget --session 079da --yes      erase it without asking
  annalist forget --record 3fa9              erase one record alone
  annalist forget --namespace roofs          erase a whole namespace

Memories that rest only on what is erased are erased too, others are rebuilt from what is left, \
and memories that it superseded become active again. Then the store is searched for the erased \
words. No transcript file is changed. An erased conversation is skipped from now on, including \
later messages; `replay --also-forgotten` and `enqueue --also-forgotten` read it again. The \
conversation of a single erased record stays.")]
#[command(override_usage = "annalist forget [OPTIONS] <--session ID|--record ID|--namespace NAME>")]
#[command(group(clap::ArgGroup::new("what").required(true)))]
pub(super) struct Args {
    /// ID of the conversation: annalist's, the client's, or a prefix of either
    #[arg(long, value_name = "ID", group = "what")]
    session: Option<String>,
    /// ID of the record, or a prefix
    #[arg(long, value_name = "ID", group = "what")]
    record: Option<String>,
    /// All conversations of this namespace
    #[arg(long, value_name = "NAME", value_parser = namespace_name, group = "what")]
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
    erasable: &'a Erased,
    sessions: &'a [SessionId],
    records: &'a [RecordId],
    memories: &'a [Change],
    /// False if memory is too large for a preview of what follows for memories that rest on other records.
    complete: bool,
}

/// Objects that were erased, and the search for their words, as JSON.
#[derive(JsonSchema, Serialize)]
pub(super) struct ForgetReport<'a> {
    erased: &'a Erased,
    proof: &'a ErasureProof,
}

pub(super) async fn run(args: &Args, file: Option<&Path>) -> Result<()> {
    let (config, store) = settings::existing_store(file)?;
    let consolidator = consolidator(store, None);
    let unfinished = match args.dry_run {
        true => Vec::new(),
        false => finish_forgetting(&consolidator.store, &config).await?,
    };
    let found = what(&consolidator, args).await;
    if found.is_err() && was_forgotten(&consolidator.store, args, &unfinished).await? {
        return Ok(());
    }
    let (namespace, what) = found?;
    let found = consolidator.preview_forgetting(&namespace, &what).await?;
    let is_nothing = found.is_empty();
    let store = &consolidator.store;
    if is_nothing
        && !store.has_namespace(&namespace).await?
        && !store.had_namespace(&namespace).await?
    {
        return Err(unknown_namespace(store, &namespace).await?);
    }
    if args.dry_run {
        return in_pages(async { preview(&found, args.json) }).await;
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
    match directories.forget(&consolidator, &namespace, &what).await? {
        Forgotten::Done(ForgetResult { erased, proof, synced }) => {
            note_files(&directories, &synced)?;
            print(&erased, &proof, args.json)?;
            elsewhere(&consolidator, &namespace).await?;
            if proof.unscrubbed {
                output::note(&format!("{YELLOW}{UNSCRUBBED}{YELLOW:#}"));
            }
            output::fail_if(proof.unscrubbed)
        }
        Forgotten::Busy => Err(output::busy(&[&namespace])),
        Forgotten::Moved(ids) => Err(Failure::failed(format!(
            "namespace `{namespace}`: {} changed meanwhile; nothing was erased, try again",
            counted(ids.len() as u64, "memory")
        ))),
    }
}

/// True if the session or record of the arguments was erased from one of `namespaces`.
async fn was_forgotten(store: &Store, args: &Args, namespaces: &[String]) -> Result<bool> {
    let (kind, id) = match (&args.session, &args.record) {
        (Some(id), _) => (TagKind::Session, id),
        (_, Some(id)) => (TagKind::Record, id),
        (None, None) => return Ok(false),
    };
    let native = namespaces.iter().flat_map(|namespace| {
        Format::ALL.iter().map(|format| Session::id_of(namespace, *format, id).to_string())
    });
    let prefixes = native.chain([id.clone()]).collect();
    Ok(!namespaces.is_empty() && !store.forgotten(kind, prefixes).await?.is_empty())
}

fn is_wanted(found: &ForgetPlan) -> Result<bool> {
    let what = format!("{} and everything derived from them", found.erasable.in_words("session"));
    let refusal = format!(
        "{what} would be erased permanently, with no terminal to ask: add --yes, or --dry-run"
    );
    is_agreed(&format!("erase {what} permanently?"), refusal)
}

/// Notes where text of the namespace may be left: directories on other machines, and commits of git.
async fn elsewhere(consolidator: &Consolidator, namespace: &str) -> Result<()> {
    for Directory { host, dir } in consolidator.store.directories(namespace).await? {
        if host != process::host() {
            output::note(&format!(
                "{dir} on {host} also shows `{namespace}`: run `annalist memory render` there"
            ));
        } else if WorkingTree::around(Path::new(&dir)).is_some_and(|it| it.tracks(Path::new(&dir)))
        {
            output::note(&format!(
                "{dir} is in a git repository: earlier commits and clones still contain the text"
            ));
        }
    }
    Ok(())
}

async fn what(consolidator: &Consolidator, args: &Args) -> Result<(String, ForgetTarget)> {
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

fn preview(found: &ForgetPlan, as_json: bool) -> Result<()> {
    let Erasure { sessions, records, changes, .. } = &found.erasure;
    if as_json {
        let ForgetPlan { namespace, erasable, is_whole: complete, .. } = found;
        let (memories, complete) = (changes, *complete);
        return output::json(&ForgetPreview {
            namespace,
            erasable,
            sessions,
            records,
            memories,
            complete,
        });
    }
    let what = found.erasable.in_words("session");
    output::line(&format!("{BOLD}{}{BOLD:#}: {what} would be erased", found.namespace))?;
    for change in changes.iter().take(LISTED_MAX) {
        let (Change { memory, before, after }, becomes) = (change, becomes(change));
        let words = after.as_ref().or(before.as_ref()).map_or("", |it| it.claim.headline());
        output::line(&format!("  {DIM}{} {becomes}:{DIM:#} {words}", short(memory)))?;
    }
    if let Some(more) = changes.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
        let more = counted(more as u64, "memory");
        output::line(&format!("  {DIM}{more} not shown: --json lists them{DIM:#}"))?;
    }
    if !found.is_whole {
        output::note("memory is large: what follows for memories on other records is not shown");
    }
    output::note("dry run: nothing was erased");
    Ok(())
}

fn print(erased: &Erased, proof: &ErasureProof, as_json: bool) -> Result<()> {
    if as_json {
        return output::json(&ForgetReport { erased, proof });
    }
    output::line(&format!("erased: {}", erased.in_words("session")))?;
    let (gone, changed) = (erased.memories_gone, erased.memories_changed);
    output::line(&format!("memories: {gone} erased, {changed} changed"))?;
    let looked = format!(
        "searched {} texts for {} of the erased text",
        output::count(proof.texts),
        counted(proof.passages as u64, "passage")
    );
    if proof.left.is_empty() {
        let left = if proof.unscrubbed { "none left in its tables" } else { "none left" };
        return output::line(&format!("{looked}: {left}"));
    }
    output::line(&format!(
        "{looked}: {YELLOW}others also contain some of them{YELLOW:#}: {}",
        output::commas(proof.left_in_words())
    ))?;
    let told = |file: &String| match PUBLISHED_IN.contains(&file.as_str()) {
        true => format!("{file} contains some: `annalist publish {file}` renews a published block"),
        false => format!("{file} contains some: erase by hand what people wrote or hid there"),
    };
    output::notes(proof.files.iter().map(told), LISTED_MAX, "more files: --json");
    Ok(())
}
