//! Each type by its text in JSON: programs that read the text break where it changes.

use super::*;
use crate::device::image::{Architecture, Loaded};
use crate::device::platform::{LibraryFolder, WslSign};
use crate::device::probe::{Answers, Lack, PageClasses, Probe, QuickPages};
use crate::device::{DeviceInfo, DeviceKind, Health, Opened};
use crate::drive::report::{AskedBy, Evidence, Fallback, Forced, Report, Selection, Why};
use crate::error::{DriverReason, Refusal};
use crate::graph::trace::events::{
    GraphEvent, HandledMessages, RingMessages, TracedNode, TracedRing,
};
use crate::graph::{FeedLoss, GraphRestart, LinkInfo, LinkPath, LinkTraffic};
use crate::kernel::handle::{Status, Summary};
use crate::kernel::launch::Cooperative;
use crate::kernel::supervisor::{ChannelLoss, Restart};
use crate::kernel::telemetry::{Histogram, Telemetry};
use crate::kernel::trace::TraceLosses;
use crate::kernel::trace::times::{DeviceTimes, MessageTimes};
use crate::mode::Budgets;
use crate::runtime::recovery::Recovery;
use ring_shared::layout::BUCKETS;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;

#[track_caller]
fn is_written(value: impl Serialize, text: &str) {
    assert_eq!(serde_json::to_string(&value).unwrap(), text);
}

#[track_caller]
fn is_written_and_read<T: Serialize + DeserializeOwned + Debug>(value: T, text: &str) {
    is_written(&value, text);
    let read: T = serde_json::from_str(text).unwrap();
    assert_eq!(format!("{read:?}"), format!("{value:?}"), "not all have an equality");
}

fn refused() -> DriverError {
    DriverError { call: "cuMemAlloc", code: 2, reason: DriverReason::Words("no memory".into()) }
}

fn selection() -> Selection {
    Selection {
        mode: Mode::EventDriven,
        memory: Memory::StagedSync,
        why: Why { asked: AskedBy::Nobody, found: Evidence::Launch(Duration::from_micros(9)) },
        refused: vec![Refusal {
            mode: Mode::Persistent,
            memory: Memory::Mapped,
            why: Obstacle::Watchdog,
        }],
    }
}

const SELECTION: &str = concat!(
    r#"{"mode":"event-driven","memory":"staged-sync","#,
    r#""why":{"asked":"nobody","found":{"launch":{"secs":0,"nanos":9000}}},"#,
    r#""refused":[{"mode":"persistent","memory":"mapped","#,
    r#""why":"the device's watchdog ends kernels that run for long"}]}"#,
);

fn histogram(fast: u64, nanoseconds_per_tick: f64) -> Histogram {
    let mut buckets = [0; BUCKETS];
    (buckets[0], buckets[BUCKETS - 1]) = (fast, u64::MAX);
    Histogram { buckets, nanoseconds_per_tick }
}

#[test]
fn telemetry() {
    let telemetry = Telemetry {
        sent: 1,
        in_slots: 2,
        stalls: 3,
        received: 4,
        processed: 5,
        refused: 6,
        errors: 7,
        depth: 8,
        heartbeat: u64::MAX,
        launches: 10,
        handler: histogram(11, 0.5),
        queueing: histogram(12, 1.0),
    };
    let text = concat!(
        r#"{"sent":1,"in_slots":2,"stalls":3,"received":4,"processed":5,"refused":6,"errors":7,"#,
        r#""depth":8,"heartbeat":18446744073709551615,"launches":10,"#,
        r#""handler":{"buckets":"#,
        "[11,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,18446744073709551615]",
        r#","nanoseconds_per_tick":0.5},"queueing":{"buckets":"#,
        "[12,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,18446744073709551615]",
        r#","nanoseconds_per_tick":1.0}}"#,
    );
    is_written(telemetry, text);
    assert_eq!(serde_json::from_str::<Telemetry>(text).unwrap(), telemetry);
}

