//! SpecStory's Markdown rendering of an agent's session. Headings name the speaker; thinking and
//! tools have tags. A session's id is in the header comment; otherwise it is the digest of the
//! header and the first message.

use super::{Fence, LineReader, read_lines};
use crate::domain::{Branch, Digest, EntryKind, LINE_BYTES_MAX, Speaker, Timestamp};
use crate::transcripts::client_text::{ClientText, split_message};
use crate::transcripts::emit::Emit;
use crate::transcripts::raw::{Input, RawEntry, RawSession, Sink};
use crate::transcripts::tools;
use std::io;

/// Info strings of fences that show the request, not the output.
const REQUEST_FENCES: [&str; 4] = ["diff", "bash", "sh", "powershell"];
/// Labels on the line of a fence with the request of an unknown tool.
const INPUTS: [&str; 2] = ["Input: ", "Input (truncated): "];
/// Maximum number of lines of a header: a comment, a title, another comment.
const HEADER_LINES_MAX: u32 = 50;

pub(crate) fn read(input: &mut dyn Input, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut reader = SpecstoryReader { emit: Emit::new(sink), ..SpecstoryReader::default() };
    read_lines(input, &mut reader)
}

/// Heading such as `_**User (time)**_`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Heading {
    person: bool,
    sidechain: bool,
    at: Option<Timestamp>,
}

/// Reads a heading, if the line holds nothing else.
pub(crate) fn heading(line: &str) -> Option<Heading> {
    let inner = line.trim_end().strip_prefix("_**")?.strip_suffix("**_")?;
    let (name, rest) = match inner.split_once(" (") {
        Some((name, rest)) => (name, rest.strip_suffix(')')?),
        None => (inner, ""),
    };
    let main = name.strip_suffix(" - sidechain");
    let (name, sidechain) = (main.unwrap_or(name), main.is_some());
    let person = match name {
        "User" => true,
        "Agent" | "Assistant" => false,
        _ => return None,
    };
    // The time comes after the model's name, if any.
    let words: Vec<&str> = rest.split(' ').collect();
    let tail = words.get(words.len().saturating_sub(2)..).unwrap_or_default().join(" ");
    let at = Timestamp::parse(&tail).or_else(|| Timestamp::parse(rest));
    Some(Heading { person, sidechain, at })
}

#[derive(Default)]
struct EntryText {
    line: u32,
    words: String,
}

impl EntryText {
    fn add(&mut self, line: &str, number: u32) {
        if self.words.is_empty() {
            if line.trim().is_empty() {
                return;
            }
            self.line = number;
        }
        self.words.extend([line, "\n"]);
    }
}

/// Part that the next lines belong to.
#[derive(Default)]
enum State {
    #[default]
    Words,
    Thinking,
    Tool(ToolBlock),
}

#[derive(Default)]
struct SpecstoryReader<'e> {
    emit: Emit<'e>,
    head: RawSession,
    /// Lines before the first heading.
    header: String,
    begun: bool,
    heading: Option<Heading>,
    fence: Fence,
    text: EntryText,
    state: State,
    is_after_blank: bool,
    /// Time of the slash command directly before.
    commanded_at: Option<Timestamp>,
}

impl<'e> LineReader<'e> for SpecstoryReader<'e> {
    fn emit(&mut self) -> &mut Emit<'e> {
        &mut self.emit
    }

    fn line(&mut self, line: &str, number: u32) {
        let quoted = match &self.state {
            State::Tool(tool) => tool.in_output(),
            State::Words | State::Thinking => self.fence.is_open(),
        };
        let is_after_blank = std::mem::replace(&mut self.is_after_blank, line.trim().is_empty());
        if let Some(heading) = heading(line)
            && (!quoted || is_after_blank && self.is_later(heading))
        {
            self.flush();
            self.heading = Some(heading);
            return;
        }
        if self.heading.is_none() {
            return self.header(line, number);
        }
        match &mut self.state {
            State::Thinking if line.contains("</think>") => self.state = State::Words,
            State::Thinking => {}
            State::Tool(tool) => {
                if tool.line(line) {
                    self.flush();
                }
            }
            State::Words => self.words(line, number),
        }
    }

    fn end(&mut self) {
        self.flush();
        if !self.begun && !self.head.native_id.is_empty() {
            self.begin("");
        }
    }
}

