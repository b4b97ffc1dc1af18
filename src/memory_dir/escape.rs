//! Turns text into lines that are only text in Markdown: never a heading, item, tag, comment,
//! private tag or marker.

use super::line::{self, LineShape};
use crate::privacy::Gate;
use crate::text::truncate;

/// Mark of truncation; counts towards the length.
const ELLIPSIS: char = '…';

/// `text` as one line of at most `letters_max` letters. Runs of blanks and control characters
/// become one blank; invisible characters and blanks at the ends are removed.
pub(super) fn one_line(text: &str, letters_max: usize) -> String {
    if is_one_line(text) {
        return cut(text.to_owned(), letters_max);
    }
    let mut line = String::with_capacity(text.len().min(letters_max.saturating_mul(4)));
    let is_gap = |c: char| c.is_whitespace() || c.is_control();
    for word in text.split(is_gap) {
        let mut letters = word.chars().filter(|c| !is_unseen(*c)).peekable();
        if letters.peek().is_some() && !line.is_empty() {
            line.push(' ');
        }
        line.extend(letters);
    }
    cut(line, letters_max)
}

/// True for words separated by single blanks, as most lines are.
fn is_one_line(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_graphic);
    // Without early exits, many bytes are compared at once.
    let is_plain = bytes.iter().fold(true, |all, byte| all & matches!(byte, b' '..=b'~'));
    let pairs = bytes.iter().zip(bytes.get(1..).unwrap_or_default());
    let is_gap = pairs.fold(false, |any, (one, next)| any | (*one == b' ') & (*next == b' '));
    is_end(bytes.first()) && is_end(bytes.last()) && is_plain && !is_gap
}

/// Invisible characters that change the display: direction marks, and joiners that no script needs.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Truncates the line to `letters_max` letters, at the end of a word if one is near.
fn cut(line: String, letters_max: usize) -> String {
    if line.len() <= letters_max || line.chars().nth(letters_max).is_none() {
        return line;
    }
    let head = truncate::letters(&line, letters_max.saturating_sub(1));
    let at_word = head.rfind(' ').filter(|at| *at * 10 >= head.len() * 7);
    let kept = head.get(..at_word.unwrap_or(head.len())).unwrap_or(head).trim_end();
    format!("{kept}{ELLIPSIS}")
}

/// One redacted line of at most `letters_max` letters.
fn redacted_line(text: &str, letters_max: usize, gate: &Gate) -> String {
    let line = one_line(text, usize::MAX);
    let passed = gate.redact(&line);
    let short = match passed.as_str() == line {
        true => cut(line, letters_max),
        false => one_line(passed.as_str(), letters_max),
    };
    if short == passed.as_str() {
        return short;
    }
    // Truncation can turn a harmless text into a number that must be masked.
    let cut = gate.redact(&short);
    one_line(cut.as_str(), usize::MAX)
}

/// One redacted line of at most `letters_max` letters, safe anywhere in a line of Markdown.
pub(crate) fn words_line(text: &str, letters_max: usize, gate: &Gate) -> String {
    plain(&redacted_line(text, letters_max, gate))
}

/// Like [`words_line`], for the middle of a line.
pub(super) fn words_inline(text: &str, letters_max: usize, gate: &Gate) -> String {
    inline(&redacted_line(text, letters_max, gate))
}

/// Escapes one line for the start or the middle of a line of Markdown.
pub(super) fn plain(words: &str) -> String {
    let inner = inline(words);
    let is_link = inner.starts_with('[') && inner.contains("]:");
    let is_html = inner.starts_with('<');
    let special = line::shape(&inner) != LineShape::Text || line::task(&inner).is_some();
    if !(special || is_link || is_html || line::is_meta(&inner)) || inner.is_empty() {
        return inner;
    }
    if is_html {
        return inner.replacen('<', "&lt;", 1);
    }
    // A number is no list item once its punctuation is escaped.
    let digits = inner.bytes().take_while(u8::is_ascii_digit).count();
    let (head, tail) = inner.split_at(digits);
    format!("{head}\\{tail}")
}

/// Escapes text for the middle of a line: HTML, comments and private blocks start with an entity,
/// and links that a browser would run are disabled; so are images elsewhere, which a preview would fetch. Other `<` stay, as in
/// `Vec<String>`.
pub(crate) fn inline(words: &str) -> String {
    if !words.contains(['<', '>', '(']) {
        return words.to_owned();
    }
    let mut line = String::with_capacity(words.len());
    let mut dashes = 0;
    for (at, letter) in words.char_indices() {
        let after = words.get(at + letter.len_utf8()..).unwrap_or_default();
        match letter {
            '<' if opens(after) || is_element(after) => line.push_str("&lt;"),
            '(' if line.ends_with(']') && is_run(after) => line.push_str("\\("),
            '!' if is_remote_image(after) => line.push_str("\\!"),
            '>' if dashes >= 2 => line.push_str("&gt;"),
            letter => line.push(letter),
        }
        dashes = match letter {
            '-' => dashes + 1,
            '!' if dashes >= 2 => dashes,
            _ => 0,
        };
    }
    line
}

