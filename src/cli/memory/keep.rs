//! `annalist memory sync` and `render`: brings the directory in step with the memories.

use super::super::consolidate::{self, Told};
use super::super::judges::Judges;
use super::super::output::{self, DIM, Failure, GREEN, RED, YELLOW, shorten};
use super::super::settings;
use super::place::{Dir, around, namespace, read, unreadable};
use crate::config::Config;
use crate::domain::{Memory, MemoryMap};
use crate::edge::hooks::HookFolder;
use crate::edge::memory_dir::MemoryFolder;
use crate::edge::store::{Open, Store};
use crate::edge::{clock, process};
use crate::memory_dir::FileChange;
use crate::privacy::Gate;
use crate::worker::{KeepError, Keeper, Keeping, Kept};
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Other namespaces that are named.
const OTHERS_MAX: usize = 5;
/// Letters of a claim or an entry on a line.
const LINE_LETTERS: usize = 90;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory render --dry-run
  annalist memory render --namespace roofs --dir ../roofs")]
pub(super) struct RenderArgs {
    #[command(flatten)]
    what: What,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory sync
  annalist memory sync --dry-run             what would become of records and files
  annalist memory sync --namespace roofs --dir ../roofs
  annalist memory sync --model qwen3:8b      ask a model what no rule decides, as `annalist consolidate` does

Run again, it changes nothing. It may be killed at any time: the next run goes on from there.")]
pub(super) struct SyncArgs {
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    judges: Judges,
    /// The session of the agent that this is done for: its hooks know of it then
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

#[derive(Debug, clap::Args)]
struct What {
    /// Whose memory; that of the settings, else the name of the project's folder
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Change nothing, and tell what would be changed
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dir: Dir,
}

/// What a command works with.
struct Desk {
    config: Config,
    keeper: Keeper,
    folder: MemoryFolder,
    namespace: String,
}

impl Desk {
    fn open(what: &What, file: Option<&Path>) -> Result<Desk, Failure> {
        let config = settings::load(file)?;
        let folder = what.dir.find()?;
        let store = settings::open_store(&config, Open::Existing)?;
        let keeper = keeper(store, &config);
        let namespace = namespace(what.namespace.as_deref(), (&config, &keeper.gate), &folder);
        Ok(Desk { config, keeper, folder, namespace })
    }

    /// What people did to the directory, taken up before a plan is made.
    async fn hear(&self) -> Result<Vec<(&'static str, Memory)>, Failure> {
        let heard = self.keeper.hear(&self.folder, &self.namespace).await;
        heard.map_err(|error| failure(&self.folder, error))
    }

    /// Says where records wait if this directory's namespace has none at all: it may be named otherwise.
    async fn note_others(&self) -> Result<(), Failure> {
        let store = &self.keeper.store;
        if !store.memories(Some(&self.namespace)).await?.is_empty() {
            return Ok(());
        }
        let others: Vec<String> =
            store.backlog().await?.into_iter().map(|it| it.namespace).take(OTHERS_MAX).collect();
        if !others.is_empty() {
            output::note(&format!(
                "namespace `{}` has no records; some wait in {}: --namespace NAME takes another, \
                 `annalist consolidate` all",
                self.namespace,
                others.join(", ")
            ));
        }
        Ok(())
    }

    async fn keep(&self, dry_run: bool, memories: Option<MemoryMap>) -> Result<Kept, Failure> {
        match dry_run {
            true => self
                .keeper
                .look(&self.folder, &self.namespace, memories)
                .await
                .map_err(|error| failure(&self.folder, error)),
            false => keep(&self.keeper, &self.folder, &self.namespace).await,
        }
    }
}

/// The hooks of the session that a sync is done for.
struct Hooks<'a> {
    folder: HookFolder,
    session: &'a str,
}

impl<'a> Hooks<'a> {
    fn of(session: &'a str) -> Result<Hooks<'a>, Failure> {
        let Some(state) = settings::state_folder() else {
            return Err(Failure::usage("--session: neither XDG_STATE_HOME nor HOME is set"));
        };
        let folder = HookFolder::new(&state);
        match folder.synced_at(session) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(Failure::usage(
                "--session: expected the name of a session: letters, digits, `-` and `_`",
            )),
            // A note that cannot be read is replaced.
            Ok(_) | Err(_) => Ok(Hooks { folder, session }),
        }
    }

