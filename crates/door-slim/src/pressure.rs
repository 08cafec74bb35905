//! Backpressure: a client is not read from while its receivers catch up.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::outlet::SlimOutlet;

/// Senders do not wait for a receiver that has read nothing for this long.
const STALL: Duration = Duration::from_millis(100);

/// The receivers that one client waits for.
#[derive(Default)]
pub(super) struct Pressure {
    /// The receivers to wait for.
    pub(super) by: Vec<Arc<SlimOutlet>>,
    /// The number of bytes that each had read at the last check.
    taken: Vec<u64>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Pressure {
    /// Returns whether the client has to wait for a receiver.
    pub(super) fn holds(&mut self, cx: &mut Context<'_>) -> bool {
        if self.by.is_empty() {
            return false;
        }
        self.by.retain(|outlet| outlet.presses(cx.waker()));
        if self.by.is_empty() {
            self.taken.clear();
            self.alarm = None;
            return false;
        }
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(STALL)));
        if self.taken.len() != self.by.len() {
            self.taken = self.by.iter().map(|outlet| outlet.taken()).collect();
        }
        if alarm.as_mut().poll(cx).is_ready() {
            for (outlet, taken) in self.by.iter().zip(&mut self.taken) {
                let now = outlet.taken();
                if std::mem::replace(taken, now) == now {
                    outlet.give_up_waiting();
                }
            }
            alarm.as_mut().reset(Instant::now() + STALL);
            // Once more, for receivers that were given up and for the timer.
            cx.waker().wake_by_ref();
        }
        true
    }
}
