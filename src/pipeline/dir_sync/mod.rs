//! Syncs a memory directory with the memories of a namespace: imports people's edits, renders the memories, merges that
//! with what people wrote, and writes file by file. It can be killed between any two writes: the changes are saved
//! first, and the next run continues from what is on disk.

mod people;
mod state;
#[cfg(test)]
mod tests;

use super::consolidating::{DecisionOutcome, apply_verdict};
use super::lookup::applied_plans;
use super::verify::{MissingName, Verification, VerifyError};
use crate::adapters::memory_files::{DirectoryRead, MemoryFolder, WriteOutcome};
use crate::adapters::process;
use crate::agents::quoted;
use crate::consolidate::PersonVerdict;
use crate::domain::{
    ClaimKind, Memory, MemoryId, MemoryMap, Plan, RecordId, SessionId, Timestamp, is_partly,
};
use crate::memory_dir::{
    Conflict, Contradiction, Facts, FileChange, Files, Kind, LastRun, NOT_FOUND, NamedIds,
    Rendered, SOURCE, SessionNote, Update, adr_number, adr_path, render, strike, tags_in,
    tags_of_memories, update, with_tags_in_place,
};
use crate::privacy::{Gate, Redacted};
use crate::store::{
    Directory, HeldLease, KeptFiles, LeaseRequest, NamespaceLease, SessionSpan, Store, StoreError,
    StoreResult, TagKind,
};
use foldhash::HashMap;
use people::{Amendment, PeopleEdits};
pub(crate) use state::stamps_of;
use state::{KnownFiles, SyncState, passed};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of plans per run; a directory is planned again if another program writes to it meanwhile.
const PASSES_MAX: u32 = 3;
/// A person removed the mark of an open pair.
const KEPT_BOTH: &str = "person-kept-both";
/// A person put such a mark back.
const TOOK_BACK: &str = "person-took-back";
/// The memories have been changed since they were kept both.
const TOO_LATE: &str = "a mark of a conflict was put back, but one of the two entries was decided or changed again since \
                        then, and memory keeps both";
/// Maximum number of open pairs that are marked in the directory, earliest first.
const OPEN_PAIRS_MAX: u32 = 500;

pub(crate) struct DirSync {
    pub store: Store,
    pub holder: String,
    pub clock: fn() -> Timestamp,
    /// Redacts rendered text once more.
    pub gate: Gate,
}

