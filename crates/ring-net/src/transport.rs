//! What carries frames: an engine has a [`Connection`] for each client, and a [`Listener`] for a server.
//!
//! An engine may lose frames, double them, hold them back, and let one overtake another: numbers in each frame make up for that
//! (`protocol`). It gives a frame whole or not at all, as it was sent, to nobody but whom it was sent to.

use std::fmt;

/// Who a client is: drawn at random by it for each session, and known to nobody else but the server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u128);

impl ClientId {
    /// One that nobody can guess.
    pub fn random() -> ClientId {
        ClientId(crate::random())
    }
}

/// Its first eight digits: enough to tell clients apart in a log, and too few to send in the name of one.
impl fmt::Debug for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}..", self.0 >> 96)
    }
}

/// As 32 hexadecimal digits.
impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Most bytes of a frame. What is longer is not a frame, and no engine need carry it.
pub const MAX_FRAME_BYTES: usize = 64 * 1024;

/// An engine failed, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{engine}: {doing}: {said}")]
pub struct EngineError {
    /// Which engine.
    pub engine: &'static str,
    /// What it was asked for.
    pub doing: &'static str,
    /// What it said.
    pub said: String,
}

/// Why no server is heard, as far as an engine can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Silence {
    /// It cannot tell.
    Unexplained,
    /// The service is served, but not to this client: by whom, and what to do.
    NotPermitted(String),
    /// This end is connected with nobody who could serve it.
    NotConnected(String),
}

/// Writes a frame into memory of just its length, whose bytes are not known before.
pub type Fill<'a> = &'a mut dyn FnMut(&mut [u8]);

/// A client's end.
pub trait Connection: Send {
    /// The service that it leads to, for errors.
    fn service(&self) -> &str;

    /// To whom the frames are sent that come.
    fn client(&self) -> ClientId;

    /// Most bytes of a frame that it carries: room for a header and a message at least, and [`MAX_FRAME_BYTES`] at most.
    fn frame_bytes(&self) -> usize;

    /// How many bytes of frames may be on their way, each way, before the engine may lose some of them. More wait until the other side has
    /// told that it has those before.
    fn bytes_on_their_way(&self) -> usize {
        usize::MAX
    }

    /// Sends a frame of so many bytes, no more than it carries, to the server. `false` if it was not sent, as there is no room now or no server.
    /// It does not wait.
    ///
    /// # Errors
    /// When the engine cannot send any more.
    fn send(&mut self, len: usize, fill: Fill<'_>) -> Result<bool, EngineError>;

    /// Shows the next frame that has come to `read`; `false` if there is none. It does not wait.
    ///
    /// # Errors
    /// When the engine cannot receive any more.
    fn receive(&mut self, read: &mut dyn FnMut(&[u8])) -> Result<bool, EngineError>;

    /// From here on frames come that are sent to another client: this end has begun a new session.
    ///
    /// # Errors
    /// When the engine cannot receive them.
    fn rename(&mut self, client: ClientId) -> Result<(), EngineError>;

    /// Why no server has answered; asked when a wait for one has ended. It takes no longer than some tenths of a second.
    fn silence(&mut self) -> Silence {
        Silence::Unexplained
    }
}

/// A server's end.
pub trait Listener: Send {
    /// The service, for errors.
    fn service(&self) -> &str;

    /// As for a [`Connection`].
    fn frame_bytes(&self) -> usize;

    /// As for a [`Connection`], to each client and from it.
    fn bytes_on_their_way(&self) -> usize {
        usize::MAX
    }

    /// Sends a frame to a client, likewise: `false` if it was not sent, as there is no room now or no such client.
    ///
    /// # Errors
    /// When the engine cannot send to anybody any more.
    fn send(&mut self, to: ClientId, len: usize, fill: Fill<'_>) -> Result<bool, EngineError>;

    /// Shows the next frame that has come from any client.
    ///
    /// # Errors
    /// When the engine cannot receive any more.
    fn receive(&mut self, read: &mut dyn FnMut(&[u8])) -> Result<bool, EngineError>;

    /// Gives back what it keeps to send to that client. A later frame to it is sent none the less, if it is there.
    fn forget(&mut self, client: ClientId);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_do_not_have_who_a_client_is() {
        let client = ClientId(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        assert_eq!(client.to_string(), "0123456789abcdef0123456789abcdef");
        assert_eq!(format!("{client:?}"), "01234567..");
    }
}
