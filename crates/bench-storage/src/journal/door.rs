//! Role that appends through a node's native listener.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use client::{Client, RecordStream};
use tokio::task::LocalSet;

use super::{AppendCounts, DoorSpec};
use bench::tally::Tally;
use bench::workload::role::{Failure, Ready, read_line, runtime, write_line};
use meter::clock::now_ns;

/// Duration of the warm-up.
const WARM_UP: Duration = Duration::from_millis(300);

/// Plays the role.
///
/// # Errors
/// When the node cannot be reached.
pub fn append(spec: &DoorSpec) -> Result<(), Failure> {
    let local = LocalSet::new();
    local.block_on(&runtime()?, append_on_runtime(spec))?;
    // The suite reads this process's memory before it ends.
    read_line()?;
    Ok(())
}

async fn append_on_runtime(spec: &DoorSpec) -> Result<(), Failure> {
    let opened_ns = now_ns();
    let mut clients = Vec::new();
    for _ in 0..spec.connections {
        clients.push(Client::builder().connect(&spec.node).await?);
    }
    append_for(&clients, spec, WARM_UP).await?;
    write_line(&Ready {
        address: None,
        setup_ns: now_ns() - opened_ns,
    })?;
    if read_line()?.is_some() {
        let begin_ns = now_ns();
        let tally = append_for(&clients, spec, Duration::from_nanos(spec.window_ns)).await?;
        write_line(&AppendCounts {
            tally,
            window_ns: now_ns() - begin_ns,
        })?;
    }
    Ok(())
}

/// Runs every slot of every connection's window for the given time.
async fn append_for(
    clients: &[Client],
    spec: &DoorSpec,
    window: Duration,
) -> Result<Tally, Failure> {
    let tally = Rc::new(RefCell::new(Tally::new()));
    let end_ns = now_ns() + window.as_nanos() as u64;
    let mut tasks = Vec::new();
    for (connection, client) in clients.iter().enumerate() {
        for index in 0..spec.in_flight as usize {
            let number = connection * spec.in_flight as usize + index;
            let name = format!("bench/journal/s{}", number as u64 % spec.streams.max(1));
            let slot = WindowSlot {
                stream: client.stream(&name)?,
                payload: vec![number as u8; spec.size],
                tally: tally.clone(),
            };
            tasks.push(tokio::task::spawn_local(slot.append_until(end_ns)));
        }
    }
    for task in tasks {
        task.await?;
    }
    Ok(tally.take())
}

/// A slot in the window of a connection.
struct WindowSlot {
    stream: RecordStream,
    payload: Vec<u8>,
    tally: Rc<RefCell<Tally>>,
}

impl WindowSlot {
    async fn append_until(self, end_ns: u64) {
        let mut start_ns = now_ns();
        while start_ns < end_ns {
            self.tally.borrow_mut().sent();
            let outcome = self.stream.append(&[&self.payload]).await;
            let done_ns = now_ns();
            let mut tally = self.tally.borrow_mut();
            match outcome {
                Ok(_) => tally.answered(start_ns, done_ns),
                Err(error) => tally.failed(error.code.as_str()),
            }
            start_ns = done_ns;
        }
    }
}
