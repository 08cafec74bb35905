//! What a suite of Kafka benchmarks runs.

use std::path::PathBuf;
use std::time::Duration;

use super::{
    Acks, BULK, CONNECTIONS, CONSUME, END_TO_END, KeyPattern, PRODUCE, Packing, PayloadPattern,
    ProduceSpec, Work,
};
use crate::model::{Area, Case, Mode};
use crate::workload::OURS;

/// Which broker is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A node of ours.
    Node,
    /// One that runs already: `HOST:PORT`.
    Broker(String),
}

/// What a node's acknowledgement of a topic means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It is on disk.
    Disk,
    /// It is not yet.
    Memory,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Producers over one connection.
    Produce,
    /// A connection for each of them.
    Connections,
    /// As much as goes through.
    Bulk,
    /// Reading.
    Consume,
    /// From a producer to a consumer.
    EndToEnd,
}

/// A topic that is used in place of one for each run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// Whether it is made first, if it is not there.
    pub create: bool,
    /// Whether it is removed in the end.
    pub delete: bool,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix {
    /// Which broker.
    pub subject: Subject,
    /// Of a node's topics.
    pub durabilities: Vec<Durability>,
    /// What is done.
    pub doings: Vec<Doing>,
    /// Producers that each wait for the ack of their message.
    pub producers: u32,
    /// Bytes of a payload.
    pub size: usize,
    /// What their acks wait for.
    pub acks: Vec<Acks>,
    /// How their batches are compressed.
    pub packings: Vec<Packing>,
    /// How long a batch waits for further messages.
    pub linger: Duration,
    /// Bytes of a batch.
    pub batch_size: usize,
    /// Requests under way on a connection.
    pub requests_max: usize,
    /// Messages per second of all producers; 0 is as fast as they are acknowledged.
    pub rate: u64,
    /// Messages of a run at most; 0 is as many as there is time for.
    pub messages: u64,
    /// What keys are.
    pub key: KeyPattern,
    /// What payloads are.
    pub payload: PayloadPattern,
    /// Of each topic.
    pub partitions: i32,
    /// Replicas of each partition.
    pub replicas: i16,
    /// A topic of somebody's own.
    pub topic: Option<Topic>,
    /// What comes before a run and is not counted.
    pub warmup: Duration,
    /// Length of a run.
    pub window: Duration,
    /// Runs of each case.
    pub repeats: u32,
    /// Whether what was acknowledged is read back.
    pub verify: bool,
    /// A directory on the disk that is measured, for the data of brokers that are started.
    pub directory: PathBuf,
}

/// Connections of the bulk mode, and what each has under way: more than its requests hold.
const BULK_CONNECTIONS: u32 = 8;
const BULK_IN_FLIGHT: u32 = 512;
const BULK_SIZE: usize = 1024;
const BULK_BATCH_SIZE: usize = 64 << 10;
const BULK_LINGER: Duration = Duration::from_millis(5);
/// What a topic is filled with before it is consumed.
const FILLED_BYTES: u64 = 128 << 20;

/// Against whom a case is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Node(Durability),
    Given,
    Kafka,
    /// Apache Kafka, syncing every message.
    KafkaFlush,
}

impl Target {
    /// The name in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Node(_) => OURS,
            Self::Given => "broker",
            Self::Kafka => "kafka",
            Self::KafkaFlush => "kafka-flush",
        }
    }

    /// What its topics are made with.
    pub(super) fn configs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Node(Durability::Memory) => &[("telpher.durability", "memory")],
            Self::KafkaFlush => &[("flush.messages", "1")],
            Self::Node(Durability::Disk) | Self::Given | Self::Kafka => &[],
        }
    }

    /// Whether it differs from another only in how it writes.
    fn reads_as_another(self) -> bool {
        matches!(self, Self::Node(Durability::Memory) | Self::KafkaFlush)
    }
}

