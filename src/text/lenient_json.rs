//! Lenient reader of JSON as models write it. Each deviation that it tolerates adds a [`Repair`];
//! truncated elements are dropped, never guessed.

use crate::domain::{Finding, JSON_DEPTH_MAX, Severity};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

/// Maximum number of places in prose to try as the start of the object; a try may read to the end.
const BRACES_MAX: usize = 32;
/// Number of bytes read by these tries after which no other starts.
const READ_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum number of consecutive objects to join.
const OBJECTS_MAX: usize = 16;
/// Maximum nesting of JSON in JSON strings; more than two levels were never seen.
const ENCODINGS_MAX: usize = 3;

macro_rules! repairs {
    ($($variant:ident, $rule:literal, $severity:ident, $detail:literal;)*) => {
        /// One kind of leniency; an answer holds each at most once.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub enum Repair { $(#[doc = $detail] $variant),* }

        impl Repair {
            /// The repair as a finding about an answer.
            pub fn finding(self) -> Finding {
                match self {
                    $(Repair::$variant => Finding::new(Severity::$severity, $rule, 0, $detail)),*
                }
            }
        }
    };
}

repairs! {
    Cut, "cut-json", Warning, "the JSON ends too early; what was whole is kept";
    Broken, "broken-json", Warning, "the JSON cannot be read from some place on; what was whole before it is kept";
    Mark, "byte-order-mark", Info, "a byte order mark before the JSON";
    Fence, "code-fence", Info, "a code fence around the JSON";
    Prose, "prose-around", Info, "words around the JSON";
    Twice, "encoded-twice", Info, "JSON inside a JSON string";
    Wrapped, "wrapped", Info, "the JSON inside another object";
    Several, "several-objects", Warning, "several JSON objects, joined";
    Literal, "foreign-literal", Info, "a literal that JSON does not have";
    BareWord, "bare-word", Warning, "a bare word where a value belongs";
    BareKey, "bare-key", Info, "a key without quotes";
    SingleQuotes, "single-quotes", Info, "strings in single quotes";
    RawQuote, "raw-quote", Warning, "a quote inside a string without its backslash";
    Surrogate, "lone-surrogate", Warning, "half of a surrogate pair, replaced";
    Nul, "nul-character", Warning, "a NUL character, dropped";
    Control, "control-character", Info, "a control character without its escape";
    Escape, "bad-escape", Info, "an escape that JSON does not have";
    DuplicateKey, "duplicate-key", Warning, "a key twice in one object; lists are joined";
    ExtraComma, "extra-comma", Info, "a comma too many";
    MissingComma, "missing-comma", Info, "a comma too few";
    Comment, "comment", Info, "a comment in JSON";
    TooDeep, "too-deep", Warning, "a value nested too deep, dropped";
}

/// Reads `text` as the expected object, which has at least one of the keys `lists`. Null if there
/// is no object.
pub(crate) fn decode(text: &str, lists: &[&str]) -> (Value, Vec<Repair>) {
    let mut repairs = Repairs::default();
    let value = open(text, lists, ENCODINGS_MAX, &mut repairs);
    (value, repairs.0)
}

/// Reads the beginning of a value that may be cut off or broken anywhere, as much as there is of it.
pub(crate) fn beginning(text: &str) -> Value {
    let mut parser = Parser { keeps_cut: true, ..Parser::new(text, 0) };
    parser.value(0).value.unwrap_or_default()
}

/// Replaces what a strict parser rejects in strings: lone surrogate escapes, which clients write when
/// they cut a string inside an emoji, and control characters. `None` if there are other errors.
pub(crate) fn repaired(text: &str) -> Option<String> {
    const REPAIRED: [Repair; 3] = [Repair::Surrogate, Repair::Control, Repair::Nul];
    let mut parser = Parser::new(text, 0);
    let Parsed { value, whole } = parser.value(0);
    let is_end = parser.rest().chars().all(|it| it.is_whitespace() || it.is_control());
    let is_json = whole && is_end && parser.repairs.0.iter().all(|it| REPAIRED.contains(it));
    value.filter(|_| is_json).map(|value| value.to_string())
}

