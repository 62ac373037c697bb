//! The modes and memories side by side, with the bare launches and the bare copy of the same run.

use crate::baseline::Baseline;
use crate::{SECONDS, print, times};
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{Budgets, DeviceKind, Error, Launch, Memory, Mode, Processing, Resident, Runtime};
use ring_tests::WAYS;
use std::time::{Duration, Instant};

const MICROSECOND: Duration = Duration::from_micros(1);

fn launched(host: &Runtime, launch: &Launch) -> Result<Resident<Echo>, Error> {
    let mut kernel = host.launch::<Echo>(launch.clone())?;
    kernel.activate(SECONDS)?;
    Ok(kernel)
}

fn answer(kernel: &mut Resident<Echo>, i: u64) -> Result<(), Error> {
    let request = EchoMessage::from_seed(i);
    kernel.send(&request, SECONDS)?;
    assert_eq!(kernel.recv(SECONDS)?, request.answer());
    Ok(())
}

/// Times of messages to a kernel that had left the device before each.
fn at_rest(kernel: &mut Resident<Echo>, n: u64) -> Result<Vec<f64>, Error> {
    let mut all = Vec::with_capacity(n as usize);
    let launches = kernel.launches();
    for i in 0..n {
        kernel.rest(SECONDS)?;
        let begun = Instant::now();
        answer(kernel, i)?;
        all.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    assert!(kernel.launches() - launches >= n, "it did not rest");
    all.sort_by(f64::total_cmp);
    Ok(all)
}

/// Messages a second, in batches through the whole ring.
fn throughput(kernel: &mut Resident<Echo>, n: u64) -> Result<f64, Error> {
    let requests: Vec<_> = (0..4096).map(EchoMessage::from_seed).collect();
    let mut responses = vec![EchoMessage { words: [0; 8] }; 4096];
    let (begun, mut sent, mut got) = (Instant::now(), 0u64, 0u64);
    while got < n {
        if sent < n {
            let from = (sent % 4096) as usize;
            let most = (n - sent).min(4096 - from as u64) as usize;
            sent += kernel.try_send_batch(&requests[from..from + most])? as u64;
        }
        let more = kernel.try_recv_batch(&mut responses)?;
        for (i, response) in (got..).zip(&responses[..more]) {
            assert_eq!(response.words[0], requests[(i % 4096) as usize].words[0].wrapping_add(1));
        }
        got += more as u64;
        assert!(begun.elapsed() < Duration::from_secs(20), "{got} of {n}");
    }
    Ok(n as f64 / begun.elapsed().as_secs_f64() / 1e6)
}

/// Prints all of it.
pub fn measure(host: &Runtime) -> Result<(), Error> {
    println!("probe: {:?}", host.report().probe);
    let short = Budgets { idle: 20 * MICROSECOND, ..Budgets::default() };
    if host.device().kind == DeviceKind::Cuda {
        interleaved(host, short)?;
    }
    for (mode, memory) in WAYS {
        let launch = Launch::default().mode(mode).memory(memory);
        let mut kernel = launched(host, &launch)?;
        let n = if memory == Memory::Mapped { 20_000 } else { 5_000 };
        print(&format!("{mode}, {memory}: round trip"), &times(n, |i| answer(&mut kernel, i))?);
        let rate = throughput(&mut kernel, 1_000_000)?;
        println!(
            "{mode}, {memory}: {rate:.2} M messages/s in batches, {} launches",
            kernel.launches()
        );
        kernel.terminate(SECONDS)?;
        if mode != Mode::Persistent {
            let mut kernel = launched(host, &launch.budgets(short))?;
            print(&format!("{mode}, {memory}: round trip from rest"), &at_rest(&mut kernel, 1000)?);
        }
    }
    for processing in [Processing::Continuous, Processing::Batch, Processing::Adaptive] {
        for mode in [Mode::Persistent, Mode::EventDriven] {
            let launch = Launch::default().mode(mode).processing(processing);
            let mut kernel = launched(host, &launch)?;
            let rate = throughput(&mut kernel, 300_000)?;
            let trip = times(5000, |i| answer(&mut kernel, i))?;
            print(&format!("{mode}, {processing:?}: {rate:.2} M messages/s, round trip"), &trip);
        }
    }
    idle(host)
}

/// How long an idle kernel stays, against its time budget.
fn idle(host: &Runtime) -> Result<(), Error> {
    for ms in [1, 5, 20] {
        let time = Duration::from_millis(ms);
        let budgets = Budgets { time, idle: Duration::from_secs(10), ..Budgets::default() };
        let launch = Launch::default().mode(Mode::EventDriven).budgets(budgets);
        let mut kernel = launched(host, &launch)?;
        let stayed = times(20, |i| {
            answer(&mut kernel, i)?; // launches it
            Ok(kernel.rest(SECONDS)?)
        })?;
        print(&format!("idle from its launch to its end, time budget {ms} ms"), &stayed);
    }
    Ok(())
}

/// From rest, by launch and by graph, in turn with the bare launches and the bare copy.
fn interleaved(host: &Runtime, short: Budgets) -> Result<(), Error> {
    let mut bare = Baseline::open();
    let names = [
        "bare launch, then poll",
        "bare graph launch, then poll",
        "bare launch that reads the request, then poll",
        "bare graph launch that reads the request, then poll",
    ];
    let mut times: [Vec<f64>; 7] = Default::default();
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let way = |mode| Launch::default().mode(mode).memory(Memory::Mapped).budgets(short);
    let mut launch = launched(host, &way(Mode::EventDriven))?;
    let mut graph = launched(host, &way(Mode::Graph))?;
    // In turn, a hundred of each: what the machine does meanwhile befalls all alike.
    for round in 0..21 {
        for (k, times) in times.iter_mut().enumerate() {
            for i in 0..100 {
                let time = match k {
                    0..4 => us(bare.launch_and_poll(k / 2, k % 2 == 1)),
                    6 => us(bare.copy_and_wait()),
                    _ => {
                        let kernel = if k == 4 { &mut launch } else { &mut graph };
                        kernel.rest(SECONDS)?;
                        let begun = Instant::now();
                        answer(kernel, i)?;
                        us(begun.elapsed())
                    }
                };
                if round > 0 {
                    times.push(time);
                }
            }
            launch.rest(SECONDS)?;
            graph.rest(SECONDS)?;
        }
    }
    let all = names.into_iter().chain([
        "event-driven, mapped: round trip from rest",
        "graph, mapped: round trip from rest",
        "bare copy of 64 bytes to the device, and wait",
    ]);
    println!("in turn, 100 of each, 20 times:");
    for (name, times) in all.zip(&mut times) {
        times.sort_by(f64::total_cmp);
        print(&format!("  {name}"), times);
    }
    let p50 = |k: usize| times[k][times[k].len() / 2];
    println!(
        "  event-driven / bare launch: {:.3} ({:.3} of one that reads)",
        p50(4) / p50(0),
        p50(4) / p50(2)
    );
    println!(
        "  graph / bare graph launch: {:.3} ({:.3} of one that reads)",
        p50(5) / p50(1),
        p50(5) / p50(3)
    );
    drop((launch, graph));
    // A kernel that stays for a second: does the driver wait for it before it refuses memory?
    for bytes in [1usize << 40, 1 << 44, usize::MAX] {
        println!("  {bytes:#x} bytes refused, nothing resident: {:.1?}", bare.refuse_memory(bytes));
        let second = Duration::from_secs(1);
        let stay = Budgets { time: second, idle: second, ..Budgets::default() };
        let way = Launch::default().mode(Mode::EventDriven).memory(Memory::Mapped);
        let mut kernel = launched(host, &way.budgets(stay))?;
        answer(&mut kernel, 1)?;
        println!("  beside a kernel of 1 s: {:.1?}", bare.refuse_memory(bytes));
    }
    // Copies beside a resident kernel.
    let staged = Launch::default().mode(Mode::Persistent).memory(Memory::StagedAsync);
    let mut kernel = launched(host, &staged)?;
    let (mut trips, mut copies) = (Vec::new(), Vec::new());
    for i in 0..5500 {
        let begun = Instant::now();
        answer(&mut kernel, i)?;
        trips.push(us(begun.elapsed()));
        copies.push(us(bare.copy_and_wait()));
    }
    for (name, times) in
        [("persistent, staged-async: round trip", &mut trips), ("bare copy beside it", &mut copies)]
    {
        times.drain(..500);
        times.sort_by(f64::total_cmp);
        print(&format!("  {name}"), times);
    }
    println!("  staged-async round trip / copy: {:.3}", trips[2500] / copies[2500]);
    Ok(())
}