/// A case and everything that it takes to run it.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) case: Case,
    pub(super) target: Target,
    pub(super) doing: Doing,
    acks: Acks,
    packing: Packing,
}

impl Durability {
    /// The name in flags and cases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Memory => "memory",
        }
    }
}

impl Doing {
    /// The mode of its cases.
    pub(super) fn mode(self) -> Mode {
        match self {
            Self::Produce => PRODUCE,
            Self::Connections => CONNECTIONS,
            Self::Bulk => BULK,
            Self::Consume => CONSUME,
            Self::EndToEnd => END_TO_END,
        }
    }

    /// Whether what is acknowledged can be read back.
    pub(super) fn produces(self) -> bool {
        self != Self::Consume
    }
}

impl Matrix {
    /// Who is measured, whether or not others are.
    pub(super) fn subjects(&self) -> Vec<Target> {
        match self.subject {
            Subject::Node => self
                .durabilities
                .iter()
                .copied()
                .map(Target::Node)
                .collect(),
            Subject::Broker(_) => vec![Target::Given],
        }
    }

    /// Every case of `targets`, those of a kind behind each other, so that they take turns.
    pub(super) fn plans(&self, targets: &[Target]) -> Vec<Plan> {
        let mut plans = Vec::new();
        for &doing in &self.doings {
            for acks in self.acks_of(doing) {
                for &packing in self.packings_of(doing) {
                    let all = targets.iter().copied();
                    let fit = |target: &Target| {
                        doing.produces() || !target.reads_as_another() || targets.len() == 1
                    };
                    let plan = |target| self.plan(target, doing, acks, packing);
                    plans.extend(all.filter(fit).map(plan));
                }
            }
        }
        plans
    }

    fn acks_of(&self, doing: Doing) -> Vec<Acks> {
        let first = self.acks.first().copied();
        match doing {
            Doing::Produce | Doing::Connections | Doing::Bulk => self.acks.clone(),
            // A message that nobody acknowledges is not awaited.
            Doing::EndToEnd => {
                let acks = self.acks.iter().copied().filter(|acks| *acks != Acks::None);
                acks.collect()
            }
            Doing::Consume => first.into_iter().collect(),
        }
    }

    fn packings_of(&self, doing: Doing) -> &[Packing] {
        match doing {
            Doing::Produce | Doing::Connections | Doing::Bulk => &self.packings,
            Doing::Consume | Doing::EndToEnd => &[Packing::None],
        }
    }

    fn plan(&self, target: Target, doing: Doing, acks: Acks, packing: Packing) -> Plan {
        let (connections, in_flight, size) = self.shape(doing);
        let mut case = Case::new(target.name(), Area::Kafka, doing.mode())
            .clients(connections)
            .in_flight(in_flight)
            .size(size as u64);
        if matches!(doing, Doing::Produce | Doing::Connections) {
            case = case.rate(self.rate);
        }
        if doing.produces() {
            case = case.parameter("acks", acks.name());
        }
        if packing != Packing::None {
            case = case.parameter("compression", packing.name());
        }
        if self.partitions != 1 {
            case = case.parameter("partitions", self.partitions);
        }
        if let Target::Node(durability) = target {
            case = case.parameter("durability", durability.name());
        }
        Plan {
            case,
            target,
            doing,
            acks,
            packing,
        }
    }

    /// Connections, messages that each has under way, and bytes of a payload.
    fn shape(&self, doing: Doing) -> (u32, u32, usize) {
        match doing {
            Doing::Produce => (1, self.producers, self.size),
            Doing::Connections => (self.producers, 1, self.size),
            Doing::Bulk => (BULK_CONNECTIONS, BULK_IN_FLIGHT, BULK_SIZE),
            Doing::Consume => (1, 1, BULK_SIZE),
            Doing::EndToEnd => (1, 1, self.size),
        }
    }

