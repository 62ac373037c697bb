//! What both sides of a ring kernel agree on: the layout of every struct in memory that host and
//! device share, and the ring that carries messages between them.
//!
//! The crate is `no_std`, never allocates, and is compiled three times from one source: for the
//! host, for the GPU (`nvptx64-nvidia-cuda`), and for the model checker loom. The atomics that
//! differ are behind [`atomics`].
//!
//! Where to look:
//! - [`ring`]: the protocol, one file: what a producer writes and how a consumer reads it.
//! - [`Outbox`] and [`Inbox`]: the protocol run by one thread, as on the host and on the CPU
//!   device. On the GPU a block runs it together (`ring-device`), with the same decisions.
//! - [`layout`]: control block, channel, doorbell, descriptors; every size and offset asserted.
//! - [`Message`]: what may travel.
//! - [`calls`]: what handlers ask the host.
//! - [`trace`]: what is noted of messages, for whoever wants to know afterwards.
//! - [`BufferRef`]: what names device memory that kernels share.
//!
//! ```
//! use ring_shared::{Inbox, Outbox, heap::RingMemory};
//!
//! let memory = RingMemory::new::<u64>(4, 0);
//! let (mut outbox, mut inbox) = (Outbox::new(memory.ring()), Inbox::new(memory.ring()));
//! outbox.push(&42u64, 0).unwrap();
//! assert_eq!(inbox.pop::<u64>().unwrap(), Some(42));
//! assert_eq!(inbox.pop::<u64>().unwrap(), None);
//! ```
//!
//! Limits: one producer and one consumer a ring; capacity a power of two up to
//! [`MAX_CAPACITY`](ring::MAX_CAPACITY); messages up to [`MAX_MESSAGE_BYTES`] bytes.
#![cfg_attr(not(any(test, feature = "std", loom)), no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(asm_experimental_arch))]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod atomics;
pub mod buffer;
pub mod calls;
#[cfg(any(feature = "std", test, loom))]
pub mod heap;
pub mod inbox;
pub mod layout;
pub mod message;
pub mod outbox;
pub mod ring;
pub mod slot;
pub mod trace;

pub use buffer::{BufferRef, Element, Element32, ElementAdd, ElementAtomic};
pub use inbox::Inbox;
pub use message::{MAX_MESSAGE_BYTES, Message};
pub use outbox::Outbox;
pub use ring::{Corrupt, PushError, Ring};

/// Version of every layout and rule in this crate. Host and device refuse each other when it
/// differs; the PTX carries it as the global `RING_ABI_VERSION`.
pub const ABI_VERSION: u32 = 15;

/// First word of a control block: "RINGCTRL" in ASCII, little endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"RINGCTRL");

/// The example in the package's README compiles and runs as it is printed.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