/// Sentence of a JSON error without the value found, which may be words of a conversation.
pub(crate) fn expectation(error: &serde_json::Error) -> String {
    use serde_json::error::Category;
    let (text, line, column) = (error.to_string(), error.line(), error.column());
    match error.classify() {
        Category::Data => {}
        Category::Syntax | Category::Eof | Category::Io => {
            return format!("line {line}, column {column}: no JSON that can be read");
        }
    }
    let text = text.split(" at line ").next().unwrap_or_default();
    text.split_once(", expected ").map_or(text.to_owned(), |(_, it)| format!("expected {it}"))
}

/// Repairs in the order of first use, without duplicates.
#[derive(Clone, Debug, Default)]
struct Repairs(Vec<Repair>);

impl Repairs {
    fn add(&mut self, repair: Repair) {
        if !self.0.contains(&repair) {
            self.0.push(repair);
        }
    }

    fn extend(&mut self, others: &Repairs) {
        others.0.iter().for_each(|repair| self.add(*repair));
    }
}

fn open(text: &str, lists: &[&str], encodings: usize, repairs: &mut Repairs) -> Value {
    let mut text = text.trim();
    if let Some(rest) = text.strip_prefix('\u{feff}') {
        repairs.add(Repair::Mark);
        text = rest.trim_start();
    }
    let mut seen = Repairs::default();
    let value = match text.bytes().next() {
        None => return Value::Null,
        Some(b'{') => objects(text, &mut seen),
        Some(b'[') => {
            let mut parser = Parser::new(text, 0);
            let value = parser.value(0).value;
            seen = parser.repairs;
            value.unwrap_or_default()
        }
        Some(b'"') if encodings > 0 => {
            let mut parser = Parser::new(text, 0);
            let (inner, _) = parser.string(b'"');
            if begins(&inner) {
                repairs.add(Repair::Twice);
                repairs.extend(&parser.repairs);
                return open(&inner, lists, encodings - 1, repairs);
            }
            Value::Null
        }
        Some(_) => Value::Null,
    };
    let value =
        if known(&value, lists) { value } else { unwrap(value, lists, encodings, &mut seen) };
    if !known(&value, lists) {
        let mut among = Repairs::default();
        let found = in_prose(text, lists, &mut among);
        if known(&found, lists) || value.is_null() {
            repairs.extend(&among);
            return found;
        }
    }
    repairs.extend(&seen);
    value
}

/// Joins the objects at the start of `text`.
fn objects(text: &str, repairs: &mut Repairs) -> Value {
    let mut parser = Parser::new(text, 0);
    let mut joined = Map::new();
    for count in 0..OBJECTS_MAX {
        let parsed = parser.value(0);
        if let Some(Value::Object(object)) = parsed.value {
            for (key, value) in object {
                put(&mut joined, key, value);
            }
        }
        parser.skip_blanks();
        if count > 0 {
            parser.repairs.add(Repair::Several);
        }
        match parser.peek() {
            Some(b'{') => {}
            Some(_) => {
                parser.repairs.add(Repair::Prose);
                break;
            }
            None => break,
        }
    }
    repairs.extend(&parser.repairs);
    Value::Object(joined)
}

/// Finds the object in prose. If two have the same list, the later one counts: drafts come first.
fn in_prose(text: &str, lists: &[&str], repairs: &mut Repairs) -> Value {
    let thought = text.rfind("</think>").unwrap_or(0);
    let mut found = Map::new();
    let mut other = None;
    let (mut from, mut tries, mut read) = (thought, 0, 0);
    for (at, _) in text.match_indices('{') {
        if tries == BRACES_MAX || read > READ_BYTES_MAX {
            break;
        }
        if at < from || !opens(text, at) {
            continue;
        }
        tries += 1;
        let mut parser = Parser::new(text, at);
        let value = parser.value(0).value.unwrap_or_default();
        read += parser.at - at;
        let seen = &parser.repairs;
        let is_known = known(&value, lists);
        let Value::Object(object) = value else { continue };
        if is_known {
            from = parser.at;
            repairs.extend(seen);
            found.extend(object);
        } else if other.is_none() && !object.is_empty() {
            other = Some((object, seen.clone()));
        }
    }
    if found.is_empty() {
        let Some((object, seen)) = other else { return Value::Null };
        repairs.extend(&seen);
        found = object;
    }
    repairs.add(if text.contains("```") { Repair::Fence } else { Repair::Prose });
    Value::Object(found)
}

