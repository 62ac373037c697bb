//! Kernels with ports. Where their rings lie is in the block's memory, in a part whose layout depends on how many there are, so
//! their accesses are told by what they are: whole atoms of lines and slots, and credit, each atomic and of the scope of one of
//! the two kinds of rings. All other accesses are those of any ring kernel, and additions to elements of buffers by kernels that
//! are listed for them. What stands between which accesses is not checked
//! here; the ends follow `ring-shared`, and models and tests on a GPU check them.

use super::Violation;
use super::allow;
use super::buffers::is_change;
use super::code::{Function, Instruction};
use super::order;
use super::place::{Access, Place, Strength};
use ring_ptx::Statement;

/// The kernels.
const KERNELS: [&str; 26] = [
    "ring_Absorber",
    "ring_Copier",
    "ring_WarpCopier",
    "ring_BlockCopier",
    "ring_Counter",
    "ring_Discard",
    "ring_Pass",
    "ring_Tally",
    "ring_TracedCopier",
    "ring_TracedPass",
    "ring_TracedTally",
    "ring_TracedTogether",
    "ring_Verifier",
    "ring_Parse",
    "ring_TopOfBook",
    "ring_Watch",
    "ring_Tape",
    "ring_Split",
    "ring_WordCount",
    "ring_RunSplitter",
    "ring_ContributionSender",
    "ring_RankAggregator",
    "ring_ConvergenceChecker",
    "bench_pass_64",
    "bench_times_8",
    "bench_sink_64",
];

/// Whether the entry point of that name is a kernel with ports.
#[must_use]
pub fn is_listed(name: &str) -> bool {
    KERNELS.contains(&name)
}

/// The violations of a kernel with ports.
#[must_use]
pub fn check(function: &Function<'_>, accesses: &[Option<Access>]) -> Vec<Violation> {
    let mut found = Vec::new();
    for (instruction, access) in function.code.iter().zip(accesses) {
        let is_unknown = |access: &&Access| access.place == Place::Unknown;
        let of_a_ring = |access: &Access| is_of_a_ring(instruction, access);
        if access.as_ref().filter(is_unknown).is_some_and(|access| !of_a_ring(access)) {
            let why = "access that is neither of a ring nor of what the host tells of it";
            found.push(Violation::of(instruction, why));
        }
        let swaps = matches!(instruction.name(), "atom" | "red") && !instruction.has("shared");
        let of_buffer = access.as_ref().is_some_and(|access| access.place == Place::Buffer);
        let may = |name| is_change(function.name, name, |part| instruction.has(part));
        if swaps && !(of_buffer && may(instruction.name())) {
            let why = "read-modify-write that is no listed change of an element of a buffer";
            found.push(Violation::of(instruction, why));
        }
        if matches!(instruction.name(), "fence" | "membar") && !is_a_fence_of_ours(instruction) {
            found.push(Violation::of(instruction, "fence of another kind or scope"));
        }
    }
    let is_known = |one: &Access| one.place != Place::Unknown && !is_links(one);
    let known: Vec<_> = accesses.iter().map(|access| access.filter(is_known)).collect();
    found.extend(allow::check(function, &known));
    found.extend(order::check_views(function, accesses));
    for scope in ["gpu", "sys"] {
        let is_it = |one: &Instruction<'_>| one.name() == "fence" && one.has(scope);
        if !function.code.iter().any(is_it) {
            let head = Statement { line: function.line, text: function.name };
            let why = "no fence for the rings of one of both scopes";
            found.push(Violation::at(&head, why));
        }
    }
    found
}

/// Where the channel's links are: a word of its block that no other kernel reads.
fn is_links(access: &Access) -> bool {
    let is_read = !access.writes && access.system && access.bits == Some(64);
    access.place == Place::OtherWord && access.strength == Strength::Relaxed && is_read
}

/// Atomic, of the scope of a GPU or of the system, and as wide as an atom, a credit, or a word of the table.
fn is_of_a_ring(instruction: &Instruction<'_>, access: &Access) -> bool {
    let is_atomic = matches!(access.strength, Strength::Relaxed | Strength::Ordered);
    let has_scope = access.system || instruction.has("gpu");
    let is_whole = match access.bits {
        Some(128) => true,
        Some(64) => true,
        // The host's table is read once, when the launch begins.
        Some(32) => !access.writes && access.system,
        _ => false,
    };
    is_atomic && has_scope && is_whole && !access.swaps
}

pub(super) fn is_a_fence_of_ours(fence: &Instruction<'_>) -> bool {
    let scope = ["sys", "gpu", "cta"].iter().any(|scope| fence.has(scope));
    scope && (fence.has("acq_rel") || fence.has("sc"))
}

