//! Comparison of transactions: begin, end, fencing, and the view of a reader of committed records.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use kafka::{
    add_offsets_to_txn, add_partitions_to_txn, end_txn, find_coordinator, init_producer_id,
    list_offsets, txn_offset_commit,
};
use recordbatch::{Attributes, Producer, Template};

use super::records::{append, batch, fetch_from};
use super::script::Script;
use super::topics::{make, topic};
use super::views;

const TOPIC: &str = "transacted";
const ID: &str = "transactional";

/// Producer id and epoch on each broker.
type Ids = [(i64, i16); 2];

pub(super) fn compare(script: &mut Script) -> Result<()> {
    script.compare("topic for transactions", 4, &make(vec![topic(TOPIC)]))?;
    compare_coordinator(script)?;
    let refused = |timeout_ms, id: &str| init_producer_id::Request {
        transactional_id: Some(id.to_owned()),
        transaction_timeout_ms: timeout_ms,
        ..init_producer_id::Request::default()
    };
    script.compare("empty transactional id", 4, &refused(60_000, ""))?;
    script.compare("timeout of 0", 4, &refused(0, "short"))?;
    script.compare("timeout too long", 4, &refused(i32::MAX, "long"))?;
    let Some(ids) = begin_transactions(script, "the first")? else {
        return Ok(());
    };
    compare_invalid_order(script, ids)?;
    compare_writes(script, ids)?;
    let Some(next) = begin_transactions(script, "the next")? else {
        return Ok(());
    };
    let fenced = [ended(ids[0], true), ended(ids[1], true)];
    script.compare_each("by a fenced producer", 3, [&fenced[0], &fenced[1]])?;
    let late = [added(ids[0], TOPIC), added(ids[1], TOPIC)];
    script.compare_each("by a fenced producer", 3, [&late[0], &late[1]])?;
    let late = ids.map(|id| append_of(id, 9));
    script.compare_each("by a fenced producer", 9, [&late[0], &late[1]])?;
    compare_offsets(script, next)?;
    views::compare_markers(script, TOPIC, next)
}

fn compare_coordinator(script: &mut Script) -> Result<()> {
    let find = find_coordinator::Request {
        key: ID.to_owned(),
        key_type: 1,
        ..find_coordinator::Request::default()
    };
    script.compare("of a transaction", 3, &find)?;
    Ok(())
}

fn begin_transactions(script: &mut Script, name: &str) -> Result<Option<Ids>> {
    let request = init_producer_id::Request {
        transactional_id: Some(ID.to_owned()),
        transaction_timeout_ms: 60_000,
        ..init_producer_id::Request::default()
    };
    let answers = script.compare(name, 4, &request)?;
    let [Some(theirs), Some(ours)] = answers else {
        return Ok(None);
    };
    Ok(Some(
        [theirs, ours].map(|one| (one.producer_id, one.producer_epoch)),
    ))
}

fn added((id, epoch): (i64, i16), topic: &str) -> add_partitions_to_txn::Request {
    add_partitions_to_txn::Request {
        v3_and_below_transactional_id: ID.to_owned(),
        v3_and_below_producer_id: id,
        v3_and_below_producer_epoch: epoch,
        v3_and_below_topics: vec![add_partitions_to_txn::Topic {
            name: topic.to_owned(),
            partitions: vec![0],
        }],
        ..add_partitions_to_txn::Request::default()
    }
}

fn ended((id, epoch): (i64, i16), committed: bool) -> end_txn::Request {
    end_txn::Request {
        transactional_id: ID.to_owned(),
        producer_id: id,
        producer_epoch: epoch,
        committed,
    }
}

fn now_ms() -> i64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "a developer's tool: no simulation owns its time"
    )]
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn append_of((id, epoch): (i64, i16), sequence: i32) -> kafka::produce::Request {
    let template = Template {
        attributes: Attributes::default().transactional(),
        producer: Some(Producer {
            id,
            epoch,
            sequence,
        }),
        ..Template::default()
    };
    kafka::produce::Request {
        transactional_id: Some(ID.to_owned()),
        // Apache Kafka stores a record in a segment of its own if it is much older than a later
        // marker, and reads one segment at a time.
        ..append(TOPIC, 0, -1, batch(1, now_ms(), &template))
    }
}

