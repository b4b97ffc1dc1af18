//! What a value is: a secret, or something that stands for one. A reference to a variable, a
//! placeholder, a type and a sentence are none.

/// Words for nothing.
const NOTHING: [&str; 8] = ["null", "none", "nil", "true", "false", "undefined", "empty", "unset"];
/// Marks that people fill a value with that they do not show.
const FILLING: &[char] = &['*', '.', '-', '_', '#', '?', '\u{2022}', '\u{2026}', ' '];
/// Bytes of a secret that is shown by its end, as in `...ab12`.
const SHOWN_MAX: usize = 8;
/// Where secrets are kept: what follows is their address.
const KEEPERS: [&str; 9] =
    ["op://", "vault:", "vault://", "env:", "env.", "file:", "file://", "arn:aws:", "urn:"];
/// Words that a schema or a form says about a secret.
const ABOUT: [&str; 34] = [
    "string",
    "str",
    "text",
    "number",
    "integer",
    "boolean",
    "bool",
    "object",
    "array",
    "bytes",
    "any",
    "required",
    "optional",
    "include",
    "omit",
    "same-origin",
    "password",
    "passwd",
    "secret",
    "token",
    "bearer",
    "basic",
    "hidden",
    "redacted",
    "masked",
    "invalid",
    "missing",
    "present",
    "valid",
    "expired",
    "enabled",
    "disabled",
    "yes",
    "no",
];
/// Words that make several words a sentence.
const GRAMMAR: [&str; 30] = [
    "the", "a", "an", "is", "are", "be", "must", "should", "to", "for", "of", "your", "not", "in",
    "with", "and", "or", "on", "at", "this", "that", "please", "enter", "no", "invalid", "was",
    "has", "it", "password", "token",
];
/// Types and names of methods that have digits in them.
const TYPES: [&str; 44] = [
    "u8", "u16", "u32", "u64", "u128", "i8", "i16", "i32", "i64", "i128", "f32", "f64", "int8",
    "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "utf8",
    "utf16", "base32", "base58", "base64", "sha1", "sha256", "sha384", "sha512", "md5", "oauth1",
    "oauth2", "pkcs8", "pkcs12", "pbkdf2", "argon2", "argon2id", "hs256", "rs256", "es256",
    "ed25519", "x509",
];
/// Parts of names that code gives to what holds a secret.
const HOLDERS: [&str; 36] = [
    "password",
    "passwd",
    "pwd",
    "pass",
    "token",
    "tok",
    "secret",
    "key",
    "credential",
    "credentials",
    "auth",
    "config",
    "settings",
    "args",
    "options",
    "opts",
    "params",
    "env",
    "environ",
    "self",
    "this",
    "process",
    "request",
    "req",
    "ctx",
    "context",
    "user",
    "body",
    "data",
    "value",
    "val",
    "input",
    "field",
    "new",
    "old",
    "get",
];

/// Whether the value only points to a secret, hides it already, or is none.
pub(super) fn is_reference(value: &str) -> bool {
    let value = value.trim();
    let first = value.bytes().next();
    let enclosed = |open: char, close: char| value.starts_with(open) && value.ends_with(close);
    let is_name = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:.->[]'".contains(&byte))
    };
    value.trim_matches(FILLING).is_empty()
        || (3 <= value.len() && value.trim_matches(['x', 'X']).is_empty())
        || (value.starts_with("...") && value.len() <= SHOWN_MAX)
        || is_starred(value)
        || NOTHING.iter().any(|word| value.eq_ignore_ascii_case(word))
        || enclosed('<', '>')
        || enclosed('[', ']')
        || enclosed('{', '}')
        || enclosed('(', ')')
        || (enclosed('%', '%') && is_name(value.trim_matches('%')))
        || matches!(value, "%s" | "%v" | "%q" | "%d" | "{}" | "%r" | "%@")
        || value.contains("${")
        || value.contains("{{")
        || value.contains("$(")
        || value.contains("#{")
        || value.contains("<SECRET>")
        || (first == Some(b'$') && is_variable(value))
        || KEEPERS.iter().any(|keeper| value.starts_with(keeper))
        || value.to_ascii_lowercase().starts_with("redacted")
}

/// Whether `word` is a type and `behind` begins with its parameters, as in `Option<String>`. What else is
/// followed by `<` is followed by a tag, or by what the gate put in the place of something.
pub(super) fn is_generic(word: &str, behind: &str) -> bool {
    let last = word.rsplit([':', '.']).next().unwrap_or(word);
    let plain = !last.bytes().any(|byte| byte.is_ascii_digit());
    let capital = last.starts_with(|c: char| c.is_ascii_uppercase());
    let name: &[u8] = behind.strip_prefix('<').unwrap_or_default().as_bytes();
    let letters =
        name.iter().take_while(|byte| byte.is_ascii_uppercase() || **byte == b'_').count();
    let placeholder = 1 < letters && name.get(letters) == Some(&b'>');
    is_name(word) && !placeholder && (plain || capital)
}

/// Stars for half of it or more: shown in part, and hidden already.
fn is_starred(value: &str) -> bool {
    value.contains("***") && value.len() <= 2 * value.matches('*').count()
}

/// `$NAME`, `$env:NAME`, `$config.token`, `$user->token`: but not the hash `$2b$…`.
fn is_variable(value: &str) -> bool {
    let name = value.trim_start_matches('$');
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    starts && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:.->[]'".contains(&byte))
}

/// Whether a quoted value under a secret's name is something else: a word about it, a sentence, the
/// name of a variable, a path.
pub(super) fn is_no_secret(value: &str, name: &str) -> bool {
    let word = value.trim();
    is_reference(value)
        || ABOUT.iter().any(|about| word.eq_ignore_ascii_case(about))
        || word.eq_ignore_ascii_case(name)
        || is_name_of_variable(word)
        || is_template(value)
        || is_place(word)
        || is_sentence(value)
}

