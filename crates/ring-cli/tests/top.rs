//! `ring top`, the built binary in a terminal, as a user sees it and presses keys.
#![cfg(unix)]

#[allow(dead_code, reason = "others look at more of a run")]
mod common;

use common::{LIMIT, ring};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::metrics::{Exporter, Metrics};
use ring_host::{Device, LaunchConfig, Runtime};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use vt100::Parser;

const ROWS: u16 = 24;
const COLUMNS: u16 = 120;

/// Two channels, which differ in all that the keys go by.
const PAGE: &str = r#"# TYPE ring_requests_handled counter
ring_requests_handled_total{device="cpu",kernel="echo",launch="1",channel="0"} 7
ring_requests_handled_total{device="cpu",kernel="echo",launch="1",channel="1"} 7
ring_requests_waiting{device="cpu",kernel="echo",launch="1",channel="0"} 3
ring_requests_waiting{device="cpu",kernel="echo",launch="1",channel="1"} 5
ring_kernel_state{device="cpu",kernel="echo",launch="1",state="active"} 1
ring_kernel_launches_total{device="cpu",kernel="echo",launch="1"} 4
ring_handler_seconds_bucket{device="cpu",kernel="echo",launch="1",le="+Inf"} 14
"#;

/// Serves that to whoever asks, on a port of its own, as long as the test runs.
fn serve(status: &'static str, page: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it has an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream.and_then(|stream| answer(stream, status, page));
        }
    });
    port
}

fn answer(mut stream: TcpStream, status: &str, page: &str) -> std::io::Result<()> {
    stream.set_read_timeout(Some(LIMIT))?;
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        request.extend(byte);
    }
    let length = page.len();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{page}")
}

/// `ring top` in a terminal.
struct Top {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    printed: Receiver<Vec<u8>>,
    screen: Parser,
    /// The terminal is there as long as this is.
    _terminal: Box<dyn MasterPty + Send>,
}

