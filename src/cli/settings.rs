//! Finds the settings file and the store.
//!
//! Both are searched for in the *project*: the current folder and its parents up to the repository root.
//! `docs/configuration.md` states the rules.

use super::output::{Failure, Result};
use crate::adapters::files;
use crate::adapters::repository::Repository;
use crate::config::{Config, ENV_PREFIX_ALL, Layer, is_ours};
use crate::llm::prompt::read_prompts;
use crate::privacy::Gate;
use crate::store::{OpenMode, Store, StoreError, StoreErrorKind};
use std::path::{Path, PathBuf};

pub(super) const PROJECT_FILE: &str = "annalist.toml";
/// Name of the user's settings file, and of one in a project's `.annalist`.
pub(super) const FILE_NAME: &str = "config.toml";
/// Project folder with the store.
const FOLDER: &str = ".annalist";
/// File name of the store in that folder, or in the user's data folder.
const STORE: &str = "annalist.db";
/// Name of this program in `PATH`.
const NAME: &str = "annalist";
/// Name of the settings without a file.
const DEFAULTS: &str = "built-in defaults";
const STORE_VARIABLE: &str = "ANNALIST__STORE__URL";
const ENDPOINT_VARIABLE: &str = "ANNALIST__MODEL__BASE_URL";
const PROMPTS_VARIABLE: &str = "ANNALIST__PROMPTS";

struct SettingsFile {
    path: PathBuf,
    root: Option<PathBuf>,
}

/// Loads the settings from the file `named`, the project's or the user's; environment variables override them.
pub(super) fn load(named: Option<&Path>) -> Result<Config> {
    let env = variables()?;
    let folders = project_folders();
    let file = match named {
        Some(path) => Some(SettingsFile { path: path.to_owned(), root: None }),
        None => find_file(&folders)?,
    };
    let name = file.as_ref().map(|file| shown(&file.path));
    let text = file.as_ref().map(|file| read(&file.path)).transpose()?;
    let layer = name.as_ref().zip(text.as_ref()).map(|(name, text)| Layer { name, text });
    let mut config = Config::load(layer, &env)?;
    config.source = name.unwrap_or_else(|| DEFAULTS.to_owned());
    let root = file.and_then(|file| file.root);
    let is_set = |variable: &str| env.iter().any(|(name, _)| name == variable);
    if let Some(path) = &mut config.prompts_path {
        if let Some(root) = root.as_deref().filter(|_| !is_set(PROMPTS_VARIABLE)) {
            *path = shown(&root.join(&*path));
        }
        let prompts = read_prompts(Path::new(path));
        config.prompts = prompts.map_err(|what| Failure::usage(format!("prompts: {what}")))?;
    }
    if config.store_url.is_empty() {
        config.store_url = format!("sqlite:{}", shown(&store_folder(root, &folders).join(STORE)));
    } else if let (Some(root), Some(path), false) =
        (&root, config.store_url.strip_prefix("sqlite:"), is_set(STORE_VARIABLE))
        && Path::new(path).is_relative()
    {
        config.store_url = format!("sqlite:{}", shown(&root.join(path)));
    }
    Ok(config)
}

/// Settings of the endpoint, for the hint of an error: the file, and the variable that overrides its URL.
pub(super) fn endpoint_source(config: &Config) -> String {
    match std::env::var_os(ENDPOINT_VARIABLE) {
        Some(_) => format!("{} (base_url: {ENDPOINT_VARIABLE})", config.source),
        None if config.source == DEFAULTS => format!("{DEFAULTS}; put yours into {PROJECT_FILE}"),
        None => config.source.clone(),
    }
}

fn read(path: &Path) -> Result<String> {
    files::read_to_string(path)
        .map_err(|error| Failure::usage(format!("{}: cannot be read: {error}", shown(path))))
}

/// Path relative to the current folder, if it is inside.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let inside = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    inside.unwrap_or_else(|| path.to_owned()).display().to_string()
}

/// Nearest settings file of the project in a folder above the current one.
pub(super) fn above() -> Option<PathBuf> {
    project_folders().iter().skip(1).find_map(|folder| file_in(folder))
}

fn file_in(folder: &Path) -> Option<PathBuf> {
    let files = [folder.join(PROJECT_FILE), folder.join(FOLDER).join(FILE_NAME)];
    files.into_iter().find(|path| path.is_file())
}

