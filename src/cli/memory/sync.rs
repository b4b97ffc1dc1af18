//! `annalist memory sync` and `render`: sync the directory with the memories, in both directions.

use super::folder::{DirArgs, became, dir_sync_of, failure, finish_forgetting, namespace_of};
use crate::adapters::clock;
use crate::adapters::hook_folder::HookFolder;
use crate::adapters::memory_files::MemoryFolder;
use crate::cli::arguments::session;
use crate::cli::consolidate::{self, NamespaceResult, PlanRow};
use crate::cli::model_args::AdjudicationArgs;
use crate::cli::output::{
    self, DIM, Failure, GREEN, RED, Result, YELLOW, counted, in_pages, json_row, shorten,
};
use crate::cli::settings;
use crate::config::{Config, namespace_name};
use crate::domain::{BY_PERSON, Memory, MemoryId, Plan};
use crate::memory_dir::{Conflict, FileChange, OutputStyle};
use crate::pipeline::{DirSync, ProjectDirectory, SyncReport as DirSyncReport, left_behind};
use crate::store::{Directory, OpenMode, PrefixLookup};
use crate::text::diff::difference;
use schemars::JsonSchema;
use serde::Serialize;
use std::io;
use std::path::Path;
use std::sync::Arc;

const OTHERS_MAX: usize = 5;
const LINE_LETTERS: usize = 90;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory render --dry-run
  annalist memory render --namespace roofs --dir ../roofs")]
pub(super) struct RenderArgs {
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory sync
  annalist memory sync --dry-run         show what would change
  annalist memory sync --namespace roofs --dir ../roofs
  annalist memory sync --model qwen3:8b  ask a model where no rule decides, as
                                         `annalist consolidate` does

Running it again changes nothing. It can be killed at any time: the next run resumes.")]
pub(super) struct SyncArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    adjudication: AdjudicationArgs,
    /// Agent session that requested the sync; its hooks are told when it is done
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Target {
    /// Namespace, instead of the one from the settings or the project folder
    #[arg(long, value_name = "NAME", value_parser = namespace_name)]
    namespace: Option<String>,
    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dir: DirArgs,
}

struct DirectorySync {
    config: Config,
    dir_sync: DirSync,
    folder: MemoryFolder,
    namespace: String,
    output_style: OutputStyle,
}

impl DirectorySync {
    async fn open(target: &Target, file: Option<&Path>) -> Result<DirectorySync> {
        let config = settings::load(file)?;
        let folder = target.dir.find()?;
        let store = settings::open_store(&config, OpenMode::Existing)?;
        if !target.dry_run {
            finish_forgetting(&store, &config).await?;
        }
        let namespace = match &target.namespace {
            Some(named) => named.clone(),
            None => namespace_of(&store, &config, &folder).await?,
        };
        let dir_sync = dir_sync_of(store, &config);
        if target.namespace.is_none() {
            refuse_moved(&dir_sync, &folder, &namespace).await?;
        }
        let output_style = ProjectDirectory::new(folder.clone()).settings.output_style;
        Ok(DirectorySync { config, dir_sync, folder, namespace, output_style })
    }

    /// Notes namespaces with waiting records, if this one has no memories.
    async fn note_others(&self) -> Result<()> {
        let store = &self.dir_sync.store;
        if store.has_memories(&self.namespace).await? {
            return Ok(());
        }
        let others = store.backlog().await?;
        let more = others.len().saturating_sub(OTHERS_MAX);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        if !others.is_empty() {
            let named = output::commas(others.iter().take(OTHERS_MAX).map(|it| &it.namespace));
            output::note(&format!(
                "namespace `{}` has no records; staged ones are in {named}{more}: choose one with \
                 --namespace NAME, or all with `annalist consolidate`",
                self.namespace
            ));
        }
        Ok(())
    }

    /// Notes entries of `session` that no model has read yet.
    async fn note_waiting(&self, session: &str) -> Result<()> {
        let store = &self.dir_sync.store;
        let PrefixLookup::One(session) = store.session_named(session).await? else { return Ok(()) };
        let waiting = store.waiting_entries(session.id).await?;
        if waiting > 0 {
            output::note(&format!(
                "{YELLOW}not extracted yet: {} of the session{YELLOW:#}; `annalist worker --drain` \
                 extracts them, and the next sync adds the result",
                counted(waiting, "entry")
            ));
        }
        Ok(())
    }

