//! Metrics: what a scrape has, read by a parser that is not ours; and the server of them.

use prometheus_parse::{HistogramCount, Sample, Scrape, Value};
use ring_example_kernels::{Item, Ledger, Pass};
use ring_host::kernels::{Echo, EchoMessage, VectorAdd};
use ring_host::metrics::{Exporter, ExporterError, Metrics};
use ring_host::{GraphBuilder, KernelHandle, LaunchConfig, Route, TrySendError};
use ring_tests::kernels::of_examples;
use ring_tests::{LONG, WAYS, active, cpu, exchange, on_each_device, until};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// What the metrics are now.
fn scraped(metrics: &Metrics) -> Scraped {
    let mut page = String::new();
    let registry = metrics.clone().into_registry();
    prometheus_client::encoding::prometheus_text::encode(&mut page, &registry).unwrap();
    Scraped::of(&page)
}

struct Scraped(Vec<Sample>);

impl Scraped {
    fn of(page: &str) -> Scraped {
        Scraped(Scrape::parse(page.lines().map(|line| Ok(line.to_owned()))).unwrap().samples)
    }

    /// All values of a metric whose labels are these, among others.
    fn all(&self, metric: &str, labels: &[(&str, &str)]) -> Vec<&Value> {
        let has = |sample: &&Sample| {
            sample.metric == metric
                && labels.iter().all(|(name, value)| sample.labels.get(name) == Some(value))
        };
        self.0.iter().filter(has).map(|sample| &sample.value).collect()
    }

    /// The only one.
    fn value(&self, metric: &str, labels: &[(&str, &str)]) -> f64 {
        match self.all(metric, labels)[..] {
            [Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value)] => *value,
            ref found => panic!("{metric} of {labels:?}: {found:?}"),
        }
    }
}

#[test]
fn a_scrape_has_what_each_channel_counts() {
    on_each_device(|runtime| {
        let metrics = Metrics::of(runtime);
        for (number, (mode, memory)) in WAYS.into_iter().enumerate() {
            let launch = LaunchConfig::default().mode(mode).memory(memory).channels(2);
            let mut kernel = active(runtime, launch.capacity(128));
            for seed in 0..7 {
                exchange(&mut kernel, seed);
            }
            // No window is as long.
            let batch: [EchoMessage; 100] =
                std::array::from_fn(|k| EchoMessage::from_seed(k as u64));
            let other = kernel.channel(1).unwrap();
            assert_eq!(other.try_send_batch(&batch).unwrap(), 100);
            for request in &batch[..90] {
                assert_eq!(other.recv(LONG).unwrap(), request.answer());
            }
            until("all are handled", || {
                let _ = kernel.is_resting(); // drives a kernel that is launched when there is work
                (kernel.telemetry().processed == 107).then_some(())
            });
            kernel.deactivate(LONG).unwrap(); // its counts are exact then
            let launch = (number + 1).to_string();
            let of_kernel = [("kernel", "echo"), ("launch", &launch)];
            let [first, second] = ["0", "1"].map(|channel| {
                let [kernel, launch] = of_kernel;
                [kernel, launch, ("channel", channel)]
            });
            let page = scraped(&metrics);
            let values = |metric| [&first, &second].map(|labels| page.value(metric, labels));
            let name = format!("{mode} in {memory}");
            assert_eq!(values("ring_requests_sent_total"), [7.0, 100.0], "{name}");
            assert_eq!(values("ring_requests_bytes_total"), [7.0 * 64.0, 6400.0], "{name}");
            assert_eq!(values("ring_requests_handled_total"), [7.0, 100.0], "{name}");
            assert_eq!(values("ring_responses_received_total"), [7.0, 90.0], "{name}");
            assert_eq!(values("ring_responses_bytes_total"), [7.0 * 64.0, 5760.0], "{name}");
            assert_eq!(values("ring_responses_waiting"), [0.0, 10.0], "{name}");
            assert_eq!(values("ring_requests_waiting"), [0.0; 2], "{name}");
            assert_eq!(values("ring_requests_refused_total"), [0.0; 2], "{name}");
            assert_eq!(values("ring_index_errors_total"), [0.0; 2], "{name}");
            assert_eq!(values("ring_send_stalls_total"), [0.0; 2], "{name}");
            assert_eq!(values("ring_requests_in_slots_total"), [0.0, 100.0], "{name}");
            let state = |state| page.all("ring_kernel_state", &[of_kernel[1], ("state", state)]);
            assert_eq!((state("inactive").len(), state("active").len()), (1, 0), "{name}");
            let (mode, memory) = (mode.to_string(), memory.to_string());
            let of_info = [of_kernel[1], ("mode", &mode), ("memory", &memory), ("channels", "2")];
            assert_eq!(page.value("ring_kernel_info", &of_info), 1.0);
            assert!(page.value("ring_kernel_launches_total", &of_kernel) >= 1.0);
            for times in ["ring_handler_seconds", "ring_queueing_seconds"] {
                let is =
                    |name: &str| scraped(&metrics).value(&format!("{times}_{name}"), &of_kernel);
                // They come with the next heartbeat.
                until(times, || (is("count") == 107.0 && is("sum") > 0.0).then_some(()));
                let page = scraped(&metrics);
                let depths = page.all("ring_inbox_depth", &of_kernel);
                assert!(matches!(depths[..], [Value::Gauge(0.0), Value::Gauge(0.0)]), "{name}");
                let [Value::Histogram(buckets)] = page.all(times, &of_kernel)[..] else {
                    panic!("{times}")
                };
                let last = buckets.last().unwrap();
                assert_eq!((last.less_than, last.count), (f64::INFINITY, 107.0), "{name}");
                let increase = |a: &HistogramCount, b: &HistogramCount| {
                    a.count <= b.count && a.less_than < b.less_than
                };
                assert!(buckets.is_sorted_by(increase), "{name}");
            }
        }
    });
}

