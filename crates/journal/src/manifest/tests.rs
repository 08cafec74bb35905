use proptest::prelude::*;

use super::*;
use crate::disk::simulated::{Fault, Kind, SimulatedDisk};

fn sample() -> Manifest {
    let mut manifest = Manifest::new(0x0123_4567_89ab_cdef, 3);
    manifest.filed = Position(1 << 20);
    manifest.sequence = 12;
    manifest.extent_next = 9;
    let extent = |number, begin, end| Identity {
        journal_id: manifest.journal_id,
        shard: ShardId(1),
        number,
        begin: Position(begin),
        end: Position(end),
        index: Index(5),
        term: 3,
    };
    manifest.shards[1] = Shard {
        index: Index(77),
        term: 3,
        extents: vec![extent(8, 0, 4096), extent(4, 8192, 1 << 20)],
    };
    manifest
}

fn store(manifest: &Manifest, disk: &SimulatedDisk) -> io::Result<()> {
    manifest.prepare(disk)?;
    Manifest::commit(disk)
}

#[test]
fn manifest_is_loaded_and_replaced() {
    let disk = SimulatedDisk::new(1);
    assert_eq!(Manifest::load(&disk).unwrap(), None);
    let first = Manifest::new(7, 2);
    store(&first, &disk).unwrap();
    assert_eq!(Manifest::load(&disk).unwrap(), Some(first));
    store(&sample(), &disk).unwrap();
    assert_eq!(Manifest::load(&disk).unwrap(), Some(sample()));
    assert_eq!(disk.files().len(), 1);
}

#[test]
fn a_crash_during_store_leaves_the_old_or_the_new_manifest() {
    let mut rng = fastrand::Rng::with_seed(3);
    let (old, new) = (Manifest::new(7, 2), sample());
    for call in 0..12 {
        for seed in 0..30 {
            let disk = SimulatedDisk::new(seed);
            store(&old, &disk).unwrap();
            let number = disk.calls() + call;
            disk.fail_always(Fault::Broken, move |made| made.number >= number);
            let stored = store(&new, &disk).is_ok();
            disk.heal();
            disk.crash(&mut rng);
            let loaded = Manifest::load(&disk).unwrap().unwrap();
            assert!(loaded == new || (loaded == old && !stored));
        }
    }
}

#[test]
fn failed_preparation_changes_nothing_and_can_be_repeated() {
    let disk = SimulatedDisk::new(1);
    store(&Manifest::new(7, 2), &disk).unwrap();
    disk.fail_once(Fault::Full, |call| call.kind == Kind::Write);
    assert!(sample().prepare(&disk).is_err());
    assert_eq!(Manifest::load(&disk).unwrap(), Some(Manifest::new(7, 2)));
    store(&sample(), &disk).unwrap();
    assert_eq!(Manifest::load(&disk).unwrap(), Some(sample()));
}

#[test]
fn loaded_manifest_is_durable() {
    let disk = SimulatedDisk::new(1);
    store(&Manifest::new(7, 2), &disk).unwrap();
    sample().prepare(&disk).unwrap();
    disk.rename(PATH_UNFINISHED, PATH).unwrap();
    assert_eq!(Manifest::load(&disk).unwrap(), Some(sample()));
    disk.crash_with(|_| crate::disk::simulated::Fate::Lost);
    assert_eq!(Manifest::load(&disk).unwrap(), Some(sample()));
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let mut bytes = sample().encode();
    bytes[4] = 4;
    let error = Manifest::decode(&bytes).unwrap_err().to_string();
    assert_eq!(
        error,
        "MANIFEST has format version 4, and this build reads up to 3"
    );
}

#[test]
fn every_flipped_bit_and_every_cut_is_an_error() {
    let bytes = sample().encode();
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(Manifest::decode(&damaged).is_err());
    }
    for size in 0..bytes.len() {
        assert!(Manifest::decode(&bytes[..size]).is_err());
    }
}

/// The format of version 1, which every later build reads. The file is never written again.
#[test]
fn the_manifest_format_matches_the_golden_file_of_version_1() {
    let golden = include_bytes!("../../tests/fixtures/v1/manifest.bin");
    let manifest = Manifest {
        version: 1,
        ..sample()
    };
    assert_eq!(manifest.encode(), golden);
    assert_eq!(Manifest::decode(golden).unwrap(), manifest);
}

/// The format of version 2, which every later build reads. The file is never written again. Builds
/// of version 1 refuse it by its version, which they read before anything else.
#[test]
fn the_manifest_format_matches_the_golden_file_of_version_2() {
    let golden = include_bytes!("../../tests/fixtures/v2/manifest.bin");
    assert_eq!(golden[4..8], 2_u32.to_le_bytes());
    let manifest = Manifest {
        version: 2,
        ..sample()
    };
    assert_eq!(manifest.encode(), golden);
    assert_eq!(Manifest::decode(golden).unwrap(), manifest);
}

/// The format of version 3, which every later build reads. The file is never written again. Builds
/// of version 2 refuse it before they remove a segment that is filed.
#[test]
fn the_manifest_format_matches_the_golden_file_of_version_3() {
    let golden = include_bytes!("../../tests/fixtures/v3/manifest.bin");
    assert_eq!(golden[4..8], 3_u32.to_le_bytes());
    assert_eq!(sample().encode(), golden);
    assert_eq!(Manifest::decode(golden).unwrap(), sample());
}

proptest! {
    #[test]
    fn decoding_any_bytes_does_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), shards in 0..70_000_u32) {
        let _ = Manifest::decode(&bytes);
        if bytes.len() >= HEAD_SIZE {
            bytes[0..4].copy_from_slice(&MAGIC);
            bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
            bytes[12..16].copy_from_slice(&shards.to_le_bytes());
            let crc = crc(&bytes);
            bytes[8..12].copy_from_slice(&crc.to_le_bytes());
            let _ = Manifest::decode(&bytes);
        }
    }
}
