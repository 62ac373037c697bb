use super::*;
use std::collections::VecDeque;

const SHORT: Duration = Duration::from_millis(50);

/// What a loopback does to the answer of one message.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    Drop,
    Repeat,
    RepeatForEver,
    Hold,
    Change,
    Break,
}

/// Answers what it is sent, but for message `at`; refuses more than `room` at a time.
struct Loopback {
    ring: VecDeque<EchoMessage>,
    held: Option<EchoMessage>,
    room: usize,
    seen: u64,
    at: u64,
    fault: Fault,
}

impl Port for Loopback {
    type Error = &'static str;

    fn send(&mut self, messages: &[EchoMessage]) -> Result<usize, &'static str> {
        let sent = messages.len().min(self.room.saturating_sub(self.ring.len()));
        for message in &messages[..sent] {
            let mut answer = message.answer();
            let fault = if self.seen == self.at { self.fault } else { Fault::None };
            self.seen += 1;
            match fault {
                Fault::None => self.ring.push_back(answer),
                Fault::Drop | Fault::RepeatForEver => {}
                Fault::Repeat => self.ring.extend([answer, answer]),
                Fault::Hold => self.held = Some(answer),
                Fault::Change => {
                    answer.words[7] += 1;
                    self.ring.push_back(answer);
                }
                Fault::Break => return Err("broken"),
            }
            if fault == Fault::None {
                self.ring.extend(self.held.take());
            }
        }
        Ok(sent)
    }

    fn receive(&mut self, answers: &mut [EchoMessage]) -> Result<usize, &'static str> {
        if self.fault == Fault::RepeatForEver && self.ring.is_empty() && self.seen > self.at {
            self.ring.push_back(EchoMessage::from_seed(0).answer());
        }
        let received = answers.len().min(self.ring.len());
        for (to, from) in answers.iter_mut().zip(self.ring.drain(..received)) {
            *to = from;
        }
        Ok(received)
    }
}

fn run(channels: usize, messages: u64, room: usize, at: u64, fault: Fault) -> Soaked {
    let port = || Loopback { ring: VecDeque::new(), held: None, room, seen: 0, at, fault };
    let ports = (0..channels).map(|_| port()).collect();
    let never = Interrupt::never();
    let (soaked, done) = soak(ports, messages, SHORT, never, &mut Progress::new(messages));
    assert_eq!(done, if fault == Fault::Break { Err("broken") } else { Ok(()) });
    soaked
}

fn counts(soaked: &Soaked) -> [u64; 4] {
    [soaked.lost, soaked.duplicated, soaked.reordered, soaked.corrupt]
}

#[test]
fn sound_channels_pass_at_any_size() {
    for (channels, messages, room) in
        [(1, 1, 1), (1, 10_000, 4096), (1, 1000, 1), (3, 10_000, 100), (8, 5, 64), (1, 0, 1)]
    {
        let soaked = run(channels, messages, room, 0, Fault::None);
        assert!(soaked.sound, "{channels} {messages} {room}: {soaked:?}");
        assert_eq!((soaked.sent, counts(&soaked)), (messages, [0; 4]));
        assert_eq!(soaked.first_wrong, None);
    }
}

#[test]
fn each_fault_is_distinguished_from_the_others() {
    for (fault, expected) in [
        (Fault::Drop, [1, 0, 0, 0]),
        (Fault::Repeat, [0, 1, 0, 0]),
        (Fault::Hold, [0, 0, 1, 0]),
        (Fault::Change, [0, 0, 0, 1]),
    ] {
        let soaked = run(1, 10_000, 256, 777, fault);
        assert_eq!(counts(&soaked), expected);
        assert!(!soaked.sound);
        let wrong = soaked.first_wrong.unwrap().to_string();
        assert!(wrong.starts_with("channel 0, message 77"), "{wrong}");
    }
}

#[test]
fn faults_of_all_channels_are_added() {
    assert_eq!(counts(&run(3, 9000, 64, 5, Fault::Repeat)), [0, 3, 0, 0]);
}

#[test]
fn an_answer_too_many_after_the_last_is_noticed() {
    let soaked = run(1, 100, 4096, 99, Fault::Repeat);
    assert_eq!(counts(&soaked), [0, 1, 0, 0]);
    assert!(!soaked.sound);
}

#[test]
fn a_device_that_is_silent_or_repeats_itself_ends_the_soak() {
    for fault in [Fault::Drop, Fault::RepeatForEver] {
        let soaked = run(1, 100, 64, 99, fault);
        assert_eq!((soaked.sent, soaked.lost, soaked.sound), (100, 1, false));
    }
    let full = run(1, 100, 0, 0, Fault::None);
    assert_eq!((full.sent, full.lost, full.sound), (0, 0, false));
}

#[test]
fn an_error_ends_the_soak_with_what_was_counted() {
    let soaked = run(1, 1000, 64, 500, Fault::Break);
    assert!(!soaked.sound && soaked.sent >= 384 && soaked.sent < 1000, "{soaked:?}");
}

/// Asks for the end after so many calls of its port.
struct Interrupting {
    loopback: Loopback,
    calls: u32,
    flag: &'static std::sync::atomic::AtomicBool,
}

impl Port for Interrupting {
    type Error = &'static str;

    fn send(&mut self, messages: &[EchoMessage]) -> Result<usize, &'static str> {
        self.calls -= 1;
        if self.calls == 0 {
            self.flag.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        self.loopback.send(messages)
    }

    fn receive(&mut self, answers: &mut [EchoMessage]) -> Result<usize, &'static str> {
        let most = answers.len().min(7); // slower than what is sent
        self.loopback.receive(&mut answers[..most])
    }
}

fn interrupted(at: u64, fault: Fault) -> Soaked {
    let flag = Box::leak(Box::default());
    let loopback = Loopback { ring: VecDeque::new(), held: None, room: 300, seen: 0, at, fault };
    let port = Interrupting { loopback, calls: 50, flag };
    let messages = 1_000_000_000;
    let progress = &mut Progress::new(messages);
    let (soaked, done) = soak(vec![port], messages, SHORT, Interrupt::by(flag), progress);
    assert_eq!(done, Ok(()));
    assert!(soaked.interrupted && soaked.sent > 300 && soaked.sent < 2000, "{soaked:?}");
    soaked
}

#[test]
fn an_interrupted_soak_ends_with_the_answers_to_what_was_sent() {
    let soaked = interrupted(u64::MAX, Fault::None);
    assert!(soaked.sound, "{soaked:?}");
    assert_eq!((counts(&soaked), soaked.first_wrong), ([0; 4], None));
    let soaked = interrupted(5, Fault::Drop);
    assert_eq!((counts(&soaked), soaked.sound), ([1, 0, 0, 0], false));
}

#[test]
fn a_soak_that_was_interrupted_before_it_began_sends_nothing() {
    let port =
        Loopback { ring: VecDeque::new(), held: None, room: 9, seen: 0, at: 0, fault: Fault::None };
    let (soaked, done) = soak(vec![port], 10, SHORT, Interrupt::come(), &mut Progress::new(10));
    assert_eq!((done, soaked.sent, soaked.sound, soaked.interrupted), (Ok(()), 0, true, true));
}
