//! What handlers do that all blocks of a grid run, on the CPU device: each block goes its own way, catches what ends it, drops
//! the kernel that runs it, or goes on where another block has lost the grid.

use crate::memory::{self, fill};
use bytemuck::Zeroable;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use ring_device::{BufferRef, GridContext, ring_kernel};
use ring_host::{
    Buffer, DeviceFault, Exit, Kernel, KernelHandle, LaunchConfig, Memory, Mode, RecvTimeoutError,
    Runtime,
};
use ring_tests::{LONG, WAYS, cpu, cpu_with, until};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

/// Blocks of most grids here.
const BLOCKS: usize = 3;

fn launched<K: Kernel>(host: &Runtime, launch: LaunchConfig) -> KernelHandle<K> {
    memory::launched(host, launch.blocks(BLOCKS as u32).payload_bytes(64))
}

/// A device with room for few grids, so that memory given back too early is soon allocated again.
fn small_device() -> Runtime {
    cpu_with(256 << 10, 256 << 10)
}

/// Takes the memory for buffers that is free, and more.
fn crowd(host: &Runtime) -> Vec<Buffer<u64>> {
    (0..70).map(|_| host.buffer(512).unwrap()).collect()
}

/// Nobody has written to any of those.
#[track_caller]
fn are_untouched(others: &[Buffer<u64>], what: &str) {
    let mut found = [0; 512];
    for other in others {
        other.download(0, &mut found, LONG).unwrap();
        assert_eq!(found, [0; 512], "{what}: another was lent its memory");
    }
}

/// Steps of a block's handler.
const STEPS: usize = 6;

/// What a block's handler does, step by step.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
struct Courses {
    steps: [[u8; STEPS]; BLOCKS],
    /// Whether a block catches what unwinds out of a step, and goes on.
    catches: [u8; BLOCKS],
    _unused: [u8; 3],
}

const RETURN: u8 = 0;
const SYNC: u8 = 1;
const SUM: u8 = 2;
const MAX: u8 = 3;
const PANIC: u8 = 4;
/// Of the block and its warps alone.
const WITHIN: u8 = 5;

/// One step; what it found, which is the number of blocks if they meet.
fn step(ctx: &GridContext<'_>, step: u8) -> u64 {
    let blocks = ctx.blocks() as u64;
    match step {
        SYNC => ctx.sync(),
        SUM => return ctx.sum(1),
        MAX => return ctx.max(ctx.block() as u64 + 1),
        PANIC => std::panic::resume_unwind(Box::new("on purpose")),
        _ => {
            ctx.sync_block();
            assert_eq!((ctx.sum_warp(1u64), ctx.sum_of(1u64, 32), ctx.sum_block(1u64)), (1, 1, 1));
            assert_eq!(ctx.shuffle(7u32, usize::MAX), 7);
        }
    }
    blocks
}

ring_kernel! {
    /// Each block does what its course says. Answers how many steps of block 0 ended, and how many of them found all blocks.
    struct Erring { name: "erring", }

    fn handle(ctx: &GridContext, request: &Courses, response: &Output<[u32; 2]>) {
        let (mut ended, mut found) = (0u32, 0u32);
        for what in request.steps[ctx.block()] {
            if what == RETURN {
                break;
            }
            let one = || step(ctx, what) == ctx.blocks() as u64;
            let has_found = match request.catches[ctx.block()] {
                0 => one(),
                _ => catch_unwind(AssertUnwindSafe(one)).unwrap_or(false),
            };
            ended += 1;
            found += u32::from(has_found);
        }
        if ctx.index() == 0 {
            assert!(response.set(0, 0, ended) && response.set(0, 1, found) && !response.set(0, 2, found));
        }
    }
}

