//! A tool's call and result as SpecStory renders them: a summary, what was asked, and in a fence what
//! came back.

use crate::domain::{EntryKind, LINE_BYTES_MAX, Speaker};
use crate::source::{RawEntry, outcome, tools};

/// Kinds of fences that show what was asked for, and not what came back.
const ASKED: [&str; 4] = ["diff", "bash", "sh", "powershell"];

/// A `<tool-use>` block being read.
pub(super) struct Toolbox {
    line: u32,
    name: String,
    shell: bool,
    /// Of the summary, what follows the tool's name.
    summary: String,
    asked: String,
    output: Option<Output>,
    /// Whether a fence that shows a change is open; it belongs to the call.
    in_change: bool,
    seen: u32,
    /// Whether the closing tag would be believed now.
    closable: bool,
    closing: &'static str,
}

struct Output {
    line: u32,
    text: String,
}

impl Toolbox {
    /// What a tool without tags begins with.
    pub(super) const PLAIN: &str = "Tool use: **";

    /// Begins a block, if the line does.
    pub(super) fn open(line: &str, number: u32) -> Option<Toolbox> {
        if let Some(summary) = line.strip_prefix("<details><summary>") {
            let (name, _) = summary.strip_prefix(Toolbox::PLAIN)?.split_once("**")?;
            let mut tool = Toolbox::new(name, number, "</details>");
            tool.summarise(line);
            return Some(tool);
        }
        let tag = line.strip_prefix("<tool-use")?;
        let attribute = |name: &str| {
            let (_, rest) = tag.split_once(&format!("{name}=\""))?;
            Some(rest.split_once('"')?.0)
        };
        let name = attribute("data-tool-name").unwrap_or("tool");
        let mut tool = Toolbox::new(name, number, "</tool-use>");
        tool.shell = attribute("data-tool-type") == Some("shell");
        Some(tool)
    }

    fn new(name: &str, line: u32, closing: &'static str) -> Toolbox {
        Toolbox {
            line,
            name: unquote(name),
            shell: false,
            summary: String::new(),
            asked: String::new(),
            output: None,
            in_change: false,
            seen: 0,
            closable: true,
            closing,
        }
    }

    /// Whether lines are printed by the tool now, so that nothing in them means anything.
    pub(super) fn in_output(&self) -> bool {
        self.in_change || (self.output.is_some() && !self.closable)
    }

    /// Takes the next line; says whether the block ends with it.
    pub(super) fn line(&mut self, line: &str) -> bool {
        self.seen += 1;
        // What a tool printed may hold the tag itself; the real one stands behind the fence.
        if self.closable && !self.in_change && line.trim_end().ends_with(self.closing) {
            return true;
        }
        if let Some(output) = &mut self.output {
            let blank = line.trim().is_empty() || line.trim() == "</details>";
            self.closable = line.trim_end() == "```" || (self.closable && blank);
            if output.text.len() + line.len() <= LINE_BYTES_MAX {
                output.text.push_str(line);
                output.text.push('\n');
            }
            return false;
        }
        self.before(line);
        false
    }

    /// A line before the output.
    fn before(&mut self, line: &str) {
        let fence = line.strip_prefix("```");
        if self.in_change {
            self.in_change = fence.is_none();
        } else if fence.is_some_and(|kind| ASKED.iter().any(|asked| kind.starts_with(asked))) {
            self.in_change = true;
        } else if fence.is_some_and(|kind| !kind.contains('`')) {
            self.output = Some(Output { line: self.line + self.seen + 1, text: String::new() });
            self.closable = false;
            return;
        }
        if line.contains("<summary>") {
            self.summarise(line);
        } else if !matches!(line.trim(), "<details>" | "</details>") {
            self.asked.push_str(line);
            self.asked.push('\n');
        }
    }

    fn summarise(&mut self, line: &str) {
        let Some((_, summary)) = line.split_once("<summary>") else { return };
        let summary = summary.split_once("</summary>").map_or(summary, |(summary, _)| summary);
        self.summary = unescape(rest_of_summary(summary));
    }

    /// The call, and the result if there is one.
    pub(super) fn entries(self) -> Vec<RawEntry> {
        let id = format!("tool-{}", self.line);
        let asked = unquote(self.asked.trim());
        let summary = self.summary;
        let fenced = script(&asked);
        let command = fenced.or_else(|| command(&summary)).or_else(|| command(&asked));
        let text = match (self.shell, command) {
            (true, Some(command)) => command.to_owned(),
            (_, _) if summary.is_empty() => bare(&asked).to_owned(),
            (_, _) if asked.is_empty() => bare(&summary).to_owned(),
            (_, _) => format!("{}\n\n{asked}", bare(&summary)),
        };
        let mut call = RawEntry::new(self.line, Speaker::Assistant, EntryKind::ToolCall, text);
        call.tool = Some(self.name.clone());
        call.call_id = Some(id.clone());
        let mut entries = vec![call];
        if let Some(output) = self.output {
            let text = output.text.trim_end();
            let text = text.strip_suffix("</details>").unwrap_or(text).trim_end();
            let text = unquote(text.strip_suffix("```").unwrap_or(text).trim_end());
            let speaker = if tools::is_web(&self.name) { Speaker::Web } else { Speaker::Tool };
            let mut result = RawEntry::new(output.line, speaker, EntryKind::ToolResult, text);
            (result.outcome, result.exit_code) = outcome::of_output(&result.text);
            result.tool = Some(self.name);
            result.call_id = Some(id);
            entries.push(result);
        }
        entries
    }

    /// Reads a whole message that is `Tool use: **name** …` without tags.
    pub(super) fn plain(words: &str, number: u32) -> Option<Vec<RawEntry>> {
        let rest = words.strip_prefix(Toolbox::PLAIN)?;
        let (name, rest) = rest.split_once("**")?;
        let mut tool = Toolbox::new(name, number, "</tool-use>");
        tool.shell = true;
        let (first, rest) = rest.split_once('\n').unwrap_or((rest, ""));
        tool.summary = unescape(first.trim());
        rest.lines().for_each(|line| {
            tool.line(line);
        });
        Some(tool.entries())
    }
}

/// What a summary says after `Tool use: **name**`.
fn rest_of_summary(summary: &str) -> &str {
    let rest = summary.trim().strip_prefix(Toolbox::PLAIN);
    let rest = rest.and_then(|rest| rest.split_once("**")).map_or(summary, |(_, rest)| rest);
    rest.trim().trim_start_matches('•').trim()
}

/// The command in a fence of its own.
fn script(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("```bash\n").or_else(|| text.split_once("```sh\n"))?;
    rest.split_once("\n```").map(|(script, _)| script)
}

/// The command between single backticks, which may itself hold some.
fn command(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('`')?;
    let (command, _) = rest.rsplit_once('`')?;
    (!command.trim().is_empty()).then_some(command)
}

/// A text without the backticks around it.
fn bare(text: &str) -> &str {
    text.strip_prefix('`').and_then(|text| text.strip_suffix('`')).unwrap_or(text)
}

/// The text with its backticks back: the one character that SpecStory hides from Markdown.
fn unquote(text: &str) -> String {
    text.replace("&#96;", "`")
}

/// A summary stands inside HTML and is escaped as such.
fn unescape(text: &str) -> String {
    const ESCAPED: [(&str, &str); 5] =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    let text = unquote(text);
    ESCAPED.iter().fold(text, |text, (escaped, plain)| text.replace(escaped, plain))
}
