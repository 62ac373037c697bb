//! An edge as a line of text.

use std::str::FromStr;

/// Two vertices, and perhaps a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// The number of the first one.
    pub source: u64,
    /// The number of the second one.
    pub target: u64,
    /// A finite number.
    pub value: Option<f64>,
}

impl FromStr for Entry {
    type Err = String;

    fn from_str(line: &str) -> Result<Entry, String> {
        let mut words = line.split_whitespace();
        let entry = Entry {
            source: vertex(words.next())?,
            target: vertex(words.next())?,
            value: words.next().map(value).transpose()?,
        };
        match words.next() {
            None => Ok(entry),
            Some(word) => Err(format!(
                "'{word}' is a fourth column: an edge has two vertices and one value at most"
            )),
        }
    }
}

fn vertex(word: Option<&str>) -> Result<u64, String> {
    let word = word.ok_or("the line ends behind one vertex: an edge has two")?;
    word.parse().map_err(|_| format!("'{word}' is not the number of a vertex"))
}

fn value(word: &str) -> Result<f64, String> {
    let value = word.parse().ok().filter(|value: &f64| value.is_finite());
    value.ok_or(format!("'{word}' is not a finite number, as the value of an edge is"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_two_vertices_and_perhaps_a_value() {
        let entry = |source, target, value| Ok(Entry { source, target, value });
        assert_eq!("3 4".parse(), entry(3, 4, None));
        assert_eq!("\t3  4\t-1.5e2\r\n".parse(), entry(3, 4, Some(-150.0)));
        let highest = u64::MAX;
        assert_eq!(format!("{highest} 0 7").parse(), entry(highest, 0, Some(7.0)));
    }

    #[test]
    fn what_is_none_is_refused() {
        for (line, said) in [
            ("7", "ends behind one vertex"),
            ("7 ", "ends behind one vertex"),
            ("7 x", "'x' is not the number of a vertex"),
            ("7.5 1", "'7.5' is not"),
            ("-1 1", "'-1' is not"),
            ("1 18446744073709551616", "'18446744073709551616' is not"),
            ("1 2 nan", "'nan' is not a finite number"),
            ("1 2 -inf", "'-inf' is not"),
            ("1 2 1e999", "'1e999' is not"),
            ("1 2 heavy", "'heavy' is not"),
            ("1 2 3 4", "'4' is a fourth column"),
        ] {
            let error = line.parse::<Entry>().unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
    }
}
