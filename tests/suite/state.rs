//! What a kernel of scope `InOrder` keeps: exact and in order in every mode and memory, over
//! deactivation and relaunches, a channel's own, and the host's only while no message is taken.

use crate::faults::on_each_device_alone;
use ring_example_kernels::{Book, BookState, Fill, Order, TICKS};
use ring_host::{
    Budgets, ChannelError, ControlError, KernelHandle, LaunchConfig, Mode, Runtime, StateError,
    TryRecvError,
};
use ring_tests::kernels::of_examples;
use ring_tests::latch::Latch;
use ring_tests::{LONG, Progress, WAYS, cpu, until};
use std::collections::BTreeMap;
use std::time::Duration;

/// A book as one would write it first: a map of prices for each side.
#[derive(Default)]
pub(crate) struct Naive {
    bids: BTreeMap<u32, u32>,
    asks: BTreeMap<u32, u32>,
    traded: u64,
}

impl Naive {
    pub(crate) fn take(&mut self, order: Order) -> Fill {
        let (mut left, mut cost) = (order.quantity, 0);
        loop {
            let best = match order.side {
                0 => self.asks.first_entry().filter(|best| *best.key() <= order.price),
                _ => self.bids.last_entry().filter(|best| *best.key() >= order.price),
            };
            let Some(mut best) = best.filter(|_| left > 0) else { break };
            let (price, traded) = (*best.key(), left.min(*best.get()));
            (left, cost) = (left - traded, cost + traded * price);
            *best.get_mut() -= traded;
            if *best.get() == 0 {
                best.remove();
            }
        }
        if left > 0 {
            let own = if order.side == 0 { &mut self.bids } else { &mut self.asks };
            *own.entry(order.price).or_default() += left;
        }
        self.traded += u64::from(order.quantity - left);
        let none = TICKS as u32;
        let bid = self.bids.last_key_value().map_or(none, |(price, _)| *price);
        let ask = self.asks.first_key_value().map_or(none, |(price, _)| *price);
        Fill { filled: order.quantity - left, cost, bid, ask }
    }

    pub(crate) fn is(&self, state: &BookState) {
        let level = |map: &BTreeMap<u32, u32>, k: usize| map.get(&(k as u32)).copied().unwrap_or(0);
        for k in 0..TICKS {
            let found = (state.bids[k], state.asks[k]);
            assert_eq!(found, (level(&self.bids, k), level(&self.asks, k)), "at {k}");
        }
        assert_eq!(state.traded, self.traded);
    }
}

