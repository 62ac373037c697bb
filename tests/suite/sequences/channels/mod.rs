//! Kernels of one channel and of several: all that can be done to a kernel and to its channels, wherever those
//! are. Each accepted message is answered once and in order, or counted as unhandled in the end.

mod acts;

pub use acts::{Act, acts};

use crate::sequences::ends::{Ends, Flow};
use crate::sequences::launches::{Launched, launch, refused};
use crate::sequences::life::Life;
use crate::sequences::platforms::Platform;
use crate::sequences::threads::{Pair, together};
use crate::sequences::track::{Step, Track};
use ring_host::kernels::Echo;
use ring_host::{Channel, ChannelError, KernelHandle, Mode, Receiver, Runtime, Sender, State};
use std::time::Duration;

/// Where a channel is.
enum Place {
    Kernel,
    Channel(Channel<Echo>),
    Halves(Sender<Echo>, Receiver<Echo>),
    Flow(Flow),
    /// Dropped with the kernel.
    Gone,
}

/// A kernel, and what must be true of it.
struct Model {
    /// None once it was dropped.
    kernel: Option<KernelHandle<Echo>>,
    channels: Vec<(Track, Place)>,
    life: Life,
}

/// The calls of channel `track`, in one of the ways that there are where it is.
fn with_ends(
    kernel: &mut Option<KernelHandle<Echo>>,
    (track, place): &mut (Track, Place),
    by: u32,
    then: impl FnOnce(&mut Track, &mut dyn Ends),
) {
    match place {
        Place::Gone => {}
        Place::Flow(flow) => then(track, flow),
        Place::Halves(sender, receiver) => then(track, &mut (sender, receiver)),
        Place::Channel(channel) if by > 0 => then(track, &mut channel.split()),
        Place::Channel(channel) => then(track, channel),
        Place::Kernel => {
            let Some(kernel) = kernel else { return };
            match by {
                0 if track.channel == 0 => then(track, kernel),
                0 | 1 => then(track, kernel.channel(track.channel).unwrap()),
                _ => then(track, &mut kernel.channel(track.channel).unwrap().split()),
            }
        }
    }
}

impl Model {
    fn launch(platform: &Platform, host: &Runtime, launched: &Launched) -> Option<Model> {
        let kernel = launch::<Echo>(platform, host, launched)?;
        let channels = (0..launched.channels)
            .map(|channel| (Track::new(channel, launched.capacity), Place::Kernel))
            .collect();
        Some(Model { kernel: Some(kernel), channels, life: Life::new(platform.breaks) })
    }

    fn at(
        &mut self,
        channel: usize,
        by: u32,
        then: impl FnOnce(&mut Life, &mut Track, &mut dyn Ends),
    ) {
        let (kernel, life) = (&mut self.kernel, &mut self.life);
        with_ends(kernel, &mut self.channels[channel], by, |track, ends| then(life, track, ends));
    }

    /// On every channel that is not gone.
    fn at_each(&mut self, then: impl Fn(&mut Life, &mut Track, &mut dyn Ends)) {
        (0..self.channels.len()).for_each(|channel| self.at(channel, 1, &then));
    }

    fn nth(&self, channel: u32) -> usize {
        channel as usize % self.channels.len()
    }

    fn take_out(&mut self, channel: usize) {
        let Some(kernel) = &mut self.kernel else { return };
        let place = &mut self.channels[channel].1;
        match (kernel.take_channel(channel as u32), &place) {
            (Ok(taken), Place::Kernel) => *place = Place::Channel(taken),
            (Err(ChannelError::Taken(taken)), _) => {
                assert!(taken == channel as u32 && !matches!(place, Place::Kernel));
                let again = kernel.channel(taken).map(drop);
                assert_eq!(again, Err(ChannelError::Taken(taken)));
            }
            (found, _) => panic!("{:?}", found.map(drop)),
        }
    }

