//! Kernels without a ring: the layout probe, the page probe, and what `ring bench` measures the ring against. Each is on
//! a list with all its accesses of memory that is not the block's own; what is not on it is a violation.

use super::Violation;
use super::code::{Function, Instruction};
use super::ways::Ways;
use ring_ptx::Statement;

/// An opcode without spaces that name no scope, and without its type unless that is 16 bytes read or written as one;
/// and how often it is there at least.
type Form = (&'static str, usize);

/// The kernels, and what they do. Weak accesses are of memory that the host writes before the launch, or
/// reads when the kernel has ended.
const KERNELS: [(&str, &[Form]); 9] = [
    ("ring_layout_probe", &[("ld.nc", 0), ("st", 1)]),
    // The look at a line that is timed is one of a polling warp.
    ("ring_page_probe", &[("ld", 1), ("ld.relaxed.sys.b128", 1), ("st", 1)]),
    (ring_ptx::ABI_ENTRY, &[("ld", 1), ("st", 1)]), // of Rust-CUDA's modules only
    ("bench_add", &[("ld", 1), ("st", 1)]),
    ("bench_count", &[("ld", 2), ("st", 1), ("st.relaxed.sys", 1)]),
    ("bench_once", &[("ld.relaxed.sys", 1), ("st.relaxed.sys", 1)]),
    ("bench_flag", &[("ld.relaxed.sys", 1), ("ld.acquire.sys", 1), ("st.release.sys", 1)]),
    (
        "bench_between",
        &[("ld", 1), ("ld.acquire.sys", 2), ("st.release.sys", 3), ("st.relaxed.sys", 1)],
    ),
    (
        "bench_head_tail",
        &[
            ("ld", 1),
            // Slots, past all caches, between the acquire of a tail and the release of one.
            ("ld.cv", 1),
            ("st.cs", 1),
            ("ld.acquire.sys", 2),
            ("st.release.sys", 2),
            ("ld.relaxed.sys", 3),
            ("st.relaxed.sys", 2),
        ],
    ),
];

/// Whether the entry point of that name is on the list.
#[must_use]
pub fn is_listed(name: &str) -> bool {
    KERNELS.iter().any(|(listed, _)| *listed == name)
}

/// The violations of an entry point that has no block.
#[must_use]
pub fn check(function: &Function<'_>) -> Vec<Violation> {
    let at_head = Statement { line: function.line, text: function.name };
    let Some((_, forms)) = KERNELS.iter().find(|(name, _)| *name == function.name) else {
        return vec![Violation::at(
            &at_head,
            "entry point that is no ring kernel and not on the list",
        )];
    };
    let accesses: Vec<(&Instruction<'_>, String)> =
        function.code.iter().filter_map(|one| Some((one, form(one)?))).collect();
    let mut found = Vec::new();
    for (instruction, form) in &accesses {
        if !forms.iter().any(|(allowed, _)| allowed == form) {
            found.push(Violation::of(instruction, "access that is not on the list of this kernel"));
        }
    }
    for (form, least) in *forms {
        let count = accesses.iter().filter(|(_, found)| found == form).count();
        if count < *least {
            let text = format!("{count} times {form}, at least {least} needed");
            let why = "access that this kernel needs is not there";
            found.push(Violation { text, ..Violation::at(&at_head, why) });
        }
    }
    found.extend(fences(function));
    found
}

/// What was written past the caches is followed by a fence before a release tells the host of it.
fn fences(function: &Function<'_>) -> Vec<Violation> {
    let (ways, code) = (Ways::of(function), &function.code);
    let is = |at: usize, name: &str, parts: &[&str]| {
        code[at].name() == name && parts.iter().all(|part| code[at].has(part))
    };
    let fence = |at: usize| code[at].guard.is_none() && is(at, "fence", &["acq_rel", "sys"]);
    let written = (0..code.len()).filter(|at| is(*at, "st", &["cs"]));
    let told = |at: usize| is(at, "st", &["release"]);
    let mut reached: Vec<usize> = written.flat_map(|at| ways.reached(at, told, fence)).collect();
    reached.sort_unstable();
    reached.dedup();
    let why = "no fence.acq_rel.sys between slots and the release that tells of them";
    reached.iter().map(|at| Violation::of(&code[*at], why)).collect()
}

/// The form of a load or store that may be of memory outside the block.
fn form(instruction: &Instruction<'_>) -> Option<String> {
    if !instruction.is_access_outside() {
        return None;
    }
    let plain = |part: &&str| !matches!(*part, "global" | "v2" | "v4" | "v8");
    let (kind, opcode) = instruction.opcode.split_last()?;
    let whole = (*kind == "b128").then_some(*kind);
    Some(opcode.iter().copied().filter(plain).chain(whole).collect::<Vec<_>>().join("."))
}
