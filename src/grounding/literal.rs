//! Literals of a claim: identifiers, paths, commands, numbers and quotes. They may not be
//! paraphrased; each must occur in the slice.

use super::fold::Folded;
use super::language::Language;
use super::numbers::unit_after;
use crate::text::lexicon::Unit;
use crate::text::stems::foreign;
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// Maximum length of a quote, in bytes; longer ones are passages, found by overlap. Code has no
/// limit.
const QUOTE_BYTES_MAX: usize = 160;
/// Range in which all pieces of code must occur, in bytes: a few lines. Code longer than half of
/// this may take twice its own length.
const PIECES_BYTES_MAX: usize = 400;
/// Minimum length of a quote that is a literal, in characters.
const QUOTE_LETTERS_MIN: usize = 3;

/// Minimum length of the stem that forms of a word share; half the word if that is longer.
const STEM_BYTES_MIN: usize = 4;
/// Minimum length of a name to try as plural or singular; shorter ones match by chance.
const INFLECTED_BYTES_MIN: usize = 3;
/// Commands that print the names of the files in a folder.
const LISTERS: [&str; 5] = ["ls", "find", "tree", "du", "dir"];
/// Filler words in speech.
const FILLERS: [&str; 6] = ["uh", "um", "uhm", "er", "erm", "hm"];

/// A literal of a claim.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Literal {
    /// Name of the rule that matched.
    pub(super) rule: &'static str,
    pub(super) text: String,
    /// Unit after a number.
    unit: Option<Unit>,
}

/// Code in backticks, quotes, then anything shaped like a path, an option, an identifier, a digest
/// or a number. Each alternative is one rule.
static SHAPES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?<code>`[^`\n]+`)",
        r#"|(?<quote>"[^"\n]+"|“[^”\n]+”)"#,
        r"|(?<path>(?:[A-Za-z0-9_.~-]*/)+[A-Za-z0-9_.-]*[A-Za-z0-9_]|[A-Za-z0-9_-]+\.(?:rs|py|js|ts|tsx|jsx|go|java|kt|rb|c|h|cpp|hpp|cs|php|swift|sh|sql|md|toml|yaml|yml|json|jsonl|lock|txt|html|css|xml|env|cfg|ini)\b)",
        r"|(?<option>--[A-Za-z][A-Za-z0-9-]+)",
        r"|(?<name>\b[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+\b|\b[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_][A-Za-z0-9_]*)+|\b[a-z]{2}[a-z0-9]*[A-Z][a-z][A-Za-z0-9]*\b)",
        r"|(?<digest>\b[0-9a-f]{7,64}\b)",
        r"|(?<number>(?-u:\b)[0-9][0-9.,:]*[0-9])(?:ms|s|sec|min|h|k|K|kB|KB|MB|GB|TB|KiB|MiB|GiB|px|x|st|nd|rd|th)?(?-u:\b)",
    ))
    .ok()
});

impl Literal {
    /// True for a quotation of several words that are of no other language.
    pub(super) fn is_english_prose(&self) -> bool {
        self.rule == "quote" && self.text.contains(' ') && foreign(&self.text).is_none()
    }
}

/// Literals of `text`, without duplicates.
pub(super) fn literals(text: &str) -> Vec<Literal> {
    let mut found: Vec<Literal> = Vec::new();
    let Some(shapes) = SHAPES.as_ref() else { return found };
    for captures in shapes.captures_iter(text) {
        let named = ["code", "quote", "path", "option", "name", "digest", "number"];
        let hit = named.into_iter().find_map(|rule| Some((rule, captures.name(rule)?)));
        let Some((rule, hit)) = hit else { continue };
        let inner = hit.as_str().trim_matches(['`', '"', '“', '”']).trim();
        let after = &text[hit.end()..];
        // A path that is the whole field (`feature/foo`) or a folder (`src/`) is not prose.
        let named = inner.len() == text.trim().len() || after.starts_with('/');
        let prose = rule == "path" && !named && !is_path(inner);
        // A digest of a commit has both letters and digits.
        let has = |is_it: fn(char) -> bool| inner.contains(is_it);
        let is_digest = has(|it| it.is_ascii_digit()) && has(|it| it.is_ascii_lowercase());
        let word = rule == "digest" && !is_digest;
        let passage = rule != "code" && inner.len() > QUOTE_BYTES_MAX;
        let placeholder = inner.starts_with('<') && inner.ends_with('>');
        let wordless = !inner.contains(char::is_alphanumeric);
        // `"u" and "you"` are forms of address, and `€/m²` is a unit.
        let is_short = inner.chars().count() < QUOTE_LETTERS_MIN;
        let short = rule == "quote" && is_short && inner.chars().all(char::is_alphabetic);
        let before = text[..hit.start()].chars().next_back();
        let is_per = inner.starts_with('/') && inner.matches('/').count() == 1;
        let unit = rule == "path" && is_per && before.is_some_and(|it| "€$£¥%°".contains(it));
        if wordless || passage || prose || word || placeholder || short || unit {
            continue;
        }
        if !found.iter().any(|literal| literal.text == inner) {
            let unit = (rule == "number").then(|| unit_after(after)).flatten();
            found.push(Literal { rule, text: inner.to_owned(), unit });
        }
    }
    found
}

