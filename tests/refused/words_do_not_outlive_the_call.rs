//! A handler that keeps words of the payload arena for later, in a static and by returning them.

use ring_host::{BlockContext, WarpContext, Words};
use std::sync::Mutex;

static KEPT: Mutex<Option<Words<'static, u32>>> = Mutex::new(None);

fn keep(ctx: &BlockContext<'_>) {
    *KEPT.lock().unwrap() = ctx.payload().words(0, 4);
}

fn give(ctx: &WarpContext<'_>) -> Option<Words<'static, u32>> {
    ctx.payload().words(0, 4)
}

fn main() {}