    /// What the load of a case does.
    pub(super) fn work(&self, plan: &Plan) -> Work {
        match plan.doing {
            Doing::Produce | Doing::Connections => Work::Produce(ProduceSpec {
                rate: self.rate,
                messages: self.messages,
                linger_ns: self.linger.as_nanos() as u64,
                batch_size: self.batch_size,
                ..self.bulk(plan)
            }),
            Doing::Bulk => Work::Produce(self.bulk(plan)),
            Doing::Consume => Work::Consume,
            Doing::EndToEnd => Work::EndToEnd {
                size: self.size,
                acks: plan.acks,
            },
        }
    }

    /// Bulk, in the shape of that case.
    fn bulk(&self, plan: &Plan) -> ProduceSpec {
        let (connections, in_flight, size) = self.shape(plan.doing);
        ProduceSpec {
            connections,
            in_flight,
            size,
            rate: 0,
            messages: self.messages,
            acks: plan.acks,
            packing: plan.packing,
            linger_ns: BULK_LINGER.as_nanos() as u64,
            batch_size: BULK_BATCH_SIZE,
            requests_max: self.requests_max,
            key: self.key,
            payload: self.payload,
        }
    }

    /// What fills a topic that is then consumed.
    pub(super) fn filling(&self) -> Work {
        let plan = self.plan(Target::Given, Doing::Bulk, Acks::One, Packing::None);
        Work::Produce(ProduceSpec {
            messages: FILLED_BYTES / BULK_SIZE as u64,
            key: KeyPattern::Random,
            ..self.bulk(&plan)
        })
    }
}

#[cfg(test)]
pub(super) fn example() -> Matrix {
    Matrix {
        subject: Subject::Node,
        durabilities: vec![Durability::Disk, Durability::Memory],
        doings: vec![Doing::Produce, Doing::Consume],
        producers: 128,
        size: 256,
        acks: vec![Acks::One, Acks::All],
        packings: vec![Packing::None],
        linger: Duration::ZERO,
        batch_size: 16 << 10,
        requests_max: 5,
        rate: 0,
        messages: 0,
        key: KeyPattern::Random,
        payload: PayloadPattern::Random,
        partitions: 1,
        replicas: 1,
        topic: None,
        warmup: Duration::from_secs(1),
        window: Duration::from_secs(2),
        repeats: 2,
        verify: true,
        directory: PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Target; 4] = [
        Target::Node(Durability::Disk),
        Target::Node(Durability::Memory),
        Target::Kafka,
        Target::KafkaFlush,
    ];

    #[test]
    fn everybody_produces_with_every_ack_and_consumes_once() {
        let plans = example().plans(&ALL);
        let keys: Vec<String> = plans.iter().map(|plan| plan.case.key()).collect();
        assert_eq!(
            keys,
            [
                "telpher-kafka-produce-c1-s256-r0-f128-acks=1-durability=disk",
                "telpher-kafka-produce-c1-s256-r0-f128-acks=1-durability=memory",
                "kafka-kafka-produce-c1-s256-r0-f128-acks=1",
                "kafka-flush-kafka-produce-c1-s256-r0-f128-acks=1",
                "telpher-kafka-produce-c1-s256-r0-f128-acks=all-durability=disk",
                "telpher-kafka-produce-c1-s256-r0-f128-acks=all-durability=memory",
                "kafka-kafka-produce-c1-s256-r0-f128-acks=all",
                "kafka-flush-kafka-produce-c1-s256-r0-f128-acks=all",
                "telpher-kafka-consume-c1-s1024-r0-f1-durability=disk",
                "kafka-kafka-consume-c1-s1024-r0-f1",
            ]
        );
    }

    #[test]
    fn nobody_waits_for_a_message_that_nobody_acknowledges() {
        let matrix = Matrix {
            doings: vec![Doing::EndToEnd],
            acks: vec![Acks::None, Acks::All],
            ..example()
        };
        assert_eq!(matrix.plans(&ALL[..1]).len(), 1);
    }
}
