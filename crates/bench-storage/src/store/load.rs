//! Append role: virtual users that join one after the other, each with its own window of messages.

mod conversation_cursor;
mod durable_streams;
mod http;
mod native;
mod redis;
mod shared_sender;
mod ws;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::LocalSet;

use self::conversation_cursor::ConversationCursor;
use super::{AppendCounts, LoadClient, LoadSpec, STEADY};
use bench::tally::Tally;
use bench::workload::role::{Failure, Ready, read_line, runtime, write_line};
use meter::clock::now_ns;

/// Plays the role.
///
/// # Errors
/// When the server cannot be reached.
pub fn play(spec: &LoadSpec) -> Result<(), Failure> {
    let local = LocalSet::new();
    local.block_on(&runtime()?, play_on_runtime(spec))?;
    // The suite reads this process's memory before it ends.
    read_line()?;
    Ok(())
}

async fn play_on_runtime(spec: &LoadSpec) -> Result<(), Failure> {
    let opened_ns = now_ns();
    let mut users = Vec::new();
    for vu in 0..spec.vus {
        users.push(open(spec, vu).await?);
    }
    write_line(&Ready {
        address: None,
        setup_ns: now_ns() - opened_ns,
    })?;
    if read_line()?.is_some() {
        write_line(&append(spec, users).await?)?;
    }
    Ok(())
}

/// Opens the slots of one user's window.
async fn open(spec: &LoadSpec, vu: u32) -> Result<Vec<Slot>, Failure> {
    Ok(match spec.client {
        LoadClient::Native => native::open(spec, vu).await?.map(Slot::Native).collect(),
        LoadClient::Http => {
            let turn = ConversationCursor::of(spec, vu);
            let mut slots = Vec::new();
            for index in 0..spec.pipeline {
                let opened = http::Slot::open(spec, vu, index, turn.clone());
                slots.push(Slot::Http(opened.await?));
            }
            slots
        }
        LoadClient::Ws => ws::open(spec, vu).await?.map(Slot::Ws).collect(),
        LoadClient::Redis => redis::open(spec, vu).await?.map(Slot::Redis).collect(),
        LoadClient::DurableStreams => {
            let mut slots = Vec::new();
            for _ in 0..spec.pipeline {
                slots.push(Slot::DurableStreams(
                    durable_streams::Slot::open(spec, vu).await?,
                ));
            }
            slots
        }
    })
}

/// A slot in a window: sends a message and waits until it is acknowledged.
enum Slot {
    Native(native::Slot),
    Http(http::Slot),
    Ws(ws::Slot),
    Redis(redis::Slot),
    DurableStreams(durable_streams::Slot),
}

impl Slot {
    /// Prepares the slot when its user joins. Its connection may have been idle for long.
    async fn join(&mut self) {
        match self {
            Self::Http(slot) => slot.join().await,
            Self::DurableStreams(slot) => slot.join().await,
            Self::Native(_) | Self::Ws(_) | Self::Redis(_) => {}
        }
    }

    /// Appends the slot's next message. The error is a stable word for the tally.
    async fn append(&mut self) -> Result<(), String> {
        match self {
            Self::Native(slot) => slot.append().await,
            Self::Http(slot) => slot.append().await,
            Self::Ws(slot) => slot.append().await,
            Self::Redis(slot) => slot.append().await,
            Self::DurableStreams(slot) => slot.append().await,
        }
    }
}

/// Runs every slot from when its user joins until the window closes.
async fn append(spec: &LoadSpec, users: Vec<Vec<Slot>>) -> Result<AppendCounts, Failure> {
    let begin_ns = now_ns();
    let open_ns = begin_ns + spec.ramp_ns;
    let end_ns = open_ns + spec.window_ns;
    let tally = Rc::new(RefCell::new(Tally::new()));
    let mut tasks = Vec::new();
    for (vu, slots) in users.into_iter().enumerate() {
        let join_ns = begin_ns + spec.ramp_ns * vu as u64 / u64::from(spec.vus);
        for slot in slots {
            let times = Times {
                join_ns,
                open_ns,
                end_ns,
            };
            tasks.push(tokio::task::spawn_local(keep_busy(
                slot,
                times,
                tally.clone(),
            )));
        }
    }
    sleep_until(open_ns).await;
    write_line(&STEADY)?;
    for task in tasks {
        task.await?;
    }
    Ok(AppendCounts {
        tally: tally.take(),
        window_ns: now_ns() - open_ns,
    })
}

/// Times at which a slot begins, is counted, and ends.
#[derive(Clone, Copy)]
struct Times {
    join_ns: u64,
    open_ns: u64,
    end_ns: u64,
}

async fn keep_busy(mut slot: Slot, times: Times, tally: Rc<RefCell<Tally>>) {
    sleep_until(times.join_ns).await;
    slot.join().await;
    let mut start_ns = now_ns();
    while start_ns < times.end_ns {
        let is_counted = start_ns >= times.open_ns;
        if is_counted {
            tally.borrow_mut().sent();
        }
        let outcome = slot.append().await;
        let done_ns = now_ns();
        match outcome {
            Ok(()) if is_counted => tally.borrow_mut().answered(start_ns, done_ns),
            Ok(()) => {}
            // A failure counts even outside the window: a run with a failure is not clean.
            Err(kind) => {
                if !is_counted {
                    tally.borrow_mut().sent();
                }
                tally.borrow_mut().failed(&kind);
                tokio::time::sleep(PAUSE).await;
            }
        }
        start_ns = now_ns();
    }
}

/// Pause after a failure, so that a server that rejects every request is not flooded.
const PAUSE: Duration = Duration::from_millis(10);

async fn sleep_until(at_ns: u64) {
    tokio::time::sleep(Duration::from_nanos(at_ns.saturating_sub(now_ns()))).await;
}
