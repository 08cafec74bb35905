//! A PostgreSQL server for a test: Debian's, with its own directory and port.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A time limit above the duration of every operation here.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// User of the server if the test runs as root, which the server refuses.
const USER: &str = "postgres";

/// A database cluster; its server is killed when this is dropped.
pub(crate) struct Postgres {
    dir: TempDir,
    pub(crate) port: u16,
    server: Option<Child>,
    /// Additional settings, as `name=value`.
    settings: Vec<String>,
}

impl Postgres {
    /// Creates a cluster that is not running yet.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let postgres = Self {
            port: free_port(),
            dir,
            server: None,
            settings: Vec::new(),
        };
        if is_root() {
            run(Command::new("chown").arg(USER).arg(postgres.dir.path()));
        }
        let mut init = postgres.command("initdb");
        init.args(["--auth=trust", "--username=telpher", "--no-sync"]);
        init.args(["--encoding=UTF8", "--locale=C", "--pgdata"]);
        run(init.arg(postgres.data()));
        postgres
    }

    pub(crate) fn started() -> Self {
        let mut postgres = Self::new();
        postgres.start();
        postgres
    }

    pub(crate) fn set(&mut self, setting: &str) {
        self.settings.push(setting.to_owned());
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Writes a file that only the server can read.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.data().join(name);
        std::fs::write(&path, text).unwrap();
        run(Command::new("chmod").arg("600").arg(&path));
        if is_root() {
            run(Command::new("chown").arg(USER).arg(&path));
        }
        path
    }

    /// Starts the server and waits until it answers.
    pub(crate) fn start(&mut self) {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data());
        for setting in [
            &format!("port={}", self.port),
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "fsync=off",
            "shared_buffers=16MB",
            "max_connections=20",
        ] {
            command.args(["-c", setting]);
        }
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        let log = std::fs::File::create(self.dir.path().join("log")).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null());
        self.server = Some(command.stderr(log).spawn().unwrap());
        eventually("the server answers", || self.try_sql("SELECT 1").is_ok());
    }

    /// Kills the server, as in a crash.
    pub(crate) fn crash(&mut self) {
        if let Some(mut server) = self.server.take() {
            signal(server.id(), Signal::QUIT);
            server.wait().unwrap();
        }
    }

    /// Suspends or resumes all processes of the server.
    pub(crate) fn freeze(&self, is_frozen: bool) {
        let signal_of_all = match is_frozen {
            true => Signal::STOP,
            false => Signal::CONT,
        };
        let server = self.server.as_ref().unwrap().id();
        for id in children(server).into_iter().chain([server]) {
            signal(id, signal_of_all);
        }
    }

    pub(crate) fn url(&self) -> String {
        format!(
            "postgres://telpher@127.0.0.1:{}/postgres?sslmode=disable",
            self.port
        )
    }

    /// Runs a query: a line per row, with `|` between columns.
    #[track_caller]
    pub(crate) fn sql(&self, sql: &str) -> String {
        self.try_sql(sql).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn try_sql(&self, sql: &str) -> Result<String, String> {
        let output = self.psql(sql).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(text(&output.stderr)),
        }
    }

    /// Starts a long statement, which ends when the value is dropped.
    pub(crate) fn begin(&self, sql: &str) -> Busy {
        let mut command = self.psql(sql);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Busy(command.spawn().unwrap())
    }

    fn psql(&self, sql: &str) -> Command {
        let mut command = Command::new(program("psql"));
        command.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1"]);
        command.args(["-U", "telpher", "-d", "postgres", "-p"]);
        command.arg(self.port.to_string()).args(["-c", sql]);
        command.env("PGCONNECT_TIMEOUT", "5");
        command.stdin(Stdio::null());
        command
    }

    /// Runs a program of the server as a user that it accepts.
    fn command(&self, name: &str) -> Command {
        let program = program(name);
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
                command.arg(program);
                command
            }
            false => Command::new(program),
        };
        command.current_dir(self.dir.path());
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.server.is_some() {
            self.freeze(false);
            self.crash();
        }
    }
}

/// A running statement; see [`Postgres::begin`].
pub(crate) struct Busy(Child);

impl Drop for Busy {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Debian's directories of the server's programs, newest first.
fn program(name: &str) -> OsString {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let mut found: Vec<PathBuf> = versions
        .filter_map(|entry| Some(entry.ok()?.path().join("bin").join(name)))
        .filter(|path| path.exists())
        .collect();
    found.sort();
    if let Some(path) = found.pop() {
        return path.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|dir| dir.join(name).exists());
    assert!(
        is_there,
        "there is no {name}: `cargo xtask setup` installs PostgreSQL"
    );
    name.into()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[track_caller]
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    output
}

fn signal(id: u32, signal: Signal) {
    let pid = Pid::from_raw(id as i32).unwrap();
    // The process may have ended.
    let _ = kill_process(pid, signal);
}

fn children(parent: u32) -> Vec<u32> {
    let is_child = |path: &Path| {
        let stat = std::fs::read_to_string(path.join("stat")).ok()?;
        // pid (name) state ppid
        let (_, rest) = stat.rsplit_once(") ")?;
        (rest.split(' ').nth(1)? == parent.to_string()).then_some(())
    };
    let processes = std::fs::read_dir("/proc").unwrap();
    let found = processes.filter_map(|entry| {
        let path = entry.ok()?.path();
        let id = path.file_name()?.to_str()?.parse().ok()?;
        is_child(&path).map(|()| id)
    });
    found.collect()
}

/// Finds a free port outside of the range that the system assigns.
fn free_port() -> u16 {
    let mut ports = std::iter::repeat_with(|| fastrand::u16(10_000..30_000));
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.find(is_free).unwrap()
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
