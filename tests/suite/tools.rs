//! What handlers have at hand gives what it is documented to give, on a GPU as on a CPU.

use crate::faults::on_each_device_alone;
use ring_example_kernels::{
    BlockTools, Call, Count, CountRequest, FUNCTIONS, FoundShared, Functions, MostShared, SHARED,
    SharedTools, Together, WarpTools, number,
};
use ring_host::DeviceKind;
use ring_host::{KernelHandle, LaunchConfig, Mode, Runtime};
use ring_tests::kernels::of_examples;
use ring_tests::{LONG, until};

/// What a function should give.
type Exact = fn(f64) -> f64;

/// The functions with what they should give of one argument, up to which size of it they are tried, and by how many units in the last
/// place they may be off, as `ring_device::math` says.
const EXACT: [(&str, Exact, f32, f64); 11] = [
    ("sqrt", f64::sqrt, f32::MAX, 0.501),
    ("rsqrt", |x| 1.0 / x.sqrt(), f32::MAX, 2.0),
    ("recip", |x| 1.0 / x, f32::MAX, 2.0),
    ("exp2", f64::exp2, 160.0, 3.0),
    ("exp", f64::exp, 110.0, 3.0),
    ("tanh", f64::tanh, 100.0, 4.0),
    ("sigmoid", |x| 1.0 / (1.0 + (-x).exp()), 80.0, 4.0),
    ("ln", f64::ln, f32::MAX, 2.0),
    ("log2", f64::log2, f32::MAX, 2.0),
    ("sin", f64::sin, 268_435_456.0, 1.0),
    ("cos", f64::cos, 268_435_456.0, 1.0),
];

/// How far `found` is from what it should be, in units in the last place of that; numbers below the least normal one have its.
fn ulps(found: f32, exact: f64) -> f64 {
    let is_infinite = exact.abs() > f32::MAX.into();
    match (found.is_finite(), exact.is_nan() || is_infinite) {
        (true, false) => {
            let exponent = exact.abs().max(f32::MIN_POSITIVE.into()).log2().floor();
            (f64::from(found) - exact).abs() / (exponent - 23.0).exp2()
        }
        _ if found.is_nan() && exact.is_nan() || found == exact as f32 => 0.0,
        _ => f64::INFINITY,
    }
}

fn answers(kernel: &mut KernelHandle<Functions>, calls: &[Call]) -> Vec<f32> {
    assert_eq!(kernel.try_send_batch(calls), Ok(calls.len()));
    calls.iter().map(|_| kernel.recv(LONG).unwrap()).collect()
}

#[test]
fn functions_are_as_exact_as_is_told() {
    on_each_device_alone(here!("functions_are_as_exact_as_is_told"), |runtime| {
        let launch = LaunchConfig::default().kernels(of_examples::<Functions>());
        let mut kernel: KernelHandle<Functions> = runtime.launch(launch).unwrap();
        kernel.activate(LONG).unwrap();
        for (function, (name, exact, greatest, most)) in (0..).zip(EXACT) {
            assert_eq!(FUNCTIONS[function as usize], name);
            let step = greatest.to_bits() as usize / 4000;
            let sizes = (0..=greatest.to_bits()).step_by(step).map(f32::from_bits);
            let arguments: Vec<f32> = sizes.flat_map(|x| [x, -x]).collect();
            let call = |x: &f32| Call { function, x: *x, y: 0.0 };
            let calls: Vec<Call> = arguments.iter().map(call).collect();
            let answers = answers(&mut kernel, &calls);
            for (x, found) in arguments.iter().zip(&answers) {
                let off = ulps(*found, exact(f64::from(*x)));
                assert!(off <= most, "{name}({x:e}) is {found:e}: off by {off}");
            }
        }
        // Rounded once: the product's last bits are not lost before the sum.
        let x = 1.0 + f32::EPSILON;
        let calls = [Call { function: 11, x, y: -(1.0 - f32::EPSILON) }];
        assert_eq!(answers(&mut kernel, &calls), [f32::EPSILON * f32::EPSILON]);
        kernel.terminate(LONG).unwrap();
    });
}

