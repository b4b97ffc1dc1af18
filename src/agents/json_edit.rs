//! Edits of a JSON file that belongs to a user, at the offsets of its syntax tree: every other byte
//! stays. White space is that of JSON: a comment may end with other white space.

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
    comments: Vec<Range>,
    edits: Vec<(Range, String)>,
}

/// Parses JSON, with comments if the client reads them. The tree is `None` if there is no value.
pub(super) fn parse(
    text: &str,
    comments: bool,
) -> Result<(Option<Node<'_>>, Edits<'_>), ParseError> {
    // As tokens, comments would be accepted in any case.
    let strategy = match comments {
        true => CommentCollectionStrategy::AsTokens,
        false => CommentCollectionStrategy::Off,
    };
    let collect = CollectOptions { comments: strategy, tokens: true };
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
    let is_comment =
        |token: &Token<'_>| matches!(token, Token::CommentLine(_) | Token::CommentBlock(_));
    let comments = tokens.iter().filter(|it| is_comment(&it.token)).map(|it| it.range).collect();
    Ok((parsed.value, Edits { text, commas, comments, edits: Vec::new() }))
}

impl Edits<'_> {
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
        let own = own.filter(|line| indent(line) == *line);
        let inner = own.map_or_else(|| format!("{outer}{unit}"), str::to_owned);
        let line = |line: &str| {
            let depth = indent(line).len() / 2;
            format!("{line_end}{inner}{}{}", unit.repeat(depth), line.trim_start())
        };
        let new = new.iter().map(|it| it.lines().map(line).collect::<String>());
        let mut new = new.collect::<Vec<_>>().join(",");
        let end = container.end - 1;
        let at = without_space(&self.text[..end]).len();
        match children.last() {
            Some(last) => {
                self.replace(Range::from_byte_index(last.end()), ",");
                self.replace(Range::from_byte_index(at), new);
            }
            // Behind a comment, all stays as it is, so that it can come back.
            None if container.start + 1 < at => self.replace(Range::from_byte_index(at), new),
            None => {
                new.extend([line_end, outer]);
                self.replace(Range::new(at, end), new);
            }
        }
    }

    /// Cuts the chosen children of a container with their commas. Returns false, and cuts none, if
    /// no other child and no comment is in `whole`, the container or what holds it: the caller cuts
    /// that. Nothing tells whether it was empty before.
    #[must_use]
    pub(super) fn cut(
        &mut self,
        whole: Range,
        container: Range,
        children: &[impl Ranged],
        chosen: &[bool],
    ) -> bool {
        let is_in = |comment: &Range, range: Range| {
            range.start <= comment.start && comment.end <= range.end
        };
        let is_commented = |range: Range| {
            self.comments.iter().any(|comment| {
                let mut children = children.iter();
                is_in(comment, range) && !children.any(|child| is_in(comment, child.range()))
            })
        };
        if !children.is_empty() && !chosen.contains(&false) {
            if !is_commented(whole) {
                return false;
            }
            if !is_commented(container) {
                self.empty(container);
                return true;
            }
        }
        let last_kept = chosen.iter().rposition(|is_chosen| !is_chosen);
        for (at, child) in children.iter().enumerate().filter(|(at, _)| chosen[*at]) {
            // The last children lose the comma in front, and others the one behind.
            let from = match last_kept.is_some_and(|kept| at < kept) {
                true => Some(child.end()),
                false => at.checked_sub(1).map(|before| children[before].end()),
            };
            let comma = from.and_then(|from| self.commas.iter().find(|comma| from <= **comma));
            self.cut_one(child.range(), comma.copied());
        }
        true
    }

    /// Cuts the last member of that name, as [`Edits::cut`] does.
    #[must_use]
    pub(super) fn cut_member(&mut self, whole: Range, object: &Object<'_>, name: &str) -> bool {
        let at = object.properties.iter().rposition(|it| it.name.as_str() == name);
        let chosen: Vec<bool> =
            (0..object.properties.len()).map(|index| Some(index) == at).collect();
        self.cut(whole, object.range, &object.properties, &chosen)
    }

    /// Cuts the last member of that name, even if the object is empty then: `{}`.
    pub(super) fn cut_member_anyway(&mut self, object: &Object<'_>, name: &str) {
        if !self.cut_member(object.range, object, name) {
            self.empty(object.range);
        }
    }

    fn empty(&mut self, container: Range) {
        self.replace(Range::new(container.start + 1, container.end - 1), "");
    }

    /// Cuts a child with a comma and the white space in front, unless the rest of its line would
    /// become part of a comment.
    fn cut_one(&mut self, child: Range, comma: Option<usize>) {
        let mut from = child.start;
        if let Some(comma) = comma {
            match self.text.get(comma + 1..from).is_some_and(|it| without_space(it).is_empty()) {
                true => from = comma,
                false => self.replace(Range::new(comma, comma + 1), ""),
            }
        }
        let start = without_space(&self.text[..from]).len();
        let mut comments = self.comments.iter();
        let is_in_comment = comments.any(|it| {
            self.text[it.start..].starts_with("//") && it.start < start && start <= it.end
        });
        let rest = self.text[child.end..].trim_start_matches([' ', '\t', ',']);
        let is_joined = is_in_comment && !rest.starts_with(['\r', '\n']);
        self.replace(Range::new(if is_joined { from } else { start }, child.end), "");
    }

    /// Part in front of an offset of the line that it is in.
    fn line_before(&self, offset: usize) -> &str {
        let before = &self.text[..offset];
        &before[before.rfind('\n').map_or(0, |at| at + 1)..]
    }
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

fn without_space(text: &str) -> &str {
    text.trim_end_matches([' ', '\t', '\r', '\n'])
}
