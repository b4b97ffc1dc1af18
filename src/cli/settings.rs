//! Finds the settings: the named file, else `config.toml` here, else the user's; and the store.

use super::output::Failure;
use crate::config::{Config, ENV_PREFIX, Layer};
use crate::edge::store::{Open, Store};
use crate::edge::{disk, prompts};
use std::path::{Path, PathBuf};

/// The file's name wherever it is looked for.
const FILE_NAME: &str = "config.toml";
/// Our name where a shell finds it.
const NAME: &str = "annalist";

/// The settings in force.
pub(super) fn load(named: Option<&Path>) -> Result<Config, Failure> {
    let env = ours()?;
    let found = match named {
        Some(path) => Some(path.to_owned()),
        None => places().into_iter().find(|path| path.is_file()),
    };
    let Some(path) = found else { return with_prompts(Config::load(None, &env)?) };
    let name = path.display().to_string();
    let text = disk::read_to_string(&path)
        .map_err(|error| Failure::usage(format!("{name}: cannot be read: {error}")))?;
    with_prompts(Config::load(Some(Layer { name: &name, text: &text }), &env)?)
}

/// The settings with the prompts that they name.
fn with_prompts(mut config: Config) -> Result<Config, Failure> {
    if let Some(path) = &config.prompts_path {
        let read = prompts::read(Path::new(path));
        config.prompts = read.map_err(|what| Failure::usage(format!("prompts: {what}")))?;
    }
    Ok(config)
}

/// The variables that are settings. Others may hold what is no text, and are none of ours.
fn ours() -> Result<Vec<(String, String)>, Failure> {
    let names =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let ours = names.filter(|(name, _)| name.starts_with(ENV_PREFIX));
    ours.map(|(name, value)| match value.into_string() {
        Ok(value) => Ok((name, value)),
        Err(_) => Err(Failure::usage(format!("{name}: expected text in UTF-8"))),
    })
    .collect()
}

fn places() -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from(FILE_NAME)];
    places.extend(user_folder().map(|folder| folder.join(FILE_NAME)));
    places
}

/// The user's configuration folder, as XDG has it.
pub(super) fn user_folder() -> Option<PathBuf> {
    folder_of("XDG_CONFIG_HOME", ".config")
}

/// The user's folder for state, as XDG has it.
pub(super) fn state_folder() -> Option<PathBuf> {
    folder_of("XDG_STATE_HOME", ".local/state")
}

/// The user's home.
pub(super) fn home() -> Option<PathBuf> {
    path_of("HOME")
}

/// Our folder in the one that a variable names, else in that place of the user's home.
fn folder_of(variable: &str, place: &str) -> Option<PathBuf> {
    let named = path_of(variable).filter(|path| path.is_absolute());
    named.or_else(|| home().map(|home| home.join(place))).map(|base| base.join("annalist"))
}

/// The path that a variable holds.
pub(super) fn path_of(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// What others are to run as us: our name if a shell finds us by it, else where we are.
pub(super) fn program() -> Result<String, Failure> {
    let ours = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("annalist cannot be found: {error}")))?;
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&paths).map(|folder| folder.join(NAME)).find(|it| it.is_file());
    let real = |path: &Path| path.canonicalize().ok();
    let is_us = found.is_some_and(|found| real(&found) == real(&ours));
    Ok(if is_us { NAME.to_owned() } else { ours.display().to_string() })
}

/// The key of the endpoint, if the settings name a variable for it.
pub(super) fn api_key(config: &Config) -> Result<Option<String>, Failure> {
    let Some(name) = &config.model.api_key_env else { return Ok(None) };
    match std::env::var_os(name).and_then(|value| value.into_string().ok()) {
        Some(key) if !key.trim().is_empty() => Ok(Some(key.trim().to_owned())),
        _ => Err(Failure::usage(format!(
            "model.api_key_env: the environment variable {name} is not set: \
             export it, or set api_key_env = \"\" if the endpoint needs no key"
        ))),
    }
}

/// Opens the store of the settings.
pub(super) fn open_store(config: &Config, how: Open) -> Result<Store, Failure> {
    Ok(Store::open(&config.store_url, how)?)
}

/// A runtime for commands that wait for more than the disk. One thread: what is done between two
/// waits is short, and handing it to another thread costs more than doing it.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::failed(format!("cannot start: {error}")))
}
