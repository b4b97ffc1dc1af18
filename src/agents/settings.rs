//! annalist's hooks in a client's settings file, which belongs to the user: everything else keeps
//! every byte.

use super::input::Event;
use super::json_edit::{Edits, parse};
use crate::domain::{Finding, Severity};
use crate::privacy::{Gate, Redacted};
use crate::text::lenient_json::decode;
use jsonc_parser::ast::{Array, Object, ObjectProp, Value as Node};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::errors::ParseErrorKind;
use serde_json::{Map, Value, json};
use similar::{ChangeTag, TextDiff};

/// Former timeout of all our hooks, in seconds.
const FORMER_TIMEOUT: &str = "10";
const NAMES: [&str; 2] = ["annalist", "annalist.exe"];
/// Characters that make a shell do more than run one program.
const OPERATORS: [char; 8] = ['$', '`', '|', ';', '&', '<', '>', '\n'];

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Merged {
    /// Up to date.
    Unchanged,
    /// New text.
    Changed(String),
    /// Contained only annalist's part; to be deleted.
    Removed,
    /// A user's file or entry in the place of one of annalist's; left alone.
    NotOurs,
    /// Not readable by the client, and left alone. The finding has the rule `bad-settings` and
    /// gives the position.
    Malformed(Finding),
}

impl Merged {
    pub(super) fn malformed(detail: String) -> Merged {
        Merged::Malformed(Finding::new(Severity::Error, "bad-settings", 0, detail))
    }
}

#[derive(Debug)]
pub(crate) struct HookSettings {
    /// The client's name for an event; `None` if it lacks the event.
    pub name: fn(Event) -> Option<&'static str>,
    /// Hook timeout in the client's unit.
    pub timeout: fn(Event) -> u32,
    /// True if the client reads settings with comments.
    pub comments: bool,
}

/// Adds annalist's hooks to a settings file or a new one: one entry per event, which runs
/// `program`, a name or path. An entry that runs annalist already stays, with its own path and
/// flags, and with its timeout unless that is a former one of ours; a second one for the same event is removed.
pub(super) fn install(settings: &HookSettings, existing: Option<&str>, program: &str) -> Merged {
    edit(existing_or_new(existing), settings.comments, |top, edits| {
        let hooks = object_of(top, "hooks")?;
        let mut new = Map::new();
        for event in Event::ALL {
            let Some(name) = (settings.name)(event) else { continue };
            let argument = event.argument();
            let line = format!("{} hook {argument}", quoted(program));
            let timeout = (settings.timeout)(event);
            let hook = json!({"type": "command", "command": line, "timeout": timeout});
            let group = json!({"hooks": [hook]});
            match hooks.map(|hooks| list_of(hooks, name)).transpose()?.flatten() {
                Some(list) => install_event(edits, list, &argument, timeout, &group),
                None => drop(new.insert(name.to_owned(), json!([group]))),
            }
        }
        match hooks {
            Some(hooks) => edits.add_members(hooks, &new),
            None => edits.add_members(top, &Map::from_iter([("hooks".to_owned(), new.into())])),
        }
        Ok(true)
    })
}

/// Text of a settings file; `{}` if it is absent or blank.
pub(super) fn existing_or_new(existing: Option<&str>) -> &str {
    let blank = ['\u{feff}', ' ', '\n', '\r', '\t'];
    existing.filter(|text| !text.trim_matches(blank).is_empty()).unwrap_or("{}\n")
}

/// True if a hook of a settings file runs annalist, alone or among other things.
pub(crate) fn has_hook(settings: &str) -> bool {
    let (settings, _) = decode(settings, &["hooks"]);
    let events = settings["hooks"].as_object().into_iter().flat_map(Map::values);
    let groups = events.filter_map(Value::as_array).flatten();
    let mut hooks = groups.filter_map(|group| group["hooks"].as_array()).flatten();
    hooks.any(|hook| hook["command"].as_str().is_some_and(|line| Command::read(line).runs_us))
}

/// True if settings of Claude Code enable the plugin, false if they disable it, `None` if they do not name it.
pub(crate) fn has_plugin(settings: &str) -> Option<bool> {
    let (settings, _) = decode(settings, &["enabledPlugins"]);
    let all = settings["enabledPlugins"].as_object()?.iter();
    let ours = all.filter(|(name, _)| name.split('@').next() == Some("annalist"));
    ours.map(|(_, on)| *on == json!(true)).max()
}

