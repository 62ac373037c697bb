//! Scopes, fences, read-modify-writes and local memory.
//!
//! Host and device meet in mapped memory over PCIe, where only plain loads and stores of system scope
//! are atomic: a narrower scope need not reach the host, and a read-modify-write is none.

use super::Violation;
use ring_ptx::Statement;

const STRONG: [&str; 4] = ["relaxed", "acquire", "release", "volatile"];

/// Spaces that the host never sees.
fn private(line: &Statement<'_>) -> bool {
    ["shared", "local", "param", "const"].iter().any(|space| line.in_space(space))
}

/// Ordered loads and stores of global or generic memory are of system scope.
///
/// `.volatile` takes no scope and may be split by the assembler, so it has no place there.
#[must_use]
pub fn scope(lines: &[Statement<'_>]) -> Vec<Violation> {
    let access = |line: &&Statement<'_>| matches!(line.name(), "ld" | "st") && !private(line);
    let strong = |line: &&Statement<'_>| STRONG.iter().any(|word| line.has(word));
    let narrow = |line: &&Statement<'_>| !line.has("sys");
    let found = lines.iter().filter(access).filter(strong).filter(narrow);
    found.map(|line| Violation::at(line, "ordered access that is not .sys")).collect()
}

/// Fences are of system scope, or of the block's for its shared memory.
#[must_use]
pub fn fences(lines: &[Statement<'_>]) -> Vec<Violation> {
    let fence = |line: &&Statement<'_>| matches!(line.name(), "fence" | "membar");
    let wrong = |line: &&Statement<'_>| !line.has("sys") && !line.has("cta");
    let found = lines.iter().filter(fence).filter(wrong);
    found.map(|line| Violation::at(line, "fence that is neither .sys nor .cta")).collect()
}

/// Read-modify-writes only in the block's shared memory.
#[must_use]
pub fn read_modify_write(lines: &[Statement<'_>]) -> Vec<Violation> {
    let atomic = |line: &&Statement<'_>| match line.name() {
        "atom" | "red" => !line.in_space("shared"),
        "multimem" => true,
        "cp" => line.has("reduce"),
        _ => false,
    };
    let found = lines.iter().filter(atomic);
    found.map(|line| Violation::at(line, "read-modify-write outside .shared")).collect()
}

/// No local memory: an array on the stack or a spill costs a trip to DRAM in the polling loop.
#[must_use]
pub fn local(lines: &[Statement<'_>]) -> Vec<Violation> {
    let declared = |line: &Statement<'_>| line.directive(".local");
    let accessed =
        |line: &Statement<'_>| matches!(line.name(), "ld" | "st" | "cvta") && line.has("local");
    let found = lines.iter().filter(|line| declared(line) || accessed(line));
    found.map(|line| Violation::at(line, "local memory")).collect()
}

#[cfg(test)]
mod tests {
    use super::{Statement, Violation, fences, local, read_modify_write, scope};

    fn count(rule: fn(&[Statement<'_>]) -> Vec<Violation>, ptx: &str) -> usize {
        rule(&ring_ptx::statements(ptx).collect::<Vec<_>>()).len()
    }

    #[test]
    fn scope_must_be_sys_on_global_and_generic() {
        for bad in [
            "ld.acquire.gpu.global.b32 %r1, [%rd1];",
            "@%p1 ld.relaxed.gpu.b64 %rd1, [%rd2];",
            "st.release.cta.b32 [%rd1], %r1;",
            "st.relaxed.cluster.global.b32 [%rd1], %r1;",
            "ld.volatile.global.b32 %r1, [%rd1];",
            "{ .reg .b32 t; st.volatile.b32 [%rd1], t; }",
        ] {
            assert_eq!(count(scope, bad), 1, "{bad}");
        }
        for good in [
            "ld.acquire.sys.global.b32 %r1, [%rd1];",
            "ld.relaxed.sys.global.b128 %rq1, [%rd1];",
            "st.release.sys.b32 [%rd1], %r1;",
            "ld.relaxed.cta.shared.b32 %r1, [%rd1];",
            "st.volatile.shared::cta.b32 [%rd1], %r1;",
            "ld.global.b32 %r1, [%rd1];",
            "ld.param.b64 %rd1, [ring_echo_param_0];",
            "// ld.acquire.gpu.b32",
        ] {
            assert_eq!(count(scope, good), 0, "{good}");
        }
    }

    #[test]
    fn fences_must_be_sys_or_cta() {
        for bad in ["fence.acq_rel.gpu;", "fence.sc.cluster;", "membar.gl;", "fence.proxy.alias;"] {
            assert_eq!(count(fences, bad), 1, "{bad}");
        }
        for good in ["fence.acq_rel.sys;", "fence.sc.sys;", "membar.sys;", "fence.acq_rel.cta;"] {
            assert_eq!(count(fences, good), 0, "{good}");
        }
    }

    #[test]
    fn atomics_must_be_on_shared() {
        for bad in [
            "atom.global.add.u32 %r1, [%rd1], 1;",
            "atom.acq_rel.sys.cas.b64 %rd1, [%rd2], 0, 1;",
            "red.relaxed.gpu.add.u32 [%rd1], 1;",
            "multimem.red.relaxed.sys.global.add.u32 [%rd1], 1;",
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%rd2], 16;",
        ] {
            assert_eq!(count(read_modify_write, bad), 1, "{bad}");
        }
        for good in [
            "atom.shared.add.u32 %r1, [%rd1], 1;",
            "red.shared::cta.add.u32 [%rd1], 1;",
            "barrier.cta.red.popc.aligned.u32 %r1, 0, %p1;",
            "redux.sync.add.s32 %r1, %r2, -1;",
        ] {
            assert_eq!(count(read_modify_write, good), 0, "{good}");
        }
    }

    #[test]
    fn local_memory_is_found() {
        for bad in [
            "\t.local .align 4 .b8 \t__local_depot1[16];",
            "st.local.b32 [%rd2+4], 1;",
            "ld.local.v2.b32 {%r1, %r2}, [%rd2];",
            "cvta.local.u64 %SP, %SPL;",
        ] {
            assert_eq!(count(local, bad), 1, "{bad}");
        }
        assert_eq!(count(local, "cvta.to.global.u64 %rd1, %rd5;\n.reg .b64 %SPL;"), 0);
    }
}
