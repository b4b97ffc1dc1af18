//! Words that decide how two statements relate: words of change, words that limit or negate, and exact names. In
//! English, German, Turkish, Spanish, French, Japanese, Chinese and, in part, others.

use crate::text::stems::{NEGATIONS, is_no};
use crate::text::tokens::{hash, search_keys};
use aho_corasick::AhoCorasick;
use foldhash::{HashMap, HashSet};
use std::sync::LazyLock;

/// Words saying that something is no longer as it was.
const CHANGES: &str = "instead|after all|no longer|not any more|not anymore|any more|anymore|no more|rather than|now|\
     in favour of|in favor of|takes over from|took over from|changed my mind|change my mind|changed our mind|\
     on second thought|scratch that|revert|reverted|reverse|reversed|undo|undone|drop|dropped|abolish|abolished|forget the|\
     no,|no:|from now on|take back|taken back|took back|statt|statt dessen|stattdessen|anstatt|anstelle|doch lieber|\
     lieber doch|doch nicht|nicht mehr|nicht länger|ab jetzt|ab sofort|jetzt|künftig|nunmehr|nein,|abgeschafft|rückgängig|zurückgenommen|\
     yerine|artık|vazgeçtik|vazgeçtim|fikrimi değiştirdim|hayır,|bundan sonra|en lugar de|en vez de|ya no|ahora|\
     cambio de idea|cambié de idea|a partir de ahora|plutôt|au lieu de|finalement|ne plus|n'est plus|ne sont plus|maintenant|\
     changé d'avis|désormais|dorénavant|non,|invece di|d'ora in poi|non più|adesso|em vez de|a partir de agora|não mais|agora|\
     вместо|теперь|отныне|больше не|やっぱり|やはり|ではなく|じゃなくて|代わりに|に戻|やめて|今後|还是用|不再";

/// Verbs that change something from one value to another.
const SHIFTS: &str = "dial|dialled|dialed|slowed|tighten|tightened|loosen|loosened|relax|relaxed|trim|trimmed|switch|switched|switches|switching|changed|change|changes|changing|go back to|goes back to|went back to|\
     replace|replaces|replaced|raise|raised|lower|lowered|increase|increased|reduce|reduced|extend|extended|lengthen|\
     lengthened|shorten|shortened|cut|bump|bumped|halve|halved|doubled|tripled|upgrade|upgraded|downgrade|\
     downgraded|migrate|migrated|move|moves|moved|shift|shifted|postpone|postponed|reschedule|rescheduled|return to|returns to|\
     umgestiegen|ersetzt|ersetzen|zurück zu|geändert|ändern|erhöht|erhöhen|gesenkt|senken|verlängert|verlängern|verkürzt|\
     verkürzen|verdoppelt|verdoppeln|umgestellt|umstellen|gestellt|gewechselt|wechseln|verschoben|verschieben|verlegt|verlegen|\
     değiştirildi|değiştirelim|volvamos a|cambiar a|cambiamos a|pasamos a|pasa a|pasan a|sustituir|reemplazar|aumentar|reducir|\
     mover|movemos|trasladar|passer à|passons à|passe à|passent à|on passe à|remplacer|remplacé|augmenter|augmenté|réduire|\
     réduit|déplacer|déplacé|déplacée|reporté|reportée|passare|passiamo|cambiare|spostare|spostato|mudar|mudamos|passamos|\
     заменить|заменяем|меняем|перенести|переносим|перенесли|увеличить|уменьшить|перейти|переходим|に変更|切り替え|改用|換成|换成";

/// Words saying that the speaker repeats something; those in `REMINDS` only suggest it.
const REPEATS: &str = "repeat|as i said|as said|as we said|like i said|said before|already said|told you|as agreed|once more|\
     wie gesagt|wiederhole|noch einmal|rappel|répète|encore une fois|déjà dit|repito|te lo dije|otra vez|ripeto|повторяю|\
     напоминаю|söylediğim gibi|もう一度|言ったとおり|繰り返|how often|how many times|said again|second time|third time|\
     keep saying|keep telling|wie oft|zum zweiten mal|zum dritten mal|nochmals|combien de fois|troisième fois|cuántas veces|\
     tercera vez";
const REMINDS: &str =
    "again|remember|still|as before|wieder|nochmal|recuerda|ricorda|опять|снова|tekrar";

