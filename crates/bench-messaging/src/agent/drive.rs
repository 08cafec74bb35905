//! Send loops of a client: on a schedule, in a closed loop, or as fast as the connection accepts
//! messages.
//!
//! A paced client sleeps on its own thread until the next message is due, which uses no CPU. It
//! asks the kernel to wake it without timer slack. The remaining delay is recorded as lag.

use std::num::NonZeroU64;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::runtime::Runtime;

use bench::pacing::Schedule;
use bench::tally::{Departure, Tally};
use meter::clock::now_ns;

/// Messages between two clock readings when a client sends as fast as it can.
const BURST: u32 = 64;

/// A connected client that can send messages.
pub(super) trait Exchange {
    /// Exchanges one message to its end. The error is a stable word.
    async fn send_one(&self) -> Result<(), &'static str>;

    /// Returns true if a message is complete when it is handed over.
    fn is_one_way(&self) -> bool;
}

/// Pacing of a client.
pub(super) struct SendLoop {
    /// Send schedule of a paced client.
    pub(super) schedule: Option<Schedule>,
    /// Length of the send window.
    pub(super) window_ns: u64,
    /// Messages in flight of an unpaced client that waits for answers.
    pub(super) in_flight: u32,
}

impl SendLoop {
    /// Sends until the end of the window.
    pub(super) fn run(&self, client: &impl Exchange, runtime: &Runtime) -> Tally {
        match self.schedule {
            Some(schedule) => self.paced(client, runtime, schedule),
            None if client.is_one_way() => runtime.block_on(self.flood(client)),
            None => runtime.block_on(self.closed(client)),
        }
    }

    /// Sends on a schedule.
    fn paced(&self, client: &impl Exchange, runtime: &Runtime, schedule: Schedule) -> Tally {
        // If the kernel refuses this, the lag shows it.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut tally = Tally::new();
        let start_ns = now_ns();
        let mut ready_ns = start_ns;
        for index in 0..schedule.count_within(self.window_ns) {
            let intended_ns = start_ns + schedule.intended_ns(index);
            let wait_ns = intended_ns.saturating_sub(now_ns());
            if wait_ns > 0 {
                std::thread::sleep(Duration::from_nanos(wait_ns));
            }
            let departure = Departure {
                intended_ns,
                ready_ns,
                sent_ns: now_ns(),
            };
            tally.sent_paced(departure);
            let outcome = runtime.block_on(async {
                let outcome = client.send_one().await;
                if client.is_one_way() {
                    // Let the connection's task write.
                    tokio::task::yield_now().await;
                }
                outcome
            });
            ready_ns = now_ns();
            match outcome {
                Ok(()) if client.is_one_way() => tally.completed(ready_ns),
                Ok(()) => tally.answered_paced(departure, ready_ns),
                Err(kind) => tally.failed(kind),
            }
        }
        tally
    }

    /// Sends in a closed loop with `in_flight` messages in flight.
    async fn closed(&self, client: &impl Exchange) -> Tally {
        let end_ns = now_ns() + self.window_ns;
        let worker = async || {
            let mut tally = Tally::new();
            let mut sent_ns = now_ns();
            while sent_ns < end_ns {
                tally.sent();
                let outcome = client.send_one().await;
                let done_ns = now_ns();
                match outcome {
                    Ok(()) => tally.answered(sent_ns, done_ns),
                    Err(kind) => tally.failed(kind),
                }
                sent_ns = done_ns;
            }
            tally
        };
        let workers = (0..self.in_flight.max(1)).map(|_| worker());
        let mut total = Tally::new();
        for tally in join_all(workers).await {
            total.merge(tally);
        }
        total
    }

    /// Sends one-way messages as fast as the connection accepts them.
    async fn flood(&self, client: &impl Exchange) -> Tally {
        let mut tally = Tally::new();
        let mut at_ns = now_ns();
        let end_ns = at_ns + self.window_ns;
        while at_ns < end_ns {
            for _ in 0..BURST {
                tally.sent();
                match client.send_one().await {
                    Ok(()) => tally.completed(at_ns),
                    Err(kind) => tally.failed(kind),
                }
            }
            tokio::task::yield_now().await;
            at_ns = now_ns();
        }
        tally
    }
}
