//! What `cargo xtask callgrind` counts the instructions of: each function below moves messages of
//! 64 bytes and does nothing else. Without an argument this lists them, behind the number of messages
//! that each moves; with the name of one it runs that one and what has to happen before it.

#[path = "../benches/contenders/mod.rs"]
#[allow(dead_code)]
mod contenders;

use contenders::{BATCH, Message, Queue, Ring, Rtrb};
use ring_shared::{Inbox, Outbox};
use std::hint::black_box;

/// Times that a batch is moved.
const ROUNDS: usize = 20;

const NAMES: &str = "push_slot push_inline push_slice push_each pop_slot pop_inline pop_slice \
    pop_each rtrb_push rtrb_push_slice rtrb_pop rtrb_pop_slice";

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("push_slot") => rounds::<Ring>(push_slot, pop_all::<Ring>),
        Some("push_inline") => inline(),
        Some("push_slice") => rounds::<Ring>(push_slice, pop_all::<Ring>),
        Some("push_each") => rounds::<Ring>(push_each, pop_all::<Ring>),
        Some("pop_slot") => rounds::<Ring>(push_all::<Ring>, pop_slot),
        Some("pop_inline") => inline(),
        Some("pop_slice") => rounds::<Ring>(push_all::<Ring>, pop_slice),
        Some("pop_each") => rounds::<Ring>(push_all::<Ring>, pop_each),
        Some("rtrb_push") => rounds::<Rtrb>(rtrb_push, pop_all::<Rtrb>),
        Some("rtrb_push_slice") => rounds::<Rtrb>(rtrb_push_slice, pop_all::<Rtrb>),
        Some("rtrb_pop") => rounds::<Rtrb>(push_all::<Rtrb>, rtrb_pop),
        Some("rtrb_pop_slice") => rounds::<Rtrb>(push_all::<Rtrb>, rtrb_pop_slice),
        _ => println!("{} {NAMES}", ROUNDS * BATCH),
    }
}

/// Into slots: the first message is not consumed, so none travels inline.
#[inline(never)]
fn push_slot(producer: &mut Outbox, messages: &[Message]) {
    for message in messages {
        black_box(producer.push(message, 0).is_ok());
    }
}

/// Into the line: what was pushed before is said to be answered. One message a call.
#[inline(never)]
fn push_inline(producer: &mut Outbox, message: &Message) {
    producer.note_consumed(producer.next());
    black_box(producer.push(message, 0).is_ok());
}

#[inline(never)]
fn push_slice(producer: &mut Outbox, messages: &[Message]) {
    black_box(producer.push_slice(messages, 0).is_ok());
}

#[inline(never)]
fn push_each(producer: &mut Outbox, messages: &[Message]) {
    let message = |k: usize| [messages[0][0] + k as u64; 8];
    black_box(producer.push_each(messages.len(), 0, message).is_ok());
}

#[inline(never)]
fn pop_slot(consumer: &mut Inbox, out: &mut [Message]) {
    for out in out {
        if let Ok(Some(message)) = consumer.pop() {
            *out = message;
        }
    }
}

/// One message a call.
#[inline(never)]
fn pop_inline(consumer: &mut Inbox, out: &mut Message) {
    if let Ok(Some(message)) = consumer.pop() {
        *out = message;
    }
}

#[inline(never)]
fn pop_slice(consumer: &mut Inbox, out: &mut [Message]) {
    black_box(consumer.pop_slice(out).is_ok());
}

/// Keeps all of each message, as `pop_slice` does.
#[inline(never)]
fn pop_each(consumer: &mut Inbox, out: &mut [Message]) {
    let (most, mut out) = (out.len(), out.iter_mut());
    let keep = |message: &Message| {
        if let Some(out) = out.next() {
            *out = *message;
        }
    };
    black_box(consumer.pop_each(most, keep).is_ok());
}

#[inline(never)]
fn rtrb_push(producer: &mut rtrb::Producer<Message>, messages: &[Message]) {
    for message in messages {
        black_box(producer.push(*message).is_ok());
    }
}

#[inline(never)]
fn rtrb_push_slice(producer: &mut rtrb::Producer<Message>, messages: &[Message]) {
    black_box(producer.push_partial_slice(messages));
}

#[inline(never)]
fn rtrb_pop(consumer: &mut rtrb::Consumer<Message>, out: &mut [Message]) {
    for out in out {
        if let Ok(message) = consumer.pop() {
            *out = message;
        }
    }
}

#[inline(never)]
fn rtrb_pop_slice(consumer: &mut rtrb::Consumer<Message>, out: &mut [Message]) {
    black_box(consumer.pop_partial_slice(out));
}

/// A batch by `push`, then by `pop`, [`ROUNDS`] times.
fn rounds<Q: Queue>(
    push: fn(&mut Q::Sender, &[Message]),
    pop: fn(&mut Q::Receiver, &mut [Message]),
) {
    let (mut sender, mut receiver) = Q::new();
    let messages: Vec<Message> = (0..BATCH as u64).map(|k| [k; 8]).collect();
    let mut out = vec![[0; 8]; BATCH];
    for _ in 0..ROUNDS {
        push(&mut sender, black_box(&messages));
        pop(&mut receiver, black_box(&mut out));
        assert!(out == messages, "some were not moved");
    }
}

fn push_all<Q: Queue>(sender: &mut Q::Sender, messages: &[Message]) {
    assert_eq!(Q::push_batch(sender, messages), messages.len());
}

fn pop_all<Q: Queue>(receiver: &mut Q::Receiver, out: &mut [Message]) {
    assert_eq!(Q::pop_batch(receiver, out), out.len());
}

/// As many, one at a time, all of them inline.
fn inline() {
    let (mut producer, mut consumer) = Ring::new();
    for k in 0..(ROUNDS * BATCH) as u64 {
        let mut out = [0; 8];
        push_inline(&mut producer, black_box(&[k; 8]));
        pop_inline(&mut consumer, black_box(&mut out));
        assert_eq!(out, [k; 8]);
    }
}