/// True for paths: no slash, several, a leading one, or a dot. `read/write` and `and/or` are prose.
fn is_path(text: &str) -> bool {
    let slashes = text.matches('/').count();
    slashes == 0 || slashes > 1 || text.starts_with(['/', '~', '.']) || text.contains('.')
}

/// Minimum length of a part of a pattern that names something.
const PART_BYTES_MIN: usize = 4;

/// Position of `literal` in a slice in `language`.
pub(super) fn find(literal: &Literal, slice: &Folded, language: Language) -> Option<Range<usize>> {
    let folded = Folded::new(&literal.text);
    let text = folded.as_str();
    if literal.rule == "number" {
        // Units are written with and without a blank, thousands in several ways.
        let plain = text.replace(',', "");
        // Many languages write a decimal comma; in English, 1.500 is not 1,500.
        let mark = text.rfind(['.', ',']).filter(|mark| text.len() - mark == "000.".len());
        let swaps = language != Language::English || mark.is_none();
        let other = |it: &str| it.replace('.', " ").replace(',', ".").replace(' ', ",");
        let others = [other(text), other(&plain)].into_iter().filter(|_| swaps);
        // In English, `step 3 250 ms` is no 3,250 ms.
        let marks: &[&str] =
            if language == Language::English { &[",", ".", "'"] } else { &[",", ".", "'", " "] };
        let thousands: Vec<String> = marks.iter().map(|mark| grouped(&plain, mark)).collect();
        let mut spellings = vec![text.to_owned(), plain];
        spellings.extend(thousands.into_iter().chain(others));
        spellings.dedup();
        return spellings.iter().find_map(|it| slice.find_number(it, literal.unit));
    }
    let whole = slice.find_word(text);
    let whole = whole.or_else(|| bare(text).and_then(|bare| slice.find_word(bare)));
    let whole = whole.or_else(|| inflected(text, slice));
    let whole = whole.or_else(|| matched(&literal.text, slice));
    match literal.rule {
        "code" => whole.or_else(|| find_in_pieces(text, slice)),
        "quote" => whole.or_else(|| without_fillers(text, slice)),
        "path" => whole
            .or_else(|| listed(text, slice))
            .or_else(|| entered(text, slice))
            .or_else(|| alternatives(text, slice)),
        _ => whole,
    }
}

/// Groups the thousands of a whole number with `mark`.
fn grouped(number: &str, mark: &str) -> String {
    if number.contains(|letter: char| !letter.is_ascii_digit()) {
        return number.to_owned();
    }
    let (head, tail) = number.split_at(number.len() % 3);
    let groups = tail.as_bytes().chunks(3).filter_map(|it| std::str::from_utf8(it).ok());
    let groups: Vec<&str> = [head].into_iter().filter(|it| !it.is_empty()).chain(groups).collect();
    groups.join(mark)
}

/// Position of the plural or singular of `text`: `have` for `have`s.
fn inflected(text: &str, slice: &Folded) -> Option<Range<usize>> {
    if text.len() < INFLECTED_BYTES_MIN || !text.ends_with(char::is_alphanumeric) {
        return None;
    }
    let singular = || text.strip_suffix('s').and_then(|one| slice.find_word(one));
    let of_y = || slice.find_word(&format!("{}y", text.strip_suffix("ies")?));
    slice.find_word(&format!("{text}s")).or_else(singular).or_else(of_y)
}

