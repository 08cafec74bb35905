//! Comparison of new topics: numbers of replicas, assigned replicas, `min.insync.replicas`.

use anyhow::Result;
use kafka::{create_topics, describe_configs};

use super::super::script::Script;
use super::super::topics::{make, topic, topic_with};

/// Resource type of topics in configuration requests.
const TOPIC_RESOURCE: i8 = 2;

const IN_SYNC: &str = "min.insync.replicas";

pub(super) fn compare(script: &mut Script) -> Result<()> {
    for replication_factor in [-1, 1, 2, 3, 4, 0, -2] {
        let created = create_topics::Topic {
            replication_factor,
            ..topic(&format!("factor{replication_factor}"))
        };
        let title = format!("replication factor {replication_factor}");
        script.compare(&title, 4, &make(vec![created]))?;
    }
    let assignments: [(&str, &[i32]); 6] = [
        ("all brokers", &[1, 2, 3]),
        ("two brokers", &[2, 3]),
        ("one broker", &[1]),
        ("one broker twice", &[1, 1]),
        ("an unknown broker", &[1, 9]),
        ("no broker", &[]),
    ];
    for (number, (title, broker_ids)) in assignments.into_iter().enumerate() {
        let created = create_topics::Topic {
            num_partitions: -1,
            replication_factor: -1,
            assignments: vec![create_topics::Assignment {
                partition_index: 0,
                broker_ids: broker_ids.to_vec(),
            }],
            ..topic(&format!("assigned-{number}"))
        };
        let title = format!("assigned to {title}");
        script.compare(&title, 4, &make(vec![created]))?;
    }
    for count in ["1", "2", "3", "4", "0", "two"] {
        let created = create_topics::Topic {
            replication_factor: 3,
            ..topic_with(&format!("insync{count}"), IN_SYNC, count)
        };
        script.compare(&format!("{IN_SYNC}={count}"), 4, &make(vec![created]))?;
    }
    for name in ["factor3", "insync1", "insync2"] {
        let request = describe_configs::Request {
            resources: vec![describe_configs::Resource {
                resource_type: TOPIC_RESOURCE,
                resource_name: name.to_owned(),
                configuration_keys: Some(vec![IN_SYNC.to_owned()]),
            }],
            ..describe_configs::Request::default()
        };
        script.compare_eventually(&format!("{IN_SYNC} of {name}"), 4, &request)?;
    }
    Ok(())
}
