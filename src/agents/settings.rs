//! annalist's hooks in a client's settings file, which belongs to the user: everything else keeps
//! every byte.

use super::input::Event;
use super::layout::{with_layout_of, without_comments};
use crate::domain::{Finding, Severity};
use crate::privacy::{Gate, Redacted};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{
    CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode, CstStringLit,
};
use serde::de::IgnoredAny;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

const NAMES: [&str; 2] = ["annalist", "annalist.exe"];
/// Characters that make a shell do more than run one program.
const OPERATORS: [char; 8] = ['$', '`', '|', ';', '&', '<', '>', '\n'];

/// Result of editing a settings file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Merged {
    /// Up to date.
    Unchanged,
    /// New text.
    Changed(String),
    /// Contained only annalist's part; to be deleted.
    Removed,
    /// A user's file in the place of one of annalist's; left alone.
    NotOurs,
    /// Not readable by the client, and left alone. The finding has the rule `bad-settings` and
    /// gives the position.
    Malformed(Finding),
}

/// Format of the hooks in a client's settings.
#[derive(Debug)]
pub(crate) struct HookSettings {
    /// The client's name for an event; `None` if it lacks the event.
    pub name: fn(Event) -> Option<&'static str>,
    /// Hook timeout in the client's unit.
    pub timeout: u32,
    /// True if the client reads settings with comments.
    pub comments: bool,
}

/// Adds annalist's hooks to a settings file or a new one: one entry per event, which runs
/// `program`, a name or path. An existing entry is updated and keeps its flags; a second one for
/// the same event is removed.
pub(super) fn install(settings: &HookSettings, existing: Option<&str>, program: &str) -> Merged {
    edit(existing_or_new(existing), settings.comments, |top| {
        let hooks = object_of(top, "hooks")?.unwrap_or_else(|| top.object_value_or_set("hooks"));
        for event in Event::ALL {
            let Some(name) = (settings.name)(event) else { continue };
            let list = list_of(&hooks, name)?;
            let list = list.unwrap_or_else(|| hooks.array_value_or_set(name));
            let line = format!("{} hook {}", quoted(program), event.argument());
            install_event(&list, &line, settings.timeout);
        }
        Ok(())
    })
}

/// Text of a settings file; `{}` if it is absent or blank.
pub(super) fn existing_or_new(existing: Option<&str>) -> &str {
    let blank = ['\u{feff}', ' ', '\n', '\r', '\t'];
    existing.filter(|text| !text.trim_matches(blank).is_empty()).unwrap_or("{}\n")
}

/// Removes annalist's hooks from a settings file, and lists that become empty.
pub(super) fn remove(existing: &str) -> Merged {
    edit(existing, true, |top| {
        let Some(hooks) = object_of(top, "hooks")? else { return Ok(()) };
        let mut removed = 0;
        for property in hooks.properties() {
            let name = property.decoded_name().unwrap_or_default();
            if Event::ALL.iter().any(|event| event.is_called(&name)) {
                list_of(&hooks, &name)?;
            }
            let Some(list) = property.array_value() else { continue };
            let ours = entries(&list).into_iter().filter(|entry| entry.command.is_ours);
            let count = ours.map(Entry::remove).count();
            if count > 0 && list.elements().is_empty() {
                property.remove();
            }
            removed += count;
        }
        if removed > 0 && hooks.properties().is_empty() {
            member(top, "hooks").into_iter().for_each(CstObjectProp::remove);
        }
        Ok(())
    })
}

/// Diff with `-` and `+` lines. Unchanged lines become `…`, since they may hold keys of other
/// programs.
pub(crate) fn changes(before: &str, after: &str, gate: &Gate) -> Redacted {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let mut page = String::new();
    for change in TextDiff::from_slices(&old, &new).iter_all_changes() {
        let line = change.value();
        match change.tag() {
            ChangeTag::Equal if page.ends_with("…\n") => {}
            ChangeTag::Equal => page.push_str("  …\n"),
            ChangeTag::Delete => page.extend(["- ", line, "\n"]),
            ChangeTag::Insert => page.extend(["+ ", line, "\n"]),
        }
    }
    gate.redact(&page)
}

/// Edits a file; `comments` says that the client reads comments in it.
pub(super) fn edit(
    existing: &str,
    comments: bool,
    change: impl FnOnce(&CstObject) -> Result<(), String>,
) -> Merged {
    match edited(existing, comments, change) {
        Ok(text) if text == existing => Merged::Unchanged,
        Ok(text) => Merged::Changed(text),
        Err(detail) => Merged::Malformed(Finding::new(Severity::Error, "bad-settings", 0, detail)),
    }
}

fn edited(
    existing: &str,
    comments: bool,
    change: impl FnOnce(&CstObject) -> Result<(), String>,
) -> Result<String, String> {
    let text = existing.strip_prefix('\u{feff}').unwrap_or(existing);
    let mark = &existing[..existing.len() - text.len()];
    let wrong = |found: &str| expected("the file", "one JSON object", found);
    let bare = if comments { without_comments(text) } else { text.to_owned() };
    // The client reads JSON without other extensions, and serde_json bounds its depth.
    serde_json::from_str::<IgnoredAny>(&bare).map_err(|error| {
        wrong(&format!("invalid JSON at line {}, column {}", error.line(), error.column()))
    })?;
    let root = CstRootNode::parse(text, &ParseOptions::default());
    let root = root.map_err(|_| wrong("invalid JSON"))?;
    change(&root.object_value().ok_or_else(|| wrong("other JSON"))?)?;
    Ok(format!("{mark}{}", with_layout_of(text, &root.to_string())))
}

