//! Run of a journal matrix: each of our cases, followed by its floors.

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::matrix::{Filing, Via};
use super::{AppendCounts, DoorSpec, Matrix, WriterCounts, WritersSpec};
use bench::measurement::Measurement;
use bench::model::{Case, Results, Setup};
use bench::process::{Role, Watch};
use bench::workload::child::Pin;
use bench::workload::disk_counters::DiskCounters;
use bench::workload::driver::{Runner, Workload, with_rivals};
use bench::workload::error::WorkloadError;
use bench::workload::node::Node;
use bench::workload::peer::{Amount, Peer, Program};
use bench::workload::placement::Placement;
use bench::workload::role::{self, Ready};
use bench::workload::surroundings::{OURS, PATIENCE, Surroundings, temporary_directory};
use bench::workload::transport::Transport;
use bench::workload::{disk_floor, spare_segments};

/// Runs every case of the matrix, and the same cases on the floors if they are available.
///
/// # Errors
/// When a process fails. An append that fails is counted, not an error.
pub fn run(
    surroundings: &Surroundings,
    matrix: &Matrix,
    runner: Runner,
) -> Result<Results, WorkloadError> {
    let ours = matrix.cases();
    if ours.is_empty() {
        let problem = "every case has fewer writers than threads".to_owned();
        return Err(WorkloadError::Nothing(problem, "add --threads 1"));
    }
    let floors = Floors::start(surroundings, matrix)?;
    let cases = with_rivals(ours, |case| floors.targets(Via::of(case)));
    let appends = Appends {
        surroundings,
        matrix,
        floors,
        cases,
    };
    runner.run(appends)
}

/// A suite of appends, on the journal and on the floors.
struct Appends<'a> {
    surroundings: &'a Surroundings,
    matrix: &'a Matrix,
    floors: Floors,
    cases: Vec<Case>,
}

impl Workload for Appends<'_> {
    const NAME: &'static str = "journal";

    fn cases(&self) -> Vec<Case> {
        self.cases.clone()
    }

    fn repeats(&self) -> u32 {
        self.matrix.repeats
    }

    fn setup(&self) -> Setup {
        setup(self.matrix)
    }

    fn measure(&mut self, _: usize, case: &Case) -> Result<Measurement, WorkloadError> {
        match (case.target == OURS, Via::of(case)) {
            (false, _) => self.floors.measure(case, self.matrix),
            (true, Via::Process) => measure_process(self.surroundings, case, self.matrix),
            (true, Via::Door) => measure_door(self.surroundings, case, self.matrix),
        }
    }

    fn notes(&self) -> Vec<(String, String)> {
        self.floors.notes()
    }
}

/// The floors, if they are wanted.
struct Floors {
    disk: Option<Program>,
    echoes: Vec<Peer>,
    /// Directory of the echoes' files.
    _scratch: Option<TempDir>,
}

impl Floors {
    fn start(surroundings: &Surroundings, matrix: &Matrix) -> Result<Self, WorkloadError> {
        let none = Self {
            disk: None,
            echoes: Vec::new(),
            _scratch: None,
        };
        let Some(directory) = &surroundings.peers else {
            return Ok(none);
        };
        let scratch = temporary_directory(&matrix.directory)?;
        let mut echoes = Vec::new();
        if matrix.vias.contains(&Via::Door) {
            let dir = scratch.path().display().to_string();
            for (program, threads) in [(Program::DURABLE, "2"), (Program::DURABLE_ONE, "1")] {
                let program = program.in_directory(directory)?;
                let flags = ["--dir", &dir, "--threads", threads];
                let placement = Placement::Unpinned;
                echoes.push(Peer::start_with(
                    &program,
                    placement,
                    Transport::Tcp,
                    &flags,
                )?);
            }
        }
        Ok(Self {
            disk: Some(Program::DISK.in_directory(directory)?),
            echoes,
            _scratch: Some(scratch),
        })
    }

    fn targets(&self, via: Via) -> Vec<&'static str> {
        match via {
            Via::Process => self.disk.iter().map(|disk| disk.target).collect(),
            Via::Door => self.echoes.iter().map(Peer::target).collect(),
        }
    }

    fn measure(&mut self, case: &Case, matrix: &Matrix) -> Result<Measurement, WorkloadError> {
        if let Some(echo) = self
            .echoes
            .iter_mut()
            .find(|echo| echo.target() == case.target)
        {
            return echo.measure(case, Amount::Time(matrix.window));
        }
        let scratch = temporary_directory(&matrix.directory)?;
        match &self.disk {
            Some(disk) => disk_floor::measure(disk, case, scratch.path(), matrix.window),
            None => Err(WorkloadError::Nothing(
                format!("{} is not a floor", case.target),
                "add --peers bench/peers/bin",
            )),
        }
    }

    fn notes(&self) -> Vec<(String, String)> {
        self.echoes.iter().flat_map(Peer::notes).collect()
    }
}

