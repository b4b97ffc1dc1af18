//! What prompt tests are called, and which of them a run covers by the folders that were named. A name does not
//! depend on which folder above the case was named, as far as that can be: then runs meet case by case.

use super::cases::{CasePlace, DEPTH_MAX, Place};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What a folder of cases is called; cases in one are named by their way below it.
const SET: &str = "cases";

/// Which cases a run is to cover, whether they are there or not.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Scope {
    /// Names, and what names below them begin with; empty for all.
    below: BTreeSet<String>,
}

impl Scope {
    /// Whether a case of this name is covered.
    pub fn covers(&self, name: &str) -> bool {
        let is_below = |it: &String| match name.strip_prefix(it.as_str()) {
            Some(rest) => it.is_empty() || rest.is_empty() || rest.starts_with('/'),
            None => false,
        };
        self.below.iter().any(is_below)
    }
}

/// Names what was found below each path by its way below the next folder above it that is called `cases`; by its way
/// below the path where there is none. Where two would then be called the same, all keep their ways below the paths.
pub(super) fn name(found: Vec<(PathBuf, Vec<CasePlace>)>) -> (Vec<CasePlace>, Scope) {
    let mut names = BTreeSet::new();
    let mut by_set = Vec::new();
    let mut scope = Scope::default();
    for (path, cases) in &found {
        let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
        for it in cases {
            let name = of_set(path, &whole, &it.is).unwrap_or_else(|| it.name.clone());
            by_set.push(CasePlace { name, is: it.is.clone() });
        }
        let own = by_set.last().filter(|it| it.is.path() == path).map(|it| it.name.clone());
        scope.below.insert(own.or_else(|| below(&parts(&whole))).unwrap_or_default());
    }
    if by_set.iter().all(|it| names.insert(it.name.clone())) {
        return (by_set, scope);
    }
    // What a folder covers is known only by the names that its cases have.
    let scope = Scope { below: BTreeSet::from([String::new()]) };
    (found.into_iter().flat_map(|(_, cases)| cases).collect(), scope)
}

/// The way of a case below the folder of cases that it is in, given what was named as it is and in `whole`.
fn of_set(path: &Path, whole: &Path, is: &Place) -> Option<String> {
    let full = |inner: &Path| Some(parts(&whole.join(inner.strip_prefix(path).ok()?)));
    let (folder, last) = match is {
        Place::Folder(folder) => {
            let mut parts = full(folder)?;
            let last = parts.pop()?;
            (parts, last)
        }
        Place::Suite { root, gold } => {
            let file = gold.file_name()?.to_string_lossy().into_owned();
            (full(root)?, file.strip_suffix(super::cases::GOLD_OF_SUITE)?.to_owned())
        }
    };
    let folder = below(&folder)?;
    Some(if folder.is_empty() { last } else { format!("{folder}/{last}") })
}

/// The way below the last part that is a folder of cases; none where there is none, or it is further up than cases
/// are looked for.
fn below(parts: &[String]) -> Option<String> {
    let at = parts.iter().rposition(|it| it == SET)?;
    let rest = parts.get(at + 1..)?;
    (rest.len() <= DEPTH_MAX).then(|| rest.join("/"))
}

fn parts(path: &Path) -> Vec<String> {
    path.iter().map(|it| it.to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::cases::{bring, find};
    use super::*;

    /// The names of the cases at and below `paths`, and what they cover.
    fn named(root: &Path, paths: &[&str]) -> (Vec<String>, Scope) {
        let paths: Vec<PathBuf> = paths.iter().map(|it| root.join(it)).collect();
        let (found, scope, wrong) = find(&paths);
        assert!(wrong.is_empty(), "{wrong:?}");
        (found.into_iter().map(|it| it.name).collect(), scope)
    }

    #[test]
    fn a_case_is_called_the_same_whichever_folder_above_it_is_named() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for case in ["cases/a", "cases/group/a", "cases/group/b"] {
            bring(&root.join(case).join("case.toml"), "x\n").unwrap();
        }
        for folder in ["gold", "transcripts", "answers"] {
            bring(&root.join("cases/suite").join(folder).join("one.gold.json"), "x\n").unwrap();
        }
        let all = ["a", "group/a", "group/b", "suite/one"];
        assert_eq!(named(root, &[""]).0, all);
        assert_eq!(named(root, &["cases"]).0, all);
        assert_eq!(named(root, &["cases/a", "cases/group", "cases/suite"]).0, all);
        assert_eq!(named(root, &["cases/group/../group/b"]).0, ["group/b"]);
    }

    #[test]
    fn what_is_named_covers_what_was_there_too() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for case in ["cases/a", "cases/group/a", "other/a", "x/cases/a"] {
            bring(&root.join(case).join("case.toml"), "x\n").unwrap();
        }
        let covered = |paths: &[&str]| -> Vec<&str> {
            let scope = named(root, paths).1;
            let all = ["a", "gone", "group/a", "group/gone", "groups"];
            all.into_iter().filter(|name| scope.covers(name)).collect()
        };
        let all = ["a", "gone", "group/a", "group/gone", "groups"];
        assert_eq!(covered(&["cases"]), all);
        assert_eq!(covered(&["cases/group"]), ["group/a", "group/gone"]);
        assert_eq!(covered(&["cases/group/a"]), ["group/a"]);
        assert_eq!(covered(&["cases/a"]), ["a"]);
        assert_eq!(covered(&["other"]), all, "nobody knows what else was in it");
        let (names, scope) = named(root, &[""]);
        assert_eq!(names, ["cases/a", "cases/group/a", "other/a", "x/cases/a"]);
        assert!(scope.covers("gone"));
    }
}
