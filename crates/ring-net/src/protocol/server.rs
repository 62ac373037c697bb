//! A server's half of all sessions.

use crate::frame::{
    Description, Frame, HEADER_BYTES, Kind, Limits, MAX_REASON_BYTES, SessionId, value,
};
use crate::refusal::Refusal;
use crate::slots::Slots;
use crate::transport::{ClientId, EngineError, Listener};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// What is chosen of a server's sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// Most sessions at a time.
    pub clients: usize,
    /// Requests of a client that may be under way: a power of two.
    pub window: u32,
    /// Most messages of a frame.
    pub batch: u32,
    /// How long a session is kept whose client sends nothing.
    pub keeps: Duration,
}

/// What a server has counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Sessions that there are.
    pub clients: u64,
    /// Sessions that there have been.
    pub opened: u64,
    /// Requests that were taken.
    pub requests: u64,
    /// Answers that were made.
    pub answers: u64,
    /// Answers that were sent once more, as a client asked for them.
    pub sent_again: u64,
    /// Requests that came once more, or too early, and were not taken.
    pub not_taken: u64,
    /// Clients that were refused.
    pub refused: u64,
    /// Frames that were none, or that no client of this version sends.
    pub garbage: u64,
    /// Sessions given up because their clients had sent nothing for long.
    pub given_up: u64,
}

/// Whose requests the kernel has, in the order in which it answers them.
#[derive(Clone, Copy, Debug)]
struct Owner {
    session: SessionId,
    place: usize,
    count: u64,
}

/// All sessions of a server, and what the kernel has of them.
#[derive(Debug)]
pub struct Sessions {
    description: Description,
    choices: Choices,
    /// Sessions by place; a place that is free has none.
    sessions: Vec<Option<Session>>,
    places: HashMap<ClientId, usize>,
    owners: VecDeque<Owner>,
    /// Places of sessions that have something to send, each once.
    dirty: VecDeque<usize>,
    /// Places of sessions whose requests wait for room in the kernel's ring, each once.
    waiting: VecDeque<usize>,
    /// Answers to frames that belong to no session; and clients to whom nothing more is sent, and since when.
    replies: VecDeque<Frame>,
    gone: VecDeque<(Instant, ClientId)>,
    /// When sessions were last looked over.
    swept: Instant,
    counts: Counts,
}

#[derive(Debug)]
struct Session {
    client: ClientId,
    id: SessionId,
    /// Requests that the kernel has not got: `given..accepted`.
    requests: Slots,
    given: u64,
    accepted: u64,
    /// Answers that the client is not known to have: `acked..answered`.
    answers: Slots,
    acked: u64,
    answered: u64,
    /// The first answer that is to be sent, or sent again, and the first that never was.
    cursor: u64,
    sent: u64,
    heard: Instant,
    /// How far the server is has to be told to a client that has sent the requests before that one.
    tells: Option<u64>,
    /// `Opened` has to be told.
    tells_opened: bool,
    /// A request was missing when so many had come, and the client was told.
    gap: Option<u64>,
    is_dirty: bool,
    is_waiting: bool,
    /// There was no room for a frame to the client: not before then is the next one tried.
    retry_at: Option<Instant>,
}

/// How long what an engine keeps to send to a client is kept behind the last frame to it, which may not have been received before.
const FORGET: Duration = Duration::from_secs(2);

/// How long nothing is sent to a client for which there was no room, unless it sends something.
const RETRY: Duration = Duration::from_millis(1);

/// Takes requests for the kernel: so many of those that stand there one behind the other.
pub type Give<'a> = &'a mut dyn FnMut(&[u8]) -> usize;

impl Sessions {
    /// None yet.
    pub fn new(description: Description, choices: Choices, now: Instant) -> Sessions {
        Sessions {
            description,
            choices,
            sessions: Vec::new(),
            places: HashMap::new(),
            owners: VecDeque::new(),
            dirty: VecDeque::new(),
            waiting: VecDeque::new(),
            replies: VecDeque::new(),
            gone: VecDeque::new(),
            swept: now,
            counts: Counts::default(),
        }
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        Counts { clients: self.places.len() as u64, ..self.counts }
    }

    /// Requests that were taken and are not answered.
    pub fn unanswered(&self) -> u64 {
        let waiting = |session: &Session| session.accepted - session.given;
        let owned: u64 = self.owners.iter().map(|owner| owner.count).sum();
        owned + self.sessions.iter().flatten().map(waiting).sum::<u64>()
    }

