//! The rules. Their names stay as they are: people switch them off by name.

use crate::domain::Severity;

/// A rule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// Whether what breaks it can be repaired without asking.
    pub is_fixable: bool,
    /// What holds where it is kept.
    pub summary: &'static str,
}

macro_rules! rules {
    ($($id:ident = $name:literal, $severity:ident, $fixable:literal, $summary:literal;)*) => {
        $(pub(super) const $id: Rule = Rule {
            name: $name,
            severity: Severity::$severity,
            is_fixable: $fixable,
            summary: $summary,
        };)*

        /// Every rule.
        pub const RULES: &[Rule] = &[$($id),*];
    };
}

rules! {
    MISSING_FILE = "missing-file", Error, false, "active-context.md and product-context.md are there";
    MISSING_TITLE = "missing-title", Error, false, "a file begins with the heading of its kind";
    MISSING_HEADING = "missing-heading", Warning, true, "a file has every heading of its kind";
    HEADING_ORDER = "heading-order", Warning, false, "headings stand in the order of the schema";
    DUPLICATE_HEADING = "duplicate-heading", Warning, false, "no heading of a kind stands twice in a file";
    MISSING_FOOTER = "missing-footer", Warning, true, "a file ends with the line of its kind";
    BAD_FOOTER = "bad-footer", Warning, false, "the last line has the form of its kind";
    UNCLOSED_FRONT_MATTER = "unclosed-front-matter", Warning, false, "front matter ends with a line ---";
    UNCLOSED_COMMENT = "unclosed-comment", Warning, false, "a comment ends";
    UNCLOSED_FENCE = "unclosed-fence", Warning, false, "a block of code ends";
    FILE_NAME = "file-name", Warning, false, "records and sessions are named as the schema says";
    ADR_NUMBER_TWICE = "adr-number-twice", Error, false, "no two records have one number";
    ADR_NUMBER_GAP = "adr-number-gap", Info, false, "the numbers of records leave nothing out";
    ADR_TITLE = "adr-title", Warning, false, "the heading of a record has the number of its file";
    ADR_SLUG = "adr-slug", Info, false, "the name of a record has words of its heading";
    ADR_STATUS = "adr-status", Error, false, "the status of a record is one of four";
    ADR_SUCCESSOR = "adr-successor-missing", Error, false, "the record that superseded another is there";
    ADR_DATE = "adr-date", Warning, false, "a record has a date";
    DEAD_LINK = "dead-link", Warning, false, "what is linked to is there";
    FUTURE_DATE = "future-date", Warning, false, "no date is behind today";
    BAD_CATEGORY = "bad-category", Error, false, "a category is one of those of the schema";
    OTHER_CATEGORY = "other-category", Warning, false, "memory and retrospectives keep to their categories";
    BAD_TAG = "bad-tag", Warning, true, "a tag is written <!-- @tag: value -->, the value [a-z][a-z0-9-]*";
    LONG_TAG = "long-tag", Warning, false, "the line of a tag has at most 80 letters";
    STRAY_TAG = "stray-tag", Warning, false, "a tag stands directly below what it belongs to";
    UNKNOWN_SOURCE = "unknown-source", Warning, false, "the tag src-… names a memory that there is";
    RETIRED_SOURCE = "retired-source", Warning, false, "the tag src-… of an entry names a memory that is in use";
    PRIVATE_UNCLOSED = "private-unclosed", Error, true, "a private block is closed";
    PRIVATE_NESTED = "private-nested", Warning, false, "private blocks do not stand in each other";
    PRIVATE_INLINE = "private-inline", Info, false, "private tags stand on lines of their own";
    PRIVATE_TAG = "private-tag", Warning, false, "private tags are <private> and </private>";
    PRIVATE_MENTIONED = "private-mention", Warning, false, "an opening private tag hides something";
    OVER_BUDGET = "over-budget", Warning, false, "a file fits into its budget";
    OVER_TOTAL = "over-total", Info, false, "what a session starts with fits into the budget";
    DUPLICATE_ENTRY = "duplicate-entry", Warning, true, "no entry stands twice under one heading";
    CONFLICT_MARKERS = "conflict-markers", Error, true, "no merge was left unfinished";
    SECRET = "secret", Error, false, "no key, password or token stands where it is read";
    PERSONAL_DATA = "personal-data", Warning, false, "no personal data stands where it is read";
    CONFIG_FRONT_MATTER = "config-front-matter", Warning, false, "settings stand in front matter";
    CONFIG_LINE = "config-line", Warning, false, "a setting is `key: value`";
    CONFIG_KEY_TWICE = "config-key-twice", Warning, false, "a setting is given once";
    CONFIG_UNKNOWN_KEY = "config-unknown-key", Warning, false, "a setting is known";
    CONFIG_VALUE = "config-value", Warning, false, "a setting has a value that can be used";
    CONFIG_ALIAS = "config-alias", Info, true, "a value has its present name";
    CONFIG_THRESHOLDS = "config-thresholds", Warning, false, "0 < auto <= hard <= 100";
}