/// A path or a flag: letters only.
fn is_place(word: &str) -> bool {
    let starts = ["./", "../", "~/", "--"].iter().any(|start| word.starts_with(start));
    starts && word.bytes().all(|byte| byte.is_ascii_alphabetic() || b"./~_-".contains(&byte))
}

/// `OPENAI_API_KEY` is where a key is looked up.
fn is_name_of_variable(word: &str) -> bool {
    let capitals =
        word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit());
    let parts = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASS", "PWD", "CREDENTIALS"];
    capitals
        && word.contains('_')
        && parts.iter().any(|part| word.split('_').any(|word| word == *part))
}

/// `{name}` and nothing else but blanks and marks of formatting.
fn is_template(value: &str) -> bool {
    let Some((head, rest)) = value.split_once('{') else { return false };
    let Some((name, tail)) = rest.split_once('}') else { return false };
    let is_name =
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:[]()!?".contains(&byte));
    is_name && head.trim().is_empty() && tail.trim().is_empty()
}

/// Three words or more with enough grammar among them; a passphrase has little.
fn is_sentence(value: &str) -> bool {
    let plain = |word: &str| {
        word.trim_matches(|letter: char| letter.is_ascii_punctuation()).to_ascii_lowercase()
    };
    let words = value.split_whitespace().count();
    let is_grammar = |word: &&str| GRAMMAR.contains(&plain(word).as_str());
    let grammar = value.split_whitespace().filter(is_grammar).count();
    (3 <= words && 2 <= grammar) || (4 <= words && 1 <= grammar)
}

/// Whether a word without quotes looks like a secret rather than like code or prose: it mixes
/// digits or marks with letters, and is neither name, type, path, version nor date.
pub(super) fn is_random(word: &str) -> bool {
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let marks = word.bytes().filter(|byte| b"!@#$%^&*+=?~".contains(byte)).count();
    let others = !word.is_ascii();
    let mixed = 0 < letters && (0 < digits || 0 < marks) || (0 < digits && 0 < marks);
    let long = 6 <= word.len();
    long && (mixed || others && 0 < digits || is_scrambled(word))
        && !is_code(word)
        && !is_reference(word)
}

/// Long, and in one case as no word is, or in two that change places more often than in joined
/// words.
fn is_scrambled(word: &str) -> bool {
    /// Longer than the words that people write.
    const LETTERS_MIN: usize = 20;
    let bytes = word.as_bytes();
    let rises =
        |pair: &&[u8]| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase());
    let rises = bytes.windows(2).filter(rises).count();
    let one_case =
        bytes.iter().all(u8::is_ascii_lowercase) || bytes.iter().all(u8::is_ascii_uppercase);
    let two_cases = bytes.iter().all(u8::is_ascii_alphanumeric) && bytes.len() <= rises * 5;
    LETTERS_MIN <= bytes.len() && (one_case || two_cases)
}

/// Whether a word reads like an expression, a path or a type.
pub(super) fn is_code(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let operator = ["::", "->", "=>", "==", "!=", "&&", "||", "://", "()"]
        .iter()
        .any(|op| word.trim_end_matches('=').contains(op));
    let typed = word.starts_with('&') || word.starts_with('*') || word.starts_with('@');
    let path = word.starts_with('/') || word.starts_with("./") || word.starts_with('~');
    operator
        || (typed && is_name(word.get(1..).unwrap_or_default()))
        || (path && !word.contains(['+', '=']))
        || TYPES.contains(&lower.as_str())
        || (is_name(word) && is_holder(&lower))
        || (word.contains('.') && is_path_of_names(word))
}

/// Whether a word may be called or indexed.
pub(super) fn is_code_or_name(word: &str) -> bool {
    is_name(word)
        || is_code(word)
        || word.split(['.', ':']).all(|part| is_name(part) || part.is_empty())
}

/// Letters, digits and underscores, a letter first.
pub(super) fn is_name(word: &str) -> bool {
    let first = word.bytes().next();
    let starts = first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    starts && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether a name has a part that says what it holds: `new_password2`, `apiToken1`.
fn is_holder(lower: &str) -> bool {
    let parts =
        lower.split('_').map(|part| part.trim_end_matches(|letter: char| letter.is_ascii_digit()));
    let long = ["password", "token", "secret", "credential"];
    parts.into_iter().any(|part| HOLDERS.contains(&part))
        || long.iter().any(|word| lower.contains(word))
}

/// `self.next_token2`, `config.v1.key`: names with dots and few digits.
fn is_path_of_names(word: &str) -> bool {
    /// Digits in a path of names; a token with dots has more.
    const DIGITS_MAX: usize = 3;
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let host = word.split(':').next().unwrap_or_default();
    digits <= DIGITS_MAX && host.split('.').all(|part| is_name(part) || part.is_empty())
        || word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Only digits, and what groups them.
pub(super) fn is_number(word: &str) -> bool {
    let starts = word.bytes().next().is_some_and(|byte| byte.is_ascii_digit() || byte == b'-');
    starts && word.bytes().all(|byte| byte.is_ascii_digit() || b"._,-+:".contains(&byte))
}

/// A plain word of prose, or a word about a secret.
pub(super) fn is_about(word: &str) -> bool {
    let more = [
        "to", "and", "or", "is", "for", "the", "flag", "option", "via", "set", "if", "when", "was",
        "that",
    ];
    let lower = word.to_ascii_lowercase();
    ABOUT.contains(&lower.as_str())
        || GRAMMAR.contains(&lower.as_str())
        || more.contains(&lower.as_str())
}