    fn split(&mut self, channel: usize) {
        let place = &mut self.channels[channel].1;
        *place = match std::mem::replace(place, Place::Gone) {
            Place::Channel(channel) => {
                let (sender, receiver) = channel.into_split();
                Place::Halves(sender, receiver)
            }
            other => other,
        };
    }

    fn flow(&mut self, channel: usize) {
        self.split(channel);
        let place = &mut self.channels[channel].1;
        *place = match std::mem::replace(place, Place::Gone) {
            Place::Halves(sender, receiver) => Place::Flow(Flow::of(sender, receiver)),
            Place::Flow(flow) => {
                let (sender, receiver) = flow.into_halves();
                Place::Halves(sender, receiver)
            }
            other => other,
        };
    }

    /// Threads for the halves of that channel; or of all that were taken out, which leave the kernel free.
    fn threads(&mut self, only: Option<usize>, n: u64, pauses: u32) {
        if !self.life.is_active() {
            return;
        }
        let mut pairs: Vec<Pair<'_>> = Vec::new();
        let mut kernel = self.kernel.as_mut();
        for (channel, (track, place)) in self.channels.iter_mut().enumerate() {
            let halves = match place {
                _ if only.is_some_and(|only| only != channel) => continue,
                Place::Channel(channel) => channel.split(),
                Place::Halves(sender, receiver) => (sender, receiver),
                Place::Kernel if only.is_some() => {
                    let Some(kernel) = kernel.take() else { return };
                    kernel.channel(track.channel).unwrap().split()
                }
                _ => continue,
            };
            pairs.push((halves.0, halves.1, track));
        }
        let pauses = kernel.filter(|_| only.is_none() && pauses > 0).map(|kernel| (kernel, pauses));
        together(pairs, n, &mut self.life, pauses);
    }

    /// What can be read at any time, and what it must say.
    fn look(&mut self) {
        let Some(kernel) = &self.kernel else { return };
        self.life.look(kernel);
        let channels = kernel.channels();
        assert_eq!((channels as usize, kernel.payload_bytes()), (self.channels.len(), 0));
        assert_eq!(
            kernel.channel_telemetry(channels),
            Err(ChannelError::OutOfRange { channel: channels, channels })
        );
        let (telemetry, summary) = (kernel.telemetry(), kernel.summary());
        let mut processed = 0;
        for (track, _) in &self.channels {
            let channel = kernel.channel_telemetry(track.channel).unwrap();
            assert!(channel.processed <= track.sent && channel.handler.count() <= track.sent);
            if self.life.settled && !self.life.is_active() {
                assert!(channel.processed >= track.received, "more was answered than handled");
            }
            processed += channel.processed;
        }
        let sent: u64 = self.channels.iter().map(|(track, _)| track.sent).sum();
        assert!(telemetry.processed <= processed, "a count went back");
        assert_eq!((telemetry.errors, telemetry.refused), (0, 0));
        if self.life.settled && !self.life.is_active() {
            assert_eq!(summary.processed + summary.unhandled, sent, "{summary:?}");
        }
    }

