//! Statements.

use crate::comments;

/// One statement or directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement<'a> {
    /// The line that it stands on, counted from 1.
    pub line: usize,
    /// Its text, without comment, braces, label, predicate and `;`.
    pub text: &'a str,
}

impl<'a> Statement<'a> {
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

    /// What stands behind the first word.
    #[must_use]
    pub fn value(&self) -> &'a str {
        self.text.split_once(char::is_whitespace).map_or("", |(_, value)| value.trim())
    }
}

/// The statements of `ptx`. Inline assembly may put several on a line, parted by `;`.
pub fn statements(ptx: &str) -> impl Iterator<Item = Statement<'_>> {
    comments::code(ptx).flat_map(|(line, code)| {
        // An initialiser's braces are part of its directive.
        let whole = code.contains('=');
        let pieces = code.split(move |c| !whole && matches!(c, ';' | '{' | '}'));
        pieces.map(bare).filter(|text| !text.is_empty()).map(move |text| Statement { line, text })
    })
}

/// A piece of a line without its label, predicate and `;`.
fn bare(piece: &str) -> &str {
    let mut text = piece.trim().trim_end_matches(';').trim_end();
    if let Some((label, rest)) = text.split_once(':')
        && !rest.starts_with(':')
        && label.chars().all(|c| c.is_alphanumeric() || "_$%".contains(c))
    {
        text = rest.trim();
    }
    if text.starts_with('@') {
        text = text.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::statements;

    fn texts(ptx: &str) -> Vec<&str> {
        statements(ptx).map(|statement| statement.text).collect()
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

    #[test]
    fn lines_are_counted_from_one() {
        let lines: Vec<_> = statements("ret;\n/*\n*/ bra a; ret;").map(|one| one.line).collect();
        assert_eq!(lines, [1, 3, 3]);
    }
}