fn compare_invalid_order(script: &mut Script, ids: Ids) -> Result<()> {
    let nothing = ids.map(|id| ended(id, true));
    script.compare_each("without a partition", 3, [&nothing[0], &nothing[1]])?;
    let unadded = ids.map(|id| append_of(id, 0));
    script.compare_each("partition not added", 9, [&unadded[0], &unadded[1]])?;
    let absent = ids.map(|id| added(id, "absent"));
    script.compare_each("unknown topic", 3, [&absent[0], &absent[1]])?;
    let stranger = ids.map(|(_, epoch)| added((987_654_321, epoch), TOPIC));
    script.compare_each("another producer id", 3, [&stranger[0], &stranger[1]])?;
    let late = ids.map(|(id, epoch)| added((id, epoch + 5), TOPIC));
    script.compare_each("future epoch", 3, [&late[0], &late[1]])?;
    Ok(())
}

fn compare_writes(script: &mut Script, ids: Ids) -> Result<()> {
    for (round, committed) in [(0, true), (1, false)] {
        let add = ids.map(|id| added(id, TOPIC));
        script.compare_each(&format!("round {round}"), 3, [&add[0], &add[1]])?;
        let produce = ids.map(|id| append_of(id, round));
        script.compare_each(
            &format!("round {round} of a transaction"),
            9,
            [&produce[0], &produce[1]],
        )?;
        let open = format!("while round {round} is open");
        compare_reads(script, &open)?;
        views::compare_transaction(script, ID, TOPIC, &open)?;
        let end = ids.map(|id| ended(id, committed));
        script.compare_each(&format!("round {round}"), 3, [&end[0], &end[1]])?;
        script.compare_each(&format!("round {round} again"), 3, [&end[0], &end[1]])?;
        let behind = format!("after round {round}");
        compare_reads(script, &behind)?;
        views::compare_transaction(script, ID, TOPIC, &behind)?;
    }
    let changed = ids.map(|id| ended(id, true));
    script.compare_each(
        "committed when it was aborted",
        3,
        [&changed[0], &changed[1]],
    )?;
    Ok(())
}

/// Compares the views of readers with both isolation levels.
fn compare_reads(script: &mut Script, when: &str) -> Result<()> {
    for isolation_level in [0, 1] {
        let fetch = kafka::fetch::Request {
            isolation_level,
            ..fetch_from(TOPIC, 0, 0)
        };
        // Aborted transactions have a producer id, which is masked, and an offset, which is
        // compared.
        script.compare(&format!("level {isolation_level}, {when}"), 11, &fetch)?;
        let end = list_offsets::Request {
            replica_id: -1,
            isolation_level,
            topics: vec![list_offsets::Topic {
                name: TOPIC.to_owned(),
                partitions: vec![list_offsets::Partition {
                    timestamp: -1,
                    ..list_offsets::Partition::default()
                }],
            }],
            ..list_offsets::Request::default()
        };
        script.compare(&format!("level {isolation_level}, {when}"), 7, &end)?;
    }
    Ok(())
}

fn compare_offsets(script: &mut Script, ids: Ids) -> Result<()> {
    let group = "transacting";
    let add = ids.map(|(id, epoch)| add_offsets_to_txn::Request {
        transactional_id: ID.to_owned(),
        producer_id: id,
        producer_epoch: epoch,
        group_id: group.to_owned(),
    });
    script.compare_each("of a group", 3, [&add[0], &add[1]])?;
    let commit = ids.map(|(id, epoch)| txn_offset_commit::Request {
        transactional_id: ID.to_owned(),
        group_id: group.to_owned(),
        producer_id: id,
        producer_epoch: epoch,
        topics: vec![txn_offset_commit::Topic {
            name: TOPIC.to_owned(),
            partitions: vec![txn_offset_commit::Partition {
                committed_offset: 3,
                ..txn_offset_commit::Partition::default()
            }],
        }],
        ..txn_offset_commit::Request::default()
    });
    script.compare_each("of a group", 3, [&commit[0], &commit[1]])?;
    let committed = |require_stable| kafka::offset_fetch::Request {
        group_id: group.to_owned(),
        topics: Some(vec![kafka::offset_fetch::Topic {
            name: TOPIC.to_owned(),
            partition_indexes: vec![0],
        }]),
        groups: Vec::new(),
        require_stable,
    };
    script.compare("before the end", 7, &committed(false))?;
    script.compare("before the end, stable offsets", 7, &committed(true))?;
    let end = ids.map(|id| ended(id, true));
    script.compare_each("with offsets", 3, [&end[0], &end[1]])?;
    script.compare_eventually("after the end", 7, &committed(true))?;
    Ok(())
}
