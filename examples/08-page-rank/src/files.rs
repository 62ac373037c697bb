//! Graphs of files.

mod edge_list;
mod entry;
mod lines;
mod matrix_market;

use crate::graph::Edges;
use lines::Lines;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// A file's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An edge a line.
    EdgeList,
    /// A sparse matrix.
    MatrixMarket,
}

impl Format {
    /// By a file's name: `.mtx` is Matrix Market, all others are lists of edges.
    pub fn of(path: &Path) -> Format {
        match path.extension() {
            Some(end) if end.eq_ignore_ascii_case("mtx") => Format::MatrixMarket,
            _ => Format::EdgeList,
        }
    }

    /// The number of the first vertex.
    pub fn first(self) -> u32 {
        match self {
            Format::EdgeList => 0,
            Format::MatrixMarket => 1,
        }
    }

    fn read(self, mut text: impl BufRead) -> Result<Edges, String> {
        let begin = text.fill_buf().map_err(|error| error.to_string())?;
        match self {
            Format::EdgeList if begin.starts_with(b"%%MatrixMarket") => {
                Err("this is a Matrix Market file: its name is to end in .mtx".into())
            }
            Format::EdgeList => edge_list::read(Lines::new(text, edge_list::COMMENTS)),
            Format::MatrixMarket => matrix_market::read(Lines::new(text, matrix_market::COMMENTS)),
        }
    }
}

