//! `annalist privacy check` finds unmasked text in the store and the memory directory; `annalist redact` prints a text
//! as the gate lets it through.

use super::memory::folder;
use super::output::{self, BOLD, DIM, Failure, Result, Row, count, counted, unreadable};
use super::settings;
use crate::adapters::memory_files::MemoryFolder;
use crate::privacy::{Gate, Only, Report, is_private_file};
use crate::store::{OpenMode, Store, StoredText};
use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Check stored text for unmasked secrets and personal data
    #[command(after_help = "\
Example: annalist privacy check --json

Reads every text column of the store (the source of all requests), the copies in the vault, and \
the files of the memory directory without their private blocks. Prints rule, place and count, \
never the text. Exits 1 if something is found; `annalist forget` erases it from the store.")]
    Check {
        /// A store, a project folder or a memory directory, instead of those of the settings
        #[arg(value_name = "DIR|STORE")]
        target: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Unmasked words in one place, as JSON and in a list.
#[derive(JsonSchema, Serialize)]
struct UnmaskedRow {
    /// Table and column, or file.
    place: String,
    rule: &'static str,
    count: u64,
}

impl Row for UnmaskedRow {
    const HEADER: &'static [&'static str] = &["place", "rule", "count"];

    fn cells(&self) -> Vec<String> {
        vec![self.place.clone(), self.rule.to_owned(), self.count.to_string()]
    }
}

/// The result, as JSON.
#[derive(JsonSchema, Serialize)]
pub(super) struct PrivacyReport {
    /// Texts of the store that were read.
    texts: u64,
    /// Files of the memory directory that were read.
    files: u64,
    findings: Vec<UnmaskedRow>,
}

struct Check {
    gate: Gate,
    texts: u64,
    found: BTreeMap<(String, &'static str), u64>,
}

pub(super) async fn run(command: &Command, file: Option<&Path>) -> Result<()> {
    let Command::Check { target, json } = command;
    let config = settings::load(file)?;
    let mut check = Check { gate: Gate::new(&config.pii), texts: 0, found: BTreeMap::new() };
    let (store, directory) = match target.as_deref() {
        None => (settings::known_store(&config)?, folder::project_directory(Path::new("."))?),
        Some(url) if url.contains(':') => (Some(Store::open(url, OpenMode::Existing)?), None),
        Some(path) if Path::new(path).is_file() => {
            (Some(Store::open(&format!("sqlite:{path}"), OpenMode::Existing)?), None)
        }
        Some(path) => (None, Some(directory(Path::new(path))?)),
    };
    let mut files = 0;
    if let Some(directory) = &directory {
        for (name, text) in folder::read(directory)?.files {
            files += 1;
            let public = check.gate.clone().only(Only::Private).redact(&text);
            check.look(&name, public.as_str());
        }
    }
    if let Some(store) = &store {
        let each = |check: &mut Check, it: StoredText<'_>| {
            check.texts += 1;
            check.look(&format!("{}.{}", it.place, it.column), it.text);
        };
        check = store.each_text(check, each).await?;
    }
    let row = |((place, rule), count)| UnmaskedRow { place, rule, count };
    let findings: Vec<UnmaskedRow> = check.found.into_iter().map(row).collect();
    let is_unmasked = !findings.is_empty();
    if *json {
        output::json(&PrivacyReport { texts: check.texts, files, findings })?;
    } else {
        output::rows(&findings, false, "nothing found that the gate would mask")?;
        let (texts, files) = (counted(check.texts, "text"), counted(files, "file"));
        output::note(&format!("{DIM}read: {texts} of the store, {files}{DIM:#}"));
    }
    output::fail_if(is_unmasked)
}

fn directory(path: &Path) -> Result<MemoryFolder> {
    let found = folder::project_directory(path)?;
    let found = MemoryFolder::at(path).or(found);
    found.ok_or_else(|| {
        Failure::usage(format!("{}: neither a store nor a memory directory", path.display()))
    })
}

impl Check {
    /// Counts what the redactor would mask. The strings of JSON were redacted one by one, so they are
    /// looked at one by one; a string beside another is no secret. Its numbers are not personal data.
    fn look(&mut self, place: &str, text: &str) {
        let mut report = Report::default();
        match serde_json::from_str::<Value>(text) {
            Ok(json @ (Value::Object(_) | Value::Array(_))) => self.look_into(&json, &mut report),
            _ => drop(self.gate.redact_into(text, &mut report)),
        }
        for (rule, count) in report.counts {
            *self.found.entry((place.to_owned(), rule)).or_default() += count;
        }
    }

