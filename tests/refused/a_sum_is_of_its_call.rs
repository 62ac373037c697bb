//! A handler that asks for a sum of the grid twice, and one that keeps it for later.

use ring_device::Sum;
use ring_host::GridContext;

fn twice(ctx: &GridContext<'_>) -> u64 {
    let sum = ctx.sum_later(1u64);
    sum.get() + sum.get()
}

fn give<'c, 'a>(ctx: &'c GridContext<'a>) -> Sum<'static, 'a, u64> {
    ctx.sum_later(1u64)
}

fn main() {}
