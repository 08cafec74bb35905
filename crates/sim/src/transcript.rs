//! What happened, in order and with its time: two runs are the same when their transcripts are.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

/// A list of lines that everybody in a world writes to. Cheap to clone.
#[derive(Clone)]
pub struct Transcript {
    start: Instant,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Transcript {
    /// An empty one that counts time from now.
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
            lines: Arc::default(),
        }
    }

    /// Adds a line.
    pub fn note(&self, line: impl AsRef<str>) {
        let micros = self.start.elapsed().as_micros();
        self.lines
            .lock()
            .push(format!("{micros:>10} {}", line.as_ref()));
    }

    /// Every line so far.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }
}
