//! Printing of results and errors. If the reader disconnects, printing stops but the work goes on.

pub(super) use super::table::{Row, Wide, fitted, pairs, print_table, rows, table};
use crate::adapters::clock;
use crate::config::ConfigError;
use crate::domain::Timestamp;
use crate::pipeline::{FileProblem, FindingPlace, LookupError, SyncError, Totals};
use crate::privacy::{Gate, Only};
pub(super) use crate::rows::json_row;
use crate::store::{StoreError, StoreErrorKind};
use crate::text::phrase::with_causes;
pub(super) use crate::text::phrase::{commas, count, counted};
use crate::text::{terminal, truncate};
use crate::transcripts::DetectError;
use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// Exit code for failures, which are listed.
pub(super) const FAILED: u8 = 1;
/// Exit code for wrong usage or configuration.
pub(super) const USAGE: u8 = 2;

/// Maximum files without entries to list; the rest are counted.
const EMPTY_LISTED_MAX: usize = 5;
const PROBLEMS_LISTED_MAX: usize = 20;
/// Maximum number of lines with findings to print.
const PLACES_LISTED_MAX: usize = 5;

pub(super) const RED: Style = AnsiColor::Red.on_default().bold();
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(super) const GREEN: Style = AnsiColor::Green.on_default();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const BOLD: Style = Style::new().bold();

thread_local! {
    /// Buffered output of a command that may be long.
    static PAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

pub(super) type Result<T, E = Failure> = std::result::Result<T, E>;

#[derive(Debug)]
pub(super) struct Failure {
    pub(super) line: String,
    pub(super) code: u8,
}

impl Failure {
    pub(super) fn usage(line: impl Into<String>) -> Failure {
        Failure { line: line.into(), code: USAGE }
    }

    pub(super) fn failed(line: impl Into<String>) -> Failure {
        Failure { line: line.into(), code: FAILED }
    }

    /// Prints the line, unless the failures were printed already.
    pub(super) fn report(self) -> ExitCode {
        if !self.line.is_empty() {
            // A path or another argument that it repeats may hold a secret.
            note(&error(Gate::new(&[]).only(Only::Secrets).redact(&self.line).as_str()));
        }
        ExitCode::from(self.code)
    }
}

/// Exits with [`FAILED`] if `failed`; the failures were printed already.
pub(super) fn fail_if(failed: bool) -> Result<()> {
    if failed { Err(Failure::failed("")) } else { Ok(()) }
}

pub(super) fn error(text: &str) -> String {
    format!("{RED}error:{RED:#} {text}")
}

pub(super) fn unwritable(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::failed(format!("{}: cannot be written: {error}", path.display()))
}

pub(super) fn unreadable(name: impl Display) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::failed(format!("{name}: cannot be read: {error}"))
}

/// Failure because another process holds the lease of a namespace.
pub(super) fn busy(namespaces: &[&str]) -> Failure {
    let names = namespaces.join("` or `");
    Failure::failed(format!(
        "namespace `{names}`: another process is changing its memory; nothing was changed; \
         try again"
    ))
}

/// Notes files that could not be read, that have no entries, and those that are not read.
pub(super) fn note_files(
    problems: &[FileProblem],
    empty: &[FileProblem],
    not_read: &BTreeMap<&'static str, u64>,
) {
    let lines = problems.iter().map(|it| error(&format!("{}: {}", it.path, it.problem)));
    notes(lines, PROBLEMS_LISTED_MAX, "more files");
    let lines =
        empty.iter().map(|it| format!("{YELLOW}no entries:{YELLOW:#} {}: {}", it.path, it.problem));
    notes(lines, EMPTY_LISTED_MAX, "more files without entries");
    for (reason, files) in not_read {
        note(&format!("{YELLOW}not read:{YELLOW:#} {}: {reason}", counted(*files, "file")));
    }
}

pub(super) fn note_places(places: &[FindingPlace]) {
    let place = |it: &FindingPlace| {
        let line = if it.line > 0 { format!(":{}", it.line) } else { String::new() };
        format!("{}{line}: {}: {}", it.path, it.rule, it.detail)
    };
    notes(places.iter().map(place), PLACES_LISTED_MAX, "more findings: --json");
}

