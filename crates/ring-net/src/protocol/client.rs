//! A client's half of a session.

use crate::frame::{
    Description, Frame, HEADER_BYTES, Kind, Limits, MAX_REASON_BYTES, SessionId, value,
};
use crate::refusal::{Refusal, text};
use crate::slots::Slots;
use crate::transport::{ClientId, Connection, EngineError};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

/// How long a client waits before it sends again what nobody answered: first, and at most; it waits twice as long each time.
const AGAIN: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(500)];

/// What comes next, in the order of requests.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// An answer was written to where it was asked for.
    Answer,
    /// Nobody will know whether the request of that number was handled: the server that had it has ended.
    Unknown(u64),
    /// Nothing has come yet.
    Nothing,
}

/// How a session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The client asks for a session.
    Opening,
    /// There is that one.
    Open(SessionId),
    /// The server does not take this client.
    Refused(Box<Refusal>),
}

/// A client's half.
#[derive(Debug)]
pub struct ClientSession {
    id: ClientId,
    description: Description,
    phase: Phase,
    /// What the server allows.
    limits: Limits,
    /// Requests that the server is not known to have: `accepted..next`.
    requests: Slots,
    accepted: u64,
    /// The first request that is to be sent, or sent again.
    cursor: u64,
    /// Requests before it have been sent in this session, or are over.
    sent: u64,
    /// The number of the next request of the caller.
    next: u64,
    /// Answers that have not been taken, but for those that are unknown: `taken..received`.
    answers: Slots,
    received: u64,
    taken: u64,
    /// The server was told that so many have been received.
    told: u64,
    /// Of those, what is unknown; in order.
    unknown: VecDeque<Range<u64>>,
    /// When to ask again, if nothing comes until then, and how long that was; none while nothing is waited for.
    again: Option<(Instant, Duration)>,
    /// The server is to be asked now.
    asks: bool,
    /// Then answers are missing, too.
    misses: bool,
    /// No request is sent before something is heard: the server may be gone, or have given up the session.
    probes: bool,
    /// How many answers had come when it was asked for a missing one.
    gap: Option<u64>,
    /// The engine does not know this client's present name.
    is_renamed: bool,
    /// When the last frame came from the server.
    heard: Option<Instant>,
    /// What the last server said when it ended.
    ended: Option<String>,
}

impl ClientSession {
    /// A session to be, of requests and answers of so many bytes, of which the client lets at most `window`, a power of two, be under way.
    pub fn new(id: ClientId, description: Description, window: u32) -> ClientSession {
        let [request, response] = description.bytes.map(|bytes| bytes as usize);
        ClientSession {
            id,
            description,
            phase: Phase::Opening,
            limits: Limits { window, batch: 1, keeps: 0 },
            requests: Slots::new(window, request),
            accepted: 0,
            cursor: 0,
            sent: 0,
            next: 0,
            answers: Slots::new(window, response),
            received: 0,
            taken: 0,
            told: 0,
            unknown: VecDeque::new(),
            again: None,
            asks: false,
            misses: false,
            probes: false,
            gap: None,
            is_renamed: false,
            heard: None,
            ended: None,
        }
    }

    /// How it stands.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Who this client is now.
    #[cfg(test)]
    pub fn id(&self) -> ClientId {
        self.id
    }

    /// When the last frame of the server came, and what a server said that has ended since.
    pub fn heard(&self) -> (Option<Instant>, Option<&str>) {
        (self.heard, self.ended.as_deref())
    }

    /// How many requests may be under way.
    pub fn window(&self) -> u64 {
        u64::from(self.limits.window).min(self.requests.capacity())
    }

    /// How many more requests there is room for.
    pub fn room(&self) -> u64 {
        self.window().saturating_sub(self.unanswered())
    }

    /// Requests whose answers have not been taken.
    pub fn unanswered(&self) -> u64 {
        self.next - self.taken
    }

    /// Answers, and requests that are unknown, which can be taken.
    pub fn ready(&self) -> u64 {
        self.received - self.taken
    }

    /// Whether all requests were sent.
    #[cfg(feature = "async")]
    pub fn is_sent(&self) -> bool {
        self.cursor == self.next
    }

    /// Whether an answer is what can be taken next.
    pub fn is_answer_next(&self) -> bool {
        self.ready() > 0 && !self.unknown.front().is_some_and(|range| range.contains(&self.taken))
    }

    /// Where the next request is written; none if there is no room. It is under way when [`push`](Self::push) is called.
    pub fn slot(&mut self) -> Option<&mut [u8]> {
        (self.room() > 0).then(|| self.requests.get_mut(self.next))
    }

