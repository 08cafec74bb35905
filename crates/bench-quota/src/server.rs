//! Servers that get the takes: our node, a server that is already running, and third-party servers.
//! Each is started for one run with a directory of its own on a free loopback port.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::plan::Plan;
use super::target::Target;
use super::{Dialect, Limits, Matrix, Subject, TakeClient, script};
use bench::process::Role;
use bench::workload::child::{Actor, ChildError, Pin};
use bench::workload::error::WorkloadError;
use bench::workload::node::Node;
use bench::workload::rival_server::{free_port, redis};
use bench::workload::surroundings::{PATIENCE, Surroundings, temporary_directory};
use meter::clock::now_ns;

/// A running server.
#[derive(Default)]
pub(super) struct Server {
    /// Addresses for single takes.
    addresses: Vec<String>,
    /// Processes other than our nodes.
    parts: Vec<ServerProcess>,
    /// Our nodes: one, or several that share a Redis.
    nodes: Vec<Node>,
    _scratch: Option<TempDir>,
}

/// Configuration of our nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeSetup {
    limits: Limits,
    /// Number of nodes that share a Redis, if they do.
    sharing: Option<u32>,
}

impl NodeSetup {
    /// Returns the configuration of a single node with its own state.
    pub(super) fn alone(limits: Limits) -> Self {
        Self {
            limits,
            sharing: None,
        }
    }

    /// Returns the configuration of a plan.
    pub(super) fn of(plan: &Plan) -> Self {
        Self {
            limits: plan.limits,
            sharing: plan.sharing,
        }
    }
}

/// A process of a server.
struct ServerProcess {
    name: &'static str,
    /// The process; `None` once it has been stopped.
    actor: Option<Actor>,
    pid: u32,
}

/// Name of the program, in the directory of peers or in `PATH`.
const REDIS: &str = "redis-server";

const LOOK: Duration = Duration::from_millis(5);

impl Server {
    /// Starts a server and waits until it accepts requests.
    ///
    /// # Errors
    /// When it does not start, with its output.
    pub(super) fn start(
        target: Target,
        surroundings: &Surroundings,
        matrix: &Matrix,
        setup: NodeSetup,
    ) -> Result<Self, WorkloadError> {
        match (target, &matrix.subject) {
            (Target::Url, Subject::Url(address)) => Ok(Self {
                addresses: vec![address.clone()],
                ..Self::default()
            }),
            (Target::Node | Target::Url, _) => Self::nodes(surroundings, &matrix.directory, setup),
            (Target::Script, _) => Self::script(surroundings, &matrix.directory),
            (Target::Express | Target::Throttlecrab | Target::Floor, _) => {
                let Some(programs) = &surroundings.peers else {
                    let problem = format!("{} is not a peer", target.name());
                    return Err(WorkloadError::Nothing(
                        problem,
                        "add --peers bench/peers/bin",
                    ));
                };
                let programs = programs.canonicalize().map_err(WorkloadError::Directory)?;
                Self::peer(target, &programs, &matrix.directory)
            }
        }
    }

    fn nodes(
        surroundings: &Surroundings,
        on_disk: &Path,
        setup: NodeSetup,
    ) -> Result<Self, WorkloadError> {
        let scratch = temporary_directory(on_disk)?;
        let directory = scratch.path().canonicalize();
        let directory = directory.map_err(WorkloadError::Directory)?;
        let mut server = Self {
            _scratch: Some(scratch),
            ..Self::default()
        };
        let mut toml = setup.limits.toml();
        if let Some(count) = setup.sharing {
            let redis = server.open_redis(surroundings, &directory)?;
            let store = format!("[quota.store]\nredis = \"redis://{redis}\"\nnodes = {count}\n\n");
            toml = store + &toml;
        }
        let config = directory.join("limits.toml");
        fs::write(&config, toml).map_err(WorkloadError::Directory)?;
        let flags = ["--config", &config.display().to_string()];
        for number in 0..setup.sharing.unwrap_or(1) {
            let data = directory.join(format!("data-{number}"));
            let node = Node::start_limiter(&surroundings.executable, &data, &flags)?;
            let Some(address) = node.limiter_address() else {
                let problem = "the node does not serve the rate limiter's API".to_owned();
                return Err(WorkloadError::Node(problem));
            };
            server.addresses.push(address.to_owned());
            server.nodes.push(node);
        }
        Ok(server)
    }

