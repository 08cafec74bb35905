//! Formats an inspection as text.

use std::path::Path;

use console::output::table;
use inspect::{
    Damage, Dependent, Evidence, ExtentView, Inspection, MissingRecords, SegmentState, SegmentView,
    StreamView,
};
use journal::{ShardId, StreamId};

use super::names::Names;

/// Number of streams that are listed without `--streams`.
const STREAMS_SHOWN: usize = 10;

/// Formats the whole inspection.
pub(super) fn text(path: &Path, found: &Inspection, names: &Names, all_streams: bool) -> String {
    let mut text = summary(path, found);
    text.push_str(&files(found));
    text.push_str(&shards(found));
    text.push_str(&streams(found, names, all_streams));
    text.push('\n');
    text.push_str(&verdict(found, names));
    text
}

fn summary(path: &Path, found: &Inspection) -> String {
    let line = &found.line;
    let extents = &found.extents;
    let live: u64 = found.streams.values().map(|one| one.bytes).sum();
    let dead: u64 = found.streams.values().map(|one| one.dead_bytes).sum();
    let records: u64 = found.streams.values().map(|one| one.records).sum();
    let torn = match line.torn_bytes {
        0 => "nothing torn".to_owned(),
        bytes => format!("{bytes} bytes torn, never acknowledged"),
    };
    let rows = [
        (
            "journal",
            format!(
                "{:016x}, {} shards, at {}",
                found.journal_id,
                found.shard_count,
                path.display()
            ),
        ),
        (
            "log",
            format!(
                "{} blocks with {} unfiled records; ends at {}, durable up to {}; {torn}",
                line.blocks, line.records, line.end.0, line.durable.0
            ),
        ),
        (
            "extents",
            format!(
                "{} files, {} bytes; the log is filed up to {}",
                extents.len(),
                extents.iter().map(|one| one.size).sum::<u64>(),
                found.filed.0
            ),
        ),
        (
            "streams",
            format!(
                "{} with {records} records: {live} bytes alive, {dead} dead",
                found.streams.len()
            ),
        ),
        (
            "spares",
            format!(
                "{} files, {} bytes; {} bytes reserved for a full disk",
                found.spares.count, found.spares.bytes, found.reserve_bytes
            ),
        ),
    ];
    let mut text: String = rows
        .iter()
        .map(|(name, words)| format!("{name:<8} {words}\n"))
        .collect();
    if found.strays.count > 0 {
        let strays = found.strays;
        text.push_str(&format!(
            "strays   {} files, {} bytes: unused files that the next start removes\n",
            strays.count, strays.bytes
        ));
    }
    if line.lost_bytes > 0 {
        text.push_str(&format!(
            "lost     {} bytes of the log; the loss was accepted\n",
            line.lost_bytes
        ));
    }
    text
}

fn files(found: &Inspection) -> String {
    let segment = |one: &SegmentView| {
        let (begin, end) = one.positions;
        [
            one.path.clone(),
            state_name(one.state).to_owned(),
            one.size.to_string(),
            format!("{}-{}", begin.0, end.0),
            one.records.to_string(),
            "-".to_owned(),
        ]
    };
    let extent = |one: &ExtentView| {
        let (begin, end) = one.positions;
        [
            one.path.clone(),
            "extent".to_owned(),
            one.size.to_string(),
            format!("{}-{}", begin.0, end.0),
            one.records.to_string(),
            one.dead_bytes.to_string(),
        ]
    };
    let segments = found.line.segments.iter().map(segment);
    let rows: Vec<_> = segments.chain(found.extents.iter().map(extent)).collect();
    let head = [
        "FILE",
        "STATE",
        "BYTES",
        "POSITIONS",
        "RECORDS",
        "DEAD BYTES",
    ];
    format!("\n{}", table(head, &rows))
}

pub(super) fn state_name(state: SegmentState) -> &'static str {
    match state {
        SegmentState::Filed => "filed",
        SegmentState::Retained => "retained",
        SegmentState::Sealed => "sealed",
        SegmentState::Active => "active",
        SegmentState::Unreadable => "unreadable",
    }
}

