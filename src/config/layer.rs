//! Layers of settings: parsing, checks that report the line, and merging.

use toml::de::DeTable;
use toml::{Table, Value};

/// The shipped defaults.
pub const DEFAULT: &str = include_str!("../../config.toml");
/// Prefix of environment variables with settings.
pub(crate) const ENV_PREFIX: &str = "ANNALIST__";
/// Prefix of all variables of the project, some of which are no settings.
pub(crate) const ENV_PREFIX_ALL: &str = "ANNALIST_";
/// Minimum similarity, 0 to 1, for suggesting a known key.
const ALIKE_MIN: f64 = 0.7;
/// Minimum similarity for treating an unknown key as a misspelling.
const MISSPELT_MIN: f64 = 0.9;

/// Text of a settings layer, and its name for error messages.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    /// Path of the file.
    pub name: &'a str,
    /// Contents, in TOML.
    pub text: &'a str,
}

impl Layer<'_> {
    fn place(self, line: Option<usize>) -> String {
        line.map_or(self.name.to_owned(), |line| format!("{}:{line}", self.name))
    }

    /// Place of the line that sets `path`.
    pub(super) fn place_of_key(self, path: &[&str]) -> String {
        self.place(line_of_key(self.text, path))
    }
}

/// Invalid settings, as one line: place, problem, remedy.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct ConfigError {
    /// File and line, variable or flag.
    pub place: String,
    /// Problem and expected value.
    pub what: String,
}

/// Returns true if a `config.toml` is ours, not another tool's: at least one top-level key is
/// known, and all others are at most misspellings. Of invalid TOML one line with such a key is
/// enough, so that typos are reported.
pub(crate) fn is_ours(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    let Ok(defaults) = DEFAULT.parse::<Table>() else { return true };
    let Ok(table) = text.parse::<Table>() else {
        let key = |line: &str| {
            let line = line.trim_start_matches(['[', ' ']);
            line.split([']', '.', '=', ' ']).next().unwrap_or_default().to_owned()
        };
        return text.lines().any(|line| defaults.contains_key(&key(line)));
    };
    let known = known(&defaults);
    let is_near = |key: &str, it: &str| strsim::jaro_winkler(key, last(it)) >= MISSPELT_MIN;
    let misspelt = |key: &str| known.iter().any(|it| is_near(key, it));
    let is_known = |key: &String| defaults.contains_key(key);
    table.is_empty()
        || (table.keys().any(is_known) && table.keys().all(|it| is_known(it) || misspelt(it)))
}

pub(super) fn parse(layer: Layer<'_>) -> Result<Table, ConfigError> {
    layer.text.parse::<Table>().map_err(|error| {
        let place = layer.place(error.span().map(|span| line_of(layer.text, span.start)));
        ConfigError { place, what: format!("invalid TOML: {}", error.message()) }
    })
}

/// Checks that every key below `path` is known and that its value has the type of its default.
pub(super) fn check_keys(
    path: &[&str],
    table: &Table,
    defaults: &Table,
    layer: Layer<'_>,
) -> Result<(), ConfigError> {
    for (key, value) in table {
        let path = [path, &[key]].concat();
        let key = path.join(".");
        let what = match (get(defaults, &path), value) {
            (None, _) => unknown(&key, defaults),
            (Some(Value::Table(_)), Value::Table(inner)) => {
                check_keys(&path, inner, defaults, layer)?;
                continue;
            }
            (Some(Value::Float(_)), Value::Integer(_)) => continue,
            (Some(default), value) if default.same_type(value) => continue,
            (Some(default), value) => {
                format!("{key}: expected {}, found {}", kind(default), kind(value))
            }
        };
        return Err(ConfigError { place: layer.place_of_key(&path), what });
    }
    Ok(())
}

pub(super) fn get<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Value> {
    let (last, sections) = path.split_last()?;
    let section = sections.iter().try_fold(table, |table, name| table.get(*name)?.as_table())?;
    section.get(*last)
}

/// All default keys, each section before its keys.
fn known(defaults: &Table) -> Vec<String> {
    let mut keys = Vec::new();
    for (key, value) in defaults {
        keys.push(key.clone());
        let inner = value.as_table().into_iter().flat_map(Table::keys);
        keys.extend(inner.map(|inner| format!("{key}.{inner}")));
    }
    keys
}

