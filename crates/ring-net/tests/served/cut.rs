//! An engine's ends whose frames are lost while they are cut, one way or both.

use ring_net::transport::{ClientId, Connection, EngineError, Fill, Listener, Silence};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Which ways are cut. Clones are the same.
#[derive(Clone, Default)]
pub struct Cut {
    pub sends: Arc<AtomicBool>,
    pub receives: Arc<AtomicBool>,
}

impl Cut {
    pub fn set(&self, sends: bool, receives: bool) {
        self.sends.store(sends, Relaxed);
        self.receives.store(receives, Relaxed);
    }
}

/// An end, and what cuts it.
pub struct End<E>(pub E, pub Cut);

impl<E: Connection> Connection for End<E> {
    fn service(&self) -> &str {
        self.0.service()
    }

    fn client(&self) -> ClientId {
        self.0.client()
    }

    fn frame_bytes(&self) -> usize {
        self.0.frame_bytes()
    }

    fn bytes_on_their_way(&self) -> usize {
        self.0.bytes_on_their_way()
    }

    fn send(&mut self, len: usize, fill: Fill<'_>) -> Result<bool, EngineError> {
        if self.1.sends.load(Relaxed) { Ok(true) } else { self.0.send(len, fill) }
    }

    fn receive(&mut self, read: &mut dyn FnMut(&[u8])) -> Result<bool, EngineError> {
        if self.1.receives.load(Relaxed) {
            self.0.receive(&mut |_| {})
        } else {
            self.0.receive(read)
        }
    }

    fn rename(&mut self, client: ClientId) -> Result<(), EngineError> {
        self.0.rename(client)
    }

    fn silence(&mut self) -> Silence {
        self.0.silence()
    }
}

impl<E: Listener> Listener for End<E> {
    fn service(&self) -> &str {
        self.0.service()
    }

    fn frame_bytes(&self) -> usize {
        self.0.frame_bytes()
    }

    fn bytes_on_their_way(&self) -> usize {
        self.0.bytes_on_their_way()
    }

    fn send(&mut self, to: ClientId, len: usize, fill: Fill<'_>) -> Result<bool, EngineError> {
        if self.1.sends.load(Relaxed) { Ok(true) } else { self.0.send(to, len, fill) }
    }

    fn receive(&mut self, read: &mut dyn FnMut(&[u8])) -> Result<bool, EngineError> {
        if self.1.receives.load(Relaxed) {
            self.0.receive(&mut |_| {})
        } else {
            self.0.receive(read)
        }
    }

    fn forget(&mut self, client: ClientId) {
        self.0.forget(client);
    }
}
