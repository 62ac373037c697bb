//! `ring build`: compiles a crate with kernels to PTX.

use crate::args::Build;
use crate::failure::Failure;
use crate::progress::Waiting;
use crate::text::wrapped;
use ring_builder::{Arch, Builder, Built, Compiler};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Compiles what the options name, and says to `out` what came of it.
pub fn run(options: &Build, out: &mut impl Write) -> Result<(), Failure> {
    let path = path(options);
    let mut builder = Builder::new(&path)
        .arch(&options.arch)
        .features(&options.features)
        .name("kernels")
        .compiler(options.compiler);
    if let Some(toolchain) = &options.toolchain {
        builder = builder.toolchain(toolchain);
    }
    if let Some(folder) = &options.out {
        builder = builder.out_dir(folder);
    }
    let begun = Instant::now();
    let how = match options.compiler {
        Compiler::Upstream => "",
        Compiler::RustCuda => " by Rust-CUDA, which itself is compiled first, once",
    };
    let waiting = Waiting::new(format!("compiling {} to PTX{how}", path.display()));
    let built = builder.build();
    drop(waiting);
    let built = built.map_err(Failure::Build)?;
    if !built.warnings.is_empty() {
        eprintln!("{}", built.warnings.trim_end());
    }
    write!(out, "{}", report(&path, options, &built, begun.elapsed()))?;
    Ok(())
}

/// The crate: in a project that `ring new` made, its kernels.
fn path(options: &Build) -> PathBuf {
    match &options.path {
        Some(path) => path.clone(),
        None if Path::new("kernels/Cargo.toml").is_file() => "kernels".into(),
        None => ".".into(),
    }
}

fn report(path: &Path, options: &Build, built: &Built, time: Duration) -> String {
    let how = if built.changed { "written" } else { "as it was" };
    let (path, seconds) = (path.display(), time.as_secs_f64());
    let newer = options.arch.parse().is_ok_and(Arch::serves_newer);
    let newer = if newer { " and newer" } else { "" };
    let lines = [
        ("compiled", format!("{path} for {}{newer}, in {seconds:.1} s", options.arch)),
        ("ptx", format!("{} ({how})", built.ptx.display())),
        ("manifest", built.manifest.display().to_string()),
        ("entries", built.entries.join(", ")),
        ("ABI", format!("{}, as `ring_host` of the same version has it", built.abi_version)),
        (
            "next",
            "a build script does this by itself with ring_builder::Builder, and the host takes it with \
             ring_host::include_kernels!() (`ring new` writes a project that does); a file that you keep \
             goes through ring_host::Kernels::new (unsafe) into LaunchConfig::kernels"
                .to_owned(),
        ),
    ];
    let lines = lines.map(|(name, text)| wrapped(&format!("{name:<10}"), &text));
    lines.join("\n") + "\n"
}