/// Removes the hooks that only run annalist from a settings file, and lists that become empty.
pub(super) fn remove(existing: &str) -> Merged {
    edit(existing, true, |top, edits| {
        let Some(hooks) = object_of(top, "hooks")? else { return Ok(true) };
        let mut is_cut = Vec::new();
        for property in &hooks.properties {
            let list = property.value.as_array();
            let is_ours = |command: Command, _: &Object<'_>| command.is_ours;
            is_cut.push(list.is_some_and(|it| !cut_hooks(edits, property.range, it, is_ours)));
        }
        let whole = member(top, "hooks").map_or(hooks.range, |it| it.range);
        if !edits.cut(whole, hooks.range, &hooks.properties, &is_cut) {
            edits.cut_member_anyway(top, "hooks");
        }
        Ok(true)
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

/// Edits a file; `comments` says that the client reads comments in it. `change` returns false if the entry is not ours.
pub(super) fn edit(
    existing: &str,
    comments: bool,
    change: impl FnOnce(&Object<'_>, &mut Edits<'_>) -> Result<bool, String>,
) -> Merged {
    let text = existing.strip_prefix('\u{feff}').unwrap_or(existing);
    let mark = &existing[..existing.len() - text.len()];
    let wrong = |found: &str| expected("the file", "one JSON object", found);
    let parsed = parse(text, comments).map_err(|error| {
        let place = format!("at line {}, column {}", error.line_display(), error.column_display());
        let is_comment = matches!(error.kind(), ParseErrorKind::CommentsNotAllowed);
        let is_comma = matches!(error.kind(), ParseErrorKind::TrailingCommasNotAllowed);
        wrong(&match (is_comment, is_comma) {
            (true, _) => format!("a comment, which this client does not read, {place}: delete it"),
            (_, true) => format!("a comma behind the last entry {place}: delete it"),
            (false, false) => format!("invalid JSON {place}"),
        })
    });
    let edited = parsed.and_then(|(root, mut edits)| {
        let top = root.as_ref().and_then(Node::as_object).ok_or_else(|| wrong("other JSON"))?;
        Ok(change(top, &mut edits)?.then(|| format!("{mark}{}", edits.apply())))
    });
    match edited {
        Ok(None) => Merged::NotOurs,
        Ok(Some(text)) if text == existing => Merged::Unchanged,
        Ok(Some(text)) => Merged::Changed(text),
        Err(detail) => Merged::malformed(detail),
    }
}

pub(super) fn expected(place: &str, what: &str, found: &str) -> String {
    format!("{place}: expected {what}, found {found}; nothing was changed")
}

pub(super) fn object_of<'a, 't>(
    top: &'a Object<'t>,
    name: &str,
) -> Result<Option<&'a Object<'t>>, String> {
    let wrong = || expected(&format!("`{name}`"), "an object", "something else");
    member(top, name).map(|it| it.value.as_object().ok_or_else(wrong)).transpose()
}

fn list_of<'a, 't>(hooks: &'a Object<'t>, event: &str) -> Result<Option<&'a Array<'t>>, String> {
    let wrong = || expected(&format!("`hooks.{event}`"), "a list", "something else");
    member(hooks, event).map(|it| it.value.as_array().ok_or_else(wrong)).transpose()
}

/// Returns the last member of that name, which is the one the client reads.
pub(super) fn member<'a, 't>(object: &'a Object<'t>, name: &str) -> Option<&'a ObjectProp<'t>> {
    object.properties.iter().rfind(|it| it.name.as_str() == name)
}

/// Cuts hooks from the list of an event, `[{"hooks": [{"command": "…"}]}]`, and groups that become
/// empty. Returns false, and cuts none, if nothing would be left of `whole`, the list's member.
fn cut_hooks<'a>(
    edits: &mut Edits<'_>,
    whole: Range,
    list: &'a Array<'_>,
    mut is_cut: impl FnMut(Command, &'a Object<'a>) -> bool,
) -> bool {
    let mut groups = Vec::new();
    for group in &list.elements {
        let hooks = group.as_object().and_then(|it| member(it, "hooks")?.value.as_array());
        groups.push(hooks.is_some_and(|hooks| {
            let is_cut = hooks.elements.iter().map(|hook| {
                let hook = hook.as_object();
                let line = hook.and_then(|it| member(it, "command")?.value.as_string_lit());
                hook.zip(line).is_some_and(|(hook, line)| is_cut(Command::read(&line.value), hook))
            });
            let is_cut: Vec<bool> = is_cut.collect();
            !edits.cut(group.range(), hooks.range, &hooks.elements, &is_cut)
        }));
    }
    edits.cut(whole, list.range, &list.elements, &groups)
}

/// Adds a group to the list of an event, unless an entry runs annalist: that gets the argument of
/// the event if it has another, and `timeout` instead of the former one.
fn install_event(
    edits: &mut Edits<'_>,
    list: &Array<'_>,
    argument: &str,
    timeout: u32,
    group: &Value,
) {
    let (mut runs_us, mut updates) = (false, Vec::new());
    cut_hooks(edits, list.range, list, |command, hook| {
        let is_second = command.is_ours && runs_us;
        runs_us |= command.runs_us;
        if command.is_ours && !is_second {
            let (line, wait) = (member(hook, "command"), member(hook, "timeout"));
            let is_other = command.words.get(2).is_none_or(|it| it != argument);
            let is_former = |it: &&ObjectProp<'_>| {
                it.value.as_number_lit().is_some_and(|it| it.value == FORMER_TIMEOUT)
            };
            let with_argument =
                |it: &ObjectProp<'_>| (it.value.range(), command.with(argument).into());
            updates.extend(line.filter(|_| is_other).map(with_argument));
            updates
                .extend(wait.filter(is_former).map(|it| (it.value.range(), Value::from(timeout))));
        }
        is_second
    });
    for (range, new) in updates {
        edits.replace(range, new);
    }
    if !runs_us {
        edits.add_element(list, group);
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

    /// Returns this command with another argument, and its own program and flags.
    fn with(&self, argument: &str) -> String {
        let mut words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
        words.splice(2..words.len().min(3), [argument.to_owned()]);
        words.join(" ")
    }
}

/// True if `program`, a name or path, is annalist.
pub(super) fn is_annalist(program: &str) -> bool {
    NAMES.contains(&program.rsplit(['/', '\\']).next().unwrap_or(program))
}

pub(crate) fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |quoted| quoted.into_owned())
}

#[cfg(test)]
#[path = "settings_test.rs"]
mod tests;
