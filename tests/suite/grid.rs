//! Kernels whose messages are handled by all blocks of a launch: what they find, what they see of each other, and what becomes of
//! those that do not meet.

use crate::faults::{names, on_each_device_alone};
use ring_example_kernels::{Astray, Found, GridSum, Leave, LeftBehind, Numbers, Ripple, Rounds};
use ring_host::error::BlockLimit;
use ring_host::kernels::Echo;
use ring_host::{
    Buffer, DeviceFault, DeviceKind, Exit, KernelHandle, LaunchConfig, LaunchError,
    MAX_GRID_BLOCKS, Memory, Mode, RecvTimeoutError, Runtime,
};
use ring_tests::{LONG, WAYS, active, exchange, kernels, on_each_device, on_each_device_with};

fn config(blocks: u32, threads: u32) -> LaunchConfig {
    let launch = LaunchConfig::default().blocks(blocks).threads(threads);
    launch.kernels(kernels::of_examples::<GridSum>())
}

fn launched(host: &Runtime, launch: LaunchConfig) -> KernelHandle<GridSum> {
    let mut kernel = host.launch::<GridSum>(launch).unwrap_or_else(|error| panic!("{error}"));
    kernel.activate(LONG).unwrap();
    kernel
}

/// Threads of a block as its handler counts them.
fn counted(host: &Runtime, threads: u32) -> u32 {
    if host.device().kind == DeviceKind::Cpu { 1 } else { threads }
}

fn expected(host: &Runtime, n: u64, (blocks, threads): (u32, u32)) -> Found {
    let sum = n * n.saturating_sub(1) / 2;
    Found {
        sum,
        greatest: if n == 0 { i64::MIN } else { n as i64 - 1 },
        halves: sum as f64 / 2.0,
        shared: n,
        blocks,
        threads: counted(host, threads),
    }
}

fn numbers(n: u64, barriers: u32) -> Numbers {
    Numbers { n, barriers, astray: Astray::None as u32 }
}

#[test]
fn all_blocks_handle_each_message() {
    on_each_device(|host| {
        for (blocks, threads) in [(1, 32), (1, 512), (2, 32), (3, 64), (4, 512), (7, 96)] {
            let mut kernel = launched(host, config(blocks, threads));
            for n in [0, 1, 5, 1000, 100_003] {
                for barriers in [0, 1, 2, 7] {
                    kernel.send(numbers(n, barriers), LONG).unwrap();
                    let found = kernel.recv(LONG).unwrap();
                    assert_eq!(found, expected(host, n, (blocks, threads)), "{blocks} x {threads}");
                }
            }
            let summary = kernel.terminate(LONG).unwrap();
            assert_eq!((summary.processed, summary.unhandled), (20, 0));
        }
    });
}

#[test]
fn by_default_there_is_a_block_for_each_multiprocessor() {
    // Beside kernels of other tests there may be no room for them.
    on_each_device_alone(here!("by_default_there_is_a_block_for_each_multiprocessor"), |host| {
        if host.device().multiprocessors > 16 && host.device().kind == DeviceKind::Cpu {
            return; // so many threads would wait for processors that other tests keep
        }
        let launch = LaunchConfig::default().kernels(kernels::of_examples::<GridSum>());
        let mut kernel = launched(host, launch);
        kernel.send(numbers(12_345, 2), LONG).unwrap();
        let of = (host.device().multiprocessors, LaunchConfig::DEFAULT_THREADS);
        assert_eq!(kernel.recv(LONG).unwrap(), expected(host, 12_345, of));
    });
}

#[test]
fn messages_in_flight_are_handled_one_after_the_other() {
    on_each_device(|host| {
        let mut kernel = launched(host, config(3, 64).capacity(64));
        for round in 0..20u64 {
            let batch: Vec<_> = (0..50).map(|i| numbers(round * 50 + i, (i % 3) as u32)).collect();
            assert_eq!(kernel.try_send_batch(&batch).unwrap(), batch.len());
            for sent in batch {
                assert_eq!(kernel.recv(LONG).unwrap(), expected(host, sent.n, (3, 64)));
            }
        }
    });
}

