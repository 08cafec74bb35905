//! Metrics of replication as OpenMetrics text, by shard and by member.

use std::fmt::Error;

use platform::{Membership, PeerReplication, ShardReplication};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// A figure of a shard: name, help and value.
type Figure = (&'static str, &'static str, fn(&ShardReplication) -> u64);

const GAUGES: [Figure; 7] = [
    (
        "shard_is_leader",
        "Whether this node leads the shard",
        |it| it.is_leader.into(),
    ),
    (
        "shard_is_voter",
        "Whether this node has a vote in the shard",
        |it| it.is_voter.into(),
    ),
    (
        "shard_leader",
        "Id of the node that leads the shard; 0 while that is unknown",
        |it| it.leader.unwrap_or(0),
    ),
    (
        "shard_term",
        "Leadership term of the shard, which each election increments",
        |it| it.term,
    ),
    (
        "shard_last_block",
        "Index of the last block of this node",
        |it| it.last_block,
    ),
    (
        "shard_committed_block",
        "Index of the last block that is known to be committed",
        |it| it.committed_block,
    ),
    (
        "shard_uncommitted_bytes",
        "Bytes of blocks that are not committed",
        |it| it.uncommitted_bytes,
    ),
];

const COUNTERS: [Figure; 2] = [
    (
        "shard_elections",
        "Elections since the start of this node, as far as it knows of them",
        |it| it.elections,
    ),
    (
        "shard_refused_proposals",
        "Proposals of this node that consensus has refused",
        |it| it.refused_proposals,
    ),
];

/// A figure of another member, as the leader of a shard sees it.
type Lag = (&'static str, &'static str, fn(&PeerReplication) -> u64);

const LAGS: [Lag; 2] = [
    (
        "shard_peer_behind_blocks",
        "Committed blocks that are not known to be on the disk of a member",
        |it| it.behind_blocks,
    ),
    (
        "shard_peer_behind_bytes",
        "Bytes of committed blocks that are not known to be on the disk of a member",
        |it| it.behind_bytes,
    ),
];

/// Appends the metrics of all shards; nothing on a node alone.
pub(super) fn encode(
    membership: &dyn Membership,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    let shards = (0..).zip(membership.replication());
    let shards = shards.map(|(number, it): (u32, _)| (number.to_string(), it));
    let shards: Vec<_> = shards.collect();
    if shards.is_empty() {
        return Ok(());
    }
    let members = ConstGauge::new(membership.members().len() as u64);
    let kind = members.metric_type();
    members.encode(encoder.encode_descriptor(
        "members",
        "Members of the cluster",
        None,
        kind,
    )?)?;
    for (name, help, value) in GAUGES {
        let kind = ConstGauge::new(0u64).metric_type();
        let mut family = encoder.encode_descriptor(name, help, None, kind)?;
        for (shard, replication) in &shards {
            let labels = [("shard", shard.as_str())];
            ConstGauge::new(value(replication)).encode(family.encode_family(&labels)?)?;
        }
    }
    for (name, help, value) in COUNTERS {
        let kind = ConstCounter::new(0u64).metric_type();
        let mut family = encoder.encode_descriptor(name, help, None, kind)?;
        for (shard, replication) in &shards {
            let labels = [("shard", shard.as_str())];
            ConstCounter::new(value(replication)).encode(family.encode_family(&labels)?)?;
        }
    }
    encode_lags(&shards, encoder)?;
    encode_peers(membership, encoder)
}

/// Appends how far the peers are; only the leader of a shard knows.
fn encode_lags(
    shards: &[(String, ShardReplication)],
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    for (name, help, value) in LAGS {
        let kind = ConstGauge::new(0u64).metric_type();
        let mut family = encoder.encode_descriptor(name, help, None, kind)?;
        for (shard, replication) in shards {
            for peer in &replication.peers {
                let id = peer.id.to_string();
                let labels = [("shard", shard.as_str()), ("peer", id.as_str())];
                ConstGauge::new(value(peer)).encode(family.encode_family(&labels)?)?;
            }
        }
    }
    let kind = ConstGauge::new(0f64).metric_type();
    let help = "Time since a member had everything that was committed then";
    let unit = prometheus_client::registry::Unit::Seconds;
    let mut family = encoder.encode_descriptor("shard_peer_behind", help, Some(&unit), kind)?;
    for (shard, replication) in shards {
        for peer in &replication.peers {
            let Some(behind) = peer.behind else {
                continue;
            };
            let id = peer.id.to_string();
            let labels = [("shard", shard.as_str()), ("peer", id.as_str())];
            ConstGauge::new(behind.as_secs_f64()).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// Appends the clocks of the other members, and which of them are kept out.
fn encode_peers(
    membership: &dyn Membership,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    let is_off = ConstGauge::new(u64::from(membership.is_clock_off()));
    let kind = is_off.metric_type();
    let help = "Whether the clock of this node is so far off the others that it does not lead";
    is_off.encode(encoder.encode_descriptor("member_clock_is_off", help, None, kind)?)?;
    let peers = membership.peers();
    let kind = ConstGauge::new(0f64).metric_type();
    let help = "Time by which the clock of a member is ahead of this node's";
    let unit = prometheus_client::registry::Unit::Seconds;
    let mut family = encoder.encode_descriptor("member_clock_ahead", help, Some(&unit), kind)?;
    for peer in &peers {
        let Some(ahead_ms) = peer.clock_ahead_ms else {
            continue;
        };
        let id = peer.id.to_string();
        let value = ConstGauge::new(ahead_ms as f64 / 1000.0);
        value.encode(family.encode_family(&[("peer", id.as_str())])?)?;
    }
    let kind = ConstGauge::new(0u64).metric_type();
    let help = "Whether a member is kept out because it has lost data";
    let mut family = encoder.encode_descriptor("member_is_kept_out", help, None, kind)?;
    for peer in &peers {
        let id = peer.id.to_string();
        let value = ConstGauge::new(u64::from(peer.is_kept_out));
        value.encode(family.encode_family(&[("peer", id.as_str())])?)?;
    }
    Ok(())
}