fn shards(found: &Inspection) -> String {
    let row = |shard: u16| {
        let of = |(key, _): &(&(ShardId, StreamId), &StreamView)| key.0 == ShardId(shard);
        let streams: Vec<_> = found
            .streams
            .iter()
            .filter(of)
            .map(|(_, one)| one)
            .collect();
        let last = found.line.shard_ends.get(usize::from(shard));
        [
            shard.to_string(),
            streams.len().to_string(),
            streams
                .iter()
                .map(|one| one.records)
                .sum::<u64>()
                .to_string(),
            streams.iter().map(|one| one.bytes).sum::<u64>().to_string(),
            streams
                .iter()
                .map(|one| one.dead_bytes)
                .sum::<u64>()
                .to_string(),
            last.map_or(0, |index| index.0).to_string(),
        ]
    };
    let rows: Vec<_> = (0..found.shard_count).map(row).collect();
    let head = [
        "SHARD",
        "STREAMS",
        "RECORDS",
        "BYTES",
        "DEAD BYTES",
        "LAST BLOCK",
    ];
    format!("\n{}", table(head, &rows))
}

fn streams(found: &Inspection, names: &Names, all: bool) -> String {
    if found.streams.is_empty() {
        return String::new();
    }
    let mut largest: Vec<_> = found.streams.iter().collect();
    if !all {
        largest.sort_by_key(|(_, one)| std::cmp::Reverse(one.bytes));
        largest.truncate(STREAMS_SHOWN);
    }
    let row = |((shard, stream), one): (&(ShardId, StreamId), &StreamView)| {
        [
            stream.0.to_string(),
            shard.0.to_string(),
            format!("{}-{}", one.start, one.next),
            one.records.to_string(),
            one.bytes.to_string(),
            one.dead_bytes.to_string(),
            names.get(*shard, *stream).map_or("-".to_owned(), |name| {
                format!("{} {}", name.kind, console::output::one_line(&name.name))
            }),
        ]
    };
    let rows: Vec<_> = largest.iter().map(|(key, one)| row((key, one))).collect();
    let head = [
        "STREAM",
        "SHARD",
        "OFFSETS",
        "RECORDS",
        "BYTES",
        "DEAD BYTES",
        "NAME",
    ];
    let rest = found.streams.len() - rows.len();
    let more = match rest {
        0 => String::new(),
        _ => format!("and {rest} smaller streams; --streams lists all\n"),
    };
    format!("\n{}{more}", table(head, &rows))
}

fn verdict(found: &Inspection, names: &Names) -> String {
    if found.is_whole() && found.missing.is_empty() {
        return "complete: every page and every block is undamaged\n".to_owned();
    }
    let mut text = String::new();
    for damage in &found.damage {
        text.push_str(&damage_words(damage, names));
    }
    for missing in &found.missing {
        text.push_str(&missing_words(missing, names));
    }
    if found.damage.is_empty() {
        text.push_str(match found.is_loss_accepted {
            true => "undamaged; the missing records were lost earlier, and the loss was accepted\n",
            false => "nothing is damaged, but records are missing: please report this defect\n",
        });
    }
    text
}

fn damage_words(damage: &Damage, names: &Names) -> String {
    let end = damage.offset + damage.length;
    let mut text = format!("damaged: {}, bytes {} to {end}", damage.path, damage.offset);
    if let Some((from, to)) = damage.positions {
        text.push_str(&format!(", positions {} to {}", from.0, to.0));
    }
    text.push_str(&format!(": {}\n", damage.what));
    for dependent in &damage.dependents {
        text.push_str(&format!("  {}\n", dependent_words(dependent, names)));
    }
    if damage.has_more_dependents {
        text.push_str("  and others\n");
    }
    text
}

fn dependent_words(dependent: &Dependent, names: &Names) -> String {
    let who = match dependent.stream {
        Some(stream) => names.words(dependent.shard, stream),
        None => format!("any stream of shard {}", dependent.shard.0),
    };
    let from = dependent
        .first
        .map_or(String::new(), |first| format!(", from offset {first}"));
    let evidence = match dependent.evidence {
        Evidence::Index => "",
        Evidence::Claim => ", according to the damaged bytes",
    };
    format!("{who}{from}{evidence}")
}

fn missing_words(missing: &MissingRecords, names: &Names) -> String {
    let MissingRecords { first, last, .. } = missing;
    let who = names.words(missing.shard, missing.stream);
    match first == last {
        true => format!("missing: {who}: record {first}\n"),
        false => format!("missing: {who}: records {first} to {last}\n"),
    }
}
