//! Clients that delete transcripts: where the transcripts are, and for how long.

use crate::text::lenient_json::decode;
use serde_json::Value;
use std::path::Path;

/// Deletion of transcripts by a client.
#[derive(Debug)]
pub(crate) struct Deletion {
    /// Folder of the transcripts, relative to the client's folder.
    pub(crate) folder: &'static str,
    /// True for the path of a transcript in that folder.
    pub(crate) is_transcript: fn(&Path) -> bool,
    /// Hours from a transcript's last change to its deletion, given the text of the client's
    /// settings; `None` if none are deleted.
    pub(crate) hours: fn(&str) -> Option<u32>,
}

/// Name of the settings file of clients that delete transcripts.
pub(crate) const SETTINGS: &str = "settings.json";

pub(super) const CLAUDE_CODE: Deletion = Deletion {
    folder: "projects",
    is_transcript: |path| has_ending(path, &["jsonl"]),
    hours: claude_code_hours,
};

pub(super) const GEMINI_CLI: Deletion = Deletion {
    folder: "tmp",
    is_transcript: |path| {
        let folder = path.parent().and_then(Path::file_name);
        has_ending(path, &["json", "jsonl"]) && folder.is_some_and(|name| name == "chats")
    },
    hours: gemini_cli_hours,
};

/// Default retention of Claude Code and Gemini CLI, in days.
const DAYS_DEFAULT: u32 = 30;

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension().is_some_and(|found| endings.iter().any(|ending| found == *ending))
}

fn claude_code_hours(settings: &str) -> Option<u32> {
    let (settings, _) = decode(settings, &["cleanupPeriodDays"]);
    let days = settings.get("cleanupPeriodDays").and_then(Value::as_u64);
    let days = days.map_or(DAYS_DEFAULT, |days| u32::try_from(days).unwrap_or(u32::MAX));
    Some(days.saturating_mul(24))
}

fn gemini_cli_hours(settings: &str) -> Option<u32> {
    let (settings, _) = decode(settings, &["general"]);
    let retention = settings.get("general")?.get("sessionRetention")?;
    retention.get("enabled")?.as_bool().filter(|enabled| *enabled)?;
    let Some(age) = retention.get("maxAge").and_then(Value::as_str) else {
        // Sessions may then be limited by number, which gives no time.
        return retention.get("maxCount").is_none().then_some(DAYS_DEFAULT * 24);
    };
    let unit = age.chars().last()?;
    let number: u32 = age.strip_suffix(unit)?.parse().ok()?;
    let hours = match unit {
        'h' => 1,
        'd' => 24,
        'w' => 7 * 24,
        'm' => 30 * 24,
        _ => return None,
    };
    Some(number.saturating_mul(hours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(client: &Deletion, settings: &str, expected: Option<u32>) {
        assert_eq!((client.hours)(settings), expected, "{settings}");
    }

    #[test]
    fn a_transcript_is_kept_for_as_long_as_the_settings_say() {
        check(&CLAUDE_CODE, "", Some(720));
        check(&CLAUDE_CODE, r#"{"model": "opus"}"#, Some(720));
        check(&CLAUDE_CODE, r#"{"cleanupPeriodDays": 7}"#, Some(168));
        check(&CLAUDE_CODE, r#"{"cleanupPeriodDays": 99999999999}"#, Some(u32::MAX));
        check(&GEMINI_CLI, "", None);
        let with = |inner: &str| format!(r#"{{"general": {{"sessionRetention": {{{inner}}}}}}}"#);
        check(&GEMINI_CLI, &with(r#""enabled": false, "maxAge": "7d""#), None);
        check(&GEMINI_CLI, &with("\"enabled\": true, // on\n\"maxAge\": \"7d\""), Some(168));
        check(&GEMINI_CLI, &with(r#""enabled": true, "maxAge": "36h""#), Some(36));
        check(&GEMINI_CLI, &with(r#""enabled": true, "maxAge": "soon""#), None);
        check(&GEMINI_CLI, &with(r#""enabled": true"#), Some(720));
        check(&GEMINI_CLI, &with(r#""enabled": true, "maxCount": 50"#), None);
    }

    #[test]
    fn a_transcript_is_known_by_its_place() {
        let is = |client: &Deletion, path: &str| (client.is_transcript)(Path::new(path));
        assert!(is(&CLAUDE_CODE, "projects/-home-dev/a/subagents/agent-1.jsonl"));
        assert!(!is(&CLAUDE_CODE, "projects/-home-dev/memory/MEMORY.md"));
        assert!(is(&GEMINI_CLI, "tmp/1f/chats/session-2026-11-01.json"));
        assert!(!is(&GEMINI_CLI, "tmp/1f/logs.json"));
    }
}
