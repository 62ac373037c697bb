//! Entry points and functions by name and parameters.

use crate::statements;

/// What is said of an entry point or function before its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether the host launches it.
    pub entry: bool,
    parameters: &'a str,
}

impl<'a> Signature<'a> {
    /// Its parameters' names, in order.
    pub fn parameters(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let last = |one: &'a str| one.split_whitespace().last()?.split('[').next();
        self.parameters.split(',').filter_map(last)
    }
}

/// Reads what stands before a body, or as much of it as `text` has.
#[must_use]
pub fn signature(text: &str) -> Option<Signature<'_>> {
    let entry = text.contains(".entry");
    let (_, rest) = text.split_once(if entry { ".entry" } else { ".func" })?;
    let mut rest = rest.trim_start();
    // A function's results stand in brackets before its name.
    if rest.starts_with('(') {
        rest = rest.split_once(')').map_or("", |(_, rest)| rest);
    }
    let (name, rest) = rest.split_once('(').unwrap_or((rest, ""));
    let parameters = rest.split(')').next().unwrap_or_default();
    Some(Signature { name: name.split_whitespace().next()?, entry, parameters })
}

/// Names of the entry points that a host can launch, in the order of the text.
pub fn entries(ptx: &str) -> impl Iterator<Item = &str> {
    let visible =
        statements(ptx).filter(|one| one.directive(".visible") && one.directive(".entry"));
    visible.filter_map(|statement| Some(signature(statement.text)?.name))
}

#[cfg(test)]
mod tests {
    use super::{entries, signature};

    #[test]
    fn entries_are_those_that_are_visible() {
        let ptx = "
.visible .entry one(
)
.func two(
// .visible .entry three()
.visible .entry four()
.entry five()
.visible .entry
";
        assert!(entries(ptx).eq(["one", "four"]));
        assert_eq!(entries(".func a(").next(), None);
    }

    #[test]
    fn a_signature_has_a_name_and_parameters() {
        let one =
            signature(".visible .entry one(\n\t.param .u64 .ptr .align 1 one_param_0\n)").unwrap();
        assert_eq!((one.name, one.entry), ("one", true));
        assert!(one.parameters().eq(["one_param_0"]));
        let two = ".func (.param .b32 r) two(.param .b64 a, .param .align 8 .b8 b[16])";
        let two = signature(two).unwrap();
        assert_eq!((two.name, two.entry), ("two", false));
        assert!(two.parameters().eq(["a", "b"]));
        assert_eq!(signature(".func gone\n()\n.noreturn").map(|one| one.name), Some("gone"));
        assert_eq!(signature(".version 8.4"), None);
    }
}
