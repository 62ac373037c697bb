//! Which services a user's processes serve: processes of other users cannot see those, and are to be told why they cannot call them.
//!
//! A server leaves a mark: a symbolic link in the directory `ring-<number of the user>.served`, where others may look for a name and not
//! list all (mode 711). The link has the service's name, with `,` for `/`, and leads to the number of the server's process. It is made at
//! once and read without being opened, so that nobody waits for what another user has put there.

use super::{MEMORY, user};
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process;

/// Others may look for a name there, and nothing else.
const MODE: u32 = 0o711;

/// A server's mark, which is there until this is dropped.
#[derive(Debug)]
pub struct Mark(PathBuf);

impl Mark {
    /// Says that this process serves that name.
    pub fn set(name: &str) -> io::Result<Mark> {
        Mark::set_in(Path::new(MEMORY), name)
    }

    fn set_in(memory: &Path, name: &str) -> io::Result<Mark> {
        let user = user()?;
        let directory = directory(memory, user);
        match DirBuilder::new().mode(MODE).create(&directory) {
            // Whatever the process takes away from the modes of what it creates.
            Ok(()) => fs::set_permissions(&directory, Permissions::from_mode(MODE))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let found = fs::symlink_metadata(&directory)?;
                if !found.is_dir() || found.uid() != user {
                    return Err(io::ErrorKind::PermissionDenied.into());
                }
            }
            Err(error) => return Err(error),
        }
        let path = directory.join(file(name));
        // That of a killed server: the name has one server at a time.
        let _ = fs::remove_file(&path);
        symlink(process::id().to_string(), &path)?;
        Ok(Mark(path))
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let is_ours = |to: &PathBuf| *to == Path::new(&process::id().to_string());
        if fs::read_link(&self.0).as_ref().is_ok_and(is_ours) {
            let _ = fs::remove_file(&self.0);
        }
    }
}

/// The number of a user, other than this process's, of whom a process serves that name.
///
/// It finds none where processes of others are hidden from this one.
pub fn by_another_user(name: &str) -> Option<u32> {
    by_another_than(user().ok()?, Path::new(MEMORY), name)
}

fn by_another_than(user: u32, memory: &Path, name: &str) -> Option<u32> {
    let of_user = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let other = name.to_str()?.strip_prefix("ring-")?.strip_suffix(".served")?.parse().ok()?;
        let found = entry.metadata().ok()?;
        (other != user && found.is_dir() && found.uid() == other).then_some(other)
    };
    let serves = |other: &u32| {
        let process = fs::read_link(directory(memory, *other).join(file(name))).ok();
        let number = process.and_then(|number| number.to_str()?.parse::<u32>().ok());
        number.is_some_and(|number| {
            fs::metadata(format!("/proc/{number}")).is_ok_and(|found| found.uid() == *other)
        })
    };
    fs::read_dir(memory).ok()?.flatten().filter_map(of_user).find(serves)
}

fn directory(memory: &Path, user: u32) -> PathBuf {
    memory.join(format!("ring-{user}.served"))
}

fn file(name: &str) -> String {
    format!("{}.server", name.replace('/', ","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_find_what_a_user_serves_and_no_more() {
        let memory = std::env::temp_dir().join(format!("ring-served-{}", process::id()));
        fs::create_dir(&memory).unwrap();
        let me = user().unwrap();
        let seen = |user, name| by_another_than(user, &memory, name);
        assert_eq!(seen(me + 1, "a/b"), None);
        let mark = Mark::set_in(&memory, "a/b").unwrap();
        assert_eq!(seen(me + 1, "a/b"), Some(me));
        assert_eq!((seen(me, "a/b"), seen(me + 1, "a"), seen(me + 1, "..")), (None, None, None));
        let directory = directory(&memory, me);
        assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, MODE);
        // A second server of the name has taken it from the first one, whose end leaves it there.
        let again = Mark::set_in(&memory, "a/b").unwrap();
        let path = directory.join("a,b.server");
        fs::remove_file(&path).unwrap();
        symlink("1", &path).unwrap();
        drop(mark);
        assert_eq!(fs::read_link(&path).unwrap(), Path::new("1"));
        // Of a process that is gone, or is another user's.
        fs::remove_file(&path).unwrap();
        symlink("4294967295", &path).unwrap();
        assert_eq!(seen(me + 1, "a/b"), None);
        // A directory by the name of a user who does not own it.
        fs::rename(&directory, memory.join(format!("ring-{}.served", me + 1))).unwrap();
        drop(again);
        symlink(memory.join("elsewhere"), &directory).unwrap();
        assert!(Mark::set_in(&memory, "c").is_err(), "not into a directory by another name");
        assert_eq!(seen(me + 2, "a/b"), None);
        fs::remove_dir_all(&memory).unwrap();
    }
}
