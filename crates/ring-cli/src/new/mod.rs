//! `ring new`: a project that builds and passes its test at once, to be changed into one's own. `ring init` in
//! [`init`] adds the same kernels to a package that is there already.
//!
//! [`Name`] and [`Source`] are what can be chosen, [`files`] is what is written, and `write` does it, all
//! or nothing; `cargo` says in which workspace it lies.

mod cargo;
pub mod init;
mod manifest;
mod name;
mod source;
mod template;
#[cfg(test)]
mod tests;
mod write;

pub use name::{Folder, Name};
pub use source::Source;
pub use template::files;

use crate::args::New;
use crate::failure::Failure;
use ring_builder::pins::NIGHTLY;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes the project into a folder of its name, and says to `out` what to do with it.
pub fn run(options: &New, out: &mut impl Write) -> Result<(), Failure> {
    let source = Source::chosen(options.ring.as_ref())?;
    let folder = &options.folder;
    let source = if folder.is_here() { source } else { source.absolute() };
    let workspace = project(folder, &source)?;
    let name = folder.path().display();
    writeln!(
        out,
        "\
wrote {name}/ with ring from {source}

  the kernel   {name}/kernels/src/lib.rs
  its program  {name}/src/main.rs

next
  cd {name}
  cargo test                           on CPU threads
  cargo run --release -- cpu           the same, a million messages
  cargo run --release --features gpu   on a GPU, if there is one
"
    )?;
    if let Some(workspace) = workspace {
        writeln!(out, "It is a member of the workspace of {}.\n", workspace.display())?;
    }
    write!(out, "{}", hints(&source))?;
    Ok(())
}

/// Writes it, as a member of the workspace that it is for, if there is one, else as one of its own: either
/// alone would break a workspace whose pattern matches it, or not be read below one whose does not.
fn project(folder: &Folder, source: &Source) -> Result<Option<PathBuf>, Failure> {
    let files = |alone| template::files(folder.name(), source, alone);
    let Some(workspace) = cargo::workspace_above(folder.path()) else {
        write::write(folder.path(), &files(true))?;
        return Ok(None);
    };
    write::write(folder.path(), &files(false))?;
    let manifest = folder.path().join("Cargo.toml");
    if cargo::is_member(&manifest) {
        return Ok(Some(workspace));
    }
    let [(_, text), ..] = &files(true)[..] else { return Ok(None) };
    std::fs::write(&manifest, text).map_err(Failure::file(&manifest))?;
    Ok(None)
}

/// What else to know, at the end of a report.
fn hints(source: &Source) -> String {
    let nightly = format!(
        "\
The last compiles the kernel with a nightly, which is needed once:
  rustup toolchain install {NIGHTLY} --profile minimal \\
      --component rust-src
"
    );
    match source.note() {
        Some(note) => nightly + "\n" + &crate::text::wrapped("", &note) + "\n",
        None => nightly,
    }
}

/// As a path from the working folder, where it lies in it.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}
