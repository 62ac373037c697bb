//! What a snapshot has, and how it is in a file.
//!
//! Numbers are little-endian: `RINGSNAP`, the format, the ABI, the caller's version, channels and the length of the kernel's name (5 times
//! 4 bytes), the bytes of a state (8), the name, for each channel how many messages it had handled (8) and its state, and the CRC-32 of
//! all that.

use crate::error::SnapshotFileError;
use ring_shared::ABI_VERSION;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const MAGIC: [u8; 8] = *b"RINGSNAP";

/// Of this file's layout.
const FORMAT: u32 = 1;

/// From the beginning to the kernel's name.
const HEAD: usize = 8 + 5 * 4 + 8;

const CHECKSUM: usize = 4;

/// More than any device has.
const MOST_CHANNELS: u32 = 1 << 16;

/// Bytes of the longest name that is read.
const LONGEST_NAME: u32 = 1024;

/// Of each channel its state, and how many messages it had handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct States {
    pub state_bytes: usize,
    pub handled: Vec<u64>,
    /// One behind the other.
    bytes: Vec<u8>,
}

/// What a file must be of.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    pub kernel: &'static str,
    pub version: u32,
    pub state_bytes: usize,
}

impl States {
    pub fn zeroed(channels: u32, state_bytes: usize) -> States {
        let channels = channels as usize;
        States { state_bytes, handled: vec![0; channels], bytes: vec![0; channels * state_bytes] }
    }

    pub fn of_channel(&self, channel: u32) -> Option<&[u8]> {
        let channel = channel as usize;
        (channel < self.handled.len())
            .then(|| &self.bytes[channel * self.state_bytes..][..self.state_bytes])
    }