/// Notes that none of the `files` files in `paths` is a transcript.
pub(super) fn no_transcript(paths: &[PathBuf], files: u64) {
    let paths = commas(paths.iter().map(|it| it.display().to_string()));
    let mend = "--format FORMAT sets the format of a named file";
    note(&error(&match files {
        0 => format!("{paths}: there are no files to read"),
        _ => {
            let (files, why) = (counted(files, "file"), DetectError::Nothing);
            format!("{paths}: nothing was read from {files}: {why}; {mend}")
        }
    }));
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        // The reader closed the pipe.
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure { line: String::new(), code: 0 };
        }
        Failure::failed(format!("cannot print: {error}"))
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        let is_usage = matches!(error.kind, StoreErrorKind::BadUrl(_));
        Failure { line: with_causes(&error), code: if is_usage { USAGE } else { FAILED } }
    }
}

impl From<SyncError> for Failure {
    fn from(error: SyncError) -> Failure {
        match error {
            SyncError::Store(error) => error.into(),
            error @ SyncError::OtherNamespace { .. } => Failure::usage(error.to_string()),
            error @ (SyncError::Disk { .. } | SyncError::Busy(_)) => {
                Failure::failed(with_causes(&error))
            }
        }
    }
}

impl From<LookupError> for Failure {
    fn from(error: LookupError) -> Failure {
        match error {
            LookupError::Name(line) => Failure::usage(line),
            LookupError::Store(error) => error.into(),
        }
    }
}

/// Prints a result, wrapped at word boundaries on a terminal.
pub(super) fn line(text: &str) -> Result<()> {
    unbroken(&wrapped(text, window().map(|(width, _)| width)))
}