ring_device::ring_kernel! {
    /// Each block brings a number to so many exchanges; answers how many of those that blocks got were not what they should be, and how many
    /// there were. For the CPU device only.
    struct Gathered {
        name: "gathered",
        entry: "ring_echo",
        shared: {
            /// How often a number came from each block.
            CAME: [u32; 64],
        },
    }

    fn handle(ctx: &GridContext, rounds: &u32, response: &Output<[u32; 2]>) {
        let came = ctx.shared(Gathered::CAME);
        let number = |block: usize, round: u32| (block as u32 + 1).wrapping_mul(round + 7);
        let (mut wrong, mut count) = (0, 0);
        for round in 0..*rounds {
            ctx.gather(number(ctx.block(), round), |block, found: u32| {
                wrong += u32::from(found != number(block, round));
                count += 1;
                came.set(block, came.get(block).unwrap_or(u32::MAX) + 1);
            });
        }
        let came_always = (0..ctx.blocks()).all(|block| came.get(block) == Some(*rounds));
        for block in 0..ctx.blocks() {
            came.set(block, 0);
        }
        let wrong = ctx.sum(wrong + u32::from(!came_always));
        let count = ctx.sum(count);
        if ctx.index() == 0 {
            response.set_all([wrong, count]);
        }
    }
}

#[test]
fn each_block_gets_what_each_brings() {
    let host = ring_tests::cpu();
    for blocks in [1, 2, 3, 5] {
        let launch = LaunchConfig::default().blocks(blocks);
        let mut kernel = host.launch::<Gathered>(launch).unwrap();
        kernel.activate(LONG).unwrap();
        for rounds in [0, 1, 2, 7, 20] {
            kernel.send(rounds, LONG).unwrap();
            let answer = kernel.recv(LONG).unwrap();
            assert_eq!(answer, [0, blocks * blocks * rounds], "{blocks} blocks, {rounds} rounds");
        }
        kernel.terminate(LONG).unwrap();
    }
}

#[test]
fn each_way_of_running_answers_and_goes_on_after_a_pause() {
    on_each_device(|host| {
        for (mode, memory) in WAYS {
            let mut kernel = launched(host, config(3, 64).mode(mode).memory(memory));
            assert_eq!(kernel.runs_as(), (mode, memory));
            for n in 0..30 {
                kernel.send(numbers(n, 1), LONG).unwrap();
                assert_eq!(
                    kernel.recv(LONG).unwrap(),
                    expected(host, n, (3, 64)),
                    "{mode} {memory}"
                );
                if n % 10 == 9 {
                    kernel.deactivate(LONG).unwrap();
                    kernel.activate(LONG).unwrap();
                }
            }
            kernel.terminate(LONG).unwrap();
        }
    });
}

#[test]
fn blocks_see_what_others_wrote_before_a_barrier() {
    on_each_device(|host| {
        let (words, rounds) = (5000u32, 40);
        let launch = config(4, 128).kernels(kernels::of_examples::<Ripple>());
        let mut kernel = host.launch::<Ripple>(launch).unwrap();
        kernel.activate(LONG).unwrap();
        for seed in 1..4u32 {
            let mut at: Vec<u32> =
                (0..words).map(|i| i.wrapping_mul(2_654_435_761).wrapping_mul(seed)).collect();
            kernel.write_payload(0, &at, LONG).unwrap();
            for _ in 0..rounds {
                at = (0..at.len()).map(|i| at[i].wrapping_add(at[(i + 1) % at.len()])).collect();
            }
            kernel.send(Rounds { words, rounds }, LONG).unwrap();
            let sum: u64 = at.iter().copied().map(u64::from).sum();
            assert_eq!(kernel.recv(LONG).unwrap(), sum);
            let mut found = vec![0u32; words as usize];
            kernel.read_payload(0, &mut found, LONG).unwrap();
            assert_eq!(found, at, "an even number of rounds ends where it began");
        }
        kernel.send(Rounds { words: 1 << 20, rounds }, LONG).unwrap();
        assert_eq!(kernel.recv(LONG).unwrap(), 0, "more words than the arena has are refused");
        assert_eq!(kernel.terminate(LONG).unwrap().processed, 4);
    });
}

#[test]
fn a_block_that_misses_a_barrier_is_told() {
    on_each_device(|host| {
        for astray in [Astray::FirstMisses, Astray::LastMisses, Astray::LastWaits] {
            let mut kernel = launched(host, config(4, 64));
            kernel.send(numbers(100, 2), LONG).unwrap();
            assert_eq!(kernel.recv(LONG).unwrap(), expected(host, 100, (4, 64)));
            kernel.send(Numbers { astray: astray as u32, ..numbers(100, 2) }, LONG).unwrap();
            match kernel.recv(LONG) {
                Err(RecvTimeoutError::Fault(DeviceFault::Left { channel: 0, exit, .. })) => {
                    assert_eq!(exit, Exit::MissedBarrier, "{astray:?}");
                }
                other => panic!("{astray:?}: {other:?}"),
            }
        }
        // Others go on.
        exchange(&mut active(host, LaunchConfig::default()), 1);
    });
}

