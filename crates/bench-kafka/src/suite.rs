//! Run of a Kafka matrix: the subject, the floors and Apache Kafka.

use std::time::Duration;

use super::brokers::{Brokers, PROGRAM, RunningBroker};
use super::compare::compare;
use super::floors::Floors;
use super::matrix::{Doing, Plan, Subject, Target, Topic};
use super::session::Session;
use super::topic::{self, TopicSettings};
use super::{ConsumeCounts, LoadSpec, Matrix, ProduceCounts, Work};
use bench::measurement::{Measurement, Storage, TopicTraffic, Verification};
use bench::model::{Case, Environment, Results, Setup};
use bench::process::{Role, Usage, Watch};
use bench::suite::Suite;
use bench::workload::child::{Actor, Pin};
use bench::workload::disk_counters::DiskCounters;
use bench::workload::driver::{Runner, Workload};
use bench::workload::error::WorkloadError;
use bench::workload::role::{self, Failure, Ready};
use bench::workload::surroundings::{PATIENCE, Surroundings};
use meter::clock::now_ns;

/// Runs every case of the subject and, if peers are available, the same on floors and Apache Kafka.
///
/// # Errors
/// When a process fails, or a broker rejects a request that a run depends on. A message that fails
/// is counted, not an error.
pub fn run(
    surroundings: &Surroundings,
    matrix: &Matrix,
    runner: Runner,
) -> Result<Results, WorkloadError> {
    let floors = Floors::start(surroundings, matrix)?;
    let kafka = version_of_kafka(surroundings);
    let mut targets = matrix.subjects();
    if kafka.is_some() {
        targets.extend(matrix.kafka_targets());
    }
    let plans = matrix.plans(&targets);
    let entries = with_floors(plans, floors.as_ref(), targets.first().copied());
    if entries.is_empty() {
        let problem = "the options leave no case".to_owned();
        return Err(WorkloadError::Nothing(
            problem,
            "give --acks a value other than 0",
        ));
    }
    let topics = Topics {
        kafka,
        entries,
        floors,
        bench: Bench {
            surroundings,
            matrix,
            brokers: Brokers::new(surroundings, &matrix.subject, &matrix.directory),
            runs: 0,
        },
    };
    runner.run(topics)
}

/// A suite of messages to topics, on brokers and on the floors.
struct Topics<'a> {
    /// Version of Apache Kafka, if it takes part.
    kafka: Option<String>,
    /// Each case, with its plan unless it is one of a floor.
    entries: Vec<(Case, Option<Plan>)>,
    floors: Option<Floors>,
    bench: Bench<'a>,
}

impl Workload for Topics<'_> {
    const NAME: &'static str = "kafka";

    fn cases(&self) -> Vec<Case> {
        self.entries.iter().map(|(case, _)| case.clone()).collect()
    }

    fn repeats(&self) -> u32 {
        self.bench.matrix.repeats
    }

    fn setup(&self) -> Setup {
        setup(self.bench.matrix)
    }

    fn environment(&self, environment: Environment) -> Environment {
        match &self.kafka {
            Some(version) => environment.version(PROGRAM, version.clone()),
            None => environment,
        }
    }

    fn has_warmup(&self, position: usize) -> bool {
        let (_, plan) = &self.entries[position];
        plan.as_ref().is_some_and(|plan| plan.target.is_kafka())
    }

    fn measure(&mut self, position: usize, case: &Case) -> Result<Measurement, WorkloadError> {
        let (_, plan) = &self.entries[position];
        match (plan, &mut self.floors) {
            (Some(plan), _) => self.bench.measure(plan),
            (None, Some(floors)) => floors.measure(case, self.bench.matrix),
            (None, None) => Err(WorkloadError::Nothing(
                format!("{} is not a floor", case.target),
                "add --peers bench/peers/bin",
            )),
        }
    }

    fn finish(&mut self, _: &mut Suite) -> Result<(), WorkloadError> {
        self.bench.end()
    }

    fn notes(&self) -> Vec<(String, String)> {
        let mut notes: Vec<_> = self.floors.iter().flat_map(Floors::notes).collect();
        if self.kafka.is_some() {
            let warmup =
                "each case runs until it gets no faster before its first repeat, without a record";
            notes.push(("Apache Kafka".to_owned(), warmup.to_owned()));
        }
        notes
    }

    fn compare(&self, results: &mut Results) {
        results.comparisons = compare(&results.cases);
    }
}

