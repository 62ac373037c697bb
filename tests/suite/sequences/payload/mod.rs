//! The payload arena, and vectors that are added through it: what is written is read again, what is not
//! inside is refused, and neither stops messages.

mod acts;

pub use acts::{Act, acts, arenas};

use crate::sequences::launches::{Launched, launch};
use crate::sequences::life::Life;
use crate::sequences::platforms::Platform;
use acts::Run;
use ring_host::error::DriverReason;
use ring_host::kernels::vector_add::AddError;
use ring_host::kernels::{
    INLINE_ELEMENTS, VectorAdd, VectorAddRequest, VectorAddResponse, VectorError, status,
};
use ring_host::{
    Channel, ChannelError, Kernel, KernelHandle, LaunchConfig, Memory, PayloadError, PayloadMemory,
    RecvTimeoutError, Runtime, SendTimeoutError, State,
};
use ring_tests::LONG;
use std::time::Duration;

/// A kernel, and what must be true of it and its arena.
struct Model {
    kernel: KernelHandle<VectorAdd>,
    channel: Option<Channel<VectorAdd>>,
    life: Life,
    /// The words of the arena, as far as they are known.
    words: Vec<Option<u32>>,
    bytes: usize,
    /// Requests whose answers were left.
    left: u64,
    refused: u64,
}

/// Word `k` of a run made from `of`: small numbers, which add up exactly.
fn word(of: u32, k: usize) -> f32 {
    (of.wrapping_add(k as u32).wrapping_mul(0x9e37_79b9) >> 16) as f32
}

fn run(of: u32, n: usize) -> Vec<f32> {
    (0..n).map(|k| word(of, k)).collect()
}

impl Model {
    fn launch(
        platform: &Platform,
        host: &Runtime,
        launched: &Launched,
        (bytes, memory): (usize, PayloadMemory),
    ) -> Option<Model> {
        let with = |launch: LaunchConfig| launch.payload_bytes(bytes).payload_memory(memory);
        let launched = launched.clone().with(|launch| with(launch).channels(1));
        let kernel = launch::<VectorAdd>(platform, host, &Launched { channels: 1, ..launched })?;
        assert_eq!(kernel.payload_bytes(), bytes);
        let is_small = bytes <= PayloadMemory::AUTO_MAPPED && memory == PayloadMemory::Auto;
        let mapped = is_small && kernel.selection().memory == Memory::Mapped;
        assert_eq!(kernel.payload_memory() == PayloadMemory::Mapped, mapped, "{bytes} bytes");
        let words = vec![None; bytes / 4];
        let life = Life::new(platform.breaks);
        Some(Model { kernel, channel: None, life, words, bytes, left: 0, refused: 0 })
    }

    /// Whether the copy of a run was made. It is refused for the right reason, or may have failed for
    /// want of time or on a platform that breaks.
    fn copied(&mut self, run: Run, in_time: bool, done: Result<(), PayloadError>) -> bool {
        let (offset, bytes, arena) = (run.0, 4 * run.1, self.bytes);
        let inside = offset.checked_add(bytes as u64).is_some_and(|end| end <= arena as u64);
        let expected = match () {
            () if !inside => {
                let kernel = VectorAdd::NAME;
                Err(PayloadError::OutOfBounds { kernel, offset, bytes, arena })
            }
            () if !offset.is_multiple_of(4) => Err(PayloadError::Unaligned { offset }),
            () => Ok(()),
        };
        match done {
            Err(PayloadError::Fault(fault)) => self.life.lose(fault),
            Err(PayloadError::Timeout { .. }) if !in_time => assert_eq!(expected, Ok(())),
            Err(PayloadError::Driver(error)) if self.life.may_break() => {
                assert!(matches!(error.reason, DriverReason::Emulated(_)), "{error}");
            }
            done => {
                self.life.is_kept();
                assert_eq!(done, expected);
                return done.is_ok();
            }
        }
        false
    }

    fn at(&mut self, (offset, n): Run) -> Option<&mut [Option<u32>]> {
        let first = usize::try_from(offset / 4).ok().filter(|_| offset.is_multiple_of(4))?;
        self.words.get_mut(first..first.checked_add(n)?)
    }

