//! annalist's entry among the MCP servers in files that belong to the user: a project's `.mcp.json`,
//! and Codex's `config.toml`.

use super::settings::{Merged, edit, existing_or_new, expected, is_annalist, member, object_of};
use jsonc_parser::ast::ObjectProp;
use serde_json::{Map, json};
use toml::Table;

const SERVERS: &str = "mcpServers";
const CODEX_SERVERS: &str = "mcp_servers";
/// Name of annalist's entry; clients name its tools after it.
const NAME: &str = "annalist";

/// Registers `program mcp` in a file or a new one. An existing entry of the name stays; one with another command is not
/// ours.
pub(super) fn register(existing: Option<&str>, comments: bool, program: &str) -> Merged {
    edit(existing_or_new(existing), comments, |top, edits| {
        let servers = object_of(top, SERVERS)?;
        if let Some(entry) = servers.and_then(|servers| member(servers, NAME)) {
            return Ok(is_as_written(entry).is_some());
        }
        let entry = json!({"command": program, "args": ["mcp"]});
        let entry = Map::from_iter([(NAME.to_owned(), entry)]);
        match servers {
            Some(servers) => edits.add_members(servers, &entry),
            None => edits.add_members(top, &Map::from_iter([(SERVERS.to_owned(), entry.into())])),
        }
        Ok(true)
    })
}

/// Removes annalist's entry, and the list if it is then empty. An entry to which a person added
/// anything but a path is theirs, and stays.
pub(super) fn unregister(existing: &str) -> Merged {
    edit(existing, true, |top, edits| {
        let Some(servers) = object_of(top, SERVERS)? else { return Ok(true) };
        let is_as_written = member(servers, NAME).and_then(is_as_written);
        let whole = member(top, SERVERS).map_or(servers.range, |it| it.range);
        if is_as_written == Some(true) && !edits.cut_member(whole, servers, NAME) {
            edits.cut_member_anyway(top, SERVERS);
        }
        Ok(is_as_written != Some(false))
    })
}

/// True for an entry that is as annalist writes it, with any path; `None` for one that runs another
/// program.
fn is_as_written(entry: &ObjectProp<'_>) -> Option<bool> {
    let entry = entry.value.as_object()?;
    let command = member(entry, "command")?.value.as_string_lit()?;
    let args = member(entry, "args").and_then(|it| it.value.as_array());
    let is_mcp = args.is_some_and(|args| match args.elements.as_slice() {
        [only] => only.as_string_lit().is_some_and(|it| it.value == "mcp"),
        _ => false,
    });
    is_annalist(&command.value).then_some(is_mcp && entry.properties.len() == 2)
}

/// Registers `program mcp` in a file or a new one. An existing entry of the name stays; one with another command is not
/// ours.
pub(super) fn register_in_codex(existing: Option<&str>, program: &str) -> Merged {
    let text = existing.unwrap_or_default();
    edit_toml(text, |before| {
        if let Some(entry) = entry(before) {
            return if runs_us(entry) { Merged::Unchanged } else { Merged::NotOurs };
        }
        let line = toml::Value::from(program).to_string();
        // Without a blank line, the entry is removed with the line end in front of it.
        let gap = if text.is_empty() { "" } else { "\n" };
        let added = format!("{gap}[{CODEX_SERVERS}.{NAME}]\ncommand = {line}\nargs = [\"mcp\"]\n");
        let added = if text.contains("\r\n") { added.replace('\n', "\r\n") } else { added };
        Merged::Changed(format!("{text}{added}"))
    })
}

/// Removes annalist's entry, but not comments. An entry to which a person added anything but a path
/// is theirs, and stays.
pub(super) fn unregister_in_codex(existing: &str) -> Merged {
    edit_toml(existing, |before| {
        let ours = entry(before).filter(|it| runs_us(it));
        let Some(entry) = ours else { return Merged::Unchanged };
        let (mut left, mut end, mut is_in_ours) = (String::new(), 0, false);
        for (is_ours, line) in sections(existing) {
            let is_ours = is_ours && !line.trim_start().starts_with('#');
            if is_ours && !is_in_ours {
                // The blank line above the entry.
                let above = left.strip_suffix("\r\n").or_else(|| left.strip_suffix('\n'));
                let is_blank = above.is_some_and(|above| above.is_empty() || above.ends_with('\n'));
                end = above.map_or(left.len(), str::len);
                left.truncate(if is_blank { end } else { left.len() });
            }
            is_in_ours = is_ours;
            if !is_ours {
                left.push_str(line);
                end = left.len();
            }
        }
        left.truncate(end);
        let is_mcp = entry.get("args").is_some_and(|args| *args == toml::Value::from(vec!["mcp"]));
        let is_theirs = !is_mcp || entry.len() != 2 || left == existing;
        if is_theirs { Merged::NotOurs } else { Merged::Changed(left) }
    })
}

