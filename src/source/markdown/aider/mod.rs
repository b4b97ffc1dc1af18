//! aider's chat history: Markdown in which a line's first characters say whose it is. All chats of a
//! repository stand in one file, which only grows.
//!
//! A session's id is the time its chat started, with its number among chats that started at the same
//! second; the file's beginning says nothing about a chat further down.

mod line;

pub(in crate::source) use line::start_of;

use line::{asked, command, ends_a_reply, is_commit, is_noise, printed, question, typed};

use super::fence::Fence;
use super::{Feed, feed};
use crate::domain::{Digest, EntryKind, LINE_BYTES_MAX, Outcome, Skip, Speaker, Timestamp};
use crate::source::emit::Emit;
use crate::source::{RawEntry, RawSession, Sink};
use std::collections::HashMap;
use std::io::{self, Read, Seek};

/// What aider ends everything with that it prints or that was typed.
const ENDING: &str = "  ";
/// How messages begin that aider writes itself when it asks a model to mend or to explain something.
const OWN_MESSAGES: [&str; 2] = ["# Fix any errors below", "# Question: "];
/// Chats whose times are remembered to number equal ones; beyond it numbering begins anew.
const STARTS_MAX: usize = 100_000;
/// What aider prints when an edit of the model could not be used.
const FAILURES: [&str; 4] =
    ["The LLM did not conform", "failed to match!", "SearchReplaceNoExactMatch", "Malformed edit"];
/// Reads a chat history.
pub(in crate::source) fn read<R: Read + Seek>(input: R, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut reader = Reader {
        emit: Emit::new(sink),
        starts: HashMap::new(),
        in_session: false,
        fence: Fence::default(),
        block: None,
        command: None,
        unfinished: false,
    };
    feed(input, &mut reader)
}

/// Whose lines a block holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Hand {
    /// `#### `
    Person,
    /// `> `, output of a tool or of aider.
    Tool,
    /// `> `, banner and accounts.
    Noise,
    /// Everything else.
    Assistant,
}

/// Lines of one hand that follow each other.
struct Block {
    hand: Hand,
    line: u32,
    text: String,
}

struct Reader<'e, 's> {
    emit: Emit<'e, 's>,
    /// How many chats started at a time.
    starts: HashMap<String, u32>,
    in_session: bool,
    fence: Fence,
    block: Option<Block>,
    /// The command whose output is being read.
    command: Option<String>,
    /// What is being printed goes on without marks, until a line that ends with two spaces.
    unfinished: bool,
}

impl<'e, 's: 'e> Feed<'e, 's> for Reader<'e, 's> {
    fn emit(&mut self) -> &mut Emit<'e, 's> {
        &mut self.emit
    }

    fn line(&mut self, line: &str, number: u32) {
        if let Some(time) = start_of(line) {
            return self.start(time);
        }
        if !self.in_session {
            if line.trim().is_empty() {
                return;
            }
            // The beginning was cut off: the first line names what is left of that chat.
            self.in_session = true;
            let native_id = format!("{}#0", Digest::of(&[line]));
            self.emit.session(RawSession { native_id, ..RawSession::default() });
        }
        let printed = printed(line);
        if self.unfinished && printed.is_none() && typed(line).is_none() {
            return self.go_on(line, number);
        }
        self.unfinished = false;
        if self.fence.is_open() && printed.is_some_and(ends_a_reply) {
            self.fence.reset();
        }
        match (self.fence.is_open(), printed, typed(line)) {
            (false, _, Some(words)) => self.add(Hand::Person, words, number),
            (false, Some(words), None) if !self.is_quote(line, words) => {
                self.unfinished = !line.ends_with(ENDING);
                self.print(words, number);
            }
            (_, _, _) => self.reply(line, number),
        }
    }

    fn end(&mut self) {
        self.flush();
    }
}

