//! A folder's git repository, read from its files: a git process per session would be slow.

use memchr::memmem;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Maximum size of a file that is read, and of the end of git's log, which grows with every commit.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// Maximum size of git's index.
const INDEX_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Repository, shared by its working trees.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Repository {
    /// Root of the main working tree.
    pub(crate) root: PathBuf,
    /// URL of `origin`, or of the first remote.
    pub(crate) remote: Option<String>,
}

impl Repository {
    /// Returns the repository that contains `folder`, which may no longer exist. A repository in
    /// the user's home does not contain the folders below it.
    pub(crate) fn of(folder: &Path) -> Option<Repository> {
        if !folder.is_absolute() {
            return None;
        }
        let home = home();
        let above = folder.ancestors().enumerate();
        let mut above = above.take_while(|(up, it)| *up == 0 || home.as_deref() != Some(*it));
        above.find_map(|(_, folder)| at(folder))
    }
}

pub(crate) fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute() && home.parent().is_some())
}

/// Path of a file in the user's home, with `~` for the home.
pub(crate) fn below_home(path: &Path) -> Option<PathBuf> {
    let below = path.strip_prefix(home()?).ok()?;
    Some(Path::new("~").components().chain(below.components()).collect())
}

/// Returns the folder of an existing file.
pub(crate) fn folder_of(file: &Path) -> Option<PathBuf> {
    Some(file.canonicalize().ok()?.parent()?.to_owned())
}

/// Returns the project of a client's file by the folders above it: the one with `.specstory`, or the one
/// that Gemini CLI or VS Code names in a file there.
pub(crate) fn project_of(file: &Path) -> Option<PathBuf> {
    const ABOVE_MAX: usize = 3;
    file.canonicalize().ok()?.ancestors().skip(1).take(ABOVE_MAX).find_map(|folder| {
        if folder.ends_with(".specstory") {
            return folder_of(folder);
        }
        let root = text(&folder.join(".project_root")).map(|root| root.trim().to_owned());
        let workspace = || {
            let json: Value = serde_json::from_str(&text(&folder.join("workspace.json"))?).ok()?;
            let folder = json["folder"].as_str()?.strip_prefix("file://")?;
            String::from_utf8(percent_decode_str(folder).collect()).ok()
        };
        root.or_else(workspace).map(PathBuf::from).filter(|root| root.is_absolute())
    })
}

/// Git's working tree around a folder.
pub(crate) struct WorkingTree {
    root: PathBuf,
    git: PathBuf,
}

impl WorkingTree {
    pub(crate) fn around(folder: &Path) -> Option<WorkingTree> {
        let root = folder.ancestors().find(|it| it.join(".git").exists())?.to_owned();
        let dot = root.join(".git");
        let linked = text(&dot).and_then(|it| Some(root.join(it.strip_prefix("gitdir:")?.trim())));
        Some(WorkingTree { git: linked.unwrap_or(dot), root })
    }

    /// The last whole lines of the log of the commits that were current.
    pub(crate) fn log(&self) -> Option<String> {
        let mut file = File::open(self.git.join("logs/HEAD")).ok()?;
        let before = file.metadata().ok()?.len().saturating_sub(FILE_BYTES_MAX);
        file.seek(SeekFrom::Start(before)).ok()?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let log = String::from_utf8_lossy(&bytes);
        let whole = if before == 0 { &*log } else { log.split_once('\n')?.1 };
        Some(whole.to_owned())
    }

    pub(crate) fn is_merging(&self) -> bool {
        self.git.join("MERGE_HEAD").exists()
    }

    /// True if git's index names files in `folder`, or shortens names.
    pub(crate) fn tracks(&self, folder: &Path) -> bool {
        let Ok(inside) = folder.strip_prefix(&self.root) else { return false };
        let inside = inside.iter().map(|it| format!("{}/", it.to_string_lossy()));
        let index = bytes(&self.git.join("index"), INDEX_BYTES_MAX).unwrap_or_default();
        let is_shortened = index.get(4..8) == Some(&[0, 0, 0, 4]);
        is_shortened || memmem::find(&index, inside.collect::<String>().as_bytes()).is_some()
    }
}

fn at(folder: &Path) -> Option<Repository> {
    let dot = folder.join(".git");
    if dot.is_dir() {
        return Some(repository(folder, &dot));
    }
    // A linked worktree or a submodule has a file here.
    let git = folder.join(text(&dot)?.strip_prefix("gitdir:")?.trim());
    let common = text(&git.join("commondir")).map(|common| git.join(common.trim()));
    Some(match common.and_then(|common| common.canonicalize().ok()) {
        Some(common) if common.ends_with(".git") => {
            repository(common.parent().unwrap_or(&common), &common)
        }
        Some(common) => repository(&common, &common),
        None => repository(folder, &git),
    })
}

fn repository(root: &Path, git: &Path) -> Repository {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    Repository { root, remote: text(&git.join("config")).and_then(|it| remote_of(&it)) }
}

