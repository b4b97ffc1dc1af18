//! Text primitives without I/O: counts, tokens, negations, names, terminals, truncation, lenient JSON.

pub(crate) mod causes;
pub(crate) mod code_names;
pub(crate) mod count;
pub(crate) mod diff;
pub(crate) mod front_matter;
pub(crate) mod lenient_json;
pub(crate) mod names;
pub(crate) mod negation;
pub(crate) mod numbers;
pub(crate) mod own_output;
pub(crate) mod stems;
pub(crate) mod terminal;
pub(crate) mod tokens;
pub(crate) mod truncate;
