//! Text primitives without I/O: phrases, tokens, stems, names, terminals, truncation, lenient JSON,
//! wording of rules and definitions.

pub(crate) mod code_names;
pub(crate) mod diff;
pub(crate) mod ends;
pub(crate) mod front_matter;
pub(crate) mod lenient_json;
pub(crate) mod lexicon;
pub(crate) mod names;
pub(crate) mod own_output;
pub(crate) mod phrase;
pub(crate) mod stems;
pub(crate) mod terminal;
pub(crate) mod tokens;
pub(crate) mod truncate;
pub(crate) mod wording;
