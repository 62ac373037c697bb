//! `ring serve`: a built-in kernel for other processes, by shared memory, and for other hosts, by zenoh.

use crate::args::{Serve, Served};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::services;
use crate::text;
use ring_host::kernels::Echo;
use ring_host::{Kernel, LaunchConfig, Runtime};
use ring_net::{Server, ServerConfig};
use std::io::Write;
use std::time::{Duration, Instant};

/// How long activating the kernel, answering what was taken and ending the kernel may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Serves, and says what was done when it ends.
pub fn run(options: &Serve, out: &mut impl Write) -> Result<(), Failure> {
    match options.kernel {
        Served::Echo => serve::<Echo>(options, out),
    }
}

fn serve<K: Kernel>(options: &Serve, out: &mut impl Write) -> Result<(), Failure> {
    let interrupt = Interrupt::listen();
    let service = options.name.as_deref().unwrap_or(options.kernel.name());
    let failed =
        |why: &dyn ToString| Failure::Serve { service: service.to_owned(), why: why.to_string() };
    let open = |source| Failure::Open { device: options.device, source };
    let runtime = Runtime::open(options.device).map_err(open)?;
    let launch = |source| Failure::Launch { kernel: K::NAME, source };
    let mut kernel = runtime.launch::<K>(LaunchConfig::default()).map_err(launch)?;
    kernel.activate(LIMIT)?;
    let channel = kernel.take_channel(0).map_err(|why| failed(&why))?;
    // Who finds the service is answered at once.
    let (file, clients) = (options.zenoh.as_deref(), options.clients as usize);
    let listener = services::listen(service, &options.listen, file, clients);
    let listener = listener.map_err(|why| failed(&why))?;
    let config = ServerConfig::default().clients(clients);
    let mut server = Server::new(channel, listener, config);
    let device = &runtime.device().name;
    let whom = match (options.listen.as_slice(), file) {
        ([], None) => "to processes of this host".to_owned(),
        ([], Some(file)) => format!("as {} says", file.display()),
        (endpoints, _) => format!("at {}", endpoints.join(" and ")),
    };
    writeln!(out, "serving {} as {service} on {device}, {whom}; Ctrl-C ends it", K::NAME)?;
    out.flush()?;
    let begun = Instant::now();
    let is_over =
        || interrupt.requested() || options.time.is_some_and(|time| begun.elapsed() >= time);
    server.run(is_over).map_err(|why| failed(&why))?;
    let counts = server.counts();
    server.finish(LIMIT).map_err(|why| failed(&why))?;
    kernel.terminate(LIMIT)?;
    let [clients, requests, answers] =
        [counts.opened, counts.requests, counts.answers].map(text::grouped);
    let (refused, garbage) = (counts.refused, counts.garbage);
    writeln!(
        out,
        "{clients} clients, {requests} requests, {answers} answers; {refused} clients refused, {garbage} frames that were none"
    )?;
    Ok(())
}
