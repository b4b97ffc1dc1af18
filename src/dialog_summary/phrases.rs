//! Rules that classify user messages and assistant questions: small talk, intents to act, questions,
//! and requests for permission. English, Turkish, German, Spanish, French, Japanese, Chinese.
//! Their word lists are in `phrases.txt`.

use crate::privacy::table_section;
use aho_corasick::AhoCorasick;
use std::collections::HashSet;
use std::sync::LazyLock;

/// Maximum bytes of small talk; longer texts have content.
const SMALLTALK_BYTES_MAX: usize = 100;
/// Bytes that are searched for a question.
const QUESTION_BYTES_MAX: usize = 800;

type Phrases = LazyLock<HashSet<&'static str>>;

static SMALLTALK: Phrases = LazyLock::new(|| section("smalltalk"));
static DOING: Phrases = LazyLock::new(|| section("doing"));
static DOING_STEMS: Phrases = LazyLock::new(|| section("doing-stems"));
static ASKING: Phrases = LazyLock::new(|| section("asking"));
static ASKING_INSIDE: Phrases = LazyLock::new(|| section("asking-inside"));
static PARTICLES: Phrases = LazyLock::new(|| section("particles"));
static PERMISSION: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::new(section("permission")).ok());

fn section(name: &str) -> HashSet<&'static str> {
    let lines = table_section(include_str!("phrases.txt"), name);
    lines.into_iter().flat_map(|line| line.split(", ")).collect()
}

/// Suffixes that may follow a stem in an intent name.
const NOUN_ENDINGS: &[&str] = &["", "me", "ma", "mek", "mak", "et", "etme", "etmek"];

const ENDS: [char; 6] = ['.', '!', '?', '…', '？', '。'];
/// Characters that may surround a sentence: quotes, brackets, Markdown and list marks.
const AROUND: &str = "*_`\"'”“’»«)(][#>";

pub(super) fn is_smalltalk(text: &str) -> bool {
    if text.len() > SMALLTALK_BYTES_MAX {
        return false;
    }
    let words = words(text);
    let mut rest = words.as_str();
    // Each round removes a phrase, so there are at most as many rounds as words.
    while !rest.is_empty() {
        let behind = SMALLTALK.iter().filter_map(|phrase| behind(rest, phrase));
        let Some(behind) = behind.min_by_key(|it| it.len()) else { return false };
        rest = behind;
    }
    !words.is_empty()
}

/// Rest of `text` after `phrase`, if it starts with it.
fn behind<'t>(text: &'t str, phrase: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(phrase)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}

/// Returns whether an intent of this name asks for an action rather than for information.
pub(super) fn wants_doing(intent: &str) -> bool {
    let has_stem = |word: &str| {
        let mut endings = DOING_STEMS.iter().filter_map(|stem| word.strip_prefix(stem));
        endings.any(|ending| NOUN_ENDINGS.contains(&ending))
    };
    words(intent).split(' ').any(|word| DOING.contains(word) || has_stem(word))
}

/// The last question in the last line of `text`, if there is one.
pub(super) fn last_question(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let tail =
        text.get(text.ceil_char_boundary(text.len().saturating_sub(QUESTION_BYTES_MAX))..)?;
    let line = tail.lines().next_back()?;
    let found = sentences(line).filter(|sentence| is_question(sentence)).last()?;
    Some(found.trim_matches(|c: char| c.is_whitespace() || AROUND.contains(c) || c == '-'))
}

/// The first question in the first line of `text`; an asking tool starts with it.
pub(super) fn first_question(text: &str) -> Option<&str> {
    let head = text.get(..text.floor_char_boundary(QUESTION_BYTES_MAX))?;
    sentences(head.lines().next()?).find(|sentence| is_question(sentence)).map(str::trim)
}

pub(super) fn asks_permission(question: &str) -> bool {
    let words = words(question);
    // Includes the second word: "On which port should I listen?"
    let mut first = words.split(' ').take(2);
    let asks = first.any(|word| ASKING.contains(word))
        || words.starts_with("que ")
        || ASKING_INSIDE.iter().any(|word| words.contains(word));
    let padded = format!("_{}_", words.replace(' ', "_"));
    !asks && PERMISSION.as_ref().is_some_and(|phrases| phrases.is_match(&padded))
}

/// Sentences of a line; each ends at a blank after its punctuation.
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
    sentence.trim_end().trim_end_matches(|c| AROUND.contains(c))
}

fn is_question(sentence: &str) -> bool {
    let sentence = bare(sentence);
    sentence.ends_with(['?', '？']) || ends_with_particle(sentence)
}

/// Returns whether a sentence is a Turkish question without a question mark, as in `devam edeyim mi`.
fn ends_with_particle(sentence: &str) -> bool {
    let text = sentence.trim_end_matches(|letter: char| !letter.is_alphanumeric());
    let last = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    // Every particle contains an m, and most last words do not.
    if !last.contains(['m', 'M']) {
        return false;
    }
    let words = words(sentence);
    let Some((before, last)) = words.rsplit_once(' ') else { return false };
    let word = before.rsplit(' ').next().unwrap_or_default();
    // After a number it is a distance in miles.
    PARTICLES.contains(last) && word.chars().all(char::is_alphabetic)
}

