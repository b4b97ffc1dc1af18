//! One pass over a transcript, a record at a time: its lines, or the elements of one list inside
//! one JSON object, for exports that are not written in lines.

use super::lines::{Line, Lines};
use crate::domain::DETECT_BYTES_MAX;
use memchr::memmem;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// Hands over each record from the beginning, until `take` says no: the elements of the list under
/// `key`, or the lines where there is no key. Says whether the whole could be read.
pub(super) fn pass<R: Read + Seek>(
    input: &mut R,
    key: Option<&str>,
    mut take: impl FnMut(Line<'_>) -> bool,
) -> io::Result<bool> {
    input.seek(SeekFrom::Start(0))?;
    if let Some(key) = key {
        return each(input, key, |number, text| {
            let text = Cow::Borrowed(text);
            take(Line { number, text, complete: true, too_long: false, repaired: false })
        });
    }
    let mut lines = Lines::new(input);
    while let Some(line) = lines.next()? {
        if !take(line) {
            break;
        }
    }
    Ok(true)
}

/// Whether the input is one object that holds a list under `key`; reads from the beginning.
pub(super) fn is_list<R: Read + Seek>(input: &mut R, key: &str) -> io::Result<bool> {
    let limit = u64::try_from(DETECT_BYTES_MAX).unwrap_or(u64::MAX);
    let mut head = Vec::new();
    input.seek(SeekFrom::Start(0))?;
    input.by_ref().take(limit).read_to_end(&mut head)?;
    if memmem::find(&head, format!("\"{key}\"").as_bytes()).is_none() {
        return Ok(false);
    }
    input.seek(SeekFrom::Start(0))?;
    let mut any = false;
    each(input, key, |_, _| {
        any = true;
        false
    })?;
    Ok(any)
}

/// Hands over the JSON of each element of the list under `key`, numbered from 1, until `take` says
/// no. Says whether the whole object could be read, as far as `take` wanted it.
fn each(
    input: &mut impl Read,
    key: &str,
    mut take: impl FnMut(u32, &str) -> bool,
) -> io::Result<bool> {
    let mut stopped = false;
    let mut number = 0u32;
    let mut element = |text: &str| {
        number = number.saturating_add(1);
        stopped = !take(number, text);
        !stopped
    };
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(input));
    let read = json.deserialize_any(Object { key, element: &mut element });
    match read {
        Err(error) if error.is_io() => Err(error.into()),
        Err(_) => Ok(stopped),
        Ok(()) => Ok(true),
    }
}

struct Object<'a, F> {
    key: &'a str,
    element: &'a mut F,
}

impl<'de, F: FnMut(&str) -> bool> Visitor<'de> for Object<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == self.key {
                map.next_value_seed(List(&mut *self.element))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct List<'a, F>(&'a mut F);

impl<'de, F: FnMut(&str) -> bool> DeserializeSeed<'de> for List<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(&str) -> bool> Visitor<'de> for List<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(element) = seq.next_element::<Box<RawValue>>()? {
            if !(self.0)(element.get()) {
                return Err(A::Error::custom("no more is wanted"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &[&str], whole: bool) {
        let mut got = Vec::new();
        let mut bytes = json.as_bytes();
        let read = each(&mut bytes, "list", |_, text| {
            got.push(text.to_owned());
            got.len() < 3
        });
        assert_eq!(
            (got.iter().map(String::as_str).collect::<Vec<_>>(), read.unwrap()),
            (expected.to_vec(), whole)
        );
    }

    #[test]
    fn elements_come_one_by_one() {
        check(r#"{"a":[1],"list":[{"x": 1},2]}"#, &[r#"{"x": 1}"#, "2"], true);
    }

    #[test]
    fn reading_ends_when_no_more_is_wanted() {
        check(r#"{"list":[1,2,3,4]}"#, &["1", "2", "3"], true);
    }

    #[test]
    fn a_broken_object_gives_what_stands_before() {
        check(r#"{"list":[1,2"#, &["1", "2"], false);
        check("[1]", &[], false);
    }
}
