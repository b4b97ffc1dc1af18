//! Code names in prose: paths, symbols, commands, versions and ports. Recognises them by form;
//! callers look up whether they exist.

use std::collections::BTreeSet;

/// Maximum number of names per text.
const NAMES_MAX: usize = 16;
/// Maximum length of a name, in bytes.
const NAME_BYTES_MAX: usize = 120;
/// Extensions of files that are named without a folder.
const FILE_ENDINGS: [&str; 34] = [
    "rs", "toml", "lock", "py", "js", "ts", "tsx", "jsx", "mjs", "go", "java", "kt", "c", "h",
    "cpp", "hpp", "cs", "rb", "php", "swift", "sh", "sql", "json", "yaml", "yml", "xml", "html",
    "css", "ini", "cfg", "conf", "md", "proto", "tf",
];
/// Files that are known by their whole name.
const FILES: [&str; 7] =
    ["Makefile", "Dockerfile", "Justfile", "justfile", "Procfile", "Jenkinsfile", "Vagrantfile"];
/// Beginnings of commands that run a task, which a file defines by its name.
const RUNNERS: [&str; 6] = ["just ", "make ", "npm run ", "pnpm run ", "yarn run ", "bun run "];
/// Stems of words about removal; what a text with one of them names may be gone.
const REMOVING: [&str; 17] = [
    "remov", "delet", "drop", "replac", "renam", "instead", "rather", "no longer", "get rid",
    "retire", "migrate", "entfern", "lösch", "statt", "ersetz", "supprim", "elimin",
];

/// Name of something in code or on a command line.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum CodeName {
    /// A file or folder, or the end of its path.
    Path(String),
    /// Text in files: a symbol, a command, a version, a port.
    Text(String),
}

impl CodeName {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            CodeName::Path(name) | CodeName::Text(name) => name,
        }
    }

    /// True if `path` is this file, ends with its path, or is below this folder.
    pub(crate) fn is_path_of(&self, path: &str) -> bool {
        let CodeName::Path(name) = self else { return false };
        path.match_indices(name.as_str()).any(|(at, _)| {
            let before = path.get(..at).unwrap_or_default();
            let after = path.get(at + name.len()..).unwrap_or_default();
            (before.is_empty() || before.ends_with('/'))
                && (after.is_empty() || after.starts_with('/'))
        })
    }
}

/// Names in `text`; none if it is about something removed or replaced.
pub(crate) fn code_names(text: &str) -> BTreeSet<CodeName> {
    // `scripts/migrate.sh` removes nothing.
    let is_prose =
        |word: &&str| !word.contains(['/', '_']) && !word.trim_end_matches('.').contains('.');
    let prose: Vec<&str> = text.split_whitespace().filter(is_prose).collect();
    let folded = prose.join(" ").to_lowercase();
    let mut names = BTreeSet::new();
    if REMOVING.iter().any(|word| folded.contains(word)) {
        return names;
    }
    for (number, piece) in text.split('`').enumerate() {
        let is_quoted = number % 2 == 1;
        if is_quoted && piece.trim().contains(' ') {
            let command = piece.trim();
            let task = RUNNERS.iter().find_map(|runner| command.strip_prefix(runner));
            note(CodeName::Text(task.unwrap_or(command).to_owned()), &mut names);
            continue;
        }
        let mut before = "";
        let blank = |c: char| c.is_whitespace() || "\"'()[]{}<>,;“”„‘’".contains(c);
        for word in piece.split(blank).filter(|word| !word.is_empty()) {
            if let Some(name) = name_of(word, before, is_quoted) {
                note(name, &mut names);
            }
            before = word;
        }
    }
    names
}

fn note(name: CodeName, names: &mut BTreeSet<CodeName>) {
    let length = name.as_str().len();
    if (2..=NAME_BYTES_MAX).contains(&length) && names.len() < NAMES_MAX {
        names.insert(name);
    }
}

fn name_of(word: &str, before: &str, is_quoted: bool) -> Option<CodeName> {
    let bare = word.trim_end_matches(['.', ':', '!', '?', '*', '_']).trim_start_matches(['*', '_']);
    if bare.contains("://") || bare.starts_with(['/', '~', '@', '-']) || bare.contains('@') {
        return None;
    }
    if let Some(number) = port(bare, before).or_else(|| is_version(bare).then_some(bare)) {
        return Some(CodeName::Text(number.to_owned()));
    }
    let path = bare.trim_start_matches("./").trim_end_matches('/');
    if is_path(path, is_quoted) {
        return Some(CodeName::Path(path.to_owned()));
    }
    let symbol = bare.trim_end_matches("()");
    (is_symbol(symbol, is_quoted || symbol != bare)).then(|| CodeName::Text(symbol.to_owned()))
}

