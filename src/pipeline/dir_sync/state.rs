//! State of a directory between two runs: what was rendered, what its files contained after the last run, and what an
//! unfinished run was about to write. Only redacted text is kept.

use crate::adapters::memory_files::{DirectoryRead, program};
use crate::adapters::repository::WorkingTree;
use crate::domain::{Digest, Memory, MemoryState};
use crate::memory_dir::{
    ACTIVE_CONTEXT, DECISIONS, Document, FileChange, Files, GLOSSARY, Initial, Kind, LastRun,
    PATTERNS, PROGRESS, Part, SOURCE, adr_label, adr_number, entries_of, initial_files, is_day,
    lacks_entries, source_tags, tagged_alone, tags_in, tags_of_memories, unedited,
};
use crate::privacy::Gate;
use crate::store::{KeptFiles, Store, StoreResult};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Key suffix of the contents of files when they were last seen.
const SEEN: &str = "#seen";
/// Key suffix of the files that an unfinished run was to write, as it rendered them.
const NEXT: &str = "#next";
/// Key suffix of the digests that those files are to have; empty for a file to remove.
const AFTER: &str = "#after";
/// Key suffix of the stamps and digests of files that contain exactly what was rendered, and hashes of what from.
const STAMPS: &str = "#stamps";
/// Key suffix of the digests of earlier versions of files; those above an empty line were replaced by a run, the others
/// only by people. Those of a file that a run removed are kept under a name without words, with the tag of its memory.
const PAST: &str = "#past";
/// Key suffix of the last line of git's log of current commits when the last run began: its time and digest.
const GIT: &str = "#git";
const KEYS: [&str; 7] = ["", SEEN, NEXT, AFTER, STAMPS, PAST, GIT];
/// Maximum number of earlier versions of a file to recognise.
const PAST_MAX: usize = 50;
/// Mark of a version that contains exactly what was rendered.
const EXACT: &str = "=";
/// Minimum number of entries whose removal all at once means a new directory.
const ANEW_MIN: usize = 3;

/// A person removed an entry, and no other file shows that it holds.
pub(super) const REMOVED: &str = "person-removed";
/// Reason to skip a file that has lost its title and all entries: it was emptied or overwritten by accident.
const RUINED: &str = "its title and all its entries are gone, and memory keeps them (delete the file and run `annalist \
                      memory init --all` to restore it)";

/// Moves files to the skipped ones that showed memories when they were last seen, and now have neither title nor tag.
pub(super) fn skip_ruined(disk: &mut DirectoryRead, seen: &Files) {
    let DirectoryRead { files, skipped, .. } = disk;
    files.retain(|path, text| {
        let is_ours = |text: &str| tags_in(text).next().is_some();
        let has_title =
            |text| Document::parse(Kind::of_path(path), text).0.first(Part::Title).is_some();
        let is_ruined = !is_ours(text)
            && !has_title(text)
            && seen.get(path).is_some_and(|seen| is_ours(seen) && has_title(seen));
        if is_ruined {
            skipped.push((path.clone(), RUINED));
        }
        !is_ruined
    });
}

pub(super) struct SyncState<'a> {
    pub(super) store: &'a Store,
    pub(super) gate: &'a Gate,
    pub(super) dir: String,
}

#[derive(Default)]
pub(super) struct KnownFiles {
    pub(super) base: Files,
    /// Contents when last seen, redacted.
    pub(super) seen: Files,
    /// True if both equal the stored versions.
    pub(super) is_stored: bool,
    pub(super) last: LastRun,
    /// Versions that a checkout replaced or removed since the last run; `None` for a file that it brought back.
    pub(super) replaced: BTreeMap<String, Option<Arc<str>>>,
    pub(super) git_log: String,
    /// Since the last run, git checked out or merged other commits.
    pub(super) is_moved: bool,
}

/// A file that is back at a version which a run replaced.
struct OlderVersion {
    path: String,
    /// Its text, redacted.
    text: Arc<str>,
    /// It contained exactly what was rendered.
    is_exact: bool,
}