/// Finds the nearest settings file of the project, else the user's.
fn find_file(folders: &[PathBuf]) -> Result<Option<SettingsFile>> {
    for (distance, folder) in folders.iter().enumerate() {
        let mut found = file_in(folder);
        let here = folder.join(FILE_NAME);
        if found.is_none() && distance == 0 && here.is_file() && is_ours(&read(&here)?) {
            found = Some(here);
        }
        if let Some(path) = found {
            return Ok(Some(SettingsFile { path, root: Some(folder.clone()) }));
        }
    }
    let of_user = user_folder().map(|folder| folder.join(FILE_NAME));
    Ok(of_user.filter(|path| path.is_file()).map(|path| SettingsFile { path, root: None }))
}

/// Default folder of the store: the nearest `.annalist` of the project, else one beside its settings file or at the
/// repository root, else the user's data folder.
fn store_folder(root: Option<PathBuf>, folders: &[PathBuf]) -> PathBuf {
    let is_root = |folder: &Path| root.as_deref() == Some(folder);
    let near = folders.iter().find(|it| is_root(it) || it.join(FOLDER).is_dir());
    let project = near.or_else(|| folders.last().filter(|it| is_repository(it)));
    let project = project.map(|folder| match folder.join(FOLDER).is_dir() {
        true => folder.join(FOLDER),
        false => in_main_tree(folder, folders).unwrap_or_else(|| folder.clone()).join(FOLDER),
    });
    project.or_else(data_folder).unwrap_or_else(|| FOLDER.into())
}

/// Default store of commands that run in `folder`.
pub(super) fn store_of(folder: &Path) -> PathBuf {
    let folders = project_folders_of(folder);
    let root = folders.iter().find(|folder| file_in(folder).is_some()).cloned();
    store_folder(root, &folders).join(STORE)
}

/// The same folder in the main working tree, if `folder` is in another one of the repository, which may be removed.
fn in_main_tree(folder: &Path, folders: &[PathBuf]) -> Option<PathBuf> {
    let tree = folders.last()?.canonicalize().ok()?;
    let main = Repository::of(&tree)?.root;
    let is_other = main != tree && main.join(".git").is_dir();
    let inside = folder.canonicalize().ok()?.strip_prefix(&tree).ok()?.to_owned();
    is_other.then(|| main.join(inside))
}

/// Returns the current folder and its parents, up to the repository root. Without a repository, stops at a change of
/// owner and at the user's home.
pub(super) fn project_folders() -> Vec<PathBuf> {
    std::env::current_dir().map_or_else(|_| vec![PathBuf::new()], |here| project_folders_of(&here))
}

fn project_folders_of(here: &Path) -> Vec<PathBuf> {
    let all: Vec<PathBuf> = here.ancestors().map(Path::to_owned).collect();
    let repository = all.iter().position(|folder| is_repository(folder));
    let depth = repository.unwrap_or_else(|| {
        let (home, owner) = (home(), owner(here));
        let is_project = |it: &&PathBuf| Some(*it) != home.as_ref() && self::owner(it) == owner;
        all.iter().skip(1).take_while(is_project).count()
    });
    all.into_iter().take(depth + 1).collect()
}

/// True if `folder` is of the project of the current folder.
pub(super) fn is_of_project(folder: &Path) -> bool {
    let folders = project_folders();
    let root = folders.last().filter(|it| is_repository(it)).or(folders.first());
    root.is_some_and(|root| folder.starts_with(root)) || folders.iter().any(|it| it == folder)
}

fn is_repository(folder: &Path) -> bool {
    folder.join(".git").exists()
}

/// Owner of a folder. Settings that another user left in a shared folder are not read.
#[cfg(unix)]
fn owner(folder: &Path) -> Option<u32> {
    std::fs::metadata(folder).ok().map(|it| std::os::unix::fs::MetadataExt::uid(&it))
}

#[cfg(not(unix))]
fn owner(_: &Path) -> Option<u32> {
    None
}

/// Returns the environment variables that are settings. Others may contain invalid Unicode.
fn variables() -> Result<Vec<(String, String)>> {
    let names =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let ours = names.filter(|(name, _)| name.starts_with(ENV_PREFIX_ALL));
    ours.map(|(name, value)| match value.into_string() {
        Ok(value) => Ok((name, value)),
        Err(_) => Err(Failure::usage(format!("{name}: expected text in UTF-8"))),
    })
    .collect()
}