    /// What was answered is received, then the end. The channels' counts are exact then.
    fn end(&mut self) {
        if self.life.is_active() {
            self.at_each(|life, track, ends| track.receive_all(life, ends));
        }
        let handled = |kernel: &KernelHandle<Echo>, channel| {
            kernel.channel_telemetry(channel).unwrap().processed
        };
        let mut summary = None;
        if let Some(kernel) = &mut self.kernel {
            summary = self.life.end(kernel);
        }
        // Whether each receiver is at its end, and what its channel has handled, before the rest is received. A
        // channel of an emulated device that is lost goes on all the same.
        let before: Vec<_> = self
            .kernel
            .iter()
            .flat_map(|kernel| {
                self.channels.iter().map(|(track, _)| (track.over, handled(kernel, track.channel)))
            })
            .collect();
        self.at_each(|life, track, ends| {
            track.step(life, ends, Step::Send(1));
            track.receive_to_the_end(life, ends);
            track.step(life, ends, Step::ReceiveEach(0));
            track.step(life, ends, Step::Receive(1));
        });
        if let Some(summary) = summary {
            let all = |of: fn(&Track) -> u64| self.channels.iter().map(move |(track, _)| of(track));
            let before = before.into_iter().map(|(_, handled)| handled);
            assert!(before.eq(all(|track| track.received)), "what was handled was received");
            assert_eq!(summary.processed, all(|track| track.received).sum::<u64>());
            let sent: u64 = all(|track| track.sent).sum();
            assert_eq!(summary.processed + summary.unhandled, sent, "and the rest is counted");
        } else {
            // What it had counted before it was lost, it had answered.
            for ((track, place), (over, handled)) in self.channels.iter().zip(before) {
                let gone = over || matches!(place, Place::Gone);
                assert!(gone || track.received >= handled, "{handled} handled");
            }
        }
        self.look();
    }

    fn act(&mut self, host: &Runtime, launched: &Launched, act: &Act) {
        match *act {
            Act::At(channel, by, step) => {
                self.at(self.nth(channel), by, |life, track, ends| track.step(life, ends, step));
            }
            Act::TakeOut(channel) => self.take_out(self.nth(channel)),
            Act::Split(channel) => self.split(self.nth(channel)),
            Act::Flow(channel) => self.flow(self.nth(channel)),
            Act::Threads(channel, n) => self.threads(Some(self.nth(channel)), n, 0),
            Act::AllThreads(n, pauses) => self.threads(None, n, pauses),
            Act::Order(order) => {
                if let Some(kernel) = &mut self.kernel {
                    self.life.order(kernel, order);
                }
            }
            Act::NoChannel(beyond) => {
                let Some(kernel) = &mut self.kernel else { return };
                let (channel, channels) = (kernel.channels() + beyond, kernel.channels());
                let none = Err(ChannelError::OutOfRange { channel, channels });
                assert_eq!(kernel.channel(channel).map(drop), none);
                assert_eq!(kernel.take_channel(channel).map(drop), none);
            }
            Act::Look => self.look(),
            Act::Rest(in_time) => self.rest(in_time),
            Act::Pause(us) => std::thread::sleep(Duration::from_micros(us)),
            Act::Refused(flaw) => refused::<Echo>(host, launched, flaw),
            Act::Drop => self.drop_kernel(),
            Act::Terminate => unreachable!("done by the caller"),
        }
    }

    /// With answers left in a full ring it would rest only to be launched again.
    fn rest(&mut self, in_time: bool) {
        let launched_anew = |kernel: &KernelHandle<Echo>| kernel.runs_as().0 != Mode::Persistent;
        if in_time && self.kernel.as_ref().is_some_and(launched_anew) {
            self.at_each(|life, track, ends| track.receive_all(life, ends));
        }
        if let Some(kernel) = &mut self.kernel {
            self.life.rest(kernel, in_time);
        }
    }

    fn drop_kernel(&mut self) {
        if self.kernel.take().is_none() {
            return;
        }
        if self.life.lost.is_none() {
            (self.life.state, self.life.settled) = (State::Terminated, false);
        }
        let gone = |place: &Place| matches!(place, Place::Kernel);
        self.channels.iter_mut().filter(|(_, place)| gone(place)).for_each(|(_, place)| {
            *place = Place::Gone;
        });
    }
}

/// Plays one sequence, from launch to the last end.
pub fn play(platform: &Platform, host: &Runtime, launched: &Launched, acts: &[Act]) {
    let Some(mut model) = Model::launch(platform, host, launched) else { return };
    for act in acts {
        if matches!(act, Act::Terminate) {
            model.end();
            let Some(again) = Model::launch(platform, host, launched) else { return };
            model = again;
        } else {
            model.act(host, launched, act);
        }
    }
    model.end();
}