/// Courses that mostly are the same in all blocks, but for a step or two.
fn courses() -> impl Strategy<Value = Courses> {
    let step = || 0..=WITHIN;
    let (of_all, others) = (prop::array::uniform6(step()), (0..BLOCKS, 0..STEPS, step()));
    let others = prop::collection::vec(others, 0..3);
    (of_all, others, prop::array::uniform3(0..2u8)).prop_map(|(of_all, others, catches)| {
        let mut steps = [of_all; BLOCKS];
        others.into_iter().for_each(|(block, k, step)| steps[block][k] = step);
        Courses { steps, catches, _unused: [0; 3] }
    })
}

impl Courses {
    /// The answer, if all blocks do the same and nothing unwinds.
    fn answer(&self) -> Option<[u32; 2]> {
        let same = self.steps == [self.steps[0]; BLOCKS];
        let done: Vec<u8> = self.steps[0].into_iter().take_while(|step| *step != RETURN).collect();
        let quiet = !done.contains(&PANIC);
        (same && quiet).then_some([done.len() as u32; 2])
    }
}

/// The answer to a message, or none where the grid is lost: by a panic, or since a barrier was missed.
fn outcome(kernel: &mut KernelHandle<Erring>, courses: Courses) -> Option<[u32; 2]> {
    kernel.send(courses, LONG).unwrap();
    match kernel.recv(LONG) {
        Ok(answer) => Some(answer),
        Err(RecvTimeoutError::Fault(
            DeviceFault::HandlerPanicked { channel: 0, .. }
            | DeviceFault::Left { channel: 0, exit: Exit::MissedBarrier, .. },
        )) => None,
        Err(other) => panic!("{other}: {courses:?}"),
    }
}

