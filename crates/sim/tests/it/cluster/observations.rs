//! What clients were told, and what must hold of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use super::clients::{fetch_all, topic_exists};
use super::{BATCHES, PARTITIONS, PRODUCERS, TOPIC};
use crate::support::kafka::{Fetched, Kafka};

/// Observations of all clients.
pub(crate) type Shared = Arc<Mutex<Observations>>;

/// A partition and an offset.
type Place = (i32, i64);

#[derive(Default)]
pub(crate) struct Observations {
    /// Values that were sent.
    pub(crate) sent: BTreeSet<String>,
    /// Values of acknowledged batches.
    pub(crate) produced: BTreeMap<Place, String>,
    /// Records that were fetched.
    pub(crate) fetched: BTreeMap<Place, Fetched>,
    /// Topics whose creation was acknowledged.
    pub(crate) topics: Vec<String>,
    /// Producer ids.
    pub(crate) producer_ids: BTreeSet<i64>,
    /// Offsets of the group that were acknowledged, and that were sent.
    pub(crate) committed: Vec<i64>,
    pub(crate) committed_max: Vec<i64>,
    /// The highest leader epoch that any node has answered.
    pub(crate) epoch: i32,
}

impl Observations {
    /// Notes the records of a fetch.
    pub(crate) fn note_fetched(&mut self, partition: i32, from: i64, records: &[Fetched]) {
        for (offset, record) in (from..).zip(records) {
            assert_eq!(record.offset, offset, "a fetch leaves out records");
            assert!(
                self.sent.contains(&record.value),
                "{record:?} was never sent"
            );
            let place = (partition, offset);
            let earlier = self.fetched.entry(place).or_insert_with(|| record.clone());
            assert_eq!(*earlier, *record, "two records at {place:?}");
        }
    }

    /// Notes a producer id.
    pub(crate) fn note_producer_id(&mut self, id: i64) {
        assert!(
            self.producer_ids.insert(id),
            "the producer id {id} is given out twice"
        );
    }

    /// Checks the offsets of the group that a client was told.
    pub(crate) fn check_committed(&self, offsets: &[i64]) {
        let bounds = self.committed.iter().zip(&self.committed_max);
        for (offset, (least, most)) in offsets.iter().zip(bounds) {
            assert!(
                (least..=most).contains(&offset),
                "the group is at {offset}, and {least} was acknowledged, {most} was sent"
            );
        }
    }

    /// Checks what is left at the end, when nothing fails any more.
    pub(crate) async fn check_all(shared: &Shared, kafka: &mut Kafka) {
        let mut found = BTreeMap::new();
        let mut values = BTreeSet::new();
        let mut orders: BTreeMap<(i32, usize), Vec<(usize, usize)>> = BTreeMap::new();
        for partition in 0..PARTITIONS {
            let records = fetch_all(kafka, partition).await;
            shared.lock().note_fetched(partition, 0, &records);
            assert!(
                records.is_sorted_by_key(|it| it.epoch),
                "leader epochs fall in partition {partition}"
            );
            for record in records {
                assert!(
                    values.insert(record.value.clone()),
                    "{record:?} is there twice"
                );
                let numbers: Vec<usize> = record
                    .value
                    .split(['.', ' '])
                    .map_while(|it| it.parse().ok())
                    .collect();
                let order = orders.entry((partition, numbers[0])).or_default();
                order.push((numbers[1], numbers[2]));
                found.insert((partition, record.offset), record.value);
            }
        }
        let (produced, fetched, topics, sent, epoch) = {
            let observations = shared.lock();
            (
                observations.produced.clone(),
                observations.fetched.clone(),
                observations.topics.clone(),
                observations.sent.clone(),
                observations.epoch,
            )
        };
        for (place, value) in &produced {
            assert_eq!(found.get(place), Some(value), "{place:?} was acknowledged");
        }
        for (place, record) in &fetched {
            assert_eq!(
                found.get(place),
                Some(&record.value),
                "{place:?} was fetched"
            );
        }
        assert_eq!(values, sent, "producers retry until they succeed");
        for (of, order) in orders {
            assert!(
                order.is_sorted(),
                "{of:?}: the order of a producer is another"
            );
        }
        let batches: BTreeSet<_> = values.iter().filter_map(|it| it.rsplit_once('.')).collect();
        let batches: BTreeSet<_> = batches.into_iter().map(|(batch, _)| batch).collect();
        assert_eq!(batches.len(), PRODUCERS * BATCHES);
        for topic in topics {
            assert!(
                topic_exists(kafka, &topic).await,
                "{topic} was acknowledged"
            );
        }
        let (_, last) = super::clients::epochs(kafka, TOPIC).await;
        assert!(
            last >= epoch,
            "the leader epoch falls from {epoch} to {last}"
        );
    }
}
