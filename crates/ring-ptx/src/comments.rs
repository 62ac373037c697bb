//! PTX without its comments.

/// The parts of `ptx` that are no comment, each with its line, counted from 1. No part reaches beyond a line.
pub(crate) fn code(ptx: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut lines = ptx.lines().enumerate();
    let (mut number, mut line, mut in_comment) = (0, "", false);
    std::iter::from_fn(move || {
        loop {
            if line.is_empty() {
                let (index, next) = lines.next()?;
                (number, line) = (index + 1, next);
            }
            if in_comment {
                let Some((_, rest)) = line.split_once("*/") else {
                    line = "";
                    continue;
                };
                (line, in_comment) = (rest, false);
            }
            let (slashes, star) = (line.find("//"), line.find("/*"));
            let opens = star.filter(|star| slashes.is_none_or(|slashes| *star < slashes));
            let part = &line[..opens.or(slashes).unwrap_or(line.len())];
            line = opens.map_or("", |start| &line[start + 2..]);
            in_comment = opens.is_some();
            if !part.is_empty() {
                return Some((number, part));
            }
        }
    })
}

/// `ptx` with a blank in place of each comment; what is left stays on its line.
#[must_use]
pub fn without_comments(ptx: &str) -> String {
    let (mut out, mut line) = (String::with_capacity(ptx.len()), 1);
    for (number, part) in code(ptx) {
        match number - line {
            0 if !out.is_empty() => out.push(' '),
            more => out.extend(std::iter::repeat_n('\n', more)),
        }
        out.push_str(part);
        line = number;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::without_comments;

    #[test]
    fn comments_become_blanks() {
        assert_eq!(without_comments("a // b\nc /* d\ne */ f"), "a \nc \n f");
        assert_eq!(without_comments("// a\n\nb/**/c /* d */ // e"), "\n\nb c   ");
        assert_eq!(without_comments("a / b /* */ c // /*\nd */"), "a / b   c \nd */");
    }
}