pub(super) fn user_folder() -> Option<PathBuf> {
    folder_of("XDG_CONFIG_HOME", ".config")
}

pub(super) fn state_folder() -> Option<PathBuf> {
    folder_of("XDG_STATE_HOME", ".local/state")
}

pub(super) fn data_folder() -> Option<PathBuf> {
    folder_of("XDG_DATA_HOME", ".local/share")
}

pub(super) fn home() -> Option<PathBuf> {
    path_of("HOME")
}

/// Returns our subfolder of the folder named by a variable, else of `place` in the home folder.
fn folder_of(variable: &str, place: &str) -> Option<PathBuf> {
    let named = path_of(variable).filter(|path| path.is_absolute());
    named.or_else(|| home().map(|home| home.join(place))).map(|base| base.join("annalist"))
}

pub(super) fn path_of(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Command that runs this program: its name if `PATH` finds it, else its path.
pub(super) fn program() -> Result<String> {
    let ours = std::env::current_exe().map_err(|error| {
        Failure::failed(format!("cannot find the annalist executable: {error}"))
    })?;
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&paths).map(|folder| folder.join(NAME)).find(|it| it.is_file());
    let real = |path: &Path| path.canonicalize().ok();
    let is_us = found.is_some_and(|found| real(&found) == real(&ours));
    Ok(if is_us { NAME.to_owned() } else { ours.display().to_string() })
}

pub(super) fn api_key(config: &Config) -> Result<Option<String>> {
    let Some(name) = &config.model.api_key_env else { return Ok(None) };
    match std::env::var_os(name).and_then(|value| value.into_string().ok()) {
        Some(key) if !key.trim().is_empty() => Ok(Some(key.trim().to_owned())),
        _ if !is_variable(name) => Err(Failure::usage(
            "model.api_key_env: <SECRET> looks like a key, not like the name of a variable: put \
             the key into a variable such as OPENAI_API_KEY, and set api_key_env to its name; \
             replace a key that was in a file",
        )),
        _ => Err(Failure::usage(format!(
            "model.api_key_env: the environment variable {name} is not set: \
             export it, or set api_key_env = \"\" if the endpoint needs no key (settings: {})",
            config.source
        ))),
    }
}

/// True if a text looks like a variable name, so that it can be shown; no key has this form.
fn is_variable(name: &str) -> bool {
    /// Maximum length of a name that is not all capitals, in bytes.
    const NAME_MAX: usize = 20;
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let word = name.bytes().all(letter) && !name.starts_with(|it: char| it.is_ascii_digit());
    let capitals = !name.bytes().any(|byte| byte.is_ascii_lowercase()) && name.contains('_');
    word && (capitals || name.len() <= NAME_MAX) && Gate::new(&[]).redact(name).as_str() == name
}

/// Opens the store of the settings. Adds a `.gitignore` to its `.annalist` folder.
pub(super) fn open_store(config: &Config, how: OpenMode) -> Result<Store, StoreError> {
    let folder = config.store_url.strip_prefix("sqlite:").and_then(|it| Path::new(it).parent());
    if let Some(folder) = folder.filter(|it| it.ends_with(FOLDER)) {
        let ignore = folder.join(".gitignore");
        if (how == OpenMode::Create || folder.is_dir()) && !ignore.exists() {
            // In a folder without write access, opening the store fails or is read-only.
            let _ = files::create(&ignore, "*\n");
        }
    }
    Store::open(&config.store_url, how)
}

pub(super) fn existing_store(file: Option<&Path>) -> Result<(Config, Store)> {
    let config = load(file)?;
    let store = open_store(&config, OpenMode::Existing)?;
    Ok((config, store))
}

/// Opens the store of the settings; `None` if it does not exist.
pub(super) fn known_store(config: &Config) -> Result<Option<Store>, StoreError> {
    unless_missing(Store::open(&config.store_url, OpenMode::Existing))
}

pub(super) fn unless_missing(
    opened: Result<Store, StoreError>,
) -> Result<Option<Store>, StoreError> {
    match opened {
        Err(error) if error.kind == StoreErrorKind::Missing => Ok(None),
        opened => opened.map(Some),
    }
}

/// Creates a single-threaded runtime. The work between two waits is short; handing it to another
/// thread costs more than doing it.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::failed(format!("cannot start: {error}")))
}