/// Digits of `:8443`, `host:8443` and `port 8443`.
fn port<'w>(word: &'w str, before: &str) -> Option<&'w str> {
    let digits = match word.rsplit_once(':') {
        Some((host, digits)) if !host.contains(':') => digits,
        Some(_) => return None,
        None if before.to_lowercase().starts_with("port") => word,
        None => return None,
    };
    let is_port = (4..=5).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    is_port.then_some(digits)
}

/// True for versions: `1.4.2`, or `v2.0`, where two parts suffice.
fn is_version(word: &str) -> bool {
    let digits = word.strip_prefix('v').unwrap_or(word);
    let parts: Vec<&str> = digits.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let is_marked = word != digits || parts.len() >= 3;
    is_marked && (2..=4).contains(&parts.len()) && parts.iter().all(is_number)
}

fn is_path(word: &str, is_quoted: bool) -> bool {
    let is_part = |part: &str| {
        let lawful = |c: char| c.is_alphanumeric() || "._-+".contains(c);
        !part.is_empty() && part != ".." && part.chars().all(lawful)
    };
    let mut parts = word.split('/');
    let last = word.rsplit('/').next().unwrap_or_default();
    let ending = last.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, it)| it);
    let is_file = ending.is_some_and(|it| FILE_ENDINGS.contains(&it)) || FILES.contains(&last);
    parts.all(is_part) && (is_file || is_quoted && word.contains('/'))
}

/// True for `retry_policy`, `Store::open` or `maxRetries`; in backticks also for a single word.
fn is_symbol(word: &str, is_quoted: bool) -> bool {
    let lawful = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':' || c == '.';
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    let inner = word.trim_matches(['_', ':', '.']);
    let humped = inner.starts_with(|c: char| c.is_ascii_lowercase())
        && inner.contains(|c: char| c.is_ascii_uppercase());
    let formed = inner.contains('_') || inner.contains("::") || humped;
    word.chars().all(lawful) && letters >= 3 && (formed || is_quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut found: Vec<String> =
            code_names(text).into_iter().map(|it| it.as_str().to_owned()).collect();
        found.sort();
        let mut expected: Vec<String> = expected.iter().map(|it| (*it).to_owned()).collect();
        expected.sort();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn names_are_known_by_their_form() {
        check(
            "Retries live in src/net/retry.rs, see `RetryPolicy`.",
            &["src/net/retry.rs", "RetryPolicy"],
        );
        check("The API listens on port 8443.", &["8443"]);
        check("Use localhost:9090 for metrics", &["9090"]);
        check("Pin tokio to v1.38 and serde 1.0.203", &["v1.38", "1.0.203"]);
        check("Call flush_queue() and maxRetries", &["flush_queue", "maxRetries"]);
        check("Run `cargo xtask dist` first", &["cargo xtask dist"]);
        check("Run `just deploy-prod` on Mondays, see Makefile", &["deploy-prod", "Makefile"]);
        check("The schema is made by scripts/migrate.sh.", &["scripts/migrate.sh"]);
        check("Put it in `deploy/prod`/ or Cargo.toml", &["deploy/prod", "Cargo.toml"]);
    }

    #[test]
    fn prose_names_nothing() {
        check("Use PostgreSQL and/or SQLite, see https://example.com/a.rs", &[]);
        check("At 10:30 on 2026-11-22 in 3.5 hours, the CI/CD of GitHub", &[]);
        check("Mail ana@example.com about /etc/hosts", &[]);
    }

    #[test]
    fn what_tells_of_a_removal_names_nothing_that_must_be_there() {
        check("Remove `legacy_auth` from src/auth.rs", &[]);
        check("Use `argon2` instead of `bcrypt_hash`", &[]);
    }

    #[test]
    fn a_path_is_met_whole_or_by_its_end() {
        let path = |name: &str| CodeName::Path(name.to_owned());
        assert!(path("retry.rs").is_path_of("src/net/retry.rs"));
        assert!(path("src/net").is_path_of("src/net/retry.rs"));
        assert!(!path("try.rs").is_path_of("src/net/retry.rs"));
        assert!(!CodeName::Text("src".to_owned()).is_path_of("src"));
    }
}
