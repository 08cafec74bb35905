use std::collections::BTreeSet;
use std::io::ErrorKind;

use super::*;

/// Creates a disk with a durable file "a" of `x` bytes, this many sectors long.
fn disk(sectors: usize) -> (SimulatedDisk, Arc<dyn File>) {
    let disk = SimulatedDisk::new(1);
    let file = disk.create("a").unwrap();
    file.write_at(&vec![b'x'; sectors * 512], 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir("").unwrap();
    (disk, file)
}

fn durable(disk: &SimulatedDisk, path: &str) -> Vec<u8> {
    disk.images(path).unwrap().1
}

#[test]
fn synced_bytes_survive_a_crash() {
    let (disk, file) = disk(2);
    file.write_at(b"new", 510).unwrap();
    disk.crash_with(|_| Fate::Lost);
    assert_eq!(durable(&disk, "a"), vec![b'x'; 1024]);

    let file = disk.open("a").unwrap();
    file.write_at(b"new", 510).unwrap();
    file.sync_data().unwrap();
    disk.crash_with(|_| Fate::Lost);
    assert_eq!(&durable(&disk, "a")[508..514], b"xxnewx");
}

#[test]
fn crash_retains_any_subset_of_sectors_and_tears_some() {
    let (disk, file) = disk(3);
    file.write_at(&[b'y'; 1536], 0).unwrap();
    disk.crash_with(|unsynced| match unsynced {
        Unsynced::Sector { sector: 0, .. } => Fate::Lost,
        Unsynced::Sector { sector: 1, .. } => Fate::Torn(100),
        _ => Fate::Kept,
    });
    let mut wanted = vec![b'x'; 512];
    wanted.extend([b'y'; 100]);
    wanted.extend([b'x'; 412]);
    wanted.extend([b'y'; 512]);
    assert_eq!(durable(&disk, "a"), wanted);
}

#[test]
fn sync_data_makes_the_size_durable_only_if_needed() {
    let (disk, file) = disk(1);
    file.write_at(b"tail", 600).unwrap();
    file.sync_data().unwrap();
    file.set_size(2000).unwrap();
    file.sync_data().unwrap();
    assert_eq!(durable(&disk, "a").len(), 604);
    file.sync_all().unwrap();
    assert_eq!(durable(&disk, "a").len(), 2000);
    file.set_size(10).unwrap();
    file.sync_data().unwrap();
    disk.crash_with(|_| Fate::Lost);
    assert_eq!(durable(&disk, "a").len(), 2000);
}

#[test]
fn truncated_bytes_read_as_zeros_after_extension() {
    let (disk, file) = disk(2);
    file.set_size(0).unwrap();
    file.write_at(b"z", 600).unwrap();
    file.sync_data().unwrap();
    disk.crash_with(|_| Fate::Lost);
    let bytes = durable(&disk, "a");
    assert_eq!(bytes[..600], [0; 600]);
    assert_eq!(bytes[600], b'z');
}

#[test]
fn name_is_volatile_until_its_directory_is_synced() {
    let (disk, _) = disk(1);
    disk.create_dir("line").unwrap();
    disk.create("line/b").unwrap().sync_all().unwrap();
    disk.sync_dir("line").unwrap();
    let lost = disk.fork();
    lost.crash_with(|_| Fate::Lost);
    assert_eq!(lost.list("").unwrap(), ["a"]);
    disk.sync_dir("").unwrap();
    disk.crash_with(|_| Fate::Lost);
    assert_eq!(disk.list("").unwrap(), ["a", "line"]);
    assert_eq!(disk.list("line").unwrap(), ["b"]);
    disk.remove("line/b").unwrap();
    disk.crash_with(|_| Fate::Lost);
    assert_eq!(disk.list("line").unwrap(), ["b"]);
}

#[test]
fn rename_within_a_directory_is_atomic() {
    for seed in 0..200 {
        let (disk, _) = disk(1);
        let file = disk.create("b").unwrap();
        file.write_at(b"new", 0).unwrap();
        file.sync_all().unwrap();
        disk.sync_dir("").unwrap();
        disk.rename("b", "a").unwrap();
        disk.crash(&mut fastrand::Rng::with_seed(seed));
        match disk.list("").unwrap().len() {
            1 => assert_eq!(durable(&disk, "a"), b"new"),
            _ => assert_eq!(durable(&disk, "a").len(), 512),
        }
    }
}

#[test]
fn random_crashes_retain_nothing_everything_and_subsets() {
    let mut kept = BTreeSet::new();
    let mut torn = 0;
    for seed in 0..300 {
        let (disk, file) = disk(8);
        file.write_at(&[b'y'; 4096], 0).unwrap();
        disk.crash(&mut fastrand::Rng::with_seed(seed));
        let bytes = durable(&disk, "a");
        let sectors = bytes.chunks(512);
        let whole: Vec<bool> = sectors.map(|sector| sector == [b'y'; 512]).collect();
        torn += bytes
            .chunks(512)
            .filter(|sector| sector[0] == b'y' && sector[511] == b'x')
            .count();
        kept.insert(whole);
    }
    assert!(kept.contains(&vec![true; 8]) && kept.contains(&vec![false; 8]));
    assert!(kept.len() > 50 && torn > 20, "{} {torn}", kept.len());
}

#[test]
fn failed_sync_loses_bytes_that_the_next_does_not_restore() {
    let mut lost = 0;
    for seed in 0..20 {
        let disk = SimulatedDisk::new(seed);
        let file = disk.create("a").unwrap();
        file.write_at(&[b'x'; 4096], 0).unwrap();
        file.sync_all().unwrap();
        disk.sync_dir("").unwrap();
        file.write_at(&[b'y'; 4096], 0).unwrap();
        disk.fail_once(Fault::Broken, |call| call.kind == Kind::SyncData);
        let error = file.sync_data().unwrap_err();
        assert!(error.to_string().starts_with("a: "), "{error}");
        file.sync_data().unwrap();
        disk.crash_with(|_| Fate::Kept);
        lost += usize::from(durable(&disk, "a").contains(&b'x'));
    }
    assert!(lost > 10, "{lost}");
}

#[test]
fn lying_sync_loses_its_bytes_at_a_crash() {
    let (disk, file) = disk(1);
    file.write_at(b"new", 0).unwrap();
    disk.fail_once(Fault::Lie, |call| call.kind == Kind::SyncData);
    file.sync_data().unwrap();
    disk.create("b").unwrap();
    disk.fail_once(Fault::Lie, |call| call.kind == Kind::SyncDir);
    disk.sync_dir("").unwrap();
    disk.crash_with(|_| Fate::Kept);
    assert_eq!(durable(&disk, "a"), [b'x'; 512]);
    assert_eq!(disk.list("").unwrap(), ["a"]);
}

#[test]
fn faults_hit_only_the_selected_calls() {
    let (disk, file) = disk(1);
    let next = disk.calls();
    disk.fail_once(Fault::Full, move |call| call.number == next + 1);
    file.write_at(b"1", 0).unwrap();
    let full = file.write_at(b"2", 0).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    file.write_at(b"3", 0).unwrap();

    disk.fail_once(Fault::Short, |call| call.kind == Kind::Write);
    assert!(file.write_at(&[b'w'; 100], 0).unwrap() < 100);

    disk.fail_always(Fault::Broken, |call| call.path == "a");
    for _ in 0..2 {
        file.read_at(&mut [0; 1], 0).unwrap_err();
        disk.open("a").unwrap_err();
    }
    disk.heal();
    disk.open("a").unwrap();
}

#[test]
fn a_full_simulated_disk_writes_short_until_space_is_freed() {
    let (disk, file) = disk(2);
    disk.set_capacity(1500);
    file.write_at(&[b'i'; 1024], 0).unwrap();
    assert_eq!(file.write_at(&[b'n'; 1000], 1024).unwrap(), 476);
    let full = file.write_at(b"n", 1500).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    assert!(file.set_size(1501).is_err());
    disk.remove("a").unwrap();
    assert_eq!(disk.used(), 1500);
    drop(file);
    assert_eq!(disk.used(), 0);
}

#[test]
fn kill_invalidates_handles_but_loses_no_bytes() {
    let (disk, file) = disk(1);
    file.write_at(b"new", 0).unwrap();
    disk.kill();
    file.write_at(b"late", 0).unwrap_err();
    let mut bytes = [0; 3];
    disk.open("a").unwrap().read_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"new");
    assert_eq!(disk.unsynced().len(), 1);
    disk.crash_with(|_| Fate::Lost);
    assert_eq!(durable(&disk, "a"), [b'x'; 512]);
}

