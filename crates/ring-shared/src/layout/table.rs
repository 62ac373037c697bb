//! Shared structs and what is known of their layout: [`shared_struct!`] writes a struct down once, with
//! the offset of each field, asserts size, alignment and offsets, and makes them rows of [`table`].

use super::{
    BufferEntry, ChannelBlock, ConfigLine, ControlBlock, CreditLine, DevicesLine, Doorbell,
    HostLine, Link, Links, RingDescriptor, StatusLine, Times,
};
use crate::atomics::Atom;
use core::fmt;

/// A size or an offset of a shared struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The struct.
    pub of: &'static str,
    /// The field, or empty: the row is about the size of the struct.
    pub field: &'static str,
    /// Bytes.
    pub bytes: u64,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            "" => f.write_str(self.of),
            field => write!(f, "{}.{field}", self.of),
        }
    }
}

/// Declares a `#[repr(C)]` struct with the offset of each field, and asserts all of it.
macro_rules! shared_struct {
    (
        $(#[$about:meta])*
        pub struct $name:ident: size $size:literal, align $align:literal {
            $($(#[$doc:meta])* $vis:vis $field:ident @ $at:literal: $type:ty,)+
        }
    ) => {
        $(#[$about])*
        #[repr(C, align($align))]
        #[derive(Debug)]
        pub struct $name {
            $($(#[$doc])* $vis $field: $type,)+
        }

        const _: () = {
            static_assertions::const_assert_eq!(size_of::<$name>(), $size);
            static_assertions::const_assert_eq!(align_of::<$name>(), $align);
            $(static_assertions::const_assert_eq!(core::mem::offset_of!($name, $field), $at);)+
        };

        impl $name {
            pub(crate) const ROWS: &'static [crate::layout::Row] = &[
                crate::layout::Row {
                    of: stringify!($name),
                    field: "",
                    bytes: size_of::<$name>() as u64,
                },
                $(crate::layout::Row {
                    of: stringify!($name),
                    field: stringify!($field),
                    bytes: core::mem::offset_of!($name, $field) as u64,
                },)+
            ];
        }
    };
}

/// The first rows: what is no struct of this module.
const FIRST: &[Row] = &[
    Row { of: "ABI version", field: "", bytes: crate::ABI_VERSION as u64 },
    Row { of: "magic", field: "", bytes: crate::MAGIC },
    Row { of: "Atom", field: "", bytes: size_of::<Atom>() as u64 },
];

const PARTS: [&[Row]; 14] = [
    FIRST,
    HostLine::ROWS,
    ConfigLine::ROWS,
    ControlBlock::ROWS,
    RingDescriptor::ROWS,
    StatusLine::ROWS,
    Times::ROWS,
    Doorbell::ROWS,
    CreditLine::ROWS,
    ChannelBlock::ROWS,
    Links::ROWS,
    Link::ROWS,
    BufferEntry::ROWS,
    DevicesLine::ROWS,
];

/// How many rows there are.
pub const TABLE_LEN: usize = {
    let (mut rows, mut part) = (0, 0);
    while part < PARTS.len() {
        rows += PARTS[part].len();
        part += 1;
    }
    rows
};

/// Sizes and offsets of every shared struct, and the numbers that both sides compare.
pub const ROWS: [Row; TABLE_LEN] = {
    let mut rows = [FIRST[0]; TABLE_LEN];
    let (mut at, mut part) = (0, 0);
    while part < PARTS.len() {
        let mut k = 0;
        while k < PARTS[part].len() {
            rows[at] = PARTS[part][k];
            (at, k) = (at + 1, k + 1);
        }
        part += 1;
    }
    rows
};

/// The numbers of [`ROWS`]. The kernel `ring_layout_probe` writes them as the device's compiler sees them;
/// the host compares.
pub const fn table() -> [u64; TABLE_LEN] {
    let mut table = [0; TABLE_LEN];
    let mut at = 0;
    while at < TABLE_LEN {
        table[at] = ROWS[at].bytes;
        at += 1;
    }
    table
}
