//! Memory cards: the subject of a conversation in seven fields of short lines, by rules alone. No model, no clock;
//! equal messages give equal bytes.
//!
//! A [`CardBuilder`] consumes messages one by one and stores counts and a few lines, never the messages.
//! [`checklist`] holds the rules that a card must satisfy before it is stored. Every line is redacted again after
//! it was shortened, since joining or cutting may produce a new match.
//!
//! | field | holds |
//! |---|---|
//! | `title` | the first words of a user, at most 80 characters |
//! | `summary_bullets` | the first 3 messages, each with its `[role]` |
//! | `decisions`, `todos` | messages with a phrase that [`CardBuilder`] looks for, from that sentence on |
//! | `notable_quotes` | questions and exclamations, from that sentence on |
//! | `entities` | the most mentioned names |
//! | `keywords` | the most used words |

mod builder;
mod card;
mod excerpt;
#[cfg(test)]
mod laws;

pub use builder::CardBuilder;
pub(crate) use builder::Ellipsis;
pub(crate) use card::CardCheck;
pub use card::{Card, CardHead, checklist, yaml};
