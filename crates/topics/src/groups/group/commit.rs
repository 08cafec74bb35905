//! Commits of offsets: permission, expiry and deletion.

use std::sync::Arc;

use crate::{Ending, ProducerId};

use super::super::offsets::Committed;
use super::super::record::{Marks, Record};
use super::super::terms::{Caller, Mark, Refused};
use super::{Group, Phase, Step};

/// The protocol type of groups whose members are subscribed to topics.
const CONSUMER: &str = "consumer";

impl Group {
    /// Checks that the caller may commit, and counts the commit as a heartbeat. A caller without a
    /// generation is not a member: it may commit if the group has no members. In a transaction,
    /// older clients do not state their member id.
    pub(in super::super) fn check_commit(
        &mut self,
        caller: Caller<'_>,
        producer: Option<ProducerId>,
        now_ms: u64,
    ) -> Result<(), Refused> {
        if caller.generation < 0 && self.is_empty() {
            return Ok(());
        }
        let is_nobody =
            caller.generation < 0 && caller.member.is_empty() && caller.instance.is_none();
        if is_nobody {
            return producer.map(|_| ()).ok_or(Refused::UnknownMember);
        }
        self.check_caller(caller)?;
        if producer.is_none() {
            // A member of this generation that has not got its assignment yet.
            if matches!(self.phase, Phase::Completing { .. }) {
                return Err(Refused::RebalanceInProgress);
            }
            self.heard(caller.member, now_ms);
        }
        Ok(())
    }

    /// Commits offsets, at once or with the transaction.
    pub(in super::super) fn commit(
        &mut self,
        producer: Option<ProducerId>,
        marks: &[Mark<'_>],
        expires_ms: Option<u64>,
        step: &mut Step<'_>,
    ) -> Vec<Result<(), Refused>> {
        let mut left = step
            .options
            .offsets_max
            .saturating_sub(self.offsets.count());
        let mut taken = Vec::new();
        let answers = marks.iter().map(|mark| {
            check_mark(mark, step)?;
            let growth = self.offsets.growth(producer, mark.topic, mark.partition);
            left = left.checked_sub(growth).ok_or(Refused::OffsetsMax {
                max: step.options.offsets_max,
            })?;
            taken.push((*mark).into());
            Ok(())
        });
        let answers = answers.collect();
        let marks = Marks {
            group: self.id.clone(),
            committed_ms: step.unix_ms,
            // The largest value means none.
            expires_ms: expires_ms.filter(|it| *it < u64::MAX),
            marks: taken,
        };
        if !marks.marks.is_empty() {
            self.offsets.commit(producer, &marks);
            step.keep(match producer {
                None => Record::Committed(marks),
                Some(producer) => Record::Pending { producer, marks },
            });
        }
        answers
    }

    /// Ends a transaction. Does nothing if it has committed no offsets here, or has ended already.
    pub(in super::super) fn end_transaction(
        &mut self,
        producer: ProducerId,
        ending: Ending,
        step: &mut Step<'_>,
    ) {
        if self.offsets.has_pending(producer) {
            self.offsets.end(producer, ending);
            step.keep(Record::Ended {
                group: self.id.clone(),
                producer,
                ending,
            });
        }
    }

    /// Deletes offsets, except those of topics that the group is subscribed to.
    pub(in super::super) fn delete_offsets(
        &mut self,
        partitions: &[(&str, u32)],
        step: &mut Step<'_>,
    ) -> Result<Vec<Result<(), Refused>>, Refused> {
        if !self.is_empty() && *self.protocol_type != *CONSUMER {
            return Err(Refused::NonEmpty);
        }
        let mut gone = Vec::new();
        let answers = partitions.iter().map(|(topic, partition)| {
            if self.subscribes(topic) {
                return Err(Refused::Subscribed);
            }
            gone.push((Box::from(*topic), *partition));
            Ok(())
        });
        let answers = answers.collect();
        self.forget(gone, step);
        Ok(answers)
    }

    /// Removes the offsets of a deleted topic, so that they do not apply to a new topic of its
    /// name.
    pub(in super::super) fn forget_topic(&mut self, topic: &str, step: &mut Step<'_>) {
        let partitions = self.offsets.partitions(topic).into_iter();
        let gone = partitions.map(|it| (Box::from(topic), it)).collect();
        self.forget(gone, step);
    }

    fn forget(&mut self, partitions: Vec<(Box<str>, u32)>, step: &mut Step<'_>) {
        let mut partitions = partitions;
        partitions.retain(|(topic, partition)| self.offsets.forget(topic, *partition));
        if !partitions.is_empty() {
            step.keep(Record::Forgotten {
                group: self.id.clone(),
                partitions,
            });
        }
    }

    /// Returns whether any member is subscribed to the topic, or may be because it does not state
    /// its topics.
    fn subscribes(&self, topic: &str) -> bool {
        self.members.values().any(|it| {
            let topics = it.profile.topics.as_ref();
            topics.is_none_or(|topics| topics.iter().any(|it| **it == *topic))
        })
    }

    /// Removes expired offsets: in a group without members all, some time after the last member
    /// left; in a group with members those of topics without a subscriber.
    pub(in super::super) fn expire_offsets(&mut self, step: &mut Step<'_>) {
        let had_members = self.generation > 0;
        let may_forget = match self.phase {
            Phase::Empty => true,
            Phase::Stable { .. } => *self.protocol_type == *CONSUMER,
            Phase::Preparing { .. } | Phase::Completing { .. } => false,
        };
        if !may_forget {
            return;
        }
        let since_ms = (self.is_empty() && had_members).then_some(self.since_ms);
        let is_over = |it: &Committed| match it.expires_ms {
            Some(at_ms) => at_ms <= step.unix_ms,
            None => {
                let from_ms = since_ms.unwrap_or(0).max(it.committed_ms);
                step.unix_ms.saturating_sub(from_ms) >= step.options.offsets_retention_ms
            }
        };
        let over = self.offsets.iter().filter(|(topic, partition, it)| {
            is_over(it) && !self.offsets.is_pending(topic, *partition) && !self.subscribes(topic)
        });
        let over = over.map(|(topic, partition, _)| (Box::from(topic), partition));
        let over = over.collect();
        self.forget(over, step);
    }

    /// The record of the group's deletion.
    pub(in super::super) fn gone_record(&self) -> Record {
        Record::Gone {
            group: Arc::clone(&self.id),
        }
    }
}

fn check_mark(mark: &Mark<'_>, step: &Step<'_>) -> Result<(), Refused> {
    let (size, max) = (mark.metadata.len(), step.options.offset_metadata_size_max);
    if size > max {
        return Err(Refused::MetadataTooLarge { size, max });
    }
    let (size, max) = (mark.topic.len(), step.options.name_size_max);
    match size <= max {
        true => Ok(()),
        false => Err(Refused::TooLarge {
            what: "the name of a topic",
            size,
            max,
        }),
    }
}
