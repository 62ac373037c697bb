//! Why a server does not take a client.

use crate::frame::Description;
use ring_host::Kernel;
use std::fmt;

/// What one side says of the kernel that it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The kernel's name.
    pub kernel: String,
    /// The type of a request, as Rust names it; of a long name its end.
    pub request: String,
    /// The type of an answer.
    pub response: String,
    /// Bytes of a request.
    pub request_bytes: u32,
    /// Bytes of an answer.
    pub response_bytes: u32,
    /// The version of the layouts of messages: [`ring_shared::ABI_VERSION`].
    pub abi: u32,
}

impl fmt::Display for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Described { kernel, request, response, request_bytes, response_bytes, abi } = self;
        write!(
            f,
            "kernel {kernel}, requests {request} of {request_bytes} bytes, answers {response} of {response_bytes} bytes, ABI {abi}"
        )
    }
}

/// Why a server does not take a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The service is another kernel, or its messages are others.
    #[error(
        "the service is another one: it has {served}; this client wants {wanted}; build both from the same kernel"
    )]
    OtherKernel {
        /// What is served.
        served: Box<Described>,
        /// What the client wants.
        wanted: Box<Described>,
    },
    /// The server has as many clients as it takes.
    #[error(
        "the server has as many clients as it takes (`ServerConfig::clients`): end one, or let the server take more"
    )]
    TooManyClients,
    /// The server gives a reason that this version does not know.
    #[error(
        "the server refuses for a reason that this version does not know: number {0}; update this client"
    )]
    Unknown(u64),
}

impl Refusal {
    /// Numbers in frames.
    pub(crate) const OTHER_KERNEL: u64 = 1;
    pub(crate) const TOO_MANY_CLIENTS: u64 = 2;

    /// What a frame says; none if it does not describe what is served.
    pub(crate) fn of_frame(
        number: u64,
        served: Option<Description>,
        wanted: Description,
    ) -> Option<Refusal> {
        Some(match number {
            Self::OTHER_KERNEL => Refusal::OtherKernel {
                served: Box::new(served?.into()),
                wanted: Box::new(wanted.into()),
            },
            Self::TOO_MANY_CLIENTS => Refusal::TooManyClients,
            other => Refusal::Unknown(other),
        })
    }
}

impl Description {
    /// That of a kernel.
    pub fn of<K: Kernel>() -> Description {
        Description {
            kernel: beginning(K::NAME),
            request: end(std::any::type_name::<K::Request>()),
            response: end(std::any::type_name::<K::Response>()),
            bytes: [size_of::<K::Request>() as u32, size_of::<K::Response>() as u32],
            abi: ring_shared::ABI_VERSION,
            reserved: 0,
        }
    }
}

impl From<Description> for Described {
    fn from(description: Description) -> Described {
        Described {
            kernel: text(&description.kernel),
            request: text(&description.request),
            response: text(&description.response),
            request_bytes: description.bytes[0],
            response_bytes: description.bytes[1],
            abi: description.abi,
        }
    }
}

fn beginning<const N: usize>(text: &str) -> [u8; N] {
    let len = text.len().min(N);
    let mut bytes = [0; N];
    bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
    bytes
}

fn end<const N: usize>(text: &str) -> [u8; N] {
    let from = text.len().saturating_sub(N);
    let mut bytes = [0; N];
    bytes[..text.len() - from].copy_from_slice(&text.as_bytes()[from..]);
    bytes
}

/// Up to the first zero; what is no text or would disturb a terminal is shown as a question mark.
pub(crate) fn text(bytes: &[u8]) -> String {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let printable = |c: char| if c.is_control() { '?' } else { c };
    String::from_utf8_lossy(bytes).chars().map(printable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring_host::kernels::Echo;

    #[test]
    fn a_refusal_names_what_both_sides_mean() {
        let wanted = Description::of::<Echo>();
        let served = Description { bytes: [64, 128], kernel: beginning("other"), ..wanted };
        let refusal = Refusal::of_frame(Refusal::OTHER_KERNEL, Some(served), wanted).unwrap();
        let said = refusal.to_string();
        for part in ["kernel other", "kernel echo", "of 128 bytes", "EchoMessage of 64 bytes"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(Refusal::of_frame(Refusal::OTHER_KERNEL, None, wanted), None);
        assert_eq!(Refusal::of_frame(9, None, wanted), Some(Refusal::Unknown(9)));
    }

    #[test]
    fn names_that_are_long_or_no_text_are_shown_none_the_less() {
        assert_eq!(text(&beginning::<4>("abcdef")), "abcd");
        assert_eq!(text(&end::<4>("abcdef")), "cdef");
        assert_eq!(text(b"a\x1b[2J\xff"), "a?[2J\u{fffd}");
    }
}
