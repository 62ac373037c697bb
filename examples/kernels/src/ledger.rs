//! A state of a mebibyte, which says by itself whether it is that between two messages.

use bytemuck::{Pod, Zeroable};

/// Accounts of a ledger.
pub const ACCOUNTS: usize = (1 << 17) - 2;

/// What a channel of [`Ledger`] keeps. Between two messages, `first`, `last`, and the sum of all accounts are the messages so far.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct LedgerState {
    /// Messages that were begun.
    pub first: u64,
    /// Messages of each account.
    pub accounts: [u64; ACCOUNTS],
    /// Messages that were ended.
    pub last: u64,
}

ring_device::ring_kernel! {
    /// Counts messages by account, and answers how many there were.
    pub struct Ledger {
        name: "ledger",
        threads: 64,
    }

    fn handle(state: &mut LedgerState, account: &u64) -> u64 {
        state.first = state.first.wrapping_add(1);
        let account = *account as usize % ACCOUNTS;
        state.accounts[account] = state.accounts[account].wrapping_add(1);
        state.last = state.last.wrapping_add(1);
        state.last
    }
}
