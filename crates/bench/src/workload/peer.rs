//! Floors and peers: independent programs, driven by one command-line contract.
//!
//! ```text
//! PROGRAM serve --listen ADDR                          READY ADDR
//! PROGRAM load --connect ADDR --mode MODE …            one line of JSON
//! ```
//!
//! The contract is specified in `bench/peers/README.md`. A load measures itself: its reported
//! window, latencies and CPU time are used as they are. The CPU and memory of the server processes
//! are read by us over the same window.

mod opening;
mod program;
mod report;

use std::time::Duration;

pub use program::Program;

use super::child::{Actor, ChildError};
use super::error::WorkloadError;
use super::placement::Placement;
use super::surroundings::PATIENCE;
use super::transport::Transport;
use crate::measurement::Measurement;
use crate::model::{Case, Mode};
use crate::process::Role;
use meter::clock::now_ns;
use opening::Opening;
pub use report::LoadReport;
use report::SubscribeReport;

/// Amount of work of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// Messages without pause for this time.
    Time(Duration),
    /// This number of messages.
    Messages(u64),
}

impl Amount {
    fn patience(self) -> Duration {
        match self {
            Self::Time(window) => window + PATIENCE,
            Self::Messages(_) => 5 * PATIENCE,
        }
    }
}

/// Subject of published messages, distinct from the subjects of responders.
const NEWS: &str = "bench.news";

/// Duration of a load's warm-up.
const WARM_UP: Duration = Duration::from_millis(300);

/// A serving program, with the servers it depends on.
#[derive(Debug)]
pub struct Peer {
    program: Program,
    placement: Placement,
    address: String,
    servers: Vec<(Role, Actor)>,
    /// Notes of the loads about their method, by mode.
    notes: Vec<(String, String)>,
    /// Directory of the sockets.
    _directory: tempfile::TempDir,
}

