//! Ends of engines that are chosen while a program runs.

use crate::transport::{ClientId, Connection, EngineError, Fill, Listener, Silence};

impl<C: Connection + ?Sized> Connection for Box<C> {
    fn service(&self) -> &str {
        (**self).service()
    }

    fn client(&self) -> ClientId {
        (**self).client()
    }

    fn frame_bytes(&self) -> usize {
        (**self).frame_bytes()
    }

    fn bytes_on_their_way(&self) -> usize {
        (**self).bytes_on_their_way()
    }

    fn send(&mut self, len: usize, fill: Fill<'_>) -> Result<bool, EngineError> {
        (**self).send(len, fill)
    }

    fn receive(&mut self, read: &mut dyn FnMut(&[u8])) -> Result<bool, EngineError> {
        (**self).receive(read)
    }

    fn rename(&mut self, client: ClientId) -> Result<(), EngineError> {
        (**self).rename(client)
    }

    fn silence(&mut self) -> Silence {
        (**self).silence()
    }
}

impl<L: Listener + ?Sized> Listener for Box<L> {
    fn service(&self) -> &str {
        (**self).service()
    }

    fn frame_bytes(&self) -> usize {
        (**self).frame_bytes()
    }

    fn bytes_on_their_way(&self) -> usize {
        (**self).bytes_on_their_way()
    }

    fn send(&mut self, to: ClientId, len: usize, fill: Fill<'_>) -> Result<bool, EngineError> {
        (**self).send(to, len, fill)
    }

    fn receive(&mut self, read: &mut dyn FnMut(&[u8])) -> Result<bool, EngineError> {
        (**self).receive(read)
    }

    fn forget(&mut self, client: ClientId) {
        (**self).forget(client);
    }
}
