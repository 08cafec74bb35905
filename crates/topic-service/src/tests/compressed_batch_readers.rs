//! Readers of compressed batches, which share one memory limit.

use recordbatch::Compression;

use super::*;
use crate::records::{Reader, Wanted};

impl World {
    fn append_packed(&mut self, topic: &Topic, values: &[&str]) {
        let mut builder = Builder::new();
        for value in values {
            builder.push(
                self.clock.unix_ms() as i64,
                None,
                Some(value.as_bytes()),
                &[],
            );
        }
        let mut bytes = Vec::new();
        builder.finish_compressed(&Template::default(), Compression::Zstd, &mut bytes);
        let placed = self.append(topic, &bytes).unwrap();
        self.settle(placed);
    }

    fn reader(&self, topic: &Arc<Topic>, from: u64) -> Reader {
        Reader::open(&self.topics, topic.clone(), 0, from)
    }
}

/// At most so many records; `None` if the reader has to wait.
fn take(reader: &mut Reader, count: usize) -> Option<Vec<String>> {
    let mut values = Vec::new();
    while values.len() < count {
        match reader.poll_ready(Waker::noop()) {
            Poll::Pending => return None,
            Poll::Ready(ready) => assert!(ready.unwrap()),
        }
        let look = |record: &recordbatch::Record<'_>| {
            let value = record.value.unwrap();
            values.push(String::from_utf8_lossy(value).into_owned());
            match values.len() == count {
                true => Wanted::Enough,
                false => Wanted::More,
            }
        };
        reader.each(look).unwrap();
    }
    Some(values)
}

#[test]
fn idle_reader_loses_its_unpacked_batch_and_resumes_later() {
    // The lowest possible limit: one zstd batch may use all of it while it is unpacked.
    let mut world = World::with(Options {
        unpacked_size_max: 0,
        ..Options::default()
    });
    let topic = world.create("t", &[]);
    world.append_packed(&topic, &["a", "b", "c"]);
    world.append_packed(&topic, &["d", "e"]);
    let mut idle = world.reader(&topic, 0);
    assert_eq!(take(&mut idle, 1).unwrap(), ["a"]);
    assert!(world.topics.unpacked_bytes() > 0);
    let mut busy = world.reader(&topic, 3);
    assert_eq!(take(&mut busy, 2), None, "there is no memory for it");
    world.pass_ms(2_000);
    assert_eq!(take(&mut busy, 2).unwrap(), ["d", "e"]);
    drop(busy);
    assert_eq!(take(&mut idle, 4).unwrap(), ["b", "c", "d", "e"]);
    drop(idle);
    assert_eq!(world.topics.unpacked_bytes(), 0);
}

#[test]
fn readers_of_one_compressed_batch_share_its_memory() {
    let mut world = World::with(Options {
        unpacked_size_max: 0,
        ..Options::default()
    });
    let topic = world.create("t", &[]);
    world.append_packed(&topic, &["a", "b", "c"]);
    let mut readers: Vec<_> = (0..10).map(|_| world.reader(&topic, 0)).collect();
    let mut held = Vec::new();
    for reader in &mut readers {
        assert_eq!(take(reader, 1).unwrap(), ["a"]);
        held.push(world.topics.unpacked_bytes());
    }
    assert!(
        held[0] > 0 && held.iter().all(|it| *it == held[0]),
        "{held:?}"
    );
}

#[test]
fn timestamp_lookup_finds_an_offset_inside_a_compressed_batch() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let now = world.clock.unix_ms() as i64;
    let mut builder = Builder::new();
    for (at, value) in (0..).zip(["a", "b", "c"]) {
        builder.push(now + at, None, Some(value.as_bytes()), &[]);
    }
    let mut bytes = Vec::new();
    builder.finish_compressed(&Template::default(), Compression::Gzip, &mut bytes);
    let placed = world.append(&topic, &bytes).unwrap();
    world.settle(placed);
    let located = world
        .topics
        .locate(&topic, 0, Find::Time(now + 1), Isolation::Uncommitted);
    let located = world.acknowledged(located).unwrap().unwrap();
    assert_eq!((located.offset, located.timestamp), (1, now + 1));
}
