//! Cases: finds, names and reads their folders, and parses `case.toml`: the purpose of a case, its settings,
//! and the rates that it must reach.

use super::measure::{Measure, Sums};
use crate::adapters::files;
use crate::adapters::walk::Candidate;
use crate::domain::{Finding, Severity};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

pub(crate) const CASE_EXAMPLE: &str = "docs/evaluation.md shows an example of a case";
pub(crate) const CASE_FILE: &str = "case.toml";
pub(crate) const GOLD_FILE: &str = "gold.json";
pub(crate) const CASSETTE: &str = "cassette";
const TRANSCRIPT: &str = "transcript";
/// Name of a folder of cases; a case is named by its path below it.
const CASES_FOLDER: &str = "cases";
const DEPTH_MAX: usize = 4;
const CASES_MAX: usize = 100_000;
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct CaseFolder {
    /// Path below the folder of cases.
    pub name: String,
    pub path: PathBuf,
}

#[derive(Clone, Debug)]
pub(crate) struct CaseFiles {
    pub case: String,
    pub gold: String,
    pub transcript: Candidate,
}

/// Scope of a run: names and name prefixes, even of cases that do not exist.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Scope(BTreeSet<String>);

impl Scope {
    pub(crate) fn covers(&self, name: &str) -> bool {
        let is_below = |it: &String| match name.strip_prefix(it.as_str()) {
            Some(rest) => it.is_empty() || rest.is_empty() || rest.starts_with('/'),
            None => false,
        };
        self.0.iter().any(is_below)
    }
}

/// Finds the cases at and below `paths`, sorted by name, and returns their scope.
///
/// The name of a case is its path below the nearest folder called `cases`, so that it does not depend on the given
/// folder. Without such a folder, or if names would collide, it is the path below the given folder.
pub(crate) fn find(paths: &[PathBuf]) -> Result<(Vec<CaseFolder>, Scope), String> {
    let (mut below_path, mut below_cases) = (Vec::new(), Vec::new());
    let (mut seen, mut scope) = (BTreeSet::new(), Scope::default());
    for path in paths {
        let shown = path.display();
        let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
        let mut found = Vec::new();
        find_below(path, "", DEPTH_MAX, &mut found).map_err(|error| match path.is_dir() {
            true => format!("{shown}: cannot be read: {error}"),
            false => format!("{shown}: no such folder: name a case or a folder of cases"),
        })?;
        if found.is_empty() {
            return Err(format!(
                "{shown}: contains no prompt test: a case is a folder with case.toml, transcript.* \
                 and gold.json; {CASE_EXAMPLE}"
            ));
        }
        let own = match found.first().filter(|it| it.path == *path) {
            Some(case) => path_below_cases(&whole, 1).or(Some(case.name.clone())),
            None => path_below_cases(&whole, 0),
        };
        scope.0.insert(own.unwrap_or_default());
        found.retain(|it| seen.insert(it.path.canonicalize().unwrap_or_else(|_| it.path.clone())));
        for it in found {
            let inside = it.path.strip_prefix(path).unwrap_or(Path::new(""));
            let name = path_below_cases(&whole.join(inside), 1).unwrap_or_else(|| it.name.clone());
            below_cases.push(CaseFolder { name, path: it.path.clone() });
            below_path.push(it);
        }
    }
    if below_path.len() > CASES_MAX {
        let number = below_path.len();
        return Err(format!("{number} prompt tests: expected at most {CASES_MAX} in one run"));
    }
    let names: BTreeSet<&String> = below_cases.iter().map(|it| &it.name).collect();
    let mut found = match names.len() == below_cases.len() {
        true => below_cases,
        false => {
            // These names do not identify the folder, so any case may have been in it.
            scope = Scope(BTreeSet::from([String::new()]));
            below_path
        }
    };
    found.sort_by(|one, other| one.name.cmp(&other.name));
    if let Some([one, other]) = found.array_windows().find(|[one, other]| one.name == other.name) {
        let (name, one, other) = (&one.name, one.path.display(), other.path.display());
        return Err(format!(
            "two cases are called {name}: {one} and {other}: name a folder above both, or \
             run each alone"
        ));
    }
    Ok((found, scope))
}

