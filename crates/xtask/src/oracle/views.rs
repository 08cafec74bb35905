//! Comparison of administrative requests: transactions, producers of a partition, markers written
//! by an operator, ACLs and client quotas.

use anyhow::Result;
use kafka::{
    describe_acls, describe_client_quotas, describe_producers, describe_transactions,
    list_transactions, write_txn_markers,
};

use super::script::Script;

/// Compares the descriptions of a transaction and of the partition that it writes to.
pub(super) fn compare_transaction(
    script: &mut Script,
    id: &str,
    topic: &str,
    when: &str,
) -> Result<()> {
    let transactions = describe_transactions::Request {
        transactional_ids: ["absent", id].map(str::to_owned).to_vec(),
    };
    script.compare(when, 0, &transactions)?;
    let listed = |states: &[&str]| list_transactions::Request {
        state_filters: states.iter().map(|it| (*it).to_owned()).collect(),
        ..list_transactions::Request::default()
    };
    for states in [
        &[][..],
        &["Ongoing"],
        &["Empty", "CompleteCommit"],
        &["Confused"],
    ] {
        script.compare(&format!("{states:?}, {when}"), 1, &listed(states))?;
    }
    let producers = |topic: &str, partition| describe_producers::Request {
        topics: vec![describe_producers::Topic {
            name: topic.to_owned(),
            partition_indexes: vec![partition],
        }],
    };
    script.compare(when, 0, &producers(topic, 0))?;
    script.compare(
        &format!("unknown partition, {when}"),
        0,
        &producers(topic, 9),
    )?;
    script.compare(
        &format!("unknown topic, {when}"),
        0,
        &producers("absent", 0),
    )?;
    Ok(())
}

/// Ends transactions without a coordinator by markers written by an operator.
pub(super) fn compare_markers(
    script: &mut Script,
    topic: &str,
    ids: [(i64, i16); 2],
) -> Result<()> {
    let marker = |(producer_id, producer_epoch), topic: &str| write_txn_markers::Request {
        markers: vec![write_txn_markers::Marker {
            producer_id,
            producer_epoch,
            transaction_result: false,
            topics: vec![write_txn_markers::Topic {
                name: topic.to_owned(),
                partition_indexes: vec![0],
            }],
            coordinator_epoch: 0,
        }],
    };
    let requests = ids.map(|id| marker(id, topic));
    script.compare_each("written by an operator", 1, [&requests[0], &requests[1]])?;
    let late = ids.map(|(id, _)| marker((id, 0), topic));
    script.compare_each("earlier epoch", 1, [&late[0], &late[1]])?;
    let absent = ids.map(|id| marker(id, "absent"));
    script.compare_each("unknown topic", 1, [&absent[0], &absent[1]])?;
    Ok(())
}

/// Compares ACLs and client quotas, of which there are none.
pub(super) fn compare_rules(script: &mut Script) -> Result<()> {
    let any = 1;
    let rules = describe_acls::Request {
        resource_type_filter: any,
        pattern_type_filter: any,
        operation: any,
        permission_type: any,
        ..describe_acls::Request::default()
    };
    script.compare("no entries", 3, &rules)?;
    let users = describe_client_quotas::Component {
        entity_type: "user".to_owned(),
        match_type: 2,
        r#match: None,
    };
    let quotas = describe_client_quotas::Request {
        components: vec![users],
        strict: false,
    };
    script.compare("no entries", 1, &quotas)?;
    Ok(())
}