impl SpecstoryReader<'_> {
    /// True for a heading behind a fence without end; those of a quoted session are older.
    fn is_later(&self, heading: Heading) -> bool {
        self.heading.is_some_and(|last| last.at.is_some() && last.at <= heading.at)
    }

    fn words(&mut self, line: &str, number: u32) {
        let inside = self.fence.line(line);
        // Older files have tools without tags, between horizontal rules.
        let begins_tool =
            line.starts_with(ToolBlock::PLAIN) && self.text.words.trim_end().ends_with("\n---");
        let ends_tool = line.trim_end() == "---" && self.text.words.starts_with(ToolBlock::PLAIN);
        if !inside && (begins_tool || ends_tool) {
            let fence = std::mem::take(&mut self.fence);
            self.flush();
            self.fence = fence;
        }
        if !inside && line.starts_with("<think>") {
            self.flush();
            if !line.contains("</think>") {
                self.state = State::Thinking;
            }
        } else if !inside && let Some(tool) = ToolBlock::open(line, number) {
            self.flush();
            self.state = State::Tool(tool);
        } else {
            // A rule before an agent's text is SpecStory's; a person's text may begin with one.
            let agent = self.heading.is_some_and(|heading| !heading.person);
            if agent && !inside && self.text.words.is_empty() && line.trim_end() == "---" {
                return;
            }
            self.text.add(line, number);
            if self.text.words.len() > LINE_BYTES_MAX {
                self.flush();
            }
        }
    }

    /// Reads the comments and the title before the first heading.
    fn header(&mut self, line: &str, number: u32) {
        if number > HEADER_LINES_MAX {
            return;
        }
        self.header.push_str(line);
        if let Some(title) = line.strip_prefix("# ")
            && Timestamp::parse(title).is_none()
        {
            let dated =
                title.trim_end().strip_suffix(')').and_then(|title| title.rsplit_once(" ("));
            let dated = dated.and_then(|(title, time)| Some((title, Timestamp::parse(time)?)));
            self.head.started_at = self.head.started_at.or(dated.map(|(_, time)| time));
            let title = dated.map_or(title, |(title, _)| title);
            self.head.title.get_or_insert(title.trim().to_owned());
        }
        let comment = line.trim().strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->"));
        let Some((_, session)) = comment.and_then(|comment| comment.split_once(" Session ")) else {
            return;
        };
        let (id, rest) = session.trim().split_once(' ').unwrap_or((session.trim(), ""));
        self.head.native_id = id.to_owned();
        let time = rest.trim().trim_start_matches('(').trim_end_matches(')');
        self.head.started_at = Timestamp::parse(time).or(self.head.started_at);
    }

    /// Emits the session header before the first entry.
    fn begin(&mut self, words: &str) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let mut head = std::mem::take(&mut self.head);
        if head.native_id.is_empty() {
            head.native_id = Digest::of(&[&self.header, words]).to_string();
        }
        head.started_at = head.started_at.or(self.heading.and_then(|heading| heading.at));
        self.emit.session(head);
    }

    fn flush(&mut self) {
        self.fence = Fence::default();
        let text = std::mem::take(&mut self.text);
        let state = std::mem::take(&mut self.state);
        let Some(heading) = self.heading else { return };
        if let State::Tool(tool) = state {
            return tool.entries().into_iter().for_each(|entry| self.entry(entry, heading));
        }
        let mut words = text.words.trim_end();
        // SpecStory writes a rule between turns.
        words = words.strip_suffix("\n---").unwrap_or(words).trim_end();
        if words.is_empty() || words == "---" {
            return;
        }
        if !heading.person
            && let Some(entries) = ToolBlock::plain(words, text.line)
        {
            return entries.into_iter().for_each(|entry| self.entry(entry, heading));
        }
        if !heading.person {
            self.commanded_at = None;
        }
        let (speaker, kind) = match (heading.person, heading.sidechain) {
            (true, false) => {
                for mut part in split_message(words) {
                    // The expansion of a slash command has the command's time.
                    let is_expansion = self.commanded_at.is_some_and(|at| heading.at == Some(at));
                    if is_expansion && part.is_prompt() {
                        part = ClientText::injected(part.text);
                    }
                    let is_slash = part.kind == EntryKind::Command && part.text.starts_with('/');
                    self.commanded_at = heading.at.filter(|_| is_slash);
                    self.entry(part.entry(text.line), heading);
                }
                return;
            }
            (true, true) => (Speaker::Client, EntryKind::Prompt),
            (false, _) => (Speaker::Assistant, EntryKind::Text),
        };
        self.entry(RawEntry::new(text.line, speaker, kind, words), heading);
    }

    fn entry(&mut self, mut entry: RawEntry, heading: Heading) {
        entry.at = heading.at;
        if heading.sidechain {
            entry.branch = Branch::Sidechain;
        }
        self.begin(&entry.text);
        self.emit.entry(entry);
    }
}