/// Returns the object one level inside `value`, or `value` itself if there is none.
fn unwrap(value: Value, lists: &[&str], encodings: usize, repairs: &mut Repairs) -> Value {
    let inner: Vec<&Value> = match &value {
        Value::Object(object) => object.values().collect(),
        Value::Array(items) => items.iter().take(OBJECTS_MAX).collect(),
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => Vec::new(),
    };
    let mut joined = Map::new();
    for inner in inner {
        let mut seen = Repairs::default();
        let encoded = inner.as_str().filter(|text| encodings > 0 && begins(text));
        let opened = match encoded {
            Some(text) => open(text, lists, encodings - 1, &mut seen),
            None => inner.clone(),
        };
        if let Value::Object(object) = opened
            && lists.iter().any(|list| object.contains_key(*list))
        {
            repairs.extend(&seen);
            for (key, list) in object {
                put(&mut joined, key, list);
            }
        }
    }
    if joined.is_empty() {
        return value;
    }
    repairs.add(Repair::Wrapped);
    Value::Object(joined)
}

/// True if the brace at `at` may open an object, unlike a brace in code.
fn opens(text: &str, at: usize) -> bool {
    let behind = text.get(at + 1..).unwrap_or_default().trim_start();
    behind.starts_with(['"', '\''])
}

fn begins(text: &str) -> bool {
    text.trim_start().starts_with(['{', '"', '[', '`', '\u{feff}'])
}

fn known(value: &Value, lists: &[&str]) -> bool {
    lists.iter().any(|list| value.get(list).is_some())
}

/// Inserts `value` under `key`; true if the key was there. Joins two lists, so that no claim is lost.
fn put(map: &mut Map<String, Value>, key: String, value: Value) -> bool {
    match map.entry(key) {
        Entry::Vacant(free) => {
            free.insert(value);
            false
        }
        Entry::Occupied(mut taken) => {
            match (taken.get_mut(), value) {
                (Value::Array(first), Value::Array(second)) => first.extend(second),
                (old, new) => *old = new,
            }
            true
        }
    }
}

/// Tolerant parser of one JSON value. At the end of the text it closes what is open and drops the
/// truncated element; at a place it cannot parse, it behaves as if the text ended there.
struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// Keeps the truncated element.
    keeps_cut: bool,
    repairs: Repairs,
}

/// A value, and whether it is complete. Without a value: truncated before it began, or dropped.
struct Parsed {
    value: Option<Value>,
    whole: bool,
}

impl Parsed {
    fn whole(value: Value) -> Parsed {
        Parsed { value: Some(value), whole: true }
    }

