//! Conversations as text: the Markdown of aider and SpecStory, and plain `role: words`.

pub(super) mod aider;
pub(super) mod plain;
pub(super) mod specstory;

use super::cutter::each_line;
use super::emit::Emit;
use super::raw::Input;
use std::io;

trait LineReader<'e> {
    fn emit(&mut self) -> &mut Emit<'e>;

    /// Reads the next line; `number` is 1-based.
    fn line(&mut self, line: &str, number: u32);

    fn end(&mut self);
}

/// Reads all lines of `input`, until the sink stops.
fn read_lines<'e>(input: &mut dyn Input, reader: &mut impl LineReader<'e>) -> io::Result<()> {
    each_line(input, |line| {
        if reader.emit().accepts(&line) {
            reader.line(&line.text, line.number);
        }
        !reader.emit().stopped()
    })?;
    reader.end();
    reader.emit().finish();
    Ok(())
}

/// State of fenced blocks, whose lines are quotes.
#[derive(Default)]
pub(super) struct Fence {
    /// Character and length of the open fence.
    open: Option<(char, usize)>,
}

impl Fence {
    /// Adds a line; returns whether it is inside a fence or one of its delimiters.
    pub(super) fn line(&mut self, line: &str) -> bool {
        let text = line.trim();
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'));
        let length = text.chars().take_while(|c| Some(*c) == mark).count();
        let rest = text.get(length..).unwrap_or_default();
        match (self.open, mark) {
            (None, Some(mark)) if length >= 3 && !rest.contains('`') => {
                self.open = Some((mark, length));
                true
            }
            (Some((open, least)), Some(mark))
                if open == mark && length >= least && rest.is_empty() =>
            {
                self.open = None;
                true
            }
            (Some(_), _) => true,
            (None, _) => false,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, inside: &[bool]) {
        let mut fence = Fence::default();
        let got: Vec<bool> = text.lines().map(|line| fence.line(line)).collect();
        assert_eq!(got, inside);
    }

    #[test]
    fn a_fence_ends_with_its_own_mark() {
        check("a\n```rs\n#### x\n~~~\n```\nb", &[false, true, true, true, true, false]);
        check("````\n```\n````\nb", &[true, true, true, false]);
        check("```one line```\nb", &[false, false]);
    }
}
