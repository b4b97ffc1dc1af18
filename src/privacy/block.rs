//! `<private>` blocks and private files.

/// Removes private blocks.
pub fn strip_private(text: &str) -> (String, Vec<&'static str>) {
    (text.to_owned(), Vec::new())
}

/// Whether the file's front matter says `private: true`.
pub fn is_private_file(text: &str) -> bool {
    text.is_empty()
}
