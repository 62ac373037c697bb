//! PTX as a list of statements without comments.

/// One statement or directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// Where it stands, counted from 1.
    pub number: usize,
    /// Its text, without comment, braces, label and predicate.
    pub text: &'a str,
}

impl<'a> Line<'a> {
    /// The first word cut at dots: `ld.acquire.sys.b32` is `ld`, `acquire`, `sys`, `b32`. A directive
    /// begins with an empty part.
    pub fn opcode(&self) -> impl Iterator<Item = &'a str> + Clone {
        self.text.split_whitespace().next().unwrap_or_default().split('.')
    }

    /// The opcode's first part, empty for a directive.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.opcode().next().unwrap_or_default()
    }

    /// Whether the opcode has `part`.
    #[must_use]
    pub fn has(&self, part: &str) -> bool {
        self.opcode().any(|found| found == part)
    }

    /// Whether the opcode names the state space `space`, with or without a `::cta` behind.
    #[must_use]
    pub fn in_space(&self, space: &str) -> bool {
        self.opcode().any(|part| part.split("::").next() == Some(space))
    }

    /// Whether it is a directive that has `name` among its words.
    #[must_use]
    pub fn directive(&self, name: &str) -> bool {
        self.text.starts_with('.') && self.text.split_whitespace().any(|word| word == name)
    }
}

/// The statements of `ptx`. Inline assembly may put several on a line, parted by `;`.
#[must_use]
pub fn statements(ptx: &str) -> Vec<Line<'_>> {
    let mut found = Vec::new();
    let mut in_comment = false;
    for (index, mut line) in ptx.lines().enumerate() {
        while !line.is_empty() {
            if in_comment {
                let Some((_, rest)) = line.split_once("*/") else { break };
                (line, in_comment) = (rest, false);
            }
            let (slashes, star) = (line.find("//"), line.find("/*"));
            let opens = star.filter(|star| slashes.is_none_or(|slashes| *star < slashes));
            let end = opens.or(slashes).unwrap_or(line.len());
            split(index + 1, &line[..end], &mut found);
            let Some(start) = opens else { break };
            (line, in_comment) = (&line[start + 2..], true);
        }
    }
    found
}

fn split<'a>(number: usize, line: &'a str, found: &mut Vec<Line<'a>>) {
    // An initialiser's braces are part of its directive.
    let pieces: Vec<&str> =
        if line.contains('=') { vec![line] } else { line.split([';', '{', '}']).collect() };
    for piece in pieces {
        let mut text = piece.trim().trim_end_matches(';');
        if let Some((label, rest)) = text.split_once(':')
            && !rest.starts_with(':')
            && label.chars().all(|c| c.is_alphanumeric() || "_$%".contains(c))
        {
            text = rest.trim();
        }
        if text.starts_with('@') {
            text = text.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim());
        }
        if !text.is_empty() {
            found.push(Line { number, text });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::statements;

    fn texts(ptx: &str) -> Vec<&str> {
        statements(ptx).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn comments_labels_predicates_and_braces_go() {
        assert_eq!(texts("\t// atom.add\n\t{ // callseq\n$L__BB0_1: @!%p1 bra $L;\n"), ["bra $L"]);
        assert_eq!(texts("{ .reg .b64 t; mov.b64 t, 1; }"), [".reg .b64 t", "mov.b64 t, 1"]);
        assert_eq!(texts("/* a\n b */ ret; /* c */ exit; // d"), ["ret", "exit"]);
        assert_eq!(texts("ld.shared::cta.b32 %r1, [a];"), ["ld.shared::cta.b32 %r1, [a]"]);
    }

    #[test]
    fn initialisers_stay_whole() {
        assert_eq!(texts(".global .b8 a[2] = {1, 2};"), [".global .b8 a[2] = {1, 2}"]);
    }
}
