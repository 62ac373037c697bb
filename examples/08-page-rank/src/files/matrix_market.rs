//! Matrix Market files (`.mtx`): an entry (i, j) of a square matrix is an edge from vertex i to vertex j, numbered from 1.
//!
//! The values of entries are ignored. An entry may be there several times, and is then as many edges; if the matrix is symmetric, each
//! that is not on the diagonal is an edge in both directions.
//!
//! No crate reads the entries here: of those that were tried in 2026-11, `sprs` 0.11 never returns from a file that ends in its header,
//! `nalgebra-sparse` 0.12 panics at numbers beyond a word and takes `1 2.5` for the entry (1, 2), `oxiblas-sparse` 0.2 does not count the
//! entries, and `matrix-market-rs` 0.1 takes lines that are cut short.

use super::entry::Entry;
use super::lines::Lines;
use crate::graph::{Edges, MOST_EDGES, MOST_VERTICES};
use std::io::BufRead;

/// Lines that begin so are comments.
pub const COMMENTS: &[u8] = b"%";

/// What stands before the entries.
#[derive(Debug, PartialEq)]
struct Header {
    vertices: u32,
    entries: u64,
    has_values: bool,
    is_symmetric: bool,
}

/// Reads a graph.
///
/// # Errors
/// When the file is cut short or otherwise no such matrix, or there are too many vertices or edges.
pub fn read(mut lines: Lines<impl BufRead>) -> Result<Edges, String> {
    let header = header(&mut lines)?;
    let (mut edges, mut found) = (Vec::new(), 0);
    while let Some((number, line)) = lines.data()? {
        let at = |error| format!("line {number}: {error}");
        if found == header.entries {
            return Err(at(format!("the header states {found} entries, and here is one more")));
        }
        found += 1;
        let (i, j) = entry(&header, &line).map_err(at)?;
        edges.push((i, j));
        if header.is_symmetric && i != j {
            edges.push((j, i));
        }
    }
    if found < header.entries {
        return Err(format!(
            "{found} entries where the header states {}: the file is cut short",
            header.entries
        ));
    }
    Edges::new(header.vertices, edges)
}

/// The ends of an edge, counted from 0.
fn entry(header: &Header, line: &str) -> Result<(u32, u32), String> {
    let entry: Entry = line.parse()?;
    if entry.value.is_some() != header.has_values {
        let (has, states) = if header.has_values { ("no", "one") } else { ("a", "none") };
        return Err(format!("the entry has {has} value where the header states {states}"));
    }
    let vertex = |index: u64| match index {
        1.. if index <= header.vertices.into() => Ok(index as u32 - 1),
        _ => Err(format!("index {index} where the header states 1 to {}", header.vertices)),
    };
    Ok((vertex(entry.source)?, vertex(entry.target)?))
}

fn header(lines: &mut Lines<impl BufRead>) -> Result<Header, String> {
    let banner = match lines.any()? {
        Some((_, line)) => line.trim().to_ascii_lowercase(),
        None => return Err("the file is empty".into()),
    };
    let words: Vec<&str> = banner.split_whitespace().collect();
    let (has_values, is_symmetric) = match words[..] {
        ["%%matrixmarket", "matrix", "coordinate", field, symmetry] => {
            (has_values(field)?, is_symmetric(symmetry)?)
        }
        _ => {
            return Err(format!(
                "line 1: '{banner}' where '%%MatrixMarket matrix coordinate', a field and a symmetry are to be"
            ));
        }
    };
    let Some((number, line)) = lines.data()? else {
        return Err("the file is cut short: it ends before its sizes".into());
    };
    let at = |error| format!("line {number}: {error}");
    let sizes: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let (vertices, entries) = match sizes[..] {
        [rows, columns, entries] if line.split_whitespace().count() == 3 => {
            (square(rows, columns).map_err(at)?, entries)
        }
        _ => {
            let line = line.trim();
            return Err(at(format!("'{line}' is not the sizes: rows, columns and entries")));
        }
    };
    let most = MOST_EDGES as u64 / if is_symmetric { 2 } else { 1 };
    if entries > most {
        return Err(at(format!("{entries} entries: {most} at most, take a part of the graph")));
    }
    Ok(Header { vertices, entries, has_values, is_symmetric })
}

fn has_values(field: &str) -> Result<bool, String> {
    match field {
        "pattern" => Ok(false),
        "integer" | "real" => Ok(true),
        _ => Err(format!("line 1: '{field}' entries: they are to be pattern, integer or real")),
    }
}