#[cfg(test)]
mod tests {
    use crate::golden::check_code;
    use crate::pins::EXAMPLES;

    /// A kernel with ports that has such a body.
    fn ptx(body: &str) -> String {
        format!(
            ".extern .shared .align 16 .b8 gpu_launch_sized_workgroup_mem[];\n.visible .entry ring_Pass(.param .b64 p)\n{{\nld.relaxed.cta.shared.b64 %rd1, \
             [gpu_launch_sized_workgroup_mem+9000];\nfence.acq_rel.gpu;\nfence.acq_rel.sys;\n{body}\nret;\n}}\n"
        )
    }

    /// What is found in the body of a kernel with ports.
    fn found(body: &str) -> Vec<&'static str> {
        check_code(&EXAMPLES, &ptx(body)).iter().map(|violation| violation.why).collect()
    }

    #[test]
    fn only_listed_kernels_add_and_only_to_elements_of_buffers() {
        const ADD: &str = "red.relaxed.gpu.global.add.u64 [%rd4], %rd5;";
        let element = format!(
            "ld.relaxed.cta.shared.b64 %rd2, [gpu_launch_sized_workgroup_mem+{}];\nld.relaxed.gpu.global.b128 %rq1, [%rd2];\n\
             fence.acq_rel.gpu;\nmov.b128 {{%rd3, %rd6}}, %rq1;\nadd.s64 %rd4, %rd3, 64;",
            ring_device::BlockMemory::BUFFERS
        );
        let of = |kernel: &str, at: &str, add: &str| {
            let ptx = ptx(&format!("{at}\n{add}")).replace("ring_Pass", kernel);
            check_code(&EXAMPLES, &ptx).iter().map(|violation| violation.why).collect::<Vec<_>>()
        };
        for kernel in ["ring_RankAggregator", "ring_ConvergenceChecker"] {
            assert_eq!(of(kernel, &element, ADD), [""; 0]);
            for (part, other) in [
                ("red", "atom"),
                ("relaxed", "release"),
                ("gpu", "sys"),
                ("gpu", "cta"),
                (".global", ""),
                ("add", "max"),
                ("u64", "u32"),
                ("u64", "f64"),
            ] {
                assert_ne!(of(kernel, &element, &ADD.replace(part, other)), [""; 0], "{other}");
            }
            for at in [
                "",
                "mov.b64 %rd4, 64;",
                "ld.relaxed.cta.shared.b64 %rd4, [gpu_launch_sized_workgroup_mem+9000];",
            ] {
                assert_ne!(of(kernel, at, ADD), [""; 0], "{at}");
            }
        }
        for kernel in ["ring_Pass", "ring_ContributionSender", "ring_Saxpy"] {
            assert_ne!(of(kernel, &element, ADD), [""; 0], "{kernel}");
        }
        // What is read of an element L1 may answer, so that the fence must stand before; not what is added to it.
        let unfenced = element.replace("fence.acq_rel.gpu", "fence.acq_rel.cta");
        const READ: &str = "ld.relaxed.cta.global.b64 %rd5, [%rd4];";
        assert_eq!(of("ring_RankAggregator", &unfenced, ADD), [""; 0]);
        assert_eq!(of("ring_RankAggregator", &element, READ), [""; 0]);
        assert_ne!(of("ring_RankAggregator", &unfenced, READ), [""; 0]);
    }

    #[test]
    fn what_the_ends_do_is_allowed_and_nothing_else() {
        for good in [
            "ld.relaxed.gpu.global.b128 %a, [%rd1];",
            "ld.relaxed.sys.global.b128 %a, [%rd1];",
            "ld.acquire.gpu.global.b64 %rd2, [%rd1];",
            "st.relaxed.gpu.global.b128 [%rd1], %a;",
            "st.relaxed.sys.b64 [%rd1], %rd2;",
            "ld.relaxed.sys.b32 %r1, [%rd1];",
            "fence.acq_rel.cta;",
        ] {
            assert_eq!(found(good), [""; 0], "{good}");
        }
        for bad in [
            "ld.global.b128 %a, [%rd1];",
            "st.global.b64 [%rd1], %rd2;",
            "st.relaxed.cta.global.b128 [%rd1], %a;",
            "st.relaxed.sys.b32 [%rd1], %r2;",
            "ld.relaxed.gpu.global.v2.b64 {%rd2, %rd3}, [%rd1];",
            "ld.volatile.global.b64 %rd2, [%rd1];",
            "fence.acq_rel.cluster;",
        ] {
            assert_ne!(found(bad), [""; 0], "{bad}");
        }
    }
}
