//! Tables of the page.

use super::escaped;
use crate::bench::report::Report;
use crate::bench::tables::Part;
use crate::table::{Row, Table, left};

/// A part of the page: its plots, its tables, and the notes below them; nothing if there is none of them.
pub fn part(part: &Part, plots: &str) -> String {
    let mut body = plots.to_owned();
    for (title, table) in &part.tables {
        if title != part.title {
            body += &format!("<h3>{}</h3>\n", escaped(title));
        }
        body += &shown(table, "");
    }
    for remark in &part.remarks {
        body += &format!("<p class=\"note\">{}</p>\n", escaped(remark));
    }
    section("", part.title, &body)
}

/// What went wrong, before all else.
pub fn wrong(report: &Report) -> String {
    let table = Table::of(
        &report.wrong(),
        [
            (left("measured"), |row| row.what.clone()),
            (left("what was wrong"), |row| row.why.clone()),
        ],
        |_, _| (),
    );
    section("wrong", "Something went wrong", &shown(&table, ""))
}

/// What it was measured on, and how.
pub fn machine(report: &Report) -> String {
    let facts = report.machine.facts.iter().map(|(name, fact)| [(*name).to_owned(), fact.clone()]);
    let how = format!("{}; took {:.0} s", report.settings.in_words(), report.took);
    let left_out = report.skipped.iter();
    let left_out = left_out.map(|left| [format!("left out: {}", left.section), left.why.clone()]);
    let rows: Vec<_> = facts.chain([["measured".to_owned(), how]]).chain(left_out).collect();
    let table = Table::of(
        &rows,
        [(left(""), |row| row[0].clone()), (left(""), |row| row[1].clone())],
        |_, _| (),
    );
    section("", "Machine", &shown(&table, "facts"))
}

/// A part of the page, unless there is nothing in it.
fn section(class: &str, title: &str, body: &str) -> String {
    match body.is_empty() {
        true => String::new(),
        false => format!("<section class=\"{class}\">\n<h2>{title}</h2>\n{body}</section>\n"),
    }
}

/// A table. Where the page is too narrow for its columns, each cell stands by itself below the first of
/// its row, and says its heading.
fn shown(table: &Table, class: &str) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let side = |k: usize| if table.columns[k].is_left() { " class=\"left\"" } else { "" };
    let cell = |(k, cell): (usize, &String)| {
        let heading = table.columns[k].heading;
        let label = match k > 0 && !heading.is_empty() {
            true => format!(" data-label=\"{heading}\""),
            false => String::new(),
        };
        format!("<td{label}{}>{}</td>", side(k), escaped(cell))
    };
    let line = |Row { class, cells, note }: &Row| {
        let cells: String = cells.iter().enumerate().map(cell).collect();
        let note = note.as_ref().map(|note| {
            let columns = table.columns.len();
            format!("<tr class=\"remark\"><td colspan=\"{columns}\">{}</td></tr>\n", escaped(note))
        });
        format!("<tr class=\"{class}\">{cells}</tr>\n{}", note.unwrap_or_default())
    };
    let rows: String = table.rows.iter().map(line).collect();
    let heading = |k: usize| format!("<th{}>{}</th>", side(k), table.columns[k].heading);
    let headings: String = (0..table.columns.len()).map(heading).collect();
    format!(
        "<div class=\"scroll\"><table class=\"{class}\">\n<tr class=\"head\">{headings}</tr>\n\
         {rows}</table></div>\n"
    )
}
