//! What a person's words are about, as far as a list can tell: small talk, and the names of intents
//! that want something done. English and Turkish.

use super::fold::words;

/// The longest text that may be small talk, in bytes; longer ones say something.
const SMALLTALK_BYTES_MAX: usize = 100;

/// Greetings, thanks and farewells, folded. A text is small talk if it consists of these.
const SMALLTALK: &[&str] = &[
    "hi",
    "hi there",
    "hello",
    "hello there",
    "hey",
    "hey there",
    "howdy",
    "greetings",
    "welcome",
    "good morning",
    "good afternoon",
    "good evening",
    "good night",
    "good day",
    "morning",
    "how are you",
    "how are you doing",
    "how are you today",
    "how is it going",
    "how s it going",
    "what s up",
    "whats up",
    "nice to meet you",
    "thanks",
    "thanks a lot",
    "thanks so much",
    "many thanks",
    "thank you",
    "thank you very much",
    "thank you so much",
    "cheers",
    "you re welcome",
    "bye",
    "bye bye",
    "goodbye",
    "good bye",
    "see you",
    "see you later",
    "see you tomorrow",
    "take care",
    "have a nice day",
    "have a good day",
    "selam",
    "selamlar",
    "merhaba",
    "merhabalar",
    "gunaydin",
    "tunaydin",
    "iyi gunler",
    "iyi aksamlar",
    "iyi geceler",
    "iyi sabahlar",
    "iyi haftalar",
    "iyi calismalar",
    "kolay gelsin",
    "hos geldin",
    "hos geldiniz",
    "hos bulduk",
    "nasilsin",
    "nasilsiniz",
    "iyi misin",
    "iyi misiniz",
    "naber",
    "ne haber",
    "nasil gidiyor",
    "tesekkurler",
    "tesekkur ederim",
    "cok tesekkurler",
    "cok tesekkur ederim",
    "sagol",
    "sag ol",
    "sagolun",
    "sag olun",
    "eyvallah",
    "eline saglik",
    "ellerine saglik",
    "rica ederim",
    "hosca kal",
    "hoscakal",
    "hoscakalin",
    "gorusuruz",
    "yarin gorusuruz",
    "gule gule",
    "kendine iyi bak",
];

/// Verbs in the names of intents that change something or send something.
const DOING: &[&str] = &[
    "create",
    "add",
    "book",
    "schedule",
    "set",
    "make",
    "insert",
    "update",
    "edit",
    "change",
    "modify",
    "move",
    "reschedule",
    "rename",
    "delete",
    "remove",
    "cancel",
    "clear",
    "send",
    "write",
    "reply",
    "forward",
    "share",
    "invite",
    "call",
    "start",
    "stop",
    "play",
    "open",
    "close",
    "buy",
    "order",
    "pay",
];
/// The same in Turkish, as stems.
const DOING_STEMS: &[&str] = &[
    "olustur", "ekle", "ayarla", "planla", "duzenle", "guncelle", "degistir", "tasi", "ertele",
    "sil", "kaldir", "iptal", "gonder", "yolla", "yaz", "yanitla", "cevapla", "ilet", "paylas",
    "davet", "baslat", "durdur", "cal", "ac", "kapat", "al", "ode",
];
/// What may stand behind a stem in the name of an intent.
const NOUN_ENDINGS: &[&str] = &["", "me", "ma", "mek", "mak", "et", "etme", "etmek"];

/// Whether `text` is small talk and nothing more.
pub(super) fn is_smalltalk(text: &str) -> bool {
    if text.len() > SMALLTALK_BYTES_MAX {
        return false;
    }
    let words = words(text);
    let mut rest = words.as_str();
    // Each round takes a phrase away, so there are no more rounds than words.
    while !rest.is_empty() {
        let longest =
            SMALLTALK.iter().filter_map(|phrase| behind(rest, phrase)).min_by_key(|it| it.len());
        let Some(behind) = longest else { return false };
        rest = behind;
    }
    !words.is_empty()
}

/// What is left of `text` behind a phrase that it begins with.
fn behind<'t>(text: &'t str, phrase: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(phrase)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}

/// Whether an intent of this name wants something done, rather than to know something.
pub(super) fn wants_doing(intent: &str) -> bool {
    let has_stem = |word: &str| {
        let mut endings = DOING_STEMS.iter().filter_map(|stem| word.strip_prefix(stem));
        endings.any(|ending| NOUN_ENDINGS.contains(&ending))
    };
    words(intent).split(' ').any(|word| DOING.contains(&word) || has_stem(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_talk_is_nothing_but_small_talk() {
        for text in [
            "hi",
            "Hello there!",
            "thanks a lot, bye :)",
            "Selam",
            "MERHABA, nasılsın?",
            "günaydın",
            "Teşekkürler!",
            "tesekkur ederim, gorusuruz",
            "İyi akşamlar",
        ] {
            assert!(is_smalltalk(text), "{text}");
        }
        for text in [
            "",
            "???",
            "hi, fix the build",
            "selam, bugün ne yaptık?",
            "history",
            "thanksgiving",
            "good",
            "teşekkür metni yaz",
        ] {
            assert!(!is_smalltalk(text), "{text}");
        }
    }

    #[test]
    fn intents_want_doing_or_knowing() {
        for intent in [
            "create",
            "event_create",
            "cancel-event",
            "send",
            "iptal",
            "İPTAL_ET",
            "silme",
            "gönder",
        ] {
            assert!(wants_doing(intent), "{intent}");
        }
        for intent in ["query", "list_events", "settings", "silent", "sorgula", "none", ""] {
            assert!(!wants_doing(intent), "{intent}");
        }
    }

    #[test]
    fn lists_are_folded() {
        for phrase in SMALLTALK.iter().chain(DOING).chain(DOING_STEMS) {
            assert_eq!(*phrase, words(phrase));
        }
    }
}
