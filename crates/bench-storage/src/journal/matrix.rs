//! Matrix of a journal suite.

use std::path::PathBuf;
use std::time::Duration;

use bench::model::{Area, Case, Mode};
use bench::workload::surroundings::OURS;

/// Background filing of segments during the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filing {
    /// Small segments, some of which are filed all the time.
    On,
    /// Large segments, none of which is full before the window closes.
    Off,
}

/// Path of the appends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// Writers within the journal's own process.
    Process,
    /// Connections to a node.
    Door,
}

/// Parameters of a journal suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix {
    /// Paths of the appends.
    pub vias: Vec<Via>,
    /// Pairs of connections, and appends in flight on each.
    pub shapes: Vec<(u32, u32)>,
    /// Numbers of writers within the journal's process, each with one append in flight.
    pub writers: Vec<u32>,
    /// Numbers of threads that run the writers; numbers above the writers are skipped.
    pub threads: Vec<u32>,
    /// Sizes of a record in bytes.
    pub sizes: Vec<u64>,
    /// Number of streams that are appended to in turn.
    pub streams: u64,
    /// Filing modes.
    pub filing: Vec<Filing>,
    /// Length of a run.
    pub window: Duration,
    /// Runs of each case.
    pub repeats: u32,
    /// Directory on the measured disk; each run creates its own in it.
    pub directory: PathBuf,
}

impl Via {
    /// Returns the name in flags and cases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Door => "door",
        }
    }

    pub(super) fn of(case: &Case) -> Self {
        match case.parameters.get("via").map(String::as_str) {
            Some("door") => Self::Door,
            _ => Self::Process,
        }
    }
}

impl Filing {
    /// Returns the name in flags and cases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }

    /// Returns the segment size in bytes that causes this mode.
    pub(super) fn segment_size(self) -> u64 {
        match self {
            Self::On => 16 << 20,
            Self::Off => 256 << 20,
        }
    }

    pub(super) fn of(case: &Case) -> Self {
        match case.parameters.get("filing").map(String::as_str) {
            Some("off") => Self::Off,
            _ => Self::On,
        }
    }
}

impl Matrix {
    /// Returns our cases.
    pub(super) fn cases(&self) -> Vec<Case> {
        let of = |via: &Via| match via {
            Via::Process => self.process_cases(),
            Via::Door => self.door_cases(),
        };
        self.vias.iter().flat_map(of).collect()
    }

    fn door_cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for &filing in &self.filing {
            for &size in &self.sizes {
                for &(connections, in_flight) in &self.shapes {
                    let case = Case::new(OURS, Area::Journal, Mode::APPEND)
                        .clients(connections)
                        .in_flight(in_flight)
                        .size(size)
                        .parameter("via", Via::Door.name())
                        .parameter("streams", self.streams)
                        .parameter("filing", filing.name());
                    cases.push(case);
                }
            }
        }
        cases
    }

    /// Returns the cases within a process. A writer has one append in flight.
    fn process_cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for &filing in &self.filing {
            for &size in &self.sizes {
                for &writers in &self.writers {
                    for &threads in self.threads.iter().filter(|threads| **threads <= writers) {
                        let case = Case::new(OURS, Area::Journal, Mode::APPEND)
                            .clients(writers)
                            .in_flight(1)
                            .size(size)
                            .parameter("via", Via::Process.name())
                            .parameter("threads", threads)
                            .parameter("streams", self.streams)
                            .parameter("filing", filing.name());
                        cases.push(case);
                    }
                }
            }
        }
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_matrix_limits_threads_to_writers_and_varies_filing() {
        let matrix = Matrix {
            writers: vec![1, 128],
            threads: vec![1, 128],
            sizes: vec![256],
            streams: 1000,
            filing: vec![Filing::On, Filing::Off],
            window: Duration::from_secs(1),
            repeats: 5,
            directory: PathBuf::from("."),
            vias: vec![Via::Process],
            shapes: vec![(16, 8)],
        };
        let cases = matrix.cases();
        let shapes: Vec<_> = cases
            .iter()
            .map(|case| (case.clients, case.number("threads")))
            .collect();
        assert_eq!(shapes[..3], [(1, 1), (128, 1), (128, 128)]);
        assert_eq!(cases.len(), 6);
        assert_eq!(Filing::of(&cases[0]), Filing::On);
        assert_eq!(Filing::of(&cases[5]), Filing::Off);
        let door = Matrix {
            vias: vec![Via::Door],
            ..matrix
        };
        let cases = door.cases();
        assert_eq!(
            (cases.len(), cases[0].clients, cases[0].in_flight),
            (2, 16, Some(8))
        );
        assert_eq!(Via::of(&cases[0]), Via::Door);
    }
}