    /// The state of each channel.
    pub fn each(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.handled.len() as u32).filter_map(|channel| self.of_channel(channel))
    }

    /// What each channel had handled, and its state.
    pub fn each_mut(&mut self) -> impl Iterator<Item = (&mut u64, &mut [u8])> {
        let mut left = self.bytes.as_mut_slice();
        let state_bytes = self.state_bytes;
        self.handled.iter_mut().map(move |handled| {
            let (state, others) = std::mem::take(&mut left).split_at_mut(state_bytes);
            left = others;
            (handled, state)
        })
    }

    /// Replaces the file at a path.
    pub fn save(&self, path: &Path, kernel: &str, version: u32) -> Result<(), SnapshotFileError> {
        replace(path, &self.encoded(kernel, version))
    }

    pub fn encoded(&self, kernel: &str, version: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + kernel.len() + self.all_bytes() + CHECKSUM);
        bytes.extend(MAGIC);
        let channels = self.handled.len() as u32;
        for number in [FORMAT, ABI_VERSION, version, channels, kernel.len() as u32] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend((self.state_bytes as u64).to_le_bytes());
        bytes.extend(kernel.as_bytes());
        for (handled, state) in self.handled.iter().zip(self.each()) {
            bytes.extend(handled.to_le_bytes());
            bytes.extend(state);
        }
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    /// Bytes of all channels in a file.
    fn all_bytes(&self) -> usize {
        self.handled.len() * (8 + self.state_bytes)
    }

    /// Reads a file.
    pub fn load(path: &Path, expected: &Expected) -> Result<States, SnapshotFileError> {
        States::decoded(opened(path)?, path, expected)
    }

    fn decoded(
        mut file: impl Read,
        path: &Path,
        expected: &Expected,
    ) -> Result<States, SnapshotFileError> {
        let states = States::decoded_from(&mut file, path, expected)?;
        ends(&mut file, path)?;
        Ok(states)
    }

    /// Reads them from a file in which more may follow.
    pub fn decoded_from(
        file: &mut impl Read,
        path: &Path,
        expected: &Expected,
    ) -> Result<States, SnapshotFileError> {
        let mut read = |bytes: &mut Vec<u8>, n: u64| read_some(file, path, bytes, n);
        let path = || path.to_path_buf();
        let mut bytes = Vec::new();
        let is_none = || SnapshotFileError::NoSnapshot { path: path() };
        match read(&mut bytes, HEAD as u64) {
            Err(SnapshotFileError::Short { .. }) if !bytes.starts_with(&MAGIC) => {
                return Err(is_none());
            }
            done => done?,
        }
        let (magic, numbers) = bytes.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(is_none());
        }
        let word = |k: usize| u32::from_le_bytes(numbers[4 * k..][..4].try_into().expect("4"));
        let [format, abi, version, channels, name_bytes] = std::array::from_fn(word);
        let state_bytes = u64::from_le_bytes(numbers[20..28].try_into().expect("8"));
        if format != FORMAT {
            return Err(SnapshotFileError::Format { path: path(), found: format, own: FORMAT });
        }
        if abi != ABI_VERSION {
            return Err(SnapshotFileError::Abi { path: path(), found: abi, own: ABI_VERSION });
        }
        if name_bytes > LONGEST_NAME || channels > MOST_CHANNELS {
            return Err(SnapshotFileError::Damaged { path: path() });
        }
        read(&mut bytes, u64::from(name_bytes))?;
        let name = &bytes[HEAD..];
        if name != expected.kernel.as_bytes() {
            let found = String::from_utf8_lossy(name).into_owned();
            return Err(SnapshotFileError::Kernel { path: path(), found, own: expected.kernel });
        }
        if version != expected.version {
            let own = expected.version;
            return Err(SnapshotFileError::Version { path: path(), found: version, own });
        }
        let own = expected.state_bytes as u64;
        if state_bytes != own {
            return Err(SnapshotFileError::StateBytes { path: path(), found: state_bytes, own });
        }
        let states = bytes.len();
        // Of a state that fits memory, as often as a file says: what is not there is not allocated.
        read(&mut bytes, u64::from(channels) * (8 + own) + CHECKSUM as u64)?;
        let (bytes, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
        if crc32fast::hash(bytes).to_le_bytes() != checksum {
            return Err(SnapshotFileError::Damaged { path: path() });
        }
        let mut found = States::zeroed(channels, expected.state_bytes);
        let each = bytes[states..].chunks_exact(8 + expected.state_bytes);
        for ((handled, state), bytes) in found.each_mut().zip(each) {
            let (count, kept) = bytes.split_at(8);
            *handled = u64::from_le_bytes(count.try_into().expect("8"));
            state.copy_from_slice(kept);
        }
        Ok(found)
    }
}

/// A file that is there.
pub fn opened(path: &Path) -> Result<File, SnapshotFileError> {
    File::open(path).map_err(|error| SnapshotFileError::io("read", path, &error))
}

/// Reads so many bytes, behind those that are there.
pub fn read_some(
    file: &mut impl Read,
    path: &Path,
    bytes: &mut Vec<u8>,
    n: u64,
) -> Result<(), SnapshotFileError> {
    let found = file.take(n).read_to_end(bytes);
    let found = found.map_err(|error| SnapshotFileError::io("read", path, &error))?;
    match found as u64 == n {
        true => Ok(()),
        false => Err(SnapshotFileError::Short { path: path.to_path_buf() }),
    }
}