/// `<tool-use>` block: a summary, the request, and the output in a fence.
#[derive(Default)]
struct ToolBlock {
    line: u32,
    name: String,
    shell: bool,
    /// Rest of the summary after the tool's name.
    summary: String,
    request: String,
    output: Option<EntryText>,
    /// Last fence that was opened; it is longer than any in its text.
    fence: String,
    /// True if a fence of the request is open.
    in_request: bool,
    seen: u32,
    /// True if a closing tag would end the block now.
    closable: bool,
    closing: &'static str,
}

impl ToolBlock {
    /// Beginning of a tool without tags.
    const PLAIN: &str = "Tool use: **";

    fn open(line: &str, number: u32) -> Option<ToolBlock> {
        if let Some(summary) = line.strip_prefix("<details><summary>") {
            let (name, _) = summary.strip_prefix(ToolBlock::PLAIN)?.split_once("**")?;
            let mut tool = ToolBlock::new(name, number, "</details>");
            tool.summarise(line);
            return Some(tool);
        }
        let tag = line.strip_prefix("<tool-use")?;
        let attribute = |name: &str| {
            let (_, rest) = tag.split_once(&format!("{name}=\""))?;
            Some(rest.split_once('"')?.0)
        };
        let name = attribute("data-tool-name").unwrap_or("tool");
        let mut tool = ToolBlock::new(name, number, "</tool-use>");
        tool.shell = attribute("data-tool-type") == Some("shell");
        Some(tool)
    }

    fn new(name: &str, line: u32, closing: &'static str) -> ToolBlock {
        ToolBlock { line, name: unquote(name), closable: true, closing, ..ToolBlock::default() }
    }

    /// True if the next line is the tool's output, in which nothing is markup.
    fn in_output(&self) -> bool {
        self.in_request || (self.output.is_some() && !self.closable)
    }

    /// Adds a line; returns whether the block ends with it.
    fn line(&mut self, line: &str) -> bool {
        self.seen += 1;
        // The output may contain the closing tag; the real one follows the fence.
        if self.closable && !self.in_request && line.trim_end().ends_with(self.closing) {
            return true;
        }
        if let Some(output) = &mut self.output {
            let blank = line.trim().is_empty() || line.trim() == "</details>";
            self.closable = line.trim_end() == self.fence || (self.closable && blank);
            if output.words.len() + line.len() <= LINE_BYTES_MAX {
                output.words.extend([line, "\n"]);
            }
            return false;
        }
        self.before(line);
        false
    }

    /// Adds a line before the output.
    fn before(&mut self, line: &str) {
        let input = INPUTS.iter().find_map(|label| line.strip_prefix(label));
        if self.in_request {
            self.in_request = line.trim_end() != self.fence;
        } else if let Some((fence, kind)) = split_fence(input.unwrap_or(line)) {
            fence.clone_into(&mut self.fence);
            let is_request = REQUEST_FENCES.iter().any(|fence| kind.starts_with(fence));
            self.in_request = input.is_some() || is_request;
            if !self.in_request {
                let line = self.line + self.seen + 1;
                self.output = Some(EntryText { line, words: String::new() });
                self.closable = false;
                return;
            }
        }
        if line.contains("<summary>") {
            self.summarise(line);
        } else if !matches!(line.trim(), "<details>" | "</details>") {
            self.request.extend([line, "\n"]);
        }
    }

    fn summarise(&mut self, line: &str) {
        let Some((_, summary)) = line.split_once("<summary>") else { return };
        let summary = summary.split_once("</summary>").map_or(summary, |(summary, _)| summary);
        self.summary = unescape(rest_of_summary(summary));
    }