    async fn keep(&self, dry_run: bool, plan: Option<&Plan>) -> Result<DirSyncReport> {
        let kept = match dry_run {
            true => self.dir_sync.preview(&self.folder, &self.namespace, plan).await,
            false => self.dir_sync.sync(&self.folder, &self.namespace).await,
        };
        kept.map_err(|error| failure(&self.folder, error))
    }

    fn print(&self, kept: &DirSyncReport, dry_run: bool) -> Result<()> {
        if self.output_style == OutputStyle::Quiet {
            if let files @ 1.. = kept.changes.len() as u64 {
                output::note(&format!("{} of the directory changed", counted(files, "file")));
            }
        } else {
            self.print_changes(kept)?;
        }
        for (path, conflict) in &kept.conflicts {
            let theirs = shorten(conflict.theirs.as_str(), LINE_LETTERS);
            let ours = conflict.ours.as_ref().map_or("to remove it".to_owned(), |ours| {
                format!("`{}`", shorten(ours.as_str(), LINE_LETTERS))
            });
            output::note(&format!(
                "{YELLOW}{path}: `{theirs}` stays as a person wrote it; memory says {ours}{YELLOW:#}"
            ));
        }
        for (path, reason) in &kept.left {
            output::note(&format!("{YELLOW}{path}: left as it is: {reason}{YELLOW:#}"));
        }
        for path in kept.deleted.iter().filter(|path| !path.contains('/')) {
            output::note(&format!(
                "{path} stays deleted: `annalist memory init --all` recreates it"
            ));
        }
        if kept.is_empty() {
            output::note("the directory is up to date");
        } else if dry_run {
            output::note("dry run: nothing was changed");
        }
        Ok(())
    }

    fn print_changes(&self, kept: &DirSyncReport) -> Result<()> {
        for (rule, memory) in &kept.people {
            let words = shorten(memory.words(), LINE_LETTERS);
            let done = rule.strip_prefix(BY_PERSON).unwrap_or(rule).replace('-', " ");
            output::line(&format!("memory {words}  {DIM}{done} by a person{DIM:#}"))?;
        }
        for change in &kept.changes {
            let (mark, style) = match (&change.before, &change.after) {
                (None, _) => ("+", GREEN),
                (Some(_), Some(_)) => ("~", YELLOW),
                (Some(_), None) => ("-", RED),
            };
            output::line(&format!("{style}{mark} {}{style:#}", change.path))?;
            if self.output_style == OutputStyle::Explanatory {
                let text = |side: &Option<Arc<str>>| side.clone().unwrap_or_default();
                for line in difference(&text(&change.before), &text(&change.after)).lines() {
                    output::line(&format!("    {DIM}{line}{DIM:#}"))?;
                }
            }
        }
        Ok(())
    }
}

/// Fails if the project was moved or copied here from another namespace: a sync would ignore the edits made since.
async fn refuse_moved(sync: &DirSync, folder: &MemoryFolder, new: &str) -> Result<()> {
    let moved = left_behind(sync, folder, new).await.map_err(|error| failure(folder, error))?;
    let Some((old, original)) = moved else { return Ok(()) };
    let whose = match original {
        Some(Directory { dir, .. }) => {
            format!("as a copy of {dir}: --namespace '{old}' keeps it in step with that memory")
        }
        None => format!(
            "as this project was named before it was moved: `annalist namespace move '{old}' \
             '{new}'` brings its memory along"
        ),
    };
    Err(Failure::usage(format!(
        "{} shows the memory of namespace `{old}`, {whose}, --namespace '{new}' starts without it",
        folder.path().display()
    )))
}

/// Returns the folder for a note that `session` was synced.
fn hook_folder(session: &str) -> Result<HookFolder> {
    let state = settings::state_folder()
        .ok_or_else(|| Failure::usage("--session: neither XDG_STATE_HOME nor HOME is set"))?;
    let folder = HookFolder::new(&state);
    match folder.synced_at(session) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            Err(Failure::usage("--session: expected a session name: letters, digits, `-` and `_`"))
        }
        // An unreadable note is replaced.
        Ok(_) | Err(_) => Ok(folder),
    }
}