fn is_symmetric(symmetry: &str) -> Result<bool, String> {
    match symmetry {
        "general" => Ok(false),
        "symmetric" => Ok(true),
        _ => Err(format!("line 1: a '{symmetry}' matrix: it is to be general or symmetric")),
    }
}

/// The vertices of a matrix of so many rows and columns.
fn square(rows: u64, columns: u64) -> Result<u32, String> {
    if rows != columns {
        return Err(format!(
            "{rows} rows and {columns} columns: the matrix of a graph is square, with a row and a column for each vertex"
        ));
    }
    match u32::try_from(rows) {
        Ok(vertices @ 1..=MOST_VERTICES) => Ok(vertices),
        _ => {
            let most = MOST_VERTICES.ilog2();
            Err(format!("{rows} vertices: a graph has 1 to 2^{most}, take a part of it"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENERAL: &str = "%%MatrixMarket matrix coordinate pattern general\n";

    fn graph(text: &str) -> Result<Edges, String> {
        read(Lines::new(text.as_bytes(), COMMENTS))
    }

    #[test]
    fn entries_are_edges_and_those_of_a_symmetric_matrix_two() {
        let read = graph(&format!("{GENERAL}% a\n%\n\n3 3 3\n1 3\n\n1 3\n2 2")).unwrap();
        assert_eq!((read.vertices(), read.edges()), (3, &[(0, 2), (0, 2), (1, 1)][..]));
        let text =
            "%%matrixmarket Matrix Coordinate Real Symmetric\r\n3 3 2\r\n3 1 0.5\r\n2 2 -1\r\n";
        assert_eq!(graph(text).unwrap().edges(), [(2, 0), (0, 2), (1, 1)]);
        assert_eq!(graph(&format!("{GENERAL}5 5 0\n")).unwrap().vertices(), 5);
    }

    #[test]
    fn what_is_no_such_matrix_is_refused() {
        let general = |rest: &str| format!("{GENERAL}{rest}");
        let real = |rest: &str| GENERAL.replace("pattern", "real") + rest;
        for (text, said) in [
            (String::new(), "the file is empty"),
            ("1 2\n".into(), "line 1: '1 2' where '%%MatrixMarket matrix coordinate'"),
            (GENERAL.replace("coordinate", "array"), "line 1: '%%matrixmarket matrix array"),
            (GENERAL.replace("pattern", "complex"), "line 1: 'complex' entries"),
            (GENERAL.replace("general", "skew-symmetric"), "line 1: a 'skew-symmetric' matrix"),
            (general(""), "the file is cut short: it ends before its sizes"),
            (general("% a\n"), "the file is cut short: it ends before its sizes"),
            (general("3 3"), "line 2: '3 3' is not the sizes"),
            (general("3 3 1 1"), "line 2: '3 3 1 1' is not the sizes"),
            (general("3 3 x"), "line 2: '3 3 x' is not the sizes"),
            (general("3 3 99999999999999999999"), "line 2: '3 3 99999999999999999999' is not"),
            (
                general("3 4 1\n1 1"),
                "line 2: 3 rows and 4 columns: the matrix of a graph is square",
            ),
            (general("0 0 0"), "line 2: 0 vertices: a graph has 1 to 2^26"),
            (general("67108865 67108865 0"), "line 2: 67108865 vertices: a graph has 1 to 2^26"),
            (
                general("3 3 1000000000000\n1 1"),
                "line 2: 1000000000000 entries: 1073741824 at most",
            ),
            (general("3 3 1000000\n1 1\n"), "1 entries where the header states 1000000"),
            (
                general("3 3 1\n1 1\n1 2"),
                "line 4: the header states 1 entries, and here is one more",
            ),
            (general("3 3 1\n0 1"), "line 3: index 0 where the header states 1 to 3"),
            (general("3 3 1\n1 4"), "line 3: index 4 where the header states 1 to 3"),
            (general("3 3 1\n1 18446744073709551615"), "line 3: index 18446744073709551615"),
            (general("3 3 1\n1"), "line 3: the line ends behind one vertex"),
            (general("3 3 1\n1 2 1"), "line 3: the entry has a value where the header states none"),
            (real("3 3 1\n1 2"), "line 3: the entry has no value where the header states one"),
            (real("3 3 1\n1 2 nan"), "line 3: 'nan' is not a finite number"),
            (real("3 3 1\n1 2 inf"), "line 3: 'inf' is not a finite number"),
            (real("3 3 1\n1 2.5"), "line 3: '2.5' is not the number of a vertex"),
        ] {
            let error = graph(&text).unwrap_err();
            assert!(error.starts_with(said), "{text}: {error}");
        }
    }
}
