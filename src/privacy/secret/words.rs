//! Word lists of the rules, from `words.txt`; and names that denote a secret (`DB_PASSWORD`,
//! `githubToken`, `aws_secret_access_key`), among similar ones that do not (`max_tokens`,
//! `api_key_env`, `public_key`).

use std::collections::HashSet;
use std::sync::LazyLock;

/// Maximum bytes of a command that are searched for its login.
pub(super) const COMMAND_MAX: usize = 512;

/// Words before a password or the word for it.
pub(super) const GIVEN: [&str; 13] =
    ["with", "using", "and", "mit", "und", "avec", "et", "con", "y", "com", "e", "met", "en"];

type Words = LazyLock<HashSet<&'static str>>;

/// Declares the lists of single words or phrases; `words.txt` says what they are.
macro_rules! lists {
    ($parse:ident: $($name:ident $section:literal,)*) => {
        $(pub(super) static $name: Words =
            LazyLock::new(|| $parse($section).into_iter().collect());)*
    };
}

lists! { words:
    PLAIN "plain", PASSWORDS "passwords", QUALIFIERS "qualifiers", KEYS_OF "keys-of",
    KEYS_NOT "keys-not", LINKS "links", VERBS "verbs", LEADS "leads", CHANGES "changes",
    WRAPPERS "wrappers", READERS "readers", COLUMNS "columns", ATTRIBUTES "attributes",
    SETTERS "setters", USERS "users", USES "uses", CONJUNCTIONS "conjunctions",
    SIGN_INS "sign-ins", SET "set", TOKENS_OF "tokens-of", ABOUT "about", HOLDERS "holders",
    INTO "into", FROM "from", ARTICLES "articles", BIDS "bids", PLACES "places",
    STATES "states", TYPES "types", GRAMMAR "grammar", ENDINGS "endings",
}

lists! { phrases:
    NAMES "names", TOLD "told", TOLD_TOKENS "told-tokens", NETWORK_KEYS "network-keys",
    ACCESS "access", ENVIRONMENTS "environments", PINS "pins", PURPOSES "code-purposes",
    OTHERS "code-others", TELLS "code-tells", UNITS "units",
}

pub(super) static FILLS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| lines("fills").iter().map(|line| line.trim_matches('"')).collect());

/// Parses a table into sections: a name in brackets, then lines.
pub(crate) fn sections(
    table: &'static str,
) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let mut lines =
        table.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).peekable();
    std::iter::from_fn(move || {
        let name = lines.next()?.trim_matches(['[', ']']);
        Some((name, std::iter::from_fn(|| lines.next_if(|line| !line.starts_with('['))).collect()))
    })
}

/// Lines of one section of a table.
pub(crate) fn table_section(table: &'static str, name: &str) -> Vec<&'static str> {
    sections(table).find(|(found, _)| *found == name).map_or_else(Vec::new, |it| it.1)
}

pub(super) fn lines(section: &str) -> Vec<&'static str> {
    table_section(include_str!("words.txt"), section)
}

/// Phrases of a section, which may contain blanks.
pub(super) fn phrases(section: &str) -> Vec<&'static str> {
    lines(section).into_iter().flat_map(|line| line.split(", ")).collect()
}

fn words(section: &str) -> Vec<&'static str> {
    lines(section).into_iter().flat_map(str::split_whitespace).collect()
}

/// Confidence that a name denotes a secret.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// Every value is secret, even a number.
    Password,
    /// A key or token; a bare number is a count.
    Token,
    /// Secret only if the value looks like one.
    Maybe,
    /// A key of unknown purpose: secret if it looks like one.
    Key,
}