    fn look_into(&self, json: &Value, report: &mut Report) {
        match json {
            Value::String(text) => drop(self.gate.redact_into(text, report)),
            Value::Array(items) => items.iter().for_each(|it| self.look_into(it, report)),
            Value::Object(members) => {
                members.values().for_each(|it| self.look_into(it, report));
                self.look_at_names(members, report);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Counts the strings that are secret because of their key, or of the name beside them.
    fn look_at_names(&self, members: &Map<String, Value>, report: &mut Report) {
        let passed = |text: &str| Value::from(self.gate.redact(text).as_str());
        let strings =
            members.iter().filter_map(|(key, it)| Some((key.clone(), passed(it.as_str()?))));
        let text = Value::Object(strings.collect()).to_string();
        let masks = |text: &str| text.matches("\"<SECRET>\"").count() as u64;
        let named = self.gate.clone().only(Only::Secrets).redact(&text);
        let more = masks(named.as_str()).saturating_sub(masks(&text));
        if 0 < more {
            *report.counts.entry("named-secret").or_default() += more;
        }
    }
}

const TEXT_BYTES_MAX: u64 = 1 << 30;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: annalist redact notes.md > clean.md

privacy.pii sets which personal data is masked; private blocks and secrets always are.")]
pub(super) struct RedactArgs {
    /// File with the text; `-` reads standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Apply only one part of the gate
    #[arg(long, value_enum)]
    only: Option<Part>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Part {
    /// `<private>` blocks
    Private,
    /// Keys, passwords, tokens
    Secrets,
    /// Personal data
    Pii,
}

pub(super) fn redact(args: &RedactArgs, file: Option<&Path>) -> Result<()> {
    let config = settings::load(file)?;
    let text = read_text(&args.file)?;
    let only = match args.only {
        None => Only::Everything,
        Some(Part::Private) => Only::Private,
        Some(Part::Secrets) => Only::Secrets,
        Some(Part::Pii) => Only::Pii,
    };
    if matches!(only, Only::Everything | Only::Private) && is_private_file(&text) {
        output::note("private-file 1");
        output::note("the file says `private: true`: none of it is printed");
        return Ok(());
    }
    let mut report = Report::default();
    let clean = Gate::new(&config.pii).only(only).redact_into(&text, &mut report);
    output::bytes(clean.as_str().as_bytes())?;
    if report.counts.is_empty() {
        output::note("nothing was masked");
    }
    if report.mentions > 0 {
        let tags = counted(report.mentions, "tag");
        output::note(&format!("{tags} <private> without </private>: nothing is hidden"));
    }
    for (rule, times) in &report.counts {
        output::note(&format!("{BOLD}{rule}{BOLD:#} {}", count(*times)));
    }
    Ok(())
}

/// Reads the text; unlike a transcript, it may be empty.
fn read_text(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let is_stdin = path.as_os_str() == "-";
    let name = if is_stdin { "standard input".into() } else { path.display().to_string() };
    let read = match is_stdin {
        true => io::stdin().lock().take(TEXT_BYTES_MAX).read_to_end(&mut bytes),
        // A pipe is fine, since it is read only once.
        false => File::open(path).and_then(|it| it.take(TEXT_BYTES_MAX).read_to_end(&mut bytes)),
    };
    read.map_err(unreadable(&name))?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| {
        let read = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + read.iter().filter(|byte| **byte == b'\n').count();
        output::note(&format!("{name}:{line}: not UTF-8: such bytes are printed as U+FFFD"));
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::Pii;

    #[test]
    fn stored_json_is_read_as_it_was_masked() {
        let found = |text: &str| {
            let gate = Gate::new(&Pii::ALL);
            let mut check = Check { gate, texts: 0, found: BTreeMap::new() };
            check.look("cards.card", text);
            check.found.into_values().sum::<u64>()
        };
        for text in [
            r#"{"keywords":["password","zw3bel77x","backup"]}"#,
            r#"{"words":"use htpasswd -b .htpasswd bob <SECRET>","then":"a b","line":5551234567}"#,
            r#"[{"field":"token","words":"<SECRET>"}]"#,
        ] {
            assert_eq!(found(text), 0, "{text}");
        }
        for text in [
            r#"{"password":"hunter2xy","n":1}"#,
            r#"{"a":[{"name":"DB_PASSWORD","value":"hunter2xy"}]}"#,
            r#"{"words":"the password is hunter2xy"}"#,
            r#"{"words":["mail bob@h.org"]}"#,
            "password: hunter2xy",
        ] {
            assert_eq!(found(text), 1, "{text}");
        }
    }
}