/// Position of alternatives such as `create/modify/delete`, if each occurs as a word or another form of it.
fn alternatives(text: &str, slice: &Folded) -> Option<Range<usize>> {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
    let mut places = text.split('/').map(|word| {
        let is_word = !word.is_empty() && word.bytes().all(is_letter);
        let length = STEM_BYTES_MIN.max(word.len() / 2 + 1).min(word.len());
        slice.find_prefix(word.get(..length).filter(|_| is_word)?)
    });
    let first = places.next()??;
    places.all(|place| place.is_some()).then_some(first)
}

/// Position of a file that a list names without its folder: in a sentence, or in what `ls FOLDER` printed.
fn listed(path: &str, slice: &Folded) -> Option<Range<usize>> {
    let (folder, name) = path.split_at(path.rfind('/')? + 1);
    if !name.contains('.') {
        return None;
    }
    let bare = folder.trim_end_matches('/');
    let printed = || slice.find_in_output(&LISTERS, bare, name).filter(|_| !bare.is_empty());
    slice.find_in_folder(folder, name).or_else(printed)
}

/// Position of a file below a folder that a command entered: `src/a.rs` after `cd edge` for `edge/src/a.rs`.
fn entered(path: &str, slice: &Folded) -> Option<Range<usize>> {
    let is_entered = |folder: &str| {
        let commands = ["cd", "pushd", "-c", "--prefix", "--cwd"].into_iter();
        commands.map(|it| format!("{it} {folder}")).any(|it| slice.find_word(&it).is_some())
    };
    let mut splits = path.match_indices('/').map(|(at, _)| (&path[..at], &path[at + 1..]));
    splits.find_map(|(folder, file)| slice.find_word(file).filter(|_| is_entered(folder)))
}

/// Position of a spoken quote, ignoring fillers between its words.
fn without_fillers(text: &str, slice: &Folded) -> Option<Range<usize>> {
    let words: Vec<&str> = text
        .split(|letter: char| !letter.is_alphanumeric() && letter != '\'')
        .filter(|word| !word.is_empty() && !FILLERS.contains(word))
        .collect();
    let spoken = slice.find_in_order(&words, text.len() * 2)?;
    (words.len() > 1).then_some(spoken)
}

/// Position of code that occurs in pieces: `tokenizers==0.20.0` in the line `tokenizers 0.20.0`.
/// Its names, options and numbers must occur in one entry, in order and close together. Only a
/// member such as `Coder.__init__` may be anywhere in its owner's entry, because classes are long.
fn find_in_pieces(code: &str, slice: &Folded) -> Option<Range<usize>> {
    let pieces = code_pieces(code);
    if let [owner, member] = pieces.as_slice() {
        let code = code.strip_suffix("()").unwrap_or(code);
        let between = code.strip_prefix(owner).and_then(|rest| rest.strip_suffix(member));
        if matches!(between, Some("." | "::")) {
            return slice.find_both(owner, member);
        }
    }
    slice.find_in_order(&pieces, PIECES_BYTES_MAX.max(code.len() * 2))
}

/// The names, options and numbers of `code`, in order, without placeholders such as `<file>`. Versions and options are
/// one piece each.
fn code_pieces(code: &str) -> Vec<&str> {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let whole = |piece: &str| {
        piece.starts_with("--") || piece.starts_with(|letter: char| letter.is_ascii_digit())
    };
    let is_placeholder = |piece: &&str| piece.starts_with('<') && piece.ends_with('>');
    code.split(' ')
        .filter(|piece| !is_placeholder(piece))
        .flat_map(|it| it.split(|letter| !is_name(letter) && letter != '.' && letter != '-'))
        .flat_map(|piece| match whole(piece) {
            true => vec![piece],
            false => piece.split(['.', '-']).collect(),
        })
        .filter(|piece| piece.chars().any(is_name))
        .collect()
}

/// Position of a name that a pattern such as `1971_Caorle_*.tif` matches.
fn matched(pattern: &str, slice: &Folded) -> Option<Range<usize>> {
    let parts = pattern.split('*').filter(|part| !part.is_empty()).map(Folded::new);
    let parts: Vec<Folded> = parts.collect();
    let is_part = |part: &Folded| PART_BYTES_MIN <= part.as_str().len();
    let is_pattern = pattern.contains('*') && parts.iter().any(is_part);
    let found: Option<Vec<_>> = parts.iter().map(|it| slice.find(it.as_str()).next()).collect();
    found.filter(|_| is_pattern)?.into_iter().next()
}

