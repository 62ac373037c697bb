//! Kernels with several handlers: each is asked and answers by its own types, in every mode and memory.

use crate::faults::on_each_device_alone;
use ring_example_kernels::{KEYS, Market, Quote, Trade};
use ring_host::{CallError, KernelHandle, LaunchConfig, RecvTimeoutError};
use ring_tests::kernels::of_examples;
use ring_tests::{LONG, WAYS, cpu};

fn trade(i: u32) -> Trade {
    Trade { key: i % 7, price: (i * 31 % 97) as f32, volume: i }
}

/// Asserts what is known of a key after the first `n` trades. The window is not over with the last one only.
fn is_quote(quote: Quote, key: u32, n: u32) {
    let trades: Vec<Trade> = (0..n).map(trade).filter(|trade| trade.key == key).collect();
    let prices = || trades.iter().map(|trade| trade.price);
    assert_eq!(quote.last, prices().next_back().unwrap_or(0.0));
    assert_eq!(quote.trades, trades.len() as u32);
    assert_eq!(quote.volume, trades.iter().map(|trade| u64::from(trade.volume)).sum());
    assert!((quote.low..=quote.high).contains(&quote.last), "{quote:?}");
    assert!(quote.high <= prices().reduce(f32::max).unwrap_or(0.0), "{quote:?}");
    assert!(quote.low >= prices().reduce(f32::min).unwrap_or(0.0), "{quote:?}");
}

#[test]
fn each_answers_what_it_was_asked() {
    on_each_device_alone(here!("each_answers_what_it_was_asked"), |runtime| {
        for (mode, memory) in WAYS {
            let launch = LaunchConfig::default().mode(mode).memory(memory).capacity(64);
            let mut kernel: KernelHandle<Market> =
                runtime.launch(launch.kernels(of_examples::<Market>())).unwrap();
            kernel.activate(LONG).unwrap();
            // By a client, one after the other.
            let client = kernel.client().unwrap();
            for i in 0..40 {
                let trades = client.ask(Market::trade, trade(i), LONG).unwrap();
                assert_eq!(trades, i / 7 + 1, "{mode} in {memory}");
                let quote = client.ask_by_key(&i, Market::quote, i % 9, LONG).unwrap();
                is_quote(quote, i % 9, i + 1);
            }
            assert_eq!(
                client.ask(Market::trade, Trade { key: KEYS as u32, ..trade(1) }, LONG),
                Ok(0)
            );
            // By tickets, mixed.
            let tickets: Vec<_> = (40..60)
                .map(|i| {
                    let request = match i % 2 {
                        0 => Market::trade.request(trade(i)),
                        _ => Market::quote.request(i % 7),
                    };
                    client.submit(request, LONG).unwrap()
                })
                .collect();
            for (i, ticket) in (40..60).zip(tickets) {
                let response = ticket.wait(LONG).unwrap();
                let answers = (Market::trade.answer(&response), Market::quote.answer(&response));
                assert_eq!((answers.0.is_some(), answers.1.is_some()), (i % 2 == 0, i % 2 == 1));
            }
            kernel.terminate(LONG).unwrap();
        }
    });
}

/// A request that no handler has made is answered, by none of them.
#[test]
fn what_is_for_no_handler_is_answered_by_none() {
    let mut kernel = cpu().launch::<Market>(LaunchConfig::default()).unwrap();
    kernel.activate(LONG).unwrap();
    let mut request = Market::quote.request(3);
    bytemuck::bytes_of_mut(&mut request).fill(0x7f);
    kernel.send(request, LONG).unwrap();
    let response = kernel.recv(LONG).unwrap();
    assert_eq!((Market::trade.answer(&response), Market::quote.answer(&response)), (None, None));
    kernel.terminate(LONG).unwrap();
}

ring_device::ring_kernel! {
    /// Some of whose handlers keep a state. For the CPU device only.
    struct Mixed { name: "mixed", }

    fn count(count: &mut u32, step: &u32) -> u32 {
        *count = count.wrapping_add(*step);
        *count
    }

    fn double(number: &u64) -> u64 {
        number.wrapping_mul(2)
    }

    fn swapped(ctx: &ThreadContext, pair: &[u16; 2]) -> [u16; 2] {
        let _ = ctx;
        [pair[1], pair[0]]
    }

    fn wide(ctx: &ThreadContext, count: &mut u32, number: &u128) -> u128 {
        let _ = ctx;
        number.wrapping_add((*count).into())
    }
}

ring_device::ring_kernel! {
    /// For the CPU device only.
    struct ByThread { name: "by thread", }

    fn double(number: &u32) -> u32 {
        number.wrapping_mul(2)
    }

    fn bytes(number: &u32) -> [u8; 5] {
        let [a, b, c, d] = number.to_le_bytes();
        [a, b, c, d, 5]
    }
}

ring_device::ring_kernel! {
    /// For the CPU device only.
    struct ByBlock { name: "by block", }

    fn double(ctx: &BlockContext, number: &u32, response: &Output<u32>) {
        let _ = ctx;
        response.set(0, 0, number.wrapping_mul(2));
    }

    fn halves(ctx: &BlockContext, number: &u64, response: &Output<[u32; 2]>) {
        if ctx.thread() == 0 {
            response.set(0, 0, *number as u32);
            response.set(4, 0, (*number >> 32) as u32);
        }
    }
}

#[test]
fn handlers_of_every_scope_are_asked() {
    let runtime = cpu();
    let mut mixed = runtime.launch::<Mixed>(LaunchConfig::default()).unwrap();
    let mut by_thread = runtime.launch::<ByThread>(LaunchConfig::default()).unwrap();
    let mut by_block = runtime.launch::<ByBlock>(LaunchConfig::default()).unwrap();
    mixed.activate(LONG).unwrap();
    by_thread.activate(LONG).unwrap();
    by_block.activate(LONG).unwrap();
    let client = mixed.client().unwrap();
    for i in 1..100 {
        assert_eq!(client.ask(Mixed::count, 1, LONG), Ok(i));
        assert_eq!(client.ask(Mixed::double, i.into(), LONG), Ok(2 * u64::from(i)));
        assert_eq!(client.ask(Mixed::swapped, [1, 2], LONG), Ok([2, 1]));
        assert_eq!(client.ask(Mixed::wide, 1 << 100, LONG), Ok((1 << 100) + u128::from(i)));
    }
    let client = by_thread.client().unwrap();
    assert_eq!(client.ask(ByThread::double, 21, LONG), Ok(42));
    assert_eq!(client.ask(ByThread::bytes, 0x0403_0201, LONG), Ok([1, 2, 3, 4, 5]));
    let client = by_block.client().unwrap();
    assert_eq!(client.ask(ByBlock::double, 21, LONG), Ok(42));
    assert_eq!(client.ask(ByBlock::halves, 7 << 32 | 9, LONG), Ok([9, 7]));
    mixed.terminate(LONG).unwrap();
    let closed = client.ask(ByBlock::double, 1, std::time::Duration::ZERO);
    assert!(matches!(
        closed,
        Err(CallError::NotAnswered(RecvTimeoutError::Timeout { .. })) | Ok(2)
    ));
    by_thread.terminate(LONG).unwrap();
    by_block.terminate(LONG).unwrap();
}
