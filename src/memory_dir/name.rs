//! Names of records and sessions.

use super::kind::{DECISIONS, SESSIONS};
use crate::domain::Timestamp;

/// The longest slug in a file name, in bytes.
const SLUG_BYTES_MAX: usize = 60;
/// Sessions of one minute with one topic that are told apart.
const SAME_NAME_MAX: u32 = 1_000;
/// Latin letters and what stands for them in a file name.
const FOLDED: [(&str, &str); 22] = [
    ("àáâãåāą", "a"),
    ("ä", "ae"),
    ("æ", "ae"),
    ("çćč", "c"),
    ("ďđ", "d"),
    ("èéêëēęě", "e"),
    ("ğģ", "g"),
    ("ìíîïīįı", "i"),
    ("łļ", "l"),
    ("ñńň", "n"),
    ("òóôõøōő", "o"),
    ("ö", "oe"),
    ("œ", "oe"),
    ("řŕ", "r"),
    ("śšş", "s"),
    ("ß", "ss"),
    ("ťţ", "t"),
    ("ùúûūůűų", "u"),
    ("ü", "ue"),
    ("ýÿ", "y"),
    ("źžż", "z"),
    ("þ", "th"),
];

/// `text` as a piece of a file name: small letters, digits and single hyphens. None if nothing is left.
pub fn slug(text: &str) -> Option<String> {
    let mut slug = String::new();
    let mut gap = false;
    for letter in text.chars().flat_map(char::to_lowercase) {
        let folded = FOLDED.iter().find(|(letters, _)| letters.contains(letter)).map(|(_, to)| *to);
        if letter.is_ascii_alphanumeric() || folded.is_some() {
            if gap && !slug.is_empty() {
                slug.push('-');
            }
            gap = false;
            match folded {
                Some(folded) => slug.push_str(folded),
                None => slug.push(letter),
            }
        } else if !matches!(letter, '\'' | '’' | '\u{300}'..='\u{36f}') {
            gap = true;
        }
        if slug.len() > SLUG_BYTES_MAX {
            break;
        }
    }
    if slug.len() > SLUG_BYTES_MAX {
        let cut = slug.get(..SLUG_BYTES_MAX).unwrap_or(&slug);
        let end = cut.rfind('-').unwrap_or(SLUG_BYTES_MAX);
        slug.truncate(end);
    }
    (!slug.is_empty()).then_some(slug)
}

/// Whether `text` is a slug.
fn is_slug(text: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    text.split('-').all(part)
}

/// The name of a record: `ADR-NNN-title.md`, or `ADR-NNN-YYYYMMDD-HHMM-title.md` where two were written
/// at a time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AdrName<'p> {
    /// Its number.
    pub number: u32,
    /// Its number as it is written.
    pub digits: &'p str,
    /// Day and time, where it has them.
    pub stamp: Option<&'p str>,
    /// Its title.
    pub slug: &'p str,
}

