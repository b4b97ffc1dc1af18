//! Scores how certainly a session made a commit, and finds the names that tie a record to a line. No I/O.

use crate::domain::{Timestamp, named};
use std::time::Duration;

named! {
    /// Degree to which a session is known to be the one that made a change.
    #[derive(schemars::JsonSchema)]
    pub(crate) Certainty {
        /// The time fits, and little else.
        Guess = "guess",
        /// It fits, and so may another.
        Likely = "likely",
        /// Its tools made the change, at that time.
        Sure = "sure",
    }
}

/// Longest time between the end of a session and a commit of its work.
pub(crate) const SLACK: Duration = Duration::from_secs(7 * 24 * 3_600);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Minimum points for [`Certainty::Likely`] and [`Certainty::Sure`].
const LIKELY: i32 = 6;
const SURE: i32 = 9;

/// A clue for or against a session, in the order in which the reasons are shown.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Clue {
    Committed,
    /// Its tools wrote this very line.
    WroteLine,
    Wrote,
    Names,
    During,
    /// It ended this long before.
    EndedBefore(Duration),
    SameProject,
    /// It was on a branch that contains the commit.
    SameBranch,
    /// It was on other branches only.
    OtherBranch,
}

impl Clue {
    fn points(&self) -> i32 {
        match self {
            Clue::Committed => 8,
            Clue::Wrote | Clue::During => 4,
            Clue::WroteLine => 3,
            Clue::EndedBefore(time) if *time <= HOUR => 3,
            Clue::SameBranch => 2,
            Clue::Names | Clue::SameProject => 1,
            Clue::EndedBefore(time) if *time <= DAY => 1,
            Clue::EndedBefore(_) => 0,
            Clue::OtherBranch => -2,
        }
    }

    /// True if the clue is about the change itself, not only about its time and place.
    fn is_of_change(&self) -> bool {
        matches!(self, Clue::Committed | Clue::WroteLine | Clue::Wrote | Clue::Names)
    }

    /// Human-readable reason; `file` is the changed file.
    pub(crate) fn reason(&self, file: &str) -> String {
        match self {
            Clue::Committed => "its tools made the commit".to_owned(),
            Clue::WroteLine => "its tools wrote this line".to_owned(),
            Clue::Wrote => format!("its tools wrote {file}"),
            Clue::Names => format!("it names {file}"),
            Clue::During => "it was active then".to_owned(),
            Clue::EndedBefore(time) => format!("it ended {} before", lasting(*time)),
            Clue::SameProject => "it belongs to this project".to_owned(),
            Clue::SameBranch => "it was on a branch with the commit".to_owned(),
            Clue::OtherBranch => "it was on another branch".to_owned(),
        }
    }
}

fn lasting(time: Duration) -> String {
    let minutes = time.as_secs() / 60;
    match minutes {
        0..=119 => format!("{minutes} min"),
        120..=2_879 => format!("{} h", minutes / 60),
        _ => format!("{} d", minutes / 1_440),
    }
}

/// The clue of time: `None` if the session began later, or ended too long before.
pub(crate) fn time_clue(began: Timestamp, ended: Timestamp, at: Timestamp) -> Option<Clue> {
    if at < began {
        return None;
    }
    match at.since(ended) {
        Duration::ZERO => Some(Clue::During),
        time if time <= SLACK => Some(Clue::EndedBefore(time)),
        _ => None,
    }
}

/// Points of a session; `None` if nothing ties it to the change.
pub(crate) fn points(clues: &[Clue]) -> Option<i32> {
    let is_soon = |it: &Clue| matches!(it, Clue::EndedBefore(time) if *time <= HOUR);
    let is_near = clues.iter().any(|it| *it == Clue::During || is_soon(it));
    let is_here = clues.contains(&Clue::SameProject);
    let is_of_change = clues.iter().any(Clue::is_of_change);
    let has_written = clues.contains(&Clue::Wrote) || clues.contains(&Clue::Committed);
    let is_tied = has_written || is_here && (is_near || is_of_change);
    is_tied.then(|| clues.iter().map(Clue::points).sum())
}

/// Certainty that the session with `clues` made the change, where the best other one has `rival` points.
pub(crate) fn certainty(clues: &[Clue], rival: Option<i32>) -> Certainty {
    let points = points(clues).unwrap_or_default();
    let has_written = clues.contains(&Clue::Wrote) || clues.contains(&Clue::Committed);
    let is_alone = rival.is_none_or(|rival| rival < points);
    // Somebody else may have changed a file that it wrote, once it had ended.
    let was_there = [Clue::WroteLine, Clue::Committed, Clue::During];
    let was_there = was_there.iter().any(|it| clues.contains(it));
    if SURE <= points && has_written && was_there && is_alone {
        Certainty::Sure
    } else if LIKELY <= points && clues.iter().any(Clue::is_of_change) {
        Certainty::Likely
    } else {
        Certainty::Guess
    }
}

