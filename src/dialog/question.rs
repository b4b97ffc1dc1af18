//! Whether what an assistant said last waits for the person: a question, or whether to go ahead.
//! English and Turkish; a Turkish question is known by its particle, too.

use super::fold::words;

/// How much of the end of a text is looked at, in bytes.
const LOOK_BYTES_MAX: usize = 800;

/// What ends a sentence.
const ENDS: [char; 6] = ['.', '!', '?', '…', '？', '。'];
/// What may stand around a sentence: quotes, brackets, marks of Markdown and of lists.
const AROUND: [char; 16] =
    ['*', '_', '`', '"', '\'', '”', '“', '’', '»', '«', ')', '(', ']', '[', '#', '>'];

/// What makes a question ask for leave, folded and between blanks.
const LEAVE: &[&str] = &[
    " shall i ",
    " shall we ",
    " should i ",
    " should we ",
    " may i ",
    " do you want me to ",
    " would you like me to ",
    " want me to ",
    " can i go ahead ",
    " go ahead ",
    " proceed ",
    " confirm ",
    " approve ",
    " ok to ",
    " okay to ",
    " is that ok ",
    " is that okay ",
    " is it ok ",
    " is it okay ",
    " is this ok ",
    " is this okay ",
    " are you sure ",
    " sound good ",
    " sounds good ",
    " look good ",
    " looks good ",
    " emin misin",
    " uygun mu ",
    " tamam mi ",
    " olur mu ",
    " ister misin",
    " istiyor musun",
    " kabul ediyor mu",
    " onayliyor mu",
    " onay",
    "eyim mi ",
    "ayim mi ",
    "elim mi ",
    "alim mi ",
];
/// A question that begins so wants to know something, not leave.
const ASKING: &[&str] = &[
    "which",
    "what",
    "where",
    "when",
    "who",
    "whom",
    "whose",
    "how",
    "why",
    "hangi",
    "hangisi",
    "hangisini",
    "ne",
    "neyi",
    "nerede",
    "nereye",
    "nereden",
    "kim",
    "kimi",
    "kime",
    "nasil",
    "neden",
    "nicin",
    "niye",
    "kac",
    "kacta",
];
/// The particle that makes a Turkish sentence a question, in its persons, folded.
const PARTICLES: &[&str] = &[
    "mi", "mu", "misin", "misiniz", "musun", "musunuz", "miyim", "muyum", "miyiz", "muyuz",
    "midir", "mudur", "miydi", "muydu",
];

/// The last question in the last line of `text`, if that line asks one.
pub(super) fn last_question(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let tail = text.get(text.ceil_char_boundary(text.len().saturating_sub(LOOK_BYTES_MAX))..)?;
    let line = tail.lines().next_back()?;
    let found = sentences(line).filter(|sentence| is_question(sentence)).last()?;
    Some(found.trim_matches(|c: char| c.is_whitespace() || AROUND.contains(&c) || c == '-'))
}

/// The first question in `text`, with which a tool that asks begins.
pub(super) fn first_question(text: &str) -> Option<&str> {
    let head = text.get(..text.floor_char_boundary(LOOK_BYTES_MAX))?;
    sentences(head.lines().next()?).find(|sentence| is_question(sentence)).map(str::trim)
}

/// Whether a question asks for leave to do something.
pub(super) fn asks_leave(question: &str) -> bool {
    let words = words(question);
    let first = words.split(' ').next().unwrap_or_default();
    let padded = format!(" {words} ");
    !ASKING.contains(&first) && LEAVE.iter().any(|phrase| padded.contains(phrase))
}

/// The sentences of a line: each ends where a blank follows its last sign.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    line.split_inclusive(char::is_whitespace)
        .scan(0, |at, word| {
            *at += word.len();
            Some((*at, ends_sentence(word)))
        })
        .chain([(line.len(), true)])
        .filter(|(_, ends)| *ends)
        .scan(0, |start, (end, _)| Some(&line[std::mem::replace(start, end)..end]))
}

fn ends_sentence(word: &str) -> bool {
    bare(word).ends_with(ENDS)
}

fn bare(sentence: &str) -> &str {
    sentence.trim_end().trim_end_matches(AROUND)
}

fn is_question(sentence: &str) -> bool {
    let sentence = bare(sentence);
    sentence.ends_with(['?', '？']) || ends_with_particle(sentence)
}

/// Whether a sentence ends as a Turkish question without its sign, as in `devam edeyim mi`.
fn ends_with_particle(sentence: &str) -> bool {
    let words = words(sentence);
    let Some((before, last)) = words.rsplit_once(' ') else { return false };
    let word = before.rsplit(' ').next().unwrap_or_default();
    // A number before it is a distance.
    PARTICLES.contains(&last) && word.chars().all(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(&str, bool)>) {
        let found = last_question(text);
        assert_eq!(found.map(|question| (question, asks_leave(question))), expected, "{text}");
    }

    #[test]
    fn the_last_line_asks_or_does_not() {
        check("Done. Which port should I use?", Some(("Which port should I use?", false)));
        check("Is it slow? I will look.", Some(("Is it slow?", false)));
        check("Is it slow?\n\nI looked: it is not.", None);
        check("a?b=1", None);
        check("It runs.\n- **Which of the two?**\n", Some(("Which of the two?", false)));
        check("```\nwho?\n```", None);
        check("", None);
        check("?", Some(("?", false)));
    }

    #[test]
    fn leave_is_told_from_knowledge() {
        check("Shall I delete it?", Some(("Shall I delete it?", true)));
        check("Found two. Do you want me to go on?", Some(("Do you want me to go on?", true)));
        check("What should I do?", Some(("What should I do?", false)));
        check("Do you want tea or coffee?", Some(("Do you want tea or coffee?", false)));
    }

    #[test]
    fn turkish_asks_with_a_particle() {
        check("Toplantıyı oluşturayım mı?", Some(("Toplantıyı oluşturayım mı?", true)));
        check("Hazır. SİLEYİM Mİ", Some(("SİLEYİM Mİ", true)));
        check("Devam edelim mi?", Some(("Devam edelim mi?", true)));
        check("Onaylıyor musunuz.", Some(("Onaylıyor musunuz.", true)));
        check("Emin misiniz?", Some(("Emin misiniz?", true)));
        check("Hangi saati istersiniz?", Some(("Hangi saati istersiniz?", false)));
        check("Saat kaçta olsun?", Some(("Saat kaçta olsun?", false)));
        check("Yarın müsait misiniz?", Some(("Yarın müsait misiniz?", false)));
        check("It is 5 mi", None);
        check("mi", None);
    }

    #[test]
    fn a_tool_asks_first_and_lists_answers_behind() {
        assert_eq!(first_question("Which one?\n- a: Why not?\n- b"), Some("Which one?"));
        assert_eq!(first_question("plan"), None);
    }

    proptest! {
        #[test]
        fn a_question_is_a_piece_of_the_text(text in "[a-zışçğöü?!. \n*-]{0,80}|(?s).{0,40}") {
            for found in [last_question(&text), first_question(&text)].into_iter().flatten() {
                prop_assert!(text.contains(found) && !found.contains('\n'));
                asks_leave(found);
            }
        }
    }
}
