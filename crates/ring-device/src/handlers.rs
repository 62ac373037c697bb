//! Several handlers of one kernel: which of them a request is for, as the first that a message says, and what each takes and
//! gives.
//!
//! [`ring_kernel!`](crate::ring_kernel) makes of them one handler, which chooses by the [tag](Tagged) of the request. So nothing
//! else of a kernel knows of them: messages of all its handlers go through the same rings, in order.

use crate::block::{Cooperate, Threads};
use crate::context::Output;
use crate::kernel::Kernel;
use bytemuck::{Pod, Zeroable};
use ring_shared::Message;
use ring_shared::message::{INLINE_ATOM_BYTES, INLINE_ATOMS};

/// A message of a kernel with several handlers: a request with the handler that it is for, or a response with the one that gave it.
///
/// `body` has room for the largest of their messages, in words as wide as the most strictly aligned of them is; it is zero behind
/// the message. [`Handler::request`] makes one, and [`Handler::answer`] reads one.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tagged<W, const WORDS: usize> {
    body: Body<W, WORDS>,
    tag: W,
}

/// Room for one of several messages; it is zero behind the message.
#[doc(hidden)]
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body<W, const WORDS: usize>([W; WORDS]);

// SAFETY: all zeros is a value of each of its words.
unsafe impl<W: Zeroable, const WORDS: usize> Zeroable for Body<W, WORDS> {}
// SAFETY: words of one type side by side, so there is no padding, and each of them is plain bytes.
unsafe impl<W: Pod, const WORDS: usize> Pod for Body<W, WORDS> {}

// SAFETY: all zeros is a value of each of its words.
unsafe impl<W: Zeroable, const WORDS: usize> Zeroable for Tagged<W, WORDS> {}
// SAFETY: words of one type side by side, so there is no padding, and each of them is plain bytes.
unsafe impl<W: Pod, const WORDS: usize> Pod for Tagged<W, WORDS> {}

/// Sixteen bytes, for messages that are aligned so.
#[doc(hidden)]
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Quad([u64; 2]);

/// A word of a [`Tagged`].
#[doc(hidden)]
pub trait TagWord: Pod {
    fn from_tag(tag: u32) -> Self;
    /// What the other side wrote may be any number.
    fn to_tag(self) -> u64;
    /// The same word, of which the compiler knows nothing.
    fn opaque(self) -> Self;
}

impl TagWord for u32 {
    #[inline(always)]
    fn from_tag(tag: u32) -> u32 {
        tag
    }

    #[inline(always)]
    fn to_tag(self) -> u64 {
        self.into()
    }

    #[inline(always)]
    fn opaque(self) -> u32 {
        Threads::opaque32(self)
    }
}

impl TagWord for u64 {
    #[inline(always)]
    fn from_tag(tag: u32) -> u64 {
        tag.into()
    }

    #[inline(always)]
    fn to_tag(self) -> u64 {
        self
    }

    #[inline(always)]
    fn opaque(self) -> u64 {
        Threads::opaque(core::ptr::without_provenance::<()>(self as usize)).addr() as u64
    }
}

impl TagWord for Quad {
    #[inline(always)]
    fn from_tag(tag: u32) -> Quad {
        Quad([tag.into(), 0])
    }

    #[inline(always)]
    fn to_tag(self) -> u64 {
        self.0[0]
    }

    #[inline(always)]
    fn opaque(self) -> Quad {
        Quad(self.0.map(TagWord::opaque))
    }
}

/// An alignment, in bytes.
#[doc(hidden)]
#[derive(Debug)]
pub struct Align<const BYTES: usize>;

/// The word that is aligned so.
#[doc(hidden)]
pub trait HasWord {
    type Word: TagWord;
}

impl HasWord for Align<4> {
    type Word = u32;
}

impl HasWord for Align<8> {
    type Word = u64;
}

impl HasWord for Align<16> {
    type Word = Quad;
}

/// Bytes of the word for messages of which the most strictly aligned is aligned so; what is more than 16 is refused elsewhere.
#[doc(hidden)]
pub const fn word_bytes(aligns: &[usize]) -> usize {
    match most(aligns) {
        0..=4 => 4,
        5..=8 => 8,
        _ => 16,
    }
}

/// Words that the largest of so large messages takes.
#[doc(hidden)]
pub const fn words(sizes: &[usize], aligns: &[usize]) -> usize {
    most(sizes).div_ceil(word_bytes(aligns))
}

const fn most(of: &[usize]) -> usize {
    let (mut most, mut i) = (0, 0);
    while i < of.len() {
        if of[i] > most {
            most = of[i];
        }
        i += 1;
    }
    most
}

impl<W: TagWord, const WORDS: usize> Output<Tagged<W, WORDS>> {
    /// The message as the handler of that tag makes it.
    #[doc(hidden)]
    #[inline(always)]
    pub fn of_handler<T: Message>(&self, tag: u32) -> Output<T> {
        const { assert!(Body::<W, WORDS>::holds::<T>(), "a message of another kernel") };
        self.set_tag(tag);
        // SAFETY: it has room in `body`, by the assertion.
        unsafe { self.beginning() }
    }

    /// No handler has made it.
    #[doc(hidden)]
    #[inline(always)]
    pub fn of_nobody(&self) {
        self.set_tag(NOBODY);
    }

    /// The tag is a number of 32 bits; the other words of it stay zero.
    #[inline(always)]
    fn set_tag(&self, tag: u32) {
        self.set(core::mem::offset_of!(Tagged<W, WORDS>, tag), 0, tag);
    }
}