#[test]
fn whatever_its_blocks_do_a_grid_answers_or_ends() {
    let host = cpu();
    let config = Config { failure_persistence: None, ..Config::with_cases(150) };
    let cases = prop::collection::vec(courses(), 1..4);
    let run = TestRunner::new(config).run(&cases, |courses| {
        let (mut kernel, mut in_step) = (launched(&host, LaunchConfig::default()), true);
        for courses in courses {
            let (outcome, answer) = (outcome(&mut kernel, courses), courses.answer());
            // Blocks that have caught what ended one of them may be at different barriers from then on.
            in_step &= answer.is_some();
            if in_step {
                prop_assert_eq!(outcome, answer);
            }
            if outcome.is_none() {
                break;
            }
        }
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}

/// What [`Felling`]'s last block drops.
type Felled = (KernelHandle<Felling>, Buffer<u64>, Runtime);

static ON: Mutex<Option<Felled>> = Mutex::new(None);
/// Blocks that handle the message.
static BEGUN: AtomicU32 = AtomicU32::new(0);
static WAS_ALONE: Mutex<Option<bool>> = Mutex::new(None);

ring_kernel! {
    /// Its last block drops the kernel that all blocks run and the buffer that they view, and takes the memory that is free;
    /// then they meet again and again, and write to the buffer.
    struct Felling { name: "felling", uses_payload: true, }

    fn handle(ctx: &GridContext, request: &BufferRef<u64>, _response: &Output<[u32; 1]>) {
        let view = ctx.view(request).expect("a buffer");
        BEGUN.fetch_add(1, SeqCst);
        let is_last = ctx.block() + 1 == ctx.blocks();
        let others = is_last.then(|| {
            let (kernel, buffer, host) = until("the kernel", || ON.lock().unwrap().take());
            drop((kernel, buffer));
            assert_eq!(host.reclaim_buffers(LONG), Ok(1), "it is viewed");
            (host.clone(), crowd(&host), fill(&host))
        });
        for round in 0..100 {
            assert_eq!(ctx.sum(1u64), ctx.blocks() as u64);
            assert!(ctx.each(view.len()).all(|i| view.set(i, round)));
            ctx.sync();
            assert!(view.iter().all(|found| found == round), "another's memory");
            ctx.sync();
        }
        if let Some((host, buffers, kernels)) = others {
            let mut found = [0; 512];
            let is_zero = |buffer: &Buffer<u64>| {
                buffer.download(0, &mut found, LONG).unwrap();
                found == [0; 512]
            };
            let was_alone = buffers.iter().all(is_zero) && !kernels.is_empty();
            assert_eq!(host.reclaim_buffers(LONG), Ok(1), "it is viewed");
            *WAS_ALONE.lock().unwrap() = Some(was_alone);
        }
    }
}

#[test]
fn a_grid_whose_handler_drops_its_kernel_keeps_its_memory() {
    for (mode, memory) in WAYS {
        let host = small_device();
        let launch = LaunchConfig::default().mode(mode).memory(memory);
        let mut kernel = launched::<Felling>(&host, launch);
        let buffer = host.buffer(512).unwrap();
        BEGUN.store(0, SeqCst);
        kernel.send(buffer.reference(), LONG).unwrap();
        until("handlers", || {
            assert!(kernel.try_recv().is_err()); // drives it
            (BEGUN.load(SeqCst) == BLOCKS as u32).then_some(())
        });
        *ON.lock().unwrap() = Some((kernel, buffer, host.clone()));
        let was_alone = until("the handler's end", || WAS_ALONE.lock().unwrap().take());
        assert!(was_alone, "{mode} in {memory}: another was lent its memory");
        until("the buffer's memory is given back", || {
            drop(host.launch::<Erring>(LaunchConfig::default().blocks(1))); // looks who has left
            (host.reclaim_buffers(LONG) == Ok(0)).then_some(())
        });
    }
}

static HAS_VIEW: AtomicBool = AtomicBool::new(false);
static MAY_WRITE: AtomicBool = AtomicBool::new(false);
static HAS_WRITTEN: AtomicBool = AtomicBool::new(false);
static IS_PAST: AtomicBool = AtomicBool::new(false);

ring_kernel! {
    /// Block 0 panics while the last one views a buffer, which it writes to later.
    struct Lagging { name: "lagging", uses_payload: true, }

    fn handle(ctx: &GridContext, request: &BufferRef<u64>, _response: &Output<[u32; 1]>) {
        let view = ctx.view(request).expect("a buffer");
        if ctx.block() == 0 {
            until("a view", || HAS_VIEW.load(SeqCst).then_some(()));
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        if ctx.block() + 1 == ctx.blocks() {
            HAS_VIEW.store(true, SeqCst);
            until("the word to write", || MAY_WRITE.load(SeqCst).then_some(()));
            assert!((0..view.len()).all(|i| view.set(i, u64::MAX)));
            HAS_WRITTEN.store(true, SeqCst);
        }
        ctx.sync();
        IS_PAST.store(true, SeqCst);
    }
}

#[test]
fn a_lost_grid_keeps_its_memory_until_its_last_block_has_left() {
    // Where nothing is copied beside a launch, the host is told when all blocks have left.
    for (mode, memory) in WAYS.into_iter().filter(|(_, memory)| *memory != Memory::StagedSync) {
        for drops in [false, true] {
            let host = small_device();
            let launch = LaunchConfig::default().mode(mode).memory(memory);
            let mut kernel = launched::<Lagging>(&host, launch);
            let buffer = host.buffer::<u64>(512).unwrap();
            for word in [&HAS_VIEW, &MAY_WRITE, &HAS_WRITTEN] {
                word.store(false, SeqCst);
            }
            kernel.send(buffer.reference(), LONG).unwrap();
            let end = kernel.recv(LONG).unwrap_err();
            let is_panic = matches!(
                end,
                RecvTimeoutError::Fault(DeviceFault::HandlerPanicked { channel: 0, .. })
            );
            assert!(is_panic, "{mode} in {memory}: {end}");
            drop(buffer);
            let kernel = (!drops).then_some(kernel);
            assert_eq!(host.reclaim_buffers(LONG), Ok(1), "{mode} in {memory}: it is viewed");
            let (others, kernels) = (crowd(&host), fill(&host));
            MAY_WRITE.store(true, SeqCst);
            until("the last block writes", || HAS_WRITTEN.load(SeqCst).then_some(()));
            are_untouched(&others, &format!("{mode} in {memory}"));
            drop((kernels, others, kernel));
            until("the buffers' memory is given back", || {
                drop(host.launch::<Erring>(LaunchConfig::default().blocks(1)));
                (host.reclaim_buffers(LONG) == Ok(0)).then_some(())
            });
            assert!(!IS_PAST.load(SeqCst), "a block of a lost grid went past a barrier");
        }
    }
}

/// Of one test at a time.
static LINGERS: Mutex<()> = Mutex::new(());
static MAY_END: AtomicBool = AtomicBool::new(false);
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

ring_kernel! {
    /// Block 0 answers, and the last block writes to the buffer behind that, when it may.
    struct Lingering {
        name: "lingering",
        first_block_answers: true,
        uses_payload: true,
    }

    fn handle(ctx: &GridContext, request: &BufferRef<u64>, _response: &Output<[u32; 1]>) {
        let view = ctx.view(request);
        ctx.sync();
        if ctx.block() + 1 == ctx.blocks()
            && let Some(view) = view
        {
            until("the word to write", || MAY_END.load(SeqCst).then_some(()));
            assert!((0..view.len()).all(|i| view.set(i, u64::MAX)));
            HAS_ENDED.store(true, SeqCst);
        }
    }
}

fn linger(host: &Runtime, kernel: &mut KernelHandle<Lingering>, may_end: bool) {
    let buffer = host.buffer::<u64>(512).unwrap();
    MAY_END.store(may_end, SeqCst);
    HAS_ENDED.store(false, SeqCst);
    kernel.send(buffer.reference(), LONG).unwrap();
    kernel.recv(LONG).unwrap();
}

#[test]
fn a_view_behind_an_answer_keeps_its_memory() {
    let _alone = LINGERS.lock();
    for deactivates in [false, true] {
        let host = small_device();
        // In the other modes and memories this message is one of a batch, which is answered when all blocks have returned.
        let launch = LaunchConfig::default().mode(Mode::Persistent).memory(Memory::Mapped);
        let mut kernel = launched::<Lingering>(&host, launch);
        linger(&host, &mut kernel, false);
        let others = crowd(&host);
        assert_eq!(host.reclaim_buffers(LONG), Ok(1), "it is viewed");
        MAY_END.store(true, SeqCst);
        until("the last block writes", || HAS_ENDED.load(SeqCst).then_some(()));
        are_untouched(&others, "behind an answer");
        if deactivates {
            kernel.deactivate(LONG).unwrap();
        }
        // The reference is refused when one more is answered, and the memory is free behind another one.
        for left in [1, 0].into_iter().filter(|_| !deactivates) {
            assert_eq!(host.reclaim_buffers(LONG), Ok(1));
            kernel.send(BufferRef::zeroed(), LONG).unwrap();
            kernel.recv(LONG).unwrap();
            assert_eq!(host.reclaim_buffers(LONG), Ok(left));
        }
        assert_eq!(host.reclaim_buffers(LONG), Ok(0));
    }
}

#[test]
fn a_kernel_between_launches_holds_no_buffer() {
    let _alone = LINGERS.lock();
    for (mode, memory) in WAYS.into_iter().filter(|(mode, _)| *mode != Mode::Persistent) {
        let host = small_device();
        let launch = LaunchConfig::default().mode(mode).memory(memory);
        let mut kernel = launched::<Lingering>(&host, launch);
        linger(&host, &mut kernel, true);
        until("the buffer's memory is given back", || {
            assert!(kernel.try_recv().is_err()); // drives it
            (host.reclaim_buffers(LONG) == Ok(0)).then_some(())
        });
        assert!(HAS_ENDED.load(SeqCst), "{mode} in {memory}");
    }
}
