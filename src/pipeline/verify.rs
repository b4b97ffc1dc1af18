//! Checks whether the code still has the names that memories mention. A removed name marks its memory; a name that was
//! never there is ignored. Changes no memory.

use crate::adapters::code::{CodeError, CodeTree};
use crate::domain::{Claim, Digest, Memory, MemoryId, MemoryState};
use crate::store::{KeptFiles, Store, StoreError};
use crate::text::code_names::{CodeName, code_names};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Maximum number of names per check, those of the latest memories first.
const NAMES_MAX: usize = 4_000;
/// Maximum number of memories per check, the latest.
const MEMORIES_MAX: usize = 5_000;
/// Suffix of the store key for the results of a directory.
const CHECKED: &str = "#code";
/// Key of the digest of the last check's input.
const LAST: &str = "last";
/// Length of a displayed commit id.
const COMMIT_LETTERS: usize = 9;

/// A name of a memory that the code no longer has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct MissingName {
    pub memory: MemoryId,
    pub name: String,
    /// The commit that removed it, or the one at which it was first found missing.
    pub commit: String,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum VerifyError {
    #[error(transparent)]
    Code(#[from] CodeError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(crate) struct Verification<'a> {
    pub store: &'a Store,
    pub dir: &'a str,
    pub root: &'a Path,
    /// True to check again even if neither the commit nor the names changed.
    pub is_forced: bool,
}

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
struct Checked {
    /// Names that an earlier or this check found in the code.
    seen: BTreeSet<String>,
    /// Removed names, with the commit.
    gone: BTreeMap<String, String>,
}

impl Verification<'_> {
    /// Returns the names in `memories` that the code had once and has no longer.
    pub(crate) async fn run(
        &self,
        memories: impl Iterator<Item = &Memory>,
    ) -> Result<Vec<MissingName>, VerifyError> {
        let tree = CodeTree::open(self.root)?;
        let named = named(memories);
        let key = format!("{}{CHECKED}", self.dir);
        let mut stored = self.store.rendered(&key).await?;
        let last = digest(tree.head.as_deref().unwrap_or_default(), &named);
        let is_known = stored.remove(LAST).is_some_and(|it| *it == *last);
        let before: BTreeMap<MemoryId, Checked> = stored
            .iter()
            .filter_map(|(id, text)| {
                Some((MemoryId(id.parse().ok()?), serde_json::from_str(text).ok()?))
            })
            .collect();
        if is_known && !self.is_forced {
            return Ok(missing(&before));
        }
        let now = check(&tree, &named, &before)?;
        if !(is_known && now == before) {
            let text = |it: &Checked| serde_json::to_string(it).unwrap_or_default();
            let mut files: BTreeMap<String, Arc<str>> =
                now.iter().map(|(id, it)| (id.to_string(), text(it).into())).collect();
            files.insert(LAST.to_owned(), last.into());
            let kept = self.store.keep_rendered(vec![(key, KeptFiles::All(files))]).await;
            // A store that can only be read is checked anew each time.
            if let Err(error) = kept
                && !error.kind.is_read_only()
            {
                return Err(error.into());
            }
        }
        Ok(missing(&now))
    }
}

fn check(
    tree: &CodeTree,
    named: &BTreeMap<MemoryId, BTreeSet<CodeName>>,
    before: &BTreeMap<MemoryId, Checked>,
) -> Result<BTreeMap<MemoryId, Checked>, CodeError> {
    let all: BTreeSet<CodeName> = named.values().flatten().cloned().collect();
    if all.is_empty() {
        return Ok(BTreeMap::new());
    }
    let present = tree.present(&all)?;
    let removed = tree.removed(&(&all - &present))?;
    let head: String =
        tree.head.iter().flat_map(|head| head.chars()).take(COMMIT_LETTERS).collect();
    let none = Checked::default();
    let checked = named.iter().map(|(id, names)| {
        let before = before.get(id).unwrap_or(&none);
        let mut checked = Checked::default();
        for name in names {
            let text = name.as_str().to_owned();
            let was_seen = before.seen.contains(&text);
            if present.contains(name) || was_seen {
                checked.seen.insert(text.clone());
            }
            let missed = before.gone.get(&text).or(Some(&head).filter(|_| was_seen));
            if let Some(commit) = removed.get(name).or(missed).filter(|_| !present.contains(name)) {
                checked.gone.insert(text, commit.clone());
            }
        }
        (*id, checked)
    });
    Ok(checked.collect())
}

fn missing(checked: &BTreeMap<MemoryId, Checked>) -> Vec<MissingName> {
    let gone = checked.iter().flat_map(|(id, it)| it.gone.iter().map(|gone| (*id, gone)));
    gone.map(|(memory, (name, commit))| {
        let (name, commit) = (name.clone(), commit.clone());
        MissingName { memory, name, commit }
    })
    .collect()
}

/// Code names in active memories, by memory; the latest ones, up to the limits.
fn named<'m>(memories: impl Iterator<Item = &'m Memory>) -> BTreeMap<MemoryId, BTreeSet<CodeName>> {
    let mut active: Vec<&Memory> = memories.filter(|it| it.state == MemoryState::Active).collect();
    let latest_first = |it: &&Memory| std::cmp::Reverse((it.valid_from, it.id));
    if MEMORIES_MAX < active.len() {
        active.select_nth_unstable_by_key(MEMORIES_MAX, latest_first);
        active.truncate(MEMORIES_MAX);
    }
    active.sort_by_key(latest_first);
    let (mut named, mut count) = (BTreeMap::new(), 0);
    for memory in active {
        let names: BTreeSet<CodeName> = words(memory).into_iter().flat_map(code_names).collect();
        count += names.len();
        if count > NAMES_MAX {
            break;
        }
        if !names.is_empty() {
            named.insert(memory.id, names);
        }
    }
    named
}

/// Texts by which a memory states what holds now; names in past actions and rejected options may rightly be gone.
fn words(memory: &Memory) -> Vec<&str> {
    if let Some(edited) = &memory.edited {
        return vec![edited];
    }
    match &memory.claim {
        Claim::Decision(it) => vec![&it.chosen],
        Claim::Request(it) if memory.is_open() => {
            [Some(it.summary.as_str()), it.target.as_deref()].into_iter().flatten().collect()
        }
        Claim::Discussion(it) if memory.is_open() => {
            std::iter::once(&it.topic).chain(&it.points).map(String::as_str).collect()
        }
        Claim::Attempt(it) if memory.is_open() && !it.succeeded => vec![&it.action],
        Claim::Request(_) | Claim::Discussion(_) | Claim::Attempt(_) => Vec::new(),
    }
}

fn digest(head: &str, named: &BTreeMap<MemoryId, BTreeSet<CodeName>>) -> String {
    let mut parts = vec![head.to_owned()];
    for (id, names) in named {
        parts.push(id.to_string());
        parts.extend(names.iter().map(|name| name.as_str().to_owned()));
    }
    Digest::of(&parts.iter().map(String::as_str).collect::<Vec<_>>()).to_string()
}
