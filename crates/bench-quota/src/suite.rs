//! Run of a quota matrix: the subject, the floor and third-party servers.

use super::matrix::{AGENTS, PlannedCase};
use super::server::{NodeSetup, Server};
use super::target::Target;
use super::{LoadCounts, LoadSpec, Matrix, Pace, STEADY, Subject, Work};
use bench::measurement::{Measurement, exactness, excess};
use bench::model::{Case, CaseComparison, CaseResult, Metric, Mode, Results, Setup};
use bench::process::{Role, Usage, Watch};
use bench::report::thresholds;
use bench::workload::child::Pin;
use bench::workload::driver::{Runner, Workload};
use bench::workload::error::WorkloadError;
use bench::workload::role::{self, Ready};
use bench::workload::surroundings::{PATIENCE, Surroundings};

/// Runs every case of the subject and, if peers are available, the same on them.
///
/// # Errors
/// When a process fails. An invalid answer is counted, not an error.
pub fn run(
    surroundings: &Surroundings,
    matrix: &Matrix,
    runner: Runner,
) -> Result<Results, WorkloadError> {
    let targets = Targets::of(surroundings, matrix);
    let here = targets.here.iter();
    let askings: Vec<PlannedCase> = here.flat_map(|target| matrix.askings(*target)).collect();
    if askings.is_empty() {
        let problem = "the options leave no case".to_owned();
        return Err(WorkloadError::Nothing(
            problem,
            "give --agents at least one number",
        ));
    }
    let takes = Takes {
        surroundings,
        matrix,
        targets,
        askings,
        runs: 0,
    };
    runner.run(takes)
}

/// A suite of takes, on the subject and on its peers.
struct Takes<'a> {
    surroundings: &'a Surroundings,
    matrix: &'a Matrix,
    targets: Targets,
    askings: Vec<PlannedCase>,
    /// Runs so far, two for each repeat: the agents of the second warm it up.
    runs: u32,
}

impl Workload for Takes<'_> {
    const NAME: &'static str = "quota";

    fn cases(&self) -> Vec<Case> {
        self.askings.iter().map(|it| it.case.clone()).collect()
    }

    fn repeats(&self) -> u32 {
        self.matrix.repeats
    }

    fn setup(&self) -> Setup {
        setup(self.matrix, &self.targets)
    }

    fn measure(&mut self, position: usize, _: &Case) -> Result<Measurement, WorkloadError> {
        self.runs += 2;
        let asking = &self.askings[position];
        measure(self.surroundings, self.matrix, asking, self.runs)
    }

    fn compare(&self, results: &mut Results) {
        results.comparisons = compare(&results.cases);
    }
}

/// Targets that take part, the subject first, and targets that are missing.
struct Targets {
    here: Vec<Target>,
    left_out: Vec<Target>,
}

impl Targets {
    fn of(surroundings: &Surroundings, matrix: &Matrix) -> Self {
        let subject = match matrix.subject {
            Subject::Node => Target::Node,
            Subject::Url(_) => Target::Url,
        };
        let (mut here, mut left_out) = (vec![subject], Vec::new());
        if let Work::Shared { .. } = matrix.work {
            here.push(Target::Script);
            return Self { here, left_out };
        }
        if let Some(directory) = &surroundings.peers {
            for peer in Target::PEERS {
                match peer.is_in(directory) {
                    true => here.push(peer),
                    false => left_out.push(peer),
                }
            }
        }
        Self { here, left_out }
    }
}

/// Runs one repeat with a server of its own. Its agents are those of `run`; the agents of `run + 1`
/// warm it up.
fn measure(
    surroundings: &Surroundings,
    matrix: &Matrix,
    asking: &PlannedCase,
    run: u32,
) -> Result<Measurement, WorkloadError> {
    let plan = &asking.plan;
    let mut server = Server::start(asking.target, surroundings, matrix, NodeSetup::of(plan))?;
    let addresses = server.addresses(plan.client);
    let spec = |pace: Pace, run: u32| LoadSpec {
        addresses: addresses.clone(),
        client: plan.client,
        pace,
        agents: asking.names(run),
    };
    if let Some(pace) = asking.warm_up(matrix.warmup) {
        drive(surroundings, &mut server, spec(pace, run + 1))?;
    }
    let measured = drive(surroundings, &mut server, spec(plan.pace.clone(), run))?;
    let window_ns = measured.window_ns;
    let mut answered = measured.answered;
    if let Some(answered) = &mut answered {
        answered.must_allow = asking.must_allow(window_ns);
        answered.may_allow = asking.may_allow(window_ns);
    }
    Ok(Measurement {
        answered,
        ..measured
    })
}

