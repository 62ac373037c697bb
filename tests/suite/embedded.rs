//! Kernels that a build script compiled.

use crate::faults::on_each_device_alone;
use ring_device::ring_kernel;
use ring_host::image::ImageError;
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{Kernels, LaunchConfig, LaunchError};
use ring_tests::{LONG, cpu};

/// What `tests/build.rs` put there.
const KERNELS: Kernels = ring_host::include_kernels!();
const MORE: Kernels = ring_host::include_kernels!("more");

ring_kernel! {
    /// A kernel that is not in it.
    struct Absent {
        name: "absent",
        entry: "ring_absent",
    }

    fn handle(request: &u64) -> u64 {
        *request
    }
}

#[test]
fn they_answer_on_every_device() {
    assert_eq!(KERNELS, MORE);
    on_each_device_alone(here!("they_answer_on_every_device"), |runtime| {
        let mut kernel = runtime.launch::<Echo>(LaunchConfig::default().kernels(KERNELS)).unwrap();
        kernel.activate(LONG).unwrap();
        for seed in 0..100 {
            let request = EchoMessage::from_seed(seed);
            kernel.send(request, LONG).unwrap();
            assert_eq!(kernel.recv(LONG).unwrap(), request.answer());
        }
        kernel.terminate(LONG).unwrap();
    });
}

#[test]
fn they_are_checked_on_every_device() {
    let image = |launch: LaunchConfig| match cpu().launch::<Absent>(launch).map(|_| ()) {
        Err(LaunchError::Image { kernel: "absent", source }) => source,
        other => panic!("{other:?}"),
    };
    let error = image(LaunchConfig::default().kernels(KERNELS));
    let ImageError::NoEntry { entry: "ring_absent", has } = &error else { panic!("{error}") };
    assert!(!has.is_empty() && has.iter().all(|name| name.starts_with("ring_")), "{error}");
    for (text, expected) in
        [("", ImageError::Empty), (".version 8.4\n.target sm_70\n", ImageError::NoAbi)]
    {
        // SAFETY: no device runs it: it is refused.
        let kernels = unsafe { Kernels::new(text) };
        assert_eq!(image(LaunchConfig::default().kernels(kernels)), expected);
    }
}
