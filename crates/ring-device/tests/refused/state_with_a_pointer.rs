//! A state that holds an address of the host's.

ring_device::ring_kernel! {
    /// Keeps a list.
    pub struct Lists;

    fn handle(state: &mut Vec<u64>, request: &u64) -> u64 {
        state.push(*request);
        state.len() as u64
    }
}

fn main() {}
