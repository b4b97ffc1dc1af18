//! aider's chat history: Markdown in which the prefix of a line identifies its author. All chats of
//! a repository are in one append-only file. A session's id is the start time of the chat, with a
//! counter for chats that started in the same second.

#[cfg(test)]
mod tests;

use super::{Fence, LineReader, read_lines};
use crate::domain::{Digest, EntryKind, LINE_BYTES_MAX, Outcome, Skip, Speaker, Timestamp};
use crate::transcripts::emit::Emit;
use crate::transcripts::raw::{Input, RawEntry, RawSession, Sink};
use std::collections::HashMap;
use std::io;

/// End of every line that aider printed or the user typed.
const ENDING: &str = "  ";
/// Beginnings of messages that aider generates to have a model fix or explain something.
const OWN_MESSAGES: [&str; 2] = ["# Fix any errors below", "# Question: "];
/// Maximum number of start times that are remembered; then numbering restarts.
const STARTS_MAX: usize = 100_000;
/// Output of aider when an edit by the model could not be applied.
const FAILURES: [&str; 4] =
    ["The LLM did not conform", "failed to match!", "SearchReplaceNoExactMatch", "Malformed edit"];

/// Beginning of a chat, followed by its time.
const START: &str = "# aider chat started at ";
/// Beginnings of lines of aider's startup banner and token counts.
const NOISE: &str = include_str!("aider/noise.txt");
const ANSWERS: [&str; 14] = [
    "y", "n", "yes", "no", "a", "all", "s", "skip", "skip all", "d", "don't", "o", "always",
    "never",
];

pub(crate) fn read(input: &mut dyn Input, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut reader = AiderReader { emit: Emit::new(sink), ..AiderReader::default() };
    read_lines(input, &mut reader)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Author {
    /// `#### `
    Person,
    /// `> `, output of a tool or of aider.
    Tool,
    /// `> `, banner and token counts.
    Noise,
    /// Everything else.
    Assistant,
}

/// Adjacent lines of one author.
struct Block {
    author: Author,
    line: u32,
    text: String,
}

#[derive(Default)]
struct AiderReader<'e> {
    emit: Emit<'e>,
    /// Number of chats by start time.
    starts: HashMap<String, u32>,
    in_session: bool,
    /// Session id of lines above the first start of a chat, until one of them shows that aider wrote the file.
    headless: Option<String>,
    fence: Fence,
    block: Option<Block>,
    command: Option<String>,
    /// Question of the command of a chat mode directly before, which aider logs once more.
    asked: Option<String>,
    /// True while printed text continues without a prefix, until a line that ends with two spaces.
    unfinished: bool,
    /// True once a line of the chat ends as aider ends lines; editors may remove all such ends.
    has_endings: bool,
}

impl<'e> LineReader<'e> for AiderReader<'e> {
    fn emit(&mut self) -> &mut Emit<'e> {
        &mut self.emit
    }

    fn line(&mut self, line: &str, number: u32) {
        if let Some(time) = start_of(line) {
            self.begin_headless();
            return self.start(time);
        }
        if !self.in_session && self.headless.is_none() {
            if line.trim().is_empty() {
                return;
            }
            self.headless = Some(format!("{}#0", Digest::of(&[line])));
        }
        let printed = printed(line);
        let by_aider = typed(line).is_some() || printed.is_some() && line.ends_with(ENDING);
        self.has_endings |= by_aider && line.ends_with(ENDING);
        let is_heading = self.has_endings && self.in_reply() && !line.ends_with(ENDING);
        let typed = typed(line).filter(|_| !is_heading);
        if by_aider && !self.fence.is_open() {
            self.begin_headless();
        }
        if self.unfinished && printed.is_none() && typed.is_none() {
            return self.go_on(line, number);
        }
        self.unfinished = false;
        if self.fence.is_open() && printed.is_some_and(ends_a_reply) {
            self.fence = Fence::default();
        }
        match (self.fence.is_open(), printed, typed) {
            (false, _, Some(words)) => self.add(Author::Person, words, number),
            (false, Some(words), None) if self.in_session && !self.is_quote(line, words) => {
                self.unfinished = !line.ends_with(ENDING);
                self.print(words, number);
            }
            (_, _, _) => self.reply(line, number),
        }
    }

    fn end(&mut self) {
        // The end of the last line may be missing.
        if let Some(block) = self.block.as_mut().filter(|it| it.author == Author::Assistant)
            && !self.fence.is_open()
            && let Some((reply, last)) = block.text.trim_end().rsplit_once('\n')
            && let Some(words) = typed(last).map(str::to_owned)
        {
            let number = reply.split('\n').fold(block.line, |line, _| line.saturating_add(1));
            block.text.truncate(reply.len());
            self.add(Author::Person, &words, number);
        }
        if self.in_session {
            self.flush();
        }
    }
}

