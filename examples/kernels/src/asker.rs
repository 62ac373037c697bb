//! What handlers ask the host.

use bytemuck::{Pod, Zeroable};
use core::time::Duration;
use ring_device::HostCallError;

/// What is asked.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Question {
    /// The number that is asked about.
    pub number: u64,
    /// How long the handler waits, in microseconds.
    pub within: u32,
    /// What it asks: 0 for [`Asker::double`], 1 for [`Asker::digits`], else nothing.
    pub which: u32,
}

/// What came of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Told {
    /// What the host has answered, or 0.
    pub number: u64,
    /// One of the constants below.
    pub how: u32,
    /// How long the handler waited, in nanoseconds.
    pub waited: u32,
}

impl Told {
    /// The host has answered.
    pub const ANSWERED: u32 = 0;
    /// Not in time.
    pub const TIMEOUT: u32 = 1;
    /// The kernel was told to leave.
    pub const STOPPED: u32 = 2;
    /// The host has refused.
    pub const REFUSED: u32 = 3;
}

ring_device::ring_kernel! {
    /// Asks the host what it is asked.
    pub struct Asker {
        name: "asker",
        calls: {
            /// Twice a number.
            fn double(u64) -> u64;
            /// How many decimal digits a number has.
            fn digits(u64) -> u32;
        },
    }

    fn handle(ctx: &ThreadContext, question: &Question) -> Told {
        let (began, within) = (ctx.now(), Duration::from_micros(question.within.into()));
        let answer = match question.which {
            0 => ctx.call(Asker::double, question.number, within),
            1 => ctx.call(Asker::digits, question.number, within).map(u64::from),
            _ => Ok(question.number),
        };
        let waited = u32::try_from(ctx.now().wrapping_sub(began)).unwrap_or(u32::MAX);
        let how = match answer {
            Ok(_) => Told::ANSWERED,
            Err(HostCallError::Timeout) => Told::TIMEOUT,
            Err(HostCallError::Stopped) => Told::STOPPED,
            Err(HostCallError::Refused) => Told::REFUSED,
        };
        Told { number: answer.unwrap_or(0), how, waited }
    }
}
