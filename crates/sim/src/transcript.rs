//! Transcripts: the events of a run, in order and with their times. Two runs are equal if their
//! transcripts are.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

/// A list of lines, shared by all parts of a world. Cheap to clone.
#[derive(Clone)]
pub struct Transcript {
    start: Instant,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Transcript {
    /// Creates an empty transcript that counts time from now.
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
            lines: Arc::default(),
        }
    }

    /// Adds a line with the current time.
    pub fn note(&self, line: impl AsRef<str>) {
        let micros = self.start.elapsed().as_micros();
        self.lines
            .lock()
            .push(format!("{micros:>10} {}", line.as_ref()));
    }

    /// Returns all lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }
}
