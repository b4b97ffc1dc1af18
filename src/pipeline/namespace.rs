//! Namespaces of folders. A repository is named by its remote, so that its clones share memory; any other folder by its
//! full path, so that two folders of the same name do not.

use crate::adapters::memory_files::MemoryFolder;
use crate::adapters::process;
use crate::adapters::repository::{Repository, below_home};
use crate::domain::Session;
use crate::privacy::{Gate, Redacted};
use crate::store::{Store, StoreResult};
use std::path::{Path, PathBuf};

/// Hosts on which the names of owners and repositories do not differ by case.
const CASELESS_HOSTS: [&str; 3] = ["github.com", "gitlab.com", "bitbucket.org"];
/// Namespace of conversations without a folder.
pub(super) const NAMESPACE_DEFAULT: &str = "default";

/// The namespace of a folder: `github.com/owner/app` for a repository with a remote, else the path of the repository's
/// root or of the folder, such as `~/src/app` in the user's home and `srv/app` elsewhere.
pub(crate) fn namespace_of_folder(folder: &str, gate: &Gate) -> String {
    let name = match Repository::of(Path::new(folder)) {
        Some(Repository { root, remote }) => {
            remote.and_then(|url| name_of(&url, &root)).unwrap_or_else(|| shown(&root))
        }
        None => shown(Path::new(folder)),
    };
    gate.redact(&name).as_str().to_owned()
}

/// Path with `~` for the user's home and no slash at either end, so that tools can append it to a path of their own.
fn shown(path: &Path) -> String {
    let name = below_home(path).unwrap_or_else(|| path.components().collect());
    let name = name.display().to_string().trim_start_matches('/').to_owned();
    if name.is_empty() { NAMESPACE_DEFAULT.to_owned() } else { name }
}

/// The name of a remote: its host and path, or the path of a folder on this machine.
fn name_of(url: &str, root: &Path) -> Option<String> {
    let local = |path: &str| Some(shown(&root.join(path).canonicalize().ok()?));
    let (host, path) = match url.split_once("://") {
        Some(("file", path)) => return local(path),
        Some((_, rest)) => rest.split_once('/')?,
        // `C:\app` and `../app` are folders.
        None => match url.split_once(':').filter(|(it, _)| it.len() > 1 && !it.contains('/')) {
            Some(parts) => parts,
            None => return local(url),
        },
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let host = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|it| it.is_ascii_digit()) => host,
        _ => host,
    };
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
    let is_name = !host.is_empty() && !path.is_empty();
    is_name.then(|| format!("{}/{path}", host.to_ascii_lowercase()))
}

/// Names that a folder's namespace may have had before: its path or that of its repository, which may have a remote
/// now, and the last components of the two.
fn earlier_names(folder: &str, gate: &Gate) -> (Vec<String>, Vec<String>) {
    let root = Repository::of(Path::new(folder)).map(|it| it.root);
    let folders = [Some(PathBuf::from(folder)), root];
    let (mut paths, mut components) = (Vec::new(), Vec::new());
    for folder in folders.iter().flatten() {
        let path = folder.display().to_string();
        let last = path.rsplit(['/', '\\']).find(|name| !name.is_empty());
        components.extend(last.map(|name| gate.redact(name).as_str().to_owned()));
        paths.push(gate.redact(&shown(folder)).as_str().to_owned());
    }
    (paths, components)
}

/// Resolves the namespaces of folders against a store; changes nothing there. Only a person renames a namespace, since
/// a token or a command may name it too.
#[derive(Clone, Copy)]
pub(crate) struct Namespaces<'a> {
    pub store: &'a Store,
    pub gate: &'a Gate,
}

impl Namespaces<'_> {
    /// Returns the namespace of a folder: an earlier path if the folder's project used it, else the current name, else
    /// the last component of the path if the project used that alone, else the name in another case if its host takes
    /// them for one.
    pub(crate) async fn of_folder(&self, folder: &str) -> StoreResult<String> {
        let fresh = namespace_of_folder(folder, self.gate);
        let name = self.store.namespace_moved(&fresh).await?.unwrap_or_else(|| fresh.clone());
        let (paths, components) = earlier_names(folder, self.gate);
        for used in paths.iter().chain([&name]).chain(&components) {
            let is_used = match *used == name {
                true => self.store.has_namespace(&name).await?,
                false => self.is_used(used, &fresh).await?,
            };
            if is_used {
                return Ok(used.clone());
            }
        }
        let host = name.split('/').next().unwrap_or_default();
        let twin = match CASELESS_HOSTS.contains(&host) {
            true => self.store.namespace_twin(&name).await?,
            false => None,
        };
        Ok(twin.unwrap_or(name))
    }

    /// True if a folder of the project `name` used the namespace `used`.
    async fn is_used(&self, used: &str, name: &str) -> StoreResult<bool> {
        let folders = self.store.folders_of(used, process::host()).await?;
        Ok(folders.iter().any(|folder| {
            let root = MemoryFolder::project_of(Path::new(folder)).and_then(Path::to_str);
            namespace_of_folder(root.unwrap_or(folder), self.gate) == name
        }))
    }

    /// Returns the session as the store knows it: a conversation keeps its id and namespace even if its project was
    /// renamed. `native_id` is the client's own id; `is_named` is true if a person chose the namespace.
    pub(crate) async fn known(
        &self,
        session: Session,
        native_id: &str,
        is_named: bool,
    ) -> StoreResult<Session> {
        let folder = session.cwd.as_ref().map_or("", Redacted::as_str);
        let mut forgotten = Vec::new();
        if !is_named {
            let (paths, components) = earlier_names(folder, self.gate);
            let id = |name: &String| Session::id_of(name, session.format, native_id);
            forgotten.extend(components.iter().chain(&paths).map(id));
        }
        let known = self.store.known_session(&session, is_named, forgotten).await?;
        Ok(match known {
            Some((id, namespace)) => {
                let namespace = namespace.unwrap_or_else(|| session.namespace.clone());
                Session { id, namespace, ..session }
            }
            None => session,
        })
    }
}