    /// The request that was written to [`slot`](Self::slot) is one now; gives its number.
    pub fn push(&mut self) -> u64 {
        debug_assert!(self.room() > 0, "no more than there is room for");
        self.next += 1;
        self.next - 1
    }

    /// Takes what comes next; an answer is written to `into`.
    pub fn take(&mut self, into: &mut [u8]) -> Next {
        if self.taken == self.received {
            return Next::Nothing;
        }
        let number = self.taken;
        self.taken += 1;
        if let Some(range) = self.unknown.front_mut()
            && range.contains(&number)
        {
            range.start += 1;
            if range.is_empty() {
                self.unknown.pop_front();
            }
            return Next::Unknown(number);
        }
        into.copy_from_slice(self.answers.get(number));
        Next::Answer
    }

    /// Sends what is to be sent, as much as there is room for; whether anything was.
    pub fn transmit(
        &mut self,
        connection: &mut dyn Connection,
        now: Instant,
    ) -> Result<bool, EngineError> {
        let is_late = self.again.is_some_and(|(at, _)| now >= at);
        if std::mem::take(&mut self.is_renamed) {
            connection.rename(self.id)?;
        }
        match self.phase {
            Phase::Opening => {
                if self.again.is_some() && !is_late {
                    return Ok(false);
                }
                self.wait_again(now);
                let frame = Frame { first: self.sent, ..Frame::new(Kind::Open, self.id, 0) };
                let description = self.description;
                connection.send(HEADER_BYTES + size_of::<Description>(), &mut |into| {
                    frame.write(into).copy_from_slice(bytemuck::bytes_of(&description));
                })
            }
            Phase::Open(session) => {
                if self.cursor < self.next && !self.probes && self.is_stale(now) {
                    (self.probes, self.asks) = (true, true);
                }
                let mut has_sent =
                    !self.probes && self.transmit_requests(connection, session, now)?;
                // The server sends no more answers than may be on their way.
                let size = self.description.bytes[1] as usize;
                let half = connection.bytes_on_their_way() / 2 / size.max(1);
                self.asks |= self.received - self.told >= half.max(1) as u64;
                if self.asks || is_late {
                    self.wait_again(now);
                    self.misses |= is_late;
                    let frame = Frame {
                        count: self.misses.into(),
                        first: self.cursor,
                        received: self.received,
                        ..Frame::new(Kind::Ask, self.id, session)
                    };
                    let is_sent = connection.send(HEADER_BYTES, &mut |into| {
                        frame.write(into);
                    })?;
                    if is_sent {
                        (self.asks, self.misses, self.told) = (false, false, self.received);
                    }
                    has_sent |= is_sent;
                }
                Ok(has_sent)
            }
            Phase::Refused(_) => Ok(false),
        }
    }

    fn transmit_requests(
        &mut self,
        connection: &mut dyn Connection,
        session: SessionId,
        now: Instant,
    ) -> Result<bool, EngineError> {
        let size = self.description.bytes[0] as usize;
        let mut has_sent = false;
        // The server keeps answers from what has come here on.
        let end = self.next.min(self.received + self.window());
        let batch = self.limits.batch.min(self.description.batch(connection.frame_bytes()));
        let most = connection.bytes_on_their_way() / size.max(1);
        let end = end.min(self.accepted.saturating_add(most.max(batch as usize) as u64));
        while self.cursor < end {
            let count = (end - self.cursor).min(u64::from(batch));
            let frame = Frame {
                count: count as u32,
                first: self.cursor,
                received: self.received,
                ..Frame::new(Kind::Requests, self.id, session)
            };
            let (requests, first) = (&self.requests, self.cursor);
            let is_sent = connection.send(HEADER_BYTES + count as usize * size, &mut |into| {
                requests.read(first, frame.write(into));
            });
            if is_sent != Ok(false) {
                // Where the engine has failed, the server may have it, or not.
                self.cursor += count;
                self.sent = self.sent.max(self.cursor);
            }
            if !is_sent? {
                // No room, or no server; a request that was not sent is not lost with it.
                (self.probes, self.asks) = (true, true);
                break;
            }
            (has_sent, self.told) = (true, self.received);
        }
        if self.again.is_none() && (self.waits() || self.probes) {
            self.again = Some((now + AGAIN[0], AGAIN[0]));
        }
        Ok(has_sent)
    }