/// Nouns for measured quantities.
pub(super) const MEASURE_NOUNS: &str = "limit interval number amount size length width height duration period timeout rate \
     frequency price cost fee cap window deadline validity delay threshold quota gültigkeit validité grenze intervall anzahl menge größe länge breite höhe dauer frist preis kosten gebühr \
     nombre taille longueur durée délai prix coût límite intervalo número tamaño duración plazo precio coste cuota";

/// Words that withdraw a request or plan, folded.
const WITHDRAWN: &str = "cancel|cancelled|canceled|take back|taken back|took back|withdraw|withdrawn|drop|dropped|\
     scrap|scrapped|abandon|abandoned|no longer needed|not needed any more|not needed anymore|never mind|nevermind|\
     forget|called off|off the list|off the table|vetoed|hat sich erledigt|sich erledigt|gestrichen|verworfen|wird nicht gebaut|nicht mehr nötig|\
     zurückgezogen|zurückgenommen|abgesagt|laisse tomber|laissons tomber|annulé|annule|abandonné|plus besoin|\
     cancelar|cancelado|ya no hace falta|descartado|olvida|iptal|vazgeçtik|vazgeçtim|gerek kalmadı|やめる|やめた|不要|取消";

/// Words for an action that only investigates, plans or begins what was asked.
const PREPARATION: &str = "reproduce|reproduced|reproduces|trigger|triggers|triggered|plan|planned|outline|outlined|draft|drafted|sketch|\
     sketched|design|investigate|investigated|analysed|analyzed|looked|measured|profiled|estimated|researched|compared|\
     compare|compares|comparing|analyse|analyze|measure|estimate|research|propose|suggest|proposed|suggested|prepared|began|\
     begun|started|half|except|only|reverted|wrote a test|failing test|found|listed|find out|why|warum|pourquoi|por qué|nachgestellt|\
     reproduziert|geplant|entwurf|entworfen|gliederung|skizziert|untersucht|analysiert|gemessen|vorbereitet|begonnen|\
     zur hälfte|planifié|ébauche|brouillon|esquisse|commencé|analysé|mesuré|reproduit|planeado|borrador|esquema|\
     empezado|reproducido|planlandı|taslak";
/// Words by which an attempt says that something is left to do.
const UNFINISHED: &str = "no code|partly|partially|is next|comes next|next step|next week|not done|not fixed|not implemented|\
     yet|not started|not begun|still open|is still|are still|left to do|remains to|remain to|is missing|are missing|still missing|pending|waits for|waiting for|\
     still to do|todo|tomorrow|next sprint|demain|mañana|fehlt|fehlen|wartet auf|manque|manquent|falta|faltan|\
     noch nicht|noch offen|immer noch|steht aus|stehen aus|nicht begonnen|nicht angefangen|teilweise|folgt|beginnt|\
     pas encore|pas commencé|reste à|restent à|en partie|todavía no|aún no|sin empezar|queda por|quedan por|\
     parcialmente|henüz|kısmen";
/// Words by which a decision or a wish postpones something.
const POSTPONED: &str = "another time|some other time|undecided|not decided|to be decided|for later|decide later|decided later|\
     comes later|postponed|put off|not today|not now|not before the|not done before the|not until the|nicht vor dem|nicht vor der|\
     erst nach|pas avant l|no antes de|verschoben|später dran|kommt später|reporté|aplazad|rinviat|\
     ein andermal|unentschieden|noch offen|später|une autre fois|plus tard|otro día|más adelante|sin decidir";
/// Words by which an attempt removes something.
const REMOVALS: &str = "remove|removed|deleted|delete|dropped|uninstalled|disabled|ausgebaut|entfernt|gelöscht|deaktiviert|supprimé|\
     retiré|eliminado|quitado|borrado|kaldırıldı|silindi|rid";

