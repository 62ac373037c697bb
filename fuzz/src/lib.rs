//! What several targets share: [`lie`], what a hostile side writes; [`parts`], a ring of separate
//! allocations; [`rig`], a lane with a host that keeps no rule.

pub mod kernels;
pub mod lie;
pub mod parts;
pub mod rig;

pub use lie::Lie;
pub use parts::Parts;
