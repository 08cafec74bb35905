//! The syncs of a node, which only the node itself can count.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Flags, Histogram, Outcome, process_cpu_ns};

/// Durations of all syncs of a node, appended to the file of `--counts` when the node ends.
/// A clone counts for the same node.
#[derive(Clone, Default)]
pub struct Counts(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    syncs: Histogram,
    bytes: u64,
    path: Option<PathBuf>,
}

impl Counts {
    /// Takes `--counts`, the file to append to. Without it nothing is written.
    pub fn take(flags: &mut Flags) -> Outcome<Counts> {
        let counts = Counts::default();
        counts.lock().path = flags.take("counts")?;
        Ok(counts)
    }

    /// The file of `--counts`.
    pub fn path(&self) -> Option<PathBuf> {
        self.lock().path.clone()
    }

    /// Counts a sync that took `took_ns` nanoseconds and covered `bytes` new bytes.
    pub fn record(&self, took_ns: u64, bytes: usize) {
        let mut inner = self.lock();
        inner.syncs.record(took_ns);
        inner.bytes += bytes as u64;
    }

    /// Appends one line of JSON to the file, the first time that it is called.
    pub fn write(&self, node: &str) {
        let mut inner = self.lock();
        let Some(path) = inner.path.take() else {
            return;
        };
        let line = format!(
            "{{\"node\":\"{node}\",\"syncs\":{},\"sync_p50_ns\":{},\"sync_p99_ns\":{},\
             \"bytes\":{},\"cpu_ns\":{}}}\n",
            inner.syncs.count(),
            inner.syncs.quantile(0.5),
            inner.syncs.quantile(0.99),
            inner.bytes,
            process_cpu_ns(),
        );
        let file = OpenOptions::new().append(true).create(true).open(&path);
        if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
            let _ = writeln!(io::stderr(), "cannot write {}: {error}", path.display());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_writes_one_line_however_often_it_ends() {
        let path = std::env::temp_dir().join(format!("counts-{}", std::process::id()));
        let arguments = ["--counts".to_owned(), path.display().to_string()];
        let mut flags = Flags::parse(arguments).unwrap();
        let counts = Counts::take(&mut flags).unwrap();
        counts.record(100, 7);
        counts.record(300, 8);
        counts.write("leader");
        counts.clone().write("leader");
        let written = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(
            written.starts_with(
                r#"{"node":"leader","syncs":2,"sync_p50_ns":100,"sync_p99_ns":300,"bytes":15,"#
            ),
            "{written}"
        );
        assert_eq!(written.lines().count(), 1);
    }
}
