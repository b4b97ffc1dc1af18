//! Front matter of a Markdown file: `key: value` lines between two lines of `---`.

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
