//! The module as a whole: what it asks of the driver, what it exports, and no debug information.

use super::Violation;
use crate::pins::{self, Module};
use ring_ptx::Statement;

/// No debug information: it holds paths, so it would differ from clone to clone.
#[must_use]
pub fn debug(lines: &[Statement<'_>]) -> Vec<Violation> {
    let directive = |line: &&Statement<'_>| {
        let first = line.text.split_whitespace().next().unwrap_or_default();
        matches!(first, ".file" | ".loc" | ".section") || line.text.contains(".debug_")
    };
    lines.iter().filter(directive).map(|line| Violation::at(line, "debug information")).collect()
}

/// `.version` and `.target` are no newer than promised.
#[must_use]
pub fn header(ptx: &str) -> Vec<Violation> {
    let header = ring_ptx::header(ptx);
    let of = |name: &str, found: Option<Statement<'_>>, fits: bool, why| match found {
        Some(_) if fits => None,
        Some(statement) => Some(Violation::at(&statement, why)),
        None => Some(Violation::missing(name, "missing directive")),
    };
    let old = header.version().is_some_and(|version| version <= pins::ARCH.ptx_version());
    let ours = header.architecture() == Some(&pins::ARCH.to_string());
    let version = of(".version", header.version, old, "PTX version above 8.4");
    let target = of(".target", header.target, ours, "target other than sm_70");
    version.into_iter().chain(target).collect()
}

/// The entry points are those of the module, no more and no less, and the ABI version is there.
#[must_use]
pub fn exports(module: &Module, ptx: &str) -> Vec<Violation> {
    let there: Vec<&str> = ring_ptx::entries(ptx).collect();
    let missing = module.entries.iter().filter(|name| !there.contains(name));
    let others = there.iter().filter(|name| !module.entries.contains(name));
    let missing = missing.map(|name| Violation::missing(*name, "missing entry point"));
    let others = others.map(|name| {
        Violation::missing(
            *name,
            "entry point that xtask/src/pins.rs does not list for this module",
        )
    });
    let mut found: Vec<Violation> = missing.chain(others).collect();
    if ring_ptx::abi_version(ptx).is_none() {
        found.push(Violation::missing(ring_ptx::ABI_GLOBAL, "missing global"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::{debug, exports, header};
    use crate::pins::BUILT_IN;

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
.visible .entry ring_page_probe(
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
            assert_eq!(header(&GOOD.replace(good, bad)).len(), 1, "{bad}");
        }
        assert_eq!(header(&GOOD.replace("8.4", "7.8")), []);
    }

    #[test]
    fn a_missing_export_is_found() {
        let missing = |ptx: &str| exports(&BUILT_IN, ptx);
        for name in ["ring_echo", "ring_vector_add", "ring_layout_probe", "ring_page_probe"] {
            let [missing, other] = &missing(&GOOD.replace(name, "other"))[..] else { panic!() };
            assert_eq!((missing.text.as_str(), other.text.as_str()), (name, "other"));
        }
        for (good, bad) in [
            ("RING_ABI_VERSION", "OTHER"),
            (".visible .entry ring_echo(", ".func ring_echo("),
            (".visible .entry ring_echo(", ".entry ring_echo("),
        ] {
            assert_eq!(missing(&GOOD.replace(good, bad)).len(), 1, "{bad}");
        }
    }

    #[test]
    fn debug_information_is_found() {
        for bad in [".file 1 \"/a/b.rs\"", ".loc 1 2 3", ".section .debug_info"] {
            assert_eq!(debug(&ring_ptx::statements(bad).collect::<Vec<_>>()).len(), 1, "{bad}");
        }
    }
}
