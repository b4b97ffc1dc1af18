//! Edits of a JSON file that belongs to a user, at the offsets of its syntax tree: every other byte
//! stays.

use jsonc_parser::ast::{Array, Object, Value as Node};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::errors::ParseError;
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

/// Edits of one text, each for a range of it.
pub(super) struct Edits<'t> {
    text: &'t str,
    commas: Vec<usize>,
    edits: Vec<(Range, String)>,
}

/// Parses JSON, with comments if the client reads them. The tree is `None` if there is no value.
pub(super) fn parse(
    text: &str,
    comments: bool,
) -> Result<(Option<Node<'_>>, Edits<'_>), ParseError> {
    let collect = CollectOptions { comments: CommentCollectionStrategy::Off, tokens: true };
    let options = ParseOptions {
        allow_comments: comments,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &collect, &options)?;
    let tokens = parsed.tokens.unwrap_or_default();
    let commas = tokens.iter().filter(|it| it.token == Token::Comma).map(Ranged::start).collect();
    Ok((parsed.value, Edits { text, commas, edits: Vec::new() }))
}

impl Edits<'_> {
    /// Returns the edited text.
    pub(super) fn apply(mut self) -> String {
        self.edits.sort_by_key(|(range, _)| range.start);
        let (mut edited, mut from) = (String::new(), 0);
        for (range, new) in &self.edits {
            edited.extend([&self.text[from..range.start], new]);
            from = range.end;
        }
        edited + &self.text[from..]
    }

    pub(super) fn replace(&mut self, range: Range, new: impl ToString) {
        self.edits.push((range, new.to_string()));
    }

    /// Adds members behind the last one.
    pub(super) fn add_members(&mut self, object: &Object<'_>, new: &Map<String, Value>) {
        let member = |(name, value): (&String, &Value)| format!("\"{name}\": {value:#}");
        self.add(object.range, &object.properties, &new.iter().map(member).collect::<Vec<_>>());
    }

    /// Adds an element behind the last one.
    pub(super) fn add_element(&mut self, array: &Array<'_>, new: &Value) {
        self.add(array.range, &array.elements, &[format!("{new:#}")]);
    }

    fn add(&mut self, container: Range, children: &[impl Ranged], new: &[String]) {
        if new.is_empty() {
            return;
        }
        let line_end = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        let unit = self.text.lines().map(indent).find(|it| !it.is_empty()).unwrap_or("  ");
        let outer = indent(self.line_before(container.start));
        let own = children.last().map(|it| self.line_before(it.start()));
        let own = own.filter(|line| line.trim().is_empty());
        let inner = own.map_or_else(|| format!("{outer}{unit}"), str::to_owned);
        let line = |line: &str| {
            let depth = indent(line).len() / 2;
            format!("{line_end}{inner}{}{}", unit.repeat(depth), line.trim_start())
        };
        let new = new.iter().map(|it| it.lines().map(line).collect::<String>());
        let mut new = new.collect::<Vec<_>>().join(",");
        let end = container.end - 1;
        let at = self.text[..end].trim_end().len();
        match children.last() {
            Some(last) => {
                self.replace(Range::from_byte_index(last.end()), ",");
                self.replace(Range::from_byte_index(at), new);
            }
            None => {
                new.extend([line_end, outer]);
                self.replace(Range::new(at, end), new);
            }
        }
    }

    /// Cuts the chosen children of a container with their commas. Returns false, and cuts none, if
    /// all are chosen: the caller cuts the container instead.
    #[must_use]
    pub(super) fn cut(
        &mut self,
        container: Range,
        children: &[impl Ranged],
        chosen: &[bool],
    ) -> bool {
        if !children.is_empty() && !chosen.contains(&false) {
            return false;
        }
        let (mut before, mut is_first) = (container.start + 1, true);
        for (child, is_chosen) in children.iter().zip(chosen) {
            if *is_chosen {
                let from = if is_first { child.end() } else { before };
                if let Some(comma) = self.commas.iter().find(|comma| from <= **comma) {
                    self.replace(Range::new(*comma, comma + 1), "");
                }
                self.cut_one(before, child.range());
            }
            is_first &= *is_chosen;
            before = child.end();
        }
        true
    }

    /// Cuts the last member of that name, as [`Edits::cut`] does.
    #[must_use]
    pub(super) fn cut_member(&mut self, object: &Object<'_>, name: &str) -> bool {
        let at = object.properties.iter().rposition(|it| it.name.as_str() == name);
        let chosen: Vec<bool> =
            (0..object.properties.len()).map(|index| Some(index) == at).collect();
        self.cut(object.range, &object.properties, &chosen)
    }

    /// Cuts the last member of that name, even if the object is empty then.
    pub(super) fn cut_member_anyway(&mut self, object: &Object<'_>, name: &str) {
        if self.cut_member(object, name) {
            return;
        }
        let (start, end) = (object.range.start + 1, object.range.end - 1);
        for only in object.properties.iter().map(Ranged::range) {
            let around = [&self.text[start..only.start], &self.text[only.end..end]];
            match around.concat().trim().is_empty() {
                true => self.replace(Range::new(start, end), ""),
                false => self.cut_one(start, only),
            }
        }
    }

    /// Cuts a child and the white space in front of it, unless the rest of its line would become
    /// part of a comment. `before` is the end of what precedes it.
    fn cut_one(&mut self, before: usize, child: Range) {
        let rest = self.text[child.end..].trim_start_matches([' ', '\t', ',']);
        let is_commented = self.text[before..child.start].contains("//");
        let start = match is_commented && !rest.starts_with(['\r', '\n']) {
            true => child.start,
            false => self.text[..child.start].trim_end().len(),
        };
        self.replace(Range::new(start, child.end), "");
    }

    /// Part in front of an offset of the line that it is in.
    fn line_before(&self, offset: usize) -> &str {
        let before = &self.text[..offset];
        &before[before.rfind('\n').map_or(0, |at| at + 1)..]
    }
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}
