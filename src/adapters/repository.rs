//! A folder's git repository, read from its files: a git process per session would be slow.

use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum size of a file that is read; git's logs grow with every commit.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Last line of a log while a merge is not committed.
pub(crate) const UNFINISHED_MERGE: &str = "0 1\tmerge\n";

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

/// Git's log of the commits that were current around `folder`, with an unfinished merge; empty without git.
pub(crate) fn head_log(folder: &Path) -> String {
    let dot = folder.ancestors().map(|it| it.join(".git")).find(|it| it.exists());
    let linked = |dot: &Path| Some(dot.parent()?.join(text(dot)?.strip_prefix("gitdir:")?.trim()));
    let Some(git) = dot.map(|dot| linked(&dot).unwrap_or(dot)) else { return String::new() };
    let merge = git.join("MERGE_HEAD").exists().then_some(UNFINISHED_MERGE);
    text(&git.join("logs/HEAD")).unwrap_or_default() + merge.unwrap_or_default()
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
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
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
