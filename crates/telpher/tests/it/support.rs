//! Runs the executable in its own directory and environment, with a time limit.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Time limit of every wait; a longer wait is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// Options for small files, because test nodes store little.
const SMALL: &str = "--journal-segment-size 1MiB --journal-reserve 0B";

/// A directory in which the executable runs, and its environment variables.
pub(crate) struct Place {
    dir: TempDir,
    variables: Vec<(&'static str, String)>,
}

/// The outcome of a run.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            variables: Vec::new(),
        }
    }

    pub(crate) fn with_variable(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> &Self {
        std::fs::write(self.path(name), text).unwrap();
        self
    }

    /// Returns a command that has not been started.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_telpher"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env_clear()
            .stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command line, split at blanks, to its end.
    pub(crate) fn run(&self, line: &str) -> Ended {
        self.run_words(line.split_whitespace())
    }

    /// Runs a command line, given as words, to its end.
    pub(crate) fn run_words<A: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = A>) -> Ended {
        self.start(words).end()
    }

    /// Runs a command line, split at blanks, with an input to its end.
    pub(crate) fn run_with_input(&self, line: &str, input: &[u8]) -> Ended {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut command = self.command(line.split_whitespace());
        let running = Running::spawn(command.stdin(reader));
        drop(command);
        writer.write_all(input).unwrap();
        drop(writer);
        running.end()
    }

    /// Starts a command and does not wait for its end.
    pub(crate) fn start<A: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = A>) -> Running {
        Running::spawn(&mut self.command(words))
    }

    /// Runs lines of shell to their end, with the system's `PATH`.
    pub(crate) fn shell(&self, script: &str) -> Ended {
        self.start_shell(script).end()
    }

    /// Starts lines of shell without waiting for their end.
    pub(crate) fn start_shell(&self, script: &str) -> Running {
        let mut command = Command::new("sh");
        let command = command.args(["-c", script]).current_dir(self.dir.path());
        Running::spawn(command.stdin(Stdio::null()))
    }

    /// Starts `telpher listen` with these words and waits until it is subscribed.
    pub(crate) fn listen<A: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = A>) -> Running {
        let mut command = self.command(["listen"]);
        let mut running = Running::spawn(command.args(words));
        running.wait_for_note("listening as ");
        running
    }

    /// Starts a node on free ports with further flags, and waits until it is ready.
    pub(crate) fn serve(&self, flags: &str) -> Node {
        self.serve_at("127.0.0.1:0", flags)
    }

    /// Starts a node with its native listener at `address`, and waits until it is ready.
    pub(crate) fn serve_at(&self, native: &str, flags: &str) -> Node {
        let executable = Command::new(env!("CARGO_BIN_EXE_telpher"));
        self.serve_through(executable, native, flags)
    }

    /// Starts a member of a cluster, which needs fixed ports in `flags`, and waits until it is ready.
    pub(crate) fn serve_member(&self, native: &str, flags: &str) -> Node {
        let line = format!("serve --json --native-listen {native} {SMALL} {flags}");
        self.serve_line(Command::new(env!("CARGO_BIN_EXE_telpher")), &line)
    }

    /// Starts a node by a command that gets the words of the command line.
    pub(crate) fn serve_through(&self, command: Command, native: &str, flags: &str) -> Node {
        let slim = match flags.contains("--slim-listen") {
            true => "",
            false => "--slim-listen 127.0.0.1:0",
        };
        let line = format!(
            "serve --json --native-listen {native} --http-listen 127.0.0.1:0 \
             --kafka-listen 127.0.0.1:0 {slim} {SMALL} {flags}"
        );
        self.serve_line(command, &line)
    }

    fn serve_line(&self, mut command: Command, line: &str) -> Node {
        command
            .args(line.split_whitespace())
            .current_dir(self.dir.path())
            .env_clear()
            .stdin(Stdio::null())
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        let mut running = Running::spawn(&mut command);
        let line = running.line();
        match serde_json::from_str(&line) {
            Ok(ready) => Node {
                running: Some(running),
                ready,
            },
            Err(error) => panic!("not ready: {error}: {line:?}\n{}", running.end().stderr),
        }
    }
}

impl Ended {
    pub(crate) fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| panic!("{}: {}", self.status, self.stderr))
    }

    /// Checks the exit status and returns the outcome.
    #[track_caller]
    pub(crate) fn expect(&self, code: i32) -> &Self {
        assert_eq!(
            self.code(),
            code,
            "stdout: {}\nstderr: {}",
            self.stdout,
            self.stderr
        );
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// Checks that the standard error has an `error:` line with `error` and a `hint:` line with
    /// `hint`.
    #[track_caller]
    pub(crate) fn shows_error(&self, error: &str, hint: &str) -> &Self {
        let has = |start: &str, text: &str| {
            self.stderr
                .lines()
                .any(|line| line.starts_with(start) && line.contains(text))
        };
        assert!(
            has("error: ", error),
            "no error with {error:?}:\n{}",
            self.stderr
        );
        assert!(
            has("hint: ", hint),
            "no hint with {hint:?}:\n{}",
            self.stderr
        );
        self
    }
}

