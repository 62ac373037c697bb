//! What a port's receiver says when nothing comes any more: the same as the receiver of a kernel that answers.

use crate::{config, on_each_device};
use ring_example_kernels::{Item, Pass};
use ring_host::{GraphBuilder, RecvTimeoutError, State, TryRecvError};
use ring_tests::{LONG, Unlucky, cpu};
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(5);

/// A drained graph may be activated again, so that nothing comes now is no end: the wait ends at its deadline, and says why.
#[test]
fn behind_a_drain_nothing_comes_and_behind_a_termination_is_the_end() {
    on_each_device(|host| {
        let mut graph = GraphBuilder::new();
        let pass = graph.kernel::<Pass>(config::<Pass>());
        graph.feed(pass);
        let on = graph.read(pass, Pass::ON);
        let mut graph = host.launch_graph(&graph).unwrap();
        graph.activate(LONG).unwrap();
        let (mut sender, mut receiver) =
            (graph.sender(pass, 0).unwrap(), graph.receiver(on, 0).unwrap());
        for round in 0..3 {
            for number in 0..4 {
                sender.send(Item { number, ..Item::default() }, LONG).unwrap();
            }
            graph.drain(LONG).unwrap();
            for number in 0..4 {
                assert_eq!(receiver.try_recv().unwrap().number, number, "it is there, {round}");
            }
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
            assert_eq!(receiver.try_recv_each(8, |_| {}), Ok(0));
            let end = receiver.recv(SHORT).unwrap_err();
            assert!(
                matches!(end, RecvTimeoutError::Timeout { state: State::Inactive, .. }),
                "{end}"
            );
            assert!(end.to_string().contains("it is not active (it is Inactive)"), "{end}");
            graph.activate(LONG).unwrap();
        }
        sender.send(Item { number: 7, ..Item::default() }, LONG).unwrap();
        graph.drain(LONG).unwrap();
        graph.terminate(LONG).unwrap();
        assert_eq!(receiver.recv(LONG).unwrap().number, 7, "what was emitted comes before the end");
        for _ in 0..2 {
            let closed = RecvTimeoutError::Closed { kernel: "pass" };
            assert_eq!(receiver.recv(LONG), Err(closed), "at once");
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed { kernel: "pass" }));
            assert!(receiver.try_recv_each(8, |_| {}).is_err());
        }
    });
}

/// The same steps with a kernel that answers.
#[test]
fn it_is_what_a_receiver_of_answers_says() {
    let mut kernel = cpu().launch::<Unlucky>(Default::default()).unwrap();
    kernel.activate(LONG).unwrap();
    kernel.send(3, LONG).unwrap();
    assert_eq!(kernel.recv(LONG), Ok(9));
    kernel.deactivate(LONG).unwrap();
    assert_eq!(kernel.try_recv(), Err(TryRecvError::Empty));
    let end = kernel.recv(SHORT).unwrap_err();
    assert!(matches!(end, RecvTimeoutError::Timeout { state: State::Inactive, .. }), "{end}");
    kernel.terminate(LONG).unwrap();
    assert!(matches!(kernel.recv(LONG), Err(RecvTimeoutError::Closed { .. })));
}
