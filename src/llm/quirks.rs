//! Fields that an endpoint refused once, and that are omitted from then on; a reply does not depend on them.

use super::error::ServerError;
use std::sync::atomic::{AtomicU8, Ordering};

/// A field that some endpoints refuse.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Quirk {
    /// Requires `max_completion_tokens` instead of `max_tokens`.
    CompletionTokens = 1,
    /// Refuses `parallel_tool_calls`.
    NoParallel = 2,
    /// Refuses any temperature but its default.
    NoTemperature = 4,
    /// Refuses `strict`.
    NoStrict = 8,
}

/// Number of quirks, and so the maximum number of times that one request is sent again for them.
pub(super) const QUIRKS_MAX: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Quirks(AtomicU8);

impl Quirks {
    pub(super) fn known(&self) -> QuirkSet {
        QuirkSet(self.0.load(Ordering::Relaxed))
    }

    /// Records a quirk; true if a request sent with `before` is worth sending again.
    pub(super) fn learn(&self, quirk: Quirk, before: QuirkSet) -> bool {
        self.0.fetch_or(quirk as u8, Ordering::Relaxed);
        !before.has(quirk)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QuirkSet(u8);

impl QuirkSet {
    pub(super) fn has(self, quirk: Quirk) -> bool {
        self.0 & quirk as u8 != 0
    }
}

/// The quirk that a refusal (400 or 422) reveals.
pub(super) fn quirk_of(status: u16, said: &ServerError) -> Option<Quirk> {
    // A length error also names `max_tokens`, but omitting that would not help.
    if !matches!(status, 400 | 422) || said.is_too_long() {
        return None;
    }
    let about = |name: &str| said.param.contains(name) || said.text.contains(name);
    let refused = ["unsupported", "unrecognized", "not support", "unknown", "unexpected", "extra"];
    let refused = refused.iter().any(|word| said.text.contains(word) || said.code.contains(word));
    if !refused {
        return None;
    }
    if about("max_tokens") {
        return Some(Quirk::CompletionTokens);
    }
    if about("parallel_tool_calls") {
        return Some(Quirk::NoParallel);
    }
    if about("temperature") {
        return Some(Quirk::NoTemperature);
    }
    // An error about a schema that violates strict mode also says `strict`.
    (about("strict") && !about("schema")).then_some(Quirk::NoStrict)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, expected: Option<Quirk>) {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        assert_eq!(quirk_of(400, &ServerError::of(body.as_bytes())), expected, "{message}");
        assert_eq!(quirk_of(500, &ServerError::of(body.as_bytes())), None, "only refusals teach");
    }

    #[test]
    fn a_refused_field_is_named_once() {
        check(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
             'max_completion_tokens' instead.",
            Some(Quirk::CompletionTokens),
        );
        check("Unrecognized request argument supplied: strict", Some(Quirk::NoStrict));
        check("unknown field: parallel_tool_calls", Some(Quirk::NoParallel));
        check(
            "Unsupported value: 'temperature' does not support 0.2 with this model.",
            Some(Quirk::NoTemperature),
        );
        check("Context length exceeded: max_tokens above it is not supported", None);
        check("max_tokens is too large: 9000. This model has at most 4096.", None);
        check("Invalid schema for function 'f': strict needs additionalProperties", None);
        check("only 'auto' is supported for tool_choice", None);
    }

    #[test]
    fn what_is_known_is_not_learned_again() {
        let quirks = Quirks::default();
        assert!(quirks.learn(Quirk::NoStrict, quirks.known()));
        assert!(!quirks.learn(Quirk::NoStrict, quirks.known()));
        assert!(quirks.known().has(Quirk::NoStrict) && !quirks.known().has(Quirk::NoParallel));
    }
}
