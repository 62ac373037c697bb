//! The report's sections: the device, the table of cases, the soak.

use super::soak::Soaked;
use crate::table::{Table, left, right};
use crate::text::{grouped, plural, wrapped};
use crate::times::Times;
use std::time::Duration;

/// A case of the table.
#[derive(Clone, Debug)]
pub struct Case {
    /// The kernel, and what distinguishes the case.
    pub name: &'static str,
    /// Elements of a message.
    pub elements: usize,
    /// Where they travel.
    pub place: &'static str,
    /// Round trips timed.
    pub latency: Times,
    /// What was wrong.
    pub passed: Result<(), String>,
}

/// The device, why it was chosen, and the kernels that it runs.
pub fn device(name: &str, kind: &str, why: &str, kernels: &str) -> String {
    let device = format!("{kind}: {name}");
    [("device  ", device.as_str()), ("why     ", why), ("kernels ", kernels)]
        .map(|(head, text)| wrapped(head, text) + "\n")
        .concat()
}

/// The table of cases, what was wrong below each.
pub fn cases(cases: &[Case]) -> String {
    let table = Table::of(
        cases,
        [
            (left("case"), |case| case.name.to_owned()),
            (right("elements"), |case| case.elements.to_string()),
            (left("where"), |case| case.place.to_owned()),
            (left("result"), |case| verdict(case.passed.is_ok()).to_owned()),
            (right("rounds"), |case| grouped(case.latency.count())),
            (right("p50 us"), |case| case.latency.shown(50.0)),
            (right("p99 us"), |case| case.latency.shown(99.0)),
        ],
        |case, row| row.note = case.passed.as_ref().err().cloned(),
    );
    table.to_string()
}

/// What is said in place of a soak's result where no message was asked for.
pub const NO_SOAK: &str = "soak    skipped (--messages 0)";

/// What came of the soak, what was wrong below it.
pub fn soak(soaked: &Soaked, messages: u64, channels: u32, passed: &Result<(), String>) -> String {
    let Soaked { lost, duplicated, reordered, corrupt, time, .. } = soaked;
    let (count, word) = match soaked.interrupted {
        true => {
            let word = if passed.is_ok() { "interrupted" } else { "interrupted, failed" };
            (format!("{} of {}", grouped(soaked.sent), plural(messages, "message")), word)
        }
        false => (plural(messages, "message"), verdict(passed.is_ok())),
    };
    let mut lines = vec![
        format!("soak    {count} over {}: {word}", plural(channels.into(), "channel")),
        format!(
            "        {} lost, {} duplicated, {} reordered, {} corrupt",
            grouped(*lost),
            grouped(*duplicated),
            grouped(*reordered),
            grouped(*corrupt)
        ),
        format!("        {:.2} s, {}", time.as_secs_f64(), rate(soaked.sent - lost, *time)),
    ];
    if let Err(wrong) = passed {
        lines.push(wrapped("    ", wrong));
    }
    lines.join("\n") + "\n"
}

/// What was wrong with a soak that nothing stopped, in words.
pub fn unsound(soaked: &Soaked, messages: u64, timeout: Duration) -> String {
    let mut words = Vec::new();
    if soaked.lost > 0 || soaked.sent < messages && !soaked.interrupted {
        words.push(format!(
            "no answer came for {} s; {} of {} were sent, {} not answered",
            timeout.as_secs_f64(),
            grouped(soaked.sent),
            plural(messages, "message"),
            grouped(soaked.lost)
        ));
    }
    words.extend(soaked.first_wrong.map(|wrong| format!("first wrong answer: {wrong}")));
    words.join("; ")
}

fn verdict(passed: bool) -> &'static str {
    if passed { "passed" } else { "failed" }
}

fn rate(messages: u64, time: Duration) -> String {
    let rate = messages as f64 / time.as_secs_f64().max(1e-9);
    match rate {
        1e6.. => format!("{:.1} million messages a second", rate / 1e6),
        _ => format!("{} messages a second", grouped(rate as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::WIDTH;

    fn case(name: &'static str, elements: usize, rounds: u64, passed: Result<(), String>) -> Case {
        let mut latency = Times::new();
        for _ in 0..rounds {
            latency.record(Duration::from_micros(1234));
        }
        Case { name, elements, place: "payload", latency, passed }
    }

    #[test]
    fn the_table_fits_the_page_and_names_what_was_wrong() {
        let wrong = "round 3, element 7: got 1.5, expected 2.5".to_string();
        let text = cases(&[
            case("vector_add", 100, 200, Err(wrong.clone())),
            case("echo (64 bytes)", 8, 20_000, Ok(())),
        ]);
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<_> = text.lines().map(words).collect();
        assert_eq!(lines[1], "vector_add 100 payload failed 200 1234.94 1234.94");
        assert_eq!(lines[2], wrong);
        assert!(lines[3].starts_with("echo (64 bytes) 8 payload passed 20,000 "), "{text}");
    }

    #[test]
    fn a_long_reason_is_broken() {
        let text = device("NVIDIA H200", "cuda", &"the driver said so ".repeat(10), "shipped");
        assert!(text.lines().count() > 3 && text.lines().all(|line| line.len() <= WIDTH), "{text}");
    }

    #[test]
    fn the_soak_counts_each_kind_of_fault() {
        let soaked = Soaked {
            sent: 2_000_000,
            lost: 1000,
            duplicated: 2,
            reordered: 3,
            corrupt: 4,
            time: Duration::from_millis(500),
            ..Soaked::default()
        };
        let wrong = unsound(&soaked, 3_000_000, Duration::from_secs(10));
        let text = soak(&soaked, 3_000_000, 2, &Err(wrong));
        for part in [
            "3,000,000 messages over 2 channels: failed",
            "1,000 lost, 2 duplicated, 3 reordered, 4 corrupt",
            "0.50 s, 4.0 million messages a second",
            "no answer came for 10 s; 2,000,000 of 3,000,000 messages were sent, 1,000",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
    }

    #[test]
    fn an_interrupted_soak_says_how_far_it_came() {
        let time = Duration::from_millis(500);
        let soaked =
            Soaked { sent: 1500, time, interrupted: true, sound: true, ..Soaked::default() };
        let text = soak(&soaked, 1_000_000, 1, &Ok(()));
        assert!(
            text.contains("1,500 of 1,000,000 messages over 1 channel: interrupted\n"),
            "{text}"
        );
        let soaked = Soaked { duplicated: 1, sound: false, ..soaked };
        assert_eq!(unsound(&soaked, 1_000_000, time), "");
        let text = soak(&soaked, 1_000_000, 1, &Err(String::new()));
        assert!(text.contains("1 channel: interrupted, failed\n"), "{text}");
    }

    #[test]
    fn slow_rates_are_given_in_full() {
        assert_eq!(rate(1500, Duration::from_secs(1)), "1,500 messages a second");
    }
}
