//! SHA-256: tells whether a file is the one that a manifest describes.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The SHA-256 of a file's `contents` in hexadecimal.
#[must_use]
pub fn sha256<T: AsRef<[u8]> + ?Sized>(contents: &T) -> String {
    Sha256::digest(contents.as_ref()).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::sha256;

    #[test]
    fn the_standard_s_examples() {
        for (text, digest) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
        ] {
            assert_eq!(sha256(text), digest, "{text}");
        }
        let million = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
        assert_eq!(sha256(&"a".repeat(1_000_000)), million);
    }

    #[test]
    fn lengths_around_a_block_differ() {
        let digests: Vec<String> = (54..66).map(|n| sha256(&"x".repeat(n))).collect();
        let mut unique = digests.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), digests.len());
    }
}
