//! A handler with a reply, and a port of the reply's name.

ring_device::ring_kernel! {
    /// A port that is named as that of replies.
    pub struct Twice {
        ports: {
            /// Numbers.
            REPLY: [u64; 1],
        },
    }

    fn handle(request: &u64, _: &mut Ports) -> u64 {
        *request
    }
}

fn main() {}
