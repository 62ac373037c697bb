//! Tables, for a terminal and for the page of the bench.

use crate::text;
use comfy_table::{CellAlignment, ContentArrangement, presets};
use std::fmt;

/// A column and its heading.
#[derive(Clone, Debug)]
pub struct Column {
    /// The heading.
    pub heading: &'static str,
    /// On which side the cells stand.
    align: CellAlignment,
    /// Whether a terminal has no room for it.
    page_only: bool,
}

/// A column of words.
pub fn left(heading: &'static str) -> Column {
    Column { heading, align: CellAlignment::Left, page_only: false }
}

/// A column of numbers.
pub fn right(heading: &'static str) -> Column {
    Column { heading, align: CellAlignment::Right, page_only: false }
}

impl Column {
    /// The same, but not in a terminal.
    pub fn page_only(self) -> Column {
        Column { page_only: true, ..self }
    }

    /// Whether it holds words.
    pub fn is_left(&self) -> bool {
        self.align == CellAlignment::Left
    }
}

/// A row of a table.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// A cell for each column.
    pub cells: Vec<String>,
    /// Its note, below it and as wide as the page.
    pub note: Option<String>,
    /// How a page distinguishes it from others.
    pub class: &'static str,
}

/// Rows below headings, each column as wide as its widest cell.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl Into<Vec<Column>>) -> Table {
        Table { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row; its note and its class can be set.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) -> &mut Row {
        self.rows.push(Row { cells: cells.into_iter().collect(), ..Row::default() });
        self.rows.last_mut().expect("it was pushed")
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |column: &&Column| !column.page_only;
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.columns.iter().filter(shown).map(|column| column.heading));
        for row in &self.rows {
            let cells = self.columns.iter().zip(&row.cells).filter(|(column, _)| shown(column));
            table.add_row(cells.map(|(_, cell)| cell));
        }
        for (to, column) in table.column_iter_mut().zip(self.columns.iter().filter(shown)) {
            to.set_padding((0, 2)).set_cell_alignment(column.align);
        }
        let notes = [None].into_iter().chain(self.rows.iter().map(|row| row.note.as_deref()));
        for (line, note) in table.lines().zip(notes) {
            writeln!(f, "{}", line.trim_end())?;
            note.map_or(Ok(()), |note| writeln!(f, "{}", text::wrapped("    ", note)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Table {
        let mut table =
            Table::new([left("case"), right("n"), right("x").page_only(), left("result")]);
        let cells = |cells: [&str; 4]| cells.map(str::to_owned);
        table.row(cells(["vector_add", "10", "1", "passed"]));
        let failed = table.row(cells(["echo", "1,000", "2", "failed"]));
        failed.note = Some("element 7: got 1.5, expected 2.5".to_owned());
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
        table.rows[0].note = Some("word ".repeat(40));
        assert_eq!(table.to_string().lines().next(), example().to_string().lines().next());
        assert!(table.to_string().lines().all(|line| line.len() <= text::WIDTH));
    }

    #[test]
    fn a_table_without_rows_is_its_heading() {
        assert_eq!(Table::new([left("case"), right("n")]).to_string(), "case  n\n");
    }
}