/// Runs a load against a server, and measures while its window is open.
pub(super) fn drive(
    surroundings: &Surroundings,
    server: &mut Server,
    spec: LoadSpec,
) -> Result<Measurement, WorkloadError> {
    let (warmup, patience) = times(&spec.pace);
    let mut load = role::start(&surroundings.executable, &spec, Pin::Nowhere)?;
    let Ready { setup_ns, .. } = load.json()?;
    let mut processes = server.roles();
    processes.push((Role::Sender, load.pid()));
    // A window without a warm-up opens at `go`, and may be over before its line arrives.
    let mut watch = Watch::start(&processes)?;
    load.write_line("go")?;
    let word: String = load.json_while(patience, || server.check_alive())?;
    if word != STEADY {
        return Err(load
            .invalid_line(word, format!("expected `{STEADY}`"))
            .into());
    }
    if warmup == Warmup::Some {
        watch = Watch::start(&processes)?;
    }
    let asked: LoadCounts = load.json_while(patience, || server.check_alive())?;
    let usage = named(watch.stop(), server);
    Ok(Measurement {
        setup_ns: Some(setup_ns),
        usage: Some(usage),
        answered: Some(asked.answered),
        ..asked.tally.over(asked.window_ns)
    })
}

/// Names each process, so that the usage of a server's parts is distinguished.
fn named(mut usage: Usage, server: &Server) -> Usage {
    for (role, (name, _)) in usage.roles.iter_mut().zip(server.processes()) {
        name.clone_into(&mut role.name);
    }
    usage
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Warmup {
    None,
    Some,
}

/// Returns whether the window opens later than the load begins, and the maximum duration of all of
/// it.
fn times(pace: &Pace) -> (Warmup, std::time::Duration) {
    let (warmup_ns, window_ns) = match pace {
        Pace::Users {
            think_ns,
            window_ns,
            ..
        } => (0, window_ns + think_ns),
        // 10 ms per request, a hundred times what is expected of any target.
        Pace::Count { requests, .. } => (0, requests * 10_000_000),
        Pace::Closed {
            warmup_ns,
            window_ns,
            ..
        }
        | Pace::Scheduled {
            warmup_ns,
            window_ns,
            ..
        } => (*warmup_ns, *window_ns),
    };
    let warmup = match warmup_ns {
        0 => Warmup::None,
        _ => Warmup::Some,
    };
    let patience = PATIENCE + std::time::Duration::from_nanos(warmup_ns + window_ns);
    (warmup, patience)
}

/// Compares the subject's cases with: the same requests to other targets; the fastest kind of
/// request of each of these; the subject's first case; and the subject's case with more agents,
/// which shows the cost of a hot agent and, among nodes that share a Redis, the saving of a lease.
fn compare(cases: &[CaseResult]) -> Vec<CaseComparison> {
    let Some(first) = cases.first() else {
        return Vec::new();
    };
    let subject = |one: &&CaseResult| one.case.target == first.case.target;
    let floor = Target::Floor.name();
    let mut found = Vec::new();
    for ours in cases.iter().filter(subject) {
        let others = cases.iter().filter(|other| {
            let is_own_first = other.case == first.case && ours.case != first.case;
            let is_rival = other.case.target != first.case.target && other.case.target != floor;
            let is_same_way = other.case.in_flight == ours.case.in_flight;
            is_own_first
                || has_more_agents(&ours.case, &other.case)
                || (is_rival
                    && is_same_question(&ours.case, &other.case)
                    && (is_same_way || is_fastest(other, cases)))
        });
        for other in others {
            let metrics = contest(&ours.case).iter();
            found.extend(metrics.filter_map(|metric| CaseComparison::of(*metric, ours, other)));
        }
    }
    found
}

/// Returns true if the cases differ only in that the other has more agents.
fn has_more_agents(ours: &Case, other: &Case) -> bool {
    let agents = |case: &Case| case.parameters.get(AGENTS)?.parse::<u32>().ok();
    let as_many = ours.parameters.get(AGENTS).map_or("", String::as_str);
    agents(other) > agents(ours) && *ours == other.clone().parameter(AGENTS, as_many)
}

/// Returns true if both cases have the same takes. Their request shape and the number of nodes may
/// differ.
fn is_same_question(ours: &Case, theirs: &Case) -> bool {
    let but_batch = |case: &Case| {
        let mut parameters = case.parameters.clone();
        for how in ["batch", "door", "limits", "nodes"] {
            parameters.remove(how);
        }
        parameters
    };
    (&ours.mode, ours.clients, ours.rate, but_batch(ours))
        == (&theirs.mode, theirs.clients, theirs.rate, but_batch(theirs))
}

/// Returns true if no other request shape of the same takes is faster on that target.
fn is_fastest(one: &CaseResult, cases: &[CaseResult]) -> bool {
    let rate = |one: &CaseResult| one.summary.mean(Metric::ObservedRate);
    let mut same = cases.iter().filter(|other| {
        other.case.target == one.case.target && is_same_question(&one.case, &other.case)
    });
    same.all(|other| rate(other) <= rate(one))
}

/// Returns the metrics to compare: the rate in a closed loop, otherwise the latency; and the CPU
/// per request.
fn contest(case: &Case) -> &'static [Metric] {
    if case.mode == Mode::MIX || case.paced() {
        return &[
            Metric::LatencyP50,
            Metric::LatencyP95,
            Metric::LatencyP99,
            Metric::NodeCpuPerMessage,
            Metric::NodeRssPeak,
        ];
    }
    if case.mode == Mode::COUNT {
        return &[
            Metric::ObservedRate,
            Metric::LatencyP95,
            Metric::NodeCpuPerMessage,
        ];
    }
    &[
        Metric::ObservedRate,
        Metric::NodeCpuPerMessage,
        Metric::NodeRssPeak,
    ]
}