    /// A frame came. What it brings goes to `give` at once, as far as that takes it.
    pub fn receive(&mut self, bytes: &[u8], now: Instant, give: Give<'_>) {
        let Some((frame, behind)) = Frame::parse(bytes) else {
            self.counts.garbage += 1;
            return;
        };
        if frame.kind == Kind::Open {
            return self.open(frame, behind, now);
        }
        let place = self.places.get(&frame.client).copied();
        let session = place.and_then(|place| self.sessions[place].as_mut());
        let Some((place, session)) =
            place.zip(session).filter(|(_, session)| session.id == frame.session)
        else {
            match frame.kind {
                Kind::Requests | Kind::Ask => {
                    self.reply(Frame::new(Kind::Stranger, frame.client, frame.session));
                }
                Kind::Leave => {}
                _ => self.counts.garbage += 1,
            }
            return;
        };
        (session.heard, session.retry_at) = (now, None);
        // Answers that the client has are kept no longer. It can have none that was not sent.
        if frame.received > session.sent {
            self.counts.garbage += 1;
            return;
        }
        session.acked = session.acked.max(frame.received);
        match frame.kind {
            Kind::Requests => {
                let size = self.description.bytes[0] as usize;
                let messages = frame.messages(behind, size);
                let end = frame.first.checked_add(u64::from(frame.count));
                let most = session.acked + u64::from(self.choices.window);
                match messages.zip(end) {
                    Some((messages, end)) if end <= most => {
                        let is_new = end > session.accepted;
                        if frame.first > session.accepted || !is_new {
                            self.counts.not_taken += u64::from(frame.count);
                            // It is told once of what is missing; if that is lost, the client asks.
                            if frame.first > session.accepted
                                && session.gap.replace(session.accepted) != Some(session.accepted)
                            {
                                session.tells = Some(end);
                            }
                        } else {
                            let known = session.accepted - frame.first;
                            self.counts.not_taken += known;
                            self.counts.requests += end - session.accepted;
                            session.take(
                                &messages[known as usize * size..],
                                size,
                                give,
                                &mut self.owners,
                                place,
                            );
                        }
                    }
                    _ => self.counts.garbage += 1,
                }
                if session.given < session.accepted
                    && !std::mem::replace(&mut session.is_waiting, true)
                {
                    self.waiting.push_back(place);
                }
            }
            Kind::Ask => {
                session.tells = Some(frame.first);
                if frame.count > 0 {
                    session.cursor = session.acked;
                }
            }
            Kind::Leave => {
                return self.close(place, now);
            }
            _ => self.counts.garbage += 1,
        }
        if session.has_to_send() && !std::mem::replace(&mut session.is_dirty, true) {
            self.dirty.push_back(place);
        }
    }

    /// What goes to a client that has no session. Whoever sends more such frames than there is room for has no answer to some.
    fn reply(&mut self, frame: Frame) {
        if self.replies.len() < 2 * self.choices.clients {
            self.replies.push_back(frame);
        }
    }

    fn open(&mut self, frame: Frame, behind: &[u8], now: Instant) {
        // Nobody sends so many requests that their numbers come to an end.
        let Some(description) = value::<Description>(behind).filter(|_| frame.first < 1 << 63)
        else {
            self.counts.garbage += 1;
            return;
        };
        if let Some(place) = self.places.get(&frame.client).copied() {
            // What was told of it was lost, or is on its way.
            if let Some(session) = &mut self.sessions[place] {
                session.tells_opened = true;
                if !std::mem::replace(&mut session.is_dirty, true) {
                    self.dirty.push_back(place);
                }
            }
            return;
        }
        let number = if description != self.description {
            Some(Refusal::OTHER_KERNEL)
        } else if self.places.len() >= self.choices.clients {
            Some(Refusal::TOO_MANY_CLIENTS)
        } else {
            None
        };
        if let Some(number) = number {
            self.counts.refused += 1;
            self.reply(Frame { first: number, ..Frame::new(Kind::Refused, frame.client, 0) });
            return;
        }
        let [request, response] = self.description.bytes.map(|bytes| bytes as usize);
        let (window, first) = (self.choices.window, frame.first);
        let session = Session {
            client: frame.client,
            id: crate::random(),
            requests: Slots::new(window, request),
            given: first,
            accepted: first,
            answers: Slots::new(window, response),
            acked: first,
            answered: first,
            cursor: first,
            sent: first,
            heard: now,
            tells: None,
            tells_opened: true,
            gap: None,
            is_dirty: true,
            is_waiting: false,
            retry_at: None,
        };
        let place = self.sessions.iter().position(Option::is_none).unwrap_or(self.sessions.len());
        if place == self.sessions.len() {
            self.sessions.push(None);
        }
        self.sessions[place] = Some(session);
        self.places.insert(frame.client, place);
        self.dirty.push_back(place);
        self.counts.opened += 1;
    }

