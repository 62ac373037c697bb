//! Kernels whose handlers view buffers. The table of buffers and the buffers are memory of the GPU that the host reads and
//! writes by copies only. An entry is read at the scope of the GPU, half of it by a load that acquires, before what it leads to:
//! L1, which is not coherent, holds nothing old behind that. So the elements are accessed at the scope of the block, which L1 may
//! answer. An addition, and what else changes an element as one, is of the scope of the GPU: threads of several blocks do so to the same
//! element. Only listed kernels do.

use ring_ptx::Statement;

/// The kernels.
const KERNELS: [&str; 3] = ["ring_Saxpy", "ring_Count", "ring_Mlp"];

/// Whether the entry point of that name is a kernel that views buffers.
#[must_use]
pub fn is_listed(name: &str) -> bool {
    KERNELS.contains(&name)
}

/// Kernels whose handlers have slices of frozen buffers: nobody writes these, so that weak reads are as good as others.
const READERS_OF_FROZEN: [&str; 3] = ["ring_Lstm", "ring_LstmBatch", "ring_Mlp"];

/// Whether the entry point of that name may read an element by a weak access.
#[must_use]
pub fn reads_frozen(function: &str) -> bool {
    READERS_OF_FROZEN.contains(&function)
}

/// Kernels, with ports or without, whose handlers add to elements.
const ADDERS: [&str; 2] = ["ring_RankAggregator", "ring_ConvergenceChecker"];

/// Kernels whose handlers change elements of 32 bits, and are told what was there before.
const CHANGERS: [&str; 1] = ["ring_Count"];

/// Whether an instruction of the entry point of that name changes an element as it may, if it reaches one: `has` says of what its
/// opcode consists, behind `name`.
#[must_use]
pub fn is_change(function: &str, name: &str, has: impl Fn(&str) -> bool) -> bool {
    let is_relaxed = ["relaxed", "gpu", "global"].into_iter().all(&has);
    let adds = ADDERS.contains(&function) && name == "red" && has("add") && has("u64");
    let operations = ["add", "max", "min", "cas"];
    let changes = CHANGERS.contains(&function)
        && name == "atom"
        && operations.into_iter().any(&has)
        && ["u32", "s32", "f32", "b32"].into_iter().any(&has);
    is_relaxed && (adds || changes)
}

/// Whether a statement is the read of an entry, or the access of an element.
#[must_use]
pub fn is_of_view(line: &Statement<'_>) -> bool {
    let is_one = |parts: &[&str]| parts.iter().all(|part| line.has(part));
    match line.name() {
        "ld" if is_one(&["gpu", "global", "b128"]) => line.has("relaxed") || line.has("acquire"),
        "ld" | "st" if is_one(&["relaxed", "cta", "global"]) => line.has("b32") || line.has("b64"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_of_view;

    #[test]
    fn only_what_a_view_does_is_narrow() {
        let is = |text: &str| {
            let line = ring_ptx::statements(text).last().expect("a statement");
            is_of_view(&line)
        };
        for good in [
            "ld.relaxed.gpu.global.b128 %rq1, [%rd1];",
            "ld.acquire.gpu.global.b128 %rq1, [%rd1];",
            "ld.relaxed.cta.global.b32 %r1, [%rd1];",
            "st.relaxed.cta.global.b64 [%rd1], %rd2;",
        ] {
            assert!(is(good), "{good}");
        }
        for bad in [
            "ld.relaxed.cta.global.b128 %rq1, [%rd1];",
            "st.relaxed.gpu.global.b128 [%rd1], %rq1;",
            "ld.acquire.cta.global.b128 %rq1, [%rd1];",
            "st.release.cta.global.b32 [%rd1], %r1;",
            "ld.volatile.global.b32 %r1, [%rd1];",
            "fence.acq_rel.gpu;",
        ] {
            assert!(!is(bad), "{bad}");
        }
    }
}
