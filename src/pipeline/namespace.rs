//! Namespaces of folders. A repository is named by its remote, so that its clones share memory; any other folder by its
//! full path, so that two folders of the same name do not.

use crate::adapters::memory_files::MemoryFolder;
use crate::adapters::process;
use crate::adapters::repository::{Repository, home};
use crate::domain::{Session, Timestamp};
use crate::privacy::{Gate, Redacted};
use crate::store::{HeldLease, LeaseRequest, Store, StoreError};
use std::path::{Path, PathBuf};

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
    let home = home();
    let below = home.and_then(|home| path.strip_prefix(home).ok());
    let name = below.map_or_else(
        || path.components().collect::<PathBuf>(),
        |below| Path::new("~").components().chain(below.components()).collect(),
    );
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

/// Names that a folder's namespace may have had before: the last component of a path, and the path of a repository
/// that has a remote now.
fn earlier(folder: &str, gate: &Gate) -> Vec<String> {
    let root = Repository::of(Path::new(folder)).map(|it| it.root);
    let folders = [Some(PathBuf::from(folder)), root];
    let mut names = Vec::new();
    for folder in folders.iter().flatten() {
        let path = folder.display().to_string();
        let last = path.rsplit(['/', '\\']).find(|name| !name.is_empty()).map(str::to_owned);
        for name in last.into_iter().chain([shown(folder)]) {
            let name = gate.redact(&name).as_str().to_owned();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Resolves the namespaces of folders against a store.
#[derive(Clone, Copy)]
pub(crate) struct Namespaces<'a> {
    pub store: &'a Store,
    pub gate: &'a Gate,
    /// Clock for the leases of a move; if `None`, nothing is moved.
    pub clock: Option<fn() -> Timestamp>,
}

impl Namespaces<'_> {
    /// Returns the namespace of a folder. If the folder's project alone used an earlier name, its data is moved to the
    /// current one; a name shared by several projects is kept.
    pub(crate) async fn of_folder(&self, folder: &str) -> Result<String, StoreError> {
        let fresh = namespace_of_folder(folder, self.gate);
        let name = self.store.namespace_moved(&fresh).await?.unwrap_or_else(|| fresh.clone());
        for old in earlier(folder, self.gate).into_iter().filter(|old| *old != name) {
            let owners = self.store.folders_of(&old, process::host()).await?;
            let own = owners.iter().filter(|owner| self.is_of(owner, &fresh)).count();
            if own == 0 {
                continue;
            }
            if own < owners.len() || !self.moved(&old, &name).await? {
                return Ok(old);
            }
        }
        Ok(name)
    }

    /// True if `folder`, of sessions or of a memory directory, belongs to the project `name`.
    fn is_of(&self, folder: &str, name: &str) -> bool {
        let root = MemoryFolder::project_of(Path::new(folder)).and_then(Path::to_str);
        namespace_of_folder(root.unwrap_or(folder), self.gate) == name
    }

    /// Renames a namespace; returns false without a clock, or if another process holds either lease.
    pub(crate) async fn moved(&self, from: &str, to: &str) -> Result<bool, StoreError> {
        let Some(clock) = self.clock else { return Ok(false) };
        let hold = async |namespace: &str| -> Result<Option<HeldLease>, StoreError> {
            let holder = process::name();
            let request = LeaseRequest { namespace, holder, clock, waits: false };
            self.store.hold_namespace(request).await
        };
        let Some(old) = hold(from).await? else { return Ok(false) };
        let Some(new) = hold(to).await? else {
            old.release(None).await?;
            return Ok(false);
        };
        let moved = self.store.move_namespace(&old.lease, &new.lease).await;
        // The move removed the old lease with its namespace.
        old.release(None).await?;
        new.release(None).await?;
        moved.map(|()| true)
    }

    /// Returns the session as the store knows it: a conversation keeps its id and namespace even if its project was
    /// renamed. `native_id` is the client's own id; `is_named` is true if a person chose the namespace.
    pub(crate) async fn known(
        &self,
        session: Session,
        native_id: &str,
        is_named: bool,
    ) -> Result<Session, StoreError> {
        let folder = session.cwd.as_ref().map_or("", Redacted::as_str);
        let earlier = if is_named { Vec::new() } else { earlier(folder, self.gate) };
        let id = |name: &String| Session::id_of(name, session.format, native_id);
        let forgotten = earlier.iter().map(id).collect();
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
