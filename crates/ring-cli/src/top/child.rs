//! A program that is run to be watched.

use super::state::End;
use crate::failure::Failure;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Tells the program on which loopback port to serve its metrics: `ring_host`'s `Exporter::asked_for` reads it.
const PORT: &str = "RING_METRICS_PORT";

/// Lines of its output that are shown when it has ended.
const LINES: usize = 8;

/// Bytes of its output in which those lines are looked for.
const BYTES: u64 = 8 * 1024;

/// Files for output that are tried, if some are there already.
const FILES: u32 = 1000;

/// A program that is run. It is killed when this is dropped.
#[derive(Debug)]
pub struct Child {
    /// Its name.
    pub name: String,
    /// The port that it was told.
    pub port: u16,
    /// The file that has its output.
    pub output: PathBuf,
    process: std::process::Child,
}

impl Child {
    /// Runs a program with its arguments, its output into a new file.
    pub fn start(program: &OsString, arguments: &[OsString]) -> Result<Child, Failure> {
        let name = program.to_string_lossy().into_owned();
        let failed = |source| Failure::Program { program: name.clone(), source };
        let port = free_port().map_err(failed)?;
        let (output, file) = new_file(&std::env::temp_dir())?;
        let process = file.try_clone().and_then(|same| {
            let mut command = std::process::Command::new(program);
            command.args(arguments).env(PORT, port.to_string());
            command.stdin(Stdio::null()).stdout(file).stderr(same).spawn()
        });
        let process = process.map_err(|source| {
            let _ = std::fs::remove_file(&output); // there is nothing in it
            failed(source)
        })?;
        Ok(Child { name, port, output, process })
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<End> {
        let status = match self.process.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let lines = last_lines(&self.output).unwrap_or_else(|error| vec![error.to_string()]);
        Some(End { status, lines })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill(); // it may have ended
        let _ = self.process.wait();
    }
}

/// A port that is free now. Another program may take it before ours does, which then says so.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// A file that was not there, which others cannot read.
fn new_file(folder: &Path) -> Result<(PathBuf, File), Failure> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut number = 0;
    loop {
        let path = folder.join(format!("ring-top-{}-{number}.log", std::process::id()));
        match options.open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < FILES => number += 1,
            Err(error) => return Err(Failure::file(&path)(error)),
        }
    }
}

/// The last lines of a file, of its last bytes.
fn last_lines(path: &Path) -> io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    let begin = file.metadata()?.len().saturating_sub(BYTES);
    file.seek(SeekFrom::Start(begin))?;
    let mut text = Vec::new();
    file.take(BYTES).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().map(without_controls).collect();
    Ok(lines[lines.len().saturating_sub(LINES)..].to_vec())
}

/// What a terminal can be given without being commanded by it.
fn without_controls(line: &str) -> String {
    line.chars().map(|c| if c == '\t' { ' ' } else { c }).filter(|c| !c.is_control()).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn sh(script: &str) -> Child {
        Child::start(&"sh".into(), &["-c".into(), script.into()]).unwrap()
    }

    fn end(child: &mut Child) -> End {
        let begun = Instant::now();
        loop {
            if let Some(end) = child.ended() {
                return end;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_program_is_told_its_port_and_its_end_is_told() {
        let mut child =
            sh("echo port $RING_METRICS_PORT; printf '\\033[2Jclear\\tit\\n' >&2; exit 3");
        let end = end(&mut child);
        assert_eq!(end.status, "exit status: 3");
        assert_eq!(end.lines, [format!("port {}", child.port), "[2Jclear it".to_owned()]);
        std::fs::remove_file(&child.output).unwrap();
    }

    #[test]
    fn of_much_output_the_last_lines_are_shown() {
        let mut child = sh("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done");
        let end = end(&mut child);
        assert_eq!(end.lines, (2992..3000).map(|k| format!("line {k}")).collect::<Vec<_>>());
        std::fs::remove_file(&child.output).unwrap();
    }

    #[test]
    fn a_program_that_runs_is_killed_in_the_end() {
        let child = sh("exec sleep 1000");
        let (output, id) = (child.output.clone(), child.process.id());
        drop(child);
        let signal = std::process::Command::new("kill").args(["-0", &id.to_string()]).output();
        assert!(!signal.unwrap().status.success(), "it is gone");
        std::fs::remove_file(output).unwrap();
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let failure = Child::start(&"/no/such/program".into(), &[]).unwrap_err();
        assert!(failure.to_string().contains("cannot run /no/such/program: "), "{failure}");
    }

    #[test]
    fn no_file_that_is_there_is_written_over() {
        let folder = std::env::temp_dir();
        let (first, second) = (new_file(&folder).unwrap().0, new_file(&folder).unwrap().0);
        assert_ne!(first, second);
        [first, second].iter().for_each(|path| std::fs::remove_file(path).unwrap());
        assert!(matches!(new_file(Path::new("/no/such")), Err(Failure::File { .. })));
    }
}
