//! What `ring_kernel!` asks of the types of messages and states, as bounds: the compiler then points at the
//! type where it stands in the kernel, and says in our words what is wrong. A panic in a constant points into
//! `core`, and a bound on bytemuck's traits is told in bytemuck's words.
//!
//! Kernels written by hand meet the same limits where they are launched, in
//! [`Message::SLOT_ATOMS`](ring_shared::Message::SLOT_ATOMS) and [`Scope`](crate::Scope).

use crate::scope::MAX_STATE_BYTES;
use bytemuck::Pod;
#[doc(no_inline)]
pub use ring_shared::MAX_MESSAGE_BYTES;

/// What each message is.
// Without `do_not_recommend` the compiler asks for `Pod`, or for what bytemuck asks for below it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a message: it is not plain bytes",
    label = "not plain bytes",
    note = "plain bytes are integers, floats, arrays of them, and structs of them with `#[repr(C)]` and \
            `#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]`, without padding",
    note = "in place of a `bool`, an enum or an `Option` send a struct of the value and a `u32` that says \
            which; in place of text or a list an array, or its place in the payload arena"
)]
pub trait PlainMessage {}
#[diagnostic::do_not_recommend]
impl<T: Pod> PlainMessage for T {}

/// What a state is.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a state: it is not plain bytes",
    label = "not plain bytes",
    note = "plain bytes are integers, floats, arrays of them, and structs of them with `#[repr(C)]` and \
            `#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]`, without padding",
    note = "in place of a `bool`, an enum or an `Option` keep a `u32` beside the value that says which; in \
            place of text or a list an array, or its place in the payload arena"
)]
pub trait PlainState {}
#[diagnostic::do_not_recommend]
impl<T: Pod> PlainState for T {}

/// The messages of a kernel. Its implementation stands before that of [`Kernel`](crate::Kernel), so that what is
/// wrong is told in these words first.
pub trait Messages {
    /// What the host sends.
    type Request: PlainMessage;
    /// What the device answers.
    type Response: PlainMessage;
}

/// The state of a kernel, likewise.
pub trait State {
    /// What a channel keeps.
    type State: PlainState;
}

// Each of what follows is implemented for every type where its `OK`, which the macro computes, is true.

/// A message has at least one byte.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no bytes, but a message has at least one",
    label = "an empty message",
    note = "take a `u32` that nobody reads where there is nothing to say"
)]
pub trait NotEmpty<const OK: bool> {}
impl<T> NotEmpty<true> for T {}

/// A message has at most [`MAX_MESSAGE_BYTES`](ring_shared::MAX_MESSAGE_BYTES).
#[diagnostic::on_unimplemented(
    message = "`{Self}` has {BYTES} bytes, but a message has at most {MOST}",
    label = "too large for a message",
    note = "send what is larger through the payload arena: a message then says where it lies there"
)]
pub trait AtMost<const BYTES: usize, const MOST: usize, const OK: bool> {}
impl<T, const BYTES: usize, const MOST: usize> AtMost<BYTES, MOST, true> for T {}

/// A message has at most the `slot_bytes` that the kernel has declared.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has {BYTES} bytes, but this kernel's `slot_bytes` are {SLOT}",
    label = "larger than `slot_bytes`",
    note = "make it smaller, or `slot_bytes` larger, or send it through the payload arena"
)]
pub trait FitsSlot<const BYTES: usize, const SLOT: usize, const OK: bool> {}
impl<T, const BYTES: usize, const SLOT: usize> FitsSlot<BYTES, SLOT, true> for T {}

/// A message is aligned to at most 16 bytes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is aligned to {ALIGN} bytes, but a message to at most 16",
    label = "too strictly aligned for a message",
    note = "leave `align` out of its `#[repr(...)]`, and that of what is in it"
)]
pub trait AlignedTo16<const ALIGN: usize, const OK: bool> {}
impl<T, const ALIGN: usize> AlignedTo16<ALIGN, true> for T {}