#[test]
fn a_handler_that_panics_in_any_block_ends_the_grid() {
    let on_a_gpu = kernels::bears_panics::<GridSum>(here!("a_handler_that_panics"));
    on_each_device(|host| {
        if host.device().kind == DeviceKind::Cuda && !on_a_gpu {
            return;
        }
        for astray in [Astray::FirstPanics, Astray::LastPanics] {
            for (blocks, threads) in [(1, 64), (4, 64)] {
                let mut kernel = launched(host, config(blocks, threads));
                kernel.send(Numbers { astray: astray as u32, ..numbers(100, 1) }, LONG).unwrap();
                match kernel.recv(LONG) {
                    Err(RecvTimeoutError::Fault(DeviceFault::HandlerPanicked {
                        channel: 0,
                        ..
                    })) => {}
                    other => panic!("{astray:?}: {other:?}"),
                }
            }
        }
        exchange(&mut active(host, LaunchConfig::default()), 1);
    });
}

/// A kernel whose first block answers, with a buffer of an element for each block.
fn left_behind(host: &Runtime, launch: LaunchConfig) -> (KernelHandle<LeftBehind>, Buffer<u32>) {
    let mut kernel = host
        .launch::<LeftBehind>(launch.kernels(kernels::of_examples::<LeftBehind>()))
        .unwrap_or_else(|error| panic!("{error}"));
    kernel.activate(LONG).unwrap();
    let left = host.buffer(kernel.blocks() as usize).unwrap();
    (kernel, left)
}

fn on_each_device_of_examples(test: impl Fn(&Runtime)) {
    let launch = LaunchConfig::default().kernels(kernels::of_examples::<LeftBehind>());
    on_each_device_with::<LeftBehind>(&launch, test);
}

fn leave(left: &Buffer<u32>, value: u32) -> Leave {
    let left = left.reference();
    Leave { left, value, nanoseconds: 0, astray: Astray::None as u32, waits: 0 }
}

#[test]
fn what_is_left_to_do_behind_an_answer_is_done_before_the_next_message() {
    on_each_device_of_examples(|host| {
        for (blocks, threads) in [(1, 64), (2, 32), (4, 64), (3, 512), (40, 32)] {
            if blocks > 4 && host.device().kind == DeviceKind::Cpu {
                continue;
            }
            let launch = LaunchConfig::default().blocks(blocks).threads(threads);
            let (mut kernel, left) = left_behind(host, launch);
            let others = u64::from(blocks - 1);
            let mut before = 0;
            for round in 0..100u32 {
                // At once, and in batches, which are answered when all is done.
                let value = 1 + round * 7;
                let asked = Leave { nanoseconds: 2000 * (round % 3), ..leave(&left, value) };
                if round % 10 < 7 {
                    kernel.send(asked, LONG).unwrap();
                    assert_eq!(
                        kernel.recv(LONG).unwrap(),
                        others * before,
                        "{blocks} blocks, {round}"
                    );
                } else {
                    assert_eq!(kernel.try_send_batch(&[asked; 3]).unwrap(), 3);
                    for sum in [before, u64::from(value), u64::from(value)] {
                        assert_eq!(
                            kernel.recv(LONG).unwrap(),
                            others * sum,
                            "{blocks} blocks, {round}"
                        );
                    }
                }
                before = u64::from(value);
            }
            // The host sees all of it when the kernel is inactive.
            kernel.send(Leave { nanoseconds: 50_000, ..leave(&left, 12) }, LONG).unwrap();
            kernel.recv(LONG).unwrap();
            kernel.deactivate(LONG).unwrap();
            let mut found = vec![0; blocks as usize];
            left.download(0, &mut found, LONG).unwrap();
            assert_eq!(found[0], 0);
            assert!(found[1..].iter().all(|found| *found == 12), "{found:?}");
            kernel.terminate(LONG).unwrap();
        }
    });
}

#[test]
fn a_first_block_answers_in_each_way_of_running() {
    on_each_device_of_examples(|host| {
        for (mode, memory) in WAYS {
            let launch = LaunchConfig::default().blocks(3).threads(64).mode(mode).memory(memory);
            let (mut kernel, left) = left_behind(host, launch);
            for n in 1..20 {
                kernel.send(Leave { nanoseconds: 10_000, ..leave(&left, n) }, LONG).unwrap();
                assert_eq!(kernel.recv(LONG).unwrap(), 2 * u64::from(n - 1), "{mode} {memory}");
                if n % 10 == 9 {
                    kernel.deactivate(LONG).unwrap();
                    kernel.activate(LONG).unwrap();
                }
            }
            kernel.terminate(LONG).unwrap();
        }
    });
}

