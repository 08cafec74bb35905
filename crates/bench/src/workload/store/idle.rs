//! `bench store --idle`: what many conversations cost that nobody uses, and how long a node that holds
//! them takes to start.
//!
//! Half of them are made first: what the node takes for the other half is what conversations take. What
//! it takes besides for having anything to do (the cache of its views above all) does not grow with
//! them, and is in the difference to an empty node, which is told too.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use serde::Serialize;
use tokio::task::LocalSet;

use super::client::{Client, ToAppend, Trouble};
use super::matrix::Door;
use super::{message, space};
use crate::clock::now_ns;
use crate::workload::node::Node;
use crate::workload::role::{self, Failure};
use crate::workload::{Surroundings, WorkloadError, place, rest};

/// What to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idle {
    /// Conversations.
    pub conversations: u64,
    /// Messages in each, appended at once.
    pub messages: u64,
    /// Bytes of a text.
    pub size: usize,
    /// How long they are left alone: a node lets go of what nobody uses after some seconds.
    pub rest: Duration,
    /// Through which they are made.
    pub door: Door,
    /// A directory on the disk that is used; the node's own is made in it.
    pub directory: PathBuf,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IdleReport {
    /// Conversations.
    pub conversations: u64,
    /// Messages in each.
    pub messages: u64,
    /// How long making them took.
    pub make_seconds: f64,
    /// What their files take.
    pub disk_bytes: u64,
    /// Memory of a node that holds nothing.
    pub empty_rss_bytes: u64,
    /// Memory once half of them were made and left alone.
    pub half_rss_bytes: u64,
    /// Memory once all of them were.
    pub idle_rss_bytes: u64,
    /// From half of them to all, for each.
    pub idle_bytes_each: f64,
    /// From an empty node to all of them, for each.
    pub idle_bytes_each_from_empty: f64,
    /// From the start of a node that holds them all until it is ready.
    pub cold_start_ms: u64,
    /// Its memory then.
    pub cold_rss_bytes: u64,
    /// From an empty node to all of them, for each.
    pub cold_bytes_each_from_empty: f64,
    /// Conversations that were read back after that start.
    pub read_back: u64,
    /// Of those, how many were not as they were made.
    pub wrong: u64,
}

/// Connections that make them.
const CONNECTIONS: usize = 32;

/// How often one is asked for whose outcome was left open.
const ATTEMPTS: u32 = 10;

/// Conversations that are read back, spread over all.
const SAMPLES: u64 = 200;

/// Makes them, leaves them alone, and starts the node again.
///
/// # Errors
/// When the disk has too little room, or the node does not do its part.
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
    let place = place(&idle.directory)?;
    let node = Node::start_in(&surroundings.executable, place.path(), &[])?;
    let empty_rss_bytes = rest::rss_bytes(&node)?;
    let half = idle.conversations / 2;
    let mut make_seconds = 0.0;
    let mut left_alone = |numbers| {
        progress("making them");
        let begin_ns = now_ns();
        on_runtime(make(&node, idle, numbers))?;
        make_seconds += (now_ns() - begin_ns) as f64 / 1e9;
        progress("leaving them alone");
        thread::sleep(idle.rest);
        rest::rss_bytes(&node)
    };
    let half_rss_bytes = left_alone(0..half)?;
    let idle_rss_bytes = left_alone(half..idle.conversations)?;
    node.kill();
    progress("starting with all of them");
    let begin_ns = now_ns();
    let node = Node::start_in(&surroundings.executable, place.path(), &[])?;
    let cold_start_ms = (now_ns() - begin_ns) / 1_000_000;
    let cold_rss_bytes = rest::rss_bytes(&node)?;
    let (read_back, wrong) = on_runtime(read_back(&node, idle))?;
    let each = |more: u64, less: u64, count: u64| (more as f64 - less as f64) / count.max(1) as f64;
    let from_empty = |rss_bytes| each(rss_bytes, empty_rss_bytes, idle.conversations);
    Ok(IdleReport {
        conversations: idle.conversations,
        messages: idle.messages,
        make_seconds,
        disk_bytes: disk_bytes(place.path())?,
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

fn disk_bytes(place: &Path) -> Result<u64, WorkloadError> {
    space::used_bytes(place).map_err(WorkloadError::Directory)
}

fn on_runtime<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, WorkloadError> {
    let runtime = role::runtime().map_err(WorkloadError::Directory)?;
    let done = LocalSet::new().block_on(&runtime, work);
    done.map_err(|failure| WorkloadError::Node(failure.to_string()))
}

/// Makes those of these numbers, each with one append.
async fn make(node: &Node, idle: &Idle, numbers: Range<u64>) -> Result<(), Failure> {
    let messages: Rc<[ToAppend]> = messages(idle).into();
    let mut tasks = Vec::new();
    for first in numbers.clone().take(CONNECTIONS) {
        let client = Client::open(node, idle.door).await?;
        let numbers = (first..numbers.end).step_by(CONNECTIONS);
        tasks.push(tokio::task::spawn_local(make_some(
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

async fn make_some(
    mut client: Client,
    numbers: impl Iterator<Item = u64>,
    messages: Rc<[ToAppend]>,
) -> Result<(), Failure> {
    for number in numbers {
        make_one(&mut client, &name(number), &messages).await?;
    }
    Ok(())
}

/// A disk that falls behind may answer later than a client waits: what is left open is repeated, and is
/// there once because of its ids.
async fn make_one(client: &mut Client, name: &str, messages: &[ToAppend]) -> Result<(), Failure> {
    let mut attempts = 1;
    loop {
        match client.append(name, messages).await {
            Ok(_) => return Ok(()),
            Err(Trouble::Unconfirmed(_)) if attempts < ATTEMPTS => attempts += 1,
            Err(trouble) => return Err(trouble.told()),
        }
    }
}

fn name(number: u64) -> String {
    format!("idle-{number}")
}

/// The same in all of them: ids belong to a conversation.
fn messages(idle: &Idle) -> Vec<ToAppend> {
    let message = |number| ToAppend {
        id: format!("m-{number}"),
        text: message::text(idle.size, number as u32),
    };
    (0..idle.messages).map(message).collect()
}

/// Reads some back: how many, and how many were not as they were made.
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
