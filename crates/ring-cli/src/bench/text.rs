//! The report for a terminal.

use super::machine::Machine;
use super::report::Report;
use super::section::Section;
use super::settings::Settings;
use super::tables::{self, Part};
use crate::text::wrapped;
use std::fmt::Write;

/// The sections, with what they measure.
pub fn sections() -> String {
    let line = |section: &Section| wrapped(&format!("{section:<12}"), &section.says()) + "\n";
    Section::all().iter().map(line).collect()
}

/// What is measured on, and how.
pub fn machine(machine: &Machine, settings: &Settings) -> String {
    let facts = machine.facts.iter().cloned().chain([("measured", settings.in_words())]);
    facts.map(|(name, fact)| wrapped(&format!("{name:<14}"), &fact) + "\n").collect()
}

/// What was measured, and what it says of the targets.
pub fn report(report: &Report) -> String {
    let mut text = String::new();
    for part in tables::parts(report).iter().chain([&tables::targets(report)]) {
        text += &shown(part);
    }
    text += &left_out(report);
    let _ = writeln!(text, "\ntook {:.0} s", report.took);
    text
}

fn shown(part: &Part) -> String {
    let mut text = String::new();
    for (title, table) in &part.tables {
        let _ = write!(text, "\n{title}\n{table}");
    }
    if part.tables.is_empty() && !part.remarks.is_empty() {
        let _ = writeln!(text, "\n{}", part.title);
    }
    for remark in &part.remarks {
        let _ = writeln!(text, "{}", wrapped("", remark));
    }
    text
}

fn left_out(report: &Report) -> String {
    let mut text = String::new();
    for skipped in &report.skipped {
        let line = format!("{}: {}", skipped.section, skipped.why);
        let _ = writeln!(text, "{}", wrapped("left out  ", &line));
    }
    for wrong in report.wrong() {
        let line = format!("{}: {}", wrong.what, wrong.why);
        let _ = writeln!(text, "{}", wrapped("WRONG     ", &line));
    }
    if let Some(during) = &report.interrupted {
        let line = format!("during: {during}; what is above was measured before");
        let _ = writeln!(text, "{}", wrapped("interrupted  ", &line));
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::example;
    use crate::bench::report::Stop;
    use crate::bench::stats::Times;
    use crate::text::WIDTH;
    use std::time::Duration;

    fn words(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn everything_measured_is_shown_and_fits_the_page() {
        let mut example = example::report();
        example.throughput[1].rate = Err(Stop::Wrong("an answer is wrong".to_owned()));
        let text = report(&example);
        let long: Vec<_> = text.lines().filter(|line| line.chars().count() > WIDTH).collect();
        assert!(long.is_empty(), "{long:#?}");
        let words = words(&text);
        for part in [
            "cuda: ring <there & back> 1,000 2.00 2.00",
            "1 ring one by one 1.85 2.04 2.84 3.04 0.54",
            "1,024 ring batches, <= 512 20.",
            "graph launch one by one 6.0",
            "50 30.00 3.",
            "saturated: the rate was not reached",
            "16 8 3.0",
            "threads fewer than channels",
            "64 16 calls 12.",
            "64 16 32 tickets each 9.",
            "1 1 channels of their own 2.",
            "one way: 0.500 us, by the device's clock",
            "echo 2 64 512 512 4096 16384 250.00 225.00 275.00",
            "cuMemcpyAsync to the device 55.0",
            "echo_64_block <there & back> 2.40 2.40",
            "echo_4096 8 4096 512 4096 16384 12.00 10.80 13.20 49.2",
            "one launch for all, LaunchConfig::default(): 512 threads a block",
            "graph_5 <there & back> 4.30 4.30",
            "times_8 56 64 512 16384 9000.00 8100.00 9900.00 576.0",
            "pass_64 64 64 512 16384 190.00",
            "times_8 emits eight for each, pass_64 one",
            "page_rank_links <there & back> 350.21 350.",
            "PageRank, R-MAT 2^20 32 16,384 6000.00 5400.00 6600.00",
            "32 senders, 64 aggregators and 16 checkers",
            "persistent mapped 2.00",
            "graphs fail <here>",
            "16 at once, driven by 16 host threads: p50 2.00 to 2.75 us",
            "round trip / launch and poll, p50 <= 0.25 0.200 met 2.000 / 10.",
            "us; runs gave 0.200 to 0.200",
            "not measured; 37 more need a GPU",
            "left out many: it needs a GPU",
            "WRONG head/tail 1 x 64 bytes: an answer is wrong",
        ] {
            assert!(words.contains(part), "'{part}' is not in:\n{text}");
        }
    }

    #[test]
    fn round_trips_of_a_busy_machine_fit_the_page() {
        let mut example = example::report();
        for row in &mut example.latency {
            row.name = "rtrb (chunks)".to_owned();
            let mut times = Times::new();
            (0..1000).for_each(|k| times.record(Duration::from_micros(28_260 + k * 600_000)));
            row.times = Ok(times);
        }
        let text = report(&example);
        assert!(words(&text).contains("cuda: rtrb (chunks) 1,000 282"), "{text}");
        let long: Vec<_> = text.lines().filter(|line| line.chars().count() > WIDTH).collect();
        assert!(long.is_empty(), "{long:#?}");
    }

    #[test]
    fn the_machine_and_the_sections_fit_the_page() {
        let example = example::report();
        let text = machine(&example.machine, &example.settings) + &sections();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("throughput") && words(&text).contains("30 ms"), "{text}");
    }
}
