//! Receivers that have not caught up with what a client sends: it is read again when they have.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::outlet::SlimOutlet;

/// A receiver that takes nothing for so long is not waited for.
const STALL: Duration = Duration::from_millis(100);

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Pressure {
    /// Those that should be waited for.
    pub(super) by: Vec<Arc<SlimOutlet>>,
    /// What each had taken when it was looked at last.
    taken: Vec<u64>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Pressure {
    /// Whether somebody is to be waited for.
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
            // Once more, for whoever is not waited for now and for the alarm.
            cx.waker().wake_by_ref();
        }
        true
    }
}
