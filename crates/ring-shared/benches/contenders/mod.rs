//! This crate's ring and two queues of others, behind one trait.

use crossbeam_queue::ArrayQueue;
use ring_shared::heap::RingMemory;
use ring_shared::{Inbox, Outbox};
use std::sync::Arc;

/// What a request of the typical kernel is as large as.
pub type Message = [u64; 8];

/// Messages in a batch.
pub const BATCH: usize = 512;

/// Slots of each queue.
pub const CAPACITY: usize = 1024;

/// A bounded queue between two threads.
pub trait Queue: 'static {
    type Sender: Send;
    type Receiver: Send;

    fn new() -> (Self::Sender, Self::Receiver);
    fn push(sender: &mut Self::Sender, message: &Message) -> bool;
    fn pop(receiver: &mut Self::Receiver) -> Option<Message>;
    /// How many of the messages there was room for.
    fn push_batch(sender: &mut Self::Sender, messages: &[Message]) -> usize;
    /// How many messages there were.
    fn pop_batch(receiver: &mut Self::Receiver, messages: &mut [Message]) -> usize;
    /// All that was pushed is known to be consumed, as an answer tells.
    fn note_answered(_: &mut Self::Sender) {}
}

/// The ring of this crate.
pub struct Ring;

impl Queue for Ring {
    type Sender = Outbox;
    type Receiver = Inbox;

    fn new() -> (Outbox, Inbox) {
        let memory = RingMemory::new::<Message>(CAPACITY as u32, 0);
        (Outbox::new(memory.ring()), Inbox::new(memory.ring()))
    }

    fn push(sender: &mut Outbox, message: &Message) -> bool {
        sender.push(message, 0).is_ok()
    }

    fn pop(receiver: &mut Inbox) -> Option<Message> {
        receiver.pop().expect("an honest producer")
    }

    fn push_batch(sender: &mut Outbox, messages: &[Message]) -> usize {
        sender.push_slice(messages, 0).expect("an honest consumer")
    }

    fn pop_batch(receiver: &mut Inbox, messages: &mut [Message]) -> usize {
        receiver.pop_slice(messages).expect("an honest producer")
    }

    fn note_answered(sender: &mut Outbox) {
        sender.note_consumed(sender.next());
    }
}

/// The ring of the crate rtrb.
pub struct Rtrb;

impl Queue for Rtrb {
    type Sender = rtrb::Producer<Message>;
    type Receiver = rtrb::Consumer<Message>;

    fn new() -> (Self::Sender, Self::Receiver) {
        rtrb::RingBuffer::new(CAPACITY)
    }

    fn push(sender: &mut Self::Sender, message: &Message) -> bool {
        sender.push(*message).is_ok()
    }

    fn pop(receiver: &mut Self::Receiver) -> Option<Message> {
        receiver.pop().ok()
    }

    fn push_batch(sender: &mut Self::Sender, messages: &[Message]) -> usize {
        sender.push_partial_slice(messages).0.len()
    }

    fn pop_batch(receiver: &mut Self::Receiver, messages: &mut [Message]) -> usize {
        receiver.pop_partial_slice(messages).0.len()
    }
}

/// The queue of the crate crossbeam-queue, which has no batches.
pub struct Crossbeam;

impl Queue for Crossbeam {
    type Sender = Arc<ArrayQueue<Message>>;
    type Receiver = Arc<ArrayQueue<Message>>;

    fn new() -> (Self::Sender, Self::Receiver) {
        let queue = Arc::new(ArrayQueue::new(CAPACITY));
        (Arc::clone(&queue), queue)
    }

    fn push(sender: &mut Self::Sender, message: &Message) -> bool {
        sender.push(*message).is_ok()
    }

    fn pop(receiver: &mut Self::Receiver) -> Option<Message> {
        receiver.pop()
    }

    fn push_batch(sender: &mut Self::Sender, messages: &[Message]) -> usize {
        messages.iter().take_while(|message| sender.push(**message).is_ok()).count()
    }

    fn pop_batch(receiver: &mut Self::Receiver, messages: &mut [Message]) -> usize {
        let popped = std::iter::from_fn(|| receiver.pop());
        messages.iter_mut().zip(popped).map(|(to, message)| *to = message).count()
    }
}