/// Stop words: articles, pronouns, prepositions and verbs that occur in statements on any topic.
const STOP_WORDS: &str = "a an the of to in and for is are was were be been being become becomes on with at by from it its as their our that which who \
     this these those there here we you i he she they them us your his her my me do does did done has have had will would \
     should can could may might must shall each every any all some such via into out up down over under about after before \
     ahead when while where what how so also still just only get gets got go goes going went gone use used uses using make \
     makes made take takes taken keep keeps kept set sets put puts stay stays stayed need needs needed run runs want wants let \
     please then than rather or if last lasts including included again always happen happens say says said let's \
     through between because longer already port move moves moved anywhere everywhere appear appears below above prior \
     der die das den dem des ein eine einen einem einer eines und ist sind war waren wird werden wurde wurden mit von vom \
     für auf im in am an zu zum zur bei beim nach vor über unter aus durch als wie wir sie er es ich uns man nur noch auch dass \
     oder aber mehr länger bereits nötig brauchen braucht hat haben jetzt bitte schon wieder immer soll sollen darf dürfen muss müssen kann können geht gehen kommt gibt \
     le la les l un une des du de et est sont dans sur pour par avec que qui on se au aux ce cette leur leurs toutes tous \
     il elle nous vous y en ne doit toujours déjà peut peuvent ya puede pueden hasta el los las uno una unos unas o es son con por para que del al lo su sus se cada \
     aussi également también itself themselves own myself selbst auch today per pro par back remember ab sofort lugar vez lieu favour favor mind thought \
     alle jede jeder jedes jeden chaque tous but mais sondern sino anything everything something alles etwas tout todo single alone allein alleine seul seule \
     least maximum minimum maximal höchstens mindestens máximo mínimo store stores stored hold holds happens \
     plus puis ils elles reste restent rester il lo gli i di del della dal al alla nel nella che e o os as do da dos das em no na nos nas ao à à às um uma que e para \
     и в во на с со к по за до от из у не для что это при мы его \
     変更 bir ve ile için bu şu da de mi her";

/// Words for a person's permission.
pub(super) const PERMISSION: &str = "ask asks asked asking permission consent approval yes ok okay says said saying confirm confirms \
     confirmation agree agrees agreed explicit explicitly person user fragen gefragt nachfragen rückfrage zustimmung \
     erlaubnis freigabe demander demandé accord autorisation preguntar permiso consultar confirmación";
/// Words before an action that needs permission.
pub(super) const BEFORE_PERMITTED: &str =
    "before prior unless until without vor bevor ohne bis avant sans antes sin hasta";

/// Irregular verb forms; each row begins with the base form.
const FORMS: &str = "send sent|show shown showed|build built|write written wrote|hold held|pay paid|sell sold|buy bought|\
     draw drawn drew|hide hidden hid|choose chosen chose|break broken broke|drive driven drove|bring brought|lend lent|\
     spend spent|lose lost|find found|teach taught|catch caught|feed fed|lead led|wear worn|grow grown grew|see seen saw|\
     eat eaten ate|forbid forbidden|freeze frozen froze|wiegen wiegt gewogen wog|schreiben schreibt geschrieben|\
     schließen schließt geschlossen|öffnen öffnet geöffnet|messen misst gemessen|tragen trägt getragen|lesen liest gelesen";

pub(super) static FORM_WORDS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let rows = FORMS.split('|').filter_map(|row| Some((row.split(' ').next()?, row)));
    rows.flat_map(|(first, row)| row.split(' ').map(move |word| (word, first))).collect()
});

/// Calls `each` with the keys of a folded topic word; forms of one verb have the same keys.
pub(super) fn topic_keys(word: &str, mut each: impl FnMut(u64)) {
    if let Some(plain) = FORM_WORDS.get(word) {
        return search_keys(plain, each);
    }
    if word.chars().count() == 1 {
        return each(hash(word));
    }
    // `shipping` and `shipped` become `ship`, `trading` and `trade` become `trad`.
    let endings = ["ing", "ed", "es", "e"];
    let stem = endings.iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    let stem = if word.len() < 5 { word } else { stem };
    let twice = stem.as_bytes().last_chunk().is_some_and(|[one, other]| one == other);
    let doubled = twice && stem.len() > 3 && !stem.ends_with(['l', 's', 'e', 'o', 'f', 'z']);
    let single = stem.get(..stem.len().saturating_sub(1)).filter(|_| doubled);
    // `gespeichert` becomes `speichert`.
    let participle = word.strip_prefix("ge").filter(|rest| rest.len() >= 6 && rest.ends_with('t'));
    search_keys(single.or(participle).unwrap_or(stem), each);
}

/// Words that bound a statement, folded. Two statements that differ in one of these, or in one of
/// [`NEGATIONS`], do not say the same, whatever else they share.
const BOUNDS: &str = "avoid|stop|disable|before|after|only|until|unless|except|if|off|out|down|under|below|over|\
     above|less|instead|all|every|any|nur|vor|nach|bis|aus|sadece|önce|sonra|solo|sólo|antes|\
     después|ne|seulement|avant|après";

const BOUND_SUBSTRINGS: &[&str] = &["だけ", "只", "前に", "後に"];

const NEGATION_SUBSTRINGS: &[&str] = &["ない", "ません", "禁止", "不", "别", "勿", "没"];