#[test]
fn ports_are_told_by_channel_and_by_who_reads_them() {
    let runtime = cpu();
    let metrics = Metrics::of(&runtime);
    let launch = || LaunchConfig::default().kernels(of_examples::<Pass>());
    let mut declared = GraphBuilder::new();
    let first = declared.kernel::<Pass>(launch().channels(2));
    let last = declared.kernel::<Pass>(launch());
    declared.feed(first).link_with(first, Pass::ON, last, Route::ToAll, 64);
    let read = declared.read_with(last, Pass::ON, 8);
    let mut graph = runtime.launch_graph(&declared).unwrap();
    graph.activate(LONG).unwrap();
    let mut senders = graph.senders(first).unwrap();
    for (sender, count) in senders.iter_mut().zip([3, 5]) {
        (0..count).for_each(|_| sender.send(Item::default(), LONG).unwrap());
    }
    graph.drain(LONG).unwrap();
    let page = scraped(&metrics);
    let of = |metric: &str, labels: [&str; 3]| {
        let labels = ["channel", "launch", "to"].into_iter().zip(labels);
        page.value(metric, &labels.collect::<Vec<_>>())
    };
    let each = [["0", "1", "pass"], ["1", "1", "pass"], ["0", "2", "host"]];
    let bytes = size_of::<Item>() as f64;
    assert_eq!(each.map(|port| of("ring_port_messages_total", port)), [3.0, 5.0, 8.0]);
    let of_bytes = each.map(|port| of("ring_port_bytes_total", port));
    assert_eq!(of_bytes, [3.0 * bytes, 5.0 * bytes, 8.0 * bytes]);
    assert_eq!(each.map(|port| of("ring_port_waiting", port)), [0.0, 0.0, 8.0]);
    assert_eq!(each.map(|port| of("ring_port_fullest_ratio", port)), [0.0, 0.0, 1.0]);
    assert_eq!(each.map(|port| of("ring_port_stalls_total", port)), [0.0; 3]);
    let named = page.all("ring_port_waiting", &[("port", "ON"), ("kernel", "pass")]);
    assert_eq!(named.len(), 3);
    graph.activate(LONG).unwrap();
    senders[0].send(Item::default(), LONG).unwrap();
    until("the last kernel waits for room", || {
        let page = scraped(&metrics);
        let of = |to| page.value("ring_port_stalls_total", &[("channel", "0"), ("to", to)]);
        (of("host") == 1.0).then(|| assert_eq!(of("pass"), 0.0))
    });
    let mut receiver = graph.receiver(read, 0).unwrap();
    for _ in 0..9 {
        receiver.recv(LONG).unwrap();
    }
    graph.terminate(LONG).unwrap();
}