    /// Gives the kernel what waits for room, from each session `burst` requests by turns; whether it took any.
    pub fn give(&mut self, burst: u64, give: Give<'_>) -> bool {
        let mut has_given = false;
        for _ in 0..self.waiting.len() {
            let Some(place) = self.waiting.pop_front() else { break };
            let Some(session) = &mut self.sessions[place] else { continue };
            let mut left = burst;
            let mut is_full = false;
            while left > 0 && session.given < session.accepted {
                let count = session
                    .requests
                    .run(session.given, (session.accepted - session.given).min(left));
                let given = give(session.requests.slice(session.given, count)) as u64;
                session.gave(given, &mut self.owners, place);
                has_given |= given > 0;
                left -= given;
                is_full = given < count;
                if is_full {
                    break;
                }
            }
            if session.given < session.accepted {
                self.waiting.push_back(place);
            } else {
                session.is_waiting = false;
            }
            if is_full {
                break;
            }
        }
        has_given
    }

    /// The kernel has answered the next of what it was given.
    pub fn answer(&mut self, answer: &[u8]) {
        let Some(owner) = self.owners.front_mut() else { return };
        owner.count -= 1;
        let Owner { session: id, place, count } = *owner;
        if count == 0 {
            self.owners.pop_front();
        }
        self.counts.answers += 1;
        // The client may have left meanwhile.
        let Some(session) = self.sessions[place].as_mut().filter(|session| session.id == id) else {
            return;
        };
        session.answers.get_mut(session.answered).copy_from_slice(answer);
        session.answered += 1;
        if !std::mem::replace(&mut session.is_dirty, true) {
            self.dirty.push_back(place);
        }
    }

    /// Sends what is to be sent, as far as there is room for it; whether anything was.
    pub fn transmit(
        &mut self,
        now: Instant,
        listener: &mut dyn Listener,
    ) -> Result<bool, EngineError> {
        self.transmit_up_to(listener.bytes_on_their_way(), now, listener)
    }

    /// The same, of which so many bytes may be on their way to each client.
    fn transmit_up_to(
        &mut self,
        bytes: usize,
        now: Instant,
        listener: &mut dyn Listener,
    ) -> Result<bool, EngineError> {
        let Choices { window, batch, keeps, .. } = self.choices;
        let limits = Limits { window, batch, keeps: keeps.as_millis() as u64 };
        let size = self.description.bytes[1] as usize;
        let most = (bytes / size.max(1)).max(batch as usize) as u64;
        let mut has_sent = false;
        while let Some(reply) = self.replies.pop_front() {
            // If there is no room for it, the client asks again.
            let behind = if reply.kind == Kind::Refused {
                bytemuck::bytes_of(&self.description)
            } else {
                &[]
            };
            has_sent |= listener.send(reply.client, HEADER_BYTES + behind.len(), &mut |into| {
                reply.write(into).copy_from_slice(behind);
            })?;
            self.gone.push_back((now, reply.client));
        }
        // It may be answered once more meanwhile, or have a session; then what is kept for it is made again.
        while let Some((since, client)) = self.gone.front().copied() {
            let is_old = now.saturating_duration_since(since) > FORGET;
            if !is_old && self.gone.len() <= 2 * self.choices.clients {
                break;
            }
            self.gone.pop_front();
            listener.forget(client);
        }
        for _ in 0..self.dirty.len() {
            let Some(place) = self.dirty.pop_front() else { break };
            let Some(session) = &mut self.sessions[place] else { continue };
            if session.retry_at.is_none_or(|at| now >= at) {
                has_sent |= session.transmit(limits, size, most, listener, &mut self.counts)?;
                session.retry_at = Some(now + RETRY);
            }
            if session.has_to_send() {
                self.dirty.push_back(place);
            } else {
                (session.is_dirty, session.retry_at) = (false, None);
            }
        }
        Ok(has_sent)
    }

    /// Gives up sessions whose clients have sent nothing for long.
    pub fn sweep(&mut self, now: Instant) {
        if now.saturating_duration_since(self.swept) < self.choices.keeps / 8 {
            return;
        }
        self.swept = now;
        for place in 0..self.sessions.len() {
            let is_old = |session: &Session| {
                now.saturating_duration_since(session.heard) > self.choices.keeps
                    // The kernel is at work for it still.
                    && session.answered == session.accepted
            };
            if self.sessions[place].as_ref().is_some_and(is_old) {
                self.counts.given_up += 1;
                self.close(place, now);
            }
        }
    }

