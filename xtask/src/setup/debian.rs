//! Fetches Debian's `rust-src` by apt into the target folder. apt's state is kept there too: the machine's apt
//! configuration, lists and installed packages are not changed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use fs_err as fs;

use crate::pins::{DEBIAN_PACKAGE, DEBIAN_SUITES, DEBIAN_VERSION, NIGHTLY};
use crate::{Result, Workspace, shell, workspace};

/// Debian's own address: what serves where the machine's sources name no Debian mirror.
const MIRROR: &str = "http://deb.debian.org/debian";

/// The keys that sign Debian's archive, on every mirror.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The `library` folder of the package's source, fetched unless it is there.
///
/// # Errors
/// When apt is missing or fails, or when Debian no longer carries the pinned version.
pub fn ensure(ws: &Workspace) -> Result<PathBuf> {
    let library = ws.tools().join("rust-src").join(DEBIAN_VERSION).join("library");
    if library.join("core/src/lib.rs").is_file() {
        return Ok(library);
    }
    let work = ws.tools().join("apt");
    let deb = download(&work)?;
    let unpacked = work.join("unpacked");
    remove(&unpacked)?;
    shell::run(shell::command("dpkg").arg("-x").arg(&deb).arg(&unpacked))?;
    let upstream = DEBIAN_VERSION.split('+').next().unwrap_or_default();
    let source = unpacked.join(format!("usr/src/rustc-{upstream}/library"));
    let parent = library.parent().unwrap_or(&work);
    fs::create_dir_all(parent)?;
    remove(&library)?;
    fs::rename(&source, &library)?;
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
        fs::create_dir_all(work.join(folder))?;
    }
    workspace::write(&work.join("state/status"), "")?;
    let signed = match Path::new(KEYS).is_file() {
        true => format!("Signed-By: {KEYS}\n"),
        false => String::new(), // the keys that apt trusts
    };
    let targets =
        shell::output(shell::command("apt-get").args(["indextargets", "--format", "$(REPO_URI)"]));
    let mirror = targets.as_deref().ok().and_then(mirror).unwrap_or(MIRROR);
    let sources =
        format!("Types: deb\nURIs: {mirror}\nSuites: {DEBIAN_SUITES}\nComponents: main\n{signed}");
    workspace::write(&work.join("debian.sources"), &sources)?;

    println!("setup: asking Debian ({DEBIAN_SUITES}) for {DEBIAN_PACKAGE} {DEBIAN_VERSION}");
    shell::output(apt_command("apt-get", work).args(["--quiet", "update"]))
        .context("Debian's package lists could not be fetched")?;
    let versions = shell::output(apt_command("apt-cache", work).args(["madison", DEBIAN_PACKAGE]))?;
    check_offered(&versions)?;
    let wanted = format!("{DEBIAN_PACKAGE}={DEBIAN_VERSION}");
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
fn check_offered(madison: &str) -> Result {
    let versions = madison.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim);
    let offered: Vec<&str> = versions.collect();
    ensure!(
        offered.contains(&DEBIAN_VERSION),
        "Debian ({DEBIAN_SUITES}) has moved past {DEBIAN_PACKAGE} {DEBIAN_VERSION}: it offers {}\n  \
         try: rustup toolchain install {NIGHTLY} --profile minimal --component rust-src, \
         or pin the version on offer in xtask/src/pins.rs and see whether `cargo xtask ptx --check` agrees",
        if offered.is_empty() { "nothing".into() } else { offered.join(", ") }
    );
    Ok(())
}

fn remove(folder: &Path) -> Result {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{check_offered, mirror};

    #[test]
    fn a_newer_version_is_reported_by_name() {
        let madison = |v: &str| {
            format!("  rust-src | {v} | http://m.example/debian sid/main amd64 Packages\n")
        };
        let newer = madison("1.99.0+dfsg1-1");
        let said = check_offered(&newer).unwrap_err().to_string();
        assert!(said.contains("it offers 1.99.0+dfsg1-1"), "{said}");
        check_offered(&(newer + &madison("1.97.1+dfsg1-1"))).unwrap();
        assert!(check_offered("").unwrap_err().to_string().contains("it offers nothing"));
    }

    #[test]
    fn the_main_archive_is_found_among_others() {
        let targets =
            "https://m.example/debian-security/\nhttps://m.example/debian/\nhttps://n/debian\n";
        assert_eq!(mirror(targets), Some("https://m.example/debian"));
        assert_eq!(mirror("http://m.example/ubuntu/\n"), None);
    }
}