impl Top {
    fn start(arguments: &[&str]) -> Top {
        let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("there are terminals");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_ring"));
        command.arg("top");
        command.args(arguments);
        command.env("TERM", "xterm-256color");
        command.cwd(".");
        let child = pair.slave.spawn_command(command).expect("the binary can be run");
        let mut output = pair.master.try_clone_reader().expect("it can be read");
        let (to, printed) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                let _ = to.send(bytes[..count].to_vec());
            }
        });
        let keys = pair.master.take_writer().expect("it can be written to");
        let screen = Parser::new(ROWS, COLUMNS, 0);
        Top { child, keys, printed, screen, _terminal: pair.master }
    }

    /// Waits until the screen shows all of these, and none of those.
    #[track_caller]
    fn shows(&mut self, parts: &[&str], but_not: &[&str]) {
        let begun = Instant::now();
        loop {
            let text = self.screen.screen().contents();
            let has = |part: &&&str| text.contains(**part);
            if parts.iter().filter(has).count() == parts.len() && !but_not.iter().any(|p| has(&p)) {
                return;
            }
            assert!(begun.elapsed() < LIMIT, "not {parts:?} but not {but_not:?}:\n{text}");
            self.read();
        }
    }

    /// Takes what has been printed, or waits a while for it. Whether there can be more.
    fn read(&mut self) -> bool {
        match self.printed.recv_timeout(Duration::from_millis(50)) {
            Ok(bytes) => self.screen.process(&bytes),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        true
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("it reads keys");
        self.keys.flush().expect("it reads keys");
    }

    /// Waits for its end, with the terminal as it was before. What is on the screen then.
    #[track_caller]
    fn ends(&mut self, status: u32) -> String {
        let begun = Instant::now();
        let ended = loop {
            self.read();
            if let Some(ended) = self.child.try_wait().expect("it can be waited for") {
                break ended;
            }
            assert!(begun.elapsed() < LIMIT, "it does not end");
        };
        while self.screen.screen().alternate_screen() || self.screen.screen().hide_cursor() {
            assert!(begun.elapsed() < LIMIT, "the terminal is not as it was");
            self.read();
        }
        // The last that was printed may come after that.
        let settled = Instant::now();
        while settled.elapsed() < Duration::from_millis(200) && self.read() {}
        let text = self.screen.screen().contents();
        assert_eq!(ended.exit_code(), status, "{text}");
        text
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

fn page_of(port: u16) -> String {
    format!("http://127.0.0.1:{port}/metrics")
}

#[test]
fn channels_are_shown_and_keys_do_what_they_say() {
    let page = page_of(serve("200 OK", PAGE));
    let mut top = Top::start(&["--page", &page, "--every", "100ms"]);
    let [first, second] =
        ["0 active", "1 active"].map(|is| format!("echo #1        cpu        {is}"));
    let chosen = format!("> {first}");
    // The rate is there from the second sample on.
    top.shows(
        &[&page, "kernel▼", &chosen, &second, "0        -        3", "0        -        5"],
        &[],
    );
    assert!(top.screen.screen().alternate_screen() && top.screen.screen().hide_cursor());

    top.press("sss"); // messages, bytes, waiting
    top.shows(&["waiting▼", &format!("> {second}")], &["kernel▼"]);
    top.press("r");
    top.shows(&["waiting▲", &chosen], &["waiting▼"]);
    top.press("p");
    top.shows(&["paused"], &[]);
    top.press("p");
    top.shows(&[], &["paused"]);
    top.press("\x1b[B"); // Down
    top.shows(&[&format!("> {second}")], &[&chosen]);
    top.press("\r");
    top.shows(&["echo #1 on cpu, channel 1: active", "waiting 5"], &["waiting▲", "> echo"]);
    top.press("?");
    top.shows(&["Up, Down, PageUp, PageDown"], &["channel 1: active"]);
    top.press("?");
    top.shows(&["channel 1: active"], &["Up, Down"]);
    top.press("\x1b"); // Esc
    top.shows(&["waiting▲"], &["channel 1: active"]);
    top.press("q");
    let text = top.ends(0);
    assert_eq!(text.trim(), "", "nothing is left on the screen");
}

#[test]
fn trouble_is_shown_until_ctrl_c() {
    for (status, page, says) in [
        ("503 Service Unavailable", PAGE, "the server answers with status 503"),
        ("200 OK", "<html></html>", "no metrics in the text format of Prometheus"),
        ("200 OK", "up 1\n", "none of ring's"),
    ] {
        let mut top = Top::start(&["--page", &page_of(serve(status, page))]);
        top.shows(&[says, "no sample yet"], &[]);
        top.press("\x03"); // Ctrl-C
        top.ends(0);
    }
}

#[test]
fn a_program_is_run_and_its_end_is_shown() {
    let script = "echo asked for $RING_METRICS_PORT; exit 3";
    let mut top = Top::start(&["--", "sh", "-c", script]);
    top.shows(&["sh has ended, exit status: 3", "  asked for ", "cannot be reached"], &[]);
    top.press("q");
    let text = top.ends(0);
    let line = text.trim();
    let path = line.strip_prefix("the output of sh is in ").unwrap_or_else(|| panic!("{text}"));
    let output = std::fs::read_to_string(path).expect("it is there");
    assert!(output.starts_with("asked for "), "{output}");
    std::fs::remove_file(path).expect("it is ours");
}

/// Where it is asked to, this serves what a kernel counts until it is killed: it is what the next test runs.
#[test]
fn a_program_serves_its_metrics_only_if_it_is_asked_to() {
    let runtime = Runtime::open(Device::Cpu).expect("there are CPU threads");
    let exporter = Exporter::asked_for(Metrics::of(&runtime).into_registry());
    let Some(_exporter) = exporter.expect("the port is free") else { return };
    let mut kernel = runtime.launch::<Echo>(LaunchConfig::default()).expect("it is launched");
    kernel.activate(LIMIT).expect("it becomes active");
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        kernel.send(EchoMessage::from_seed(7), LIMIT).expect("there is room");
        kernel.recv(LIMIT).expect("it answers");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_kernels_of_a_program_that_is_run_are_shown() {
    let program = std::env::current_exe().expect("it is known");
    let program = program.to_str().expect("it is UTF-8");
    let test = "a_program_serves_its_metrics_only_if_it_is_asked_to";
    let mut top = Top::start(&["--every", "100ms", "--", program, "--exact", test]);
    // Its handlers have run within the last interval.
    top.shows(&["> echo #1        cpu        0 active ", " persistent", "memory of cpu"], &[]);
    top.press("\r");
    top.shows(&["echo #1 on cpu, channel 0: active", "Handlers ran: p50 "], &[]);
    top.press("q");
    let text = top.ends(0);
    let (_, path) = text.trim().rsplit_once(" is in ").unwrap_or_else(|| panic!("{text}"));
    std::fs::remove_file(path).expect("it is ours");
}

#[test]
fn a_program_that_runs_is_ended_and_a_signal_quits() {
    let mut top = Top::start(&["--", "sh", "-c", "exec sleep 100000"]);
    top.shows(&["sh runs; its output is in "], &[]);
    let id = top.child.process_id().expect("it runs").to_string();
    let signalled = std::process::Command::new("kill").args(["-TERM", &id]).status();
    assert!(signalled.expect("kill can be run").success());
    let text = top.ends(0);
    let path =
        text.trim().strip_prefix("the output of sh is in ").unwrap_or_else(|| panic!("{text}"));
    std::fs::remove_file(path).expect("it is ours");
}

#[test]
fn what_is_no_program_is_named_and_no_terminal_is_begun() {
    let mut top = Top::start(&["--", "/no/such/program"]);
    let text = top.ends(1);
    assert!(text.contains("ring: cannot run /no/such/program: "), "{text}");
}

#[test]
fn without_a_terminal_it_says_what_it_needs() {
    ring("top").ends(1).complains(&["ring: standard output is not a terminal", "in a terminal"]);
    ring("top --page https://127.0.0.1/metrics").ends(2).complains(&["only http"]);
}
