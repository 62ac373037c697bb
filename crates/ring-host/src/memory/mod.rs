//! Memory that a runtime takes once, and how a kernel's part of it is laid out.

pub(crate) mod arena;
pub(crate) mod links;
pub(crate) mod plan;
pub(crate) mod region;
