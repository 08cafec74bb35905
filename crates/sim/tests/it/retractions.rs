//! Retractions of messages on a node with power failures, under many seeds: each happened as a whole
//! or not at all, and a watcher that follows from its position has what is stored.

use std::ops::Range;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use conversation_service::{
    Appended, Batch, Item, NewMessage, Page, Pending, Position, RetractExtent, RetractOutcome,
    RetractRequest, Side, Watch,
};
use model::Name;
use sim::{DurableNode, Network, Transcript, Weather, run, run_all};

const STEPS: u64 = 60;

/// The numbers of the messages of a conversation, and its newest number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Content {
    live: Vec<u64>,
    head: u64,
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Append(u64),
    Retract(u64),
}

/// A request in progress.
enum Open {
    Append(Pending<Appended>),
    Retract(Pending<RetractOutcome>),
}

impl Change {
    fn random(dice: &mut fastrand::Rng) -> Self {
        let count = dice.u64(1..4);
        match dice.u8(0..3) {
            0 => Self::Retract(count),
            _ => Self::Append(count),
        }
    }

    fn apply(self, content: &Content) -> Content {
        let mut after = content.clone();
        match self {
            Self::Append(count) => {
                after.live.extend(after.head + 1..=after.head + count);
                after.head += count;
            }
            Self::Retract(_) if after.live.is_empty() => {}
            Self::Retract(count) => {
                let left = after.live.len().saturating_sub(count as usize);
                after.live.truncate(left);
                after.head += 1;
            }
        }
        after
    }

    fn send(self, node: &DurableNode, head: u64) -> Open {
        let conversations = node.handle().conversations().unwrap();
        match self {
            Self::Append(count) => {
                let message = NewMessage {
                    id: None,
                    role: "user",
                    from: "alice",
                    tokens: None,
                    facts: &[],
                    parts: b"[]",
                    metadata: b"",
                };
                let batch = Batch {
                    expect: Some(head),
                    messages: &vec![message; count as usize],
                };
                Open::Append(conversations.append(&name(), batch).unwrap())
            }
            Self::Retract(count) => {
                let id = format!("r-{head}");
                let request = RetractRequest {
                    id: Some(&id),
                    expect: head,
                    extent: RetractExtent::Newest(count),
                };
                Open::Retract(conversations.retract(&name(), request).unwrap())
            }
        }
    }
}

impl Open {
    /// Waits for the acknowledgement; returns the newest number.
    async fn head(self) -> u64 {
        match self {
            Self::Append(pending) => pending.await.unwrap().head_seq,
            Self::Retract(pending) => pending.await.unwrap().head_seq,
        }
    }
}

/// A client that follows from its position, also across restarts.
struct Follower {
    watch: Option<Watch>,
    position: Position,
    live: Vec<u64>,
}

impl Follower {
    /// Applies everything that can be read now.
    fn catch_up(&mut self, node: &DurableNode) {
        let conversations = node.handle().conversations().unwrap();
        let watch = self.watch.get_or_insert_with(|| {
            let watch = conversations.watch_from(&name(), self.position.clone());
            watch.unwrap()
        });
        while let Poll::Ready(item) = watch.poll_next(&mut Context::from_waker(Waker::noop())) {
            match item.unwrap() {
                Item::Message(stored) => self.live.push(stored.seq),
                Item::Retracted { first_seq, .. } => self.live.retain(|seq| *seq < first_seq),
                _ => {}
            }
        }
        self.position = watch.position().clone();
    }
}

fn name() -> Name {
    Name::parse("sim/talk/one").unwrap()
}

fn content(node: &DurableNode) -> Content {
    let page = Page {
        side: Side::After(0),
        limit: 1_000,
        bytes: 1 << 20,
    };
    let conversations = node.handle().conversations().unwrap();
    let read = conversations.read(&name(), page).unwrap();
    Content {
        live: read.messages().map(|it| it.unwrap().seq).collect(),
        head: read.head_seq,
    }
}

/// Runs a world: a writer whose changes are all acknowledged, or open when the power fails.
fn world(seed: u64) -> Vec<String> {
    run(async move {
        let transcript = Transcript::start();
        let mut dice = fastrand::Rng::with_seed(seed);
        let network = Network::new(seed, Weather::CALM);
        let mut node = DurableNode::start(seed, &network);
        let mut known = Content::default();
        let mut follower = Follower {
            watch: None,
            position: Position {
                seq: 0,
                drafts: Vec::new(),
            },
            live: Vec::new(),
        };
        for step in 0..STEPS {
            let change = match step {
                0 => Change::Append(1),
                _ => Change::random(&mut dice),
            };
            let after = change.apply(&known);
            let open = change.send(&node, known.head);
            if step == 0 || dice.u8(0..6) > 0 {
                assert_eq!(open.head().await, after.head, "seed {seed}: {change:?}");
                known = after;
            } else {
                tokio::time::sleep(Duration::from_micros(dice.u64(0..4_000))).await;
                drop(open);
                follower.watch = None;
                node.fail_power(Duration::from_millis(1)).await;
                let stored = content(&node);
                assert!(
                    stored == known || stored == after,
                    "seed {seed}: {stored:?} after {change:?} of {known:?}"
                );
                let is_lost = stored != after;
                transcript.note(format!("{step} {change:?} lost {is_lost}"));
                known = match change {
                    // Repeated, it is answered alike, whether it was stored or not.
                    Change::Retract(_) => {
                        let again = change.send(&node, known.head).head().await;
                        assert_eq!(again, after.head, "seed {seed}");
                        after
                    }
                    Change::Append(_) => stored,
                };
            }
            assert_eq!(content(&node), known, "seed {seed}: after {change:?}");
            if dice.bool() {
                follower.catch_up(&node);
                assert_eq!(follower.live, known.live, "seed {seed}: after {change:?}");
            }
        }
        transcript.note(format!("{known:?}"));
        transcript.lines()
    })
}

#[test]
fn retractions_are_whole_and_watchers_know_them_under_power_failures() {
    check(0..40);
}

/// Long run, by `cargo xtask sim`.
#[test]
#[ignore = "minutes"]
fn retractions_are_whole_in_thousands_of_worlds() {
    check(crate::support::seeds(40..4_000));
}

fn check(seeds: Range<u64>) {
    let is_one = seeds.end == seeds.start + 1;
    let lines = run_all(seeds, world).concat();
    // Worlds without lost and stored retractions would prove nothing.
    let has = |end: &str| {
        let mut all = lines.iter();
        all.any(|line| line.contains("Retract") && line.ends_with(end))
    };
    assert!(is_one || (has("lost true") && has("lost false")));
}
