//! The module as a whole: what it asks of the driver, what it exports, and no debug information.

use super::{Line, Violation};
use crate::pins::{self, Module};

/// No debug information: it holds paths, so it would differ from clone to clone.
#[must_use]
pub fn debug(lines: &[Line<'_>]) -> Vec<Violation> {
    let directive = |line: &&Line<'_>| {
        let first = line.text.split_whitespace().next().unwrap_or_default();
        matches!(first, ".file" | ".loc" | ".section") || line.text.contains(".debug_")
    };
    lines.iter().filter(directive).map(|line| Violation::at(line, "debug information")).collect()
}

/// `.version` and `.target` are no newer than promised.
#[must_use]
pub fn header(lines: &[Line<'_>]) -> Vec<Violation> {
    let value = |name: &str| {
        lines.iter().find_map(|line| Some((line, line.text.strip_prefix(name)?.trim())))
    };
    let mut found = Vec::new();
    match value(".version ") {
        Some((line, version)) => {
            let parsed =
                version.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
            if parsed.is_none_or(|parsed: (u32, u32)| parsed > pins::ARCH.ptx_version()) {
                found.push(Violation::at(line, "PTX version above 8.4"));
            }
        }
        None => found.push(Violation::missing(".version", "missing directive")),
    }
    match value(".target ") {
        Some((line, target)) => {
            if target.split(',').next().map(str::trim) != Some(pins::ARCH.to_string().as_str()) {
                found.push(Violation::at(line, "target other than sm_70"));
            }
        }
        None => found.push(Violation::missing(".target", "missing directive")),
    }
    found
}

/// Every entry point and the ABI version's global are there.
#[must_use]
pub fn exports(module: &Module, lines: &[Line<'_>]) -> Vec<Violation> {
    let word = |c: char| !(c.is_alphanumeric() || c == '_');
    let has = |directive: &str, name: &str| {
        lines.iter().any(|line| {
            line.directive(".visible")
                && line.directive(directive)
                && line.text.split(word).any(|w| w == name)
        })
    };
    let entries = module.entries.iter().filter(|name| !has(".entry", name));
    let mut found: Vec<Violation> =
        entries.map(|name| Violation::missing(*name, "missing entry point")).collect();
    if !has(".global", pins::ABI_GLOBAL) {
        found.push(Violation::missing(pins::ABI_GLOBAL, "missing global"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::{check, lines::statements};
    use super::{debug, header};
    use crate::pins::BUILT_IN;

    fn exports(lines: &[super::Line<'_>]) -> Vec<super::Violation> {
        super::exports(&BUILT_IN, lines)
    }

    const GOOD: &str = "\
.version 8.4
.target sm_70
.address_size 64
.visible .global .align 4 .b8 RING_ABI_VERSION[4] = {1};
.visible .entry ring_echo(
)
.visible .entry ring_vector_add(
)
.visible .entry ring_layout_probe(
)
";

    #[test]
    fn a_complete_module_passes_every_rule() {
        assert_eq!(check(&BUILT_IN, GOOD), []);
    }

    #[test]
    fn a_newer_header_is_found() {
        for (good, bad) in [
            (".version 8.4", ".version 8.5"),
            (".version 8.4", ".version 9.0"),
            (".version 8.4", ""),
            (".target sm_70", ".target sm_90a"),
            (".target sm_70", ""),
        ] {
            assert_eq!(header(&statements(&GOOD.replace(good, bad))).len(), 1, "{bad}");
        }
        assert_eq!(header(&statements(&GOOD.replace("8.4", "7.8"))), []);
    }

    #[test]
    fn a_missing_export_is_found() {
        for name in ["ring_echo", "ring_vector_add", "ring_layout_probe", "RING_ABI_VERSION"] {
            let bad = GOOD.replace(name, "other");
            assert_eq!(exports(&statements(&bad)).len(), 1, "{name}");
        }
        assert_eq!(
            exports(&statements(&GOOD.replace(".visible .entry ring_echo(", ".func ring_echo(")))
                .len(),
            1
        );
    }

    #[test]
    fn debug_information_is_found() {
        for bad in [".file 1 \"/a/b.rs\"", ".loc 1 2 3", ".section .debug_info"] {
            assert_eq!(debug(&statements(bad)).len(), 1, "{bad}");
        }
    }
}
