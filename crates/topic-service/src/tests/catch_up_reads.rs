//! Reading from the beginning while other clients write.

use super::*;

const VALUE_SIZE: usize = 1_000;
const COUNT: u64 = 2_000;

impl World {
    /// A reader that reads from the beginning while `write` goes on between its fetches: bytes of
    /// the batches it got, and of what the disk read for it.
    fn catch_up(&mut self, topic: &Arc<Topic>, mut write: impl FnMut(&mut Self)) -> (u64, u64) {
        let (mut next, mut got, mut read) = (0, 0, 0);
        while next < COUNT {
            let before = self.disk.read();
            let fetched = self.fetch(topic, next).unwrap();
            read += self.disk.read() - before;
            got += fetched.size() as u64;
            next += values(&fetched).len() as u64;
            write(self);
        }
        (got, read)
    }
}

#[test]
fn catch_up_reads_of_one_topic_do_not_read_other_topics() {
    let mut world = World::new();
    let (old, busy) = (world.create("old", &[]), world.create("busy", &[]));
    let value = "v".repeat(VALUE_SIZE);
    let append = |world: &World, topic: &Topic, count: u64| {
        for _ in 0..count {
            world.append(topic, &world.batch(&[&value])).unwrap();
        }
    };
    // They share their blocks, and most of each is the other's.
    for _ in 0..COUNT / 20 {
        append(&world, &old, 20);
        append(&world, &busy, 100);
        world.sync();
    }
    for _ in 0..20 {
        append(&world, &busy, 100);
        world.sync();
    }
    let filed = world.topics.state.journal.filing().extent_bytes;
    assert!(filed > COUNT * VALUE_SIZE as u64 * 6, "{filed}");
    let (got, read) = world.catch_up(&old, |world| {
        append(world, &busy, 300);
        world.sync();
    });
    assert!(got > COUNT * VALUE_SIZE as u64);
    // Read from the disk, with little more than the batches: the pages at the ends of extents and
    // fetches.
    assert!(read > got * 9 / 10 && read < got * 12 / 10, "{got} {read}");
}
