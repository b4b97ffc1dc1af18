//! Text primitives without I/O: phrases, tokens, stems, names, terminals, truncation, lenient JSON,
//! wording of rules and definitions.

pub(crate) mod code_names;
pub(crate) mod diff;
pub(crate) mod ends;
pub(crate) mod lenient_json;
pub(crate) mod lexicon;
pub(crate) mod names;
pub(crate) mod own_output;
pub(crate) mod phrase;
pub(crate) mod stems;
pub(crate) mod terminal;
pub(crate) mod tokens;
pub(crate) mod truncate;
pub(crate) mod wording;

/// Front matter of a Markdown file: `key: value` lines between two lines of `---`.
pub(crate) mod front_matter {
    /// Front matter and the text after it; `None` if `text` has no closed front matter.
    pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
        text.strip_prefix("---\n")?.split_once("\n---\n")
    }

    /// Keys and values of front matter, trimmed; a line without a colon has an empty value.
    pub(crate) fn pairs(front: &str) -> impl Iterator<Item = (&str, &str)> {
        front.lines().map(|line| {
            let (key, value) = line.split_once(':').unwrap_or((line, ""));
            (key.trim(), value.trim())
        })
    }

    /// Items of a value such as `[a, b]`; `None` if it is not a list.
    pub(crate) fn list(value: &str) -> Option<impl Iterator<Item = &str>> {
        let inner = value.strip_prefix('[')?.strip_suffix(']')?;
        Some(inner.split(',').map(str::trim).filter(|name| !name.is_empty()))
    }
}
