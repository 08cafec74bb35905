//! Three whole nodes and Kafka clients, under many seeds: nodes end, lose power, are cut off from each
//! other, and have wrong clocks and slow, full, failing and hanging disks.
//!
//! Checked while they do: a fetched record was sent, stays at its offset, and no other is ever there; a
//! group's offsets are between the acknowledged and the sent ones; the leader epochs that a node
//! answers do not fall. Checked at the end: each value is there once, in the order of its producer,
//! with epochs that do not fall; nothing acknowledged is lost; no producer id was given out twice; the
//! nodes have the same blocks.

mod clients;
mod observations;

use std::ops::Range;
use std::time::Duration;

use sim::{Cluster, Network, Transcript, Weather, run, run_all};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::clients::{Client, consume, create_topics, produce, watch_epochs};
use self::observations::{Observations, Shared};

/// The topic of the producers and the consumer.
const TOPIC: &str = "produced";

/// Its partitions.
const PARTITIONS: i32 = 4;

const PRODUCERS: usize = 2;

/// Batches of a producer.
const BATCHES: usize = 20;

/// Topics that are created while nodes fail.
const TOPICS: usize = 6;

/// Longest pause between two faults, in milliseconds.
const PAUSE_MS_MAX: u64 = 2_500;

/// Longest time after which the process of a node ends whose disk has failed.
const END_POLL: Duration = Duration::from_millis(10);

/// Clocks differ from the true time by so much at most, in milliseconds.
const SKEW_MS_MAX: i64 = 9_000;

/// Limit on the time in which the clients finish when nothing fails any more.
const DONE_MAX: Duration = Duration::from_secs(60);

/// A world: clients, and faults until all of them have done their work.
struct World {
    cluster: Cluster,
    network: Network,
    dice: fastrand::Rng,
    transcript: Transcript,
    observations: Shared,
}

impl World {
    /// Starts the clients. Each connects to the nodes at random.
    fn start_clients(&mut self) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        for number in 0..PRODUCERS {
            let client = self.client("producer");
            tasks.spawn(produce(client, number));
        }
        let client = self.client("consumer");
        tasks.spawn(consume(client));
        let client = self.client("admin");
        tasks.spawn(create_topics(client));
        tasks
    }

    fn client(&mut self, host: &'static str) -> Client {
        Client {
            kafka: self.kafka(host),
            dice: self.dice.fork(),
            transcript: self.transcript.clone(),
            observations: self.observations.clone(),
        }
    }

    fn kafka(&mut self, host: &'static str) -> crate::support::kafka::Kafka {
        let (mut dice, ids) = (self.dice.fork(), self.cluster.ids());
        let next = move || *dice.choice(&ids).unwrap();
        crate::support::kafka::Kafka::of_cluster(self.cluster.client(host), next)
    }

    /// Starts a client of each node that watches the leader epochs.
    fn start_watchers(&mut self) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        for id in self.cluster.ids() {
            let client = self.cluster.client("watcher");
            let kafka = crate::support::kafka::Kafka::of_cluster(client, move || id);
            tasks.spawn(watch_epochs(kafka, self.observations.clone()));
        }
        tasks
    }

    async fn pause(&mut self, longest_ms: u64) {
        let pause = Duration::from_millis(self.dice.u64(1..longest_ms));
        let end = Instant::now() + pause;
        while Instant::now() < end {
            tokio::time::sleep(END_POLL.min(end - Instant::now())).await;
            self.cluster.end_failed();
        }
    }

    /// Makes something fail, or ends all faults.
    async fn disturb(&mut self) {
        let ids = self.cluster.ids();
        let id = *self.dice.choice(&ids).unwrap();
        let other = 1 + id % ids.len() as u64;
        let fault = self.dice.u8(..15);
        self.transcript.note(format!("fault {fault} at {id}"));
        match fault {
            0 | 1 => {
                if let Some(leader) = self.cluster.serving() {
                    let is_power_failure = self.dice.bool();
                    self.cluster.stop(leader, is_power_failure);
                    self.pause(800).await;
                    self.cluster.open(leader).await;
                }
            }
            2 => self.cluster.stop(id, true),
            3 => {
                self.cluster.cut_power();
                self.open_all().await;
            }
            4 => self.cluster.block(id, other),
            5 => {
                for other in ids.into_iter().filter(|other| *other != id) {
                    self.cluster.block(id, other);
                    self.cluster.block(other, id);
                }
            }
            6 => {
                self.cluster.block(id, other);
                self.cluster.block(other, id);
            }
            7 => {
                let longest = *self.dice.choice(&[50, 900, 10_000]).unwrap();
                self.cluster.set_sync(id, Duration::from_millis(longest));
            }
            8 => self.network.set_weather(Weather::STORM),
            9 => self.cluster.hang_disk(id),
            10 => self.cluster.fill_disk(id),
            11 => self.cluster.fail_sync(id),
            12 => {
                let skew_ms = self.dice.i64(-SKEW_MS_MAX..=SKEW_MS_MAX);
                self.cluster.set_skew(id, skew_ms);
            }
            13 => self.stop_leader_after_a_topic().await,
            _ => self.heal().await,
        }
    }

    /// Stops the leader at the moment in which a client is told that a topic exists.
    async fn stop_leader_after_a_topic(&mut self) {
        let observations = self.observations.clone();
        let before = observations.lock().topics.len();
        for _ in 0..2_000 {
            if observations.lock().topics.len() > before {
                if let Some(leader) = self.cluster.serving() {
                    self.cluster.stop(leader, true);
                }
                return;
            }
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
    }

    async fn open_all(&mut self) {
        for id in self.cluster.ids() {
            self.cluster.open(id).await;
        }
    }

    /// Ends all faults.
    async fn heal(&mut self) {
        self.network.heal();
        self.network.set_weather(Weather::CALM);
        self.cluster.repair().await;
    }
}

