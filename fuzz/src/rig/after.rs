//! What must be true of a kernel's memory after a launch, whatever the host did.

use super::buffers::Buffers;
use super::field::OF_DEVICE;
use super::host::Host;
use ring_shared::layout::{Command, ControlBlock, Exit, State};
use ring_shared::ring::{CONTROL, Control};
use ring_shared::{ABI_VERSION, MAGIC};
use std::sync::atomic::Ordering::Relaxed;

/// What is known before a launch of how it must end.
#[derive(Debug)]
pub struct Expected {
    /// Whether a kernel of our kind is there, with that channel.
    ours: bool,
    /// Whether an earlier launch lost the channel.
    lost: bool,
    left: u64,
    head: u64,
}

impl Host {
    /// Records the memory as it is.
    pub fn before_launch(&mut self) -> Expected {
        self.written = Self::plain(self.words()).to_vec();
        // SAFETY: atomics and padding.
        let host = unsafe { &self.shared.at::<ControlBlock>().as_ref().host };
        let ours = host.magic.load(Relaxed) == MAGIC
            && host.abi_version.load(Relaxed) == ABI_VERSION
            && self.shape.block() < host.channels.load(Relaxed);
        let status = &self.own().status;
        Expected {
            ours,
            lost: status.acknowledged.load(Relaxed) as u32 == State::Faulted as u32,
            left: status.launches_left.load(Relaxed),
            head: self.own().request_credit.consumed.load(Relaxed),
        }
    }

    /// Checks what must be so after a launch, whatever the host did.
    pub fn check_after(&self, expected: &Expected) {
        let (words, written) = (Self::plain(self.words()), &self.written[..]);
        let of_channel = match expected.ours {
            true => self.own_offset() / 8 + OF_DEVICE.start..self.own_offset() / 8 + OF_DEVICE.end,
            false => 0..0,
        };
        assert_eq!(
            words[..of_channel.start],
            written[..of_channel.start],
            "wrote before its lines"
        );
        assert_eq!(words[of_channel.end..], written[of_channel.end..], "wrote behind its lines");
        assert_eq!(Self::plain(self.request_words()), &self.sent[..], "wrote into requests");
        self.buffers.iter().for_each(Buffers::check);
        if !expected.ours {
            return;
        }
        let (block, status) = (self.own(), &self.own().status);
        assert_eq!(
            status.launches_left.load(Relaxed),
            expected.left.wrapping_add(1),
            "left, and said so"
        );
        if expected.lost {
            return;
        }
        let exit = Exit::from_u32(status.exit.load(Relaxed) as u32).expect("an exit");
        let state = match exit {
            Exit::Asked => State::Terminated,
            exit if exit.is_yield() => State::Yielded,
            Exit::BadConfig | Exit::CorruptRing | Exit::LeaseOver => State::Faulted,
            other => panic!("left by {other:?}"),
        };
        let acknowledged = Command::from_word(status.acknowledged.load(Relaxed));
        assert_eq!(State::from_u32(acknowledged.state), Some(state), "{exit:?}");
        let head = block.request_credit.consumed.load(Relaxed);
        if head != expected.head {
            // Behind an inline answer in its line, behind slots in the first one too.
            let tail = |index| {
                let line = self.response_line(index);
                Control::from_words(line.atoms[CONTROL].load()).tail
            };
            let told = [tail(0), tail(head.wrapping_sub(1))];
            assert!(told.contains(&(head as u32)), "taken but not answered, or the reverse");
        }
        assert!(head.wrapping_sub(expected.head) < 1 << 32, "went back");
    }
}
