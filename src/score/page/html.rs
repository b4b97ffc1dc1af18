//! Writes HTML. Only text of this program becomes markup: whatever is not `&'static str` is escaped, which the
//! compiler checks. A template would have to be told to escape, and could be told not to.

/// A page as far as it is written.
#[derive(Debug, Default)]
pub(super) struct Html {
    text: String,
}

impl Html {
    /// The bytes that are written.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Markup of this program.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Html {
        self.text.push_str(markup);
        self
    }

    /// Text of anybody.
    pub(super) fn text(&mut self, text: &str) -> &mut Html {
        text.chars().for_each(|letter| self.letter(letter));
        self
    }

    /// Opens an element with attributes, whose values are text of anybody.
    pub(super) fn open(
        &mut self,
        tag: &'static str,
        attributes: &[(&'static str, &str)],
    ) -> &mut Html {
        self.raw("<").raw(tag);
        for (name, value) in attributes {
            self.raw(" ").raw(name).raw("=\"").text(value).raw("\"");
        }
        self.raw(">")
    }

    pub(super) fn close(&mut self, tag: &'static str) -> &mut Html {
        self.raw("</").raw(tag).raw(">\n")
    }

    /// An element that holds nothing but text.
    pub(super) fn element(
        &mut self,
        tag: &'static str,
        attributes: &[(&'static str, &str)],
        text: &str,
    ) -> &mut Html {
        self.open(tag, attributes).text(text).raw("</").raw(tag).raw(">")
    }

    /// The same with a class alone.
    pub(super) fn classed(&mut self, tag: &'static str, class: &str, text: &str) -> &mut Html {
        self.element(tag, &[("class", class)], text)
    }

    fn letter(&mut self, letter: char) {
        match entity(letter) {
            Some(entity) => self.text.push_str(entity),
            None => self.text.push(letter),
        }
    }
}

/// What stands for a letter that markup would take for its own, or that no page may hold.
fn entity(letter: char) -> Option<&'static str> {
    match letter {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        '\'' => Some("&#39;"),
        '\n' | '\t' => None,
        letter if letter.is_control() => Some("\u{fffd}"),
        _ => None,
    }
}

/// The bytes that a text takes in a page.
pub(super) fn escaped_len(text: &str) -> usize {
    text.chars().map(|letter| entity(letter).map_or(letter.len_utf8(), str::len)).sum()
}

/// The beginning of a text, of so many bytes at most, and whether it is all.
pub(super) fn head(text: &str, bytes: usize) -> (&str, bool) {
    let head = text.get(..text.floor_char_boundary(bytes)).unwrap_or_default();
    (head, head.len() == text.len())
}

/// Text of anybody, so many bytes of it at most, with a mark where there is more.
pub(super) fn cut(html: &mut Html, text: &str, bytes: usize) {
    let (head, is_all) = head(text, bytes);
    html.text(head);
    if !is_all {
        html.classed("span", "soft", &format!(" … {} bytes more", text.len() - head.len()));
    }
}