/// Lists violations of the subject as sentences: a bucket that allowed too many or too few takes,
/// invalid answers, failed checks, and crossed thresholds of the report.
#[must_use]
pub fn misses(results: &Results) -> Vec<String> {
    let subject = results.cases.first().map(|one| one.case.target.clone());
    let ours = results.cases.iter();
    let ours = ours.filter(|one| Some(&one.case.target) == subject.as_ref());
    ours.flat_map(missed_thresholds).collect()
}

fn missed_thresholds(one: &CaseResult) -> Vec<String> {
    let key = one.case.key();
    let crossed = |one: &CaseResult| thresholds(one).into_iter().filter(|one| !one.is_met());
    let crossed = (one.case.mode == Mode::MIX).then(|| crossed(one));
    let mut found: Vec<String> = crossed
        .into_iter()
        .flatten()
        .map(|one| format!("{key}: {} is {:.2} {}", one.name, one.found, one.unit))
        .collect();
    for run in &one.runs {
        let failed = run.error_count();
        if failed > 0 {
            found.push(format!(
                "{key}: {failed} requests of run {} failed",
                run.repeat
            ));
        }
        let Some(answered) = run.measured.as_ref().and_then(|one| one.answered.as_ref()) else {
            continue;
        };
        if answered.checks_held < answered.checks {
            let (held, made) = (answered.checks_held, answered.checks);
            found.push(format!(
                "{key}: {held} of {made} checks passed in run {}",
                run.repeat
            ));
        }
        if let Some(exact) = exactness(answered).filter(|exact| !exact.holds()) {
            let (allowed, must) = (exact.allowed, exact.must_allow);
            found.push(format!(
                "{key}: {allowed} takes were allowed in run {}, expected {must} ± 1",
                run.repeat
            ));
        }
        if let Some(excess) = excess(answered).filter(|excess| excess.over() > 0) {
            let (allowed, may) = (excess.allowed, excess.may_allow);
            found.push(format!(
                "{key}: {allowed} takes were allowed in run {}, the maximum is {may}",
                run.repeat
            ));
        }
    }
    found
}

