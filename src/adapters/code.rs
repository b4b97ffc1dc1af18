//! A project's working tree and git history: which code names exist in it, which commits removed
//! others, and the commit of a line. Read-only and bounded; contacts no other machine and follows no
//! links.

use super::files;
use crate::domain::Timestamp;
use crate::text::code_names::CodeName;
use aho_corasick::AhoCorasick;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const FILES_MAX: usize = 50_000;
/// Maximum size of a file that is read; larger ones are data.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
const TREE_BYTES_MAX: u64 = 256 * 1024 * 1024;
const LIST_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Number of latest commits that are searched.
const COMMITS_MAX: u32 = 5_000;
const HISTORY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum length of a diff line that is searched.
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// Timeout of git commands with short output.
const LIMIT: Duration = Duration::from_secs(30);
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;
/// Memory folders, which record what was said, not what exists.
const MEMORY: [&str; 2] = [".claude/memory/", ".ai/memory/"];
/// Instructions for agents in any folder, in which `annalist publish` repeats it.
const INSTRUCTIONS: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];
/// Settings under which git uses no network, runs no program of the repository and quotes no path.
const SETTINGS: [&str; 5] = [
    "core.quotePath=false", "core.fsmonitor=false", "protocol.allow=never", "diff.external=",
    "log.showSignature=false",
];

#[derive(Debug, thiserror::Error)]
pub(crate) enum CodeError {
    #[error(
        "{0} is not in a git repository, in which code names are looked up (`git init` creates one)"
    )]
    NoRepository(String),
    #[error("git cannot be run: {0}")]
    Git(io::Error),
    #[error("git took longer than {} s", LIMIT.as_secs())]
    TooSlow,
    /// A line that does not exist; a sentence for the user.
    #[error("{0}")]
    NoLine(String),
}

/// Project folder in a git repository.
#[derive(Debug)]
pub(crate) struct CodeTree {
    root: PathBuf,
    /// Checked-out commit; `None` before the first commit.
    pub(crate) head: Option<String>,
}

impl CodeTree {
    pub(crate) fn open(root: &Path) -> Result<CodeTree, CodeError> {
        let mut tree = CodeTree { root: root.to_owned(), head: None };
        let asked = tree.text(&["rev-parse", "--is-inside-work-tree", "--revs-only", "HEAD"])?;
        let mut lines = asked.iter().flat_map(|text| text.lines());
        if lines.next() != Some("true") {
            return Err(CodeError::NoRepository(root.display().to_string()));
        }
        tree.head = lines.next().map(str::to_owned);
        Ok(tree)
    }

    /// Returns those of `names` that occur in the tree, in a path or in a file's text.
    pub(crate) fn present(
        &self,
        names: &BTreeSet<CodeName>,
    ) -> Result<BTreeSet<CodeName>, CodeError> {
        let finder = Finder::of(names);
        let mut found = BTreeSet::new();
        let (mut files, mut bytes) = (0, 0);
        for path in self.paths()? {
            let name = path.rsplit('/').next().unwrap_or_default();
            let is_said = MEMORY.iter().any(|folder| path.starts_with(folder));
            if is_said || INSTRUCTIONS.contains(&name) {
                continue;
            }
            let file = self.root.join(&path);
            let Ok(meta) = fs::symlink_metadata(&file) else { continue };
            found.extend(names.iter().filter(|name| name.is_path_of(&path)).cloned());
            let is_read = meta.is_file() && meta.len() <= FILE_BYTES_MAX && self.is_inside(&file);
            if !is_read || files == FILES_MAX || bytes > TREE_BYTES_MAX {
                continue;
            }
            (files, bytes) = (files + 1, bytes + meta.len());
            if let Ok(text) = fs::read(&file) {
                finder.find(&text, &mut |name| {
                    found.insert(name.clone());
                });
            }
        }
        Ok(found)
    }

