//! Kernels of scope `Grid`. Their blocks meet in device memory, which is that of a channel's state, by accesses of the scope of
//! the GPU; all else is as in any ring kernel. What stands between which of these accesses is not checked here; models and tests
//! on a GPU check it.

use super::Violation;
use super::code::{Function, Instruction};
use super::place::{Access, Place, Strength};
use super::ports::is_a_fence_of_ours;

/// The kernels.
const KERNELS: [&str; 14] = [
    "ring_GridSum",
    "ring_LeftBehind",
    "ring_Ripple",
    "ring_Wave",
    "ring_Lstm",
    "ring_LstmBatch",
    "ring_PageRank",
    "ring_PageRankOfTwo",
    "ring_Meetings",
    "ring_Passing",
    "bench_grid_64",
    "bench_grid_64_writes",
    "bench_meet_64",
    "bench_meet_64_writes",
];

/// Functions that any ring kernel calls when its handler cannot go on: by the last part of their names, as a compiler mangles it. They
/// tell the other blocks of a grid, if there are any.
const FUNCTIONS: [&str; 4] = ["8panicked", "8fell_out", "8fall_out", "7give_up"];

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
        let is_fence = matches!(instruction.name(), "fence" | "membar");
        // Functions that tell of a fault have none for the GPU.
        if is_fence
            && (!is_a_fence_of_ours(instruction) || !function.entry && instruction.has("gpu"))
        {
            found.push(Violation::of(instruction, "fence of another kind or scope"));
        }
        let Some(access) = access else { continue };
        let is_narrow = instruction.has("gpu") && !access.system;
        let is_entry = access.place == Place::BufferTable && !access.writes;
        if is_entry && access.bits == Some(128) {
            continue;
        }
        if (access.place == Place::State || is_narrow) && !is_of_meeting(instruction, access) {
            let why = "access where blocks meet that is neither of an atom nor of the word which tells that \
                       they do not, or does not reach the GPU's threads";
            found.push(Violation::of(instruction, why));
        }
    }
    found
}

/// Atomic, for the GPU's threads at least, and as wide as an atom, which is whole, or as a word, which only functions that tell of a
/// fault write.
fn is_of_meeting(instruction: &Instruction<'_>, access: &Access) -> bool {
    let is_atomic = matches!(access.strength, Strength::Relaxed | Strength::Ordered);
    let has_scope = access.system || instruction.has("gpu");
    let is_whole = match access.bits {
        Some(128) => true,
        Some(64) => access.system || !access.writes,
        _ => false,
    };
    let is_one_way = matches!(instruction.name(), "ld" | "st") && !instruction.has("mmio");
    access.place == Place::State && is_atomic && has_scope && is_whole && is_one_way
}

#[cfg(test)]
mod tests {
    use crate::golden::check_code;
    use crate::pins::EXAMPLES;

    /// Whether something of scopes is found in the body of a kernel of scope `Grid`.
    fn is_found(body: &str) -> bool {
        let ptx = format!(
            ".extern .shared .align 16 .b8 gpu_launch_sized_workgroup_mem[];\n.visible .entry \
             ring_GridSum(.param .b64 p)\n{{\nld.shared.b64 %rd1, [gpu_launch_sized_workgroup_mem+{}];\n{body}\nret;\n}}\n",
            ring_device::BlockMemory::STATE
        );
        let found = check_code(&EXAMPLES, &ptx);
        found.iter().any(|one| {
            ["scope", "fence that is", "read-modify-write", "where blocks meet"]
                .iter()
                .any(|why| one.why.contains(why))
        })
    }

    #[test]
    fn accesses_where_blocks_meet_are_allowed_and_nothing_else() {
        for good in [
            "ld.relaxed.gpu.global.b128 %a, [%rd1];",
            "st.relaxed.gpu.global.b128 [%rd1+64], %a;",
            "ld.acquire.gpu.global.b128 %a, [%rd1];",
            "ld.relaxed.gpu.global.b64 %rd2, [%rd1];",
            "fence.acq_rel.gpu;",
            "fence.acq_rel.sys;",
        ] {
            assert!(!is_found(good), "{good}");
        }
        for bad in [
            "red.release.gpu.global.add.u64 [%rd1], %rd2;",
            "red.relaxed.sys.global.add.u64 [%rd1], %rd2;",
            "st.relaxed.gpu.global.b16 [%rd1], %rs2;",
            "st.relaxed.gpu.global.b64 [%rd1], %rd2;",
            "st.relaxed.cta.global.b128 [%rd1], %a;",
            "ld.global.b128 %a, [%rd1];",
            "st.global.b64 [%rd1], %rd2;",
            "ld.volatile.global.b64 %rd2, [%rd1];",
            "ld.mmio.relaxed.sys.b64 %rd2, [%rd1];",
            "fence.acq_rel.cluster;",
        ] {
            assert!(is_found(bad), "{bad}");
        }
    }

    /// What is found in such a kernel that has an address in `%rd1` from where the addresses lie at which devices meet.
    fn found_where_devices_meet(body: &str) -> Vec<String> {
        let ptx = format!(
            ".extern .shared .align 16 .b8 gpu_launch_sized_workgroup_mem[];\n.visible .entry \
             ring_GridSum(.param .b64 p)\n{{\nld.relaxed.cta.shared.b64 %rd1, [gpu_launch_sized_workgroup_mem+{}];\n{body}\nret;\n}}\n",
            ring_device::BlockMemory::DEVICES[0]
        );
        let found = check_code(&EXAMPLES, &ptx).into_iter().map(|one| one.why.to_string());
        found.filter(|why| why.contains("access") || why.contains("scope")).collect()
    }

    #[test]
    fn accesses_where_devices_meet_are_of_system_scope() {
        for good in [
            "st.relaxed.sys.global.b128 [%rd1+128], %a;",
            "st.release.sys.global.b128 [%rd1+128], %a;",
            "ld.relaxed.sys.global.b128 %a, [%rd1+128];",
            "ld.acquire.sys.global.b128 %a, [%rd1+128];",
            "ld.relaxed.sys.global.b64 %rd2, [%rd1];",
            "st.release.sys.global.b64 [%rd1], %rd2;",
        ] {
            assert_eq!(found_where_devices_meet(good), Vec::<String>::new(), "{good}");
        }
        for bad in [
            "st.relaxed.gpu.global.b128 [%rd1+128], %a;",
            "ld.acquire.gpu.global.b128 %a, [%rd1+128];",
            "ld.relaxed.gpu.global.b64 %rd2, [%rd1];",
            "st.relaxed.sys.global.b64 [%rd1], %rd2;",
            "st.global.b64 [%rd1], %rd2;",
            "red.relaxed.sys.global.add.u64 [%rd1], %rd2;",
        ] {
            assert!(!found_where_devices_meet(bad).is_empty(), "{bad}");
        }
    }
}
