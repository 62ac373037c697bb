//! The built-in kernels.

mod echo;
mod vector_add;

pub use echo::{Echo, EchoMessage};
pub use vector_add::{
    INLINE_ELEMENTS, VectorAdd, VectorAddRequest, VectorAddResponse, VectorError, status,
};
