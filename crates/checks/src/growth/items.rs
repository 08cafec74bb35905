//! A step of items: a node, its items, its memory at rest, and the load.

use std::fs;
use std::thread;

use bench::flags::{Flag, is_busy_generator, is_too_short, is_unstable};
use bench::growth::{Dimension, Point};
use bench::process::{Role, Usage, Watch};
use bench::stats::describe;
use bench::workload::error::WorkloadError;
use bench::workload::node::Node;
use bench::workload::surroundings::{Surroundings, temporary_directory};
use meter::clock::{now_ns, own_cpu_ns};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;

use super::deadline::Deadline;
use super::load::{Amount, Driver};
use super::plan::Plan;
use super::step::{SETTLE, StepError, first_line, node_error, noisy_host};
use crate::{idle_memory, space};

/// A node with a directory of its own.
pub(super) struct ItemNode {
    pub(super) node: Node,
    _scratch: TempDir,
}

/// Configuration of the nodes: topics of one partition, buckets that never deny, and limits above the
/// highest step.
const CONFIG: &str = "\
[topics]
partitions = 1
partitions_max = 1000000
groups_max = 1000000

[mailbox]
messages_max = 10000000
size_max = \"4GiB\"

[namespace]
names_max = 10000000

[[limit]]
name = \"agent\"
match = \"*/*/*\"
unit = \"requests\"
capacity = 10000000
refill = \"10000000/s\"
";

/// Bytes of disk per item and per message of the load, in all copies.
const DISK_EACH: u64 = 2_000;

/// Highest rate that the check of the disk assumes, in messages per second.
const RATE_MAX: u64 = 200_000;

/// File descriptors for everything except the measured connections.
const DESCRIPTORS_OTHER: u64 = 256;

impl ItemNode {
    pub(super) fn start(surroundings: &Surroundings, plan: &Plan) -> Result<Self, WorkloadError> {
        let scratch = temporary_directory(&plan.directory)?;
        let config = scratch.path().join("growth.toml");
        fs::write(&config, CONFIG).map_err(WorkloadError::Directory)?;
        let data = scratch.path().join("data");
        let flags = ["--config", &config.display().to_string()];
        Ok(Self {
            node: Node::start_in(&surroundings.executable, &data, &flags)?,
            _scratch: scratch,
        })
    }
}

/// Measures a step.
pub(super) fn measure(
    surroundings: &Surroundings,
    plan: &Plan,
    of: Dimension,
    items: u64,
    deadline: Deadline,
) -> Result<Point, StepError> {
    deadline.check("starting a node")?;
    let messages = (plan.window * plan.repeats).as_secs() * RATE_MAX;
    let needed = (items + messages).saturating_mul(DISK_EACH);
    if let Err(error) = space::check(&plan.directory, needed) {
        return Err(StepError::LeftOut(first_line(&error)));
    }
    if of == Dimension::Connections {
        raise_descriptors(items)?;
    }
    let ItemNode { node, _scratch } = ItemNode::start(surroundings, plan)?;
    let begin_ns = now_ns();
    let mut driver = Driver::make(&node, of, items, deadline)?;
    let make_seconds = (now_ns() - begin_ns) as f64 / 1e9;
    thread::sleep(plan.rest);
    let rss_bytes = idle_memory::rss_bytes_within(&node, SETTLE)?;
    let mut point = Point {
        items,
        make_seconds,
        rss_bytes,
        rates: Vec::new(),
        cpu_us: Vec::new(),
        flags: Vec::new(),
    };
    driver.send(Amount::Window(plan.window / 4), deadline)?;
    for _ in 0..plan.repeats {
        deadline.check("the load")?;
        let watch = Watch::start(&[(Role::Node, node.pid())]).map_err(WorkloadError::from)?;
        let own_before_ns = own_cpu_ns();
        let begin_ns = now_ns();
        let sent = driver.send(Amount::Window(plan.window), deadline)?;
        let window_ns = now_ns() - begin_ns;
        let own_ns = own_cpu_ns() - own_before_ns;
        let usage = watch.stop();
        add_repeat(&mut point, sent, window_ns, own_ns, &usage)?;
    }
    finish(&mut point);
    Ok(point)
}

/// Adds a repeat: so many messages in a window, in which this process used `own_ns` of CPU time.
fn add_repeat(
    point: &mut Point,
    sent: u64,
    window_ns: u64,
    own_ns: u64,
    usage: &Usage,
) -> Result<(), StepError> {
    let cpu_ns = usage.roles.first().and_then(|node| node.cpu_ns);
    let cpu_ns = cpu_ns.ok_or_else(|| node_error("the node ended under the load"))?;
    if sent == 0 {
        return Err(node_error("no message was answered within the window").into());
    }
    point.rates.push(sent as f64 * 1e9 / window_ns as f64);
    point.cpu_us.push(cpu_ns as f64 / 1e3 / sent as f64);
    if is_too_short(window_ns, sent) {
        point.flags.push(Flag::TooShort);
    }
    // The messages of groups are sent by several threads.
    if is_busy_generator(100.0 * own_ns as f64 / window_ns as f64) {
        point.flags.push(Flag::GeneratorLimited);
    }
    point.flags.extend(noisy_host(usage));
    Ok(())
}

/// Adds the flag of all repeats together, and names each flag once.
fn finish(point: &mut Point) {
    let varies = |values: &[f64]| {
        let variation = describe(values).and_then(|one| one.variation);
        variation.is_some_and(|variation| is_unstable(100.0 * variation))
    };
    if varies(&point.rates) || varies(&point.cpu_us) {
        point.flags.push(Flag::Unstable);
    }
    point.flags.sort_unstable();
    point.flags.dedup();
}

/// Raises this process's limit of file descriptors; each connection needs one here and one in the
/// node, which raises its own limit.
fn raise_descriptors(connections: u64) -> Result<(), StepError> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let needed = connections + DESCRIPTORS_OTHER;
    let fits = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    if fits(current) {
        return Ok(());
    }
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    match fits(maximum) && setrlimit(Resource::Nofile, raised).is_ok() {
        true => Ok(()),
        false => Err(StepError::LeftOut(format!(
            "it needs {needed} file descriptors, and the hard limit is {} (`ulimit -Hn`)",
            maximum.unwrap_or_default()
        ))),
    }
}