    /// Returns the call, and the result if present.
    fn entries(self) -> Vec<RawEntry> {
        let id = format!("tool-{}", self.line);
        let request = unquote(self.request.trim());
        let summary = self.summary;
        let fenced = script(&request);
        let command = fenced.or_else(|| command(&summary)).or_else(|| command(&request));
        let text = match (self.shell, command) {
            (true, Some(command)) => command.to_owned(),
            (_, _) if summary.is_empty() => bare(&request).to_owned(),
            (_, _) if request.is_empty() => bare(&summary).to_owned(),
            (_, _) => format!("{}\n\n{request}", bare(&summary)),
        };
        let mut call = RawEntry::new(self.line, Speaker::Assistant, EntryKind::ToolCall, text);
        call.tool = Some(self.name.clone());
        call.call_id = Some(id.clone());
        let mut entries = vec![call];
        if let Some(output) = self.output {
            let text = output.words.trim_end();
            let text = text.strip_suffix("</details>").unwrap_or(text).trim_end();
            let text = unquote(text.strip_suffix(&self.fence).unwrap_or(text).trim_end());
            let speaker = if tools::is_web(&self.name) { Speaker::Web } else { Speaker::Tool };
            let mut result = RawEntry::new(output.line, speaker, EntryKind::ToolResult, text);
            (result.outcome, result.exit_code) = tools::outcome_of_output(&result.text);
            result.tool = Some(self.name);
            result.call_id = Some(id);
            entries.push(result);
        }
        entries
    }

    /// Reads a whole message `Tool use: **name** …` without tags.
    fn plain(words: &str, number: u32) -> Option<Vec<RawEntry>> {
        let rest = words.strip_prefix(ToolBlock::PLAIN)?;
        let (name, rest) = rest.split_once("**")?;
        let mut tool = ToolBlock::new(name, number, "</tool-use>");
        tool.shell = true;
        let (first, rest) = rest.split_once('\n').unwrap_or((rest, ""));
        tool.summary = unescape(first.trim());
        rest.lines().for_each(|line| {
            tool.line(line);
        });
        Some(tool.entries())
    }
}

/// Rest of a summary after `Tool use: **name**`.
fn rest_of_summary(summary: &str) -> &str {
    let rest = summary.trim().strip_prefix(ToolBlock::PLAIN);
    let rest = rest.and_then(|rest| rest.split_once("**")).map_or(summary, |(_, rest)| rest);
    rest.trim().trim_start_matches('•').trim()
}

/// Splits a line that opens a fence into the fence and the name of its language.
fn split_fence(line: &str) -> Option<(&str, &str)> {
    let kind = line.trim_start_matches('`');
    let fence = line.strip_suffix(kind).filter(|fence| fence.len() >= 3)?;
    (!kind.contains('`')).then_some((fence, kind))
}

fn script(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("```bash\n").or_else(|| text.split_once("```sh\n"))?;
    rest.rsplit_once("\n```").map(|(script, _)| script)
}

/// Returns the command between single backticks, which may itself contain backticks.
fn command(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('`')?;
    let (command, _) = rest.rsplit_once('`')?;
    (!command.trim().is_empty()).then_some(command)
}

fn bare(text: &str) -> &str {
    text.strip_prefix('`').and_then(|text| text.strip_suffix('`')).unwrap_or(text)
}

/// Restores backticks, the only character that SpecStory escapes.
fn unquote(text: &str) -> String {
    text.replace("&#96;", "`")
}

