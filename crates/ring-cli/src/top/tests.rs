//! Screens, as a terminal shows them.

use super::sample::Sample;
use super::state::{End, Program, State};
use super::watch::Look;
use super::{keys, screen};
use crate::top::trouble::Trouble;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyCode;
use std::fmt::Write;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// A page on which each channel has handled so many messages, of 128 bytes there and back.
fn page(handled: &[u64]) -> String {
    let of = r#"device="cpu",kernel="echo",launch="1""#;
    let mut page = format!(
        "ring_kernel_info{{{of},mode=\"persistent\"}} 1\nring_kernel_state{{{of},state=\"active\"}} 1\n\
         ring_kernel_launches_total{{{of}}} 1\nring_kernel_pinned_bytes{{{of}}} 2500000\n\
         ring_memory_bytes{{device=\"cpu\",memory=\"pinned\"}} 67108864\n\
         ring_memory_free_bytes{{device=\"cpu\",memory=\"pinned\"}} 60000000\n"
    );
    let all: u64 = handled.iter().sum();
    for (end, count) in [("1e-06", all / 2), ("2e-06", all), ("+Inf", all)] {
        for times in ["handler", "queueing"] {
            let count = if times == "handler" { count } else { 0 };
            writeln!(page, "ring_{times}_seconds_bucket{{le=\"{end}\",{of}}} {count}").unwrap();
        }
    }
    for (channel, handled) in handled.iter().enumerate() {
        for (metric, value) in [
            ("requests_handled_total", *handled),
            ("requests_bytes_total", handled * 64),
            ("responses_bytes_total", handled * 64),
            ("requests_waiting", channel as u64),
            ("responses_waiting", 10 - channel as u64),
            ("send_stalls_total", 0),
            ("requests_refused_total", 0),
            ("index_errors_total", 0),
        ] {
            writeln!(page, "ring_{metric}{{{of},channel=\"{channel}\"}} {value}").unwrap();
        }
    }
    page
}

fn begun() -> State {
    State::new("http://127.0.0.1:9464/metrics".to_owned(), SECOND, None)
}

/// After looks at pages, a second after the other.
fn watched(pages: &[&[u64]]) -> State {
    let (mut state, begin) = (begun(), Instant::now());
    for (k, handled) in (0..).zip(pages) {
        let outcome = Sample::of(&page(handled));
        state.take(Look { at: begin + SECOND * k, outcome });
        state.at(begin + SECOND * k);
    }
    state
}

fn press(state: &mut State, key: KeyCode) {
    assert_eq!(keys::press(state, key.into()), keys::Next::Stay);
}

fn drawn(state: &State, [width, height]: [u16; 2]) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen::draw(frame, state)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| row(y).trim_end().to_owned() + "\n").collect()
}

#[track_caller]
fn shows(state: &State, size: [u16; 2], expected: &str) {
    let found = drawn(state, size);
    assert!(found == expected, "{found}\nis not\n{expected}");
}

const FOOT: &str = "? keys  s sort  r reverse  p pause  Enter channel  q quit\n";

#[test]
fn kernels_stand_above_channels_with_their_rates() {
    let state = watched(&[&[0, 0], &[1000, 5], &[3000, 17]]);
    let expected = "\
http://127.0.0.1:9464/metrics every 1s, sampled 0 s ago

  kernel         device  state       run p50  run p99 wait p50 wait p99 launches   memory mode
  echo #1        cpu     active      1.00 us  1.98 us        -        -        1  2.50 MB persistent
  pinned memory of cpu: 67.1 MB, 60.0 MB free

  kernel▼        device    ch state      msg/s  bytes/s  waiting  unread  errors  stalls/s  rate
> echo #1        cpu        0 active     2.00k   256 kB        0      10       0         0   ▅█
  echo #1        cpu        1 active        12  1.54 kB        1       9       0         0   ▄█

";
    shows(&state, [110, 11], &format!("{expected}{FOOT}"));
}

