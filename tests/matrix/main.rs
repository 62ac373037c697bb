//! Every mode in every memory, without and with each emulated platform, by the command
//! `ring validate`: a line each, in Markdown. `matrix RING DEVICE [MESSAGES]`, where RING is the
//! built command. Status 1 if one ends otherwise than it should.

use ring_host::device::quirks::NAMES;
use ring_host::{Memory, Mode};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const MODES: [Mode; 4] = [Mode::Auto, Mode::Persistent, Mode::EventDriven, Mode::Graph];
const MEMORIES: [Memory; 4] =
    [Memory::Auto, Memory::Mapped, Memory::StagedAsync, Memory::StagedSync];

/// What no run may take longer than.
const LIMIT: Duration = Duration::from_secs(120);

/// How a run ended.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// All checks passed, after so long.
    Passed(Duration),
    /// The mode or the memory cannot be had there, and it was said why.
    Refused,
    /// A check failed, and it was said which.
    Failed,
    /// Neither, or too late.
    Strange,
}

/// Whether a run on that platform may fail: the platform breaks what was forced, or everything.
fn may_fail(quirk: &str, mode: Mode, memory: Memory) -> bool {
    match quirk {
        // Nothing works after the fault.
        "device-fault" | "device-reset" => true,
        // The payload of `ring validate` is small enough to lie in mapped memory.
        "failing-copies" => memory != Memory::Mapped,
        "failing-graphs" => mode == Mode::Graph,
        "failing-copies-beside" => memory == Memory::StagedAsync,
        _ => false,
    }
}

fn run(arguments: &[String], quirk: &str, mode: Mode, memory: Memory) -> std::io::Result<End> {
    let [ring, device, messages] = arguments else { return Ok(End::Strange) };
    let mut command = Command::new(ring);
    command.args(["validate", "--device", device, "--messages", messages]);
    command.args(["--mode", &mode.to_string(), "--memory", &memory.to_string()]);
    if device != "cpu" {
        for file in ring_tests::kernels::files().files() {
            command.arg("--ptx").arg(file.path());
        }
    }
    if !quirk.is_empty() {
        command.args(["--emulate", quirk]);
    }
    command.env_remove("RING_MODE").env_remove("RING_MEMORY");
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    while child.try_wait()?.is_none() {
        if begun.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            return Ok(End::Strange);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let (time, output) = (begun.elapsed(), child.wait_with_output()?);
    let said = String::from_utf8_lossy(&output.stderr);
    Ok(match output.status.code() {
        Some(0) => End::Passed(time),
        Some(1) if said.contains("cannot run as asked") => End::Refused,
        Some(1) if said.contains("failed") => End::Failed,
        _ => End::Strange,
    })
}

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.len() == 2 {
        arguments.push("1000000".to_owned());
    }
    if arguments.len() != 3 {
        eprintln!("usage: matrix RING DEVICE [MESSAGES]");
        return ExitCode::from(2);
    }
    println!("seconds of `ring validate --device {} --messages {}`\n", arguments[1], arguments[2]);
    let heads = MODES.iter().flat_map(|mode| MEMORIES.map(|memory| format!("{mode} {memory}")));
    println!("| platform | {} |", heads.collect::<Vec<_>>().join(" | "));
    println!("|---|{}", "---|".repeat(MODES.len() * MEMORIES.len()));
    let mut wrong = 0;
    for quirk in std::iter::once("").chain(NAMES.iter().map(|(name, _)| *name)) {
        let mut line = format!("| {} |", if quirk.is_empty() { "as it is" } else { quirk });
        for mode in MODES {
            for memory in MEMORIES {
                let end = run(&arguments, quirk, mode, memory).unwrap_or(End::Strange);
                let fine = match end {
                    End::Passed(_) => true,
                    End::Refused => !quirk.is_empty() || (mode, memory) == NEVER,
                    End::Failed => may_fail(quirk, mode, memory),
                    End::Strange => false,
                };
                wrong += u32::from(!fine);
                line += &match end {
                    End::Passed(time) => format!(" {:.2} |", time.as_secs_f64()),
                    End::Refused => " refused |".to_owned(),
                    End::Failed if fine => " lost |".to_owned(),
                    End::Failed => " FAILED |".to_owned(),
                    End::Strange => " STRANGE |".to_owned(),
                };
            }
        }
        println!("{line}");
    }
    println!("\n{wrong} ended otherwise than they should");
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The one pair that makes no sense on any platform.
const NEVER: (Mode, Memory) = (Mode::Persistent, Memory::StagedSync);
