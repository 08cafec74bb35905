use super::*;

#[test]
fn the_number_of_extents_per_stream_stays_small() {
    let mut world = World::new();
    let mut extents_max = 0;
    for round in 0..300_u64 {
        for stream in 0..5 {
            world.append((stream % 2) as u16, stream, &round.to_le_bytes().repeat(20));
        }
        world.append(0, 1000 + round, b"only once");
        world.line.roll();
        world.settle();
        extents_max = extents_max.max(world.extents(0)).max(world.extents(1));
    }
    world.check();
    // 300 segments of about 1 KB: less than three tiers.
    assert!(extents_max <= 12, "{extents_max}");
    world.reopen().check();
}

#[test]
fn dead_bytes_stay_under_half() {
    let mut world = World::new();
    for round in 0..200_u64 {
        for stream in 0..4 {
            world.append(0, stream, &[round as u8; 500]);
        }
        if round >= 10 {
            for stream in 0..4 {
                world.trim(0, stream, round - 10);
            }
        }
        if round % 10 == 9 {
            world.roll_and_settle();
        }
    }
    world.check();
    let live: usize = {
        let state = world.line.state.lock();
        state
            .models
            .values()
            .flat_map(|model| model.records.values())
            .map(Vec::len)
            .sum()
    };
    assert!(live > 20_000);
    let held = world.filer.extents().size();
    assert!(held < 2 * live as u64 + 4096, "{held} bytes for {live}");
}

#[test]
fn offsets_are_never_reused_after_a_stream_is_emptied() {
    let mut world = World::new();
    for stream in 0..20 {
        for _ in 0..stream + 1 {
            world.append(0, stream, b"something");
        }
    }
    world.roll_and_settle();
    for stream in 0..20 {
        let next = stream + 1;
        match stream % 2 {
            0 => world.trim(0, stream, next),
            _ => world.erase(0, stream),
        }
    }
    world.roll_and_settle();
    for _ in 0..30 {
        world.append(0, 99, b"another");
        world.roll_and_settle();
    }
    let world = world.reopen();
    world.check();
    let streams: Vec<_> = world.filer.extents().streams(ShardId(0)).unwrap().collect();
    for (stream, summary) in streams.into_iter().take(20).enumerate() {
        let summary = summary.unwrap();
        let next = stream as u64 + 1;
        assert_eq!(
            (summary.start, summary.next, summary.bytes),
            (next, next, 0)
        );
    }
}

#[test]
fn extents_held_by_a_reader_survive_merging() {
    let mut world = World::new();
    for round in 0..3_u8 {
        world.append(0, 1, &[round; 100]);
        world.roll_and_settle();
    }
    let before = world.filer.extents().clone();
    let expected = read_all(&before);
    for round in 0..5_u8 {
        world.append(0, 1, &[round; 100]);
        world.roll_and_settle();
    }
    let totals = world.filer.totals();
    assert!(totals.merges > 0 && totals.merged_bytes > 0);
    assert_eq!(read_all(&before), expected);
}

#[test]
fn sizes_and_times_are_found_across_extents() {
    let mut world = World::new();
    for round in 0..6_u8 {
        for _ in 0..3 {
            world.append(0, 1, &[round; 10]);
        }
        world.append(0, 2, b"between");
        world.roll_and_settle();
    }
    assert!(world.extents(0) > 1);
    let (extents, shard, stream) = (world.filer.extents(), ShardId(0), StreamId(1));
    for kept in 0..18 {
        let cut = extents.offset_for_bytes(shard, stream, 10 * kept).unwrap();
        assert_eq!(cut, Some(18 - kept));
        assert_eq!(extents.bytes(shard, stream, 18 - kept).unwrap(), 10 * kept);
    }
    assert_eq!(extents.offset_for_bytes(shard, stream, 180).unwrap(), None);
    for sequence in 1..=6 {
        let offset = extents
            .offset_for_time(shard, stream, 0, 1000 * sequence - 999)
            .unwrap();
        assert_eq!(offset, Some(3 * (sequence - 1)));
    }
    assert_eq!(
        extents.offset_for_time(shard, stream, 0, 6001).unwrap(),
        None
    );
}

#[test]
fn stream_start_and_next_survive_merging() {
    let mut world = World::new();
    for stream in 0..6 {
        for _ in 0..10 {
            world.append(0, stream, b"something");
        }
    }
    world.trim(0, 1, 4);
    world.trim(0, 2, 10);
    world.erase(0, 3);
    world.line.roll();
    // The line knows no starts here; only the stream tables have them.
    world.line.state.lock().starts.clear();
    world.run();
    for _ in 0..8 {
        world.append(0, 9, b"another");
        world.line.roll();
        world.run();
    }
    assert!(world.filer.totals().merged_bytes > 0);
    let of = |stream: u64| {
        let mut streams = world.filer.extents().streams(ShardId(0)).unwrap();
        streams
            .find_map(|found| found.ok().filter(|found| found.stream.0 == stream))
            .unwrap()
    };
    assert_eq!(
        (of(1).start, of(1).next, of(1).erased, of(1).bytes),
        (4, 10, 0, 54)
    );
    assert_eq!(
        (of(2).start, of(2).next, of(2).erased, of(2).bytes),
        (10, 10, 0, 0)
    );
    assert_eq!(
        (of(3).start, of(3).next, of(3).erased, of(3).bytes),
        (10, 10, 10, 0)
    );
    assert_eq!(
        (of(4).start, of(4).next, of(4).erased, of(4).bytes),
        (0, 10, 0, 90)
    );
}
