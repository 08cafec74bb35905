//! Servers that a server starts: they end with it, and before it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::{Failure, Outcome, monotonic_ns};

/// Nanoseconds that a child may take to end after its stdin has ended.
const PATIENCE_NS: u64 = 5_000_000_000;

/// Running children. A clone names the same ones.
#[derive(Clone, Default)]
pub struct Children(Arc<Shared>);

#[derive(Default)]
struct Shared {
    running: Mutex<Vec<Child>>,
    is_stopping: AtomicBool,
}

impl Children {
    /// Starts a server and returns the address that it announces.
    pub fn start(&self, mut command: Command) -> Outcome<String> {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let failed = |why: String| {
            let program = command.get_program().to_string_lossy();
            Failure::run(
                format!("cannot start {program}: {why}"),
                "what it printed before says why",
            )
        };
        let mut child = spawned.map_err(|error| failed(error.to_string()))?;
        let stdout = child.stdout.take();
        self.lock().push(child);
        let mut line = String::new();
        if let Some(stdout) = stdout {
            BufReader::new(stdout)
                .read_line(&mut line)
                .map_err(|error| failed(error.to_string()))?;
        }
        line.trim()
            .strip_prefix("READY ")
            .map(str::to_owned)
            .ok_or_else(|| failed(format!("it printed {line:?} instead of READY")))
    }

    /// Ends the stdin of all, waits for them, and kills those that do not end.
    pub(super) fn stop(&self) {
        self.0.is_stopping.store(true, Ordering::SeqCst);
        let mut children = self.lock();
        for child in children.iter_mut() {
            child.stdin.take();
        }
        let end_ns = monotonic_ns() + PATIENCE_NS;
        for mut child in children.drain(..) {
            while monotonic_ns() < end_ns && matches!(child.try_wait(), Ok(None)) {
                thread::sleep(Duration::from_millis(2));
            }
            // Of a child that has ended this is an error, and nothing more.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Never returns when another thread stops the children, and so ends this process: that a
    /// child has ended is no failure then.
    pub(super) fn park_if_stopping(&self) {
        while self.0.is_stopping.load(Ordering::SeqCst) {
            thread::park();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Child>> {
        self.0
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_child_announces_its_address_and_ends_with_its_stdin() {
        let children = Children::default();
        let address = children.start(shell("echo READY here; cat"));
        assert_eq!(address.unwrap(), "here");
        let start_ns = monotonic_ns();
        children.stop();
        assert!(monotonic_ns() - start_ns < PATIENCE_NS);
        children.stop();
    }

    #[test]
    fn a_child_that_is_not_ready_is_named() {
        let failure = Children::default().start(shell("echo no")).unwrap_err();
        assert!(failure.to_string().contains("cannot start sh"), "{failure}");
    }
}