/// Runs one of our cases within a process.
fn measure_process(
    surroundings: &Surroundings,
    case: &Case,
    matrix: &Matrix,
) -> Result<Measurement, WorkloadError> {
    let scratch = temporary_directory(&matrix.directory)?;
    let spec = WritersSpec {
        directory: scratch.path().display().to_string(),
        writers: case.clients,
        threads: case.number("threads") as u32,
        size: case.size as usize,
        streams: case.number("streams"),
        segment_size: Filing::of(case).segment_size(),
        window_ns: matrix.window.as_nanos() as u64,
    };
    let mut writers = role::start(&surroundings.executable, &spec, Pin::Nowhere)?;
    let Ready { setup_ns, .. } = writers.json()?;
    // Writers and journal are one process: its usage is the journal's cost.
    let watch = Watch::start(&[(Role::Node, writers.pid())])?;
    writers.write_line("go")?;
    let line = writers.line_within(matrix.window + PATIENCE)?;
    let usage = watch.stop();
    let WriterCounts {
        tally,
        window_ns,
        storage,
    } = writers.parse(line)?;
    Ok(Measurement {
        setup_ns: Some(setup_ns),
        usage: Some(usage),
        storage: Some(storage),
        ..tally.over(window_ns)
    })
}

/// Runs one of our cases through a node.
fn measure_door(
    surroundings: &Surroundings,
    case: &Case,
    matrix: &Matrix,
) -> Result<Measurement, WorkloadError> {
    let scratch = temporary_directory(&matrix.directory)?;
    let segment_size = format!("{}B", Filing::of(case).segment_size());
    let flags = ["--journal-segment-size", &segment_size];
    let mut node = Node::start_in(&surroundings.executable, scratch.path(), &flags)?;
    wait_until_prepared(scratch.path())?;
    let spec = DoorSpec {
        node: node.native.clone(),
        connections: case.clients,
        in_flight: case.in_flight.unwrap_or(1),
        size: case.size as usize,
        streams: case.number("streams"),
        window_ns: matrix.window.as_nanos() as u64,
    };
    let mut load = role::start(&surroundings.executable, &spec, Pin::Nowhere)?;
    let Ready { setup_ns, .. } = load.json()?;
    let before = DiskCounters::of(&node, scratch.path());
    let watch = Watch::start(&[(Role::Sender, load.pid()), (Role::Node, node.pid())])?;
    load.write_line("go")?;
    let AppendCounts { tally, window_ns } =
        load.json_while(matrix.window + PATIENCE, || node.check_alive())?;
    let usage = watch.stop();
    let storage =
        DiskCounters::of(&node, scratch.path()).since(&before, tally.completed_count() * case.size);
    Ok(Measurement {
        setup_ns: Some(setup_ns),
        usage: Some(usage),
        storage,
        ..tally.over(window_ns)
    })
}

fn wait_until_prepared(data: &Path) -> Result<(), WorkloadError> {
    let prepared = spare_segments::wait(&data.join("journal"));
    prepared.map_err(|failure| WorkloadError::Node(failure.to_string()))
}

fn setup(matrix: &Matrix) -> Setup {
    let note = |name: &str, words: &str| (name.to_owned(), words.to_owned());
    Setup {
        server: None,
        destination: Some(matrix.directory.display().to_string()),
        duration: Some(describe_duration(matrix.window)),
        repeats: Some(matrix.repeats),
        notes: vec![
            note(
                "Process",
                "`telpher bench-role`, a process for each run, with a journal of its own; each writer has one \
                 append in flight, and the writers share the threads",
            ),
            note(
                "Door",
                "`telpher serve`, a node for each run with a directory of its own, and `telpher bench-role`, one \
                 thread for all connections",
            ),
            note(
                "Filing",
                "on: segments of 16 MiB, filed and merged during the window; off: segments of 256 MiB, none full",
            ),
            note(
                "Written",
                "bytes written to the device during the window, by all processes, over the bytes of all payloads; this \
                 includes filing, merging and the last page of every sync",
            ),
        ],
    }
}

fn describe_duration(window: Duration) -> String {
    format!("{window:?}")
}
