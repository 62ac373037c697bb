//! A handler that keeps the elements of a buffer for later, in a static and by returning them.

use ring_device::{Adder, Fours};
use ring_host::{BlockContext, BufferRef, GridContext, ThreadContext, View};
use std::sync::Mutex;

static KEPT: Mutex<Option<View<'static, u64>>> = Mutex::new(None);

fn keep(ctx: &GridContext<'_>, reference: &BufferRef<u64>) {
    *KEPT.lock().unwrap() = ctx.view(reference);
}

fn give(ctx: &ThreadContext<'_>, reference: &BufferRef<u64>) -> Option<Adder<'static>> {
    ctx.adder(reference)
}

fn give_fours(ctx: &GridContext<'_>, reference: &BufferRef<u32>) -> Option<Fours<'static, u32>> {
    ctx.view(reference)?.fours()
}

fn give_slice(ctx: &BlockContext<'_>, reference: &BufferRef<u32>) -> Option<&'static [u32]> {
    ctx.frozen(reference)
}

fn main() {}
