//! How a snapshot of a graph is in a file.
//!
//! Numbers are little-endian: `RINGGRPH`, the format, and how many kernels and declared links there are (3 times 4 bytes). Then for each
//! kernel how many channels the host feeds (4; none, or all), and for each of these how many messages it had sent (8); for each link how many
//! channels emit to the host by it (4), and how many messages each had emitted (8); and the CRC-32 of all that. Then the
//! [file of each kernel](crate::kernel::snapshot::file), one behind the other.

use crate::error::SnapshotFileError;
use crate::graph::builder::{GraphBuilder, Target};
use crate::kernel::snapshot::file::{Expected, States, ends, opened, read_some, replace};
use std::io::Read;
use std::path::Path;

const MAGIC: [u8; 8] = *b"RINGGRPH";

/// Of this file's layout.
const FORMAT: u32 = 1;

const CHECKSUM: usize = 4;

/// What was sent and emitted, by channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// For each kernel, how many messages the host had sent to each channel; of none that it does not feed.
    pub sent: Vec<Vec<u64>>,
    /// For each declared link, how many messages each channel had emitted to the host.
    pub emitted: Vec<Vec<u64>>,
}

impl Counts {
    /// As many as a graph has, all zero.
    fn zeroed(graph: &GraphBuilder) -> Counts {
        let fed =
            graph.members.iter().map(|member| if member.is_fed { member.channels() } else { 0 });
        let read = graph.links.iter().map(|link| match link.to {
            Target::Host => graph.members[link.from].channels(),
            Target::Kernel { .. } => 0,
        });
        let zeros = |channels: u32| vec![0; channels as usize];
        Counts { sent: fed.map(zeros).collect(), emitted: read.map(zeros).collect() }
    }

    fn each(&self) -> impl Iterator<Item = &Vec<u64>> {
        self.sent.iter().chain(&self.emitted)
    }

    /// What is in a file before the kernels.
    fn encoded(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for number in [FORMAT, self.sent.len() as u32, self.emitted.len() as u32] {
            bytes.extend(number.to_le_bytes());
        }
        for counts in self.each() {
            bytes.extend((counts.len() as u32).to_le_bytes());
            bytes.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
        }
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }
}

