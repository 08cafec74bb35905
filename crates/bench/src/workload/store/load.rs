//! Append role: virtual users that join one after the other, each with its own window of messages.

mod durable_streams;
mod http;
mod line;
mod native;
mod redis;
mod turn;
mod ws;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::LocalSet;

use self::turn::Turn;
use super::{Appended, LoadSpec, STEADY, Way};
use crate::clock::now_ns;
use crate::tally::Tally;
use crate::workload::role::{Failure, Ready, hear, runtime, say};

/// Plays the role.
///
/// # Errors
/// When the server cannot be reached.
pub(crate) fn play(spec: &LoadSpec) -> Result<(), Failure> {
    let local = LocalSet::new();
    local.block_on(&runtime()?, play_on_runtime(spec))?;
    // The suite reads this process's memory before it ends.
    hear()?;
    Ok(())
}

async fn play_on_runtime(spec: &LoadSpec) -> Result<(), Failure> {
    let opened_ns = now_ns();
    let mut users = Vec::new();
    for vu in 0..spec.vus {
        users.push(open(spec, vu).await?);
    }
    say(&Ready {
        address: None,
        setup_ns: now_ns() - opened_ns,
    })?;
    if hear()?.is_some() {
        say(&append(spec, users).await?)?;
    }
    Ok(())
}

/// Opens the slots of one user's window.
async fn open(spec: &LoadSpec, vu: u32) -> Result<Vec<Place>, Failure> {
    Ok(match spec.way {
        Way::Native => native::open(spec, vu).await?.map(Place::Native).collect(),
        Way::Http => {
            let turn = Turn::of(spec, vu);
            let mut places = Vec::new();
            for place in 0..spec.pipeline {
                let opened = http::Place::open(spec, vu, place, turn.clone());
                places.push(Place::Http(opened.await?));
            }
            places
        }
        Way::Ws => ws::open(spec, vu).await?.map(Place::Ws).collect(),
        Way::Redis => redis::open(spec, vu).await?.map(Place::Redis).collect(),
        Way::DurableStreams => {
            let mut places = Vec::new();
            for _ in 0..spec.pipeline {
                places.push(Place::DurableStreams(
                    durable_streams::Place::open(spec, vu).await?,
                ));
            }
            places
        }
    })
}

/// A slot in a window: sends a message and waits until it is acknowledged.
enum Place {
    Native(native::Place),
    Http(http::Place),
    Ws(ws::Place),
    Redis(redis::Place),
    DurableStreams(durable_streams::Place),
}

impl Place {
    /// Prepares the slot when its user joins. Its connection may have been idle for long.
    async fn join(&mut self) {
        match self {
            Self::Http(place) => place.join().await,
            Self::DurableStreams(place) => place.join().await,
            Self::Native(_) | Self::Ws(_) | Self::Redis(_) => {}
        }
    }

    /// Appends the slot's next message. The error is a stable word for the tally.
    async fn append(&mut self) -> Result<(), String> {
        match self {
            Self::Native(place) => place.append().await,
            Self::Http(place) => place.append().await,
            Self::Ws(place) => place.append().await,
            Self::Redis(place) => place.append().await,
            Self::DurableStreams(place) => place.append().await,
        }
    }
}

/// Runs every slot from when its user joins until the window closes.
async fn append(spec: &LoadSpec, users: Vec<Vec<Place>>) -> Result<Appended, Failure> {
    let begin_ns = now_ns();
    let open_ns = begin_ns + spec.ramp_ns;
    let end_ns = open_ns + spec.window_ns;
    let tally = Rc::new(RefCell::new(Tally::new()));
    let mut tasks = Vec::new();
    for (vu, places) in users.into_iter().enumerate() {
        let join_ns = begin_ns + spec.ramp_ns * vu as u64 / u64::from(spec.vus);
        for place in places {
            let times = Times {
                join_ns,
                open_ns,
                end_ns,
            };
            tasks.push(tokio::task::spawn_local(keep_busy(
                place,
                times,
                tally.clone(),
            )));
        }
    }
    sleep_until(open_ns).await;
    say(&STEADY)?;
    for task in tasks {
        task.await?;
    }
    Ok(Appended {
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

async fn keep_busy(mut place: Place, times: Times, tally: Rc<RefCell<Tally>>) {
    sleep_until(times.join_ns).await;
    place.join().await;
    let mut start_ns = now_ns();
    while start_ns < times.end_ns {
        let is_counted = start_ns >= times.open_ns;
        if is_counted {
            tally.borrow_mut().sent();
        }
        let outcome = place.append().await;
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