#[test]
fn links_stand_between_kernels_and_channels() {
    let with_links = |messages: u64| {
        let mut page = page(&[messages]);
        for (port, to, channel, times) in
            [("on", "sum", 0, 2), ("on", "sum", 1, 1), ("late", "host", 0, 0)]
        {
            let of = format!(
                "device=\"cpu\",kernel=\"echo\",launch=\"1\",channel=\"{channel}\",port=\"{port}\",to=\"{to}\""
            );
            let messages = messages * times;
            writeln!(page, "ring_port_messages_total{{{of}}} {messages}").unwrap();
            writeln!(page, "ring_port_bytes_total{{{of}}} {}", 64 * messages).unwrap();
            writeln!(page, "ring_port_waiting{{{of}}} {}", 10 * times).unwrap();
            writeln!(page, "ring_port_fullest_ratio{{{of}}} {}", times as f64 / 8.0).unwrap();
            writeln!(page, "ring_port_stalls_total{{{of}}} {}", messages / 500).unwrap();
        }
        page
    };
    let (mut state, begin) = (begun(), Instant::now());
    for k in 0..2 {
        let outcome = Sample::of(&with_links(1000 * u64::from(k)));
        state.take(Look { at: begin + SECOND * k, outcome });
        state.at(begin + SECOND * k);
    }
    let expected = "\
http://127.0.0.1:9464/metrics every 1s, sampled 0 s ago

  kernel         device  state       run p50  run p99 wait p50 wait p99 launches   memory mode
  echo #1        cpu     active      1.00 us  1.98 us        -        -        1  2.50 MB persistent
  pinned memory of cpu: 67.1 MB, 60.0 MB free

  link from      device  port         to             msg/s  bytes/s  waiting fullest  stalls/s
  echo #1        cpu     late         host               0      0 B        0      0%         0
  echo #1        cpu     on           sum            3.00k   192 kB       30     25%         6

  kernel▼        device    ch state      msg/s  bytes/s  waiting  unread  errors  stalls/s  rate
> echo #1        cpu        0 active     1.00k   128 kB        0      10       0         0   █

";
    shows(&state, [110, 14], &format!("{expected}{FOOT}"));
}

#[test]
fn a_narrow_screen_has_fewer_columns() {
    let state = watched(&[&[0, 0], &[1000, 5]]);
    let expected = "\
http://127.0.0.1:9464/metrics every 1s,
sampled 0 s ago

  kernel         device  state
  echo #1        cpu     active
  pinned memory of cpu: 67.1 MB, 60.0 MB

  kernel▼        device    ch state
> echo #1        cpu        0 active
  echo #1        cpu        1 active

? keys  s sort  r reverse  p pause  Enter
";
    shows(&state, [41, 12], expected);
    // And of none nothing is shown, without a panic.
    for size in [[1, 1], [2, 3], [5, 5], [200, 1], [1, 200]] {
        drawn(&state, size);
    }
}

#[test]
fn the_column_of_the_order_is_marked_and_a_pause_is_told() {
    let mut state = watched(&[&[0, 0, 0], &[10, 30, 20]]);
    for key in ['s', 'p'] {
        press(&mut state, KeyCode::Char(key));
    }
    press(&mut state, KeyCode::Down);
    let channels = |state: &State| {
        let lines = drawn(state, [80, 14]);
        lines
            .lines()
            .skip(6)
            .take(4)
            .map(|line| line.chars().take(46).collect::<String>())
            .collect::<Vec<_>>()
    };
    assert!(drawn(&state, [80, 14]).contains("sampled 0 s ago, paused\n"));
    let screen = drawn(&state, [80, 14]);
    assert!(screen.contains("msg/s▼  bytes/s"), "{screen}");
    let [_, rows @ ..] = &channels(&state)[..] else { panic!() };
    assert_eq!(
        rows,
        [
            "  echo #1        cpu        1 active        30",
            "> echo #1        cpu        2 active        20",
            "  echo #1        cpu        0 active        10",
        ]
    );
    press(&mut state, KeyCode::Char('r'));
    let screen = drawn(&state, [80, 14]);
    assert!(screen.contains("msg/s▲  bytes/s"), "{screen}");
    assert_eq!(channels(&state)[3], "  echo #1        cpu        1 active        30");
}

#[test]
fn the_chosen_channel_is_in_sight_among_many() {
    let many = [7; 10];
    let mut state = watched(&[&many, &many]);
    press(&mut state, KeyCode::End);
    let screen = drawn(&state, [80, 12]);
    assert!(screen.contains("\n> echo #1        cpu        9 active         0"), "{screen}");
    press(&mut state, KeyCode::Home);
    let screen = drawn(&state, [80, 12]);
    assert!(screen.contains("\n> echo #1        cpu        0 active         0"), "{screen}");
    assert!(!screen.contains("cpu        9"), "{screen}");
}

