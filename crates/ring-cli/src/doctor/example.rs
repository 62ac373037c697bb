//! Invented facts of machines, for tests.

use super::facts::{Facts, Found, Library, Seen, Way};
use super::sharing::{RoundTrips, Sharing};
use ring_host::image::{Architecture, Loaded};
use ring_host::platform::{LibraryFolder, WSL_LIBRARIES};
use ring_host::probe::{Answers, NoQuickPages, QuickPages};
use ring_host::{AskedBy, Device, Evidence, Memory, Mode, OpenError, Selection, Why};
use std::time::Duration;

const US: fn(u64) -> Duration = Duration::from_micros;

/// A GPU that lacks nothing.
pub fn gpu() -> Facts {
    let place = |folder: &str, why, found| LibraryFolder { folder: folder.into(), why, found };
    Facts {
        asked: Device::Auto,
        emulated: None,
        wsl: Vec::new(),
        library: Library {
            path: None,
            places: vec![
                place("/usr/lib/x86_64-linux-gnu", "usual on Linux", true),
                place(WSL_LIBRARIES, "the Windows driver under WSL2", false),
            ],
            loaded: Some(true),
            kernel_module: Some("NVIDIA UNIX x86_64 Kernel Module 570.86.10".to_owned()),
        },
        gpus: Ok(1),
        troubles: Vec::new(),
        device: Some(Found {
            kind: "cuda",
            name: "NVIDIA H200".to_owned(),
            why: "a GPU that can run ring kernels".to_owned(),
            cuda: Some("12.8".to_owned()),
            compute_capability: Some("9.0".to_owned()),
            multiprocessors: 132,
            cooperative_launch: true,
            maps_host_memory: true,
            concurrent_managed_access: true,
            copy_engines: 3,
            watchdog: false,
        }),
        seen: Some(seen()),
        sharing: Some(Sharing {
            users: Vec::new(),
            trips: Ok(RoundTrips { count: 20_000, median: US(2), longest: US(30), late: 0 }),
        }),
        peers: Ok(Vec::new()),
        forced: Vec::new(),
    }
}

fn seen() -> Seen {
    let (mode, memory) = (Mode::Persistent, Memory::Mapped);
    let found = Evidence::Resident(Duration::from_nanos(2500));
    let why = Why { asked: AskedBy::Nobody, found };
    let refused = Some("copied between launches".to_owned());
    Seen {
        loaded: Loaded::Cubin(Architecture { major: 9, minor: 0 }),
        pinned: Ok(64 << 20),
        quick_pages: QuickPages::Unused(NoQuickPages::Resident(1)),
        mapped: Ok(()),
        resident: Ok(Answers { count: 9, median: Duration::from_nanos(2500) }),
        beside: Ok(US(12)),
        launch: Ok(Duration::from_nanos(9250)),
        graph: Ok(US(8)),
        took: US(1500),
        choice: Ok(Selection { mode, memory, why, refused: Vec::new() }),
        ways: vec![
            Way { mode, memory, refused: None },
            Way { mode, memory: Memory::StagedSync, refused },
        ],
    }
}

/// A machine without a driver, where CPU threads serve.
pub fn without_driver() -> Facts {
    let mut facts = gpu();
    facts.library.places[0].found = false;
    (facts.library.loaded, facts.library.kernel_module) = (Some(false), None);
    facts.gpus = Err(OpenError::NoDriver.to_string());
    facts.troubles = vec![OpenError::NoDriver];
    facts.sharing = None;
    if let Some(seen) = &mut facts.seen {
        seen.loaded = Loaded::Host;
    }
    if let Some(device) = &mut facts.device {
        (device.kind, device.name) = ("cpu", "CPU threads (2 processors)".to_owned());
        (device.cuda, device.compute_capability) = (None, None);
    }
    facts
}
