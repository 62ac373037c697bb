//! A message with a pointer inside: its bytes mean nothing on the other side.

#[derive(Clone, Copy)]
pub struct Named {
    name: &'static str,
}

ring_device::ring_kernel! {
    /// Takes names.
    pub struct Names;

    fn handle(request: &Named) -> u64 {
        request.name.len() as u64
    }
}

fn main() {}
