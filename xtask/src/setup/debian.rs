//! Fetches Debian's `rust-src` by apt into the target folder. apt's state is kept there too: the machine's apt
//! configuration, lists and installed packages are not changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, Result, Workspace, pins, shell, workspace};

/// Debian's own address: what serves where the machine's sources name no Debian mirror.
const MIRROR: &str = "http://deb.debian.org/debian";

/// The keys that sign Debian's archive, on every mirror.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The `library` folder of the package's source, fetched unless it is there.
///
/// # Errors
/// When apt is missing or fails, or when Debian no longer carries the pinned version.
pub fn ensure(ws: &Workspace) -> Result<PathBuf> {
    let library = ws.tools().join("rust-src").join(pins::DEBIAN_VERSION).join("library");
    if library.join("core/src/lib.rs").is_file() {
        return Ok(library);
    }
    let work = ws.tools().join("apt");
    let deb = download(&work)?;
    let unpacked = work.join("unpacked");
    remove(&unpacked)?;
    shell::run(shell::command("dpkg").arg("-x").arg(&deb).arg(&unpacked))?;
    let upstream = pins::DEBIAN_VERSION.split('+').next().unwrap_or_default();
    let source = unpacked.join(format!("usr/src/rustc-{upstream}/library"));
    let parent = library.parent().unwrap_or(&work);
    fs::create_dir_all(parent).map_err(|e| Error::io(parent, &e))?;
    remove(&library)?;
    fs::rename(&source, &library).map_err(|e| Error::io(&source, &e))?;
    remove(&work)?;
    Ok(library)
}

/// The mirror of Debian's main archive among the sources that apt knows, as `apt-get indextargets` lists
/// them: a folder named `debian`, on every mirror.
fn mirror(targets: &str) -> Option<&str> {
    targets.lines().map(|uri| uri.trim_end_matches('/')).find(|uri| uri.ends_with("/debian"))
}

fn download(work: &Path) -> Result<PathBuf> {
    remove(work)?;
    for folder in ["state/lists/partial", "cache/archives/partial", "log"] {
        let folder = work.join(folder);
        fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, &e))?;
    }
    workspace::write(&work.join("state/status"), "")?;
    let signed = match Path::new(KEYS).is_file() {
        true => format!("Signed-By: {KEYS}\n"),
        false => String::new(), // the keys that apt trusts
    };
    let targets =
        shell::output(shell::command("apt-get").args(["indextargets", "--format", "$(REPO_URI)"]));
    let mirror = targets.as_deref().ok().and_then(mirror).unwrap_or(MIRROR);
    let sources = format!(
        "Types: deb\nURIs: {}\nSuites: {}\nComponents: main\n{signed}",
        mirror,
        pins::DEBIAN_SUITES
    );
    workspace::write(&work.join("debian.sources"), &sources)?;

    println!(
        "setup: asking Debian ({}) for {} {}",
        pins::DEBIAN_SUITES,
        pins::DEBIAN_PACKAGE,
        pins::DEBIAN_VERSION
    );
    shell::output(apt_command("apt-get", work).args(["--quiet", "update"]))
        .map_err(|e| Error::new(format!("Debian's package lists could not be fetched: {e}")))?;
    let versions =
        shell::output(apt_command("apt-cache", work).args(["madison", pins::DEBIAN_PACKAGE]))?;
    if !offers(&versions, pins::DEBIAN_VERSION) {
        return Err(moved_past(&versions));
    }
    let wanted = format!("{}={}", pins::DEBIAN_PACKAGE, pins::DEBIAN_VERSION);
    shell::output(apt_command("apt-get", work).args(["--quiet", "download", &wanted]))?;
    let entries = fs::read_dir(work).map_err(|e| Error::io(work, &e))?;
    let deb =
        entries.flatten().map(|e| e.path()).find(|p| p.extension().is_some_and(|x| x == "deb"));
    deb.ok_or_else(|| Error::new("apt-get download left no package"))
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

/// Whether `apt-cache madison`'s table has `version`.
fn offers(madison: &str, version: &str) -> bool {
    madison.lines().any(|line| line.split('|').nth(1).is_some_and(|v| v.trim() == version))
}

fn moved_past(madison: &str) -> Error {
    let found: Vec<&str> =
        madison.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim).collect();
    let found = if found.is_empty() { "nothing".into() } else { found.join(", ") };
    Error::new(format!(
        "Debian ({}) has moved past {} {}: it offers {found}",
        pins::DEBIAN_SUITES,
        pins::DEBIAN_PACKAGE,
        pins::DEBIAN_VERSION
    ))
    .hint(format!(
        "rustup toolchain install {} --profile minimal --component rust-src, \
         or pin the version on offer in xtask/src/pins.rs and see whether `cargo xtask ptx --check` agrees",
        pins::NIGHTLY
    ))
}

fn remove(folder: &Path) -> Result {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(folder, &e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{mirror, moved_past, offers};

    #[test]
    fn a_newer_version_is_reported_by_name() {
        let madison =
            "  rust-src | 1.99.0+dfsg1-1 | http://m.example/debian sid/main amd64 Packages\n";
        assert!(!offers(madison, "1.97.1+dfsg1-1"));
        assert!(offers(madison, "1.99.0+dfsg1-1"));
        assert!(moved_past(madison).to_string().contains("it offers 1.99.0+dfsg1-1"));
    }

    #[test]
    fn the_main_archive_is_found_among_others() {
        let targets =
            "https://m.example/debian-security/\nhttps://m.example/debian/\nhttps://n/debian\n";
        assert_eq!(mirror(targets), Some("https://m.example/debian"));
        assert_eq!(mirror("http://m.example/ubuntu/\n"), None);
    }
}
