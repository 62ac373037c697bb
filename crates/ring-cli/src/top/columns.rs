//! Columns of figures, as text: as many as a screen has room for.

/// A column of what is shown of each `T`.
pub struct Column<T> {
    /// Its heading.
    pub heading: &'static str,
    /// Characters of a cell.
    pub width: usize,
    /// Its cells stand at the right side.
    pub right: bool,
    /// What it shows.
    pub cell: fn(&T) -> String,
}

/// A column of words.
pub fn left<T>(heading: &'static str, width: usize, cell: fn(&T) -> String) -> Column<T> {
    Column { heading, width, right: false, cell }
}

/// A column of figures.
pub fn right<T>(heading: &'static str, width: usize, cell: fn(&T) -> String) -> Column<T> {
    Column { heading, width, right: true, cell }
}

/// The columns that there is room for, from the first on, and how much room is left beside them.
pub fn fitting<T>(columns: &[Column<T>], room: usize) -> (&[Column<T>], usize) {
    let mut used = 0;
    for (k, column) in columns.iter().enumerate() {
        let more = column.width + usize::from(k > 0);
        if used + more > room {
            return (&columns[..k], room - used);
        }
        used += more;
    }
    (columns, room - used)
}

/// A line of cells, each as wide as its column, with a space between.
pub fn line<T>(columns: &[Column<T>], cell: impl Fn(&Column<T>) -> String) -> String {
    let mut line = String::new();
    for (k, column) in columns.iter().enumerate() {
        if k > 0 {
            line.push(' ');
        }
        let (cell, width) = (cut(&cell(column), column.width), column.width);
        line += &if column.right { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
    }
    line
}

/// At most so many characters of a text, the last a mark that there are more.
fn cut(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> [Column<u64>; 3] {
        let words = |number: &u64| format!("number {number}");
        [left("of", 9, words), right("figure", 6, u64::to_string), right("too", 3, u64::to_string)]
    }

    #[test]
    fn cells_are_as_wide_as_their_column() {
        let columns = columns();
        assert_eq!(line(&columns, |column| column.heading.to_owned()), "of        figure too");
        assert_eq!(line(&columns, |column| (column.cell)(&7)), "number 7       7   7");
        assert_eq!(line(&columns, |column| (column.cell)(&12345)), "number 1…  12345 12…");
    }

    #[test]
    fn as_many_columns_are_shown_as_there_is_room_for() {
        for (room, count, left) in
            [(0, 0, 0), (8, 0, 8), (9, 1, 0), (15, 1, 6), (16, 2, 0), (20, 3, 0), (99, 3, 79)]
        {
            let columns = columns();
            let (shown, beside) = fitting(&columns, room);
            assert_eq!((shown.len(), beside), (count, left), "{room}");
        }
    }
}
