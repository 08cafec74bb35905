//! `bench store --idle`: what many conversations cost that nobody uses, and how long a node that holds
//! them takes to start.

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
use crate::process::Memory;
use crate::workload::node::Node;
use crate::workload::role::{self, Failure};
use crate::workload::{Surroundings, WorkloadError, place};

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
    /// Memory once they were made and left alone.
    pub idle_rss_bytes: u64,
    /// The difference, for each of them.
    pub idle_bytes_each: f64,
    /// From the start of a node that holds them all until it is ready.
    pub cold_start_ms: u64,
    /// Its memory then.
    pub cold_rss_bytes: u64,
    /// Beyond that of an empty node, for each of them.
    pub cold_bytes_each: f64,
    /// Conversations that were read back after that start.
    pub read_back: u64,
    /// Of those, how many were not as they were made.
    pub wrong: u64,
}

/// Connections that make them.
const CONNECTIONS: u64 = 32;

/// How often one is asked for whose outcome was left open.
const ATTEMPTS: u32 = 10;

/// Conversations that are read back, spread over all.
const SAMPLES: u64 = 200;

/// Memory is at rest when it has not moved by more than this over [`CALM`].
const STIR_BYTES: u64 = 1 << 20;
const CALM: Duration = Duration::from_secs(1);

/// How long it may take to come to rest.
const REST_LIMIT: Duration = Duration::from_secs(300);

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
    let empty_rss_bytes = at_rest(&node)?;
    progress("making them");
    let begin_ns = now_ns();
    on_runtime(make(&node, idle))?;
    let make_seconds = (now_ns() - begin_ns) as f64 / 1e9;
    progress("leaving them alone");
    thread::sleep(idle.rest);
    let idle_rss_bytes = at_rest(&node)?;
    node.kill();
    progress("starting with all of them");
    let begin_ns = now_ns();
    let node = Node::start_in(&surroundings.executable, place.path(), &[])?;
    let cold_start_ms = (now_ns() - begin_ns) / 1_000_000;
    let cold_rss_bytes = at_rest(&node)?;
    let (read_back, wrong) = on_runtime(read_back(&node, idle))?;
    let each = |rss: u64| (rss as f64 - empty_rss_bytes as f64) / idle.conversations.max(1) as f64;
    Ok(IdleReport {
        conversations: idle.conversations,
        messages: idle.messages,
        make_seconds,
        disk_bytes: disk_bytes(place.path())?,
        empty_rss_bytes,
        idle_rss_bytes,
        idle_bytes_each: each(idle_rss_bytes),
        cold_start_ms,
        cold_rss_bytes,
        cold_bytes_each: each(cold_rss_bytes),
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

/// Memory of the node once it does not move any more.
fn at_rest(node: &Node) -> Result<u64, WorkloadError> {
    let gone = || WorkloadError::Node("the node has ended while it was left alone".to_owned());
    let limit_ns = now_ns() + REST_LIMIT.as_nanos() as u64;
    let mut before = Memory::of(node.pid()).ok_or_else(gone)?.rss_bytes;
    loop {
        thread::sleep(CALM);
        let now = Memory::of(node.pid()).ok_or_else(gone)?.rss_bytes;
        if now.abs_diff(before) <= STIR_BYTES || now_ns() > limit_ns {
            return Ok(now);
        }
        before = now;
    }
}

/// Makes all of them, each with one append.
async fn make(node: &Node, idle: &Idle) -> Result<(), Failure> {
    let messages: Rc<[ToAppend]> = messages(idle).into();
    let mut tasks = Vec::new();
    for connection in 0..CONNECTIONS.min(idle.conversations) {
        let client = Client::open(node, idle.door).await?;
        let numbers = (connection..idle.conversations).step_by(CONNECTIONS as usize);
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