impl Reader<'_, '_> {
    fn start(&mut self, time: &str) {
        self.flush();
        self.fence.reset();
        self.command = None;
        self.in_session = true;
        if self.starts.len() >= STARTS_MAX {
            self.starts.clear();
        }
        let count = self.starts.entry(time.to_owned()).or_default();
        let native_id = format!("{time}#{count}");
        *count += 1;
        let started_at = Timestamp::parse(time);
        self.emit.session(RawSession { native_id, started_at, ..RawSession::default() });
    }

    /// aider ends what it prints with two spaces; a quote in a reply has none.
    fn is_quote(&self, line: &str, words: &str) -> bool {
        let in_reply = self.block.as_ref().is_some_and(|block| block.hand == Hand::Assistant);
        in_reply && !line.ends_with(ENDING) && !is_noise(words)
    }

    /// A further line of what is being printed.
    fn go_on(&mut self, line: &str, number: u32) {
        self.unfinished = !line.ends_with(ENDING);
        if let Some((_, answer)) = line.strip_prefix("(y/n").and_then(|rest| rest.split_once(") "))
        {
            self.flush();
            let answer = answer.trim_end();
            return self.emit.entry(RawEntry::new(
                number,
                Speaker::Person,
                EntryKind::Answer,
                answer,
            ));
        }
        let hand = self.block.as_ref().map_or(Hand::Tool, |block| block.hand);
        self.add(hand, line.trim_end(), number);
    }

    /// A line that aider or a tool printed.
    fn print(&mut self, words: &str, number: u32) {
        let mut entry = RawEntry::new(number, Speaker::Tool, EntryKind::ToolResult, words);
        entry.tool = Some("aider".to_owned());
        entry.outcome = Some(Outcome::Succeeded);
        if is_commit(words) {
            entry.tool = Some("commit".to_owned());
        } else if words.starts_with("Applied edit to ") {
            entry.tool = Some("edit".to_owned());
        } else if let Some(answered) = question(words) {
            let (speaker, kind) = match answered {
                true => (Speaker::Person, EntryKind::Answer),
                false => (Speaker::Client, EntryKind::Notice),
            };
            entry = RawEntry::new(number, speaker, kind, words);
        } else if words.starts_with("^C") || words == "KeyboardInterrupt" {
            entry = RawEntry::new(number, Speaker::Client, EntryKind::Notice, words);
        } else {
            let noise = is_noise(words);
            // An empty line belongs to whatever is being printed.
            let hand = match self.block.as_ref().map(|block| block.hand) {
                Some(hand @ (Hand::Tool | Hand::Noise)) if words.is_empty() => hand,
                Some(_) | None if noise => Hand::Noise,
                Some(_) | None => Hand::Tool,
            };
            return self.add(hand, words, number);
        }
        self.flush();
        self.emit.entry(entry);
    }

    fn reply(&mut self, line: &str, number: u32) {
        let hand = self.block.as_ref().map(|block| block.hand);
        if line.trim().is_empty() && hand != Some(Hand::Assistant) {
            return self.flush();
        }
        self.fence.line(line);
        self.add(Hand::Assistant, line, number);
    }

    fn add(&mut self, hand: Hand, words: &str, number: u32) {
        let full = |block: &Block| block.text.len() + words.len() > LINE_BYTES_MAX;
        if self.block.as_ref().is_none_or(|block| block.hand != hand || full(block)) {
            self.flush();
            self.block = Some(Block { hand, line: number, text: String::new() });
        }
        if let Some(block) = &mut self.block {
            block.text.push_str(words);
            block.text.push('\n');
        }
    }

    fn flush(&mut self) {
        let Some(block) = self.block.take() else { return };
        let text = block.text.trim_matches('\n').trim_end();
        let mut entry = match block.hand {
            Hand::Person => self.typed(text, block.line),
            Hand::Assistant => RawEntry::new(block.line, Speaker::Assistant, EntryKind::Text, text),
            Hand::Noise => RawEntry::new(block.line, Speaker::Client, EntryKind::Notice, text),
            Hand::Tool => {
                let mut entry =
                    RawEntry::new(block.line, Speaker::Tool, EntryKind::ToolResult, text);
                let failed = FAILURES.iter().any(|sign| text.contains(sign));
                entry.outcome = failed.then_some(Outcome::Failed);
                entry.tool = Some(self.command.clone().unwrap_or_else(|| "aider".to_owned()));
                entry
            }
        };
        if block.hand == Hand::Noise {
            entry.skip = Some(Skip::Injected);
        }
        if !entry.text.trim().is_empty() {
            self.emit.entry(entry);
        }
    }

