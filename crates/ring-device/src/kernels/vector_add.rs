use crate::{BlockContext, Output, ring_kernel};
use bytemuck::{Pod, Zeroable};
use core::mem::offset_of;

/// Elements that fit in the message itself.
pub const INLINE_ELEMENTS: usize = 25;

/// What the `status` of a [`VectorAddResponse`] says.
pub mod status {
    /// The sum is in the response.
    pub const INLINE: u32 = 1;
    /// The sum is in the payload arena.
    pub const PAYLOAD: u32 = 2;
    /// No elements, or more than there are where the request says.
    pub const BAD_LENGTH: u32 = 3;
    /// The request names a part of the arena that does not exist.
    pub const BAD_PAYLOAD: u32 = 4;
}

/// Two vectors, in the message or in the arena.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct VectorAddRequest {
    /// Elements of each vector.
    pub len: u32,
    /// 0: in `a` and `b`. 1: in the payload arena, A at `offset`, B and the room for C behind it.
    pub in_payload: u32,
    /// Offset in the payload arena, in bytes, a multiple of 4.
    pub offset: u64,
    /// A, when inline.
    pub a: [f32; INLINE_ELEMENTS],
    /// B, when inline.
    pub b: [f32; INLINE_ELEMENTS],
}

/// The sum, or why there is none.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct VectorAddResponse {
    /// One of [`status`].
    pub status: u32,
    /// Elements of the sum.
    pub len: u32,
    /// C, when inline.
    pub c: [f32; INLINE_ELEMENTS],
}

/// Vectors that cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VectorError {
    /// The vectors have no elements.
    Empty,
    /// The vectors differ in length.
    Unequal {
        /// Elements of A.
        a: usize,
        /// Elements of B.
        b: usize,
    },
    /// More elements than fit.
    TooLong {
        /// Elements of each vector.
        len: usize,
        /// The most that fit.
        limit: usize,
    },
}

impl core::fmt::Display for VectorError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            VectorError::Empty => write!(f, "the vectors have no elements; at least 1 is needed"),
            VectorError::Unequal { a, b } => {
                write!(f, "the vectors differ in length: A has {a} elements, B has {b}")
            }
            VectorError::TooLong { len, limit } => {
                write!(f, "the vectors have {len} elements, but at most {limit} fit")
            }
        }
    }
}

impl core::error::Error for VectorError {}

impl VectorAddRequest {
    /// Checks that the vectors can be added: equal in length, and `1..=limit` elements.
    pub fn check(a: &[f32], b: &[f32], limit: usize) -> Result<(), VectorError> {
        match (a.len(), b.len()) {
            (a, b) if a != b => Err(VectorError::Unequal { a, b }),
            (0, _) => Err(VectorError::Empty),
            (len, _) if len > limit => Err(VectorError::TooLong { len, limit }),
            _ => Ok(()),
        }
    }

    /// The request that carries both vectors itself.
    pub fn inline(a: &[f32], b: &[f32]) -> Result<VectorAddRequest, VectorError> {
        Self::check(a, b, INLINE_ELEMENTS)?;
        let mut request = Self { len: a.len() as u32, ..Zeroable::zeroed() };
        request.a[..a.len()].copy_from_slice(a);
        request.b[..b.len()].copy_from_slice(b);
        Ok(request)
    }

    /// The request for two vectors of `len` elements that lie in the payload arena, A at `offset`
    /// bytes, B behind it, and behind that the room for C.
    pub fn in_payload(len: u32, offset: u64) -> VectorAddRequest {
        Self { len, in_payload: 1, offset, ..Zeroable::zeroed() }
    }
}

ring_kernel! {
    /// C = A + B over `f32`: up to [`INLINE_ELEMENTS`] in the message, more in the payload arena.
    pub struct VectorAdd {
        name: "vector_add",
        entry: "ring_vector_add",
        entry_if: feature = "entries",
        uses_payload: true,
    }

    fn handle(ctx: &BlockContext, r: &VectorAddRequest, out: &Output<VectorAddResponse>) {
        let status = if r.len == 0 {
            status::BAD_LENGTH
        } else if r.in_payload == 0 {
            add_inline(ctx, r, out)
        } else {
            add_in_payload(ctx, r)
        };
        if ctx.thread() == 0 {
            if matches!(status, status::BAD_LENGTH | status::BAD_PAYLOAD) {
                ctx.refuse();
            }
            out.set(offset_of!(VectorAddResponse, status), 0, status);
            out.set(offset_of!(VectorAddResponse, len), 0, r.len);
        }
    }
}

#[inline(always)]
fn add_inline(ctx: &BlockContext, r: &VectorAddRequest, out: &Output<VectorAddResponse>) -> u32 {
    if r.len as usize > INLINE_ELEMENTS {
        return status::BAD_LENGTH;
    }
    let (mut i, len) = (ctx.thread(), r.len as usize);
    while i < len
        && let (Some(a), Some(b)) = (r.a.get(i), r.b.get(i))
    {
        out.set(offset_of!(VectorAddResponse, c), i, a + b);
        i += ctx.threads();
    }
    status::INLINE
}

#[inline(always)]
fn add_in_payload(ctx: &BlockContext, r: &VectorAddRequest) -> u32 {
    // One run of words, so that one check is all: A, then B, then the room for C.
    let len = u64::from(r.len);
    let words = match ctx.payload().words::<f32>(r.offset, 3 * len) {
        Some(words) => words,
        None => return status::BAD_PAYLOAD,
    };
    let (mut i, len) = (ctx.thread(), r.len as usize);
    // No thread reads beyond B: words that others write come over the bus only when those have arrived.
    while i < len
        && let (Some(a), Some(b)) = (words.get(i), words.get(len + i))
    {
        words.set(2 * len + i, a + b);
        i += ctx.threads();
    }
    status::PAYLOAD
}