/// Strips the parentheses of a call and the punctuation after a sentence.
fn bare(text: &str) -> Option<&str> {
    let bare = text.trim_end_matches(['.', ',', ';', ':', '!', '?', '…']);
    let bare = bare.strip_suffix("()").unwrap_or(bare);
    (bare != text && bare.len() > 1).then_some(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> = literals(text).into_iter().map(|literal| literal.text).collect();
        assert_eq!(found, expected);
    }

    /// True if what was said has every literal of `text`.
    fn there(said: &str, text: &str) -> bool {
        let slice = Folded::new(said);
        literals(text).iter().all(|it| find(it, &slice, Language::English).is_some())
    }

    #[test]
    fn what_may_not_be_paraphrased_is_seen() {
        check(
            "Run `git log -1` in src/main.rs with --format=%ct",
            &["git log -1", "src/main.rs", "--format"],
        );
        check("set max_tokens to 4096 and readRow", &["max_tokens", "4096", "readRow"]);
        check("they said \"ship it on Friday\"", &["ship it on Friday"]);
        check("read/write and 3 tries, step 2, cp1252, error 40P01", &[]);
        check("64KB after 999ms at a1b2c3d4e5", &["64", "999", "a1b2c3d4e5"]);
        check("feature/foo", &["feature/foo"]);
        check("\"u\" and \"you\", never \"du\"", &["you"]);
        check("0.42 €/m² from “/etc/rates”", &["0.42", "/etc/rates"]);
        check("read $HOME/.config/app.toml", &["HOME/.config/app.toml"]);
        check("the mark `{# … #}` and `//`", &[]);
    }

    #[test]
    fn numbers_are_found_with_and_without_a_comma() {
        let slice = Folded::new("it took 12000ms, or 1,255 dollars; readRow() is slow");
        let there = |text: &str| {
            literals(text).iter().all(|it| find(it, &slice, Language::English).is_some())
        };
        assert!(there("12,000 ms") && there("1,255") && there("`readRow()`"));
        assert!(there("`read*()`") && !there("`write*()`"));
        assert!(!there("13,000") && !there("`writeRow`"));
    }

    #[test]
    fn a_decimal_comma_is_a_decimal_point_where_it_marks_no_thousands() {
        let there = |said: &str, number: &str, language: Language| {
            let slice = Folded::new(said);
            literals(number).iter().all(|it| find(it, &slice, language).is_some())
        };
        for language in [Language::OtherLatin, Language::English] {
            assert!(there("die Pumpe zieht 7,25 Ampere", "7.25 A", language));
            assert!(there("the pump draws 7.25 amperes", "7,25 A", language));
            assert!(there("das sind 3.480,90 Franken", "3,480.90 francs", language));
            assert!(there("das sind 3480,90 Franken", "3,480.90 francs", language));
            assert!(there("das sind 6.300 Zeilen", "6,300 rows", language));
            let is_other = language == Language::OtherLatin;
            let spaced = there("c'est 3 200 euros pour la cession", "3,200 euros", language);
            assert_eq!(spaced, is_other);
            let narrow = there("c'est 3\u{202f}200\u{a0}euros", "3,200 euros", language);
            assert_eq!(narrow, is_other);
            assert!(there("das sind 6'300 Zeilen", "6300 rows", language));
            assert!(!there("les salles 13 200 et 14", "3,200 euros", language));
            assert!(!there("die Pumpe zieht 7,26 Ampere", "7.25 A", language));
            assert!(!there("die Pumpe zieht 17,25 Ampere", "7.25 A", language));
        }
        assert!(there("der Sack wiegt 2,125 Kilo", "2.125 kg", Language::OtherLatin));
        assert!(!there("the sack has 2,125 beans", "2.125 kg", Language::English));
    }

    #[test]
    fn literals_are_there_in_other_words_of_the_same_meaning() {
        assert!(there("it has many `have`s", "the `have` lines"));
        assert!(there("we create, modify or delete", "create/modify/delete files"));
        assert!(!there("we create or modify", "create/modify/delete files"));
        assert!(there("it costs twelve fifty", "it costs 12.50") && there("twenty five", "25"));
        assert!(
            there("mehr als siebeneinhalb tonnen", "7.5 t") && there("anderthalb jahre", "1.5")
        );
        assert!(there("seven and a half tonnes", "7.5") && there("deux heures et demie", "2.5 h"));
        assert!(!there("siebeneinhalb", "8.5") && !there("anderthalb", "2.5"));
        assert!(!there("two adults and a half-price child", "2.5 adults"));
        assert!(there("wait half a minute", "30 s") && there("after half an hour", "30 minutes"));
        assert!(there("one hundred twenty", "120") && there("three thousand rows", "3000 rows"));
        assert!(!there("wait half a minute", "45 s") && !there("it costs twelve", "12.50"));
        assert!(there("so uh the the um the remote is blue", "\"so the the remote is blue\""));
        assert!(!there("the remote is blue", "\"the remote is not blue\""));
    }

    #[test]
    fn files_of_a_list_share_the_folder_of_the_first() {
        assert!(there("src/book/wait.py, rules.py: 28", "the limit in src/book/rules.py"));
        assert!(there("site/index.html, a.js and style.css", "site/style.css"));
        for said in [
            "src/book/wait.py, rules.py",
            "src/wait.py, tests/rules.py",
            "src/wait.py is slow, see rules.py",
            "src/wait.py; rules.pyc",
        ] {
            assert!(!there(said, "src/rules.py"), "{said}");
        }
    }

    #[test]
    fn a_file_is_there_whose_folder_a_command_entered() {
        let said = "cd edge && sed -i s/2/5/ src/prio.rs; printf '[a]\\nmax_wait = 4\\n'; npm --prefix app test a.ts";
        assert!(there(said, "edge/src/prio.rs") && there(said, "app/a.ts"));
        assert!(there(said, "`max_wait = 4`"));
        assert!(!there(said, "core/src/prio.rs") && !there(said, "edge/src/main.rs"));
        assert!(!there("at the edge, src/prio.rs fails", "edge/src/prio.rs"));
    }

    #[test]
    fn a_time_is_there_in_words() {
        assert!(there("both run at half past two", "2:30") && there("quarter to three", "2:45"));
        assert!(there("der Bus kommt um halb drei", "14:30") && there("at two thirty", "2:30"));
        assert!(!there("both run at half past two", "3:30") && !there("half of two", "2:30"));
        assert!(there("à 19 h 15 (fin 22 h inchangée)", "22:00") && there("19h15", "19:15"));
        assert!(there("we close at 5:30 pm", "17:30") && there("ab 9 Uhr", "9:00"));
        assert!(there("12 am", "0:00") && there("12 pm", "12:00") && !there("5 pm", "5:00"));
        assert!(!there("at 5:30 pm", "17.3 s") && !there("um 22 Uhr 30", "22.3 s"));
        assert!(
            !there("à 19 h 15", "19:45")
                && !there("22 hosts", "22:00")
                && !there("1.22 h", "22:00")
        );
    }

    #[test]
    fn a_placeholder_in_code_is_no_literal() {
        let slice = Folded::new("$ cargo run --bin replay -- traces/a.rtr");
        let there = |text: &str| {
            literals(text).iter().all(|it| find(it, &slice, Language::English).is_some())
        };
        assert!(there("`cargo run --bin replay -- <file>`"));
        assert!(!there("`cargo run --bin play -- <file>`"));
    }

    #[test]
    fn code_that_was_said_in_pieces_is_there() {
        let slice = Folded::new("class Coder:\n  def __init__(self)\ntokenizers 0.20.0");
        let there = |text: &str| {
            literals(text).iter().all(|it| find(it, &slice, Language::English).is_some())
        };
        assert!(there("`Coder.__init__`") && there("`tokenizers==0.20.0`"));
        assert!(!there("`Coder.run`") && !there("`tokenizers==0.20.1`"));
    }

    #[test]
    fn pieces_that_stand_apart_are_no_code() {
        let invented = "`cargo test --release`";
        assert!(there("cargo +nightly test --release", invented));
        assert!(!there("we release it, then test; cargo is slow", invented), "out of order");
        assert!(!there("cargo is slow, we test before a release", invented), "no option");
        let far = format!("cargo {} test --release", "is slow ".repeat(80));
        assert!(!there(&far, invented), "far apart");
        let class = format!("class Coder:\n{}  def __init__", "  x = 1\n".repeat(80));
        assert!(there(&class, "`Coder.__init__`") && !there(&class, "`Coder __init__`"));
    }

    #[test]
    fn code_is_checked_however_long_it_is_and_quotes_are_not() {
        let long = "cargo run --bin annalist ".repeat(8);
        let invented = long.replacen("run", "bench", 1);
        assert!(there(&long, &format!("`{long}`")));
        assert!(!there(&long, &format!("`{invented}`")));
        check(&format!("\"{}\"", "a b ".repeat(60)), &[]);
    }
}
