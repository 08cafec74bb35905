use super::*;

const SECRET: &[u8] = b"the secret that must go";

fn world_with_secrets() -> World {
    let mut world = World::new();
    for round in 0..60_u64 {
        world.append(0, round % 7, &[round as u8; 300]);
        world.append(0, 50, SECRET);
        world.append(1, 50, b"another shard's stream of that number");
        if round % 4 == 3 {
            world.line.roll();
        }
        if round % 9 == 8 {
            world.settle();
        }
    }
    world
}

#[test]
fn erased_bytes_are_in_no_file_after_the_erase_deadline() {
    let mut world = world_with_secrets();
    assert!(!world.files_with(SECRET).is_empty());
    world.erase(0, 50);
    world.append(0, 50, b"what comes after");
    assert!(world.filer.erase_pending().is_some());
    world.settle();
    assert_eq!(world.filer.erase_pending(), None);
    assert_eq!(world.files_with(SECRET), [""; 0]);
    world.check();
    // Later writes reuse files, and none of them brings erased bytes back.
    for _ in 0..10 {
        world.append(0, 3, b"something");
        world.roll_and_settle();
    }
    assert_eq!(world.files_with(SECRET), [""; 0]);
    world.check();
}

#[test]
fn erase_waits_for_its_time_also_across_a_restart() {
    let mut world = World::new();
    for round in 0..50_u8 {
        world.append(0, 1, &[round; 400]);
        world.append(0, 50, SECRET);
    }
    world.roll_and_settle();
    world.erase(0, 50);
    world.line.roll();
    world.run();
    assert_eq!(world.line.sealed_count(), 0);
    assert!(world.extents(0) > 1);
    let mut world = world.reopen();
    assert!(
        world
            .files_with(SECRET)
            .iter()
            .any(|path| path.starts_with("extents/"))
    );
    assert!(world.filer.erase_pending().is_some());
    world.settle();
    assert_eq!(world.filer.erase_pending(), None);
    assert_eq!(world.files_with(SECRET), [""; 0]);
    world.check();
}

#[test]
fn recycled_files_are_zeroed_after_a_restart_before_reuse() {
    let mut world = world_with_secrets();
    world.settle();
    // Everything is filed and the extents are clean; the recycled files are not.
    world.erase(0, 50);
    world.line.roll();
    world.run();
    let mut world = world.reopen();
    while let Some(spare) = world.line.spares.take() {
        let mut bytes = vec![0; SEGMENT_SIZE as usize];
        spare.file.read_at(&mut bytes, 0).unwrap();
        assert!(bytes.iter().all(|&byte| byte == 0), "{}", spare.path);
    }
    world.settle();
    assert_eq!(world.files_with(SECRET), [""; 0]);
}

#[test]
fn erase_is_not_carried_out_before_it_is_durable() {
    let mut world = world_with_secrets();
    world.roll_and_settle();
    let expected = read_all(world.filer.extents());
    // Added, but never written: the line failed before.
    world.erasures.note(ShardId(0), StreamId(50), 60, 0);
    world.settle();
    assert!(world.filer.erase_pending().is_some());
    assert_eq!(read_all(world.filer.extents()), expected);
}

#[test]
fn many_erases_are_carried_out_in_one_round() {
    let mut world = World::new();
    for stream in 0..300_u64 {
        world.append(0, stream, SECRET);
        world.append(0, 1000 + stream, &[9; 60]);
    }
    world.roll_and_settle();
    for stream in 0..300 {
        world.erase(0, stream);
    }
    let segments = world.filer.totals().segments;
    let written = world.filer.totals().merged_bytes;
    world.settle();
    assert_eq!(world.filer.erase_pending(), None);
    assert_eq!(world.files_with(SECRET), [""; 0]);
    assert!(world.filer.totals().segments - segments <= 2);
    assert!(world.filer.totals().merged_bytes - written < 200_000);
    world.check();
}
