//! Entry points of the kernels without a ring. One kernel, one parameter: an address.

mod bare;
mod head_tail;
mod link;
