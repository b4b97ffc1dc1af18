//! Fields of JSON records, read leniently and without copying. A value of unexpected shape is
//! ignored, so that one odd field does not cost the whole record. For records of any shape, see
//! [`json`](super::json).

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Shape of a value. Objects are read as `T`, lists as `L`.
enum Shape<'a, T, L = IgnoredAny> {
    Other,
    Bool(bool),
    Int(i64),
    Text(Cow<'a, str>),
    List(L),
    Object(T),
}

impl<'de, T: Deserialize<'de>, L: Deserialize<'de>> Deserialize<'de> for Shape<'de, T, L> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Shape<'de, T, L>, D::Error> {
        deserializer.deserialize_any(ShapeVisitor(PhantomData))
    }
}

struct ShapeVisitor<T, L>(PhantomData<(T, L)>);

impl<'de, T: Deserialize<'de>, L: Deserialize<'de>> Visitor<'de> for ShapeVisitor<T, L> {
    type Value = Shape<'de, T, L>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Shape::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Shape::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(value).map_or(Shape::Other, Shape::Int))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Shape::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Shape::Text(Cow::Borrowed(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        L::deserialize(SeqAccessDeserializer::new(seq)).map(Shape::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Shape::Object)
    }
}

/// A string, or `None` for any other value.
#[derive(Clone, Debug, Default)]
pub(super) struct Str<'a>(pub(super) Option<Cow<'a, str>>);

impl Str<'_> {
    pub(super) fn get(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// Returns the string unless it is absent or empty.
    pub(super) fn some(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }

    /// Returns a copy unless the string is absent or empty.
    pub(super) fn owned(&self) -> Option<String> {
        self.some().map(str::to_owned)
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.0.as_deref() == Some(text)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Str<'a>, D::Error> {
        let shape = Shape::<IgnoredAny>::deserialize(deserializer)?;
        Ok(Str(if let Shape::Text(text) = shape { Some(text) } else { None }))
    }
}

/// A boolean, or `None` for any other value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flag(pub(super) Option<bool>);

impl Flag {
    pub(super) fn on(self) -> bool {
        self.0 == Some(true)
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Flag, D::Error> {
        let shape = Shape::<IgnoredAny>::deserialize(deserializer)?;
        Ok(Flag(if let Shape::Bool(value) = shape { Some(value) } else { None }))
    }
}

/// An integer, or `None` for any other value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Int(pub(super) Option<i64>);

impl<'de> Deserialize<'de> for Int {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Int, D::Error> {
        let shape = Shape::<IgnoredAny>::deserialize(deserializer)?;
        Ok(Int(if let Shape::Int(value) = shape { Some(value) } else { None }))
    }
}

/// An object, or `None` for any other value.
#[derive(Clone, Debug, Default)]
pub(super) struct Obj<T>(pub(super) Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Obj<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Obj<T>, D::Error> {
        let shape = Shape::<T>::deserialize(deserializer)?;
        Ok(Obj(if let Shape::Object(value) = shape { Some(value) } else { None }))
    }
}

/// A string, or an object with the fields of `T`.
#[derive(Debug, Default)]
pub(super) enum TextOr<'a, T> {
    #[default]
    None,
    Text(Cow<'a, str>),
    Fields(T),
}

impl<T> TextOr<'_, T> {
    pub(super) fn fields(&self) -> Option<&T> {
        if let TextOr::Fields(fields) = self { Some(fields) } else { None }
    }

    pub(super) fn text(&self) -> Option<&str> {
        if let TextOr::Text(text) = self { Some(text) } else { None }
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for TextOr<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TextOr<'a, T>, D::Error> {
        Ok(match Shape::<T>::deserialize(deserializer)? {
            Shape::Text(text) => TextOr::Text(text),
            Shape::Object(fields) => TextOr::Fields(fields),
            Shape::Other | Shape::Bool(_) | Shape::Int(_) | Shape::List(_) => TextOr::None,
        })
    }
}

/// Content of a message or a tool result: a string or a list of blocks. A lone block is a list.
#[derive(Clone, Debug, Default)]
pub(super) enum Content<'a> {
    #[default]
    None,
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

/// Block of a content list, with the fields of both formats. A bare string is a `text` block.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default, bound = "'de: 'a")]
pub(super) struct Block<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Str<'a>,
    pub(super) text: Str<'a>,
    pub(super) id: Str<'a>,
    pub(super) name: Str<'a>,
    pub(super) input: Option<&'a RawValue>,
    pub(super) tool_use_id: Str<'a>,
    pub(super) tool_name: Str<'a>,
    pub(super) title: Str<'a>,
    pub(super) url: Str<'a>,
    pub(super) image_url: Str<'a>,
    pub(super) is_error: Flag,
    pub(super) content: Content<'a>,
    /// Result in iFlow CLI's files, as Gemini CLI has it.
    #[serde(rename = "responseParts")]
    pub(super) response: Value,
    pub(super) source: Obj<Source<'a>>,
}

/// Source of an image or a document; only the size of its data is used.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default, bound = "'de: 'a")]
pub(super) struct Source<'a> {
    pub(super) media_type: Str<'a>,
    pub(super) data: Str<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Content<'a>, D::Error> {
        type Blocks<'a> = Vec<TextOr<'a, Block<'a>>>;
        Ok(match Shape::<Block<'de>, Blocks<'de>>::deserialize(deserializer)? {
            Shape::Text(text) => Content::Text(text),
            Shape::Object(block) => Content::Blocks(vec![block]),
            Shape::List(elements) => {
                Content::Blocks(elements.into_iter().filter_map(Block::of).collect())
            }
            Shape::Other | Shape::Bool(_) | Shape::Int(_) => Content::None,
        })
    }
}

impl<'a> Block<'a> {
    fn of(element: TextOr<'a, Block<'a>>) -> Option<Block<'a>> {
        match element {
            TextOr::Fields(block) => Some(block),
            TextOr::Text(text) => {
                let kind = Str(Some(Cow::Borrowed("text")));
                Some(Block { kind, text: Str(Some(text)), ..Block::default() })
            }
            TextOr::None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, serde::Deserialize)]
    #[serde(default, bound = "'de: 'a")]
    struct Odd<'a> {
        text: Str<'a>,
        flag: Flag,
        count: Int,
        inner: Obj<Source<'a>>,
        content: Content<'a>,
    }

    #[test]
    fn values_of_other_shapes_are_passed_over() {
        for odd in ["null", "1", "1.5", "true", "[1,{\"a\":[]}]", "{\"x\":{\"y\":1}}", "-3"] {
            let json = format!(
                r#"{{"text":{odd},"flag":{odd},"count":{odd},"inner":{odd},"content":{odd}}}"#
            );
            let read: Odd<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(read.text.get(), "");
            assert_eq!(read.flag.on(), odd == "true");
            assert_eq!(read.count.0.is_some(), odd == "1" || odd == "-3");
            assert_eq!(read.inner.0.is_some(), odd.starts_with('{'));
            assert_eq!(matches!(read.content, Content::None), !odd.starts_with(['[', '{']));
        }
    }

    #[test]
    fn bare_strings_in_a_list_are_text_blocks() {
        let content: Content<'_> = serde_json::from_str(r#"["a",{"type":"text"},null]"#).unwrap();
        let Content::Blocks(blocks) = content else { panic!("a list gives blocks") };
        assert_eq!(blocks.len(), 2);
        assert_eq!(blocks[0].text.get(), "a");
    }
}