#[test]
fn a_channel_alone_has_the_times_of_its_kernel_as_bars() {
    let mut state = watched(&[&[0, 0], &[1000, 5], &[3000, 17]]);
    press(&mut state, KeyCode::Down);
    press(&mut state, KeyCode::Enter);
    let expected = "\
http://127.0.0.1:9464/metrics every 1s, sampled 0 s ago

echo #1 on cpu, channel 1: active
  msg/s 12  bytes/s 1.54 kB  waiting 1  unread 9  errors 0  stalls/s 0
  rate  ▄█

Of the whole kernel, in the last interval:
Handlers ran: p50 1.00 us, p99 1.98 us  Messages waited: none
  to  1.00 us  1.01k ██████████████████
  to  2.00 us  1.01k ██████████████████

";
    shows(&state, [80, 12], &format!("{expected}{FOOT}"));
    press(&mut state, KeyCode::Esc);
    assert!(drawn(&state, [80, 12]).contains("kernel▼"));
}

#[test]
fn the_keys_and_columns_are_explained() {
    let mut state = watched(&[&[0]]);
    press(&mut state, KeyCode::Char('?'));
    let screen = drawn(&state, [80, 24]);
    for part in ["Up, Down, PageUp", "  s                   sort by", "  run p50, run p99    half"]
    {
        assert!(screen.contains(part), "{screen}");
    }
    let line = format!("{:22}both in the last interval, as if even within each bucket\n", "");
    assert!(screen.contains(&line), "{screen}");
    assert!(screen.contains("to the greatest of them\n"), "all of it:\n{screen}");
}

#[test]
fn trouble_is_told_at_the_beginning_too() {
    let mut state = begun();
    shows(&state, [60, 4], &format!("{} every 1s, no sample yet\n\n\n{FOOT}", state.page));
    state.take(Look { at: Instant::now(), outcome: Err(Trouble::Late) });
    let late = "the page did not come within 2 s";
    shows(&state, [60, 4], &format!("{} every 1s, no sample yet\n{late}\n\n{FOOT}", state.page));
    let mut state = watched(&[&[0], &[7]]);
    state.take(Look { at: Instant::now(), outcome: Err(Trouble::NoneOfOurs) });
    let screen = drawn(&state, [80, 14]);
    assert!(screen.contains("none of ring's") && screen.contains("> echo #1"), "{screen}");
}

#[test]
fn a_page_without_kernels_says_so() {
    let mut state = begun();
    let outcome = Sample::of("# TYPE ring_requests_sent counter\n");
    state.take(Look { at: Instant::now(), outcome });
    state.at(Instant::now());
    assert!(drawn(&state, [80, 6]).contains("The page has no kernels: none is launched.\n"));
}

#[test]
fn a_program_is_named_and_its_end_is_told() {
    let mut state = begun();
    let program = Program { name: "it".into(), output: "out.log".into(), end: None };
    state.program = Some(program.clone());
    assert!(drawn(&state, [80, 6]).contains("\nit runs; its output is in out.log\n"));
    let lines = vec!["one".to_owned(), "two".to_owned()];
    let end = End { status: "exit status: 3".into(), lines };
    state.program = Some(Program { end: Some(end), ..program.clone() });
    let ended =
        "\nit has ended, exit status: 3; its output is in out.log, which ends so:\n  one\n  two\n";
    assert!(drawn(&state, [80, 8]).contains(ended));
    let end = End { status: "exit status: 0".into(), lines: vec![] };
    state.program = Some(Program { end: Some(end), ..program });
    assert!(drawn(&state, [80, 6]).contains("exit status: 0; its output is in out.log\n"));
}

#[test]
fn names_of_any_length_and_any_characters_are_shown() {
    let kernel = format!("{}\u{1b}[2J\u{301}\u{4e2d}\u{200b}", "long ".repeat(100));
    let text = format!("ring_requests_waiting{{kernel=\"{kernel}\",channel=\"0\"}} 1e300\n");
    let mut state = begun();
    state.take(Look { at: Instant::now(), outcome: Sample::of(&text) });
    let screen = drawn(&state, [80, 10]);
    assert!(screen.contains("> long long lon… "), "{screen}");
    press(&mut state, KeyCode::Enter);
    drawn(&state, [80, 10]);
}

#[test]
fn what_is_explained_fits_a_terminal() {
    let mut state = watched(&[&[0]]);
    press(&mut state, KeyCode::Char('?'));
    assert_eq!(drawn(&state, [80, 24]), drawn(&state, [300, 24]));
}
