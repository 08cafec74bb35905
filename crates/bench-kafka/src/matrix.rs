//! Matrix of a Kafka suite.

use std::path::PathBuf;
use std::time::Duration;

use super::{Acks, KeyPattern, Packing, PayloadPattern, ProduceSpec, Work};
use bench::model::{Area, Case, Mode};
use bench::workload::surroundings::OURS;

/// Measured broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Our own node.
    Node,
    /// A cluster of this number of our own nodes, compared with one node.
    Cluster(u32),
    /// A broker that is already running: `HOST:PORT`.
    Broker(String),
}

/// Durability of a topic on our node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Acknowledged messages are on disk.
    Disk,
    /// Acknowledged messages are in memory.
    Memory,
}

/// Workload of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Producers that share one connection.
    Produce,
    /// Producers with a connection each.
    Connections,
    /// Maximum throughput of large batches.
    Bulk,
    /// Reading a filled topic.
    Consume,
    /// Latency from a producer to a consumer.
    EndToEnd,
}

/// A given topic that all runs use instead of a new one for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Name of the topic.
    pub name: String,
    /// True if the topic is created when it does not exist.
    pub create: bool,
    /// True if the topic is deleted at the end.
    pub delete: bool,
}

/// Parameters of a Kafka suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix {
    /// Measured broker.
    pub subject: Subject,
    /// Durabilities of the node's topics.
    pub durabilities: Vec<Durability>,
    /// Workloads.
    pub doings: Vec<Doing>,
    /// Numbers of producers, each of which waits for the ack of its message; each is a case.
    pub producers: Vec<u32>,
    /// Size of a payload in bytes.
    pub size: usize,
    /// Settings of `acks`.
    pub acks: Vec<Acks>,
    /// Compression settings.
    pub packings: Vec<Packing>,
    /// Linger time of a batch.
    pub linger: Duration,
    /// Maximum bytes of a batch.
    pub batch_size: usize,
    /// Maximum requests in flight on a connection.
    pub requests_max: usize,
    /// Messages per second of all producers; 0 means as fast as they are acknowledged.
    pub rate: u64,
    /// Maximum messages of a run; 0 means no limit.
    pub messages: u64,
    /// Pattern of the keys.
    pub key: KeyPattern,
    /// Pattern of the payloads.
    pub payload: PayloadPattern,
    /// Partitions of each topic.
    pub partitions: i32,
    /// Replicas of each partition.
    pub replicas: i16,
    /// Given topic; `None` creates one for each run.
    pub topic: Option<Topic>,
    /// Duration of the warm-up, which is not counted.
    pub warmup: Duration,
    /// Length of a run.
    pub window: Duration,
    /// Runs of each case.
    pub repeats: u32,
    /// True if acknowledged messages are read back.
    pub verify: bool,
    /// Directory on the measured disk, for the data of brokers that are started.
    pub directory: PathBuf,
}

/// Connections of the bulk mode, and messages in flight on each: more than its requests hold.
const BULK_CONNECTIONS: u32 = 8;
const BULK_IN_FLIGHT: u32 = 512;
const BULK_SIZE: usize = 1024;
const BULK_BATCH_SIZE: usize = 64 << 10;
const BULK_LINGER: Duration = Duration::from_millis(5);
/// Bytes of a topic that is filled to be consumed.
const FILLED_BYTES: u64 = 128 << 20;

/// Broker and settings that a case runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Node(Durability),
    /// A cluster of this number of our own nodes.
    Cluster(u32),
    Given,
    Kafka,
    /// Apache Kafka that syncs every message.
    KafkaFlush,
    /// This number of brokers of Apache Kafka.
    KafkaCluster(u32),
    /// The same brokers, which sync every message.
    KafkaClusterFlush(u32),
}

/// Name of a cluster of our own nodes in results.
pub(super) const CLUSTER: &str = "telpher-cluster";

