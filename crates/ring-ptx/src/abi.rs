//! The ABI version of a module.

use crate::{bytes, statements};

/// The global that carries the ABI version.
pub const ABI_GLOBAL: &str = "RING_ABI_VERSION";

/// The number in `.global ... RING_ABI_VERSION = N;`. LLVM writes it so, or as bytes from the lowest on,
/// of which zeros at the end may be left out.
#[must_use]
pub fn abi_version(ptx: &str) -> Option<u32> {
    let value = statements(ptx).find_map(|statement| {
        let (declared, value) = statement.text.split_once('=')?;
        let name = declared.split_whitespace().last()?.split('[').next();
        (statement.directive(".global") && name == Some(ABI_GLOBAL)).then_some(value.trim())
    })?;
    if !value.starts_with('{') {
        return value.parse().ok();
    }
    let mut version = [0; 4];
    for (k, byte) in bytes(value).enumerate() {
        *version.get_mut(k)? = byte?;
    }
    Some(u32::from_le_bytes(version))
}

#[cfg(test)]
mod tests {
    use super::abi_version;

    #[test]
    fn the_version_is_a_number_or_bytes() {
        let of = |value: &str| {
            abi_version(&format!(".visible .global .align 4 .b8 RING_ABI_VERSION[4] = {value};"))
        };
        assert_eq!(of("{2, 1}"), Some(258));
        assert_eq!(of("{2, 1, 0, 0}"), Some(258));
        assert_eq!(of("{2, 1, 0, 0, 0}"), None);
        assert_eq!(of("{2, x}"), None);
        assert_eq!(of("x"), None);
        assert_eq!(abi_version(".visible .global .u32 RING_ABI_VERSION = 7;"), Some(7));
        assert_eq!(abi_version(".visible .global .u32 RING_ABI_VERSION = 7 ; "), Some(7));
        assert_eq!(abi_version(".global .u32 NO_RING_ABI_VERSION = 7;"), None);
        assert_eq!(abi_version("// .global .u32 RING_ABI_VERSION = 7;"), None);
        assert_eq!(abi_version(".version 8.4"), None);
    }
}