/// Path below the last folder called `cases`, with at least `parts_min` components. `None` without such a folder,
/// or if it is more levels up than cases are searched.
fn path_below_cases(path: &Path, parts_min: usize) -> Option<String> {
    let parts: Vec<String> = path.iter().map(|it| it.to_string_lossy().into_owned()).collect();
    let end = parts.len().checked_sub(parts_min)?;
    let at = parts.get(..end)?.iter().rposition(|it| it == CASES_FOLDER)?;
    let rest = parts.get(at + 1..)?;
    (rest.len() <= DEPTH_MAX + parts_min).then(|| rest.join("/"))
}

fn find_below(
    path: &Path,
    name: &str,
    depth: usize,
    found: &mut Vec<CaseFolder>,
) -> io::Result<()> {
    if path.join(CASE_FILE).is_file() {
        let own =
            || path.canonicalize().ok()?.file_name().map(|it| it.to_string_lossy().into_owned());
        let name = if name.is_empty() { own().unwrap_or_default() } else { name.to_owned() };
        found.push(CaseFolder { name, path: path.to_owned() });
        return Ok(());
    }
    let mut below: Vec<(String, PathBuf)> = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let inner = entry.file_name().to_string_lossy().into_owned();
        if !inner.starts_with('.') && entry.path().is_dir() {
            below.push((inner, entry.path()));
        }
    }
    below.sort();
    if depth == 0 {
        return Ok(());
    }
    for (inner, path) in below {
        let name = if name.is_empty() { inner } else { format!("{name}/{inner}") };
        // An unreadable folder may contain a case, so it must not be skipped silently.
        let at = |error| io::Error::other(format!("{}: {error}", path.display()));
        find_below(&path, &name, depth - 1, found).map_err(at)?;
    }
    Ok(())
}

pub(crate) fn read(folder: &Path) -> Result<CaseFiles, String> {
    Ok(CaseFiles {
        case: needed(&folder.join(CASE_FILE))?,
        gold: needed(&folder.join(GOLD_FILE))?,
        transcript: transcript(folder)?,
    })
}

fn needed(path: &Path) -> Result<String, String> {
    let bytes = fs::metadata(path).map_or(0, |meta| meta.len());
    if bytes > FILE_BYTES_MAX {
        return Err(format!(
            "{}: {bytes} bytes: expected at most {FILE_BYTES_MAX}",
            path.display()
        ));
    }
    files::read_if_exists(path)
        .map_err(|error| format!("{}: cannot be read: {error}", path.display()))?
        .ok_or_else(|| format!("{}: is missing", path.display()))
}

