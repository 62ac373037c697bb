//! y = a x + y over buffers: vectors that stay on the device, and a message that names them.

use bytemuck::{Pod, Zeroable};
use core::mem::offset_of;
use ring_device::BufferRef;

/// What is to be added to what, 36 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct SaxpyRequest {
    /// What `x` is multiplied by.
    pub a: f32,
    /// What is read.
    pub x: BufferRef<f32>,
    /// What is read and written; as long as `x`.
    pub y: BufferRef<f32>,
}

/// What became of a request, 8 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct SaxpyAnswer {
    /// 1 if the vectors were added; 0 if one of them was refused, or they differ in length.
    pub done: u32,
    /// Elements that were added.
    pub count: u32,
}

ring_device::ring_kernel! {
    /// Adds `a` times a vector to another, by all threads of the block.
    pub struct Saxpy {
        name: "saxpy",
        slot_bytes: 48,
        uses_payload: true,
    }

    fn handle(ctx: &BlockContext, request: &SaxpyRequest, response: &Output<SaxpyAnswer>) {
        let views = (ctx.view(&request.x), ctx.view(&request.y));
        let (Some(x), Some(y)) = views else { return refuse(ctx) };
        if x.len() != y.len() {
            return refuse(ctx);
        }
        let (n, a) = (x.len(), request.a);
        let mut i = 4 * ctx.thread();
        while i < n {
            if let (Some(xs), Some(ys)) = (x.get4(i), y.get4(i)) {
                let mut k = 0;
                while k < 4 {
                    y.set(i + k, a * xs[k] + ys[k]);
                    k += 1;
                }
            } else {
                // The last few, or vectors that do not begin at a multiple of 16 bytes.
                let mut k = i;
                while k < n && k < i + 4 {
                    if let (Some(x), Some(old)) = (x.get(k), y.get(k)) {
                        y.set(k, a * x + old);
                    }
                    k += 1;
                }
            }
            i += 4 * ctx.threads();
        }
        if ctx.thread() == 0 {
            response.set(offset_of!(SaxpyAnswer, done), 0, 1u32);
            response.set(offset_of!(SaxpyAnswer, count), 0, n as u32);
        }
    }
}

/// The answer stays zero.
fn refuse(ctx: &ring_device::BlockContext<'_>) {
    if ctx.thread() == 0 {
        ctx.refuse();
    }
}