#[test]
fn an_answer_does_not_wait_for_what_is_left_to_do() {
    on_each_device_of_examples(|host| {
        let (mut kernel, left) = left_behind(host, LaunchConfig::default().blocks(2).threads(64));
        // The other block waits for the host, and what goes astray in it is told behind that.
        for astray in [Astray::None, Astray::LastWaits] {
            left.upload(0, &[0, 0], LONG).unwrap();
            let asked = Leave { waits: 1, astray: astray as u32, ..leave(&left, 5) };
            kernel.send(asked, LONG).unwrap();
            assert_eq!(kernel.recv(LONG).unwrap(), 0);
            let mut found = [7; 2];
            left.download(0, &mut found, LONG).unwrap();
            assert_eq!(found, [0, 0]);
            left.upload(0, &[1], LONG).unwrap();
            if astray == Astray::None {
                kernel.send(leave(&left, 6), LONG).unwrap();
                assert_eq!(kernel.recv(LONG).unwrap(), 1 + 5);
            }
        }
        kernel.send(leave(&left, 6), LONG).unwrap();
        match kernel.recv(LONG) {
            Err(RecvTimeoutError::Fault(DeviceFault::Left { channel: 0, exit, .. })) => {
                assert_eq!(exit, Exit::MissedBarrier);
            }
            other => panic!("{other:?}"),
        }
        exchange(&mut active(host, LaunchConfig::default()), 1);
    });
}

#[test]
fn a_panic_behind_an_answer_ends_the_grid() {
    let on_a_gpu = kernels::bears_panics::<LeftBehind>(here!("a_panic_behind_an_answer"));
    on_each_device_of_examples(|host| {
        if host.device().kind == DeviceKind::Cuda && !on_a_gpu {
            return;
        }
        let (mut kernel, left) = left_behind(host, LaunchConfig::default().blocks(3).threads(64));
        kernel.send(leave(&left, 4), LONG).unwrap();
        assert_eq!(kernel.recv(LONG).unwrap(), 0);
        let astray = Astray::LastPanics as u32;
        kernel.send(Leave { astray, nanoseconds: 1_000_000, ..leave(&left, 5) }, LONG).unwrap();
        assert_eq!(kernel.recv(LONG).unwrap(), 8);
        kernel.send(leave(&left, 6), LONG).unwrap();
        match kernel.recv(LONG) {
            Err(RecvTimeoutError::Fault(DeviceFault::HandlerPanicked { channel: 0, .. })) => {}
            other => panic!("{other:?}"),
        }
        exchange(&mut active(host, LaunchConfig::default()), 1);
    });
}

#[test]
fn what_cannot_be_is_refused_with_numbers() {
    on_each_device(|host| {
        let refused = |launch| host.launch::<GridSum>(launch).unwrap_err();
        let of = |blocks| config(blocks, 64);
        match refused(of(0)) {
            LaunchError::Blocks { blocks: 0, limit, .. } => assert!(limit >= 1),
            other => panic!("{other:?}"),
        }
        let much = MAX_GRID_BLOCKS + 1;
        match refused(of(much)) {
            LaunchError::Blocks { blocks, limit, why } => {
                assert_eq!(blocks, much);
                assert!(limit <= MAX_GRID_BLOCKS && why != BlockLimit::Residency, "{limit} {why}");
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            refused(of(2).channels(2)),
            LaunchError::GridChannels { channels: 2, .. }
        ));
        let echo = host.launch::<Echo>(LaunchConfig::default().blocks(3)).unwrap_err();
        assert!(matches!(echo, LaunchError::NoGrid { blocks: 3, .. }), "{echo}");
        names(&echo, &["3 blocks", "choose channels"]);
    });
}

#[test]
fn a_grid_that_does_not_fit_beside_others_is_refused() {
    let host = ring_tests::cpu();
    let limit = host.device().max_channels;
    let first = launched(&host, config(limit / 2 + 1, 32));
    match host.launch::<GridSum>(config(limit / 2 + 1, 32)) {
        Err(LaunchError::Crowded(crowded)) => {
            assert_eq!(crowded.blocks, limit / 2 + 1);
            names(&crowded, &["blocks of kernel grid_sum", "terminate another kernel first"]);
        }
        other => panic!("{:?}", other.map(|_| ())),
    }
    drop(first);
}

#[test]
fn by_default_a_grid_is_persistent_in_mapped_memory() {
    let host = ring_tests::cpu();
    let kernel = launched(&host, config(2, 32));
    assert_eq!(kernel.runs_as(), (Mode::Persistent, Memory::Mapped));
}
