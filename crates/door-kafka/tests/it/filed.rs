//! Fetches of long batches, which are sent from the files that they are filed in.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Poll, Waker};

use bytes::Bytes;
use door_kafka::Arrived;
use journal::disk::RealDisk;
use kafka::ErrorCode;
use kafka::fetch::{Request, Response};
use recordbatch::{Batches, Builder, Compression, Template};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use topic_service::{Ask, BatchPlacement, FetchLimits, StoredBytes, TopicRef};
use topics::Isolation;

use crate::client::{fetch, produce};
use crate::{Bench, Client};

/// Number of batches that are filed; a segment has 1 MiB.
const FILED: u64 = 60;

/// A node whose topic "t" has batches in extents, in a segment that is not filed, and in memory.
struct Filed {
    bench: Bench,
    directory: TempDir,
    count: u64,
}

/// Bytes that do not compress, the same for each number.
fn noise(number: u64, size: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(size).collect()
}

/// A batch of one record: long, long and compressed, or short.
fn batch(number: u64) -> Bytes {
    let mut builder = Builder::new();
    let size = match number % 5 {
        0 => 300,
        1 => 9_000,
        _ => 60_000 + number as usize,
    };
    builder.push(1_700_000_000_000, None, Some(&noise(number, size)), &[]);
    let compression = match number % 3 {
        0 => Compression::Zstd,
        _ => Compression::None,
    };
    let mut out = Vec::new();
    builder.finish_compressed(&Template::default(), compression, &mut out);
    out.into()
}

/// Checks that records are consecutive batches from `from` on, and returns the offset after them.
fn check(records: &Bytes, from: u64) -> u64 {
    let mut next = from;
    for one in Batches::new(records) {
        let one = one.unwrap();
        assert!(one.is_intact(), "batch {next}");
        assert_eq!(one.header().base_offset, next as i64);
        assert!(one.bytes()[16..] == batch(next)[16..], "batch {next}");
        next += 1;
    }
    next
}

/// Takes the records of a partition out of an answer.
fn records(response: &mut Response, topic: usize) -> Bytes {
    assert_eq!(response.error_code, ErrorCode::None);
    let partition = &mut response.responses[topic].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::None);
    partition.records.take().unwrap().into_bytes()
}

/// Everything of the topic "t" from an offset on.
fn fetch_all(from: u64) -> Request {
    let mut request = fetch("t", from as i64, 60_000);
    request.topics[0].partitions[0].partition_max_bytes = 50 << 20;
    request
}

impl Filed {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(RealDisk::new(directory.path()));
        let mut bench = Bench::on_disk(disk, 1);
        bench.with_topic("t").await;
        let mut filed = Self {
            bench,
            directory,
            count: 0,
        };
        filed.produce("t", FILED).await;
        filed.settle();
        // In a segment, and not in memory.
        filed.produce("t", 3).await;
        filed.bench.line.forget_tail();
        filed.produce("t", 3).await;
        filed
    }

    /// Appends batches and waits until they are on disk.
    async fn produce(&mut self, topic: &str, count: u64) {
        let mut client = self.bench.connect();
        for _ in 0..count {
            let number = self.count;
            client.send(9, &produce(topic, 1, batch(number))).await;
            self.bench.connect().flush_requests().await;
            self.bench.sync();
            let (_, answer) = client.receive::<kafka::produce::Request>(9).await;
            let answer = &answer.responses[0].partition_responses[0];
            assert_eq!(answer.error_code, ErrorCode::None);
            self.count += 1;
        }
    }

    /// Files what can be filed.
    fn settle(&mut self) {
        for _ in 0..10 {
            self.bench.pass_second();
        }
    }

    /// Starts the node again on the same disk.
    async fn restart(self) -> Self {
        let Self {
            bench,
            directory,
            count,
        } = self;
        drop(bench);
        // The tasks of connections hold the node until they have noticed its end.
        let disk = Arc::new(RealDisk::new(directory.path()));
        let bench = Bench::on_disk(disk, 2);
        Self {
            bench,
            directory,
            count,
        }
    }

    /// A client over TCP, and the task that serves it.
    async fn connect_tcp(&self) -> (Client, JoinHandle<()>) {
        let listener = net::listen_tcp("127.0.0.1:0").await.unwrap();
        let local = listener.local_addr().unwrap();
        let near = net::connect_tcp("127.0.0.1", local.port()).await.unwrap();
        let (far, _) = listener.accept().await.unwrap();
        let (near, stream) = (net::split_tcp(near).unwrap(), net::split_tcp(far).unwrap());
        let door = self.bench.door.clone();
        let served = tokio::spawn(async move {
            door.serve(Arrived { stream, local }).await;
        });
        (Client::new(near), served)
    }

    /// Returns how many batches a fetch from the beginning would send from files.
    fn in_files(&self) -> usize {
        let topics = self.bench.node.topics().unwrap();
        let ask = Ask {
            topic: topics.find(TopicRef::Name("t")).unwrap(),
            partition: 0,
            offset: 0,
            bytes_max: usize::MAX,
            leader_epoch: None,
        };
        let limits = FetchLimits {
            isolation: Isolation::Uncommitted,
            bytes_min: 0,
            bytes_max: usize::MAX,
            placement: BatchPlacement::AsStored,
        };
        let mut fetching = topics.fetch(vec![ask], limits);
        let Poll::Ready(fetched) = fetching.poll_fetched(Waker::noop()) else {
            panic!("it waits");
        };
        let batches = &fetched[0].as_ref().unwrap().batches;
        let is_in_file = |it: &&StoredBytes| matches!(it, StoredBytes::File(_));
        batches.iter().filter(is_in_file).count()
    }

    /// The files of segments and extents with records.
    fn files(&self) -> Vec<PathBuf> {
        let of = |folder: &str| {
            let entries = self.directory.path().join(folder).read_dir().unwrap();
            entries.map(|entry| entry.unwrap().path())
        };
        let is_filed = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            !name.starts_with("spare") && !name.starts_with("used")
        };
        of("line").chain(of("extents")).filter(is_filed).collect()
    }
}