#[test]
fn what_a_kernel_says() {
    is_written_and_read(Summary { processed: 3, unhandled: 1 }, r#"{"processed":3,"unhandled":1}"#);
    is_written_and_read(
        Status {
            state: State::Faulted,
            processed: 3,
            heartbeat: 4,
            launches: 1,
            exit: Exit::HandlerPanicked,
        },
        r#"{"state":"faulted","processed":3,"heartbeat":4,"launches":1,"exit":"handler-panicked"}"#,
    );
}

#[test]
fn every_state_and_exit_has_a_name() {
    let of = |state, exit| Status { state, processed: 0, heartbeat: 0, launches: 0, exit };
    let states = (0..).map_while(State::from_u32).map(|state| of(state, Exit::Running));
    let exits = (0..).map_while(Exit::from_u32).map(|exit| of(State::Active, exit));
    let all: Vec<_> = states.chain(exits).collect();
    assert_eq!(all.len(), 6 + 13);
    for status in all {
        let text = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
    }
}

#[test]
fn what_a_trace_tells() {
    let device = DeviceTimes { unseen: -1, began: 2, ended: 3, error: 4, together: 5, first: 6 };
    is_written_and_read(
        MessageTimes { channel: 1, index: 7, accepted: None, device: Some(device), received: 9 },
        concat!(
            r#"{"channel":1,"index":7,"accepted":null,"device":{"unseen":-1,"began":2,"ended":3,"error":4,"#,
            r#""together":5,"first":6},"received":9}"#,
        ),
    );
    is_written_and_read(
        TraceLosses { sent: 1, handled: 2, received: 3 },
        r#"{"sent":1,"handled":2,"received":3}"#,
    );
}

#[test]
fn what_the_trace_of_a_graph_tells() {
    let messages = |ring| RingMessages { ring, first: 7, n: 2 };
    is_written_and_read(
        GraphEvent::Sent { messages: messages(0), at: -1 },
        r#"{"sent":{"messages":{"ring":0,"first":7,"n":2},"at":-1}}"#,
    );
    is_written_and_read(
        GraphEvent::Received { messages: messages(1), at: 9 },
        r#"{"received":{"messages":{"ring":1,"first":7,"n":2},"at":9}}"#,
    );
    let (taken, emitted) = (messages(0), vec![messages(1)]);
    let (kernel, channel, unseen, began, ended, error) = (3, 4, -1, 2, 3, 5);
    is_written_and_read(
        GraphEvent::Handled(HandledMessages {
            kernel,
            channel,
            taken,
            unseen,
            began,
            ended,
            error,
            emitted,
        }),
        concat!(
            r#"{"handled":{"kernel":3,"channel":4,"taken":{"ring":0,"first":7,"n":2},"unseen":-1,"began":2,"#,
            r#""ended":3,"error":5,"emitted":[{"ring":1,"first":7,"n":2}]}}"#,
        ),
    );
    is_written(TracedNode { name: "sum", channels: 2 }, r#"{"name":"sum","channels":2}"#);
    is_written(
        TracedRing { from: Some((1, 0, "SUMS")), to: None },
        r#"{"from":[1,0,"SUMS"],"to":null}"#,
    );
}

#[test]
fn what_a_fault_leaves() {
    let loss = ChannelLoss { channel: 1, sent: 9, received: 4, in_state: 3 };
    let loss_text = r#"{"channel":1,"sent":9,"received":4,"in_state":3}"#;
    is_written_and_read(loss.clone(), loss_text);
    let fault = DeviceFault::HandlerPanicked { kernel: "sum", channel: 1, processed: 5 };
    let text = concat!(
        r#"{"fault":"kernel sum: the handler panicked on channel 1 (after 5 messages, as last reported)","#,
        r#""channels":[{"channel":1,"sent":9,"received":4,"in_state":3}],"reopened":false}"#,
    );
    is_written(Restart { fault, channels: vec![loss], reopened: false }, text);
    let text = r#"{"kernels":[{"processed":5,"unhandled":2}],"fed":[{"kernel":"sum","channel":1,"sent":9,"in_state":3}]}"#;
    let fed = vec![FeedLoss { kernel: "sum", channel: 1, sent: 9, in_state: 3 }];
    is_written(GraphRestart { kernels: vec![Summary { processed: 5, unhandled: 2 }], fed }, text);
    is_written_and_read(
        Recovery { reopened: true, set_aside: 2, tried: true },
        r#"{"reopened":true,"set_aside":2,"tried":true}"#,
    );
}

#[test]
fn names() {
    is_written_and_read([Device::Auto, Device::Cpu, Device::Cuda(3)], r#"["auto","cpu","cuda:3"]"#);
    is_written_and_read(
        [Mode::Auto, Mode::Persistent, Mode::EventDriven, Mode::Graph],
        r#"["auto","persistent","event-driven","graph"]"#,
    );
    is_written_and_read(
        [Memory::Auto, Memory::Mapped, Memory::StagedAsync, Memory::StagedSync],
        r#"["auto","mapped","staged-async","staged-sync"]"#,
    );
    is_written_and_read(
        [PayloadMemory::Auto, PayloadMemory::Mapped, PayloadMemory::Device],
        r#"["auto","mapped","device"]"#,
    );
    is_written_and_read(
        [Cooperative::Auto, Cooperative::Always, Cooperative::Never],
        r#"["auto","always","never"]"#,
    );
    is_written_and_read([DeviceKind::Cpu, DeviceKind::Cuda], r#"["cpu","cuda"]"#);
    is_written_and_read(
        [Health::Serving, Health::Reset, Health::Lost],
        r#"["serving","reset","lost"]"#,
    );
    is_written_and_read(
        [WslSign::Kernel, WslSign::Gpu, WslSign::Libraries],
        r#"["kernel","gpu","libraries"]"#,
    );
}

#[test]
fn an_unknown_name_is_refused_with_those_known() {
    let error = serde_json::from_str::<Mode>(r#""resident""#).unwrap_err().to_string();
    assert_eq!(error, "unknown mode 'resident'; use auto, persistent, event-driven or graph");
    assert!(serde_json::from_str::<Device>("0").is_err());
}

#[test]
fn what_is_chosen() {
    is_written_and_read(
        Budgets::default(),
        concat!(
            r#"{"time":{"secs":0,"nanos":5000000},"iterations":18446744073709551615,"#,
            r#""idle":{"secs":0,"nanos":100000}}"#,
        ),
    );
    is_written_and_read(
        Forced { mode: Some(Mode::Graph), memory: None },
        r#"{"mode":"graph","memory":null}"#,
    );
    is_written_and_read(
        [
            AskedBy::Nobody,
            AskedBy::Launch,
            AskedBy::Environment { mode: true, memory: false },
            AskedBy::Probe,
        ],
        r#"["nobody","launch",{"environment":{"mode":true,"memory":false}},"probe"]"#,
    );
    let (graph, launch) = (Duration::from_micros(7), Duration::from_micros(9));
    is_written(
        [
            Evidence::Resident(Duration::from_nanos(2500)),
            Evidence::Graph { graph, launch },
            Evidence::Graphs,
            Evidence::NotTimed(Lack::Unknown(Cause::NotTried)),
            Evidence::Doubt(Obstacle::OneLaunch),
            Evidence::Nothing,
        ],
        concat!(
            r#"[{"resident":{"secs":0,"nanos":2500}},"#,
            r#"{"graph":{"graph":{"secs":0,"nanos":7000},"launch":{"secs":0,"nanos":9000}}},"#,
            r#""graphs",{"not-timed":{"unknown":"it was not tried"}},"#,
            r#"{"doubt":"staged-sync memory is copied between launches, and a persistent kernel has only one"},"#,
            r#""nothing"]"#,
        ),
    );
    is_written(selection(), SELECTION);
    is_written(
        Fallback {
            from: (Mode::Graph, Memory::Mapped),
            to: (Mode::EventDriven, Memory::Mapped),
            why: refused(),
        },
        concat!(
            r#"{"from":["graph","mapped"],"to":["event-driven","mapped"],"#,
            r#""why":"cuMemAlloc failed: no memory"}"#,
        ),
    );
}

#[test]
fn what_a_device_is() {
    is_written_and_read(
        DeviceInfo {
            name: "NVIDIA H200".into(),
            kind: DeviceKind::Cuda,
            driver_version: 12080,
            compute_capability: (9, 0),
            multiprocessors: 132,
            max_threads: 1024,
            shared_bytes: 232_448,
            max_channels: 65_535,
            cooperative_launch: true,
            maps_host_memory: true,
            concurrent_managed_access: true,
            clock_khz: 1_980_000,
            copy_engines: 3,
            watchdog: false,
        },
        concat!(
            r#"{"name":"NVIDIA H200","kind":"cuda","driver_version":12080,"compute_capability":[9,0],"#,
            r#""multiprocessors":132,"max_threads":1024,"shared_bytes":232448,"max_channels":65535,"#,
            r#""cooperative_launch":true,"maps_host_memory":true,"concurrent_managed_access":true,"#,
            r#""clock_khz":1980000,"copy_engines":3,"watchdog":false}"#,
        ),
    );
    is_written(
        [
            Opened::AskedFor,
            Opened::Found,
            Opened::NoGpu(OpenError::OutOfRange { index: 2, count: 1 }),
            Opened::Given,
        ],
        concat!(
            r#"["asked-for","found","#,
            r#"{"no-gpu":"there is no device 2: the machine has 1 (indices from 0)"},"given"]"#,
        ),
    );
    let architecture = Architecture { major: 9, minor: 0 };
    is_written_and_read(architecture, r#"{"major":9,"minor":0}"#);
    is_written(
        [Loaded::Host, Loaded::Cubin(architecture), Loaded::Ptx(NoCubin::NotBuiltIn)],
        concat!(
            r#"["host",{"cubin":{"major":9,"minor":0}},"#,
            r#"{"ptx":"only the built-in kernels have cubins"}]"#,
        ),
    );
    is_written(
        LibraryFolder { folder: "/usr/lib64".into(), why: "usual on Linux", found: true },
        r#"{"folder":"/usr/lib64","why":"usual on Linux","found":true}"#,
    );
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_no_unicode_is_written_all_the_same() {
    use std::os::unix::ffi::OsStrExt;
    let folder = std::ffi::OsStr::from_bytes(b"/\xff").into();
    is_written(
        LibraryFolder { folder, why: "LD_LIBRARY_PATH", found: false },
        "{\"folder\":\"/\u{fffd}\",\"why\":\"LD_LIBRARY_PATH\",\"found\":false}",
    );
}

#[test]
fn what_a_probe_finds() {
    is_written_and_read(
        Answers { count: 9, median: Duration::from_nanos(2500) },
        r#"{"count":9,"median":{"secs":0,"nanos":2500}}"#,
    );
    // 3 pages of 1000 cycles and 1 of 1100.
    let classes = PageClasses::of(&[1000, 1000, 1000, 1100]).unwrap();
    let took = Duration::from_millis(1);
    is_written(
        [
            QuickPages::Used { classes, bytes: 4096, took },
            QuickPages::Alike { classes, took },
            QuickPages::Unused(NoQuickPages::NoGpu),
        ],
        concat!(
            r#"[{"used":{"classes":{"pages":[3,1],"cycles":[1000,1100],"clear":true},"#,
            r#""bytes":4096,"took":{"secs":0,"nanos":1000000}}},"#,
            r#"{"alike":{"classes":{"pages":[3,1],"cycles":[1000,1100],"clear":true},"#,
            r#""took":{"secs":0,"nanos":1000000}}},"#,
            r#"{"unused":"only a GPU is asked"}]"#,
        ),
    );
}

#[test]
fn the_report_of_a_device() {
    let report = Report {
        wsl: vec![WslSign::Gpu],
        loaded: Loaded::Host,
        pinned: Err(NoPinned::Refused(refused())),
        quick_pages: QuickPages::Unused(NoQuickPages::NotMapped),
        probe: Probe {
            mapped: Ok(()),
            resident: Ok(Answers { count: 9, median: Duration::from_nanos(2500) }),
            concurrent_copy: Err(Lack::No(Cause::NotMapped)),
            launch: Ok(Duration::from_micros(9)),
            graph: Err(Lack::Unknown(Cause::Driver(refused()))),
            took: Duration::new(1, 5),
        },
        forced: Forced::default(),
        selection: Ok(selection()),
    };
    let text = concat!(
        r#"{"wsl":["gpu"],"loaded":"host","pinned":{"Err":"cuMemAlloc failed: no memory"},"#,
        r#""quick_pages":{"unused":"kernels do not use pinned memory in place"},"#,
        r#""probe":{"mapped":{"Ok":null},"#,
        r#""resident":{"Ok":{"count":9,"median":{"secs":0,"nanos":2500}}},"#,
        r#""concurrent_copy":{"Err":{"no":"the device does not map host memory"}},"#,
        r#""launch":{"Ok":{"secs":0,"nanos":9000}},"#,
        r#""graph":{"Err":{"unknown":"cuMemAlloc failed: no memory"}},"#,
        r#""took":{"secs":1,"nanos":5}},"#,
        r#""forced":{"mode":null,"memory":null},"selection":{"Ok":"#,
    );
    is_written(&report, &format!("{text}{SELECTION}}}}}"));
}

#[test]
fn the_traffic_of_a_link() {
    let (from, to) = (("even", "halves"), Some("sum"));
    is_written(
        LinkTraffic { from, to, sent: 9, taken: 7, waiting: 2, fullest: 1, slots: 64, stalls: 3 },
        concat!(
            r#"{"from":["even","halves"],"to":"sum","sent":9,"taken":7,"waiting":2,"#,
            r#""fullest":1,"slots":64,"stalls":3}"#,
        ),
    );
}

#[test]
fn the_links_of_a_graph() {
    let link = |to, path| LinkInfo { from: ("even", 0, "halves"), to, rings: 4, slots: 64, path };
    is_written(
        [
            link(Some(("sum", 1)), LinkPath::Pinned(NoPeer::TakenAway)),
            link(Some(("sum", 1)), LinkPath::Peer),
            link(Some(("sum", 0)), LinkPath::Device),
            link(None, LinkPath::Host),
        ],
        concat!(
            r#"[{"from":["even",0,"halves"],"to":["sum",1],"rings":4,"slots":64,"#,
            r#""path":{"pinned":"it was taken away"}},"#,
            r#"{"from":["even",0,"halves"],"to":["sum",1],"rings":4,"slots":64,"path":"peer"},"#,
            r#"{"from":["even",0,"halves"],"to":["sum",0],"rings":4,"slots":64,"path":"device"},"#,
            r#"{"from":["even",0,"halves"],"to":null,"rings":4,"slots":64,"path":"host"}]"#,
        ),
    );
}
