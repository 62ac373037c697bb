//! `ring init`: adds kernels to an existing package. Existing files are kept, and reported.

use super::cargo::is_workspace;
use super::manifest::Manifest;
use super::template::{self, File};
use super::{Name, Source, hints, shown};
use crate::args::Init;
use crate::failure::Failure;
use crate::text::wrapped;
use ring_builder::cargo;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Adds the crate of the kernels and what compiles and asks them, and says to `out` what was added.
pub fn run(options: &Init, out: &mut impl Write) -> Result<(), Failure> {
    let source = Source::chosen(options.ring.as_ref())?;
    let here = options.path == Path::new(".");
    let source = if here { source } else { source.absolute() };
    let plan = Plan::of(&options.path, &source)?;
    if plan.is_empty() {
        writeln!(out, "nothing to add: {} has its kernels", plan.name.as_str())?;
    } else {
        plan.carry_out(&options.path)?;
        writeln!(out, "added to {} with ring from {source}\n", plan.name.as_str())?;
    }
    for (file, what) in plan.files.iter().map(|(file, _)| (*file, about(file))) {
        writeln!(out, "{}", line(file, what))?;
    }
    for [table, key, value] in &plan.keys {
        writeln!(out, "{}", line("Cargo.toml", &format!("[{table}] {key} = {value}")))?;
    }
    if !plan.left.is_empty() {
        writeln!(out, "\nleft as it was, and to be seen to")?;
        for (file, what) in &plan.left {
            writeln!(out, "{}", line(file, what))?;
        }
    }
    if plan.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "
next{}
  cargo run --release --example square -- cpu         on CPU threads
  cargo run --release --example square --features gpu on a GPU, if there is one
",
        if here { String::new() } else { format!("\n  cd {}", shown(&options.path)) }
    )?;
    write!(out, "{}", hints(&source))?;
    Ok(())
}

fn line(file: &str, what: &str) -> String {
    wrapped(&format!("  {file:<20}"), what)
}

fn about(file: &str) -> &'static str {
    match file {
        "kernels/Cargo.toml" => "the crate of the kernels",
        "kernels/src/lib.rs" => "the kernel: change its handler here",
        "build.rs" => "compiles the kernels, with the feature gpu",
        _ => "launches the kernel, sends, checks the answers",
    }
}

/// What is added to a package.
#[derive(Debug)]
struct Plan {
    name: Name,
    /// Files that are not there.
    files: Vec<File>,
    /// Tables, keys and values that Cargo.toml does not have.
    keys: Vec<[String; 3]>,
    /// Cargo.toml with them.
    manifest: Manifest,
    /// What is there, and does not do what is needed; and what does.
    left: Vec<(&'static str, String)>,
}

impl Plan {
    /// Nothing is written yet.
    fn of(folder: &Path, source: &Source) -> Result<Plan, Failure> {
        let (name, manifest, root) = package(folder)?;
        let in_workspace = is_workspace(&root.join("Cargo.toml"));
        let mut plan =
            Plan { files: Vec::new(), keys: Vec::new(), left: Vec::new(), manifest, name };
        plan.kernels(folder, source)?;
        plan.beside(folder, source);
        for [table, key, value] in template::dependencies(&plan.name, source, 0) {
            plan.key(&table, &key, &value);
        }
        if !in_workspace {
            // Else cargo would take the kernels for a workspace of their own when it compiles them.
            plan.key("workspace", "members", "[\"kernels\"]");
        }
        let gpu = plan.manifest.get("features", "gpu").map(ToString::to_string).unwrap_or_default();
        if !gpu.contains("ring-builder") {
            let what = "its feature gpu does not name \"dep:ring-builder\": add it, or build.rs cannot \
                        compile the kernels";
            plan.left.push(("Cargo.toml", what.to_owned()));
        }
        Ok(plan)
    }

    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.keys.is_empty()
    }

    fn key(&mut self, table: &str, key: &str, value: &str) {
        if self.manifest.add(table, key, value) {
            self.keys.push([table, key, value].map(str::to_owned));
        }
    }

    /// The crate of the kernels, if it is not there.
    fn kernels(&mut self, folder: &Path, source: &Source) -> Result<(), Failure> {
        let kernels = folder.join("kernels");
        let toml = fs::read_to_string(kernels.join("Cargo.toml")).unwrap_or_default();
        let there = Manifest::new(&toml).ok();
        if there.is_some_and(|toml| toml.text("package", "name") == Some(&self.name.kernels())) {
            return Ok(());
        }
        if fs::symlink_metadata(&kernels).is_ok() {
            return Err(Failure::Taken(kernels));
        }
        self.files.extend(template::kernels(&self.name, source, 0));
        Ok(())
    }

