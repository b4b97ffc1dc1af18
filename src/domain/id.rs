//! Ids are digests of what they identify, so that repeating an action gives the same id. There are
//! no counters and no randomness.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The first 128 bits of a BLAKE3 hash, printed as 32 hex digits.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Digest([u8; 16]);

impl Digest {
    /// Hashes length-prefixed parts, so that `["ab", "c"]` and `["a", "bc"]` differ.
    pub fn of(parts: &[&str]) -> Digest {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Digest::first_half(&hasher.finalize())
    }

    /// Hashes the bytes alone, as `b3sum` does.
    pub fn of_bytes(bytes: &[u8]) -> Digest {
        Digest::first_half(&blake3::hash(bytes))
    }

    /// Restores a digest from a database column.
    pub fn from_bytes(bytes: [u8; 16]) -> Digest {
        Digest(bytes)
    }

    /// Bytes, for a database column.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// First 64 bits, for large sets.
    pub fn short(&self) -> u64 {
        (u128::from_be_bytes(self.0) >> 64) as u64
    }

    fn first_half(hash: &blake3::Hash) -> Digest {
        let mut half = [0; 16];
        half.copy_from_slice(&hash.as_bytes()[..16]);
        Digest(half)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 32];
        for (byte, two) in self.0.iter().zip(digits.as_chunks_mut::<2>().0) {
            *two = [byte >> 4, byte & 15].map(|it| HEX_DIGITS[usize::from(it)]);
        }
        f.pad(std::str::from_utf8(&digits).unwrap_or_default())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Digest {
    type Err = BadDigest;

    fn from_str(text: &str) -> Result<Digest, BadDigest> {
        // `from_str_radix` would accept a sign.
        if text.len() != 32 || text.starts_with('+') {
            return Err(BadDigest);
        }
        let number = u128::from_str_radix(text, 16).map_err(|_| BadDigest)?;
        Ok(Digest(number.to_be_bytes()))
    }
}

impl schemars::JsonSchema for Digest {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]+$" })
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Not 32 hex digits.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("not an id: expected 32 hex digits")]
pub struct BadDigest;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[derive(schemars::JsonSchema, Serialize, Deserialize)]
        #[serde(transparent)]
        #[schemars(inline)]
        pub struct $name(pub Digest);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = BadDigest;

            fn from_str(text: &str) -> Result<$name, BadDigest> {
                text.parse().map($name)
            }
        }
    )* };
}

ids! {
    /// One conversation, of (namespace, format, native session id).
    SessionId,
    /// One slice, of (session, range, text).
    SliceId,
    /// One slice to be extracted, of (slice, prompt id and version, schema version, model).
    JobId,
    /// One extraction of one slice, of (slice, prompt id and version, schema version, model).
    RunId,
    /// One claim, of (run, kind, body).
    RecordId,
    /// One kept fact, of (namespace, first record).
    MemoryId,
    /// One set of changes to memories, of what it changes.
    PlanId,
    /// One question to a model, of its canonical JSON.
    RequestDigest,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_kept_apart() {
        assert_ne!(Digest::of(&["ab", "c"]), Digest::of(&["a", "bc"]));
    }

    #[test]
    fn what_is_printed_is_read_back() {
        let digest = Digest::of(&["x"]);
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!("xyz".parse::<Digest>(), Err(BadDigest));
    }
}