fn opens(after: &str) -> bool {
    let name = after.trim_start_matches('/');
    let letters = name.chars().take("private".len()).map(|c| match c {
        'İ' | 'ı' => 'i',
        c => c.to_ascii_lowercase(),
    });
    after.starts_with(['!', '/', '?']) || letters.eq("private".chars())
}

/// Elements that swallow or reinterpret the text after them even without attributes.
const ELEMENTS: [&str; 13] = [
    "iframe", "math", "noembed", "noframes", "noscript", "plaintext", "script", "select", "style",
    "svg", "template", "textarea", "xmp",
];

/// True if a browser may act on the text after a `<`: a known element, or one with attributes.
fn is_element(after: &str) -> bool {
    let name = after.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let tag = after.split('>').next().unwrap_or_default().replace("::", "");
    after.starts_with(|c: char| c.is_ascii_alphabetic())
        && (tag.contains(['=', '"', '\'', '`', ':'])
            || ELEMENTS.iter().any(|it| it.eq_ignore_ascii_case(name)))
}

/// Schemes of links that a browser only opens.
const SCHEMES: [&str; 3] = ["http", "https", "mailto"];

/// True for the rest of an image whose target is on another machine.
fn is_remote_image(after: &str) -> bool {
    let target =
        after.strip_prefix('[').and_then(|it| it.split_once("](")).map(|(_, target)| target);
    let target = target.map(|it| it.trim_start_matches([' ', '<']).to_ascii_lowercase());
    target.is_some_and(|it| ["http:", "https:", "//"].iter().any(|start| it.starts_with(start)))
}

/// True if a link target has another scheme, or hides it in entities or escapes.
fn is_run(target: &str) -> bool {
    let target = target.trim_start_matches([' ', '<']);
    let scheme = target.split([':', '/', '?', '#', '&', '\\', ')', ' ']).next().unwrap_or_default();
    match target.as_bytes().get(scheme.len()) {
        Some(b':') => !SCHEMES.iter().any(|it| it.eq_ignore_ascii_case(scheme)),
        end => matches!(end, Some(b'&' | b'\\')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        for (words, expected) in [
            ("Use Vec<String> & co", "Use Vec<String> & co"),
            ("# heading", "\\# heading"),
            ("- item", "\\- item"),
            ("[x] done", "\\[x] done"),
            ("[a]: http://b", "\\[a]: http://b"),
            ("1. one", "1\\. one"),
            ("```rs", "\\```rs"),
            ("---", "\\---"),
            ("| a |", "\\| a |"),
            ("<<<<<<< HEAD", "&lt;<<<<<< HEAD"),
            ("======= ", "\\======= "),
            ("**Status:** Accepted", "\\**Status:** Accepted"),
            ("a <!-- @tag: x --> b", "a &lt;!-- @tag: x --&gt; b"),
            ("a <PRıVATE> </private> b --!> c", "a &lt;PRıVATE> &lt;/private> b --!&gt; c"),
            ("a -> b => c", "a -> b => c"),
            (
                "Map<String, Vec<a::B>> in <your-name> if a<b",
                "Map<String, Vec<a::B>> in <your-name> if a<b",
            ),
            ("a <script>b</script>", "a &lt;script>b&lt;/script>"),
            ("a <img src=x onerror=b()> c", "a &lt;img src=x onerror=b()> c"),
            ("a<SvG onload='b'", "a&lt;SvG onload='b'"),
            ("see [a](http://b) and ![c](d/e.png)", "see [a](http://b) and ![c](d/e.png)"),
            ("![i](https://b/c) vec![1](d)", "\\![i](https://b/c) vec![1](d)"),
            ("[a](JavaScript:b()) [c]( <data:d>)", "[a]\\(JavaScript:b()) [c]\\( &lt;data:d>)"),
            ("[a](java&#115;cript:b)", "[a]\\(java&#115;cript:b)"),
        ] {
            assert_eq!(plain(words), expected);
        }
    }

    #[test]
    fn a_line_has_no_breaks_and_no_unseen_letters() {
        assert_eq!(one_line(" a\r\n\u{2028}b\u{85}\u{200b}c\u{0} \u{202e} d ", 99), "a b c d");
    }

    #[test]
    fn a_long_line_is_cut_at_a_word_and_says_so() {
        assert_eq!(one_line("configure the proxy", 16), "configure the…");
        assert_eq!(one_line("configure", 9), "configure");
        let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        assert_eq!(one_line(&format!("aaaaaaa{family}{family}"), 10), "aaaaaaa…");
    }
}