json_row! {
    /// Changes of a directory, as JSON.
    pub(crate) struct SyncReport<'a> of name: &'a str, kept: &'a DirSyncReport {
        namespace: &'a str = name,
        changes: Vec<ChangeRow<'a>> = kept.changes.iter().map(ChangeRow::of).collect(),
        people: Vec<EditRow> = kept.people.iter().map(EditRow::of).collect(),
        conflicts: Vec<ConflictRow<'a>> = kept.conflicts.iter().map(ConflictRow::of).collect(),
        left: Vec<LeftRow<'a>> = kept.left.iter().map(LeftRow::of).collect(),
        deleted: &'a [String] = &kept.deleted,
        unplaced: usize = kept.unplaced,
    }
}

/// Changes of a directory with the plans before them, as JSON.
#[derive(JsonSchema, Serialize)]
pub(crate) struct SyncWithPlans<'a> {
    #[serde(flatten)]
    sync: SyncReport<'a>,
    plans: Vec<PlanRow<'a>>,
}

json_row! {
    struct ChangeRow<'a> of it: &'a FileChange {
        path: &'a str = &it.path,
        became: &'static str = became(it),
    }
}

json_row! {
    struct EditRow of it: &(&'static str, Memory) {
        rule: &'static str = it.0,
        memory: MemoryId = it.1.id,
    }
}

json_row! {
    struct ConflictRow<'a> of it: &'a (String, Conflict) {
        path: &'a str = &it.0,
        tag: Option<&'a str> = it.1.tag.as_deref(),
        section: &'a str = it.1.section.as_str(),
        ours: Option<&'a str> = it.1.ours.as_ref().map(|ours| ours.as_str()),
        theirs: &'a str = it.1.theirs.as_str(),
    }
}

json_row! {
    struct LeftRow<'a> of it: &'a (String, &'static str) {
        path: &'a str = &it.0,
        reason: &'static str = it.1,
    }
}

pub(super) async fn render(args: &RenderArgs, file: Option<&Path>) -> Result<()> {
    let target = &args.target;
    let sync = DirectorySync::open(target, file).await?;
    let kept = sync.keep(target.dry_run, None).await?;
    match target.json {
        true => output::json(&SyncReport::of(&sync.namespace, &kept))?,
        false => in_pages(async { sync.print(&kept, target.dry_run) }).await?,
    }
    Ok(())
}

pub(super) async fn sync(args: &SyncArgs, file: Option<&Path>) -> Result<()> {
    let Target { dry_run, json, .. } = args.target;
    let sync = DirectorySync::open(&args.target, file).await?;
    let hooks = args.session.as_deref().map(hook_folder).transpose()?;
    if let Some((hooks, id)) = hooks.as_ref().zip(args.session.as_ref())
        // Hooks ask for a sync before the store has the session.
        && !hooks.state(id).is_ok_and(|state| state.is_some())
    {
        session(&sync.dir_sync.store, id).await?;
    }
    let judge = args.adjudication.adjudicator(&sync.config, &sync.dir_sync.store, dry_run).await?;
    let consolidator = consolidate::consolidator(sync.dir_sync.store.clone(), judge);
    let mut edits = Vec::new();
    if !dry_run {
        let imported = sync.dir_sync.import_edits(&sync.folder, &sync.namespace).await;
        edits = imported.map_err(|error| failure(&sync.folder, error))?;
    }
    let results = consolidate::one_namespace(&consolidator, &sync.namespace, dry_run).await?;
    let last = results.last().and_then(|it| it.planned.as_ref());
    let mut kept = sync.keep(dry_run, last.map(|it| &it.plan)).await?;
    kept.people.splice(..0, edits);
    let is_something = results.iter().any(NamespaceResult::is_something);
    if !is_something {
        sync.note_others().await?;
    }
    if let Some(session) = &args.session {
        sync.note_waiting(session).await?;
    }
    let failed = results.iter().any(|it| it.problem.is_some());
    if let Some((hooks, session)) = hooks.zip(args.session.as_ref())
        && !dry_run
        && !failed
    {
        hooks.note_synced(session, clock::now()).map_err(|error| {
            Failure::failed(format!("--session: cannot record the sync: {error}"))
        })?;
    }
    if json {
        let sync = SyncReport::of(&sync.namespace, &kept);
        let plans = results.iter().map(PlanRow::of).collect();
        output::json(&SyncWithPlans { sync, plans })?;
    } else {
        in_pages(async {
            if is_something {
                consolidate::print(&results, dry_run, sync.output_style)?;
            }
            match is_something && kept.is_empty() && kept.left.is_empty() {
                true => Ok(()),
                false => sync.print(&kept, dry_run && !is_something),
            }
        })
        .await?;
    }
    consolidate::notes(&results);
    output::fail_if(failed)
}
