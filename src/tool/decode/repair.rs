//! What had to be overlooked to read an answer.

use crate::domain::{Finding, Severity};

macro_rules! repairs {
    ($($(#[$doc:meta])* $variant:ident = $rule:literal, $severity:ident, $detail:literal;)*) => {
        /// One kind of leniency; an answer holds each at most once.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub enum Repair { $($(#[$doc])* $variant),* }

        impl Repair {
            /// The rule's stable name.
            pub fn rule(self) -> &'static str {
                match self { $(Repair::$variant => $rule),* }
            }

            /// The repair as a finding about an answer.
            pub fn finding(self) -> Finding {
                match self {
                    $(Repair::$variant => Finding::new(Severity::$severity, $rule, 0, $detail)),*
                }
            }
        }
    };
}

repairs! {
    /// The text ends inside the object.
    Cut = "cut-json", Warning, "the JSON ends too early; what was whole is kept";
    /// A place that cannot be read; nothing behind it was.
    Broken = "broken-json", Warning, "the JSON cannot be read from some place on; what was whole before it is kept";
    /// A byte order mark.
    Mark = "byte-order-mark", Info, "a byte order mark before the JSON";
    /// A Markdown fence around the object.
    Fence = "code-fence", Info, "a code fence around the JSON";
    /// Words before or behind the object.
    Prose = "prose-around", Info, "words around the JSON";
    /// A JSON string that holds the JSON.
    Twice = "encoded-twice", Info, "JSON inside a JSON string";
    /// The object inside another one.
    Wrapped = "wrapped", Info, "the JSON inside another object";
    /// Several objects, one behind the other.
    Several = "several-objects", Warning, "several JSON objects, joined";
    /// `NaN`, `None`, `True` and the like.
    Literal = "foreign-literal", Info, "a literal that JSON does not have";
    /// A bare word where a value belongs; read as null.
    BareWord = "bare-word", Warning, "a bare word where a value belongs";
    /// A key without quotes.
    BareKey = "bare-key", Info, "a key without quotes";
    /// Strings in single quotes.
    SingleQuotes = "single-quotes", Info, "strings in single quotes";
    /// A quote inside a string without a backslash.
    RawQuote = "raw-quote", Warning, "a quote inside a string without its backslash";
    /// Half of a surrogate pair; now U+FFFD.
    Surrogate = "lone-surrogate", Warning, "half of a surrogate pair, replaced";
    /// The character U+0000; dropped.
    Nul = "nul-character", Warning, "a NUL character, dropped";
    /// A control character without an escape.
    Control = "control-character", Info, "a control character without its escape";
    /// An escape that JSON does not have; kept as it stands.
    Escape = "bad-escape", Info, "an escape that JSON does not have";
    /// A key that is there twice; lists are joined, of other values the last counts.
    DuplicateKey = "duplicate-key", Warning, "a key twice in one object; lists are joined";
    /// A comma too many.
    ExtraComma = "extra-comma", Info, "a comma too many";
    /// A comma too few.
    MissingComma = "missing-comma", Info, "a comma too few";
    /// A comment.
    Comment = "comment", Info, "a comment in JSON";
    /// A value that is nested too deep; dropped.
    TooDeep = "too-deep", Warning, "a value nested too deep, dropped";
}

/// Repairs, each once, in the order in which they were first needed.
#[derive(Clone, Debug, Default)]
pub(super) struct Repairs(Vec<Repair>);

impl Repairs {
    pub(super) fn add(&mut self, repair: Repair) {
        if !self.0.contains(&repair) {
            self.0.push(repair);
        }
    }

    pub(super) fn extend(&mut self, others: &[Repair]) {
        others.iter().for_each(|repair| self.add(*repair));
    }

    pub(super) fn into_vec(self) -> Vec<Repair> {
        self.0
    }

    pub(super) fn as_slice(&self) -> &[Repair] {
        &self.0
    }
}