/// Reads a graph line by line.
///
/// # Errors
/// When the file cannot be read or is no graph; the error names the file and the line.
pub fn read(path: &Path) -> Result<Edges, String> {
    let file = File::open(path).map_err(|error| error.to_string());
    let graph = file.and_then(|file| Format::of(path).read(BufReader::new(file)));
    graph.map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Layout;
    use crate::grid::{MOST, ONCE, active, grid, rank};
    use crate::links::{self, Channels};
    use crate::{DAMPING, ITERATIONS, error};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use ring_host::LaunchConfig;
    use ring_whole_device_kernels::PageRank;
    use std::fmt::Write;

    const MATRIX: &str = include_str!("../graphs/small.mtx");
    const LIST: &str = include_str!("../graphs/small.txt");

    fn matrix(text: &str) -> Result<Edges, String> {
        Format::MatrixMarket.read(text.as_bytes())
    }

    fn list(text: &str) -> Result<Edges, String> {
        Format::EdgeList.read(text.as_bytes())
    }

    fn sorted(graph: &Edges) -> Vec<(u32, u32)> {
        let mut edges = graph.edges().to_vec();
        edges.sort_unstable();
        edges
    }

    #[test]
    fn both_samples_are_the_same_graph() {
        let graphs = ["graphs/small.mtx", "graphs/small.txt"].map(|name| {
            read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(name))
                .unwrap_or_else(|e| panic!("{e}"))
        });
        assert_eq!((graphs[0].vertices(), graphs[1].vertices()), (12, 12));
        assert_eq!(graphs[0].edges()[..4], [(0, 1), (0, 2), (1, 2), (2, 0)]);
        assert_eq!((sorted(&graphs[0]).len(), sorted(&graphs[0])), (20, sorted(&graphs[1])));
    }

    #[test]
    fn samples_are_ranked_as_by_the_reference_by_grid_and_by_links() {
        let kernels = ring_tests::kernels::of_whole_device::<PageRank>();
        let launch = LaunchConfig::default().kernels(kernels);
        let few = Channels { senders: 2, aggregators: 3, checkers: 2, slots: 1024 };
        ring_tests::kernels::on_each_device_of_whole_device(|host| {
            let mut kernel = active(host, launch.clone().blocks(2)).unwrap();
            for graph in [matrix(MATRIX).unwrap(), list(LIST).unwrap()] {
                let layout = Layout::new(&graph, MOST, grid(&kernel));
                let (ranks, ranked, _) =
                    rank(host, &mut kernel, &layout, (ITERATIONS, 0.0), ONCE).unwrap();
                let right = graph.reference(DAMPING.into(), ranked.iterations);
                assert!(error(&ranks, &right) < 1e-6, "{ranks:?}");
                assert_eq!(crate::highest(&ranks, 2), [(2, ranks[2]), (0, ranks[0])]);
                let found =
                    links::rank(host, &launch, &graph, few, (ITERATIONS, -1.0)).unwrap().ranks();
                let right = graph.reference(DAMPING.into(), ITERATIONS);
                assert!(error(&found, &right) < 1e-6, "{found:?}");
            }
        });
    }

    #[test]
    fn a_format_is_known_by_the_name() {
        for name in ["a.mtx", "b/A.MTX"] {
            assert_eq!(Format::of(Path::new(name)), Format::MatrixMarket);
        }
        for name in ["a.txt", "mtx", "a.mtx.txt", "a"] {
            assert_eq!(Format::of(Path::new(name)), Format::EdgeList);
        }
        assert!(list(MATRIX).unwrap_err().contains(".mtx"));
        let error = read(Path::new("missing.mtx")).unwrap_err();
        assert!(error.starts_with("missing.mtx: "), "{error}");
    }

    /// Where the last word of a text begins.
    fn last_word(text: &str) -> usize {
        let text = text.trim_ascii_end();
        text.rfind(char::is_whitespace).map_or(0, |space| space + 1)
    }

    #[test]
    fn a_matrix_that_is_cut_is_refused_but_for_digits_of_its_last_number() {
        let symmetric = "%%MatrixMarket matrix coordinate real symmetric\n\n% a\n12 12 3\n2 1 1.5\n\n3 3 -1e-2\n12 11 0.25\n";
        let whole =
            [MATRIX, symmetric, "%%MatrixMarket matrix coordinate integer general\n9 9 1\n1 2 10"];
        for text in whole {
            let graph = matrix(text).unwrap();
            for cut in 0..text.len() {
                let read = matrix(&text[..cut]);
                assert_eq!(read.is_ok(), cut > last_word(text), "cut at {cut}: {read:?}");
                // What was the last index may be a smaller one.
                let all = graph.edges().len();
                assert!(read.is_err() || read.unwrap().edges().len() == all, "cut at {cut}");
            }
        }
    }

    #[test]
    fn a_list_that_is_cut_has_fewer_edges_or_is_refused() {
        let graph = list(LIST).unwrap();
        for cut in 0..LIST.len() {
            let text = &LIST[..cut];
            let is_data = |line: &&str| !line.is_empty() && !line.starts_with(['#', '%']);
            let lines: Vec<&str> = text.lines().filter(is_data).collect();
            // A weight that is cut is a number or none.
            let is_whole = |line: &&str| {
                let words: Vec<&str> = line.split_whitespace().collect();
                words.len() > 1 && words.get(2).is_none_or(|word| word.parse::<f64>().is_ok())
            };
            match list(text) {
                Ok(read) => {
                    assert!(lines.iter().all(is_whole), "cut at {cut}: {text}");
                    let last = lines.len() - 1;
                    assert_eq!(read.edges().len(), last + 1);
                    assert_eq!(read.edges()[..last], graph.edges()[..last], "cut at {cut}");
                }
                Err(error) if lines.is_empty() => assert!(error.contains("no edges"), "{error}"),
                Err(error) => {
                    assert!(!lines.last().is_some_and(is_whole), "cut at {cut}: {error}");
                    let line = format!("line {}: ", text.lines().count());
                    assert!(error.starts_with(&line), "cut at {cut}: {error}");
                }
            }
        }
    }

    /// Graphs of few vertices, so that some edges are there several times.
    fn edges() -> impl Strategy<Value = (u32, Vec<(u32, u32)>)> {
        (1..20u32).prop_flat_map(|n| (Just(n), vec((0..n, 0..n), 1..60)))
    }

    proptest! {
        #[test]
        fn what_is_written_is_read((n, edges) in edges(), of in 0..3usize) {
            let (field, value) = [("pattern", ""), ("integer", " -7"), ("real", " 2.5e-3")][of];
            let mut mtx = format!("%%MatrixMarket matrix coordinate {field} general\n{n} {n} {}\n", edges.len());
            let mut text = String::from("# a list\n");
            for (i, j) in &edges {
                writeln!(mtx, "{} {}{value}", i + 1, j + 1).unwrap();
                writeln!(text, "{i}\t{j}{value}").unwrap();
            }
            let (mtx, list) = (matrix(&mtx).unwrap(), list(&text).unwrap());
            prop_assert_eq!((mtx.vertices(), mtx.edges()), (n, &edges[..]));
            prop_assert_eq!(list.edges(), &edges[..]);
        }

        #[test]
        fn a_symmetric_matrix_has_both_directions((n, edges) in edges()) {
            let mut mtx = format!("%%matrixmarket MATRIX coordinate pattern Symmetric\n{n} {n} {}\n", edges.len());
            let mut both = edges.clone();
            for (i, j) in &edges {
                writeln!(mtx, "{} {}", i + 1, j + 1).unwrap();
                if i != j {
                    both.push((*j, *i));
                }
            }
            both.sort_unstable();
            prop_assert_eq!(sorted(&matrix(&mtx).unwrap()), both);
        }

        #[test]
        fn no_text_is_a_panic(bytes in vec(any::<u8>(), 0..200), lines in "[0-9 .\n%#eE+-]{0,80}") {
            let header = "%%MatrixMarket matrix coordinate real general\n".to_owned();
            for text in [&bytes[..], lines.as_bytes(), (header + &lines).as_bytes()] {
                let _ = (Format::MatrixMarket.read(text), Format::EdgeList.read(text));
            }
        }
    }
}