/// Words that negate everybody or everything.
const NOBODY: &[&str] = &[
    "nobody", "nothing", "none", "neither", "niemand", "nichts", "personne", "rien", "nadie",
    "nada", "hiçbir",
];

static BOUND_WORDS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| BOUNDS.split('|').chain(NEGATIONS.iter().copied()).collect());
static STOP_WORD_SET: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lists = [CHANGES, SHIFTS, WITHDRAWN];
    let lists = lists.into_iter().flat_map(|list| list.split('|'));
    let lists = lists.chain(NEGATIONS.iter().chain(NOBODY).copied());
    let words = STOP_WORDS.split_whitespace().chain(SYMBOLS);
    words.chain(lists.filter(|words| !words.contains(' '))).collect()
});

/// Phrases, matched as whole words.
struct Phrases(LazyLock<Option<AhoCorasick>>);

static CHANGED: Phrases = Phrases(LazyLock::new(|| AhoCorasick::new(CHANGES.split('|')).ok()));
static SHIFTED: Phrases = Phrases(LazyLock::new(|| AhoCorasick::new(SHIFTS.split('|')).ok()));
static REPEATED: Phrases = Phrases(LazyLock::new(|| AhoCorasick::new(REPEATS.split('|')).ok()));
static REMINDED: Phrases = Phrases(LazyLock::new(|| AhoCorasick::new(REMINDS.split('|')).ok()));
static TAKEN_BACK: Phrases = Phrases(LazyLock::new(|| AhoCorasick::new(WITHDRAWN.split('|')).ok()));
static LATER: Phrases = Phrases(LazyLock::new(|| AhoCorasick::new(POSTPONED.split('|')).ok()));
static PREPARATION_PHRASES: Phrases =
    Phrases(LazyLock::new(|| AhoCorasick::new(PREPARATION.split('|')).ok()));
static UNFINISHED_WORK: Phrases =
    Phrases(LazyLock::new(|| AhoCorasick::new(UNFINISHED.split('|')).ok()));
static REMOVED: Phrases = Phrases(LazyLock::new(|| AhoCorasick::new(REMOVALS.split('|')).ok()));

pub(super) fn says_change(folded: &str) -> bool {
    CHANGED.is_in(folded) || says_shift(folded)
}

/// True if the text changes something from one value to another.
pub(super) fn says_shift(folded: &str) -> bool {
    SHIFTED.is_in(folded)
}

pub(super) fn says_again(folded: &str) -> bool {
    REPEATED.is_in(folded)
}

pub(super) fn may_say_again(folded: &str) -> bool {
    REMINDED.is_in(folded)
}

/// True if the text withdraws a request or plan.
pub(super) fn says_withdrawn(folded: &str) -> bool {
    TAKEN_BACK.is_in(folded)
}

/// True if the action only prepares something.
pub(super) fn is_preparation(action: &str) -> bool {
    PREPARATION_PHRASES.is_in(action)
}

/// True if the whole text leaves nothing to do.
pub(super) fn is_finished(whole: &str) -> bool {
    !UNFINISHED_WORK.is_in(whole)
}

/// True if the text leaves something undecided.
pub(super) fn says_postponed(folded: &str) -> bool {
    LATER.is_in(folded)
}

pub(super) fn says_removed(folded: &str) -> bool {
    REMOVED.is_in(folded)
}

/// True if `list`, which has blanks between words, has `word`.
pub(super) fn is_in(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|it| it == word)
}

/// True for a folded stop word.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORD_SET.contains(word)
}

impl Phrases {
    fn is_in(&self, folded: &str) -> bool {
        let Some(finder) = self.0.as_ref() else { return false };
        finder.find_overlapping_iter(folded).any(|found| {
            let word = folded.get(found.range()).unwrap_or_default();
            let begins = word.chars().next().is_some_and(spelled);
            let ends = word.chars().next_back().is_some_and(spelled);
            let before = folded.get(..found.start()).and_then(|text| text.chars().next_back());
            let after = folded.get(found.end()..).and_then(|text| text.chars().next());
            let glued = |at_end: bool, next: Option<char>| {
                at_end && next.is_some_and(char::is_alphanumeric)
            };
            !(glued(begins, before) || glued(ends, after))
        })
    }
}

/// True for letters of scripts with blanks between words.
fn spelled(letter: char) -> bool {
    letter.is_alphabetic() && u32::from(letter) < 0x0E00
}

