//! Plain text in aligned columns.

use crate::text;
use std::fmt;

/// On which side of a column its cells stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows of `N` cells under a heading, each column as wide as its widest cell.
#[derive(Clone, Debug)]
pub struct Table<const N: usize> {
    columns: [(&'static str, Align); N],
    lines: Vec<Line<N>>,
}

#[derive(Clone, Debug)]
enum Line<const N: usize> {
    Row([String; N]),
    Note(String),
}

impl<const N: usize> Table<N> {
    /// A table without rows.
    pub fn new(columns: [(&'static str, Align); N]) -> Table<N> {
        Table { columns, lines: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: [String; N]) {
        self.lines.push(Line::Row(cells));
    }

    /// Adds a remark below the row before it, indented and as wide as the page.
    pub fn note(&mut self, remark: &str) {
        self.lines.push(Line::Note(remark.to_string()));
    }

    fn widths(&self) -> [usize; N] {
        let mut widths = self.columns.map(|(heading, _)| heading.chars().count());
        for line in &self.lines {
            let Line::Row(cells) = line else { continue };
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }

    fn aligned(&self, cells: [&str; N], widths: &[usize; N]) -> String {
        let mut text = String::new();
        for ((cell, width), (_, align)) in cells.iter().zip(widths).zip(&self.columns) {
            let padded = match align {
                Align::Left => format!("{cell:<width$}  "),
                Align::Right => format!("{cell:>width$}  "),
            };
            text.push_str(&padded);
        }
        text.truncate(text.trim_end().len());
        text
    }
}

impl<const N: usize> fmt::Display for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        writeln!(f, "{}", self.aligned(self.columns.map(|(heading, _)| heading), &widths))?;
        for line in &self.lines {
            match line {
                Line::Row(cells) => {
                    writeln!(f, "{}", self.aligned(cells.each_ref().map(String::as_str), &widths))?;
                }
                Line::Note(remark) => writeln!(f, "{}", text::wrapped("    ", remark))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Table<3> {
        let mut table =
            Table::new([("case", Align::Left), ("n", Align::Right), ("result", Align::Left)]);
        table.row(["vector_add".into(), "10".into(), "passed".into()]);
        table.row(["echo".into(), "1,000".into(), "failed".into()]);
        table.note("element 7: got 1.5, expected 2.5");
        table
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let expected = "\
case            n  result
vector_add     10  passed
echo        1,000  failed
    element 7: got 1.5, expected 2.5
";
        assert_eq!(example().to_string(), expected);
    }

    #[test]
    fn notes_do_not_widen_columns() {
        let mut table = example();
        table.note(&"word ".repeat(40));
        assert_eq!(table.to_string().lines().next(), example().to_string().lines().next());
        assert!(table.to_string().lines().all(|line| line.len() <= text::WIDTH));
    }

    #[test]
    fn a_table_without_rows_is_its_heading() {
        let table = Table::new([("case", Align::Left), ("n", Align::Right)]);
        assert_eq!(table.to_string(), "case  n\n");
    }
}
