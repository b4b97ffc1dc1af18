//! Our entries in a settings file of Claude Code: put in, brought up to date, taken out. The file belongs
//! to a person: its text is edited in place, and what is not ours keeps every byte.

mod command;
mod diff;
mod edit;
mod json;
#[cfg(test)]
mod tests;

pub use diff::changes;

use crate::domain::{Finding, Severity};
use command::Command;
use edit::{Edit, Style};
use json::{Element, elements, member, members};
use serde_json::Value;
use std::ops::Range;

use super::Event;

/// Seconds that the client waits for a hook of ours. One takes a few milliseconds; this is for a machine
/// that is busy.
const TIMEOUT_SECS: u32 = 10;
/// Edits of one file at most: each puts one entry right, and a file holds a handful.
const EDITS_MAX: usize = 1_000;

/// What becomes of a settings file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Merged {
    /// It is as it should be.
    Unchanged,
    /// Its new text.
    Changed(String),
    /// It is not what the client could read, and nothing is to be changed: the finding says where, with
    /// the rule `bad-settings`.
    Malformed(Finding),
}

/// Puts our hooks into a settings file, or into a new one: one entry for each event, run as `program`, a
/// name or path. An older entry of ours runs `program` from now on and keeps its flags; a second
/// one for the same event goes.
pub fn install(existing: Option<&str>, program: &str) -> Merged {
    let text =
        existing.filter(|text| !text.trim_matches(['\u{feff}', ' ', '\n', '\r', '\t']).is_empty());
    let begun = text.unwrap_or("{}\n");
    let merged = rewrite(begun, |text, top| {
        let hooks = Hooks::of(text, top)?;
        Ok(surplus(&hooks, program).or_else(|| missing(text, top, &hooks, program)))
    });
    match merged {
        Merged::Unchanged if text.is_none() => Merged::Changed(begun.to_owned()),
        Merged::Unchanged | Merged::Changed(_) | Merged::Malformed(_) => merged,
    }
}

/// Takes our hooks out of a settings file again, with the lists that held nothing else.
pub fn remove(existing: &str) -> Merged {
    rewrite(existing, |text, top| {
        let hooks = Hooks::of(text, top)?;
        let ours = hooks.entries.iter().find(|entry| entry.command.is_ours);
        Ok(ours.map(|entry| Edit::remove(&entry.within)))
    })
}

/// Edits a file until nothing is left to edit.
fn rewrite(
    existing: &str,
    next: impl Fn(&str, &Range<usize>) -> Result<Option<Edit>, String>,
) -> Merged {
    let malformed = |detail: String| {
        Merged::Malformed(Finding::new(Severity::Error, "bad-settings", 0, detail))
    };
    let mut text = existing.to_owned();
    for _ in 0..EDITS_MAX {
        let top = match json::top(&text) {
            Ok(top) => top,
            Err(found) => return malformed(expected("the file", "one JSON object", &found)),
        };
        match next(&text, &top) {
            Err(detail) => return malformed(detail),
            Ok(Some(edit)) => text = edit.apply(&text),
            Ok(None) if text == existing => return Merged::Unchanged,
            Ok(None) => return Merged::Changed(text),
        }
    }
    malformed(expected("`hooks`", "fewer entries of ours", "more than can be put right"))
}

fn expected(place: &str, what: &str, found: &str) -> String {
    format!("settings of Claude Code: {place}: expected {what}, found {found}; nothing was changed")
}

/// What `hooks` holds.
struct Hooks {
    /// The object, if there is one.
    at: Option<Range<usize>>,
    /// The list of each event that has one.
    lists: Vec<(String, Range<usize>)>,
    /// Every command, in order.
    entries: Vec<Entry>,
}

/// A command of a hook.
struct Entry {
    /// The event it is run at.
    event: String,
    /// What is run.
    command: Command,
    /// Where the command's text is.
    at: Range<usize>,
    /// What would be taken away with it: itself, or the outermost list that holds nothing else.
    within: Element,
}