fn transcript(folder: &Path) -> Result<Candidate, String> {
    let entries = fs::read_dir(folder)
        .map_err(|error| format!("{}: cannot be read: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = paths
        .filter(|path| path.file_stem().is_some_and(|stem| stem == TRANSCRIPT) && path.is_file())
        .collect();
    found.sort();
    match found.as_slice() {
        [path] => match fs::metadata(path) {
            Ok(meta) => Ok(Candidate::of(path.clone(), true, &meta)),
            Err(error) => Err(format!("{}: cannot be read: {error}", path.display())),
        },
        [] => Err(format!("{}: expected one transcript.*, found none", folder.display())),
        [one, other, ..] => Err(format!(
            "{}: expected one transcript.*, found {} and {}",
            folder.display(),
            one.file_name().unwrap_or_default().to_string_lossy(),
            other.file_name().unwrap_or_default().to_string_lossy()
        )),
    }
}

/// Writes `text` to `path` and creates its folders; true if the file changed.
pub(crate) fn write_if_changed(path: &Path, text: &str) -> io::Result<bool> {
    // A pipe or a device has no contents to compare.
    if path.is_file() && files::read_if_exists(path)?.as_deref() == Some(text) {
        return Ok(false);
    }
    fs::create_dir_all(files::folder_of(path)?)?;
    files::replace(path, text)?;
    Ok(true)
}

/// Tables of `config.toml` that a case may override: how the transcript is read, cut and presented.
const CASE_SETTINGS: [&str; 4] = ["slice", "conversation", "dialog", "privacy"];

/// Contents of `case.toml`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// Purpose of the case in one line, for people.
    pub about: String,
    /// Language of the records; by default that of the settings.
    #[serde(default)]
    pub language: Option<String>,
    /// Conversation of the transcript, by its id or its number in the file, if it holds several.
    #[serde(default)]
    pub conversation: Option<String>,
    /// Model that the recorded requests name; by default that of the settings.
    #[serde(default)]
    pub model: Option<String>,
    /// Settings that differ: tables `slice`, `conversation`, `dialog` and `privacy` of `config.toml`.
    #[serde(default)]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub settings: toml::Table,
    /// Rates that must be reached.
    #[serde(default)]
    pub bars: Bars,
    /// Regressions against a baseline that are allowed.
    #[serde(default)]
    pub tolerances: Tolerances,
}

macro_rules! per_measure {
    ($(#[$doc:meta])* $name:ident: $type:ty { $($(#[$field_doc:meta])* $field:ident: $measure:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct $name { $($(#[$field_doc])* pub $field: $type),* }

        impl $name {
            pub(crate) fn of(&self, measure: Measure) -> $type {
                match measure { $(Measure::$measure => self.$field),* }
            }
        }
    };
}

per_measure! {
    /// Rates from 0 to 1 that must be reached. A bar is missed if there is nothing to measure.
    Bars: Option<f64> {
        /// Records that answer an item, of all records: at least.
        precision: Precision,
        /// Items that are answered: at least.
        recall: Recall,
        /// Harmonic mean of both: at least.
        f1: F1,
        /// Core items that are answered: at least.
        core_recall: CoreRecall,
        /// Attempts with the right outcome: at least.
        succeeded: Succeeded,
        /// Strings of staged records with evidence: at least.
        grounded: Grounded,
        /// Forbidden statements that no record makes: at least.
        restraint: Restraint,
        /// Questions whose item is among the first five records that a search finds: at least.
        found: Found,
        /// Records in quarantine: at most.
        quarantined_max: Quarantined,
        /// Slices whose first answer fitted the schema: at least.
        schema: Schema,
    }
}

per_measure! {
    /// Regressions against a baseline that are allowed, from 0 to 1; 0 by default.
    Tolerances: f64 {
        precision: Precision,
        recall: Recall,
        f1: F1,
        core_recall: CoreRecall,
        succeeded: Succeeded,
        grounded: Grounded,
        restraint: Restraint,
        found: Found,
        quarantined: Quarantined,
        schema: Schema,
    }
}

impl Case {
    pub(crate) fn read(text: &str) -> Result<Case, Finding> {
        let bad = |line: usize, detail: String| {
            let line = u32::try_from(line).unwrap_or(u32::MAX);
            Finding::new(Severity::Error, "bad-case", line, detail)
        };
        let case: Case = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
            bad(before.matches('\n').count() + 1, error.message().to_owned())
        })?;
        if let Some(key) = case.settings.keys().find(|key| !CASE_SETTINGS.contains(&key.as_str())) {
            let known = CASE_SETTINGS.join(", ");
            return Err(bad(0, format!("settings.{key}: expected one of {known}")));
        }
        for measure in Measure::ALL {
            let values = [case.bars.of(*measure), Some(case.tolerances.of(*measure))];
            let wrong = values.into_iter().flatten().find(|value| !(0.0..=1.0).contains(value));
            if let Some(value) = wrong {
                let name = measure.name();
                return Err(bad(0, format!("{name} {value}: expected a rate from 0 to 1")));
            }
        }
        Ok(case)
    }
}

impl Bars {
    /// One line for each bar that `sums` miss. Compares rates at the precision at which they are printed.
    pub(crate) fn missed(&self, sums: &Sums) -> Vec<String> {
        let missed = |measure: &Measure| {
            let (bar, rate) = (self.of(*measure)?, sums.rate(*measure));
            let is_maximum = *measure == Measure::Quarantined;
            let reached = match rate.value() {
                Some(value) if is_maximum => rounded(value) <= rounded(bar),
                Some(value) => rounded(bar) <= rounded(value),
                // Without records, none is in quarantine.
                None => is_maximum,
            };
            let value =
                rate.value().map_or("nothing to measure".to_owned(), |it| format!("{it:.4}"));
            let (name, least) = (measure.name(), if is_maximum { "at most" } else { "at least" });
            let (hits, of) = (rate.hits, rate.of);
            (!reached)
                .then(|| format!("{name} is {value} ({hits} of {of}); the bar is {least} {bar}"))
        };
        Measure::ALL.iter().filter_map(missed).collect()
    }
}

