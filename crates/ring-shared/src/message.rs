//! What may travel through a ring, and how its bytes are cut into atoms.

use crate::ring::{MAX_SPAN, Ring, payload_of, stamped};
use bytemuck::Pod;

/// Largest message, in bytes: what the device's staging windows hold of one message.
pub const MAX_MESSAGE_BYTES: usize = 8192;

/// Bytes of payload in an atom of a doorbell line; the other four are its stamp.
pub const INLINE_ATOM_BYTES: usize = 12;

/// Atoms of a doorbell line that can carry payload.
pub const INLINE_ATOMS: usize = 7;

/// A message: plain bytes without padding ([`bytemuck::Pod`]), at most [`MAX_MESSAGE_BYTES`] long
/// and aligned to at most 16. Every such type is a message; one that is empty, too large or too
/// strictly aligned does not compile:
///
/// ```compile_fail
/// use ring_shared::Message;
/// let _ = <[u64; 2000] as Message>::SLOT_ATOMS; // 16,000 bytes
/// ```
pub trait Message: Pod {
    /// Atoms (16 bytes) of a slot that holds this message.
    const SLOT_ATOMS: usize = {
        assert!(size_of::<Self>() > 0, "a message must have at least one byte");
        assert!(
            size_of::<Self>() <= MAX_MESSAGE_BYTES,
            "a message has more than 8192 bytes (MAX_MESSAGE_BYTES): send it through the payload arena"
        );
        assert!(align_of::<Self>() <= 16, "a message may be aligned to at most 16 bytes");
        size_of::<Self>().div_ceil(16)
    };

    /// Stamped atoms that this message takes in doorbell lines.
    const INLINE_ATOMS: usize = size_of::<Self>().div_ceil(INLINE_ATOM_BYTES);

    /// Whether the message fits doorbell lines and so may travel inline: up to 336 bytes do.
    const FITS_INLINE: bool = Self::INLINE_ATOMS <= MAX_SPAN as usize * INLINE_ATOMS;

    /// Doorbell lines that it takes then; 1 if it does not fit.
    const SPAN: usize = match Self::FITS_INLINE {
        true => Self::INLINE_ATOMS.div_ceil(INLINE_ATOMS),
        false => 1,
    };
}

/// Whether messages of this type may go inline in that ring.
#[inline]
pub fn takes_inline<T: Message>(ring: &Ring) -> bool {
    T::FITS_INLINE && (T::SPAN == 1 || T::SPAN as u32 <= ring.span())
}

/// Doorbell lines that a message takes in both rings of a pair, for requests `Q` and responses `R`: as many as the larger
/// of those that fit.
pub const fn span_of_pair<Q: Message, R: Message>() -> usize {
    if Q::SPAN > R::SPAN { Q::SPAN } else { R::SPAN }
}

impl<T: Pod> Message for T {}

/// Bytes `at..at + 8` of the message, little endian, zero past its end.
#[inline]
pub(crate) fn word64<T: Message>(message: &T, at: usize) -> u64 {
    let bytes = bytemuck::bytes_of(message);
    let mut word = [0; 8];
    let end = bytes.len().min(at + 8);
    if at < end {
        word[..end - at].copy_from_slice(&bytes[at..end]);
    }
    u64::from_le_bytes(word)
}