/// Prints lines without wrapping. Does nothing once the reader has closed the pipe, since most commands have more to do
/// than to print.
pub(super) fn unbroken(text: &str) -> Result<()> {
    if hold(text) {
        return Ok(());
    }
    match writeln!(anstream::stdout().lock(), "{}", terminal::shown(text)) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Wraps the text of a column that begins after `indent` letters, on a terminal.
pub(super) fn hanging(text: &str, indent: usize) -> String {
    let width = window().map(|(width, _)| width.saturating_sub(indent + 1));
    match width.filter(|width| *width >= indent) {
        Some(width) => textwrap::fill(text, width).replace('\n', &format!("\n{:indent$}", "")),
        None => text.to_owned(),
    }
}

/// Wraps lines at `width`, except within words. Continuation lines are indented further.
fn wrapped(text: &str, width: Option<usize>) -> String {
    const FURTHER: usize = 2;
    let Some(width) = width else { return text.to_owned() };
    let wrap = |line: &str| {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        let indent = " ".repeat(blanks.min(width / 2) + FURTHER);
        let splitter = textwrap::WordSplitter::Custom(hyphens_of_long);
        let options = textwrap::Options::new(width).word_splitter(splitter);
        textwrap::fill(line, options.subsequent_indent(&indent).break_words(false))
    };
    text.split('\n').map(wrap).collect::<Vec<_>>().join("\n")
}

/// Places behind the hyphens of a word that no line of most terminals holds. Shorter paths and commands must stay
/// copyable.
fn hyphens_of_long(word: &str) -> Vec<usize> {
    const LETTERS: usize = 78;
    let hyphens = word.match_indices('-').map(|(at, _)| at + 1);
    if word.chars().count() < LETTERS { Vec::new() } else { hyphens.collect() }
}

/// Columns and rows of the terminal, if stdout is one.
pub(super) fn window() -> Option<(usize, usize)> {
    let (width, height) = terminal_size::terminal_size_of(io::stdout())?;
    Some((width.0.into(), height.0.into()))
}

/// Runs a command that only prints, through a pager if its output does not fit on the terminal.
pub(super) async fn in_pages(command: impl Future<Output = Result<()>>) -> Result<()> {
    let Some((_, height)) = window() else { return command.await };
    PAGE.set(Some(String::new()));
    let result = command.await;
    let page = PAGE.take().unwrap_or_default();
    let is_long = height <= page.lines().count();
    let is_shown = page.is_empty() || is_long && show_in_pager(&page)?;
    if !is_shown {
        unbroken(page.trim_end())?;
    }
    result
}

/// Prints a text, through a pager if it does not fit on the terminal.
pub(super) async fn paged(text: &str) -> Result<()> {
    in_pages(async { line(text.trim_end()) }).await
}

/// Appends a line to the buffer; false if output is not buffered.
fn hold(text: &str) -> bool {
    PAGE.with_borrow_mut(|page| page.as_mut().map(|page| page.extend([text, "\n"])).is_some())
}

/// True if stdout shows styles; without them, text needs marks.
pub(super) fn has_styles() -> bool {
    anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

/// Shows a text in the pager; false if there is none.
fn show_in_pager(text: &str) -> io::Result<bool> {
    let named = std::env::var_os("PAGER").and_then(|pager| pager.into_string().ok());
    if named.as_ref().is_some_and(|pager| pager.trim().is_empty()) {
        return Ok(false);
    }
    let pager = named.unwrap_or_else(|| "less -FRX".to_owned());
    let started = Command::new("sh").args(["-c", &pager]).stdin(Stdio::piped()).spawn();
    let Ok(mut child) = started else { return Ok(false) };
    if let Some(mut stdin) = child.stdin.take() {
        let mut text = terminal::shown(text);
        if !has_styles() {
            text = anstream::adapter::strip_str(&text).to_string();
        }
        // Fails if the user quits the pager early.
        let _ = stdin.write_all(text.as_bytes());
    }
    Ok(child.wait()?.success())
}

/// Prints bytes unchanged; on a terminal, control characters are made visible. Fails once the reader has closed the pipe,
/// which ends the command.
pub(super) fn bytes(bytes: &[u8]) -> Result<()> {
    let text = String::from_utf8_lossy(bytes);
    if hold(text.strip_suffix('\n').unwrap_or(&text)) { Ok(()) } else { unpaged(bytes) }
}

fn unpaged(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.is_terminal() {
        true => out.write_all(terminal::shown(&String::from_utf8_lossy(bytes)).as_bytes())?,
        false => out.write_all(bytes)?,
    }
    Ok(out.flush()?)
}

/// Prints a value as JSON, never through the pager.
pub(super) fn json(value: &impl serde::Serialize) -> Result<()> {
    if let Some(held) = PAGE.take().filter(|held| !held.is_empty()) {
        note(held.trim_end());
    }
    unbroken(&terminal::json(&serde_json::to_string_pretty(value).map_err(io::Error::from)?))
}

/// Prints a value as one line of JSON, without stripping what looks like colours, never through the pager.
pub(super) fn json_line(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string(value).map_err(io::Error::from)?;
    unpaged(format!("{}\n", terminal::json(&text)).as_bytes())
}

pub(super) fn note(text: &str) {
    // If stderr is closed, there is no place for an error message.
    let width = terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| width.0.into());
    let text = wrapped(text, width);
    // Keeps the note in order with the lines of the page.
    if width.is_some() && hold(&text) {
        return;
    }
    let _ = writeln!(anstream::stderr().lock(), "{}", terminal::shown(&text));
}

pub(super) fn warning(text: &str) -> String {
    format!("{YELLOW}warning:{YELLOW:#} {text}")
}

/// Prints a line on stderr in place of the progress line.
pub(super) fn note_over_progress(text: &str) {
    if is_watched() {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    note(text);
}

pub(super) fn warn_of_empty_answers(totals: &Totals) {
    if totals.only_empty_answers() {
        note(&warning(&format!(
            "the model found nothing in any of {} slices; \
             `annalist doctor` checks whether it can use the tool",
            count(totals.slices_extracted)
        )));
    }
}

pub(super) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

pub(super) fn time(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}

/// Notes the first `most` lines and counts the others, with a text such as `more findings: --json`.
pub(super) fn notes(lines: impl ExactSizeIterator<Item = String>, most: usize, more: &str) {
    let rest = lines.len().saturating_sub(most);
    lines.take(most).for_each(|line| note(&line));
    if rest > 0 {
        note(&format!("and {} {more}", count(rest as u64)));
    }
}

/// Number in parentheses, such as ` (7 from the journal)`; empty for zero.
pub(super) fn remark(number: u64, what: &str) -> String {
    if number == 0 { String::new() } else { format!(" ({} {what})", count(number)) }
}

/// Counts by name, such as `7 add, 1 merge`; omits zeros.
pub(super) fn numbers<N: AsRef<str>>(by_name: impl IntoIterator<Item = (N, u64)>) -> String {
    let numbers = by_name.into_iter().filter(|(_, number)| *number > 0);
    commas(numbers.map(|(name, number)| format!("{} {}", count(number), name.as_ref())))
}

/// Counts by rule, such as `email 7, path 1`.
pub(super) fn rules<N: AsRef<str>>(by_rule: impl IntoIterator<Item = (N, u64)>) -> String {
    let by_rule = by_rule.into_iter();
    commas(by_rule.map(|(rule, times)| format!("{} {}", rule.as_ref(), count(times))))
}

pub(super) fn dollars(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// Cost so far for a progress line, such as `, $0.12`; empty if zero or unknown.
pub(super) fn spent(cost: Option<f64>) -> String {
    cost.filter(|cost| *cost > 0.0).map(|cost| format!(", ${cost:.2}")).unwrap_or_default()
}

/// Cost after other numbers, such as `, $0.0120`; empty if zero, which includes unknown prices.
pub(super) fn paid(micros: u64) -> String {
    if micros == 0 { String::new() } else { format!(", ${:.4}", dollars(micros)) }
}

/// Truncates a text to its first line, and to the whole words within `letters`.
pub(super) fn shorten(text: &str, letters: usize) -> String {
    let line = text.split('\n').next().unwrap_or_default();
    let head = truncate::words_within(line, letters);
    if head.len() == text.len() { head.to_owned() } else { format!("{head}…") }
}

/// Local day of a time, or a dash if there is none.
pub(super) fn day(at: Option<&str>) -> String {
    at.and_then(Timestamp::of_rfc3339).map_or_else(|| "–".to_owned(), clock::local_day)
}

/// First digits of an id; enough to look it up.
pub(super) fn short(id: &impl ToString) -> String {
    id.to_string().chars().take(10).collect()
}

/// Truncates a path at the start, since the end tells files apart.
pub(super) fn tail(path: &str, letters: usize) -> String {
    match path.chars().count().checked_sub(letters) {
        None | Some(0) => path.to_owned(),
        Some(cut) => format!("…{}", path.chars().skip(cut + 1).collect::<String>()),
    }
}

/// Duration in the largest unit of which there are at least two.
pub(super) fn lasting(it: Duration) -> String {
    let secs = it.as_secs();
    let unit = [(86_400, "d"), (3_600, "h"), (60, "min")].into_iter().find(|it| 2 * it.0 <= secs);
    let (unit, name) = unit.unwrap_or((1, "s"));
    format!("{} {name}", count(secs / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_go_on_further_in() {
        let styled = "\x1b[31mfailed\x1b[0m at /a/long/path/of/a/file";
        let text = format!("one two three\n    four five six\n{styled}");
        let page = "one two\n  three\n    four\n      five\n      six\n\
                    \x1b[31mfailed\x1b[0m at\n  /a/long/path/of/a/file";
        assert_eq!((wrapped(&text, Some(11)).as_str(), wrapped(&text, None)), (page, text));
    }

    #[test]
    fn only_words_that_no_line_holds_break_at_their_hyphens() {
        let path = format!("decisions/ADR-003-{}-in-the-nightly.md", "quarantine".repeat(5));
        let page = wrapped(&format!("+ {path}:12"), Some(80));
        assert_eq!(page, format!("+ {}\n  nightly.md:12", &path[..path.len() - 10]));
        assert_eq!(wrapped("+ a-long-path.md", Some(10)), "+\n  a-long-path.md");
    }

    #[test]
    fn lines_are_held_while_there_is_a_page_and_in_their_order() {
        assert!(!hold("before"));
        PAGE.set(Some(String::new()));
        assert!(hold("one") && hold("two"));
        assert_eq!(PAGE.take().unwrap(), "one\ntwo\n");
        assert!(!hold("after"));
    }

    #[test]
    fn texts_are_shortened_between_words() {
        assert_eq!(shorten("quarantine the flaky test", 16), "quarantine the…");
        assert_eq!(shorten("quarantine", 5), "quara…");
        assert_eq!(shorten("one line\nand another", 16), "one line…");
    }

    #[test]
    fn durations_have_the_largest_unit_that_fits_twice() {
        let printed = |secs| lasting(Duration::from_secs(secs));
        let all = [0, 119, 120, 7_199, 7_200, 172_799, 172_800, 999_999_999].map(printed);
        assert_eq!(all, ["0 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 d", "11,574 d"]);
    }
}
