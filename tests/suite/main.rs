//! The integration tests, in one process: every test opens the device for itself, on the CPU and,
//! where there is one, on a GPU, in parallel and in any order.

/// The calling test's path.
macro_rules! here {
    ($name:literal) => {
        concat!(module_path!(), "::", $name)
    };
}

mod abandoned;
mod asynchronous;
mod bad_input;
mod buffers;
mod busy;
mod client;
// Both give the process a driver library of their own, which glibc loads and a static program of musl's cannot.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod cubins;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod driver;
mod embedded;
mod faults;
mod grid;
mod handlers;
mod host_calls;
mod hostile;
mod kernels;
mod layout;
mod lease;
mod life_cycle;
mod loading;
mod logs;
mod messages;
mod metrics;
mod modes;
mod panics;
mod payload;
mod quiesce;
mod quirks;
mod recovery;
mod refused;
mod sequences;
mod several;
mod shared;
mod sizes;
mod state;
mod supervision;
mod ticks;
mod tools;
mod tracing;
mod vectors;
mod window;
