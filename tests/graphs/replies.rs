//! Handlers that return a value beside what they emit: it comes to one port more, in order.

use super::{MANY, config, on_each_device};
use ring_example_kernels::{Counter, Item};
use ring_host::{GraphBuilder, HasPort, Kernel, Port, Route, Runtime};
use ring_tests::{LONG, Progress, cpu};

#[test]
fn replies_come_in_order_beside_what_is_emitted() {
    on_each_device(|host| {
        let mut graph = GraphBuilder::new();
        let first = graph.kernel::<Counter>(config::<Counter>());
        let second = graph.kernel::<Counter>(config::<Counter>());
        graph.feed(first).link(first, Counter::ON, second, Route::Pairwise);
        let replies = [graph.read(first, Counter::REPLY), graph.read(second, Counter::REPLY)];
        let last = graph.read(second, Counter::ON);
        let mut graph = host.launch_graph(&graph).unwrap();
        graph.activate(LONG).unwrap();
        let mut sender = graph.sender(first, 0).unwrap();
        let mut replies = replies.map(|replies| graph.receiver(replies, 0).unwrap());
        let mut last = graph.receiver(last, 0).unwrap();
        let message = |number| Item { number, copies: (number % 3) as u32, ..Item::default() };
        let (mut progress, mut sent, mut handled) = (Progress::new(), 0, 0);
        while handled < MANY / 4 {
            // One at a time, and many.
            let ahead = if sent < MANY / 100 { 1 } else { 300 };
            let batch: Vec<_> = (sent..(handled + ahead).min(MANY / 4)).map(message).collect();
            sent += sender.try_send_batch(&batch).unwrap() as u64;
            while handled < sent {
                let reply = if handled % 3 == 0 { 0 } else { handled + 1 };
                assert_eq!(replies.each_mut().map(|of| of.recv(LONG).unwrap()), [reply; 2]);
                assert_eq!(last.recv(LONG).unwrap(), Item { hops: 2, ..message(handled) });
                handled += 1;
            }
            progress.is_at(handled, "messages");
        }
        assert!(replies.iter_mut().all(|of| of.try_recv().is_err()), "one reply each");
        graph.terminate(LONG).unwrap();
    });
}

/// Kernels of each signature that replies. For the CPU device only.
macro_rules! repliers {
    ($($name:ident: ($($parameters:tt)*) $body:block)*) => {$(
        ring_device::ring_kernel! {
            /// Replies with the square.
            pub struct $name { entry: "ring_Copier", }

            fn handle($($parameters)*) -> u64 $body
        }
    )*};
}

repliers! {
    OfThread: (request: &u64, _: &mut Ports) { request.wrapping_mul(*request) }
    OfThreadWithContext: (_: &ThreadContext, request: &u64, _: &mut Ports) {
        request.wrapping_mul(*request)
    }
    WithState: (last: &mut u64, request: &u64, _: &mut Ports) {
        *last = request.wrapping_mul(*request);
        *last
    }
    WithStateAndContext: (_: &ThreadContext, last: &mut u64, request: &u64, _: &mut Ports,) {
        *last = request.wrapping_mul(*request);
        return *last;
    }
    OfWarp: (ctx: &WarpContext, request: &u64, _: &mut Ports) {
        ctx.sum(if ctx.thread() == 0 { request.wrapping_mul(*request) } else { 0 })
    }
    OfBlock: (ctx: &BlockContext, request: &u64, _: &mut Ports) {
        ctx.sync();
        request.wrapping_mul(*request)
    }
}

/// Whether a kernel whose one port is that replies with squares.
fn squares<K: Kernel<Request = u64> + HasPort<0, Message = u64>>(host: &Runtime) {
    let mut graph = GraphBuilder::new();
    let node = graph.kernel::<K>(config::<K>());
    graph.feed(node);
    let replies = graph.read(node, Port::<K, 0>::NEW);
    let mut graph = host.launch_graph(&graph).unwrap();
    graph.activate(LONG).unwrap();
    let mut sender = graph.sender(node, 0).unwrap();
    let mut replies = graph.receiver(replies, 0).unwrap();
    for number in 0..100 {
        sender.send(number, LONG).unwrap();
    }
    for number in 0..100 {
        assert_eq!(replies.recv(LONG), Ok(number * number));
    }
}

#[test]
fn each_signature_may_reply() {
    let host = cpu();
    squares::<OfThread>(&host);
    squares::<OfThreadWithContext>(&host);
    squares::<WithState>(&host);
    squares::<WithStateAndContext>(&host);
    squares::<OfWarp>(&host);
    squares::<OfBlock>(&host);
}
