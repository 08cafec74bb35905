//! `telpher inspect` of directories that this process has written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journal::disk::RealDisk;
use journal::{Journal, Options, ShardId, Status, StreamId};
use platform::Disk;

use crate::support::{Place, eventually};
use crate::upgrade::FORMAT;

const SHARD: ShardId = ShardId(1);
const STREAM: StreamId = StreamId(1);

/// Creates a data directory with a stream `acme/demo/log` of `count` records, each its own number
/// repeated 1,000 times; its journal has segments of 64 KiB.
fn written(place: &Place, count: u8) -> PathBuf {
    let data = place.path("data");
    let options = Options {
        journal_id: 7,
        entropy: 7,
        shard_count: 2,
        segment_size: 64 << 10,
        reserve_size: 0,
        ..Options::default()
    };
    let disk = Arc::new(RealDisk::new(data.join("journal")));
    let (journal, _) = Journal::open(disk, &options, || 1_000).unwrap();
    let append = |shard, stream, tag, bytes: &[u8]| {
        let mut guard = journal.lock(shard, 1_000);
        let appended = guard.append(stream, None, tag, bytes).unwrap();
        drop(guard);
        assert_eq!(journal.wait(appended.ticket), Status::Durable);
    };
    // Entries of format 1 and of format 2.
    append(ShardId(0), store::DIRECTORY, 2, b"\x01\0acme/demo/log");
    append(
        SHARD,
        store::DIRECTORY,
        130,
        b"\x03\0\0\0\0\0\0\0acme/demo/other",
    );
    for number in 0..count {
        append(SHARD, STREAM, 0, &[number; 1000]);
    }
    append(SHARD, StreamId(3), 0, b"record");
    eventually("everything sealed is filed", || {
        journal.filing().waiting == 0
    });
    data
}

/// Returns every file with its bytes and its modification time.
fn contents(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut all = BTreeMap::new();
    for entry in dir.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.append(&mut contents(&path));
        } else {
            let changed = path.metadata().unwrap().modified().unwrap();
            all.insert(path.clone(), (std::fs::read(&path).unwrap(), changed));
        }
    }
    all
}

#[test]
fn an_undamaged_directory_is_described_and_unchanged() {
    let place = Place::new();
    let data = written(&place, 200);
    let before = contents(&data);
    let ended = place.run("inspect data");
    ended.expect(0);
    assert!(
        ended
            .stdout
            .contains("\ncomplete: every page and every block"),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stdout.contains("stream acme/demo/log"),
        "{}",
        ended.stdout
    );
    let found = place.run("inspect data/journal --json").expect(0).json();
    assert_eq!(found["whole"], true);
    assert!(
        !found["extents"].as_array().unwrap().is_empty(),
        "{found:#}"
    );
    let streams = found["streams"].as_array().unwrap();
    let log = streams
        .iter()
        .find(|one| one["name"] == "acme/demo/log")
        .unwrap();
    assert_eq!(
        (&log["kind"], &log["records"]),
        (&"stream".into(), &200.into())
    );
    assert_eq!(
        (&log["bytes"], &log["dead_bytes"]),
        (&200_000.into(), &0.into())
    );
    assert!(contents(&data) == before, "something was changed");
}

/// Flips a bit in the first file that contains these bytes, and returns its name.
fn flip(data: &Path, bytes: &[u8]) -> String {
    for (path, (content, _)) in contents(&data.join("journal")) {
        let name = path
            .strip_prefix(data.join("journal"))
            .unwrap()
            .display()
            .to_string();
        // Old bytes in spare files are unused.
        let is_live = name.starts_with("extents/") || name.ends_with(".seg") && name.contains("/0");
        let found = content
            .windows(bytes.len())
            .position(|window| window == bytes);
        if let Some(at) = found.filter(|_| is_live) {
            let mut content = content;
            content[at] ^= 1;
            std::fs::write(&path, content).unwrap();
            return name;
        }
    }
    panic!("nobody has these bytes");
}

#[test]
fn damage_is_reported_with_its_file_and_streams() {
    // The first record is in an extent, the last but one in the write-ahead log.
    for number in [0, 198] {
        let place = Place::new();
        let data = written(&place, 200);
        let name = flip(&data, &[number; 500]);
        let ended = place.run("inspect data");
        ended
            .expect(1)
            .shows_error("data is damaged", "restore a backup");
        let line = ended
            .stdout
            .lines()
            .find(|line| line.starts_with("damaged: "));
        assert!(
            line.is_some_and(|line| line.contains(&name)),
            "{name}: {}",
            ended.stdout
        );
        let missing = ended
            .stdout
            .lines()
            .find(|line| line.starts_with("missing: "));
        let missing = missing.unwrap_or_else(|| panic!("{}", ended.stdout));
        assert!(missing.contains("stream acme/demo/log"), "{missing}");
        let found = place.run("inspect data --json").expect(1).json();
        let damage = &found["damage"][0];
        assert_eq!(damage["path"], name.as_str());
        let dependents = damage["dependents"].as_array().unwrap();
        assert!(
            dependents.iter().any(|one| one["name"] == "acme/demo/log"),
            "{found:#}"
        );
    }
}

#[test]
fn names_of_both_directory_formats_are_listed() {
    let place = Place::new();
    written(&place, 3);
    let found = place.run("inspect data --json").expect(0).json();
    assert_eq!(found["format_version"], FORMAT);
    for (name, records) in [("acme/demo/log", 3), ("acme/demo/other", 1)] {
        let mut streams = found["streams"].as_array().unwrap().iter();
        let stream = streams.find(|one| one["name"] == name).unwrap();
        let (shard, kind) = (&stream["shard"], &stream["kind"]);
        assert_eq!((shard, kind), (&1.into(), &"stream".into()));
        assert_eq!(stream["records"], records);
    }
}

#[test]
fn a_directory_in_use_is_refused_without_force_read() {
    let place = Place::new();
    let data = written(&place, 3);
    let lock = platform::RealDisk.lock(&data.join("node.lock")).unwrap();
    let own = format!("in use by process {}", std::process::id());
    for dir in ["data", "data/journal"] {
        let ended = place.run(&format!("inspect {dir}"));
        ended.expect(4).shows_error(&own, "--force-read");
        assert_eq!(ended.stdout, "");
    }
    place.run("inspect data --force-read").expect(0);
    drop(lock);
    place.run("inspect data").expect(0);
}

#[test]
fn a_directory_without_a_journal_is_refused() {
    let place = Place::new();
    place
        .run("inspect nowhere")
        .expect(3)
        .shows_error("nowhere is not a directory", "data directory");
    std::fs::create_dir(place.path("empty")).unwrap();
    place
        .run("inspect empty")
        .expect(1)
        .shows_error("this is no journal", "that has run");
}