/// A state has at most [`MAX_STATE_BYTES`](crate::MAX_STATE_BYTES).
#[diagnostic::on_unimplemented(
    message = "`{Self}` has {BYTES} bytes, but a state has at most {MOST}",
    label = "too large for a state",
    note = "keep what is larger in the payload arena"
)]
pub trait StateAtMost<const BYTES: usize, const MOST: usize, const OK: bool> {}
impl<T, const BYTES: usize, const MOST: usize> StateAtMost<BYTES, MOST, true> for T {}

/// A state is aligned to at most 128 bytes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is aligned to {ALIGN} bytes, but a state to at most 128",
    label = "too strictly aligned for a state",
    note = "leave `align` out of its `#[repr(...)]`, and that of what is in it"
)]
pub trait StateAlignedTo128<const ALIGN: usize, const OK: bool> {}
impl<T, const ALIGN: usize> StateAlignedTo128<ALIGN, true> for T {}

/// Asks what a message must be of `T`, which has so many bytes and is aligned so.
pub const fn message<
    T: NotEmpty<SOME> + AtMost<BYTES, MAX_MESSAGE_BYTES, FEW> + AlignedTo16<ALIGN, ALIGNED>,
    const BYTES: usize,
    const ALIGN: usize,
    const SOME: bool,
    const FEW: bool,
    const ALIGNED: bool,
>() {
}

/// Asks of `T`, which has so many bytes, that it fits the slot that was declared.
pub const fn slot<
    T: FitsSlot<BYTES, SLOT, FITS>,
    const BYTES: usize,
    const SLOT: usize,
    const FITS: bool,
>() {
}

/// Asks what a state must be of `T`, which has so many bytes and is aligned so.
pub const fn state<
    T: StateAtMost<BYTES, MAX_STATE_BYTES, FEW> + StateAlignedTo128<ALIGN, ALIGNED>,
    const BYTES: usize,
    const ALIGN: usize,
    const FEW: bool,
    const ALIGNED: bool,
>() {
}

/// Both messages of a kernel, with the `slot_bytes` if they were given. No constant has a name here: a type
/// or an expression of the user's could mean one of the same name.
#[doc(hidden)]
#[macro_export]
macro_rules! __messages {
    ($name:ident, $Q:ty, $R:ty, [$($slot:expr)?]) => {
        impl $crate::fits::Messages for $name {
            type Request = $Q;
            type Response = $R;
        }
        $crate::__message!($Q $(, $slot)?);
        $crate::__message!($R $(, $slot)?);
    };
}

/// A message, there or back.
#[doc(hidden)]
#[macro_export]
macro_rules! __message {
    ($T:ty $(, $slot:expr)?) => {
        const _: () = {
            $crate::fits::message::<
                $T,
                { ::core::mem::size_of::<$T>() },
                { ::core::mem::align_of::<$T>() },
                { ::core::mem::size_of::<$T>() > 0 },
                { ::core::mem::size_of::<$T>() <= $crate::fits::MAX_MESSAGE_BYTES },
                { ::core::mem::align_of::<$T>() <= 16 },
            >();
            $(
                $crate::fits::slot::<
                    $T,
                    { ::core::mem::size_of::<$T>() },
                    { $slot },
                    { ::core::mem::size_of::<$T>() <= $slot },
                >();
            )?
        };
    };
}

/// A state.
#[doc(hidden)]
#[macro_export]
macro_rules! __state {
    ($name:ident, $T:ty) => {
        impl $crate::fits::State for $name {
            type State = $T;
        }
        const _: () = $crate::fits::state::<
            $T,
            { ::core::mem::size_of::<$T>() },
            { ::core::mem::align_of::<$T>() },
            { ::core::mem::size_of::<$T>() <= $crate::MAX_STATE_BYTES },
            { ::core::mem::align_of::<$T>() <= 128 },
        >();
    };
}