/// Returns each line, and true for lines of annalist's entry.
fn sections(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let mut is_ours = false;
    text.split_inclusive('\n').map(move |line| {
        if let Some(header) = line.trim_start().strip_prefix('[') {
            let name: String = header.chars().filter(|it| !" \t\"'".contains(*it)).collect();
            let rest = name.strip_prefix(CODEX_SERVERS).and_then(|it| it.strip_prefix('.'));
            let rest = rest.and_then(|it| it.strip_prefix(NAME));
            is_ours = rest.is_some_and(|rest| rest.starts_with([']', '.']));
        }
        (is_ours, line)
    })
}

fn entry(table: &Table) -> Option<&Table> {
    table.get(CODEX_SERVERS)?.get(NAME)?.as_table()
}

fn runs_us(entry: &Table) -> bool {
    entry.get("command").and_then(toml::Value::as_str).is_some_and(is_annalist)
}

/// Applies an edit if it changes nothing but annalist's entry.
fn edit_toml(existing: &str, change: impl FnOnce(&Table) -> Merged) -> Merged {
    let wrong =
        |found: &str| Merged::malformed(expected("the file", "TOML that Codex reads", found));
    let read = |text: &str| toml::from_str::<Table>(text).ok();
    let Some(before) = read(existing) else { return wrong("invalid TOML") };
    let merged = change(&before);
    if let Merged::Changed(text) = &merged
        && read(text).map(theirs) != Some(theirs(before))
    {
        return wrong("an entry that cannot be edited; run `codex mcp`");
    }
    merged
}