/// Fetches until the end, with these limits, and checks every batch.
async fn read_through(client: &mut Client, mut from: u64, end: u64, sizes: (i32, i32)) {
    while from < end {
        let mut request = fetch("t", from as i64, 60_000);
        request.topics[0].partitions[0].partition_max_bytes = sizes.0;
        request.max_bytes = sizes.1;
        let mut response = client.ask(12, &request).await;
        let records = records(&mut response, 0);
        let next = check(&records, from);
        assert!(next > from);
        let limit = sizes.0.min(sizes.1) as usize;
        assert!(next == from + 1 || records.len() <= limit);
        from = next;
    }
}

#[tokio::test]
async fn long_batches_are_fetched_byte_for_byte_from_all_places() {
    let filed = Filed::new().await;
    assert!(filed.in_files() > 20, "{}", filed.in_files());
    let (tcp, _served) = filed.connect_tcp().await;
    for mut client in [filed.bench.connect(), tcp] {
        for sizes in [(1, 50 << 20), (100_000, 50 << 20), (50 << 20, 50 << 20)] {
            read_through(&mut client, 0, filed.count, sizes).await;
        }
        read_through(&mut client, FILED / 2, filed.count, (50 << 20, 200_000)).await;
    }
    let filed = filed.restart().await;
    let (mut client, _served) = filed.connect_tcp().await;
    for _ in 0..2 {
        read_through(&mut client, 0, filed.count, (1 << 20, 50 << 20)).await;
    }
}

#[tokio::test]
async fn fetch_of_several_partitions_has_the_batches_of_each() {
    let mut filed = Filed::new().await;
    filed.bench.with_topic("other").await;
    let count = std::mem::take(&mut filed.count);
    filed.produce("other", 40).await;
    filed.settle();
    let (mut client, _served) = filed.connect_tcp().await;
    let mut request = fetch_all(3);
    request.topics.extend(fetch("other", 7, 60_000).topics);
    request.topics.extend(fetch_all(count - 2).topics);
    let mut response = client.ask(12, &request).await;
    assert_eq!(check(&records(&mut response, 0), 3), count);
    assert!(check(&records(&mut response, 1), 7) > 10);
    assert_eq!(check(&records(&mut response, 2), count - 2), count);
}

