//! Rows of commands, as a table that fits the terminal and as JSON.

use super::output::{self, Result, commas, json, note, tail, window};
use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};

/// Row of a table, and element of the same list as JSON.
pub(super) trait Row: serde::Serialize {
    const HEADER: &'static [&'static str];
    /// Columns that a narrow terminal hides, in this order.
    const SPARE: &'static [usize] = &[];

    fn cells(&self) -> Vec<String>;
}

/// Prints rows as a JSON array or as a table; `empty` is the note for no rows.
pub(super) fn rows<R: Row>(rows: &[R], as_json: bool, empty: &str) -> Result<()> {
    if as_json {
        return json(&rows);
    }
    if rows.is_empty() {
        note(empty);
        return Ok(());
    }
    let cells: Vec<Vec<String>> = rows.iter().map(R::cells).collect();
    let last = R::HEADER.len().saturating_sub(1);
    let room = window().map_or(usize::MAX, |(width, _)| width);
    let table = fitted(R::HEADER, folded(&cells, room), Wide::words(last), R::SPARE);
    print_table(&table)
}

/// Rows with long phrases wrapped, if they are wider than `room`: the last cell, a sentence, gets what that leaves.
fn folded(rows: &[Vec<String>], room: usize) -> Vec<Vec<String>> {
    let is_wide =
        rows.iter().any(|row| room < row.iter().map(|it| it.chars().count() + 2).sum::<usize>());
    let options = textwrap::Options::new(PHRASE_LETTERS_MAX)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    let mut rows = rows.to_vec();
    for row in rows.iter_mut().filter(|_| is_wide) {
        let phrases = row.len().saturating_sub(1);
        row.iter_mut().take(phrases).for_each(|it| *it = textwrap::fill(it, &options));
    }
    rows
}

/// Prints names with their values; omits those without a value.
pub(super) fn pairs<N: Into<String>>(pairs: impl IntoIterator<Item = (N, String)>) -> Result<()> {
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

/// Builds a table that fits the terminal. If it is too wide, hides columns in the order of `spare` and says so, then
/// narrows the cells of `wide`, and only then others.
pub(super) fn fitted(
    header: &[&str],
    mut rows: Vec<Vec<String>>,
    wide: Wide,
    spare: &[usize],
) -> Table {
    let mut whole = table(header);
    whole.add_rows(rows.clone());
    let Some((width, _)) = window() else { return whole };
    let (hidden, letters) = fit(&whole.column_max_content_widths(), wide, spare, width);
    for cell in rows.iter_mut().filter_map(|row| row.get_mut(wide.column)) {
        *cell = (wide.narrowed)(cell, letters);
    }
    let mut table = table(header);
    table.add_rows(rows);
    for column in &spare[..hidden] {
        table.column_mut(*column).map(|it| it.set_constraint(ColumnConstraint::Hidden));
    }
    if hidden > 0 {
        let names = commas(spare[..hidden].iter().map(|at| header[*at].to_uppercase()));
        note(&format!("a wider terminal shows {names} too"));
    }
    table
}

const PATH_LETTERS_MIN: usize = 16;
/// Maximum width of a phrase beside a sentence: `superseded by` or `possibly done by`.
const PHRASE_LETTERS_MAX: usize = 16;
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

    /// Names, wrapped at hyphens.
    pub(super) fn names(column: usize) -> Wide {
        Wide {
            column,
            least: NAME_LETTERS_MIN,
            narrowed: |name, letters| textwrap::fill(name, letters),
        }
    }

    /// Sentences, wrapped by the table.
    fn words(column: usize) -> Wide {
        Wide { column, least: WORDS_MIN, narrowed: |text, _| text.to_owned() }
    }
}

/// Returns the number of `spare` columns to hide for a table of `width`, and the letters left for `wide`.
fn fit(columns: &[u16], wide: Wide, spare: &[usize], width: usize) -> (usize, usize) {
    const BLANKS: usize = 2;
    let letters = |at: usize| usize::from(columns[at]);
    let mut others = (0..columns.len()).map(|at| letters(at) + BLANKS).sum::<usize>();
    others -= letters(wide.column);
    let least = letters(wide.column).min(wide.least);
    let mut hidden = 0;
    while let Some(at) = spare.get(hidden).filter(|_| others + least > width) {
        others -= letters(*at) + BLANKS;
        hidden += 1;
    }
    (hidden, width.saturating_sub(others).max(wide.least))
}

/// Prints a table without trailing blanks.
pub(super) fn print_table(table: &Table) -> Result<()> {
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    output::unbroken(&lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_terminals_hide_spare_columns_and_then_the_beginnings_of_paths() {
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
    fn narrow_terminals_wrap_phrases_for_the_sake_of_the_sentence() {
        let row = ["02f74c9809", "superseded by src-1b0c22d4", "Log each retry"];
        let rows = [row.map(str::to_owned).to_vec()];
        assert_eq!(folded(&rows, 56), rows);
        assert_eq!(folded(&rows, 55)[0], [row[0], "superseded by\nsrc-1b0c22d4", row[2]]);
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
