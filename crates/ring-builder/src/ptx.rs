//! What is checked of PTX: that it names no folder, and asks for no more than was chosen; and what is added to it.

use crate::{Arch, BuildError};
use std::path::Path;

/// What `ring-device` writes into a kernel with ports or of scope `Grid`, the threads of its blocks in between.
const MARK: [&str; 2] = ["// ring: registers for ", " threads"];

/// The same PTX, where the threads of kernels with ports and of scope `Grid` have no more registers than there are
/// for the blocks of a launch by default. Left to itself, `ptxas` takes some more where that seems to make a kernel a little faster,
/// and the kernel then cannot be launched by default.
#[must_use]
pub fn with_limited_registers(ptx: &str) -> String {
    with_entries(ptx, |head, body| {
        let most = registers(marked_threads(body)?);
        Some(format!("{head}\n.maxnreg {most}\n{{\n{body}"))
    })
}

/// The block-shared memory of a ring kernel, as rustc names it in PTX.
const SHARED: &str = "gpu_launch_sized_workgroup_mem";

/// The register in which a kernel then has where that memory begins.
const AT: &str = "%ring_at";

/// The same PTX, where each kernel works out once where its block-shared memory begins, and keeps it in a register. `ptxas` would do so at
/// each access that it does not see to be near another one: for compute capability 9.0 that is a read of the special register
/// `%cluster_ctarank`, which takes some 60 cycles. What a shuffle gives it does not work out again.
#[must_use]
pub fn with_one_base(ptx: &str) -> String {
    with_entries(ptx, |head, body| {
        let begin =
            body.lines().take_while(|line| is_declaration(line)).map(|line| line.len() + 1).sum();
        let (declared, code) = body.split_at_checked(begin)?;
        if !code.contains(SHARED) {
            return None;
        }
        let code = code.replace(&format!("[{SHARED}"), &format!("[{AT}"));
        let to = format!(", {SHARED};");
        let lines = code.lines().map(|line| match line.strip_suffix(&to) {
            Some(moved) if moved.trim_start().starts_with("mov.b64 ") => {
                format!("{}, {AT};\n", moved.replacen("mov.b64", "cvt.u64.u32", 1))
            }
            _ => format!("{line}\n"),
        });
        let code: String = lines.collect();
        let base = format!(
            "\t.reg .b32 {AT};\n\tmov.b32 \t{AT}, {SHARED};\n\tshfl.sync.idx.b32 \t{AT}, {AT}, 0, 31, -1;\n"
        );
        Some(format!("{head}\n{{\n{declared}{base}{}", code.trim_end_matches('\n')))
    })
}

/// Whether a line of a function's body declares something, or says nothing.
fn is_declaration(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('.') || line.starts_with("//")
}

/// The same PTX, where `change` may give another text of an entry point, of what is before the brace that begins its body, and of the body.
fn with_entries(ptx: &str, change: impl Fn(&str, &str) -> Option<String>) -> String {
    let (mut changed, mut rest) = (String::with_capacity(ptx.len() + 1024), ptx);
    while let Some(at) = rest.find("\n.visible .entry ") {
        let (before, entry) = rest.split_at(at + 1);
        changed.push_str(before);
        let end = entry.find("\n}\n").unwrap_or(entry.len());
        let (entry, behind) = entry.split_at(end);
        let other = entry.split_once("\n{\n").and_then(|(head, body)| change(head, body));
        changed.push_str(other.as_deref().unwrap_or(entry));
        rest = behind;
    }
    changed + rest
}

/// How many threads the mark in a kernel's body names, if there is one.
fn marked_threads(body: &str) -> Option<u32> {
    let (_, from) = body.split_once(MARK[0])?;
    from.split_once(MARK[1])?.0.parse().ok().filter(|threads| *threads > 0)
}

/// Most registers of each of a block's threads: of the 65,536 of a multiprocessor, which a warp gets 256 at a time, and at most
/// 255 a thread.
const fn registers(threads: u32) -> u32 {
    let most = 65_536 / threads.next_multiple_of(32) / 8 * 8;
    if most < 255 { most } else { 255 }
}

/// Checks that no line names one of the folders. A path would make the PTX differ from clone to
/// clone, and tell where it was built.
///
/// # Errors
/// When one does.
pub fn names_none(ptx: &str, folders: &[&Path]) -> Result<(), BuildError> {
    for folder in folders.iter().filter(|folder| folder.parent().is_some()) {
        let name = folder.to_string_lossy();
        let tells = |line: &str| line.contains(name.as_ref()) || data(line).contains(name.as_ref());
        if let Some(line) = ptx.lines().position(tells) {
            return Err(BuildError::NamesFolder { line: line + 1, folder: folder.to_path_buf() });
        }
    }
    Ok(())
}

