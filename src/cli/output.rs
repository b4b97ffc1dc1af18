//! How results and errors are printed. A reader that goes away ends the printing, not the work.

use crate::config::ConfigError;
use crate::edge::store::{StoreError, StoreErrorKind};
use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, Table, presets};
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Something failed and is listed.
pub(super) const FAILED: u8 = 1;
/// Wrong usage or configuration.
pub(super) const USAGE: u8 = 2;

/// For what is wrong.
pub(super) const RED: Style = AnsiColor::Red.on_default().bold();
/// For what needs a look.
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default();
/// For what is well.
pub(super) const GREEN: Style = AnsiColor::Green.on_default();
/// For what matters less.
pub(super) const DIM: Style = Style::new().dimmed();
/// For headings.
pub(super) const BOLD: Style = Style::new().bold();

/// Why a command ended without a result: one line, and the exit code.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) line: String,
    pub(super) code: u8,
}

impl Failure {
    /// Wrong usage or configuration.
    pub(super) fn usage(line: impl Into<String>) -> Failure {
        Failure { line: line.into(), code: USAGE }
    }

    /// Something failed.
    pub(super) fn failed(line: impl Into<String>) -> Failure {
        Failure { line: line.into(), code: FAILED }
    }

    /// Prints the line and gives the exit code.
    pub(super) fn report(self) -> ExitCode {
        if !self.line.is_empty() {
            note(&format!("{RED}error:{RED:#} {}", self.line));
        }
        ExitCode::from(self.code)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        // The reader has seen enough.
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
        let line = chain(&error);
        let usage = matches!(error.kind, StoreErrorKind::Missing | StoreErrorKind::BadUrl(_));
        if usage { Failure::usage(line) } else { Failure::failed(line) }
    }
}

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(&format!(": {error}"));
        cause = error.source();
    }
    line.replace('\n', " ")
}

/// Prints a result.
pub(super) fn line(text: &str) -> Result<(), Failure> {
    writeln!(anstream::stdout().lock(), "{text}")?;
    Ok(())
}

/// Prints a result as it is.
pub(super) fn bytes(bytes: &[u8]) -> Result<ExitCode, Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a value as JSON.
pub(super) fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value);
    line(&text.map_err(|error| Failure::failed(format!("cannot print: {error}")))?)
}

/// Prints what is no result.
pub(super) fn note(text: &str) {
    // Nothing can be said about a stderr that is gone.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Whether a person looks at stderr.
pub(super) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// A table without lines, as wide as the terminal at most; elsewhere a row is one line, however long.
pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if let Some((width, _)) = terminal_size::terminal_size_of(io::stdout()) {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width.0);
    }
    if !header.is_empty() {
        table.set_header(header.iter().map(|name| name.to_uppercase()));
    }
    table
}

/// A table of which a terminal sees every row on one line: where it is too narrow, columns go in the
/// order of `spare`, then the paths in column `path` lose their beginnings.
pub(super) fn fitted(
    header: &[&str],
    mut rows: Vec<Vec<String>>,
    path: usize,
    spare: &[usize],
) -> Table {
    let mut gone = Vec::new();
    if let Some((width, _)) = terminal_size::terminal_size_of(io::stdout()) {
        let letters = fit(header, &rows, path, (spare, usize::from(width.0)), &mut gone);
        rows.iter_mut().filter_map(|row| row.get_mut(path)).for_each(|it| *it = tail(it, letters));
    }
    let kept = |at: &usize| !gone.contains(at);
    let header: Vec<&str> = (0..header.len()).filter(kept).map(|at| header[at]).collect();
    let mut table = table(&header);
    for row in rows {
        table.add_row(row.into_iter().enumerate().filter(|(at, _)| kept(at)).map(|(_, it)| it));
    }
    table
}

/// Letters that are left for paths; adds columns to `gone` until that is enough to tell files apart.
fn fit(
    header: &[&str],
    rows: &[Vec<String>],
    path: usize,
    (spare, width): (&[usize], usize),
    gone: &mut Vec<usize>,
) -> usize {
    /// Letters of a path that a narrow terminal still shows.
    const PATH_LETTERS_MIN: usize = 16;
    /// Blanks beside each column.
    const BLANKS: usize = 2;
    let letters = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
        cells.chain([header[at].len()]).max().unwrap_or_default() + BLANKS
    };
    let mut others: usize = (0..header.len()).filter(|at| *at != path).map(letters).sum();
    let least = letters(path).min(PATH_LETTERS_MIN + BLANKS);
    for at in spare {
        if others + least <= width {
            break;
        }
        others -= letters(*at);
        gone.push(*at);
    }
    width.saturating_sub(others + BLANKS).max(PATH_LETTERS_MIN)
}

/// A table as text, without blanks at line ends.
pub(super) fn print_table(table: &Table) -> Result<(), Failure> {
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    line(&lines.join("\n"))
}

/// A number with its thousands parted.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut parted = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            parted.push(',');
        }
        parted.push(digit);
    }
    parted
}

/// A number of things, by the name of one of them; its plural is regular or ends in `ies`.
pub(super) fn counted(number: u64, name: &str) -> String {
    let number_of = count(number);
    match (number, name.strip_suffix("try")) {
        (1, _) => format!("{number_of} {name}"),
        (_, Some(stem)) => format!("{number_of} {stem}tries"),
        (_, None) => format!("{number_of} {name}s"),
    }
}

/// The first line of a text, cut to `letters`.
pub(super) fn shorten(text: &str, letters: usize) -> String {
    let line = text.split('\n').next().unwrap_or_default();
    match line.char_indices().nth(letters) {
        None if line.len() == text.len() => line.to_owned(),
        None => format!("{line}…"),
        Some((at, _)) => format!("{}…", &line[..at]),
    }
}

/// The first digits of an id: enough to find it again.
pub(super) fn short(id: &impl ToString) -> String {
    id.to_string().chars().take(10).collect()
}

/// The end of a path, which tells files apart.
pub(super) fn tail(path: &str, letters: usize) -> String {
    match path.chars().count().checked_sub(letters) {
        None | Some(0) => path.to_owned(),
        Some(cut) => format!("…{}", path.chars().skip(cut + 1).collect::<String>()),
    }
}

/// How long something lasts, in the largest unit of which there are two.
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
    fn narrow_terminals_lose_spare_columns_first_and_then_the_beginnings_of_paths() {
        let header = ["id", "path", "tokens", "age"];
        let row = ["3fa9", "sessions/2026/rollout-one.jsonl", "12,345", "3 min"];
        let rows = vec![row.map(str::to_owned).to_vec()];
        let fit = |width| {
            let mut gone = Vec::new();
            (fit(&header, &rows, 1, (&[2, 3], width), &mut gone), gone)
        };
        // 6 for the id, 8 for the tokens, 7 for the age, 2 beside the path.
        assert_eq!(fit(54), (31, vec![]));
        assert_eq!(fit(39), (16, vec![]));
        assert_eq!(fit(38), (23, vec![2]));
        assert_eq!(fit(30), (22, vec![2, 3]));
        assert_eq!(fit(10), (16, vec![2, 3]));
    }

    #[test]
    fn what_lasts_is_told_in_the_largest_unit_of_which_there_are_two() {
        let told = |secs| lasting(Duration::from_secs(secs));
        let all = [0, 119, 120, 7_199, 7_200, 172_799, 172_800, 999_999_999].map(told);
        assert_eq!(all, ["0 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 d", "11,574 d"]);
    }
}