impl Target {
    /// Returns the name in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Node(_) => OURS,
            Self::Given => "broker",
            Self::Kafka => "kafka",
            Self::KafkaFlush => "kafka-flush",
            Self::Cluster(_) => CLUSTER,
            Self::KafkaCluster(_) => "kafka-cluster",
            Self::KafkaClusterFlush(_) => "kafka-cluster-flush",
        }
    }

    /// Returns true for brokers of Apache Kafka that the benchmark starts.
    pub(super) fn is_kafka(self) -> bool {
        match self {
            Self::Kafka | Self::KafkaFlush | Self::KafkaCluster(_) | Self::KafkaClusterFlush(_) => {
                true
            }
            Self::Node(_) | Self::Cluster(_) | Self::Given => false,
        }
    }

    /// Returns the settings with which its topics are created.
    pub(super) fn configs(self) -> Vec<(&'static str, String)> {
        let flush = ("flush.messages", "1".to_owned());
        let in_sync = |count: u32| ("min.insync.replicas", (count / 2 + 1).to_string());
        match self {
            Self::Node(Durability::Memory) => vec![("telpher.durability", "memory".to_owned())],
            Self::KafkaFlush => vec![flush],
            Self::KafkaCluster(count) => vec![in_sync(count)],
            Self::KafkaClusterFlush(count) => vec![in_sync(count), flush],
            Self::Node(Durability::Disk) | Self::Cluster(_) | Self::Given | Self::Kafka => {
                Vec::new()
            }
        }
    }

    /// Returns the number of brokers; `None` if it is not known.
    fn brokers(self) -> Option<u32> {
        match self {
            Self::Given => None,
            Self::Node(_) | Self::Kafka | Self::KafkaFlush => Some(1),
            Self::Cluster(count) | Self::KafkaCluster(count) | Self::KafkaClusterFlush(count) => {
                Some(count)
            }
        }
    }

    /// Returns true if the target differs from another target only in its writes.
    fn differs_only_in_writes(self) -> bool {
        matches!(
            self,
            Self::Node(Durability::Memory) | Self::KafkaFlush | Self::KafkaClusterFlush(_)
        )
    }
}

/// A case and everything needed to run it.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) case: Case,
    pub(super) target: Target,
    pub(super) doing: Doing,
    acks: Acks,
    packing: Packing,
    producers: u32,
}

impl Durability {
    /// Returns the name in flags and cases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Memory => "memory",
        }
    }
}

impl Doing {
    /// Returns the mode of its cases.
    pub(super) fn mode(self) -> Mode {
        match self {
            Self::Produce => Mode::PRODUCE,
            Self::Connections => Mode::CONNECTIONS,
            Self::Bulk => Mode::BULK,
            Self::Consume => Mode::CONSUME,
            Self::EndToEnd => Mode::END_TO_END,
        }
    }

    /// Returns true if the workload produces messages, which can be read back.
    pub(super) fn produces(self) -> bool {
        self != Self::Consume
    }
}

impl Matrix {
    /// Returns the targets that measure the subject.
    pub(super) fn subjects(&self) -> Vec<Target> {
        match self.subject {
            Subject::Node => self
                .durabilities
                .iter()
                .copied()
                .map(Target::Node)
                .collect(),
            Subject::Cluster(count) => vec![Target::Cluster(count), Target::Node(Durability::Disk)],
            Subject::Broker(_) => vec![Target::Given],
        }
    }

    /// Returns the targets that are measured on Apache Kafka.
    pub(super) fn kafka_targets(&self) -> [Target; 2] {
        match self.subject {
            Subject::Cluster(count) => [
                Target::KafkaCluster(count),
                Target::KafkaClusterFlush(count),
            ],
            Subject::Node | Subject::Broker(_) => [Target::Kafka, Target::KafkaFlush],
        }
    }

    /// Returns the replicas of each partition on a target.
    pub(super) fn replicas_on(&self, target: Target) -> i16 {
        match (&self.subject, target.brokers()) {
            // No more than 9 nodes are started.
            (Subject::Cluster(_), Some(count)) => count as i16,
            _ => self.replicas,
        }
    }

    /// Returns every case of `targets`. Cases of a kind are adjacent, so that they take turns.
    pub(super) fn plans(&self, targets: &[Target]) -> Vec<Plan> {
        let mut plans = Vec::new();
        for &doing in &self.doings {
            for acks in self.acks_of(doing) {
                for &packing in self.packings_of(doing) {
                    for &producers in self.producers_of(doing) {
                        let all = targets.iter().copied();
                        let fit = |target: &Target| {
                            let is_only = targets.len() == 1;
                            doing.produces() || !target.differs_only_in_writes() || is_only
                        };
                        let plan = |target| self.plan(target, doing, acks, packing, producers);
                        plans.extend(all.filter(fit).map(plan));
                    }
                }
            }
        }
        plans
    }