/// Everything but annalist's entry.
fn theirs(mut table: Table) -> Table {
    if let Some(toml::Value::Table(servers)) = table.get_mut(CODEX_SERVERS) {
        servers.remove(NAME);
        if servers.is_empty() {
            table.remove(CODEX_SERVERS);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[track_caller]
    fn registered(existing: Option<&str>, program: &str) -> String {
        let Merged::Changed(text) = register(existing, false, program) else {
            panic!("{existing:?}")
        };
        assert_eq!(
            register(Some(&text), false, program),
            Merged::Unchanged,
            "twice is once: {text}"
        );
        text
    }

    #[test]
    fn a_new_file_has_our_server_and_loses_it_again() {
        let text = registered(None, "annalist");
        let value: Value = serde_json::from_str(&text).unwrap();
        let expected = serde_json::json!({"command": "annalist", "args": ["mcp"]});
        assert_eq!(value["mcpServers"]["annalist"], expected);
        assert_eq!(unregister(&text), Merged::Changed("{}\n".to_owned()));
        assert_eq!(unregister("{}\n"), Merged::Unchanged);
    }

    #[test]
    fn other_servers_keep_every_byte_and_ours_its_other_members() {
        let theirs = "{\n\t\"mcpServers\": {\n\t\t\"x\": {\"command\" : \"caf\\u00e9\"}\n\t}\n}";
        let text = registered(Some(theirs), "/old/annalist");
        assert!(text.contains("{\"command\" : \"caf\\u00e9\"}"), "{text}");
        assert_eq!(unregister(&text), Merged::Changed(theirs.to_owned()));
        let changed = text.replace("\"mcp\"", "\"mcp\", \"--config\", \"c.toml\"");
        assert_eq!(register(Some(&changed), false, "annalist"), Merged::Unchanged);
        assert_eq!(unregister(&changed), Merged::NotOurs, "what a person added is theirs");
        let env = text.replace("\"command\": \"/old", "\"env\": {}, \"command\": \"/old");
        assert_eq!(unregister(&env), Merged::NotOurs);
    }

    #[test]
    fn servers_that_hold_a_comment_stay() {
        for theirs in [
            "{\n  // servers\n  \"mcpServers\": {\n    // \"old\": {}\n  }\n}",
            "{\"mcpServers\": /* none */ {}, \"a\": 1}",
        ] {
            let Merged::Changed(text) = register(Some(theirs), true, "annalist") else {
                panic!("{theirs}")
            };
            assert_eq!(unregister(&text), Merged::Changed(theirs.to_owned()));
        }
    }

    #[test]
    fn another_program_under_our_name_and_what_is_no_object_stay() {
        let theirs = r#"{"mcpServers": {"annalist": {"command": "docker", "args": ["run"]}}}"#;
        assert_eq!(register(Some(theirs), false, "annalist"), Merged::NotOurs);
        assert_eq!(unregister(theirs), Merged::Unchanged);
        for wrong in ["[]", "{\"mcpServers\": 1}", "{"] {
            assert!(
                matches!(register(Some(wrong), false, "annalist"), Merged::Malformed(_)),
                "{wrong}"
            );
        }
    }
}

#[cfg(test)]
mod codex_tests {
    use super::*;

    #[track_caller]
    fn check(theirs: &str) -> String {
        let Merged::Changed(text) = register_in_codex(Some(theirs), "annalist") else {
            panic!("{theirs}")
        };
        assert!(text.starts_with(theirs), "{text}");
        assert_eq!(
            register_in_codex(Some(&text), "annalist"),
            Merged::Unchanged,
            "twice is once: {text}"
        );
        let Merged::Changed(left) = unregister_in_codex(&text) else { panic!("{text}") };
        assert_eq!(left, theirs);
        text
    }

    #[test]
    fn our_server_is_added_once_and_removed_and_theirs_keep_every_byte() {
        let new = "[mcp_servers.annalist]\ncommand = \"annalist\"\nargs = [\"mcp\"]\n";
        assert_eq!(register_in_codex(None, "annalist"), Merged::Changed(new.to_owned()));
        check("# mine\nmodel = 'gpt-5' # best\n\n[mcp_servers.x]\ncommand = \"y\"\n");
        check("a = 1");
        check("[a]\r\nb = 2\r\n");
        let text = check("[projects.\"/p\"]\ntrust_level = \"trusted\"\n");
        let more = format!("{text}\n# theirs\n[z]\n");
        let Merged::Changed(left) = unregister_in_codex(&more) else { panic!() };
        assert_eq!(left, "[projects.\"/p\"]\ntrust_level = \"trusted\"\n# theirs\n[z]\n");
        let own = text.replace("\"annalist\"", "\"/o p/annalist\"");
        assert_eq!(register_in_codex(Some(&own), "annalist"), Merged::Unchanged);
        assert!(matches!(unregister_in_codex(&own), Merged::Changed(_)));
        let env = format!("{own}\n[mcp_servers.annalist.env]\nA = \"b\"\n");
        assert_eq!(register_in_codex(Some(&env), "annalist"), Merged::Unchanged);
        assert_eq!(unregister_in_codex(&env), Merged::NotOurs, "what a person added is theirs");
    }

    #[test]
    fn what_is_not_ours_or_cannot_be_edited_stays() {
        let docker = "[mcp_servers.annalist]\ncommand = \"docker\"\n";
        for theirs in [docker, "[mcp_servers.annalist.env]\nA = \"1\"\n"] {
            assert_eq!(register_in_codex(Some(theirs), "annalist"), Merged::NotOurs, "{theirs}");
        }
        assert_eq!(unregister_in_codex(docker), Merged::Unchanged);
        assert_eq!(unregister_in_codex("a = 1\n"), Merged::Unchanged);
        for wrong in ["a = ", "mcp_servers = {}\n", "mcp_servers = 1\n"] {
            assert!(
                matches!(register_in_codex(Some(wrong), "annalist"), Merged::Malformed(_)),
                "{wrong}"
            );
        }
        let inline = "mcp_servers = { annalist = { command = \"annalist\" } }\n";
        assert_eq!(unregister_in_codex(inline), Merged::NotOurs);
    }
}