/// Replaces the file at a path.
pub fn save(
    path: &Path,
    version: u32,
    kernels: &[&'static str],
    (counts, states): (&Counts, &[States]),
) -> Result<(), SnapshotFileError> {
    replace(path, &encoded(version, kernels, (counts, states)))
}

fn encoded(
    version: u32,
    kernels: &[&'static str],
    (counts, states): (&Counts, &[States]),
) -> Vec<u8> {
    let mut bytes = counts.encoded();
    for (kernel, states) in kernels.iter().zip(states) {
        bytes.extend(states.encoded(kernel, version));
    }
    bytes
}

/// Reads a file.
pub fn load(
    path: &Path,
    version: u32,
    graph: &GraphBuilder,
) -> Result<(Counts, Vec<States>), SnapshotFileError> {
    decoded(&mut opened(path)?, path, version, graph)
}

fn decoded(
    file: &mut impl Read,
    path: &Path,
    version: u32,
    graph: &GraphBuilder,
) -> Result<(Counts, Vec<States>), SnapshotFileError> {
    let counts = decoded_counts(file, path, graph)?;
    let mut states = Vec::new();
    for member in &graph.members {
        let (kernel, state_bytes) = (member.kernel.name(), member.kernel.state_bytes());
        let found = States::decoded_from(file, path, &Expected { kernel, version, state_bytes });
        let found = found.map_err(|error| match error {
            SnapshotFileError::NoSnapshot { path } => SnapshotFileError::Damaged { path },
            error => error,
        })?;
        is_as_many(path, "channels", found.handled.len() as u32, member.channels())?;
        states.push(found);
    }
    ends(file, path)?;
    Ok((counts, states))
}

/// What is before the kernels.
fn decoded_counts(
    file: &mut impl Read,
    path: &Path,
    graph: &GraphBuilder,
) -> Result<Counts, SnapshotFileError> {
    let own = || path.to_path_buf();
    let mut bytes = Vec::new();
    let head = read_some(file, path, &mut bytes, (MAGIC.len() + 3 * 4) as u64);
    if !bytes.starts_with(&MAGIC) {
        return Err(SnapshotFileError::NoSnapshot { path: own() });
    }
    head?;
    let word = |bytes: &[u8], at: usize| {
        u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
    };
    let format = word(&bytes, 8);
    if format != FORMAT {
        return Err(SnapshotFileError::Format { path: own(), found: format, own: FORMAT });
    }
    let mut counts = Counts::zeroed(graph);
    is_as_many(path, "kernels", word(&bytes, 12), counts.sent.len() as u32)?;
    is_as_many(path, "links", word(&bytes, 16), counts.emitted.len() as u32)?;
    let Counts { sent, emitted } = &mut counts;
    let fed = sent.iter_mut().map(|counts| ("channels that the host feeds", counts));
    let read = emitted.iter_mut().map(|counts| ("channels whose port the host reads", counts));
    for (what, counts) in fed.chain(read) {
        let at = bytes.len();
        read_some(file, path, &mut bytes, 4)?;
        is_as_many(path, what, word(&bytes, at), counts.len() as u32)?;
        for count in counts {
            let at = bytes.len();
            read_some(file, path, &mut bytes, 8)?;
            *count = u64::from_le_bytes(bytes[at..].try_into().expect("8 bytes"));
        }
    }
    let mut checksum = Vec::new();
    read_some(file, path, &mut checksum, CHECKSUM as u64)?;
    if crc32fast::hash(&bytes).to_le_bytes() != *checksum {
        return Err(SnapshotFileError::Damaged { path: own() });
    }
    Ok(counts)
}

fn is_as_many(
    path: &Path,
    what: &'static str,
    found: u32,
    own: u32,
) -> Result<(), SnapshotFileError> {
    match found == own {
        true => Ok(()),
        false => Err(SnapshotFileError::Graph { path: path.to_path_buf(), what, found, own }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LaunchConfig;
    use crate::graph::builder::Route;

    ring_device::ring_kernel! {
        /// Sums what it gets.
        pub struct Sum {
            ports: { SUMS: [u64; 1] },
        }

        fn handle(sum: &mut u64, request: &u64, out: &mut Ports) {
            *sum += *request;
            out.emit(Sum::SUMS, *sum);
        }
    }

    /// Two kernels of two channels each.
    fn graph() -> GraphBuilder {
        let mut graph = GraphBuilder::new();
        let [first, second] =
            [(); 2].map(|()| graph.kernel::<Sum>(LaunchConfig::default().channels(2)));
        graph.feed(first).link(first, Sum::SUMS, second, Route::Pairwise).read(second, Sum::SUMS);
        graph
    }

    fn some() -> (Counts, Vec<States>) {
        let counts = Counts { sent: vec![vec![5, 6], vec![]], emitted: vec![vec![], vec![7, 8]] };
        let states = (0..2).map(|kernel| {
            let mut states = States::zeroed(2, 8);
            for (k, (handled, state)) in (10 * kernel..).zip(states.each_mut()) {
                *handled = k;
                state.fill(k as u8);
            }
            states
        });
        (counts, states.collect())
    }

    fn bytes() -> Vec<u8> {
        let (counts, states) = some();
        encoded(3, &["Sum", "Sum"], (&counts, &states))
    }

    fn read(
        bytes: &[u8],
        graph: &GraphBuilder,
    ) -> Result<(Counts, Vec<States>), SnapshotFileError> {
        decoded(&mut &*bytes, Path::new("graph.snapshot"), 3, graph)
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(read(&bytes(), &graph()), Ok(some()));
    }

    #[test]
    fn what_is_not_a_snapshot_of_the_graph_is_refused() {
        let path = || Path::new("graph.snapshot").to_path_buf();
        let other = |what, found, own| SnapshotFileError::Graph { path: path(), what, found, own };
        let with = |at: usize, value: u8| {
            let mut bytes = bytes();
            bytes[at] = value;
            read(&bytes, &graph()).unwrap_err()
        };
        assert_eq!(with(0, b'r'), SnapshotFileError::NoSnapshot { path: path() });
        assert_eq!(with(8, 2), SnapshotFileError::Format { path: path(), found: 2, own: 1 });
        assert_eq!(with(12, 3), other("kernels", 3, 2));
        assert_eq!(with(16, 0), other("links", 0, 2));
        assert_eq!(with(20, 9), other("channels that the host feeds", 9, 2));
        assert_eq!(with(24, 9), SnapshotFileError::Damaged { path: path() });
        let mut less = graph();
        less.members[1].launch = LaunchConfig::default();
        assert_eq!(read(&bytes(), &less), Err(other("channels whose port the host reads", 2, 1)));
        let kernel = States::zeroed(2, 8).encoded("Sum", 3);
        assert_eq!(read(&kernel, &graph()), Err(SnapshotFileError::NoSnapshot { path: path() }));
        let (counts, states) = some();
        let other = encoded(3, &["Sum", "Sun"], (&counts, &states));
        let (found, own) = ("Sun".to_owned(), "Sum");
        assert_eq!(
            read(&other, &graph()),
            Err(SnapshotFileError::Kernel { path: path(), found, own })
        );
    }

    #[test]
    fn any_bit_that_changed_and_any_cut_is_found() {
        let (bytes, graph) = (bytes(), graph());
        for bit in (0..8 * bytes.len()).step_by(if cfg!(miri) { 41 } else { 1 }) {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&bytes, &graph).is_err(), "bit {bit}");
        }
        let path = Path::new("graph.snapshot").to_path_buf();
        for length in MAGIC.len()..bytes.len() {
            let error = read(&bytes[..length], &graph).unwrap_err();
            let (short, damaged) = (
                SnapshotFileError::Short { path: path.clone() },
                SnapshotFileError::Damaged { path: path.clone() },
            );
            assert!(error == short || error == damaged, "{length} bytes: {error}");
        }
        let long = [&bytes[..], &[0]].concat();
        assert_eq!(read(&long, &graph), Err(SnapshotFileError::Long { path }));
    }
}
