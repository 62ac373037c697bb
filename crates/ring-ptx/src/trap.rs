//! What a panic does in a module.

use crate::entries;

/// An entry that only modules of Rust-CUDA have: it keeps the global of the ABI version alive.
pub const ABI_ENTRY: &str = "ring_abi_version";

/// Whether a handler that panics traps. A trap ends all that the process has on the GPU, and no call of the
/// driver helps. So it is in modules that Rust-CUDA made, whose panic handler is that of its library;
/// in others a panic ends its kernel and nothing else.
#[must_use]
pub fn traps_on_panic(ptx: &str) -> bool {
    entries(ptx).any(|name| name == ABI_ENTRY)
}

#[cfg(test)]
mod tests {
    use super::traps_on_panic;

    #[test]
    fn modules_of_rust_cuda_are_known_by_an_entry() {
        let with = |name: &str| {
            format!(".version 8.4\n.visible .entry {name}(\n.param .u64 a\n)\n{{ ret; }}")
        };
        assert!(traps_on_panic(&with("ring_abi_version")));
        assert!(!traps_on_panic(&with("ring_echo")));
        assert!(!traps_on_panic(&with("ring_abi_version_2")));
        assert!(!traps_on_panic("// .visible .entry ring_abi_version("));
    }
}
