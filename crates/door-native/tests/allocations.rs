//! Allocations of an append to a conversation, as counted by an allocator.
//!
//! The node serves its connection on the thread of the test, and only allocations of that thread
//! are counted: the journal's threads work at their own pace.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

use std::future::poll_fn;
use std::sync::Arc;

use door_testing::{CountingAllocator, ManualClock, allocated};
use journal::Journal;
use journal::disk::SimulatedDisk;
use net::{Sink, Source};
use node::{Node, Parts, StorageParts};
use wire::{
    Append, Bind, Cast, Correlation, Flags, Hello, Inbox, Item, Kind, NewMessage, Payload, Window,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Appends that are sent in one write.
const IN_FLIGHT: u32 = 5;
const ROUNDS: u64 = 200;
/// Largest number of allocations of a hundred appends: two of a round, for its block and its end,
/// and sometimes a larger table of ids.
const HUNDRED_MAX: u64 = 50;

/// A client that allocates nothing while it appends.
struct Client {
    source: Box<dyn Source>,
    sink: Arc<dyn Sink>,
    inbox: Inbox,
    /// The requests of a round, encoded.
    requests: Vec<u8>,
    /// Positions of the numbers in the ids of the messages.
    numbers: Vec<usize>,
    next: u64,
}

impl Client {
    async fn connect() -> Self {
        let clock = Arc::new(ManualClock::default());
        let options = door_testing::journal_options(1);
        let disk = Arc::new(SimulatedDisk::new(7));
        let (journal, _) = Journal::open(disk, &options, || 0).unwrap();
        let storage = StorageParts::new(Arc::new(journal));
        let ports = door_testing::ports(clock, 1 << 32);
        let node = Node::open(Parts::with_storage(ports, storage)).unwrap();
        let options = door_native::Options::default();
        let door = door_native::Door::new(node, Arc::new(door::Open), options);
        tokio::spawn(door::PassEnd::new());
        tokio::spawn(door::WakeBatch::new());
        let (near, far) = net::inproc::pair("test");
        tokio::spawn(async move { door.serve(far).await });
        let mut client = Self {
            source: near.source,
            sink: near.sink,
            inbox: Inbox::new(1 << 20),
            requests: Vec::new(),
            numbers: Vec::new(),
            next: 1 << 40,
        };
        client.greet().await;
        client.prepare();
        client
    }

    async fn greet(&mut self) {
        let hello = Hello {
            version_min: 1,
            version_max: 1,
            features: wire::FEATURES,
            window: Window {
                frame_size_max: 1 << 20,
                calls_max: 1000,
                credit_messages: 64,
                credit_bytes: 1 << 20,
                keepalive_ms: 15_000,
            },
            token: "",
            name: "",
        };
        let bind = Bind {
            route: 1,
            cast: Cast::Conversation,
            method: "",
            name: "a/b/talk",
        };
        let mut bytes = Vec::new();
        hello.encode(&mut bytes);
        self.write(&bytes).await;
        assert_eq!(self.read(1).await, Kind::WELCOME);
        bytes.clear();
        bind.encode(&mut bytes);
        self.write(&bytes).await;
    }

    /// Encodes the requests of a round. The ids are replaced in each round.
    fn prepare(&mut self) {
        let parts = format!(r#"[{{"type":"text","text":"{}"}}]"#, "x".repeat(200));
        for slot in 0..IN_FLIGHT {
            let id = format!("{:016x}", u64::MAX - u64::from(slot));
            let message = NewMessage {
                id: &id,
                role: "user",
                from: "alice",
                tokens: None,
                metadata: b"",
                parts: parts.as_bytes(),
            };
            let (mut record, mut body) = (Vec::new(), Vec::new());
            message.encode(&mut record);
            Append::encode(None, &[record], &mut body);
            let tag = Correlation {
                slot,
                generation: 1,
            };
            Payload::body(&body).encode(Kind::APPEND, Flags::NONE, 1, tag, &mut self.requests);
            let mut windows = self.requests.windows(id.len());
            let number = windows.position(|it| it == id.as_bytes());
            self.numbers.push(number.unwrap());
        }
    }

    async fn write(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.sink.try_write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(_) => poll_fn(|cx| self.sink.poll_writable(cx)).await.unwrap(),
            }
        }
    }

    /// Reads a number of frames, and returns the kind of the last one.
    async fn read(&mut self, count: u32) -> Kind {
        let (mut left, mut last) = (count, Kind::PING);
        let mut chunk = [0; 4_096];
        while left > 0 {
            let read = poll_fn(|cx| self.source.poll_read(cx, &mut chunk)).await;
            let mut frames = self.inbox.feed(&chunk[..read.unwrap()]);
            while let Some(item) = frames.next() {
                let Item::Frame(header, _) = item else {
                    panic!("a frame is too large");
                };
                (left, last) = (left - 1, header.kind);
            }
        }
        last
    }

    /// Appends a round of messages with new ids, and returns the number of allocations.
    async fn append(&mut self) -> u64 {
        for at in &self.numbers {
            let id = &mut self.requests[*at..*at + 16];
            for (digit, byte) in id.iter_mut().enumerate() {
                *byte = b"0123456789abcdef"[(self.next >> (4 * digit)) as usize & 15];
            }
            self.next += 1;
        }
        let before = allocated();
        self.write(&self.requests).await;
        assert_eq!(self.read(IN_FLIGHT).await, Kind::REPLY);
        allocated() - before
    }
}

#[tokio::test]
async fn an_append_to_a_conversation_allocates_little() {
    let mut client = Client::connect().await;
    for _ in 0..ROUNDS {
        client.append().await;
    }
    let mut sum = 0;
    for _ in 0..ROUNDS {
        sum += client.append().await;
    }
    let appends = ROUNDS * u64::from(IN_FLIGHT);
    let hundred = sum * 100 / appends;
    println!("allocations of 100 appends: {hundred}");
    assert!(hundred <= HUNDRED_MAX, "{hundred}");
}