    /// Starts a Redis with the take function.
    fn script(surroundings: &Surroundings, on_disk: &Path) -> Result<Self, WorkloadError> {
        let scratch = temporary_directory(on_disk)?;
        let directory = scratch.path().canonicalize();
        let directory = directory.map_err(WorkloadError::Directory)?;
        let mut server = Self {
            _scratch: Some(scratch),
            ..Self::default()
        };
        let address = server.open_redis(surroundings, &directory)?;
        script::install(&address)
            .map_err(|error| WorkloadError::Node(format!("Redis takes no function: {error}")))?;
        server.addresses.push(address);
        Ok(server)
    }

    /// Starts a Redis in `directory`, from the directory of peers or from the system.
    fn open_redis(
        &mut self,
        surroundings: &Surroundings,
        directory: &Path,
    ) -> Result<String, WorkloadError> {
        let of_peers = surroundings.peers.as_ref().map(|peers| peers.join(REDIS));
        let program = of_peers.filter(|program| program.is_file());
        let program = program.unwrap_or_else(|| PathBuf::from(REDIS));
        self.open("redis", &program, |port| redis(port, directory, "everysec"))
    }

    fn peer(target: Target, programs: &Path, on_disk: &Path) -> Result<Self, WorkloadError> {
        let scratch = temporary_directory(on_disk)?;
        let directory = scratch.path().canonicalize();
        let directory = directory.map_err(WorkloadError::Directory)?;
        let mut server = Self {
            _scratch: Some(scratch),
            ..Self::default()
        };
        let address = match target {
            Target::Express => {
                let redis = server.open("redis", &programs.join(REDIS), |port| {
                    redis(port, &directory, "everysec")
                })?;
                let program = programs.join("quota-express");
                server.announced("express", &program, &["--redis", &redis])?
            }
            Target::Throttlecrab => {
                let program = programs.join("throttlecrab-server");
                server.open("throttlecrab", &program, throttlecrab)?
            }
            _ => {
                let program = programs.join("floors");
                let words = ["http", "serve", "--listen", "127.0.0.1:0"];
                server.announced("floor", &program, &words)?
            }
        };
        server.addresses.push(address);
        Ok(server)
    }

    /// Starts a process that prints its address.
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
            None => return Err(actor.invalid_line(line, "expected `READY ADDRESS`".to_owned())),
        };
        self.parts.push(ServerProcess::of(name, actor));
        Ok(address)
    }

    /// Starts a process on a free port, and waits until it listens.
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
        self.parts.push(ServerProcess::of(name, actor));
        Ok(address)
    }

    /// Returns the addresses for this kind of request: `HOST:PORT`, or the form that our client
    /// takes.
    pub(super) fn addresses(&self, client: TakeClient) -> Vec<String> {
        let nodes = self.nodes.iter();
        match client {
            TakeClient::Native { .. } => nodes.map(|node| node.native.clone()).collect(),
            TakeClient::Written(Dialect::Take { .. }) if !self.nodes.is_empty() => {
                nodes.map(|node| node.http_address().to_owned()).collect()
            }
            TakeClient::Written(_) => self.addresses.clone(),
        }
    }

    /// Returns its processes with their names, except for servers that are already running.
    pub(super) fn processes(&self) -> Vec<(&'static str, u32)> {
        let nodes = self.nodes.iter().map(|node| ("node", node.pid()));
        let parts = self.parts.iter().map(|part| (part.name, part.pid));
        nodes.chain(parts).collect()
    }

    /// Returns its processes for a watch.
    pub(super) fn roles(&self) -> Vec<(Role, u32)> {
        let processes = self.processes().into_iter();
        processes.map(|(_, pid)| (Role::Node, pid)).collect()
    }

    /// Fails if any process has ended.
    pub(super) fn check_alive(&mut self) -> Result<(), ChildError> {
        self.nodes.iter_mut().try_for_each(Node::check_alive)?;
        let mut actors = self.parts.iter_mut().flat_map(|part| &mut part.actor);
        actors.try_for_each(Actor::check_alive)
    }
}

impl ServerProcess {
    fn of(name: &'static str, actor: Actor) -> Self {
        Self {
            name,
            pid: actor.pid(),
            actor: Some(actor),
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The data of these processes is not needed any more, and not all of them end when their
        // input closes.
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
