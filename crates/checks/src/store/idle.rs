//! `bench store --idle`: memory of many unused conversations, and the start-up time of a node that
//! holds them.
//!
//! Half of the conversations are created first: the growth of the node's memory with the other half
//! is the cost of the conversations. One-time costs, above all the cache of the node's views, do
//! not grow with them. They are part of the difference to an empty node, which is reported too.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use serde::Serialize;
use tokio::task::LocalSet;

use crate::{idle_memory, space};
use bench::workload::error::WorkloadError;
use bench::workload::node::Node;
use bench::workload::role::{self, Failure};
use bench::workload::surroundings::{Surroundings, temporary_directory};
use bench_storage::store::client::{AppendFailure, Client, OutgoingMessage};
use bench_storage::store::{Door, message};
use meter::clock::now_ns;

/// Parameters of the measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idle {
    /// Number of conversations.
    pub conversations: u64,
    /// Messages in each conversation, appended at once.
    pub messages: u64,
    /// Size of a text in bytes.
    pub size: usize,
    /// Idle time before memory is read: a node unloads unused conversations after some seconds.
    pub rest: Duration,
    /// Client API over which they are created.
    pub door: Door,
    /// Directory on the measured disk; the node's directory is created in it.
    pub directory: PathBuf,
}

/// Result of the measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IdleReport {
    /// Number of conversations.
    pub conversations: u64,
    /// Messages in each conversation.
    pub messages: u64,
    /// Time to create them, in seconds.
    pub make_seconds: f64,
    /// Bytes of the node's files.
    pub disk_bytes: u64,
    /// Memory of an empty node.
    pub empty_rss_bytes: u64,
    /// Memory of the idle node with half of the conversations.
    pub half_rss_bytes: u64,
    /// Memory of the idle node with all conversations.
    pub idle_rss_bytes: u64,
    /// Growth per conversation from half of them to all.
    pub idle_bytes_each: f64,
    /// Growth per conversation from an empty node to all.
    pub idle_bytes_each_from_empty: f64,
    /// Time to start a node with all conversations until it is ready, in milliseconds.
    pub cold_start_ms: u64,
    /// Memory after that start.
    pub cold_rss_bytes: u64,
    /// Growth per conversation from an empty node to a freshly started one with all of them.
    pub cold_bytes_each_from_empty: f64,
    /// Conversations that were read back after that start.
    pub read_back: u64,
    /// Number of these that differ from what was written.
    pub wrong: u64,
}

/// Number of connections that create conversations.
const CONNECTIONS: usize = 32;

/// Maximum attempts at an append with unknown outcome.
const ATTEMPTS: u32 = 10;

/// Number of conversations that are read back, spread over all.
const SAMPLES: u64 = 200;

/// Creates the conversations, waits, and restarts the node.
///
/// # Errors
/// When the disk has too little space, or the node fails.
pub fn run(
    surroundings: &Surroundings,
    idle: &Idle,
    mut progress: impl FnMut(&str),
) -> Result<IdleReport, WorkloadError> {
    let messages = idle.conversations.saturating_mul(idle.messages);
    space::check(
        &idle.directory,
        space::needed_bytes(messages, idle.size as u64),
    )?;
    let scratch = temporary_directory(&idle.directory)?;
    let node = Node::start_in(&surroundings.executable, scratch.path(), &[])?;
    let empty_rss_bytes = idle_memory::rss_bytes(&node)?;
    let half = idle.conversations / 2;
    let mut make_seconds = 0.0;
    let mut left_alone = |numbers| {
        progress("making them");
        let begin_ns = now_ns();
        on_runtime(make(&node, idle, numbers))?;
        make_seconds += (now_ns() - begin_ns) as f64 / 1e9;
        progress("leaving them alone");
        thread::sleep(idle.rest);
        idle_memory::rss_bytes(&node)
    };
    let half_rss_bytes = left_alone(0..half)?;
    let idle_rss_bytes = left_alone(half..idle.conversations)?;
    node.kill();
    progress("starting with all of them");
    let begin_ns = now_ns();
    let node = Node::start_in(&surroundings.executable, scratch.path(), &[])?;
    let cold_start_ms = (now_ns() - begin_ns) / 1_000_000;
    let cold_rss_bytes = idle_memory::rss_bytes(&node)?;
    let (read_back, wrong) = on_runtime(read_back(&node, idle))?;
    let each = |more: u64, less: u64, count: u64| (more as f64 - less as f64) / count.max(1) as f64;
    let from_empty = |rss_bytes| each(rss_bytes, empty_rss_bytes, idle.conversations);
    Ok(IdleReport {
        conversations: idle.conversations,
        messages: idle.messages,
        make_seconds,
        disk_bytes: disk_bytes(scratch.path())?,
        empty_rss_bytes,
        half_rss_bytes,
        idle_rss_bytes,
        idle_bytes_each: each(idle_rss_bytes, half_rss_bytes, idle.conversations - half),
        idle_bytes_each_from_empty: from_empty(idle_rss_bytes),
        cold_start_ms,
        cold_rss_bytes,
        cold_bytes_each_from_empty: from_empty(cold_rss_bytes),
        read_back,
        wrong,
    })
}

