//! Two nodes, and what a consensus of both knows.

use std::collections::VecDeque;
use std::sync::Arc;

use journal::disk::SimulatedDisk;
use journal::disk::simulated::Fault;
use journal::filing::Step;
use journal::{
    Commit, DecidedBlock, Health, Index, Journal, LineStep, Options, ShardId, SteppedJournal,
    StreamId, Ticket, Vote,
};

use crate::model::Payload;
use crate::world::End;

/// Attempts until something that needs several steps is done, or has failed.
pub(super) const ATTEMPTS: usize = 10_000;

/// A node with its disk.
pub(super) struct Replica {
    pub(super) disk: SimulatedDisk,
    pub(super) running: Option<SteppedJournal>,
    /// Calls to the disk fail, so errors are expected.
    pub(super) is_disturbed: bool,
}

/// A record of a leader that is not known to be committed.
pub(super) struct Waiting {
    pub(super) replica: usize,
    pub(super) ticket: Ticket,
    pub(super) stream: StreamId,
    pub(super) offset: u64,
    pub(super) payload: Payload,
}

/// A shard on both nodes.
#[derive(Default)]
pub(super) struct Shard {
    pub(super) leader: Option<usize>,
    pub(super) term: u64,
    /// Blocks that consensus has and that are not appended.
    pub(super) offered: VecDeque<DecidedBlock>,
    pub(super) committed: Vec<DecidedBlock>,
    pub(super) waiting: Vec<Waiting>,
    /// Last block that each node acknowledged as written.
    pub(super) acked: [u64; 2],
    /// Last vote that each node answered, and those that it was asked to save.
    pub(super) voted: [Option<Vote>; 2],
    pub(super) asked: [Vec<Vote>; 2],
}

pub(super) struct Pair {
    pub(super) rng: fastrand::Rng,
    pub(super) replicas: [Replica; 2],
    pub(super) shards: Vec<Shard>,
    pub(super) hold_size: u64,
    pub(super) payloads: u64,
    pub(super) now_ms: u64,
}

impl Pair {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut replica = || Replica {
            disk: SimulatedDisk::new(rng.u64(..)),
            running: None,
            is_disturbed: false,
        };
        let replicas = [replica(), replica()];
        let mut pair = Self {
            replicas,
            shards: (0..rng.usize(1..3)).map(|_| Shard::default()).collect(),
            hold_size: *[0, 64 << 10].get(rng.usize(..2)).unwrap_or(&0),
            payloads: 0,
            now_ms: 1_700_000_000_000,
            rng,
        };
        pair.open(0);
        pair.open(1);
        pair.elect_all();
        pair
    }

    pub(super) fn open(&mut self, replica: usize) {
        let options = Options {
            journal_id: 7 + replica as u64,
            entropy: self.rng.u64(..),
            shard_count: self.shards.len() as u16,
            segment_size: 32 << 10,
            tail_bytes_max: *[0, 1 << 20].get(self.rng.usize(..2)).unwrap_or(&0),
            hold_size: self.hold_size,
            reserve_size: 4096,
            commit: Commit::ByCaller,
            ..Options::default()
        };
        let disk = Arc::new(self.replicas[replica].disk.clone());
        let opened = match Journal::open_stepped(disk, &options) {
            Ok(opened) => opened,
            Err(error) => panic!("replica {replica}: {error}"),
        };
        self.replicas[replica].running = Some(opened);
        for number in 0..self.shards.len() {
            self.check_opened(replica, number);
        }
    }

    /// Runs a random action.
    pub(super) fn act(&mut self) {
        self.now_ms += self.rng.u64(..500);
        let number = self.rng.usize(..self.shards.len());
        let replica = self.rng.usize(..2);
        match self.rng.u8(..100) {
            0..30 => self.write(number),
            30..45 => self.propose(number),
            45..60 => self.replicate(number),
            60..80 => drop(self.step_line(replica)),
            80..88 => drop(self.step_filer(replica)),
            88..97 => self.commit(number),
            97..99 => self.elect(number),
            _ => self.replicas[replica].disk.write_back(&mut self.rng),
        }
    }

    pub(super) fn are_healthy(&self) -> bool {
        let is_healthy = |it: &Replica| !matches!(it.journal().health(), Health::Failed { .. });
        self.replicas.iter().all(is_healthy)
    }

    pub(super) fn step_line(&mut self, replica: usize) -> LineStep {
        let replica = &mut self.replicas[replica];
        let step = replica.running().line.step();
        assert!(step != LineStep::Failed || replica.is_disturbed);
        step
    }

    pub(super) fn step_filer(&mut self, replica: usize) -> Step {
        let now_ms = self.now_ms;
        let replica = &mut self.replicas[replica];
        let step = replica.running().background.step(now_ms);
        assert!(step != Step::Failed || replica.is_disturbed);
        step
    }

    /// Stops a node's disk from some call on, lets both run, and starts the node again.
    pub(super) fn crash(&mut self) {
        let crashed = self.rng.usize(..2);
        let end = End::draw(&mut self.rng);
        let replica = &mut self.replicas[crashed];
        let call = replica.disk.calls() + self.rng.u64(..60);
        replica.is_disturbed = true;
        replica.disk.fail_once(Fault::Full, move |at| {
            at.number == call && !end.may_follow(at.kind)
        });
        replica
            .disk
            .fail_once(Fault::Broken, move |at| at.number == call);
        replica
            .disk
            .fail_always(Fault::Full, move |at| at.number > call);
        for _ in 0..self.rng.usize(..60) {
            self.act();
        }
        (0..self.shards.len()).for_each(|number| {
            self.commit(number);
            self.shards[number]
                .waiting
                .retain(|it| it.replica != crashed);
        });
        let replica = &mut self.replicas[crashed];
        replica.running = None;
        match end {
            End::Crash => replica.disk.crash(&mut self.rng),
            End::Kill => replica.disk.kill(),
        }
        replica.disk.heal();
        replica.is_disturbed = false;
        self.open(crashed);
        self.elect_all();
    }

    /// Lets both nodes finish, and checks that they have the same streams.
    pub(super) fn finish(&mut self) {
        self.settle();
        for number in 0..self.shards.len() {
            let (id, committed) = (ShardId(number as u16), self.shards[number].committed.len());
            for replica in &self.replicas {
                replica.journal().commit(id, Index(committed as u64));
            }
            self.check_waiting(number);
        }
        self.check();
    }

    /// Lets both nodes finish: everything is committed.
    pub(super) fn settle(&mut self) {
        for _ in 0..ATTEMPTS {
            for number in 0..self.shards.len() {
                self.propose(number);
                self.replicate(number);
                self.commit(number);
            }
            for replica in 0..2 {
                self.step_line(replica);
                self.step_filer(replica);
            }
            self.now_ms += 100;
            if (0..self.shards.len()).all(|number| self.is_settled(number)) {
                return;
            }
        }
        panic!("the nodes never agree");
    }
}

impl Replica {
    pub(super) fn journal(&self) -> &Journal {
        match &self.running {
            Some(running) => &running.journal,
            None => panic!("the node does not run"),
        }
    }

    pub(super) fn running(&mut self) -> &mut SteppedJournal {
        match &mut self.running {
            Some(running) => running,
            None => panic!("the node does not run"),
        }
    }
}