    /// A frame came.
    pub fn receive(&mut self, bytes: &[u8], now: Instant) {
        let Some((frame, behind)) = Frame::parse(bytes) else { return };
        if frame.client != self.id {
            return;
        }
        match (&self.phase, frame.kind) {
            (Phase::Opening, Kind::Opened) => self.opened(frame, behind, now),
            (Phase::Opening, Kind::Refused) => {
                if let Some(refusal) =
                    Refusal::of_frame(frame.first, value(behind), self.description)
                {
                    self.phase = Phase::Refused(Box::new(refusal));
                }
            }
            (Phase::Open(session), kind) if *session == frame.session => {
                (self.heard, self.probes) = (Some(now), false);
                match kind {
                    Kind::Answers => self.answered(frame, behind, now),
                    Kind::State => self.state(frame, now),
                    Kind::Stranger => self.lost(self.sent),
                    Kind::Ended => {
                        self.accept(frame.received);
                        self.ended = Some(text(&behind[..behind.len().min(MAX_REASON_BYTES)]));
                        self.lost(frame.received.clamp(self.received, self.sent));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn opened(&mut self, frame: Frame, behind: &[u8], now: Instant) {
        let Some(limits) = value::<Limits>(behind) else { return };
        // The first request is where this client has begun, and at least one must fit.
        if frame.received != self.sent || limits.batch == 0 || limits.window == 0 {
            return;
        }
        self.limits = limits;
        self.phase = Phase::Open(frame.session);
        (self.heard, self.ended, self.again) = (Some(now), None, None);
    }

    fn answered(&mut self, frame: Frame, behind: &[u8], now: Instant) {
        let size = self.description.bytes[1] as usize;
        let Some(messages) = frame.messages(behind, size) else { return };
        let Some(end) = frame.first.checked_add(u64::from(frame.count)) else { return };
        // No answer is there before its request.
        if end > self.sent {
            return;
        }
        self.accept(frame.received);
        if frame.first > self.received {
            // One question for what is missing; if that or what is sent for it is lost, the clock has the next one asked.
            if self.gap.replace(self.received) != Some(self.received) {
                (self.asks, self.misses) = (true, true);
            }
        } else if end > self.received {
            let known = (self.received - frame.first) as usize * size;
            self.answers.write(self.received, &messages[known..]);
            self.received = end;
            self.accept(end);
            self.again = self.waits().then_some((now + AGAIN[0], AGAIN[0]));
        }
    }

    fn state(&mut self, frame: Frame, now: Instant) {
        self.accept(frame.received);
        // Of what was sent before the server was asked, what it has not got was lost; or came late, and then it comes once more.
        if self.accepted < frame.first {
            self.cursor = self.cursor.min(self.accepted);
        }
        if !self.waits() {
            self.again = None;
        } else if self.again.is_none() {
            self.wait_again(now);
        }
    }

    /// The server has the requests before that one.
    fn accept(&mut self, accepted: u64) {
        if accepted <= self.sent {
            self.accepted = self.accepted.max(accepted);
            self.cursor = self.cursor.max(self.accepted);
        }
    }

    /// The server that this session was with is gone. Requests before `sent` may have been handled, and the others were not.
    fn lost(&mut self, sent: u64) {
        if sent > self.received {
            self.unknown.push_back(self.received..sent);
        }
        (self.received, self.told) = (sent, sent);
        (self.accepted, self.cursor, self.sent) = (sent, sent, sent);
        self.id = ClientId(crate::random());
        self.is_renamed = true;
        self.phase = Phase::Opening;
        (self.again, self.gap) = (None, None);
        (self.asks, self.misses, self.probes) = (false, false, false);
    }

    /// Whether requests are sent and not answered.
    fn waits(&self) -> bool {
        self.received < self.sent
    }

    /// Whether the server may have given up the session soon.
    fn is_stale(&self, now: Instant) -> bool {
        let keeps = Duration::from_millis(self.limits.keeps);
        self.heard.is_none_or(|heard| now.saturating_duration_since(heard) > keeps / 2)
    }

    fn wait_again(&mut self, now: Instant) {
        let wait = self.again.map_or(AGAIN[0], |(_, wait)| (2 * wait).min(AGAIN[1]));
        self.again = Some((now + wait, wait));
    }

    /// Tells the server that the client will not come back, if there is room for a frame.
    pub fn leave(&mut self, connection: &mut dyn Connection) {
        if let Phase::Open(session) = self.phase {
            let frame =
                Frame { received: self.received, ..Frame::new(Kind::Leave, self.id, session) };
            // Without it the server keeps the session for a while.
            let _ = connection.send(HEADER_BYTES, &mut |into| {
                frame.write(into);
            });
        }
    }
}
