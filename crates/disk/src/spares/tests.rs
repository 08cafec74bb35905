use super::*;
use crate::SimulatedDisk;
use crate::simulated::{Fault, Kind as Call};

const LINE_DIR: &str = "line";
const SIZE: u64 = 16 << 10;

fn disk() -> Arc<SimulatedDisk> {
    let disk = Arc::new(SimulatedDisk::new(1));
    disk.create_dir(LINE_DIR).unwrap();
    disk.sync_dir("").unwrap();
    disk
}

fn open(disk: &Arc<SimulatedDisk>) -> Spares {
    Spares::open(disk.clone(), LINE_DIR, SIZE).unwrap()
}

fn paths(disk: &SimulatedDisk) -> Vec<String> {
    disk.files().into_iter().map(|(path, _)| path).collect()
}

/// Returns spares of which one was used before and is taken again.
fn with_used_one_taken(disk: &Arc<SimulatedDisk>) -> (Spares, Spare) {
    let spares = open(disk);
    spares.prepare().unwrap();
    use_and_return(disk, &spares, "1.seg");
    let taken = spares.take().unwrap();
    (spares, taken)
}

/// Uses a spare as the line does, and gives it back as the filing does.
fn use_and_return(disk: &SimulatedDisk, spares: &Spares, name: &str) {
    let spare = spares.take().unwrap();
    let path = format!("{LINE_DIR}/{name}");
    disk.rename(&spare.path, &path).unwrap();
    spare.file.write_at(b"old bytes", 5000).unwrap();
    spares.give_back(path, spare.file, false).unwrap();
}

fn is_zero(spare: &Spare) -> bool {
    let mut bytes = vec![1; SIZE as usize];
    spare.file.read_at(&mut bytes, 0).unwrap();
    bytes.iter().all(|&byte| byte == 0)
}

#[test]
fn spare_is_zeroed_and_durable() {
    let disk = disk();
    let spares = open(&disk);
    assert!(spares.take().is_none());
    spares.prepare().unwrap();
    disk.crash_with(|_| crate::simulated::Fate::Lost);
    let spares = open(&disk);
    let spare = spares.take().unwrap();
    assert!(is_zero(&spare));
    assert_eq!(spare.file.size().unwrap(), SIZE);
    assert_eq!(spares.ready(), 0);
}

#[test]
fn used_file_is_reused_unless_all_must_be_zeroed() {
    let disk = disk();
    let spares = open(&disk);
    spares.prepare().unwrap();
    use_and_return(&disk, &spares, "1.seg");
    assert_eq!((spares.ready(), spares.dirty()), (1, 0));
    use_and_return(&disk, &spares, "2.seg");
    spares.zero_all(true);
    assert_eq!((spares.ready(), spares.dirty()), (0, 1));
    while spares.zero().unwrap() {}
    assert_eq!((spares.ready(), spares.dirty()), (1, 0));
    use_and_return(&disk, &spares, "3.seg");
    assert_eq!((spares.ready(), spares.dirty()), (0, 1));
    spares.zero_all(false);
    while spares.zero().unwrap() {}
    assert!(is_zero(&spares.take().unwrap()));
}

#[test]
fn files_count_as_dirty_until_they_are_zeroed() {
    let disk = disk();
    let (spares, taken) = with_used_one_taken(&disk);
    spares.zero_all(true);
    let mark = spares.mark();
    assert!(spares.is_stale_before(mark));
    disk.rename(&taken.path, "line/2.seg").unwrap();
    spares
        .give_back("line/2.seg".into(), taken.file, false)
        .unwrap();
    let before = spares.mark();
    assert!(!spares.is_stale_before(mark));
    assert!(spares.is_dirty_before(before));
    while spares.zero().unwrap() {}
    assert!(!spares.is_dirty_before(before));
}

#[test]
fn a_discarded_spare_is_removed_and_not_stale() {
    let disk = disk();
    let (spares, taken) = with_used_one_taken(&disk);
    let mark = spares.mark();
    spares.discard(&taken.path, &taken.file).unwrap();
    assert!(!spares.is_stale_before(mark));
    assert!(paths(&disk).is_empty());
}

#[test]
fn opening_spares_zeroes_used_files_and_removes_unfinished_or_missized_ones() {
    let disk = disk();
    let spares = open(&disk);
    spares.prepare().unwrap();
    use_and_return(&disk, &spares, "1.seg");
    spares.begin().unwrap();
    assert_eq!(paths(&disk).len(), 2);
    let spares = open(&disk);
    assert_eq!(
        (spares.ready(), spares.dirty(), paths(&disk).len()),
        (0, 1, 1)
    );
    while spares.zero().unwrap() {}
    assert!(is_zero(&spares.take().unwrap()));
    let spares = Spares::open(disk.clone(), LINE_DIR, 2 * SIZE).unwrap();
    assert_eq!(
        (spares.ready(), spares.dirty(), paths(&disk).len()),
        (0, 0, 0)
    );
}

#[test]
fn file_that_cannot_be_zeroed_is_removed() {
    let disk = disk();
    let spares = open(&disk);
    disk.fail_once(Fault::Full, |call| call.kind == Call::Write);
    assert!(spares.prepare().is_err());
    assert!(paths(&disk).is_empty());
    spares.prepare().unwrap();
    assert_eq!(spares.ready(), 1);
}

#[test]
fn shrink_removes_all_but_the_given_number() {
    let disk = disk();
    let spares = open(&disk);
    for _ in 0..3 {
        spares.prepare().unwrap();
    }
    spares.begin().unwrap();
    spares.shrink(1).unwrap();
    assert_eq!(
        (spares.ready(), spares.dirty(), paths(&disk).len()),
        (1, 0, 1)
    );
}

#[test]
fn allocated_spare_reads_as_zeros_and_is_durable() {
    let disk = disk();
    let spares = open(&disk);
    spares.allocate().unwrap();
    assert_eq!((spares.ready(), spares.dirty()), (1, 0));
    disk.crash_with(|_| crate::simulated::Fate::Lost);
    let spare = open(&disk).take().unwrap();
    assert!(is_zero(&spare));
    assert_eq!(spare.file.size().unwrap(), SIZE);
}

#[test]
fn spare_is_zeroed_where_it_cannot_be_allocated() {
    let disk = disk();
    disk.refuse_allocation();
    let spares = open(&disk);
    spares.allocate().unwrap();
    assert_eq!((spares.ready(), spares.dirty()), (0, 1));
    while spares.zero().unwrap() {}
    assert_eq!((spares.ready(), paths(&disk).len()), (1, 1));
}

#[test]
fn failed_allocation_leaves_no_file() {
    for kind in [Call::SetSize, Call::SyncAll] {
        let disk = disk();
        let spares = open(&disk);
        disk.fail_once(Fault::Full, move |call| call.kind == kind);
        assert!(spares.allocate().is_err());
        assert!(paths(&disk).is_empty(), "{kind:?}");
        assert_eq!((spares.ready(), spares.dirty()), (0, 0));
    }
}

#[test]
fn file_that_stays_in_use_is_not_stale_any_more() {
    let disk = disk();
    let (spares, taken) = with_used_one_taken(&disk);
    let mark = spares.mark();
    assert!(spares.is_stale(&taken.file) && spares.is_stale_before(mark));
    spares.part_with(&taken.file);
    assert!(!spares.is_stale(&taken.file) && !spares.is_stale_before(mark));
}