    /// What a person typed: a message, a command, or what `/help` made of it.
    fn typed(&mut self, text: &str, line: u32) -> RawEntry {
        self.command = None;
        if OWN_MESSAGES.iter().any(|start| text.starts_with(start)) && text.contains('\n') {
            let mut entry = RawEntry::new(line, Speaker::Client, EntryKind::Injected, text);
            entry.skip = Some(Skip::Injected);
            return entry;
        }
        let text = if text == "<blank>" { "" } else { text };
        if let Some(words) = asked(text) {
            return RawEntry::new(line, Speaker::Person, EntryKind::Prompt, words);
        }
        let name = command(text);
        self.command = name.map(str::to_owned);
        let kind = if name.is_some() { EntryKind::Command } else { EntryKind::Prompt };
        RawEntry::new(line, Speaker::Person, kind, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::testing;

    #[track_caller]
    fn check(input: &str, expected: &[&str]) {
        testing::check(read, input, expected);
    }

    const HEAD: &str = "\n# aider chat started at 2026-01-02 03:04:05\n\n";

    #[test]
    fn every_start_is_a_session_and_equal_times_are_numbered() {
        check(
            &format!("{HEAD}{HEAD}# aider chat started at noon\n"),
            &[
                "= 2026-01-02 03:04:05#0",
                "= 2026-01-02 03:04:05#1",
                "7: assistant text: # aider chat started at noon",
            ],
        );
    }

    #[test]
    fn whose_line_it_is_stands_in_front() {
        check(
            &format!(
                "{HEAD}> Aider v0.9.9  \n> Git repo: .git with 3 files  \n\n#### rename it  \n####   \n#### and test  \n\n\
                 Sure.\n\n# A heading\nDone.\n\n> Tokens: 1k sent  \n> Applied edit to a.py  \n> Commit abc1234 feat: rename  \n> You can use /undo to undo and discard each aider commit.  \n"
            ),
            &[
                "= 2026-01-02 03:04:05#0",
                "4: client notice: Aider v0.9.9\nGit repo: .git with 3 files (injected context)",
                "7: person prompt: rename it\n\nand test",
                "11: assistant text: Sure.\n\n# A heading\nDone.",
                "16: client notice: Tokens: 1k sent (injected context)",
                "17: tool tool_result edit# succeeded: Applied edit to a.py",
                "18: tool tool_result commit# succeeded: Commit abc1234 feat: rename",
                "19: client notice: You can use /undo to undo and discard each aider commit. (injected context)",
            ],
        );
    }

    #[test]
    fn commands_are_told_from_paths() {
        check(
            &format!(
                "{HEAD}#### /run make test  \n> FAILED test_a  \n\n#### !ls  \n\n#### /etc/hosts is wrong  \n\n#### <blank>  \n"
            ),
            &[
                "= 2026-01-02 03:04:05#0",
                "4: person command: /run make test",
                "5: tool tool_result run#: FAILED test_a",
                "7: person command: !ls",
                "9: person prompt: /etc/hosts is wrong",
            ],
        );
    }

    #[test]
    fn what_is_asked_with_a_command_is_a_prompt() {
        check(
            &format!(
                "{HEAD}#### /ask why a lock?  \n####   \n#### and where?  \n\n#### /ask  \n\n#### /asked x  \n\n#### /code do it  \n"
            ),
            &[
                "= 2026-01-02 03:04:05#0",
                "4: person prompt: why a lock?\n\nand where?",
                "8: person command: /ask",
                "10: person command: /asked x",
                "12: person prompt: do it",
            ],
        );
    }

    #[test]
    fn answers_are_the_persons() {
        check(
            &format!(
                "{HEAD}> Add a.py to the chat? (Y)es/(N)o [Yes]: n  \n> Attempt to fix lint errors? [Y/n] y  \n> Add the output to the chat?  \n> Attempt to fix lint errors? n  \n"
            ),
            &[
                "= 2026-01-02 03:04:05#0",
                "4: person answer: Add a.py to the chat? (Y)es/(N)o [Yes]: n",
                "5: person answer: Attempt to fix lint errors? [Y/n] y",
                "6: tool tool_result aider#: Add the output to the chat?",
                "7: person answer: Attempt to fix lint errors? n",
            ],
        );
    }

    #[test]
    fn fences_quote_whatever_stands_in_them() {
        check(
            &format!(
                "{HEAD}#### go  \n\n```md\n#### not a person\n> not a tool\n```\n\n#### next  \n"
            ),
            &[
                "= 2026-01-02 03:04:05#0",
                "4: person prompt: go",
                "6: assistant text: ```md\n#### not a person\n> not a tool\n```",
                "11: person prompt: next",
            ],
        );
    }

    #[test]
    fn a_fence_left_open_ends_with_the_reply() {
        check(
            &format!("{HEAD}```py\nx = 1\n> Tokens: 2k sent  \n\n#### next  \n"),
            &[
                "= 2026-01-02 03:04:05#0",
                "4: assistant text: ```py\nx = 1",
                "6: client notice: Tokens: 2k sent (injected context)",
                "8: person prompt: next",
            ],
        );
    }

    #[test]
    fn quotes_in_a_reply_stay_in_it() {
        check(
            &format!("{HEAD}As you said:\n> be brief\n\nI will.\n"),
            &["= 2026-01-02 03:04:05#0", "4: assistant text: As you said:\n> be brief\n\nI will."],
        );
    }

    #[test]
    fn output_goes_on_until_it_ends() {
        check(
            &format!(
                "{HEAD}#### /test make  \n> === begin ===\nplatform x\n\n2 failed  \n\nI see.\n\n> Tokens: 1k sent\nCost: $1  \n"
            ),
            &[
                "= 2026-01-02 03:04:05#0",
                "4: person command: /test make",
                "5: tool tool_result test#: === begin ===\nplatform x\n\n2 failed",
                "10: assistant text: I see.",
                "12: client notice: Tokens: 1k sent\nCost: $1 (injected context)",
            ],
        );
        check(
            &format!(
                "{HEAD}> Add the output to the chat?\n(y/n/instructions) only the first line  \n"
            ),
            &[
                "= 2026-01-02 03:04:05#0",
                "4: tool tool_result aider#: Add the output to the chat?",
                "5: person answer: only the first line",
            ],
        );
    }

    #[test]
    fn failed_edits_and_interrupts_are_told() {
        check(
            &format!(
                "{HEAD}> The LLM did not conform to the edit format.  \n\n> ^C again to exit  \n"
            ),
            &[
                "= 2026-01-02 03:04:05#0",
                "4: tool tool_result aider# failed: The LLM did not conform to the edit format.",
                "6: client notice: ^C again to exit",
            ],
        );
    }

    #[test]
    fn help_puts_its_documents_into_a_prompt() {
        check(
            &format!("{HEAD}#### # Question: hi  \n####   \n#### # Relevant docs:  \n"),
            &[
                "= 2026-01-02 03:04:05#0",
                "4: client injected: # Question: hi\n\n# Relevant docs: (injected context)",
            ],
        );
    }

    #[test]
    fn a_beginning_cut_off_is_a_session_too() {
        check("tail of a reply\n", &["= …#0", "1: assistant text: tail of a reply"]);
        check("\n", &[]);
    }

    #[test]
    fn damage_is_survived() {
        let input = format!("{HEAD}#### a  \n```\n> b  \n```\ntext\n> Commit abc1234 x  \n");
        testing::survives(read, input.as_bytes(), 1);
    }
}
