//! Running the built binary as a user does, for a limited time.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// No run may take longer.
pub const LIMIT: Duration = Duration::from_secs(300);

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The exit status.
    pub status: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// How long it took.
    pub time: Duration,
}

impl Ran {
    /// Expects that status, and shows all that was printed if it is another.
    #[track_caller]
    pub fn ends(self, status: i32) -> Ran {
        assert_eq!(self.status, Some(status), "{}{}", self.out, self.err);
        self
    }

    /// Expects that all words of each part stand in standard output, however lines are broken.
    #[track_caller]
    pub fn says(self, parts: &[&str]) -> Ran {
        let all = words(&self.out);
        for part in parts {
            assert!(all.contains(&words(part)), "'{part}' is not in:\n{}{}", self.out, self.err);
        }
        self
    }

    /// The same of standard error.
    #[track_caller]
    pub fn complains(self, parts: &[&str]) -> Ran {
        let all = words(&self.err);
        for part in parts {
            assert!(all.contains(&words(part)), "'{part}' is not in:\n{}", self.err);
        }
        self
    }
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs `ring` with those options, in an environment that forces nothing: neither modes nor folders of libraries.
/// Again as long as it says that the machine was too busy to find out what the device does.
#[track_caller]
pub fn ring(options: &str) -> Ran {
    let begun = Instant::now();
    loop {
        let ran = ring_in(options, &[]);
        if !words(&ran.out).contains("the machine was too busy to") || begun.elapsed() > LIMIT {
            return ran;
        }
    }
}

/// Runs `ring` with those variables in its environment.
#[track_caller]
pub fn ring_in(options: &str, variables: &[(&str, &str)]) -> Ran {
    ring_at(Path::new("."), LIMIT, options, variables)
}

/// The same in a folder, for a time of its own.
#[track_caller]
pub fn ring_at(folder: &Path, limit: Duration, options: &str, variables: &[(&str, &str)]) -> Ran {
    let begun = Instant::now();
    let mut child = start(folder, options, variables);
    let (out, err) = (read(child.stdout.take()), read(child.stderr.take()));
    let status = wait(&mut child, begun, limit, options);
    let time = begun.elapsed();
    let text = |reader: JoinHandle<String>| reader.join().expect("what is printed is UTF-8");
    Ran { status, out: text(out), err: text(err), time }
}

/// Starts `ring`, its output in pipes.
#[track_caller]
pub fn start(folder: &Path, options: &str, variables: &[(&str, &str)]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring"));
    command.current_dir(folder);
    command.args(options.split_whitespace()).stdin(Stdio::null());
    for variable in ["RING_MODE", "RING_MEMORY", "LD_LIBRARY_PATH"] {
        command.env_remove(variable);
    }
    command.envs(variables.iter().copied());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    child.expect("the binary can be run")
}

/// Reads all that comes, in a thread of its own.
pub fn read(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    let mut pipe = pipe.expect("the pipe was asked for");
    std::thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).expect("what is printed is UTF-8");
        text
    })
}

/// Waits for the end of a run, for a limited time.
#[track_caller]
pub fn wait(child: &mut Child, begun: Instant, limit: Duration, options: &str) -> Option<i32> {
    loop {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            return status.code();
        }
        if begun.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            panic!("`ring {options}` did not end within {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