/// A process with its output, killed on drop.
pub(crate) struct Running {
    child: Child,
    stdout: mpsc::Receiver<String>,
    stderr: mpsc::Receiver<String>,
}

impl Running {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = lines_of(child.stdout.take().unwrap());
        let stderr = lines_of(child.stderr.take().unwrap());
        Self {
            child,
            stdout,
            stderr,
        }
    }

    /// Returns the next line of the standard output; empty at its end.
    pub(crate) fn line(&mut self) -> String {
        self.stdout.recv_timeout(PATIENCE).unwrap_or_default()
    }

    /// Waits for a line of the standard error that begins with `start`, and returns it.
    #[track_caller]
    pub(crate) fn wait_for_note(&mut self, start: &str) -> String {
        let mut seen = String::new();
        loop {
            match self.stderr.recv_timeout(PATIENCE) {
                Ok(line) if line.starts_with(start) => return line,
                Ok(line) => seen.push_str(&line),
                Err(error) => panic!("{error}: no note that begins with {start:?}:\n{seen}"),
            }
        }
    }

    /// Waits for the end of the process and of its output.
    pub(crate) fn end(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        let rest = |lines: &mpsc::Receiver<String>| {
            let mut text = String::new();
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                match lines.recv_timeout(left) {
                    Ok(line) => text.push_str(&line),
                    Err(mpsc::RecvTimeoutError::Disconnected) => return text,
                    Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs: {text}"),
                }
            }
        };
        let (stdout, stderr) = (rest(&self.stdout), rest(&self.stderr));
        // Both outputs have ended, so the process will end.
        Ended {
            status: self.child.wait().unwrap(),
            stdout,
            stderr,
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends the process with SIGINT, and waits.
    pub(crate) fn stop(self) -> Ended {
        self.signal(Signal::TERM);
        self.end()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads on a separate thread, so that the process never blocks on a full pipe.
fn lines_of(output: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = String::new();
        while output.read_line(&mut line).is_ok_and(|size| size > 0) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    receiver
}

/// A running node.
pub(crate) struct Node {
    running: Option<Running>,
    pub(crate) ready: Value,
}

impl Node {
    /// Returns a printed address (`native`, `socket` or `http`) without its scheme.
    pub(crate) fn address(&self, door: &str) -> &str {
        self.ready[door]
            .as_str()
            .unwrap()
            .split_once("://")
            .unwrap()
            .1
    }

    /// Returns a printed address with its scheme.
    pub(crate) fn url(&self, door: &str) -> &str {
        self.ready[door].as_str().unwrap()
    }

    /// Returns a counter or gauge from `/metrics`.
    #[track_caller]
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let (status, text) = self.get("/metrics", None);
        assert_eq!(status, 200, "{text}");
        let line = text
            .lines()
            .find(|line| line.split(' ').next() == Some(name));
        let line = line.unwrap_or_else(|| panic!("no metric {name}:\n{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Returns the resident memory in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        line.unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap()
    }

    pub(crate) fn pid(&self) -> u64 {
        self.ready["pid"].as_u64().unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.running.as_ref().unwrap().signal(signal);
    }

    /// Waits for a log line that contains `text`; returns the log up to that line.
    #[track_caller]
    pub(crate) fn wait_for_log(&mut self, text: &str) -> String {
        let running = self.running.as_mut().unwrap();
        let mut log = String::new();
        loop {
            match running.stderr.recv_timeout(PATIENCE) {
                Ok(line) => {
                    log.push_str(&line);
                    if line.contains(text) {
                        return log;
                    }
                }
                Err(error) => panic!("{error}: no log line with {text:?}:\n{log}"),
            }
        }
    }

    /// Waits for the end of the node.
    pub(crate) fn end(mut self) -> Ended {
        self.running.take().unwrap().end()
    }

    /// Ends the node with SIGTERM.
    pub(crate) fn stop(self) -> Ended {
        self.signal(Signal::TERM);
        self.end()
    }

    /// Sends a request to the HTTP listener; returns the status and the body.
    pub(crate) fn get(&self, path: &str, token: Option<&str>) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address("http")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let token = token.map_or(String::new(), |token| {
            format!("Authorization: Bearer {token}\r\n")
        });
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: localhost\r\n{token}Connection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }
}

/// A shell command that runs until its parent agent is gone. If the agent ends before the shell
/// starts, the parent is process 1.
pub(crate) const STUCK: &str = "while [ $PPID != 1 ] && [ -d /proc/$PPID ]; do sleep 0.05; done";

/// A shell command that runs until the file `go` exists in its directory.
pub(crate) const UNTIL_GO: &str =
    "while [ $PPID != 1 ] && [ -d /proc/$PPID ] && [ ! -e go ]; do sleep 0.01; done";

/// Finds a free port outside the range of ports that the system assigns, so that it is still free
/// when a node is restarted on it.
pub(crate) fn free_port() -> u16 {
    let mut ports = std::iter::repeat_with(|| fastrand::u16(10_000..30_000));
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.find(is_free).unwrap()
}

/// Waits until the condition holds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the permission bits of a file.
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}
