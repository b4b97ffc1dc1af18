//! annalist's entry among the servers in a project's `.mcp.json`, which belongs to the user.

use super::settings::{Merged, edit, existing_or_new, expected, is_annalist, member};
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstStringLit};
use serde_json::Value;

const SERVERS: &str = "mcpServers";
/// Name of annalist's entry; clients name its tools after it.
const NAME: &str = "annalist";

/// Registers `program mcp` in a file or a new one. Updates the program of an existing annalist
/// entry and keeps its other fields; an entry of the same name for another program stays.
pub(crate) fn register(existing: Option<&str>, program: &str) -> Merged {
    edit(existing_or_new(existing), |top| {
        let servers = match servers(top)? {
            Some(servers) => servers,
            None => top.object_value_or_set(SERVERS),
        };
        match member(&servers, NAME) {
            None => {
                let arguments = CstInputValue::Array(vec!["mcp".into()]);
                let entry = [("command", program.into()), ("args", arguments)];
                let entry = entry.map(|(name, value)| (name.to_owned(), value));
                servers.append(NAME, CstInputValue::Object(entry.into()));
            }
            Some(entry) => {
                if let Some((text, line)) = command(&entry)
                    && is_annalist(&line)
                    && line != program
                {
                    text.set_raw_value(Value::from(program).to_string());
                }
            }
        }
        Ok(())
    })
}

/// Removes annalist's entry, and the list if it is then empty.
pub(crate) fn unregister(existing: &str) -> Merged {
    edit(existing, |top| {
        let Some(servers) = servers(top)? else { return Ok(()) };
        let ours = member(&servers, NAME)
            .filter(|entry| command(entry).is_some_and(|(_, line)| is_annalist(&line)));
        let Some(ours) = ours else { return Ok(()) };
        ours.remove();
        if servers.properties().is_empty() {
            member(top, SERVERS).into_iter().for_each(CstObjectProp::remove);
        }
        Ok(())
    })
}

fn servers(top: &CstObject) -> Result<Option<CstObject>, String> {
    let Some(servers) = member(top, SERVERS) else { return Ok(None) };
    let place = format!("`{SERVERS}`");
    servers.object_value().map(Some).ok_or_else(|| expected(&place, "an object", "something else"))
}

/// Command of an entry, as a syntax node and as the decoded text.
fn command(entry: &CstObjectProp) -> Option<(CstStringLit, String)> {
    let text = member(&entry.object_value()?, "command")?.value()?.as_string_lit()?;
    let line = text.decoded_value().ok()?;
    Some((text, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn registered(existing: Option<&str>, program: &str) -> String {
        let Merged::Changed(text) = register(existing, program) else { panic!("{existing:?}") };
        assert_eq!(register(Some(&text), program), Merged::Unchanged, "twice is once: {text}");
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
        let updated = registered(Some(&changed), "annalist");
        assert_eq!(updated, changed.replace("/old/annalist", "annalist"));
    }

    #[test]
    fn another_program_under_our_name_and_what_is_no_object_stay() {
        let theirs = r#"{"mcpServers": {"annalist": {"command": "docker", "args": ["run"]}}}"#;
        assert_eq!(register(Some(theirs), "annalist"), Merged::Unchanged);
        assert_eq!(unregister(theirs), Merged::Unchanged);
        for wrong in ["[]", "{\"mcpServers\": 1}", "{"] {
            assert!(matches!(register(Some(wrong), "annalist"), Merged::Malformed(_)), "{wrong}");
        }
    }
}
