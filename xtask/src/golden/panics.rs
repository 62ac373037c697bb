//! No panic path: nothing that formats, unwinds, prints, or carries a message.

use super::Violation;
use ring_ptx::Statement;

/// Parts of names that only a panic path or a formatter brings in, as the legacy and the v0 mangling
/// write them. `4core3fmt` is `core::fmt`.
const NAMES: [&str; 9] = [
    "panic",
    "4core3fmt",
    "core::fmt",
    "unwrap",
    "expect_failed",
    "slice_index",
    "len_mismatch",
    "rust_begin_unwind",
    "handle_alloc_error",
];

/// Functions of the CUDA device library that a kernel of ours never calls.
const CALLEES: [&str; 5] = ["vprintf", "__assertfail", "malloc", "free", "cudaLaunchDevice"];

/// No symbol of a panic path, declared, defined or used.
#[must_use]
pub fn symbols(lines: &[Statement<'_>]) -> Vec<Violation> {
    let named = |line: &&Statement<'_>| NAMES.iter().any(|name| line.text.contains(name));
    lines
        .iter()
        .filter(named)
        .map(|line| Violation::at(line, "panic or formatting symbol"))
        .collect()
}

/// No call of the device library's printing, asserting and allocating functions.
#[must_use]
pub fn calls(lines: &[Statement<'_>]) -> Vec<Violation> {
    let word = |c: char| !(c.is_alphanumeric() || c == '_');
    let named = |line: &&Statement<'_>| line.text.split(word).any(|name| CALLEES.contains(&name));
    lines
        .iter()
        .filter(named)
        .map(|line| Violation::at(line, "call of the device library"))
        .collect()
}

/// No initialised bytes that read as a source file's name, which a panic's location would leave.
#[must_use]
pub fn embedded_text(lines: &[Statement<'_>]) -> Vec<Violation> {
    let holds_path = |line: &&Statement<'_>| {
        let bytes: Vec<u8> = ring_ptx::bytes(line.text).map_while(|byte| byte).collect();
        line.text.contains(".b8 ") && String::from_utf8_lossy(&bytes).contains(".rs")
    };
    lines
        .iter()
        .filter(holds_path)
        .map(|line| Violation::at(line, "name of a source file"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{calls, embedded_text, symbols};
    use ring_ptx::Statement;

    fn statements(ptx: &str) -> Vec<Statement<'_>> {
        ring_ptx::statements(ptx).collect()
    }

    #[test]
    fn panic_symbols_are_found() {
        for bad in [
            ".func _RNvNtCsbSE61zFgCyu_4core9panicking18panic_bounds_check",
            "call.uni _RNvNtCs1_4core6option13unwrap_failed, ();",
            ".func _RNvNtCs1_4core6option13expect_failed()",
            ".func (.param .b32 r) _RNvXs1_NtNtCs1_4core3fmt3numjNtB7_7Display3fmt(",
        ] {
            assert_eq!(symbols(&statements(bad)).len(), 1, "{bad}");
        }
        assert!(
            symbols(&statements(".visible .entry ring_echo(\n// panic\ncall.uni ring_poll, ();"))
                .is_empty()
        );
    }

    #[test]
    fn library_calls_are_found() {
        assert_eq!(calls(&statements("call.uni (retval0), vprintf, (param0, param1);")).len(), 1);
        assert_eq!(calls(&statements(".extern .func (.param .b32 r) vprintf (")).len(), 1);
        assert!(calls(&statements(".visible .entry ring_free_slots(")).is_empty());
    }

    #[test]
    fn source_names_are_found() {
        let bad = ".global .align 1 .b8 anon_0[6] = {115, 114, 99, 46, 114, 115};";
        assert_eq!(embedded_text(&statements(bad)).len(), 1);
        assert!(
            embedded_text(&statements(".visible .global .align 4 .b8 RING_ABI_VERSION[4] = {1};"))
                .is_empty()
        );
    }
}