/// Hashes of the words in which equal statements must agree: bounds, and exact names (numbers,
/// versions, paths, identifiers). Sorted, with duplicates.
pub(super) fn invariant_words(folded: &str) -> Vec<u64> {
    let mut hard = Vec::new();
    for word in folded.split(' ').map(bare) {
        if is_exact(word) || is_symbol(word) || BOUND_WORDS.contains(word) {
            hard.push(hash(word));
        }
    }
    if !folded.is_ascii() {
        let inside = BOUND_SUBSTRINGS.iter().chain(NEGATION_SUBSTRINGS);
        let inside = inside.filter(|word| folded.contains(**word));
        hard.extend(inside.map(|word| hash(word)));
    }
    hard.sort_unstable();
    hard
}

/// Hashes of the words of `folded` that are exact names, in order.
pub(super) fn exact_words(folded: &str) -> impl Iterator<Item = u64> + '_ {
    folded.split(' ').map(bare).filter(|word| is_exact(word)).map(hash)
}

/// True for the key of a negation.
pub(super) fn is_negation(key: u64) -> bool {
    NEGATIONS.iter().chain(NEGATION_SUBSTRINGS).any(|word| hash(word) == key)
}

pub(super) fn says_no(folded: &str) -> bool {
    let inside = || NEGATION_SUBSTRINGS.iter().any(|word| folded.contains(*word));
    folded.split(' ').map(bare).any(|word| is_no(word) || NOBODY.contains(&word))
        || (!folded.is_ascii() && inside())
}

/// True for `no … without …`, which demands something.
pub(super) fn is_double_negation(folded: &str) -> bool {
    let (mut without, mut others) = (false, false);
    for word in folded.split(' ').map(bare).filter(|word| is_no(word) || NOBODY.contains(word)) {
        let is_without = matches!(word, "without" | "ohne" | "sans" | "sin");
        (without, others) = (without || is_without, others || !is_without);
    }
    without && others
}

/// Signs that stand for words: comparisons and arrows.
const SYMBOLS: [&str; 11] = ["<", ">", "<=", ">=", "≤", "≥", "->", "→", "=>", "<-", "←"];

/// Strips punctuation around a word, but no sign: `c++` and `c` are two names, and so are `-18`, `18` and `>18`.
fn bare(word: &str) -> &str {
    if is_symbol(word) {
        return word;
    }
    let word = word.trim_end_matches(|letter: char| !letter.is_alphanumeric() && !is_sign(letter));
    let rest = word.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    with_sign(word, word.len() - rest.len())
}

pub(super) fn is_symbol(word: &str) -> bool {
    SYMBOLS.contains(&word)
}

/// True for a sign that may end a name, such as `c#`.
pub(super) fn is_sign(letter: char) -> bool {
    matches!(letter, '+' | '#')
}

/// The part of `word` from `start` on, with the signs before its number.
pub(super) fn with_sign(word: &str, start: usize) -> &str {
    let (before, rest) = word.split_at(start);
    let signs = before.trim_end_matches(['-', '<', '>', '=', '≤', '≥']).len();
    let is_number = rest.starts_with(|it: char| it.is_ascii_digit());
    if is_number { &word[signs..] } else { rest }
}

/// True for a folded word that is an exact name: a number, a path, an identifier.
pub(super) fn is_exact(word: &str) -> bool {
    let inner = |letter: char| {
        matches!(letter, '_' | '/' | '\\' | '.' | ':' | '@' | '=' | '<') || is_sign(letter)
    };
    !is_symbol(word) && word.chars().any(|letter| letter.is_numeric() || inner(letter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tokens::folded;

    #[test]
    fn change_is_heard_in_whole_words_only() {
        for text in [
            "No, take Postgres after all",
            "Wir nehmen doch lieber SQLite",
            "Redis YERİNE Postgres kullanalım",
            "mejor SQLite en vez de Redis",
            "On prend plutôt SQLite",
            "やっぱりPostgresにする",
        ] {
            assert!(says_change(&folded(text)), "{text}");
        }
        for text in ["Take Postgres", "the raindrops fell", "Stattliche Zahlen", "a switchboard"] {
            assert!(!says_change(&folded(text)), "{text}");
        }
    }

    #[test]
    fn numbers_paths_and_negations_are_hard() {
        let hard = |text: &str| invariant_words(&folded(text));
        assert_ne!(hard("use port 5432"), hard("use port 5433"));
        assert_ne!(hard("Push to main."), hard("Never push to main."));
        assert_ne!(hard("看 src/a.rs"), hard("看 src/b.rs"));
        assert_ne!(hard("テストを消す"), hard("テストを消さない"));
        assert_eq!(hard("Add tests, please"), hard("add Tests"));
    }
}
