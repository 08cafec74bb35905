//! Whom takes are asked of: a node of ours, a server that runs already, and the servers of others, each
//! started for a run with a directory of its own on a free loopback port.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::{Dialect, Limits, Matrix, Subject};
use crate::clock::now_ns;
use crate::process::Role;
use crate::workload::child::{Actor, ChildError, Pin};
use crate::workload::node::Node;
use crate::workload::rival::{free_port, redis};
use crate::workload::{OURS, PATIENCE, Surroundings, WorkloadError, place};

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A node of ours.
    Node,
    /// A server that runs already.
    Url,
    /// Express, ioredis and a Lua script.
    Express,
    /// throttlecrab over HTTP.
    Throttlecrab,
    /// The same answer to every request.
    Floor,
}

impl Target {
    /// Those that come from the directory of peers.
    pub(super) const PEERS: [Self; 3] = [Self::Express, Self::Throttlecrab, Self::Floor];

    /// The name in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Node => OURS,
            Self::Url => "url",
            Self::Express => "express",
            Self::Throttlecrab => "throttlecrab",
            Self::Floor => "http-floor",
        }
    }

    pub(super) fn dialect(self) -> Dialect {
        match self {
            Self::Throttlecrab => Dialect::Throttle,
            Self::Node | Self::Url | Self::Express | Self::Floor => Dialect::Request,
        }
    }

    /// Whether it has every endpoint of the report.
    pub(super) fn has_surface(self) -> bool {
        matches!(self, Self::Node | Self::Url | Self::Express)
    }

    /// Whether it takes several takes in a request.
    pub(super) fn has_batches(self) -> bool {
        matches!(self, Self::Node | Self::Url)
    }

    /// What must stand in the directory of peers, the server first.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Node | Self::Url => &[],
            Self::Express => &["quota-express", "redis-server"],
            Self::Throttlecrab => &["throttlecrab-server"],
            Self::Floor => &["floors"],
        }
    }

    /// Whether it was installed.
    pub(super) fn is_in(self, directory: &Path) -> bool {
        let is_there = |program: &&str| directory.join(program).is_file();
        self.programs().iter().all(is_there)
    }

    /// What it is and how it is set up.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Node => {
                "`telpher serve` with its data on the disk; one limit as the report has it, and where six are told those \
                 of three tiers by two units"
            }
            Self::Url => "a server that runs already: its own time and memory are not known",
            Self::Express => {
                "Express 4.18 and ioredis, one process; a Lua script with each take in a Redis of its own that \
                 appends to a file and syncs it every second; it logs nothing. CPU and memory are the sum of both"
            }
            Self::Throttlecrab => {
                "throttlecrab-server over HTTP with its defaults; `POST /throttle` with the same capacity and rate"
            }
            Self::Floor => {
                "the same answer to every request: what the generator and the kernel cost"
            }
        }
    }
}

/// One of them, running.
pub(super) struct Server {
    address: String,
    /// Where several takes are asked for at once, if that is elsewhere.
    takes_address: Option<String>,
    parts: Vec<Part>,
    node: Option<Node>,
    _place: Option<TempDir>,
}

/// A process of a server.
struct Part {
    name: &'static str,
    /// Nothing once it has been ended.
    actor: Option<Actor>,
    pid: u32,
}

const LOOK: Duration = Duration::from_millis(5);

impl Server {
    /// Starts one and waits until it can be asked.
    ///
    /// # Errors
    /// When it does not start, with what it said.
    pub(super) fn start(
        target: Target,
        surroundings: &Surroundings,
        matrix: &Matrix,
        limits: Limits,
    ) -> Result<Self, WorkloadError> {
        match (target, &matrix.subject) {
            (Target::Url, Subject::Url(address)) => Ok(Self {
                address: address.clone(),
                takes_address: None,
                parts: Vec::new(),
                node: None,
                _place: None,
            }),
            (Target::Node | Target::Url, _) => Self::node(surroundings, &matrix.directory, limits),
            (Target::Express | Target::Throttlecrab | Target::Floor, _) => {
                let Some(programs) = &surroundings.peers else {
                    let what = format!("{} is no peer", target.name());
                    return Err(WorkloadError::Nothing(what, "add --peers bench/peers/bin"));
                };
                let programs = programs.canonicalize().map_err(WorkloadError::Directory)?;
                Self::peer(target, &programs, &matrix.directory)
            }
        }
    }

