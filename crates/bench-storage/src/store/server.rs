//! Third-party servers, each started with a directory of its own on a free loopback port.

mod postgres;

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub(super) use postgres::{Pgbench, Window, pgbench};

use super::LoadClient;
use bench::model::Case;
use bench::workload::child::{Actor, ChildError, Pin};
use bench::workload::error::WorkloadError;
use bench::workload::rival_server::{free_port, redis};
use bench::workload::surroundings::PATIENCE;
use meter::clock::now_ns;

/// A system that stores messages too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Postgres,
    Redis,
    DurableStreams,
}

/// Load generator of a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    /// Our own load.
    Load(LoadClient),
    /// The system's own benchmark program.
    Pgbench,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Postgres, Self::Redis, Self::DurableStreams];

    /// Returns the name in results.
    pub(super) fn target(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Redis => "redis",
            Self::DurableStreams => "durable-streams",
        }
    }

    /// Returns the system of a case.
    pub(super) fn of(case: &Case) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.target() == case.target)
    }

    /// Returns the server's program.
    pub(super) fn program(self) -> &'static str {
        self.programs()[0]
    }

    pub(super) fn driver(self) -> Driver {
        match self {
            Self::Postgres => Driver::Pgbench,
            Self::Redis => Driver::Load(LoadClient::Redis),
            Self::DurableStreams => Driver::Load(LoadClient::DurableStreams),
        }
    }

    /// Returns the programs that must be in the directory of peers, the server first.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Postgres => &["postgres", "initdb", "psql", "pgbench"],
            Self::Redis => &["redis-server"],
            Self::DurableStreams => &["durable-streams-server"],
        }
    }

    /// Returns true if the system is installed.
    pub(super) fn is_in(self, directory: &Path) -> bool {
        self.programs()
            .iter()
            .all(|program| directory.join(program).is_file())
    }

    /// Describes the system and its set-up.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Postgres => {
                "one-row INSERTs of the text into a table with a bigserial key; pgbench with prepared statements, a \
                 client for each message in flight; fsync=on and everything else at its defaults"
            }
            Self::Redis => {
                "RPUSH of the text to a list for each conversation; appendonly, appendfsync always, no snapshots"
            }
            Self::DurableStreams => {
                "POST of the text to a stream for each conversation, a connection for each message in flight; its \
                 defaults: an append is acknowledged when its group is synced"
            }
        }
    }
}

/// A running server.
pub(super) struct Server {
    actor: Actor,
    kind: Kind,
    pub(super) address: String,
    programs: PathBuf,
    scratch: TempDir,
}

impl Server {
    /// Starts a server from the directory of peers, and waits until it accepts connections.
    ///
    /// # Errors
    /// When it does not start, with its output.
    pub(super) fn start(
        kind: Kind,
        programs: &Path,
        on_disk: &Path,
    ) -> Result<Self, WorkloadError> {
        let programs = programs.canonicalize().map_err(WorkloadError::Directory)?;
        let scratch = tempfile::Builder::new()
            .prefix("telpher-bench-")
            .tempdir_in(on_disk.canonicalize().map_err(WorkloadError::Directory)?)
            .map_err(WorkloadError::Directory)?;
        let port = free_port().map_err(WorkloadError::Directory)?;
        let actor = match kind {
            Kind::Postgres => postgres::start(&programs, scratch.path(), port)?,
            Kind::Redis => start(
                &programs.join("redis-server"),
                &redis(port, scratch.path(), "always"),
            )?,
            Kind::DurableStreams => {
                let directory = scratch.path().display().to_string();
                let flags = ["--port", &port.to_string(), "--data-dir", &directory];
                start(
                    &programs.join("durable-streams-server"),
                    &flags.map(str::to_owned),
                )?
            }
        };
        let mut server = Self {
            actor,
            kind,
            address: format!("127.0.0.1:{port}"),
            programs,
            scratch,
        };
        server.wait_until_open()?;
        if kind == Kind::Postgres {
            postgres::prepare(&server.programs, port)?;
        }
        Ok(server)
    }

    /// Returns the pid of the server's root process.
    pub(super) fn pid(&self) -> u32 {
        self.actor.pid()
    }

    /// Fails if the process has ended.
    pub(super) fn check_alive(&mut self) -> Result<(), ChildError> {
        self.actor.check_alive()
    }

    /// Returns the directory of its data.
    pub(super) fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// Returns the directory of its programs.
    pub(super) fn programs(&self) -> &Path {
        &self.programs
    }

    fn wait_until_open(&mut self) -> Result<(), WorkloadError> {
        let limit_ns = now_ns() + PATIENCE.as_nanos() as u64;
        while TcpStream::connect(&self.address).is_err() {
            self.check_alive()?;
            if now_ns() > limit_ns {
                let problem = format!("{} does not listen on {}", self.kind.target(), self.address);
                return Err(WorkloadError::Node(problem));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The signal ends all processes at once, including PostgreSQL's children. The data is not
        // needed any more.
        let signal = match self.kind {
            Kind::Postgres => Signal::QUIT,
            Kind::Redis | Kind::DurableStreams => Signal::KILL,
        };
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        // A process that has already ended cannot be killed.
        let _ = pid.map(|pid| kill_process(pid, signal));
    }
}

const LOOK: Duration = Duration::from_millis(10);

fn start(program: &Path, arguments: &[String]) -> Result<Actor, ChildError> {
    Actor::start(program, arguments, Pin::Nowhere)
}
