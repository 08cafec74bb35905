//! Comparison of requests with leader epochs: the current one, older and later ones.

use anyhow::Result;
use kafka::{fetch, list_offsets, offset_for_leader_epoch};
use recordbatch::Template;

use super::super::records::{append as appended, batch, fetch_from};
use super::super::script::Script;
use super::view::TOPIC;

/// Leader epoch of each cluster.
type Epochs = [i32; 2];

/// Appends batches, each with its acks and number of records.
pub(super) fn append(script: &mut Script, when: &str, batches: &[(i16, i64)]) -> Result<()> {
    for (acks, count) in batches {
        let records = batch(*count, 1_000, &Template::default());
        let request = appended(TOPIC, 0, *acks, records);
        script.compare(&format!("acks={acks}, {when}"), 9, &request)?;
    }
    Ok(())
}

/// Compares requests of clients that know the current leader epoch or a later one.
pub(super) fn compare(script: &mut Script, current: Epochs, when: &str) -> Result<()> {
    for version in [4, 11, 12] {
        let request = fetch_from(TOPIC, 0, 0);
        script.compare_eventually(&format!("from 0, {when}"), version, &request)?;
    }
    for later in [0, 1, 99] {
        let title = format!("current epoch + {later}, {when}");
        compare_known(script, &title, current.map(|it| it + later))?;
    }
    for later in [0, 1, 99] {
        let requests = current.map(|it| end_of(it + later, -1));
        let title = format!("end of epoch + {later}, {when}");
        script.compare_each(&title, 4, [&requests[0], &requests[1]])?;
    }
    Ok(())
}

/// Compares requests of clients that know an older leader epoch, and of readers of its records.
pub(super) fn compare_older(script: &mut Script, older: Epochs, current: Epochs) -> Result<()> {
    compare_known(script, "older epoch", older)?;
    let requests = [0, 1].map(|it| end_of(older[it], current[it]));
    let title = "end of the older epoch";
    let answers = script.compare_each(title, 4, [&requests[0], &requests[1]])?;
    for (answer, older) in answers.into_iter().flatten().zip(older) {
        let end = &answer.topics[0].partitions[0];
        script.check(
            end.leader_epoch == older,
            "the end of an epoch names the epoch",
        );
    }
    // A consumer that has read more of the older epoch than there is of it.
    let requests = [0, 1].map(|it| {
        let mut request = fetch_from(TOPIC, 0, 14);
        let partition = &mut request.topics[0].partitions[0];
        partition.current_leader_epoch = current[it];
        partition.last_fetched_epoch = older[it];
        request
    });
    let title = "behind the end of the older epoch";
    script.compare_each(title, 12, [&requests[0], &requests[1]])?;
    Ok(())
}

/// Compares requests of a client that believes this epoch to be the current one.
fn compare_known(script: &mut Script, title: &str, epochs: Epochs) -> Result<()> {
    let fetches = epochs.map(fetch_with);
    script.compare_each(title, 12, [&fetches[0], &fetches[1]])?;
    let ends = epochs.map(latest);
    script.compare_each(title, 7, [&ends[0], &ends[1]])?;
    let ends = epochs.map(|epoch| end_of(epoch, epoch));
    script.compare_each(title, 4, [&ends[0], &ends[1]])?;
    Ok(())
}

fn fetch_with(current_leader_epoch: i32) -> fetch::Request {
    let mut request = fetch_from(TOPIC, 0, 0);
    request.topics[0].partitions[0].current_leader_epoch = current_leader_epoch;
    request
}

fn latest(current_leader_epoch: i32) -> list_offsets::Request {
    list_offsets::Request {
        replica_id: -1,
        topics: vec![list_offsets::Topic {
            name: TOPIC.to_owned(),
            partitions: vec![list_offsets::Partition {
                current_leader_epoch,
                timestamp: -1,
                ..list_offsets::Partition::default()
            }],
        }],
        ..list_offsets::Request::default()
    }
}

fn end_of(leader_epoch: i32, current_leader_epoch: i32) -> offset_for_leader_epoch::Request {
    offset_for_leader_epoch::Request {
        replica_id: -1,
        topics: vec![offset_for_leader_epoch::Topic {
            topic: TOPIC.to_owned(),
            partitions: vec![offset_for_leader_epoch::Partition {
                partition: 0,
                current_leader_epoch,
                leader_epoch,
            }],
        }],
    }
}