/// Nothing follows in the file.
pub fn ends(file: &mut impl Read, path: &Path) -> Result<(), SnapshotFileError> {
    match read_some(file, path, &mut Vec::new(), 1) {
        Ok(()) => Err(SnapshotFileError::Long { path: path.to_path_buf() }),
        Err(SnapshotFileError::Short { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Replaces the file at a path.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), SnapshotFileError> {
    replaced(path, bytes).map_err(|error| SnapshotFileError::io("written", path, &error))
}

/// Puts a file at a path as a whole: first beside it, then in its place.
fn replaced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut beside = OsString::from(name);
    beside.push(format!(".{}-{number}.part", std::process::id()));
    let beside = path.with_file_name(beside);
    let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    drop(file);
    let done = written.and_then(|()| fs::rename(&beside, path)).and_then(|()| folder_kept(path));
    if done.is_err() {
        let _ = fs::remove_file(&beside);
    }
    done
}

/// Makes the folder remember a new name in it, where a folder can be opened.
fn folder_kept(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match cfg!(unix) {
        true => File::open(folder.unwrap_or(Path::new(".")))?.sync_all(),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPECTED: Expected = Expected { kernel: "sum", version: 3, state_bytes: 5 };

    fn some() -> States {
        let mut states = States::zeroed(2, 5);
        for (k, (handled, state)) in (1..).zip(states.each_mut()) {
            *handled = 1000 * k;
            state.fill(k as u8);
        }
        states
    }

    fn decoded(bytes: &[u8], expected: Expected) -> Result<States, SnapshotFileError> {
        States::decoded(bytes, Path::new("sum.snapshot"), &expected)
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = some().encoded("sum", 3);
        assert_eq!(decoded(&bytes, EXPECTED), Ok(some()));
        assert_eq!(some().of_channel(1), Some(&[2u8; 5][..]));
        assert_eq!(some().of_channel(2), None);
        let none = States::zeroed(3, 0);
        let bytes = none.encoded("", 0);
        assert_eq!(decoded(&bytes, Expected { kernel: "", version: 0, state_bytes: 0 }), Ok(none));
    }

    #[test]
    fn what_is_not_a_snapshot_of_it_is_refused() {
        let bytes = some().encoded("sum", 3);
        let path = || Path::new("sum.snapshot").to_path_buf();
        let with = |at: usize, value: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            decoded(&bytes, EXPECTED).unwrap_err()
        };
        assert_eq!(with(0, b'r'), SnapshotFileError::NoSnapshot { path: path() });
        assert_eq!(with(8, 2), SnapshotFileError::Format { path: path(), found: 2, own: 1 });
        let (found, own) = (ABI_VERSION + 1, ABI_VERSION);
        assert_eq!(with(12, found as u8), SnapshotFileError::Abi { path: path(), found, own });
        assert_eq!(with(16, 4), SnapshotFileError::Version { path: path(), found: 4, own: 3 });
        let (found, own) = ("sun".to_owned(), "sum");
        assert_eq!(with(HEAD + 2, b'n'), SnapshotFileError::Kernel { path: path(), found, own });
        assert_eq!(with(28, 6), SnapshotFileError::StateBytes { path: path(), found: 6, own: 5 });
        // Numbers that would be much to read or to allocate.
        assert_eq!(with(21, 1), SnapshotFileError::Short { path: path() }, "258 channels");
        assert_eq!(with(22, 1), SnapshotFileError::Damaged { path: path() }, "65,538 channels");
        assert_eq!(with(23, 1), SnapshotFileError::Damaged { path: path() });
        assert_eq!(with(26, 1), SnapshotFileError::Damaged { path: path() });
        for bytes in [&b""[..], b"RING", b"something else that is long enough for a head"] {
            assert_eq!(
                decoded(bytes, EXPECTED),
                Err(SnapshotFileError::NoSnapshot { path: path() })
            );
        }
    }

    #[test]
    fn any_bit_that_changed_and_any_cut_is_found() {
        let bytes = some().encoded("sum", 3);
        for bit in 0..8 * bytes.len() {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(decoded(&bytes, EXPECTED).is_err(), "bit {bit}");
        }
        let path = Path::new("sum.snapshot").to_path_buf();
        for length in MAGIC.len()..bytes.len() {
            let short = SnapshotFileError::Short { path: path.clone() };
            assert_eq!(decoded(&bytes[..length], EXPECTED), Err(short), "{length} bytes");
        }
        let long = [&bytes[..], &[0]].concat();
        assert_eq!(decoded(&long, EXPECTED), Err(SnapshotFileError::Long { path }));
    }
}
