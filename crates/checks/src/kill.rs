//! Skeleton of the checks that kill a node with `kill -9`: start a node on the data of its last life,
//! write until it is killed at a random moment, repeat, and judge what a last start has.

mod comparison;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use bench::workload::error::WorkloadError;
use bench::workload::node::Node;
use bench::workload::role::{self, Failure};
use bench::workload::surroundings::{Surroundings, temporary_directory};
use meter::clock::now_ns;
use tokio::task::{JoinHandle, LocalSet};

pub(crate) use comparison::Comparison;
pub use comparison::Violations;

/// Kills of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kills {
    /// Number of kills.
    pub count: u32,
    /// Seed of the moments of the kills.
    pub seed: u64,
    /// Directory on the tested disk; the node's directory is created in it.
    pub directory: PathBuf,
}

/// Writers whose node is killed, and their knowledge of what they have written.
pub(crate) trait KilledLoad {
    /// Starts writers in the current local set. Each writes until the node is gone or `is_over` is
    /// set.
    async fn start(
        &mut self,
        node: &Node,
        is_over: &Rc<Cell<bool>>,
    ) -> Result<Vec<JoinHandle<()>>, Failure>;

    /// Reads everything back from a node that stays alive, and compares it.
    async fn judge(&mut self, node: &Node) -> Result<(), Failure>;
}

/// Milliseconds between a start and a kill.
const LIFE_MS: std::ops::Range<u64> = 5..500;

/// Small segments, so that some are sealed, filed and reused within a check.
const FLAGS: [&str; 4] = ["--journal-segment-size", "1MiB", "--journal-reserve", "0B"];

/// Kills a node under `load` and lets the load judge the rest. Returns the longest start in
/// milliseconds.
///
/// # Errors
/// When the node cannot be started, or its data cannot be read.
pub(crate) fn run(
    surroundings: &Surroundings,
    kills: &Kills,
    load: &mut impl KilledLoad,
    mut progress: impl FnMut(u32),
) -> Result<u64, WorkloadError> {
    let scratch = temporary_directory(&kills.directory)?;
    let runtime = role::runtime().map_err(WorkloadError::Directory)?;
    let mut lives = Lifetimes::of(kills.seed);
    let mut start_ms_max = 0;
    for kill in 0..kills.count {
        let node = start(surroundings, scratch.path(), &mut start_ms_max)?;
        let written = write_and_kill(node, load, lives.next());
        LocalSet::new()
            .block_on(&runtime, written)
            .map_err(node_error)?;
        progress(kill + 1);
    }
    let node = start(surroundings, scratch.path(), &mut start_ms_max)?;
    LocalSet::new()
        .block_on(&runtime, load.judge(&node))
        .map_err(node_error)?;
    Ok(start_ms_max)
}

/// Starts the node on the data of its last life; `start_ms_max` is raised to the time it took.
fn start(
    surroundings: &Surroundings,
    data: &Path,
    start_ms_max: &mut u64,
) -> Result<Node, WorkloadError> {
    let begin_ns = now_ns();
    let node = Node::start_in(&surroundings.executable, data, &FLAGS)?;
    *start_ms_max = (*start_ms_max).max((now_ns() - begin_ns) / 1_000_000);
    Ok(node)
}

async fn write_and_kill(
    node: Node,
    load: &mut impl KilledLoad,
    life: Duration,
) -> Result<(), Failure> {
    let is_over = Rc::new(Cell::new(false));
    let tasks = load.start(&node, &is_over).await?;
    tokio::time::sleep(life).await;
    // Writes acknowledged from here on count too.
    node.kill();
    is_over.set(true);
    for task in tasks {
        task.await?;
    }
    Ok(())
}

fn node_error(failure: Failure) -> WorkloadError {
    WorkloadError::Node(failure.to_string())
}

/// Durations of the node's lives, derived from a seed (xorshift64, Marsaglia 2003).
struct Lifetimes(u64);

impl Lifetimes {
    fn of(seed: u64) -> Self {
        // A state of zero would stay zero.
        Self(seed | 1)
    }

    fn next(&mut self) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Duration::from_millis(LIFE_MS.start + self.0 % (LIFE_MS.end - LIFE_MS.start))
    }
}
