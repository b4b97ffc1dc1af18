//! Line differences for people: a few lines around each change, no more than fit a screen.

use similar::{ChangeTag, DiffOp, TextDiff};
use std::fmt::Write;

/// Maximum number of lines shown.
const LINES_MAX: usize = 40;
/// Unchanged lines shown on either side of a change.
const CONTEXT: usize = 1;
/// Maximum number of letters shown of a line.
const LETTERS_MAX: usize = 100;
/// Letters shown before the first difference of a long line: prompts have a paragraph a line.
const LEAD: usize = 20;

/// Lines removed with a `-`, lines added with a `+`, and some unchanged lines around them. Empty if nothing differs.
pub(crate) fn difference(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let diff = TextDiff::from_slices(&old, &new);
    let (mut page, mut shown, mut hidden) = (String::new(), 0, 0);
    for (nth, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if nth > 0 && shown < LINES_MAX {
            page.push_str("  …\n");
        }
        for op in group {
            for change in diff.iter_changes(op) {
                if shown == LINES_MAX {
                    hidden += usize::from(change.tag() != ChangeTag::Equal);
                    continue;
                }
                shown += 1;
                let from = match op {
                    DiffOp::Replace { old_index, new_index, .. } => {
                        let of_old = change.old_index().map(|at| at - old_index + new_index);
                        let of_new = change.new_index().map(|at| at - new_index + old_index);
                        let partner = of_old.map_or_else(|| old.get(of_new?), |at| new.get(at));
                        partner.map_or(0, |it| first_shown(change.value(), it))
                    }
                    DiffOp::Equal { .. } | DiffOp::Delete { .. } | DiffOp::Insert { .. } => 0,
                };
                let line = change.value();
                let start = if from > 0 { "…" } else { "" };
                let part: String = line.chars().skip(from).take(LETTERS_MAX).collect();
                let end = if from + LETTERS_MAX < line.chars().count() { "…" } else { "" };
                // Writing to a string cannot fail.
                let _ = writeln!(page, "{} {start}{part}{end}", change.tag());
            }
        }
    }
    if hidden > 0 {
        let _ = writeln!(page, "  … {hidden} more lines that differ");
    }
    page
}

/// First letter shown of a line: shortly before its first difference, if one of the two is long.
fn first_shown(line: &str, partner: &str) -> usize {
    if line.chars().count().max(partner.chars().count()) <= LETTERS_MAX {
        return 0;
    }
    let same = line.chars().zip(partner.chars()).take_while(|(one, other)| one == other).count();
    same.saturating_sub(LEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str, expected: &str) {
        assert_eq!(difference(before, after), expected);
    }

    #[test]
    fn unchanged_lines_are_shown_beside_a_change_only() {
        check("a\nb\nc\nd\ne", "a\nb\nx\nd\ne", "  b\n- c\n+ x\n  d\n");
        check("a\nb", "a\nb", "");
        check("", "a", "+ a\n");
        check("a\nb\nc\nd\ne\nf\ng", "x\nb\nc\nd\ne\nf\ny", "- a\n+ x\n  b\n  …\n  f\n- g\n+ y\n");
    }

    #[test]
    fn a_long_difference_ends_with_the_number_of_lines_that_are_left() {
        let lines = |mark: &str| (0..100).map(|n| format!("{mark}{n}\n")).collect::<String>();
        let page = difference(&lines("a"), &lines("b"));
        assert_eq!(page.lines().count(), LINES_MAX + 1);
        assert!(page.ends_with("  … 160 more lines that differ\n"), "{page}");
        let long = difference("a", &"ş".repeat(LETTERS_MAX + 1));
        assert_eq!(long, format!("- a\n+ {}…\n", "ş".repeat(LETTERS_MAX)));
    }

    #[test]
    fn a_long_line_is_shown_from_where_it_changes() {
        let lead = "x".repeat(200);
        let page = difference(&format!("{lead} months on"), &format!("{lead} years on"));
        let lead = "x".repeat(LEAD - 1);
        assert_eq!(page, format!("- …{lead} months on\n+ …{lead} years on\n"));
    }
}