/// Puts `word` at bytes `at..at + 8` of the message, dropping what lies past its end.
#[inline]
pub(crate) fn set_word64<T: Message>(message: &mut T, at: usize, word: u64) {
    let bytes = bytemuck::bytes_of_mut(message);
    let end = bytes.len().min(at + 8);
    if at < end {
        bytes[at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
    }
}

/// Inline atom `k` of the message, stamped.
///
/// Only words at multiples of eight bytes are read, and their halves shifted: a read across two words that were just
/// written waits on x86 until both have left the store buffer, behind lines that a device still holds.
#[inline]
pub(crate) fn inline_atom<T: Message>(message: &T, k: usize, stamp: u32) -> [u64; 2] {
    let at = 8 * (3 * k / 2);
    let (first, second) = (word64(message, at), word64(message, at + 8));
    let (low, high) = (|word: u64| word as u32, |word: u64| (word >> 32) as u32);
    let payload = match k % 2 {
        0 => [low(first), high(first), low(second)],
        _ => [high(first), low(second), high(second)],
    };
    stamped(payload, stamp)
}

/// Does `body` for each `k` in `0..n`, a constant of at most as many as a message has inline atoms: in loops of as many steps
/// as a line has atoms, for the compiler unrolls such, and `k` is a constant then. A closure it would not put in place.
macro_rules! unrolled {
    ($n:expr, $k:ident => $body:expr) => {{
        const LINE: usize = $crate::message::INLINE_ATOMS;
        let n: usize = $n;
        for $k in 0..n.min(LINE) {
            $body
        }
        for $k in LINE..n.min(2 * LINE) {
            $body
        }
        for $k in 2 * LINE..n.min(3 * LINE) {
            $body
        }
        for $k in 3 * LINE..n {
            $body
        }
    }};
}
pub(crate) use unrolled;

/// Words of eight bytes that the atoms of one line fill.
const LINE_WORDS: usize = (INLINE_ATOMS * INLINE_ATOM_BYTES).div_ceil(8);

/// The payload of the inline atoms of one line as a message, put together in registers.
#[derive(Clone, Copy)]
pub(crate) struct InlinePayload([u64; LINE_WORDS]);

impl InlinePayload {
    pub const EMPTY: InlinePayload = InlinePayload([0; LINE_WORDS]);

    /// With the payload of inline atom `k`, which comes once.
    #[inline]
    pub fn with(mut self, k: usize, atom: [u64; 2]) -> InlinePayload {
        let [first, second, third] = payload_of(atom).map(u64::from);
        let at = 3 * k / 2;
        if let Some([low, high]) = self.0.get_mut(at..at + 2) {
            match k % 2 {
                0 => (*low, *high) = (first | second << 32, third),
                _ => (*low, *high) = (*low | first << 32, second | third << 32),
            }
        }
        self
    }

    /// The message, of which these are the bytes.
    #[inline]
    pub fn into<T: Message>(self, message: &mut T) {
        let words = self.0.map(u64::to_le);
        let bytes = bytemuck::bytes_of_mut(message);
        let n = bytes.len().min(8 * LINE_WORDS);
        bytes[..n].copy_from_slice(&bytemuck::bytes_of(&words)[..n]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn survives<const N: usize>(bytes: [u8; N]) {
        let (mut slot, mut inline) = ([0u8; N], [0u8; N]);
        let mut payload = InlinePayload::EMPTY;
        for k in 0..N.div_ceil(8) {
            set_word64(&mut slot, 8 * k, word64(&bytes, 8 * k));
        }
        for k in 0..N.div_ceil(12) {
            let atom = inline_atom(&bytes, k, 0xdead_beef);
            assert_eq!(atom[1] >> 32, 0xdead_beef, "the stamp is the last word");
            payload = payload.with(k, atom);
        }
        payload.into(&mut inline);
        assert_eq!((slot, inline), (bytes, bytes));
    }

    proptest! {
        #[test]
        fn bytes_survive_being_cut(
            b in any::<[u8; 32]>(),
            long in proptest::collection::vec(any::<u8>(), 84),
        ) {
            survives(b);
            survives::<83>(long[..83].try_into().unwrap());
            survives::<84>(long[..].try_into().unwrap());
            survives::<1>(b[..1].try_into().unwrap());
            survives::<11>(b[..11].try_into().unwrap());
            survives::<12>(b[..12].try_into().unwrap());
            survives::<13>(b[..13].try_into().unwrap());
            survives::<23>(b[..23].try_into().unwrap());
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(<[u8; 64] as Message>::SLOT_ATOMS, 4);
        assert_eq!(<[u8; 65] as Message>::SLOT_ATOMS, 5);
        assert_eq!(<[u8; 64] as Message>::INLINE_ATOMS, 6);
        const { assert!(<[u8; 84] as Message>::FITS_INLINE) };
        const { assert!(<[u8; 336] as Message>::FITS_INLINE) };
        const { assert!(!<[u8; 337] as Message>::FITS_INLINE) };
        let spans = [<[u8; 84]>::SPAN, <[u8; 85]>::SPAN, <[u8; 168]>::SPAN, <[u8; 169]>::SPAN];
        assert_eq!(spans, [1, 2, 2, 3]);
        assert_eq!((<[u8; 252]>::SPAN, <[u8; 253]>::SPAN, <[u8; 336]>::SPAN), (3, 4, 4));
        assert_eq!(<[u8; 337] as Message>::SPAN, 1);
        assert_eq!(span_of_pair::<[u8; 16], [u8; 100]>(), 2);
        assert_eq!(span_of_pair::<[u8; 4096], [u8; 16]>(), 1);
    }
}
