//! Lists of edges, as the SNAP collection has them: `source target` a line, vertices numbered from 0.
//!
//! A third column, a weight, is ignored. An edge may be there several times, and stays so.

use super::entry::Entry;
use super::lines::Lines;
use crate::graph::{Edges, MOST_EDGES, MOST_VERTICES};
use std::io::BufRead;

/// Lines that begin so are comments.
pub const COMMENTS: &[u8] = b"#%";

/// Reads a graph. Its last vertex is the highest number of an edge.
///
/// # Errors
/// When a line is no edge, there are none, or there are too many vertices or edges.
pub fn read(mut lines: Lines<impl BufRead>) -> Result<Edges, String> {
    let (mut edges, mut vertices) = (Vec::new(), 0);
    while let Some((number, line)) = lines.data()? {
        let at = |error| format!("line {number}: {error}");
        let Entry { source, target, .. } = line.parse().map_err(at)?;
        let vertex = |v: u64| u32::try_from(v).ok().filter(|v| *v < MOST_VERTICES);
        let (Some(from), Some(to)) = (vertex(source), vertex(target)) else {
            return Err(at(format!(
                "vertex {}: the highest number is {}, as a graph has 2^{} vertices at most; number them anew, without gaps",
                source.max(target),
                MOST_VERTICES - 1,
                MOST_VERTICES.ilog2()
            )));
        };
        if edges.len() == MOST_EDGES {
            return Err(at(format!("a graph has {MOST_EDGES} edges at most: take a part of it")));
        }
        edges.push((from, to));
        vertices = vertices.max(from + 1).max(to + 1);
    }
    if edges.is_empty() {
        return Err("no edges: one line at least is a source and a target".into());
    }
    Edges::new(vertices, edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(text: &str) -> Result<Edges, String> {
        read(Lines::new(text.as_bytes(), COMMENTS))
    }

    #[test]
    fn the_highest_number_is_the_last_vertex() {
        let read = graph("# a\n3 1\n\n3\t1\t0.5\r\n% b\n0 7\n").unwrap();
        assert_eq!((read.vertices(), read.edges()), (8, &[(3, 1), (3, 1), (0, 7)][..]));
        assert_eq!(graph("67108863 0").unwrap().vertices(), MOST_VERTICES);
    }

    #[test]
    fn what_is_no_list_is_refused_and_the_line_named() {
        for (text, said) in [
            ("", "no edges"),
            ("# a comment\n\n", "no edges"),
            ("0 1\n1\n", "line 2: the line ends behind one vertex"),
            ("0 1\n\n1 a", "line 3: 'a' is not the number of a vertex"),
            ("0 1 2 3", "line 1: '3' is a fourth column"),
            ("0 1 NaN", "line 1: 'NaN' is not a finite number"),
            ("0 1\n67108864 0", "line 2: vertex 67108864: the highest number is 67108863"),
            ("0 18446744073709551615", "line 1: vertex 18446744073709551615: the highest"),
        ] {
            let error = graph(text).unwrap_err();
            assert!(error.starts_with(said), "{text}: {error}");
        }
    }
}
