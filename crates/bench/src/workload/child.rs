//! Child process that plays a role, with a line protocol over its standard streams.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::surroundings::PATIENCE;

/// CPU placement of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pin {
    /// No placement: the kernel chooses.
    Nowhere,
    /// Placement on one CPU.
    Cpu(usize),
}

/// Interval at which the processes that a role depends on are checked while it works.
const LOOK: Duration = Duration::from_millis(250);

/// Poll interval while waiting for a role to end.
const STEP: Duration = Duration::from_millis(5);

/// Failures of a role.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The program cannot be started.
    #[error("cannot start {program}: {cause}\nhint: {}", start_hint(.program))]
    Start {
        /// Name of the program.
        program: String,
        /// Cause of the failure.
        cause: io::Error,
    },
    /// The program was not built.
    #[error("{program} is not in {}\nhint: {MISSING_HINT}", directory.display())]
    Missing {
        /// Name of the program.
        program: String,
        /// Directory that was searched.
        directory: PathBuf,
    },
    /// The program ended or stopped answering.
    #[error("{program} {failure}{}\nhint: {STOPPED_HINT}", quoted(.stderr))]
    Stopped {
        /// Name of the program.
        program: String,
        /// Kind of failure.
        failure: &'static str,
        /// Last lines of its standard error.
        stderr: String,
    },
    /// The program printed an unexpected line.
    #[error("{program} printed `{line}`: {cause}\nhint: {INVALID_LINE_HINT}")]
    InvalidLine {
        /// Name of the program.
        program: String,
        /// The line.
        line: String,
        /// Reason why the line is invalid.
        cause: String,
    },
}

const MISSING_HINT: &str = "cargo xtask peers builds the floors and the peers into bench/peers/bin";

const STOPPED_HINT: &str = "run the benchmark again, with less load if the failure repeats";

const INVALID_LINE_HINT: &str = "rebuild telpher and the peers: their versions differ";

fn start_hint(program: &str) -> &'static str {
    match program {
        "taskset" => "placing roles on CPUs needs taskset: apt-get install util-linux",
        _ => "check that the file exists and is executable",
    }
}

fn quoted(output: &str) -> String {
    match output.trim() {
        "" => String::new(),
        output => format!(": {output}"),
    }
}

/// A running role. Dropping it ends the process.
#[derive(Debug)]
pub struct Actor {
    program: String,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr_lines: Receiver<String>,
}

