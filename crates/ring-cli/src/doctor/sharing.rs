//! Whether other processes use the GPU: which of them are seen to have one open, and how round trips go.
//!
//! Without MPS the contexts of several processes take turns on a GPU. A kernel that stays does not run
//! while it is another's turn, and each of its messages waits for the end of that.

use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{Error, LaunchConfig, Runtime};
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The file of NVIDIA's driver that a process has open if it computes, not if it only displays or asks
/// for the temperature.
const FILE: &str = "/dev/nvidia-uvm";

/// How the programs of MPS are called, as far as Linux keeps names.
const MPS: &str = "nvidia-cuda-mps";

/// How long round trips are watched: some twenty turns of others.
const WATCHED: Duration = Duration::from_millis(50);

/// A round trip of as long was not the GPU's doing alone.
const LATE: Duration = Duration::from_millis(1);

/// So many late ones are no accident, such as a moment in which the host thread did not run.
const TURNS: u64 = 5;

/// The longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Whether others use the GPU.
#[derive(Clone, Debug)]
pub struct Sharing {
    /// Other processes that have a GPU open to compute, as far as they can be seen.
    pub users: Vec<User>,
    /// Round trips of a kernel that stays; or why there were none.
    pub trips: Result<RoundTrips, String>,
}

/// A process that has a GPU open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct User {
    /// Its number.
    pub pid: u32,
    /// The name of its program.
    pub name: String,
}

/// Round trips that followed each other for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundTrips {
    /// How many there were.
    pub count: u64,
    /// Median time there and back.
    pub median: Duration,
    /// The longest.
    pub longest: Duration,
    /// How many took a millisecond or longer.
    pub late: u64,
}

impl RoundTrips {
    /// Whether they look as if others took turns.
    pub fn in_turns(&self) -> bool {
        self.late >= TURNS
    }

    fn of(mut times: Vec<Duration>) -> RoundTrips {
        times.sort_unstable();
        RoundTrips {
            count: times.len() as u64,
            median: times.get(times.len() / 2).copied().unwrap_or_default(),
            longest: times.last().copied().unwrap_or_default(),
            late: times.iter().filter(|time| **time >= LATE).count() as u64,
        }
    }
}

impl Sharing {
    /// Looks for others, and watches round trips.
    pub fn look(runtime: &Runtime) -> Sharing {
        let users = users_under(Path::new("/proc"), std::process::id());
        Sharing { users, trips: watch(runtime).map_err(|error| error.to_string()) }
    }

    /// The processes, each with its number.
    pub fn names(&self) -> Vec<String> {
        self.users.iter().map(|user| format!("{} (process {})", user.name, user.pid)).collect()
    }

    /// Whether MPS serves this machine, so that processes need not take turns.
    pub fn mps(&self) -> bool {
        self.users.iter().any(|user| user.name.starts_with(MPS))
    }
}

/// Processes but `own` that have the file open. Those of other users and outside of the container are
/// not seen, and on other systems none are.
fn users_under(proc: &Path, own: u32) -> Vec<User> {
    let processes = fs::read_dir(proc).into_iter().flatten().flatten();
    let mut users: Vec<User> = processes
        .filter_map(|process| {
            let pid = process.file_name().to_str()?.parse().ok().filter(|pid| *pid != own)?;
            let mut files = fs::read_dir(process.path().join("fd")).ok()?.flatten();
            let uses =
                files.any(|file| fs::read_link(file.path()).is_ok_and(|to| to == Path::new(FILE)));
            let name = || fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            uses.then(|| User { pid, name: name().trim().to_owned() })
        })
        .collect();
    users.sort_by_key(|user| user.pid);
    users
}

fn watch(runtime: &Runtime) -> Result<RoundTrips, Error> {
    let mut kernel = runtime.launch::<Echo>(LaunchConfig::default().threads(64).capacity(16))?;
    kernel.activate(TIMEOUT)?;
    let (mut times, begun) = (Vec::new(), Instant::now());
    while begun.elapsed() < WATCHED {
        let sent = Instant::now();
        kernel.send(EchoMessage::from_seed(times.len() as u64), TIMEOUT)?;
        kernel.recv(TIMEOUT)?;
        times.push(sent.elapsed());
    }
    kernel.terminate(TIMEOUT)?;
    Ok(RoundTrips::of(times))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring_host::Device;

    #[test]
    fn late_round_trips_are_counted() {
        let us = Duration::from_micros;
        let trips = RoundTrips::of(vec![us(2), us(1000), us(3), us(2400), us(2)]);
        let expected = RoundTrips { count: 5, median: us(3), longest: us(2400), late: 2 };
        assert_eq!((trips.in_turns(), trips), (false, expected));
        assert!(RoundTrips::of(vec![us(2400); 5]).in_turns());
        assert_eq!(RoundTrips::of(Vec::new()).count, 0);
    }

    #[test]
    fn round_trips_are_watched_for_a_while() {
        let runtime = Runtime::open(Device::Cpu).unwrap();
        let trips = watch(&runtime).unwrap();
        assert!(trips.count > 0 && trips.longest >= trips.median, "{trips:?}");
    }

    #[cfg(unix)]
    #[test]
    fn other_processes_with_the_file_open_are_seen() {
        let root = std::env::temp_dir().join(format!("ring-sharing-{}", std::process::id()));
        let process = |pid: &str, name: &str, file: &str| {
            let folder = root.join(pid);
            fs::create_dir_all(folder.join("fd")).unwrap();
            fs::write(folder.join("comm"), format!("{name}\n")).unwrap();
            std::os::unix::fs::symlink("/dev/null", folder.join("fd/0")).unwrap();
            std::os::unix::fs::symlink(file, folder.join("fd/3")).unwrap();
        };
        process("300", "python", FILE);
        process("20", "nvidia-cuda-mps", FILE);
        process("7", "ring", FILE);
        process("8", "Xorg", "/dev/nvidia0");
        process("self", "ring", FILE);
        fs::create_dir_all(root.join("9")).unwrap(); // of another user
        let users = users_under(&root, 7);
        fs::remove_dir_all(&root).unwrap();
        let user = |pid, name: &str| User { pid, name: name.to_owned() };
        assert_eq!(users, [user(20, "nvidia-cuda-mps"), user(300, "python")]);
        let trips = Err(String::new());
        assert!(Sharing { users: users.clone(), trips: trips.clone() }.mps());
        assert!(!Sharing { users: users[1..].into(), trips }.mps());
        assert_eq!(users_under(&root, 7), []);
    }
}
