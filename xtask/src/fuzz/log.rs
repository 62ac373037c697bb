//! Reads the log of libFuzzer.

use std::fmt;

/// A run that found nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct Run {
    runs: u64,
    seconds: u64,
    /// Edges of the program that were reached: by the corpus, and in the end.
    edges: [u64; 2],
    /// Inputs kept in the end.
    inputs: u64,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { runs, seconds, edges: [first, last], inputs } = self;
        let new = last.saturating_sub(*first);
        write!(f, "{runs} runs in {seconds} s, {last} edges, {new} new, {inputs} inputs: ok")
    }
}

/// Reads a log; nothing if it does not end as that of a run that found nothing.
pub fn read(said: &str) -> Option<Run> {
    // What it recommends for a dictionary may hold any words.
    let is = |line: &str, name: &str| line.starts_with('#') && line.contains(name);
    let status = |name: &str| said.lines().rev().find(|line| is(line, name));
    let (first, last) = (status("INITED"), status("DONE")?);
    let done = said.lines().rev().find_map(|line| line.strip_prefix("Done "))?;
    let mut words = done.split_whitespace();
    let (runs, seconds) = (words.next()?, words.nth(2)?);
    let edges = |line: &str| number(after(line, "cov:")?);
    let inputs = after(last, "corp:")?.split('/').next()?;
    Some(Run {
        runs: runs.parse().ok()?,
        seconds: seconds.parse().ok()?,
        edges: [first.and_then(edges).unwrap_or(0), edges(last).unwrap_or(0)],
        inputs: number(inputs)?,
    })
}

/// The input that is to blame.
pub fn input(said: &str) -> Option<&str> {
    said.lines().rev().find_map(|line| after(line, "Test unit written to "))
}

/// What was found, in a few lines: a panic with its words, or the summary, or how the log ends.
pub fn complaint(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    let panic = lines.iter().position(|line| line.contains("panicked at "));
    let words = panic.map(|at| lines.iter().skip(at).take(3).copied().collect::<Vec<_>>());
    let summary = lines.iter().rev().find(|line| line.starts_with("SUMMARY: "));
    match (words, summary) {
        (Some(words), _) => words.join("\n"),
        (None, Some(summary)) => (*summary).to_owned(),
        (None, None) => lines[lines.len().saturating_sub(5)..].join("\n"),
    }
}

/// What stands behind `name` in a line.
fn after<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_once(name).map(|(_, rest)| rest.trim_start())
}

fn number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Run, complaint, input, read};

    const RUN: &str = "\
INFO: Seed: 1
#2\tINITED cov: 52 ft: 53 corp: 1/1b exec/s: 0 rss: 29Mb
#9\tNEW    cov: 56 ft: 61 corp: 2/3b lim: 4 exec/s: 0 rss: 29Mb
#228977\tDONE   cov: 1068 ft: 4663 corp: 1314/54Kb lim: 261 exec/s: 14311 rss: 510Mb
###### Recommended dictionary. ######
\"DONE\" # Uses: 3
Done 228977 runs in 16 second(s)
";

    #[test]
    fn a_run_is_read() {
        let run = Run { runs: 228_977, seconds: 16, edges: [52, 1068], inputs: 1314 };
        assert_eq!(read(RUN), Some(run));
        let line = read(RUN).unwrap().to_string();
        assert_eq!(line, "228977 runs in 16 s, 1068 edges, 1016 new, 1314 inputs: ok");
        assert_eq!(read("Done 1 runs in 1 second(s)"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn a_finding_is_told_with_its_input() {
        let panic = "\
thread '<unnamed>' panicked at a/b.rs:1:2:
attempt to add with overflow
stack backtrace:
SUMMARY: libFuzzer: deadly signal
artifact_prefix='/x/'; Test unit written to /x/crash-1
Base64: AA==
";
        assert_eq!(input(panic), Some("/x/crash-1"));
        assert!(complaint(panic).contains("a/b.rs:1:2:\nattempt to add"), "{}", complaint(panic));
        let other = "==1==ERROR\nSUMMARY: AddressSanitizer: heap-buffer-overflow a.rs:3 in f\n";
        assert!(complaint(other).starts_with("SUMMARY: AddressSanitizer"), "{}", complaint(other));
        assert_eq!((complaint("a\nb"), input("a")), ("a\nb".to_owned(), None));
    }
}