    /// Returns the commit that removed each of `names`, for those that once existed.
    pub(crate) fn removed(
        &self,
        names: &BTreeSet<CodeName>,
    ) -> Result<BTreeMap<CodeName, String>, CodeError> {
        let mut removed = BTreeMap::new();
        if self.head.is_none() || names.is_empty() {
            return Ok(removed);
        }
        let commits = format!("--max-count={COMMITS_MAX}");
        let mut arguments = vec![
            "log", "-p", "-U0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames",
            "--relative", "--format=%x00%h", &commits, "HEAD", "--", ".",
        ];
        let folders = MEMORY.map(|folder| format!(":(exclude){folder}"));
        let files = INSTRUCTIONS.map(|name| format!(":(exclude,glob)**/{name}"));
        arguments.extend(folders.iter().chain(&files).map(String::as_str));
        let finder = Finder::of(names);
        let (mut commit, mut path) = (String::new(), String::new());
        self.each_line(&arguments, HISTORY_BYTES_MAX, &mut |line| {
            let text = String::from_utf8_lossy(line);
            let mut note = |name: &CodeName| {
                removed.entry(name.clone()).or_insert_with(|| commit.clone());
            };
            if let Some(id) = text.strip_prefix('\0') {
                id.trim_end().clone_into(&mut commit);
            } else if let Some(before) = text.strip_prefix("--- a/") {
                before.trim_end().clone_into(&mut path);
            } else if text.starts_with("+++ /dev/null") {
                names.iter().filter(|name| name.is_path_of(&path)).for_each(&mut note);
            } else if line.first() == Some(&b'-') {
                finder.find(line.get(1..).unwrap_or_default(), &mut note);
            }
            removed.len() < names.len()
        })?;
        Ok(removed)
    }