#[tokio::test]
async fn slow_reader_gets_whole_answers_or_errors_while_records_are_deleted() {
    let mut filed = Filed::new().await;
    let (mut slow, _served) = filed.connect_tcp().await;
    let mut in_process = filed.bench.connect();
    for client in [&mut slow, &mut in_process] {
        for _ in 0..20 {
            client.send(12, &fetch_all(0)).await;
        }
    }
    for client in [&mut slow, &mut in_process] {
        let (_, mut first) = client.receive::<Request>(12).await;
        assert_eq!(check(&records(&mut first, 0), 0), filed.count);
    }
    let before = filed.files();
    let mut admin = filed.bench.connect();
    admin.send(2, &delete_records(FILED as i64)).await;
    filed.bench.connect().flush_requests().await;
    filed.bench.sync();
    let (_, deleted) = admin.receive::<kafka::delete_records::Request>(2).await;
    assert_eq!(deleted.topics[0].partitions[0].error_code, ErrorCode::None);
    // Its files are removed, although answers are being sent from them.
    let mut passed = 0;
    while filed
        .files()
        .iter()
        .filter(|it| before.contains(it))
        .count()
        > before.len() / 2
    {
        filed.settle();
        passed += 1;
        assert!(passed < 100, "{:?}", filed.files());
    }
    for client in [&mut slow, &mut in_process] {
        let mut refused = 0;
        for _ in 1..20 {
            let (_, mut response) = client.receive::<Request>(12).await;
            match response.responses[0].partitions[0].error_code {
                ErrorCode::OffsetOutOfRange => refused += 1,
                _ => {
                    assert_eq!(check(&records(&mut response, 0), 0), filed.count);
                }
            }
        }
        assert!(refused > 0);
    }
    let mut response = filed.bench.connect().ask(12, &fetch_all(FILED)).await;
    assert_eq!(check(&records(&mut response, 0), FILED), filed.count);
}

fn delete_records(before: i64) -> kafka::delete_records::Request {
    use kafka::delete_records::{Partition, Request, Topic};
    Request {
        topics: vec![Topic {
            name: "t".to_owned(),
            partitions: vec![Partition {
                partition_index: 0,
                offset: before,
            }],
        }],
        timeout_ms: 30_000,
    }
}

#[tokio::test]
async fn client_that_disconnects_within_an_answer_is_forgotten() {
    let filed = Filed::new().await;
    let (mut client, served) = filed.connect_tcp().await;
    for _ in 0..20 {
        client.send(12, &fetch_all(0)).await;
    }
    let (_, mut first) = client.receive::<Request>(12).await;
    assert_eq!(check(&records(&mut first, 0), 0), filed.count);
    assert!(!served.is_finished());
    drop(client);
    served.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn client_that_reads_no_answer_for_an_hour_is_disconnected() {
    let filed = Filed::new().await;
    let mut client = filed.bench.connect();
    for _ in 0..3 {
        client.send(12, &fetch_all(0)).await;
    }
    filed.bench.connect().flush_requests().await;
    tokio::time::sleep(std::time::Duration::from_secs(2 * 3_600)).await;
    assert!(client.is_closed().await, "no answer is whole");
}

#[tokio::test]
async fn shutdown_waits_until_an_answer_is_read() {
    let filed = Filed::new().await;
    let mut client = filed.bench.connect();
    client.send(12, &fetch_all(0)).await;
    filed.bench.connect().flush_requests().await;
    filed.bench.node.messaging().drain(1_000);
    tokio::task::yield_now().await;
    let (_, mut response) = client.receive::<Request>(12).await;
    assert_eq!(check(&records(&mut response, 0), 0), filed.count);
    assert!(client.is_closed().await);
}

/// Changes a byte of the first file that has these bytes.
fn damage(files: &[PathBuf], bytes: &[u8]) {
    for path in files {
        let mut content = std::fs::read(path).unwrap();
        let at = content.windows(bytes.len()).position(|it| it == bytes);
        if let Some(at) = at {
            content[at] ^= 4;
            write_in_place(path, &content);
            return;
        }
    }
    panic!("no file has the bytes");
}

fn write_in_place(path: &Path, content: &[u8]) {
    use std::io::Write;
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all(content).unwrap();
}

#[tokio::test]
async fn damaged_batch_is_an_error_when_it_is_first_read() {
    let filed = Filed::new().await;
    // The end of a long batch that is not compressed.
    let noise = noise(7, 60_007);
    damage(&filed.files(), &noise[60_000 - 64..60_000]);
    let filed = filed.restart().await;
    let (mut client, _served) = filed.connect_tcp().await;
    read_through(&mut client, 8, filed.count, (50 << 20, 50 << 20)).await;
    for _ in 0..2 {
        let response = client.ask(12, &fetch_all(0)).await;
        let partition = &response.responses[0].partitions[0];
        assert_eq!(partition.error_code, ErrorCode::KafkaStorageError);
        assert!(partition.records.as_ref().is_none_or(|it| it.is_empty()));
    }
}
