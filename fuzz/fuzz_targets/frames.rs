//! Frames of a service that anybody may have written, or changed on their way: to a server's sessions, and to a client's.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use ring_net::frame::Description;
use ring_net::protocol::client::{ClientSession, Next};
use ring_net::protocol::server::{Choices, Sessions};
use ring_net::transport::{ClientId, Connection, EngineError, Fill, Listener};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Bytes of a request, and of an answer.
const BYTES: [u32; 2] = [8, 12];

/// Requests under way at a time that the server allows.
const WINDOW: u32 = 8;

#[derive(Arbitrary, Debug)]
enum Act {
    /// The client asks so often.
    Push(u8),
    /// It sends what it has to send, after so many milliseconds.
    Send(u8),
    /// It takes what is there.
    Take,
    /// So many frames come to the other side, if they are there.
    ToServer(u8),
    ToClient(u8),
    /// The next frame comes with that byte in place of another one.
    ChangedToServer(u16, u8),
    ChangedToClient(u16, u8),
    /// A frame that nobody sent.
    MadeToServer(Vec<u8>),
    MadeToClient(Vec<u8>),
    /// The next frame is lost.
    LostToServer,
    LostToClient,
    /// The kernel answers so many, and takes so many more.
    Kernel(u8, u8),
    /// The server sends what it has to send.
    Answer,
    /// Another server takes its place.
    Kill,
    /// It ends in order, and another one takes its place.
    End,
}

/// Frames on their way, and how many more there is room for.
struct Way {
    frames: VecDeque<Vec<u8>>,
    client: ClientId,
}

impl Way {
    fn new(client: ClientId) -> Way {
        Way { frames: VecDeque::new(), client }
    }

    fn put(&mut self, len: usize, fill: Fill<'_>) -> bool {
        if self.frames.len() == 16 {
            return false;
        }
        let mut frame = vec![0; len];
        fill(&mut frame);
        self.frames.push_back(frame);
        true
    }
}

impl Connection for Way {
    fn service(&self) -> &str {
        "fuzzed"
    }

    fn client(&self) -> ClientId {
        self.client
    }

    fn frame_bytes(&self) -> usize {
        256
    }

    fn send(&mut self, len: usize, fill: Fill<'_>) -> Result<bool, EngineError> {
        Ok(self.put(len, fill))
    }

    fn receive(&mut self, _: &mut dyn FnMut(&[u8])) -> Result<bool, EngineError> {
        Ok(false)
    }

    fn rename(&mut self, client: ClientId) -> Result<(), EngineError> {
        self.client = client;
        Ok(())
    }
}

impl Listener for Way {
    fn service(&self) -> &str {
        "fuzzed"
    }

    fn frame_bytes(&self) -> usize {
        256
    }

    fn send(&mut self, _: ClientId, len: usize, fill: Fill<'_>) -> Result<bool, EngineError> {
        Ok(self.put(len, fill))
    }

    fn receive(&mut self, _: &mut dyn FnMut(&[u8])) -> Result<bool, EngineError> {
        Ok(false)
    }

    fn forget(&mut self, _: ClientId) {}
}

fuzz_target!(|acts: Vec<Act>| {
    let description = Description {
        kernel: [0; 64],
        request: [0; 96],
        response: [0; 96],
        bytes: BYTES,
        abi: 1,
        reserved: 0,
    };
    let keeps = Duration::from_millis(500);
    let choices = Choices { clients: 3, window: WINDOW, batch: 4, keeps };
    let mut now = Instant::now();
    let mut server = Sessions::new(description, choices, now);
    let id = ClientId(7);
    let mut client = ClientSession::new(id, description, 16);
    let (mut up, mut down) = (Way::new(id), Way::new(id));
    let (mut in_kernel, mut room) = (0usize, 4usize);
    for act in acts {
        let mut give = |messages: &[u8]| {
            assert!(messages.len().is_multiple_of(BYTES[0] as usize) && !messages.is_empty());
            let taken = (messages.len() / BYTES[0] as usize).min(room);
            room -= taken;
            in_kernel += taken;
            taken
        };
        match act {
            Act::Push(count) => {
                for _ in 0..count % 32 {
                    if client.slot().is_some() {
                        client.push();
                    }
                }
            }
            Act::Send(milliseconds) => {
                now += Duration::from_millis(milliseconds.into());
                client.transmit(&mut up, now).expect("it does not fail");
            }
            Act::Take => {
                let mut answer = [0; BYTES[1] as usize];
                while client.take(&mut answer) != Next::Nothing {}
            }
            Act::ToServer(count) => {
                for frame in up.frames.drain(..up.frames.len().min(count.into())) {
                    server.receive(&frame, now, &mut give);
                }
            }
            Act::ToClient(count) => {
                for frame in down.frames.drain(..down.frames.len().min(count.into())) {
                    client.receive(&frame, now);
                }
            }
            Act::ChangedToServer(at, byte) => {
                if let Some(frame) = changed(&mut up, at, byte) {
                    server.receive(&frame, now, &mut give);
                }
            }
            Act::ChangedToClient(at, byte) => {
                if let Some(frame) = changed(&mut down, at, byte) {
                    client.receive(&frame, now);
                }
            }
            Act::MadeToServer(frame) => server.receive(&frame, now, &mut give),
            Act::MadeToClient(frame) => client.receive(&frame, now),
            Act::LostToServer => drop(up.frames.pop_front()),
            Act::LostToClient => drop(down.frames.pop_front()),
            Act::Kernel(answers, more) => {
                for _ in 0..in_kernel.min(answers.into()) {
                    in_kernel -= 1;
                    server.answer(&[1; BYTES[1] as usize]);
                }
                room = usize::from(more % 8);
                let mut give = |messages: &[u8]| {
                    let taken = (messages.len() / BYTES[0] as usize).min(room);
                    room -= taken;
                    in_kernel += taken;
                    taken
                };
                server.give(2, &mut give);
            }
            Act::Answer => {
                server.transmit(now, &mut down).expect("it does not fail");
                server.sweep(now);
            }
            Act::Kill => {
                (server, in_kernel) = (Sessions::new(description, choices, now), 0);
            }
            Act::End => {
                server.end("over", now, &mut down).expect("it does not fail");
                (server, in_kernel) = (Sessions::new(description, choices, now), 0);
            }
        }
        assert!(client.unanswered() <= 16 && client.ready() <= client.unanswered());
        assert!(server.counts().clients <= 3);
    }
});

/// The next frame with one byte of it changed.
fn changed(way: &mut Way, at: u16, byte: u8) -> Option<Vec<u8>> {
    let mut frame = way.frames.pop_front()?;
    let at = usize::from(at) % frame.len();
    frame[at] = byte;
    Some(frame)
}
