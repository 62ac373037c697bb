//! What goes from one side to the other: a header of 64 bytes, and messages or a description behind it.
//!
//! Numbers count the requests of a client from 0 on, and an answer has its request's number. Whatever comes is looked at as if anybody had
//! written it: [`Frame::parse`] gives nothing whose lengths do not fit.

use crate::transport::ClientId;
use bytemuck::{Pod, Zeroable};

/// The first bytes of each frame: that it is one, and of which version of these rules.
const MAGIC: [u8; 8] = *b"ringnet\x01";

/// Bytes of a header.
pub const HEADER_BYTES: usize = size_of::<Header>();

/// A session, by the number that the server has drawn for it at random: a server that was started again does not know those of the one before,
/// and no frame that was long on its way belongs to another one.
pub type SessionId = u128;

/// Most bytes of why a server ends.
pub const MAX_REASON_BYTES: usize = 256;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A client asks for a session; `first` is the number of its first request. A [`Description`] follows.
    Open = 1,
    /// Requests from the number `first` on. `received`: so many answers have come, in order.
    Requests = 2,
    /// A client that has sent the requests before `first` asks how far the server is. `received` as above; if `count` is 1, answers behind are
    /// missing, and sent again.
    Ask = 3,
    /// A client will not come back.
    Leave = 4,
    /// There is a session; `received` is the number of the request that the server has next, and [`Limits`] follow.
    Opened = 16,
    /// Answers from the number `first` on. `received`: so many requests have come, in order.
    Answers = 17,
    /// How far the server is: `received` requests have come, where the client had sent those before `first`.
    State = 18,
    /// The server knows no such session: it was started since, or has given it up.
    Stranger = 19,
    /// The server does not take this client: a [`Refusal`](crate::Refusal) by number in `first`, and a [`Description`] of what it serves.
    Refused = 20,
    /// The server ends. Its kernel has got the requests before `received`, and answered those before `first`. Why follows, as text.
    Ended = 21,
}

impl Kind {
    const ALL: [Kind; 10] = [
        Kind::Open,
        Kind::Requests,
        Kind::Ask,
        Kind::Leave,
        Kind::Opened,
        Kind::Answers,
        Kind::State,
        Kind::Stranger,
        Kind::Refused,
        Kind::Ended,
    ];
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Header {
    magic: [u8; 8],
    kind: u32,
    /// Messages behind the header; or see [`Kind`].
    count: u32,
    /// The lower half of a [`ClientId`], and the upper one.
    client: [u64; 2],
    /// Likewise of a [`SessionId`]; 0 where there is none yet.
    session: [u64; 2],
    first: u64,
    received: u64,
}

/// A frame, but for what is behind its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: Kind,
    /// How many messages it has.
    pub count: u32,
    /// Who sends it, or to whom it is sent.
    pub client: ClientId,
    /// Of which session it is; 0 where there is none yet.
    pub session: SessionId,
    /// See [`Kind`].
    pub first: u64,
    /// See [`Kind`].
    pub received: u64,
}

/// What each side says of the kernel that it means; all of it must be equal.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Description {
    /// [`ring_host::Kernel::NAME`], its first 64 bytes, zeros behind it.
    pub kernel: [u8; 64],
    /// The type of a request, as Rust names it: its last 96 bytes.
    pub request: [u8; 96],
    /// The type of an answer.
    pub response: [u8; 96],
    /// Bytes of each.
    pub bytes: [u32; 2],
    /// The version of the layouts of messages.
    pub abi: u32,
    /// 0.
    pub reserved: u32,
}

/// What a server allows.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Limits {
    /// Most requests of a client that are not answered, or whose answers have not come.
    pub window: u32,
    /// Most messages of a frame.
    pub batch: u32,
    /// How long, in milliseconds, a session is kept whose client sends nothing.
    pub keeps: u64,
}