    /// Tells all clients that the server ends, and why; what is answered is sent before. Requests that the kernel has not got are not lost with it.
    pub fn end(
        &mut self,
        why: &str,
        now: Instant,
        listener: &mut dyn Listener,
    ) -> Result<(), EngineError> {
        // There may be room by now where there was none.
        self.sessions.iter_mut().flatten().for_each(|session| session.retry_at = None);
        // Nobody tells any more what has come.
        let mut result = self.transmit_up_to(usize::MAX, now, listener).map(drop);
        let why = &why.as_bytes()[..why.len().min(MAX_REASON_BYTES)];
        for session in self.sessions.iter_mut().filter_map(Option::take) {
            let ended = Frame {
                first: session.answered,
                received: session.given,
                ..Frame::new(Kind::Ended, session.client, session.id)
            };
            let is_sent = listener.send(session.client, HEADER_BYTES + why.len(), &mut |into| {
                ended.write(into).copy_from_slice(why);
            });
            result = result.and(is_sent.map(drop));
        }
        // Nobody waits any more. What the kernel has is answered still, to nobody.
        self.places.clear();
        self.dirty.clear();
        self.waiting.clear();
        result
    }

    fn close(&mut self, place: usize, now: Instant) {
        if let Some(session) = self.sessions[place].take() {
            self.places.remove(&session.client);
            self.gone.push_back((now, session.client));
            self.dirty.retain(|other| *other != place);
            self.waiting.retain(|other| *other != place);
        }
    }
}

impl Session {
    /// Requests that follow those that have come: the kernel has as many as it takes, if none waits, and the others wait.
    fn take(
        &mut self,
        messages: &[u8],
        size: usize,
        give: Give<'_>,
        owners: &mut VecDeque<Owner>,
        place: usize,
    ) {
        let given = if self.given == self.accepted { give(messages) } else { 0 };
        let count = (messages.len() / size) as u64;
        self.requests.write(self.accepted + given as u64, &messages[given * size..]);
        self.accepted += count;
        self.gave(given as u64, owners, place);
    }

    /// The kernel has so many more.
    fn gave(&mut self, count: u64, owners: &mut VecDeque<Owner>, place: usize) {
        self.given += count;
        match owners.back_mut() {
            _ if count == 0 => {}
            Some(owner) if owner.session == self.id => owner.count += count,
            _ => owners.push_back(Owner { session: self.id, place, count }),
        }
    }

    fn has_to_send(&self) -> bool {
        self.cursor < self.answered || self.tells.is_some() || self.tells_opened
    }

    /// Sends what there is, of which `most` answers of `size` bytes each may be on their way.
    fn transmit(
        &mut self,
        limits: Limits,
        size: usize,
        most: u64,
        listener: &mut dyn Listener,
        counts: &mut Counts,
    ) -> Result<bool, EngineError> {
        let mut has_sent = false;
        if self.tells_opened {
            let frame =
                Frame { received: self.accepted, ..Frame::new(Kind::Opened, self.client, self.id) };
            self.tells_opened =
                !listener.send(self.client, HEADER_BYTES + size_of::<Limits>(), &mut |into| {
                    frame.write(into).copy_from_slice(bytemuck::bytes_of(&limits));
                })?;
            has_sent |= !self.tells_opened;
        }
        // What the client has is sent no more.
        self.cursor = self.cursor.max(self.acked);
        let end = self.answered.min(self.acked.saturating_add(most));
        while self.cursor < end {
            let count = (end - self.cursor).min(u64::from(limits.batch));
            let frame = Frame {
                count: count as u32,
                first: self.cursor,
                received: self.accepted,
                ..Frame::new(Kind::Answers, self.client, self.id)
            };
            let (answers, first) = (&self.answers, self.cursor);
            let is_sent =
                listener.send(self.client, HEADER_BYTES + count as usize * size, &mut |into| {
                    answers.read(first, frame.write(into));
                })?;
            if !is_sent {
                return Ok(has_sent);
            }
            counts.sent_again += self.sent.saturating_sub(self.cursor).min(count);
            self.cursor += count;
            self.sent = self.sent.max(self.cursor);
            has_sent = true;
        }
        if let Some(first) = self.tells {
            let frame = Frame {
                first,
                received: self.accepted,
                ..Frame::new(Kind::State, self.client, self.id)
            };
            if listener.send(self.client, HEADER_BYTES, &mut |into| {
                frame.write(into);
            })? {
                self.tells = None;
                has_sent = true;
            }
        }
        Ok(has_sent)
    }
}