fn world(seed: u64) -> Vec<String> {
    run(async move {
        let network = Network::new(seed, Weather::CALM);
        let mut world = World {
            cluster: Cluster::start(seed, &network).await,
            network,
            dice: fastrand::Rng::with_seed(seed),
            transcript: Transcript::start(),
            observations: Shared::default(),
        };
        let mut clients = world.start_clients();
        let mut watchers = world.start_watchers();
        for _ in 0..world.dice.usize(4..9) {
            world.pause(PAUSE_MS_MAX).await;
            world.disturb().await;
        }
        world.heal().await;
        let done = async {
            while let Some(client) = clients.join_next().await {
                client.unwrap();
            }
        };
        if tokio::time::timeout(DONE_MAX, done).await.is_err() {
            let lines = world.transcript.lines();
            let last = &lines[lines.len().saturating_sub(20)..];
            panic!(
                "clients do not finish, {:?} serves: {last:#?}",
                world.cluster.serving()
            );
        }
        while let Some(watcher) = watchers.try_join_next() {
            watcher.unwrap();
        }
        let mut kafka = world.kafka("checker");
        Observations::check_all(&world.observations, &mut kafka).await;
        world.cluster.agree().await;
        world.transcript.lines()
    })
}

/// Number of worlds of the tests for every commit.
const WORLDS: u64 = 4;

fn check(seeds: Range<u64>) {
    let is_few = seeds.end - seeds.start < WORLDS;
    let lines = run_all(seeds, world).concat();
    // Worlds without any fault would prove nothing.
    assert!(is_few || lines.iter().any(|line| line.ends_with("again")));
}

#[test]
fn topics_groups_and_producers_survive_faults_of_a_cluster() {
    check(0..WORLDS);
}

/// Long run, by `cargo xtask sim`.
#[test]
#[ignore = "minutes"]
fn topics_groups_and_producers_survive_in_thousands_of_clusters() {
    check(crate::support::seeds(WORLDS..1_000));
}

#[test]
fn same_seed_gives_the_same_cluster() {
    assert_eq!(world(7), world(7));
}
