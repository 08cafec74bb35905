//! Run of a conversation matrix: a node over each client API, the floors and the peers.

use std::thread;
use std::time::Duration;

use super::agent::Agent;
use super::matrix::Door;
use super::memory::MemoryRecorder;
use super::rivals::Rivals;
use super::server::{Driver, Kind, Pgbench, Server, Window, pgbench};
use super::tree::ProcessTree;
use super::{AppendCounts, LoadClient, LoadSpec, Matrix, STEADY};
use bench::measurement::Measurement;
use bench::model::{Case, CaseComparison, CaseResult, Environment, Metric, Results, Setup};
use bench::process::{Role, Usage, Watch};
use bench::workload::child::{ChildError, Pin};
use bench::workload::disk_counters::DiskCounters;
use bench::workload::driver::{Runner, Workload};
use bench::workload::error::WorkloadError;
use bench::workload::node::Node;
use bench::workload::role::{self, Ready};
use bench::workload::spare_segments;
use bench::workload::surroundings::{OURS, PATIENCE, Surroundings, temporary_directory};
use meter::clock::now_ns;

/// Runs every client API and, if peers are available, the same on floors and peers.
///
/// # Errors
/// When a process fails. A message that fails is counted, not an error.
pub fn run(
    surroundings: &Surroundings,
    matrix: &Matrix,
    runner: Runner,
) -> Result<Results, WorkloadError> {
    let messages = Messages {
        surroundings,
        matrix,
        rivals: Rivals::start(surroundings, matrix)?,
        agent: matrix.with_agent.then(Agent::start).transpose()?,
    };
    runner.run(messages)
}

/// A suite of messages, on nodes and on their rivals.
struct Messages<'a> {
    surroundings: &'a Surroundings,
    matrix: &'a Matrix,
    rivals: Rivals,
    agent: Option<Agent>,
}

impl Workload for Messages<'_> {
    const NAME: &'static str = "store";

    fn cases(&self) -> Vec<Case> {
        let ours = self.matrix.ours().into_iter();
        ours.chain(self.rivals.cases(self.matrix)).collect()
    }

    fn repeats(&self) -> u32 {
        self.matrix.repeats
    }

    fn setup(&self) -> Setup {
        setup(self.matrix)
    }

    fn environment(&self, environment: Environment) -> Environment {
        let versions = self.rivals.versions().into_iter();
        versions.fold(environment, |environment, (of, version)| {
            environment.version(of, version)
        })
    }

    fn measure(&mut self, _: usize, case: &Case) -> Result<Measurement, WorkloadError> {
        let (surroundings, matrix) = (self.surroundings, self.matrix);
        match (Door::of(case), Kind::of(case)) {
            (Some(door), _) => measure_node(surroundings, door, matrix, self.agent.as_ref()),
            (None, Some(kind)) => measure_peer(surroundings, kind, matrix),
            (None, None) => self.rivals.measure(case, matrix),
        }
    }

    fn notes(&self) -> Vec<(String, String)> {
        let mut notes: Vec<_> = self.rivals.notes().into_iter().collect();
        let agent = self.agent.iter();
        notes.extend(agent.map(|agent| ("Agent".to_owned(), agent_note(agent))));
        notes
    }

    fn compare(&self, results: &mut Results) {
        compare(results);
    }
}

/// Target without durability; it is only used in the sum of the floors.
const PLAIN_ECHO: &str = "floor";

/// Compares each client API with every rival of the same shape. The generic comparison misses these
/// pairs, since only our cases have a client API parameter.
fn compare(results: &mut Results) {
    let is_ours = |one: &&CaseResult| one.case.target == OURS;
    let mut found = Vec::new();
    for subject in results.cases.iter().filter(is_ours) {
        let rivals = results.cases.iter().filter(|one| {
            ![OURS, PLAIN_ECHO].contains(&one.case.target.as_str())
                && (one.case.clients, one.case.in_flight)
                    == (subject.case.clients, subject.case.in_flight)
        });
        for rival in rivals {
            let metrics = contest(&subject.case).into_iter();
            found.extend(metrics.filter_map(|metric| CaseComparison::of(metric, subject, rival)));
        }
    }
    results.comparisons.extend(found);
}

/// Returns the metrics to compare, including memory, which matters for a store.
fn contest(case: &Case) -> Vec<Metric> {
    let mut metrics = case.contest();
    metrics.push(Metric::NodeRssPeak);
    metrics
}

/// Server that a run loads.
struct Target<'a> {
    client: LoadClient,
    address: String,
    pid: u32,
    check_alive: &'a mut dyn FnMut() -> Result<(), ChildError>,
}

/// Runs one repeat on our node.
fn measure_node(
    surroundings: &Surroundings,
    door: Door,
    matrix: &Matrix,
    agent: Option<&Agent>,
) -> Result<Measurement, WorkloadError> {
    let scratch = temporary_directory(&matrix.directory)?;
    let node = Node::start_in(&surroundings.executable, scratch.path(), &[])?;
    if let Some(agent) = agent {
        agent.register(node.http_address(), matrix.vus)?;
    }
    spare_segments::wait(&scratch.path().join("journal"))
        .map_err(|failure| WorkloadError::Node(failure.to_string()))?;
    let (pid, address) = (node.pid(), door.address(&node).to_owned());
    let node = std::cell::RefCell::new(node);
    let mut before = None;
    let target = Target {
        client: door.client(),
        address,
        pid,
        check_alive: &mut || node.borrow_mut().check_alive(),
    };
    let measured = drive(surroundings, target, matrix, || {
        before = Some(DiskCounters::of(&node.borrow(), scratch.path()));
    })?;
    let storage = before.and_then(|before| {
        let now = DiskCounters::of(&node.borrow(), scratch.path());
        now.since(&before, measured.completed * matrix.size)
    });
    Ok(Measurement {
        storage,
        ..measured
    })
}

