//! Id prefixes, as a person types them.

use super::db::Db;
use super::error::{Fault, StoreError};
use super::handle::Store;
use super::value::values;
use crate::domain::Digest;
use std::str::FromStr;

/// Maximum number of ids listed for an ambiguous prefix.
const FOUND_MAX: u32 = 20;

/// The first hex digits of an id, 1 to 32.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IdPrefix {
    low: Digest,
    high: Digest,
}

impl FromStr for IdPrefix {
    type Err = BadPrefix;

    fn from_str(text: &str) -> Result<IdPrefix, BadPrefix> {
        if text.is_empty() {
            return Err(BadPrefix);
        }
        let filled = |digit: &str| -> Result<Digest, BadPrefix> {
            let rest = digit.repeat(32usize.saturating_sub(text.chars().count()));
            format!("{text}{rest}").parse().map_err(|_| BadPrefix)
        };
        Ok(IdPrefix { low: filled("0")?, high: filled("f")? })
    }
}

impl From<Digest> for IdPrefix {
    fn from(whole: Digest) -> IdPrefix {
        IdPrefix { low: whole, high: whole }
    }
}

impl IdPrefix {
    /// The lowest and highest id with this prefix, for `BETWEEN`.
    pub(super) fn bounds(&self) -> (&Digest, &Digest) {
        (&self.low, &self.high)
    }
}

/// Invalid id prefix.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("not the beginning of an id: expected 1 to 32 hex digits")]
pub struct BadPrefix;

/// Result of looking up a prefix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PrefixLookup<T> {
    None,
    One(Box<T>),
    Many(Vec<Digest>),
}

impl Store {
    /// Looks up `prefix` in a table's ids; `read` fetches the row if exactly one matches.
    pub(super) async fn lookup<T: Send + 'static>(
        &self,
        doing: &'static str,
        table: &'static str,
        prefix: IdPrefix,
        read: fn(&mut Db, Digest) -> Result<Option<T>, Fault>,
    ) -> Result<PrefixLookup<T>, StoreError> {
        self.read(doing, move |db| {
            let sql =
                format!("SELECT id FROM {table} WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3");
            let ids: Vec<Digest> = db.all(&sql, values![&prefix.low, &prefix.high, FOUND_MAX])?;
            Ok(match ids.as_slice() {
                [] => PrefixLookup::None,
                [one] => read(db, *one)?
                    .map_or(PrefixLookup::None, |found| PrefixLookup::One(Box::new(found))),
                _ => PrefixLookup::Many(ids),
            })
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_spans_all_ids_that_begin_so() {
        let prefix: IdPrefix = "Ab3".parse().unwrap();
        assert_eq!(prefix.low.to_string(), format!("ab3{}", "0".repeat(29)));
        assert_eq!(prefix.high.to_string(), format!("ab3{}", "f".repeat(29)));
        let whole = Digest::of(&["x"]);
        assert_eq!(whole.to_string().parse(), Ok(IdPrefix::from(whole)));
    }

    #[test]
    fn what_begins_no_id_is_refused() {
        for bad in ["", "xyz", "é", &"0".repeat(33)] {
            assert_eq!(bad.parse::<IdPrefix>(), Err(BadPrefix), "{bad}");
        }
    }
}
