//! Reads the page again and again, on a thread of its own: the screen waits for none of it.

use super::sample::Sample;
use super::trouble::Trouble;
use crate::args::Page;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::time::{Duration, Instant};
use ureq::{Agent, Error};

/// Bytes of a page at most.
pub const MOST: u64 = 4 << 20;

/// How long a page may take, from connecting to its last byte.
pub const LONGEST: Duration = Duration::from_secs(2);

/// What came of a look at the page.
pub struct Look {
    /// When it ended.
    pub at: Instant,
    /// What the page said.
    pub outcome: Result<Sample, Trouble>,
}

/// Looks at a page, until it is dropped.
pub struct Watch {
    /// What comes of each look.
    pub looks: Receiver<Look>,
    /// The thread ends when this is gone.
    _ends: Sender<()>,
}

impl Watch {
    /// Begins to look, with that time between two looks.
    pub fn begin(page: &Page, every: Duration) -> std::io::Result<Watch> {
        // One at a time: where nobody takes them, none are made.
        let (to, looks) = sync_channel(1);
        let (_ends, ended) = channel::<()>();
        let (page, agent) = (page.to_string(), agent(LONGEST));
        std::thread::Builder::new().name("ring-top".to_owned()).spawn(move || {
            loop {
                let outcome = look(&agent, &page);
                let gone = to.send(Look { at: Instant::now(), outcome }).is_err();
                if gone || ended.recv_timeout(every) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        })?;
        Ok(Watch { looks, _ends })
    }
}

/// Goes straight to the page, and takes what it answers as it is.
fn agent(longest: Duration) -> Agent {
    let config = Agent::config_builder()
        .timeout_global(Some(longest))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_idle_connections(0)
        .proxy(None)
        .user_agent(concat!("ring/", env!("CARGO_PKG_VERSION")));
    config.build().into()
}

/// One look.
fn look(agent: &Agent, page: &str) -> Result<Sample, Trouble> {
    let mut answer = agent.get(page).call().map_err(trouble)?;
    if answer.status().as_u16() != 200 {
        return Err(Trouble::Status(answer.status().as_u16()));
    }
    let page = answer.body_mut().with_config().limit(MOST + 1).read_to_vec().map_err(trouble)?;
    if page.len() as u64 > MOST {
        return Err(Trouble::Large);
    }
    Sample::of(&String::from_utf8(page).map_err(|_| Trouble::NoText)?)
}

fn trouble(error: Error) -> Trouble {
    match error {
        Error::Timeout(_) => Trouble::Late,
        Error::BodyExceedsLimit(_) => Trouble::Large,
        error => Trouble::Unreachable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring_host::kernels::{Echo, EchoMessage};
    use ring_host::metrics::{Exporter, Metrics};
    use ring_host::{Device, LaunchConfig, Runtime};
    use std::io::{Read, Write};
    use std::net::TcpListener;

    const LONG: Duration = Duration::from_secs(60);

    /// What a look of at most that long says of a server that does that with its first connection.
    fn looked(
        longest: Duration,
        serve: impl FnOnce(&mut std::net::TcpStream) + Send + 'static,
    ) -> Trouble {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let page = Page::on_loopback(listener.local_addr().unwrap().port());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            serve(&mut stream);
        });
        let trouble = look(&agent(longest), page.as_str()).unwrap_err();
        server.join().unwrap();
        trouble
    }

    fn answers(answer: impl Into<Vec<u8>>) -> Trouble {
        let answer = answer.into();
        looked(LONG, move |stream| drop(stream.write_all(&answer)))
    }

    fn page(text: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{text}")
    }