/// Confidence that `name` denotes a secret; `None` if it does not.
pub(super) fn kind(name: &str) -> Option<Kind> {
    let mut words = split(name);
    while let [_, .., last] = words.as_slice()
        && (QUALIFIERS.contains(last.as_str()) || last.bytes().all(|byte| byte.is_ascii_digit()))
    {
        words.pop();
    }
    let (last, before) = words.split_last()?;
    let last = last.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let before_last = before.last().map_or("", String::as_str);
    let is_login = !TOKENS_OF.contains(before_last);
    match last {
        _ if PASSWORDS.contains(last) => Some(Kind::Password),
        "pass" => Some(if before.is_empty() { Kind::Maybe } else { Kind::Password }),
        "secret" => is_login.then_some(Kind::Token),
        "apikey" | "credential" | "credentials" | "connectionstring" | "connstr" => {
            Some(Kind::Token)
        }
        "token" => is_login.then_some(Kind::Token),
        "passe" | "wort" => Some(Kind::Password),
        "pat" => (!before.is_empty()).then_some(Kind::Key),
        "key" if KEYS_OF.contains(before_last) => Some(Kind::Token),
        "key" => (!before_last.is_empty() && !KEYS_NOT.contains(before_last)).then_some(Kind::Key),
        "dockerconfigjson" | "jeton" | "geheim" | "geheimnis" => Some(Kind::Token),
        "clé" | "clave" | "parola" | "chiave" | "chave" | "schlüssel" => Some(Kind::Maybe),
        "string" | "str" => matches!(before_last, "connection" | "conn" | "connect" | "secret")
            .then_some(Kind::Token),
        "auth" | "bearer" | "signature" | "sig" | "passwords" => Some(Kind::Maybe),
        "pin" => Some(Kind::Maybe),
        "seed" => before_last.ends_with("otp").then_some(Kind::Token),
        "pepper" => Some(Kind::Key),
        "salt" | "session" | "cookie" => (!before.is_empty()).then_some(Kind::Key),
        _ if last.ends_with("sessid") || last.ends_with("sessionid") => Some(Kind::Key),
        _ => {
            if last != "key" && last.ends_with("key") {
                let purpose = last.trim_end_matches("key");
                return KEYS_OF.contains(purpose).then_some(Kind::Token);
            }
            let endings = ENDINGS.iter().filter(|ending| last.ends_with(**ending));
            let ending = endings.max_by_key(|it| it.len())?;
            let password = PASSWORDS.contains(ending)
                || ["pass", "pw", "authtok"].iter().any(|it| ending.ends_with(it));
            Some(if password { Kind::Password } else { Kind::Token })
        }
    }
}

/// Returns whether a word of any language names a secret, as `passwort` does.
pub(super) fn names_secret(word: &str) -> bool {
    PASSWORDS.contains(word) || NAMES.contains(word) || TOLD.contains(word)
}

/// Returns whether a word stands before the name of a user or of what a password is for.
pub(super) fn is_user(word: &str) -> bool {
    USERS.contains(word.to_lowercase().as_str())
}

/// Returns whether settings assign only secrets to this name, even if the value is a plain word.
pub(super) fn is_login(name: &str) -> bool {
    const TOKENS: [&str; 8] =
        ["auth", "access", "api", "bearer", "refresh", "session", "github", "bot"];
    const JOINED: [&str; 4] = ["apikey", "authtoken", "accesstoken", "clientsecret"];
    let words = split(name);
    let Some((last, before)) = words.split_last() else { return false };
    let before_last = before.last().map_or("", String::as_str);
    match last.as_str() {
        "pass" | "secret" | "clave" | "parola" => true,
        "key" => ["api", "secret"].contains(&before_last),
        "token" => TOKENS.contains(&before_last),
        last => JOINED.contains(&last) || kind(last) == Some(Kind::Password),
    }
}

/// Splits a name into lower-case words at `_`, `-`, blanks and capitals.
fn split(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut fresh, mut before) = (true, '_');
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        if !letter.is_alphanumeric() {
            (fresh, before) = (true, letter);
            continue;
        }
        let falls = letters.peek().is_some_and(|after| after.is_ascii_lowercase());
        if fresh || (letter.is_ascii_uppercase() && (!before.is_ascii_uppercase() || falls)) {
            words.push(String::new());
        }
        (fresh, before) = (false, letter);
        if let Some(word) = words.last_mut() {
            match letter.is_ascii() {
                true => word.push(letter.to_ascii_lowercase()),
                false => word.extend(letter.to_lowercase()),
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_has_its_words() {
        let lists = [&PLAIN, &QUALIFIERS, &KEYS_OF, &TOKENS_OF, &ABOUT, &TYPES, &GRAMMAR, &USES];
        assert!(lists.iter().all(|list| list.len() > 5));
        assert!(lines("commands").len() > 10 && lines("names").len() > 5);
    }
}

#[cfg(test)]
mod name_tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_in_any_style() {
        for name in [
            "DB_PASSWORD", "githubToken", "aws_secret_access_key", "MY_APP_SECRET_KEY",
            "x-api-key", "APIKey", "clientSecret", "SECRET_KEY_BASE", "ConnectionString",
            "authtoken", "SMTP_PASS", "OPENAI_API_KEY_2", "Secret Access Key", "dbPassword1",
            "new_password_confirmation", "AccountKey", "_authToken",
        ] {
            assert!(kind(name).is_some(), "{name}");
        }
    }

    #[test]
    fn names_that_look_alike_hold_none() {
        for name in [
            "max_tokens", "completion_tokens", "tokenizer", "api_key_env", "public_key",
            "primary_key", "keyboard", "token_type", "passwordReset", "secret_name", "eos_token",
            "nextPageToken", "tokens", "compass", "aws_access_key_id", "author", "SecretManager",
            "password_file", "CancellationToken2x",
        ] {
            assert_eq!(kind(name), None, "{name}");
        }
    }
}