    fn note_synced(&self) -> Result<(), Failure> {
        let noted = self.folder.note_synced(self.session, clock::now());
        noted.map_err(|error| Failure::failed(format!("--session: cannot be noted: {error}")))
    }
}

fn keeper(store: Store, config: &Config) -> Keeper {
    Keeper {
        store,
        holder: process::name().to_owned(),
        clock: clock::now,
        gate: Gate::new(&config.pii),
    }
}

async fn keep(keeper: &Keeper, folder: &MemoryFolder, namespace: &str) -> Result<Kept, Failure> {
    match keeper.keep(folder, namespace).await.map_err(|error| failure(folder, error))? {
        Keeping::Done(kept) => Ok(*kept),
        Keeping::Busy => Err(Failure::failed(format!(
            "namespace `{namespace}`: another process changes its memory now; try again"
        ))),
    }
}

fn failure(folder: &MemoryFolder, error: KeepError) -> Failure {
    match error {
        KeepError::Store(error) => error.into(),
        KeepError::Disk { path, cause } => unreadable(&folder.path().join(path), &cause),
    }
}

pub(super) fn render(args: &RenderArgs, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let what = &args.what;
    let desk = Desk::open(what, file)?;
    let kept = settings::runtime()?.block_on(desk.keep(what.dry_run, None))?;
    if what.json {
        output::json(&to_json(&desk.namespace, &kept))?;
    } else {
        print(&kept, what.dry_run)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn sync(args: &SyncArgs, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let what = &args.what;
    let desk = Desk::open(what, file)?;
    let hooks = args.session.as_deref().map(Hooks::of).transpose()?;
    let (told, kept) = settings::runtime()?.block_on(async {
        let judge = args.judges.judge(&desk.config, &desk.keeper.store).await?;
        let consolidator = consolidate::consolidator(desk.keeper.store.clone(), judge);
        let namespace = desk.namespace.clone();
        let heard = match what.dry_run {
            true => Vec::new(),
            false => desk.hear().await?,
        };
        let mut told = consolidate::one_namespace(&consolidator, namespace, what.dry_run).await?;
        let last = told.last_mut().and_then(|it| it.planned.as_mut());
        let memories = last.filter(|_| what.dry_run).map(|it| it.memories.clone());
        let mut kept = desk.keep(what.dry_run, memories).await?;
        kept.people.splice(..0, heard);
        if !told.iter().any(Told::says_something) {
            desk.note_others().await?;
        }
        Ok::<_, Failure>((told, kept))
    })?;
    let failed = told.iter().any(|it| it.problem.is_some());
    if let Some(hooks) = hooks.filter(|_| !what.dry_run && !failed) {
        hooks.note_synced()?;
    }
    if what.json {
        let mut whole = to_json(&desk.namespace, &kept);
        whole["plans"] = told.iter().map(consolidate::to_json).collect();
        output::json(&whole)?;
    } else {
        let is_told = told.iter().any(Told::says_something);
        if is_told {
            consolidate::print(&told, what.dry_run)?;
        }
        if !(is_told && kept.is_empty()) {
            print(&kept, what.dry_run && !is_told)?;
        }
    }
    consolidate::notes(&told);
    Ok(if failed { ExitCode::from(output::FAILED) } else { ExitCode::SUCCESS })
}

/// Brings every directory of this machine in step that shows one of `namespaces`, after a plan of theirs was applied
/// or undone; says which files changed, and gives what the directories hold now, by path.
pub(in crate::cli) async fn after_plan(
    store: &Store,
    config: &Config,
    namespaces: &[&str],
) -> Result<Vec<(String, String)>, Failure> {
    let keeper = keeper(store.clone(), config);
    let here = around(Path::new("."))?;
    let mut texts = Vec::new();
    for shown in namespaces {
        for folder in folders(&keeper, config, (here.as_ref(), shown)).await? {
            let kept = keep(&keeper, &folder, shown).await?;
            let is_here = here.as_ref() == Some(&folder);
            let before =
                if is_here { String::new() } else { format!("{}/", folder.path().display()) };
            for change in &kept.changes {
                output::note(&format!("{before}{}: {}", change.path, became(change)));
            }
            let named = |(path, text)| (format!("{before}{path}"), text);
            texts.extend(read(&folder)?.files.into_iter().map(named));
        }
    }
    Ok(texts)
}

/// Takes up what people did in the directories of this machine that show `shown`, before a plan of it is made.
pub(in crate::cli) async fn before_plan(
    store: &Store,
    config: &Config,
    shown: &str,
) -> Result<(), Failure> {
    let keeper = keeper(store.clone(), config);
    let here = around(Path::new("."))?;
    for folder in folders(&keeper, config, (here.as_ref(), shown)).await? {
        keeper.hear(&folder, shown).await.map_err(|error| failure(&folder, error))?;
    }
    Ok(())
}

/// The directories of this machine that show a namespace; the one `here` among them if it does.
async fn folders(
    keeper: &Keeper,
    config: &Config,
    (here, shown): (Option<&MemoryFolder>, &str),
) -> Result<Vec<MemoryFolder>, Failure> {
    let mut folders = keeper.folders(shown).await?;
    let own = here.filter(|it| namespace(None, (config, &keeper.gate), it) == shown);
    folders.extend(own.filter(|own| !folders.contains(own)).cloned());
    Ok(folders)
}

/// What becomes of a file.
fn became(change: &FileChange) -> &'static str {
    match (&change.before, &change.after) {
        (None, _) => "made",
        (Some(_), Some(_)) => "changed",
        (Some(_), None) => "taken away",
    }
}

fn print(kept: &Kept, dry_run: bool) -> Result<(), Failure> {
    for (rule, memory) in &kept.people {
        let words = shorten(memory.claim.headline(), LINE_LETTERS);
        output::line(&format!("memory {words}  {DIM}{rule}{DIM:#}"))?;
    }
    for change in &kept.changes {
        let (mark, style) = match (&change.before, &change.after) {
            (None, _) => ("+", GREEN),
            (Some(_), Some(_)) => ("~", YELLOW),
            (Some(_), None) => ("-", RED),
        };
        output::line(&format!("{style}{mark} {}{style:#}", change.path))?;
    }
    for (path, conflict) in &kept.conflicts {
        let theirs = shorten(conflict.theirs.as_str(), LINE_LETTERS);
        let ours = conflict.ours.as_ref().map_or("to take it out".to_owned(), |ours| {
            format!("`{}`", shorten(ours.as_str(), LINE_LETTERS))
        });
        output::note(&format!(
            "{YELLOW}{path}: `{theirs}` stays as a person wrote it; memory says {ours}{YELLOW:#}"
        ));
    }
    for (path, reason) in &kept.left {
        output::note(&format!("{YELLOW}{path}: left as it is: {reason}{YELLOW:#}"));
    }
    if kept.is_empty() {
        output::note("the directory is in step");
    } else if dry_run {
        output::note("nothing was changed; without --dry-run it is");
    }
    Ok(())
}

fn to_json(namespace: &str, kept: &Kept) -> Value {
    let conflicts = kept.conflicts.iter().map(|(path, it)| {
        json!({
            "path": path, "tag": it.tag, "section": it.section,
            "ours": it.ours.as_ref(), "theirs": it.theirs,
        })
    });
    let changes = kept.changes.iter().map(|it| json!({"path": it.path, "became": became(it)}));
    let people = kept.people.iter().map(|(rule, it)| json!({"rule": rule, "memory": it.id}));
    let left = kept.left.iter().map(|(path, rule)| json!({"path": path, "reason": rule}));
    json!({
        "namespace": namespace,
        "changes": changes.collect::<Vec<_>>(),
        "people": people.collect::<Vec<_>>(),
        "conflicts": conflicts.collect::<Vec<_>>(),
        "left": left.collect::<Vec<_>>(),
        "deleted": kept.deleted,
        "unplaced": kept.unplaced,
    })
}
