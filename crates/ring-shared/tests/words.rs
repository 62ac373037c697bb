//! What either side says in words of the layouts: commands, exits, and where a time is counted.

mod parts;

use parts::Memory;
use ring_shared::layout::{ChannelBlock, Command, ControlBlock, Exit, State, bucket};
use std::sync::atomic::Ordering::Relaxed;

/// Zeroed memory for a `T`.
fn zeroed<T>() -> Memory {
    Memory::new(size_of::<T>(), align_of::<T>())
}

#[test]
fn an_exit_by_a_budget_is_a_yield_and_no_other_is() {
    let yields = [Exit::TimeSpent, Exit::IterationsSpent, Exit::Idle];
    let exits: Vec<Exit> = (0..20).filter_map(Exit::from_u32).collect();
    assert_eq!(exits.len(), 13);
    for exit in exits {
        assert_eq!(exit.is_yield(), yields.contains(&exit), "{exit:?}");
    }
}

#[test]
fn what_is_said_is_what_is_read() {
    let memory = zeroed::<ControlBlock>();
    // SAFETY: memory of that size and alignment, zeroed, which is valid for atomics and padding.
    let control = unsafe { memory.at::<ControlBlock>().as_ref() };
    let command = Command { epoch: 7, state: State::Inactive as u32 };
    control.host.give(command);
    assert_eq!(Command::from_word(control.host.command.load(Relaxed)), command);
    let memory = zeroed::<ChannelBlock>();
    // SAFETY: as above.
    let channel = unsafe { memory.at::<ChannelBlock>().as_ref() };
    channel.status.acknowledged.store(command.to_word(), Relaxed);
    channel.status.launches_left.store(5, Relaxed);
    channel.request_credit.consumed.store(9, Relaxed);
    assert_eq!((channel.status.acknowledgement(), channel.status.launches_left()), (command, 5));
    assert_eq!(channel.consumed(), 9);
}

#[test]
fn times_are_counted_by_powers_of_two() {
    let buckets = [0, 1, 2, 3, 4, 1023, 1024, (1 << 31) - 1, 1 << 31, u64::MAX].map(bucket);
    assert_eq!(buckets, [0, 0, 1, 1, 2, 9, 10, 30, 31, 31]);
}