/// Folds a text for comparison: lower case, without the diacritics that users often omit. All four variants of the
/// Turkish i become `i`, so `İPTAL`, `IPTAL` and `ıptal` are equal.
pub(super) fn fold(text: &str) -> String {
    let lower = text.chars().flat_map(char::to_lowercase);
    lower.filter_map(unmarked).collect()
}

/// Folded words of a text, separated by single spaces.
pub(super) fn words(text: &str) -> String {
    let folded = fold(text);
    let words = folded.split(|letter: char| !letter.is_alphanumeric()).filter(|it| !it.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// A lower-case letter without its diacritic; `None` for a combining mark, such as the dot that remains after
/// lower-casing `İ`.
fn unmarked(letter: char) -> Option<char> {
    match letter {
        '\u{300}'..='\u{36f}' => None,
        'ı' | 'î' => Some('i'),
        'ş' => Some('s'),
        'ç' => Some('c'),
        'ğ' => Some('g'),
        'ö' => Some('o'),
        'ü' | 'û' => Some('u'),
        'â' => Some('a'),
        _ => Some(letter),
    }
}

#[cfg(test)]
mod tests {
    mod phrase {
        use super::super::*;

        #[test]
        fn small_talk_is_nothing_but_small_talk() {
            for text in [
                "hi", "Hello there!", "thanks a lot, bye :)", "Selam", "MERHABA, nasılsın?",
                "günaydın", "Teşekkürler!", "tesekkur ederim, gorusuruz", "İyi akşamlar",
                "Guten Morgen! Vielen Dank.", "¡Hola! ¿Qué tal?", "Bonjour, ça va ?", "你好！",
            ] {
                assert!(is_smalltalk(text), "{text}");
            }
            for text in [
                "", "???", "hi, fix the build", "selam, bugün ne yaptık?", "history",
                "thanksgiving", "good", "teşekkür metni yaz",
            ] {
                assert!(!is_smalltalk(text), "{text}");
            }
        }

        #[test]
        fn intents_want_doing_or_knowing() {
            for intent in [
                "create", "event_create", "cancel-event", "send", "iptal", "İPTAL_ET", "silme",
                "gönder", "termin_löschen", "reunión_crear", "réunion_annuler",
            ] {
                assert!(wants_doing(intent), "{intent}");
            }
            for intent in ["query", "list_events", "settings", "silent", "sorgula", "none", ""] {
                assert!(!wants_doing(intent), "{intent}");
            }
        }

        #[test]
        fn lists_are_folded() {
            for phrase in SMALLTALK.iter().chain(DOING.iter()).chain(DOING_STEMS.iter()) {
                assert_eq!(*phrase, words(phrase));
            }
        }
    }

    mod question {
        use super::super::*;
        use proptest::prelude::*;

        #[track_caller]
        fn check(text: &str, expected: Option<(&str, bool)>) {
            let found = last_question(text);
            assert_eq!(
                found.map(|question| (question, asks_permission(question))),
                expected,
                "{text}"
            );
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
        fn leave_is_asked_for_in_every_language_of_the_lists() {
            for question in [
                "Soll ich alles löschen?",
                "Möchten Sie, dass ich fortfahre?",
                "Einverstanden?",
                "Quieres que borre todo?",
                "Puedo continuar?",
                "Dois-je tout supprimer ?",
                "Voulez-vous que je continue ?",
                "削除してもよろしいですか？",
                "続けましょうか？",
                "要我删除吗？",
                "可以吗？",
            ] {
                check(question, Some((question, true)));
            }
            for question in [
                "Was soll ich löschen?",
                "Auf welchem Port soll ich lauschen?",
                "On which port should I listen?",
                "Qué debo borrar?",
                "En qué puerto debo escuchar?",
                "Que dois-je supprimer ?",
                "Quel port dois-je utiliser ?",
                "どのポートを使いましょうか？",
                "要我用哪个端口？",
            ] {
                check(question, Some((question, false)));
            }
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
                    asks_permission(found);
                }
            }
        }
    }

    mod fold {
        use super::super::*;
        use proptest::prelude::*;

        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(words(text), expected);
        }

        #[test]
        fn spellings_of_a_word_meet() {
            for text in ["İptal", "IPTAL", "ıptal", "iptal", "I\u{307}PTAL", "i\u{307}ptal"] {
                check(text, "iptal");
            }
            for text in ["teşekkürler", "TEŞEKKÜRLER", "tesekkurler", "tes\u{327}ekku\u{308}rler"]
            {
                check(text, "tesekkurler");
            }
            check("Günaydın! Nasılsın?", "gunaydin nasilsin");
            check("What's up :)", "what s up");
            check("…", "");
        }

        proptest! {
            #[test]
            fn folding_twice_changes_nothing(text in any::<String>()) {
                prop_assert_eq!(fold(&fold(&text)), fold(&text));
            }
        }
    }
}