    /// Files that git tracks or would track, relative to the root.
    fn paths(&self) -> Result<BTreeSet<String>, CodeError> {
        let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let mut child = self.spawn(&arguments).map_err(CodeError::Git)?;
        let mut listed = Vec::new();
        if let Some(out) = child.stdout.take() {
            out.take(LIST_BYTES_MAX).read_to_end(&mut listed).map_err(CodeError::Git)?;
        }
        end(child);
        let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// True if no folder on the path to `file` is a link out of the tree.
    fn is_inside(&self, file: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        real(file).zip(real(&self.root)).is_some_and(|(file, root)| file.starts_with(root))
    }

    /// Returns the first line of git's output, or `None` if git fails.
    fn line(&self, arguments: &[&str]) -> Result<Option<String>, CodeError> {
        let text = self.text(arguments)?;
        Ok(text.and_then(|text| text.lines().next().map(str::to_owned)))
    }

    /// Returns git's output, or `None` if git fails or prints too much.
    fn text(&self, arguments: &[&str]) -> Result<Option<String>, CodeError> {
        let mut child = self.spawn(arguments).map_err(CodeError::Git)?;
        let (sender, answer) = mpsc::channel();
        let out = child.stdout.take();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = out.map(|out| out.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes));
            // After the timeout there is no receiver.
            let _ = sender.send(read.transpose().map(|_| bytes));
        });
        let Ok(bytes) = answer.recv_timeout(LIMIT) else {
            end(child);
            return Err(CodeError::TooSlow);
        };
        let bytes = bytes.map_err(CodeError::Git)?;
        if bytes.len() as u64 == ANSWER_BYTES_MAX {
            end(child);
            return Ok(None);
        }
        let status = child.wait().map_err(CodeError::Git)?;
        Ok(status.success().then(|| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Passes each line of git's output to `take`, until it returns false or `bytes_max` were read.
    fn each_line(
        &self,
        arguments: &[&str],
        bytes_max: u64,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), CodeError> {
        let mut child = self.spawn(arguments).map_err(CodeError::Git)?;
        if let Some(out) = child.stdout.take() {
            let mut out = BufReader::new(out.take(bytes_max));
            let (mut line, mut goes_on) = (Vec::new(), true);
            while goes_on {
                line.clear();
                let read = out.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
                goes_on = read.map_err(CodeError::Git)? > 0 && take(&line);
            }
        }
        end(child);
        Ok(())
    }

    fn spawn(&self, arguments: &[&str]) -> io::Result<Child> {
        let mut command = Command::new("git");
        command.arg("-C").arg(&self.root).arg("--no-pager");
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(arguments).stdin(Stdio::null());
        command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0");
        command.env("GIT_NO_LAZY_FETCH", "1");
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
    }
}

/// Stops git, which may not have finished printing.
fn end(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Searches a text for many names at once.
struct Finder<'n> {
    names: Vec<&'n CodeName>,
    patterns: Option<AhoCorasick>,
}

impl<'n> Finder<'n> {
    fn of(names: &'n BTreeSet<CodeName>) -> Finder<'n> {
        let names: Vec<&CodeName> =
            names.iter().filter(|name| matches!(name, CodeName::Text(_))).collect();
        let patterns = AhoCorasick::new(names.iter().map(|name| name.as_str())).ok();
        Finder { names, patterns }
    }

    /// Calls `note` for each name that occurs in `text` as a whole word.
    fn find(&self, text: &[u8], note: &mut dyn FnMut(&'n CodeName)) {
        let is_word = |at: Option<usize>| {
            let byte = at.and_then(|at| text.get(at));
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        };
        for found in self.patterns.iter().flat_map(|it| it.find_overlapping_iter(text)) {
            let alone = !is_word(found.start().checked_sub(1)) && !is_word(Some(found.end()));
            if let Some(name) = self.names.get(found.pattern().as_usize()).filter(|_| alone) {
                note(name);
            }
        }
    }
}

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
            return Err(CodeError::NoLine(match lines.len() {
                0 => format!("{shown}:{number}: the file is empty"),
                lines => format!(
                    "{shown}:{number}: the file has {lines} lines: name one from 1 to {lines}"
                ),
            }));
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
            let current = self.line(&["symbolic-ref", "--short", "-q", "HEAD"])?;
            return Ok(current.into_iter().collect());
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
    use crate::adapters::files;

    /// Repository for tests.
    struct Repository(tempfile::TempDir);

    impl Repository {
        fn new() -> Repository {
            let repository = Repository(tempfile::tempdir().unwrap());
            repository.git(&["init", "-q"]);
            repository
        }

        fn git(&self, arguments: &[&str]) {
            let mut command = Command::new("git");
            command
                .arg("-C")
                .arg(self.0.path())
                .args(["-c", "user.name=a", "-c", "user.email=a@b"]);
            let done = command.args(arguments).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }

        fn put(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            files::replace(&path, text).unwrap();
        }

        fn commit(&self) -> String {
            self.git(&["add", "-A"]);
            self.git(&["commit", "-q", "-m", "x"]);
            CodeTree::open(self.0.path()).unwrap().head.unwrap()
        }
    }

    fn names(paths: &[&str], texts: &[&str]) -> BTreeSet<CodeName> {
        let paths = paths.iter().map(|it| CodeName::Path((*it).to_owned()));
        paths.chain(texts.iter().map(|it| CodeName::Text((*it).to_owned()))).collect()
    }

    #[test]
    fn what_was_taken_out_is_known_with_its_commit_and_what_was_never_there_is_not() {
        let repository = Repository::new();
        repository.put("src/retry.rs", "fn retry_policy() {}\n");
        repository.put("src/main.rs", "listen(8443);\nlet max_retries = 18443;\n");
        repository.put("app/AGENTS.md", "run make_check\n");
        repository.commit();
        repository.put("src/main.rs", "listen(9443);\n");
        repository.put("app/AGENTS.md", "");
        fs::remove_file(repository.0.path().join("src/retry.rs")).unwrap();
        let gone = repository.commit();
        repository.put(".claude/memory/active-context.md", "retry_policy 8443\n");
        let tree = CodeTree::open(repository.0.path()).unwrap();
        let all = names(
            &["retry.rs", "main.rs", "none.rs"],
            &["retry_policy", "8443", "9443", "never_was", "make_check"],
        );
        let present = tree.present(&all).unwrap();
        assert_eq!(present, names(&["main.rs"], &["9443"]));
        let missing: BTreeSet<CodeName> = all.difference(&present).cloned().collect();
        let removed = tree.removed(&missing).unwrap();
        let expected = names(&["retry.rs"], &["retry_policy", "8443"]);
        assert_eq!(removed.keys().cloned().collect::<BTreeSet<_>>(), expected);
        assert!(removed.values().all(|commit| gone.starts_with(commit.as_str())));
    }

    #[test]
    fn a_link_out_of_the_tree_is_not_followed() {
        let (repository, outside) = (Repository::new(), tempfile::tempdir().unwrap());
        files::replace(&outside.path().join("a.rs"), "secret_name").unwrap();
        std::os::unix::fs::symlink(outside.path(), repository.0.path().join("out")).unwrap();
        let to = outside.path().join("a.rs");
        std::os::unix::fs::symlink(to, repository.0.path().join("b.rs")).unwrap();
        let tree = CodeTree::open(repository.0.path()).unwrap();
        assert_eq!(tree.head, None);
        assert_eq!(tree.present(&names(&[], &["secret_name"])).unwrap(), BTreeSet::new());
        assert_eq!(tree.removed(&names(&[], &["secret_name"])).unwrap(), BTreeMap::new());
    }

    #[test]
    fn a_folder_that_is_no_repository_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let error = CodeTree::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("not in a git repository") && !error.contains('\n'), "{error}");
    }

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
