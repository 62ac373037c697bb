//! What safe code can and cannot do with kernels, channels and halves: as the compiler sees it, and where only
//! a run can tell, by doing it.

mod after_the_end;
mod buffers;
mod grid;
mod handlers;
mod memory;

use ring_device::{Adder, Fours};
use ring_host::device::Driver;
use ring_host::kernels::Echo;
use ring_host::{
    BlockContext, Buffer, BufferRef, Channel, Deadline, DeviceFault, Error, GridContext,
    KernelHandle, Kernels, LaunchConfig, Output, Payload, Receiver, RecvTimeoutError, Report,
    RequestSink, ResponseStream, Runtime, SendTimeoutError, Sender, ThreadContext, TryRecvError,
    TrySendError, View, WarpContext, Words,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};

// A kernel and its channels may go to another thread, but are of one thread at a time, and there is one of
// each: a ring has one producer and one consumer.
assert_impl_all!(KernelHandle<Echo>: Send);
assert_impl_all!(Channel<Echo>: Send);
assert_impl_all!(Sender<Echo>: Send);
assert_impl_all!(Receiver<Echo>: Send);
assert_impl_all!(RequestSink<Echo>: Send, Unpin);
assert_impl_all!(ResponseStream<Echo>: Send, Unpin);
assert_not_impl_any!(KernelHandle<Echo>: Sync, Clone);
assert_not_impl_any!(Channel<Echo>: Sync, Clone);
assert_not_impl_any!(Sender<Echo>: Sync, Clone);
assert_not_impl_any!(Receiver<Echo>: Sync, Clone);
assert_not_impl_any!(RequestSink<Echo>: Sync, Clone);
assert_not_impl_any!(ResponseStream<Echo>: Sync, Clone);

// A kernel's type is never made, so what it could not do does not matter.
struct OfOneThread(#[allow(dead_code)] *const ());
impl ring_host::Kernel for OfOneThread {
    const NAME: &'static str = "of one thread";
    const ENTRY: &'static str = "ring_of_one_thread";
    type Request = u64;
    type Response = u64;
    type Scope = ring_host::Thread;
}
impl ring_host::ThreadHandler for OfOneThread {
    fn handle(_: &ThreadContext<'_>, request: &u64) -> u64 {
        *request
    }
}
assert_not_impl_any!(OfOneThread: Send, Sync);
assert_impl_all!(Sender<OfOneThread>: Send);
assert_impl_all!(Receiver<OfOneThread>: Send);

// A runtime is shared, and so is what it says.
assert_impl_all!(Runtime: Send, Sync, Clone);
assert_impl_all!(LaunchConfig: Send, Sync, Clone);
assert_impl_all!(Kernels: Send, Sync, Copy);
assert_impl_all!(Report: Send, Sync);
assert_impl_all!(Deadline: Send, Sync, Copy);
assert_impl_all!(Error: Send, Sync, std::error::Error);
assert_impl_all!(TrySendError<u64>: Send, Sync, std::error::Error);
assert_impl_all!(SendTimeoutError<u64>: Send, Sync, std::error::Error);
assert_impl_all!(TryRecvError: Send, Sync, std::error::Error);
assert_impl_all!(RecvTimeoutError: Send, Sync, std::error::Error);
assert_impl_all!(DeviceFault: Send, Sync, Clone);
assert_impl_all!(dyn Driver: Send, Sync);

// What a handler sees is of the threads that the channel consists of. The payload arena is of atomics.
assert_not_impl_any!(ThreadContext<'static>: Send, Sync, Clone);
assert_not_impl_any!(WarpContext<'static>: Send, Sync, Clone);
assert_not_impl_any!(BlockContext<'static>: Send, Sync, Clone);
assert_not_impl_any!(Output<u64>: Send, Sync, Clone);
assert_impl_all!(Payload<'static>: Send, Sync, Copy);
assert_impl_all!(Words<'static, u32>: Send, Sync, Copy);

// The same of the blocks of a grid: a barrier is come to by the threads of the launch, each by its own context.
assert_not_impl_any!(GridContext<'static>: Send, Sync, Clone);

// Elements of buffers are atomics too. A buffer is given back once; references are plain bytes.
assert_impl_all!(View<'static, f64>: Send, Sync, Copy);
assert_impl_all!(Adder<'static>: Send, Sync, Copy);
assert_impl_all!(Fours<'static, f32>: Send, Sync, Copy);
assert_impl_all!(Buffer<f32>: Send, Sync);
assert_not_impl_any!(Buffer<f32>: Clone);
assert_impl_all!(BufferRef<f32>: Send, Sync, Copy, bytemuck::Pod);

#[test]
fn what_does_not_compile() {
    trybuild::TestCases::new().compile_fail("refused/*.rs");
}