/// What so many threads should make together of a request.
fn expected(seed: u32, threads: usize, channel: u32, is_warp: bool) -> Together {
    let numbers: Vec<u32> = (0..threads).map(|thread| number(seed, thread)).collect();
    let signed = || numbers.iter().map(|number| *number as i32);
    let reals = || numbers.iter().map(|number| (number & 0xff) as f32 / 16.0);
    let squares = numbers.iter().map(|number| u64::from(*number) * u64::from(*number));
    let squares = squares.fold(0, u64::wrapping_add);
    let sum = |of: &dyn Fn(usize) -> u32| (0..threads).map(of).fold(0, u32::wrapping_add);
    let scan = |upto: &dyn Fn(usize) -> usize| {
        sum(&|thread| {
            let scanned = numbers[..upto(thread)].iter().copied().fold(0, u32::wrapping_add);
            (thread as u32 + 1).wrapping_mul(scanned)
        })
    };
    let odd = sum(&|thread| (numbers[thread] % 2) << (thread % 32));
    let all = numbers.iter().all(|number| number % 2 == 1);
    let next = sum(&|thread| (thread as u32 + 1).wrapping_mul(numbers[(thread + 1) % threads]));
    Together {
        threads: threads as u32,
        channel,
        sum: sum(&|thread| numbers[thread]),
        min: signed().min().unwrap(),
        max: signed().max().unwrap(),
        of_reals: [
            reals().sum(),
            reals().fold(f32::INFINITY, f32::min),
            reals().fold(f32::NEG_INFINITY, f32::max),
        ],
        squares: [squares as u32, (squares >> 32) as u32],
        scans: [scan(&|thread| thread + 1), scan(&|thread| thread)],
        next: if is_warp { next } else { 0 },
        odd: if is_warp { odd } else { 0 },
        votes: if is_warp { u32::from(all) | u32::from(odd != 0) << 1 } else { 0 },
        differing: 0,
    }
}

fn all_agree<K: ring_device::Kernel<Request = u32, Response = Together>>(
    runtime: &Runtime,
    threads: Option<u32>,
) {
    let is_warp = K::NAME == "warp_tools";
    let mut launch = LaunchConfig::default().channels(2).kernels(of_examples::<K>());
    if let Some(threads) = threads {
        launch = launch.threads(threads);
    }
    let mut kernel: KernelHandle<K> = runtime.launch(launch).unwrap();
    kernel.activate(LONG).unwrap();
    let seeds: Vec<u32> = (0..200u32).map(|seed| seed.wrapping_mul(0x85eb_ca6b)).collect();
    for channel in 0..2 {
        let of_channel = kernel.channel(channel).unwrap();
        // Inline, and in slots.
        for batch in [1, 100] {
            for seeds in seeds.chunks(batch) {
                assert_eq!(of_channel.try_send_batch(seeds), Ok(seeds.len()));
                for seed in seeds {
                    let found = of_channel.recv(LONG).unwrap();
                    let expected = expected(*seed, found.threads as usize, channel, is_warp);
                    assert_eq!(found, expected, "{} of {threads:?}", K::NAME);
                }
            }
        }
    }
    kernel.terminate(LONG).unwrap();
}

#[test]
fn threads_find_the_same_together() {
    on_each_device_alone(here!("threads_find_the_same_together"), |runtime| {
        all_agree::<WarpTools>(runtime, None);
        for threads in [32, 64, 96, 256, 512] {
            all_agree::<BlockTools>(runtime, Some(threads));
        }
    });
}

/// What a block should find for a request, with so many messages before.
fn found_shared(seed: u32, before: u32) -> FoundShared {
    let [_, numbers, wide] = SHARED;
    let sum = |of: &dyn Fn(usize) -> u32, n: usize| (0..n).map(of).fold(0, u32::wrapping_add);
    let words = (0..wide).fold(0, |all, i| all ^ u64::from(number(seed, i)) << 16);
    FoundShared {
        before,
        sum: sum(&|i| number(seed, i).wrapping_mul(i as u32 + 1), numbers),
        of_fours: sum(&|i| number(seed, i), numbers / 4 * 4),
        wide: [words as u32, (words >> 32) as u32],
        not_zero: 0,
        beyond: 0,
        of_another: 0,
    }
}

#[test]
fn threads_share_memory_until_their_launch_ends() {
    on_each_device_alone(here!("threads_share_memory_until_their_launch_ends"), |runtime| {
        for threads in [32, 96, 512] {
            let launch = LaunchConfig::default().channels(2).threads(threads);
            let launch = launch.kernels(of_examples::<SharedTools>());
            let mut kernel: KernelHandle<SharedTools> = runtime.launch(launch).unwrap();
            kernel.activate(LONG).unwrap();
            let seeds: Vec<u32> = (1..50u32).map(|seed| seed.wrapping_mul(0x85eb_ca6b)).collect();
            for channel in 0..2 {
                let of_channel = kernel.channel(channel).unwrap();
                let mut before = 0;
                for batch in [1, 20] {
                    for seeds in seeds.chunks(batch) {
                        assert_eq!(of_channel.try_send_batch(seeds), Ok(seeds.len()));
                        for seed in seeds {
                            let found = of_channel.recv(LONG).unwrap();
                            assert_eq!(found, found_shared(*seed, before), "{threads}");
                            before += 1;
                        }
                    }
                }
            }
            kernel.terminate(LONG).unwrap();
        }
        // Another launch finds it zero, and what is lost between two is not kept.
        let launch = LaunchConfig::default().kernels(of_examples::<MostShared>());
        for _ in 0..2 {
            let mut kernel: KernelHandle<MostShared> = runtime.launch(launch.clone()).unwrap();
            kernel.activate(LONG).unwrap();
            let last = ring_device::MAX_SHARED_BYTES as u32 / 4 - 1;
            for at in [0, 1, 1000, last - 1, last] {
                for (value, before) in [(7, 0), (9, 7)] {
                    assert_eq!(kernel.ask(&[at, value]), before, "{at}");
                }
            }
            assert_eq!(kernel.ask(&[last + 1, 5]), u32::MAX);
            kernel.terminate(LONG).unwrap();
        }
    });
}