impl KnownFiles {
    /// True if a file with this text contains exactly what was rendered.
    pub(super) fn is_ours(&self, path: &str, text: Option<&Arc<str>>) -> bool {
        self.base.get(path) == text && self.seen.get(path) == text
    }

    /// Returns what to store of `files`, instead of the `known` ones.
    fn kept(&self, known: &Files, files: &Files) -> KeptFiles {
        match self.is_stored {
            true => KeptFiles::Changed(difference(known, files)),
            false => KeptFiles::All(files.clone()),
        }
    }
}

impl SyncState<'_> {
    /// Returns the known files: those that an unfinished run wrote, as it rendered them; the others as the run before
    /// left them.
    pub(super) async fn known_files(
        &self,
        read: &DirectoryRead,
        namespace: &str,
    ) -> StoreResult<KnownFiles> {
        let disk = &read.files;
        let ours = self.store.rendered(&self.key(STAMPS)).await?;
        let (mut known, mut inputs) = (BTreeSet::new(), BTreeMap::new());
        for (path, text) in disk {
            let mut ours = ours.get(path).map_or("", |it| &**it).split(' ').skip(1);
            if ours.next() == Some(&*digest(text)) {
                known.insert(path.clone());
                let hash = ours.next().and_then(|it| u64::from_str_radix(it, 16).ok());
                inputs.extend(hash.map(|hash| (path.clone(), hash)));
            }
        }
        let mut base = self.store.rendered_but(&self.dir, known.clone()).await?;
        let mut seen = self.store.rendered_but(&self.key(SEEN), known.clone()).await?;
        for path in known {
            let Some(text) = disk.get(&path) else { continue };
            base.insert(path.clone(), text.clone());
            seen.insert(path, text.clone());
        }
        let after = self.store.rendered(&self.key(AFTER)).await?;
        let is_stored = after.is_empty();
        if !after.is_empty() {
            let next = self.store.rendered(&self.key(NEXT)).await?;
            for (path, after) in &after {
                let text = disk.get(path).filter(|text| *digest(text) == **after);
                let (Some(text), Some(rendered)) = (text, next.get(path)) else { continue };
                base.insert(path.clone(), rendered.clone());
                seen.insert(path.clone(), passed(text, self.gate));
            }
            // Drops the files that the unfinished run removed.
            for known in [&mut base, &mut seen] {
                known.retain(|path, _| {
                    disk.contains_key(path) || after.get(path).is_none_or(|it| !it.is_empty())
                });
            }
        }
        // A file that was deleted and made again shows nothing yet.
        base.retain(|path, _| seen.contains_key(path) || !disk.contains_key(path));
        let past = self.store.rendered(&self.key(PAST)).await?;
        let mut known = KnownFiles { base, seen, is_stored, ..KnownFiles::default() };
        self.follow_git(&mut known, disk, namespace).await?;
        let older = self.older_versions(disk, &known, &past);
        let is_by_git = known.is_moved && !older.is_empty();
        if is_by_git || self.is_checkout(&older, &known.seen, namespace).await? {
            // Nobody edited an older checkout: the run replaces it, and what it lacks.
            let KnownFiles { base, seen, is_stored, replaced, .. } = &mut known;
            let gone = seen.iter().filter(|(path, _)| !disk.contains_key(*path));
            replaced.extend(gone.map(|(path, text)| (path.clone(), Some(text.clone()))));
            base.retain(|path, _| disk.contains_key(path) || !seen.contains_key(path));
            seen.retain(|path, _| disk.contains_key(path));
            for OlderVersion { path, text, is_exact } in older {
                let alone = || tagged_alone(&path, &text).into();
                base.insert(path.clone(), if is_exact { Arc::clone(&text) } else { alone() });
                let before = seen.insert(path.clone(), text);
                replaced.insert(path, before);
            }
            // Of an older file that was edited as well, only the lines with other words count.
            for (path, text) in disk.iter().filter(|(path, _)| adr_number(path).is_none()) {
                let text = passed(text, self.gate);
                let known = seen.get(path).filter(|known| **known != text);
                if let Some(text) = known.and_then(|known| unedited(path, &text, known)) {
                    base.insert(path.clone(), tagged_alone(path, &text).into());
                    seen.insert(path.clone(), text.into());
                }
            }
            *is_stored = false;
        }
        let KnownFiles { mut base, mut seen, mut is_stored, .. } = known;
        // A recreated directory is filled from scratch.
        if is_anew(&base, disk) {
            (base, seen, is_stored) = (Files::new(), Files::new(), false);
        }
        let count = base.len();
        let base = with_initial(base, disk);
        is_stored &= base.len() == count;
        let removed = past.iter().filter(|(path, _)| !path.ends_with(".md"));
        let removed = removed.filter_map(|(path, versions)| {
            let tag = versions.lines().rfind(|line| line.starts_with(SOURCE))?;
            Some((tag.to_owned(), adr_number(path)?))
        });
        inputs.retain(|path, _| base.get(path) == disk.get(path));
        let program = program().to_owned();
        let last = LastRun { removed: removed.collect(), inputs, program };
        Ok(KnownFiles { base, seen, is_stored, last, ..known })
    }

    /// Makes entries of ended memories that git brought back since the last run known: nobody restored them.
    async fn follow_git(
        &self,
        known: &mut KnownFiles,
        disk: &Files,
        namespace: &str,
    ) -> StoreResult<()> {
        let dir = Path::new(&self.dir);
        let tree = WorkingTree::around(dir);
        let log = tree.as_ref().and_then(WorkingTree::log).unwrap_or_default();
        known.git_log = log_mark(log.lines().next_back().unwrap_or_default());
        let last = self.store.rendered(&self.key(GIT)).await?.remove(GIT);
        let (Some(tree), Some(last)) = (tree, last) else { return Ok(()) };
        known.is_moved = (tree.is_merging() || has_moved(&log, &last)) && tree.tracks(dir);
        if !known.is_moved {
            return Ok(());
        }
        let memories = self.store.memories(Some(namespace)).await?;
        let tags = source_tags(memories.keys().copied());
        let ended = memories.values().filter(|it| it.state != MemoryState::Active);
        let ended: BTreeSet<&str> = ended.filter_map(|it| Some(&**tags.get(&it.id)?)).collect();
        for (path, text) in disk {
            let Some(seen) = known.seen.get(path) else { continue };
            let there: BTreeSet<&str> = tags_in(seen).collect();
            let text = passed(text, self.gate);
            let back = entries_of(path, &text, |it| ended.contains(it) && !there.contains(it));
            if !back.is_empty() {
                for files in [&mut known.base, &mut known.seen] {
                    let file = files.entry(path.clone()).or_default();
                    *file = format!("{file}{back}").into();
                }
                known.is_stored = false;
            }
        }
        Ok(())
    }

    /// True if nobody edited a file that shows memories since the last run. Files with known stamps need not be read.
    pub(super) async fn is_untouched(&self, disk: &DirectoryRead) -> StoreResult<bool> {
        let seen = self.store.rendered_but(&self.key(SEEN), disk.known.clone()).await?;
        let is_same = |(path, text): (&String, &Arc<str>)| match seen.get(path) {
            Some(seen) => seen == text,
            None => tags_in(text).next().is_none(),
        };
        let is_there = |path| disk.files.contains_key(path);
        Ok(disk.skipped.is_empty() && seen.keys().all(is_there) && disk.files.iter().all(is_same))
    }

    /// Files that are back at a version which a run replaced.
    fn older_versions(&self, disk: &Files, known: &KnownFiles, past: &Files) -> Vec<OlderVersion> {
        let mut older = Vec::new();
        for (path, text) in disk.iter().filter(|(path, text)| known.seen.get(*path) != Some(*text))
        {
            let present = past.get(path).filter(|_| known.base.contains_key(path));
            let versions = present.or_else(|| past.get(&removed_name(path)));
            let Some((replaced, since)) = versions.and_then(|it| it.split_once("\n\n")) else {
                continue;
            };
            let text = passed(text, self.gate);
            let digest = digest(&text);
            let is_it = |version: &&str| version.trim_start_matches(EXACT) == digest;
            // A person who only reverts their own edits means it; git does not.
            let is_meant = !known.is_moved && since.lines().any(|it| is_it(&it));
            let found = replaced.lines().chain(since.lines()).find(is_it).filter(|_| !is_meant);
            if let Some(version) = found {
                let is_exact = version.starts_with(EXACT);
                older.push(OlderVersion { path: path.clone(), text, is_exact });
            }
        }
        older
    }

    /// True if a checkout brought these versions back; false if they only have more entries, of memories that people
    /// removed or that are active, as when a person undoes a deletion.
    async fn is_checkout(
        &self,
        older: &[OlderVersion],
        seen: &Files,
        namespace: &str,
    ) -> StoreResult<bool> {
        let mut back: BTreeSet<&str> = BTreeSet::new();
        for OlderVersion { path, text, .. } in older {
            // A file that a run removed is back.
            let Some(seen) = seen.get(path) else { return Ok(true) };
            if lacks_entries(path, text, seen) {
                return Ok(true);
            }
            let known: BTreeSet<&str> = tags_in(seen).collect();
            back.extend(tags_in(text).filter(|tag| !known.contains(tag)));
        }
        if back.is_empty() {
            return Ok(false);
        }
        let memories = self.store.memories(Some(namespace)).await?;
        let is_held =
            |it: &&Memory| it.state == MemoryState::Active || it.reason.as_deref() == Some(REMOVED);
        let tags = source_tags(memories.keys().copied());
        let held = memories.values().filter(is_held).filter_map(|it| tags.get(&it.id));
        let held: BTreeSet<&str> = held.map(String::as_str).collect();
        Ok(!back.is_subset(&held))
    }

    /// Saves files that were never seen, beside those known `before`.
    pub(super) async fn note_unseen(
        &self,
        before: &KnownFiles,
        unseen: &KnownFiles,
    ) -> StoreResult<()> {
        let with = |known: &Files, new: &Files| {
            let all = known.iter().chain(new);
            before.kept(known, &all.map(|(path, text)| (path.clone(), text.clone())).collect())
        };
        let seen = (self.key(SEEN), with(&before.seen, &unseen.seen));
        let base = (self.dir.clone(), with(&before.base, &unseen.base));
        self.store.keep_rendered(vec![seen, base]).await
    }

    /// Saves the changes before they are written.
    pub(super) async fn begin(&self, changes: &[FileChange], next: &Files) -> StoreResult<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let after = |it: &FileChange| {
            (it.path.clone(), it.after.as_deref().map(digest).unwrap_or_default().into())
        };
        let after: Files = changes.iter().map(after).collect();
        let next = |path: &String| Some((path.clone(), Arc::clone(next.get(path)?)));
        let next: Files = after.keys().filter_map(next).collect();
        let all = [(NEXT, next), (AFTER, after)];
        let all = all.map(|(kind, files)| (self.key(kind), KeptFiles::All(files)));
        self.store.keep_rendered(all.into()).await
    }

    /// Saves the files and their stamps after everything in `written` was written; it has the texts that were replaced.
    pub(super) async fn end(
        &self,
        before: &KnownFiles,
        after: &KnownFiles,
        stamps: &Files,
        written: &BTreeMap<String, Option<Arc<str>>>,
    ) -> StoreResult<()> {
        let past = self.store.rendered(&self.key(PAST)).await?;
        // What a checkout replaced is as little an edit as what a run did.
        let mut replaced = before.replaced.clone();
        replaced.extend(written.iter().map(|(path, text)| (path.clone(), text.clone())));
        let written = &replaced;
        let mut versions: BTreeMap<String, Option<Arc<str>>> = BTreeMap::new();
        for (path, text) in &after.seen {
            let is_same = before.seen.get(path) == Some(text) && !written.contains_key(path);
            if !(is_same && past.contains_key(path)) {
                let removed = removed_name(path);
                let old = past.get(path).or_else(|| past.get(&removed)).map_or("", |it| &**it);
                versions.insert(removed, None);
                let mark = if after.is_ours(path, Some(text)) { EXACT } else { "" };
                let version = format!("{mark}{}", digest(text));
                // What was last seen is redacted already.
                let version_of = |text| match before.seen.get(path) == Some(text) {
                    true => digest(text),
                    false => digest(&passed(text, self.gate)),
                };
                let replaced = written.get(path).map(|text| text.iter().map(version_of).collect());
                let all = with_version(old, &version, replaced);
                versions.insert(path.clone(), Some(all.into()));
            }
        }
        for (path, old) in past.iter().filter(|(path, _)| path.ends_with(".md")) {
            if after.seen.contains_key(path) {
                continue;
            }
            versions.insert(path.clone(), None);
            if let Some(Some(text)) = written.get(path) {
                let tag = tags_in(text).next().unwrap_or_default();
                let all = with_version(old, "", Some(digest(&passed(text, self.gate))));
                versions.insert(removed_name(path), Some(format!("{tag}\n{all}").into()));
            }
        }
        let with_digest = |(path, stamp): (&String, &Arc<str>)| {
            let text = after.base.get(path)?;
            let inputs = after.last.inputs.get(path).map(|it| format!(" {it:x}"));
            let inputs = inputs.unwrap_or_default();
            Some((path.clone(), format!("{stamp} {}{inputs}", digest(text)).into()))
        };
        let stamps: Files = stamps.iter().filter_map(with_digest).collect();
        let none = || KeptFiles::All(Files::new());
        let kept = vec![
            (self.key(SEEN), before.kept(&before.seen, &after.seen)),
            (self.dir.clone(), before.kept(&before.base, &after.base)),
            (self.key(STAMPS), KeptFiles::All(stamps)),
            (self.key(PAST), KeptFiles::Changed(versions)),
            (self.key(AFTER), none()),
            (self.key(NEXT), none()),
            (
                self.key(GIT),
                KeptFiles::All(Files::from([(GIT.to_owned(), before.git_log.as_str().into())])),
            ),
        ];
        self.store.keep_rendered(kept).await
    }

    fn key(&self, kind: &str) -> String {
        format!("{}{kind}", self.dir)
    }
}

