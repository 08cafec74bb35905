//! Calls of one run: the remaining number, and the outcomes.

use client::{CallError, ErrorCode};

use super::{Amount, CallCounts};
use bench::tally::Tally;
use meter::clock::now_ns;

/// Counter of a run's calls and their outcomes.
pub(super) struct Calls {
    pub(super) start_ns: u64,
    end_ns: u64,
    left: u64,
    tally: Tally,
    done_ns: u64,
    first_failure: Option<CallError>,
}

impl Calls {
    /// Opens the window.
    pub(super) fn begin(amount: Amount) -> Self {
        let start_ns = now_ns();
        let (end_ns, left) = match amount {
            Amount::Window(window) => (start_ns + window.as_nanos() as u64, u64::MAX),
            Amount::Calls(calls) => (u64::MAX, calls),
        };
        Self {
            start_ns,
            end_ns,
            left,
            tally: Tally::new(),
            done_ns: start_ns,
            first_failure: None,
        }
    }

    /// Returns true if another call begins now, and counts it as sent.
    pub(super) fn next(&mut self, now_ns: u64) -> bool {
        let more = self.left > 0 && now_ns < self.end_ns;
        if more {
            self.left -= 1;
            self.tally.sent();
        }
        more
    }

    /// Counts the outcome of a call.
    pub(super) fn ended(&mut self, sent_ns: u64, done_ns: u64, outcome: Result<(), CallError>) {
        self.done_ns = done_ns;
        match outcome {
            Ok(()) => self.tally.answered(sent_ns, done_ns),
            Err(error) => {
                self.tally.failed(error.code.as_str());
                self.first_failure.get_or_insert(error);
            }
        }
    }

    /// Fails with the first failed call.
    pub(super) fn into_result(self) -> Result<(), CallError> {
        self.first_failure.map_or(Ok(()), Err)
    }

    /// Returns the counts for the suite; the window ends with the last reply.
    pub(super) fn into_called(self) -> CallCounts {
        if let Some(error) = &self.first_failure {
            eprintln!("the first failure: {error}");
        }
        CallCounts {
            tally: self.tally,
            window_ns: self.done_ns - self.start_ns,
        }
    }
}

/// Checks the size of an echoed reply.
pub(super) fn check(reply: &[u8], size: usize) -> Result<(), CallError> {
    match reply.len() == size {
        true => Ok(()),
        false => {
            let message = format!("a reply of {} bytes to a body of {size}", reply.len());
            Err(CallError::new(ErrorCode::Internal, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_run_ends_after_its_last_call_or_its_time() {
        let mut calls = Calls::begin(Amount::Calls(2));
        assert_eq!(
            [0, u64::MAX - 1, 0].map(|now| calls.next(now)),
            [true, true, false]
        );
        let mut calls = Calls::begin(Amount::Window(Duration::from_secs(1)));
        let end_ns = calls.start_ns + 1_000_000_000;
        assert_eq!(
            [end_ns - 1, end_ns].map(|now| calls.next(now)),
            [true, false]
        );
    }

    #[test]
    fn a_reply_with_an_unexpected_size_is_a_failure() {
        let mut calls = Calls::begin(Amount::Calls(1));
        let start_ns = calls.start_ns;
        assert!(calls.next(start_ns));
        calls.ended(start_ns, start_ns + 5, check(b"abc", 4));
        let called = calls.into_called();
        assert_eq!(called.window_ns, 5);
        let measured = called.tally.over(5);
        assert_eq!(
            (measured.completed, measured.errors.get("internal")),
            (0, Some(&1))
        );
    }
}
