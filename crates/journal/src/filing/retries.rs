//! Retries of background work after growing pauses.

use super::FilingError;

/// Pause after the first failure, in milliseconds.
const PAUSE_MS_MIN: u64 = 250;

/// Longest pause in milliseconds. A journal recovers within this time after a shortage ends.
const PAUSE_MS_MAX: u64 = 10_000;

/// A kind of work that is retried on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Recycling or removing unused files.
    Clearing,
    /// Preparing a spare for a line without one.
    Feeding,
    /// Writing the extents of a sealed segment.
    Filing,
    /// Merging extents.
    Merging,
    /// Counting dead bytes.
    Counting,
    /// Work that is not urgent: the reserve and further spares.
    Tidying,
}

const TASKS: usize = 6;

/// Failures of each task since its last success.
#[derive(Debug, Default)]
pub(super) struct Retries([Option<TaskFailure>; TASKS]);

#[derive(Debug)]
struct TaskFailure {
    count: u32,
    until_ms: u64,
    reason: String,
}

impl Retries {
    /// Returns true if the task may run now.
    pub(super) fn is_due(&self, task: Task, now_ms: u64) -> bool {
        let failure = &self.0[task as usize];
        failure.as_ref().is_none_or(|it| it.until_ms <= now_ms)
    }

    /// Records a failure: the task pauses twice as long as the last time.
    pub(super) fn fail(&mut self, task: Task, now_ms: u64, error: &FilingError) {
        let slot = &mut self.0[task as usize];
        let count = slot.as_ref().map_or(0, |it| it.count);
        let pause_ms = PAUSE_MS_MIN.checked_shl(count).unwrap_or(PAUSE_MS_MAX);
        *slot = Some(TaskFailure {
            count: count.saturating_add(1).min(32),
            until_ms: now_ms.saturating_add(pause_ms.min(PAUSE_MS_MAX)),
            reason: error.to_string(),
        });
    }

    /// Records that the task has succeeded or has nothing to do.
    pub(super) fn clear(&mut self, task: Task) {
        self.0[task as usize] = None;
    }

    /// Returns when the first failed task may run again.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.0.iter().flatten().map(|it| it.until_ms).min()
    }

    /// Returns the error of the most important failed task.
    pub(super) fn reason(&self) -> Option<&str> {
        self.0.iter().flatten().map(|it| &*it.reason).next()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_restart_after_success() {
        let mut retries = Retries::default();
        let error = FilingError::Io(io::Error::other("no descriptor"));
        let mut now_ms = 1_000;
        let mut pauses = Vec::new();
        for _ in 0..40 {
            assert!(retries.is_due(Task::Filing, now_ms));
            retries.fail(Task::Filing, now_ms, &error);
            let due_ms = retries.due_ms().unwrap();
            assert!(!retries.is_due(Task::Filing, due_ms - 1));
            pauses.push(due_ms - now_ms);
            now_ms = due_ms;
        }
        assert_eq!(pauses[..7], [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000]);
        assert_eq!(pauses[39], 10_000);
        assert_eq!(retries.reason(), Some("no descriptor"));
        assert!(retries.is_due(Task::Merging, 0), "other work continues");
        retries.clear(Task::Filing);
        assert_eq!((retries.due_ms(), retries.reason()), (None, None));
    }
}