/// Seconds and digest of a line of git's log, in one word: a number of ten digits alone may be that of a phone.
fn log_mark(line: &str) -> String {
    format!("{}_{}", seconds_of(line), digest(line))
}

/// Time of a line of git's log; zero if it has none.
fn seconds_of(line: &str) -> u64 {
    let head = line.split('\t').next().unwrap_or_default();
    head.rsplit(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or_default()
}

/// True if git's log of current commits checks out or merges others below the `last` line; a fast-forward and a reset
/// bring edits. Git shortens its log, and another clone has another one: without the last line, the later ones count.
fn has_moved(log: &str, last: &str) -> bool {
    let lines: Vec<&str> = log.lines().collect();
    let known = lines.iter().rposition(|it| log_mark(it) == last);
    let seconds = last.split_once(['_', ' ']).and_then(|it| it.0.parse().ok()).unwrap_or(u64::MAX);
    let since = lines.iter().enumerate().filter(|(at, line)| match known {
        Some(known) => known < *at,
        None => seconds < seconds_of(line),
    });
    since.filter_map(|(_, line)| line.split_once('\t')).any(|(commits, what)| {
        let mut commits = commits.split(' ');
        let moves = ["checkout:", "commit (merge):", "rebase", "merge", "pull"];
        commits.next() != commits.next()
            && moves.iter().any(|it| what.starts_with(it))
            && !what.ends_with(": Fast-forward")
    })
}

/// Keys under which the state of a directory is stored.
pub(super) fn keys_of(dir: &str) -> Vec<String> {
    KEYS.iter().map(|kind| format!("{dir}{kind}")).collect()
}

/// Name of a removed file that has no words of its memory: that of a record keeps its number.
fn removed_name(path: &str) -> String {
    let number = adr_number(path).map(|number| format!("{DECISIONS}{}", adr_label(number)));
    number.unwrap_or_else(|| digest(path))
}

/// Adds the digest of the present version. If a run wrote it, over the version with the digest in `written`, people have
/// nothing to do with the change.
fn with_version(past: &str, version: &str, written: Option<String>) -> String {
    let (replaced, since) = past.split_once("\n\n").unwrap_or(("", past));
    let [mut replaced, mut since] = [replaced, since].map(|it| it.lines().collect::<Vec<_>>());
    if let Some(written) = &written {
        replaced.append(&mut since);
        let is_it = |it: &&str| it.trim_start_matches(EXACT) == written;
        if !written.is_empty() && !replaced.iter().any(is_it) {
            replaced.push(written);
        }
    }
    since.push(version);
    let first = replaced.len().saturating_sub(PAST_MAX);
    format!("{}\n\n{}", replaced.get(first..).unwrap_or_default().join("\n"), since.join("\n"))
}

/// Stamps of the files of a directory that contained exactly what was rendered when the last run ended.
pub(crate) async fn stamps_of(store: &Store, dir: &str) -> StoreResult<Files> {
    let stored = store.rendered(&format!("{dir}{STAMPS}")).await?.into_iter();
    let stamp = |(path, it): (String, Arc<str>)| Some((path, it.split_once(' ')?.0.into()));
    Ok(stored.filter_map(stamp).collect())
}

/// Texts that are new or changed, and `None` for those that are gone.
fn difference(before: &Files, after: &Files) -> BTreeMap<String, Option<Arc<str>>> {
    let gone = before.keys().filter(|path| !after.contains_key(*path));
    let new = after.iter().filter(|(path, text)| before.get(*path) != Some(*text));
    let new = new.map(|(path, text)| (path.clone(), Some(text.clone())));
    gone.map(|path| (path.clone(), None)).chain(new).collect()
}

/// Redacts `text`; returns the same `Arc` if that changes nothing.
pub(super) fn passed(text: &Arc<str>, gate: &Gate) -> Arc<str> {
    let passed = gate.redact(text);
    if passed.as_str() == &**text { Arc::clone(text) } else { passed.as_str().into() }
}

fn digest(text: &str) -> String {
    Digest::of_bytes(text.as_bytes()).to_string()
}

/// True if `disk` has no entry of `base`.
fn is_anew(base: &Files, disk: &Files) -> bool {
    // Few directories have no entry that is as it was.
    let is_kept = |(path, text)| disk.get(path) == Some(text) && tags_in(text).next().is_some();
    if base.iter().any(is_kept) {
        return false;
    }
    let before = tags_of_memories(base);
    before.len() >= ANEW_MIN && tags_of_memories(disk).is_disjoint(&before)
}

/// Adds untouched initial files to `base`.
fn with_initial(mut base: Files, disk: &Files) -> Files {
    for path in [ACTIVE_CONTEXT, PROGRESS, PATTERNS, GLOSSARY] {
        let Some(text) = disk.get(path).filter(|_| !base.contains_key(path)) else { continue };
        // The last line of an initial file contains its day.
        let last = text.lines().next_back().unwrap_or_default();
        let mut days = last.split([' ', '*']).filter(|word| is_day(word));
        let is_initial = |day| {
            let files = initial_files(Initial::All, day);
            files.iter().any(|(name, first)| *name == path && **first == **text)
        };
        if days.any(is_initial) {
            base.insert(path.to_owned(), text.clone());
        }
    }
    base
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gits_log_is_followed_from_its_last_known_line() {
        let line = |seconds: u64, what: &str| format!("1 2 A <a@b> {seconds} +0000\t{what}\n");
        let (old, last) = (line(1, "checkout: x"), line(2, "commit: y"));
        let (new, after) = (line(2, "checkout: z"), line(3, "checkout: z"));
        let mark = log_mark(last.trim_end());
        for (log, is_moved) in [
            (format!("{old}{last}"), false),
            (format!("{old}{last}{new}"), true),
            // A shortened log, and one of another clone.
            (last.clone(), false),
            (format!("{last}{new}"), true),
            (old.clone(), false),
            (after.clone(), true),
            (String::new(), false),
        ] {
            assert_eq!(has_moved(&log, &mark), is_moved, "{log}");
        }
        assert!(has_moved(&after, &log_mark("")) && !has_moved(&after, "80"));
    }
}