/// The `n`th order of a channel.
pub(crate) fn order(channel: u32, n: u64) -> Order {
    let random = (n + 1 + (u64::from(channel) << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 17;
    let price = 100 + (random >> 1) as u32 % 50;
    Order { side: random as u32 & 1, price, quantity: (random >> 9) as u32 % 40, reserved: 0 }
}

fn launched(host: &Runtime, launch: LaunchConfig) -> KernelHandle<Book> {
    host.launch::<Book>(launch.kernels(of_examples::<Book>())).unwrap()
}

/// Sends orders `from..to` on a channel, in batches and one by one, and compares every answer.
fn trade(kernel: &mut KernelHandle<Book>, channel: u32, naive: &mut Naive, from: u64, to: u64) {
    let (mut sent, mut received, mut progress) = (from, from, Progress::new());
    let channel_of = kernel.channel(channel).unwrap();
    while received < to {
        let most = if sent % 3 == 0 { 1 } else { 1 + sent as usize % 20 };
        let most = most.min((to - sent) as usize);
        sent += channel_of.try_send_each(most, |k| order(channel, sent + k as u64)).unwrap() as u64;
        channel_of
            .try_recv_each(64, |fill| {
                assert_eq!(*fill, naive.take(order(channel, received)), "order {received}");
                received += 1;
            })
            .unwrap();
        progress.is_at(received, format_args!("more than {received} of {to}"));
    }
}

#[test]
fn it_is_exact_in_every_mode_and_memory() {
    on_each_device_alone(here!("it_is_exact_in_every_mode_and_memory"), |host| {
        for (mode, memory) in WAYS {
            let budgets = Budgets { idle: Duration::from_micros(50), ..Budgets::default() };
            let launch =
                LaunchConfig::default().mode(mode).memory(memory).budgets(budgets).channels(2);
            let mut kernel = launched(host, launch.capacity(64));
            let mut books = [Naive::default(), Naive::default()];
            kernel.activate(LONG).unwrap();
            for (channel, book) in (0..).zip(&mut books) {
                trade(&mut kernel, channel, book, 0, 1500);
            }
            kernel.deactivate(LONG).unwrap();
            for (channel, book) in (0..).zip(&books) {
                book.is(&kernel.read_state(channel, LONG).unwrap());
            }
            kernel.activate(LONG).unwrap();
            trade(&mut kernel, 1, &mut books[1], 1500, 2000);
            kernel.terminate(LONG).unwrap();
            for (channel, book) in (0..).zip(&books) {
                book.is(&kernel.read_state(channel, LONG).unwrap());
            }
        }
    });
}

#[test]
fn the_host_writes_it_while_no_message_is_taken() {
    on_each_device_alone(here!("the_host_writes_it_while_no_message_is_taken"), |host| {
        let mut kernel = launched(host, LaunchConfig::default().capacity(64));
        let mut state: BookState = bytemuck::Zeroable::zeroed();
        state.best_ask = TICKS as u32 - 3;
        for offered in [7, 9] {
            // Also in a kernel that has read it before: what a multiprocessor has cached is old.
            state.asks[3] = offered;
            kernel.write_state(0, &state, LONG).unwrap();
            assert_eq!(kernel.read_state(0, LONG).unwrap(), state);
            kernel.activate(LONG).unwrap();
            kernel.send(Order { side: 0, price: 3, quantity: 100, reserved: 0 }, LONG).unwrap();
            assert_eq!(kernel.recv(LONG).unwrap().filled, offered);
            kernel.deactivate(LONG).unwrap();
        }
        kernel.terminate(LONG).unwrap();
        assert_eq!(kernel.read_state(0, LONG).unwrap().asks[3], 0);
        drop(kernel);
        // The next kernel in that memory begins with nothing.
        let mut kernel = launched(host, LaunchConfig::default().capacity(64));
        assert_eq!(kernel.read_state(0, LONG).unwrap(), bytemuck::Zeroable::zeroed());
        kernel.terminate(LONG).unwrap();
    });
}

ring_device::ring_kernel! {
    /// Counts, far behind in a state that no stack would hold.
    struct Large { name: "large", }

    fn handle(state: &mut [u64; 1 << 20], request: &u64) -> u64 {
        let place = &mut state[*request as usize % (1 << 20)];
        *place += 1;
        *place
    }
}

#[test]
fn it_may_be_larger_than_a_stack() {
    let mut kernel = cpu().launch::<Large>(LaunchConfig::default().capacity(16)).unwrap();
    kernel.activate(LONG).unwrap();
    for answer in 1..=3 {
        kernel.send((1 << 20) - 1, LONG).unwrap();
        assert_eq!(kernel.recv(LONG), Ok(answer));
    }
    kernel.terminate(LONG).unwrap();
    let mut state: Box<[u64; 1 << 20]> = vec![0; 1 << 20].try_into().unwrap();
    kernel.read_state_into(0, &mut state, LONG).unwrap();
    assert_eq!((state[0], state[(1 << 20) - 1]), (0, 3));
}

/// Halfway through the handler of `Torn`.
static HALFWAY: Latch = Latch::new();

ring_device::ring_kernel! {
    /// Counts in two places; between them it waits for its release, if so requested. For the CPU device
    /// only.
    struct Torn { name: "torn", }

    fn handle(state: &mut [u64; 2], request: &u64) -> u64 {
        state[0] += 1;
        if *request > 0 {
            HALFWAY.wait();
        }
        state[1] += 1;
        state[1]
    }
}

#[test]
fn a_command_that_timed_out_does_not_open_it() {
    let short = Duration::from_millis(5);
    for (mode, memory) in WAYS {
        for end in [false, true] {
            let budgets = Budgets { idle: Duration::from_micros(50), ..Budgets::default() };
            let launch =
                LaunchConfig::default().mode(mode).memory(memory).budgets(budgets).capacity(16);
            let mut kernel = cpu().launch::<Torn>(launch).unwrap();
            kernel.activate(LONG).unwrap();
            // Launched at least once before, so that the next launch finds its command known.
            kernel.send(0, LONG).unwrap();
            assert_eq!(kernel.recv(LONG), Ok(1));
            if mode != Mode::Persistent {
                kernel.rest(LONG).unwrap();
            }
            kernel.send(1, LONG).unwrap();
            // Carried to where the handler is.
            until("the handler", || {
                assert_eq!(kernel.try_recv(), Err(TryRecvError::Empty));
                HALFWAY.is_reached().then_some(())
            });
            let timed_out = match end {
                true => kernel.terminate(short).map(drop),
                false => kernel.deactivate(short),
            };
            let timed_out = timed_out.unwrap_err();
            assert!(matches!(timed_out, ControlError::Timeout { .. }), "{mode} in {memory}");
            let looked = (kernel.read_state(0, LONG), kernel.write_state(0, &[70, 70], short));
            let active = StateError::Active { kernel: "torn" };
            assert_eq!(looked, (Err(active.clone()), Err(active)), "{mode} in {memory}, {end}");
            HALFWAY.release();
            kernel.terminate(LONG).unwrap();
            assert_eq!(kernel.recv(LONG), Ok(2), "{mode} in {memory}");
            assert_eq!(kernel.read_state(0, LONG), Ok([2, 2]));
        }
    }
}

#[test]
fn it_cannot_be_looked_at_while_messages_are_taken() {
    let mut kernel = launched(&cpu(), LaunchConfig::default().capacity(16).channels(2));
    kernel.activate(LONG).unwrap();
    let active = StateError::Active { kernel: "book" };
    assert_eq!(kernel.read_state(0, LONG).unwrap_err(), active);
    assert!(active.to_string().contains("book is active"), "{active}");
    let zero = bytemuck::Zeroable::zeroed();
    assert_eq!(kernel.write_state(0, &zero, LONG), Err(active));
    kernel.terminate(LONG).unwrap();
    let none = kernel.read_state(2, LONG).unwrap_err();
    assert_eq!(none, StateError::Channel(ChannelError::OutOfRange { channel: 2, channels: 2 }));
    assert_eq!(none.to_string(), "there is no channel 2: the kernel has 2 (indices from 0)");
}
