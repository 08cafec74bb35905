//! Floors of a Kafka suite, the minimum work that a message needs: a sync, an echo that syncs
//! before it answers, a plain echo, a stream from memory.

use tempfile::TempDir;

use super::matrix::{Doing, Matrix, Plan, Subject, Target};
use bench::measurement::Measurement;
use bench::model::{Case, Mode};
use bench::workload::disk_floor;
use bench::workload::error::WorkloadError;
use bench::workload::peer::{Amount, Peer, Program};
use bench::workload::placement::Placement;
use bench::workload::surroundings::{Surroundings, temporary_directory};
use bench::workload::transport::Transport;

/// The running floors.
pub(super) struct Floors {
    disk: Program,
    echoes: Vec<Peer>,
    /// Directory of the echoes' files.
    _scratch: TempDir,
}

impl Floors {
    /// Starts the floors if a directory of peers is given.
    ///
    /// # Errors
    /// When the floors were not built, or do not start.
    pub(super) fn start(
        surroundings: &Surroundings,
        matrix: &Matrix,
    ) -> Result<Option<Self>, WorkloadError> {
        let Some(programs) = &surroundings.peers else {
            return Ok(None);
        };
        let scratch = temporary_directory(&matrix.directory)?;
        let files = scratch.path().display().to_string();
        let start = |program: Program, flags: &[&str]| {
            let program = program.in_directory(programs)?;
            Peer::start_with(&program, Placement::Unpinned, Transport::Tcp, flags)
        };
        let echoes = match matrix.subject {
            Subject::Cluster(_) => vec![
                start(Program::QUORUM, &["--dir", &files])?,
                start(Program::FLOOR, &[])?,
                start(Program::STREAM, &[])?,
            ],
            Subject::Node | Subject::Broker(_) => vec![
                start(Program::DURABLE, &["--dir", &files, "--threads", "2"])?,
                start(Program::DURABLE_ONE, &["--dir", &files, "--threads", "1"])?,
                start(Program::FLOOR, &[])?,
                start(Program::STREAM, &[])?,
            ],
        };
        Ok(Some(Self {
            disk: Program::DISK.in_directory(programs)?,
            echoes,
            _scratch: scratch,
        }))
    }

    /// Returns the floors of a case of the subject.
    pub(super) fn cases(&self, plan: &Plan) -> Vec<Case> {
        let like = |target: &str| Case {
            target: target.to_owned(),
            mode: Mode::APPEND,
            rate: 0,
            parameters: std::collections::BTreeMap::new(),
            ..plan.case.clone()
        };
        let under_way = plan.case.clients * plan.case.in_flight.unwrap_or(1);
        let disk = like(self.disk.target);
        let disk = disk.clients(under_way).in_flight(1).parameter("threads", 1);
        // A single message needs a sync and two round trips; many need an echo that does both.
        let (plain, stream) = (Program::FLOOR.target, Program::STREAM.target);
        let is_wanted = |target: &str| match plan.doing {
            Doing::Produce | Doing::Connections => target != plain && target != stream,
            Doing::EndToEnd => target == plain,
            Doing::Consume => target == stream,
            Doing::Bulk => false,
        };
        // A sync of one node is less than a cluster needs.
        let is_cluster = matches!(plan.target, Target::Cluster(_));
        let wants_disk = !is_cluster && !matches!(plan.doing, Doing::Bulk | Doing::Consume);
        let echoes = self.echoes.iter().map(Peer::target);
        let echoes = echoes.filter(|target| is_wanted(target)).map(like);
        wants_disk
            .then_some(disk)
            .into_iter()
            .chain(echoes)
            .collect()
    }

    /// Runs a floor once.
    pub(super) fn measure(
        &mut self,
        case: &Case,
        matrix: &Matrix,
    ) -> Result<Measurement, WorkloadError> {
        let mut echoes = self.echoes.iter_mut();
        if let Some(echo) = echoes.find(|echo| echo.target() == case.target) {
            return echo.measure(case, Amount::Time(matrix.window));
        }
        let scratch = temporary_directory(&matrix.directory)?;
        disk_floor::measure(&self.disk, case, scratch.path(), matrix.window)
    }

    /// Returns the floors' notes about their method.
    pub(super) fn notes(&self) -> Vec<(String, String)> {
        self.echoes.iter().flat_map(Peer::notes).collect()
    }
}
