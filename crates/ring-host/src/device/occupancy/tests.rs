use super::*;

/// A multiprocessor of the H200.
const H200: Resources =
    Resources { registers: 65_536, shared_bytes: 233_472, warps: 64, blocks: 32 };

/// A block of a ring kernel: registers a thread as allocated, and the shared memory of `ring_echo`.
fn ring(registers: u32, threads: u32) -> Resources {
    let warps = threads.div_ceil(32).next_multiple_of(4);
    Resources { registers: registers * 32 * warps, shared_bytes: 44_544, warps, blocks: 1 }
}

fn demand(kernel: &'static str, blocks: u32, block: Resources) -> Demand {
    Demand { kernel, blocks, block, relaunched: false }
}

#[test]
fn a_full_device_refuses_and_frees() {
    let device = Occupancy::new(132, H200);
    let echo = ring(64, 512);
    assert_eq!(device.holds(echo), 264);
    let half = device.reserve(demand("echo", 132, echo)).unwrap();
    let error = device.reserve(demand("echo", 133, echo)).unwrap_err();
    assert_eq!((error.fit, error.beside, error.resource), (132, 132, Resource::Registers));
    let rest = device.reserve(demand("echo", 132, echo)).unwrap();
    assert_eq!(device.reserve(demand("echo", 1, echo)).unwrap_err().fit, 0);
    drop((half, rest));
    assert!(device.reserve(demand("echo", 264, echo)).is_ok());
}

/// What the H200 was seen to do with the resources of `ring_echo`.
#[test]
fn what_was_never_resident_is_refused() {
    let device = Occupancy::new(132, H200);
    let small = device.reserve(demand("echo", 132, ring(64, 32))).unwrap();
    small.placed();
    let error = device.reserve(demand("large", 1, ring(64, 1024))).unwrap_err();
    let expected = Crowded {
        kernel: "large",
        blocks: 1,
        fit: 0,
        beside: 132,
        multiprocessors: 132,
        resource: Resource::Registers,
        needed: 65_536,
        taken: 8192,
        of: 65_536,
    };
    assert_eq!(error, expected);
    assert!(device.reserve(demand("echo", 1, ring(64, 32))).is_ok());
    drop(small);

    // `Echo` on as many channels as there are multiprocessors, then `VectorAdd`, both by default.
    let _echo = device.reserve(demand("echo", 132, ring(64, 512))).unwrap();
    let error = device.reserve(demand("vector_add", 1, ring(72, 512))).unwrap_err();
    assert_eq!((error.resource, error.needed, error.taken), (Resource::Registers, 36_864, 32_768));
    let text = error.to_string();
    for part in ["1 blocks of kernel vector_add", "132 blocks of other", "36864 registers", "65536"]
    {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[test]
fn what_is_launched_again_keeps_its_room() {
    let device = Occupancy::new(4, H200);
    let again = Demand { relaunched: true, ..demand("large", 1, ring(64, 1024)) };
    let large = device.reserve(again).unwrap();
    large.placed();
    let error = device.reserve(demand("echo", 4, ring(64, 32))).unwrap_err();
    assert_eq!((error.kernel, error.beside), ("large", 4));
    drop(large);
    // One that stays where it is does not need it; nor does it matter before it was seen there.
    let stays = device.reserve(demand("large", 1, ring(64, 1024))).unwrap();
    assert_eq!(device.reserve(demand("echo", 4, ring(64, 32))).unwrap_err().kernel, "large");
    stays.placed();
    assert!(device.reserve(demand("echo", 4, ring(64, 32))).is_ok());
}

/// Many small blocks beside large ones: each takes a place only if it must.
#[test]
fn small_blocks_that_share_a_multiprocessor_share_a_place() {
    let device = Occupancy::new(132, H200);
    let _two_each = device.reserve(demand("small", 264, ring(64, 32))).unwrap();
    // At worst five lie on each of 33 multiprocessors, and one on each of the 99 others.
    let error = device.reserve(demand("echo", 100, ring(64, 512))).unwrap_err();
    assert_eq!((error.fit, error.beside), (99, 264));
    assert!(device.reserve(demand("echo", 99, ring(64, 512))).is_ok());
}

#[test]
fn a_device_of_threads_counts_blocks_only() {
    let block = Resources { blocks: 1, ..Resources::default() };
    let device = Occupancy::new(1, Resources { blocks: 256, ..block });
    assert_eq!(device.holds(block), 256);
    let all = device.reserve(demand("echo", 256, block)).unwrap();
    assert_eq!(device.reserve(demand("echo", 1, block)).unwrap_err().resource, Resource::Blocks);
    drop(all);
    assert_eq!(device.reserve(demand("echo", u32::MAX, block)).unwrap_err().fit, 256);
}

#[test]
fn the_driver_may_know_of_fewer() {
    let device = Occupancy::new(132, H200);
    let echo = ring(64, 512);
    assert_eq!(device.at_most(2, echo), echo);
    assert_eq!(device.at_most(3, echo), echo);
    assert_eq!(device.holds(device.at_most(1, echo)), 132);
    assert_eq!(device.holds(device.at_most(0, echo)), 0);
}

/// Numbers that look random, the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, range: std::ops::Range<u32>) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        range.start + ((self.0 >> 33) as u32) % (range.end - range.start)
    }
}

