//! Columns of words in colour. The tables of other commands count the signs of a colour as letters.

use super::super::output::BOLD;
use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Blanks between columns.
const BETWEEN: usize = 2;
/// Columns of a cell that are always left where it is cut.
const ELASTIC_MIN: usize = 12;

/// A word of a table and how it looks.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(super) fn new(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), style: Style::new() }
    }

    pub(super) fn styled(text: impl Into<String>, style: Style) -> Cell {
        Cell { text: text.into(), style }
    }
}

/// Rows of cells. Every column is as wide as its widest cell.
#[derive(Debug, Default)]
pub(super) struct Grid {
    rows: Vec<Vec<Cell>>,
}

impl Grid {
    /// With a row of names at its head.
    pub(super) fn new(header: &[&str]) -> Grid {
        let name = |name: &&str| Cell::styled(name.to_uppercase(), BOLD);
        Grid { rows: vec![header.iter().map(name).collect()] }
    }

    /// With `first` at its head, and names that stand as they are called.
    pub(super) fn beside<'n>(first: &str, names: impl Iterator<Item = &'n str> + Clone) -> Grid {
        let mut grid = Grid::new(&[first]);
        let names = names.map(|name| Cell::styled(name, BOLD));
        grid.rows.iter_mut().for_each(|row| row.extend(names.clone()));
        grid
    }

    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Whether nothing stands below the head.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }

    /// The columns that the table takes at least, with the cells of column `elastic` cut.
    pub(super) fn width(&self, elastic: usize) -> usize {
        let widths = self.widths();
        let cut = widths.get(elastic).map_or(0, |it| it.saturating_sub(ELASTIC_MIN));
        total(&widths) - cut
    }

    /// The lines of the table, no wider than `width`: the cells of column `elastic` are cut where it must be.
    pub(super) fn lines(&self, elastic: usize, width: usize) -> Vec<String> {
        let mut widths = self.widths();
        let over = total(&widths).saturating_sub(width);
        if let Some(letters) = widths.get_mut(elastic) {
            *letters = (*letters).saturating_sub(over).max(ELASTIC_MIN.min(*letters));
        }
        self.rows.iter().map(|row| line(row, &widths)).collect()
    }

    /// The columns that the widest cell of each column takes.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = Vec::new();
        for (at, cell) in self.rows.iter().flat_map(|row| row.iter().enumerate()) {
            widths.resize(widths.len().max(at + 1), 0);
            if let Some(widest) = widths.get_mut(at) {
                *widest = (*widest).max(cell.text.width());
            }
        }
        widths
    }
}

fn total(widths: &[usize]) -> usize {
    widths.iter().map(|it| it + BETWEEN).sum::<usize>().saturating_sub(BETWEEN)
}

fn line(row: &[Cell], widths: &[usize]) -> String {
    let mut line = String::new();
    for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
        let text = cut(&cell.text, *width);
        let blanks = width.saturating_sub(text.width()) + BETWEEN;
        if cell.style == Style::new() || text.is_empty() {
            line.push_str(&text);
        } else {
            line.push_str(&format!("{0}{text}{0:#}", cell.style));
        }
        if at + 1 < row.len() {
            line.push_str(&" ".repeat(blanks));
        }
    }
    line.trim_end().to_owned()
}

/// A text on one line of at most `width` columns; whole where `width` has no bound. What a terminal would obey becomes a blank.
pub(super) fn cut(text: &str, width: usize) -> String {
    let (mut line, mut wide) = (String::new(), 0);
    let words: Vec<&str> = text.split(|it: char| it.is_whitespace() || it.is_control()).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    for letter in words.join(" ").chars() {
        wide += letter.width().unwrap_or_default();
        if width < wide {
            let mut kept = width.saturating_sub(1);
            line = line
                .chars()
                .take_while(|letter| {
                    let room = letter.width().unwrap_or_default();
                    let fits = room <= kept;
                    kept = kept.saturating_sub(room);
                    fits
                })
                .collect();
            line.push('…');
            return line;
        }
        line.push(letter);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_never_wider_than_it_may_be() {
        assert_eq!(cut("one\n two\tthree", 20), "one two three");
        assert_eq!(cut("one two three", 8), "one two…");
        assert_eq!(cut("日本語のキャッシュ", 7), "日本語…");
        assert_eq!(cut("日本語のキャッシュ", 8), "日本語…");
        assert_eq!(cut("a\u{1b}[31mb\u{0}", 20), "a [31mb", "what a terminal would obey");
        for width in 1..20 {
            assert!(cut("日本語 and more", width).width() <= width.max(1));
        }
    }

    #[test]
    fn columns_stand_below_each_other_whatever_their_colour_and_script() {
        let mut grid = Grid::new(&["case", "recall"]);
        grid.row(vec![Cell::new("日本語"), Cell::styled("1/2", BOLD)]);
        grid.row(vec![Cell::new("a-long-name-of-a-case"), Cell::new("2/2")]);
        let plain = |line: &String| anstream::adapter::strip_str(line).to_string();
        let lines: Vec<String> = grid.lines(0, 20).iter().map(plain).collect();
        assert_eq!(lines, ["CASE          RECALL", "日本語        1/2", "a-long-name…  2/2"]);
    }
}