fn setup(matrix: &Matrix, targets: &Targets) -> Setup {
    let mut notes = vec![
        ("Load".to_owned(), describe_load(&matrix.work)),
        ("Warm-up".to_owned(), describe_warmup(matrix)),
        (
            "Generator".to_owned(),
            "`telpher bench-role`, one process with one thread on the same machine; its CPU time is reported next to the \
             server's"
                .to_owned(),
        ),
        (
            "Counted".to_owned(),
            "decisions: a denied take counts as an answer, and each take of a batch counts as one".to_owned(),
        ),
    ];
    for target in &targets.here {
        notes.push((target.name().to_owned(), target.description().to_owned()));
    }
    for target in &targets.left_out {
        let words = "did not take part: it is not in the directory of peers (`cargo xtask peers` builds it)";
        notes.push((target.name().to_owned(), words.to_owned()));
    }
    let window = match &matrix.work {
        Work::Mix { window, .. } | Work::Scheduled { window, .. } => Some(format!("{window:?}")),
        Work::Closed { load, .. } | Work::Shared { load, .. } => Some(format!("{:?}", load.window)),
        Work::Count { .. } => None,
    };
    Setup {
        destination: Some(match &matrix.subject {
            Subject::Node => matrix.directory.display().to_string(),
            Subject::Url(address) => format!("http://{address}"),
        }),
        duration: window,
        repeats: Some(matrix.repeats),
        notes,
        ..Setup::default()
    }
}

fn describe_load(work: &Work) -> String {
    match work {
        Work::Mix {
            vus, steps, think, ..
        } => {
            let names: Vec<_> = steps.iter().map(|step| step.name()).collect();
            format!(
                "{vus} virtual users, each sending {} in turn for a random agent and then thinking for {think:?}",
                names.join(", ")
            )
        }
        Work::Count {
            connections,
            requests,
            ..
        } => format!(
            "{requests} takes over {connections} connections, each as soon as its connection is free, like Apache \
             Bench: HTTP/1.0, with keep-alive and without"
        ),
        Work::Closed { load, .. } => {
            format!("{} connections in a closed loop", load.connections)
        }
        Work::Shared { load, .. } => format!(
            "{} connections in a closed loop, spread over the nodes; each agent has a bucket of 10,000,000 that no load \
             empties, or one of 10,000 that every load empties. Nodes lease credit for agents with frequent takes; with so \
             many agents that each takes rarely, every take is a call of Redis",
            load.connections
        ),
        Work::Scheduled { connections, .. } => format!(
            "on a schedule over at most {connections} connections; a request without a free connection waits, and its \
             response latency counts from the intended send"
        ),
    }
}

fn describe_warmup(matrix: &Matrix) -> String {
    let warmup = matrix.warmup;
    match &matrix.work {
        Work::Closed { .. } | Work::Scheduled { .. } => {
            format!("the first {warmup:?} of the load are not counted")
        }
        Work::Shared { .. } => format!(
            "the first {warmup:?} of the load are not counted; if buckets are emptied, takes for other agents are the warm-up"
        ),
        Work::Mix { .. } | Work::Count { .. } => {
            format!("takes for other agents, as fast as they are answered, for {warmup:?}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::model::Area;

    #[test]
    fn one_agent_is_compared_with_many_under_the_same_load() {
        let case =
            |agents: u32| Case::new("telpher", Area::Quota, Mode::TAKE).parameter(AGENTS, agents);
        assert!(has_more_agents(&case(1), &case(10_000)));
        assert!(!has_more_agents(&case(10_000), &case(1)));
        assert!(!has_more_agents(&case(1), &case(1)));
        assert!(!has_more_agents(&case(1), &case(10_000).in_flight(16)));
        let theirs = Case::new("express", Area::Quota, Mode::TAKE).parameter(AGENTS, 2);
        assert!(!has_more_agents(&case(1), &theirs));
    }

    #[test]
    fn nodes_are_compared_with_redis_for_the_same_number_of_agents() {
        let alone = Case::new("redis-script", Area::Quota, Mode::TAKE).parameter(AGENTS, 1);
        let nodes = Case::new("telpher", Area::Quota, Mode::TAKE)
            .parameter(AGENTS, 1)
            .parameter("nodes", 3)
            .parameter("batch", 100)
            .parameter("door", "native");
        assert!(is_same_question(&nodes, &alone));
        assert!(!is_same_question(&nodes, &alone.parameter(AGENTS, 2)));
    }
}