/// Returns each kind of case, followed by its floors, which appear once.
fn with_floors(
    plans: Vec<Plan>,
    floors: Option<&Floors>,
    subject: Option<Target>,
) -> Vec<(Case, Option<Plan>)> {
    let mut entries: Vec<(Case, Option<Plan>)> = Vec::new();
    for plan in plans {
        let of_floors = floors.filter(|_| Some(plan.target) == subject);
        let cases = of_floors.map_or_else(Vec::new, |floors| floors.cases(&plan));
        entries.push((plan.case.clone(), Some(plan)));
        for case in cases {
            if entries.iter().all(|(known, _)| *known != case) {
                entries.push((case, None));
            }
        }
    }
    entries
}

/// Returns the version of Apache Kafka; `None` if it is not installed or not wanted.
fn version_of_kafka(surroundings: &Surroundings) -> Option<String> {
    let program = surroundings.peers.as_ref()?.join(PROGRAM);
    let output = std::process::Command::new(program)
        .arg("--version")
        .output()
        .ok()?;
    let output = String::from_utf8(output.stdout).ok()?;
    let version = output.lines().next()?.trim().to_owned();
    (!version.is_empty()).then_some(version)
}

struct Bench<'a> {
    surroundings: &'a Surroundings,
    matrix: &'a Matrix,
    brokers: Brokers<'a>,
    runs: u32,
}

/// Results of a load's window.
struct Window {
    measured: Measurement,
    storage: Option<Storage>,
    usage: Usage,
    setup_ns: u64,
}

impl Bench<'_> {
    /// Runs one repeat, with a topic of its own unless a topic is given.
    fn measure(&mut self, plan: &Plan) -> Result<Measurement, WorkloadError> {
        self.runs += 1;
        let (address, running) = self.brokers.of(plan.target)?;
        let own = Topic {
            name: format!("telpher-bench-{}-{}", std::process::id(), self.runs),
            create: true,
            delete: true,
        };
        let (topic, is_own) = match &self.matrix.topic {
            Some(topic) => (topic, false),
            None => (&own, true),
        };
        if topic.create {
            make(&address, topic, self.matrix, plan).map_err(node_error)?;
        }
        let spec = |work: Work| LoadSpec {
            address: address.clone(),
            topic: topic.name.clone(),
            tag: tag(self.runs),
            work,
            warmup_ns: self.matrix.warmup.as_nanos() as u64,
            window_ns: self.matrix.window.as_nanos() as u64,
            verify: self.matrix.verify,
        };
        if plan.doing == Doing::Consume && is_empty(&address, &topic.name).map_err(node_error)? {
            let filling = LoadSpec {
                warmup_ns: 0,
                window_ns: PATIENCE.as_nanos() as u64,
                verify: false,
                ..spec(self.matrix.filling())
            };
            let mut load = start(self.surroundings, filling)?;
            let Ready { .. } = load.json_while(PATIENCE, || Ok(()))?;
            load.write_line("go")?;
            let ProduceCounts { .. } = load.json_while(2 * PATIENCE, || Ok(()))?;
        }
        let load = start(self.surroundings, spec(self.matrix.work(plan)))?;
        let leader = leader(&address, &topic.name).map_err(node_error)?;
        let measured = drive(load, self.matrix, plan, running, &leader)?;
        if is_own {
            remove(&address, &topic.name).map_err(node_error)?;
        }
        Ok(measured)
    }

    /// Deletes the given topic if requested.
    fn end(&mut self) -> Result<(), WorkloadError> {
        match (&self.matrix.topic, &self.matrix.subject) {
            (Some(topic), Subject::Broker(address)) if topic.delete => {
                remove(address, &topic.name).map_err(node_error)
            }
            _ => Ok(()),
        }
    }
}