impl AiderReader<'_> {
    /// Begins the session of a file whose beginning was cut off.
    fn begin_headless(&mut self) {
        if let Some(native_id) = self.headless.take() {
            self.in_session = true;
            self.emit.session(RawSession { native_id, ..RawSession::default() });
        }
    }

    fn start(&mut self, time: &str) {
        self.flush();
        self.fence = Fence::default();
        self.command = None;
        self.asked = None;
        self.has_endings = false;
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

    fn in_reply(&self) -> bool {
        self.block.as_ref().is_some_and(|block| block.author == Author::Assistant)
    }

    /// True for a quote in a reply; it does not end with two spaces, unlike what aider prints.
    fn is_quote(&self, line: &str, words: &str) -> bool {
        self.in_reply() && !line.ends_with(ENDING) && !is_noise(words)
    }

    /// Adds a continuation line of printed text.
    fn go_on(&mut self, line: &str, number: u32) {
        self.unfinished = !line.ends_with(ENDING);
        if let Some((_, answer)) = line.strip_prefix("(y/n").and_then(|rest| rest.split_once(") "))
        {
            self.flush();
            let (person, kind) = (Speaker::Person, EntryKind::Answer);
            return self.emit.entry(RawEntry::new(number, person, kind, answer.trim_end()));
        }
        let author = self.block.as_ref().map_or(Author::Tool, |block| block.author);
        self.add(author, line.trim_end(), number);
    }

    /// Reads a line printed by aider or a tool.
    fn print(&mut self, words: &str, number: u32) {
        let is_commit = is_commit(words);
        let answered = question(words);
        let (speaker, kind) = if is_commit || words.starts_with("Applied edit to ") {
            (Speaker::Tool, EntryKind::ToolResult)
        } else if answered == Some(true) {
            (Speaker::Person, EntryKind::Answer)
        } else if answered.is_some() || words.starts_with("^C") || words == "KeyboardInterrupt" {
            (Speaker::Client, EntryKind::Notice)
        } else {
            let noise = is_noise(words);
            // An empty line belongs to the text around it.
            let author = match self.block.as_ref().map(|block| block.author) {
                Some(author @ (Author::Tool | Author::Noise)) if words.is_empty() => author,
                Some(_) | None if noise => Author::Noise,
                Some(_) | None => Author::Tool,
            };
            return self.add(author, words, number);
        };
        let mut entry = RawEntry::new(number, speaker, kind, words);
        if kind == EntryKind::ToolResult {
            entry.tool = Some(if is_commit { "commit" } else { "edit" }.to_owned());
            entry.outcome = Some(Outcome::Succeeded);
        }
        self.flush();
        self.emit.entry(entry);
    }

    fn reply(&mut self, line: &str, number: u32) {
        let author = self.block.as_ref().map(|block| block.author);
        if line.trim().is_empty() && author != Some(Author::Assistant) {
            return self.flush();
        }
        self.fence.line(line);
        self.add(Author::Assistant, line, number);
    }

    fn add(&mut self, author: Author, words: &str, number: u32) {
        let full = |block: &Block| block.text.len() + words.len() > LINE_BYTES_MAX;
        if self.block.as_ref().is_none_or(|block| block.author != author || full(block)) {
            self.flush();
            self.block = Some(Block { author, line: number, text: String::new() });
        }
        if let Some(block) = &mut self.block {
            block.text.extend([words, "\n"]);
        }
    }

    fn flush(&mut self) {
        let Some(block) = self.block.take_if(|_| self.in_session) else { return };
        let text = block.text.trim_matches('\n').trim_end();
        let asked = self.asked.take();
        if block.author == Author::Person && asked.as_deref() == Some(text) {
            return;
        }
        let new = |speaker, kind| RawEntry::new(block.line, speaker, kind, text);
        let mut entry = match block.author {
            Author::Person => self.typed(text, block.line),
            Author::Assistant => new(Speaker::Assistant, EntryKind::Text),
            Author::Noise => new(Speaker::Client, EntryKind::Notice),
            Author::Tool => new(Speaker::Tool, EntryKind::ToolResult),
        };
        if block.author == Author::Noise {
            entry.skip = Some(Skip::Injected);
        } else if block.author == Author::Tool {
            let failed = FAILURES.iter().any(|sign| text.contains(sign));
            entry.outcome = failed.then_some(Outcome::Failed);
            entry.tool = Some(self.command.clone().unwrap_or_else(|| "aider".to_owned()));
        }
        if !entry.text.trim().is_empty() {
            self.emit.entry(entry);
        }
    }

    /// Reads what the user typed: a message, a command, or the prompt that `/help` made of it.
    fn typed(&mut self, text: &str, line: u32) -> RawEntry {
        self.command = None;
        if OWN_MESSAGES.iter().any(|start| text.starts_with(start)) && text.contains('\n') {
            return RawEntry::new(line, Speaker::Client, EntryKind::Injected, text);
        }
        let text = if text == "<blank>" { "" } else { text };
        if let Some(words) = question_of_mode(text) {
            self.asked = Some(words.to_owned());
            return RawEntry::new(line, Speaker::Person, EntryKind::Prompt, words);
        }
        let name = command(text);
        self.command = name.map(str::to_owned);
        let kind = if name.is_some() { EntryKind::Command } else { EntryKind::Prompt };
        RawEntry::new(line, Speaker::Person, kind, text)
    }
}

