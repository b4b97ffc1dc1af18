//! Pieces of JSON read leniently and without copying: a value of another shape than expected is
//! passed over, so that one odd field never costs a whole record. Types of known records are made of
//! them; where any shape may come, there is [`Json`](super::json::Json).

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// The visits of shapes that a lenient type passes over.
macro_rules! pass_over {
    ($($shape:ident),*) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str("any value") }
        $(pass_over!(@ $shape);)*
    };
    (@ scalar) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> { Ok(Default::default()) }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> { Ok(Default::default()) }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> { Ok(Default::default()) }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> { Ok(Default::default()) }
    };
    (@ unit) => {
        fn visit_unit<E>(self) -> Result<Self::Value, E> { Ok(Default::default()) }
    };
    (@ str) => {
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> { Ok(Default::default()) }
    };
    (@ seq) => {
        fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
            IgnoredAny.visit_seq(seq).map(|_| Default::default())
        }
    };
    (@ map) => {
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            IgnoredAny.visit_map(map).map(|_| Default::default())
        }
    };
}

/// A string; nothing if the value is anything else.
#[derive(Clone, Debug, Default)]
pub(super) struct Str<'a>(pub(super) Option<Cow<'a, str>>);

impl<'a> Str<'a> {
    /// The string, empty if there is none.
    pub(super) fn get(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The string, unless it is absent or empty.
    pub(super) fn some(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }

    /// Whether it is this very string.
    pub(super) fn is(&self, text: &str) -> bool {
        self.0.as_deref() == Some(text)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Str<'a>, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Str<'de>;
            pass_over!(scalar, unit, seq, map);
            fn visit_str<E>(self, text: &str) -> Result<Str<'de>, E> {
                Ok(Str(Some(Cow::Owned(text.to_owned()))))
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Str<'de>, E> {
                Ok(Str(Some(Cow::Borrowed(text))))
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

/// A truth value; false if it is anything but `true`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flag(pub(super) Option<bool>);

impl Flag {
    /// Whether it is there and true.
    pub(super) fn on(self) -> bool {
        self.0 == Some(true)
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Flag, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Flag;
            pass_over!(unit, str, seq, map);
            fn visit_bool<E>(self, value: bool) -> Result<Flag, E> {
                Ok(Flag(Some(value)))
            }
            fn visit_i64<E>(self, _: i64) -> Result<Flag, E> {
                Ok(Flag(None))
            }
            fn visit_u64<E>(self, _: u64) -> Result<Flag, E> {
                Ok(Flag(None))
            }
            fn visit_f64<E>(self, _: f64) -> Result<Flag, E> {
                Ok(Flag(None))
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

/// A whole number; nothing if the value is anything else.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Int(pub(super) Option<i64>);

impl<'de> Deserialize<'de> for Int {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Int, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Int;
            pass_over!(unit, str, seq, map);
            fn visit_bool<E>(self, _: bool) -> Result<Int, E> {
                Ok(Int(None))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Int, E> {
                Ok(Int(Some(value)))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Int, E> {
                Ok(Int(i64::try_from(value).ok()))
            }
            fn visit_f64<E>(self, _: f64) -> Result<Int, E> {
                Ok(Int(None))
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

/// An object; nothing if the value is anything else.
#[derive(Clone, Debug)]
pub(super) struct Obj<T>(pub(super) Option<T>);

impl<T> Default for Obj<T> {
    fn default() -> Obj<T> {
        Obj(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Obj<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Obj<T>, D::Error> {
        struct Visit<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Visit<T> {
            type Value = Obj<T>;
            pass_over!(scalar, unit, str, seq);
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Obj<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|value| Obj(Some(value)))
            }
        }
        deserializer.deserialize_any(Visit(PhantomData))
    }
}

/// A string, or an object of which some fields are read.
#[derive(Debug)]
pub(super) enum TextOr<'a, T> {
    /// Neither.
    None,
    /// A string.
    Text(Cow<'a, str>),
    /// An object.
    Fields(T),
}

#[expect(clippy::derivable_impls, reason = "the derive would ask for `T: Default`")]
impl<T> Default for TextOr<'_, T> {
    fn default() -> Self {
        TextOr::None
    }
}

impl<'a, T> TextOr<'a, T> {
    /// The object, if it is one.
    pub(super) fn fields(&self) -> Option<&T> {
        match self {
            TextOr::Fields(fields) => Some(fields),
            TextOr::Text(_) | TextOr::None => None,
        }
    }

    /// The string, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            TextOr::Text(text) => Some(text),
            TextOr::Fields(_) | TextOr::None => None,
        }
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for TextOr<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TextOr<'a, T>, D::Error> {
        struct Visit<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Visit<T> {
            type Value = TextOr<'de, T>;
            pass_over!(scalar, unit, seq);
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(TextOr::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(TextOr::Text(Cow::Borrowed(text)))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(TextOr::Fields)
            }
        }
        deserializer.deserialize_any(Visit(PhantomData))
    }
}

/// What a message or a tool's answer holds: a string, or a list of blocks.
#[derive(Clone, Debug, Default)]
pub(super) enum Content<'a> {
    /// Neither.
    #[default]
    None,
    /// A string.
    Text(Cow<'a, str>),
    /// A list of blocks; a single block counts as one.
    Blocks(Vec<Block<'a>>),
}

/// One block of a content list; fields of both formats, absent ones empty.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Block<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    pub(super) text: Str<'a>,
    #[serde(borrow)]
    pub(super) id: Str<'a>,
    #[serde(borrow)]
    pub(super) name: Str<'a>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_use_id: Str<'a>,
    #[serde(borrow)]
    pub(super) tool_name: Str<'a>,
    #[serde(borrow)]
    pub(super) title: Str<'a>,
    #[serde(borrow)]
    pub(super) url: Str<'a>,
    #[serde(borrow)]
    pub(super) image_url: Str<'a>,
    pub(super) is_error: Flag,
    #[serde(borrow)]
    pub(super) content: Content<'a>,
    #[serde(borrow)]
    pub(super) source: Obj<Source<'a>>,
}

/// Where an image or a document comes from; its data is measured, never kept.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Source<'a> {
    #[serde(borrow)]
    pub(super) media_type: Str<'a>,
    #[serde(borrow)]
    pub(super) data: Str<'a>,
}

/// An element of a content list: a block, a bare string, or something to pass over.
#[derive(Default)]
struct Element<'a>(Option<Block<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Element<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Element<'a>, D::Error> {
        struct Visit;
        fn text(text: Cow<'_, str>) -> Element<'_> {
            let kind = Str(Some(Cow::Borrowed("text")));
            Element(Some(Block { kind, text: Str(Some(text)), ..Block::default() }))
        }
        impl<'de> Visitor<'de> for Visit {
            type Value = Element<'de>;
            pass_over!(scalar, unit, seq);
            fn visit_str<E>(self, bare: &str) -> Result<Element<'de>, E> {
                Ok(text(Cow::Owned(bare.to_owned())))
            }
            fn visit_borrowed_str<E>(self, bare: &'de str) -> Result<Element<'de>, E> {
                Ok(text(Cow::Borrowed(bare)))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Element<'de>, A::Error> {
                let block = Block::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Element(Some(block)))
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Content<'a>, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Content<'de>;
            pass_over!(scalar, unit);
            fn visit_str<E>(self, text: &str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Cow::Borrowed(text)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content<'de>, A::Error> {
                let mut blocks = Vec::new();
                while let Some(Element(element)) = seq.next_element()? {
                    blocks.extend(element);
                }
                Ok(Content::Blocks(blocks))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Content<'de>, A::Error> {
                let block = Block::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Content::Blocks(vec![block]))
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Odd<'a> {
        #[serde(borrow)]
        text: Str<'a>,
        flag: Flag,
        count: Int,
        #[serde(borrow)]
        inner: Obj<Source<'a>>,
        #[serde(borrow)]
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