fn start(surroundings: &Surroundings, spec: LoadSpec) -> Result<Actor, WorkloadError> {
    Ok(role::start(&surroundings.executable, &spec, Pin::Nowhere)?)
}

/// Runs a load: measures while its window is open, then reads back the acknowledged messages.
fn drive(
    mut load: Actor,
    matrix: &Matrix,
    plan: &Plan,
    mut running: Option<&mut RunningBroker>,
    leader: &str,
) -> Result<Measurement, WorkloadError> {
    let mut roles = vec![(Role::Sender, load.pid())];
    let pids = running
        .as_deref()
        .map_or_else(Vec::new, |broker| broker.pids(leader));
    roles.extend(pids.into_iter().map(|pid| (Role::Node, pid)));
    let mut window = watch(&mut load, matrix, plan, running.as_deref_mut(), &roles)?;
    if matrix.verify && plan.doing.produces() {
        load.write_line("verify")?;
        let verified: Verification = load.json_while(patience(matrix) + 5 * PATIENCE, || {
            running
                .as_deref_mut()
                .map_or(Ok(()), RunningBroker::check_alive)
        })?;
        if let Some(streamed) = &mut window.measured.streamed {
            streamed.verified = Some(verified);
        }
    }
    Ok(Measurement {
        setup_ns: Some(window.setup_ns),
        usage: Some(window.usage),
        storage: window.storage,
        ..window.measured
    })
}

fn patience(matrix: &Matrix) -> Duration {
    matrix.warmup.max(matrix.window) + 2 * PATIENCE
}

fn watch(
    load: &mut Actor,
    matrix: &Matrix,
    plan: &Plan,
    mut running: Option<&mut RunningBroker>,
    roles: &[(Role, u32)],
) -> Result<Window, WorkloadError> {
    let patience = patience(matrix);
    let mut alive = || {
        running
            .as_deref_mut()
            .map_or(Ok(()), RunningBroker::check_alive)
    };
    let Ready { setup_ns, .. } = load.json_while(patience, &mut alive)?;
    let before = running.as_deref().and_then(RunningBroker::counted);
    let watch = Watch::start(roles)?;
    load.write_line("go")?;
    let mut alive = || {
        running
            .as_deref_mut()
            .map_or(Ok(()), RunningBroker::check_alive)
    };
    let measured = match matrix.work(plan) {
        Work::Consume => consumed(load.json_while(patience, &mut alive)?),
        Work::Produce(_) | Work::EndToEnd { .. } => {
            produced(load.json_while(patience, &mut alive)?, plan)
        }
    };
    let usage = watch.stop();
    let after = running.as_deref().and_then(RunningBroker::counted);
    let bytes = measured.completed * plan.case.size;
    let storage = before.zip(after).filter(|_| plan.doing.produces());
    Ok(Window {
        storage: storage.and_then(|(before, after)| DiskCounters::since(&after, &before, bytes)),
        measured,
        usage,
        setup_ns,
    })
}

fn produced(produced: ProduceCounts, plan: &Plan) -> Measurement {
    let measured = produced.tally.over(produced.window_ns);
    let streamed = TopicTraffic {
        requests: Some(produced.requests),
        bytes: measured.completed * plan.case.size,
        verified: None,
    };
    Measurement {
        streamed: Some(streamed),
        ..measured
    }
}

