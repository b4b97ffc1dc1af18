//! aider's chat history: Markdown in which a line's first characters say whose it is. All chats of a
//! repository stand in one file, which only grows.
//!
//! A session's id is the time its chat started, with its number among chats that started at the same
//! second; the file's beginning says nothing about a chat further down.

mod line;
#[cfg(test)]
mod tests;

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
