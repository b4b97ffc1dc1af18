//! One edit of a text, and how what is new is written so that it looks like what is there.

use super::json::{Element, elements, members};
use serde_json::Value;
use std::ops::Range;

/// What a nesting is indented by where the text does not say.
const INDENT: &str = "  ";

/// One piece of a text in place of another.
pub(super) struct Edit {
    at: Range<usize>,
    text: String,
}

impl Edit {
    pub(super) fn replace(at: &Range<usize>, text: &str) -> Edit {
        Edit { at: at.clone(), text: text.to_owned() }
    }

    pub(super) fn remove(element: &Element) -> Edit {
        Edit { at: element.cut.clone(), text: String::new() }
    }

    pub(super) fn apply(&self, text: &str) -> String {
        let (before, after) = (&text[..self.at.start], &text[self.at.end..]);
        [before, &self.text, after].concat()
    }
}

/// How a text is laid out.
pub(super) struct Style<'t> {
    /// The line end; none where everything stands on one line.
    line_end: Option<&'static str>,
    /// What a nesting is indented by.
    indent: &'t str,
}

impl<'t> Style<'t> {
    pub(super) fn of(text: &'t str) -> Style<'t> {
        let text = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
        let is_crlf = text.find('\n').is_some_and(|at| text[..at].ends_with('\r'));
        let line_end = if is_crlf { "\r\n" } else { "\n" };
        let indented = text.lines().map(leading).find(|indent| !indent.is_empty());
        let is_empty = text.trim_end() == "{}";
        let is_laid_out = text.trim_end().contains('\n') || is_empty;
        Style { line_end: is_laid_out.then_some(line_end), indent: indented.unwrap_or(INDENT) }
    }

    /// Adds `value` behind everything in the list or object at `at`, as `name` if it is an object.
    pub(super) fn append(
        &self,
        text: &str,
        at: &Range<usize>,
        name: Option<&str>,
        value: &Value,
    ) -> Edit {
        let held = match name {
            Some(_) => members(text, at).pop().map(|member| member.element.whole),
            None => elements(text, at).pop().map(|element| element.whole),
        };
        let Some(last) = held else {
            let outer = leading(&text[line_start(text, at.start)..]);
            let inner = [outer, self.indent].concat();
            let item = self.item(name, value, self.line_end.map(|_| inner.as_str()));
            let (open, close) = if name.is_some() { ('{', '}') } else { ('[', ']') };
            let whole = match self.line_end {
                Some(end) => format!("{open}{end}{inner}{item}{end}{outer}{close}"),
                None => format!("{open}{item}{close}"),
            };
            return Edit { at: at.clone(), text: whole };
        };
        let line = &text[line_start(text, last.start)..last.start];
        // The first on its line: what is new stands on a line of its own too.
        let indent = Some(line).filter(|line| line.trim().is_empty()).zip(self.line_end);
        let item = self.item(name, value, indent.map(|(line, _)| line));
        let added = match indent {
            Some((line, end)) => format!(",{end}{line}{item}"),
            None => format!(", {item}"),
        };
        Edit { at: last.end..last.end, text: added }
    }

    /// The value as text: with the lines behind the first indented by `indent` and more, or on one line.
    fn item(&self, name: Option<&str>, value: &Value, indent: Option<&str>) -> String {
        let name = name.map(|name| format!("{}: ", Value::from(name))).unwrap_or_default();
        let (Some(base), Some(end)) = (indent, self.line_end) else {
            return format!("{name}{value}");
        };
        let pretty = format!("{value:#}");
        let lines = pretty.lines().map(|line| {
            let depth = leading(line).len() / INDENT.len();
            format!("{}{}", self.indent.repeat(depth), line.trim_start())
        });
        let lines: Vec<String> = lines.collect();
        name + &lines.join(&[end, base].concat())
    }
}

/// Where the line begins in which `at` stands.
fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// The blanks at the beginning of a line.
fn leading(line: &str) -> &str {
    let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
    &line[..blanks]
}
