//! A tolerant parser of one JSON value. At the end of the text it closes what is open and drops the
//! element that was cut; at a place it cannot read, it behaves as if the text ended there.

use super::join::put;
use super::repair::{Repair, Repairs};
use crate::domain::JSON_DEPTH_MAX;
use serde_json::{Map, Number, Value};

/// A value, and whether it was there to its end. No value: cut before there was one, or dropped.
pub(super) struct Parsed {
    pub(super) value: Option<Value>,
    pub(super) whole: bool,
}

impl Parsed {
    fn whole(value: Value) -> Parsed {
        Parsed { value: Some(value), whole: true }
    }

    /// A list or an object with what was whole of it.
    fn half(value: Value) -> Parsed {
        Parsed { value: Some(value), whole: false }
    }

    const CUT: Parsed = Parsed { value: None, whole: false };
    const DROPPED: Parsed = Parsed { value: None, whole: true };
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) repairs: Repairs,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, at: usize) -> Parser<'a> {
        Parser { text, at, repairs: Repairs::default() }
    }

    /// Reads the value that begins here; `depth` is how many lists and objects are open around it.
    pub(super) fn value(&mut self, depth: usize) -> Parsed {
        self.skip_blanks();
        match self.peek() {
            None => self.cut(),
            Some(b'{' | b'[') if depth >= JSON_DEPTH_MAX => self.skip_nested(),
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.list(depth + 1),
            Some(quote @ (b'"' | b'\'')) => match self.string(quote) {
                (text, true) => Parsed::whole(Value::String(text)),
                (_, false) => self.cut(),
            },
            Some(_) => self.word(),
        }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn cut(&mut self) -> Parsed {
        self.repairs.add(Repair::Cut);
        Parsed::CUT
    }

    /// Gives up here: what follows is as if it were not there.
    fn give_up(&mut self) {
        self.repairs.add(Repair::Broken);
        self.at = self.text.len();
    }

    fn list(&mut self, depth: usize) -> Parsed {
        self.at += 1;
        let mut items = Vec::new();
        let mut comma = Comma::Begin;
        loop {
            self.skip_blanks();
            match self.peek() {
                None => {
                    self.repairs.add(Repair::Cut);
                    return Parsed::half(Value::Array(items));
                }
                Some(b',') => self.comma(&mut comma),
                Some(b']') => {
                    self.close(comma);
                    return Parsed::whole(Value::Array(items));
                }
                Some(b'}' | b':') => self.give_up(),
                Some(_) => {
                    self.element(&mut comma);
                    let item = self.value(depth);
                    if !item.whole {
                        return Parsed::half(Value::Array(items));
                    }
                    items.extend(item.value);
                }
            }
        }
    }

    fn object(&mut self, depth: usize) -> Parsed {
        self.at += 1;
        let mut members = Map::new();
        let mut comma = Comma::Begin;
        loop {
            self.skip_blanks();
            match self.peek() {
                None => {
                    self.repairs.add(Repair::Cut);
                    return Parsed::half(Value::Object(members));
                }
                Some(b',') => self.comma(&mut comma),
                Some(b'}') => {
                    self.close(comma);
                    return Parsed::whole(Value::Object(members));
                }
                Some(b'[' | b']' | b'{' | b':') => self.give_up(),
                Some(_) => {
                    self.element(&mut comma);
                    let Some(key) = self.key() else { continue };
                    let member = self.value(depth);
                    let nested = matches!(member.value, Some(Value::Array(_) | Value::Object(_)));
                    if let Some(value) = member.value.filter(|_| member.whole || nested)
                        && put(&mut members, key, value)
                    {
                        self.repairs.add(Repair::DuplicateKey);
                    }
                    if !member.whole {
                        return Parsed::half(Value::Object(members));
                    }
                }
            }
        }
    }

    /// A key and its colon. If there is none, the text is at its end afterwards.
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

    fn element(&mut self, comma: &mut Comma) {
        if *comma == Comma::Wanted {
            self.repairs.add(Repair::MissingComma);
        }
        *comma = Comma::Wanted;
    }

    fn close(&mut self, comma: Comma) {
        if comma == Comma::Seen {
            self.repairs.add(Repair::ExtraComma);
        }
        self.at += 1;
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

    /// Characters up to the next one that has a meaning.
    fn bare(&mut self) -> &'a str {
        let rest = self.rest();
        let ends =
            |c: char| c.is_whitespace() || matches!(c, ',' | ':' | '{' | '}' | '[' | ']' | '"');
        let word = rest.split(ends).next().unwrap_or_default();
        self.at += word.len();
        word
    }

    /// Passes over a list or an object without building it, however deep it is.
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
}

/// What is known about the comma before the next element.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Comma {
    Begin,
    Wanted,
    Seen,
}
