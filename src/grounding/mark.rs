//! What is ours in the text of a slice: labels, and the marks that stand in an entry's text where the middle of long tool output was left out. Their
//! figures and digests are nobody's words.

use std::ops::Range;

const HEAD: &str = "[… ";
/// What every mark says; what stands before and after it are a number and a digest.
const MIDDLE: &str = " bytes left out; digest of the whole ";
const TAIL: &str = " …]";
/// The longest number before the middle, in digits.
const NUMBER_BYTES_MAX: usize = 20;
/// The longest digest after it, in bytes.
const DIGEST_BYTES_MAX: usize = 80;

/// Where marks stand in `text`, in order.
pub(super) fn marks(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let found = memchr::memmem::find_iter(text.as_bytes(), MIDDLE.as_bytes());
    found.filter_map(|middle| {
        let before = text[..middle].trim_end_matches(|letter: char| letter.is_ascii_digit());
        let is_number = (1..=NUMBER_BYTES_MAX).contains(&(middle - before.len()));
        let start = before.len().checked_sub(HEAD.len())?;
        let after = middle + MIDDLE.len();
        let near = text.floor_char_boundary(after + DIGEST_BYTES_MAX + TAIL.len());
        let end = after + text[after..near].find(TAIL)? + TAIL.len();
        (is_number && before.ends_with(HEAD)).then_some(start..end)
    })
}

/// What of the label that `label` ends with is the transcript's: the tool's name, how the call ended
/// and its exit code.
pub(super) fn named(label: &str) -> Option<Range<usize>> {
    let from = label.rfind('[')?;
    let to = from + label[from..].find(']')?;
    let to = label[from..to].find(", part ").map_or(to, |part| from + part);
    let starts = ["[ToolCall ", "[ToolResult ", ": ToolCall ", ": ToolResult ", ", exit "];
    let start = starts.iter().find_map(|start| Some(label[from..to].find(start)? + start.len()))?;
    Some(from + start..to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::Gate;

    #[test]
    fn names_of_tools_and_exit_codes_in_labels_are_the_transcripts() {
        let check = |label: &str, expected: Option<&str>| {
            assert_eq!(named(label).map(|span| &label[span]), expected, "{label}");
        };
        check("\n[ToolCall book_seat] ", Some("book_seat"));
        check("[Sub-agent: ToolResult run, exit 127, part 12 of 30] ", Some("run, exit 127"));
        check("[User runs: failed, exit 127] ", Some("127"));
        check("[User, part 12 of 30] ", None);
    }

    #[test]
    fn the_mark_that_slices_have_is_found_whole() {
        let long: String = (0..500).map(|n| format!("line {n}\n")).collect();
        let kept = crate::slice::bound(&Gate::new(&[]).redact(&long), 100).unwrap();
        let text = kept.as_str();
        let found: Vec<&str> = marks(text).map(|mark| &text[mark]).collect();
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with(HEAD) && found[0].ends_with(TAIL), "{found:?}");
        assert_eq!(marks("3 bytes left out; digest of the whole thing …]").count(), 0);
    }
}
