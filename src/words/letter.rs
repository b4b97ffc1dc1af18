//! What becomes of a letter where texts are compared: lower case, blanks, quotes and dashes of one kind, marks of
//! Markdown left out.

/// What a letter is folded to.
pub(crate) enum Fold {
    /// Its lower case, by [`lower`].
    Letter,
    /// A blank; a run of them counts as one.
    Blank,
    /// Nothing.
    Nothing,
    /// Another letter.
    As(char),
}

/// What becomes of `letter`.
pub(crate) fn fold(letter: char) -> Fold {
    match letter {
        '‘' | '’' | '‚' | '′' => Fold::As('\''),
        '“' | '”' | '„' | '«' | '»' | '″' => Fold::As('"'),
        '‐' | '‑' | '‒' | '–' | '—' | '−' => Fold::As('-'),
        '`' | '*' | '\u{200b}' | '\u{feff}' | '\u{ad}' => Fold::Nothing,
        '\0' => Fold::Blank,
        _ if letter.is_whitespace() => Fold::Blank,
        _ => Fold::Letter,
    }
}

/// Writes the lower case of `letter`. A dotted capital I becomes a plain i, whose second dot Unicode keeps apart.
pub(crate) fn lower(letter: char, to: &mut String) {
    if letter.is_ascii() {
        to.push(letter.to_ascii_lowercase());
    } else {
        to.extend(letter.to_lowercase().filter(|letter| *letter != '\u{307}'));
    }
}

/// The whole of `text` folded, without blanks at its ends.
pub(crate) fn folded(text: &str) -> String {
    let mut to = String::with_capacity(text.len());
    for letter in text.chars() {
        match fold(letter) {
            Fold::Blank if to.is_empty() || to.ends_with(' ') => {}
            Fold::Blank => to.push(' '),
            Fold::Nothing => {}
            Fold::As(other) => to.push(other),
            Fold::Letter => lower(letter, &mut to),
        }
    }
    to.truncate(to.trim_end().len());
    to
}