    const CUT: Parsed = Parsed { value: None, whole: false };
    const DROPPED: Parsed = Parsed { value: None, whole: true };
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, at: usize) -> Parser<'a> {
        Parser { text, at, keeps_cut: false, repairs: Repairs::default() }
    }

    /// Parses the value that begins here; `depth` is the number of lists and objects around it.
    fn value(&mut self, depth: usize) -> Parsed {
        self.skip_blanks();
        match self.peek() {
            None => self.cut(),
            Some(b'{' | b'[') if depth >= JSON_DEPTH_MAX => self.skip_nested(),
            Some(b'{' | b'[') => self.nested(depth + 1),
            Some(quote @ (b'"' | b'\'')) => match self.string(quote) {
                (text, whole) if whole || self.keeps_cut => {
                    Parsed { value: Some(Value::String(text)), whole }
                }
                (..) => self.cut(),
            },
            Some(_) => self.word(),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn cut(&mut self) -> Parsed {
        self.repairs.add(Repair::Cut);
        Parsed::CUT
    }

    /// Ends parsing, as if the text ended here.
    fn give_up(&mut self) {
        self.repairs.add(Repair::Broken);
        self.at = self.text.len();
    }

    /// Parses the list or object that begins here.
    fn nested(&mut self, depth: usize) -> Parsed {
        let is_object = self.peek() == Some(b'{');
        self.at += 1;
        let (mut items, mut members, mut comma) = (Vec::new(), Map::new(), Comma::Begin);
        let whole = loop {
            self.skip_blanks();
            match self.peek() {
                None => {
                    self.repairs.add(Repair::Cut);
                    break false;
                }
                Some(b',') => self.comma(&mut comma),
                Some(b'}') if is_object => break self.close(comma),
                Some(b']') if !is_object => break self.close(comma),
                Some(b'}' | b']' | b':') => self.give_up(),
                Some(b'[' | b'{') if is_object => self.give_up(),
                Some(_) => {
                    if comma == Comma::Wanted {
                        self.repairs.add(Repair::MissingComma);
                    }
                    comma = Comma::Wanted;
                    let key = if is_object { self.key() } else { None };
                    if is_object && key.is_none() {
                        continue;
                    }
                    let Parsed { value, whole } = self.value(depth);
                    let is_kept = |value: &Value| {
                        let is_nested = matches!(value, Value::Array(_) | Value::Object(_));
                        whole || self.keeps_cut || is_object && is_nested
                    };
                    let value = value.filter(is_kept);
                    if let Some(key) = key {
                        if value.is_some_and(|value| put(&mut members, key, value)) {
                            self.repairs.add(Repair::DuplicateKey);
                        }
                    } else {
                        items.extend(value);
                    }
                    if !whole {
                        break false;
                    }
                }
            }
        };
        let value = if is_object { Value::Object(members) } else { Value::Array(items) };
        Parsed { value: Some(value), whole }
    }

    /// Parses a key and its colon. If there is none, parsing ends.
    fn key(&mut self) -> Option<String> {
        let key = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => self.string(quote).0,
            Some(_) | None => {
                self.repairs.add(Repair::BareKey);
                self.bare().to_owned()
            }
        };
        self.skip_blanks();
        match self.peek() {
            Some(b':') if !key.is_empty() => {
                self.at += 1;
                return Some(key);
            }
            Some(_) => self.give_up(),
            None => {}
        }
        None
    }

    fn comma(&mut self, comma: &mut Comma) {
        if *comma != Comma::Wanted {
            self.repairs.add(Repair::ExtraComma);
        }
        *comma = Comma::Seen;
        self.at += 1;
    }

    /// Ends a list or an object; true, since it is whole.
    fn close(&mut self, comma: Comma) -> bool {
        if comma == Comma::Seen {
            self.repairs.add(Repair::ExtraComma);
        }
        self.at += 1;
        true
    }

    /// A number, a literal, or a word that does not belong here.
    fn word(&mut self) -> Parsed {
        let word = self.bare();
        if word.is_empty() {
            self.give_up();
            return Parsed::CUT;
        }
        let value = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            _ if self.peek().is_none() => return self.cut(),
            "True" | "False" => {
                self.repairs.add(Repair::Literal);
                Value::Bool(word == "True")
            }
            "NaN" | "nan" | "Infinity" | "-Infinity" | "inf" | "-inf" | "None" | "undefined" => {
                self.repairs.add(Repair::Literal);
                Value::Null
            }
            number => number.parse::<Number>().map(Value::Number).unwrap_or_else(|_| {
                self.repairs.add(Repair::BareWord);
                Value::Null
            }),
        };
        Parsed::whole(value)
    }

    /// Characters up to the next delimiter.
    fn bare(&mut self) -> &'a str {
        let rest = self.rest();
        let ends =
            |c: char| c.is_whitespace() || matches!(c, ',' | ':' | '{' | '}' | '[' | ']' | '"');
        let word = rest.split(ends).next().unwrap_or_default();
        self.at += word.len();
        word
    }

    /// Skips a list or an object without building it, however deep it is.
    fn skip_nested(&mut self) -> Parsed {
        self.repairs.add(Repair::TooDeep);
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.string(b'"');
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return Parsed::DROPPED;
            }
        }
        self.cut()
    }

    /// Parses the string that begins here; false if it was not closed.
    fn string(&mut self, quote: u8) -> (String, bool) {
        if quote == b'\'' {
            self.repairs.add(Repair::SingleQuotes);
        }
        self.at += 1;
        let mut out = String::new();
        loop {
            let plain = |byte: &u8| *byte != quote && *byte != b'\\' && *byte >= 0x20;
            let bytes = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let run = bytes.iter().take_while(|byte| plain(byte)).count();
            out.push_str(self.text.get(self.at..self.at + run).unwrap_or_default());
            self.at += run;
            match self.peek() {
                None => return (out, false),
                Some(b'\\') => {
                    if !self.escape(&mut out) {
                        return (out, false);
                    }
                    continue;
                }
                Some(byte) if byte == quote => {
                    if self.closes(quote) {
                        self.at += 1;
                        return (out, true);
                    }
                    self.repairs.add(Repair::RawQuote);
                    out.push(char::from(quote));
                }
                Some(0) => self.repairs.add(Repair::Nul),
                Some(byte) => {
                    self.repairs.add(Repair::Control);
                    out.push(char::from(byte));
                }
            }
            self.at += 1;
        }
    }

    /// True if the quote here ends its string: what follows it can follow a string.
    fn closes(&self, quote: u8) -> bool {
        let behind = self.text.as_bytes().get(self.at + 1..).unwrap_or_default();
        match behind.iter().find(|byte| !byte.is_ascii_whitespace()) {
            None | Some(b',' | b':' | b'}' | b']' | b'/') => true,
            Some(byte) => *byte == quote,
        }
    }

    /// Parses one escape; false if the text ends in it.
    fn escape(&mut self, out: &mut String) -> bool {
        let Some(next) = self.rest().chars().nth(1) else {
            self.at = self.text.len();
            return false;
        };
        self.at += 1 + next.len_utf8();
        match next {
            '"' | '\\' | '/' => out.push(next),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => return self.code_unit(out),
            other => {
                // A path such as C:\Users, with a backslash that should be doubled.
                self.repairs.add(Repair::Escape);
                out.push('\\');
                out.push(other);
            }
        }
        true
    }

    /// Parses the digits after `\u` and the second half of a pair; false if the text ends in them.
    fn code_unit(&mut self, out: &mut String) -> bool {
        let Some(digits) = self.text.as_bytes().get(self.at..self.at + 4) else {
            self.at = self.text.len();
            return false;
        };
        let Some(unit) = hex(digits) else {
            self.repairs.add(Repair::Escape);
            out.push_str("\\u");
            return true;
        };
        self.at += 4;
        if (0xD800..0xDC00).contains(&unit) {
            let behind = self.rest().as_bytes().strip_prefix(b"\\u");
            let low = behind.and_then(|digits| digits.get(..4)).and_then(hex);
            if let Some(low) = low.filter(|low| (0xDC00..0xE000).contains(low)) {
                self.at += 6;
                let code = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                return true;
            }
        }
        match char::from_u32(unit) {
            Some('\0') => self.repairs.add(Repair::Nul),
            Some(letter) => out.push(letter),
            None => {
                self.repairs.add(Repair::Surrogate);
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
        true
    }

    /// Skips blanks and comments.
    fn skip_blanks(&mut self) {
        loop {
            let bytes = self.text.as_bytes().get(self.at..).unwrap_or_default();
            self.at += bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let rest = self.rest();
            let length = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else {
                return;
            };
            self.repairs.add(Repair::Comment);
            self.at += length;
        }
    }
}

/// State of the comma before the next element.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Comma {
    Begin,
    Wanted,
    Seen,
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
#[path = "lenient_json_tests.rs"]
pub(crate) mod tests;