    #[test]
    fn a_kernel_is_seen_as_its_exporter_shows_it() {
        let runtime = Runtime::open(Device::Cpu).unwrap();
        let registry = Metrics::of(&runtime).into_registry();
        let exporter = Exporter::on_loopback(0, registry).unwrap();
        let mut kernel =
            runtime.launch::<Echo>(LaunchConfig::default().channels(2).capacity(128)).unwrap();
        kernel.activate(LONG).unwrap();
        for seed in 0..7 {
            kernel.send(EchoMessage::from_seed(seed), LONG).unwrap();
            kernel.recv(LONG).unwrap();
        }
        kernel.deactivate(LONG).unwrap();
        let page = Page::on_loopback(exporter.address().port());
        let watch = Watch::begin(&page, Duration::from_millis(1)).unwrap();
        // A look may be late on a busy machine.
        let look = || watch.looks.recv_timeout(LONG).unwrap().outcome;
        let until = || std::iter::repeat_with(look).find_map(Result::ok).unwrap();
        let sample = until();
        assert_eq!((sample.kernels.len(), sample.channels.len()), (1, 2));
        let (id, found) = sample.kernels.first_key_value().unwrap();
        assert_eq!((id.device.as_str(), id.kernel.as_str(), id.launch), ("cpu", "echo", Some(1)));
        assert_eq!(found.state.as_deref(), Some("inactive"));
        assert!(found.mode.is_some() && found.launches >= Some(1.0));
        assert_eq!(found.pinned, Some(kernel.pinned_bytes() as f64));
        let channel = sample.channels.values().next().unwrap();
        assert_eq!((channel.handled, channel.unread), (Some(7.0), Some(0.0)));
        assert_eq!((channel.request_bytes, channel.response_bytes), (Some(448.0), Some(448.0)));
        assert_eq!((channel.stalls, channel.refused), (Some(0.0), Some(0.0)));
        assert_eq!((channel.index_errors, channel.waiting), (Some(0.0), Some(0.0)));
        assert!(channel.inbox.is_some());
        for buckets in [&found.handler, &found.queueing] {
            assert!(buckets.len() > 10 && buckets.is_sorted());
            assert_eq!(buckets.last().unwrap().0, f64::INFINITY);
        }
        assert!(sample.memories.values().any(|memory| memory.bytes > memory.free));
        // It looks again.
        assert_eq!(until().kernels.len(), 1);
        kernel.terminate(LONG).unwrap();
    }

    #[test]
    fn what_is_no_page_of_metrics_is_told_apart() {
        assert!(matches!(answers("HTTP/1.1 404 Not Found\r\n\r\n"), Trouble::Status(404)));
        let elsewhere = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n";
        assert!(matches!(answers(elsewhere), Trouble::Status(302)));
        assert!(matches!(answers(page("<html></html>")), Trouble::NoMetrics));
        assert!(matches!(answers(page("up 1\n")), Trouble::NoneOfOurs));
        assert!(matches!(answers([page("ring_").as_bytes(), &[255]].concat()), Trouble::NoText));
        for broken in ["", "SSH-2.0-x\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"] {
            assert!(matches!(answers(broken), Trouble::Unreachable(_)), "{broken}");
        }
    }

    #[test]
    fn no_more_is_read_than_the_limit() {
        let line = "ring_kernel_launches_total{kernel=\"a\"} 1\n";
        let long = page(&line.repeat(1 + MOST as usize / line.len()));
        assert!(matches!(answers(long), Trouble::Large));
        // And not at all where that never ends.
        let endless = |stream: &mut std::net::TcpStream| {
            let _ = stream.write_all(page("").as_bytes());
            while stream.write_all(&[b'#'; 65536]).is_ok() {}
        };
        assert!(matches!(looked(LONG, endless), Trouble::Large));
    }

    #[test]
    fn who_is_silent_or_slow_is_left() {
        let short = Duration::from_millis(300);
        let silent = |stream: &mut std::net::TcpStream| drop(stream.read(&mut [0; 1]));
        assert!(matches!(looked(short, silent), Trouble::Late));
        let slow = |stream: &mut std::net::TcpStream| {
            let _ = stream.write_all(page("").as_bytes());
            while stream.write_all(b"#").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        assert!(matches!(looked(short, slow), Trouble::Late));
    }

    #[test]
    fn a_port_where_nobody_listens_cannot_be_reached() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let trouble = look(&agent(LONG), Page::on_loopback(port).as_str()).unwrap_err();
        assert!(matches!(trouble, Trouble::Unreachable(_)), "{trouble}");
        assert!(trouble.to_string().contains("does the program run"), "{trouble}");
    }
}
