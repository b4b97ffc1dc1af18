//! Which tools speak for the web: what they bring was written by strangers, whichever agent asked.

/// Parts of names of tools that bring text from elsewhere.
const WEB: [&str; 9] = [
    "web_search",
    "websearch",
    "web_fetch",
    "webfetch",
    "fetch_url",
    "browser",
    "google_search",
    "tether",
    "tavily",
];
/// Servers that read this machine alone; every other server speaks for somebody else.
const LOCAL: [&str; 6] = ["ide", "filesystem", "git", "serena", "memory", "sequential"];

/// Whether a tool's results are text of the web or another service.
pub(super) fn is_web(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if let Some(server) = name.strip_prefix("mcp__") {
        let local = LOCAL.iter().any(|local| server.starts_with(local));
        return !local || server.starts_with("github") || server.starts_with("gitlab");
    }
    let own = name == "web" || name.starts_with("web.") || name.starts_with("web_");
    own || WEB.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_web_is_known_by_name() {
        assert!(is_web("browser.search") && is_web("WebFetch") && is_web("web.run"));
        assert!(!is_web("Bash") && !is_web("webpack_build"));
    }

    #[test]
    fn other_services_are_not_this_machine() {
        assert!(is_web("mcp__linear__get") && is_web("mcp__github__get"));
        assert!(is_web("mcp__tavily__find") && !is_web("mcp__ide__getDiagnostics"));
    }
}