#[test]
fn write_back_makes_some_bytes_durable() {
    let mut counts = BTreeSet::new();
    for seed in 0..50 {
        let (disk, file) = disk(4);
        file.write_at(&[b'y'; 2048], 0).unwrap();
        disk.write_back(&mut fastrand::Rng::with_seed(seed));
        counts.insert(disk.unsynced().len());
        disk.crash_with(|_| Fate::Kept);
        assert_eq!(durable(&disk, "a"), [b'y'; 2048]);
    }
    assert!(counts.contains(&0) && counts.contains(&4), "{counts:?}");
}

#[test]
fn trace_yields_the_disk_after_each_call() {
    let (disk, file) = disk(1);
    disk.record();
    file.write_at(b"1", 0).unwrap();
    file.sync_data().unwrap();
    disk.create("b").unwrap().write_at(b"2", 0).unwrap();
    disk.rename("b", "c").unwrap();
    disk.sync_dir("").unwrap();
    file.set_size(1).unwrap();
    disk.remove("a").unwrap();
    let recorded = disk.recorded();
    let trace = disk.take_trace().unwrap();
    assert_eq!(trace.len(), recorded);
    let after: Vec<_> = trace.prefixes().collect();
    assert_eq!(after.len(), recorded + 1);
    assert_eq!(after[0].files(), [("a".to_owned(), 512)]);
    assert_eq!(after[1].unsynced().len(), 1);
    assert_eq!(after[2].unsynced().len(), 0);
    assert_eq!(after[recorded].files(), disk.files());
    after[recorded].crash_with(|_| Fate::Lost);
    assert_eq!(
        after[recorded].files(),
        [("a".to_owned(), 512), ("c".to_owned(), 0)]
    );
    assert!(
        trace.describe(0).starts_with("Write"),
        "{}",
        trace.describe(0)
    );
}

#[test]
fn flip_changes_a_single_bit() {
    let (disk, _) = disk(1);
    disk.flip("a", 8 * 100 + 3).unwrap();
    let bytes = durable(&disk, "a");
    assert_eq!(bytes[100], b'x' ^ 8);
    assert_eq!(bytes.iter().filter(|byte| **byte != b'x').count(), 1);
}
