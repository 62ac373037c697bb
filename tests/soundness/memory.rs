//! Memory stays as long as anything may touch it, in whatever order handles are dropped, forgotten or
//! exchanged.

use ring_host::kernels::{Echo, EchoMessage, VectorAdd};
use ring_host::{
    Channel, Kernel, KernelHandle, LaunchConfig, RecvTimeoutError, Runtime, TryRecvError,
};
use ring_tests::{LONG, WAYS, cpu_with};
use std::mem;

/// A device with room for few kernels, so that memory given back too early is soon allocated again.
pub(crate) fn small_device() -> Runtime {
    cpu_with(64 << 10, 64 << 10)
}

/// An active kernel with small rings.
pub(crate) fn launched<K: Kernel>(host: &Runtime, launch: LaunchConfig) -> KernelHandle<K> {
    let mut kernel = host.launch::<K>(launch.capacity(16)).unwrap_or_else(|e| panic!("{e}"));
    kernel.activate(LONG).unwrap();
    kernel
}

fn echo(host: &Runtime) -> KernelHandle<Echo> {
    launched(host, LaunchConfig::default())
}

fn exchange(channel: &mut Channel<Echo>, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let request = EchoMessage::from_seed(seed);
        channel.send(request, LONG).unwrap();
        assert_eq!(channel.recv(LONG).unwrap(), request.answer());
    }
}

/// Launches kernels until there is no memory for another, and uses each.
pub(crate) fn fill(host: &Runtime) -> Vec<KernelHandle<Echo>> {
    let mut kernels = Vec::new();
    while let Ok(mut kernel) = host.launch::<Echo>(LaunchConfig::default().capacity(16)) {
        kernel.activate(LONG).unwrap();
        exchange(kernel.channel(0).unwrap(), 0..40);
        kernels.push(kernel);
    }
    kernels
}

#[test]
fn a_forgotten_kernel_keeps_its_memory() {
    let host = small_device();
    let mut kernel = echo(&host);
    let mut channel = kernel.take_channel(0).unwrap();
    mem::forget(kernel); // nobody can terminate it now
    exchange(&mut channel, 0..40);
    let others = fill(&host);
    assert!(!others.is_empty());
    exchange(&mut channel, 40..80);
    let most = others.len();
    drop(others);
    drop(channel);
    assert!(fill(&host).len() <= most, "what a kernel uses that runs on is not lent again");
}

#[test]
fn forgotten_halves_keep_what_they_use() {
    let host = small_device();
    let mut kernel = echo(&host);
    let (sender, mut receiver) = kernel.take_channel(0).unwrap().into_split();
    mem::forget(sender);
    kernel.terminate(LONG).unwrap();
    drop(kernel);
    let others = fill(&host);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed { kernel: "echo" }));
    drop(others);
    assert_eq!(receiver.recv(LONG), Err(RecvTimeoutError::Closed { kernel: "echo" }));
}

#[test]
fn kernels_outlive_their_runtime() {
    for (mode, memory) in WAYS {
        let host = cpu_with(256 << 10, 256 << 10);
        let launch = LaunchConfig::default().mode(mode).memory(memory).capacity(16);
        let mut kernel = host.launch::<Echo>(launch.clone()).unwrap();
        let mut adding = host.launch::<VectorAdd>(launch.payload_bytes(4096)).unwrap();
        drop((host.clone(), host));
        kernel.activate(LONG).unwrap();
        adding.activate(LONG).unwrap();
        exchange(kernel.channel(0).unwrap(), 0..40);
        let (a, b, mut c) = ([1.0; 100], [2.0; 100], [0.0; 100]);
        adding.add(&a, &b, &mut c, LONG).unwrap();
        assert_eq!(c, [3.0; 100]);
    }
}

/// `channel` lends a channel as `&mut`, so safe code may exchange it for another kernel's.
#[test]
fn exchanged_channels_stay_what_they_are() {
    let host = small_device();
    let (mut one, mut other) = (echo(&host), echo(&host));
    one.send(EchoMessage::from_seed(1), LONG).unwrap();
    other.send(EchoMessage::from_seed(2), LONG).unwrap();
    mem::swap(one.channel(0).unwrap(), other.channel(0).unwrap());
    assert_eq!(one.recv(LONG).unwrap(), EchoMessage::from_seed(2).answer());
    assert_eq!(other.recv(LONG).unwrap(), EchoMessage::from_seed(1).answer());

    // Halves too: what a channel counts is then without meaning, but each message is where it was sent.
    let (mut channel, mut another) = (one.take_channel(0).unwrap(), other.take_channel(0).unwrap());
    mem::swap(channel.split().0, another.split().0);
    channel.send(EchoMessage::from_seed(3), LONG).unwrap();
    assert_eq!(another.recv(LONG).unwrap(), EchoMessage::from_seed(3).answer());
    let _ = (channel.unanswered(), another.unanswered());

    // What is behind them ends with the kernel that they are of, whoever has them.
    drop(other);
    assert_eq!(one.summary().unhandled, 0);
    let others = fill(&host);
    assert_eq!(channel.recv(LONG).map(drop), Err(RecvTimeoutError::Closed { kernel: "echo" }));
    drop((channel, another, one, others));
}
