//! The methods `cluster` and `cluster_remove` of the node's own agent.

use std::sync::Arc;

use client::{Fault, Request, Server};
use cluster::{ChangeError, Node, ShardStatus};
use journal::ShardId;
use model::ErrorCode;
use serde_json::{Value, json};

use crate::mailboxes;

/// The cluster that this node leads.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) node: Arc<Node>,
    pub(crate) shard_count: u16,
}

/// Adds the methods to the agent.
pub(crate) fn methods(server: Server, node: &node::Node, cluster: Cluster) -> Server {
    let (node, removing) = (node.clone(), cluster.clone());
    server
        .handle("cluster", move |_: Request| {
            let status = status(&cluster).to_string();
            async move { Ok::<_, Fault>(status) }
        })
        .handle("cluster_remove", move |request: Request| {
            let cluster = removing.clone();
            let caller = mailboxes::principal(&node, &request);
            async move {
                if !caller?.is_admin() {
                    let message = "removing a member needs an administrator's token";
                    return Err(Fault::with_code(ErrorCode::Denied, message));
                }
                let id = serde_json::from_slice::<Value>(&request.body);
                let id = id.ok().and_then(|it| it["id"].as_u64()).ok_or_else(|| {
                    Fault::with_code(ErrorCode::InvalidArgument, "`id` is missing")
                })?;
                match cluster.node.remove(id).await {
                    Ok(()) => Ok(json!({ "removed": id }).to_string()),
                    Err(error) => Err(fault(&error)),
                }
            }
        })
}

fn fault(error: &ChangeError) -> Fault {
    let code = match error {
        ChangeError::Moved { .. } => ErrorCode::Moved,
        ChangeError::NoQuorum => ErrorCode::Unavailable,
        ChangeError::Refused { .. } => ErrorCode::InvalidArgument,
    };
    Fault::with_code(code, error.to_string())
}

/// Returns the members and the shards, as this node sees them.
fn status(cluster: &Cluster) -> Value {
    let shards = (0..cluster.shard_count).map(ShardId);
    let statuses: Vec<_> = shards.map(|it| cluster.node.status(it)).collect();
    let own = cluster.node.id();
    let kept_out = cluster.node.outdated_members();
    let clocks = cluster.node.clocks().members;
    let nodes = cluster.node.members().into_iter().map(|member| {
        let id = member.id;
        let is_voter = statuses.iter().all(|it| it.voters.contains(&id));
        let leads = statuses.iter().filter(|it| it.leader == Some(id)).count();
        let addresses = member.addresses;
        json!({
            "id": id,
            "name": addresses.name,
            "role": if is_voter { "voter" } else { "learner" },
            "shards_led": leads,
            "in_sync": statuses.iter().all(|it| it.in_sync(own).contains(&id)),
            "behind_blocks": behind(&statuses, own, id),
            "clock_ahead_ms": clocks.iter().find(|it| it.0 == id).map(|it| it.1),
            "kept_out": kept_out.get(&id).map(ToString::to_string),
            "link": addresses.link,
            "kafka": addresses.kafka,
            "http": addresses.http,
            "native": addresses.native,
        })
    });
    let nodes: Vec<_> = nodes.collect();
    let shards = statuses.iter().enumerate().map(|(number, it)| {
        json!({
            "shard": number,
            "leader": it.leader,
            "term": it.term,
            "voters": it.voters,
            "in_sync": it.in_sync(own),
            "last_block": it.last.0,
            "committed_block": it.committed.0,
        })
    });
    let shards: Vec<_> = shards.collect();
    json!({
        "cluster": format!("{:016x}", cluster.node.cluster()),
        "leader": cluster.node.leader(),
        "nodes": nodes,
        "shards": shards,
    })
}

/// Returns the number of blocks that a member lacks of all shards together; `None` if this is not
/// known.
fn behind(statuses: &[ShardStatus], own: u64, id: u64) -> Option<u64> {
    if id == own {
        return Some(0);
    }
    let behind = statuses.iter().map(|status| {
        let peer = status.peers.iter().find(|peer| peer.id == id)?;
        Some(status.last.0.saturating_sub(peer.acknowledged?.0))
    });
    behind.sum()
}