impl Actor {
    /// Starts `program`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start<A: AsRef<str>>(
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
        pin: Pin,
    ) -> Result<Self, ChildError> {
        Self::start_with(program, arguments, pin, &[])
    }

    /// Starts `program` with further environment variables, as name and value.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_with<A: AsRef<str>>(
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
        pin: Pin,
        variables: &[(&str, &str)],
    ) -> Result<Self, ChildError> {
        let mut command = match pin {
            Pin::Nowhere => Command::new(program),
            Pin::Cpu(cpu) => {
                let mut command = Command::new("taskset");
                command.args(["--cpu-list", &cpu.to_string()]).arg(program);
                command
            }
        };
        command
            .args(arguments.into_iter().map(|one| one.as_ref().to_owned()))
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = file_name(Path::new(command.get_program()));
        let failed = |cause| ChildError::Start {
            program: started.clone(),
            cause,
        };
        let mut child = command.spawn().map_err(failed)?;
        let missing = || failed(io::ErrorKind::BrokenPipe.into());
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        Ok(Self {
            program: file_name(program),
            stdin: child.stdin.take(),
            lines: lines_of(stdout),
            stderr_lines: lines_of(stderr),
            child,
        })
    }

    /// Returns the pid. `taskset` becomes the program, so this is the pid of the role itself.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes one line to its standard input.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn write_line(&mut self, line: &str) -> Result<(), ChildError> {
        let is_written = self
            .stdin
            .as_mut()
            .is_some_and(|stdin| writeln!(stdin, "{line}").is_ok());
        if is_written {
            Ok(())
        } else {
            Err(self.stopped_error("has ended"))
        }
    }

    /// Kills the process at once, as a crash would.
    pub fn kill(mut self) {
        // A process that has already ended cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Closes its standard input, after which it prints its last lines and ends.
    pub fn end_input(&mut self) {
        self.stdin = None;
    }

    /// Checks that the process runs.
    ///
    /// # Errors
    /// When it has ended, with its output.
    pub fn check_alive(&mut self) -> Result<(), ChildError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(self.stopped_error("has ended")),
        }
    }

    /// Waits until the process has ended.
    ///
    /// # Errors
    /// When its status is no success, or it does not end within `patience`.
    pub fn finish_within(&mut self, patience: Duration) -> Result<(), ChildError> {
        self.end_input();
        for _ in 0..patience.as_nanos() / STEP.as_nanos() {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(None) => std::thread::sleep(STEP),
                _ => return Err(self.stopped_error("has failed")),
            }
        }
        Err(self.stopped_error("did not end in time"))
    }

    /// Returns its next line.
    ///
    /// # Errors
    /// When the process has ended, or prints no line in time.
    pub fn line(&mut self) -> Result<String, ChildError> {
        self.line_within(PATIENCE)
    }

    /// Returns its next line.
    ///
    /// # Errors
    /// When the process has ended, or prints no line within `patience`.
    pub fn line_within(&mut self, patience: Duration) -> Result<String, ChildError> {
        match self.poll_line(patience)? {
            Some(line) => Ok(line),
            None => Err(self.stopped_error("did not answer in time")),
        }
    }

    /// Returns its next line, or `None` after `time`.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn poll_line(&mut self, time: Duration) -> Result<Option<String>, ChildError> {
        match self.lines.recv_timeout(time) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.stopped_error("has ended")),
        }
    }

    /// Returns its next line, parsed as JSON.
    ///
    /// # Errors
    /// Like [`Self::line`], and when the line is invalid.
    pub fn json<T: DeserializeOwned>(&mut self) -> Result<T, ChildError> {
        let line = self.line()?;
        self.parse(line)
    }

    /// Returns its next line.
    ///
    /// # Errors
    /// When the process has ended, prints no line within `patience`, or `check_others` fails.
    pub fn line_while(
        &mut self,
        patience: Duration,
        mut check_others: impl FnMut() -> Result<(), ChildError>,
    ) -> Result<String, ChildError> {
        for _ in 0..patience.as_nanos() / LOOK.as_nanos() {
            if let Some(line) = self.poll_line(LOOK)? {
                return Ok(line);
            }
            check_others()?;
        }
        Err(self.stopped_error("did not answer in time"))
    }

    /// Returns its next line, parsed as JSON.
    ///
    /// # Errors
    /// Like [`Self::line_while`], and when the line is invalid.
    pub fn json_while<T: DeserializeOwned>(
        &mut self,
        patience: Duration,
        check_others: impl FnMut() -> Result<(), ChildError>,
    ) -> Result<T, ChildError> {
        let line = self.line_while(patience, check_others)?;
        self.parse(line)
    }

    /// Parses a line of this process as JSON.
    ///
    /// # Errors
    /// When the line is invalid.
    pub fn parse<T: DeserializeOwned>(&self, line: String) -> Result<T, ChildError> {
        serde_json::from_str(&line).map_err(|cause| self.invalid_line(line, cause.to_string()))
    }

    /// Makes the error for a line that is invalid.
    #[must_use]
    pub fn invalid_line(&self, line: String, cause: String) -> ChildError {
        ChildError::InvalidLine {
            program: self.program.clone(),
            line,
            cause,
        }
    }

    fn stopped_error(&mut self, failure: &'static str) -> ChildError {
        // The last lines of a dying process may still be in the pipe.
        let first = self.stderr_lines.recv_timeout(Duration::from_millis(200));
        let stderr: Vec<String> = first
            .into_iter()
            .chain(self.stderr_lines.try_iter())
            .collect();
        let skipped = stderr.len().saturating_sub(5);
        ChildError::Stopped {
            program: self.program.clone(),
            failure,
            stderr: stderr[skipped..].join("\n"),
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // A role ends when its standard input closes; kill one that does not.
        self.stdin = None;
        for _ in 0..200 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(STEP);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn file_name(program: &Path) -> String {
    let name = program.file_name().unwrap_or(program.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Reads lines on a thread of its own, so that a full pipe never blocks the process.
fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Actor {
        Actor::start(Path::new("/bin/sh"), ["-c", script], Pin::Nowhere).unwrap()
    }

    #[test]
    fn a_role_answers_and_ends_with_its_input() {
        let mut role = shell("read line; echo \"[\\\"$line\\\"]\"; cat; echo bye");
        role.write_line("hello").unwrap();
        assert_eq!(role.json::<Vec<String>>().unwrap(), ["hello"]);
        role.check_alive().unwrap();
        role.end_input();
        assert_eq!(role.line().unwrap(), "bye");
    }

    #[test]
    fn error_of_a_failed_child_process_quotes_its_output() {
        let mut role = shell("echo 'error: no port' >&2; exit 3");
        let error = role.line().unwrap_err().to_string();
        assert!(
            error.starts_with("sh has ended: error: no port\nhint: "),
            "{error}"
        );
        let mut role = shell("echo nonsense");
        let error = role.json::<u32>().unwrap_err().to_string();
        assert!(error.starts_with("sh printed `nonsense`"), "{error}");
        let mut role = shell("cat");
        let mut other = shell("exit 1");
        let error = role.json_while::<u32>(PATIENCE, || other.check_alive());
        assert!(error.unwrap_err().to_string().starts_with("sh has ended"));
        let finish = |script| shell(script).finish_within(PATIENCE);
        finish("cat").unwrap();
        let error = finish("echo 'no space' >&2; exit 1")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("sh has failed: no space"), "{error}");
        let missing = Path::new("/no/such/program");
        assert!(Actor::start(missing, [""], Pin::Nowhere).is_err());
    }

    #[test]
    fn a_role_can_be_placed_on_a_cpu() {
        let script = ["-c", "grep Cpus_allowed_list /proc/self/status"];
        let mut role = Actor::start(Path::new("/bin/sh"), script, Pin::Cpu(0)).unwrap();
        assert_eq!(role.line().unwrap().split_whitespace().last(), Some("0"));
    }
}