/// Time of a chat's start, if the line holds nothing else.
pub(crate) fn start_of(line: &str) -> Option<&str> {
    let time = line.strip_prefix(START)?.trim_end();
    let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    (shape == "0000-00-00 00:00:00").then_some(time)
}

fn typed(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("####")?;
    let rest = rest.strip_suffix("  ").unwrap_or(rest);
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}

fn printed(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('>')?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ').map(str::trim_end) }
}

/// True if a printed line ends a reply, even if its fence was never closed.
fn ends_a_reply(words: &str) -> bool {
    ["Tokens: ", "^C", "Applied edit to "].iter().any(|start| words.starts_with(start))
        || is_commit(words)
}

fn is_commit(words: &str) -> bool {
    let parts = words.strip_prefix("Commit ").and_then(|rest| rest.split_once(' '));
    parts.is_some_and(|(sha, message)| {
        let is_sha = (7..=40).contains(&sha.len()) && sha.bytes().all(|b| b.is_ascii_hexdigit());
        is_sha && !message.trim().is_empty()
    })
}

/// True if a line belongs to the banner or to aider's token counts.
fn is_noise(words: &str) -> bool {
    NOISE.lines().any(|start| words.starts_with(start)) || is_start_command(words)
}

/// True if a line is the command line that aider was started with.
fn is_start_command(words: &str) -> bool {
    let program = words.split_whitespace().next().unwrap_or_default();
    program == "aider" || program.ends_with("/aider") || program.ends_with("\\aider.exe")
}

/// Recognises a question of aider's; returns whether it was answered.
fn question(words: &str) -> Option<bool> {
    let is_answer = |rest: &str| ANSWERS.contains(&rest.trim().to_lowercase().as_str());
    if words.contains("? (Y)es/(N)o") {
        return Some(words.rsplit_once(':').is_some_and(|(_, answer)| !answer.trim().is_empty()));
    }
    let (question, rest) = words.rsplit_once('?')?;
    let rest = ["[Y/n]", "[y/N]", "[y/n]", "(y/n)"]
        .iter()
        .find_map(|options| rest.trim_start().strip_prefix(options))
        .unwrap_or(rest);
    (question.contains(' ') && is_answer(rest)).then_some(true)
}

/// Name of a slash command, or `run` for a shell escape; `None` for a path.
fn command(text: &str) -> Option<&str> {
    if text.starts_with('!') {
        return Some("run");
    }
    let name = text.strip_prefix('/')?.split_whitespace().next()?;
    name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-').then_some(name)
}

/// Text after a command that only selects the chat mode.
fn question_of_mode(text: &str) -> Option<&str> {
    const MODES: [&str; 3] = ["/ask", "/code", "/architect"];
    let rest = MODES.iter().find_map(|mode| text.strip_prefix(mode))?;
    let words = rest.trim_start();
    (words.len() < rest.len() && !words.is_empty()).then_some(words)
}
