//! File names of records and sessions, links between files, and the metadata lines of a record.

use super::document::{Document, Part};
use super::kind::{DECISIONS, SESSIONS};
use crate::domain::Timestamp;
use crate::text::truncate::clauses_within;

/// Maximum length of a slug in a file name, in bytes.
const SLUG_BYTES_MAX: usize = 60;
/// Maximum number of sessions with the same minute and topic.
const SAME_NAME_MAX: u32 = 1_000;
/// Latin letters and their ASCII replacements.
const FOLDED: [&str; 20] = [
    "àáâãåāą a", "äæ ae", "çćč c", "ďđ d", "èéêëēęě e", "ğģ g", "ìíîïīįı i", "łļ l", "ñńň n",
    "òóôõøōő o", "öœ oe", "řŕ r", "śšş s", "ß ss", "ťţ t", "ùúûūůűų u", "ü ue", "ýÿ y", "źžż z",
    "þ th",
];

/// Part of a file name: lower-case letters, digits, single hyphens. `None` if nothing is left.
pub(crate) fn slug(text: &str) -> Option<String> {
    let mut slug = String::new();
    let mut gap = false;
    for letter in text.chars().flat_map(char::to_lowercase) {
        let mut rows = FOLDED.iter().filter_map(|row| row.split_once(' '));
        let folded = rows.find(|(letters, _)| letters.contains(letter)).map(|(_, to)| to);
        if letter.is_ascii_alphanumeric() || folded.is_some() {
            if gap && !slug.is_empty() {
                slug.push('-');
            }
            gap = false;
            slug.push_str(folded.unwrap_or(letter.encode_utf8(&mut [0; 4])));
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

fn is_slug(text: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    text.split('-').all(part)
}

/// Title in the file name of a record: `ADR-NNN-title.md`, or `ADR-NNN-YYYYMMDD-HHMM-title.md` for
/// records written concurrently. `None` for other paths.
pub(crate) fn adr_title_slug(path: &str) -> Option<&str> {
    let name = path.strip_prefix(DECISIONS)?.strip_suffix(".md")?;
    let (digits, rest) = name.strip_prefix("ADR-")?.split_once('-')?;
    let padded = digits.len() == 3 || (digits.len() > 3 && !digits.starts_with('0'));
    let stamped = rest.get(..14).zip(rest.get(14..)).filter(|(stamp, _)| {
        let (day, time) = stamp.trim_end_matches('-').split_once('-').unwrap_or_default();
        let is_clock = time.len() == 4 && is_number(time) && time < "2400" && &time[2..] < "60";
        stamp.ends_with('-') && day.len() == 8 && is_number(day) && is_clock
    });
    let slug = stamped.map_or(rest, |(_, slug)| slug);
    (padded && is_number(digits) && is_slug(slug)).then_some(slug)
}

pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Number that a file among the records claims, even if the rest of its name is invalid.
pub(crate) fn adr_number(path: &str) -> Option<u32> {
    let name = path.strip_prefix(DECISIONS)?;
    let head = name.get(..4).filter(|head| head.eq_ignore_ascii_case("adr-"))?;
    let digits = name.get(head.len()..)?;
    let end = digits.bytes().take_while(u8::is_ascii_digit).count();
    digits.get(..end)?.parse().ok()
}

/// Number in a label such as `ADR-013` or `adr-13`.
pub(crate) fn label_number(text: &str) -> Option<u32> {
    let (head, digits) = text.split_at_checked(4)?;
    let is_label = head.eq_ignore_ascii_case("adr-") && is_number(digits);
    digits.parse().ok().filter(|_| is_label)
}

/// Label such as `ADR-007`; four digits beyond 999.
pub(crate) fn adr_label(number: u32) -> String {
    format!("ADR-{number:03}")
}

/// Slug of the clauses that fit into a file name.
fn title_slug(title: &str) -> Option<String> {
    slug(clauses_within(title, SLUG_BYTES_MAX).unwrap_or(title))
}

pub(crate) fn adr_path(number: u32, title: &str) -> String {
    let slug = title_slug(title).unwrap_or_else(|| "decision".to_owned());
    format!("{DECISIONS}{}-{slug}.md", adr_label(number))
}

/// Path of a session that began at `at`: day and topic, or day and time without a topic. Adds the
/// time, then a number, while `is_taken` says that another session has the name.
pub(crate) fn session_path(
    at: Timestamp,
    topic: Option<&str>,
    is_taken: impl Fn(&str) -> bool,
) -> String {
    let (day, text) = (at.day(), at.to_string());
    let time = text.split_once('T').and_then(|(_, time)| time.get(..5));
    let time = time.unwrap_or("00:00").replace(':', "");
    let short = match topic.and_then(title_slug) {
        Some(topic) => format!("{day}-{topic}"),
        None => format!("{day}-{time}"),
    };
    let long = if short.ends_with(&time) { short.clone() } else { format!("{short}-{time}") };
    let numbered = (2..SAME_NAME_MAX).map(|n| format!("{long}-{n}"));
    let mut names = [short, long.clone()].into_iter().chain(numbered);
    let free = names.find(|name| !is_taken(&format!("{SESSIONS}{name}.md")));
    format!("{SESSIONS}{}.md", free.unwrap_or(long))
}

/// Day in the name of a session file; `None` for other names.
pub(crate) fn session_day(path: &str) -> Option<&str> {
    let name = path.strip_prefix(SESSIONS)?.strip_suffix(".md")?;
    let (day, rest) = name.get(..10).zip(name.get(10..))?;
    let topic = rest.strip_prefix('-').is_some_and(is_slug);
    (is_day(day) && topic).then_some(day)
}

pub(crate) fn is_day(text: &str) -> bool {
    let dashes = text.len() == 10 && text.get(4..5) == Some("-") && text.get(7..8) == Some("-");
    dashes && text.parse::<jiff::civil::Date>().is_ok()
}

/// Target of a link within the directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Link {
    File(String),
    Record(u32),
}

/// Links of the file at `path` to files of the directory and to records, with line numbers from 0.
pub(super) fn links(path: &str, text: &str) -> Vec<(u32, Link)> {
    let mut links = Vec::new();
    for (line, content) in (0..).zip(text.lines()) {
        for (at, _) in content.match_indices("](") {
            let rest = content.get(at + 2..).unwrap_or_default();
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            links.extend(file(path, target).map(|file| (line, Link::File(file))));
        }
        for (at, label) in content.match_indices("ADR-") {
            let before = content.get(..at).and_then(|head| head.chars().next_back());
            let rest = content.get(at + label.len()..).unwrap_or_default();
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let is_word = !before.is_some_and(|c| c.is_alphanumeric() || c == '/' || c == '-');
            // `ADR-007-title.md` is a file name, usually in a link.
            let is_name = rest.get(digits..).is_some_and(|rest| rest.starts_with('-'));
            let number = rest.get(..digits).and_then(|digits| digits.parse().ok());
            if digits >= 3 && is_word && !is_name {
                links.extend(number.map(|number| (line, Link::Record(number))));
            }
        }
    }
    links
}

/// Path of a link target, relative to the directory.
fn file(path: &str, target: &str) -> Option<String> {
    let target = target.split('#').next().unwrap_or(target);
    if !target.ends_with(".md") || target.contains(':') || target.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Status {
    Proposed,
    Accepted,
    Deprecated,
    SupersededBy(u32),
}

impl Status {
    pub(crate) fn parse(text: &str) -> Option<Status> {
        let text = text.split(" (").next().unwrap_or(text).trim().to_ascii_lowercase();
        match text.as_str() {
            "proposed" => Some(Status::Proposed),
            "accepted" => Some(Status::Accepted),
            "deprecated" => Some(Status::Deprecated),
            other => {
                let label = other.strip_prefix("superseded by ")?.trim();
                let label = label.trim_start_matches('[').split(']').next().unwrap_or(label);
                adr_number(&format!("{DECISIONS}{label}")).map(Status::SupersededBy)
            }
        }
    }
}

/// Metadata lines at the top of a record, numbered from 1.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct RecordMeta<'t> {
    pub status: Option<(Status, u32)>,
    pub status_line: Option<u32>,
    /// Mark behind the status of what replaced a part.
    pub mark: Option<&'t str>,
    pub date: Option<(&'t str, u32)>,
    pub tags: Vec<&'t str>,
}

pub(crate) fn meta<'t>(document: &Document<'t>) -> RecordMeta<'t> {
    let mut meta = RecordMeta::default();
    for block in document.blocks.iter().filter(|block| block.part == Part::Meta) {
        for field in document.body(block).split('|') {
            let Some((name, value)) = field.split_once(":**") else { continue };
            let value = value.trim();
            match name.trim().trim_start_matches('*').to_ascii_lowercase().as_str() {
                "status" => {
                    meta.status = Status::parse(value).map(|status| (status, block.line));
                    meta.status_line = Some(block.line);
                    meta.mark = value.strip_suffix(')').and_then(|it| Some(it.split_once(" (")?.1));
                }
                "date" => meta.date = Some((value, block.line)),
                "tags" => {
                    meta.tags =
                        value.split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect();
                }
                _ => {}
            }
        }
    }
    meta
}

#[cfg(test)]
mod name_tests {
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
    fn a_number_is_read_and_written_with_three_digits_or_more() {
        let paths = [
            "decisions/ADR-002-a.md", "decisions/ADR-1010-b.md", "decisions/adr-12.md",
            "ADR-99-c.md",
        ];
        assert_eq!(paths.map(adr_number), [Some(2), Some(1010), Some(12), None]);
        assert_eq!(adr_path(1000, "X"), "decisions/ADR-1000-x.md");
        assert_eq!(adr_path(7, "決定"), "decisions/ADR-007-decision.md");
        let title = "Quiet hours are from 23 to 6 hours; alarms more than 3 °C above the limit come through";
        assert_eq!(adr_path(7, title), "decisions/ADR-007-quiet-hours-are-from-23-to-6-hours.md");
    }

    #[test]
    fn a_name_that_was_taken_is_told_apart_by_the_time() {
        let taken = "decisions/ADR-007-20260102-1200-use-it.md";
        assert_eq!(adr_title_slug(taken), Some("use-it"));
        assert_eq!(adr_title_slug("decisions/ADR-007-20260102-9900-x.md"), Some("20260102-9900-x"));
        for bad in
            ["decisions/ADR-7-x.md", "decisions/ADR-0007-x.md", "decisions/ADR-007.md", "x.md"]
        {
            assert_eq!(adr_title_slug(bad), None, "{bad}");
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

#[cfg(test)]
mod links_tests {
    use super::*;

    #[test]
    fn links_are_files_of_the_directory_and_numbers_of_records() {
        let text = "a [x](../decisions/ADR-001-x.md#y) and ADR-007,\n[y](https://a.md) [z](/a.md) [o](../../o.md) XADR-001 ADR-XXX";
        let expected = [(0, Link::File("decisions/ADR-001-x.md".to_owned())), (0, Link::Record(7))];
        assert_eq!(links("sessions/s.md", text), expected);
    }
}

#[cfg(test)]
mod record_meta_tests {
    use super::*;
    use crate::memory_dir::Kind;

    #[test]
    fn three_lines_and_one_line_say_the_same() {
        let three = "# ADR-001: X\n\n**Status:** Superseded by ADR-012\n**Date:** 2026-01-02\n**Tags:** a, b\n\n## Context\n**Status:** no\n";
        let one = "# ADR-001: X\n**Status:** superseded by ADR-012 | **Date:** 2026-01-02 | **Tags:** a, b\n";
        for text in [three, one] {
            let (document, _) = Document::parse(Kind::Decision, text);
            let meta = meta(&document);
            assert_eq!(meta.status.map(|it| it.0), Some(Status::SupersededBy(12)));
            assert_eq!(meta.date.map(|it| it.0), Some("2026-01-02"));
            assert_eq!(meta.tags, ["a", "b"]);
        }
        assert_eq!(Status::parse("Proposed | Accepted"), None);
        let marked = "# X\n**Status:** Accepted (in part replaced by src-0000000a “y”)\n";
        let (document, _) = Document::parse(Kind::Decision, marked);
        let meta = meta(&document);
        assert_eq!(meta.status.map(|it| it.0), Some(Status::Accepted));
        assert_eq!(meta.mark, Some("in part replaced by src-0000000a “y”"));
    }
}
