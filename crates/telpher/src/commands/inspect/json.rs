//! Formats an inspection as JSON. Keys are never renamed or removed.

use std::path::Path;

use inspect::{Damage, Dependent, Evidence, Inspection};
use journal::{ShardId, StreamId};
use serde_json::{Value, json};

use super::explain::state_name;
use super::names::Names;

/// Returns the whole inspection as JSON.
pub(super) fn value(path: &Path, found: &Inspection, names: &Names) -> Value {
    let line = &found.line;
    json!({
        "whole": found.is_whole(),
        "loss_accepted": found.is_loss_accepted,
        "path": path.display().to_string(),
        "format_version": found.format_version,
        "journal_id": format!("{:016x}", found.journal_id),
        "shards": found.shard_count,
        "filed": found.filed.0,
        "line": {
            "end": line.end.0,
            "durable": line.durable.0,
            "torn_bytes": line.torn_bytes,
            "lost_bytes": line.lost_bytes,
            "blocks": line.blocks,
            "records": line.records,
            "shard_ends": line.shard_ends.iter().map(|end| end.0).collect::<Vec<_>>(),
            "segments": line.segments.iter().map(|one| json!({
                "path": one.path,
                "sequence": one.sequence,
                "size": one.size,
                "state": state_name(one.state),
                "begin": one.positions.0.0,
                "end": one.positions.1.0,
                "blocks": one.blocks,
                "records": one.records,
            })).collect::<Vec<_>>(),
        },
        "extents": found.extents.iter().map(|one| json!({
            "path": one.path,
            "shard": one.shard.0,
            "size": one.size,
            "segment": one.segment,
            "begin": one.positions.0.0,
            "end": one.positions.1.0,
            "streams": one.streams,
            "records": one.records,
            "bytes": one.bytes,
            "dead_bytes": one.dead_bytes,
        })).collect::<Vec<_>>(),
        "spares": { "count": found.spares.count, "bytes": found.spares.bytes },
        "strays": { "count": found.strays.count, "bytes": found.strays.bytes },
        "reserve_bytes": found.reserve_bytes,
        "streams": found.streams.iter().map(|((shard, stream), one)| {
            let mut value = stream_json(*shard, *stream, names);
            value["start"] = one.start.into();
            value["next"] = one.next.into();
            value["erased"] = one.erased.into();
            value["records"] = one.records.into();
            value["bytes"] = one.bytes.into();
            value["dead_bytes"] = one.dead_bytes.into();
            value["unerased_bytes"] = one.unerased_bytes.into();
            value
        }).collect::<Vec<_>>(),
        "damage": found.damage.iter().map(|one| damage_json(one, names)).collect::<Vec<_>>(),
        "missing": found.missing.iter().map(|one| {
            let mut value = stream_json(one.shard, one.stream, names);
            value["first"] = one.first.into();
            value["last"] = one.last.into();
            value
        }).collect::<Vec<_>>(),
    })
}

fn stream_json(shard: ShardId, stream: StreamId, names: &Names) -> Value {
    let name = names.get(shard, stream);
    json!({
        "shard": shard.0,
        "stream": stream.0,
        "kind": name.map(|name| name.kind),
        "name": name.map(|name| name.name.as_str()),
    })
}

fn damage_json(damage: &Damage, names: &Names) -> Value {
    let dependent = |one: &Dependent| {
        let mut value = match one.stream {
            Some(stream) => stream_json(one.shard, stream, names),
            None => json!({ "shard": one.shard.0, "stream": null }),
        };
        value["first"] = one.first.into();
        value["evidence"] = match one.evidence {
            Evidence::Index => "index",
            Evidence::Claim => "claim",
        }
        .into();
        value
    };
    json!({
        "path": damage.path,
        "offset": damage.offset,
        "length": damage.length,
        "begin": damage.positions.map(|(begin, _)| begin.0),
        "end": damage.positions.map(|(_, end)| end.0),
        "what": damage.what,
        "dependents": damage.dependents.iter().map(dependent).collect::<Vec<_>>(),
        "more_dependents": damage.has_more_dependents,
    })
}
