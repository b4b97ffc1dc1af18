//! One line of a text, and as much of it as fits.

use super::keyword::is_stop_word;
use crate::entity::is_blank;
use unicode_segmentation::UnicodeSegmentation;

/// The mark of a cut; it counts towards the length.
pub const ELLIPSIS: &str = "...";
/// What must be left of the room for a cut at the end of a word, in per cent; otherwise the cut goes
/// through the word.
const KEPT_PERCENT_MIN: usize = 70;

/// Which items end with [`ELLIPSIS`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Ellipsis {
    /// Those that were cut.
    #[default]
    Cut,
    /// All but those that ask or exclaim, as the template of the card prints them. A title has it where
    /// it was cut.
    Template,
}

/// The first `letters_max` letters of `text` as one line: every run of blanks is one, and none stands
/// at an end.
pub(super) fn one_line(text: &str, letters_max: usize) -> String {
    let mut line = String::new();
    let mut letters = 0;
    for word in text.split(is_blank).filter(|word| !word.is_empty()) {
        if letters > 0 {
            line.push(' ');
            letters += 1;
        }
        let room = letters_max.saturating_sub(letters);
        let end = word.char_indices().nth(room).map_or(word.len(), |(at, _)| at);
        line.push_str(word.get(..end).unwrap_or_default());
        if end < word.len() || room == 0 {
            break;
        }
        letters += word.chars().count();
    }
    line.truncate(line.trim_end().len());
    line
}

/// `line`, in at most `letters_max` letters.
pub(super) fn cut(line: &str, letters_max: usize, ellipsis: Ellipsis) -> String {
    let room = letters_max.saturating_sub(ELLIPSIS.len());
    let whole = line.chars().nth(letters_max).is_none();
    match ellipsis {
        Ellipsis::Cut if whole => line.to_owned(),
        Ellipsis::Cut => marked(shortened(line, room)),
        Ellipsis::Template if whole => template(line, room),
        Ellipsis::Template => marked(shortened(line, room)),
    }
}

/// A whole line with the mark in place of its full stop. What asks or exclaims has none, and neither
/// has what would be nothing but a mark.
fn template(line: &str, room: usize) -> String {
    let bare = line.trim_end_matches(['.', '…']);
    if calls(line) || bare.is_empty() || bare.ends_with(' ') {
        return line.to_owned();
    }
    let fits = bare.chars().nth(room).is_none();
    marked(if fits { bare } else { shortened(bare, room) })
}

fn marked(text: &str) -> String {
    format!("{text}{ELLIPSIS}")
}

/// Whether a line asks or exclaims.
fn calls(line: &str) -> bool {
    super::excerpt::without_closers(line).ends_with(['?', '？', '!', '！'])
}

/// The beginning of a line that is longer than `room` letters: up to the end of a word where that
/// leaves enough, and without little words that dangle there.
fn shortened(line: &str, room: usize) -> &str {
    let least = room * KEPT_PERCENT_MIN / 100;
    let end = line.char_indices().nth(room).map_or(line.len(), |(at, _)| at);
    let (head, tail) = line.split_at(end);
    let is_enough = |kept: &&str| kept.chars().count() >= least;
    let at_word = match tail.starts_with(is_blank) {
        true => Some(head),
        false => head.rfind(' ').and_then(|at| head.get(..at)).filter(is_enough),
    };
    let Some(kept) = at_word else { return whole_letters(line, end, least).trim_end() };
    let mut kept = kept.trim_end();
    while let Some((before, last)) = kept.rsplit_once(' ') {
        if !is_stop_word(&last.to_lowercase()) || !is_enough(&before) {
            break;
        }
        kept = before;
    }
    kept
}

/// As much of the first `end` bytes as cuts no letter from its marks; all of them if that would leave
/// less than `least`, for no letter of any script is that long.
fn whole_letters(line: &str, end: usize, least: usize) -> &str {
    let starts = line.grapheme_indices(true).map(|(at, _)| at).take_while(|at| *at <= end);
    let whole = starts.last().and_then(|at| line.get(..at)).unwrap_or_default();
    if whole.chars().count() >= least { whole } else { line.get(..end).unwrap_or(line) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(line: &str, letters_max: usize, expected: &str) {
        let once = cut(line, letters_max, Ellipsis::Cut);
        assert_eq!(once, expected);
        assert_eq!(cut(&once, letters_max, Ellipsis::Cut), once, "cutting twice changes nothing");
    }

    #[test]
    fn what_fits_is_left_alone() {
        check("", 10, "");
        check("exactly 10", 10, "exactly 10");
    }

    #[test]
    fn a_cut_goes_to_the_end_of_a_word() {
        check("configure nginx", 12, "configure...");
        check("configure nginx twice", 13, "configure...");
    }

    #[test]
    fn a_cut_goes_through_a_word_that_is_too_long() {
        check("a bbbbbbbbbbbbbbbbbbbb", 13, "a bbbbbbbb...");
    }

    #[test]
    fn little_words_do_not_dangle() {
        check("configure all of this and that for everyone", 34, "configure all of this...");
        check("we configure nginx with the zone", 30, "we configure nginx...");
    }

    #[test]
    fn a_letter_keeps_its_marks() {
        let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        check(&format!("aaaaaaaaaaa{family}{family}"), 17, "aaaaaaaaaaa...");
        check("aaaaaaaaaaae\u{301}bbbbb", 15, "aaaaaaaaaaa...");
        let heap = format!("e{}", "\u{301}".repeat(30));
        check(&heap, 13, &format!("e{}...", "\u{301}".repeat(9)));
    }

    #[test]
    fn the_template_marks_what_neither_asks_nor_exclaims() {
        let template = |line| cut(line, 20, Ellipsis::Template);
        assert_eq!(template("Check them first."), "Check them first...");
        assert_eq!(template("Check them"), "Check them...");
        assert_eq!(template("Check them..."), "Check them...");
        assert_eq!(template("Check (\"them?\")"), "Check (\"them?\")");
        assert_eq!(template("Check them all, then go"), "Check them all,...");
    }

    #[test]
    fn blanks_fall_together() {
        assert_eq!(one_line("\n a\t\u{a0} b\u{2028}\u{1c}c ", 99), "a b c");
        assert_eq!(one_line("abc def", 5), "abc d");
        assert_eq!(one_line("abc def", 4), "abc");
        assert_eq!(one_line("abc def", 3), "abc");
    }

    proptest! {
        #[test]
        fn what_is_cut_fits_and_begins_alike(text in "(.|the |word |\u{301}){0,80}", most in 10usize..60) {
            let line = one_line(&text, 400);
            for ellipsis in [Ellipsis::Cut, Ellipsis::Template] {
                let once = cut(&line, most, ellipsis);
                prop_assert!(once.chars().count() <= most, "{once:?}");
                let kept = once.strip_suffix(ELLIPSIS).unwrap_or(&once);
                prop_assert!(line.starts_with(kept), "{once:?} of {line:?}");
            }
            let once = cut(&line, most, Ellipsis::Cut);
            prop_assert_eq!(cut(&once, most, Ellipsis::Cut), once);
        }
    }
}
