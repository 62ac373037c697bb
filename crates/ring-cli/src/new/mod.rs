//! `ring new`: a project that builds and passes its test at once, to be changed into one's own.
//!
//! [`Name`] and [`Source`] are what can be chosen, [`files`] is what is written, and `write` does it, all
//! or nothing.

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

/// Writes the project into a folder of its name, and says to `out` what to do with it.
pub fn run(options: &New, out: &mut impl Write) -> Result<(), Failure> {
    let source = match &options.ring {
        Some(source) => source.clone(),
        None => Source::of_this_command(),
    };
    source.check()?;
    let folder = &options.folder;
    let source = if folder.is_here() { source } else { source.absolute() };
    write::write(folder.path(), &files(folder.name(), &source))?;
    let name = folder.path().display();
    write!(
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

The last compiles the kernel with a nightly, which is needed once:
  rustup toolchain install {NIGHTLY} --profile minimal \\
      --component rust-src
"
    )?;
    Ok(())
}
