//! Rivals of a conversation suite: the floors, and the installed peers.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::Matrix;
use super::server::Kind;
use bench::measurement::Measurement;
use bench::model::Case;
use bench::workload::disk_floor;
use bench::workload::error::WorkloadError;
use bench::workload::peer::{Amount, Peer, Program};
use bench::workload::placement::Placement;
use bench::workload::surroundings::{Surroundings, temporary_directory};
use bench::workload::transport::Transport;

/// The running floors, and the available peers.
pub(super) struct Rivals {
    disk: Option<Program>,
    /// Durable echoes, which sync before they answer, and the plain echo for a single message in
    /// flight.
    echoes: Vec<Peer>,
    peers: Vec<Kind>,
    left_out: Vec<Kind>,
    versions: Vec<(&'static str, String)>,
    /// Directory of the echoes' files.
    _scratch: Option<TempDir>,
}

impl Rivals {
    /// Starts the floors. There are no rivals unless a directory of peers is given.
    ///
    /// # Errors
    /// When the floors were not built, or do not start.
    pub(super) fn start(
        surroundings: &Surroundings,
        matrix: &Matrix,
    ) -> Result<Self, WorkloadError> {
        let Some(directory) = &surroundings.peers else {
            return Ok(Self {
                disk: None,
                echoes: Vec::new(),
                peers: Vec::new(),
                left_out: Vec::new(),
                versions: Vec::new(),
                _scratch: None,
            });
        };
        let scratch = temporary_directory(&matrix.directory)?;
        let (peers, left_out): (Vec<Kind>, Vec<Kind>) = Kind::ALL
            .into_iter()
            .partition(|kind| kind.is_in(directory));
        Ok(Self {
            disk: Some(Program::DISK.in_directory(directory)?),
            echoes: echoes(directory, scratch.path(), matrix)?,
            versions: peers
                .iter()
                .filter_map(|kind| version(*kind, directory))
                .collect(),
            peers,
            left_out,
            _scratch: Some(scratch),
        })
    }

    /// Returns the cases of all rivals, in the shape of the matrix.
    pub(super) fn cases(&self, matrix: &Matrix) -> Vec<Case> {
        let mut writers = vec![1, matrix.in_flight()];
        writers.dedup();
        let disk = self.disk.iter().flat_map(|disk| {
            let case = |writers: &u32| {
                let case = matrix.case(disk.target).clients(*writers).in_flight(1);
                case.parameter("threads", 1)
            };
            writers.iter().map(case)
        });
        let echoes = self.echoes.iter().map(|echo| matrix.case(echo.target()));
        let peers = self.peers.iter().map(|kind| matrix.case(kind.target()));
        disk.chain(echoes).chain(peers).collect()
    }

    /// Runs a floor once.
    pub(super) fn measure(
        &mut self,
        case: &Case,
        matrix: &Matrix,
    ) -> Result<Measurement, WorkloadError> {
        if let Some(echo) = self
            .echoes
            .iter_mut()
            .find(|echo| echo.target() == case.target)
        {
            return echo.measure(case, Amount::Time(matrix.window));
        }
        match &self.disk {
            Some(disk) => {
                let scratch = temporary_directory(&matrix.directory)?;
                disk_floor::measure(disk, case, scratch.path(), matrix.window)
            }
            None => Err(WorkloadError::Nothing(
                format!("{} is not a floor", case.target),
                "add --peers bench/peers/bin",
            )),
        }
    }

    /// Returns the versions that the peers report.
    pub(super) fn versions(&self) -> Vec<(&'static str, String)> {
        self.versions.clone()
    }

    /// Returns the rivals' notes about their method, and a note for each missing peer.
    pub(super) fn notes(&self) -> Vec<(String, String)> {
        let floors = self.echoes.iter().flat_map(Peer::notes);
        let peers = self
            .peers
            .iter()
            .map(|kind| (kind.target().to_owned(), kind.description().to_owned()));
        let left_out = self.left_out.iter().map(|kind| {
            let words = "did not take part: it is not in the directory of peers";
            (kind.target().to_owned(), words.to_owned())
        });
        floors.chain(peers).chain(left_out).collect()
    }
}

/// Starts the durable echo with one thread and with two. For one message at a time it also starts
/// the plain echo, whose latency plus that of the disk floor is the minimum for such a message.
fn echoes(programs: &Path, files: &Path, matrix: &Matrix) -> Result<Vec<Peer>, WorkloadError> {
    let files = files.display().to_string();
    let mut echoes = Vec::new();
    let mut start = |program: Program, flags: &[&str]| -> Result<(), WorkloadError> {
        let program = program.in_directory(programs)?;
        let placement = Placement::Unpinned;
        echoes.push(Peer::start_with(
            &program,
            placement,
            Transport::Tcp,
            flags,
        )?);
        Ok(())
    };
    start(Program::DURABLE, &["--dir", &files, "--threads", "2"])?;
    start(Program::DURABLE_ONE, &["--dir", &files, "--threads", "1"])?;
    if matrix.in_flight() == 1 {
        start(Program::FLOOR, &[])?;
    }
    Ok(echoes)
}

/// Returns the first line of a server's `--version`.
fn version(kind: Kind, directory: &Path) -> Option<(&'static str, String)> {
    let program = directory.join(kind.program());
    let output = Command::new(program).arg("--version").output().ok()?;
    let output = String::from_utf8(output.stdout).ok()?;
    let line = output.lines().next()?.trim();
    (!line.is_empty()).then(|| (kind.target(), line.to_owned()))
}
