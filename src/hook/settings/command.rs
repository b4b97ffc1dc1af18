//! Which commands run us. One that begins with our name is ours, and may be brought up to date; one in
//! which a person runs us among other things is theirs, and does what is wanted.

use crate::hook::Event;

/// Our name as a program, and on Windows.
const NAMES: [&str; 2] = ["annalist", "annalist.exe"];

/// A command of a hook.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Command {
    /// Whether it runs one of our hooks.
    pub(super) runs_us: bool,
    /// Whether that is all it does.
    pub(super) is_ours: bool,
    /// It, word by word, quotes taken off.
    words: Vec<String>,
    /// What stands behind program, `hook` and event, as it is written.
    flags: String,
}

impl Command {
    /// Reads a command.
    pub(super) fn read(line: &str) -> Command {
        let Split { words, is_joined } = split(line);
        let is_us = |pair: &[(String, usize)]| {
            let [(program, _), (word, _)] = pair else { return false };
            let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
            NAMES.contains(&name) && word == "hook"
        };
        let begins = words.get(..2).is_some_and(is_us);
        let flags = words.get(2).and_then(|(_, end)| line.get(*end..)).unwrap_or_default();
        Command {
            runs_us: words.windows(2).any(is_us),
            is_ours: begins && !is_joined,
            flags: flags.trim_end().to_owned(),
            words: words.into_iter().map(|(word, _)| word).collect(),
        }
    }

    /// The command with `program` and `event` in the place of its own; none if that changes nothing.
    pub(super) fn with(&self, program: &str, event: Event) -> Option<String> {
        let now = [program, "hook", event.argument()];
        let is_same = self.words.iter().take(now.len()).eq(now.iter());
        (!is_same).then(|| Command::line(program, event) + &self.flags)
    }

    /// The command that runs the hook of `event`.
    pub(super) fn line(program: &str, event: Event) -> String {
        format!("{} hook {}", quoted(program), event.argument())
    }
}

/// A program as a shell takes it for one word.
fn quoted(program: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%~".contains(c);
    match !program.is_empty() && program.chars().all(is_plain) {
        true => program.to_owned(),
        false => format!("'{}'", program.replace('\'', r"'\''")),
    }
}

/// A command as a shell splits it.
struct Split {
    /// The words, and where each ends.
    words: Vec<(String, usize)>,
    /// Whether the shell does more than to run a program with words: that is a person's work.
    is_joined: bool,
}

/// Splits a command. A quote that is not closed ends with the line.
fn split(line: &str) -> Split {
    let mut words: Vec<(String, usize)> = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    let (mut is_escaped, mut is_joined) = (false, false);
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            _ if is_escaped => {
                is_escaped = false;
                word.get_or_insert_default().push(letter);
            }
            (Some(open), letter) if open == letter => quote = None,
            (Some('\''), letter) => word.get_or_insert_default().push(letter),
            (_, '\\') => is_escaped = true,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, letter) if letter.is_whitespace() && letter != '\n' => {
                words.extend(word.take().map(|word| (word, at)));
            }
            (quote, letter) => {
                let joins = if quote.is_none() { "$`|;&<>\n" } else { "$`" };
                is_joined |= joins.contains(letter);
                word.get_or_insert_default().push(letter);
            }
        }
    }
    words.extend(word.map(|word| (word, line.len())));
    Split { words, is_joined }
}
