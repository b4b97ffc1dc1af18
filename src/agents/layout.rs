//! Layout of a user's JSON file, which an edit must not change: white space and comments.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Token of a JSON text, and what is in front of it: white space and comments.
#[derive(Clone, Copy, Debug)]
struct Token<'t> {
    gap: &'t str,
    text: &'t str,
    /// Hash of the path to its value. Elements of a list are told apart by their texts.
    place: u64,
}

/// Returns `edited` with the white space and the comments that its tokens have in `original`. Both are
/// valid JSON, apart from comments.
pub(super) fn with_layout_of(original: &str, edited: &str) -> String {
    let (before, end) = tokens(original);
    // What is inside an empty container is no gap between its members.
    let is_empty = |at: usize, tokens: &[Token<'_>]| {
        let opening = at.checked_sub(1).and_then(|at| tokens.get(at)).is_some_and(is_opening);
        opening && tokens.get(at).is_some_and(is_closing)
    };
    let mut known: HashMap<(u64, &str), &str> = HashMap::new();
    for (_, token) in before.iter().enumerate().filter(|(at, _)| !is_empty(*at, &before)) {
        known.insert((token.place, token.text), token.gap);
    }
    let (after, _) = tokens(edited);
    let mut text = String::new();
    for (at, token) in after.iter().enumerate() {
        let own = known.remove(&(token.place, token.text));
        let gap = match is_empty(at, &after) {
            true => token.gap,
            false => own.unwrap_or_else(|| without_comment(token.gap)),
        };
        text.extend([gap, token.text]);
    }
    text + end
}

/// Replaces comments with spaces.
pub(super) fn without_comments(text: &str) -> String {
    let (tokens, end) = split(text);
    let blank = |gap: &str| -> String {
        let is_comment = gap.contains('/');
        gap.chars().map(|it| if is_comment && !it.is_whitespace() { ' ' } else { it }).collect()
    };
    let mut bare: String = tokens.iter().map(|it| blank(it.gap) + it.text).collect();
    bare.push_str(&blank(end));
    bare
}

/// White space of a new token: comments stay with the token that they were written for.
fn without_comment(gap: &str) -> &str {
    let Some(end) = gap.rfind('/') else { return gap };
    let rest = gap.get(end + 1..).unwrap_or_default();
    let line = gap.rfind('\n').map_or(0, |at| if gap[..at].ends_with('\r') { at - 1 } else { at });
    gap.get(line..).filter(|_| end < line).unwrap_or(rest.trim_start_matches([' ', '\t']))
}

fn is_opening(token: &Token<'_>) -> bool {
    matches!(token.text, "{" | "[")
}

fn is_closing(token: &Token<'_>) -> bool {
    matches!(token.text, "}" | "]")
}

/// Tokens with their places, and the gap at the end.
fn tokens(text: &str) -> (Vec<Token<'_>>, &str) {
    let (mut tokens, end) = split(text);
    place_value(&mut tokens, 0, 0);
    (tokens, end)
}

fn split(text: &str) -> (Vec<Token<'_>>, &str) {
    let (mut tokens, mut rest) = (Vec::new(), text);
    loop {
        let gap = gap_length(rest);
        let (before, from) = rest.split_at(gap);
        let length = token_length(from);
        if length == 0 {
            return (tokens, rest);
        }
        let (own, after) = from.split_at(length);
        tokens.push(Token { gap: before, text: own, place: 0 });
        rest = after;
    }
}

fn gap_length(text: &str) -> usize {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let end = match rest.get(..2) {
            Some("//") => rest.find('\n'),
            Some("/*") => rest.find("*/").map(|end| end + 2),
            Some(_) | None => return text.len() - rest.len(),
        };
        rest = end.and_then(|end| rest.get(end..)).unwrap_or_default();
    }
}

fn token_length(text: &str) -> usize {
    match text.bytes().next() {
        None => 0,
        Some(b'"') => {
            let mut is_escaped = false;
            let end = text.bytes().skip(1).position(|byte| {
                let is_end = byte == b'"' && !is_escaped;
                is_escaped = byte == b'\\' && !is_escaped;
                is_end
            });
            end.map_or(text.len(), |end| end + 2)
        }
        Some(b'{' | b'}' | b'[' | b']' | b',' | b':') => 1,
        Some(_) => {
            let length = text.find(|it: char| " \t\r\n{}[],:\"/".contains(it));
            length.unwrap_or(text.len()).max(text.chars().next().map_or(1, char::len_utf8))
        }
    }
}

fn hash(parts: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// Sets the places of the value at `at`, and returns the index behind it.
fn place_value(tokens: &mut [Token<'_>], at: usize, place: u64) -> usize {
    let Some(token) = tokens.get_mut(at) else { return at };
    token.place = place;
    if !is_opening(token) {
        return at + 1;
    }
    let is_object = token.text == "{";
    let mut counts: HashMap<u64, u32> = HashMap::new();
    let mut next = at + 1;
    while let Some(token) = tokens.get_mut(next) {
        if is_closing(token) {
            token.place = place;
            return next + 1;
        }
        let end = if is_object { next + 1 } else { end_of(tokens, next) };
        let name: Vec<&str> =
            tokens.get(next..end).unwrap_or_default().iter().map(|it| it.text).collect();
        let name = hash((place, name));
        let count = counts.entry(name).or_default();
        let member = hash((name, *count));
        *count += 1;
        if is_object {
            // The name and the colon.
            for token in tokens.iter_mut().skip(next).take(2) {
                token.place = hash((member, "name"));
            }
            next += 2;
        }
        next = place_value(tokens, next, member);
        if let Some(comma) = tokens.get_mut(next).filter(|token| token.text == ",") {
            comma.place = member;
            next += 1;
        }
    }
    next
}

/// Index behind the value at `at`.
fn end_of(tokens: &[Token<'_>], at: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        if is_opening(token) {
            depth += 1;
        } else if is_closing(token) {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}