    fn node(
        surroundings: &Surroundings,
        on_disk: &Path,
        limits: Limits,
    ) -> Result<Self, WorkloadError> {
        let place = place(on_disk)?;
        let config = place.path().join("limits.toml");
        fs::write(&config, limits.toml()).map_err(WorkloadError::Directory)?;
        let (data, config) = (place.path().join("data"), config.display().to_string());
        let flags = ["--config", &config];
        let node = Node::start_limiter(&surroundings.executable, &data, &flags)?;
        let Some(address) = node.limiter_address() else {
            let what = "the node does not stand in for a limiter".to_owned();
            return Err(WorkloadError::Node(what));
        };
        Ok(Self {
            address: address.to_owned(),
            takes_address: Some(node.http_address().to_owned()),
            parts: Vec::new(),
            node: Some(node),
            _place: Some(place),
        })
    }

    fn peer(target: Target, programs: &Path, on_disk: &Path) -> Result<Self, WorkloadError> {
        let place = place(on_disk)?;
        let mut server = Self {
            address: String::new(),
            takes_address: None,
            parts: Vec::new(),
            node: None,
            _place: None,
        };
        match target {
            Target::Express => {
                let directory = place.path().canonicalize();
                let directory = directory.map_err(WorkloadError::Directory)?;
                let redis = server.open("redis", &programs.join("redis-server"), |port| {
                    redis(port, &directory, "everysec")
                })?;
                let program = programs.join("quota-express");
                server.address = server.announced("express", &program, &["--redis", &redis])?;
            }
            Target::Throttlecrab => {
                let program = programs.join("throttlecrab-server");
                server.address = server.open("throttlecrab", &program, throttlecrab)?;
            }
            Target::Floor => {
                let program = programs.join("floors");
                let words = ["http", "serve", "--listen", "127.0.0.1:0"];
                server.address = server.announced("floor", &program, &words)?;
            }
            Target::Node | Target::Url => {}
        }
        Ok(Self {
            _place: Some(place),
            ..server
        })
    }

    /// Starts a part that says where it listens.
    fn announced(
        &mut self,
        name: &'static str,
        program: &Path,
        arguments: &[&str],
    ) -> Result<String, ChildError> {
        let mut actor = Actor::start(program, arguments, Pin::Nowhere)?;
        let line = actor.line()?;
        let address = match line.strip_prefix("READY ") {
            Some(address) => address.to_owned(),
            None => return Err(actor.nonsense(line, "expected `READY ADDRESS`".to_owned())),
        };
        self.parts.push(Part::of(name, actor));
        Ok(address)
    }

    /// Starts a part on a port that nobody has, and waits until it listens.
    fn open(
        &mut self,
        name: &'static str,
        program: &Path,
        arguments: impl FnOnce(u16) -> Vec<String>,
    ) -> Result<String, WorkloadError> {
        let port = free_port().map_err(WorkloadError::Directory)?;
        let address = format!("127.0.0.1:{port}");
        let mut actor = Actor::start(program, arguments(port), Pin::Nowhere)?;
        let limit_ns = now_ns() + PATIENCE.as_nanos() as u64;
        while TcpStream::connect(&address).is_err() {
            actor.check_alive()?;
            if now_ns() > limit_ns {
                return Err(WorkloadError::Node(format!(
                    "{name} does not listen on {address}"
                )));
            }
            thread::sleep(LOOK);
        }
        self.parts.push(Part::of(name, actor));
        Ok(address)
    }

    /// `HOST:PORT` of where this is asked.
    pub(super) fn address(&self, dialect: Dialect) -> &str {
        match (dialect, &self.takes_address) {
            (Dialect::Take { .. }, Some(address)) => address,
            _ => &self.address,
        }
    }

    /// Its processes and what each of them is, as far as they are ours to look at.
    pub(super) fn processes(&self) -> Vec<(&'static str, u32)> {
        let node = self.node.iter().map(|node| ("node", node.pid()));
        let parts = self.parts.iter().map(|part| (part.name, part.pid));
        node.chain(parts).collect()
    }

    /// The same for a watch.
    pub(super) fn roles(&self) -> Vec<(Role, u32)> {
        let processes = self.processes().into_iter();
        processes.map(|(_, pid)| (Role::Node, pid)).collect()
    }

    /// Fails when any of them has ended.
    pub(super) fn check_alive(&mut self) -> Result<(), ChildError> {
        if let Some(node) = &mut self.node {
            node.check_alive()?;
        }
        let mut actors = self.parts.iter_mut().flat_map(|part| &mut part.actor);
        actors.try_for_each(Actor::check_alive)
    }
}

impl Part {
    fn of(name: &'static str, actor: Actor) -> Self {
        Self {
            name,
            pid: actor.pid(),
            actor: Some(actor),
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Nothing of theirs is kept, and not all of them end with their input.
        if let Some(actor) = self.actor.take() {
            actor.kill();
        }
    }
}

fn throttlecrab(port: u16) -> Vec<String> {
    let port = port.to_string();
    let flags = [
        "--http",
        "--http-host",
        "127.0.0.1",
        "--http-port",
        &port,
        "--log-level",
        "error",
    ];
    flags.map(str::to_owned).to_vec()
}