    /// The arena's words of that run are these, or unknown.
    fn keep(&mut self, run: Run, words: Option<&[f32]>) {
        for (k, place) in self.at(run).unwrap_or_default().iter_mut().enumerate() {
            *place = words.map(|words| words[k].to_bits());
        }
    }

    fn write(&mut self, run: Run, of: u32, in_time: bool) {
        let words = self::run(of, run.1);
        let limit = if in_time { LONG } else { Duration::ZERO };
        let done = match of % 2 {
            0 => self.kernel.write_payload(run.0, &words, limit),
            _ => {
                let bits: Vec<u32> = words.iter().map(|word| word.to_bits()).collect();
                self.kernel.write_payload(run.0, &bits, limit)
            }
        };
        let written = self.copied(run, in_time, done);
        self.keep(run, written.then_some(&words));
    }

    fn read(&mut self, run: Run, in_time: bool) {
        let mut words = vec![0u32; run.1];
        let limit = if in_time { LONG } else { Duration::ZERO };
        let done = self.kernel.read_payload(run.0, &mut words, limit);
        if self.copied(run, in_time, done) {
            let known = self.at(run).expect("it was inside");
            for (k, (found, known)) in words.iter().zip(known).enumerate() {
                assert!(known.is_none_or(|known| known == *found), "word {k} behind {}", run.0);
            }
        }
    }

    /// The words that adding `len` elements in the arena makes, as far as they are known.
    fn add_in_arena(&mut self, offset: u64, len: usize) -> bool {
        let Some(words) = self.at((offset, 3 * len)) else { return false };
        for k in 0..len {
            let sum = words[k].zip(words[len + k]);
            words[2 * len + k] =
                sum.map(|(a, b)| (f32::from_bits(a) + f32::from_bits(b)).to_bits());
        }
        true
    }

    fn add(&mut self, [n, m, room]: [usize; 3], of: u32) {
        if self.left > 0 && !self.life.is_active() {
            return; // it would wait for answers that do not come
        }
        let (a, b, mut c) = (run(of, n), run(!of, m), vec![0.0; room]);
        let limit = INLINE_ELEMENTS.max(self.bytes / 12);
        let expected = match () {
            () if n != m => Err(AddError::Vectors(VectorError::Unequal { a: n, b: m })),
            () if n == 0 => Err(AddError::Vectors(VectorError::Empty)),
            () if n > limit => Err(AddError::Vectors(VectorError::TooLong { len: n, limit })),
            () if room != n => Err(AddError::Sum { c: room, len: n }),
            () if self.channel.is_some() => Err(AddError::Channel(ChannelError::Taken(0))),
            () if !self.life.is_active() => Err(AddError::Send(self.refusal())),
            () => Ok(()),
        };
        let done = self.kernel.add(&a, &b, &mut c, LONG);
        let in_arena = n > INLINE_ELEMENTS;
        let tried = matches!(expected, Ok(()) | Err(AddError::Send(_)));
        if tried {
            self.left = 0;
        }
        // Where the vectors lie: at multiples of 32 bytes, if there is room.
        let whole = n.next_multiple_of(8);
        let apart = if 12 * whole <= self.bytes { whole } else { n };
        if tried && in_arena {
            self.keep((0, n), None);
            self.keep((4 * apart as u64, n), None);
            self.keep((8 * apart as u64, apart), None);
        }
        match done {
            Err(
                AddError::Payload(PayloadError::Fault(fault))
                | AddError::Send(SendTimeoutError::Fault { fault, .. })
                | AddError::Recv(RecvTimeoutError::Fault(fault)),
            ) => return self.life.lose(fault),
            Err(AddError::Payload(PayloadError::Driver(error))) if self.life.may_break() => {
                return assert!(matches!(error.reason, DriverReason::Emulated(_)), "{error}");
            }
            // What is wrong with the vectors is reported first.
            done if self.life.lost.is_some() => return assert!(done.is_err(), "it is lost"),
            done => assert_eq!(done, expected),
        }
        if tried && in_arena {
            self.keep((0, n), Some(&a));
            self.keep((4 * apart as u64, n), Some(&b));
        }
        if expected.is_ok() {
            assert!((0..n).all(|k| c[k] == a[k] + b[k]), "{n} elements");
            if in_arena {
                self.add_in_arena(0, apart);
            }
        }
    }

