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

/// What a column shows of an item.
pub type Cell<T> = fn(&T) -> String;

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
    /// A table of `items`: what each column makes of an item is its cell. `finish` may set the note and
    /// the class of an item's row.
    pub fn of<'a, T: 'a, const N: usize>(
        items: impl IntoIterator<Item = &'a T>,
        columns: [(Column, Cell<T>); N],
        finish: impl Fn(&T, &mut Row),
    ) -> Table {
        let row = |item| {
            let cells = columns.iter().map(|(_, cell)| cell(item)).collect();
            let mut row = Row { cells, ..Row::default() };
            finish(item, &mut row);
            row
        };
        let rows = items.into_iter().map(row).collect();
        Table { columns: columns.map(|(column, _)| column).into(), rows }
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
        let items = [["vector_add", "10", "1", "passed"], ["echo", "1,000", "2", "failed"]];
        Table::of(
            &items,
            [
                (left("case"), |item| item[0].to_owned()),
                (right("n"), |item| item[1].to_owned()),
                (right("x").page_only(), |item| item[2].to_owned()),
                (left("result"), |item| item[3].to_owned()),
            ],
            |item, row| {
                row.note =
                    (item[0] == "echo").then(|| "element 7: got 1.5, expected 2.5".to_owned());
            },
        )
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
        let columns: [(Column, Cell<u64>); 2] =
            [(left("case"), u64::to_string), (right("n"), u64::to_string)];
        assert_eq!(Table::of([], columns, |_, _| ()).to_string(), "case  n\n");
    }
}
