//! A kernel that is terminated can still be named: `terminate` borrows it, since it may time out and be
//! called again. So every use after it is an error when it is made, on whatever part of the kernel.

use futures_util::{Sink, Stream};
use ring_example_kernels::{Book, PTX, Ripple, Rounds};
use ring_host::kernels::vector_add::AddError;
use ring_host::kernels::{Echo, EchoMessage, VectorAdd};
use ring_host::{BufferError, ControlError, Kernel, KernelHandle, LaunchConfig, SendTimeoutError};
use ring_tests::{CallError, LONG, WAYS, cpu, with_ptx};
use std::fmt::Debug;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

fn is_over<T: Debug, M: Debug + PartialEq>(sent: Result<T, impl Into<CallError<M>>>) {
    let error = sent.map_err(Into::into).unwrap_err();
    assert_eq!(error, CallError::Closed { kernel: "echo" });
}

fn has_ended<T: Debug>(received: Result<T, impl Into<CallError>>) {
    assert_eq!(received.map_err(Into::into).unwrap_err(), CallError::Closed { kernel: "echo" });
}

/// Every call of sender and receiver, or of what stands for both.
macro_rules! every_call {
    ($sending:expr, $receiving:expr) => {
        let request = EchoMessage::from_seed(1);
        is_over($sending.try_send(request));
        assert_eq!($sending.try_send(request).unwrap_err().into_inner(), request);
        is_over($sending.send(request, LONG));
        assert_eq!($sending.send(request, LONG).unwrap_err().into_inner(), request);
        is_over($sending.try_send_batch(&[request]));
        is_over($sending.try_send_each(1, |_| panic!("a request that is not sent is not made")));
        has_ended($receiving.try_recv());
        has_ended($receiving.recv(LONG));
        has_ended($receiving.try_recv_batch(&mut [request]));
        has_ended($receiving.try_recv_each(1, |_| panic!("no response is there")));
    };
}

#[test]
fn every_use_is_an_error_on_every_part() {
    for (mode, memory) in WAYS {
        let launch = LaunchConfig::default().mode(mode).memory(memory).capacity(16).channels(4);
        let mut kernel = cpu().launch::<Echo>(launch).unwrap();
        kernel.activate(LONG).unwrap();
        let mut channel = kernel.take_channel(1).unwrap();
        let (mut sender, mut receiver) = kernel.take_channel(2).unwrap().into_split();
        let (sink, stream) = kernel.take_channel(3).unwrap().into_split();
        let (mut sink, mut stream) = (sink.into_sink(), stream.into_stream());
        kernel.terminate(LONG).unwrap();

        every_call!(kernel, kernel);
        every_call!(channel, channel);
        every_call!(sender, receiver);
        let (sending, receiving) = channel.split();
        every_call!(sending, receiving);
        assert_eq!(receiving.try_iter().next(), None);

        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(&mut sink).poll_ready(&mut context) {
            Poll::Ready(ready) => is_over(ready),
            Poll::Pending => panic!("a sink that is never ready would never be left"),
        }
        is_over(Pin::new(&mut sink).start_send(EchoMessage::from_seed(1)));
        assert_eq!(Pin::new(&mut stream).poll_next(&mut context), Poll::Ready(None));

        let ended = Err(ControlError::Terminated { kernel: "echo" });
        assert_eq!(kernel.activate(LONG), ended);
        assert_eq!(kernel.deactivate(LONG), ended);
        assert_eq!(kernel.terminate(LONG).map(drop), ended);
        assert!(kernel.is_resting() && kernel.rest(LONG).is_ok());

        // The same of what is left when the kernel's handle is gone.
        drop(kernel);
        every_call!(channel, channel);
        every_call!(sender, receiver);
    }
}

#[test]
fn every_use_of_a_grid_is_an_error_and_its_buffers_stay() {
    let host = cpu();
    let launch = with_ptx(LaunchConfig::default().blocks(2).capacity(16), PTX.as_bytes());
    let mut kernel: KernelHandle<Ripple> = host.launch(launch).unwrap();
    kernel.activate(LONG).unwrap();
    let buffer = host.buffer::<u32>(4).unwrap();
    let rounds = Rounds { words: 0, rounds: 0 };
    kernel.send(rounds, LONG).unwrap();
    assert_eq!(kernel.recv(LONG), Ok(0));
    kernel.terminate(LONG).unwrap();

    let sent = CallError::from(kernel.send(rounds, LONG).unwrap_err()).without_message();
    let received = CallError::from(kernel.recv(LONG).unwrap_err());
    assert_eq!([sent, received], [(); 2].map(|()| CallError::Closed { kernel: "ripple" }));
    let ended = Err(ControlError::Terminated { kernel: "ripple" });
    assert_eq!(kernel.activate(LONG), ended);
    assert_eq!(kernel.terminate(LONG).map(drop), ended);

    drop((kernel, host));
    let mut found = [0; 4];
    buffer.upload(1, &[5, 6, 7], LONG).unwrap();
    buffer.download(0, &mut found, LONG).unwrap();
    assert_eq!(found, [0, 5, 6, 7]);
    let outside = BufferError::OutOfBounds { offset: 2, count: 3, length: 4 };
    assert_eq!(buffer.upload(2, &[1; 3], LONG), Err(outside));
}

/// Memory that only the host touches by then may be read and written; nothing is answered.
#[test]
fn state_and_payload_stay_as_long_as_the_handle() {
    let host = cpu();
    let launch = with_ptx(LaunchConfig::default().capacity(16), PTX.as_bytes());
    let mut book: KernelHandle<Book> = host.launch(launch).unwrap();
    let mut vectors: KernelHandle<VectorAdd> =
        host.launch(LaunchConfig::default().capacity(16)).unwrap();
    vectors.activate(LONG).unwrap();
    book.terminate(LONG).unwrap();
    vectors.terminate(LONG).unwrap();
    drop(host);

    let mut state = book.read_state(0, LONG).unwrap();
    state.bids[7] = 7;
    book.write_state(0, &state, LONG).unwrap();
    assert_eq!(book.read_state(0, LONG).unwrap(), state);

    let mut words = [0u32; 4];
    vectors.write_payload(8, &[1u32, 2, 3, 4], LONG).unwrap();
    vectors.read_payload(8, &mut words, LONG).unwrap();
    assert_eq!(words, [1, 2, 3, 4]);
    let added = vectors.add(&[1.0], &[2.0], &mut [0.0], LONG);
    let closed = SendTimeoutError::Closed { message: (), kernel: VectorAdd::NAME };
    assert_eq!(added, Err(AddError::Send(closed)));
}
