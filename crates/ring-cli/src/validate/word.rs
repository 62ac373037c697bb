//! The first wrong word of an answer.

use ring_host::kernels::EchoMessage;
use std::fmt;

/// A word of an answer that is not the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongWord {
    index: usize,
    got: u64,
    expected: u64,
}

impl WrongWord {
    /// The first such word of `got`; none if all are as expected.
    pub fn first(got: &EchoMessage, expected: &EchoMessage) -> Option<WrongWord> {
        let mut pairs = got.words.iter().zip(&expected.words).enumerate();
        let (index, (&got, &expected)) = pairs.find(|(_, (got, expected))| got != expected)?;
        Some(WrongWord { index, got, expected })
    }
}

impl fmt::Display for WrongWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrongWord { index, got, expected } = self;
        write!(f, "word {index}: got {got:#018x}, expected {expected:#018x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_named() {
        let expected = EchoMessage { words: [9; 8] };
        assert_eq!(WrongWord::first(&expected, &expected), None);
        let got = EchoMessage { words: [9, 9, 1, 9, 2, 9, 9, 9] };
        let wrong = WrongWord::first(&got, &expected).unwrap();
        let text = "word 2: got 0x0000000000000001, expected 0x0000000000000009";
        assert_eq!(wrong.to_string(), text);
    }
}
