//! Rows of commands, as a table that fits the terminal and as JSON.

use super::output::{self, Failure, commas, json, note, tail, window};
use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use textwrap::core::Word;
use textwrap::{Options, WordSeparator};

/// Defines a JSON object with the type and the value of each field, and `of`, which makes it.
macro_rules! json_row {
    ($(#[$doc:meta])* $vis:vis struct $name:ident $(<$a:lifetime>)? of $it:ident: $source:ty {
        $($(#[$field_doc:meta])* $field_vis:vis $field:ident: $type:ty = $value:expr,)*
    }) => {
        $(#[$doc])*
        #[derive(schemars::JsonSchema, serde::Serialize)]
        $vis struct $name $(<$a>)? { $($(#[$field_doc])* $field_vis $field: $type,)* }

        impl $(<$a>)? $name $(<$a>)? {
            $vis fn of($it: $source) -> Self {
                $name { $($field: $value,)* }
            }
        }
    };
}
pub(super) use json_row;

/// Row of a table, and element of the same list as JSON.
pub(super) trait Row: serde::Serialize {
    const HEADER: &'static [&'static str];
    /// Columns that a narrow terminal drops, in this order.
    const SPARE: &'static [usize] = &[];

    fn cells(&self) -> Vec<String>;
}

/// Prints rows as a JSON array or as a table; `empty` is the note for no rows.
pub(super) fn rows<R: Row>(rows: &[R], as_json: bool, empty: &str) -> Result<(), Failure> {
    if as_json {
        return json(&rows);
    }
    if rows.is_empty() {
        note(empty);
        return Ok(());
    }
    let cells: Vec<Vec<String>> = rows.iter().map(R::cells).collect();
    let last = R::HEADER.len().saturating_sub(1);
    let dropped = window().map_or(0, |(width, _)| {
        let words = Wide { least: WORDS_MIN, ..Wide::paths(last) };
        fit(&columns(R::HEADER, &cells), words, R::SPARE, width).0
    });
    let gone = &R::SPARE[..dropped];
    print_table(&without(R::HEADER, cells, gone))
}

fn columns(header: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let letters = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
        cells.chain([header[at].len()]).max().unwrap_or_default()
    };
    (0..header.len()).map(letters).collect()
}

/// Builds a table without the columns `gone`.
fn without(header: &[&str], rows: Vec<Vec<String>>, gone: &[usize]) -> Table {
    let kept = |at: &usize| !gone.contains(at);
    let header: Vec<&str> = (0..header.len()).filter(kept).map(|at| header[at]).collect();
    let mut table = table(&header);
    for row in rows {
        table.add_row(row.into_iter().enumerate().filter(|(at, _)| kept(at)).map(|(_, it)| it));
    }
    table
}

/// Prints names with their values; omits those without a value.
pub(super) fn pairs<N: Into<String>>(
    pairs: impl IntoIterator<Item = (N, String)>,
) -> Result<(), Failure> {
    let mut table = table(&[]);
    let filled = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    table.add_rows(filled.map(|(name, value)| [name.into(), value]));
    print_table(&table)
}

/// Creates a borderless table, no wider than the terminal; without a terminal a row is one line.
pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if let Some((width, _)) = window() {
        let width = u16::try_from(width).unwrap_or(u16::MAX);
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    if !header.is_empty() {
        table.set_header(header.iter().map(|name| name.to_uppercase()));
    }
    table
}

/// Builds a table that fits the terminal. If it is too wide, drops columns in the order of `spare`, then narrows the
/// cells of `wide`, and only then others.
pub(super) fn fitted(
    header: &[&str],
    mut rows: Vec<Vec<String>>,
    wide: Wide,
    spare: &[usize],
) -> Table {
    let mut gone = &[][..];
    if let Some((width, _)) = window() {
        let (dropped, letters) = fit(&columns(header, &rows), wide, spare, width);
        gone = &spare[..dropped];
        rows.iter_mut()
            .filter_map(|row| row.get_mut(wide.column))
            .for_each(|it| *it = (wide.narrowed)(it, letters));
    }
    if !gone.is_empty() {
        let names = commas(gone.iter().map(|at| header[*at].to_uppercase()));
        note(&format!("a wider terminal shows {names} too"));
    }
    let mut table = without(header, rows, gone);
    let before = gone.iter().filter(|at| **at < wide.column).count();
    if let Some(column) = table.column_mut(wide.column - before) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    table
}

const PATH_LETTERS_MIN: usize = 16;
const NAME_LETTERS_MIN: usize = 32;
const WORDS_MIN: usize = 44;

/// Column that can be narrowed, with its minimum width and the function that shortens a cell.
#[derive(Clone, Copy)]
pub(super) struct Wide {
    column: usize,
    least: usize,
    narrowed: fn(&str, usize) -> String,
}

impl Wide {
    /// Paths, shortened at the start.
    pub(super) fn paths(column: usize) -> Wide {
        Wide { column, least: PATH_LETTERS_MIN, narrowed: tail }
    }

    /// Names, wrapped at hyphens and slashes.
    pub(super) fn names(column: usize) -> Wide {
        Wide { column, least: NAME_LETTERS_MIN, narrowed: wrapped }
    }
}

fn wrapped(name: &str, letters: usize) -> String {
    fn pieces(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
        Box::new(line.split_inclusive(['/', '-', ' ']).map(Word::from))
    }
    let options = Options::new(letters).word_separator(WordSeparator::Custom(pieces));
    textwrap::fill(name, options)
}

/// Returns the number of `spare` columns to drop for a table of `width`, and the letters left for `wide`.
fn fit(columns: &[usize], wide: Wide, spare: &[usize], width: usize) -> (usize, usize) {
    const BLANKS: usize = 2;
    let Wide { column, least, .. } = wide;
    let all: usize = columns.iter().map(|letters| letters + BLANKS).sum();
    let mut others = all - (columns[column] + BLANKS);
    let least_column = columns[column].min(least) + BLANKS;
    let mut dropped = 0;
    while let Some(at) = spare.get(dropped).filter(|_| others + least_column > width) {
        others -= columns[*at] + BLANKS;
        dropped += 1;
    }
    (dropped, width.saturating_sub(others + BLANKS).max(least))
}

/// Prints a table without trailing blanks.
pub(super) fn print_table(table: &Table) -> Result<(), Failure> {
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    output::unbroken(&lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_terminals_drop_spare_columns_and_then_the_beginnings_of_paths() {
        // Columns: id, path, tokens, age.
        let wide = Wide::paths(1);
        let fit = |width| fit(&[4, 31, 6, 5], wide, &[2, 3], width);
        assert_eq!(fit(54), (0, 31));
        assert_eq!(fit(39), (0, 16));
        assert_eq!(fit(38), (1, 23));
        assert_eq!(fit(30), (2, 22));
        assert_eq!(fit(10), (2, 16));
    }

    #[test]
    fn narrow_terminals_show_whole_names_that_break_behind_hyphens() {
        // Columns: name, outcome, then numbers.
        let fit = |width| fit(&[27, 7, 10, 10, 12, 8, 10], Wide::names(0), &[4, 5], width);
        assert_eq!((fit(100), fit(80), fit(70).1), ((0, 32), (2, 33), 32));
        let name = "decisions/ADR-002-quarantine-upload-spec-ts.md";
        let broken = "decisions/ADR-002-quarantine-\nupload-spec-ts.md";
        assert_eq!((Wide::names(0).narrowed)(name, 32), broken);
    }
}
