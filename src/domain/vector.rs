//! Where a text stands among others: what a model of embeddings answers, in our own terms.

use super::{Message, Request, Role, Rung, ToolSpec};
use crate::privacy::Redacted;
use serde_json::Value;
use std::sync::Arc;

/// What stands for the tool in a request for an embedding.
pub const EMBEDDING: &str = "embedding";
/// The longest that is read, in numbers; known models have up to 4,096.
pub const VECTOR_NUMBERS_MAX: usize = 65_536;

/// The letters that a number is written with, two for each: no rule of the gate takes them for anything.
const LETTERS: &[u8; 16] = b"abcdefghijklmnop";
/// Half of what two letters can say.
const ZERO: i16 = 128;

/// Numbers of a text, each as a part of the largest one. A byte is enough: likeness is off by a thousandth or two.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Vector(Vec<i8>);

impl Vector {
    /// Of a model's numbers; none where there are none, or one of them is none.
    pub fn of(numbers: &[f64]) -> Option<Vector> {
        let largest = numbers.iter().fold(0.0_f64, |most, it| most.max(it.abs()));
        let fits = largest.is_finite() && largest > 0.0 && numbers.len() <= VECTOR_NUMBERS_MAX;
        let fits = fits && numbers.iter().all(|it| it.is_finite());
        fits.then(|| {
            Vector(numbers.iter().map(|it| (it / largest * 127.0).round() as i8).collect())
        })
    }

    /// Two letters a number, as a cassette keeps it.
    pub fn to_text(&self) -> String {
        let mut text = String::with_capacity(self.0.len() * 2);
        for number in &self.0 {
            let byte = (i16::from(*number) + ZERO) as usize;
            for half in [byte >> 4, byte & 15] {
                text.push(LETTERS.get(half).copied().map_or('a', char::from));
            }
        }
        text
    }

    /// Reads it back; none for anything else.
    pub fn read(text: &str) -> Option<Vector> {
        let half = |letter: &u8| LETTERS.iter().position(|it| it == letter);
        let pairs = text.trim().as_bytes().chunks(2);
        let number = |pair: &[u8]| match pair {
            [high, low] => {
                let byte = i16::try_from(half(high)? << 4 | half(low)?).ok()?;
                i8::try_from(byte - ZERO).ok()
            }
            _ => None,
        };
        let numbers: Vec<i8> = pairs.map(number).collect::<Option<_>>()?;
        (!numbers.is_empty() && numbers.len() <= VECTOR_NUMBERS_MAX).then_some(Vector(numbers))
    }

    /// How alike two texts are, in thousandths: the cosine of the angle between them; 0 where they lead apart, or were
    /// not made by the same model.
    pub fn alike(&self, other: &Vector) -> u32 {
        if self.0.len() != other.0.len() {
            return 0;
        }
        let times = |one: &[i8], other: &[i8]| -> i64 {
            one.iter().zip(other).map(|(a, b)| i64::from(*a) * i64::from(*b)).sum()
        };
        let lengths = (times(&self.0, &self.0) as f64 * times(&other.0, &other.0) as f64).sqrt();
        let cosine = times(&self.0, &other.0) as f64 / lengths.max(1.0);
        (cosine.clamp(0.0, 1.0) * 1_000.0).round() as u32
    }
}

impl Request {
    /// Asks `model` for the [`Vector`] of a text, which comes as the reply's content.
    pub fn embedding(model: &str, text: Redacted) -> Request {
        Request {
            model: model.to_owned(),
            messages: vec![Message { role: Role::User, content: text }],
            rung: Rung::Text,
            tool: Arc::new(ToolSpec::new(EMBEDDING, String::new(), Value::Null)),
            reply_tokens_max: 0,
            temperature: None,
            generation: 0,
        }
    }

    /// Whether it asks for one.
    pub fn is_embedding(&self) -> bool {
        self.tool.name == EMBEDDING
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::{Gate, Pii};
    use proptest::prelude::*;

    #[test]
    fn what_points_the_same_way_is_alike_and_what_leads_apart_is_not() {
        let of = |numbers: &[f64]| Vector::of(numbers).unwrap();
        let one = of(&[0.1, 0.2, -0.3]);
        assert_eq!(one.alike(&of(&[1.0, 2.0, -3.0])), 1_000, "length does not count");
        assert_eq!(one.alike(&of(&[-0.1, -0.2, 0.3])), 0);
        assert_eq!((one.alike(&of(&[3.0, 0.0, 1.0])), one.alike(&of(&[1.0]))), (0, 0));
        for none in [&[][..], &[0.0, 0.0], &[f64::NAN], &[f64::INFINITY, 1.0]] {
            assert_eq!(Vector::of(none), None);
        }
        for none in ["", "a", "abc", "zz", "ab cd"] {
            assert_eq!(Vector::read(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn it_is_read_back_as_it_was_written_and_passes_the_gate(
            numbers in prop::collection::vec(-1.0..1.0_f64, 1..400),
        ) {
            let Some(vector) = Vector::of(&numbers) else { return Ok(()) };
            let text = vector.to_text();
            prop_assert_eq!(Vector::read(&text), Some(vector.clone()));
            let gate = Gate::new(&Pii::ALL);
            let passed = gate.redact(&text);
            prop_assert_eq!(passed.as_str(), text.as_str());
            prop_assert!(999 <= vector.alike(&vector));
        }
    }
}