/// True if `named` and `path` may be the same file: one path is a suffix of the other, by whole components.
pub(crate) fn is_same_file(named: &str, path: &str) -> bool {
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    let named = named.strip_prefix("./").unwrap_or(named);
    !named.is_empty() && (ends(named, path) || ends(path, named))
}

/// True if `text` has `name` as a word of its own.
pub(crate) fn names(text: &str, name: &str) -> bool {
    let is_word = |letter: Option<char>| letter.is_some_and(|it| it.is_alphanumeric() || it == '_');
    !name.is_empty()
        && text.match_indices(name).any(|(at, _)| {
            !is_word(text[..at].chars().next_back())
                && !is_word(text[at + name.len()..].chars().next())
        })
}

/// True if a call of `tool` with this text writes `path`.
pub(crate) fn writes(tool: &str, text: &str, path: &str) -> bool {
    const WRITING: [&str; 6] = ["write", "edit", "create", "replace", "patch", "apply"];
    const PATCHED: [&str; 3] = ["*** Update File: ", "*** Add File: ", "*** Move to: "];
    let mut patched =
        text.lines().filter_map(|line| PATCHED.iter().find_map(|it| line.strip_prefix(it)));
    if patched.any(|named| is_same_file(named.trim(), path)) {
        return true;
    }
    let tool = tool.to_lowercase();
    if !WRITING.iter().any(|it| tool.contains(it)) {
        return false;
    }
    // Calls of known tools are stored with the path first, others as their JSON arguments.
    let first = text.lines().next().unwrap_or_default();
    let quoted = text.split('"').take(ARGUMENTS_MAX);
    is_same_file(first.trim(), path)
        || text.starts_with('{')
            && quoted.filter(|it| it.contains(['/', '.'])).any(|it| is_same_file(it, path))
}

/// Maximum number of quoted arguments searched for the path, which is among the first.
const ARGUMENTS_MAX: usize = 12;

/// True if a tool's text shows that it made a commit: `git commit` with this subject, or what git printed.
pub(crate) fn commits(text: &str, id: &str, subject: &str) -> bool {
    /// Minimum number of digits of an id that git prints.
    const DIGITS_MIN: usize = 7;
    if text.contains("git commit") && SUBJECT_LETTERS_MIN <= subject.len() && text.contains(subject)
    {
        return true;
    }
    let Some(start) = id.get(..DIGITS_MIN) else { return false };
    // `[main 1a2b3c4] Subject`
    text.match_indices(start).any(|(at, _)| {
        let digits =
            text[at..].split(|it: char| !it.is_ascii_hexdigit()).next().unwrap_or_default();
        let is_printed = text[at + digits.len()..].starts_with(']');
        let line = text[..at].rsplit('\n').next().unwrap_or_default();
        is_printed
            && id.starts_with(digits)
            && line.trim_start().starts_with('[')
            && line.ends_with(' ')
    })
}

/// Minimum length of a subject that identifies its commit.
pub(crate) const SUBJECT_LETTERS_MIN: usize = 8;

/// Code symbols in a line: compound names, and names that the line defines.
pub(crate) fn symbols(line: &str) -> Vec<String> {
    const DEFINING: [&str; 11] = [
        "fn", "struct", "enum", "trait", "type", "const", "static", "def", "class", "func",
        "function",
    ];
    let mut found: Vec<String> = Vec::new();
    let mut before = "";
    for word in
        line.split(|it: char| !it.is_alphanumeric() && it != '_').filter(|it| !it.is_empty())
    {
        let inner = word.trim_matches('_');
        let lower = inner.contains(|it: char| it.is_lowercase());
        let is_humped = lower && inner.chars().skip(1).any(char::is_uppercase);
        let is_name = inner.contains('_') || is_humped;
        let is_defined = DEFINING.contains(&before) && 4 <= inner.len();
        if (is_name || is_defined)
            && !found.iter().any(|it| it == word)
            && found.len() < SYMBOLS_MAX
        {
            found.push(word.to_owned());
        }
        before = word;
    }
    found
}

/// Maximum number of symbols taken from one line.
const SYMBOLS_MAX: usize = 8;

/// Name of the definition that encloses `line`, judged by indentation.
pub(crate) fn enclosing(above: &[String], line: &str) -> Option<String> {
    const HEADS: [&str; 9] =
        ["fn ", "def ", "class ", "func ", "function ", "struct ", "enum ", "trait ", "impl "];
    let depth = |line: &str| line.len() - line.trim_start().len();
    let own = depth(line);
    let is_head = |it: &&String| {
        depth(it) < own
            && HEADS.iter().any(|head| it.starts_with(head) || it.contains(&format!(" {head}")))
    };
    let head = above.iter().rev().find(is_head)?;
    let rest = HEADS.iter().find_map(|name| {
        let at = head.find(name).filter(|at| *at == 0 || head[..*at].ends_with(' '))?;
        head.get(at + name.len()..)
    })?;
    let name: String = rest.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect();
    (4 <= name.len()).then_some(name)
}

#[cfg(test)]
#[path = "score_test.rs"]
mod score_test;
