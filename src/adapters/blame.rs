//! Commits of a repository: the commit of a line, a commit by name, and the branches that contain
//! it. Follows renames.

use super::code::{CodeError, CodeTree};
use super::files;
use crate::domain::Timestamp;
use std::path::Path;

const COMMIT_FILES_MAX: usize = 20;
const BRANCHES_MAX: usize = 50;
/// Number of digits of a commit id shown to users.
pub(crate) const SHORT_DIGITS: usize = 9;

/// Commit, or uncommitted changes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Commit {
    /// Commit id; `None` for uncommitted changes.
    pub id: Option<String>,
    /// Author and committer time; a rebase changes the latter.
    pub authored_at: Option<Timestamp>,
    pub committed_at: Option<Timestamp>,
    pub subject: String,
    /// Name of the file at that commit, or the files that the commit changed, relative to the root.
    pub files: Vec<String>,
    /// Local branches that contain the commit; the current branch for uncommitted changes.
    pub branches: Vec<String>,
}

/// Line of a file, with the commit that wrote it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct BlamedLine {
    /// Path relative to the root.
    pub path: String,
    pub number: usize,
    pub text: String,
    /// Lines above it, in file order.
    pub above: Vec<String>,
    pub commit: Commit,
}

impl CodeTree {
    /// Opens the repository of `file` and finds the commit that wrote line `number`, 1-based.
    pub(crate) fn blame(file: &Path, number: usize) -> Result<(CodeTree, BlamedLine), CodeError> {
        let shown = file.display().to_string();
        let text = files::read_to_string(file)
            .map_err(|error| CodeError::NoLine(format!("{shown}: cannot be read: {error}")))?;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if lines.len() < number || number == 0 {
            let lines = lines.len();
            return Err(CodeError::NoLine(format!(
                "{shown}:{number}: the file has {lines} lines: name one from 1 to {lines}"
            )));
        }
        lines.truncate(number);
        let text = lines.pop().unwrap_or_default();
        let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
        let tree = CodeTree::open(folder.unwrap_or(Path::new(".")))?;
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let prefix = tree.line(&["rev-parse", "--show-prefix"])?.unwrap_or_default();
        let range = format!("{number},{number}");
        let blamed =
            tree.text(&["blame", "--porcelain", "--no-textconv", "-L", &range, "--", name])?;
        // Untracked files are uncommitted too.
        let mut commit = blamed.as_deref().map(parse).unwrap_or_default();
        let path = format!("{prefix}{name}");
        if commit.files.is_empty() {
            commit.files.push(path.clone());
        }
        commit.branches = tree.branches(commit.id.as_deref())?;
        Ok((tree, BlamedLine { path, number, text, above: lines, commit }))
    }

    /// Returns the commit called `name`, if there is one.
    pub(crate) fn commit(&self, name: &str) -> Result<Option<Commit>, CodeError> {
        let name = format!("{name}^{{commit}}");
        let id = self.line(&["rev-parse", "--verify", "--quiet", "--end-of-options", &name])?;
        let Some(id) = id else { return Ok(None) };
        let shown = self.text(&[
            "show", "--no-color", "--no-ext-diff", "--name-only", "--format=%at%n%ct%n%s", &id,
            "--",
        ])?;
        let shown = shown.unwrap_or_default();
        let mut lines = shown.lines();
        let mut at = || time(lines.next()?);
        let (authored_at, committed_at) = (at(), at());
        let subject = lines.next().unwrap_or_default().to_owned();
        let files = lines.filter(|line| !line.is_empty()).map(str::to_owned);
        let files = files.take(COMMIT_FILES_MAX).collect();
        let branches = self.branches(Some(&id))?;
        Ok(Some(Commit { id: Some(id), authored_at, committed_at, subject, files, branches }))
    }

    pub(crate) fn top(&self) -> Result<Option<String>, CodeError> {
        self.line(&["rev-parse", "--show-toplevel"])
    }

    fn branches(&self, commit: Option<&str>) -> Result<Vec<String>, CodeError> {
        let Some(commit) = commit else {
            return Ok(self
                .line(&["symbolic-ref", "--short", "-q", "HEAD"])?
                .into_iter()
                .collect());
        };
        let listed = self.text(&[
            "for-each-ref", "--contains", commit, "--format=%(refname:short)", "refs/heads",
        ])?;
        let listed = listed.unwrap_or_default();
        Ok(listed.lines().take(BRANCHES_MAX).map(str::to_owned).collect())
    }
}

/// Parses the output of `git blame --porcelain` for one line.
fn parse(blamed: &str) -> Commit {
    let mut commit = Commit::default();
    let head = blamed.lines().next().and_then(|line| line.split(' ').next());
    commit.id = head.filter(|id| id.contains(|digit| digit != '0')).map(str::to_owned);
    if commit.id.is_none() {
        return commit;
    }
    for line in blamed.lines().take_while(|line| !line.starts_with('\t')) {
        let Some((name, value)) = line.split_once(' ') else { continue };
        match name {
            "author-time" => commit.authored_at = time(value),
            "committer-time" => commit.committed_at = time(value),
            "summary" => value.clone_into(&mut commit.subject),
            "filename" => commit.files.push(value.to_owned()),
            _ => {}
        }
    }
    commit
}

fn time(secs: &str) -> Option<Timestamp> {
    Some(Timestamp(secs.trim().parse::<i64>().ok()?.checked_mul(1_000)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "edf934071cf63a7a4d80a1c222bb66ddc7b2f0cd";

    #[test]
    fn a_blamed_line_has_its_commit_and_the_name_of_the_file_then() {
        let blamed = format!(
            "{ID} 1 1 1\nauthor a\nauthor-time 1795400289\ncommitter-time 1795400300\n\
             summary One two\nfilename old name.txt\n\tsummary of a line\n"
        );
        let commit = parse(&blamed);
        assert_eq!(commit.id.as_deref(), Some(ID));
        assert_eq!(commit.authored_at, Some(Timestamp(1_795_400_289_000)));
        assert_eq!(commit.committed_at, Some(Timestamp(1_795_400_300_000)));
        assert_eq!(
            (commit.subject.as_str(), commit.files.as_slice()),
            ("One two", ["old name.txt".to_owned()].as_slice())
        );
    }

    #[test]
    fn a_line_that_is_not_committed_has_no_commit() {
        let blamed = format!("{} 3 3 1\nauthor-time 1\nsummary x\n\tc\n", "0".repeat(40));
        assert_eq!(parse(&blamed), Commit::default());
    }
}