impl Hooks {
    fn of(text: &str, top: &Range<usize>) -> Result<Hooks, String> {
        let Some(found) = member(text, top, "hooks") else {
            return Ok(Hooks { at: None, lists: Vec::new(), entries: Vec::new() });
        };
        let at = found.value.clone();
        if !text[at.clone()].starts_with('{') {
            return Err(expected("`hooks`", "an object", "something else"));
        }
        let events = members(text, &at);
        let mut hooks = Hooks { at: Some(at), lists: Vec::new(), entries: Vec::new() };
        for event in &events {
            let list = event.element.value.clone();
            if !text[list.clone()].starts_with('[') {
                // Only an event of ours has to hold a list; what others mean is theirs.
                if Event::ALL.iter().any(|own| own.name() == event.name) {
                    let place = format!("`hooks.{}`", event.name);
                    return Err(expected(&place, "a list", "something else"));
                }
                continue;
            }
            let outer = if events.len() == 1 { &found } else { &event.element };
            hooks.entries.extend(entries(text, &event.name, &event.element, outer));
            hooks.lists.push((event.name.clone(), list));
        }
        Ok(hooks)
    }
}

/// The commands in the list of an event. `outer` is what goes with the last of them.
fn entries(text: &str, event: &str, list: &Element, outer: &Element) -> Vec<Entry> {
    let groups = elements(text, &list.value);
    let mut entries = Vec::new();
    for group in &groups {
        let Some(held) = member(text, &group.value, "hooks") else { continue };
        let hooks = elements(text, &held.value);
        for hook in &hooks {
            let Some(command) = member(text, &hook.value, "command") else { continue };
            let Ok(run) = serde_json::from_str::<String>(&text[command.value.clone()]) else {
                continue;
            };
            let within = match (hooks.len(), groups.len()) {
                (1, 1) => outer,
                (1, _) => group,
                (_, _) => hook,
            };
            entries.push(Entry {
                event: event.to_owned(),
                command: Command::read(&run),
                at: command.value,
                within: within.clone(),
            });
        }
    }
    entries
}

/// The first entry of ours that stands beside another for its event or is not as it should be, put right.
fn surplus(hooks: &Hooks, program: &str) -> Option<Edit> {
    for (at, entry) in hooks.entries.iter().enumerate() {
        let Some(event) = Event::ALL.into_iter().find(|event| event.name() == entry.event) else {
            continue;
        };
        if !entry.command.is_ours {
            continue;
        }
        let runs_before = |other: &Entry| other.event == entry.event && other.command.runs_us;
        if hooks.entries.iter().take(at).any(runs_before) {
            return Some(Edit::remove(&entry.within));
        }
        let command = entry.command.with(program, event);
        if let Some(command) = command {
            return Some(Edit::replace(&entry.at, &Value::String(command).to_string()));
        }
    }
    None
}

/// The first event of ours without an entry, given one.
fn missing(text: &str, top: &Range<usize>, hooks: &Hooks, program: &str) -> Option<Edit> {
    let runs_us = |event: Event| {
        let is_its = |entry: &&Entry| entry.event == event.name();
        hooks.entries.iter().filter(is_its).any(|entry| entry.command.runs_us)
    };
    let event = Event::ALL.into_iter().find(|event| !runs_us(*event))?;
    let group = serde_json::json!({
        "hooks": [{
            "type": "command",
            "command": Command::line(program, event),
            "timeout": TIMEOUT_SECS,
        }],
    });
    let style = Style::of(text);
    let list = hooks.lists.iter().rev().find(|(name, _)| name == event.name());
    Some(match (list, &hooks.at) {
        (Some((_, list)), _) => style.append(text, list, None, &group),
        (None, Some(at)) => style.append(text, at, Some(event.name()), &Value::Array(vec![group])),
        (None, None) => {
            let hooks = serde_json::json!({ event.name(): [group] });
            style.append(text, top, Some("hooks"), &hooks)
        }
    })
}
