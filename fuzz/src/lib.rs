//! What several targets share: [`lie`], what a hostile side writes; [`input`], a ring and what is done to
//! it; [`parts`], a ring of separate allocations; [`rig`], a channel with a host that keeps no rule.

pub mod input;
pub mod kernels;
pub mod lie;
#[path = "../../crates/ring-shared/tests/parts/mod.rs"]
pub mod parts;
pub mod rig;

pub use input::Input;
pub use lie::Lie;
pub use parts::Parts;
