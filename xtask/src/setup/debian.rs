//! Fetches packages of Debian's by apt into the target folder: `rust-src`, and an emulator of other processors. apt's state
//! is kept there too: the machine's apt configuration, lists and installed packages are not changed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use fs_err as fs;

use crate::pins::{self, DebianPackage, NIGHTLY};
use crate::workspace::{remove, write};
use crate::{Result, Workspace, shell};

/// Debian's own address: what serves where the machine's sources name no Debian mirror.
const MIRROR: &str = "http://deb.debian.org/debian";

/// The keys that sign Debian's archive, on every mirror.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The `library` folder of `rust-src`, fetched unless it is there.
///
/// # Errors
/// When apt is missing or fails, or when Debian no longer carries the pinned version.
pub fn library(ws: &Workspace) -> Result<PathBuf> {
    let package = &pins::RUST_SRC;
    let library = ws.tools().join("rust-src").join(package.version).join("library");
    if library.join("core/src/lib.rs").is_file() {
        return Ok(library);
    }
    let upstream = package.version.split('+').next().unwrap_or_default();
    keep(ws, package, &format!("usr/src/rustc-{upstream}/library"), &library)?;
    Ok(library)
}

/// The emulator of 64-bit Arm processors for programs of Linux, fetched unless it is there.
///
/// # Errors
/// As for [`library`].
pub fn emulator(ws: &Workspace) -> Result<PathBuf> {
    let package = &pins::QEMU;
    let emulator = ws.tools().join("qemu").join(package.version).join("qemu-aarch64");
    if !emulator.is_file() {
        keep(ws, package, "usr/bin/qemu-aarch64-static", &emulator)?;
    }
    Ok(emulator)
}

/// Fetches a package and keeps one file or folder of it, at `to`.
fn keep(ws: &Workspace, package: &DebianPackage, what: &str, to: &Path) -> Result {
    let work = ws.tools().join("apt");
    let deb = download(package, &work)?;
    let unpacked = work.join("unpacked");
    remove(&unpacked)?;
    shell::run(shell::command("dpkg").arg("-x").arg(&deb).arg(&unpacked))?;
    fs::create_dir_all(to.parent().unwrap_or(&work))?;
    remove(to)?;
    fs::rename(unpacked.join(what), to)?;
    remove(&work)
}

/// The mirror of Debian's main archive among the sources that apt knows, as `apt-get indextargets` lists
/// them: a folder named `debian`, on every mirror.
fn mirror(targets: &str) -> Option<&str> {
    targets.lines().map(|uri| uri.trim_end_matches('/')).find(|uri| uri.ends_with("/debian"))
}

fn download(package: &DebianPackage, work: &Path) -> Result<PathBuf> {
    let DebianPackage { name, version, suites } = package;
    remove(work)?;
    for folder in ["state/lists/partial", "cache/archives/partial", "log"] {
        fs::create_dir_all(work.join(folder))?;
    }
    write(&work.join("state/status"), "")?;
    let signed = match Path::new(KEYS).is_file() {
        true => format!("Signed-By: {KEYS}\n"),
        false => String::new(), // the keys that apt trusts
    };
    let targets =
        shell::output(shell::command("apt-get").args(["indextargets", "--format", "$(REPO_URI)"]));
    let mirror = targets.as_deref().ok().and_then(mirror).unwrap_or(MIRROR);
    let sources =
        format!("Types: deb\nURIs: {mirror}\nSuites: {suites}\nComponents: main\n{signed}");
    write(&work.join("debian.sources"), &sources)?;

    println!("setup: asking Debian ({suites}) for {name} {version}");
    shell::output(apt_command("apt-get", work).args(["--quiet", "update"]))
        .context("Debian's package lists could not be fetched")?;
    let versions = shell::output(apt_command("apt-cache", work).args(["madison", name]))?;
    check_offered(package, &versions)?;
    let wanted = format!("{name}={version}");
    shell::output(apt_command("apt-get", work).args(["--quiet", "download", &wanted]))?;
    let mut left = fs::read_dir(work)?.flatten().map(|entry| entry.path());
    let deb = left.find(|path| path.extension().is_some_and(|extension| extension == "deb"));
    deb.context("apt-get download left no package")
}

/// apt with its sources, state, cache and log in `work`.
fn apt_command(program: &str, work: &Path) -> Command {
    let mut command = shell::command(program);
    command.current_dir(work);
    for (key, value) in [
        ("Dir::Etc::sourcelist", "debian.sources"),
        ("Dir::State", "state"),
        ("Dir::State::status", "state/status"),
        ("Dir::Cache", "cache"),
        ("Dir::Log", "log"),
    ] {
        command.arg("-o").arg(format!("{key}={}", work.join(value).display()));
    }
    command.args(["-o", "Dir::Etc::sourceparts=/dev/null", "-o", "Acquire::Languages=none"]);
    command.args(["-o", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"]);
    // apt's own user cannot read a clone below a private home folder.
    command.args(["-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=2"]);
    command
}

/// Whether `apt-cache madison`'s table has the pinned version.
fn check_offered(package: &DebianPackage, madison: &str) -> Result {
    let DebianPackage { name, version, suites } = package;
    let versions = madison.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim);
    let offered: Vec<&str> = versions.collect();
    ensure!(
        offered.contains(version),
        "Debian ({suites}) has moved past {name} {version}: it offers {}\n  try: {}",
        if offered.is_empty() { "nothing".into() } else { offered.join(", ") },
        package.otherwise()
    );
    Ok(())
}

impl DebianPackage {
    /// What else to do where Debian no longer carries the version.
    fn otherwise(&self) -> String {
        if *self == pins::RUST_SRC {
            format!(
                "rustup toolchain install {NIGHTLY} --profile minimal --component rust-src, or pin the version on offer \
                 in xtask/src/pins.rs and see whether `cargo xtask ptx --check` agrees"
            )
        } else {
            "pin the version on offer in xtask/src/pins.rs".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{check_offered, mirror};
    use crate::pins::RUST_SRC;

    #[test]
    fn a_newer_version_is_reported_by_name() {
        let madison = |v: &str| {
            format!("  rust-src | {v} | http://m.example/debian sid/main amd64 Packages\n")
        };
        let newer = madison("1.99.0+dfsg1-1");
        let said = check_offered(&RUST_SRC, &newer).unwrap_err().to_string();
        assert!(said.contains("it offers 1.99.0+dfsg1-1"), "{said}");
        check_offered(&RUST_SRC, &(newer + &madison("1.97.1+dfsg1-1"))).unwrap();
        assert!(
            check_offered(&RUST_SRC, "").unwrap_err().to_string().contains("it offers nothing")
        );
    }

    #[test]
    fn the_main_archive_is_found_among_others() {
        let targets =
            "https://m.example/debian-security/\nhttps://m.example/debian/\nhttps://n/debian\n";
        assert_eq!(mirror(targets), Some("https://m.example/debian"));
        assert_eq!(mirror("http://m.example/ubuntu/\n"), None);
    }
}