/// Key without its section.
fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or_default()
}

fn unknown(key: &str, defaults: &Table) -> String {
    let known = known(defaults);
    // The right name in the wrong section is a perfect match.
    let is_misplaced = |known: &str| last(key) == last(known);
    let near = |it: &str| if is_misplaced(it) { 1.0 } else { strsim::jaro_winkler(key, it) };
    let nearest = known.iter().max_by(|one, other| near(one).total_cmp(&near(other)));
    match nearest.filter(|nearest| near(nearest) >= ALIKE_MIN) {
        Some(nearest) => format!("unknown key `{key}`: did you mean `{nearest}`?"),
        None => format!("unknown key `{key}`: `annalist init --print` shows every key"),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a string in quotes",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list in [ ]",
        Value::Table(_) => "a section",
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// Returns the line that sets `path`.
fn line_of_key(text: &str, path: &[&str]) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let (last, sections) = path.split_last()?;
    let section = sections
        .iter()
        .try_fold(document.get_ref(), |table, name| table.get(*name)?.get_ref().as_table())?;
    let (key, _) = section.get_key_value(*last)?;
    Some(line_of(text, key.span().start))
}

pub(super) fn merge(under: &mut Table, over: Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(inner)), Value::Table(value)) => merge(inner, value),
            (Some(place @ Value::Float(_)), Value::Integer(value)) => {
                *place = Value::Float(value as f64);
            }
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

/// The variable of the setting that `name` names with too few underscores.
fn meant_by(name: &str, defaults: &Table) -> Option<String> {
    let variable =
        |key: &str| format!("{ENV_PREFIX}{}", key.replace('.', "__").to_ascii_uppercase());
    let keys =
        known(defaults).into_iter().filter(|key| !defaults.get(key).is_some_and(Value::is_table));
    let single = |name: &str| name.replace("__", "_");
    keys.map(|key| variable(&key)).find(|it| single(it) == single(name))
}

/// Sets the key that a variable such as `ANNALIST__MODEL__BASE_URL` names.
pub(super) fn set_from_env(
    settings: &mut Table,
    defaults: &Table,
    name: &str,
    value: &str,
) -> Result<(), ConfigError> {
    let fail = |what: String| ConfigError { place: format!("environment variable {name}"), what };
    let Some(key) = name.strip_prefix(ENV_PREFIX) else {
        // Variables that are no settings begin in the same way.
        return meant_by(name, defaults).map_or(Ok(()), |meant| {
            Err(fail(format!("unknown variable: did you mean `{meant}`?")))
        });
    };
    let path = key.to_ascii_lowercase().replace("__", ".");
    let keys: Vec<&str> = path.split('.').collect();
    let default = get(defaults, &keys).ok_or_else(|| fail(unknown(&path, defaults)))?;
    if let Value::Table(section) = default {
        let keys: Vec<String> = section.keys().map(|key| key.to_ascii_uppercase()).collect();
        let expected = format!("{name}__ and one of {}", keys.join(", "));
        return Err(fail(format!("`{path}` is a section: expected {expected}")));
    }
    let wrong = || fail(format!("expected {}, found `{value}`", kind(default)));
    let parsed = match default {
        Value::String(_) => Value::String(value.to_owned()),
        Value::Integer(_) => Value::Integer(value.trim().parse().map_err(|_| wrong())?),
        Value::Float(_) => Value::Float(value.trim().parse().map_err(|_| wrong())?),
        Value::Boolean(_) => Value::Boolean(value.trim().parse().map_err(|_| wrong())?),
        Value::Array(_) => {
            let items = value.split(',').map(str::trim).filter(|item| !item.is_empty());
            Value::Array(items.map(|item| Value::String(item.to_owned())).collect())
        }
        Value::Datetime(_) | Value::Table(_) => return Err(wrong()),
    };
    let inside = |value, key: &&str| Value::Table(Table::from_iter([((*key).to_owned(), value)]));
    if let Value::Table(table) = keys.iter().rev().fold(parsed, inside) {
        merge(settings, table);
    }
    Ok(())
}
