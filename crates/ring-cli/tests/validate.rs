//! The built binary, as a user runs it.

use std::process::{Command, Output};

fn ring(options: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring"));
    command.args(options.split_whitespace()).output().expect("the binary can be run")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("output is UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("errors are UTF-8")
}

/// Runs it, expects that status, and that stderr names each part.
fn fails(options: &str, status: i32, parts: &[&str]) {
    let output = ring(options);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(status), "{options}: {text}{}", stdout(&output));
    for part in parts {
        assert!(text.contains(part), "{options}: '{part}' is not in: {text}");
    }
}

#[test]
fn the_cpu_passes() {
    let output = ring("validate --device cpu --messages 20000");
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    assert_eq!(stderr(&output), "", "no progress bar where there is no terminal");
    for part in [
        "device  cpu: ",
        "vector_add: 3/3 passed",
        "soak    20,000 messages over 1 lane: passed",
        "0 lost, 0 duplicated, 0 reordered, 0 corrupt",
        "passed  all 5 checks",
    ] {
        assert!(text.contains(part), "'{part}' is not in:\n{text}");
    }
    let rows = text.lines().filter(|line| line.starts_with("vector_add ")).count();
    assert_eq!(rows, 3, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn several_small_lanes_pass() {
    let output = ring("validate --device cpu --messages 20001 --lanes 3 --capacity 64");
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    assert!(text.contains("soak    20,001 messages over 3 lanes: passed"), "{text}");
}

#[test]
fn the_soak_can_be_left_out() {
    let output = ring("validate --device cpu --messages 0");
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    assert!(
        text.contains("3/3 passed") && text.contains("soak    skipped (--messages 0)"),
        "{text}"
    );
}

#[test]
fn whatever_the_machine_has_passes() {
    let output = ring("validate --messages 20000");
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    assert!(text.contains("why     ") && text.contains("3/3 passed"), "{text}");
}

#[test]
fn a_wrong_command_line_has_status_2() {
    fails("validate --device gpu", 2, &["--device", "gpu", "auto, cpu, cuda or cuda:N"]);
    fails("validate --device cuda:x", 2, &["cuda:x"]);
    fails("validate --messages many", 2, &["--messages", "many"]);
    fails("validate --timeout 0", 2, &["--timeout", "0", "86400"]);
    fails("validate --frobnicate", 2, &["--frobnicate"]);
    fails("frobnicate", 2, &["frobnicate"]);
    fails("", 2, &["validate"]);
}

#[test]
fn what_the_device_cannot_do_has_status_1_and_names_value_and_limit() {
    let cpu = |options: &str| format!("validate --device cpu --messages 0 {options}");
    fails(&cpu("--capacity 0"), 1, &["capacity 0", "power of two in 1..=", "--capacity"]);
    fails(&cpu("--capacity 3"), 1, &["capacity 3", "power of two in 1..=", "--capacity"]);
    fails(&cpu("--lanes 0"), 1, &["0 lanes", "1..=", "--lanes"]);
    fails(&cpu("--lanes 100000"), 1, &["100000 lanes", "1..=", "--lanes"]);
    fails(&cpu("--threads 33"), 1, &["33 threads", "32..=", "--threads"]);
}

#[test]
fn a_device_that_is_not_there_has_status_1() {
    let output = ring("validate --device cuda:99 --messages 0");
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let why =
        ["no NVIDIA driver found", "there is no device 99", "found no device", "was built without"];
    assert!(why.iter().any(|why| text.contains(why)), "{text}");
    assert!(text.contains("cuda:99") && text.contains("--device cpu"), "{text}");
}