pub(super) fn expected(place: &str, what: &str, found: &str) -> String {
    format!("{place}: expected {what}, found {found}; nothing was changed")
}

/// Returns the object in a member, if there is such a member.
pub(super) fn object_of(top: &CstObject, name: &str) -> Result<Option<CstObject>, String> {
    let Some(found) = member(top, name) else { return Ok(None) };
    let found = found.object_value();
    found.map(Some).ok_or_else(|| expected(&format!("`{name}`"), "an object", "something else"))
}

fn list_of(hooks: &CstObject, event: &str) -> Result<Option<CstArray>, String> {
    let Some(list) = member(hooks, event) else { return Ok(None) };
    let place = format!("`hooks.{event}`");
    list.array_value().map(Some).ok_or_else(|| expected(&place, "a list", "something else"))
}

/// Returns the last member of that name, which is the one the client reads.
pub(super) fn member(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    let is_named = |it: &CstObjectProp| it.decoded_name().as_deref() == Some(name);
    object.properties().into_iter().rev().find(is_named)
}

/// Command in the list of an event: `[{"hooks": [{"command": "…"}]}]`.
struct Entry {
    command: Command,
    text: CstStringLit,
    hook: CstNode,
    hooks: CstArray,
    group: CstNode,
}

fn entries(list: &CstArray) -> Vec<Entry> {
    let mut entries = Vec::new();
    for group in list.elements() {
        let hooks = group.as_object().and_then(|it| member(&it, "hooks")?.array_value());
        let Some(hooks) = hooks else { continue };
        for hook in hooks.elements() {
            let command = hook.as_object().and_then(|it| member(&it, "command")?.value());
            let Some(text) = command.and_then(|it| it.as_string_lit()) else { continue };
            let Ok(line) = text.decoded_value() else { continue };
            let command = Command::read(&line);
            let (hooks, group) = (hooks.clone(), group.clone());
            entries.push(Entry { command, text, hook, hooks, group });
        }
    }
    entries
}

impl Entry {
    /// Removes the entry, and its group if it becomes empty.
    fn remove(self) {
        self.hook.remove();
        if self.hooks.elements().is_empty() {
            self.group.remove();
        }
    }
}

/// Adds `line` to the list of an event, or updates annalist's entry in it.
fn install_event(list: &CstArray, line: &str, timeout: u32) {
    let mut runs_us = false;
    for entry in entries(list) {
        if entry.command.is_ours && runs_us {
            entry.remove();
            continue;
        }
        runs_us |= entry.command.runs_us;
        if entry.command.is_ours && !entry.command.runs(line) {
            entry.text.set_raw_value(Value::from(entry.command.with(line)).to_string());
        }
    }
    if !runs_us {
        let object = |members: Vec<(&str, CstInputValue)>| {
            let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
            CstInputValue::Object(members.collect())
        };
        let hook = object(vec![
            ("type", "command".into()),
            ("command", line.into()),
            ("timeout", CstInputValue::Number(timeout.to_string())),
        ]);
        list.append(object(vec![("hooks", CstInputValue::Array(vec![hook]))]));
    }
}

/// Command of a hook. A command that only runs annalist may be updated; one in which the user runs
/// annalist among other things belongs to the user and is left unchanged.
struct Command {
    /// True if the command runs an annalist hook.
    runs_us: bool,
    /// True if the command does nothing else.
    is_ours: bool,
    words: Vec<String>,
}

impl Command {
    fn read(line: &str) -> Command {
        let words = shlex::split(line).unwrap_or_default();
        let is_us = |pair: &[String]| {
            let [program, word] = pair else { return false };
            is_annalist(program) && word == "hook"
        };
        let is_quoted = line.trim_start().starts_with(['\'', '"']);
        let is_joined = line.trim().contains('\n')
            || words.iter().skip(usize::from(is_quoted)).any(|word| word.contains(OPERATORS));
        Command {
            runs_us: words.windows(2).any(is_us),
            is_ours: words.get(..2).is_some_and(is_us) && !is_joined,
            words,
        }
    }

    fn runs(&self, line: &str) -> bool {
        self.words.iter().take(3).eq(shlex::split(line).unwrap_or_default().iter())
    }

    /// Returns the command `line` with the flags of this one.
    fn with(&self, line: &str) -> String {
        let flags = self.words.iter().skip(3).map(|word| quoted(word));
        [line.to_owned()].into_iter().chain(flags).collect::<Vec<_>>().join(" ")
    }
}

/// True if `program`, a name or path, is annalist.
pub(super) fn is_annalist(program: &str) -> bool {
    NAMES.contains(&program.rsplit(['/', '\\']).next().unwrap_or(program))
}

/// Quotes a word for a shell, if it needs to be.
pub(crate) fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |quoted| quoted.into_owned())
}

#[cfg(test)]
#[path = "settings_test.rs"]
mod tests;