/// The bytes that a line's initialiser holds, as text.
fn data(line: &str) -> String {
    let bytes: Vec<u8> = ring_ptx::bytes(line).map_while(|byte| byte).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Checks that `.version` and `.target` are what `arch` asks for at most.
///
/// # Errors
/// When they are not.
pub fn check_header(ptx: &str, arch: Arch) -> Result<(), BuildError> {
    let version = ring_ptx::header(ptx).version();
    match version.is_some_and(|version| version <= arch.ptx_version()) {
        true => check_target(ptx, arch),
        false => Err(other_header(ptx, arch)),
    }
}

/// Checks that `.target` is `arch`.
///
/// # Errors
/// When it is not.
pub fn check_target(ptx: &str, arch: Arch) -> Result<(), BuildError> {
    match ring_ptx::header(ptx).architecture() == Some(&arch.to_string()) {
        true => Ok(()),
        false => Err(other_header(ptx, arch)),
    }
}

fn other_header(ptx: &str, arch: Arch) -> BuildError {
    let header = ring_ptx::header(ptx);
    let [version, target] = [header.version, header.target]
        .map(|statement| statement.map_or("none", |statement| statement.value()));
    let (major, minor) = arch.ptx_version();
    BuildError::Header {
        found: format!("PTX {version} on {target}"),
        chosen: format!("PTX {major}.{minor} on {arch}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "\
.version 8.4
.target sm_70, debug
.visible .entry one(
)
";

    #[test]
    fn block_shared_memory_is_reached_from_one_register() {
        let head = "\n.extern .shared .align 16 .b8 gpu_launch_sized_workgroup_mem[];\n";
        let entry = |code: &str| {
            format!(
                "{head}.visible .entry a(\n\t.param .u64 p\n)\n{{\n\t.reg .b64 \t%rd<3>;\n\n// %bb.0:\n{code}\tret;\n}}\n"
            )
        };
        let before = "\tld.shared.b64 \t%rd1, [gpu_launch_sized_workgroup_mem+8];\n\tmov.b64 \t%rd2, gpu_launch_sized_workgroup_mem;\n\
                      \tst.shared.b64 \t[gpu_launch_sized_workgroup_mem], %rd2;\n";
        let behind = "\t.reg .b32 %ring_at;\n\tmov.b32 \t%ring_at, gpu_launch_sized_workgroup_mem;\n\
                      \tshfl.sync.idx.b32 \t%ring_at, %ring_at, 0, 31, -1;\n\
                      \tld.shared.b64 \t%rd1, [%ring_at+8];\n\tcvt.u64.u32 \t%rd2, %ring_at;\n\
                      \tst.shared.b64 \t[%ring_at], %rd2;\n";
        assert_eq!(with_one_base(&entry(before)), entry(behind));
        // Nothing where it has none, and nothing outside of entry points.
        let other = entry("\tmov.b64 \t%rd1, other;\n");
        assert_eq!(with_one_base(&other), other);
        let function = format!("\n.func f()\n{{\n{before}\tret;\n}}\n");
        assert_eq!(with_one_base(&function), function);
    }

    #[test]
    fn kernels_with_the_mark_have_limited_registers() {
        let text = |body: &str| {
            let entry = |name, body| {
                format!(".visible .entry {name}(\n\t.param .u64 p\n)\n{{\n\t{body}\n\tret;\n}}\n")
            };
            ["\n.func f()\n{\n}\n".to_owned(), entry("a", ""), entry("b", body), entry("c", "")]
                .concat()
        };
        assert_eq!(with_limited_registers(&text("")), text(""));
        for (threads, most) in [(32, 255), (256, 255), (384, 168), (512, 128), (1024, 64)] {
            let marked = text(&format!("// ring: registers for {threads} threads"));
            let limit = format!("b(\n\t.param .u64 p\n)\n.maxnreg {most}\n{{");
            let limited = marked.replace("b(\n\t.param .u64 p\n)\n{", &limit);
            assert_eq!(with_limited_registers(&marked), limited);
        }
        let unread = text("// ring: registers for no threads");
        assert_eq!(with_limited_registers(&unread), unread);
    }

    #[test]
    fn a_folder_is_reported_with_its_line() {
        let bad = format!("{PTX}// /home/me/x.rs\n");
        assert!(names_none(PTX, &[Path::new("/home/me")]).is_ok());
        assert!(names_none(&bad, &[Path::new("/")]).is_ok(), "every path begins so");
        let said = names_none(&bad, &[Path::new("/home/me")]).unwrap_err().to_string();
        assert!(said.contains("line 5") && said.contains("/home/me"), "{said}");
        let bytes = ".global .align 1 .b8 x[6] = {1, 47, 104, 105, 47, 0};";
        let said = names_none(bytes, &[Path::new("/hi")]).unwrap_err().to_string();
        assert!(said.contains("line 1 of the PTX names /hi"), "{said}");
    }

    #[test]
    fn another_header_is_reported() {
        check_header(PTX, Arch::OLDEST).unwrap();
        check_header(&PTX.replace("8.4", "7.8"), Arch::OLDEST).unwrap();
        for (good, bad) in [("8.4", "8.5"), ("8.4", "9.0"), ("sm_70", "sm_90a"), (".target", "")] {
            let said = check_header(&PTX.replace(good, bad), Arch::OLDEST).unwrap_err().to_string();
            assert!(said.contains("PTX 8.4 on sm_70 was chosen"), "{said}");
        }
    }
}
