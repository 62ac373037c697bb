//! Code that a GPU runs with access to all memory, without a promise of what it does.

use ring_host::{Kernels, LaunchConfig};

fn main() {
    let _ = LaunchConfig::default().ptx(&b"an entry that writes anywhere"[..]);
    let _ = LaunchConfig::default().kernels(Kernels::new("an entry that writes anywhere"));
}