trait Ask {
    fn ask(&mut self, request: &[u32; 2]) -> u32;
}

impl Ask for KernelHandle<MostShared> {
    fn ask(&mut self, request: &[u32; 2]) -> u32 {
        self.send(*request, LONG).unwrap();
        self.recv(LONG).unwrap()
    }
}

#[test]
fn a_kernel_that_is_launched_again_finds_its_shared_memory_zero() {
    on_each_device_alone(
        here!("a_kernel_that_is_launched_again_finds_its_shared_memory_zero"),
        |runtime| {
            let launch = LaunchConfig::default().kernels(of_examples::<MostShared>());
            let launch = launch.mode(Mode::EventDriven);
            let mut kernel: KernelHandle<MostShared> = runtime.launch(launch).unwrap();
            kernel.activate(LONG).unwrap();
            for value in 1..20 {
                assert_eq!(kernel.ask(&[5, value]), 0);
                until("a launch that ends", || kernel.is_resting().then_some(()));
            }
            kernel.terminate(LONG).unwrap();
        },
    );
}

#[test]
fn elements_are_changed_by_all_threads_at_once() {
    on_each_device_alone(here!("elements_are_changed_by_all_threads_at_once"), |runtime| {
        const CHANNELS: u32 = 4;
        let launch = LaunchConfig::default().channels(CHANNELS).threads(64);
        let launch = launch.kernels(of_examples::<Count>());
        let mut kernel: KernelHandle<Count> = runtime.launch(launch).unwrap();
        kernel.activate(LONG).unwrap();
        let words = runtime.buffer::<u32>(6).unwrap();
        let (signed, reals) = (runtime.buffer(3).unwrap(), runtime.buffer(1).unwrap());
        words.upload(2, &[u32::MAX], LONG).unwrap();
        let (mut all, mut threads) = (Vec::new(), 0);
        for seed in 0..30 {
            for channel in 0..CHANNELS {
                let request = CountRequest {
                    seed: seed * CHANNELS + channel,
                    of_words: words.reference(),
                    of_signed: signed.reference(),
                    of_reals: reals.reference(),
                };
                kernel.channel(channel).unwrap().send(request, LONG).unwrap();
            }
            for channel in 0..CHANNELS {
                threads = kernel.channel(channel).unwrap().recv(LONG).unwrap();
                assert_ne!(threads, 0);
                all.extend((0..threads as usize).map(|i| number(seed * CHANNELS + channel, i)));
            }
        }
        let (mut found, mut of_signed, mut of_reals) = ([0; 6], [0; 3], [0.0f32]);
        words.download(0, &mut found, LONG).unwrap();
        signed.download(0, &mut of_signed, LONG).unwrap();
        reals.download(0, &mut of_reals, LONG).unwrap();
        let sum = all.iter().copied().fold(0, u32::wrapping_add);
        let count = all.len() as u32;
        let (most, least) = (*all.iter().max().unwrap(), *all.iter().min().unwrap());
        assert_eq!(found, [sum, most, least, count, count, count]);
        let as_signed = || all.iter().map(|number| *number as i32);
        let (most, least) = (as_signed().max().unwrap(), as_signed().min().unwrap());
        assert_eq!(of_signed, [sum as i32, most.max(0), least.min(0)]);
        assert_eq!(of_reals, [all.iter().map(|number| (number & 0xff) as f32).sum::<f32>()]);
        assert_eq!(threads, if runtime.device().kind == DeviceKind::Cpu { 1 } else { 64 });
        // Elements that are not there.
        let request = CountRequest {
            seed: 0,
            of_words: words.reference().slice(0..2).unwrap(),
            of_signed: signed.reference(),
            of_reals: reals.reference(),
        };
        kernel.send(request, LONG).unwrap();
        assert_eq!(kernel.recv(LONG).unwrap(), 0);
        kernel.terminate(LONG).unwrap();
    });
}