#[test]
fn kernels_come_and_go_by_number() {
    let runtime = cpu();
    let metrics = Metrics::of(&runtime);
    let numbers = || {
        let found = scraped(&metrics);
        let launches = found.0.iter().filter(|sample| sample.metric == "ring_kernel_info");
        launches.map(|sample| sample.labels.get("launch").unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(), [""; 0]);
    let first = active(&runtime, LaunchConfig::default());
    let second = runtime.launch::<Ledger>(LaunchConfig::default().kernels(of_examples::<Ledger>()));
    let third = runtime.launch::<VectorAdd>(LaunchConfig::default()).unwrap();
    assert_eq!(numbers(), ["1", "2", "3"]);
    drop(second);
    assert_eq!(numbers(), ["1", "3"]);
    drop(first);
    // A runtime is watched once, and its kernels also when it is gone.
    metrics.watch(&runtime);
    drop(runtime);
    assert_eq!(numbers(), ["3"]);
    assert_eq!(scraped(&metrics).value("ring_kernel_state", &[("state", "launched")]), 1.0);
    drop(third);
    assert_eq!(numbers(), [""; 0]);
}

#[test]
fn memory_is_told_as_it_is_taken() {
    on_each_device(|runtime| {
        let metrics = Metrics::of(runtime);
        let value = |metric: &str| scraped(&metrics).value(metric, &[("memory", "pinned")]);
        let before = value("ring_memory_free_bytes");
        let kernel = active(runtime, LaunchConfig::default());
        let taken = scraped(&metrics).value("ring_kernel_pinned_bytes", &[("launch", "1")]);
        assert_eq!(taken, kernel.pinned_bytes() as f64);
        assert!(value("ring_memory_free_bytes") <= before - taken);
        assert!(value("ring_memory_bytes") >= before);
        assert_eq!(scraped(&metrics).value("ring_kernel_lease_seconds", &[]), 10.0);
        drop(kernel);
        until("its memory is free", || (value("ring_memory_free_bytes") >= before).then_some(()));
    });
}

/// However often it is offered until there is room.
#[test]
fn a_message_that_finds_no_room_stalls_once() {
    on_each_device(|runtime| {
        let metrics = Metrics::of(runtime);
        let mut kernel = active(runtime, LaunchConfig::default().capacity(8));
        let stalls = || scraped(&metrics).value("ring_send_stalls_total", &[]);
        let request = EchoMessage::from_seed(1);
        let refused = |kernel: &mut KernelHandle<Echo>| {
            assert!(matches!(kernel.try_send(request), Err(TrySendError::Full(_))));
            stalls()
        };
        // Then eight answers are not received, and eight requests wait for room for theirs.
        for _ in 0..16 {
            kernel.send(request, LONG).unwrap();
        }
        let before = refused(&mut kernel);
        for _ in 0..100 {
            assert_eq!(refused(&mut kernel), before);
            assert_eq!(kernel.try_send_batch(&[request]).unwrap(), 0);
        }
        kernel.recv(LONG).unwrap();
        kernel.send(request, LONG).unwrap(); // the same that was refused
        assert_eq!(stalls(), before);
        assert_eq!(refused(&mut kernel), before + 1.0);
    });
}

/// What the server answers to that; nothing if it hangs up.
fn asked(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    // It may hang up before it has read all.
    let _ = stream.write_all(request);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn an_exporter_serves_both_formats_and_nothing_else() {
    let runtime = cpu();
    let mut kernel = active(&runtime, LaunchConfig::default().channels(64));
    exchange(&mut kernel, 1);
    let exporter = Exporter::on_loopback(0, Metrics::of(&runtime).into_registry()).unwrap();
    let address = exporter.address();
    assert!(address.ip().is_loopback() && address.port() != 0);
    let ask = |request: &str| asked(address, format!("{request}\r\nHost: it\r\n\r\n").as_bytes());

    let answer = ask("GET /metrics HTTP/1.1");
    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    let scraped = Scraped::of(page);
    assert_eq!(scraped.value("ring_requests_sent_total", &[("channel", "0")]), 1.0);
    assert_eq!(scraped.all("ring_requests_sent_total", &[]).len(), 64);

    let answer =
        ask("GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text; version=1.0.0");
    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(page.ends_with("# EOF\n") && page.contains("\n# UNIT ring_handler_seconds seconds\n"));

    let answer = ask("HEAD /metrics HTTP/1.1");
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\r\n\r\n"), "{answer}");
    for (request, status, says) in [
        ("GET / HTTP/1.1", "404 Not Found", "/metrics"),
        ("GET /metrics/more HTTP/1.1", "404 Not Found", "/metrics"),
        ("POST /metrics HTTP/1.1\r\nContent-Length: 1000000000", "405 Method Not Allowed", "GET"),
        ("nonsense", "400 Bad Request", ""),
    ] {
        let answer = ask(request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request}: {answer}");
        assert!(answer.contains(says), "{request}: {answer}");
    }
    // More than it reads.
    let long = format!("GET /metrics HTTP/1.1\r\nLong: {}\r\n\r\n", "x".repeat(1 << 20));
    let answer = asked(address, long.as_bytes());
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    kernel.terminate(LONG).unwrap();
}

#[test]
fn who_says_nothing_keeps_nobody_from_being_answered() {
    let exporter = Exporter::on_loopback(0, Metrics::default().into_registry()).unwrap();
    let silent: Vec<_> = (0..8).map(|_| TcpStream::connect(exporter.address()).unwrap()).collect();
    let request = b"GET /metrics HTTP/1.1\r\nHost: it\r\n\r\n";
    assert!(asked(exporter.address(), request).starts_with("HTTP/1.1 200 OK"));
    drop(exporter); // which waits for none of them
    drop(silent);
}

#[test]
fn a_port_in_use_is_named_and_free_afterwards() {
    let registry = || Metrics::default().into_registry();
    let exporter = Exporter::on_loopback(0, registry()).unwrap();
    let address = exporter.address();
    let refused = Exporter::on(address, registry()).unwrap_err();
    assert!(matches!(&refused, ExporterError::Listen { address: named, .. } if *named == address));
    let words = refused.to_string();
    assert!(words.starts_with(&format!("cannot listen on {address}: ")), "{words}");
    assert!(words.ends_with("choose another port, or 0 for any"), "{words}");
    drop(exporter);
    drop(Exporter::on(address, registry()).unwrap());
}

/// A task of an executor may own one, and drop it.
#[test]
fn an_exporter_may_live_in_an_executor() {
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    executor.block_on(async {
        let exporter = Exporter::on_loopback(0, Metrics::default().into_registry()).unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        drop(exporter);
    });
}