/// Decodes the HTML entities of a summary.
fn unescape(text: &str) -> String {
    const ESCAPED: [(&str, &str); 5] =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    let text = unquote(text);
    ESCAPED.iter().fold(text, |text, (escaped, plain)| text.replace(escaped, plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcripts::testing;

    #[track_caller]
    fn check(input: &str, expected: &[&str]) {
        testing::check(read, input, expected);
    }

    const HEAD: &str = "<!-- Generated by SpecStory, Markdown v2.1.0 -->\n\n# A title\n\n\
        <!-- Codex CLI Session id-1 (2026-01-02 03:04:05Z) -->\n\n";

    #[test]
    fn headings_say_who_speaks() {
        check(
            &format!(
                "{HEAD}_**User (2026-01-02 03:04:05Z)**_\n\ngo on\n\nplease\n\n---\n\n_**Agent (m 2026-01-02 03:04:06Z)**_\n\n_**Agent (m)**_\n\nDone.\n"
            ),
            &["= id-1 A title", "9: person prompt: go on\n\nplease", "19: assistant text: Done."],
        );
        let heading = heading("_**Agent (m-1 2026-01-02 03:04:06Z)**_").unwrap();
        assert_eq!(heading.at, Timestamp::parse("2026-01-02T03:04:06Z"));
    }

    #[test]
    fn the_older_form_has_no_times_and_no_id() {
        check(
            "<!-- Generated by SpecStory -->\n\n_**User**_\n\nq\n\n---\n\n_**Assistant**_\n\na\n\n---\n",
            &["= …", "5: person prompt: q", "11: assistant text: a"],
        );
    }

    #[test]
    fn thinking_never_enters() {
        check(
            &format!(
                "{HEAD}_**Agent (m)**_\n\n<think><details><summary>Thought Process</summary>\nhm\n\n```\n</details></think>\n\nSaid.\n"
            ),
            &["= id-1 A title", "15: assistant text: Said."],
        );
    }

    #[test]
    fn tools_are_calls_and_results() {
        check(
            &format!(
                "{HEAD}_**Agent (m)**_\n\n<tool-use data-tool-type=\"shell\" data-tool-name=\"Bash\"><details>\n<summary>Tool use: **Bash**</summary>\nList\n\n`ls &#96;x&#96;`\n\n```text\nExit code 1\n_**User**_\n```\n</details></tool-use>\n\nAfter.\n"
            ),
            &[
                "= id-1 A title",
                "9: assistant tool_call Bash#tool-9: ls `x`",
                "16: tool tool_result Bash#tool-9 failed 1: Exit code 1\n_**User**_",
                "21: assistant text: After.",
            ],
        );
    }

    #[test]
    fn changes_are_the_call_and_not_its_result() {
        check(
            &format!(
                "{HEAD}_**Agent (m)**_\n\n<tool-use data-tool-type=\"write\" data-tool-name=\"edit\">\n<details><summary>Tool use: **edit** • Edit file: a.go</summary>\n\n```diff\n-a\n+b\n```\n\n</details>\n</tool-use>\n"
            ),
            &[
                "= id-1 A title",
                "9: assistant tool_call edit#tool-9: Edit file: a.go\n\n```diff\n-a\n+b\n```",
            ],
        );
    }

    #[test]
    fn tools_without_tags_are_told_by_their_first_line() {
        check(
            &format!(
                "{HEAD}_**Agent (m)**_\n\nTool use: **exec_command** `ls`\n\n```\na.rs\n```\n"
            ),
            &[
                "= id-1 A title",
                "9: assistant tool_call exec_command#tool-9: ls",
                "12: tool tool_result exec_command#tool-9: a.rs",
            ],
        );
    }

    #[test]
    fn older_tools_stand_between_rules() {
        check(
            "<!-- Generated by SpecStory -->\n\n<!-- cursor Session id-2 (2025-10-01 23:30Z) -->\n\n# It is broken (2025-10-01 23:30Z)\n\n\
             _**Assistant (model m, mode Agent)**_\n\n<think><details><summary>Thought Process</summary>hm</details></think>\n\n---\n\nI look.\n\n---\n\n\
             Tool use: **read_file**\n\nRead file: a.js\n\n---\n\nTool use: **run_terminal_cmd**\n\n```bash\ngrep x a.js\n```\n\n```\n1: x\n```\n\n---\n\nDone.\n\n---\n",
            &[
                "= id-2 It is broken",
                "13: assistant text: I look.",
                "17: assistant tool_call read_file#tool-17: Read file: a.js",
                "23: assistant tool_call run_terminal_cmd#tool-23: grep x a.js",
                "30: tool tool_result run_terminal_cmd#tool-23: 1: x",
                "35: assistant text: Done.",
            ],
        );
        let heading = heading("_**User (2025-12-03 05:21Z)**_").unwrap();
        assert_eq!(heading.at, Timestamp::parse("2025-12-03T05:21:00Z"));
    }

    #[test]
    fn a_summary_is_html() {
        check(
            &format!(
                "{HEAD}_**Agent (m)**_\n\n<tool-use data-tool-type=\"shell\" data-tool-name=\"cmd\">\n<details><summary>Tool use: **cmd** • Run command: a &amp;&amp; b</summary>\n\n```bash\na && b\n```\n\n```\nok\n```\n\n</details>\n</tool-use>\n\n<details><summary>Tool use: **code_edit** • Edit file: a.ts</summary>\n\n```diff\n+x\n```\n\n</details>\n\nDone.\n"
            ),
            &[
                "= id-1 A title",
                "9: assistant tool_call cmd#tool-9: a && b",
                "17: tool tool_result cmd#tool-9: ok",
                "23: assistant tool_call code_edit#tool-23: Edit file: a.ts\n\n```diff\n+x\n```",
                "31: assistant text: Done.",
            ],
        );
    }

    #[test]
    fn headings_in_fences_are_quotes() {
        check(
            &format!("{HEAD}_**Agent (m)**_\n\n```md\n_**User**_\n```\n"),
            &["= id-1 A title", "9: assistant text: ```md\n_**User**_\n```"],
        );
    }

    #[test]
    fn a_later_heading_ends_a_fence_without_end() {
        let turn =
            |who: &str, time: &str, text: &str| format!("_**{who} ({time}Z)**_\n\n{text}\n\n");
        let older = turn("User", "2026-01-02 03:04:04", "quoted");
        let first =
            format!("see\n\n```\n```json\n\n{older}as in\n_**User (2026-01-02 03:04:09Z)**_");
        let tool = format!(
            "<tool-use data-tool-type=\"read\" data-tool-name=\"Read\"><details>\n<summary>Tool use: **Read**</summary>\n\n```\n{older}"
        );
        let input = [
            HEAD,
            &turn("User", "2026-01-02 03:04:05", &first),
            &turn("Agent", "2026-01-02 03:04:06", &tool),
            &turn("Agent", "2026-01-02 03:04:06", "Done."),
        ]
        .concat();
        let quoted = older.trim_end();
        check(
            &input,
            &[
                "= id-1 A title",
                &format!(
                    "9: person prompt: see\n\n```\n```json\n\n{quoted}\n\nas in\n_**User (2026-01-02 03:04:09Z)**_"
                ),
                "23: assistant tool_call Read#tool-23: ",
                &format!("27: tool tool_result Read#tool-23: {quoted}"),
                "35: assistant text: Done.",
            ],
        );
    }

    #[test]
    fn a_fence_is_longer_than_those_in_its_text() {
        check(
            &format!(
                "{HEAD}_**Agent (m)**_\n\n<tool-use data-tool-type=\"read\" data-tool-name=\"Read\"><details>\n<summary>Tool use: **Read** `a.md`</summary>\n\n````md\n```\nx\n```\n</details></tool-use>\n````\n</details></tool-use>\n\nAfter.\n"
            ),
            &[
                "= id-1 A title",
                "9: assistant tool_call Read#tool-9: a.md",
                "13: tool tool_result Read#tool-9: ```\nx\n```\n</details></tool-use>",
                "20: assistant text: After.",
            ],
        );
    }

    #[test]
    fn the_input_of_an_unknown_tool_is_its_call() {
        check(
            &format!(
                "{HEAD}_**Agent (m)**_\n\n<tool-use data-tool-type=\"unknown\" data-tool-name=\"exec\"><details>\n<summary>Tool use: **exec**</summary>\nInput (truncated): ```\nrun()\n...\n```\n</details></tool-use>\n\nAfter.\n"
            ),
            &[
                "= id-1 A title",
                "9: assistant tool_call exec#tool-9: Input (truncated): ```\nrun()\n...\n```",
                "17: assistant text: After.",
            ],
        );
    }

    #[test]
    fn the_text_of_a_slash_command_is_the_clients() {
        let command = "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>12</command-args>";
        let at = |second: u8| format!("_**User (2026-01-02 03:04:0{second}Z)**_");
        check(
            &format!(
                "{HEAD}{}\n\n{command}\n\n{}\n\n## Context\n\n{}\n\ngo on\n\n{}\n\n{command}\n\n{}\n\nwait\n",
                at(5),
                at(5),
                at(5),
                at(6),
                at(7)
            ),
            &[
                "= id-1 A title",
                "9: person command: /review 12",
                "15: client injected: ## Context (injected context)",
                "19: person prompt: go on",
                "23: person command: /review 12",
                "29: person prompt: wait",
            ],
        );
    }

    #[test]
    fn a_sub_agent_is_not_the_person() {
        check(
            &format!("{HEAD}_**User - sidechain (2026-01-02 03:04:05Z)**_\n\nlook\n"),
            &["= id-1 A title", "9: client prompt sidechain: look"],
        );
    }

    #[test]
    fn damage_is_survived() {
        let input = format!(
            "{HEAD}_**Agent**_\n<think>\n</think>\n<tool-use data-tool-name=\"x\">\n```\na\n```\n</tool-use>\n"
        );
        testing::survives(read, input.as_bytes(), 1);
    }
}