impl Description {
    /// Most requests, or answers, of a frame of so many bytes; 1 at least.
    pub fn batch(&self, frame_bytes: usize) -> u32 {
        let [request, response] = self.bytes;
        let room = frame_bytes.saturating_sub(HEADER_BYTES) / request.max(response).max(1) as usize;
        room.clamp(1, u32::MAX as usize) as u32
    }
}

impl Frame {
    /// A frame with nothing behind its header.
    pub fn new(kind: Kind, client: ClientId, session: SessionId) -> Frame {
        Frame { kind, count: 0, client, session, first: 0, received: 0 }
    }

    /// Writes the header to the beginning of a frame; gives what is behind it.
    pub fn write(self, into: &mut [u8]) -> &mut [u8] {
        let (header, rest) = into.split_at_mut(HEADER_BYTES);
        header.copy_from_slice(bytemuck::bytes_of(&Header {
            magic: MAGIC,
            kind: self.kind as u32,
            count: self.count,
            client: halves(self.client.0),
            session: halves(self.session),
            first: self.first,
            received: self.received,
        }));
        rest
    }

    /// A frame that came, and what is behind its header; none if it is no frame of this version.
    pub fn parse(bytes: &[u8]) -> Option<(Frame, &[u8])> {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
        let header: Header = bytemuck::pod_read_unaligned(header);
        if header.magic != MAGIC {
            return None;
        }
        let kind = *Kind::ALL.iter().find(|kind| **kind as u32 == header.kind)?;
        let frame = Frame {
            kind,
            count: header.count,
            client: ClientId(whole(header.client)),
            session: whole(header.session),
            first: header.first,
            received: header.received,
        };
        Some((frame, rest))
    }

    /// What is behind the header as so many messages of `size` bytes; none if there are not just as many, or none.
    pub fn messages(self, behind: &[u8], size: usize) -> Option<&[u8]> {
        let len = (self.count as usize).checked_mul(size)?;
        (len > 0 && behind.len() == len).then_some(behind)
    }
}

/// What is behind a header as one value.
pub fn value<T: Pod>(behind: &[u8]) -> Option<T> {
    (behind.len() == size_of::<T>()).then(|| bytemuck::pod_read_unaligned(behind))
}

fn halves(id: u128) -> [u64; 2] {
    [id as u64, (id >> 64) as u64]
}

fn whole([low, high]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written() {
        for kind in Kind::ALL {
            let frame = Frame {
                kind,
                count: 3,
                client: ClientId(u128::MAX - 7),
                session: 1 << 100 | 5,
                first: u64::MAX,
                received: 9,
            };
            let mut bytes = [0; HEADER_BYTES + 6];
            frame.write(&mut bytes).copy_from_slice(b"abcdef");
            let (read, behind) = Frame::parse(&bytes).unwrap();
            assert_eq!((read, behind), (frame, &b"abcdef"[..]));
            assert_eq!(read.messages(behind, 2), Some(&b"abcdef"[..]));
        }
    }

    #[test]
    fn what_is_no_frame_is_none() {
        let mut bytes = [0; HEADER_BYTES + 6];
        Frame::new(Kind::Requests, ClientId(1), 2).write(&mut bytes);
        assert!(Frame::parse(&bytes[..HEADER_BYTES - 1]).is_none(), "too short");
        for (at, value) in [(0, b'R'), (7, 2), (8, 0), (8, 22), (11, 1)] {
            let mut other = bytes;
            other[at] = value;
            assert!(Frame::parse(&other).is_none(), "byte {at} is {value}");
        }
        let of = |count| Frame { count, ..Frame::new(Kind::Requests, ClientId(1), 2) };
        for (count, size) in [(0, 2), (2, 2), (4, 2), (u32::MAX, usize::MAX), (1, 0)] {
            assert!(of(count).messages(b"abcdef", size).is_none(), "{count} of {size} bytes");
        }
        assert!(of(0).messages(b"", 2).is_none());
        assert_eq!(value::<u32>(b"abc"), None);
        assert_eq!(value::<[u8; 3]>(b"abc"), Some(*b"abc"));
    }
}