/// A rate in ten-thousandths: 2/3 reaches a bar of 0.6667.
pub(crate) fn rounded(rate: f64) -> i64 {
    (rate * 10_000.0).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Path, name: &str) {
        write_if_changed(&folder.join(name), "x\n").unwrap();
    }

    /// Names of the cases at and below `paths`, and their scope.
    fn named(root: &Path, paths: &[&str]) -> (Vec<String>, Scope) {
        let paths: Vec<PathBuf> = paths.iter().map(|it| root.join(it)).collect();
        let (found, scope) = find(&paths).unwrap();
        (found.into_iter().map(|it| it.name).collect(), scope)
    }

    #[test]
    fn cases_are_found_below_a_folder_and_named_by_their_path() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for case in ["b", "group/a", "group/b", "deep/1/2/3/4/5"] {
            put(root, &format!("{case}/case.toml"));
        }
        put(root, "b/cassette/inner/case.toml");
        assert_eq!(named(root, &[""]).0, ["b", "group/a", "group/b"]);
        assert_eq!(named(root, &["deep/1/2/3/4/5"]).0, ["5"]);
        for wrong in ["no", "deep"] {
            assert!(find(&[root.join(wrong)]).is_err(), "{wrong}");
        }
        let twice = find(&[root.join("group"), root.join("b")]).unwrap_err();
        assert!(twice.contains("two cases are called b"), "{twice}");
    }

    #[test]
    fn a_case_has_the_same_name_whichever_folder_above_it_is_named() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for case in ["cases/a", "cases/group/a", "cases/group/b"] {
            put(root, &format!("{case}/case.toml"));
        }
        let all = ["a", "group/a", "group/b"];
        assert_eq!(named(root, &[""]).0, all);
        assert_eq!(named(root, &["cases"]).0, all);
        assert_eq!(named(root, &["cases/a", "cases/group", "cases/group/a"]).0, all);
        assert_eq!(named(root, &["cases/group/../group/b"]).0, ["group/b"]);
    }

    #[test]
    fn a_folder_covers_cases_that_are_gone() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for case in ["cases/a", "cases/group/a", "other/a", "x/cases/a"] {
            put(root, &format!("{case}/case.toml"));
        }
        let all = ["a", "gone", "group/a", "group/gone", "groups"];
        let covered = |paths: &[&str]| -> Vec<&str> {
            let scope = named(root, paths).1;
            all.into_iter().filter(|name| scope.covers(name)).collect()
        };
        assert_eq!(covered(&["cases"]), all);
        assert_eq!(covered(&["cases/group"]), ["group/a", "group/gone"]);
        assert_eq!(covered(&["cases/group/a"]), ["group/a"]);
        assert_eq!(covered(&["cases/a"]), ["a"]);
        assert_eq!(covered(&["other"]), all, "nobody knows what else was in it");
        let (names, scope) = named(root, &[""]);
        assert_eq!(names, ["cases/a", "cases/group/a", "other/a", "x/cases/a"]);
        assert!(scope.covers("gone"));
    }

    #[test]
    fn a_missing_file_is_named() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("case");
        fs::create_dir(&folder).unwrap();
        for (file, missing) in [("case.toml", "case.toml"), ("gold.json", "gold.json")] {
            assert!(read(&folder).unwrap_err().contains(missing));
            put(&folder, file);
        }
        assert!(read(&folder).unwrap_err().contains("found none"));
        put(&folder, "transcript.md");
        assert!(read(&folder).is_ok());
        put(&folder, "transcript.txt");
        let error = read(&folder).unwrap_err();
        assert!(error.contains("transcript.md") && error.contains("transcript.txt"), "{error}");
    }
}