    fn acks_of(&self, doing: Doing) -> Vec<Acks> {
        let first = self.acks.first().copied();
        match doing {
            Doing::Produce | Doing::Connections | Doing::Bulk => self.acks.clone(),
            // End to end needs an ack.
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

    fn producers_of(&self, doing: Doing) -> &[u32] {
        match doing {
            Doing::Produce | Doing::Connections => &self.producers,
            Doing::Bulk | Doing::Consume | Doing::EndToEnd => &[1],
        }
    }

    fn plan(
        &self,
        target: Target,
        doing: Doing,
        acks: Acks,
        packing: Packing,
        producers: u32,
    ) -> Plan {
        let (connections, in_flight, size) = self.shape(doing, producers);
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
        if let (Subject::Cluster(_), Some(count)) = (&self.subject, target.brokers()) {
            case = case.parameter("nodes", count);
        }
        Plan {
            case,
            target,
            doing,
            acks,
            packing,
            producers,
        }
    }

    /// Returns connections, messages in flight on each, and payload size.
    fn shape(&self, doing: Doing, producers: u32) -> (u32, u32, usize) {
        match doing {
            Doing::Produce => (1, producers, self.size),
            Doing::Connections => (producers, 1, self.size),
            Doing::Bulk => (BULK_CONNECTIONS, BULK_IN_FLIGHT, BULK_SIZE),
            Doing::Consume => (1, 1, BULK_SIZE),
            Doing::EndToEnd => (1, 1, self.size),
        }
    }

    /// Returns the parameters of a case's load.
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

    /// Returns the parameters of a bulk load in the shape of this case.
    fn bulk(&self, plan: &Plan) -> ProduceSpec {
        let (connections, in_flight, size) = self.shape(plan.doing, plan.producers);
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

    /// Returns the load that fills a topic before it is consumed.
    pub(super) fn filling(&self) -> Work {
        let plan = self.plan(Target::Given, Doing::Bulk, Acks::One, Packing::None, 1);
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
        producers: vec![128],
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
    fn every_target_produces_with_every_ack_and_consumes_once() {
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
    fn a_cluster_is_compared_with_one_node_at_each_number_of_producers() {
        let matrix = Matrix {
            subject: Subject::Cluster(3),
            doings: vec![Doing::Produce, Doing::Connections],
            producers: vec![128, 1024],
            acks: vec![Acks::All],
            ..example()
        };
        let mut targets = matrix.subjects();
        targets.extend(matrix.kafka_targets());
        let plans = matrix.plans(&targets);
        let keys: Vec<String> = plans.iter().map(|plan| plan.case.key()).collect();
        assert_eq!(
            keys[..5],
            [
                "telpher-cluster-kafka-produce-c1-s256-r0-f128-acks=all-nodes=3",
                "telpher-kafka-produce-c1-s256-r0-f128-acks=all-durability=disk-nodes=1",
                "kafka-cluster-kafka-produce-c1-s256-r0-f128-acks=all-nodes=3",
                "kafka-cluster-flush-kafka-produce-c1-s256-r0-f128-acks=all-nodes=3",
                "telpher-cluster-kafka-produce-c1-s256-r0-f1024-acks=all-nodes=3",
            ]
        );
        assert_eq!(keys.len(), 16);
        let replicas = plans.iter().map(|plan| matrix.replicas_on(plan.target));
        assert_eq!(replicas.take(4).collect::<Vec<_>>(), [3, 1, 3, 3]);
        let configs = Target::KafkaCluster(3).configs();
        assert_eq!(configs, [("min.insync.replicas", "2".to_owned())]);
    }

    #[test]
    fn end_to_end_cases_need_acks() {
        let matrix = Matrix {
            doings: vec![Doing::EndToEnd],
            acks: vec![Acks::None, Acks::All],
            ..example()
        };
        assert_eq!(matrix.plans(&ALL[..1]).len(), 1);
    }
}