/// The fewest places that are left for `block`, of all ways to place `blocks` on `free`.
fn worst(free: &mut [Resources], blocks: &[Resources], block: Resources) -> u32 {
    let Some((next, rest)) = blocks.split_first() else {
        return free.iter().map(|free| free.holds(block)).sum();
    };
    let mut fewest = u32::MAX;
    for i in 0..free.len() {
        if free[i].holds(*next) == 0 {
            continue;
        }
        let before = free[i];
        free[i] = Resources {
            registers: before.registers - next.registers,
            shared_bytes: before.shared_bytes - next.shared_bytes,
            warps: before.warps - next.warps,
            blocks: before.blocks - next.blocks,
        };
        fewest = fewest.min(worst(free, rest, block));
        free[i] = before;
    }
    fewest // `u32::MAX` if they cannot be placed so
}

/// Against every placement there is, on devices small enough to try them all.
#[test]
fn what_is_admitted_fits_in_every_placement() {
    let mut dice = Dice(20_261_122);
    let (mut admitted, mut exact, mut refused) = (0, 0, 0);
    for _ in 0..3000 {
        let each = Resources {
            registers: dice.roll(8..33),
            shared_bytes: dice.roll(8..33),
            warps: dice.roll(4..17),
            blocks: dice.roll(2..7),
        };
        let block = |dice: &mut Dice| Resources {
            registers: dice.roll(1..each.registers + 1),
            shared_bytes: dice.roll(1..each.shared_bytes / 2 + 1),
            warps: dice.roll(1..each.warps / 2 + 1),
            blocks: 1,
        };
        let multiprocessors = dice.roll(1..4);
        let device = Occupancy::new(multiprocessors, each);
        let (mut shares, mut lie) = (Vec::new(), Vec::new());
        for _ in 0..dice.roll(1..4) {
            let other = block(&mut dice);
            let count = dice.roll(1..4).min(6 - lie.len().min(5) as u32);
            if let Ok(share) = device.reserve(demand("other", count, other)) {
                share.placed();
                shares.push(share);
                lie.extend(std::iter::repeat_n(other, count as usize));
            }
        }
        let new = block(&mut dice);
        let mut free = vec![each; multiprocessors as usize];
        let room = worst(&mut free, &lie, new);
        let all = demand("new", u32::MAX, new);
        let fit = device.reserve(all).unwrap_err().fit;
        assert!(fit <= room, "{fit} admitted, room for {room}: {new:?} beside {lie:?} on {each:?}");
        exact += u32::from(fit == room);
        if fit > 0 {
            assert!(device.reserve(demand("new", fit, new)).is_ok());
            admitted += 1;
        } else {
            refused += 1;
        }
    }
    // The bound is of use: mostly it is what the worst placement leaves.
    assert!(exact > 2000 && admitted > 1000 && refused > 100, "{exact} {admitted} {refused}");
}

#[test]
fn a_block_that_takes_all_shared_memory_has_its_multiprocessor_for_itself() {
    let device = Occupancy::new(132, H200);
    let whole = device.with_all_shared(ring(64, 256));
    assert_eq!(device.holds(whole), 132);
    let some = device.reserve(demand("grid", 100, whole)).unwrap();
    some.placed();
    let echo = ring(64, 64);
    let beside = device.reserve(demand("echo", 32 * device.0.each.holds(echo), echo)).unwrap();
    let error = device.reserve(demand("echo", 1, echo)).unwrap_err();
    assert_eq!((error.fit, error.resource, error.taken), (0, Resource::SharedMemory, 233_472));
    drop(beside);
    let error = device.reserve(demand("grid", 33, whole)).unwrap_err();
    assert_eq!((error.fit, error.needed), (32, 233_472));
}
