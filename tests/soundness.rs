//! What safe code can and cannot do with kernels, lanes and halves, as the compiler sees it.

use ring_host::kernels::Echo;
use ring_host::{Lane, Receiver, RequestSink, Resident, ResponseStream, Runtime, Sender};

/// Whatever may go to another thread does; each is of one thread at a time, but for the runtime.
#[test]
fn what_goes_to_other_threads() {
    fn sends<T: Send>() {}
    fn is_shared<T: Send + Sync>() {}
    sends::<Resident<Echo>>();
    sends::<Lane<Echo>>();
    sends::<(Sender<Echo>, Receiver<Echo>)>();
    sends::<(RequestSink<Echo>, ResponseStream<Echo>)>();
    is_shared::<Runtime>();
}

#[test]
fn what_does_not_compile() {
    trybuild::TestCases::new().compile_fail("refused/*.rs");
}