impl<'p> AdrName<'p> {
    /// Reads the path of a record; none if it is not named as one.
    pub fn parse(path: &'p str) -> Option<AdrName<'p>> {
        let name = path.strip_prefix(DECISIONS)?.strip_suffix(".md")?;
        let (digits, rest) = name.strip_prefix("ADR-")?.split_once('-')?;
        let padded = digits.len() == 3 || (digits.len() > 3 && !digits.starts_with('0'));
        let number = digits.parse().ok().filter(|_| padded && is_number(digits))?;
        let stamped = rest.get(..14).zip(rest.get(14..)).filter(|(stamp, _)| {
            let (day, time) = stamp.trim_end_matches('-').split_once('-').unwrap_or_default();
            stamp.ends_with('-') && day.len() == 8 && is_number(day) && is_clock(time)
        });
        let (stamp, slug) = match stamped {
            Some((stamp, slug)) => (Some(stamp.trim_end_matches('-')), slug),
            None => (None, rest),
        };
        is_slug(slug).then_some(AdrName { number, digits, stamp, slug })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Whether `text` is an hour and a minute: `HHMM`.
fn is_clock(text: &str) -> bool {
    let minutes = text.get(..2).zip(text.get(2..)).filter(|_| text.len() == 4 && is_number(text));
    minutes.is_some_and(|(hour, minute)| hour < "24" && minute < "60")
}

/// The number that a file among the records claims: also where its name is not quite right.
pub fn adr_number(path: &str) -> Option<u32> {
    let name = path.strip_prefix(DECISIONS)?;
    let head = name.get(..4).filter(|head| head.eq_ignore_ascii_case("adr-"))?;
    let digits = name.get(head.len()..)?;
    let end = digits.bytes().take_while(u8::is_ascii_digit).count();
    digits.get(..end)?.parse().ok()
}

/// The number of the next record: one more than the highest.
pub fn next_adr<'p>(paths: impl IntoIterator<Item = &'p str>) -> u32 {
    paths.into_iter().filter_map(adr_number).max().unwrap_or(0).saturating_add(1)
}

/// `ADR-007`; beyond 999 it has four digits.
pub fn adr_label(number: u32) -> String {
    format!("ADR-{number:03}")
}

/// Where a record goes.
pub fn adr_path(number: u32, title: &str) -> String {
    format!("{DECISIONS}{}-{}.md", adr_label(number), adr_slug(title))
}

/// Where a record goes whose number somebody else took at the same time.
pub fn adr_path_at(number: u32, title: &str, at: Timestamp) -> String {
    let (day, time) = day_and_time(at);
    let day = day.replace('-', "");
    format!("{DECISIONS}{}-{day}-{time}-{}.md", adr_label(number), adr_slug(title))
}

fn adr_slug(title: &str) -> String {
    slug(title).unwrap_or_else(|| "decision".to_owned())
}

/// The day, and hour with minute, in UTC: `2026-11-21`, `0905`.
fn day_and_time(at: Timestamp) -> (String, String) {
    let text = at.to_string();
    let time = text.split_once('T').map_or("", |(_, time)| time);
    let clock = time.get(..5).unwrap_or("00:00").replace(':', "");
    (at.day(), clock)
}

/// Where a session goes that began at `at`: by day and topic, without a topic by day and time; by all of
/// them where `is_taken` says that the name is another session's.
pub fn session_path(at: Timestamp, topic: Option<&str>, is_taken: impl Fn(&str) -> bool) -> String {
    let (day, time) = day_and_time(at);
    let short = match topic.and_then(slug) {
        Some(topic) => format!("{day}-{topic}"),
        None => format!("{day}-{time}"),
    };
    let long = if short.ends_with(&time) { short.clone() } else { format!("{short}-{time}") };
    let numbered = (2..SAME_NAME_MAX).map(|n| format!("{long}-{n}"));
    let mut names = [short, long.clone()].into_iter().chain(numbered);
    let free = names.find(|name| !is_taken(&format!("{SESSIONS}{name}.md")));
    format!("{SESSIONS}{}.md", free.unwrap_or(long))
}

/// The day that a session's file is named for; none if it is not named as one.
pub fn session_day(path: &str) -> Option<&str> {
    let name = path.strip_prefix(SESSIONS)?.strip_suffix(".md")?;
    let (day, rest) = name.get(..10).zip(name.get(10..))?;
    let topic = rest.strip_prefix('-').is_some_and(is_slug);
    (is_day(day) && topic).then_some(day)
}

/// Whether `text` is a day that there is: `YYYY-MM-DD`.
pub fn is_day(text: &str) -> bool {
    let dashes = text.len() == 10 && text.get(4..5) == Some("-") && text.get(7..8) == Some("-");
    dashes && text.parse::<jiff::civil::Date>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp(1_767_355_200_000);

    #[test]
    fn a_slug_holds_small_letters_digits_and_hyphens() {
        assert_eq!(
            slug("Use PostgreSQL, not SQLite!").as_deref(),
            Some("use-postgresql-not-sqlite")
        );
        assert_eq!(slug("Größe İstanbul ışık").as_deref(), Some("groesse-istanbul-isik"));
        assert_eq!(slug("決定"), None);
        let long = slug(&"word ".repeat(40)).unwrap();
        assert!(long.len() <= SLUG_BYTES_MAX && long.ends_with("word"));
    }

    #[test]
    fn the_next_number_is_one_more_than_the_highest() {
        let paths = [
            "decisions/ADR-002-a.md",
            "decisions/ADR-010-b.md",
            "decisions/adr-12.md",
            "ADR-99-c.md",
        ];
        assert_eq!(next_adr(paths), 13);
        assert_eq!(next_adr(["decisions/ADR-999-a.md"]), 1000);
        assert_eq!(adr_path(1000, "X"), "decisions/ADR-1000-x.md");
        assert_eq!(adr_path(7, "決定"), "decisions/ADR-007-decision.md");
    }

    #[test]
    fn a_name_that_was_taken_is_told_apart_by_the_time() {
        let path = adr_path_at(7, "Use it", NOON);
        assert_eq!(path, "decisions/ADR-007-20260102-1200-use-it.md");
        let name = AdrName::parse(&path).unwrap();
        assert_eq!((name.number, name.stamp, name.slug), (7, Some("20260102-1200"), "use-it"));
        assert_eq!(AdrName::parse("decisions/ADR-007-20260102-9900-x.md").unwrap().stamp, None);
        for bad in
            ["decisions/ADR-7-x.md", "decisions/ADR-0007-x.md", "decisions/ADR-007.md", "x.md"]
        {
            assert_eq!(AdrName::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn sessions_are_named_for_day_and_topic_or_time() {
        let free = |_: &str| false;
        assert_eq!(session_path(NOON, Some("Fix it"), free), "sessions/2026-01-02-fix-it.md");
        assert_eq!(session_path(NOON, None, free), "sessions/2026-01-02-1200.md");
        let taken = |path: &str| path == "sessions/2026-01-02-fix-it.md";
        assert_eq!(session_path(NOON, Some("Fix it"), taken), "sessions/2026-01-02-fix-it-1200.md");
        let both = |path: &str| !path.ends_with("-2.md");
        assert_eq!(session_path(NOON, None, both), "sessions/2026-01-02-1200-2.md");
        assert_eq!(session_day("sessions/2026-01-02-1200.md"), Some("2026-01-02"));
        assert_eq!(session_day("sessions/2026-02-30-x.md"), None);
        assert_eq!(session_day("sessions/session-2025-01-15.md"), None);
    }
}