fn consumed(consumed: ConsumeCounts) -> Measurement {
    let damaged = ("damaged".to_owned(), consumed.damaged);
    Measurement {
        sent: consumed.messages,
        completed: consumed.messages,
        window_ns: consumed.window_ns,
        completions: consumed.arrivals,
        errors: [damaged]
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect(),
        streamed: Some(TopicTraffic {
            requests: None,
            bytes: consumed.bytes,
            verified: None,
        }),
        ..Measurement::default()
    }
}

fn make(address: &str, topic: &Topic, matrix: &Matrix, plan: &Plan) -> Result<(), Failure> {
    let making = TopicSettings {
        partitions: matrix.partitions,
        replicas: matrix.replicas_on(plan.target),
        configs: &plan.target.configs(),
    };
    topic::create(&mut Session::open(address)?, &topic.name, &making)
}

fn remove(address: &str, topic: &str) -> Result<(), Failure> {
    topic::delete(&mut Session::open(address)?, topic)
}

/// Returns the address of the broker that leads the first partition.
fn leader(address: &str, topic: &str) -> Result<String, Failure> {
    let mut session = Session::open(address)?;
    topic::layout(&mut session, topic)?;
    topic::leader(&mut session, topic, 0)
}

fn is_empty(address: &str, topic: &str) -> Result<bool, Failure> {
    let layout = topic::layout(&mut Session::open(address)?, topic)?;
    let [first, next] = [topic::OffsetKind::First, topic::OffsetKind::Next]
        .map(|end| topic::offsets(&layout, topic, end));
    Ok(first? == next?)
}

/// Returns a tag that identifies the messages of a run, also among those of other suites on the
/// same topic.
fn tag(run: u32) -> u32 {
    (now_ns() as u32) ^ std::process::id().rotate_left(16) ^ run
}

fn node_error(failure: Failure) -> WorkloadError {
    WorkloadError::Node(failure.to_string())
}

fn setup(matrix: &Matrix) -> Setup {
    let server = match &matrix.subject {
        Subject::Node | Subject::Cluster(_) => None,
        Subject::Broker(address) => Some(address.clone()),
    };
    let rate = match matrix.rate {
        0 => "each sends the next message when it has the ack of the last".to_owned(),
        rate => format!("{rate} messages a second in total, on a schedule"),
    };
    let producers: Vec<_> = matrix.producers.iter().map(u32::to_string).collect();
    let mut notes = vec![
        (
            "Producers",
            format!("{} with payloads of {} bytes; {rate}", producers.join(" and "), matrix.size),
        ),
        (
            "Batches",
            format!(
                "linger {:?}, {} bytes, {} requests in flight on a connection; bulk: linger 5 ms, 64 KiB",
                matrix.linger, matrix.batch_size, matrix.requests_max
            ),
        ),
        (
            "Window",
            format!(
                "after a warm-up of {:?}; it opens with the first message and closes with the last ack",
                matrix.warmup
            ),
        ),
        (
            "Client",
            "our own, on the codec of this repository: one thread, one process, every latency recorded, no \
             retries; an ack without an offset is a failure"
                .to_owned(),
        ),
        (
            "Brokers",
            "each started once for all runs, a topic for each run; the broker's CPU time is that of its whole process"
                .to_owned(),
        ),
        (
            "Consumer",
            "batches are split and their checksums verified; records are counted, not decoded".to_owned(),
        ),
    ];
    if let Subject::Cluster(count) = matrix.subject {
        notes.push((
            "Cluster",
            format!(
                "{count} nodes share the cores and the disk of this machine, so a node has less of both than \
                 one alone; node-1 leads. Apache Kafka has as many brokers, with `min.insync.replicas` \
                 {}; only with `flush.messages=1` are its acks from disk.",
                count / 2 + 1
            ),
        ));
    }
    Setup {
        server,
        destination: Some(matrix.directory.display().to_string()),
        duration: Some(format!("{:?}", matrix.window)),
        repeats: Some(matrix.repeats),
        notes: notes
            .into_iter()
            .map(|(name, words)| (name.to_owned(), words))
            .collect(),
    }
}
