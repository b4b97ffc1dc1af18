//! Memory cards: the subject of a conversation in seven fields of short lines, by rule alone. No model, no clock; the
//! same messages give the same bytes.
//!
//! A [`CardBuilder`] is fed message by message and keeps counts and a few lines, never the messages.
//! [`checklist`] has the rules that a card must meet before it is stored. Every line is redacted once more after it was
//! shortened, for joined blanks or a cut can make a number of what was none.
//!
//! | field | holds |
//! |---|---|
//! | `title` | the first words of a user, at most 80 letters |
//! | `summary_bullets` | the first 3 messages, each with its `[role]` |
//! | `decisions`, `todos` | messages with one of the words that [`CardBuilder`] looks for, from that sentence on |
//! | `notable_quotes` | messages that ask or exclaim, from that sentence on |
//! | `entities` | the names that were mentioned most |
//! | `keywords` | the words that were used most |

mod builder;
mod card;
mod checklist;
mod excerpt;
#[cfg(test)]
mod laws;

pub use builder::CardBuilder;
pub(crate) use builder::Ellipsis;
pub use card::{Card, CardHead, yaml};
pub(crate) use checklist::CardCheck;
pub use checklist::checklist;
