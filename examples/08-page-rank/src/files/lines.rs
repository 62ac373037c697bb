//! The lines of a text, one after the other in memory of bounded size.

use std::borrow::Cow;
use std::io::{BufRead, Read};

/// The longest line in bytes, its end included.
pub const LONGEST: usize = 4096;

/// Reads lines and numbers them from 1.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    comments: &'static [u8],
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    /// A line is a comment if it begins with one of `comments`.
    pub fn new(reader: R, comments: &'static [u8]) -> Lines<R> {
        Lines { reader, comments, line: Vec::new(), number: 0 }
    }

    /// The next line and its number, be it blank or a comment; `None` behind the last one.
    ///
    /// # Errors
    /// When it cannot be read, or is longer than [`LONGEST`].
    pub fn any(&mut self) -> Result<Option<(u64, Cow<'_, str>)>, String> {
        let is_there = self.advance()?;
        Ok(is_there.then(|| (self.number, String::from_utf8_lossy(&self.line))))
    }

    /// The next line that is neither blank nor a comment.
    ///
    /// # Errors
    /// As [`any`](Lines::any).
    pub fn data(&mut self) -> Result<Option<(u64, Cow<'_, str>)>, String> {
        while self.advance()? {
            let first = self.line.trim_ascii_start().first();
            if first.is_some_and(|first| !self.comments.contains(first)) {
                return Ok(Some((self.number, String::from_utf8_lossy(&self.line))));
            }
        }
        Ok(None)
    }

    fn advance(&mut self) -> Result<bool, String> {
        self.line.clear();
        self.number += 1;
        let mut bounded = self.reader.by_ref().take(LONGEST as u64 + 1);
        let read = bounded.read_until(b'\n', &mut self.line);
        match read.map_err(|error| format!("line {}: {error}", self.number))? {
            0 => Ok(false),
            bytes if bytes <= LONGEST => Ok(true),
            _ => Err(format!(
                "line {} has more than {LONGEST} bytes: is this a text with an edge a line?",
                self.number
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, repeat};

    #[test]
    fn blank_lines_and_comments_are_skipped_and_counted() {
        let mut lines = Lines::new("# a\n\n 1 2\r\n  \t\n%b\n3 4".as_bytes(), b"#%");
        assert_eq!(lines.data(), Ok(Some((3, " 1 2\r\n".into()))));
        assert_eq!(lines.data(), Ok(Some((6, "3 4".into()))));
        assert_eq!(lines.data(), Ok(None));
        let mut lines = Lines::new("# a\n1".as_bytes(), b"#");
        assert_eq!(lines.any(), Ok(Some((1, "# a\n".into()))));
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut lines = Lines::new(BufReader::new(repeat(b'1')), b"");
        let error = lines.data().unwrap_err();
        assert!(error.starts_with("line 1 has more than 4096 bytes"), "{error}");
        let longest = "1".repeat(LONGEST - 1) + "\n";
        assert!(Lines::new(longest.as_bytes(), b"").data().is_ok());
    }
}