    /// The build script and the program, where there is none of that name.
    fn beside(&mut self, folder: &Path, source: &Source) {
        let script = self.manifest.get("package", "build").map(|value| value.to_string());
        let script = script.as_deref().map(str::trim);
        for (file, text) in template::beside(&self.name, source) {
            let is_script = file == "build.rs";
            let own = script.filter(|script| is_script && *script != "\"build.rs\"");
            if own.is_none() && fs::symlink_metadata(folder.join(file)).is_err() {
                self.files.push((file, text));
            } else if is_script {
                let own = self.manifest.text("package", "build").unwrap_or(file);
                let there = fs::read_to_string(folder.join(own)).unwrap_or_default();
                if !there.contains("ring_builder::Builder") {
                    let what = format!(
                        "the build script is {}: what compiles the kernels is to be added to its main, \
                         #[cfg(feature = \"gpu\")] \
                         ring_builder::Builder::new(\"kernels\").build().expect(\"the kernels compile\");",
                        script.unwrap_or(own)
                    );
                    self.left.push((file, what));
                }
            }
        }
    }

    /// Writes it all, and asks cargo whether it takes it; if not, or if a file cannot be written, all is
    /// as it was.
    fn carry_out(&self, folder: &Path) -> Result<(), Failure> {
        let manifest = folder.join("Cargo.toml");
        let before = fs::read_to_string(&manifest).map_err(Failure::file(&manifest))?;
        let mut made = Vec::new();
        let done = self.write(folder, &mut made).and_then(|()| {
            let taken = cargo::metadata(&manifest);
            taken.map(drop).map_err(|said| Failure::Cargo { path: manifest.clone(), said })
        });
        if done.is_err() {
            for path in made.iter().rev() {
                let _ = if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
            }
            if self.manifest.changed().is_some() {
                let _ = fs::write(&manifest, before);
            }
        }
        done
    }

    /// Writes it; files and folders that were not there come into `made`.
    fn write(&self, folder: &Path, made: &mut Vec<PathBuf>) -> Result<(), Failure> {
        for (file, text) in &self.files {
            let path = folder.join(file);
            let parent = path.parent().unwrap_or(folder);
            let mut missing: Vec<&Path> = parent.ancestors().take_while(|p| !p.exists()).collect();
            while let Some(folder) = missing.pop() {
                fs::create_dir(folder).map_err(Failure::file(folder))?;
                made.push(folder.to_owned());
            }
            // Nobody's file is written over, not even one that has come meanwhile.
            let mut new = fs::File::create_new(&path).map_err(Failure::file(&path))?;
            made.push(path.clone());
            new.write_all(text.as_bytes()).map_err(Failure::file(&path))?;
        }
        let manifest = folder.join("Cargo.toml");
        match self.manifest.changed() {
            Some(text) => fs::write(&manifest, text).map_err(Failure::file(&manifest)),
            None => Ok(()),
        }
    }
}

/// The package in a folder: its name, its Cargo.toml, and the folder of its workspace.
fn package(folder: &Path) -> Result<(Name, Manifest, PathBuf), Failure> {
    let failed = |why: String| Failure::NoPackage { folder: folder.to_owned(), why };
    let path = folder.join("Cargo.toml");
    let toml = match fs::read_to_string(&path) {
        Ok(toml) => toml,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(failed("there is no Cargo.toml".to_owned()));
        }
        Err(error) => return Err(failed(format!("its Cargo.toml cannot be read: {error}"))),
    };
    let refused = |said| Failure::Cargo { path: path.clone(), said };
    let found = cargo::metadata(&path).map_err(refused)?;
    let manifest = Manifest::new(&toml).map_err(|error| refused(error.to_string()))?;
    if let Some(name) = manifest.text("package", "name") {
        return Ok((Name::of_package(name), manifest, found.root));
    }
    let packages =
        found.packages.iter().map(|(name, folder)| format!("{name} in {}", shown(folder)));
    let packages = packages.collect::<Vec<_>>().join(", ");
    let packages = if packages.is_empty() { "it has none yet" } else { &packages };
    Err(failed(format!("it is a workspace without a package of its own; its packages: {packages}")))
}
