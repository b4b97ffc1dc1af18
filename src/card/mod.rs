//! Memory cards: what a conversation was about, on seven fields of one line each, by rule alone. No
//! model, no clock; the same messages give the same bytes.
//!
//! A [`Builder`] is fed message by message and keeps counts and a few lines, never the messages.
//! [`checklist`] is what must hold of a card before it is stored, as code. A card's texts stand behind
//! the gate twice: what goes in has passed, and every line goes through once more after it was
//! shortened, for blanks that fall together and a cut in the right place can make a number of what was
//! none.
//!
//! | field | holds |
//! |---|---|
//! | `title` | the first words of a user, at most [`TITLE_LETTERS_MAX`] letters |
//! | `summary_bullets` | the first [`ITEMS_MAX`] messages, each with its `[role]` |
//! | `decisions`, `todos` | messages with one of the words that [`Builder`] looks for, from that sentence on |
//! | `notable_quotes` | messages that ask or exclaim, from that sentence on |
//! | `entities` | the names that were mentioned most |
//! | `keywords` | the words that were used most |

mod builder;
mod checklist;
mod cut;
mod excerpt;
mod fields;
mod keyword;
#[cfg(test)]
mod laws;
mod yaml;

pub use builder::Builder;
pub use checklist::{Check, checklist};
pub use cut::{ELLIPSIS, Ellipsis};
pub use fields::Card;
pub use keyword::{KEYWORD_LETTERS_MAX, KEYWORD_LETTERS_MIN, KEYWORDS_MAX};
pub use yaml::{Head, yaml};

/// The rules of a card, as its heading names them; raised when the same messages give another card.
pub const ALGORITHM_VERSION: &str = "1.0";
/// The longest title, in letters, the mark of a cut among them.
pub const TITLE_LETTERS_MAX: usize = 80;
/// The longest item of the other texts, in letters, role and mark among them.
pub const ITEM_LETTERS_MAX: usize = 100;
/// Items of a field that holds texts.
pub const ITEMS_MAX: usize = 3;
/// Items of a field that holds words: more are no longer what it was about.
pub const WORDS_MAX: usize = 10;
/// The title where no user said anything.
pub const UNTITLED: &str = "Untitled Session";
