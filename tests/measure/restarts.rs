//! A kernel that is launched again after a panic, with the state of its last snapshot; and what snapshots take.

use super::{SECONDS, print, times};
use cudarc::driver::sys;
use ring_example_kernels::{Ledger, Ticked, Ticker};
use ring_host::{
    DeviceKind, Error, LaunchConfig, Memory, Mode, RecvTimeoutError, RestartPolicy, Runtime,
    Snapshot, Supervisor,
};
use ring_tests::kernels::of_examples;
use std::time::Instant;

/// Faults in a row.
const FAULTS: u64 = 1000;

/// Resets in a row.
const RESETS: u64 = 10;

/// Messages before each snapshot.
const MESSAGES: u64 = 3;

/// All of it.
pub fn restarts(host: &Runtime) -> Result<(), Error> {
    panics(host)?;
    snapshots(host)?;
    match host.device().kind {
        DeviceKind::Cuda => resets(host),
        _ => Ok(()),
    }
}

/// Resets of the device by the process, as `cudaDeviceReset` makes them. The driver would let a reset wait for a kernel that is resident, so
/// this one is launched when there is something to do.
fn resets(host: &Runtime) -> Result<(), Error> {
    let policy = RestartPolicy::default().at_most(u32::MAX, SECONDS);
    let launch = LaunchConfig::default().kernels(of_examples::<Ticker>());
    let launch = launch.mode(Mode::EventDriven).memory(Memory::Mapped);
    let mut ticker = Supervisor::<Ticker>::launch(host, launch, policy, SECONDS)?;
    let (mut all, mut reset_alone) = (Vec::new(), Vec::new());
    for n in 1..=RESETS {
        let kernel = ticker.kernel()?;
        kernel.send(0, SECONDS)?;
        kernel.recv(SECONDS)?;
        ticker.snapshot(SECONDS)?;
        ticker.kernel()?.rest(SECONDS)?;
        let begun = Instant::now();
        // SAFETY: a plain call on the first device, which this process has opened.
        let reset = unsafe { sys::cuDevicePrimaryCtxReset_v2(0) };
        assert_eq!(reset, sys::CUresult::CUDA_SUCCESS);
        let lost = Instant::now();
        let kernel = ticker.kernel()?;
        let sent = kernel.send(0, SECONDS).map_err(Error::from);
        let end = sent.and_then(|()| Ok(kernel.recv(SECONDS)?));
        let restart = ticker.restart(SECONDS)?;
        assert!(restart.reopened, "{end:?}");
        let kernel = ticker.kernel()?;
        kernel.send(0, SECONDS)?;
        let state = kernel.recv(SECONDS)?;
        assert_eq!(state.messages, 2 * n, "those of the snapshots, and this one");
        all.push(lost.elapsed().as_secs_f64() * 1e6);
        reset_alone.push((lost - begun).as_secs_f64() * 1e6);
    }
    for times in [&mut all, &mut reset_alone] {
        times.sort_by(f64::total_cmp);
    }
    println!("{RESETS} resets of the device, state from a snapshot:");
    print("  from the reset to an answer", &all);
    print("  the reset itself", &reset_alone);
    ticker.into_kernel()?.terminate(SECONDS)?;
    Ok(())
}

fn panics(host: &Runtime) -> Result<(), Error> {
    let policy = RestartPolicy::default().at_most(u32::MAX, SECONDS);
    let launch = LaunchConfig::default().kernels(of_examples::<Ticker>());
    let mut ticker = Supervisor::<Ticker>::launch(host, launch, policy, SECONDS)?;
    let (mut from_message, mut from_fault) = (Vec::new(), Vec::new());
    let exchange = |ticker: &mut Supervisor<Ticker>, panics: u64| -> Result<Ticked, Error> {
        let kernel = ticker.kernel()?;
        kernel.send(panics, SECONDS)?;
        Ok(kernel.recv(SECONDS)?)
    };
    // The first of a launch is that which shows that it answers again.
    exchange(&mut ticker, 0)?;
    for n in 1..=FAULTS {
        for _ in 1..MESSAGES {
            exchange(&mut ticker, 0)?;
        }
        ticker.snapshot(SECONDS)?;
        let sent = Instant::now();
        exchange(&mut ticker, 1)?; // the next tick panics
        let end = ticker.kernel()?.recv(SECONDS);
        let fault = Instant::now();
        assert!(matches!(end, Err(RecvTimeoutError::Fault(_))), "{end:?}");
        let restart = ticker.restart(SECONDS)?;
        let state = exchange(&mut ticker, 0)?;
        let answered = Instant::now();
        let lost = &restart.channels[0];
        assert_eq!((lost.not_in_state(), lost.received), (MESSAGES..MESSAGES + 1, MESSAGES + 1));
        assert_eq!(state.messages, n * MESSAGES + 1, "those of the snapshots, and this one");
        from_message.push((answered - sent).as_secs_f64() * 1e6);
        from_fault.push((answered - fault).as_secs_f64() * 1e6);
    }
    for times in [&mut from_message, &mut from_fault] {
        times.sort_by(f64::total_cmp);
    }
    println!(
        "{FAULTS} panics in a row, a state of {} bytes, none lost untold:",
        size_of::<Ticked>()
    );
    print("  from the message whose tick panics, up to 200 us later, to an answer", &from_message);
    print("  from the fault, as received, to an answer", &from_fault);
    ticker.into_kernel()?.terminate(SECONDS)?;
    Ok(())
}

fn snapshots(host: &Runtime) -> Result<(), Error> {
    let launch = LaunchConfig::default().kernels(of_examples::<Ledger>());
    let mut kernel = host.launch::<Ledger>(launch)?;
    kernel.activate(SECONDS)?;
    let shared = kernel.share();
    let path = std::env::temp_dir().join(format!("ring-measure-{}.snapshot", std::process::id()));
    let mut snapshot = shared.snapshot(SECONDS)?;
    let taken = times(100, |i| {
        kernel.send(i, SECONDS)?;
        kernel.recv(SECONDS)?;
        snapshot = shared.snapshot(SECONDS)?;
        Ok(())
    })?;
    let saved = times(100, |_| Ok(snapshot.save(&path, 1)?))?;
    let loaded = times(100, |_| {
        assert_eq!(Snapshot::<Ledger>::load(&path, 1)?.handled(0), snapshot.handled(0));
        Ok(())
    })?;
    let _ = std::fs::remove_file(&path);
    println!("a state of a mebibyte, of an active kernel:");
    print("  a snapshot, behind a message and its answer", &taken);
    print("  put into a file, and on the disk", &saved);
    print("  read from the file", &loaded);
    kernel.terminate(SECONDS)?;
    Ok(())
}