/// The tag of a response to a request whose tag no handler has.
const NOBODY: u32 = u32::MAX;

/// A message that says which handler it is for, or from.
#[doc(hidden)]
pub trait HasTag: Message {
    fn tag(&self) -> u64;
    fn body<T: Message>(&self) -> &T;
    fn of<T: Message>(tag: u32, body: T) -> Self;
    /// The answer to a request whose tag no handler has.
    fn of_nobody() -> Self;
}

/// One of several messages, without a tag.
#[doc(hidden)]
pub trait HasBody: Message {
    fn body<T: Message>(&self) -> &T;
    fn of<T: Message>(body: T) -> Self;
}

impl<W, const WORDS: usize> Body<W, WORDS> {
    /// Whether a `T` lies at the beginning of one.
    const fn holds<T>() -> bool {
        size_of::<T>() <= WORDS * size_of::<W>() && align_of::<T>() <= align_of::<W>()
    }
}

impl<W: TagWord, const WORDS: usize> HasBody for Body<W, WORDS> {
    #[inline(always)]
    fn body<T: Message>(&self) -> &T {
        const { assert!(Self::holds::<T>(), "a message of another kernel") };
        // SAFETY: it is at the beginning, by the assertion, and aligned; any bytes are one.
        unsafe { &*(&raw const self.0).cast() }
    }

    #[inline(always)]
    fn of<T: Message>(body: T) -> Self {
        const { assert!(Self::holds::<T>(), "a message of another kernel") };
        let mut room = Body([W::zeroed(); WORDS]);
        // SAFETY: it has room, by the assertion, and is aligned.
        unsafe { (&raw mut room.0).cast::<T>().write(body) };
        room
    }
}

impl<W: TagWord, const WORDS: usize> Tagged<W, WORDS> {
    /// A copy in registers, if it is small enough to arrive in one doorbell line. All of it is read before a handler is chosen, so
    /// that the handler need not wait for the tag first and for what it takes then.
    #[doc(hidden)]
    #[inline(always)]
    pub fn in_registers(&self) -> Option<Self> {
        const ONE_LINE: usize = INLINE_ATOMS * INLINE_ATOM_BYTES;
        (size_of::<Self>() <= ONE_LINE).then(|| {
            let mut copy = *self;
            for word in &mut copy.body.0 {
                *word = word.opaque();
            }
            copy
        })
    }
}

impl<W: TagWord, const WORDS: usize> HasTag for Tagged<W, WORDS> {
    #[inline(always)]
    fn tag(&self) -> u64 {
        self.tag.to_tag()
    }

    #[inline(always)]
    fn body<T: Message>(&self) -> &T {
        self.body.body()
    }

    #[inline(always)]
    fn of<T: Message>(tag: u32, body: T) -> Self {
        Tagged { body: HasBody::of(body), tag: W::from_tag(tag) }
    }

    #[inline(always)]
    fn of_nobody() -> Self {
        Tagged { body: Zeroable::zeroed(), tag: W::from_tag(NOBODY) }
    }
}

/// A type whose constants are named functions of a kernel `K`, each with its tag, that take a `Q` and give an `R`.
macro_rules! functions_of_kernels {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        pub struct $name<K, Q, R> {
            tag: u32,
            name: &'static str,
            of: core::marker::PhantomData<fn(Q) -> (K, R)>,
        }

        impl<K, Q, R> Clone for $name<K, Q, R> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<K, Q, R> Copy for $name<K, Q, R> {}

        impl<K: $crate::Kernel, Q, R> core::fmt::Debug for $name<K, Q, R> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{}::{}", K::NAME, self.name)
            }
        }

        impl<K, Q, R> $name<K, Q, R> {
            #[doc(hidden)]
            pub const fn new(tag: u32, name: &'static str) -> Self {
                $name { tag, name, of: core::marker::PhantomData }
            }

            /// Its name.
            pub const fn name(self) -> &'static str {
                self.name
            }
        }
    };
}
pub(crate) use functions_of_kernels;

functions_of_kernels! {
    /// One of several handlers of kernel `K`, which takes a `Q` and gives an `R`: a constant of the kernel's type, which has the name of
    /// the handler.
    ///
    /// ```
    /// ring_device::ring_kernel! {
    ///     /// An account.
    ///     pub struct Account;
    ///
    ///     /// Pays in; gives the balance.
    ///     fn pay_in(balance: &mut u64, amount: &u64) -> u64 {
    ///         *balance = balance.wrapping_add(*amount);
    ///         *balance
    ///     }
    ///
    ///     /// Whether there is as much.
    ///     fn covers(balance: &mut u64, amount: &u64) -> u32 {
    ///         u32::from(*balance >= *amount)
    ///     }
    /// }
    ///
    /// let request = Account::covers.request(100); // what a channel carries, as any request
    /// assert_eq!(Account::covers.name(), "covers");
    /// # let _ = request;
    /// ```
    Handler
}

impl<K, Q, R> Handler<K, Q, R> {
    #[doc(hidden)]
    #[inline(always)]
    pub const fn tag(self) -> u32 {
        self.tag
    }
}

impl<K: Kernel<Request: HasTag, Response: HasTag>, Q: Message, R: Message> Handler<K, Q, R> {
    /// The request by which it is asked.
    #[inline]
    pub fn request(self, request: Q) -> K::Request {
        HasTag::of(self.tag, request)
    }

    /// What it has answered; none if the response is another handler's.
    #[inline]
    pub fn answer(self, response: &K::Response) -> Option<R> {
        (response.tag() == self.tag.into()).then(|| *response.body())
    }
}