fn disk_bytes(directory: &Path) -> Result<u64, WorkloadError> {
    space::used_bytes(directory).map_err(WorkloadError::Directory)
}

fn on_runtime<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, WorkloadError> {
    let runtime = role::runtime().map_err(WorkloadError::Directory)?;
    let done = LocalSet::new().block_on(&runtime, work);
    done.map_err(|failure| WorkloadError::Node(failure.to_string()))
}

/// Creates the conversations with these numbers, each by one append.
async fn make(node: &Node, idle: &Idle, numbers: Range<u64>) -> Result<(), Failure> {
    let messages: Rc<[OutgoingMessage]> = messages(idle).into();
    let mut tasks = Vec::new();
    for first in numbers.clone().take(CONNECTIONS) {
        let client = Client::open(node, idle.door).await?;
        let numbers = (first..numbers.end).step_by(CONNECTIONS);
        tasks.push(tokio::task::spawn_local(create_share(
            client,
            numbers,
            messages.clone(),
        )));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}

async fn create_share(
    mut client: Client,
    numbers: impl Iterator<Item = u64>,
    messages: Rc<[OutgoingMessage]>,
) -> Result<(), Failure> {
    for number in numbers {
        create_conversation(&mut client, &name(number), &messages).await?;
    }
    Ok(())
}

/// Creates one conversation. A slow disk may answer after the client's deadline: an append with
/// unknown outcome is retried, and its message ids keep it from being stored twice.
async fn create_conversation(
    client: &mut Client,
    name: &str,
    messages: &[OutgoingMessage],
) -> Result<(), Failure> {
    let mut attempts = 1;
    loop {
        match client.append(name, messages).await {
            Ok(_) => return Ok(()),
            Err(AppendFailure::Unconfirmed(_)) if attempts < ATTEMPTS => attempts += 1,
            Err(trouble) => return Err(trouble.into_failure()),
        }
    }
}

fn name(number: u64) -> String {
    format!("idle-{number}")
}

/// Returns the messages, the same in every conversation: ids belong to a conversation.
fn messages(idle: &Idle) -> Vec<OutgoingMessage> {
    let message = |number| OutgoingMessage {
        id: format!("m-{number}"),
        text: message::text(idle.size, number as u32),
    };
    (0..idle.messages).map(message).collect()
}

/// Reads back a sample. Returns its size, and the number of conversations that differ from what was
/// written.
async fn read_back(node: &Node, idle: &Idle) -> Result<(u64, u64), Failure> {
    let made = messages(idle);
    let mut client = Client::open(node, idle.door).await?;
    let step = (idle.conversations / SAMPLES).max(1);
    let (mut read, mut wrong) = (0, 0);
    for number in (0..idle.conversations).step_by(step as usize) {
        let found = client.read_all(&name(number)).await?;
        let is_same = found.len() == made.len()
            && found
                .iter()
                .zip(&made)
                .zip(1..)
                .all(|((found, made), seq)| {
                    found.seq == seq && (&found.id, &found.text) == (&made.id, &made.text)
                });
        read += 1;
        wrong += u64::from(!is_same);
    }
    Ok((read, wrong))
}