    /// Why a kernel that is not active takes no message.
    fn refusal(&self) -> SendTimeoutError<()> {
        let (message, kernel) = ((), VectorAdd::NAME);
        match self.life.state {
            State::Terminated => SendTimeoutError::Closed { message, kernel },
            state => SendTimeoutError::NotActive { message, kernel, state },
        }
    }

    /// Sends a request; whether it was accepted.
    fn send(&mut self, request: VectorAddRequest) -> bool {
        let sent = match &mut self.channel {
            Some(channel) => channel.send(request, LONG),
            None => self.kernel.send(request, LONG),
        };
        match sent {
            Ok(()) => self.life.is_kept(),
            Err(error) => {
                self.life.refused(VectorAdd::NAME, error);
                return false;
            }
        }
        assert!(self.life.is_active(), "accepted although {:?}", self.life.state);
        true
    }

    fn receive(&mut self) -> Option<VectorAddResponse> {
        let received = match &mut self.channel {
            Some(channel) => channel.recv(LONG),
            None => self.kernel.recv(LONG),
        };
        match received {
            Ok(response) => Some(response),
            Err(RecvTimeoutError::Fault(fault)) => {
                self.life.lose(fault);
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// A request as one may make it, also a wrong one, and its answer behind those that were left.
    fn request(&mut self, len: u32, in_arena: bool, offset: u64) {
        let mut request = VectorAddRequest::in_payload(len, offset);
        request.in_payload = u32::from(in_arena);
        if !self.send(request) {
            return;
        }
        let expected = match (len, in_arena) {
            (0, _) => status::BAD_LENGTH,
            (_, true) if self.add_in_arena(offset, len as usize) => status::PAYLOAD,
            (_, true) => status::BAD_PAYLOAD,
            (_, false) if len as usize > INLINE_ELEMENTS => status::BAD_LENGTH,
            (_, false) => status::INLINE,
        };
        self.refused += u64::from(matches!(expected, status::BAD_LENGTH | status::BAD_PAYLOAD));
        for _ in 0..std::mem::take(&mut self.left) {
            let Some(_) = self.receive() else { return };
        }
        let Some(response) = self.receive() else { return };
        assert_eq!((response.status, response.len), (expected, len));
        assert!(response.c.iter().all(|sum| *sum == 0.0), "what nobody wrote is zero");
    }

    fn look(&mut self) {
        self.life.look(&self.kernel);
        let telemetry = self.kernel.telemetry();
        assert!(telemetry.errors == 0 && telemetry.refused <= self.refused);
        if self.life.settled && !self.life.is_active() {
            assert_eq!(telemetry.refused, self.refused, "each refusal is counted");
        }
    }

    fn end(&mut self) {
        self.life.end(&mut self.kernel);
        self.look();
        // The arena stays as it was.
        self.read((0, self.words.len()), true);
        assert!(self.life.lost.is_some() || self.life.state == State::Terminated);
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Write(run, of, in_time) => self.write(run, of, in_time),
            Act::Read(run, in_time) => self.read(run, in_time),
            Act::Add(lengths, of) => self.add(lengths, of),
            Act::Request(len, in_arena, offset) => self.request(len, in_arena, offset),
            Act::Leave(len) => {
                let mut request = VectorAddRequest::in_payload(len.min(25), 0);
                request.in_payload = 0;
                // One more than the ring holds would have to wait for its answer.
                if self.left == 0 && self.send(request) {
                    self.left = 1;
                }
            }
            Act::TakeChannel => match self.kernel.take_channel(0) {
                Ok(channel) => assert!(self.channel.replace(channel).is_none()),
                Err(error) => assert!(error == ChannelError::Taken(0) && self.channel.is_some()),
            },
            Act::Order(order) => self.life.order(&mut self.kernel, order),
            Act::Look => self.look(),
            Act::Terminate => unreachable!("done by the caller"),
        }
    }
}

/// Plays one sequence with an arena of so many bytes.
pub fn play(
    platform: &Platform,
    host: &Runtime,
    (launched, arena): (&Launched, (usize, PayloadMemory)),
    acts: &[Act],
) {
    let Some(mut model) = Model::launch(platform, host, launched, arena) else { return };
    for act in acts {
        if matches!(act, Act::Terminate) {
            model.end();
            let Some(again) = Model::launch(platform, host, launched, arena) else { return };
            model = again;
        } else {
            model.act(act);
        }
    }
    model.end();
}