fn text(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&bytes(path, FILE_BYTES_MAX)?).into_owned())
}

fn bytes(path: &Path, bytes_max: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(bytes_max).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// URL of `origin`, or of the first remote, in a git configuration.
fn remote_of(settings: &str) -> Option<String> {
    let (mut first, mut remote) = (None, None);
    for line in settings.lines().map(str::trim) {
        if let Some(head) = line.strip_prefix('[') {
            let name = head.strip_prefix("remote \"").and_then(|it| it.split_once("\"]"));
            remote = name.map(|(name, _)| name);
        } else if let (Some(name), Some((key, value))) = (remote, line.split_once('='))
            && key.trim().eq_ignore_ascii_case("url")
        {
            let value = value.split([' ', '\t']).find(|it| !it.is_empty()).unwrap_or_default();
            let url = value.trim_matches('"').to_owned();
            if name == "origin" {
                return Some(url);
            }
            first.get_or_insert(url);
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::files;
    use std::fs;

    fn put(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        files::replace(path, text).unwrap();
    }

    #[test]
    fn origin_goes_before_the_first_remote_and_other_sections_say_nothing() {
        let settings = "[core]\n\turl = no\n[remote \"up\"]\n\turl = a:b/c\n[branch \"x\"]\n\turl = no\n\
            [remote \"origin\"]\n\tfetch = +refs\n\tURL = \"git@host:o/app.git\"  # ours\n\turl = second\n";
        assert_eq!(remote_of(settings).as_deref(), Some("git@host:o/app.git"));
        assert_eq!(remote_of(&settings.replace("origin", "fork")).as_deref(), Some("a:b/c"));
        assert_eq!(remote_of("[core]\n[remote \"x\"]\n"), None);
    }

    #[test]
    fn a_folder_of_the_repository_a_working_tree_of_it_and_a_folder_that_is_gone_are_one_project() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let root = top.join("app");
        put(&root.join(".git/config"), "[remote \"origin\"]\nurl = h:o/app\n");
        put(&root.join(".git/worktrees/x/commondir"), "../..\n");
        let linked = format!("gitdir: {}\n", root.join(".git/worktrees/x").display());
        put(&top.join("x/.git"), &linked);
        let expected = Repository { root: root.clone(), remote: Some("h:o/app".to_owned()) };
        for folder in [root.join("src/deep"), root.clone(), top.join("x/src")] {
            assert_eq!(Repository::of(&folder), Some(expected.clone()), "{}", folder.display());
        }
    }

    #[test]
    fn a_working_tree_tracks_the_folders_in_its_index_and_ends_its_log_with_whole_lines() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().join("app");
        let linked = format!("gitdir: {}\n", root.join(".git/worktrees/x").display());
        put(&top.path().join("x/.git"), &linked);
        put(&root.join(".git/worktrees/x/index"), "DIRC..notes/memory/a.md..");
        put(&root.join(".git/worktrees/x/logs/HEAD"), &format!("a{}\nb\n", "a".repeat(300_000)));
        put(&root.join(".git/worktrees/x/MERGE_HEAD"), "2\n");
        let folder = top.path().join("x/notes/memory");
        let tree = WorkingTree::around(&folder).unwrap();
        assert!(tree.tracks(&folder) && !tree.tracks(&top.path().join("x/notes/memo")));
        assert!(tree.is_merging());
        assert_eq!(tree.log().as_deref(), Some("b\n"));
    }

    #[test]
    fn a_submodule_is_a_project_of_its_own() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().canonicalize().unwrap();
        put(&root.join(".git/config"), "[remote \"origin\"]\nurl = h:o/app\n");
        put(&root.join(".git/modules/sub/config"), "[remote \"origin\"]\nurl = h:o/sub\n");
        put(&root.join("sub/.git"), "gitdir: ../.git/modules/sub\n");
        let found = Repository::of(&root.join("sub/src")).unwrap();
        assert_eq!((found.root, found.remote.as_deref()), (root.join("sub"), Some("h:o/sub")));
    }

    #[test]
    fn the_project_of_a_clients_file_is_named_above_it() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        put(&top.join("tmp/app-1/.project_root"), "/home/me/app\n");
        put(&top.join("store/1f/workspace.json"), r#"{"folder":"file:///home/me/my%20app"}"#);
        put(&top.join("other/2f/workspace.json"), r#"{"folder":"vscode-remote://host/app"}"#);
        put(&top.join("app/.specstory/history/a.md"), "");
        for (file, project) in [
            ("tmp/app-1/chats/session-1.json", Some("/home/me/app".into())),
            ("tmp/app-1/checkpoint-a.json", Some("/home/me/app".into())),
            ("store/1f/chatSessions/a.json", Some("/home/me/my app".into())),
            ("other/2f/chatSessions/a.json", None),
            ("app/.specstory/history/a.md", Some(top.join("app"))),
            ("app/history/a.md", None),
        ] {
            put(&top.join(file), "");
            assert_eq!(project_of(&top.join(file)), project, "{file}");
        }
    }
}
