//! Kernels of scope `Grid`. Their blocks meet in device memory, which is that of a channel's state, by accesses of the scope of
//! the GPU; all else is as in any ring kernel. What stands between which of these accesses is not checked here; models and tests
//! on a GPU check it.

use super::Violation;
use super::code::Function;
use super::place::{Access, Place, Strength};
use super::ports::is_a_fence_of_ours;

/// The kernels.
const KERNELS: [&str; 3] = ["ring_GridSum", "ring_Ripple", "bench_grid_64"];

/// Functions that any ring kernel calls when its handler cannot go on: by the last part of their names, as a compiler mangles it. They
/// tell the other blocks of a grid, if there are any.
const FUNCTIONS: [&str; 3] = ["8panicked", "8fell_out", "7give_up"];

/// Whether the function of that name is a kernel of scope `Grid`, or tells the blocks of one.
#[must_use]
pub fn is_listed(name: &str) -> bool {
    let is_ours = name.contains("11ring_device");
    KERNELS.contains(&name) || is_ours && FUNCTIONS.iter().any(|end| name.ends_with(end))
}

/// The violations among accesses and fences of the scope of the GPU.
#[must_use]
pub fn check(function: &Function<'_>, accesses: &[Option<Access>]) -> Vec<Violation> {
    let mut found = Vec::new();
    for (instruction, access) in function.code.iter().zip(accesses) {
        if matches!(instruction.name(), "fence" | "membar") && !is_a_fence_of_ours(instruction) {
            found.push(Violation::of(instruction, "fence of another kind or scope"));
        }
        let is_counted = ["gpu", "global", "add", "u64"].iter().all(|word| instruction.has(word));
        if matches!(instruction.name(), "atom" | "red") && !instruction.has("shared") && !is_counted
        {
            found.push(Violation::of(
                instruction,
                "read-modify-write of the GPU's scope that counts no blocks",
            ));
        }
        let Some(access) = access else { continue };
        let is_scoped = matches!(access.strength, Strength::Relaxed | Strength::Ordered);
        if access.system || !is_scoped || !instruction.has("gpu") {
            continue;
        }
        let is_place = matches!(access.place, Place::State | Place::Unknown);
        // Pieces of a request, whole; and counters.
        if !is_place || !matches!(access.bits, Some(128 | 64)) {
            let why = "access of the GPU's scope that is neither of a piece of a request nor of a counter";
            found.push(Violation::of(instruction, why));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::golden::check_code;
    use crate::pins::EXAMPLES;

    /// Whether something of scopes is found in the body of a kernel of scope `Grid`.
    fn is_found(body: &str) -> bool {
        let ptx = format!(
            ".visible .entry ring_GridSum(.param .b64 p)\n{{\nld.shared.b64 %rd1, \
             [gpu_launch_sized_workgroup_mem+{}];\n{body}\nret;\n}}\n",
            ring_device::BlockMemory::STATE
        );
        let found = check_code(&EXAMPLES, &ptx);
        found.iter().any(|one| {
            ["scope", "fence that is", "read-modify-write"].iter().any(|why| one.why.contains(why))
        })
    }

    #[test]
    fn accesses_where_blocks_meet_are_allowed_and_nothing_else() {
        for good in [
            "ld.relaxed.gpu.global.b128 %a, [%rd1];",
            "st.relaxed.gpu.global.b128 [%rd1+64], %a;",
            "ld.acquire.gpu.global.b128 %a, [%rd1];",
            "ld.acquire.gpu.global.b64 %rd2, [%rd1];",
            "red.release.gpu.global.add.u64 [%rd1], %rd2;",
            "fence.acq_rel.gpu;",
            "fence.acq_rel.sys;",
        ] {
            assert!(!is_found(good), "{good}");
        }
        for bad in [
            "red.release.gpu.global.max.u64 [%rd1], %rd2;",
            "red.relaxed.sys.global.add.u64 [%rd1], %rd2;",
            "st.relaxed.gpu.global.b16 [%rd1], %rs2;",
            "fence.acq_rel.cluster;",
        ] {
            assert!(is_found(bad), "{bad}");
        }
    }
}