/// Runs one repeat on a third-party server.
fn measure_peer(
    surroundings: &Surroundings,
    kind: Kind,
    matrix: &Matrix,
) -> Result<Measurement, WorkloadError> {
    let Some(programs) = &surroundings.peers else {
        let problem = format!("{} is not a peer", kind.target());
        return Err(WorkloadError::Nothing(
            problem,
            "add --peers bench/peers/bin",
        ));
    };
    let mut server = Server::start(kind, programs, &matrix.directory)?;
    match kind.driver() {
        Driver::Load(client) => {
            let target = Target {
                client,
                address: server.address.clone(),
                pid: server.pid(),
                check_alive: &mut || server.check_alive(),
            };
            drive(surroundings, target, matrix, || {})
        }
        Driver::Pgbench => measure_pgbench(&mut server, matrix),
    }
}

/// Runs our own load against a server, and measures while its window is open.
fn drive(
    surroundings: &Surroundings,
    target: Target<'_>,
    matrix: &Matrix,
    on_open: impl FnOnce(),
) -> Result<Measurement, WorkloadError> {
    let spec = LoadSpec {
        client: target.client,
        address: target.address,
        vus: matrix.vus,
        pipeline: matrix.pipeline,
        messages: matrix.messages,
        size: matrix.size as usize,
        ramp_ns: matrix.ramp.as_nanos() as u64,
        window_ns: matrix.window.as_nanos() as u64,
    };
    let mut load = role::start(&surroundings.executable, &spec, Pin::Nowhere)?;
    let Ready { setup_ns, .. } = load.json()?;
    let mut course = MemoryRecorder::of(target.pid);
    let mut look = || {
        course.sample();
        (target.check_alive)()
    };
    load.write_line("go")?;
    let word: String = load.json_while(matrix.ramp + PATIENCE, &mut look)?;
    if word != STEADY {
        return Err(load
            .invalid_line(word, format!("expected `{STEADY}`"))
            .into());
    }
    on_open();
    let tree = ProcessTree::watch(target.pid);
    let watch = Watch::start(&[(Role::Sender, load.pid())])?;
    let AppendCounts { tally, window_ns } = load.json_while(matrix.window + PATIENCE, &mut look)?;
    let usage = watch.stop_with(vec![tree.stop()]);
    Ok(Measurement {
        setup_ns: Some(setup_ns),
        usage: Some(usage),
        memory: course.points(),
        ..tally.over(window_ns)
    })
}

/// Measures a run of pgbench, whose log has the transactions during our window.
fn measure_pgbench(server: &mut Server, matrix: &Matrix) -> Result<Measurement, WorkloadError> {
    let mut load = pgbench(server, matrix)?;
    wait(Pgbench::warm_up(matrix), || load.check_alive())?;
    let mut window = Window::open();
    let tree = ProcessTree::watch(server.pid());
    let watch = Watch::start(&[(Role::Sender, load.pid())])?;
    let begin_ns = now_ns();
    wait(matrix.window, || load.check_alive())?;
    window.close();
    let window_ns = now_ns() - begin_ns;
    let usage: Usage = watch.stop_with(vec![tree.stop()]);
    server.check_alive()?;
    Ok(Measurement {
        usage: Some(usage),
        ..load.finish(&window)?.over(window_ns)
    })
}

/// Waits for `time`, and fails as soon as `check` fails.
fn wait(
    time: Duration,
    mut check: impl FnMut() -> Result<(), ChildError>,
) -> Result<(), WorkloadError> {
    let end_ns = now_ns() + time.as_nanos() as u64;
    loop {
        check()?;
        let left = Duration::from_nanos(end_ns.saturating_sub(now_ns()));
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(Duration::from_millis(250)));
    }
}

fn agent_note(agent: &Agent) -> String {
    format!(
        "every conversation has a webhook agent that answers at once, in the suite's process; {} of its answers \
         were appended in addition to the counted messages",
        agent.answered()
    )
}

fn setup(matrix: &Matrix) -> Setup {
    let conversations = match matrix.messages {
        None => "a conversation of its own".to_owned(),
        Some(messages) => format!("one conversation of {messages} messages after the other"),
    };
    let shape = format!(
        "{} × {}: users, each with {conversations}, and messages in flight per user; a text of {} bytes",
        matrix.vus, matrix.pipeline, matrix.size
    );
    let notes = [
        ("Load", shape),
        (
            "Window",
            format!(
                "the users join over {:?}; messages that are sent and acknowledged in the {:?} after that are counted",
                matrix.ramp, matrix.window
            ),
        ),
        (
            "Node",
            "`telpher serve` with its defaults, a node for each run with a directory of its own".to_owned(),
        ),
        (
            "Generator",
            "`telpher bench-role`, a process with one thread, on the same machine; HTTP has a connection for each \
             message in flight, the others one for each user"
                .to_owned(),
        ),
        (
            "Node CPU",
            "of the server's whole process tree in the window; memory that its processes share is counted once"
                .to_owned(),
        ),
    ];
    Setup {
        destination: Some(matrix.directory.display().to_string()),
        duration: Some(format!("{:?}", matrix.window)),
        repeats: Some(matrix.repeats),
        notes: notes.map(|(name, words)| (name.to_owned(), words)).to_vec(),
        ..Setup::default()
    }
}