impl Peer {
    /// Starts the serving side and waits until it is ready.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(
        program: &Program,
        placement: Placement,
        transport: Transport,
    ) -> Result<Self, WorkloadError> {
        Self::start_with(program, placement, transport, &[])
    }

    /// Starts the serving side with further flags for its server.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start_with(
        program: &Program,
        placement: Placement,
        transport: Transport,
        flags: &[&str],
    ) -> Result<Self, WorkloadError> {
        let directory = tempfile::tempdir().map_err(WorkloadError::Directory)?;
        let listen = match transport {
            Transport::Unix => format!("unix:{}/peer.sock", directory.path().display()),
            Transport::Tcp | Transport::Inproc => "127.0.0.1:0".to_owned(),
        };
        let mut peer = Self {
            program: program.clone(),
            placement,
            address: String::new(),
            servers: Vec::new(),
            notes: Vec::new(),
            _directory: directory,
        };
        peer.address = peer.serve(
            program.role,
            &[&["serve", "--listen", &listen], flags].concat(),
        )?;
        if program.is_broker {
            let address = peer.address.clone();
            peer.serve(Role::Responder, &["respond", "--connect", &address])?;
        }
        Ok(peer)
    }

    /// Starts a process that prints its address when it is ready.
    fn serve(&mut self, role: Role, arguments: &[&str]) -> Result<String, ChildError> {
        let mut actor = self.program.start(arguments, self.placement.pin(role))?;
        let line = actor.line()?;
        let Some(address) = line.strip_prefix("READY ").map(str::to_owned) else {
            return Err(actor.invalid_line(line, "expected `READY` and an address".to_owned()));
        };
        self.servers.push((role, actor));
        Ok(address)
    }

    /// Returns the name in results.
    #[must_use]
    pub fn target(&self) -> &'static str {
        self.program.target
    }

    /// Returns the notes of the loads about their method.
    #[must_use]
    pub fn notes(&self) -> Vec<(String, String)> {
        self.notes.clone()
    }

    /// Returns true if the program can run this case.
    #[must_use]
    pub fn can(&self, case: &Case) -> bool {
        !case.paced() && self.mode(case).is_some()
    }

    /// Returns the contract's name for the mode. For a request it is the program's cheapest way at
    /// that depth.
    fn mode(&self, case: &Case) -> Option<&'static str> {
        match (case.mode.name.as_ref(), case.in_flight) {
            ("serial", _) => Some("serial"),
            ("concurrent", _) => Some("concurrent"),
            ("callback", _) => Some("callback"),
            ("request-reply" | "append", Some(1)) => Some("serial"),
            ("append", _) => Some("concurrent"),
            ("request-reply", _) => Some("callback"),
            ("publish", _) if self.program.is_broker && case.clients == 1 => Some("publish"),
            _ => None,
        }
    }

    /// Runs one repeat of a case that it [can](Self::can) run.
    ///
    /// # Errors
    /// When a process fails.
    pub fn measure(&mut self, case: &Case, amount: Amount) -> Result<Measurement, WorkloadError> {
        let mut subscribers = match case.mode == Mode::PUBLISH {
            true => Some(self.subscribe(case)?),
            false => None,
        };
        let mut load = self.load(case, amount)?;
        let servers = self.servers.iter().flat_map(|(role, one)| {
            let processes = [one.pid()].into_iter().chain(children_of(one.pid()));
            processes.map(|pid| (*role, pid))
        });
        let mut opening = Opening::of(servers.collect(), WARM_UP);
        let line = opening.watch(&mut load, amount.patience())?;
        let ended_ns = now_ns();
        let report: LoadReport = load.parse(line)?;
        let mut reported = vec![report.usage()];
        let sink = match &mut subscribers {
            Some(subscribers) => {
                // Subscribers report their counts when their input closes.
                subscribers.end_input();
                let received: SubscribeReport = subscribers.json()?;
                reported.push(received.usage(report.window_ns));
                let expected = report.completed * u64::from(case.subscribers());
                Some(received.sink().with_lost(expected))
            }
            None => None,
        };
        let opened_ns = ended_ns.saturating_sub(report.window_ns);
        let watch = opening.watch_of(opened_ns, report.window_ns);
        let usage = watch.map(|watch| watch.stop_with(reported));
        for (_, server) in &mut self.servers {
            server.check_alive()?;
        }
        self.note(case, &report.notes);
        Ok(Measurement {
            sink,
            usage,
            ..report.measurement()
        })
    }

    fn load(&self, case: &Case, amount: Amount) -> Result<Actor, ChildError> {
        let number = |number: u64| number.to_string();
        let in_flight = number(case.in_flight.unwrap_or(1).into());
        let (size, connections) = (number(case.size), number(case.clients.into()));
        let warm_up = WARM_UP.as_secs_f64().to_string();
        let (flag, how_much) = match amount {
            Amount::Time(window) => ("--seconds", window.as_secs_f64().to_string()),
            Amount::Messages(count) => ("--requests", number(count)),
        };
        let mut arguments = vec![
            "load",
            "--connect",
            &self.address,
            "--mode",
            self.mode(case).unwrap_or("serial"),
            "--in-flight",
            &in_flight,
            "--size",
            &size,
            "--connections",
            &connections,
            "--warmup-seconds",
            &warm_up,
            flag,
            &how_much,
        ];
        if case.mode == Mode::PUBLISH {
            arguments.extend(["--subject", NEWS]);
        }
        self.program
            .start(&arguments, self.placement.pin(Role::Sender))
    }

    /// Starts the subscribers in a process of their own, and waits until the broker knows them.
    fn subscribe(&self, case: &Case) -> Result<Actor, ChildError> {
        let (count, size) = (case.subscribers().to_string(), case.size.to_string());
        let address = &self.address;
        let arguments = [
            "subscribe",
            "--connect",
            address,
            "--subject",
            NEWS,
            "--count",
            &count,
            "--size",
            &size,
        ];
        let pin = self.placement.pin(Role::Responder);
        let mut subscribers = self.program.start(&arguments, pin)?;
        let line = subscribers.line()?;
        match line.starts_with("READY") {
            true => Ok(subscribers),
            false => Err(subscribers.invalid_line(line, "expected `READY`".to_owned())),
        }
    }

    fn note(&mut self, case: &Case, how: &str) {
        let name = format!("{}, {}", self.target(), case.mode.name);
        if !self.notes.iter().any(|(known, _)| *known == name) {
            self.notes.push((name, how.to_owned()));
        }
    }
}

/// Returns the pids of the processes that a process has started.
fn children_of(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let lists: Vec<_> = lists.collect();
    let pids = lists.iter().flat_map(|list| list.split_whitespace());
    pids.filter_map(|pid| pid.parse().ok()).collect()
}
