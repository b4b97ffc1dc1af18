//! annalist's entry among the MCP servers in Codex's `config.toml`, which belongs to the user.

use super::settings::{Merged, expected, is_annalist};
use crate::domain::{Finding, Severity};
use toml::{Table, Value};

const SERVERS: &str = "mcp_servers";
/// Name of annalist's entry.
const NAME: &str = "annalist";

/// Registers `program mcp` in a file or a new one. Updates the program of an existing annalist
/// entry and keeps its other fields; an entry of the same name for another program stays.
pub(super) fn register(existing: Option<&str>, program: &str) -> Merged {
    let text = existing.unwrap_or_default();
    edit(text, |before| {
        let line = Value::from(program).to_string();
        let Some(entry) = entry(before) else {
            let gap = match text {
                "" => "",
                text if text.ends_with('\n') => "\n",
                _ => "\n\n",
            };
            let added = format!("{gap}[{SERVERS}.{NAME}]\ncommand = {line}\nargs = [\"mcp\"]\n");
            let added = if text.contains("\r\n") { added.replace('\n', "\r\n") } else { added };
            return Some(format!("{text}{added}"));
        };
        let older =
            entry.get("command")?.as_str().filter(|it| is_annalist(it) && *it != program)?;
        let is_command = |line: &str| line.trim_start().starts_with("command");
        let lines = sections(text).map(|(is_ours, own)| match is_ours && is_command(own) {
            true => own.replace(&Value::from(older).to_string(), &line),
            false => own.to_owned(),
        });
        Some(lines.collect())
    })
}

/// Removes annalist's entry, including the user's additions to it.
pub(super) fn unregister(existing: &str) -> Merged {
    edit(existing, |before| {
        entry(before)?.get("command")?.as_str().filter(|it| is_annalist(it))?;
        let mut left = String::new();
        let mut is_in_ours = false;
        for (is_ours, line) in sections(existing) {
            if is_ours && !is_in_ours {
                // The blank line above the entry.
                let above = left.strip_suffix("\r\n").or_else(|| left.strip_suffix('\n'));
                let is_blank = above.is_some_and(|above| above.is_empty() || above.ends_with('\n'));
                left.truncate(above.filter(|_| is_blank).map_or(left.len(), str::len));
            }
            is_in_ours = is_ours;
            if !is_ours {
                left.push_str(line);
            }
        }
        Some(left)
    })
}

/// Returns each line, and true for lines of annalist's entry.
fn sections(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let mut is_ours = false;
    text.split_inclusive('\n').map(move |line| {
        if let Some(header) = line.trim_start().strip_prefix('[') {
            let name: String = header.chars().filter(|it| !" \t\"'".contains(*it)).collect();
            let rest = name.strip_prefix(SERVERS).and_then(|it| it.strip_prefix('.'));
            let rest = rest.and_then(|it| it.strip_prefix(NAME));
            is_ours = rest.is_some_and(|rest| rest.starts_with([']', '.']));
        }
        (is_ours, line)
    })
}

fn entry(table: &Table) -> Option<&Table> {
    table.get(SERVERS)?.get(NAME)?.as_table()
}

/// Applies an edit if it changes nothing but annalist's entry.
fn edit(existing: &str, change: impl FnOnce(&Table) -> Option<String>) -> Merged {
    let wrong = |found: &str| {
        let detail = expected("the file", "TOML that Codex reads", found);
        Merged::Malformed(Finding::new(Severity::Error, "bad-settings", 0, detail))
    };
    let read = |text: &str| toml::from_str::<Table>(text).ok();
    let Some(before) = read(existing) else { return wrong("no TOML") };
    match change(&before) {
        None => Merged::Unchanged,
        Some(text) if text == existing => Merged::Unchanged,
        Some(text) if read(&text).map(theirs) == Some(theirs(before)) => Merged::Changed(text),
        Some(_) => wrong("an entry in a form that is not edited; run `codex mcp`"),
    }
}

/// Everything but annalist's entry.
fn theirs(mut table: Table) -> Table {
    if let Some(Value::Table(servers)) = table.get_mut(SERVERS) {
        servers.remove(NAME);
        if servers.is_empty() {
            table.remove(SERVERS);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(theirs: &str) -> String {
        let Merged::Changed(text) = register(Some(theirs), "annalist") else { panic!("{theirs}") };
        assert!(text.starts_with(theirs), "{text}");
        assert_eq!(register(Some(&text), "annalist"), Merged::Unchanged, "twice is once: {text}");
        let Merged::Changed(left) = unregister(&text) else { panic!("{text}") };
        assert_eq!(left.trim_end(), theirs.trim_end());
        text
    }

    #[test]
    fn our_server_is_added_once_and_removed_and_theirs_keep_every_byte() {
        let new = "[mcp_servers.annalist]\ncommand = \"annalist\"\nargs = [\"mcp\"]\n";
        assert_eq!(register(None, "annalist"), Merged::Changed(new.to_owned()));
        check("# mine\nmodel = 'gpt-5' # best\n\n[mcp_servers.x]\ncommand = \"y\"\n");
        check("a = 1");
        check("[a]\r\nb = 2\r\n");
        let text = check("[projects.\"/p\"]\ntrust_level = \"trusted\"\n");
        let more = format!("{text}env = {{ A = \"b\" }}\n\n[mcp_servers.annalist.tools]\n\n[z]\n");
        let Merged::Changed(left) = unregister(&more) else { panic!() };
        assert_eq!(left, "[projects.\"/p\"]\ntrust_level = \"trusted\"\n[z]\n");
        let Merged::Changed(moved) = register(Some(&more), "/o p/annalist") else { panic!() };
        assert_eq!(moved, more.replace("command = \"annalist\"", "command = \"/o p/annalist\""));
    }

    #[test]
    fn what_is_not_ours_or_cannot_be_edited_stays() {
        let docker = "[mcp_servers.annalist]\ncommand = \"docker\"\n";
        assert_eq!(register(Some(docker), "annalist"), Merged::Unchanged);
        assert_eq!(unregister(docker), Merged::Unchanged);
        assert_eq!(unregister("a = 1\n"), Merged::Unchanged);
        for wrong in ["a = ", "mcp_servers = {}\n", "mcp_servers = 1\n"] {
            assert!(matches!(register(Some(wrong), "annalist"), Merged::Malformed(_)), "{wrong}");
        }
        let inline = "mcp_servers = { annalist = { command = \"/old/annalist\" } }\n";
        assert_eq!(unregister(inline), Merged::Unchanged);
    }
}
