//! What kernels that serve other threads cost: a driver call that waits for all kernels, around which they are kept off the device,
//! and a state that is read between two messages of many.

use super::{SECONDS, active, print};
use cudarc::driver::CudaContext;
use cudarc::driver::result::{free_sync, malloc_sync};
use cudarc::driver::sys::CUdeviceptr;
use ring_example_kernels::{Ledger, LedgerState};
use ring_host::kernels::EchoMessage;
use ring_host::{DeviceKind, Error, LaunchConfig, Receiver, Runtime, Sender};
use ring_tests::kernels::of_examples;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// Messages a second beside which a state is read.
const RATE: u64 = 1_000_000;

/// How long they are sent each time.
const RUN: Duration = Duration::from_millis(1500);

/// Bytes of an allocation that is given back.
const ALLOCATED: usize = 1 << 20;

/// Memory of the device that is taken and given back by driver calls; of the CPU device none is.
struct Memory(Option<Arc<CudaContext>>);

impl Memory {
    fn of(host: &Runtime) -> Memory {
        let is_gpu = host.device().kind == DeviceKind::Cuda;
        Memory(is_gpu.then(|| CudaContext::new(0).expect("the device that is open")))
    }

    fn take(&self) -> CUdeviceptr {
        let Some(context) = &self.0 else { return 0 };
        context.bind_to_thread().expect("the device that is open");
        // SAFETY: nothing uses it.
        unsafe { malloc_sync(ALLOCATED) }.expect("a mebibyte")
    }

    /// Gives it back, once; how many microseconds that took.
    fn give_back(&self, taken: CUdeviceptr) -> f64 {
        let begun = Instant::now();
        if self.0.is_some() {
            // SAFETY: it was taken, and each caller gives it back once.
            unsafe { free_sync(taken) }.expect("it was taken");
        }
        begun.elapsed().as_secs_f64() * 1e6
    }
}

fn sorted(mut times: Vec<f64>) -> Vec<f64> {
    times.sort_by(f64::total_cmp);
    times
}

/// All of it.
pub fn services(host: &Runtime) -> Result<(), Error> {
    let launch = LaunchConfig::default().kernels(of_examples::<Ledger>());
    host.prepare::<Ledger>(&launch)?; // nothing is loaded beside a resident kernel
    let memory = Memory::of(host);
    let bare = (0..200).map(|_| memory.give_back(memory.take())).collect();
    print("cuMemFree with nothing resident", &sorted(bare));
    for count in [1, 4] {
        quiesce(host, count, &memory)?;
    }
    state(host, launch)
}

/// So many kernels are kept off the device around a driver call that gives memory back, while a thread calls one of them.
fn quiesce(host: &Runtime, count: usize, memory: &Memory) -> Result<(), Error> {
    let kernels = (0..count).map(|_| active(host, LaunchConfig::default()));
    let mut kernels = kernels.collect::<Result<Vec<_>, _>>()?;
    let client = kernels[0].client().expect("its channel");
    let stop = AtomicBool::new(false);
    let call = || {
        let (mut calls, mut slowest) = (0, Duration::ZERO);
        while !stop.load(Relaxed) {
            let (request, begun) = (EchoMessage::from_seed(calls), Instant::now());
            assert_eq!(client.call(request, SECONDS), Ok(request.answer()));
            slowest = slowest.max(begun.elapsed());
            calls += 1;
        }
        (calls, slowest)
    };
    let mut beyond = Vec::new();
    let (calls, slowest) = scope(|scope| {
        let calling = scope.spawn(call);
        for _ in 0..200 {
            let (taken, begun) = (memory.take(), Instant::now());
            let freed = host.quiesce(SECONDS, || memory.give_back(taken));
            let freed = freed.expect("all stop to take messages");
            beyond.push(begun.elapsed().as_secs_f64() * 1e6 - freed);
            sleep(Duration::from_millis(1));
        }
        stop.store(true, Relaxed);
        calling.join().expect("it does not panic")
    });
    print(&format!("quiesce of {count}, beyond the cuMemFree in it"), &sorted(beyond));
    println!("  {calls} calls meanwhile, the slowest {slowest:.1?}");
    for kernel in &mut kernels {
        assert_eq!(kernel.terminate(SECONDS)?.unhandled, 0);
    }
    Ok(())
}

/// A state of a mebibyte, now and then, beside a million messages a second.
fn state(host: &Runtime, launch: LaunchConfig) -> Result<(), Error> {
    let mut kernel = host.launch::<Ledger>(launch)?;
    kernel.activate(SECONDS)?;
    let shared = kernel.share();
    let (mut sender, mut receiver) = kernel.take_channel(0).expect("its channel").into_split();
    let mut room = vec![0u64; size_of::<LedgerState>() / 8];
    let state: &mut [LedgerState] = bytemuck::cast_slice_mut(&mut room);
    for every in [1, 10, 100].map(Duration::from_millis) {
        let (stop, all) = (AtomicBool::new(false), AtomicU64::new(u64::MAX));
        let mut reads = Vec::new();
        let (rate, full) = scope(|scope| {
            let sending = scope.spawn(|| send(&mut sender, &stop, &all));
            let receiving = scope.spawn(|| receive(&mut receiver, &all));
            let begun = Instant::now();
            while begun.elapsed() < RUN {
                sleep(every);
                let begun = Instant::now();
                shared.read_state_into(0, &mut state[0], SECONDS).expect("in time");
                reads.push(begun.elapsed().as_secs_f64() * 1e6);
                let LedgerState { first, accounts, last } = &state[0];
                assert_eq!([*first, accounts.iter().sum()], [*last; 2], "between two messages");
            }
            stop.store(true, Relaxed);
            receiving.join().expect("it does not panic");
            sending.join().expect("it does not panic")
        });
        print(&format!("a state of 1 MiB read every {every:?}"), &sorted(reads));
        println!("  beside {:.3} M messages a second, {full} times without room", rate / 1e6);
    }
    kernel.terminate(SECONDS)?;
    Ok(())
}

/// Sends when messages are due until it is to stop, and tells how many they were; how many a second, and how often there was no room.
fn send(sender: &mut Sender<Ledger>, stop: &AtomicBool, all: &AtomicU64) -> (f64, u64) {
    let (begun, mut sent, mut full) = (Instant::now(), 0, 0);
    while !stop.load(Relaxed) {
        let due = begun.elapsed().as_nanos() as u64 / (1_000_000_000 / RATE);
        let most = due.saturating_sub(sent).min(64) as usize;
        let now = sender.try_send_each(most, |k| sent + k as u64).expect("no refusal");
        full += u64::from(now < most);
        sent += now as u64;
    }
    all.store(sent, Relaxed);
    (sent as f64 / begun.elapsed().as_secs_f64(), full)
}

/// Receives until as many have come as were sent.
fn receive(receiver: &mut Receiver<Ledger>, all: &AtomicU64) {
    let mut received = 0;
    while received < all.load(Relaxed) {
        receiver.try_recv_each(64, |_| received += 1).expect("no fault");
    }
}