/// People's edits: the rule of each, and the memory after it.
pub(crate) type ImportedEdits = Vec<(&'static str, Memory)>;

/// Files, each with the reason why something in it was left alone.
type LeftFiles = Vec<(String, &'static str)>;

#[derive(Debug, Default)]
pub(crate) struct SyncReport {
    /// Files that were written or removed, or would be on a dry run, by path.
    pub changes: Vec<FileChange>,
    pub people: ImportedEdits,
    /// Entries that both a person and annalist changed; the person's version stayed.
    pub conflicts: Vec<(String, Conflict)>,
    /// Files that were left alone, with the reason.
    pub left: LeftFiles,
    /// Files that were not read, with the reason.
    pub skipped: Vec<(String, &'static str)>,
    /// Rendered files that a person deleted; they stay deleted.
    pub deleted: Vec<String>,
    /// Active memories that no file shows.
    pub unplaced: usize,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SyncError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{path}: {cause}")]
    Disk { path: String, cause: io::Error },
    /// Another process holds the namespace lease.
    #[error("namespace `{0}`: another process is changing its memory; try again")]
    Busy(String),
    #[error(
        "{dir} shows the memory of namespace `{shown}`: sync it with `--namespace {}`, or rename \
         that namespace with `annalist namespace move`", quoted(.shown)
    )]
    OtherNamespace { dir: String, shown: String },
}

/// Pairs of a namespace that contradict one another, and up to `open_max` undecided pairs.
pub(crate) async fn contradictions(
    store: &Store,
    namespace: &str,
    open_max: u32,
) -> StoreResult<Vec<Contradiction>> {
    let certain = store.contradictions(namespace).await?;
    let open = store.open_pairs(namespace, true, open_max).await?;
    let open = open.into_iter().map(|it| Contradiction {
        one: it.home.min(it.memory),
        other: it.home.max(it.memory),
        is_certain: false,
        is_partly: is_partly(&it.rule),
    });
    let open: Vec<_> = open.filter(|it| !certain.contains(&(it.one, it.other))).collect();
    let certain = certain.into_iter().map(|(one, other)| Contradiction {
        one,
        other,
        is_certain: true,
        is_partly: false,
    });
    Ok(certain.chain(open).collect())
}

type WriteFile<'a> = &'a dyn Fn(&FileChange) -> Result<WriteOutcome, SyncError>;

impl DirSync {
    /// Previews a sync, with `next` applied if it is given; changes nothing.
    pub(crate) async fn preview(
        &self,
        folder: &MemoryFolder,
        namespace: &str,
        next: Option<&Plan>,
    ) -> Result<SyncReport, SyncError> {
        self.expect_namespace(folder, namespace).await?;
        let plan = self.plan(folder, namespace, next).await?;
        let (changes, people) = (plan.changes(), plan.people());
        Ok(SyncReport { changes, people, ..SyncReport::default() }.with(&plan))
    }

    pub(crate) async fn folders(&self, namespace: &str) -> StoreResult<Vec<MemoryFolder>> {
        folders_of(&self.store, namespace).await
    }

    /// Syncs `folder` with the memories of `namespace`. Idempotent; work done before an error is kept, and the next run
    /// continues.
    pub(crate) async fn sync(
        &self,
        folder: &MemoryFolder,
        namespace: &str,
    ) -> Result<SyncReport, SyncError> {
        let directory = self.expect_namespace(folder, namespace).await?;
        let Some(held) = self.hold(namespace).await? else {
            return Err(SyncError::Busy(namespace.to_owned()));
        };
        self.take_over(folder, &directory, namespace).await?;
        self.store.note_directory(&directory, namespace).await?;
        let done = self.write(&held.lease, folder, &|it| write(folder, it)).await;
        let left = held.release(None).await;
        let report = done?;
        Ok(left.map(|()| report)?)
    }

    /// Fails if `folder` shows the memory of another namespace: a sync would empty it.
    async fn expect_namespace(
        &self,
        folder: &MemoryFolder,
        namespace: &str,
    ) -> Result<Directory, SyncError> {
        let directory = directory_of(folder);
        match self.store.shown_namespace(&directory).await? {
            Some(shown) if shown != namespace => {
                Err(SyncError::OtherNamespace { dir: directory.dir, shown })
            }
            Some(_) | None => Ok(directory),
        }
    }

    /// Takes over the state of a directory whose project was moved to this folder, so that edits since then count.
    async fn take_over(
        &self,
        folder: &MemoryFolder,
        here: &Directory,
        namespace: &str,
    ) -> Result<(), SyncError> {
        let all = self.store.directories(namespace).await?;
        if all.contains(here) {
            return Ok(());
        }
        let gone = all.into_iter().filter(|it| !is_here(it)).collect();
        let Some(old) = self.earlier(&read(folder)?.files, gone).await? else { return Ok(()) };
        let keys = state::keys_of(&old.dir).into_iter().zip(state::keys_of(&here.dir));
        Ok(self.store.move_directory(&old, keys.collect()).await?)
    }

    /// The one of `all` that is or was on this machine and whose entries are still in `files`.
    async fn earlier(&self, files: &Files, all: Vec<Directory>) -> StoreResult<Option<Directory>> {
        let disk = tags_of_memories(files);
        for old in all.into_iter().filter(|old| old.host == process::host()) {
            let before = self.store.rendered(&old.dir).await?;
            let before = tags_of_memories(&before);
            let still = disk.intersection(&before).count();
            if still > 0 && before.len() <= still.saturating_mul(2) {
                return Ok(Some(old));
            }
        }
        Ok(None)
    }

    /// Returns the namespace that `folder` showed before its project was moved or copied here, and the original if it is
    /// still there.
    pub(crate) async fn origin(
        &self,
        folder: &MemoryFolder,
    ) -> Result<Option<(String, Option<Directory>)>, SyncError> {
        let disk = read(folder)?.files;
        for namespace in self.store.namespaces().await? {
            let mut all = self.store.directories(&namespace).await?;
            all.retain(|it| *it != directory_of(folder));
            all.sort_by_key(is_here);
            if let Some(old) = self.earlier(&disk, all).await? {
                return Ok(Some((namespace, Some(old).filter(is_here))));
            }
        }
        Ok(None)
    }

    /// Drops the state of directories that cannot be synced from here, so that it keeps no erased words.
    pub(crate) async fn drop_absent(&self, namespace: &str) -> StoreResult<()> {
        let all = self.store.directories(namespace).await?;
        for directory in all.into_iter().filter(|it| !is_here(it)) {
            let none = |key| (key, KeptFiles::All(Files::new()));
            let kept = state::keys_of(&directory.dir).into_iter().map(none).collect();
            self.store.keep_rendered(kept).await?;
        }
        Ok(())
    }

    /// Imports people's edits from `folder` before a plan changes it; writes no file. If another process holds the
    /// namespace lease, the edits are left to that process.
    pub(crate) async fn import_edits(
        &self,
        folder: &MemoryFolder,
        namespace: &str,
    ) -> Result<ImportedEdits, SyncError> {
        self.expect_namespace(folder, namespace).await?;
        let held = match self.hold(namespace).await {
            // A store that can only be read takes no edits.
            Err(error) if error.kind.is_read_only() => None,
            held => held?,
        };
        let Some(held) = held else { return Ok(Vec::new()) };
        self.take_over(folder, &directory_of(folder), namespace).await?;
        let imported = self.import(&held.lease, folder).await;
        held.release(None).await?;
        imported
    }

    async fn import(
        &self,
        lease: &NamespaceLease,
        folder: &MemoryFolder,
    ) -> Result<ImportedEdits, SyncError> {
        let state = self.state(folder);
        let known = stamps_of(&self.store, &state.dir).await?;
        let disk = folder.read_but(&known).map_err(|cause| disk_error(folder, cause))?;
        if state.is_untouched(&disk).await? {
            return Ok(Vec::new());
        }
        for _ in 0..PASSES_MAX {
            let plan = self.plan(folder, &lease.subject, None).await?;
            if people::amend(&self.store, lease, &plan.amendments, (self.clock)()).await? {
                self.note_unseen(lease, folder, &plan).await?;
                let (kept, _) = self.decide_pairs(lease, &plan).await?;
                return Ok(plan.people().into_iter().chain(kept).collect());
            }
        }
        Ok(Vec::new())
    }

    /// Saves the files that were never seen, once their edits are imported. Returns whether there are any.
    async fn note_unseen(
        &self,
        lease: &NamespaceLease,
        folder: &MemoryFolder,
        plan: &SyncPlan,
    ) -> StoreResult<bool> {
        let is_any = !plan.unseen.seen.is_empty();
        if is_any {
            self.store.note_directory(&directory_of(folder), &lease.subject).await?;
            self.state(folder).note_unseen(&plan.before, &plan.unseen).await?;
        }
        Ok(is_any)
    }

    /// Keeps both of each pair that lost its mark, and undoes that for each that got it back. Returns their first memories,
    /// and the files with a mark for which that is too late.
    async fn decide_pairs(
        &self,
        lease: &NamespaceLease,
        plan: &SyncPlan,
    ) -> StoreResult<(ImportedEdits, LeftFiles)> {
        let (mut kept, mut refused) = (Vec::new(), Vec::new());
        for (one, other) in &plan.kept {
            let verdict = PersonVerdict::KeepBoth { one: *one, other: *other };
            let outcome = apply_verdict(&self.store, lease, verdict, (self.clock)()).await?;
            let DecisionOutcome::Done(plan) = outcome else { continue };
            kept.extend(plan.after().remove(one).map(|memory| (KEPT_BOTH, memory)));
        }
        if plan.marked.is_empty() {
            return Ok((kept, refused));
        }
        let mut verdicts = applied_plans(&self.store, Some(&lease.subject)).await?;
        verdicts.retain(|it| it.plan.operations.first().is_some_and(|it| it.rule == KEPT_BOTH));
        for (one, other) in &plan.marked {
            let memory = |it: &Plan, id| it.before.iter().find(|it| it.id == id).cloned();
            let found = verdicts.iter().rev().find_map(|it| {
                Some((&it.plan, memory(&it.plan, *one)?))
                    .filter(|_| memory(&it.plan, *other).is_some())
            });
            let Some((verdict, memory)) = found else { continue };
            match self.store.undo_plan(lease, verdict, (self.clock)()).await? {
                Ok(()) => kept.push((TOOK_BACK, memory)),
                Err(_) => {
                    let id = format!("{SOURCE}{one}");
                    let mut edited = plan.disk.files.iter().filter(|(path, text)| {
                        plan.before.seen.get(*path) != Some(*text)
                            && tags_in(text).any(|tag| id.starts_with(tag))
                    });
                    refused.extend(edited.next().map(|(path, _)| (path.clone(), TOO_LATE)));
                }
            }
        }
        Ok((kept, refused))
    }

    async fn hold(&self, namespace: &str) -> StoreResult<Option<HeldLease>> {
        let DirSync { store, holder, clock, gate: _ } = self;
        store.hold_namespace(LeaseRequest { namespace, holder, clock: *clock, waits: true }).await
    }

    async fn write(
        &self,
        lease: &NamespaceLease,
        folder: &MemoryFolder,
        write: WriteFile<'_>,
    ) -> Result<SyncReport, SyncError> {
        folder.sweep().map_err(|cause| disk_error(folder, cause))?;
        let state = self.state(folder);
        let (mut report, mut is_struck) = (SyncReport::default(), false);
        for _ in 0..PASSES_MAX {
            report.left.clear();
            let plan = self.plan(folder, &lease.subject, None).await?;
            for FileChange { path, .. } in plan.changes() {
                folder.inside(path).map_err(|cause| disk_error(folder, cause))?;
            }
            if !people::amend(&self.store, lease, &plan.amendments, (self.clock)()).await? {
                continue;
            }
            report.people.extend(plan.people());
            let is_new = self.note_unseen(lease, folder, &plan).await?;
            let (kept, refused) = self.decide_pairs(lease, &plan).await?;
            if is_new || !kept.is_empty() {
                report.people.extend(kept);
                continue;
            }
            report.left.extend(refused);
            let before = report.changes.len();
            let gone = self.strike(&plan, write, &mut report).await?;
            is_struck |= before < report.changes.len();
            let changes = plan.changes();
            let mut after = plan.after(&self.gate);
            for known in [&mut after.base, &mut after.seen] {
                for change in strike(known, &gone) {
                    known.remove(&change.path);
                    after.last.inputs.remove(&change.path);
                    known.extend(change.after.map(|text| (change.path, text)));
                }
            }
            state.begin(&changes, &after.base).await?;
            let mut is_disturbed = false;
            let mut stamps = plan.stamps(&after);
            let mut written = BTreeMap::new();
            for change in changes {
                match write(&change)? {
                    WriteOutcome::Written => {
                        written.insert(change.path.clone(), change.before.clone());
                        if change.after.is_some()
                            && after.is_ours(&change.path, change.after.as_ref())
                        {
                            let stamp = folder.stamp(&change.path);
                            stamps.extend(stamp.map(|stamp| (change.path.clone(), stamp.into())));
                        }
                        report.changes.push(change);
                    }
                    WriteOutcome::Unchanged => {}
                    WriteOutcome::ChangedMeanwhile => {
                        is_disturbed = true;
                        plan.leave(&change.path, &mut after);
                        report.left.push((change.path, "it changed during the sync"));
                    }
                }
            }
            state.end(&plan.before, &after, &stamps, &written).await?;
            report = report.with(&plan);
            if !is_disturbed {
                break;
            }
        }
        if is_struck {
            // The state of the directory held the erased text for a moment.
            self.store.scrub().await?;
        }
        Ok(report)
    }

    /// Removes traces of forgotten records, memories and sessions: moved entries, files of an older checkout,
    /// retrospectives. A file that changes meanwhile is left to the next run.
    async fn strike(
        &self,
        plan: &SyncPlan,
        write: WriteFile<'_>,
        report: &mut SyncReport,
    ) -> Result<NamedIds, SyncError> {
        if !plan.has_forgotten {
            return Ok(NamedIds::default());
        }
        let (mut named, mut shown) = (NamedIds::default(), NamedIds::default());
        for files in [&plan.disk.files, &plan.before.base, &plan.before.seen] {
            named.add(files);
        }
        shown.add(&plan.rendered.files);
        let memories = &named.memories - &shown.memories;
        let sessions = &named.sessions - &shown.sessions;
        let gone = NamedIds {
            records: self.store.forgotten(TagKind::Record, named.records).await?,
            memories: self.store.forgotten(TagKind::Memory, memories).await?,
            sessions: self.store.forgotten(TagKind::Session, sessions).await?,
        };
        if gone.is_empty() {
            return Ok(gone);
        }
        for mut change in strike(&plan.disk.files, &gone) {
            let astray = plan.astray.get(&change.path).filter(|_| change.before.is_some());
            change.before = astray.cloned().or(change.before);
            if write(&change)? == WriteOutcome::Written {
                report.changes.push(change);
            }
        }
        Ok(gone)
    }

    /// Renames the record files of these tags after their new titles, because the old names contain erased words.
    pub(crate) fn rename_records(
        &self,
        folder: &MemoryFolder,
        titles: &BTreeMap<String, String>,
    ) -> Result<(), SyncError> {
        let failed = |cause| disk_error(folder, cause);
        for (path, text) in read(folder)?.files {
            let tag = tags_in(&text).next();
            let title = adr_number(&path).zip(tag.and_then(|tag| titles.get(tag)));
            let Some(renamed) = title.map(|(number, title)| adr_path(number, title)) else {
                continue;
            };
            if renamed != path
                && folder.write(&renamed, None, Some(&text)).map_err(failed)?
                    == WriteOutcome::Written
            {
                folder.write(&path, Some(&text), None).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Memories that mention names that the code no longer has; none without git.
    async fn missing(
        &self,
        folder: &MemoryFolder,
        memories: &[Memory],
    ) -> Result<Vec<(MemoryId, String)>, SyncError> {
        let dir = dir_of(folder);
        let root = folder.project();
        let verification = Verification { store: &self.store, dir: &dir, root, is_forced: false };
        let found = match verification.run(memories.iter()).await {
            Ok(found) => found,
            Err(VerifyError::Code(_)) => return Ok(Vec::new()),
            Err(VerifyError::Store(error)) => return Err(error.into()),
        };
        let mut missing: Vec<(MemoryId, String)> = Vec::new();
        for MissingName { memory, name, commit } in found {
            match missing.last_mut().filter(|(id, _)| *id == memory) {
                Some((_, words)) => words.push_str(&format!(", {name}")),
                None => missing.push((memory, format!("{NOT_FOUND} {commit}: {name}"))),
            }
        }
        Ok(missing)
    }

    fn state(&self, folder: &MemoryFolder) -> SyncState<'_> {
        SyncState { store: &self.store, gate: &self.gate, dir: dir_of(folder) }
    }

    /// Reads everything and plans; writes nothing.
    async fn plan(
        &self,
        folder: &MemoryFolder,
        namespace: &str,
        next: Option<&Plan>,
    ) -> Result<SyncPlan, SyncError> {
        let mut disk = read(folder)?;
        let (before, mut memories, sessions, spans, contradictions) = tokio::try_join!(
            async { self.state(folder).known_files(&disk, namespace).await },
            self.store.memory_list(Some(namespace)),
            self.store.sessions_of_records(namespace),
            self.store.session_spans(namespace),
            contradictions(&self.store, namespace, OPEN_PAIRS_MAX),
        )?;
        let (sessions, spans) = (sessions.into_iter().collect(), spans.into_iter().collect());
        state::skip_ruined(&mut disk, &before.seen);
        let astray = put_tags_in_place(&mut disk.files, &before.seen);
        if let Some(plan) = next {
            let mut known: MemoryMap = memories.into_iter().map(|it| (it.id, it)).collect();
            // A plan whose memories changed meanwhile is ignored.
            let _ = plan.apply(&mut known);
            memories = known.into_values().collect();
        }
        let missing = self.missing(folder, &memories).await?;
        let (gate, today) = (&self.gate, (self.clock)());
        let lay = |memories: &[Memory]| {
            let sessions = &notes(&sessions, &spans, memories);
            let (contradictions, missing, last) = (&contradictions, &missing, &before.last);
            let facts = Facts { memories, sessions, contradictions, missing, last, today, gate };
            let rendered = render(&facts, &before.base, &disk.files);
            // A file that is kept is as it would be rendered.
            debug_assert_eq!(rendered, {
                let last = &LastRun { inputs: BTreeMap::new(), ..last.clone() };
                render(&Facts { last, ..facts }, &before.base, &disk.files)
            });
            let update = update(&before.base, &rendered, &disk.files, gate);
            (rendered, update)
        };
        let (mut rendered, mut update) = lay(&memories);
        let has_forgotten = self.store.has_forgotten().await?;
        let people = PeopleEdits {
            before: &before,
            rendered: &rendered,
            update: &update,
            disk: &disk,
            trusts_unseen: !has_forgotten,
        };
        let (mut edits, unseen) = (people.by_tag(gate), people.unseen(gate));
        let mut refused = people.refuse_statuses(&memories, &mut edits);
        refused.extend(people.records_that_hold(&edits));
        refused.extend(people.deleted_records());
        refused.extend(people.shared_tags());
        let amendments = people.amendments(&memories, &edits, today);
        let mut marked = people::marked_pairs(&memories, &edits, |it| &it.marked);
        let mut kept = people::marked_pairs(&memories, &edits, |it| &it.unmarked);
        let is_contradiction = |(one, other): &(MemoryId, MemoryId)| {
            let pair = (*one.min(other), *one.max(other));
            contradictions.iter().any(|it| (it.one.min(it.other), it.one.max(it.other)) == pair)
        };
        // Marks that git brings or takes are nobody's.
        marked.retain(|it| !before.is_moved && !is_contradiction(it));
        marked.iter_mut().for_each(|it| *it = (it.0.min(it.1), it.0.max(it.1)));
        marked.sort_unstable();
        marked.dedup();
        kept.retain(|it| !before.is_moved && is_contradiction(it));
        if !amendments.is_empty() {
            let amended: BTreeMap<MemoryId, &Memory> =
                amendments.iter().map(|it| (it.after.id, &it.after)).collect();
            for memory in &mut memories {
                amended.get(&memory.id).into_iter().for_each(|after| memory.clone_from(after));
            }
            (rendered, update) = lay(&memories);
        }
        Ok(SyncPlan {
            amendments,
            kept,
            marked,
            refused,
            rendered,
            update,
            before,
            unseen,
            disk,
            astray,
            has_forgotten,
        })
    }
}

/// Puts the tags of files that changed since they were last `seen` below their words; returns those files as they were.
fn put_tags_in_place(files: &mut Files, seen: &Files) -> Files {
    let mut astray = Files::new();
    for (path, text) in files {
        let seen = seen.get(path).filter(|seen| *seen != text);
        let kind = Kind::of_path(path);
        if let Some(mended) = seen.and_then(|seen| with_tags_in_place(kind, seen, text)) {
            astray.insert(path.clone(), std::mem::replace(text, mended.into()));
        }
    }
    astray
}

fn read(folder: &MemoryFolder) -> Result<DirectoryRead, SyncError> {
    folder.read().map_err(|cause| disk_error(folder, cause))
}

pub(super) fn disk_error(folder: &MemoryFolder, cause: io::Error) -> SyncError {
    SyncError::Disk { path: dir_of(folder), cause }
}

fn write(folder: &MemoryFolder, change: &FileChange) -> Result<WriteOutcome, SyncError> {
    let written = folder.write(&change.path, change.before.as_deref(), change.after.as_deref());
    let path = || folder.path().join(&change.path).display().to_string();
    written.map_err(|cause| SyncError::Disk { path: path(), cause })
}

struct SyncPlan {
    amendments: Vec<Amendment>,
    /// Pairs that a person keeps side by side.
    kept: Vec<(MemoryId, MemoryId)>,
    /// Pairs that a person marked again.
    marked: Vec<(MemoryId, MemoryId)>,
    /// Records with an invalid status, or of which only the line or only the file was removed, with the reason.
    refused: LeftFiles,
    rendered: Rendered,
    update: Update,
    before: KnownFiles,
    unseen: KnownFiles,
    disk: DirectoryRead,
    /// Files whose tags a person's edit left with the wrong words, as they are; `disk` has them with their tags in place.
    astray: Files,
    /// Something was erased from the store.
    has_forgotten: bool,
}

impl SyncPlan {
    fn people(&self) -> ImportedEdits {
        self.amendments.iter().map(|it| (it.rule, it.after.clone())).collect()
    }

    /// Files to write, without those that could not be read.
    fn changes(&self) -> Vec<FileChange> {
        let skipped: BTreeSet<&str> = self.disk.skipped.iter().map(|(it, _)| it.as_str()).collect();
        let changes = self.update.changes.iter();
        let changes = changes.filter(|it| !skipped.contains(it.path.as_str())).cloned();
        let mut changes: Vec<FileChange> = changes.collect();
        for (path, text) in &self.astray {
            let (path, before) = (path.clone(), Some(Arc::clone(text)));
            match changes.iter_mut().find(|it| it.path == path) {
                Some(change) => change.before = before,
                None => {
                    let after = self.disk.files.get(&path).cloned();
                    changes.push(FileChange { path, before, after });
                }
            }
        }
        changes
    }

    /// Stamps of the files that contain exactly what is rendered.
    fn stamps(&self, after: &KnownFiles) -> Files {
        let is_ours = |path: &String| after.is_ours(path, self.disk.files.get(path));
        let stamps = self.disk.stamps.iter().filter(|(path, _)| is_ours(path));
        stamps.map(|(path, stamp)| (path.clone(), stamp.as_str().into())).collect()
    }

    /// Known files after all writes, redacted.
    fn after(&self, gate: &Gate) -> KnownFiles {
        let written: BTreeMap<&str, Option<&Arc<str>>> =
            self.update.changes.iter().map(|it| (it.path.as_str(), it.after.as_ref())).collect();
        let base = self.rendered.files.clone();
        let last = LastRun { inputs: self.rendered.inputs.clone(), ..LastRun::default() };
        let mut after = KnownFiles { base, last, ..KnownFiles::default() };
        let (rendered, disk) = (&self.rendered.files, &self.disk.files);
        let own = disk.keys().filter(|path| !rendered.contains_key(*path));
        for path in rendered.keys().chain(own) {
            let text = written.get(path.as_str()).copied().unwrap_or(disk.get(path));
            // A person's own file may have entries that were moved to it.
            let has_entries =
                |text: &&Arc<str>| rendered.contains_key(path) || tags_in(text).next().is_some();
            if let Some(text) = text.filter(has_entries) {
                let seen = self.before.seen.get(path).filter(|seen| *seen == text).cloned();
                let seen = seen.unwrap_or_else(|| passed(text, gate));
                after.seen.insert(path.clone(), seen);
            }
        }
        for (path, _) in self.update.held.iter().chain(&self.disk.skipped) {
            self.leave(path, &mut after);
        }
        after
    }

    /// Keeps the known versions of a file that is left alone.
    fn leave(&self, path: &str, after: &mut KnownFiles) {
        let old = self.rendered.renamed.get(path).map_or(path, String::as_str);
        let (base, seen) = (&self.before.base, &self.before.seen);
        after.last.inputs.remove(path);
        for (before, now) in [(base, &mut after.base), (seen, &mut after.seen)] {
            now.remove(path);
            now.extend(before.get(old).map(|text| (path.to_owned(), text.clone())));
        }
    }
}

impl SyncReport {
    fn with(mut self, plan: &SyncPlan) -> SyncReport {
        for conflict in &plan.update.conflicts {
            if !self.conflicts.contains(conflict) {
                self.conflicts.push(conflict.clone());
            }
        }
        let left = plan.update.held.iter().chain(&plan.disk.skipped).chain(&plan.refused);
        self.left.extend(left.cloned());
        self.skipped.clone_from(&plan.disk.skipped);
        let is_skipped = |path: &&String| plan.disk.skipped.iter().any(|(it, _)| it == *path);
        let deleted = plan.update.deleted.iter().filter(|path| !is_skipped(path));
        self.deleted = deleted.cloned().collect();
        self.unplaced = plan.rendered.unplaced.len();
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.people.is_empty()
    }
}

/// True if the directory is on this machine and still exists.
fn is_here(it: &Directory) -> bool {
    it.host == process::host() && MemoryFolder::at(Path::new(&it.dir)).is_some()
}

/// The directories on this machine that show `namespace` and still exist.
pub(crate) async fn folders_of(store: &Store, namespace: &str) -> StoreResult<Vec<MemoryFolder>> {
    let here = store.directories(namespace).await?.into_iter();
    let here = here.filter(|it| it.host == process::host());
    Ok(here.filter_map(|it| MemoryFolder::at(Path::new(&it.dir))).collect())
}

/// The directory of `folder` on this machine.
pub(crate) fn directory_of(folder: &MemoryFolder) -> Directory {
    Directory { host: process::host().to_owned(), dir: dir_of(folder) }
}

/// Path without links, which identifies a directory.
pub(crate) fn dir_of(folder: &MemoryFolder) -> String {
    folder.path().display().to_string()
}

/// Notes for the sessions of `memories`, by start time. A session without a time has none: its file could not be named.
fn notes(
    sessions: &HashMap<RecordId, SessionId>,
    spans: &BTreeMap<SessionId, SessionSpan>,
    memories: &[Memory],
) -> Vec<SessionNote> {
    let mut of_sessions: Vec<(SessionId, &Memory)> = Vec::with_capacity(memories.len());
    for memory in memories {
        let sessions = memory.sources.iter().filter_map(|id| sessions.get(id));
        of_sessions.extend(sessions.map(|session| (*session, memory)));
    }
    of_sessions.sort_by_key(|(session, _)| *session);
    of_sessions.dedup_by_key(|(session, memory)| (*session, memory.id));
    let mut notes = Vec::new();
    for of_session in of_sessions.chunk_by(|(one, _), (other, _)| one == other) {
        let Some((id, _)) = of_session.first().copied() else { continue };
        let span = spans.get(&id);
        let Some((span, began)) = span.and_then(|span| Some((span, span.began?))) else { continue };
        let memories = of_session.iter().map(|(_, memory)| *memory);
        let topic = span.title.clone().or_else(|| topic(began, memories.clone()));
        let memories = memories.map(|memory| memory.id).collect();
        notes.push(SessionNote { id, began, ended: span.ended, topic, memories });
    }
    notes.sort_by_key(|note| (note.began, note.id));
    notes
}

/// Headline of the memory that says most about a session that `began` then: its first new decision, or else its first
/// request. What it only restated began earlier.
fn topic<'m>(began: Timestamp, memories: impl Iterator<Item = &'m Memory>) -> Option<Redacted> {
    let rank = |memory: &&Memory| {
        let kind = match memory.claim.kind() {
            ClaimKind::Decision => 0,
            ClaimKind::Request => 1,
            ClaimKind::Attempt => 2,
            ClaimKind::Discussion => 3,
        };
        let is_restated = memory.valid_from.is_some_and(|at| at < began);
        (is_restated, kind, memory.valid_from, memory.id)
    };
    let first = memories.min_by_key(rank)?;
    Some(Redacted::reopened(first.claim.headline().to_owned()))
}
