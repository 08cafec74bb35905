//! A process that plays a role, spoken to in lines.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::PATIENCE;

/// Where a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pin {
    /// Wherever the kernel puts it.
    Nowhere,
    /// On that CPU.
    Cpu(usize),
}

/// How often those that a role depends on are looked at while it works.
const LOOK: Duration = Duration::from_millis(250);

/// How often it is looked whether a role has ended.
const STEP: Duration = Duration::from_millis(5);

/// Why a role did not do its part.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// It cannot be started.
    #[error("cannot start {program}: {cause}\nhint: {}", start_hint(.program))]
    Start {
        /// Which program.
        program: String,
        /// Why not.
        cause: io::Error,
    },
    /// It was not built.
    #[error("there is no {program} in {}\nhint: {MISSING_HINT}", directory.display())]
    Missing {
        /// Which program.
        program: String,
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// It ended or fell silent.
    #[error("{program} {what}{}\nhint: {SILENT_HINT}", quoted(.said))]
    Silent {
        /// Which program.
        program: String,
        /// What happened.
        what: &'static str,
        /// The end of what it wrote to its standard error.
        said: String,
    },
    /// It said something else than was expected.
    #[error("{program} said `{line}`: {cause}\nhint: {NONSENSE_HINT}")]
    Nonsense {
        /// Which program.
        program: String,
        /// What it said.
        line: String,
        /// What is wrong with it.
        cause: String,
    },
}

const MISSING_HINT: &str = "cargo xtask peers builds the floors and the peers into bench/peers/bin";

const SILENT_HINT: &str =
    "a benchmark whose processes end is not a result: run it again, with less load if it repeats";

const NONSENSE_HINT: &str =
    "build our executable and the peers anew: they speak different versions";

fn start_hint(program: &str) -> &'static str {
    match program {
        "taskset" => "placing roles on CPUs needs taskset: apt-get install util-linux",
        _ => "is it there, and may it be executed?",
    }
}

fn quoted(said: &str) -> String {
    match said.trim() {
        "" => String::new(),
        said => format!(": {said}"),
    }
}

/// A running role. Dropping it ends the process.
#[derive(Debug)]
pub(super) struct Actor {
    program: String,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    said: Receiver<String>,
}

impl Actor {
    /// Starts `program`.
    pub(super) fn start<A: AsRef<str>>(
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
        pin: Pin,
    ) -> Result<Self, ChildError> {
        Self::start_with(program, arguments, pin, &[])
    }

    /// Starts `program` with variables of its environment, by name and value.
    pub(super) fn start_with<A: AsRef<str>>(
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
            said: lines_of(stderr),
            child,
        })
    }

    /// The process's number. `taskset` becomes the program, so it is that of the role itself.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Says one line to it.
    pub(super) fn say(&mut self, line: &str) -> Result<(), ChildError> {
        let said = self
            .stdin
            .as_mut()
            .is_some_and(|stdin| writeln!(stdin, "{line}").is_ok());
        if said {
            Ok(())
        } else {
            Err(self.silent("has ended"))
        }
    }

    /// Ends it at once, as a crash would: it is asked for nothing.
    pub(super) fn kill(mut self) {
        // One that has ended already cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends its input, at which it says what it has still to say and ends.
    pub(super) fn end_input(&mut self) {
        self.stdin = None;
    }

    /// Fails when it has ended.
    pub(super) fn check_alive(&mut self) -> Result<(), ChildError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(self.silent("has ended")),
        }
    }

    /// Waits until it has ended, and fails unless it ended well.
    pub(super) fn finish_within(&mut self, patience: Duration) -> Result<(), ChildError> {
        self.end_input();
        for _ in 0..patience.as_nanos() / STEP.as_nanos() {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(None) => std::thread::sleep(STEP),
                _ => return Err(self.silent("has failed")),
            }
        }
        Err(self.silent("does not end"))
    }

    /// Its next line.
    pub(super) fn line(&mut self) -> Result<String, ChildError> {
        self.line_within(PATIENCE)
    }

    /// Its next line, if it comes in time.
    pub(super) fn line_within(&mut self, patience: Duration) -> Result<String, ChildError> {
        match self.poll_line(patience)? {
            Some(line) => Ok(line),
            None => Err(self.silent("does not answer")),
        }
    }

    /// Its next line, if it comes within that time.
    pub(super) fn poll_line(&mut self, time: Duration) -> Result<Option<String>, ChildError> {
        match self.lines.recv_timeout(time) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.silent("has ended")),
        }
    }

    /// Its next line as JSON.
    pub(super) fn json<T: DeserializeOwned>(&mut self) -> Result<T, ChildError> {
        let line = self.line()?;
        self.parse(line)
    }

    /// Its next line, if it comes in time and as long as those it depends on live.
    pub(super) fn line_while(
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
        Err(self.silent("does not answer"))
    }

    /// The same as JSON.
    pub(super) fn json_while<T: DeserializeOwned>(
        &mut self,
        patience: Duration,
        check_others: impl FnMut() -> Result<(), ChildError>,
    ) -> Result<T, ChildError> {
        let line = self.line_while(patience, check_others)?;
        self.parse(line)
    }

    /// A line of it as JSON.
    pub(super) fn parse<T: DeserializeOwned>(&self, line: String) -> Result<T, ChildError> {
        serde_json::from_str(&line).map_err(|cause| self.nonsense(line, cause.to_string()))
    }

    /// It said something that makes no sense.
    pub(super) fn nonsense(&self, line: String, cause: String) -> ChildError {
        ChildError::Nonsense {
            program: self.program.clone(),
            line,
            cause,
        }
    }

    fn silent(&mut self, what: &'static str) -> ChildError {
        // What a dying process said last may still be on its way.
        let first = self.said.recv_timeout(Duration::from_millis(200));
        let said: Vec<String> = first.into_iter().chain(self.said.try_iter()).collect();
        let skipped = said.len().saturating_sub(5);
        ChildError::Silent {
            program: self.program.clone(),
            what,
            said: said[skipped..].join("\n"),
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // A role ends with its standard input; one that does not is ended.
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

/// Reads on a thread of its own, so that a full pipe stops nobody.
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
        role.say("hello").unwrap();
        assert_eq!(role.json::<Vec<String>>().unwrap(), ["hello"]);
        role.check_alive().unwrap();
        role.end_input();
        assert_eq!(role.line().unwrap(), "bye");
    }

    #[test]
    fn a_role_that_dies_is_quoted() {
        let mut role = shell("echo 'error: no port' >&2; exit 3");
        let error = role.line().unwrap_err().to_string();
        assert!(
            error.starts_with("sh has ended: error: no port\nhint: "),
            "{error}"
        );
        let mut role = shell("echo nonsense");
        let error = role.json::<u32>().unwrap_err().to_string();
        assert!(error.starts_with("sh said `nonsense`"), "{error}");
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
